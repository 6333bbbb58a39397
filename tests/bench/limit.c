/* limit: what this machine can do with OMP_NUM_THREADS threads: f32 multiply-adds and copies.
 * Prints GFLOP/s and GB/s (bytes read plus bytes written). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__AVX512F__)
enum { WIDTH = 16 };
#elif defined(__AVX__)
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
typedef float Vec __attribute__((vector_size(WIDTH * sizeof(float))));
enum { CHAINS = 12, ROUNDS = 20000000 / WIDTH, COPY_BYTES = 1 << 28, REPEATS = 5 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float multiply_adds(float seed) {
    Vec a[CHAINS], b, c;
    for (int i = 0; i < WIDTH; i++) {
        b[i] = 0.999f + seed;
        c[i] = 0.001f;
    }
    for (int k = 0; k < CHAINS; k++) {
        a[k] = b * (float)k;
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (int k = 0; k < CHAINS; k++) {
            a[k] = a[k] * b + c;
        }
    }
    float sum = 0;
    for (int k = 0; k < CHAINS; k++) {
        sum += a[k][k % WIDTH];
    }
    return sum;
}

int main(void) {
    int threads = 1;
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    double flops = 0, bytes = 0;
    float sink = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double start = now();
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : sink)
#endif
        for (int t = 0; t < threads; t++) {
            sink += multiply_adds(1e-9f * (float)t);
        }
        double rate = 2.0 * CHAINS * WIDTH * (double)ROUNDS * threads / (now() - start);
        flops = rate > flops ? rate : flops;
    }
    char *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    if (from == NULL || to == NULL) {
        return 1;
    }
    memset(from, 1, COPY_BYTES);
    memset(to, 2, COPY_BYTES);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        size_t part = (size_t)COPY_BYTES / (size_t)threads;
        double start = now();
#ifdef _OPENMP
#pragma omp parallel for
#endif
        for (int t = 0; t < threads; t++) {
            memcpy(to + part * (size_t)t, from + part * (size_t)t, part);
        }
        double rate = 2.0 * COPY_BYTES / (now() - start);
        bytes = rate > bytes ? rate : bytes;
    }
    printf("%.1f %.1f\n", flops / 1e9, bytes / 1e9);
    fprintf(stderr, "%d\n", sink > 0 && to[7] == 1);
    return 0;
}
