/* SPDX-License-Identifier: 0BSD */
/* tile_along: register tiles of few rows and few columns whose sum lies along k2 in both operands
 * (tile_kernel.h), as that of the gradient of a convolution's weights with fewer channels than a
 * vector has lanes. Vectors run along the sum: each result of a tile has one, and their lanes are
 * added behind a block.
 *
 * Steps that fill no vector are the last lanes of one that ends where they do; its others are zero
 * in both operands. All vectors go through such a mask, which no compiler sees through: gcc would
 * load an operand again for each multiplication with it, and loads across lines are what these
 * tiles wait for. Gives MD_ALONG, by which the template has its function. */
#ifndef MD_TILE_ALONG_H
#define MD_TILE_ALONG_H

#include "runtime/scalar.h"
#include "runtime/tile.h"

/* if: ALONG */
/* Where row i of X lies. */
MD_INLINE int64_t md_tile_row_at(const md_tile *s, int64_t rm, int64_t i) {
    return i / rm * s->r1.x + i % rm * s->r2.x;
}

#if MD_VBYTES > 0
/* TILE: all constants but pointers and the steps of the sum. Of rows and columns the fewer are
 * held, and the others loaded one by one. Sums are stored, or added but for the `first` block.
 * NAME: chooses the constants. */
#define MD_ALONG(NAME, TILE, FOLD, MAD, PLAIN, REAL, VEC, VEC_U, LANES)                            \
    MD_INLINE void TILE(const md_tile *s, int64_t rows, int64_t cols, int64_t rm, const REAL *x,   \
                        const REAL *y, int64_t nk1, int64_t nk2, REAL *strip, int64_t ld,          \
                        int first) {                                                               \
        const int by_rows = rows > cols;                                                           \
        const int64_t few = by_rows ? cols : rows, many = by_rows ? rows : cols;                   \
        const VEC zero = {0};                                                                      \
        VEC sum[MD_TILE_ALONG_MOST], held[MD_TILE_HIGH];                                           \
        typedef __typeof__(zero < zero) mask;                                                      \
        mask lanes[2];                                                                             \
        for (int64_t l = 0; l < LANES; l++) {                                                      \
            lanes[0][l] = -1;                                                                      \
            lanes[1][l] = l < LANES - nk2 % LANES ? 0 : -1;                                        \
        }                                                                                          \
        __asm__("" : "+m"(lanes));                                                                 \
        MD_UNROLL(32)                                                                              \
        for (int64_t i = 0; i < rows * cols; i++) {                                                \
            sum[i] = zero;                                                                         \
        }                                                                                          \
        for (int64_t i = 0; i < nk1; i++) {                                                        \
            for (int64_t j = 0; j < nk2; j += LANES) {                                             \
                const int64_t at = md_tile_min(j, nk2 - LANES);                                    \
                const REAL *p = x + i * s->k1.x + at, *q = y + i * s->k1.y + at;                   \
                const mask m = lanes[at < j];                                                      \
                MD_UNROLL(16)                                                                      \
                for (int64_t f = 0; f < few; f++) {                                                \
                    const REAL *from = by_rows ? q + f * s->cols.y : p + md_tile_row_at(s, rm, f); \
                    held[f] = (VEC)((mask) * (const VEC_U *)(const void *)from & m);               \
                }                                                                                  \
                MD_UNROLL(16)                                                                      \
                for (int64_t c = 0; c < many; c++) {                                               \
                    const REAL *from = by_rows ? p + md_tile_row_at(s, rm, c) : q + c * s->cols.y; \
                    const VEC e = (VEC)((mask) * (const VEC_U *)(const void *)from & m);           \
                    MD_UNROLL(16)                                                                  \
                    for (int64_t f = 0; f < few; f++) {                                            \
                        sum[c * few + f] = MAD(held[f], e, sum[c * few + f]);                      \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        FOLD(sum, rows *cols);                                                                     \
        for (int64_t i = 0; i < rows * cols; i++) {                                                \
            enum { PART = 16 / sizeof(REAL), PARTS = LANES / PART };                               \
            const int64_t l = i % LANES; /* the last steps brought 16 bytes together */            \
            const REAL one = sum[i / LANES][l % PARTS * PART + l / PARTS];                         \
            REAL *to = strip + (by_rows ? i / few * ld + i % few : i % few * ld + i / few);        \
            *to = first ? one : *to + one;                                                         \
        }                                                                                          \
    }                                                                                              \
    MD_INLINE void NAME(const md_tile *s, const md_tile_cut *u, int64_t rows, int64_t panel,       \
                        const REAL *x, const REAL *y, int64_t nk1, int64_t nk2, REAL *strip,       \
                        int64_t ld, int first) {                                                   \
        const int64_t rest = s->cols.n % u->nr;                                                    \
        const int full = rest == 0 || panel * u->nr + u->nr <= s->cols.n;                          \
        if (rows == u->big && full) {                                                              \
            TILE(s, u->big, u->nr, u->rm, x, y, nk1, nk2, strip, ld, first);                       \
        } else if (rows == u->big) {                                                               \
            TILE(s, u->big, rest, u->rm, x, y, nk1, nk2, strip, ld, first);                        \
        } else if (full) {                                                                         \
            TILE(s, u->little, u->nr, u->rm, x, y, nk1, nk2, strip, ld, first);                    \
        } else {                                                                                   \
            TILE(s, u->little, rest, u->rm, x, y, nk1, nk2, strip, ld, first);                     \
        }                                                                                          \
    }
#else
#define MD_ALONG(NAME, TILE, FOLD, MAD, PLAIN, REAL, VEC, VEC_U, LANES)                            \
    MD_FN void NAME(const md_tile *s, const md_tile_cut *u, int64_t rows, int64_t panel,           \
                    const REAL *x, const REAL *y, int64_t nk1, int64_t nk2, REAL *strip,           \
                    int64_t ld, int first) {                                                       \
        const int64_t cols = md_tile_min(u->nr, s->cols.n - panel * u->nr);                        \
        for (int64_t c = 0; c < cols; c++) {                                                       \
            PLAIN(rows, 1, x, u->rm, s->r1.x, s->r2.x, s->k1.x, 1, y + c * s->cols.y, s->k1.y, 1,  \
                  nk1, nk2, strip + c, ld, 1, 0, first, NULL, 0, NULL);                            \
        }                                                                                          \
    }
#endif
/* end: ALONG */

#endif
