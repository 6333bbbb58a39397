/* ops: calls the entry `go` of op.c for 0.3 s and prints the least time of a call in milliseconds.
 * FILLED lists FILL(name, type, count, most) of its inputs, random numbers in 0..1 or below `most`;
 * GIVEN names them in order. Parameters are 0. */
#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *room(size_t bytes) {
    void *at = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (at == NULL) {
        exit(1);
    }
    memset(at, 0, bytes);
    return at;
}

#define FILL(name, type, count, most)                                                              \
    type *name = room(sizeof(type) * (count));                                                     \
    for (long i = 0; i < (count); i++) {                                                           \
        name[i] = (most) > 0 ? (type)(rand() % ((most) + !(most)))                                 \
                             : (type)((float)rand() / (float)RAND_MAX);                            \
    }

int main(void) {
    op m = {0};
    op_memory memory = {0};
    memory.params = room(memory.params_bytes = OP_PARAMS_BYTES);
    memory.state = room(memory.state_bytes = OP_STATE_BYTES);
    memory.io = room(memory.io_bytes = OP_IO_BYTES);
    memory.arena = room(memory.arena_bytes = OP_ARENA_BYTES);
    if (op_bind(&m, &memory) != OP_OK) {
        return 1;
    }
    FILLED
    const op_go_in in = {GIVEN};
    op_go_out out;
    double least = 1e30;
    for (double end = now() + 300; now() < end;) {
        double start = now();
        if (op_go(&m, &in, &out) != OP_OK) {
            return 1;
        }
        double taken = now() - start;
        least = taken < least ? taken : least;
    }
    printf("%.6f\n", least);
    return 0;
}
