/* SPDX-License-Identifier: 0BSD */
/* scalar: what generated loops say about one element: the f64 names of math.h, extremes that keep
 * NaN, conversions and division of integers, and the fixed trees that combine the lanes of a fold.
 * Needs md.h and math.h, gives pure functions. */
#ifndef MD_SCALAR_H
#define MD_SCALAR_H

#include "runtime/math.h"
#include "runtime/md.h"

/* MD_IVDEP before a loop: no iteration reads what another one writes. MD_UNROLL(n): n of its turns
 * stand one behind another; with 1 a short loop becomes vectors, not single elements. */
#if defined(__GNUC__) && !defined(__clang__)
#define MD_IVDEP MD_PRAGMA(GCC ivdep)
#define MD_UNROLL(n) MD_PRAGMA(GCC unroll n)
#elif defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* where a loop is too short for vectors */
#define MD_IVDEP MD_PRAGMA(clang loop vectorize(assume_safety))
#define MD_UNROLL(n)
#else
#define MD_IVDEP
#define MD_UNROLL(n)
#endif

/* MD_IN_ORDER at the end of a turn: the loop becomes no vectors, of which gcc 13.1 and older would
 * sum wrong elements (its bug 110381). */
#if defined(__GNUC__) && !defined(__clang__)
#define MD_IN_ORDER __asm__ volatile("" ::: "memory")
#else
#define MD_IN_ORDER (void)0
#endif

/* ---- f32 and f64 under one spelling -------------------------------------------------------- */

MD_INLINE float md_sqrtf(float x) {
    return sqrtf(x);
}
MD_INLINE float md_floorf(float x) {
    return floorf(x);
}
MD_INLINE float md_roundf(float x) {
    return rintf(x);
}
MD_INLINE double md_round(double x) {
    return rint(x);
}

MD_INLINE int md_isfinitef(float x) {
    return fabsf(x) < INFINITY;
}
MD_INLINE int md_isfinite(double x) {
    return fabs(x) < (double)INFINITY;
}

/* -1, 0, 1; NaN stays. */
MD_INLINE float md_signf(float x) {
    return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? x : 0.0f;
}
MD_INLINE double md_sign(double x) {
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x != x ? x : 0.0;
}

/* The other operand when they are equal; NaN of either stays. gcc makes vectors of two choices, not
 * of one with two conditions. Of a constant b one is left. */
MD_INLINE float md_maxf(float a, float b) {
    float most = !(a <= b) ? a : b;
    return b != b ? b : most;
}
MD_INLINE float md_minf(float a, float b) {
    float least = !(a >= b) ? a : b;
    return b != b ? b : least;
}
MD_INLINE double md_max(double a, double b) {
    double most = !(a <= b) ? a : b;
    return b != b ? b : most;
}
MD_INLINE double md_min(double a, double b) {
    double least = !(a >= b) ? a : b;
    return b != b ? b : least;
}

/* x, or 0 where `kept` is 0. Of two choices in a row, one made of the other, gcc makes branches and
 * no vectors. */
MD_INLINE float md_keepf(int kept, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0u - (uint32_t)(kept != 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}
MD_INLINE double md_keep(int kept, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_C(0) - (uint64_t)(kept != 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- integers ------------------------------------------------------------------------------ */

MD_INLINE int64_t md_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}
MD_INLINE int64_t md_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
MD_INLINE int32_t md_max_i32(int32_t a, int32_t b) {
    return a > b ? a : b;
}
MD_INLINE int32_t md_min_i32(int32_t a, int32_t b) {
    return a < b ? a : b;
}
MD_INLINE int64_t md_abs_i64(int64_t a) {
    return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
}
MD_INLINE int64_t md_sign_i64(int64_t a) {
    return (a > 0) - (a < 0);
}

/* Truncates; what does not fit is the nearest end of the range, a NaN is 0. Narrower types take the
 * low bits. */
MD_INLINE int64_t md_to_i64(double x) {
    if (x >= -9223372036854775808.0 && x < 9223372036854775808.0) {
        return (int64_t)x;
    }
    return x > 0.0 ? INT64_MAX : x < 0.0 ? INT64_MIN : 0;
}

/* The same of what lies in the range of i32 or is NaN, without a branch. */
MD_INLINE int32_t md_near_i32(float x) {
    return (int32_t)(x == x ? x : 0.0f);
}

/* Floors; x div 0 = 0. */
MD_CONST MD_INLINE int64_t md_idiv(int64_t x, int64_t y) {
    if (y == 0 || y == -1) {
        return y == 0 ? 0 : (int64_t)(0 - (uint64_t)x);
    }
    int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

/* Has the sign of the divisor; x rem 0 = 0. */
MD_CONST MD_INLINE int64_t md_irem(int64_t x, int64_t y) {
    if (y == 0 || y == -1) {
        return 0;
    }
    int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* ---- lanes --------------------------------------------------------------------------------- */

/* Combines a[0 .. n), n a power of two up to 64, by halves: one tree, constant extents. */
#define MD_LANES_HALF(half, type, combine)                                                         \
    if (n > (half)) {                                                                              \
        MD_UNROLL(1)                                                                               \
        for (int l = 0; l < (half); l++) {                                                         \
            type x = a[l], y = a[l + (half)];                                                      \
            a[l] = combine;                                                                        \
        }                                                                                          \
    }
#define MD_LANES_FOLD(type, combine)                                                               \
    MD_LANES_HALF(32, type, combine)                                                               \
    MD_LANES_HALF(16, type, combine) MD_LANES_HALF(8, type, combine)                               \
        MD_LANES_HALF(4, type, combine) MD_LANES_HALF(2, type, combine)                            \
            MD_LANES_HALF(1, type, combine) return a[0]

MD_INLINE float md_lanes_addf(float *a, int n) {
    MD_LANES_FOLD(float, x + y);
}

MD_INLINE float md_lanes_mulf(float *a, int n) {
    MD_LANES_FOLD(float, x *y);
}

/* Numbers in the order of floats, 1 of -inf, the greatest those of NaN: the larger of two is one
 * operation of vectors, where floats that keep NaN take four. The least is the largest of -x. Of
 * all NaN one, 0xFF800001, which no operation gives, is -inf: were the number of -inf 0,
 * gcc 12 would see that masked terms change nothing and make branches of them, not vectors. */
MD_INLINE uint32_t md_key_of_f32(float x) {
    uint32_t u = md_bits_of_f32(x);
    return (u ^ ((uint32_t)((int32_t)u >> 31) & UINT32_C(0x7FFFFFFF))) - UINT32_C(0x807FFFFE);
}

MD_INLINE uint32_t md_max_key(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

MD_INLINE uint32_t md_lanes_max_key(uint32_t *a, int n) {
    MD_LANES_FOLD(uint32_t, md_max_key(x, y));
}

MD_INLINE float md_lanes_maxf(uint32_t *key, int n) {
    uint32_t u = md_max_key(md_lanes_max_key(key, n), 1) + UINT32_C(0x807FFFFE);
    return md_f32_of_bits(u ^ ((uint32_t)((int32_t)u >> 31) & UINT32_C(0x7FFFFFFF)));
}

MD_INLINE double md_lanes_add(double *a, int n) {
    MD_LANES_FOLD(double, x + y);
}

MD_INLINE double md_lanes_mul(double *a, int n) {
    MD_LANES_FOLD(double, x *y);
}

MD_INLINE double md_lanes_max(double *a, int n) {
    MD_LANES_FOLD(double, md_max(x, y));
}

MD_INLINE double md_lanes_min(double *a, int n) {
    MD_LANES_FOLD(double, md_min(x, y));
}

#endif
