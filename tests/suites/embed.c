/* embed: a program that trains an emitted model without the emitted `main`: two instances with one
 * arena for both, each region an allocation of exactly the declared size, so that a sanitizer sees
 * every byte outside of them. Built by embed.sh against digits.h; prints what went wrong. */
#include "digits.h"
#include "tests/memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 128, WIDTH = 64, CLASSES = 10, FILE_BYTES = 1 << 20 };

static int wrong;

static void expect(int truth, const char *what) {
    if (!truth) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

static void *region(size_t bytes) {
    void *p = NULL;
    if (bytes > 0 && posix_memalign(&p, DIGITS_ALIGN, bytes) != 0) {
        abort();
    }
    return p;
}

static digits_memory take(void *arena) {
    digits_memory memory;
    memory.params = region(DIGITS_PARAMS_BYTES);
    memory.state = region(DIGITS_STATE_BYTES);
    memory.io = region(DIGITS_IO_BYTES);
    memory.arena = arena;
    memory.params_bytes = DIGITS_PARAMS_BYTES;
    memory.state_bytes = DIGITS_STATE_BYTES;
    memory.io_bytes = DIGITS_IO_BYTES;
    memory.arena_bytes = DIGITS_ARENA_BYTES;
    return memory;
}

static void give(digits_memory *memory) {
    free(memory->params);
    free(memory->state);
    free(memory->io);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void check_bind(digits_memory memory) {
    digits net;
    digits_memory bad = memory;
    expect(digits_bind(NULL, &memory) == DIGITS_ERR_ARGUMENT, "bind without an instance");
    bad.params = NULL;
    expect(digits_bind(&net, &bad) == DIGITS_ERR_ARGUMENT, "bind without params");
    bad = memory;
    bad.arena_bytes--;
    expect(digits_bind(&net, &bad) == DIGITS_ERR_SIZE, "bind with a small arena");
    bad = memory;
    bad.state = (char *)memory.state + 4;
    expect(digits_bind(&net, &bad) == DIGITS_ERR_ALIGN, "bind with a state that is not aligned");
    expect(digits_init(&net, 1) == DIGITS_ERR_STATE, "init before bind");
}

/* Two batches of 100 and 28 rows are the same rows as one of 128. */
static void check_sums(digits *net, const digits_fit_in *in) {
    digits_fit_eval_out part;
    digits_fit_eval_sums whole = {0}, parts = {0};
    digits_fit_eval_end_out a, b;
    digits unbound = {0};
    digits_fit_in rest = {.x = in->x + 100 * WIDTH, .y = in->y + 100};
    static float x[ROWS * WIDTH];
    static uint8_t y[ROWS];
    memcpy(x, rest.x, 28 * WIDTH * sizeof *x);
    memcpy(y, rest.y, 28);
    rest.x = x;
    rest.y = y;
    expect(digits_fit_eval_end(net, &whole, &a) == DIGITS_ERR_STATE, "no batch was added");
    expect(digits_fit_eval(net, in, ROWS, &part) == DIGITS_OK &&
               digits_fit_eval_add(&whole, &part) == DIGITS_OK &&
               digits_fit_eval(net, in, 100, &part) == DIGITS_OK &&
               digits_fit_eval_add(&parts, &part) == DIGITS_OK &&
               digits_fit_eval(net, &rest, 28, &part) == DIGITS_OK &&
               digits_fit_eval_add(&parts, &part) == DIGITS_OK,
           "sums");
    expect(digits_fit_eval_end(&unbound, &whole, &a) == DIGITS_ERR_STATE, "sums before bind");
    expect(digits_fit_eval_end(NULL, &whole, &a) == DIGITS_ERR_ARGUMENT &&
               digits_fit_eval_end(net, NULL, &a) == DIGITS_ERR_ARGUMENT &&
               digits_fit_eval_end(net, &whole, NULL) == DIGITS_ERR_ARGUMENT &&
               digits_fit_eval_add(NULL, &part) == DIGITS_ERR_ARGUMENT &&
               digits_fit_eval_add(&whole, NULL) == DIGITS_ERR_ARGUMENT,
           "sums that are missing");
    expect(digits_fit_eval_end(net, &whole, &a) == DIGITS_OK &&
               digits_fit_eval_end(net, &parts, &b) == DIGITS_OK,
           "the end of an evaluation");
    expect(parts.batches == 2 && a.loss > 0 && a.acc == b.acc && a.loss - b.loss < 1e-6f * a.loss &&
               b.loss - a.loss < 1e-6f * a.loss,
           "ragged batches");
}

int main(void) {
    static float x[ROWS * WIDTH];
    static uint8_t y[ROWS];
    uint32_t random = 12345;
    for (int i = 0; i < ROWS; i++) {
        y[i] = (uint8_t)(i % CLASSES);
        for (int j = 0; j < WIDTH; j++) {
            random = random * 1664525u + 1013904223u;
            x[i * WIDTH + j] =
                (float)(random >> 8) / 16777216.0f + (j % CLASSES == y[i] ? 2.0f : 0.0f);
        }
    }
    unsigned char *arena = (unsigned char *)region(DIGITS_ARENA_BYTES);
    digits_memory memory[2];
    digits net[2];
    for (int i = 0; i < 2; i++) {
        memory[i] = take(arena);
        check_bind(memory[i]);
        expect(digits_bind(&net[i], &memory[i]) == DIGITS_OK, "bind");
        expect(digits_init(&net[i], 7) == DIGITS_OK, "init");
    }

    digits_fit_in in;
    in.x = x;
    in.y = y;
    digits_fit_out out[2];
    float first = 0;
    for (int step = 0; step < 30; step++) {
        for (int i = 0; i < 2; i++) { /* whatever the arena holds is dead between calls */
            memset(arena, step + i, DIGITS_ARENA_BYTES);
            expect(digits_fit(&net[i], &in, &out[i]) == DIGITS_OK, "fit");
        }
        expect(memcmp(&out[0], &out[1], sizeof out[0]) == 0, "two instances differ");
        first = step == 0 ? out[0].loss : first;
    }
    expect(out[0].loss < 0.7f * first, "the loss does not fall");

    digits_fit_eval_out sums;
    for (int rows = 1; rows <= ROWS; rows += 127) {
        expect(digits_fit_eval(&net[0], &in, rows, &sums) == DIGITS_OK, "evaluation");
    }
    expect(digits_fit_eval(&net[0], &in, ROWS + 1, &sums) == DIGITS_ERR_ARGUMENT, "too many rows");
    expect(digits_fit_eval(&net[0], &in, 0, &sums) == DIGITS_ERR_ARGUMENT, "no rows");
    check_sums(&net[0], &in);

    uint8_t kept = y[5];
    unsigned char *before = (unsigned char *)malloc(DIGITS_PARAMS_BYTES);
    memcpy(before, memory[0].params, DIGITS_PARAMS_BYTES);
    y[5] = CLASSES;
    expect(digits_fit(&net[0], &in, &out[0]) == DIGITS_ERR_RANGE, "a label out of range");
    y[5] = kept;
    x[17] = (float)(0.0 * 1e300 * 1e300);
    x[17] /= x[17];
    expect(digits_fit(&net[0], &in, &out[0]) == DIGITS_ERR_NONFINITE, "an input that is no number");
    x[17] = 0;
    expect(memcmp(before, memory[0].params, DIGITS_PARAMS_BYTES) == 0,
           "a refused step writes weights");
    free(before);

    unsigned char *room = (unsigned char *)malloc(FILE_BYTES);
    MemoryFile file = {.data = room, .room = room, .most = FILE_BYTES};
    expect(digits_save(&net[1], DIGITS_SAVE_ALL, memory_write, &file) == DIGITS_OK, "save");
    expect(digits_init(&net[0], 8) == DIGITS_OK, "init again");
    expect(digits_load(&net[0], memory_read, &file) == DIGITS_OK, "load");
    for (int i = 0; i < 2; i++) {
        expect(digits_fit(&net[i], &in, &out[i]) == DIGITS_OK, "fit after load");
    }
    expect(memcmp(&out[0], &out[1], sizeof out[0]) == 0, "an exact resume differs");
    file.size /= 2;
    expect(digits_load(&net[0], memory_read, &file) != DIGITS_OK, "half a file is loaded");
    free(room);

    digits_predict_in one;
    digits_predict_out answer;
    one.x = x;
    expect(digits_predict(&net[1], &one, &answer) == DIGITS_OK, "predict");
    float sum = 0;
    for (int k = 0; k < CLASSES; k++) {
        sum += answer.prob[k];
    }
    expect(sum > 0.999f && sum < 1.001f, "probabilities add up to 1");
    expect(answer.label[0] == y[0], "the label of a row it has learned");

    for (int i = 0; i < 2; i++) {
        give(&memory[i]);
    }
    free(arena);
    return wrong;
}
