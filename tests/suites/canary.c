/* canary: a model built with --checks=canary inside another program: what a call says when one of
 * its kernels writes outside its buffers. Built by canary.sh against tiny.h and a tiny.c whose
 * kernel of `fit` is damaged; prints what went wrong. */
#include "tiny.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

static alignas(TINY_ALIGN) unsigned char params[TINY_PARAMS_BYTES], state[TINY_STATE_BYTES],
    io[TINY_IO_BYTES], arena[TINY_ARENA_BYTES];
static int wrong;

static void expect(int truth, const char *what) {
    if (!truth) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
}

int main(void) {
    static const float x[8 * 5];
    const tiny_memory memory = {params,        state,        io,        arena,
                                sizeof params, sizeof state, sizeof io, sizeof arena};
    tiny net = {0};
    md_damage damage;
    expect(tiny_check(&net, &damage) == TINY_ERR_STATE, "check before bind");
    expect(tiny_bind(&net, &memory) == TINY_OK, "bind");
    expect(tiny_check(&net, NULL) == TINY_ERR_ARGUMENT, "check without a place for the damage");
    expect(tiny_init(&net, 1) == TINY_OK, "init");
    expect(tiny_check(&net, &damage) == TINY_OK && damage.entry == NULL, "check after init");
    const tiny_fit_in in = {x};
    tiny_fit_out out;
    expect(tiny_fit(&net, &in, &out) == TINY_ERR_CANARY, "a damaged band is not seen");
    expect(tiny_check(&net, &damage) == TINY_ERR_CANARY, "check after damage");
    expect(damage.entry != NULL && strcmp(damage.entry, "tiny_fit") == 0, "name of the function");
    expect(damage.buffer != NULL && strcmp(damage.buffer, "gelu") == 0, "name of the buffer");
    expect(damage.step == 0 && damage.behind == 1 && damage.byte == 0, "place of the damage");
    expect(strcmp(tiny_strerror(TINY_ERR_CANARY), "unknown status") != 0, "text of the status");
    expect(tiny_bind(&net, &memory) == TINY_OK, "bind again");
    expect(tiny_check(&net, &damage) == TINY_OK, "bind forgets the damage");
    return wrong;
}
