/* test_tile_dots: products of few rows whose vectors run along the sum (runtime/tile_dots.h),
 * against all terms in double, as test_tile.c has it.
 *
 * Sums around one and two parts of sixteen vectors, with steps that fill no vector, along one axis
 * and more, and numbers of columns that fill no eight, with vectors of 64 bytes on all machines. Of
 * one row by hand: columns one behind the other give the bits of columns side by side. */
#define MD_VBYTES 64
#include "tests/runtime/tile_case.h"

static const int64_t sums[] = {127, 128, 130, 255, 256, 257, 272, 511, 512, 700, 1031};

/* Both operands have their steps side by side, in `runs` runs of k, between which one lies. */
static Case dots(int64_t rows, int64_t columns, int64_t runs, int64_t k, int flags, int elem) {
    Case t;
    memset(&t, 0, sizeof t);
    const int64_t each = runs * (k + 1);
    md_tile_shape s = {0};
    s.b1 = s.b2 = s.m1 = s.ko = s.k0 = 1;
    s.m2 = rows, s.n = columns, s.k1 = runs, s.k2 = k;
    s.a_m2 = each, s.a_k1 = k + 1, s.a_k2 = 1;
    s.b_n = each, s.b_k1 = k + 1, s.b_k2 = 1;
    s.c_m2 = columns, s.c_n = 1;
    s.flags = flags;
    t.shape = s;
    t.plan = md_tile_plan(md_tile_normal(s), elem);
    t.elem = elem;
    t.a_size = rows * each;
    t.b_size = columns * each;
    t.c_size = rows * columns;
    return t;
}

static void test_long_sums(void **state) {
    (void)state;
    static const int64_t columns[] = {90, 64, 127, 99};
    static const int flags[] = {0, MD_TILE_ADD, MD_TILE_NO_C};
    int taken = 0;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        for (int of = 0; of < 12; of++) {
            Case t = dots(of < 6 ? 1 : of % 4 + 1, columns[of % 4], of % 3 + 1, sums[i],
                          flags[of % 3], of % 2 == 0 ? 4 : ELEM_MAX);
            taken += (t.plan.is & MD_TILE_DOTS) != 0;
            case_fill(&t);
            case_check(&t);
            case_free(&t);
        }
    }
    assert_true(taken > 100);
}

/* What both functions of one row give, with what they add to. */
#define SAME_BITS(REAL, SIDE, LINE)                                                                \
    do {                                                                                           \
        static REAL x[2 * 1100], y[32 * 1100], one[32], other[32];                                 \
        for (size_t i = 0; i < sizeof y / sizeof *y; i++) {                                        \
            y[i] = (REAL)((double)draw(-1000000, 1000000) / 7919);                                 \
            x[i % 2200] = (REAL)((double)draw(-1000000, 1000000) / 104729);                        \
        }                                                                                          \
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {                                  \
            for (int64_t cols = 1; cols <= 19; cols += 3) {                                        \
                for (int first = 0; first < 2; first++) {                                          \
                    for (int64_t c = 0; c < cols; c++) {                                           \
                        one[c] = other[c] = (REAL)c / 3;                                           \
                    }                                                                              \
                    const int64_t k = sums[i];                                                     \
                    SIDE(cols, x, 0, 1050, y, k + 1, 3, 2, k, one, 32, first);                     \
                    LINE(cols, x, 0, 1050, y, k + 1, 3, 2, k, other, 32, first);                   \
                    assert_memory_equal(one, other, sizeof one);                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static void test_same_bits(void **state) {
    (void)state;
    SAME_BITS(float, md_tile_dots1_f32, md_tile_dots_long_f32);
    SAME_BITS(double, md_tile_dots1_f64, md_tile_dots_long_f64);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_long_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
