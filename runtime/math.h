/* SPDX-License-Identifier: 0BSD */
/* math: branch-free elementary functions in f32; f64 code calls libm.
 *
 * Each is a straight line of products, ternaries and bit casts, so gcc and clang vectorise it
 * inside a plain loop (with the flags of the build line; -fno-trapping-math matters). Errors,
 * whole range, subnormal arguments and results included, against the exact value: at most 2 ulp
 * each, with and without fused products; tests/runtime/test_math.c sweeps and prints them. NaN
 * gives NaN; infinities, signed zeros, overflow and underflow as in C. errno and exception flags
 * are left alone. Needs md.h and round-to-nearest, gives pure functions. */
#ifndef MD_MATH_H
#define MD_MATH_H

#include <float.h>

#include "runtime/md.h"

MD_INLINE uint32_t md_bits_of_f32(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

MD_INLINE float md_f32_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* 2^n as f32 for -126 <= n <= 127. */
MD_INLINE float md_pow2_f32(int32_t n) {
    return md_f32_of_bits((uint32_t)(n + 127) << 23);
}

/* The magnitude of `a` with the sign of `s`. */
MD_INLINE float md_signed_f32(float a, float s) {
    return md_f32_of_bits((md_bits_of_f32(a) & UINT32_C(0x7FFFFFFF)) |
                          (md_bits_of_f32(s) & UINT32_C(0x80000000)));
}

/* x = n ln 2 + r with |r| <= ln 2 / 2: adding 1.5 * 2^23 rounds, and its low bits are then n. */
MD_INLINE float md_exp_reduce(float x, int32_t *n) {
    const float magic = 12582912.0f;
    float t = md_madf(x, 1.44269504f, magic);
    *n = (int32_t)(md_bits_of_f32(t) - UINT32_C(0x4B400000));
    t -= magic;
    return md_madf(t, 2.12194440e-4f, md_madf(t, -0.693359375f, x));
}

/* e^x = result * 2^n, for |x| up to 104. */
MD_INLINE float md_exp_core(float x, int32_t *n) {
    float r = md_exp_reduce(x, n);
    float q = 1.39475998e-3f;
    q = md_madf(q, r, 8.36724695e-3f);
    q = md_madf(q, r, 4.16662656e-2f);
    q = md_madf(q, r, 0.166665375f);
    q = md_madf(q, r, 0.5f);
    return md_madf(q * r, r, r) + 1.0f;
}

/* e^x. 2^n is added to the exponent of what it multiplies; where the result may be subnormal by way
 * of 2^(n + 32). What rounds to 0, such as e^-inf of masked scores, is not multiplied down to it:
 * products that underflow take some processors a hundred cycles. */
MD_INLINE float md_expf(float x) {
    int low = x < -87.0f;
    int32_t n;
    float y = md_exp_core(x, &n);
    uint32_t up = ((uint32_t)n << 23) + (low ? UINT32_C(32) << 23 : 0);
    y = x < -104.0f ? 0.0f : md_f32_of_bits(md_bits_of_f32(y) + up);
    y *= low ? 2.32830644e-10f : 1.0f;
    return x < 88.72284f ? y : x + INFINITY;
}

/* e^x - 1. */
MD_INLINE float md_expm1f(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -20.0f ? -20.0f : c;
    int32_t n;
    float r = md_exp_reduce(c, &n);
    float q = 1.99156231e-4f;
    q = md_madf(q, r, 1.39420456e-3f);
    q = md_madf(q, r, 8.33327044e-3f);
    q = md_madf(q, r, 4.16663438e-2f);
    q = md_madf(q, r, 0.166666672f);
    q = md_madf(q, r, 0.5f);
    float p = md_madf(q * r, r, r);
    int32_t top = n > 127 ? 1 : 0;
    float s = md_pow2_f32(n - top);
    float y = md_madf(s, p, s - 1.0f);
    y = top != 0 ? y * 2.0f : y;
    return x == 0.0f ? x : y; /* keeps the sign of zero */
}

/* log(1 + f) - f for sqrt(1/2) <= 1 + f <= sqrt(2). */
MD_INLINE float md_log_tail(float f) {
    float q = -7.85960928e-2f;
    q = md_madf(q, f, 0.128816471f);
    q = md_madf(q, f, -0.13128756f);
    q = md_madf(q, f, 0.141811922f);
    q = md_madf(q, f, -0.166245535f);
    q = md_madf(q, f, 0.200022861f);
    q = md_madf(q, f, -0.250008106f);
    q = md_madf(q, f, 0.333333164f);
    return md_madf(q * f * f, f, -0.5f * f * f);
}

/* The natural logarithm. */
MD_INLINE float md_logf(float x) {
    int small = x < FLT_MIN;
    float t = small ? x * 8388608.0f : x;
    uint32_t u = md_bits_of_f32(t);
    int32_t e = (int32_t)(u - UINT32_C(0x3F3504F3)) >> 23; /* of sqrt(1/2) */
    float f = md_f32_of_bits(u - ((uint32_t)e << 23)) - 1.0f;
    float k = (float)(e - (small ? 23 : 0));
    float y = md_madf(k, 0.693359375f, md_madf(k, -2.12194440e-4f, md_log_tail(f)) + f);
    y = x < INFINITY ? y : x;
    y = x > 0.0f ? y : (x == 0.0f ? -INFINITY : NAN);
    return x != x ? x : y;
}

/* log(1 + x), with the rounding error of 1 + x put back into the reduced argument. */
MD_INLINE float md_log1pf(float x) {
    float s = 1.0f + x;
    uint32_t u = md_bits_of_f32(s);
    int32_t e = (int32_t)(u - UINT32_C(0x3F3504F3)) >> 23;
    float m = md_f32_of_bits(u - ((uint32_t)e << 23));
    float lost = s > 2.0f ? 1.0f - (s - x) : x - (s - 1.0f);
    int32_t down = e > 126 ? 126 : e;
    float f = md_madf(lost, md_pow2_f32(-down), m - 1.0f);
    float k = (float)e;
    float y = md_madf(k, 0.693359375f, md_madf(k, -2.12194440e-4f, md_log_tail(f)) + f);
    y = x < INFINITY ? y : x;
    y = x > -1.0f ? y : (x == -1.0f ? -INFINITY : NAN);
    y = x == 0.0f ? x : y;
    return x != x ? x : y;
}

/* The hyperbolic tangent: an odd polynomial near zero, 1 - 2 / (e^2x + 1) elsewhere. */
MD_INLINE float md_tanhf(float x) {
    float a = fabsf(x);
    float z = a * a;
    float q = -5.52863348e-3f;
    q = md_madf(q, z, 2.04833169e-2f);
    q = md_madf(q, z, -5.36929667e-2f);
    q = md_madf(q, z, 0.133308992f);
    q = md_madf(q, z, -0.333332628f);
    float near = md_madf(q * z, a, a);
    float c = a > 10.0f ? 10.0f : a;
    int32_t n;
    float y = md_exp_core(2.0f * c, &n);
    float far = 1.0f - 2.0f / md_madf(y, md_pow2_f32(n), 1.0f);
    return md_signed_f32(a < 0.65f ? near : far, x);
}

/* e^|x| / 2, infinite only where the result is; 89.5 is beyond every finite one. */
MD_INLINE float md_half_expf(float a) {
    float c = a > 89.5f ? 89.5f : a;
    int32_t n;
    float y = md_exp_core(c, &n);
    int32_t half = n >> 1;
    return y * md_pow2_f32(half) * md_pow2_f32(n - 1 - half);
}

/* The hyperbolic sine: an odd polynomial up to 1 (relative error 5e-9), (e^x - e^-x) / 2 above. */
MD_INLINE float md_sinhf(float x) {
    float a = fabsf(x);
    float z = a * a;
    float q = 2.80629047e-06f;
    q = md_madf(q, z, 1.98381007e-4f);
    q = md_madf(q, z, 8.33333939e-3f);
    q = md_madf(q, z, 0.166666672f);
    float near = md_madf(q * z, a, a);
    float h = md_half_expf(a);
    float y = md_signed_f32(a < 1.0f ? near : h - 0.25f / h, x);
    return x != x ? x : y;
}

/* The hyperbolic cosine. */
MD_INLINE float md_coshf(float x) {
    float h = md_half_expf(fabsf(x));
    float y = h + 0.25f / h;
    return x != x ? x : y;
}

/* What the arcsine of 0..1/2 has beyond its argument, by a polynomial (relative error 2e-9). */
MD_INLINE float md_asin_tail(float a) {
    float z = a * a;
    float q = 3.38055603e-2f;
    q = md_madf(q, z, 1.70779899e-2f);
    q = md_madf(q, z, 3.11161242e-2f);
    q = md_madf(q, z, 4.45980355e-2f);
    q = md_madf(q, z, 7.50009865e-2f);
    q = md_madf(q, z, 0.166666657f);
    return q * z * a;
}

/* The argument for it: |x|, or sqrt((1 - |x|) / 2) above 1/2, and what rounding took off. */
MD_INLINE float md_asin_reduce(float a, float *lost) {
    float w = 0.5f - 0.5f * a;
    float s = sqrtf(w);
    double off = (double)w - (double)s * (double)s;
    *lost = a > 0.5f && a < 1.0f ? (float)off / (2.0f * s) : 0.0f;
    return a > 0.5f ? s : a;
}

/* The arcsine: above 1/2 pi/2 minus twice that of the root. */
MD_INLINE float md_asinf(float x) {
    float a = fabsf(x);
    float lost;
    float s = md_asin_reduce(a, &lost);
    float t = md_asin_tail(s) + lost;
    float y = a > 0.5f ? (1.57079637f - 2.0f * s) - (2.0f * t + 4.37113883e-8f) : s + t;
    return md_signed_f32(y, x);
}

/* The arccosine: pi/2 minus the arcsine, and near 1 and -1 by the same root. */
MD_INLINE float md_acosf(float x) {
    float a = fabsf(x);
    float lost;
    float s = md_asin_reduce(a, &lost);
    float t = md_asin_tail(s) + lost;
    float left = (3.14159274f - 2.0f * s) - (2.0f * t + 8.74227766e-8f);
    float outer = x > 0.0f ? 2.0f * s + 2.0f * t : left;
    float inner = (1.57079637f - x) - (md_signed_f32(t, x) + 4.37113883e-8f);
    return a > 0.5f ? outer : inner;
}

/* The arctangent: an odd polynomial up to 1 (relative error 3e-9), pi/2 minus that of 1/x above. */
MD_INLINE float md_atanf(float x) {
    float a = fabsf(x);
    float t = a > 1.0f ? 1.0f / a : a;
    float z = t * t;
    float q = -1.79361249e-3f;
    q = md_madf(q, z, 1.09145641e-2f);
    q = md_madf(q, z, -3.11777685e-2f);
    q = md_madf(q, z, 5.79575151e-2f);
    q = md_madf(q, z, -8.40344578e-2f);
    q = md_madf(q, z, 0.109521843f);
    q = md_madf(q, z, -0.142642409f);
    q = md_madf(q, z, 0.199985489f);
    q = md_madf(q, z, -0.333332986f);
    float y = md_madf(q * z, t, t);
    return md_signed_f32(a > 1.0f ? 1.57079637f - (y + 4.37113883e-8f) : y, x);
}

/* The angle of the point (x, y) in -pi..pi, in double: below 1 ulp. Zeros and infinities as in C99
 * annex F. */
MD_INLINE float md_atan2f(float y, float x) {
    double a = (double)fabsf(y);
    double b = (double)fabsf(x);
    int steep = a > b;
    double top = steep ? b : a;
    double under = steep ? a : b;
    double t = top / (under > 0.0 ? under : 1.0);
    t = top < (double)INFINITY ? t : 1.0; /* both infinite: the diagonal */
    int half = t > 0.41421356237309503;   /* tan(pi / 8): the angle from pi / 4 on */
    double r = half ? (t - 1.0) / (t + 1.0) : t;
    double z = r * r;
    double q = 0.05054210056849964; /* relative error 9e-11 */
    q = md_mad(q, z, -0.08627289673067602);
    q = md_mad(q, z, 0.11071759180829088);
    q = md_mad(q, z, -0.14284175494933563);
    q = md_mad(q, z, 0.19999977784422363);
    q = md_mad(q, z, -0.3333333328108325);
    double angle = md_mad(q * z, r, r) + (half ? 0.78539816339744831 : 0.0);
    angle = steep ? 1.57079632679489662 - angle : angle;
    int left = (md_bits_of_f32(x) >> 31) != 0;
    angle = left ? 3.14159265358979324 - angle : angle;
    float f = md_signed_f32((float)angle, y);
    return x != x || y != y ? x + y : f;
}

/* The error function: an odd polynomial below 0.93, 1 - 2^-p(x) above. */
MD_INLINE float md_erff(float x) {
    float a = fabsf(x);
    float z = a * a;
    float q = md_madf(8.34522798e-5f, z, -8.13743856e-4f);
    q = md_madf(md_madf(q, z, 5.20063424e-3f), z, -2.68592704e-2f);
    q = md_madf(md_madf(q, z, 0.112836942f), z, -0.376126349f);
    float near = md_madf(md_madf(q, z, 0.128379166f), a, a);
    float t = a > 4.0f ? 4.0f : a;
    float p = md_madf(-3.08061688e-4f, t, 4.63294331e-3f);
    p = md_madf(md_madf(p, t, -3.3006832e-2f), t, 0.151835918f);
    p = md_madf(md_madf(p, t, 0.917165875f), t, 0.62809682f);
    /* The whole part as in md_exp_reduce, above -28; 2^r to 1e-7, of which a fifth is left. */
    float w = -md_madf(p, t, t), whole = w + 12582912.0f, r = w - (whole - 12582912.0f);
    float y = md_madf(md_madf(1.32637436e-3f, r, 9.67186689e-3f), r, 5.5507578e-2f);
    y = md_madf(md_madf(md_madf(y, r, 0.24022235f), r, 0.693146944f), r, 1.0f);
    float far = md_madf(-y, md_f32_of_bits((md_bits_of_f32(whole) + 127) << 23), 1.0f);
    return md_signed_f32(a < 0.93f ? near : far, x);
}

/* 1 + erf(x), which is erfc(|x|), or 2 less that: 2^-q, where q = |x| p(|x|) is chosen to give an
 * error of 1.6e-8 at most, 1.4e-7 with roundings. q rises for ever, so that 0 and 2 are reached. */
MD_INLINE float md_erfp1f(float x) {
    float a = fabsf(x);
    float p = md_madf(4.53585744e-5f, a, -4.45507467e-4f);
    p = md_madf(md_madf(p, a, 1.48944114e-3f), a, 7.74630287e-4f);
    p = md_madf(md_madf(p, a, -2.8253682e-2f), a, 0.148481622f);
    p = md_madf(md_madf(p, a, 0.918416381f), a, 1.62790859f);
    float w = -p * a;
    w = w < -127.0f ? -127.0f : w; /* 2^-127 is 0 below */
    float whole = w + 12582912.0f, r = w - (whole - 12582912.0f);
    float y = md_madf(md_madf(1.53533649e-4f, r, 1.3398875e-3f), r, 9.61843692e-3f);
    y = md_madf(md_madf(y, r, 5.55033237e-2f), r, 0.240226477f);
    y = md_madf(md_madf(y, r, 0.693147182f), r, 1.0f);
    y *= md_f32_of_bits((md_bits_of_f32(whole) + 127) << 23);
    return x > 0.0f ? 2.0f - y : y;
}

MD_INLINE double md_erfp1(double x) {
    return erfc(-x);
}

/* sin r and cos r for |r| <= pi / 4. */
MD_INLINE float md_sin_core(float r) {
    float z = r * r;
    float q = -1.95166562e-4f;
    q = md_madf(q, z, 8.33217334e-3f);
    q = md_madf(q, z, -0.166666552f);
    return md_madf(q * z, r, r);
}

MD_INLINE float md_cos_core(float r) {
    float z = r * r;
    float q = 2.44377297e-5f;
    q = md_madf(q, z, -1.38873619e-3f);
    q = md_madf(q, z, 4.16666456e-2f);
    return md_madf(q * z, z, -0.5f * z) + 1.0f;
}

/* |x| = (4 k + quadrant) pi / 2 + r for finite x (Payne and Hanek): its 24 bits times the 96 of 2 /
 * pi that matter, modulo 4. Branch-free: masks choose the words of 1 / pi. */
MD_INLINE double md_trig_wide(float x, uint32_t *quadrant) {
    const uint32_t d1 = UINT32_C(0x517CC1B7);
    const uint32_t d2 = UINT32_C(0x517CC1B7) ^ UINT32_C(0x27220A94);
    const uint32_t d3 = UINT32_C(0x27220A94) ^ UINT32_C(0xFE13ABE8);
    const uint32_t d4 = UINT32_C(0xFE13ABE8) ^ UINT32_C(0xFA9A6EE0);
    const uint32_t d5 = UINT32_C(0xFA9A6EE0) ^ UINT32_C(0x6DB14ACC);
    const uint32_t d6 = UINT32_C(0x6DB14ACC) ^ UINT32_C(0x9E21C820);
    uint32_t u = md_bits_of_f32(x) & UINT32_C(0x7FFFFFFF);
    float a = md_f32_of_bits(u);
    int32_t e = (int32_t)(u >> 23) - 127;
    uint32_t m = (u << 8) | UINT32_C(0x80000000);
    uint32_t below = (uint32_t)e >> 31; /* [pi/4, 1) has exponent -1 */
    m >>= below & 1u;
    e = e < 0 ? 0 : e;
    /* Four words of 1 / pi from word e / 32 - 1 on, as sums of differences under masks. */
    uint32_t m1 = (uint32_t)0 - (uint32_t)(e >= 32);
    uint32_t m2 = (uint32_t)0 - (uint32_t)(e >= 64);
    uint32_t m3 = (uint32_t)0 - (uint32_t)(e >= 96);
    uint32_t w0 = (d1 & m1) ^ (d2 & m2) ^ (d3 & m3);
    uint32_t w1 = d1 ^ (d2 & m1) ^ (d3 & m2) ^ (d4 & m3);
    uint32_t w2 = d1 ^ d2 ^ (d3 & m1) ^ (d4 & m2) ^ (d5 & m3);
    uint32_t w3 = d1 ^ d2 ^ d3 ^ (d4 & m1) ^ (d5 & m2) ^ (d6 & m3);
    uint32_t s = (uint32_t)e & 31u;
    uint32_t back = 31u - s;
    uint32_t high = (w0 << s) | ((w1 >> 1) >> back);
    uint32_t mid = (w1 << s) | ((w2 >> 1) >> back);
    uint32_t low = (w2 << s) | ((w3 >> 1) >> back);
    uint64_t p = (((uint64_t)m * low) >> 32) + (uint64_t)m * mid + ((uint64_t)(m * high) << 32);
    uint32_t q = (uint32_t)((p + (UINT64_C(1) << 61)) >> 62);
    p -= (uint64_t)q << 62;
    /* As double through two int32, which every vector unit converts; one low bit is dropped. */
    double d = (double)(int32_t)(uint32_t)(p >> 32) * 4294967296.0 +
               (double)(int32_t)((uint32_t)p >> 1) * 2.0;
    int direct = a < 0.785398163f;
    *quadrant = direct ? 0 : q & 3u;
    return direct ? (double)a : d * 3.4061215800304185e-19; /* pi / 2 * 2^-62 */
}

MD_INLINE float md_trig_reduce(float x, uint32_t *quadrant) {
    return (float)md_trig_wide(x, quadrant);
}

MD_INLINE float md_trig_choose(float r, uint32_t quadrant) {
    float y = (quadrant & 1u) != 0 ? md_cos_core(r) : md_sin_core(r);
    return md_f32_of_bits(md_bits_of_f32(y) ^ ((quadrant & 2u) << 30));
}

MD_INLINE float md_sinf(float x) {
    uint32_t q;
    float r = md_trig_reduce(x, &q);
    float y = md_trig_choose(r, q);
    y = md_f32_of_bits(md_bits_of_f32(y) ^ (md_bits_of_f32(x) & UINT32_C(0x80000000)));
    return fabsf(x) < INFINITY ? y : x - x;
}

MD_INLINE float md_cosf(float x) {
    uint32_t q;
    float r = md_trig_reduce(x, &q);
    float y = md_trig_choose(r, q + 1u);
    return fabsf(x) < INFINITY ? y : x - x;
}

/* The tangent: of the reduced angle, or minus one over it, which keep the bits that the angle of a
 * large x has beyond those of an f32. */
MD_INLINE float md_tanf(float x) {
    uint32_t quadrant;
    double wide = md_trig_wide(x, &quadrant);
    float r = (float)wide;
    float z = r * r;
    float q = 3.86347598e-3f;
    q = md_madf(q, z, 1.14797428e-3f);
    q = md_madf(q, z, 9.98783484e-3f);
    q = md_madf(q, z, 2.16129981e-2f);
    q = md_madf(q, z, 5.39956242e-2f);
    q = md_madf(q, z, 0.133332253f);
    q = md_madf(q, z, 0.333333343f);
    double t = wide + (double)(q * z * r);
    float y = (float)((quadrant & 1u) != 0 ? -1.0 / t : t);
    y = md_f32_of_bits(md_bits_of_f32(y) ^ (md_bits_of_f32(x) & UINT32_C(0x80000000)));
    return fabsf(x) < INFINITY ? y : x - x;
}

/* cos(2 pi u) for 0 <= u <= 1: the reduction is exact. */
MD_INLINE float md_cos_turnf(float u) {
    const float magic = 12582912.0f;
    float t = 4.0f * u;
    float n = t + magic;
    uint32_t q = md_bits_of_f32(n);
    float r = (t - (n - magic)) * 1.57079633f;
    return md_trig_choose(r, q + 1u);
}

/* x^y as exp2(y log2 x) in double: below 1 ulp, special cases of C99 annex F. Vectorises at half
 * the width of the others. */
MD_INLINE float md_powf(float x, float y) {
    double a = (double)fabsf(x);
    /* log2 a: odd series in s = (m - 1) / (m + 1), |s| <= 0.1716; subnormal f32 are normal here. */
    uint64_t u;
    memcpy(&u, &a, sizeof u);
    int32_t e = (int32_t)(u >> 32) - INT32_C(0x3FE6A09E);
    e = e >> 20;
    u -= (uint64_t)(uint32_t)e << 52;
    double m;
    memcpy(&m, &u, sizeof m);
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double q = 1.0 / 13.0;
    q = md_mad(q, z, 1.0 / 11.0);
    q = md_mad(q, z, 1.0 / 9.0);
    q = md_mad(q, z, 1.0 / 7.0);
    q = md_mad(q, z, 1.0 / 5.0);
    q = md_mad(q, z, 1.0 / 3.0);
    double l = md_mad(md_mad(q * z, s, s), 2.8853900817779268147, (double)e);
    l = x == 0.0f ? -(double)INFINITY : l;
    l = a < (double)INFINITY ? l : a;
    double t = l * (double)y;
    t = a == 1.0 ? 0.0 : t;
    /* 2^t: clamped where f32 is long since 0 or infinite. */
    double c = t > 400.0 ? 400.0 : t;
    c = c < -400.0 ? -400.0 : c;
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
    double k = c + magic;
    uint64_t v;
    memcpy(&v, &k, sizeof v);
    double r = (c - (k - magic)) * 0.69314718055994530942;
    double p = 1.0 / 40320.0;
    p = md_mad(p, r, 1.0 / 5040.0);
    p = md_mad(p, r, 1.0 / 720.0);
    p = md_mad(p, r, 1.0 / 120.0);
    p = md_mad(p, r, 1.0 / 24.0);
    p = md_mad(p, r, 1.0 / 6.0);
    p = md_mad(p, r, 0.5);
    p = md_mad(p * r, r, r) + 1.0;
    v = (v << 52) + UINT64_C(0x3FF0000000000000);
    double scale;
    memcpy(&scale, &v, sizeof scale);
    float w = (float)(p * scale);
    /* Signs and the cases that the formula does not give. */
    float b = fabsf(y);
    float half = 0.5f * b;
    int whole = b >= 8388608.0f || (float)(int32_t)(b < 8388608.0f ? b : 0.0f) == b;
    int even = b >= 16777216.0f || (float)(int32_t)(half < 8388608.0f ? half : 0.0f) == half;
    float sign = md_signed_f32(1.0f, x);
    w = (whole & !even) ? w * sign : w;
    w = ((x < 0.0f) & !whole & (a < (double)INFINITY)) ? NAN : w;
    w = ((x != x) | (y != y)) ? x + y : w;
    return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : w;
}

#endif
