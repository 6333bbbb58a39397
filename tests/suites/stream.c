/* stream: calls the entries of stream.mdl beside a filter of our own; prints what went wrong. Built
 * by entries.sh. */
#include "stream.h"

#include <stdio.h>

enum { D = 3 };

static _Alignas(STREAM_ALIGN) unsigned char params[STREAM_PARAMS_BYTES], state[STREAM_STATE_BYTES],
    io[STREAM_IO_BYTES], arena[STREAM_ARENA_BYTES];
static int wrong;

/* The next output of the filter whose last one is `seen`. */
static void expect(float *seen, const float *x, const float *got, const char *what) {
    for (int d = 0; d < D; d++) {
        seen[d] = 0.5f * seen[d] + x[d];
        if (got[d] != seen[d]) {
            printf("wrong: %s gives %g, not %g\n", what, (double)got[d], (double)seen[d]);
            wrong = 1;
        }
    }
}

int main(void) {
    stream m;
    const stream_memory memory = {.params = params,
                                  .state = state,
                                  .io = io,
                                  .arena = arena,
                                  .params_bytes = sizeof params,
                                  .state_bytes = sizeof state,
                                  .io_bytes = sizeof io,
                                  .arena_bytes = sizeof arena};
    if (stream_bind(&m, &memory) != 0 || stream_init(&m, 1) != 0) {
        puts("wrong: bind or init");
        return 1;
    }
    float net[D] = {0}, held[D] = {0};
    float x[4 * D] = {1, 2, 3, -4, 5, 6, 7, 8, -9, 2, 0, 1};
    for (int round = 0; round < 3; round++) {
        stream_one_in in1 = {.x = x};
        stream_one_out out1;
        stream_two_in in2 = {.x = x + D};
        stream_two_out out2;
        stream_many_in in3 = {.x = x};
        stream_many_out out3;
        stream_other_in in4 = {.x = x};
        stream_other_out out4;
        wrong |= stream_one(&m, &in1, &out1) != 0;
        expect(net, x, out1.out, "one");
        wrong |= stream_two(&m, &in2, &out2) != 0;
        expect(net, x + D, out2.first, "the first of two");
        expect(net, x + D, out2.second, "the second of two");
        wrong |= stream_many(&m, &in3, &out3) != 0;
        for (int t = 0; t < 4; t++) {
            expect(net, x + t * D, out3.out + t * D, "many");
        }
        wrong |= stream_other(&m, &in4, &out4) != 0;
        expect(held, x, out4.out, "the second set");
    }
    return wrong;
}
