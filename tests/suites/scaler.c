/* A fixed sequence of finite and overflowing steps, beside what torch.amp.GradScaler does with it:
 * the scale before each step, and that a step which overflows changes nothing but the scaler's two
 * numbers. A second instance takes the finite steps alone and must end with the same bytes. Prints
 * how many steps overflowed and the last scale. */
#include "scaler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PARTS
#define PARTS 1
#endif
enum { B = 32, N = 32, STEPS = 8100 };

typedef struct {
    _Alignas(64) unsigned char params[SCALER_PARAMS_BYTES], state[SCALER_STATE_BYTES];
    _Alignas(64) unsigned char io[SCALER_IO_BYTES], arena[SCALER_ARENA_BYTES];
    scaler model;
} Instance;
static Instance all, clean, before;

static int open_one(Instance *i) {
    const scaler_memory memory = {i->params,        i->state,        i->io,        i->arena,
                                  sizeof i->params, sizeof i->state, sizeof i->io, sizeof i->arena};
    return scaler_bind(&i->model, &memory) != SCALER_OK || scaler_init(&i->model, 7) != SCALER_OK;
}

/* The scaler's own numbers of a state as those of another: the rest is left to be compared. */
static void take_scale(unsigned char *to, const unsigned char *from) {
    size_t count = 0;
    const md_tensor *tensor = scaler_tensors(&count);
    for (size_t k = 0; k < count; k++) {
        const md_tensor *t = &tensor[k];
        if (strstr(t->name, "fit.loss_scale") != NULL ||
            strstr(t->name, "fit.clean_steps") != NULL) {
            memcpy(to + t->offset, from + t->offset, t->bytes);
        }
    }
}

/* Overflows: a few at once, one in front of the 2,000th clean step and one behind it, both right
 * after an overflow; later one in the first of a run. */
static int overflows(int step) {
    return step == 3 || step == 4 || step == 90 || step == 90 + 2000 || step == 4092 ||
           step == 4093;
}

int main(void) {
    static float x[PARTS * B * N], c[PARTS * B];
    float scale = 65536;
    int tracker = 0, skipped = 0, doubled = 0;
    if (open_one(&all) || open_one(&clean)) {
        return 1;
    }
    for (int step = 0; step < STEPS; step++) {
        int bad = overflows(step);
        for (int i = 0; i < PARTS * B * N; i++) {
            x[i] = (float)((i * 7 + step) % 13 - 6) / 8;
        }
        for (int i = 0; i < PARTS * B; i++) {
            c[i] = i == PARTS * B - 3 && bad ? 1e30f : i % 2 ? -0.015625f : 0.03125f;
        }
        const scaler_fit_in in = {x, c};
        scaler_fit_out out;
        before = all;
        if (scaler_fit(&all.model, &in, &out) != SCALER_OK || out.loss_scale != scale) {
            printf("step %d: scale %g, not %g\n", step, (double)out.loss_scale, (double)scale);
            return 1;
        }
        if (isfinite(out.grad_norm) == bad) {
            printf("step %d: gradient norm %g\n", step, (double)out.grad_norm);
            return 1;
        }
        if (bad) {
            scale *= 0.5f;
            tracker = 0;
            skipped++;
            take_scale(before.state, all.state);
            if (memcmp(before.params, all.params, sizeof all.params) != 0 ||
                memcmp(before.state, all.state, sizeof all.state) != 0) {
                printf("step %d: an update that is left out has changed something\n", step);
                return 1;
            }
            continue;
        }
        if (++tracker == 2000) {
            scale *= 2;
            tracker = 0;
            doubled++;
        }
        if (memcmp(before.params, all.params, sizeof all.params) == 0) {
            printf("step %d: no update\n", step);
            return 1;
        }
        take_scale(clean.state, before.state); /* else subnormals of f16 would round otherwise */
        if (scaler_fit(&clean.model, &in, &out) != SCALER_OK) {
            return 1;
        }
    }
    take_scale(clean.state, all.state);
    if (memcmp(clean.params, all.params, sizeof all.params) != 0 ||
        memcmp(clean.state, all.state, sizeof all.state) != 0) {
        printf("the finite steps alone give other bytes\n");
        return 1;
    }
    printf("overflowed %d doubled %d scale %g\n", skipped, doubled, (double)scale);
    return 0;
}
