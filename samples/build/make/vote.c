/* vote: a C program with a model in its build. It trains the model of vote.mdl on votes of nine and says
 * of how many of all 512 it knows the result. Status 1 below 480. */
#include "vote.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, VOTERS = 9, UPDATES = 400 };

static alignas(VOTE_ALIGN) unsigned char params[VOTE_PARAMS_BYTES], state[VOTE_STATE_BYTES],
    io[VOTE_IO_BYTES], arena[VOTE_ARENA_BYTES];

static void must(int code) {
    if (code != VOTE_OK) {
        fprintf(stderr, "vote: %s\n", vote_strerror(code));
        exit(1);
    }
}

/* The votes that the bits of `ballot` say; gives the result. */
static int count(float *x, unsigned ballot) {
    int yes = 0;
    for (int i = 0; i < VOTERS; i++) {
        x[i] = (float)(ballot >> i & 1);
        yes += (int)(ballot >> i & 1);
    }
    return yes > VOTERS / 2;
}

int main(void) {
    vote net = {0};
    const vote_memory memory = {.params = params, .state = state, .io = io, .arena = arena,
                                .params_bytes = sizeof params, .state_bytes = sizeof state,
                                .io_bytes = sizeof io, .arena_bytes = sizeof arena};
    must(vote_bind(&net, &memory));
    must(vote_init(&net, 1));

    static float x[BATCH][VOTERS], yes[BATCH];
    uint32_t seed = 1;
    vote_fit_out out = {0};
    for (int update = 0; update < UPDATES; update++) {
        for (int i = 0; i < BATCH; i++) {
            seed = seed * 1664525u + 1013904223u;
            yes[i] = (float)count(x[i], seed >> 20);
        }
        const vote_fit_in in = {.x = x[0], .yes = yes};
        must(vote_fit(&net, &in, &out));
    }
    int right = 0;
    for (unsigned ballot = 0; ballot < 1u << VOTERS; ballot++) {
        const int result = count(x[0], ballot);
        const vote_result_in in = {.x = x[0]};
        vote_result_out said;
        must(vote_result(&net, &in, &said));
        right += (*said.sure > 0) == result;
    }
    const int bytes = VOTE_PARAMS_BYTES + VOTE_STATE_BYTES + VOTE_IO_BYTES + VOTE_ARENA_BYTES;
    printf("vote: %d of %d right, loss %.3f, %d bytes\n", right, 1 << VOTERS, (double)out.loss, bytes);
    return right >= 480 ? 0 : 1;
}
