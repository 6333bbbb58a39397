/* stored: calls the entries of stored.mdl with all values of bfloat16 and of IEEE's half. Built by
 * stored.sh against stored.h; prints what went wrong. */
#include "stored.h"

#include <math.h>
#include <stdio.h>

enum { ALL = 65536 };

static _Alignas(STORED_ALIGN) unsigned char params[STORED_PARAMS_BYTES], state[STORED_STATE_BYTES],
    io[STORED_IO_BYTES], arena[STORED_ARENA_BYTES];
static stored net;
static uint16_t every[ALL];
static int wrong;

static void expect(int truth, const char *what, unsigned h) {
    if (!truth) {
        printf("wrong: %s of %04x\n", what, h);
        wrong = 1;
    }
}

/* What the bits mean; `fraction` of them are those of the fraction. */
static double meaning(unsigned h, int fraction) {
    int most = (1 << (15 - fraction)) - 1, power = (int)(h >> fraction) & most;
    double part = h & ((1u << fraction) - 1), sign = h & 0x8000u ? -1 : 1;
    if (power == most) {
        return part == 0 ? sign * INFINITY : (double)NAN;
    }
    int least = 1 - most / 2;
    return sign * (power == 0 ? ldexp(part, least - fraction)
                              : ldexp(part + (1 << fraction), power + least - 1 - fraction));
}

/* The same value, also of zeros and NaN. */
static int same(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void test_widen(void) {
    const stored_widen_in in = {.x = every, .h = every};
    stored_widen_out out;
    expect(stored_widen(&net, &in, &out) == STORED_OK, "status", 0);
    for (unsigned h = 0; h < ALL; h++) {
        double b = meaning(h, 7), f = meaning(h, 10);
        expect(isnan(b) ? isnan(meaning(out.same[h], 7)) : out.same[h] == h, "bf16 as it is", h);
        expect(isnan(f) ? isnan(meaning(out.same_h[h], 10)) : out.same_h[h] == h, "f16 as it is",
               h);
        expect(same((double)out.wide[h], b), "bf16", h);
        expect(same((double)out.wide_h[h], f), "f16", h);
        /* Half of the last place at most, to even; one beyond the largest is infinite. */
        double to_f = meaning(out.other_h[h], 10), to_b = meaning(out.other[h], 7);
        double place = fmax(ldexp(1, -24), ldexp(1, ilogb(fmax(fabs(b), 1e-30)) - 10));
        int large = fabs(b) >= 65520;
        expect(isnan(b) ? isnan(to_f)
               : large  ? to_f == copysign(INFINITY, b)
                        : fabs(to_f - b) <= place / 2 && !signbit(to_f) == !signbit(b),
               "bf16 to f16", h);
        expect(isnan(f) ? isnan(to_b) : same(to_b, f) || fabs(to_b - f) <= fabs(f) / 256,
               "f16 to bf16", h);
    }
}

/* The float between two neighbours goes to the even one, those next to it to the nearer. */
static void test_narrow(void) {
    static float x[ALL];
    for (int k = 0; k < 4; k++) {
        for (int fraction = 7; fraction <= 10; fraction += 3) {
            for (unsigned h = 0; h < ALL; h++) {
                double a = meaning(h, fraction), b = meaning((h + 1) & 0xFFFFu, fraction);
                int last = !isfinite(a) || !isfinite(b) || (h & 0x7FFFu) == 0x7FFFu;
                float middle = (float)(last ? a : (a + b) / 2);
                x[h] = k == 0   ? (float)a
                       : k == 1 ? middle
                       : last   ? middle
                                : nextafterf(middle, k == 2 ? (float)a : (float)b);
            }
            const stored_narrow_in in = {.x = x};
            stored_narrow_out out;
            expect(stored_narrow(&net, &in, &out) == STORED_OK, "status", 0);
            const uint16_t *to = fraction == 7 ? out.to : out.to_h;
            for (unsigned h = 0; h < ALL; h++) {
                double a = meaning(h, fraction), b = meaning((h + 1) & 0xFFFFu, fraction);
                int last = !isfinite(a) || !isfinite(b) || (h & 0x7FFFu) == 0x7FFFu;
                unsigned want = last || k == 0 || k == 2 ? h : k == 3 ? h + 1 : h + (h & 1u);
                expect(isnan(a) ? isnan(meaning(to[h], fraction)) : to[h] == want,
                       fraction == 7 ? "rounding to bf16" : "rounding to f16", h);
            }
        }
    }
}

static void test_slope(void) {
    static float x[ALL], w[ALL];
    for (unsigned i = 0; i < ALL; i++) {
        x[i] = 0.001f * (float)i - 30.0f;
        w[i] = 1.0f / (float)(i + 1);
    }
    const stored_narrow_in narrow_in = {.x = x};
    stored_narrow_out narrow;
    static float twice[ALL];
    expect(stored_narrow(&net, &narrow_in, &narrow) == STORED_OK, "status", 0);
    for (unsigned i = 0; i < ALL; i++) {
        twice[i] = 2.0f * (float)meaning(narrow.to[i], 7);
    }
    const stored_slope_in in = {.x = x, .w = w};
    stored_slope_out out;
    expect(stored_slope(&net, &in, &out) == STORED_OK, "status", 0);
    for (unsigned i = 0; i < ALL; i++) {
        expect(out.a[i] == twice[i], "the derivative of a square", i);
        expect(out.b[i] == w[i], "the derivative of a sum", i);
    }
}

int main(void) {
    const stored_memory memory = {.params = params,
                                  .params_bytes = sizeof params,
                                  .state = state,
                                  .state_bytes = sizeof state,
                                  .io = io,
                                  .io_bytes = sizeof io,
                                  .arena = arena,
                                  .arena_bytes = sizeof arena};
    if (stored_bind(&net, &memory) != STORED_OK || stored_init(&net, 1) != STORED_OK) {
        printf("wrong: no instance\n");
        return 1;
    }
    for (unsigned h = 0; h < ALL; h++) {
        every[h] = (uint16_t)h;
    }
    test_widen();
    test_narrow();
    test_slope();
    return wrong;
}
