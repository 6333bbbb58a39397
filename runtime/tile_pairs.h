/* SPDX-License-Identifier: 0BSD */
/* tile_pairs: panels and rows of bfloat16 in pairs along the sum, for tile_half.h.
 *
 * Lane i of a vector holds two elements that one instruction multiplies and adds. They are made of
 * floats, rounded here, or of 16 bits: of two steps of the sum whose columns lie side by side, or
 * of columns that lie along the sum, turned in registers. Where the machine rounds vectors
 * itself, it takes subnormals for zero, as it does where it multiplies. */
#ifndef MD_TILE_PAIRS_H
#define MD_TILE_PAIRS_H

#include "runtime/half.h"
#include "runtime/tile_kernel.h"

/* Are two products of bfloat16 added to a sum at once? Intel's processors have the instruction at
 * less than half the rate of two multiply-adds; those that know FP16 as well are Intel's. ARM's
 * take it as often as a multiply-add; it rounds the sum of both to odd, so bits are its own. */
#ifndef MD_TILE_PAIRS
#if defined(__AVX512BF16__) && MD_VBYTES == 64 && !defined(__AVX512FP16__) &&                      \
    !defined(__cooperlake__)
#define MD_TILE_PAIRS 1
#elif defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && MD_VBYTES == 16
#define MD_TILE_PAIRS 1
#else
#define MD_TILE_PAIRS 0
#endif
#endif

#if defined(__F16C__) || defined(__AVX512BF16__)
#include <immintrin.h>
#elif MD_TILE_PAIRS && defined(__aarch64__) && MD_VBYTES == 16
#include <arm_neon.h>
#endif

/* Element `at`, rounded where they are `wide`; of two neighbours a pair, 0 for an absent second. */
MD_INLINE uint32_t md_tile_short(const void *y, int64_t at, int wide) {
    return wide ? md_to_bf16(((const float *)y)[at]) : ((const uint16_t *)y)[at];
}
MD_INLINE uint32_t md_tile_pair(const void *y, int64_t at, int64_t step, int two, int wide) {
    const uint32_t second = two ? md_tile_short(y, at + step, wide) : 0;
    return md_tile_short(y, at, wide) | second << 16;
}

#if MD_TILE_PAIRS && defined(__AVX512BF16__) && MD_VBYTES == 64
#define MD_TILE_ROUNDS /* the machine rounds vectors */
/* 16 elements of 16 bits in each half: of two runs, those that `mask` says. */
MD_INLINE __m512i md_tile_round_two(const void *y, int64_t first, int64_t second, int64_t n) {
    const float *at = (const float *)y;
    const __mmask16 mask = (__mmask16)(n < 16 ? (1u << n) - 1 : 0xFFFFu);
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(mask, at + second),
                                        _mm512_maskz_loadu_ps(mask, at + first));
}
#endif

/* to[i] = the pair that begins with element from + i. */
MD_INLINE void md_tile_pairs_beside(uint32_t *MD_RESTRICT to, const void *MD_RESTRICT y,
                                    int64_t from, int64_t step, int64_t n, int wide) {
    int64_t i = 0;
#ifdef MD_TILE_ROUNDS
    const __m512i low =
        _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                         37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0); /* of two vectors */
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (; !wide && i + 32 <= n; i += 32) {
        const uint16_t *at = (const uint16_t *)y + from + i;
        const __m512i one = _mm512_loadu_si512(at), two = _mm512_loadu_si512(at + step);
        _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(one, low, two));
        _mm512_storeu_si512(to + i + 16, _mm512_permutex2var_epi16(one, high, two));
    }
    for (; !wide && i + 16 <= n; i += 16) {
        const uint16_t *at = (const uint16_t *)y + from + i;
        const __m256i_u *one = (const __m256i_u *)(const void *)at;
        const __m256i_u *two = (const __m256i_u *)(const void *)(at + step);
        const __m512i second = _mm512_cvtepu16_epi32(_mm256_loadu_si256(two));
        const __m512i both = _mm512_or_si512(_mm512_cvtepu16_epi32(_mm256_loadu_si256(one)),
                                             _mm512_slli_epi32(second, 16));
        _mm512_storeu_si512(to + i, both);
    }
    const __m512i turn =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0); /* of halves of one */
    for (; wide && i < n; i += 16) {
        const __m512i two = md_tile_round_two(y, from + i, from + i + step, n - i);
        const __mmask16 mask = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xFFFFu);
        _mm512_mask_storeu_epi32(to + i, mask, _mm512_permutexvar_epi16(turn, two));
    }
#endif
    for (; i + MD_LANES_F32 <= n; i += MD_LANES_F32) { /* whole vectors, however few there are */
        for (int k = 0; k < MD_LANES_F32; k++) {
            to[i + k] = md_tile_pair(y, from + i + k, step, 1, wide);
        }
    }
    for (; i < n; i++) {
        to[i] = md_tile_pair(y, from + i, step, 1, wide);
    }
}

/* to[i] = element from + i. */
MD_INLINE void md_tile_shorts(uint16_t *MD_RESTRICT to, const void *MD_RESTRICT y, int64_t from,
                              int64_t n, int wide) {
    int64_t i = 0;
    if (!wide) {
        memcpy(to, (const uint16_t *)y + from, (size_t)n * sizeof *to);
        return;
    }
#ifdef MD_TILE_ROUNDS
    for (; i + 32 <= n; i += 32) {
        _mm512_storeu_si512(to + i, md_tile_round_two(y, from + i, from + i + 16, 16));
    }
#endif
    for (; i < n; i++) {
        to[i] = (uint16_t)md_tile_short(y, from + i, 1);
    }
}

#if MD_VBYTES > 0
/* A vector of pairs, rounded where they are `wide`. */
MD_INLINE void md_tile_pairs_vector(md_vf32 *to, const void *y, int64_t from, int wide) {
    uint16_t some[2 * MD_LANES_F32];
#ifdef MD_TILE_ROUNDS
    if (wide) {
        *to = (md_vf32)md_tile_round_two(y, from, from + 16, 16);
        return;
    }
#endif
    md_tile_shorts(some, y, from, 2 * MD_LANES_F32, wide);
    memcpy(to, some, sizeof *to);
}

/* Pairs that lie one behind another in each column: as many as fill squares of a vector's lanes,
 * turned in registers. Gives how many of each column. */
MD_INLINE int64_t md_tile_pairs_along(uint32_t *MD_RESTRICT to, int64_t width, const void *y,
                                      int64_t at, int64_t yc, int64_t pairs, int64_t cols,
                                      int wide) {
    enum { N = MD_LANES_F32 };
    const int64_t whole = pairs / N * N;
    for (int64_t c0 = 0; c0 < cols; c0 += N) {
        const int64_t n = md_tile_min(N, cols - c0);
        for (int64_t j = 0; j < whole; j += N) {
            md_vf32 u[N], w[N];
            for (int64_t c = 0; c < N; c++) {
                const md_vf32 none = {0};
                u[c] = none;
                if (c < n) {
                    md_tile_pairs_vector(&u[c], y, at + (c0 + c) * yc + 2 * j, wide);
                }
            }
            MD_TURN_F32(u, w)
            for (int64_t k = 0; k < N; k++) {
                memcpy(to + (j + k) * width + c0, &u[k], sizeof u[k]);
            }
        }
    }
    return whole;
}
#endif

/* to[(i * pairs + j) * width + c] = elements 2 j and 2 j + 1 along k2 of column c, 0 behind the
 * last of them and from column `cols` to `room`. */
MD_INLINE void md_tile_pairs_of(uint32_t *MD_RESTRICT to, int64_t width, int64_t room,
                                const void *y, int64_t yk1, int64_t yk2, int64_t yc, int64_t nk1,
                                int64_t nk2, int64_t cols, int wide) {
    const int64_t pairs = (nk2 + 1) / 2;
    for (int64_t i = 0; i < nk1; i++, to += pairs * width) {
        int64_t done = 0;
#if MD_VBYTES > 0
        if (yc != 1 && yk2 == 1 && room % MD_LANES_F32 == 0) {
            done = md_tile_pairs_along(to, width, y, i * yk1, yc, nk2 / 2, cols, wide);
        }
#endif
        const int64_t near = 16; /* columns at a time: so many lines of the cache */
        const int64_t side = yc == 1 ? cols : near;
        for (int64_t c0 = 0; c0 < cols; c0 += side) {
            const int64_t c1 = md_tile_min(cols, c0 + side);
            for (int64_t j = done; j < pairs; j++) {
                const int64_t from = i * yk1 + 2 * j * yk2;
                uint32_t *at = to + j * width;
                if (yc == 1 && 2 * j + 1 < nk2) {
                    md_tile_pairs_beside(at, y, from, yk2, cols, wide);
                } else {
                    for (int64_t c = c0; c < c1; c++) {
                        at[c] = md_tile_pair(y, from + c * yc, yk2, 2 * j + 1 < nk2, wide);
                    }
                }
            }
        }
        for (int64_t j = 0; cols < room && j < pairs; j++) {
            memset(to + j * width + cols, 0, (size_t)(room - cols) * sizeof *to);
        }
    }
}
MD_NOINLINE void md_tile_pairs(uint32_t *MD_RESTRICT to, int64_t width, int64_t room, const void *y,
                               int64_t yk1, int64_t yk2, int64_t yc, int64_t nk1, int64_t nk2,
                               int64_t cols) {
    md_tile_pairs_of(to, width, room, y, yk1, yk2, yc, nk1, nk2, cols, 0);
}
MD_NOINLINE void md_tile_pairs_wide(uint32_t *MD_RESTRICT to, int64_t width, int64_t room,
                                    const void *y, int64_t yk1, int64_t yk2, int64_t yc,
                                    int64_t nk1, int64_t nk2, int64_t cols) {
    md_tile_pairs_of(to, width, room, y, yk1, yk2, yc, nk1, nk2, cols, 1);
}

/* Rows that lie along the sum, pair behind pair. */
MD_NOINLINE void md_tile_pairs_rows(uint32_t *MD_RESTRICT to, const void *MD_RESTRICT x, int64_t xr,
                                    int64_t xk, int64_t rows, int64_t nk1, int64_t nk2, int wide) {
    uint16_t *MD_RESTRICT half = (uint16_t *)(void *)to;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < nk1; i++, half += (nk2 + 1) / 2 * 2) {
            const int64_t from = r * xr + i * xk;
            md_tile_shorts(half, x, from, nk2, wide);
            if (nk2 % 2 != 0) {
                half[nk2] = 0;
            }
        }
    }
}

/* to[i] = the pair that begins with element from + i, its second one `step` behind it: whichever
 * place a row begins at, its pairs are among them. */
MD_NOINLINE void md_tile_span_pairs(uint32_t *MD_RESTRICT to, const void *MD_RESTRICT x,
                                    int64_t from, int64_t count, int64_t step, int wide) {
    if (wide) {
        md_tile_pairs_beside(to, x, from, step, count - step, 1);
    } else {
        md_tile_pairs_beside(to, x, from, step, count - step, 0);
    }
}

#endif
