/* test_math: runtime/math.h against libm in double, over the whole range of f32.
 *
 * Every function is walked through all exponents and both signs by a stride that is coprime to two,
 * denser where it is hard; the worst error in units of the last place is printed and bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "runtime/math.h"
#include "runtime/scalar.h"

typedef float (*Approx)(float);
typedef double (*Exact)(double);

/* Functions and not macros: their addresses are taken. */
#define WRAP(name)                                                                                 \
    static float run_##name(float x) {                                                             \
        return md_##name(x);                                                                       \
    }
WRAP(expf)
WRAP(expm1f)
WRAP(logf)
WRAP(log1pf)
WRAP(tanf)
WRAP(asinf)
WRAP(acosf)
WRAP(atanf)
WRAP(sinhf)
WRAP(coshf)
WRAP(tanhf)
WRAP(erff)
WRAP(sinf)
WRAP(cosf)

/* Distance of `got` from `want` in units of the last place of an f32 of the size of `want`;
 * 1e9 for a wrong infinity or NaN. */
static double ulps(float got, double want) {
    if (isnan(want)) {
        return isnan(got) ? 0.0 : 1e9;
    }
    if (isnan(got)) {
        return 1e9;
    }
    int e = 0;
    frexp(want, &e);
    double unit = ldexp(1.0, (e < -125 ? -125 : e) - 24);
    double edge = 340282356779733661637539395458142568448.0; /* where rounding gives infinity */
    if (isinf(got)) {
        return (want >= edge && got > 0) || (want <= -edge && got < 0)     ? 0.0
               : fabs(want) > edge * (1 - 1e-7) && (got > 0) == (want > 0) ? 1.0
                                                                           : 1e9;
    }
    if (isinf(want)) {
        return 1e9;
    }
    return fabs((double)got - want) / unit;
}

typedef struct {
    const char *name;
    double worst;
    float at;
} Worst;

static void look(Worst *w, float x, float got, double want) {
    double d = ulps(got, want);
    if (d > w->worst) {
        w->worst = d;
        w->at = x;
    }
}

static void sweep(const char *name, Approx f, Exact g) {
    Worst w = {name, 0.0, 0.0f};
    for (uint64_t u = 0; u < UINT64_C(0x100000000); u += 1777) { /* all patterns, NaN included */
        float x = md_f32_of_bits((uint32_t)u);
        look(&w, x, f(x), g((double)x));
    }
    for (uint32_t u = UINT32_C(0x3A000000); u < UINT32_C(0x42D00000); u += 331) { /* 2^-11 .. 104 */
        float x = md_f32_of_bits(u);
        look(&w, x, f(x), g((double)x));
        look(&w, -x, f(-x), g((double)-x));
    }
    printf("  %-10s worst %.3f ulp at %.9g\n", name, w.worst, (double)w.at);
    assert_true(w.worst <= 2.0);
}

static void test_sweeps(void **state) {
    (void)state;
    sweep("exp", run_expf, exp);
    sweep("expm1", run_expm1f, expm1);
    sweep("log", run_logf, log);
    sweep("log1p", run_log1pf, log1p);
    sweep("tan", run_tanf, tan);
    sweep("asin", run_asinf, asin);
    sweep("acos", run_acosf, acos);
    sweep("atan", run_atanf, atan);
    sweep("sinh", run_sinhf, sinh);
    sweep("cosh", run_coshf, cosh);
    sweep("tanh", run_tanhf, tanh);
    sweep("erf", run_erff, erf);
    sweep("sin", run_sinf, sin);
    sweep("cos", run_cosf, cos);
}

static void test_cos_turn(void **state) {
    (void)state;
    Worst w = {"cos_turn", 0.0, 0.0f};
    for (int32_t i = 0; i <= 16777216; i += 7) {
        float u = (float)i / 16777216.0f;
        double want = cos(6.283185307179586477 * (double)u);
        /* Near the zeros the reference itself is only good to 1e-16. */
        double d = fabs((double)md_cos_turnf(u) - want);
        d = d < 1e-15 ? 0.0 : ulps(md_cos_turnf(u), want);
        if (d > w.worst) {
            w.worst = d;
            w.at = u;
        }
    }
    printf("  %-10s worst %.3f ulp at %.9g\n", w.name, w.worst, (double)w.at);
    assert_true(w.worst <= 2.0);
}

static void test_pow(void **state) {
    (void)state;
    Worst w = {"pow", 0.0, 0.0f};
    uint32_t r = 12345;
    for (int i = 0; i < 3000000; i++) {
        r = r * 1664525u + 1013904223u;
        float x = md_f32_of_bits(r ^ r >> 15);
        r = r * 1664525u + 1013904223u;
        /* Exponents that keep the result in range, then any at all. */
        float l = fabsf(log2f(fabsf(x)));
        float y = i % 4 == 0 ? md_f32_of_bits(r) : ((float)(r >> 8) / 8388608.0f - 1.0f) * 150.0f;
        y = i % 4 != 0 && l > 1.0f && l < 1e9f ? y / l : y;
        y = i % 4 == 1 ? floorf(y) : y;
        look(&w, x, md_powf(x, y), pow((double)x, (double)y));
    }
    for (float x = 0.9f; x < 1.1f; x += 1e-6f) {
        look(&w, x, md_powf(x, 800.5f), pow((double)x, 800.5));
    }
    static const float special[] = {0.0f,        -0.0f,        1.0f,        -1.0f,      2.0f,
                                    -2.0f,       3.0f,         -3.0f,       0.5f,       -0.5f,
                                    2.5f,        -2.5f,        INFINITY,    -INFINITY,  NAN,
                                    16777215.0f, -16777215.0f, 16777216.0f, 8388607.5f, 1e30f,
                                    -1e30f,      1e-40f,       -1e-40f,     33.0f,      -33.0f};
    enum { COUNT = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            float x = special[i];
            float y = special[j];
            double want = pow((double)x, (double)y);
            float got = md_powf(x, y);
            look(&w, x, got, want);
            if (want == 0.0 || isinf((float)want)) {
                assert_int_equal(signbit(got) != 0, signbit(want) != 0);
            }
        }
    }
    printf("  %-10s worst %.3f ulp at %.9g\n", w.name, w.worst, (double)w.at);
    assert_true(w.worst <= 2.0);
}

static void test_atan2(void **state) {
    (void)state;
    Worst w = {"atan2", 0.0, 0.0f};
    uint32_t r = 4711;
    for (int i = 0; i < 3000000; i++) {
        r = r * 1664525u + 1013904223u;
        float y = md_f32_of_bits(r ^ r >> 15);
        r = r * 1664525u + 1013904223u;
        /* Any two, then two of one size. */
        float x = i % 2 == 0 ? md_f32_of_bits(r ^ r >> 13)
                             : y * ((float)(r >> 8) / 8388608.0f - 1.0f) * 3.0f;
        look(&w, y, md_atan2f(y, x), atan2((double)y, (double)x));
    }
    static const float special[] = {0.0f,     -0.0f,     1.0f, -1.0f,  1e30f,         -1e30f,
                                    INFINITY, -INFINITY, NAN,  1e-45f, 3.40282347e38f};
    enum { COUNT = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) {
            double want = atan2((double)special[i], (double)special[j]);
            float got = md_atan2f(special[i], special[j]);
            look(&w, special[i], got, want);
            if (want == 0.0) {
                assert_int_equal(signbit(got) != 0, signbit(want) != 0);
            }
        }
    }
    printf("  %-10s worst %.3f ulp at %.9g\n", w.name, w.worst, (double)w.at);
    assert_true(w.worst <= 2.0);
}

static void check_special(Approx f, Exact g) {
    static const float special[] = {
        0.0f,    -0.0f,           INFINITY,       -INFINITY,      NAN, 1.0f, -1.0f, 1e-45f,
        -1e-45f, 1.17549435e-38f, 3.40282347e38f, -3.40282347e38f};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        float got = f(special[i]);
        double want = g((double)special[i]);
        if (isnan(want)) {
            assert_true(isnan(got));
        } else if (want == 0.0 || isinf((float)want)) {
            assert_true((double)got == (double)(float)want);
            assert_int_equal(signbit(got) != 0, signbit(want) != 0);
        } else {
            assert_true(ulps(got, want) <= 2.0);
        }
    }
}

static void test_special(void **state) {
    (void)state;
    check_special(run_expf, exp);
    check_special(run_expm1f, expm1);
    check_special(run_logf, log);
    check_special(run_log1pf, log1p);
    check_special(run_tanf, tan);
    check_special(run_asinf, asin);
    check_special(run_acosf, acos);
    check_special(run_atanf, atan);
    check_special(run_sinhf, sinh);
    check_special(run_coshf, cosh);
    check_special(run_tanhf, tanh);
    check_special(run_erff, erf);
    check_special(run_sinf, sin);
    check_special(run_cosf, cos);
}

/* 1 + erf(x) by absolute error: not more than that of the sum of floats, on the whole. */
static void test_erfp1(void **state) {
    (void)state;
    double below = 0.0, above = 0.0, ours = 0.0, sums = 0.0;
    for (uint64_t u = 0; u < UINT64_C(0x100000000); u += 1777) { /* all patterns */
        float x = md_f32_of_bits((uint32_t)u), got = md_erfp1f(x);
        double off = fabs((double)got - erfc(-(double)x));
        assert_int_equal(isnan(x) != 0, isnan(got) != 0);
        assert_true(isnan(x) || (got >= 0.0f && got <= 2.0f));
        below = x <= 0.0f && off > below ? off : below;
        above = x > 0.0f && off > above ? off : above;
    }
    for (int32_t i = -5000000; i <= 5000000; i++) {
        float x = (float)i * 1e-6f;
        double want = erfc(-(double)x), off = (double)md_erfp1f(x) - want;
        double sum = (double)(1.0f + erff(x)) - want;
        ours += off * off;
        sums += sum * sum;
    }
    printf("  erfp1      worst %.3g below 0, %.3g above; %.3f of a sum's error\n", below, above,
           sqrt(ours / sums));
    assert_true(below < 8e-8 && above < 1.4e-7 && ours < sums);
    assert_true(md_erfp1f(-INFINITY) == 0.0f && md_erfp1f(INFINITY) == 2.0f);
    assert_true(md_erfp1f(0.0f) == 1.0f && md_erfp1f(-12.0f) == 0.0f && md_erfp1f(6.0f) == 2.0f);
}

/* Lanes of keys give the extremes of floats, NaN of either sign first of all. */
static void test_extremes(void **state) {
    (void)state;
    static const uint32_t special[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       0xFFC00000, 0x7F7FFFFF, 0xFF7FFFFF, 1,          0x80000001,
                                       0x7F800002, 0xFF800002, 0x3F800000, 0xBF800000};
    enum { SPECIAL = sizeof special / sizeof *special };
    uint32_t draw = 12345;
    int found[3] = {0};
    for (int n = 1; n <= 64; n *= 2) {
        for (int turn = 0; turn < 3000; turn++) {
            uint32_t most[64] = {0}, least[64] = {0};
            float up = -INFINITY, down = INFINITY;
            for (int i = 0; i < 3 * n; i++) { /* each lane three times */
                draw = draw * UINT32_C(1664525) + UINT32_C(1013904223);
                uint32_t bits = draw ^ draw >> 15;
                bits = turn % 3 == 0   ? special[bits % SPECIAL]
                       : turn % 3 == 1 ? (bits & 0x80000000) | 0x7F800000
                                       : (bits & 0xBFFFFFFF);
                float x = md_f32_of_bits(bits);
                most[i % n] = md_max_key(md_key_of_f32(x), most[i % n]);
                least[i % n] = md_max_key(md_key_of_f32(-x), least[i % n]);
                up = md_maxf(x, up);
                down = md_minf(x, down);
            }
            float got[2] = {md_lanes_maxf(most, n), -md_lanes_maxf(least, n)};
            assert_true(got[0] == up || (got[0] != got[0] && up != up));
            assert_true(got[1] == down || (got[1] != got[1] && down != down));
            found[up != up ? 0 : up < INFINITY ? 1 : 2]++;
        }
    }
    uint32_t none[8] = {0};
    assert_true(md_lanes_maxf(none, 8) == -INFINITY);
    assert_true(found[0] > 1000 && found[1] > 1000 && found[2] > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special),  cmocka_unit_test(test_erfp1),
        cmocka_unit_test(test_sweeps),   cmocka_unit_test(test_cos_turn),
        cmocka_unit_test(test_pow),      cmocka_unit_test(test_atan2),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests_name("runtime math", tests, NULL, NULL);
}
