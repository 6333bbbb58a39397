/* A host of a model built with --checks=nan: the place of the first NaN of each train; no change
 * of a weight where the loss or the gradient was none. */
#include "trace.h"

#include <stdio.h>
#include <string.h>

_Alignas(64) static unsigned char params[TRACE_PARAMS_BYTES], state[TRACE_STATE_BYTES];
_Alignas(64) static unsigned char io[TRACE_IO_BYTES + 64], arena[TRACE_ARENA_BYTES + 64];
static unsigned char before[TRACE_PARAMS_BYTES];
static trace m;

static int place(const char *name, int code, int same) {
    const md_place *p = trace_nonfinite(&m);
    printf("%s %s %s\n", name, p != NULL ? p->where : "none", p != NULL ? p->what : "");
    if (code != TRACE_ERR_NONFINITE || (memcmp(before, params, sizeof before) == 0) != same) {
        printf("%s: status %d, weights %s\n", name, code, same ? "changed" : "not changed");
        return 1;
    }
    return 0;
}

int main(void) {
    static float x[4 * 8], turns[3 * 4 * 8];
    const trace_memory memory = {params,        state,        io,        arena,
                                 sizeof params, sizeof state, sizeof io, sizeof arena};
    int bad = trace_bind(&m, &memory) != TRACE_OK || trace_init(&m, 1) != TRACE_OK ||
              trace_nonfinite(&m) != NULL;
    memcpy(before, params, sizeof before);
    for (int i = 0; i < 4 * 8; i++) {
        x[i] = (float)(i % 7 + 1) / 7;
    }
    trace_forward_in forward = {x};
    trace_forward_out forward_out;
    bad |= place("forward", trace_forward(&m, &forward, &forward_out), 1);
    trace_turns_in parts = {turns};
    trace_turns_out parts_out;
    bad |= place("turns", trace_turns(&m, &parts, &parts_out), 1);
    trace_backward_in backward = {x};
    trace_backward_out backward_out;
    bad |= place("backward", trace_backward(&m, &backward, &backward_out), 1);
    trace_update_in update = {x};
    trace_update_out update_out;
    bad |= place("update", trace_update(&m, &update, &update_out), 0);
    return bad;
}
