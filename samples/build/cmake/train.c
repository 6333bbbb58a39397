/* train: a C program with a model in its build. It makes points of two spiral arms, trains the model of
 * spiral.mdl on them and says how many points between them it reads right. Status 1 below 95 %. */
#include "spiral.h"

#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 50, POINTS = 400, EPOCHS = 300 };

static alignas(SPIRAL_ALIGN) unsigned char params[SPIRAL_PARAMS_BYTES], state[SPIRAL_STATE_BYTES],
    io[SPIRAL_IO_BYTES], arena[SPIRAL_ARENA_BYTES];

static void must(int code, const char *what) {
    if (code != SPIRAL_OK) {
        fprintf(stderr, "train: %s: %s\n", what, spiral_strerror(code));
        exit(1);
    }
}

/* The point at t in 0..1 of an arm. */
static void arm_point(float *x, float t, int arm) {
    const float angle = 6 * t + 3.1415927f * (float)arm;
    x[0] = t * cosf(angle);
    x[1] = t * sinf(angle);
}

int main(void) {
    static float x[POINTS][2];
    static uint8_t arm[POINTS];
    spiral net = {0};
    const spiral_memory memory = {.params = params, .state = state, .io = io, .arena = arena,
                                  .params_bytes = sizeof params, .state_bytes = sizeof state,
                                  .io_bytes = sizeof io, .arena_bytes = sizeof arena};
    must(spiral_bind(&net, &memory), "bind");
    must(spiral_init(&net, 1), "init");

    /* A step of 67 rows visits all, in an order that mixes the arms. */
    for (int i = 0, at = 0; i < POINTS; i++, at = (at + 67) % POINTS) {
        arm[i] = (uint8_t)(at % 2);
        arm_point(x[i], (float)(at / 2) * 2 / POINTS, arm[i]);
    }
    spiral_fit_out out = {0};
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int first = 0; first < POINTS; first += BATCH) {
            const spiral_fit_in in = {.x = x[first], .arm = &arm[first]};
            must(spiral_fit(&net, &in, &out), "fit");
        }
    }

    int right = 0;
    for (int i = 0; i < POINTS; i++) {
        float between[2];
        arm_point(between, ((float)(i / 2) + 0.5f) * 2 / POINTS, i % 2);
        const spiral_predict_in in = {.x = between};
        spiral_predict_out said;
        must(spiral_predict(&net, &in, &said), "predict");
        right += *said.arm == i % 2;
    }
    const int bytes = SPIRAL_PARAMS_BYTES + SPIRAL_STATE_BYTES + SPIRAL_IO_BYTES + SPIRAL_ARENA_BYTES;
    printf("spiral: %d of %d right, loss %.3f, %d bytes\n", right, POINTS, (double)out.loss, bytes);
    return right * 100 >= POINTS * 95 ? 0 : 1;
}
