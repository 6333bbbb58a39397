/* tile_bench: the contraction tile beside the FMA peak of the machine and, where there is one, a
 * CBLAS library. tile_bench.sh builds and runs it in two steps, because the tile is specialised on
 * finished plans: with -DPLANS this file prints them, without it includes what was printed.
 *
 *     tile_bench [THREADS]        a layout "nt" is C = A B' with B stored [n, k], and so on
 *
 * Limit: FMA peak of one core (12 independent chains of vector multiply-adds) times threads. Every
 * figure is the best of several runs over warm data; "of peak" is FLOPs / (time x limit). */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/tile_plan.h"

/* clang-format off */
#define PRODUCTS(X)                                                                                \
    X(0, "nn", 64, 512, 784) X(1, "nn", 128, 128, 64) X(2, "nn", 128, 128, 128)                    \
    X(3, "nn", 64, 512, 512) X(4, "nt", 64, 512, 784) X(5, "nt", 128, 128, 64)                     \
    X(6, "nt", 128, 128, 128) X(7, "nt", 64, 512, 512) X(8, "nt", 128, 10, 128)                    \
    X(9, "tn", 512, 784, 64) X(10, "tn", 128, 64, 128) X(11, "tn", 10, 128, 128)                   \
    X(12, "nn", 128, 128, 10) X(13, "tt", 128, 128, 128) X(14, "nt", 256, 768, 768)                \
    X(15, "nt", 256, 3072, 768) X(16, "nt", 256, 768, 3072) X(17, "nn", 256, 3072, 768)            \
    X(18, "tn", 768, 768, 256) X(19, "tn", 10, 27, 100000) X(20, "nt", 1, 512, 784)                \
    X(21, "nn", 1, 512, 784)
/* clang-format on */

#ifdef PLANS

static void print(int id, const char *layout, int64_t m, int64_t n, int64_t k) {
    int ta = layout[0] == 't';
    int tb = layout[1] == 't';
    md_tile_shape s = {1,          1, 1, m, n, 1,          1,          k, 0, 0, 0, ta ? 1 : k, 0, 0,
                       ta ? m : 1, 0, 0, 0, 0, tb ? 1 : n, tb ? k : 1, 0, 0, 0, n, 1,          1, 0,
                       0,          0};
    md_tile p = md_tile_plan(md_tile_normal(s), 4);
    const int64_t *field = (const int64_t *)(const void *)&p;
    printf("static const md_tile plan_%d = {", id);
    for (size_t i = 0; i < sizeof p / sizeof *field; i++) { /* the axes have four fields each */
        const int axis = i < offsetof(md_tile, elem) / sizeof *field;
        printf("%s%s%lld%s", i > 0 ? ", " : "", axis && i % 4 == 0 ? "{" : "", (long long)field[i],
               axis && i % 4 == 3 ? "}" : "");
    }
    printf("};\nstatic void part_%d(const md_tile_call *call, int part) {\n", id);
    printf("    md_tile_part_f32(&plan_%d, call, part, md_tile_none_f32);\n}\n", id);
}

int main(void) {
#define X(id, layout, m, n, k) print(id, layout, m, n, k);
    PRODUCTS(X)
    return 0;
}

#else

#include <time.h>

#include "runtime/tile_kernel.h"
#ifdef HAVE_CBLAS
#include "runtime/blas.h"
#endif
#include "tile_bench_plans.h"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#if MD_VBYTES > 0
static double peak(void) {
    enum { LANES = MD_VBYTES / 4, ROUNDS = 4000000 };
    volatile float unknown = 0.1f; /* different starts that stay different chains */
    md_vf32 a = {0}, b = {0}, z = {0};
    a += 0.999f;
    b += 0.001f;
    z += unknown;
    double best = 0;
    for (int run = 0; run < 5; run++) {
        md_vf32 c0 = z, c1 = z + 1, c2 = z + 2, c3 = z + 3, c4 = z + 4, c5 = z + 5;
        md_vf32 c6 = z + 6, c7 = z + 7, c8 = z + 8, c9 = z + 9, c10 = z + 10, c11 = z + 11;
        double t = now();
        for (int i = 0; i < ROUNDS; i++) {
            c0 = c0 * a + b;
            c1 = c1 * a + b;
            c2 = c2 * a + b;
            c3 = c3 * a + b;
            c4 = c4 * a + b;
            c5 = c5 * a + b;
            c6 = c6 * a + b;
            c7 = c7 * a + b;
            c8 = c8 * a + b;
            c9 = c9 * a + b;
            c10 = c10 * a + b;
            c11 = c11 * a + b;
        }
        t = now() - t;
        c0 += c1 + c2 + c3 + c4 + c5 + c6 + c7 + c8 + c9 + c10 + c11;
        volatile float keep = c0[0];
        (void)keep;
        double rate = 2.0 * 12 * LANES * ROUNDS / t;
        best = rate > best ? rate : best;
    }
    return best;
}
#else
static double peak(void) {
    return 1e9; /* no vectors: figures are then GFLOP/s */
}
#endif

enum { SIZE = 4 << 20 };

typedef struct {
    float *a, *b, *c;
    void *work;
    int threads;
    double peak;
} Bench;

static double best_of(const Bench *z, double flops, const md_tile *plan, md_tile_part_fn fn,
                      const char *layout, const int *mnk) {
    double best = 1e9;
    int count = (int)(4e7 / flops) + 1;
    for (int run = 0; run < 12; run++) {
        double t = now();
        for (int i = 0; i < count; i++) {
            if (plan != NULL) {
                md_tile_run(plan, fn, z->a, z->b, z->c, NULL, z->work, NULL, z->threads);
            }
#ifdef HAVE_CBLAS
            else {
                int ta = layout[0] == 't';
                int tb = layout[1] == 't';
                cblas_sgemm(101, ta ? 112 : 111, tb ? 112 : 111, mnk[0], mnk[1], mnk[2], 1.0f, z->a,
                            ta ? mnk[0] : mnk[2], z->b, tb ? mnk[2] : mnk[1], 0.0f, z->c, mnk[1]);
            }
#endif
        }
        t = (now() - t) / count;
        best = t < best ? t : best;
    }
    (void)layout;
    (void)mnk;
    return best;
}

static void run(const Bench *z, const md_tile *plan, md_tile_part_fn fn, const char *layout, int m,
                int n, int k) {
    int mnk[3] = {m, n, k};
    double flops = 2.0 * m * n * k;
    double t = best_of(z, flops, plan, fn, layout, mnk);
    printf("%s %5d x %5d x %6d %10.2f us %7.1f GFLOP/s %5.2f of peak", layout, m, n, k, t * 1e6,
           flops / t * 1e-9, flops / t / z->peak);
#ifdef HAVE_CBLAS
    double u = best_of(z, flops, NULL, NULL, layout, mnk);
    printf("   cblas %5.2f, tile is %.2f times as fast", flops / u / z->peak, u / t);
#endif
    printf("\n");
}

int main(int argc, char **argv) {
    Bench z;
    z.threads = argc > 1 ? atoi(argv[1]) : 1;
    z.a = (float *)aligned_alloc(64, SIZE * sizeof(float));
    z.b = (float *)aligned_alloc(64, SIZE * sizeof(float));
    z.c = (float *)aligned_alloc(64, SIZE * sizeof(float));
    z.work = aligned_alloc(64, SIZE * sizeof(float));
    if (z.a == NULL || z.b == NULL || z.c == NULL || z.work == NULL || z.threads < 1) {
        return 1;
    }
    memset(z.work, 0, SIZE * sizeof(float));
    for (int i = 0; i < SIZE; i++) {
        z.a[i] = (float)(i % 17) * 0.1f - 0.8f;
        z.b[i] = (float)(i % 23) * 0.05f - 0.5f;
        z.c[i] = 0.0f;
    }
    double core = peak();
    z.peak = core * md_threads(z.threads);
    printf("vectors of %d bytes, %d threads, FMA peak of a core %.1f GFLOP/s\n", MD_VBYTES,
           md_threads(z.threads), core * 1e-9);
#define X(id, layout, m, n, k) run(&z, &plan_##id, part_##id, layout, m, n, k);
    PRODUCTS(X)
    return 0;
}

#endif
