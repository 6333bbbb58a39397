/* SPDX-License-Identifier: 0BSD */
/* tile_move: how blocks of a product (tile_kernel.h) come from and go to a C of any strides, how
 * rows of X that lie side by side are packed, and all panels of Y. Gives MD_GATHER, MD_SCATTER,
 * MD_KEEP and MD_JOIN, by which the template has its functions, and md_tile_beside. */
#ifndef MD_TILE_MOVE_H
#define MD_TILE_MOVE_H

#include "runtime/tile.h"

/* if: BESIDE */
/* Packs rows of X that lie side by side, tile by tile, `big` elements for each step of a block of
 * the sum; x is the first row of tile t0. A few steps at a time: some of their lines are still
 * there for the next tile. */
MD_INLINE void md_tile_beside(const md_tile *s, md_tile_cut u, void *to, const void *x, int64_t t0,
                              int64_t t1, int64_t nk1, int64_t nk2) {
    const size_t big = (size_t)(u.big * s->elem), little = (size_t)(u.little * s->elem);
    for (int64_t at = 0; at < nk1 * nk2; at += MD_TILE_AHEAD) {
        const int64_t end = md_tile_min(at + MD_TILE_AHEAD, nk1 * nk2);
        for (int64_t t = t0; t < t1; t++) {
            const int64_t row = md_tile_row(s, u, t), rows = md_tile_row(s, u, t + 1) - row;
            const char *from = (const char *)x + (row - md_tile_row(s, u, t0)) * s->elem;
            char *tile = (char *)to + (t - t0) * nk1 * nk2 * u.big * s->elem;
            for (int64_t k = at; k < end; k++) { /* in registers: both sizes are constants */
                const int64_t step = (k / nk2 * s->k1.x + k % nk2 * s->k2.x) * s->elem;
                if (rows == u.big) {
                    memcpy(tile + k * u.big * s->elem, from + step, big);
                } else {
                    memcpy(tile + k * u.big * s->elem, from + step, little);
                }
            }
        }
    }
}
/* end: BESIDE */

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

/* if: TRANSPOSED */
/* NAME: a few rows become columns side by side: to[j * rows + i] = from[i * from_ld + j]. */
#define MD_TURN_FEW_ROWS(N)                                                                        \
    for (int64_t j = 0; j < cols; j++) {                                                           \
        for (int i = 0; i < (N); i++) {                                                            \
            to[j * (N) + i] = from[i * from_ld + j];                                               \
        }                                                                                          \
    }
#define MD_TURN_FEW(NAME, REAL)                                                                    \
    MD_NOINLINE void NAME(REAL *MD_RESTRICT to, const REAL *MD_RESTRICT from, int64_t from_ld,     \
                          int64_t rows, int64_t cols) {                                            \
        switch (rows) {                                                                            \
        case 2: MD_TURN_FEW_ROWS(2) break;                                                         \
        case 3: MD_TURN_FEW_ROWS(3) break;                                                         \
        case 4: MD_TURN_FEW_ROWS(4) break;                                                         \
        case 5: MD_TURN_FEW_ROWS(5) break;                                                         \
        case 6: MD_TURN_FEW_ROWS(6) break;                                                         \
        default: MD_TURN_FEW_ROWS(rows) break;                                                     \
        }                                                                                          \
    }
/* end: TRANSPOSED */

/* if: APART */
/* NAME: a panel of one step after the other, columns of any stride. No numbers of a plan are
 * constants here: gcc would write out each element of 16 columns and steps. */
#define MD_APART(NAME, REAL)                                                                       \
    MD_NOINLINE void NAME(REAL *MD_RESTRICT to, int64_t width, const REAL *MD_RESTRICT from,       \
                          int64_t yk2, int64_t yc, int64_t nk2, int64_t cols) {                    \
        for (int64_t j = 0; j < nk2; j++) {                                                        \
            MD_UNROLL(8)                                                                           \
            for (int64_t c = 0; c < cols; c++) {                                                   \
                to[j * width + c] = from[j * yk2 + c * yc];                                        \
            }                                                                                      \
            for (int64_t c = cols; c < width; c++) {                                               \
                to[j * width + c] = 0;                                                             \
            }                                                                                      \
        }                                                                                          \
    }
/* end: APART */

/* if: LISTED */
/* The row of a panel of lines of channels (md_tile_line) for a step, tap by tap as Y lies. */
typedef struct {
    int64_t row, tap, channel;
} md_tile_step;
MD_INLINE void md_tile_next(md_tile_step *at, int64_t line, int64_t taps) {
    at->row += line;
    if (++at->tap == taps) {
        at->tap = 0;
        at->channel++;
        at->row += at->channel % line == 0 ? 1 - line : 1 - taps * line;
    }
}

/* NAME: `all` steps of such a panel: in squares, with room for one at `square`, where the taps of a
 * channel lie behind those of the one before in Y, else one by one. One function for all plans. */
#if MD_VBYTES > 0
#define MD_PACK_LINES_TURN(SQUARE, REAL, LANES)                                                    \
    for (int64_t i = 0; turned && i < width; i += LANES) {                                         \
        md_tile_step at = {0, 0, 0};                                                               \
        for (int64_t f = 0; f < all; f += LANES) {                                                 \
            SQUARE(square, LANES, y + i * s->cols.y + f, s->cols.y, cols - i, 0);                  \
            for (int64_t r = 0; r < LANES; r++, md_tile_next(&at, line, taps)) {                   \
                memcpy(panel + at.row * width + i, square + r * LANES, LANES * sizeof(REAL));      \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define MD_PACK_LINES_TURN(SQUARE, REAL, LANES) turned = 0, (void)square;
#endif
#define MD_PACK_LINES(NAME, SQUARE, REAL, LANES)                                                   \
    MD_NOINLINE void NAME(const md_tile *s, REAL *MD_RESTRICT panel, int64_t width, const REAL *y, \
                          REAL *MD_RESTRICT lists, int64_t all, int64_t cols) {                    \
        const int64_t line = md_tile_line(s), taps = s->k1.n * s->k2.n;                            \
        int turned = s->k2.y == 1 && s->k0.y == taps;                                              \
        REAL *square = lists + md_tile_list_bytes(s) / s->elem;                                    \
        MD_PACK_LINES_TURN(SQUARE, REAL, LANES)                                                    \
        md_tile_step at = {0, 0, 0};                                                               \
        for (int64_t f = 0; !turned && f < all; f++, md_tile_next(&at, line, taps)) {              \
            const REAL *from = y + at.channel * s->k0.y + at.tap * s->k2.y;                        \
            REAL *to = panel + at.row * width;                                                     \
            MD_UNROLL(8)                                                                           \
            for (int64_t c = 0; c < cols; c++) {                                                   \
                to[c] = from[c * s->cols.y];                                                       \
            }                                                                                      \
            for (int64_t c = cols; c < width; c++) {                                               \
                to[c] = 0;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
/* end: LISTED */

/* if: KEPT */
/* NAME: packs all panels of Y: one function for all plans, whose blocks so know nothing of how Y
 * lies. */
#define MD_KEEP(NAME, KEPT, PACK, REAL)                                                            \
    MD_NOINLINE void NAME(const md_tile *s, REAL *panels, const REAL *y, int64_t nr,               \
                          int64_t blocks) {                                                        \
        for (int64_t q = 0; q < blocks; q++) {                                                     \
            const md_tile_sums b = md_tile_sums_of(s, q);                                          \
            const REAL *yq = y + b.y;                                                              \
            for (int64_t p = 0; p * nr < s->cols.n; p++) {                                         \
                PACK(KEPT(s, panels, nr, b, p), nr, yq + p * nr * s->cols.y,                       \
                     s->is & MD_TILE_LISTED ? s->k0.y : s->k1.y, s->k2.y, s->cols.y, b.nk1, b.nk2, \
                     md_tile_min(nr, s->cols.n - p * nr));                                         \
            }                                                                                      \
        }                                                                                          \
    }
/* end: KEPT */

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
