/* The turns of a loop of `race.c` (an emitted model, accumulate.mdl) in threads of their own, each
 * with the memory of a part of its own; APART 0: all with that of the first one, which
 * ThreadSanitizer must report. TURNS and ARGS: the function of the turns, and what it takes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "race.c"

enum { PARTS = 4 };

static acc model;
static float given[4 * 4 * 64];
static const acc_parts_given_in in = {given};
static ARGS args;

static unsigned char *region(size_t bytes) {
    unsigned char *at = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (at == NULL) {
        abort();
    }
    memset(at, 0, bytes);
    return at;
}

static void *part(void *number) {
    const int k = (int)(intptr_t)number;
    TURNS(&args, APART ? k : 0, PARTS);
    return NULL;
}

int main(void) {
    const acc_memory memory = {region(ACC_PARAMS_BYTES),
                               region(ACC_STATE_BYTES),
                               region(ACC_IO_BYTES),
                               region(ACC_ARENA_BYTES),
                               ACC_PARAMS_BYTES,
                               ACC_STATE_BYTES,
                               ACC_IO_BYTES,
                               ACC_ARENA_BYTES};
    pthread_t thread[PARTS];
    for (int i = 0; i < 4 * 4 * 64; i++) {
        given[i] = (float)(i * 7 % 101);
    }
    if (acc_bind(&model, &memory) != ACC_OK || acc_init(&model, 1) != ACC_OK) {
        return 2;
    }
    args = (ARGS){&model, &in};
    for (int k = 0; k < PARTS; k++) {
        if (pthread_create(&thread[k], NULL, part, (void *)(intptr_t)k) != 0) {
            return 2;
        }
    }
    for (int k = 0; k < PARTS; k++) {
        pthread_join(thread[k], NULL);
    }
    puts("done");
    return 0;
}
