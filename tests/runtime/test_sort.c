/* test_sort: orders of lines by each way of runtime/sort.h against an insertion sort, of random and
 * hostile lines of every element type, both ways round, by one thread and in stretches. The
 * workspace is as long as is declared, with a band behind it. SEED is printed and may be given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/sort.h"

static uint64_t state_of_draws;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = state_of_draws += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void seed_draws(void) {
    const char *given = getenv("SEED");
    state_of_draws = given != NULL ? strtoull(given, NULL, 10) : 20261125;
    printf("SEED=%llu\n", (unsigned long long)state_of_draws);
}

/* Element i of a line of each kind as a number; types round or cut it. */
enum { RANDOM, FEW, EQUAL, RISING, FALLING, SPECIAL, TINY, LOW_BITS, KINDS };

static double number(int kind, int64_t i) {
    static const double special[] = {
        0.0, -0.0, 1.0, -1.0, (double)INFINITY, -(double)INFINITY, (double)NAN, -(double)NAN, 3e38};
    switch (kind) {
    case RANDOM: return (double)(int64_t)draw() * 0x1p-40;
    case FEW: return (double)(draw() % 3) - 1;
    case RISING: return (double)i / 3;
    case FALLING: return -(double)i / 3;
    case SPECIAL: return special[draw() % (sizeof special / sizeof *special)];
    case TINY: return (double)(int64_t)(draw() % 9 - 4) * 0x1p-149;
    case LOW_BITS: return 1 + (double)(draw() % 1000) * 0x1p-52;
    default: return 5;
    }
}

/* For each type: element i set to a number, and whether element b goes in front of a. */
typedef struct {
    const char *name;
    int bits, bytes, is_float;
    md_sort_keys_fn make;
    void (*set)(void *x, int64_t i, double to);
    int (*less)(const void *x, int64_t a, int64_t b, int descending);
} Kind;

#define FLOAT(type)                                                                                \
    static void set_##type(void *x, int64_t i, double to) {                                        \
        ((type *)x)[i] = (type)to;                                                                 \
    }                                                                                              \
    static int less_##type(const void *x, int64_t a, int64_t b, int descending) {                  \
        const type p = ((const type *)x)[a], q = ((const type *)x)[b];                             \
        return p == p && (q != q || (descending ? p > q : p < q));                                 \
    }
#define INTEGER(type)                                                                              \
    static void set_##type(void *x, int64_t i, double to) {                                        \
        ((type *)x)[i] = to == to && to < 1e15 && to > -1e15 ? (type)(int64_t)to : (type)draw();   \
    }                                                                                              \
    static int less_##type(const void *x, int64_t a, int64_t b, int descending) {                  \
        const type p = ((const type *)x)[a], q = ((const type *)x)[b];                             \
        return descending ? p > q : p < q;                                                         \
    }
FLOAT(float)
FLOAT(double)
INTEGER(int8_t)
INTEGER(int16_t)
INTEGER(int32_t)
INTEGER(int64_t)
INTEGER(uint8_t)
INTEGER(uint16_t)
INTEGER(uint32_t)

static const Kind kinds[] = {
    {"f32", 32, 4, 1, md_sort_keys_f32, set_float, less_float},
    {"f64", 64, 8, 1, md_sort_keys_f64, set_double, less_double},
    {"i8", 32, 1, 0, md_sort_keys_i8, set_int8_t, less_int8_t},
    {"i16", 32, 2, 0, md_sort_keys_i16, set_int16_t, less_int16_t},
    {"i32", 32, 4, 0, md_sort_keys_i32, set_int32_t, less_int32_t},
    {"i64", 64, 8, 0, md_sort_keys_i64, set_int64_t, less_int64_t},
    {"u8", 32, 1, 0, md_sort_keys_u8, set_uint8_t, less_uint8_t},
    {"u16", 32, 2, 0, md_sort_keys_u16, set_uint16_t, less_uint16_t},
    {"u32", 32, 4, 0, md_sort_keys_u32, set_uint32_t, less_uint32_t},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

/* --- what is right ---------------------------------------------------------------------------- */

/* Merges of runs by the comparison alone. */
static void right_order(const Kind *k, const void *x, int64_t n, int descending, int32_t *out,
                        int32_t *other) {
    for (int64_t i = 0; i < n; i++) {
        out[i] = (int32_t)i;
    }
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            const int64_t half = begin + run < n ? begin + run : n;
            const int64_t end = half + run < n ? half + run : n;
            int64_t i = begin, j = half;
            for (int64_t to = begin; to < end; to++) {
                const int second = j < end && (i == half || k->less(x, out[j], out[i], descending));
                other[to] = second ? out[j++] : out[i++];
            }
        }
        memcpy(out, other, (size_t)n * sizeof *out);
    }
}

/* --- each way --------------------------------------------------------------------------------- */

enum { BAND = 64 };

typedef struct {
    char *at;
    int64_t bytes;
} Room;

static Room room_of(int64_t bytes) {
    Room r = {aligned_alloc(64, (size_t)(bytes + BAND)), bytes};
    assert_non_null(r.at);
    memset(r.at, 0x5a, (size_t)(bytes + BAND));
    return r;
}

static void room_close(Room r) {
    for (int64_t i = 0; i < BAND; i++) {
        assert_int_equal(r.at[r.bytes + i], 0x5a);
    }
    free(r.at);
}

static void by_lines(const Kind *k, const md_sort_lines *p, const void *x, int32_t *out,
                     int threads) {
    const int64_t slice = md_sort_line_bytes(p->n, k->bits);
    Room r = room_of(slice * threads);
    md_sort_run(p, k->bits == 64 ? md_sort_line_64 : md_sort_line_32, k->make, out, x, r.at, slice,
                NULL, threads);
    room_close(r);
}

static void by_first(const Kind *k, const md_sort_lines *p, const void *x, int32_t *out,
                     int threads) {
    const int64_t slice = md_sort_first_bytes(p->n, p->most, k->bits);
    Room r = room_of(slice * threads);
    md_sort_run(p, k->bits == 64 ? md_sort_first_64 : md_sort_first_32, k->make, out, x, r.at,
                slice, NULL, threads);
    room_close(r);
}

/* In so many stretches, whether or not there are threads. */
static void by_stretches(const Kind *k, const md_sort_lines *p, const void *x, int32_t *out,
                         int parts) {
    Room r = room_of(md_sort_long_bytes(p->n, k->bits, parts));
    md_sort_long l = {.of = p, .make = k->make, .parts = parts};
    l.stretch = k->bits == 64 ? md_sort_stretch_64 : md_sort_stretch_32;
    for (int64_t row = 0; row < p->rows; row++) {
        l.x = (const char *)x + row * p->n * p->bytes;
        l.out = out + row * p->most;
        md_sort_long_line(&l, r.at, NULL);
    }
    room_close(r);
}

static void by_long(const Kind *k, const md_sort_lines *p, const void *x, int32_t *out,
                    int threads) {
    Room r = room_of(md_sort_long_bytes(p->n, k->bits, threads));
    md_sort_run_long(p, k->bits == 64 ? md_sort_line_64 : md_sort_line_32,
                     k->bits == 64 ? md_sort_stretch_64 : md_sort_stretch_32, k->make, out, x, r.at,
                     NULL, threads);
    room_close(r);
}

static void same_places(const Kind *k, int kind, const md_sort_lines *p, const int32_t *want,
                        const int32_t *got, const char *way) {
    for (int64_t i = 0; i < p->rows * p->most; i++) {
        if (want[i] != got[i]) {
            fail_msg("%s, %s, lines of kind %d, %lld of %lld x %lld%s: place %lld is %d, not %d",
                     way, k->name, kind, (long long)p->most, (long long)p->rows, (long long)p->n,
                     p->descending ? ", descending" : "", (long long)i, got[i], want[i]);
        }
    }
}

static void try_lines(const Kind *k, int kind, md_sort_lines p) {
    const int64_t count = p.rows * p.n;
    p.bytes = k->bytes;
    void *x = malloc((size_t)(count * k->bytes) + 1);
    int32_t *all = malloc((size_t)(2 * p.n + 1) * sizeof *all);
    int32_t *want = malloc((size_t)(p.rows * p.most + 1) * sizeof *want);
    int32_t *got = malloc((size_t)(p.rows * p.most + 1) * sizeof *got);
    assert_true(x && all && want && got);
    for (int64_t i = 0; i < count; i++) {
        k->set(x, i, number(kind, i % (p.n > 0 ? p.n : 1)));
    }
    for (int64_t row = 0; row < p.rows; row++) {
        right_order(k, (const char *)x + row * p.n * p.bytes, p.n, p.descending, all, all + p.n);
        memcpy(want + row * p.most, all, (size_t)p.most * sizeof *want);
    }
    for (int threads = 1; threads <= 3; threads++) {
        static void (*const way[])(const Kind *, const md_sort_lines *, const void *, int32_t *,
                                   int) = {by_lines, by_first, by_stretches, by_long};
        static const char *const name[] = {"lines", "first", "stretches", "long"};
        for (int w = 0; w < 4; w++) {
            if (w >= 2 && p.n <= MD_SORT_SHORT) {
                continue; /* no workspace for pairs */
            }
            memset(got, 0xff, (size_t)(p.rows * p.most) * sizeof *got);
            way[w](k, &p, x, got, threads);
            same_places(k, kind, &p, want, got, name[w]);
        }
    }
    free(x);
    free(all);
    free(want);
    free(got);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* All extents around the borders between ways. */
static void test_extents(void **state) {
    (void)state;
    seed_draws();
    static const int64_t extent[] = {1,  2,  3,   7,   8,   15,  16,  17,  23,  24,   25,
                                     31, 33, 127, 128, 129, 255, 256, 257, 511, 1000, 4097};
    for (size_t e = 0; e < sizeof extent / sizeof *extent; e++) {
        for (int t = 0; t < NKINDS; t++) {
            for (int kind = 0; kind < KINDS; kind++) {
                const int64_t n = extent[e];
                const md_sort_lines p = {n > 500 ? 2 : 5, n, n, 0, (int)(draw() & 1)};
                try_lines(&kinds[t], kind, p);
            }
        }
    }
}

/* The first few, and more than that. */
static void test_first(void **state) {
    (void)state;
    seed_draws();
    static const int64_t most[] = {1, 2, 5, 15, 16, 17, 40, 128, 129, 300, 999};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
        for (int t = 0; t < NKINDS; t++) {
            for (int kind = 0; kind < KINDS; kind++) {
                const int64_t n = most[m] + (int64_t)(draw() % 2000);
                const md_sort_lines p = {2, n, most[m], 0, (int)(draw() & 1)};
                try_lines(&kinds[t], kind, p);
            }
        }
    }
}

static void test_random(void **state) {
    (void)state;
    seed_draws();
    for (int i = 0; i < 1500; i++) {
        const Kind *k = &kinds[draw() % NKINDS];
        const int64_t n = 1 + (int64_t)(draw() % (draw() % 4 ? 60 : 700));
        const int64_t most = draw() % 2 ? n : 1 + (int64_t)(draw() % (uint64_t)n);
        const md_sort_lines p = {1 + (int64_t)(draw() % 40), n, most, 0, (int)(draw() & 1)};
        try_lines(k, (int)(draw() % KINDS), p);
    }
}

static void test_long_lines(void **state) {
    (void)state;
    seed_draws();
    for (int kind = 0; kind < KINDS; kind++) {
        for (int t = 0; t < NKINDS; t++) {
            const int64_t n = 20011 + (int64_t)(draw() % 999), most = draw() % 2 ? n : n / 7;
            try_lines(&kinds[t], kind, (md_sort_lines){1, n, most, 0, (int)(draw() & 1)});
        }
    }
}

/* Nothing is asked for, or there are no lines. */
static void test_nothing(void **state) {
    (void)state;
    try_lines(&kinds[0], RANDOM, (md_sort_lines){0, 5, 5, 0, 0});
    try_lines(&kinds[1], RANDOM, (md_sort_lines){0, 500, 3, 0, 1});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extents), cmocka_unit_test(test_first),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
