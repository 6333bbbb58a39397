/* limit: what this machine can do with OMP_NUM_THREADS threads, as programs that were compiled
 * with --profile measure it: multiply-adds of f32, or of pairs with the argument bf16, and memory
 * that is read or copied. Prints GFLOP/s and GB/s (bytes read plus bytes written). Wants the root
 * of the tree in the include path. */
#include "runtime/rates.h"

#include <stdio.h>
#include <stdlib.h>

enum { FAR_BYTES = 1 << 28 };

int main(int argc, char **argv) {
    const int of = argc > 1 && strcmp(argv[1], "bf16") == 0 ? MD_RATE_OF_BF16 : MD_RATE_OF_F32;
    int threads = md_threads(1024);
    char *far = malloc(FAR_BYTES);
    if (far == NULL) {
        return 1;
    }
    memset(far, 1, FAR_BYTES);
    double bytes = md_rate_bytes(far, FAR_BYTES, threads);
    printf("%.1f %.1f\n", 1e-9 * md_rate_flops(of, threads), 1e-9 * bytes);
    free(far);
    return 0;
}
