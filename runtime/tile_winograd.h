/* SPDX-License-Identifier: 0BSD */
/* tile_winograd: products whose X are windows of 3 x 3 places at stride 1, by F(2 x 2, 3 x 3) of
 * Winograd's minimal filtering (A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
 * Networks", arXiv:1509.09308): four places by 16 multiply-adds a channel and column, not 36; or
 * of 2 x 2 places by F(3 x 3, 2 x 2), nine places by 16, not 36.
 *
 * With the matrices B, G and A of that paper, d a tile of 4 x 4 places of a channel, g the weights:
 * the sum over channels of (G g G') (B' d B), element by element, is 16 products, and A' m A of
 * them the places of C. First all workers transform the weights, which every one reads then, later
 * each goes through lines of tiles, some at a time, so that their values stay in the second-level
 * cache. Sums are over the channels alone and all else adds and subtracts two or three values, so
 * the error is about that of the long sum. What is infinite makes its whole tile NaN.
 * Gives MD_WINOGRAD and MD_WINOGRAD_PRODUCTS, by which the template (tile_kernel.h) has its
 * functions. */
#ifndef MD_TILE_WINOGRAD_H
#define MD_TILE_WINOGRAD_H

#include "runtime/tile.h"

/* if: WINOGRAD */
/* What goes through a transform at once, wherever it lies in memory. */
#if MD_VBYTES > 0
typedef md_vf32 md_tile_many_f32;
typedef md_vf32_u md_tile_many_u_f32;
typedef md_vf64 md_tile_many_f64;
typedef md_vf64_u md_tile_many_u_f64;
#else
typedef float md_tile_many_f32;
typedef float md_tile_many_u_f32;
typedef double md_tile_many_f64;
typedef double md_tile_many_u_f64;
#endif

MD_INLINE const md_winograd_work *md_winograd_of(const md_tile_call *call) {
    return (const md_winograd_work *)call->work;
}

/* Places along a line, lines of an image, images and channels of X. */
MD_INLINE int64_t md_winograd_width(const md_tile *s) {
    return s->is & MD_TILE_WINOGRAD_SUM ? s->k2.n : s->r2.n;
}

MD_INLINE int64_t md_winograd_height(const md_tile *s) {
    return s->is & MD_TILE_WINOGRAD_SUM ? s->k1.n : s->r1.n;
}

MD_INLINE int64_t md_winograd_images(const md_tile *s) {
    return s->is & MD_TILE_WINOGRAD_SUM ? s->k0.n : s->b1.n * s->b2.n;
}

/* Windows at stride r of kb1 * r places along an axis are windows at stride 1 of kb1 places, each
 * with the channels of r places. */
MD_INLINE int64_t md_winograd_phases(const md_tile *s) {
    return s->is & MD_TILE_WINOGRAD_SUM ? 1 : s->k1.n / s->kb1;
}

MD_INLINE int64_t md_winograd_channels(const md_tile *s) {
    const int64_t phases = md_winograd_phases(s);
    return s->is & MD_TILE_WINOGRAD_SUM ? s->r1.n : phases * phases * s->k0.n;
}

/* Tiles of a line of them. */
MD_INLINE int64_t md_winograd_tiles(const md_tile *s) {
    return md_winograd_rows(s, md_winograd_width(s));
}

/* Weights that batches do not share, as the phases of what is repeated have them. */
MD_INLINE int64_t md_winograd_sets(const md_tile *s) {
    return (s->b1.y != 0 ? s->b1.n : 1) * (s->b2.y != 0 ? s->b2.n : 1);
}

/* Lines of tiles that an image has, with some behind the last one where no block may go on in the
 * next image, which has other weights; lines that all images have. */
MD_INLINE int64_t md_winograd_image(const md_tile *s) {
    const int64_t lines = md_winograd_rows(s, md_winograd_height(s));
    const int64_t unit = md_winograd_sets(s) > 1 ? s->group : 1;
    return (lines + unit - 1) / unit * unit;
}

MD_INLINE int64_t md_winograd_lines(const md_tile *s) {
    return md_winograd_images(s) * md_winograd_rows(s, md_winograd_height(s));
}

/* Channels that a block has, at most: of a sum over places a part of them, cut between register
 * tiles and rounded to vectors at both ends. */
MD_INLINE int64_t md_winograd_held(const md_tile *s) {
    const int64_t channels = md_winograd_channels(s), ends = 16 + 2 * (64 / s->elem);
    return s->is & MD_TILE_WINOGRAD_SUM && s->kb1 > 1 ? channels / s->kb1 + ends : channels;
}

/* Elements from one tile's channels to the next one's: whole lines, not all of them in few sets of
 * the first-level cache. */
MD_INLINE int64_t md_winograd_pitch(const md_tile *s) {
    const int64_t line = 64 / s->elem, lines = (md_winograd_held(s) + line - 1) / line;
    return (lines + (lines % 8 == 0)) * line;
}

/* The same from one of the 16 values of all tiles of a block to the next, of X and of C, and of a
 * panel of Y where the sum is over places. */
MD_INLINE int64_t md_winograd_next_x(const md_tile *s) {
    return s->group * md_winograd_tiles(s) * md_winograd_pitch(s) + 64 / s->elem;
}

MD_INLINE int64_t md_winograd_next_c(const md_tile *s) {
    return s->group * md_winograd_tiles(s) * s->block_cols + 64 / s->elem;
}

MD_INLINE int64_t md_winograd_next_y(const md_tile *s, int64_t panel) {
    return s->group * md_winograd_tiles(s) * panel + 64 / s->elem;
}

/* Columns with those that fill the last panel of any machine. */
MD_INLINE int64_t md_winograd_columns(const md_tile *s) {
    const int64_t panel = s->wide * (64 / s->elem);
    return (s->cols.n + panel - 1) / panel * panel;
}

/* Four values, of a column or a row, of what V holds; T: type of one or of many side by side. */
#define MD_WINOGRAD_X(T, to, d0, d1, d2, d3)                                                       \
    const T to##0 = (d0) - (d2), to##1 = (d1) + (d2), to##2 = (d2) - (d1), to##3 = (d1) - (d3);

/* One column of a tile, of four places. */
#define MD_WINOGRAD_COLUMN(T, U, to, at)                                                           \
    MD_WINOGRAD_X(T, to, *(const U *)(const void *)(line[0] + (at)),                               \
                  *(const U *)(const void *)(line[1] + (at)),                                      \
                  *(const U *)(const void *)(line[2] + (at)),                                      \
                  *(const U *)(const void *)(line[3] + (at)))
#define MD_WINOGRAD_PUT(U, at, value) *(U *)(void *)(at) = (value);

/* A row of four columns becomes four values; the next tile has the last two columns too, or the
 * last one. */
#define MD_WINOGRAD_ROW(OUTS, T, U, i)                                                             \
    {                                                                                              \
        MD_WINOGRAD_X(T, r, a##i, b##i, e##i, f##i)                                                \
        MD_WINOGRAD_PUT(U, to + (4 * i + 0) * next, r0)                                            \
        MD_WINOGRAD_PUT(U, to + (4 * i + 1) * next, r1)                                            \
        MD_WINOGRAD_PUT(U, to + (4 * i + 2) * next, r2)                                            \
        MD_WINOGRAD_PUT(U, to + (4 * i + 3) * next, r3)                                            \
        a##i = OUTS == 2 ? e##i : f##i;                                                            \
        b##i = f##i;                                                                               \
    }

/* NAME: channels from..until of a line of tiles, each of OUTS x OUTS places. Places beyond the last
 * that any window reads are read at that one: what comes of them is not stored. */
#define MD_WINOGRAD_IN(NAME, OUTS, REAL, T, U)                                                     \
    MD_NOINLINE void NAME(const md_tile *s, const REAL *x, int64_t tile_line, REAL *v,             \
                          int64_t from, int64_t until) {                                           \
        const int64_t next = md_winograd_next_x(s), pitch = md_winograd_pitch(s);                  \
        const int64_t tiles = md_winograd_tiles(s), last = s->r2.n + 3 - OUTS;                     \
        const REAL *line[4];                                                                       \
        for (int i = 0; i < 4; i++) {                                                              \
            line[i] = x + md_tile_min(OUTS * tile_line + i, s->r1.n + 3 - OUTS) * s->r1.x;         \
        }                                                                                          \
        for (int64_t c = from; c < until; c += (int64_t)(sizeof(T) / sizeof(REAL))) {              \
            REAL *MD_RESTRICT to = v + c;                                                          \
            MD_WINOGRAD_COLUMN(T, U, g, c)                                                         \
            MD_WINOGRAD_COLUMN(T, U, h, c + s->r2.x)                                               \
            T a0 = g0, a1 = g1, a2 = g2, a3 = g3, b0 = h0, b1 = h1, b2 = h2, b3 = h3;              \
            for (int64_t t = 0; t < tiles; t++, to += pitch) {                                     \
                if (OUTS == 3) { /* two tiles share one column */                                  \
                    MD_WINOGRAD_COLUMN(T, U, k, c + md_tile_min(3 * t + 1, last) * s->r2.x)        \
                    b0 = k0, b1 = k1, b2 = k2, b3 = k3;                                            \
                }                                                                                  \
                MD_WINOGRAD_COLUMN(T, U, e, c + md_tile_min(OUTS * t + 2, last) * s->r2.x)         \
                MD_WINOGRAD_COLUMN(T, U, f, c + md_tile_min(OUTS * t + 3, last) * s->r2.x)         \
                MD_WINOGRAD_ROW(OUTS, T, U, 0)                                                     \
                MD_WINOGRAD_ROW(OUTS, T, U, 1)                                                     \
                MD_WINOGRAD_ROW(OUTS, T, U, 2)                                                     \
                MD_WINOGRAD_ROW(OUTS, T, U, 3)                                                     \
            }                                                                                      \
        }                                                                                          \
    }

/* One column of the 16 values: what two or three places are made of. */
#define MD_WINOGRAD_SUMS(OUTS, T, U, j)                                                            \
    const T p##j = *(const U *)(const void *)(from + (4 + (j)) * next);                            \
    const T q##j = *(const U *)(const void *)(from + (8 + (j)) * next);                            \
    const T o##j = *(const U *)(const void *)(from + (12 + (j)) * next);                           \
    const T u##j = *(const U *)(const void *)(from + (j)*next) + (p##j + q##j);                    \
    const T v##j = OUTS == 2 ? (p##j - q##j) - o##j : p##j - q##j;                                 \
    const T w##j = (p##j + q##j) - o##j;

/* Line i of a tile of C, if C has it. Places outside go where another place goes next. */
#define MD_WINOGRAD_LINE(OUTS, REAL, T, U, x, i)                                                   \
    if (i < high) {                                                                                \
        REAL *const place = at + i * s->r1.c;                                                   \
        T one = x##0 + (x##1 + x##2), three = (x##1 + x##2) - x##3;                                \
        T two = OUTS == 2 ? (x##1 - x##2) - x##3 : x##1 - x##2;                                    \
        if (adds) {                                                                                \
            one += *(const U *)(const void *)place;                                                \
            two += *(const U *)(const void *)(place + right);                                      \
            three += *(const U *)(const void *)(place + far);                                      \
        }                                                                                          \
        if (OUTS == 3) {                                                                           \
            MD_WINOGRAD_PUT(U, place + far, three)                                                \
        }                                                                                          \
        MD_WINOGRAD_PUT(U, place + right, two)                                                     \
        MD_WINOGRAD_PUT(U, place, one)                                                             \
    }

/* NAME: columns from..until of a line of tiles, in C: OUTS lines of it, or the last ones. */
#define MD_WINOGRAD_OUT(NAME, OUTS, REAL, T, U)                                                    \
    MD_NOINLINE void NAME(const md_tile *s, const REAL *m, int64_t tile_line, REAL *c,             \
                          int64_t from_column, int64_t until) {                                    \
        const int64_t next = md_winograd_next_c(s), tiles = md_winograd_tiles(s);                  \
        const int64_t high = s->r1.n - OUTS * tile_line, wide = s->r2.n;                           \
        const int adds = (s->is & MD_TILE_ADD) != 0;                                               \
        for (int64_t t = 0; t < tiles; t++) {                                                      \
            const int64_t right = OUTS * t + 1 < wide ? s->r2.c : 0;                               \
            const int64_t far = OUTS * t + 2 < wide ? 2 * s->r2.c : right;                         \
            for (int64_t n = from_column; n < until; n += (int64_t)(sizeof(T) / sizeof(REAL))) {   \
                const REAL *from = m + t * s->block_cols + n;                                      \
                REAL *at = c + OUTS * t * s->r2.c + n;                                             \
                MD_WINOGRAD_SUMS(OUTS, T, U, 0)                                                    \
                MD_WINOGRAD_SUMS(OUTS, T, U, 1)                                                    \
                MD_WINOGRAD_SUMS(OUTS, T, U, 2)                                                    \
                MD_WINOGRAD_SUMS(OUTS, T, U, 3)                                                    \
                MD_WINOGRAD_LINE(OUTS, REAL, T, U, u, 0)                                           \
                MD_WINOGRAD_LINE(OUTS, REAL, T, U, v, 1)                                           \
                if (OUTS == 3) {                                                                   \
                    MD_WINOGRAD_LINE(OUTS, REAL, T, U, w, 2)                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

enum {
    MD_WINOGRAD_CHANNELS = 16, /* whose weights are packed, or made, at once */
    MD_WINOGRAD_VECTORS = 2,   /* across a panel */
    MD_WINOGRAD_CHAIN = 64     /* channels that are added one behind the other */
};

/* Such parts of a panel, of each place whose channels a window has. */
MD_INLINE int64_t md_winograd_cuts(const md_tile *s) {
    return (s->k0.n + MD_WINOGRAD_CHANNELS - 1) / MD_WINOGRAD_CHANNELS;
}

/* Three weights along an axis, or two, become four. */
#define MD_WINOGRAD_G(TAPS, T, to, g0, g1, g2)                                                     \
    const T to##s = TAPS == 3 ? (g0) + (g2) : (g0), to##0 = (g0), to##1 = (to##s + (g1)) * half,   \
            to##2 = (to##s - (g1)) * half, to##3 = (g2);
#define MD_WINOGRAD_TAP(TAPS, T, U, i, k)                                                          \
    const T g##i##k = *(const U *)(const void *)(at[TAPS * (i < TAPS ? i : 1) +                    \
                                                    (k < TAPS ? k : 1)] +                          \
                                                 j);
#define MD_WINOGRAD_TAPS(TAPS, T, U, i)                                                            \
    MD_WINOGRAD_TAP(TAPS, T, U, i, 0)                                                              \
    MD_WINOGRAD_TAP(TAPS, T, U, i, 1)                                                              \
    MD_WINOGRAD_TAP(TAPS, T, U, i, 2)
#define MD_WINOGRAD_VALUES(TAPS, T, U, i)                                                          \
    {                                                                                              \
        MD_WINOGRAD_G(TAPS, T, u, x##i, y##i, z##i)                                                \
        MD_WINOGRAD_PUT(U, to + (4 * i + 0) * next + j, u0)                                        \
        MD_WINOGRAD_PUT(U, to + (4 * i + 1) * next + j, u1)                                        \
        MD_WINOGRAD_PUT(U, to + (4 * i + 2) * next + j, u2)                                        \
        MD_WINOGRAD_PUT(U, to + (4 * i + 3) * next + j, u3)                                        \
    }

/* NAME: some of the transformed weights, panel by panel and a few channels after the other; of each
 * panel the 16 values lie one behind the other. Windows that run backwards have their taps in
 * reverse. */
#define MD_WINOGRAD_WEIGHTS(NAME, TAPS, PACK, REAL, T, U)                                          \
    MD_NOINLINE void NAME(const md_tile *s, const md_tile_call *call, int part, int64_t nr,        \
                          int64_t i, int64_t end) {                                                \
        const int64_t channels = md_winograd_channels(s), next = channels * nr;                    \
        const int64_t cuts = md_winograd_cuts(s), phases = md_winograd_phases(s);                  \
        const int64_t panels = (s->cols.n + nr - 1) / nr, inner = s->b2.y != 0 ? s->b2.n : 1;      \
        const int64_t row_y = s->k1.x < 0 ? -s->k1.y : s->k1.y;                                    \
        const int64_t tap_y = s->k2.x < 0 ? -s->k2.y : s->k2.y;                                    \
        const int64_t begin =                                                                      \
            (1 - s->k1.n) * ((s->k1.x < 0 ? row_y : 0) + (s->k2.x < 0 ? tap_y : 0));               \
        const int one = tap_y == 1 || tap_y == -1; /* the weights lie side by side: */             \
        const int runs =                                                                           \
            one && row_y == TAPS * tap_y && s->k0.y == TAPS * TAPS && phases == 1;                 \
        REAL *pack = (REAL *)md_winograd_of(call)->slices + part * s->slice;                       \
        const REAL half = (REAL)0.5;                                                               \
        const int64_t all = phases * phases * cuts;                                                \
        for (; i < end; i++) {                                                                     \
            const int64_t set = i / all / panels, p = i / all % panels, phase = i % all / cuts;    \
            const int64_t first = i % cuts * MD_WINOGRAD_CHANNELS;                                 \
            const int64_t n = md_tile_min(MD_WINOGRAD_CHANNELS, s->k0.n - first);                  \
            const int64_t cols = md_tile_min(nr, s->cols.n - p * nr);                              \
            const REAL *y = (const REAL *)call->b + set / inner * s->b1.y +                        \
                            set % inner * s->b2.y + p * nr * s->cols.y + first * s->k0.y + begin + \
                            phase / phases * row_y + phase % phases * tap_y;                       \
            const REAL *at[TAPS * TAPS];                                                           \
            if (runs) {                                                                            \
                PACK(pack, nr, tap_y < 0 ? y + 1 - TAPS * TAPS : y, 0, 1, s->cols.y, 1,            \
                     TAPS * TAPS * n, cols);                                                       \
            }                                                                                      \
            for (int64_t k = 0; k < TAPS * TAPS; k++) {                                            \
                if (!runs && k % TAPS == 0) {                                                      \
                    PACK(pack + k * n * nr, nr, y + k / TAPS * phases * row_y, s->k0.y,            \
                         phases * tap_y, s->cols.y, n, TAPS, cols);                                \
                }                                                                                  \
                at[k] = pack + (!runs       ? k / TAPS * TAPS * n + k % TAPS                       \
                                : tap_y < 0 ? TAPS * TAPS - 1 - k                                  \
                                            : k) *                                                 \
                                   nr;                                                             \
            }                                                                                      \
            REAL *to = (REAL *)md_winograd_of(call)->common +                                      \
                       ((set * panels + p) * 16 * channels + phase * s->k0.n + first) * nr;        \
            for (int64_t c = 0; c < n; c++, to += nr) {                                            \
                for (int64_t j = 0; j < nr; j += (int64_t)(sizeof(T) / sizeof(REAL))) {            \
                    MD_WINOGRAD_TAPS(TAPS, T, U, 0)                                                \
                    MD_WINOGRAD_TAPS(TAPS, T, U, 1)                                                \
                    MD_WINOGRAD_TAPS(TAPS, T, U, 2)                                                \
                    MD_WINOGRAD_G(TAPS, T, x, g00, g10, g20)                                       \
                    MD_WINOGRAD_G(TAPS, T, y, g01, g11, g21)                                       \
                    MD_WINOGRAD_G(TAPS, T, z, g02, g12, g22)                                       \
                    MD_WINOGRAD_VALUES(TAPS, T, U, 0)                                              \
                    MD_WINOGRAD_VALUES(TAPS, T, U, 1)                                              \
                    MD_WINOGRAD_VALUES(TAPS, T, U, 2)                                              \
                    MD_WINOGRAD_VALUES(TAPS, T, U, 3)                                              \
                }                                                                                  \
                for (int k = 0; k < TAPS * TAPS; k++) {                                            \
                    at[k] += (runs ? TAPS * TAPS : TAPS) * nr;                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* The body of the products of a block of tiles, rows of register tiles t0..t1 by panels p0..p1: all
 * 16, by all transformed weights; or four of a sum over places, q0 of them, of channels from q1 on,
 * added up where `add` is set, panel by panel. What a plan knows is constant in it, as in a block
 * of the template. */
#define MD_WINOGRAD_PRODUCTS(REAL, LANES)                                                          \
    const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                     \
    const int64_t pitch = md_winograd_pitch(s), channels = md_winograd_channels(s);                \
    const int64_t last = (s->cols.n % u.nr + (LANES)-1) / (LANES);                                 \
    const int64_t chains = (channels + MD_WINOGRAD_CHAIN - 1) / MD_WINOGRAD_CHAIN;                 \
    const int64_t each = (channels + chains - 1) / chains;                                         \
    (void)q0, (void)q1, (void)panels, (void)add, (void)room, (void)again, (void)ask;               \
    int64_t many = 16;                                                                             \
    /* if: WINOGRAD_SUM */                                                                         \
    many = s->is & MD_TILE_WINOGRAD_SUM ? 4 : many;                                                \
    /* end: WINOGRAD_SUM */                                                                        \
    for (int64_t at = p0 * many; at < p1 * many; at++) {                                           \
        const int64_t p = at / many, i = at % many;                                                \
        const REAL *y = (const REAL *)ys + at * channels * u.nr;                                   \
        REAL *m = strip + i * md_winograd_next_c(s) + (p - p0) * u.nr;                             \
        /* if: WINOGRAD_SUM */                                                                     \
        if (s->is & MD_TILE_WINOGRAD_SUM) {                                                        \
            y = (const REAL *)ys + (at - p0 * many) * md_winograd_next_y(s, u.nr);                 \
            m = strip + (i * md_winograd_columns(s) + p * u.nr) * channels;                        \
        }                                                                                          \
        /* end: WINOGRAD_SUM */                                                                    \
        for (int64_t t = t0; t < t1; t++) {                                                        \
            const int64_t row = md_tile_row(s, u, t), rows = md_tile_row(s, u, t + 1) - row;       \
            const REAL *xt = (const REAL *)xs + i * md_winograd_next_x(s);                         \
            REAL *st = m + row * ld;                                                               \
            if (s->cols.n % u.nr == 0 || p * u.nr + u.nr <= s->cols.n) {                           \
                MD_WINOGRAD_TILES(u.nr / (LANES), LANES)                                           \
            } else {                                                                               \
                MD_WINOGRAD_TILES(last, LANES)                                                     \
            }                                                                                      \
        }                                                                                          \
    }
#define MD_WINOGRAD_TILE(ROWS, VECTORS, LANES)                                                     \
    /* if: WINOGRAD_SUM */                                                                         \
    if (s->is & MD_TILE_WINOGRAD_SUM) {                                                            \
        MD_TILE_BODY(ROWS, VECTORS, xt + row - q1, 64, 0, 1, 0, pitch, y, 0, u.nr, 1, q0, st, ld,  \
                     LANES, 0, !add, NULL, MD_TILE_AHEAD, NULL);                                   \
        continue;                                                                                  \
    }                                                                                              \
    /* end: WINOGRAD_SUM */                                                                        \
    for (int64_t k = 0; k < channels; k += each) {                                                 \
        MD_TILE_BODY(ROWS, VECTORS, xt + row * pitch + k, 64, 0, pitch, 0, 1, y + k * u.nr, 0,     \
                     u.nr, 1, md_tile_min(each, channels - k), st, ld, LANES, 0, k == 0, NULL, 0,  \
                     NULL);                                                                        \
    }
#define MD_WINOGRAD_TILES(VECTORS, LANES)                                                          \
    if (u.big == u.little || rows == u.big) {                                                      \
        MD_WINOGRAD_TILE(u.big, VECTORS, LANES)                                                    \
    } else {                                                                                       \
        MD_WINOGRAD_TILE(u.little, VECTORS, LANES)                                                 \
    }

/* What goes through windows of 3 x 3 places or, if a program has such, of 2 x 2. */
#define MD_WINOGRAD_CALL(NAME, ...)                                                                \
    /* if: WINOGRAD_TWO */                                                                         \
    if (s->kb1 == 2) {                                                                             \
        NAME##_two(__VA_ARGS__);                                                                   \
    } else                                                                                         \
    /* end: WINOGRAD_TWO */                                                                        \
    {                                                                                              \
        NAME(__VA_ARGS__);                                                                         \
    }
#define MD_WINOGRAD_BY(NAME, TWO, TAPS, PACK, REAL, T, U)                                          \
    MD_WINOGRAD_WEIGHTS(NAME##_weights##TWO, TAPS, PACK, REAL, T, U)                               \
    MD_WINOGRAD_IN(NAME##_in##TWO, (5 - TAPS), REAL, T, U)                                         \
    MD_WINOGRAD_IN(NAME##_in_one##TWO, (5 - TAPS), REAL, REAL, REAL)                               \
    MD_WINOGRAD_OUT(NAME##_out##TWO, (5 - TAPS), REAL, T, U)                                       \
    MD_WINOGRAD_OUT(NAME##_out_one##TWO, (5 - TAPS), REAL, REAL, REAL)

/* NAME: the share of worker `part`: of the transformed weights, and in the second phase of lines of
 * tiles. What fills no vector goes element by element. */
#define MD_WINOGRAD(...) MD_WINOGRAD_NAMED(__VA_ARGS__) /* of names that are expanded */
#define MD_WINOGRAD_NAMED(NAME, PACK, REAL, T, U, LANES, EPI, BLOCK_FN)                            \
    /* if: WINOGRAD_TWO */                                                                         \
    MD_WINOGRAD_BY(NAME, _two, 2, PACK, REAL, T, U)                                                \
    /* end: WINOGRAD_TWO */                                                                        \
    MD_WINOGRAD_BY(NAME, , 3, PACK, REAL, T, U)                                                    \
    MD_NOINLINE void NAME(const md_tile *s, const md_tile_call *call, int part, EPI epi,           \
                          BLOCK_FN block, md_tile_copy_fn copy) {                                  \
        const md_tile_cut u = md_tile_cut_rows(s, LANES, MD_VBYTES, MD_TILE_MANY);                 \
        const int64_t panels = (s->cols.n + u.nr - 1) / u.nr, sets = md_winograd_sets(s);          \
        const int64_t dp = s->block_cols < u.nr ? 1 : s->block_cols / u.nr;                        \
        const int64_t outs = md_winograd_outs(s), lines = md_winograd_rows(s, s->r1.n);            \
        const int64_t unit = sets > 1 ? s->group : 1, image = md_winograd_image(s) / unit;         \
        const int64_t all = md_winograd_images(s) * image, high = s->group / unit;                 \
        const int64_t tiles = md_winograd_tiles(s), pitch = md_winograd_pitch(s);                  \
        const int64_t full = s->k0.n / (LANES) * (LANES), phases = md_winograd_phases(s);          \
        const int64_t row_x = s->r1.x / phases, tap_x = s->r2.x / phases;                          \
        const int64_t most = ((all + call->gm - 1) / call->gm + high - 1) / high;                  \
        const int64_t each = call->sum == 0 ? 1 : most;                                            \
        const int64_t tasks =                                                                      \
            call->sum == 0 ? sets * panels * phases * phases * md_winograd_cuts(s)                 \
                           : call->gm * call->gn;                                                  \
        REAL *v = (REAL *)md_winograd_of(call)->slices + part * s->slice, *m = v + s->group_at;    \
        int64_t at = md_split(tasks, part, call->parts) * each, made_of = -1;                      \
        int64_t end = md_split(tasks, part + 1, call->parts) * each;                               \
        const void *made = NULL;                                                                   \
        /* if: HELPED */                                                                           \
        int of = -1;                                                                               \
        MD_WHILE(md_tile_unit(call, part, &of, tasks, each, &at, &end))                            \
        /* end: HELPED */                                                                          \
        for (; at < end; at++) {                                                                   \
            if (call->sum == 0) {                                                                  \
                MD_WINOGRAD_CALL(NAME##_weights, s, call, part, u.nr, at, at + 1)                  \
                continue;                                                                          \
            }                                                                                      \
            const int64_t in = at / each % call->gn, im = at / each / call->gn;                    \
            int64_t l = md_split(all, im, call->gm) + at % each * high;                            \
            int64_t le = md_tile_min(l + high, md_split(all, im + 1, call->gm));                   \
            if (l >= le) {                                                                         \
                continue;                                                                          \
            }                                                                                      \
            const REAL *y = (const REAL *)md_winograd_of(call)->common;                            \
            if (sets > 1) { /* a block is of one image */                                          \
                const int64_t batch = l / image, first = l % image * unit;                         \
                const int64_t inner = s->b2.y != 0 ? s->b2.n : 1;                                  \
                const int64_t set = (s->b1.y != 0 ? batch / s->b2.n * inner : 0) + batch % inner;  \
                y += set * panels * 16 * md_winograd_channels(s) * u.nr;                           \
                l = batch * lines + first;                                                         \
                le = batch * lines + md_tile_min(first + unit, lines);                             \
            }                                                                                      \
            const int64_t used = (le - l) * tiles, pe = md_split(panels, in + 1, call->gn);        \
            int64_t count = 0, row = 0;                                                            \
            for (int64_t k = l; k < le; k++) {                                                     \
                const int64_t batch = k / lines;                                                   \
                const REAL *x =                                                                    \
                    (const REAL *)call->a + batch / s->b2.n * s->b1.x + batch % s->b2.n * s->b2.x; \
                if (copy != NULL) {                                                                \
                    made = made_of == batch ? made : copy(call->ctx, batch, part);                 \
                    made_of = batch;                                                               \
                    x = (const REAL *)made;                                                        \
                }                                                                                  \
                x += (s->k1.x < 0 ? (s->k1.n - 1) * s->k1.x : 0) +                                 \
                     (s->k2.x < 0 ? (s->k2.n - 1) * s->k2.x : 0);                                  \
                for (int64_t i = 0; i < phases * phases; i++) {                                    \
                    const REAL *from = x + i / phases * row_x + i % phases * tap_x;                \
                    REAL *to = v + (k - l) * tiles * pitch + i * s->k0.n;                          \
                    MD_WINOGRAD_CALL(NAME##_in, s, from, k % lines, to, 0, full)                   \
                    MD_WINOGRAD_CALL(NAME##_in_one, s, from, k % lines, to, full, s->k0.n)         \
                }                                                                                  \
            }                                                                                      \
            for (; row < used; row = md_tile_row(s, u, ++count)) {                                 \
            }                                                                                      \
            for (int64_t i = 0; i < 16 && row > used; i++) { /* rows of the last register tile */  \
                memset(v + i * md_winograd_next_x(s) + used * pitch, 0,                            \
                       (size_t)((row - used) * pitch) * sizeof *v);                                \
            }                                                                                      \
            for (int64_t p = md_split(panels, in, call->gn); p < pe; p += dp) {                    \
                const int64_t col = p * u.nr, pn = md_tile_min(p + dp, pe);                        \
                const int64_t cols = md_tile_min(pn * u.nr, s->cols.n) - col;                      \
                const int64_t whole = cols / (LANES) * (LANES);                                    \
                block(s, v, y, 0, count, p, pn, 0, 0, m, s->block_cols, NULL, 0, 0, 0, NULL);      \
                for (int64_t k = l; k < le; k++) {                                                 \
                    const int64_t batch = k / lines, line = k % lines * outs;                      \
                    const REAL *from = m + (k - l) * tiles * s->block_cols;                        \
                    REAL *c = s->is & MD_TILE_NO_C                                                 \
                                  ? v + s->strip_at                                                \
                                  : (REAL *)call->c + batch / s->b2.n * s->b1.c +                  \
                                        batch % s->b2.n * s->b2.c + line * s->r1.c + col;          \
                    MD_WINOGRAD_CALL(NAME##_out, s, from, k % lines, c, 0, whole)                  \
                    MD_WINOGRAD_CALL(NAME##_out_one, s, from, k % lines, c, whole, cols)           \
                    /* Lines of C that do not lie one behind the other go to it one by one. */     \
                    const int64_t some = md_tile_min(outs, s->r1.n - line);                        \
                    const int64_t lone = s->r1.c == s->r2.n * s->r2.c ? some : 1;                  \
                    for (int64_t i = 0; i < some; i += lone) {                                     \
                        epi(call->ctx, batch, (line + i) * s->r2.n, lone * s->r2.n, col, cols,     \
                            c + i * s->r1.c, s->r2.c);                                             \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
/* end: WINOGRAD */

#endif
