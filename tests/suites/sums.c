/* The entries of sums.mdl over N, P and L terms against sums in double: of uniform values, of both
 * signs, of one value that is no binary fraction (every addition rounds the same way) and of large
 * values that cancel. Prints the worst error of each form as a part of the sum of magnitudes, and a
 * line with FAIL for one above the bound. */
#include "net.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef N
#define N 1024
#define P 1024
#define L 1024
#endif

enum { UNIFORM, SIGNED, EQUAL, CANCELLING, KINDS };
static const char *const kind_name[KINDS] = {"uniform", "signed", "equal", "cancelling"};

/* Below what 0013-sums.md promises for any input, half an ulp for each of the 1,024 terms of a
 * chain at each level: equal terms round the same way but by less, others at random. Chains of
 * all terms are above these from 10^5 terms on. */
static const double bound[KINDS] = {1.5e-6, 1e-6, 4e-5, 1e-5};

/* Terms that are added one after the other, in no lanes, are in chains of 64 or less
 * (0125-short-chains.md): one value alone shows it, since all additions of a chain round the same
 * way. A chain of 1,024 is off by 1e-5. */
static const double short_bound = 2e-6;
static bool short_chains;

static net net_;
static int kind, failed, checked;
static double worst;
static uint64_t drawn;

static float draw(void) {
    const uint64_t i = drawn++;
    uint64_t h = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 31) * UINT64_C(0xd6e8feb86659fd93);
    const float u = (float)(h >> 40) * 0x1p-24f;
    switch (kind) {
    case UNIFORM: return u;
    case SIGNED: return 2 * u - 1;
    case EQUAL: return 0.1f;
    default: return (i % 2 == 0 ? 1e4f : -1e4f) + u;
    }
}

static float *filled(int64_t count) {
    float *x = (float *)malloc((size_t)count * sizeof *x);
    if (x == NULL) {
        puts("FAIL no memory");
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) {
        x[i] = draw();
    }
    return x;
}

typedef struct {
    double sum, size;
} Sum;

static void add(Sum *s, double x) {
    s->sum += x;
    s->size += fabs(x);
}

static void compare(const char *name, float got, Sum want) {
    const double error = fabs((double)got - want.sum) / want.size;
    worst = error > worst ? error : worst;
    checked++;
    const double most = short_chains && kind == EQUAL ? short_bound : bound[kind];
    if (!(error <= most)) {
        if (failed++ < 20) {
            printf("FAIL %s, %s: %.9g, not %.9g, off by %.2g of the magnitudes\n", name,
                   kind_name[kind], (double)got, want.sum, error);
        }
    }
}

static void end(const char *name) {
    printf("%s %s %.2g\n", name, kind_name[kind], worst);
    worst = 0;
}

#define CALL(name, ...)                                                                            \
    const net_##name##_in in = {__VA_ARGS__};                                                      \
    net_##name##_out out;                                                                          \
    if (net_##name(&net_, &in, &out) != NET_OK) {                                                  \
        puts("FAIL " #name);                                                                       \
        exit(1);                                                                                   \
    }

/* One input and a sum of N for each of `count` results: term (result, i) is x[PLACE]. */
#define PLAIN(name, floats, count, terms, PLACE)                                                   \
    static void name(void) {                                                                       \
        float *x = filled(floats);                                                                 \
        CALL(name, x)                                                                              \
        for (int64_t r = 0; r < (count); r++) {                                                    \
            Sum s = {0, 0};                                                                        \
            for (int64_t i = 0; i < (terms); i++) {                                                \
                add(&s, (double)x[PLACE]);                                                         \
            }                                                                                      \
            compare(#name, out.out[r], s);                                                         \
        }                                                                                          \
        end(#name);                                                                                \
        free(x);                                                                                   \
    }

static void flat(void) {
    float *x = filled(N);
    Sum s = {0, 0}, squares = {0, 0};
    for (int64_t i = 0; i < N; i++) {
        add(&s, (double)x[i]);
        add(&squares, (double)x[i] * (double)x[i]);
    }
    {
        CALL(flat, x)
        compare("flat", out.out, s);
        end("flat");
    }
    {
        CALL(squares, x)
        compare("squares", out.out, squares);
        end("squares");
    }
    free(x);
}

PLAIN(rows, 3 * (int64_t)N, 3, N, r *N + i)
PLAIN(columns, 6 * (int64_t)N, 6, N, i * 6 + r)
PLAIN(pieces, (int64_t)P * 1100, 1100, P, i * 1100 + r)
PLAIN(channels, 3 * (int64_t)N, 3, N, i / 64 * 192 + r * 64 + i % 64)
PLAIN(short_rows, 3 * (int64_t)N, 3, N, i / 4 * 12 + r * 4 + i % 4)
PLAIN(outer, 15 * (int64_t)N, 15, N, (i / 64 * 3 + r / 5) * 320 + i % 64 * 5 + r % 5)
PLAIN(looped, 3 * (int64_t)L, 3, L, i * 3 + r)

static void jammed(void) {
    float *x = filled(64 * (int64_t)N), *y = filled(N);
    CALL(jammed, x, y)
    for (int64_t j = 0; j < 64; j++) {
        Sum s = {0, 0};
        for (int64_t i = 0; i < N; i++) {
            add(&s, (double)x[i * 64 + j] * (double)y[i]);
        }
        compare("jammed", out.out[j], s);
    }
    end("jammed");
    free(x);
    free(y);
}

static void product(void) {
    float *x = filled(5 * (int64_t)N), *y = filled(33 * (int64_t)N);
    CALL(product, x, y)
    for (int64_t z = 0; z < 5 * 33; z++) {
        Sum s = {0, 0};
        for (int64_t k = 0; k < N; k++) {
            add(&s, (double)x[k * 5 + z / 33] * (double)y[k * 33 + z % 33]);
        }
        compare("product", out.out[z], s);
    }
    end("product");
    free(x);
    free(y);
}

/* Both operands along the sum: few rows, and more than few. */
#define ALONG(name, rows, cols)                                                                    \
    static void name(void) {                                                                       \
        float *x = filled((rows) * (int64_t)N), *y = filled((cols) * (int64_t)N);                  \
        CALL(name, x, y)                                                                           \
        for (int64_t z = 0; z < (rows) * (cols); z++) {                                            \
            Sum s = {0, 0};                                                                        \
            for (int64_t k = 0; k < N; k++) {                                                      \
                add(&s, (double)x[z / (cols)*N + k] * (double)y[z % (cols)*N + k]);                \
            }                                                                                      \
            compare(#name, out.out[z], s);                                                         \
        }                                                                                          \
        end(#name);                                                                                \
        free(x);                                                                                   \
        free(y);                                                                                   \
    }
ALONG(dots, 2, 7)
ALONG(turned, 6, 40)

/* Variances by two passes, along rows and as of a batch. */
#define SPREAD(name, count, PLACE)                                                                 \
    static void name(void) {                                                                       \
        float *x = filled((count) * (int64_t)N);                                                   \
        CALL(name, x)                                                                              \
        for (int64_t r = 0; r < (count) && kind != EQUAL; r++) { /* zero but for rounding */       \
            Sum m = {0, 0}, v = {0, 0};                                                            \
            for (int64_t i = 0; i < N; i++) {                                                      \
                add(&m, (double)x[PLACE]);                                                         \
            }                                                                                      \
            for (int64_t i = 0; i < N; i++) {                                                      \
                add(&v, ((double)x[PLACE] - m.sum / N) * ((double)x[PLACE] - m.sum / N) / N);      \
            }                                                                                      \
            compare(#name, out.out[r], v);                                                         \
        }                                                                                          \
        end(#name);                                                                                \
        free(x);                                                                                   \
    }
SPREAD(spread, 20, r *N + i)
SPREAD(batch, 3, i / 64 * 192 + r * 64 + i % 64)

/* What a condition lets through: by channel, over places and images. */
static void chosen(void) {
    const int64_t each = 14 * 14, images = 128;
    float *x = filled(images * 6 * each), *y = filled(images * 6 * each);
    CALL(chosen, x, y)
    for (int64_t c = 0; c < 6; c++) {
        Sum s = {0, 0};
        for (int64_t k = 0; k < images * each; k++) {
            const int64_t at = (k / each * 6 + c) * each + k % each;
            add(&s, y[at] > 0 ? (double)x[at] : 0);
        }
        compare("chosen", out.out[c], s);
    }
    end("chosen");
    free(x);
    free(y);
}

/* A weight's gradient of a convolution: with the border in the image, and around it. */
static void images(void) {
    float *x = filled((int64_t)N / 16 * 144), *y = filled((int64_t)N / 16 * 64);
    CALL(images, x, y)
    for (int64_t z = 0; z < 4 * 4 * 9; z++) {
        const int64_t c = z / 36, o = z / 9 % 4, i = z / 3 % 3, j = z % 3;
        Sum s = {0, 0};
        for (int64_t k = 0; k < N; k++) {
            const int64_t b = k / 16, h = k / 4 % 4, w = k % 4;
            add(&s, (double)x[((b * 4 + c) * 6 + h + i) * 6 + w + j] *
                        (double)y[((b * 4 + o) * 4 + h) * 4 + w]);
        }
        compare("images", out.out[z], s);
    }
    end("images");
    free(x);
    free(y);
}

static void bordered(void) {
    float *x = filled((int64_t)N / 16 * 64), *y = filled((int64_t)N / 16 * 32);
    CALL(bordered, x, y)
    for (int64_t z = 0; z < 2 * 4 * 9; z++) {
        const int64_t o = z / 36, c = z / 9 % 4, i = z / 3 % 3, j = z % 3;
        Sum s = {0, 0};
        for (int64_t k = 0; k < N; k++) {
            const int64_t b = k / 16, h = k / 4 % 4, w = k % 4, at = h + i - 1, left = w + j - 1;
            if (at >= 0 && at < 4 && left >= 0 && left < 4) {
                add(&s, (double)x[((b * 4 + c) * 4 + at) * 4 + left] *
                            (double)y[((b * 2 + o) * 4 + h) * 4 + w]);
            }
        }
        compare("bordered", out.out[z], s);
    }
    end("bordered");
    free(x);
    free(y);
}

/* Most terms meet at one place. */
static int32_t *places(int64_t count) {
    int32_t *k = (int32_t *)malloc((size_t)count * sizeof *k);
    if (k == NULL) {
        puts("FAIL no memory");
        exit(1);
    }
    for (int64_t i = 0; i < count; i++) {
        k[i] = i % 7 < 5 ? 3 : (int32_t)(i % 5);
    }
    return k;
}

#define SCATTERED(name, count, width)                                                              \
    static void name(void) {                                                                       \
        static Sum s[5 * (width)];                                                                 \
        float *x = filled((int64_t)(count) * (width));                                             \
        int32_t *k = places(count);                                                                \
        CALL(name, x, k)                                                                           \
        memset(s, 0, sizeof s);                                                                    \
        for (int64_t i = 0; i < (int64_t)(count) * (width); i++) {                                 \
            add(&s[k[i / (width)] * (width) + i % (width)], (double)x[i]);                         \
        }                                                                                          \
        for (int64_t z = 0; z < 5 * (width); z++) {                                                \
            compare(#name, out.out[z], s[z]);                                                      \
        }                                                                                          \
        end(#name);                                                                                \
        free(x);                                                                                   \
        free(k);                                                                                   \
    }
SCATTERED(scattered, N, 3)
SCATTERED(wide_scattered, L, 130)

static void running(void) {
    float *x = filled(2 * (int64_t)N);
    Sum s[2] = {{0, 0}, {0, 0}};
    CALL(running, x)
    for (int64_t i = 0; i < 2 * (int64_t)N; i++) {
        add(&s[i % 2], (double)x[i]);
        compare("running", out.out[i], s[i % 2]);
    }
    end("running");
    free(x);
}

/* One place for all sums: what they lose is a number too. */
static void running_row(void) {
    float *x = filled(N);
    int32_t *k = (int32_t *)calloc(N, sizeof *k);
    Sum s = {0, 0};
    {
        CALL(running_row, x)
        for (int64_t i = 0; i < N; i++) {
            add(&s, (double)x[i]);
            compare("running_row", out.out[i], s);
        }
        end("running_row");
    }
    if (k == NULL) {
        exit(1);
    }
    CALL(met, x, k)
    compare("met", out.out[0], s);
    end("met");
    free(x);
    free(k);
}

static void loop_gradient(void) {
    float *x = filled(3 * (int64_t)L);
    const float w[3] = {0.25f, -0.5f, 1};
    CALL(loop_gradient, x, w)
    for (int64_t c = 0; c < 3; c++) {
        Sum s = {0, 0};
        for (int64_t t = 0; t < L; t++) {
            add(&s, (double)x[t * 3 + c]);
        }
        compare("loop_gradient", out.out[c], s);
    }
    end("loop_gradient");
    free(x);
}

int main(void) {
    const net_memory memory = {aligned_alloc(64, NET_PARAMS_BYTES + 64),
                               aligned_alloc(64, NET_STATE_BYTES + 64),
                               aligned_alloc(64, NET_IO_BYTES + 64),
                               aligned_alloc(64, NET_ARENA_BYTES + 64),
                               NET_PARAMS_BYTES,
                               NET_STATE_BYTES,
                               NET_IO_BYTES,
                               NET_ARENA_BYTES};
    if (net_bind(&net_, &memory) != NET_OK || net_init(&net_, 1) != NET_OK) {
        puts("FAIL bind");
        return 1;
    }
    for (kind = 0; kind < KINDS; kind++) {
        flat();
        rows();
        short_chains = N > 1024; /* up to there rows of one sum are one chain */
        columns();
        pieces();
        short_chains = true;
        outer();
        short_rows();
        short_chains = false;
        channels();
        batch();
        chosen();
        images();
        bordered();
        dots();
        scattered();
        running();
        running_row();
        looped();
        loop_gradient();
        wide_scattered();
        if (N <= 1 << 20) { /* more of these take gigabytes */
            jammed();
            spread();
            product();
            turned();
        }
    }
    printf("checked %d failed %d\n", checked, failed);
    return failed != 0;
}
