/* SPDX-License-Identifier: 0BSD */
/* tile_move: how blocks of a product (tile_kernel.h) come from and go to a C of any strides. Gives
 * MD_GATHER, MD_SCATTER and MD_JOIN, by which the template has its functions. */
#ifndef MD_TILE_MOVE_H
#define MD_TILE_MOVE_H

#include "runtime/tile.h"

/* if: ADD */
/* NAME: strip (+)= C for rows m0 .. of any strides. */
#define MD_GATHER(NAME, REAL)                                                                      \
    MD_NOINLINE void NAME(const md_tile *s, REAL *MD_RESTRICT strip, int64_t ld,                   \
                           const REAL *c, int64_t m0, int64_t rows, int64_t n0, int64_t cols,      \
                           int add) {                                                              \
        const int64_t step = md_tile_in_c(s, 0, 1);                                                \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const REAL *from = c + md_tile_in_c(s, m0 + r, n0);                                    \
            for (int64_t j = 0; j < cols; j++) {                                                   \
                strip[r * ld + j] = (add ? strip[r * ld + j] : 0) + from[j * step];                \
            }                                                                                      \
        }                                                                                          \
    }
/* end: ADD */

/* if: SCATTERED */
/* NAME: C = strip. */
#define MD_SCATTER(NAME, TURN, REAL)                                                               \
    MD_NOINLINE void NAME(const md_tile *s, const REAL *MD_RESTRICT strip, int64_t ld,             \
                           REAL *c, int64_t m0, int64_t rows, int64_t n0, int64_t cols) {          \
        const int64_t step = md_tile_in_c(s, 0, 1);                                                \
        int64_t r = 0;                                                                             \
        /* if: TURNED */                                                                           \
        const int beside = !md_tile_turns(s) && s->r2.c == 1 && step != 1; /* rows, in C */        \
        for (int64_t run; beside && r < rows; r += run) {                                          \
            const int64_t row = s->r2.n - (m0 + r) % s->r2.n; /* left of it */                     \
            run = s->r1.c == s->r2.n ? rows - r : md_tile_min(rows - r, row);                      \
            TURN(c + md_tile_in_c(s, m0 + r, n0), step, strip + r * ld, ld, run, cols, 0, 0);      \
        }                                                                                          \
        /* end: TURNED */                                                                          \
        /* Rows at one pitch: no division for each. */                                             \
        const int even = md_tile_turns(s) || s->r1.n == 1;                                         \
        const int64_t pitch = md_tile_turns(s) ? s->cols.c : s->r2.c;                              \
        for (REAL *to = c + md_tile_in_c(s, m0 + r, n0); r < rows; r++, to += pitch) {             \
            to = even ? to : c + md_tile_in_c(s, m0 + r, n0);                                      \
            for (int64_t j = 0; j < cols; j++) {                                                   \
                to[j * step] = strip[r * ld + j];                                                  \
            }                                                                                      \
        }                                                                                          \
    }
/* end: SCATTERED */

/* NAME: adds a strip to another. */
#define MD_JOIN(NAME, REAL)                                                                        \
    MD_NOINLINE void NAME(REAL *to, int64_t ld, const REAL *from, int64_t from_ld, int64_t rows,   \
                          int64_t cols) {                                                          \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            for (int64_t i = 0; i < cols; i++) {                                                   \
                to[r * ld + i] += from[r * from_ld + i];                                           \
            }                                                                                      \
        }                                                                                          \
    }

#endif
