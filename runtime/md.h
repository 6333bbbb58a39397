/* SPDX-License-Identifier: 0BSD */
/* md: what every other runtime piece stands on.
 *
 * Function markers, OpenMP behind macros (a build without it is clean and correct), the width of
 * vectors that the C compiler may use, status codes. Valid C11 and C++17, warning-free as a header
 * and pasted into a .c file. Needs nothing, gives the names below, holds no state. */
#ifndef MD_MD_H
#define MD_MD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* MD_FN: may stay unused. MD_COLD: runs seldom, so only its size counts. MD_INLINE: must vanish in
 * its caller, whose constants shape its loops. MD_NOINLINE: one copy. MD_LIST: calls of others. */
#if defined(__GNUC__)
#define MD_FN static inline __attribute__((unused))
#define MD_INLINE static inline __attribute__((always_inline, unused))
#if !defined(__clang__) && __GNUC__ >= 8
#define MD_COLD static __attribute__((cold, noinline, optimize("Og"), unused))
#define MD_NOINLINE static __attribute__((noipa, unused)) /* nor copied for constant arguments */
#define MD_LIST __attribute__((optimize("O0"))) /* nor put into it, nor its pointers in registers */
#else
#define MD_COLD static inline __attribute__((cold, unused))
#define MD_NOINLINE static __attribute__((noinline, unused))
#define MD_LIST
#endif
#define MD_RESTRICT __restrict
#else
#define MD_FN static inline
#define MD_COLD static inline
#define MD_INLINE static inline
#define MD_NOINLINE static
#define MD_LIST
#define MD_RESTRICT
#endif

/* MD_SHARED and MD_SHARED_NOINLINE, in the place of static and MD_NOINLINE: functions of a model in
 * several files, defined in one of them, called from others, seen by nothing else. */
#if defined(__GNUC__) && !defined(_WIN32) && !defined(__CYGWIN__)
#define MD_SHARED __attribute__((visibility("hidden")))
#else
#define MD_SHARED
#endif

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define MD_SHARED_NOINLINE MD_SHARED __attribute__((noipa))
#elif defined(__GNUC__)
#define MD_SHARED_NOINLINE MD_SHARED __attribute__((noinline))
#else
#define MD_SHARED_NOINLINE MD_SHARED
#endif

/* MD_CONST, before one of these: a function of its arguments and of nothing else, which a compiler
 * may call or not. */
#if defined(__GNUC__)
#define MD_CONST __attribute__((const))
#else
#define MD_CONST
#endif

/* MD_UNCHECKED: a function that looks where the address sanitizer would stop it. */
#if defined(__clang__)
#define MD_UNCHECKED __attribute__((no_sanitize("address")))
#elif defined(__SANITIZE_ADDRESS__)
#define MD_UNCHECKED __attribute__((no_sanitize_address))
#else
#define MD_UNCHECKED
#endif

/* What lies `offset` bytes into a region of memory, which is aligned for every type. */
#define MD_AT(type, region, offset) ((type *)(void *)((region) + (offset)))

#define MD_PRAGMA(x) _Pragma(#x)

/* MD_OMP(parallel for ...) is that pragma under OpenMP and nothing otherwise. */
#ifdef _OPENMP
#include <omp.h>
#define MD_OPENMP 1
#define MD_OMP(...) MD_PRAGMA(omp __VA_ARGS__)
#else
#define MD_OMP(...)
#endif

/* How many threads a parallel region started here may have, at most `limit` (the number that the
 * workspace was planned for). */
MD_FN int md_threads(int limit) {
#ifdef MD_OPENMP
    int n = omp_in_parallel() ? 1 : omp_get_max_threads();
#else
    int n = 1;
#endif
    return n < limit ? n : limit > 1 ? limit : 1;
}

/* Idle threads of LLVM's library spin for 200 ms, at the cost of whatever else runs. 5 ms will do,
 * unless somebody has asked for another time. GNU's sleep after some 10 ms. */
MD_FN void md_threads_settle(void) {
#ifdef KMP_VERSION_MAJOR
    if (kmp_get_blocktime() == 200) {
        kmp_set_blocktime(5);
    }
#endif
}

/* MD_VBYTES: bytes of one vector register, 0 without vector extensions: plain loops then. Wider
 * types are 10 to 50 times slower. Vectors never cross a function that is not MD_INLINE. */
#if !defined(MD_VBYTES)
#if !defined(__GNUC__)
#define MD_VBYTES 0
#elif defined(__AVX512F__)
#define MD_VBYTES 64
#elif defined(__AVX__)
#define MD_VBYTES 32
#elif defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__wasm_simd128__)
#define MD_VBYTES 16
#else
#define MD_VBYTES 0
#endif
#endif

#if MD_VBYTES > 0
/* The _u types are the same vectors at any address that fits one element, and may alias. */
typedef float md_vf32 __attribute__((vector_size(MD_VBYTES)));
typedef double md_vf64 __attribute__((vector_size(MD_VBYTES)));
typedef int32_t md_vi32 __attribute__((vector_size(MD_VBYTES)));
typedef int64_t md_vi64 __attribute__((vector_size(MD_VBYTES)));
typedef float md_vf32_u __attribute__((vector_size(MD_VBYTES), aligned(4), may_alias));
typedef double md_vf64_u __attribute__((vector_size(MD_VBYTES), aligned(8), may_alias));
#endif

/* if: fetches */
/* MD_FETCH: asks the second-level cache for the line at an address; MD_FETCH_FOR the first-level
 * one where the line will be `written`. Nothing need be there. */
/* if: TEMPLATE */
#ifndef MD_FETCH
/* end: TEMPLATE */
#if MD_VBYTES > 0
#define MD_FETCH(at) __builtin_prefetch((const void *)(at), 0, 2)
#define MD_FETCH_FOR(at, written)                                                                  \
    do { /* clang 14 crashes over a choice of two of them */                                       \
        if (written) {                                                                             \
            __builtin_prefetch((const void *)(at), 1, 3);                                          \
        } else {                                                                                   \
            MD_FETCH(at);                                                                          \
        }                                                                                          \
    } while (0)
#else
#define MD_FETCH(at) (void)(at)
#define MD_FETCH_FOR(at, written) (void)(at)
#endif
/* if: TEMPLATE */
#endif
/* end: TEMPLATE */
/* end: fetches */

/* Multiply-adds. A C compiler may join products and sums in one copy of a loop and not in another,
 * so programs are compiled without that (-ffp-contract=off) and say where they want it. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MD_FUSED 1
#else
#define MD_FUSED 0
#endif

/* a * b + c, rounded once where the machine has an instruction for that, and after each operation
 * where it has none. */
MD_INLINE float md_madf(float a, float b, float c) {
#if MD_FUSED
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* The same of doubles. */
MD_INLINE double md_mad(double a, double b, double c) {
#if MD_FUSED
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* What runtime functions return. Every code but MD_OK leaves the destination unspecified. */
enum {
    MD_OK = 0,
    MD_ERR_ARGUMENT = 1,   /* a null pointer, or a value outside its documented range */
    MD_ERR_SIZE = 2,       /* a region or a buffer is smaller than declared */
    MD_ERR_ALIGN = 3,      /* a region is not aligned as declared */
    MD_ERR_READ = 4,       /* the reader failed or ended early */
    MD_ERR_WRITE = 5,      /* the writer failed */
    MD_ERR_FORMAT = 6,     /* a file is not of the promised format */
    MD_ERR_NAME = 7,       /* a tensor is missing or unknown */
    MD_ERR_SHAPE = 8,      /* a tensor has another type or shape */
    MD_ERR_RANGE = 9,      /* a value is outside the declared range (a label, an index) */
    MD_ERR_NONFINITE = 10, /* a loss or a norm is NaN or infinite */
    MD_ERR_STATE = 11,     /* called too early, for instance training before enough rows */
    MD_ERR_CANARY = 12,    /* with --checks=canary: a guard band of the arena was overwritten */
    MD_ERR_LIMIT = 14      /* a loop met its maximum with its condition still true */
};

/* Start of a run of `total` items that belongs to part `part` of `parts`: contiguous, even to one
 * item, and end(part) == start(part + 1). */
MD_FN int64_t md_split(int64_t total, int64_t part, int64_t parts) {
    const int64_t low = parts == 1 ? total : total / parts, rest = total - low * parts;
    return part * low + (part < rest ? part : rest);
}

#endif
