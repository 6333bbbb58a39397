/* SPDX-License-Identifier: 0BSD */
/* tile_winograd_sum: sums of products over the places of images, of X at 3 x 3 shifts, as the
 * gradient of a convolution by its weights is: the transpose of what tile_winograd.h has, by the
 * same 16 products of tiles.
 *
 * With Y' the gradient of a tile of 2 x 2 places, the sum over tiles of (A Y' A') (B' d B), element
 * by element, is 16 products of channels by columns, and G' m G of them the 3 x 3 results. A task
 * has four of the 16, a row of each transformed tile, of some columns, over all tiles in order: so
 * the bits are the same for any number of them. Of many channels and columns it takes a part of
 * both at a time, whose products stay in the second-level cache, and transforms tiles once for each
 * part. A second round makes the results. Gives MD_WINOGRAD_SUM, by which the template
 * (tile_kernel.h) has its function; the products are those of MD_WINOGRAD_PRODUCTS. */
#ifndef MD_TILE_WINOGRAD_SUM_H
#define MD_TILE_WINOGRAD_SUM_H

#include "runtime/tile_winograd.h"

/* if: WINOGRAD_SUM */
/* A row of a transformed tile is a sum or difference of two rows of X: of which, the first less the
 * second but for row 1. */
MD_INLINE int64_t md_winograd_first(int64_t row) {
    return row == 0 ? 0 : row == 2 ? 2 : 1;
}

MD_INLINE int64_t md_winograd_second(int64_t row) {
    return row == 3 ? 3 : row == 2 ? 1 : 2;
}

#define MD_WINOGRAD_PAIR(U, at)                                                                    \
    (adds ? *(const U *)(const void *)(one + (at)) + *(const U *)(const void *)(two + (at))        \
          : *(const U *)(const void *)(one + (at)) - *(const U *)(const void *)(two + (at)))

/* NAME: row `row` of the tiles of a line of them, channels from..until. */
#define MD_WINOGRAD_ROW_IN(NAME, REAL, T, U)                                                       \
    MD_NOINLINE void NAME(const md_tile *s, const REAL *x, int64_t tile_line, int64_t row,         \
                          REAL *v, int64_t from, int64_t until) {                                  \
        const int64_t next = md_winograd_next_x(s), pitch = md_winograd_pitch(s);                  \
        const int64_t tiles = md_winograd_tiles(s), last = s->k2.n + 1;                            \
        const int64_t line = 2 * tile_line, end = s->k1.n + 1;                                     \
        const REAL *one = x + md_tile_min(line + md_winograd_first(row), end) * s->k1.x;           \
        const REAL *two = x + md_tile_min(line + md_winograd_second(row), end) * s->k1.x;          \
        const int adds = row == 1;                                                                 \
        for (int64_t c = from; c < until; c += (int64_t)(sizeof(T) / sizeof(REAL))) {              \
            REAL *MD_RESTRICT to = v + c;                                                          \
            T a = MD_WINOGRAD_PAIR(U, c), b = MD_WINOGRAD_PAIR(U, c + s->k2.x);                    \
            for (int64_t t = 0; t < tiles; t++, to += pitch) {                                     \
                const int64_t third = c + md_tile_min(2 * t + 2, last) * s->k2.x;                  \
                const int64_t fourth = c + md_tile_min(2 * t + 3, last) * s->k2.x;                 \
                const T e = MD_WINOGRAD_PAIR(U, third), f = MD_WINOGRAD_PAIR(U, fourth);           \
                MD_WINOGRAD_X(T, r, a, b, e, f)                                                    \
                MD_WINOGRAD_PUT(U, to, r0)                                                         \
                MD_WINOGRAD_PUT(U, to + next, r1)                                                  \
                MD_WINOGRAD_PUT(U, to + 2 * next, r2)                                              \
                MD_WINOGRAD_PUT(U, to + 3 * next, r3)                                              \
                a = e;                                                                             \
                b = f;                                                                             \
            }                                                                                      \
        }                                                                                          \
    }

/* Of two places, one above the other, what row `row` has of them; the second may lie outside. */
#define MD_WINOGRAD_Y(T, U, to, at)                                                                \
    T to = *(const U *)(const void *)(y + (at));                                                   \
    if (row > 0) {                                                                                 \
        T under = zero;                                                                            \
        if (low != 0) {                                                                            \
            under = *(const U *)(const void *)(y + (at) + low);                                    \
        }                                                                                          \
        to = row == 1 ? to + under : row == 2 ? to - under : zero - under;                         \
    }

/* NAME: the same of Y, columns from..until of those that a task has; those that its last panel has
 * more are zero. */
#define MD_WINOGRAD_ROW_OUT(NAME, REAL, T, U)                                                      \
    MD_NOINLINE void NAME(const md_tile *s, const REAL *y, int64_t tile_line, int64_t row,         \
                          REAL *w, int64_t pitch, int64_t next, int64_t from, int64_t until) {     \
        const int64_t tiles = md_winograd_tiles(s);                                                \
        const int64_t low = 2 * tile_line + 1 < s->k1.n ? s->k1.y : 0;                             \
        const T zero = {0};                                                                        \
        for (int64_t t = 0; t < tiles; t++, w += pitch, y += 2 * s->k2.y) {                        \
            for (int64_t n = from; n < until; n += (int64_t)(sizeof(T) / sizeof(REAL))) {          \
                MD_WINOGRAD_Y(T, U, a, n)                                                          \
                MD_WINOGRAD_PUT(U, w + n, a)                                                       \
                if (2 * t + 1 < s->k2.n) {                                                         \
                    MD_WINOGRAD_Y(T, U, b, n + s->k2.y)                                            \
                    MD_WINOGRAD_PUT(U, w + n + next, a + b)                                        \
                    MD_WINOGRAD_PUT(U, w + n + 2 * next, a - b)                                    \
                    MD_WINOGRAD_PUT(U, w + n + 3 * next, zero - b)                                 \
                } else {                                                                           \
                    MD_WINOGRAD_PUT(U, w + n + next, a)                                            \
                    MD_WINOGRAD_PUT(U, w + n + 2 * next, a)                                        \
                    MD_WINOGRAD_PUT(U, w + n + 3 * next, zero)                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Four values become three. */
#define MD_WINOGRAD_BACK(T, to, m0, m1, m2, m3)                                                    \
    const T to##s = ((m1) + (m2)) * half, to##0 = (m0) + to##s, to##1 = ((m1) - (m2)) * half,      \
            to##2 = to##s + (m3);
#define MD_WINOGRAD_M(U, i) *(const U *)(const void *)(m + (i)*next + n)
#define MD_WINOGRAD_PUT_ROW(T, U, i)                                                               \
    {                                                                                              \
        MD_WINOGRAD_BACK(T, r, a##i, b##i, e##i, f##i)                                             \
        MD_WINOGRAD_PUT(U, to + (i)*block + n, r0)                                                 \
        MD_WINOGRAD_PUT(U, to + (i)*block + ld + n, r1)                                            \
        MD_WINOGRAD_PUT(U, to + (i)*block + 2 * ld + n, r2)                                        \
    }

/* NAME: the 9 results of some channels, whose 16 products begin at m: three strips of rows
 * (channel, shift along the line), one for each shift between lines; whole vectors of columns. */
#define MD_WINOGRAD_RESULTS(NAME, REAL, T, U)                                                      \
    MD_NOINLINE void NAME(const REAL *m, int64_t next, int64_t m_ld, REAL *to, int64_t block,      \
                          int64_t ld, int64_t channels, int64_t width) {                           \
        const REAL half = (REAL)0.5;                                                               \
        for (int64_t c = 0; c < channels; c++, m += m_ld, to += 3 * ld) {                          \
            for (int64_t n = 0; n < width; n += (int64_t)(sizeof(T) / sizeof(REAL))) {             \
                MD_WINOGRAD_BACK(T, a, MD_WINOGRAD_M(U, 0), MD_WINOGRAD_M(U, 4),                   \
                                 MD_WINOGRAD_M(U, 8), MD_WINOGRAD_M(U, 12))                        \
                MD_WINOGRAD_BACK(T, b, MD_WINOGRAD_M(U, 1), MD_WINOGRAD_M(U, 5),                   \
                                 MD_WINOGRAD_M(U, 9), MD_WINOGRAD_M(U, 13))                        \
                MD_WINOGRAD_BACK(T, e, MD_WINOGRAD_M(U, 2), MD_WINOGRAD_M(U, 6),                   \
                                 MD_WINOGRAD_M(U, 10), MD_WINOGRAD_M(U, 14))                       \
                MD_WINOGRAD_BACK(T, f, MD_WINOGRAD_M(U, 3), MD_WINOGRAD_M(U, 7),                   \
                                 MD_WINOGRAD_M(U, 11), MD_WINOGRAD_M(U, 15))                       \
                MD_WINOGRAD_PUT_ROW(T, U, 0)                                                       \
                MD_WINOGRAD_PUT_ROW(T, U, 1)                                                       \
                MD_WINOGRAD_PUT_ROW(T, U, 2)                                                       \
            }                                                                                      \
        }                                                                                          \
    }

/* NAME: the share of worker `part`. `T`, `U`: vectors; what fills none goes element by element. */
#define MD_WINOGRAD_SUM(...) MD_WINOGRAD_SUM_NAMED(__VA_ARGS__) /* of names that are expanded */
#define MD_WINOGRAD_SUM_NAMED(NAME, SCATTER, REAL, T, U, LANES, EPI, BLOCK_FN)                     \
    MD_WINOGRAD_ROW_IN(NAME##_in, REAL, T, U)                                                      \
    MD_WINOGRAD_ROW_IN(NAME##_in_one, REAL, REAL, REAL)                                            \
    MD_WINOGRAD_ROW_OUT(NAME##_out, REAL, T, U)                                                    \
    MD_WINOGRAD_ROW_OUT(NAME##_out_one, REAL, REAL, REAL)                                          \
    MD_WINOGRAD_RESULTS(NAME##_results, REAL, T, U)                                                \
    /* Row `row` of all tiles, register tiles t..te of channels by panels p..pe. */                \
    MD_NOINLINE void NAME##_block(const md_tile *s, const md_tile_call *call, BLOCK_FN block,      \
                                  REAL *v, int64_t row, int64_t t, int64_t te, int64_t p,          \
                                  int64_t pe) {                                                    \
        const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                 \
        const int64_t lines = (s->k1.n + 1) / 2, all = md_winograd_lines(s);                       \
        const int64_t tiles = md_winograd_tiles(s), pitch = md_winograd_pitch(s);                  \
        const int64_t next = md_winograd_next_y(s, u.nr);                                          \
        const int64_t c = md_tile_row(s, u, t) / (LANES) * (LANES);                                \
        const int64_t past = (md_tile_row(s, u, te) + (LANES)-1) / (LANES) * (LANES);              \
        const int64_t channels = md_tile_min(past, s->r1.n) - c;                                   \
        const int64_t full = channels / (LANES) * (LANES);                                         \
        REAL *m = (REAL *)md_winograd_of(call)->common +                                           \
                  row * 4 * s->r1.n * md_winograd_columns(s);                                      \
        for (int64_t l = 0; l < all; l += s->group) {                                              \
            const int64_t le = md_tile_min(l + s->group, all);                                     \
            for (int64_t k = l; k < le; k++) {                                                     \
                const REAL *x = (const REAL *)call->a + k / lines * s->k0.x + c;                   \
                const REAL *y = (const REAL *)call->b + k / lines * s->k0.y +                      \
                                k % lines * 2 * s->k1.y;                                           \
                REAL *to = v + (k - l) * tiles * pitch;                                            \
                NAME##_in(s, x, k % lines, row, to, 0, full);                                      \
                NAME##_in_one(s, x, k % lines, row, to, full, channels);                           \
                for (int64_t i = p; i < pe; i++) {                                                 \
                    const int64_t cols = md_tile_min(u.nr, s->cols.n - i * u.nr);                  \
                    const int64_t whole = cols / (LANES) * (LANES);                                \
                    REAL *w = v + s->group_at + (i - p) * 4 * next + (k - l) * tiles * u.nr;       \
                    NAME##_out(s, y + i * u.nr, k % lines, row, w, u.nr, next, 0, whole);          \
                    NAME##_out_one(s, y + i * u.nr, k % lines, row, w, u.nr, next, whole, cols);   \
                    for (int64_t at = 0; at < 4 * tiles && cols < u.nr; at++) {                    \
                        memset(w + at / tiles * next + at % tiles * u.nr + cols, 0,                \
                               (size_t)(u.nr - cols) * sizeof *w);                                 \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
            block(s, v, v + s->group_at, t, te, p, pe, (le - l) * tiles, c, m, u.nr, NULL, l > 0,  \
                  0, 0, NULL);                                                                     \
        }                                                                                          \
    }                                                                                              \
    /* All channels of it by panels p..pe, a part of both at a time. */                            \
    MD_NOINLINE void NAME##_row(const md_tile *s, const md_tile_call *call, BLOCK_FN block,        \
                                REAL *v, int64_t row, int64_t p, int64_t pe) {                     \
        const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                 \
        const int64_t each = s->kb2 / u.nr;                                                        \
        for (; p < pe; p += each) {                                                                \
            for (int64_t i = 0; i < s->kb1; i++) {                                                 \
                NAME##_block(s, call, block, v, row, md_split(u.count, i, s->kb1),                 \
                             md_split(u.count, i + 1, s->kb1), p, md_tile_min(p + each, pe));      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    MD_NOINLINE void NAME(const md_tile *s, const md_tile_call *call, int part, EPI epi,           \
                          BLOCK_FN block, md_tile_copy_fn copy) {                                  \
        const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                 \
        const int64_t panels = (s->cols.n + u.nr - 1) / u.nr, ld = s->block_cols;                  \
        const int64_t np = (panels * u.nr + ld - 1) / ld, nc = s->block_rows / 3;                  \
        const int64_t cuts = call->sum == 0 ? call->gn : np;                                       \
        const int64_t tasks = cuts * (call->sum == 0 ? 4 : (s->r1.n + nc - 1) / nc);               \
        int64_t at = md_split(tasks, part, call->parts);                                           \
        int64_t end = md_split(tasks, part + 1, call->parts);                                      \
        REAL *slice = (REAL *)md_winograd_of(call)->slices + part * s->slice;                      \
        (void)copy;                                                                                \
        /* if: HELPED */                                                                           \
        int of = -1;                                                                               \
        MD_WHILE(md_tile_unit(call, part, &of, tasks, 1, &at, &end))                               \
        /* end: HELPED */                                                                          \
        for (; at < end; at++) {                                                                   \
            if (call->sum == 0) {                                                                  \
                NAME##_row(s, call, block, slice, at / cuts, md_split(panels, at % cuts, cuts),    \
                           md_split(panels, at % cuts + 1, cuts));                                 \
                continue;                                                                          \
            }                                                                                      \
            const int64_t c0 = at / cuts * nc, channels = md_tile_min(nc, s->r1.n - c0);           \
            const int64_t col = at % cuts * ld, cols = md_tile_min(ld, s->cols.n - col);           \
            const int64_t block_size = s->block_rows * ld;                                         \
            const REAL *m = (const REAL *)md_winograd_of(call)->common + c0 * u.nr;                \
            for (int64_t i = 0; i < cols; i += u.nr) { /* panel by panel */                        \
                const int64_t width = md_tile_min(cols - i + (LANES)-1, u.nr) / (LANES) * (LANES); \
                NAME##_results(m + (col + i) * s->r1.n, s->r1.n * md_winograd_columns(s), u.nr,    \
                               slice + i, block_size, ld, channels, width);                        \
            }                                                                                      \
            for (int64_t i = 0; i < 3; i++) {                                                      \
                REAL *strip = slice + i * block_size;                                              \
                epi(call->ctx, i, 3 * c0, 3 * channels, col, cols, strip, ld);                     \
                /* if: SCATTERED */                                                                \
                if (!(s->is & MD_TILE_NO_C)) {                                                     \
                    const int64_t shift = i * (s->b1.n == 3 ? s->b1.c : s->b2.c);                  \
                    SCATTER(s, strip, ld, (REAL *)call->c + shift, 3 * c0, 3 * channels, col,      \
                            cols);                                                                 \
                }                                                                                  \
                /* end: SCATTERED */                                                               \
            }                                                                                      \
        }                                                                                          \
    }
/* end: WINOGRAD_SUM */

#endif
