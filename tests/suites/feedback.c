/* A net whose output is its next input, CALLS times: prints the bytes that the header declares, the
 * last sum, and how many pages the process has gained since the second call. */
#include "net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Alignas(64) static unsigned char params[NET_PARAMS_BYTES], state[NET_STATE_BYTES];
_Alignas(64) static unsigned char io[NET_IO_BYTES], arena[NET_ARENA_BYTES];

static long resident(void) {
    long size = 0, pages = -1;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL || fscanf(f, "%ld %ld", &size, &pages) != 2) {
        pages = -1;
    }
    if (f != NULL) {
        fclose(f);
    }
    return pages;
}

int main(int argc, char **argv) {
    static net net_;
    static float x[32 * 4];
    const net_memory memory = {params,        state,        io,        arena,
                               sizeof params, sizeof state, sizeof io, sizeof arena};
    const long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    long before = resident(); /* the first look takes a buffer */
    if (net_bind(&net_, &memory) != NET_OK || net_init(&net_, 7) != NET_OK) {
        return 1;
    }
    for (int i = 0; i < 32 * 4; i++) {
        x[i] = (float)(i % 9) / 9;
    }
    for (long i = 0; i < calls; i++) {
        const net_apply_in in = {x};
        net_apply_out out;
        if (net_apply(&net_, &in, &out) != NET_OK) {
            return 1;
        }
        memcpy(x, out.out, sizeof x);
        if (i == 1) {
            before = resident();
        }
    }
    float sum = 0;
    for (int i = 0; i < 32 * 4; i++) {
        sum += x[i];
    }
    printf("declared %ld sum %.9g pages %ld\n",
           (long)(sizeof params + sizeof state + sizeof io + sizeof arena), (double)sum,
           resident() - before);
    return !isfinite(sum);
}
