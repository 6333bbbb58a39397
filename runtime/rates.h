/* SPDX-License-Identifier: 0BSD */
/* rates: what the machine can do at most, on so many threads: multiply-adds that stay in registers,
 * and bytes of memory far larger than its caches, read alone or copied. The best of a few tries;
 * together some tenths of a second. Needs tile.h for the machine's multiply-add of vectors; memory
 * is the caller's; gives rates a second, holds no state. */
#ifndef MD_RATES_H
#define MD_RATES_H

#include <time.h>

#include "runtime/profiled.h"
#include "runtime/tile.h"
/* if: pairs */
#include "runtime/tile_half.h"
/* end: pairs */

enum { MD_RATE_TURNS = 1 << 20, MD_RATE_TRIES = 5 };

MD_FN int64_t md_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

/* Sums that do not wait for each other, as many as an instruction takes cycles, twice over. */
#define MD_RATE_EACH(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
enum { MD_RATE_SUMS = 12 };

#if MD_VBYTES > 0
enum { MD_RATE_F32 = MD_VBYTES / 4, MD_RATE_F64 = MD_VBYTES / 8 };
#define MD_RATE_VEC_32 md_vf32
#define MD_RATE_VEC_64 md_vf64
#define MD_RATE_NEXT_32(i) a##i = md_tile_vmad_f32(a##i, b, c);
#define MD_RATE_NEXT_64(i) a##i = md_tile_vmad_f64(a##i, b, c);
#define MD_RATE_SUM(i) total += (double)a##i[0] + (double)a##i[MD_RATE_F64 - 1];
#else
enum { MD_RATE_F32 = 1, MD_RATE_F64 = 1 };
#define MD_RATE_VEC_32 float
#define MD_RATE_VEC_64 double
#define MD_RATE_NEXT_32(i) a##i = md_madf(a##i, b, c);
#define MD_RATE_NEXT_64(i) a##i = md_mad(a##i, b, c);
#define MD_RATE_SUM(i) total += (double)a##i;
#endif

/* `seed` 0 is not known to a compiler, which could do without the loop else. */
#define MD_RATE_START(i) a##i += (seed + i);
#define MD_RATE_ZERO_32(i) MD_RATE_VEC_32 a##i = zero;
#define MD_RATE_ZERO_64(i) MD_RATE_VEC_64 a##i = zero;

MD_NOINLINE double md_rate_sums_f32(float seed) {
    MD_RATE_VEC_32 zero;
    memset(&zero, 0, sizeof zero);
    const MD_RATE_VEC_32 b = zero + (0.999f + seed), c = zero + (0.001f + seed);
    double total = 0;
    MD_RATE_EACH(MD_RATE_ZERO_32)
    MD_RATE_EACH(MD_RATE_START)
    for (int turn = 0; turn < MD_RATE_TURNS; turn++) {
        MD_RATE_EACH(MD_RATE_NEXT_32)
    }
    MD_RATE_EACH(MD_RATE_SUM)
    return total;
}

MD_NOINLINE double md_rate_sums_f64(double seed) {
    MD_RATE_VEC_64 zero;
    memset(&zero, 0, sizeof zero);
    const MD_RATE_VEC_64 b = zero + (0.999 + seed), c = zero + (0.001 + seed);
    double total = 0;
    MD_RATE_EACH(MD_RATE_ZERO_64)
    MD_RATE_EACH(MD_RATE_START)
    for (int turn = 0; turn < MD_RATE_TURNS; turn++) {
        MD_RATE_EACH(MD_RATE_NEXT_64)
    }
    MD_RATE_EACH(MD_RATE_SUM)
    return total;
}

/* if: pairs */
/* Products of bfloat16 in pairs, by the instruction of tile_half.h; false: they are multiplied as
 * floats here. */
#if MD_TILE_PAIRS && defined(__AVX512BF16__) && MD_VBYTES == 64
/* It takes half as long again as a multiply-add, and there are 32 registers. */
#define MD_RATE_MORE(F) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19)
#define MD_RATE_NEXT_PAIR(i) a##i = md_tile_add_pair(b, c, a##i);
#define MD_RATE_PAIRS 20 /* sums */
MD_NOINLINE double md_rate_sums_pairs(float seed) {
    md_vf32 zero = {0};
    const md_tile_vpair none = {0}, b = none + 0x3F003F00u, c = none + 0x3F003F00u;
    double total = 0;
    MD_RATE_EACH(MD_RATE_ZERO_32)
    MD_RATE_MORE(MD_RATE_ZERO_32)
    MD_RATE_EACH(MD_RATE_START)
    MD_RATE_MORE(MD_RATE_START)
    for (int turn = 0; turn < MD_RATE_TURNS; turn++) {
        MD_RATE_EACH(MD_RATE_NEXT_PAIR)
        MD_RATE_MORE(MD_RATE_NEXT_PAIR)
    }
    MD_RATE_EACH(MD_RATE_SUM)
    MD_RATE_MORE(MD_RATE_SUM)
    return total;
}
#endif
/* end: pairs */
#ifndef MD_RATE_PAIRS
#define MD_RATE_PAIRS 0
#endif

MD_FN double md_rate_sums(int of, double seed) {
    /* if: pairs */
#ifdef MD_RATE_MORE
    if (of == MD_RATE_OF_BF16) {
        return md_rate_sums_pairs((float)seed);
    }
#endif
    /* end: pairs */
    return of == MD_RATE_OF_F64 ? md_rate_sums_f64(seed) : md_rate_sums_f32((float)seed);
}

/* FLOPs a second in multiply-adds of f32, of f64, or of pairs of bfloat16 to f32. A team of one is
 * never asked for: OpenMP libraries take memory for each of those. */
MD_NOINLINE double md_rate_flops(int of, int threads) {
    double each = 2.0 * MD_RATE_SUMS * MD_RATE_TURNS *
                  (of == MD_RATE_OF_F64 ? MD_RATE_F64 : MD_RATE_F32);
    each = of == MD_RATE_OF_BF16 && MD_RATE_PAIRS > 0
               ? 4.0 * MD_RATE_PAIRS * MD_RATE_TURNS * MD_RATE_F32
               : each;
    double best = 0;
    for (int tries = 0; tries < MD_RATE_TRIES; tries++) {
        volatile double seed = 0;
        const double from = seed;
        double total = 0;
        int64_t start = md_nanoseconds();
        if (threads > 1) {
            MD_OMP(parallel for num_threads(threads) reduction(+ : total) schedule(static))
            for (int t = 0; t < threads; t++) {
                total += md_rate_sums(of, from);
            }
        } else {
            total = md_rate_sums(of, from);
        }
        double seconds = 1e-9 * (double)(md_nanoseconds() - start);
        seed = total;
        double rate = seconds > 0 ? each * (double)threads / seconds : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

/* Part `t` of `parts` of so many words: half of them copied to the other half, or all added up. */
MD_NOINLINE uint64_t md_rate_part(uint64_t *at, int64_t words, int t, int parts, int copy) {
    const int64_t half = words / 2;
    const int64_t first = md_split(half, t, parts), end = md_split(half, t + 1, parts);
    uint64_t total = 0;
    if (copy) {
        memcpy(at + half + first, at + first, (size_t)(end - first) * sizeof *at);
        return 0;
    }
    for (int64_t i = 2 * first; i < 2 * end; i++) {
        total += at[i];
    }
    return total;
}

/* Bytes a second, those read and those written, of `size` bytes that have been written to. */
MD_NOINLINE double md_rate_bytes(char *memory, size_t size, int threads) {
    const int64_t words = (int64_t)(size / 16) * 2;
    uint64_t *at = (uint64_t *)(void *)memory;
    double best = 0;
    for (int tries = 0; tries < 2 * MD_RATE_TRIES; tries++) {
        const int copy = tries % 2 == 0;
        volatile uint64_t sink;
        uint64_t total = 0;
        int64_t start = md_nanoseconds();
        if (threads > 1) {
            MD_OMP(parallel for num_threads(threads) reduction(+ : total) schedule(static))
            for (int t = 0; t < threads; t++) {
                total += md_rate_part(at, words, t, threads, copy);
            }
        } else {
            total = md_rate_part(at, words, 0, 1, copy);
        }
        double seconds = 1e-9 * (double)(md_nanoseconds() - start);
        sink = total;
        (void)sink;
        double rate = seconds > 0 ? (double)words * (double)sizeof *at / seconds : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

#endif
