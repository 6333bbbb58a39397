/* test_rng: runtime/rng.h. Known answers of Philox, ranges and moments of the draws,
 * independence of keys, and the keyed permutation: a bijection for every n, and every order
 * about equally often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "runtime/rng.h"

/* From the kat_vectors file of Random123, philox4x32 with 10 rounds. */
static void test_known_answers(void **state) {
    (void)state;
    static const uint32_t rows[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        const uint32_t *r = rows[i];
        md_block b = md_philox(r[0], r[1], r[2], r[3], r[4], r[5]);
        assert_memory_equal(b.w, r + 6, sizeof b.w);
    }
}

/* An element is a function of its index alone, also beyond 2^32 and inside a vectorised loop. */
static void test_elements(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    static float u[COUNT];
    static float z[COUNT];
    md_key key = md_key_make(7, 11, 13);
    uint64_t first = UINT64_C(0xFFFFFFFF) - 300;
    for (int i = 0; i < COUNT; i++) {
        u[i] = md_rand_uniform_f32(key, first + (uint64_t)i);
        z[i] = md_rand_normal_f32(key, first + (uint64_t)i);
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        uint64_t at = first + (uint64_t)i;
        md_block b = md_philox((uint32_t)at, (uint32_t)(at >> 32), key.c2, key.c3, key.k0, key.k1);
        md_block four = md_philox((uint32_t)(at >> 2), (uint32_t)(at >> 34), key.c2, key.c3, key.k0,
                                  key.k1); /* serves elements 4 k .. 4 k + 3 */
        assert_true(u[i] == (float)(four.w[at & 3] >> 8) / 16777216.0f);
        assert_true(four.w[at & 3] == md_rand_bits(key, at));
        double r = sqrt(-2.0 * log(((double)(b.w[0] >> 8) + 1.0) / 16777216.0));
        double want = r * cos(6.283185307179586 * (double)(b.w[1] >> 8) / 16777216.0);
        assert_true(fabs((double)z[i] - want) < 2e-6);
    }
}

/* A row is filled with the numbers that its elements have one by one, wherever it begins. */
static void test_rows(void **state) {
    (void)state;
    float row[70];
    md_key key = md_key_make(3, 5, 9);
    for (uint64_t first = 0; first < 9; first++) {
        for (int64_t n = 0; n <= 66; n++) {
            row[n] = -1.0f;
            md_rand_fill_f32(key, first, n, row);
            for (int64_t k = 0; k < n; k++) {
                assert_true(row[k] == md_rand_uniform_f32(key, first + (uint64_t)k));
            }
            assert_true(row[n] == -1.0f);
        }
    }
}

static void test_moments(void **state) {
    (void)state;
    const int count = 400000;
    md_key key = md_key_make(1, 2, 3);
    double su = 0, suu = 0, sz = 0, szz = 0, szzzz = 0, sd = 0, sdd = 0, sg = 0, sgg = 0, lag = 0;
    float low = 1.0f;
    float high = 0.0f;
    float last = 0.0f;
    for (int i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i;
        float u = md_rand_uniform_f32(key, at);
        double d = md_rand_uniform_f64(key, at);
        double z = (double)md_rand_normal_f32(key, at);
        double g = md_rand_normal_f64(key, at);
        assert_true(u >= 0.0f && u < 1.0f && d >= 0.0 && d < 1.0);
        assert_true(fabs(z) < 5.8 && fabs(g) < 8.6);
        low = u < low ? u : low;
        high = u > high ? u : high;
        su += (double)u;
        suu += (double)u * (double)u;
        lag += ((double)u - 0.5) * ((double)last - 0.5);
        last = u;
        sd += d;
        sdd += d * d;
        sz += z;
        szz += z * z;
        szzzz += z * z * z * z;
        sg += g;
        sgg += g * g;
    }
    double n = (double)count;
    double root = sqrt(n);
    assert_true(low < 1e-4f && high > 0.9999f);
    assert_true(fabs(su / n - 0.5) * root < 4 * 0.2887);
    assert_true(fabs(suu / n - 1.0 / 3) * root < 4 * 0.2982);
    assert_true(fabs(sd / n - 0.5) * root < 4 * 0.2887);
    assert_true(fabs(sdd / n - 1.0 / 3) * root < 4 * 0.2982);
    assert_true(fabs(lag / n) * root < 4 / 12.0);
    assert_true(fabs(sz / n) * root < 4.0);
    assert_true(fabs(szz / n - 1.0) * root < 4 * 1.4143);
    assert_true(fabs(szzzz / n - 3.0) * root < 4 * 9.8);
    assert_true(fabs(sg / n) * root < 4.0);
    assert_true(fabs(sgg / n - 1.0) * root < 4 * 1.4143);
}

/* Extremes of the words stay finite and inside the stated bounds. */
static void test_extremes(void **state) {
    (void)state;
    float smallest = 1.0f / 16777216.0f;
    assert_true(sqrtf(-2.0f * md_logf(smallest)) < 5.78f);
    assert_true(sqrtf(-2.0f * md_logf(1.0f)) == 0.0f);
    assert_true(md_cos_turnf(0.0f) == 1.0f && md_cos_turnf(0.5f) == -1.0f);
    assert_true(fabsf(md_cos_turnf(0.25f)) < 1e-7f);
}

/* Keys that differ in one argument give unrelated draws; folding is ordered. */
static void test_keys(void **state) {
    (void)state;
    md_key base = md_key_make(0, 0, 0);
    md_key others[] = {md_key_make(1, 0, 0),
                       md_key_make(0, 1, 0),
                       md_key_make(0, 0, 1),
                       md_key_make(0, 0, UINT64_C(1) << 32),
                       md_key_make(0, UINT64_C(1) << 32, 0),
                       md_key_make(UINT64_C(1) << 32, 0, 0),
                       md_key_fold(base, 0),
                       md_key_fold(base, 1),
                       md_key_fold(md_key_fold(base, 0), 1),
                       md_key_fold(md_key_fold(base, 1), 0)};
    enum { KEYS = sizeof others / sizeof *others };
    for (int a = 0; a < KEYS; a++) {
        for (int b = -1; b < a; b++) {
            md_key other = b < 0 ? base : others[b];
            int bits = 0;
            for (uint64_t i = 0; i < 1000; i++) {
                uint32_t d = md_rand_bits(others[a], i) ^ md_rand_bits(other, i);
                for (; d != 0; d &= d - 1) {
                    bits++;
                }
            }
            assert_true(bits > 16000 - 5 * 90 && bits < 16000 + 5 * 90); /* sigma = 89.4 */
        }
    }
}

static void check_bijection(uint64_t key, uint32_t n) {
    static unsigned char seen[200000];
    assert_true(n <= sizeof seen);
    memset(seen, 0, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t p = md_permute(key, n, i);
        assert_true(p < n && seen[p] == 0);
        seen[p] = 1;
    }
}

static void test_permute(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 300; n++) {
        for (uint64_t key = 0; key < 5; key++) {
            check_bijection(key * UINT64_C(0x123456789ABCDEF), n);
        }
    }
    static const uint32_t sizes[] = {511,   512,   513,   1438,  1797,   4096,
                                     60000, 65535, 65536, 65537, 100003, 200000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_bijection(99 + i, sizes[i]);
    }
    /* Wide domains: in range, and two arguments never meet. */
    uint64_t big = (UINT64_C(1) << 63) + 12345;
    uint64_t before = md_permute(5, big, 0);
    for (uint64_t i = 1; i < 1000; i++) {
        uint64_t p = md_permute(5, big, i);
        assert_true(p < big && p != before);
        before = p;
    }
    assert_true(md_permute(5, UINT64_MAX, UINT64_MAX - 1) < UINT64_MAX);
}

/* Over many keys every order of 4 items comes up about equally often, and every item of 1438 is
 * first about equally often. */
static void test_permute_even(void **state) {
    (void)state;
    enum { TRIALS = 48000 };
    static int orders[256];
    memset(orders, 0, sizeof orders);
    for (uint64_t t = 0; t < TRIALS; t++) {
        uint64_t key = md_mix64(t);
        uint64_t code = 0;
        for (uint64_t i = 0; i < 4; i++) {
            code = code * 4 + md_permute(key, 4, i);
        }
        orders[code]++;
    }
    double chi = 0;
    int used = 0;
    for (int i = 0; i < 256; i++) {
        if (orders[i] != 0) {
            double d = orders[i] - TRIALS / 24.0;
            chi += d * d / (TRIALS / 24.0);
            used++;
        }
    }
    assert_int_equal(used, 24);
    assert_true(chi < 60.0); /* 23 degrees of freedom: 1e-4 is at 57 */
    enum { ROWS = 1438, DRAWS = 200 * ROWS };
    static int first[ROWS];
    memset(first, 0, sizeof first);
    for (uint64_t t = 0; t < DRAWS; t++) {
        first[md_permute(t, ROWS, 17)]++;
    }
    chi = 0;
    for (int i = 0; i < ROWS; i++) {
        double d = first[i] - 200.0;
        chi += d * d / 200.0;
    }
    assert_true(fabs(chi - (ROWS - 1)) < 5 * sqrt(2.0 * (ROWS - 1)));
}

static void test_split(void **state) {
    (void)state;
    for (int64_t total = 0; total < 40; total++) {
        for (int64_t parts = 1; parts < 12; parts++) {
            assert_int_equal(md_split(total, 0, parts), 0);
            for (int64_t p = 0; p < parts; p++) {
                int64_t size = md_split(total, p + 1, parts) - md_split(total, p, parts);
                assert_true(size == total / parts || size == total / parts + 1);
            }
            assert_int_equal(md_split(total, parts, parts), total);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_elements),
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_moments),
        cmocka_unit_test(test_extremes),      cmocka_unit_test(test_keys),
        cmocka_unit_test(test_permute),       cmocka_unit_test(test_permute_even),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests_name("runtime rng", tests, NULL, NULL);
}
