/* SPDX-License-Identifier: 0BSD */
/* tile_kernel: the arithmetic of tile.h for one element type. Include it as it is for f32, and
 * once more after `#define MD_TILE_REAL 64` for f64: each type has a guard of its own.
 *
 * A register tile of up to 14 rows x 2 vectors (6 x 2 where there are 16 registers; also x 1 for
 * the last columns, 8 x 3 and 3 x 4, see `wide` in tile_plan.h) keeps its sums in named variables
 * and runs over two nested summed axes: one broadcast element of the row operand times the vectors
 * of the column operand. Every row count has a body of its own; md_tile_part_* is inlined into its
 * caller, whose constant plan chooses the bodies, turns strides into displacements and drops all
 * other code. Needs tile.h, gives md_tile_part_f32, md_tile_none_f32 and md_tile_epi_f32. */
#include "runtime/scalar.h"
#include "runtime/tile.h"
#include "runtime/tile_along.h"
#include "runtime/tile_band.h"
#include "runtime/tile_batched.h"
#include "runtime/tile_dots.h"
#include "runtime/tile_move.h"
#include "runtime/tile_ask.h"
#include "runtime/tile_early.h"
#include "runtime/tile_turn.h"
#include "runtime/tile_winograd.h"
#include "runtime/tile_winograd_sum.h"

/* if: TEMPLATE */
#ifndef MD_TILE_REAL
#define MD_TILE_REAL 32
#endif
#if MD_TILE_REAL == 32
#ifndef MD_TILE_F32_H
#define MD_TILE_F32_H
#define MD_TN(name) md_tile_##name##_f32
#define MD_REAL float
#define MD_ELEM 4
#define MD_LANES MD_LANES_F32
#define MD_VEC md_vf32
#define MD_VEC_U md_vf32_u
#define MD_LO MD_LO_F32
#define MD_HI MD_HI_F32
#define MD_HALVES MD_HALVES_F32
#endif
#else
#ifndef MD_TILE_F64_H
#define MD_TILE_F64_H
#define MD_TN(name) md_tile_##name##_f64
#define MD_REAL double
#define MD_ELEM 8
#define MD_LANES MD_LANES_F64
#define MD_VEC md_vf64
#define MD_VEC_U md_vf64_u
#define MD_LO MD_LO_F64
#define MD_HI MD_HI_F64
#define MD_HALVES MD_HALVES_F64
#endif
#endif

#ifdef MD_REAL
/* end: TEMPLATE */
/* Gets each finished block: rows m0 .. m0 + rows of columns n0 .. n0 + cols of batch element
 * `batch` = i1 * b2 + i2 at strip[r * ld + c]; what it leaves there is stored in C. */
typedef void (*MD_TN(epi))(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
                           int64_t cols, MD_REAL *strip, int64_t ld);

MD_FN void MD_TN(none)(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                       MD_REAL *strip, int64_t ld) {
    (void)ctx, (void)batch, (void)m0, (void)rows, (void)n0, (void)cols, (void)strip, (void)ld;
}

/* ---- register tiles -------------------------------------------------------------------------- */

/* Rows r lie at x + r / rm * xr1 + r % rm * xr2, steps at `list` if any. Sums are stored, or, but
 * for the `first` block (1), added; `lanes` of the last vector are loaded and stored, which begins
 * `back` columns inside the one before it. Far steps are fetched `ahead`. 2 in `first`: claims. */
#define MD_TILE_PARAMS                                                                             \
    const MD_REAL *x, int64_t rm, int64_t xr1, int64_t xr2, int64_t xk1, int64_t xk2,              \
        const MD_REAL *y, int64_t yk1, int64_t yk2, int64_t nk1, int64_t nk2, MD_REAL *strip,      \
        int64_t ld, int64_t lanes, int64_t back, int first, const int32_t *list, int64_t ahead,    \
        void *ask

typedef void (*MD_TN(body_fn))(MD_TILE_PARAMS);

#if MD_VBYTES > 0

MD_INLINE void MD_TN(load)(MD_VEC *v, const MD_REAL *p, int64_t lanes) {
    if (lanes == MD_LANES) {
        *v = *(const MD_VEC_U *)(const void *)p;
    } else {
        MD_REAL part[MD_LANES] = {0};
        memcpy(part, p, (size_t)lanes * sizeof *p);
        memcpy(v, part, sizeof *v);
    }
}

MD_INLINE void MD_TN(store)(MD_REAL *p, const MD_VEC *v, int64_t lanes) {
    if (lanes == MD_LANES) {
        *(MD_VEC_U *)(void *)p = *v;
    } else {
        MD_REAL part[MD_LANES];
        memcpy(part, v, sizeof *v);
        memcpy(p, part, (size_t)lanes * sizeof *p);
    }
}

/* if: TEMPLATE */
#ifndef MD_TILE_MACROS
#define MD_TILE_MACROS
/* end: TEMPLATE */
#define MD_FROM(v) (v * MD_LANES - (v == LAST ? back : 0))
#define MD_PUT(r, v, n) MD_TN(store)(strip + r * ld + MD_FROM(v), &c##r##_##v, n);
/* What the strip holds is one term more: blocks of the sum are added, not one long chain. */
#define MD_GET(r, v, n) MD_TN(load)(&old, strip + r * ld + MD_FROM(v), n); c##r##_##v += old;
/* The line `at` elements behind p, of an operand whose neighbours along the sum lie so far apart
 * that the processor does not see by itself what comes next. */
#define MD_AHEAD(p, at) __builtin_prefetch((const void *)((uintptr_t)(p) + (size_t)(at)*MD_ELEM))
#define MD_COL(v) MD_VEC y##v = *(const MD_VEC_U *)(const void *)(q + MD_FROM(v));
#define MD_MAC(r, v) c##r##_##v = MD_TN(vmad)(e - zero, y##v, c##r##_##v);
#define MD_OFFSET(r)                                                                               \
    const int64_t o##r = outer + inner * xr2;                                                      \
    inner = inner + 1 == rm ? 0 : inner + 1;                                                       \
    outer = inner == 0 ? outer + xr1 : outer;
#define MD_ROW(r) const MD_REAL e = p[o##r];

/* if: DOTS */
/* Dot products: the same names of sums, whose rows are columns here. */
#define MD_DOT_COL(r) const MD_REAL *q##r = y + md_tile_min(col + r, cols - 1) * yc + i * yk1;
#define MD_DOT_ROW(v) const MD_VEC y##v = *(const MD_VEC_U *)(const void *)(p + v * xr2 + j);
#define MD_DOT_VEC(r) const MD_VEC e = *(const MD_VEC_U *)(const void *)(q##r + j);
#define MD_DOT_HELD(v) const MD_VEC x##v = *(const MD_VEC_U *)(const void *)(p + j + v * MD_LANES);
#define MD_DOT_STEP(r, v)                                                                          \
    c##r##_0 = MD_TN(vmad)(*(const MD_VEC_U *)(const void *)(q##r + j + v * MD_LANES), x##v,       \
                           c##r##_0);
/* end: DOTS */

/* For one vector, then for more: their sums, the element of a row, by E, times each of them. */
#define MD_SUM1(r) MD_VEC c##r##_0 = zero;
#define MD_GET1(r) MD_GET(r, 0, lanes)
#define MD_PUT1(r) MD_PUT(r, 0, lanes)
#define MD_COLS1 MD_COL(0)
#define MD_MACS1(E, r)                                                                             \
    { E(r) MD_MAC(r, 0) }
#define MD_MAC1(r) MD_MACS1(MD_ROW, r)
/* if: VECTORS2 */
#define MD_SUM2(r) MD_SUM1(r) MD_VEC c##r##_1 = zero;
#define MD_GET2(r) MD_GET(r, 0, MD_LANES) MD_GET(r, 1, lanes)
#define MD_PUT2(r) MD_PUT(r, 0, MD_LANES) MD_PUT(r, 1, lanes)
#define MD_COLS2 MD_COLS1 MD_COL(1)
#define MD_MACS2(E, r)                                                                             \
    { E(r) MD_MAC(r, 0) MD_MAC(r, 1) }
#define MD_MAC2(r) MD_MACS2(MD_ROW, r)
/* end: VECTORS2 */
/* if: VECTORS3 */
#define MD_SUM3(r) MD_SUM2(r) MD_VEC c##r##_2 = zero;
#define MD_GET3(r) MD_GET(r, 0, MD_LANES) MD_GET(r, 1, MD_LANES) MD_GET(r, 2, lanes)
#define MD_PUT3(r) MD_PUT(r, 0, MD_LANES) MD_PUT(r, 1, MD_LANES) MD_PUT(r, 2, lanes)
#define MD_COLS3 MD_COLS2 MD_COL(2)
#define MD_MACS3(E, r)                                                                             \
    { E(r) MD_MAC(r, 0) MD_MAC(r, 1) MD_MAC(r, 2) }
#define MD_MAC3(r) MD_MACS3(MD_ROW, r)
/* end: VECTORS3 */
/* if: VECTORS4 */
#define MD_SUM4(r) MD_SUM3(r) MD_VEC c##r##_3 = zero;
#define MD_GET4(r)                                                                                 \
    MD_GET(r, 0, MD_LANES) MD_GET(r, 1, MD_LANES) MD_GET(r, 2, MD_LANES) MD_GET(r, 3, lanes)
#define MD_PUT4(r)                                                                                 \
    MD_PUT(r, 0, MD_LANES) MD_PUT(r, 1, MD_LANES) MD_PUT(r, 2, MD_LANES) MD_PUT(r, 3, lanes)
#define MD_COLS4 MD_COLS3 MD_COL(3)
#define MD_MACS4(E, r)                                                                             \
    { E(r) MD_MAC(r, 0) MD_MAC(r, 1) MD_MAC(r, 2) MD_MAC(r, 3) }
#define MD_MAC4(r) MD_MACS4(MD_ROW, r)
/* end: VECTORS4 */

/* R rows are written out by MD_ROWS1 to MD_ROWS14, of which a program has those that it uses. */
#define MD_BODY(R, V)                                                                              \
    MD_INLINE void MD_TN(body_##R##_##V)(MD_TILE_PARAMS) {                                         \
        enum { LAST = V - 1 };                                                                     \
        const MD_VEC zero = {0};                                                                   \
        int64_t outer = 0, inner = 0;                                                              \
        /* if: CLAIMED */                                                                          \
        int64_t due = 0, claimed = 0; /* rows, by steps of the sum */                              \
        /* end: CLAIMED */                                                                         \
        /* if: STREAMS */                                                                          \
        md_tile_ask *asked = (md_tile_ask *)ask;                                                   \
        int64_t left = ask != NULL && asked->pause > 0;                                            \
        /* end: STREAMS */                                                                         \
        MD_ROWS##R(MD_OFFSET) MD_ROWS##R(MD_SUM##V) for (int64_t i = 0; i < nk1; i++) {            \
            const MD_REAL *MD_RESTRICT p = x + i * xk1;                                            \
            const MD_REAL *MD_RESTRICT q = y + i * yk1;                                            \
            for (int64_t j = 0; j < nk2; j++) {                                                    \
                /* if: LISTED */                                                                   \
                p = list != NULL ? x + list[i * xk1 + j] : p;                                      \
                /* end: LISTED */                                                                  \
                if (xr2 == 1 && xk2 * MD_ELEM >= MD_TILE_LEAP) {                                   \
                    MD_AHEAD(p, ahead * xk2);                                                      \
                    MD_AHEAD(p, ahead * xk2 + R - 1);                                              \
                }                                                                                  \
                for (int v = 0; v < V && yk2 * MD_ELEM >= MD_TILE_LEAP; v++) {                     \
                    MD_AHEAD(q, ahead * yk2 + v * MD_LANES);                                       \
                }                                                                                  \
                /* if: STREAMS */                                                                  \
                if (ask != NULL && --left == 0 && asked->rows > 0) {                               \
                    left = asked->pause;                                                           \
                    md_tile_ask_row(asked);                                                        \
                }                                                                                  \
                /* end: STREAMS */                                                                 \
                /* if: CLAIMED */                                                                  \
                MD_TILE_CLAIMS(due, first & 2 ? R : 0, nk1 * nk2) {                                \
                    md_tile_claim(claimed++, nk1, nk2, R, V, strip, ld, x, xr2, xk2, MD_ELEM);     \
                }                                                                                  \
                /* end: CLAIMED */                                                                 \
                MD_COLS##V MD_ROWS##R(MD_MAC##V) p += xk2;                                         \
                q += yk2;                                                                          \
            }                                                                                      \
        }                                                                                          \
        if ((first & 1) == 0) {                                                                    \
            MD_VEC old;                                                                            \
            MD_ROWS##R(MD_GET##V)                                                                  \
        }                                                                                          \
        MD_ROWS##R(MD_PUT##V)(void) ask, (void)list, (void)ahead;                                  \
    }

/* if: DOTS */
#define MD_DOT_BODY(NAME, C, R, PIECES, ROWS, MAC, PUT)                                            \
    MD_NOINLINE void NAME(int64_t cols, const MD_REAL *x, int64_t xr2, int64_t xk1,                \
                          const MD_REAL *y, int64_t yc, int64_t yk1, int64_t nk1, int64_t nk2,     \
                          MD_REAL *strip, int64_t ld, int first) {                                 \
        const MD_VEC zero = {0};                                                                   \
        for (int64_t col = 0; col < cols; col += C) {                                              \
            MD_VEC part[R][C];                                                                     \
            MD_ROWS##C(MD_SUM##R) for (int64_t i = 0, j = 0; i < nk1; i++, j = 0) {                \
                const MD_REAL *p = x + i * xk1;                                                    \
                MD_ROWS##C(MD_DOT_COL) PIECES for (; j + MD_LANES <= nk2; j += MD_LANES) {         \
                    ROWS MD_ROWS##C(MAC)                                                           \
                }                                                                                  \
            }                                                                                      \
            MD_ROWS##C(PUT) MD_TN(fold)(part[0], R * C);                                           \
            MD_DOT_END(R, C, MD_REAL, MD_ELEM, MD_LANES, MD_TN(mad))                               \
        }                                                                                          \
    }
/* end: DOTS */

#define MD_CASE(R, V)                                                                              \
    case R * 8 + V: return MD_TN(body_##R##_##V);
/* if: TEMPLATE */
#endif
/* For each type of floats, whatever a model in front of it has said. */
#if !defined(MD_TILE_BODIES) || defined(MD_TILE_EVERY) /* not what one program has a use for */
#undef MD_TILE_BODIES
#define MD_TILE_BODIES(F) MD_TILE_ALL_BODIES(F)
#endif
/* end: TEMPLATE */

MD_TILE_BODIES(MD_BODY)

/* The body for constant rows and vectors: one function, inlined alone, not a switch over calls. */
MD_INLINE MD_TN(body_fn) MD_TN(body)(int64_t rows, int64_t nv) {
    switch (rows * 8 + nv) {
        MD_TILE_BODIES(MD_CASE)
    default: return NULL;
    }
}

/* gcc -Og would make that call a direct one and then refuse to inline it, an error. What keeps the
 * pointer opaque is dropped at other levels, which trace single bits; `any` may be anything. */
MD_INLINE MD_TN(body_fn) MD_TN(pick)(int64_t rows, int64_t nv) {
    MD_TN(body_fn) body = MD_TN(body)(rows, nv);
#if !defined(__clang__)
    int any;
    int even = 4;
    __asm__("" : "=r"(any));
    if (any) {
        even = 2;
    }
    if ((even & 1) != 0) {
        __asm__("" : "+r"(body));
    }
#endif
    return body;
}

#define MD_TILE_BODY(rows, nv, ...) MD_TN(pick)(rows, nv)(__VA_ARGS__)
/* if: FORMS */
#include "runtime/tile_form.h"
#undef MD_TILE_BODY
#define MD_TILE_BODY(rows, nv, ...) MD_TILE_SOME(MD_TN(pick), rows, nv, __VA_ARGS__)
/* end: FORMS */
#else
/* Plain loops for any number of rows and columns. */
MD_FN void MD_TN(plain)(int64_t rows, int64_t nv, MD_TILE_PARAMS) {
    (void)ask, (void)list, (void)ahead;
    int64_t cols = (nv - 1) * MD_LANES + lanes - back;
    for (int64_t r = 0; r < rows; r++) {
        const MD_REAL *row = x + r / rm * xr1 + r % rm * xr2;
        for (int64_t c = 0; c < cols; c++) {
            MD_REAL sum = 0;
            for (int64_t i = 0; i < nk1; i++) {
                for (int64_t j = 0; j < nk2; j++) {
                    const int64_t at = list != NULL ? list[i * xk1 + j] : i * xk1 + j * xk2;
                    sum = MD_TN(mad)(row[at], y[i * yk1 + j * yk2 + c], sum);
                }
            }
            strip[r * ld + c] = first & 1 ? sum : strip[r * ld + c] + sum;
        }
    }
}
#define MD_TILE_BODY(rows, nv, ...) MD_TN(plain)(rows, nv, __VA_ARGS__)
#endif

/* ---- moving blocks: transposes and packing --------------------------------------------------- */

#if MD_VBYTES > 0
/* to[j * to_ld + i] (+)= from[i * from_ld + j] for a square of MD_LANES, in registers; rows from
 * `rows` on are not read and count as zero. */
MD_NOINLINE void MD_TN(square)(MD_REAL *MD_RESTRICT to, int64_t to_ld,
                               const MD_REAL *MD_RESTRICT from, int64_t from_ld, int64_t rows,
                               int add) {
    enum { N = MD_LANES };
    const MD_VEC zero = {0};
    MD_VEC u[N], w[N];
    for (int i = 0; i < N; i++) {
        u[i] = zero;
        if (i < rows) {
            u[i] = *(const MD_VEC_U *)(const void *)(from + i * from_ld);
        }
    }
#if MD_TILE_REAL == 32
    MD_TURN_F32(u, w)
#else
    MD_TURN_F64(u, w)
#endif
    for (int i = 0; i < N; i++) {
        MD_VEC_U *at = (MD_VEC_U *)(void *)(to + i * to_ld);
        if (add) {
            u[i] += *at;
        }
        *at = u[i];
    }
}
#endif

/* if: TRANSPOSED */
MD_TURN_FEW(MD_TN(few), MD_REAL)
/* end: TRANSPOSED */

/* to[j * to_ld + i] (+)= from[i * from_ld + j]. `pad`: rows of `to` get zeros up to a vector. */
MD_NOINLINE void MD_TN(turn)(MD_REAL *MD_RESTRICT to, int64_t to_ld,
                             const MD_REAL *MD_RESTRICT from, int64_t from_ld, int64_t rows,
                             int64_t cols, int add, int pad) {
    /* if: TRANSPOSED */
    if (to_ld == rows && rows < MD_LANES && !add && !pad) {
        MD_TN(few)(to, from, from_ld, rows, cols);
        return;
    }
    /* end: TRANSPOSED */
    for (int64_t i = 0; i < rows; i += MD_LANES) {
        const int64_t n = md_tile_min(MD_LANES, rows - i);
        int64_t j = 0;
#if MD_VBYTES > 0
        for (; (n == MD_LANES || pad) && j + MD_LANES <= cols; j += MD_LANES) {
            MD_TN(square)(to + j * to_ld + i, to_ld, from + i * from_ld + j, from_ld, n, add);
        }
#endif
        for (; j < cols; j++) {
            for (int64_t r = 0; r < (pad ? MD_LANES : n); r++) {
                MD_REAL *at = to + j * to_ld + i + r;
                MD_REAL old = add ? *at : 0;
                *at = old + (r < n ? from[(i + r) * from_ld + j] : 0);
            }
        }
    }
}

/* if: APART */
MD_APART(MD_TN(pack_apart), MD_REAL)
/* end: APART */

/* panel[(i * nk2 + j) * width + c] = y[i * yk1 + j * yk2 + c * yc], and 0 from column `cols` on. */
MD_INLINE void MD_TN(pack)(MD_REAL *MD_RESTRICT panel, int64_t width, const MD_REAL *y, int64_t yk1,
                           int64_t yk2, int64_t yc, int64_t nk1, int64_t nk2, int64_t cols) {
    (void)yc;
    for (int64_t i = 0; i < nk1; i++) {
        const MD_REAL *from = y + i * yk1;
        MD_REAL *to = panel + i * nk2 * width;
        /* if: TURNED */
        if (yc != 1 && yk2 == 1) {
            MD_TN(turn)(to, width, from, yc, cols, nk2, 0, 1);
            continue;
        }
        /* end: TURNED */
        /* if: APART */
        if (yc != 1) {
            MD_TN(pack_apart)(to, width, from, yk2, yc, nk2, cols);
            continue;
        }
        /* end: APART */
        for (int64_t j = 0; j < nk2; j++) {
            MD_REAL *at = to + j * width;
            memcpy(at, from + j * yk2, (size_t)cols * sizeof *to);
            for (int64_t c = cols; c < width; c++) {
                at[c] = 0;
            }
        }
    }
}

/* if: LISTED */
MD_PACK_LINES(MD_TN(pack_lines), MD_TN(square), MD_REAL, MD_LANES)
/* end: LISTED */
/* if: ADD */
MD_GATHER(MD_TN(gather), MD_REAL)
/* end: ADD */
/* if: SCATTERED */
MD_SCATTER(MD_TN(scatter), MD_TN(turn), MD_REAL)
/* end: SCATTERED */

/* ---- dot products ---------------------------------------------------------------------------- */

/* Vectors along k2: eight columns times a row, or four times more; lanes are added by halves. */
#if MD_VBYTES > 0
MD_INLINE void MD_TN(fold)(MD_VEC *v, int64_t n) {
    MD_HALVES MD_FOLD(MD_LO, MD_HI)
#if MD_TILE_REAL == 32
    MD_FOLD(MD_LO2_F32, MD_HI2_F32)
#endif
}

/* if: DOTS */
/* if: DOTS_LONG */
MD_DOT_BODY(MD_TN(dots_long), 8, 1, MD_DOT_PIECES(MD_LANES), MD_DOT_ROWS1, MD_DOT_MAC1, MD_DOT_PUT1)
/* end: DOTS_LONG */
/* if: DOTS1 */
MD_DOT_BODY(MD_TN(dots1), 8, 1, , MD_DOT_ROWS1, MD_DOT_MAC1, MD_DOT_PUT1)
/* end: DOTS1 */
/* if: DOTS2 */
MD_DOT_BODY(MD_TN(dots2), 4, 2, , MD_DOT_ROWS2, MD_DOT_MAC2, MD_DOT_PUT2)
/* end: DOTS2 */
/* if: DOTS3 */
MD_DOT_BODY(MD_TN(dots3), 4, 3, , MD_DOT_ROWS3, MD_DOT_MAC3, MD_DOT_PUT3)
/* end: DOTS3 */
/* if: DOTS4 */
MD_DOT_BODY(MD_TN(dots4), 4, 4, , MD_DOT_ROWS4, MD_DOT_MAC4, MD_DOT_PUT4)
/* end: DOTS4 */

MD_INLINE void MD_TN(dots)(int64_t rows, int64_t cols, const MD_REAL *x, int64_t xr2, int64_t xk1,
                           const MD_REAL *y, int64_t yc, int64_t yk1, int64_t nk1, int64_t nk2,
                           MD_REAL *strip, int64_t ld, int first) {
#define MD_DOT_CASE(R)                                                                             \
    if (rows == (R)) {                                                                             \
        MD_TN(dots##R)(cols, x, xr2, xk1, y, yc, yk1, nk1, nk2, strip, ld, first);                 \
    }
    /* if: DOTS_LONG */
    if (rows == 1 && MD_VBYTES == 64 && nk2 >= 16 * MD_LANES) { /* others lack the registers */
        MD_TN(dots_long)(cols, x, xr2, xk1, y, yc, yk1, nk1, nk2, strip, ld, first);
        return;
    }
    /* end: DOTS_LONG */
    /* if: DOTS1 */
    MD_DOT_CASE(1)
    /* end: DOTS1 */
    /* if: DOTS2 */
    MD_DOT_CASE(2)
    /* end: DOTS2 */
    /* if: DOTS3 */
    MD_DOT_CASE(3)
    /* end: DOTS3 */
    /* if: DOTS4 */
    MD_DOT_CASE(4)
    /* end: DOTS4 */
#undef MD_DOT_CASE
}
#else
MD_FN void MD_TN(dots)(int64_t rows, int64_t cols, const MD_REAL *x, int64_t xr2, int64_t xk1,
                       const MD_REAL *y, int64_t yc, int64_t yk1, int64_t nk1, int64_t nk2,
                       MD_REAL *strip, int64_t ld, int first) {
    for (int64_t c = 0; c < cols; c++) {
        for (int64_t j = 0; j < nk2; j += 1024 / nk1) { /* no chain is longer */
            MD_TN(plain)(rows, 1, x + j, 64, 0, xr2, xk1, 1, y + c * yc + j, yk1, 1, nk1,
             md_tile_min(1024 / nk1, nk2 - j), strip + c, ld, 1, 0, first && j == 0, NULL, 0, NULL);
        }
    }
}
/* end: DOTS */
#endif

/* if: ALONG */
MD_ALONG(MD_TN(along), MD_TN(along_tile), MD_TN(fold), MD_TN(vmad), MD_TN(plain), MD_REAL, MD_VEC,
         MD_VEC_U, MD_LANES)
/* end: ALONG */

/* ---- blocks ---------------------------------------------------------------------------------- */

/* if: KEPT */
/* Panel p of block q of the summed axes, among all panels of Y. */
MD_INLINE MD_REAL *MD_TN(kept)(const md_tile *s, MD_REAL *panels, int64_t nr, md_tile_sums b,
                               int64_t p) {
    const int64_t before = (b.i0 * s->k1.n + b.i1) * s->k2.n + b.nk1 * b.i2;
    return panels + (before * ((s->cols.n + nr - 1) / nr) + p * b.nk1 * b.nk2) * nr;
}

MD_KEEP(MD_TN(keep), MD_TN(kept), MD_TN(pack), MD_REAL)
/* end: KEPT */

/* Row tiles t0 .. t1 x panels p0 .. p1 over blocks q0 .. q1 of the sum, into a strip from there on,
 * with `room` for full vectors. `again`: rows (1), columns (2) as before; where in the batch. */
MD_INLINE void MD_TN(block)(const md_tile *s, const void *xs, const void *ys, int64_t t0,
                            int64_t t1, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
                            MD_REAL *strip, int64_t ld, MD_REAL *panels, int add, int room,
                            int again, void *ask) {
    (void)again, (void)ask;
    const MD_REAL *x = (const MD_REAL *)xs, *y = (const MD_REAL *)ys;
    const md_tile_cut u = md_tile_cut_rows(s, MD_LANES, MD_VBYTES, MD_TILE_MANY);
    const int64_t nr = u.nr;
    const int held = md_tile_whole(s); /* all panels packed first, then tiles outermost */
    const int64_t row0 = md_tile_row(s, u, t0);
    const int64_t outer = held ? t1 - t0 : p1 - p0, inner = held ? p1 - p0 : t1 - t0;
    for (int64_t q = q0; q < q1; q++) {
        const md_tile_sums b = md_tile_sums_of(s, q);
        int64_t nk1 = b.nk1, nk2 = b.nk2, yk1 = s->k1.y;
        const MD_REAL *xq = x + b.x;
        const int32_t *list = NULL, *listed = NULL;
        /* if: LISTED */
        MD_REAL *lists = NULL;
        if (s->is & MD_TILE_LISTED) {
            lists = panels + s->slice - md_tile_list_count(s);
            list = (const int32_t *)(const void *)lists + b.i0 * s->kb1 + b.i2;
            const int64_t line = md_tile_line(s), taps = s->k1.n * s->k2.n;
            const int64_t each = line > 1 ? line * taps : nk1 * nk2;
            xq = x, yk1 = s->k0.y, nk1 = nk1 * nk2 / each, nk2 = each;
        }
        /* end: LISTED */
        const MD_REAL *yq = y + b.y;
        int first = q == q0 && !add;
        /* if: CLAIMED */
        first |= s->is & MD_TILE_CLAIMED ? 2 : 0;
        /* end: CLAIMED */
        const int64_t ahead = s->is & MD_TILE_NEXT ? nk2 : (int64_t)MD_TILE_AHEAD;
        for (int64_t i = 0; i < outer; i++) {
            for (int64_t j = 0; j < inner; j++) {
                const int64_t t = t0 + (held ? i : j);
                const int64_t p = p0 + (held ? j : i);
                const int64_t row = md_tile_row(s, u, t);
                const int64_t rows = md_tile_row(s, u, t + 1) - row;
                MD_REAL *panel = panels + (held ? (p - p0) * nk1 * nk2 * nr : 0);
                int kept = 0, begins = first;
                /* if: BATCHED */
                panel += s->is & MD_TILE_BATCHED ? (p - p0) * nk1 * nk2 * nr : 0;
                /* end: BATCHED */
                /* if: KEPT */
                kept = (s->is & MD_TILE_KEPT) != 0;
                panel = kept ? MD_TN(kept)(s, panels, nr, b, p) : panel;
                /* end: KEPT */
                /* if: HELD */
                kept |= md_tile_lies(s, again) ? 2 : 0;
                /* end: HELD */
                const MD_REAL *yp = yq + p * nr * s->cols.y;
                const MD_REAL *xt = xq + row / s->r2.n * s->r1.x + row % s->r2.n * s->r2.x;
                int64_t xk1 = list != NULL ? nk2 : s->k1.x, xk2 = s->k2.x, steps = nk2, runs = nk1;
                /* if: LISTED */
                listed = list;
                /* end: LISTED */
                /* if: BANDED */
                const md_tile_turn turn =
                    md_tile_turn_of(s, b, q, q0, q1, add, row, rows, p * nr, nr, again >> 2);
                begins = turn.first | (first & 2);
                steps = turn.count, runs = turn.runs;
                /* end: BANDED */
                /* if: BESIDE */
                if (s->is & MD_TILE_TAKEN) {
                    MD_REAL *own = panels + s->slice - md_tile_taken_count(s);
                    if (i == 0 && j == 0) {
                        md_tile_beside(s, u, own, xt, t0, t1, nk1, nk2);
                    }
                    xk2 = u.big, xk1 = nk2 * u.big, xt = own + (t - t0) * nk1 * xk1;
                }
                /* end: BESIDE */
                /* if: EARLY */
                if (s->is & MD_TILE_EARLY) {
                    md_tile_early(s, x + row0 * s->r2.x, y, nr, md_tile_row(s, u, t1) - row0, j,
                                 inner, p, p0, p1, q, q0, q1);
                }
                /* end: EARLY */
                MD_REAL *st = strip + (row - row0) * ld + (p - p0) * nr;
                /* if: BANDED */
                if (turn.none) {
                    md_tile_clear(st, ld * MD_ELEM, rows,
                                  md_tile_min(nr, s->cols.n - p * nr) * MD_ELEM);
                }
                listed += list != NULL ? turn.at : 0;
                xt += list != NULL ? 0 : turn.at * xk2 + turn.at1 * xk1;
                /* end: BANDED */
                /* if: STREAMS */
                if (ask != NULL) {
                    md_tile_ask_of((md_tile_ask *)ask, s, u, t, t0, t1, p,
                                   q + 1 == q1 ? runs * nk2 : 0);
                }
                /* end: STREAMS */
/* The panel and the tile with constants for rows and columns. */
#define MD_TILE_RUN(ROWS)                                                                          \
    MD_TILE_BODY(ROWS, vectors, xt, u.rm, s->r1.x, s->r2.x, xk1, xk2, through ? panel : yp,        \
                 through ? nk2 *width : yk1, through ? width : s->k2.y, runs, steps, st, ld,       \
                 room || !through ? MD_LANES : last, back, begins, listed, ahead, ask)
#define MD_TILE_PANEL(COLS)                                                                        \
    {                                                                                              \
        const int64_t vectors = ((COLS) + MD_LANES - 1) / MD_LANES;                                \
        const int64_t last = (COLS) - (vectors - 1) * MD_LANES;                                    \
        const int64_t width = held || kept == 1 ? nr : vectors * MD_LANES;                         \
        const int through = (s->is & MD_TILE_PACKED) || (last != MD_LANES && vectors == 1);        \
        const int64_t back = through ? 0 : MD_LANES - last; /* columns that two vectors have */    \
        /* if: PACKED */                                                                           \
        /* if: LISTED */                                                                           \
        if (through && !kept && md_tile_line(s) > 1 && j == 0) {                                   \
            MD_TN(pack_lines)(s, panel, width, yp, lists, b.nk1 * b.nk2, (COLS));                  \
            kept = 2;                                                                              \
        }                                                                                          \
        /* end: LISTED */                                                                          \
        if (through && !kept && (held ? i : j) == 0) {                                             \
            MD_TN(pack)(panel, width, yp, yk1, s->k2.y, s->cols.y, b.nk1, b.nk2, (COLS));          \
        }                                                                                          \
        /* end: PACKED */                                                                          \
        /* if: BANDED */                                                                           \
        panel += (turn.at + turn.at1 * nk2) * width, yp += turn.at * s->k2.y + turn.at1 * yk1;     \
        if (steps <= 0) {                                                                          \
            continue;                                                                              \
        }                                                                                          \
        steps = s->band >= MD_BAND_ROW_COLUMN && list == NULL ? nk2 : steps; /* a constant */      \
        /* end: BANDED */                                                                          \
        if (u.big == u.little || rows == u.big) {                                                  \
            MD_TILE_RUN(u.big);                                                                    \
        } else {                                                                                   \
            MD_TILE_RUN(u.little);                                                                 \
        }                                                                                          \
    }
                /* if: ALONG */
                if (s->is & MD_TILE_ALONG) {
                    MD_TN(along)(s, &u, rows, p, xt, yp, nk1, nk2, st, ld, first);
                    continue;
                }
                /* end: ALONG */
                /* if: DOTS */
                if (s->is & MD_TILE_DOTS) { /* all rows are one tile */
                    MD_TN(dots)(u.big, md_tile_min(nr, s->cols.n - p * nr), xt, s->r2.x, s->k1.x,
                                yp, s->cols.y, s->k1.y, nk1, nk2, st, ld, first);
                    continue;
                }
                /* end: DOTS */
                if (s->cols.n % nr == 0 || p * nr + nr <= s->cols.n) {
                    MD_TILE_PANEL(nr)
                } else {
                    MD_TILE_PANEL(s->cols.n % nr)
                }
#undef MD_TILE_RUN
#undef MD_TILE_PANEL
            }
        }
    }
}

MD_JOIN(MD_TN(join), MD_REAL)

typedef void (*MD_TN(block_fn))(const md_tile *s, const void *x, const void *y, int64_t t0,
                                int64_t t1, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
                                MD_REAL *strip, int64_t ld, MD_REAL *panels, int add, int room,
                                int again, void *ask);

/* The share of worker `part`: its tasks, each by nt * np places of blocks, each block finished by
 * the epilogue. With chunks the products go to the partial sums, and the second phase finishes
 * those. Inlined: plan, epilogue, what multiplies, bytes of elements, what makes A: constants. */
MD_INLINE void MD_TN(share)(const md_tile *s, const md_tile_call *call, int part, MD_TN(epi) epi,
                            MD_TN(block_fn) block, int64_t a_bytes, int64_t b_bytes,
                            md_tile_copy_fn copy) {
    const int swapped = (s->is & MD_TILE_SWAPPED) != 0, turned = md_tile_turns(s);
    const int direct = (s->is & MD_TILE_IN_PLACE) && !turned && s->chunks == 1;
    const md_tile_cut u = md_tile_cut_rows(s, MD_LANES, MD_VBYTES, MD_TILE_MANY);
    const int64_t panels = (s->cols.n + u.nr - 1) / u.nr, batches = s->b1.n * s->b2.n;
    const int64_t kblocks = md_tile_blocks(s);
    MD_REAL *slice = (MD_REAL *)call->work + s->partial + part * s->slice;
    void *ask = NULL;
    int64_t dt = s->block_rows / u.big, dp = s->block_cols / u.nr;
    int64_t tasks = batches * call->gm * call->gn;
    /* if: CHUNKS */
    const int64_t pitch = (s->cols.n + 64 / MD_ELEM - 1) / (64 / MD_ELEM) * (64 / MD_ELEM);
    const int64_t step = batches * s->r1.n * s->r2.n * pitch; /* from chunk to chunk */
    const int summing = s->chunks > 1 && call->sum != 0;
    dt = s->chunks > 1 ? u.count : dt;
    dp = s->chunks > 1 ? panels : dp;
    tasks *= summing ? 1 : s->chunks;
    /* end: CHUNKS */
    const int64_t nt = ((u.count + call->gm - 1) / call->gm + dt - 1) / dt;
    const int64_t np = ((panels + call->gn - 1) / call->gn + dp - 1) / dp;
    const int one = nt * np * call->gm * call->gn == 1; /* block of a batch: without divisions */
    int64_t at = md_split(tasks, part, call->parts) * nt * np, before = -1;
    int64_t end = md_split(tasks, part + 1, call->parts) * nt * np;
    /* if: LISTED */
    if (s->is & MD_TILE_LISTED) {
        md_tile_list(s, (int32_t *)(void *)(slice + s->slice - md_tile_list_count(s)));
    }
    /* end: LISTED */
    (void)copy;
    /* if: COPIED */
    const void *made = NULL;
    int64_t made_of = -1;
    /* end: COPIED */
    /* if: HELPED */
    int of = -1;
    MD_WHILE(md_tile_unit(call, part, &of, tasks, nt * np, &at, &end))
    /* end: HELPED */
    for (; at < end; at++) {
        const int64_t i = one ? at : at / np / nt;
        const int64_t in = one ? 0 : i % call->gn, im = one ? 0 : i / call->gn % call->gm;
        const int64_t t0 = md_split(u.count, im, call->gm), t = t0 + (one ? 0 : at / np % nt * dt);
        const int64_t p0 = md_split(panels, in, call->gn), p = p0 + (one ? 0 : at % np * dp);
        const int64_t te = md_tile_min(t + dt, md_split(u.count, im + 1, call->gm));
        const int64_t pe = md_tile_min(p + dp, md_split(panels, in + 1, call->gn));
        if (t >= te || p >= pe) {
            continue;
        }
        /* if: KEPT */
        if ((s->is & MD_TILE_KEPT) && before < 0) {
            if (s->is & MD_TILE_HALF) { /* whose panels are others: a block of no tiles */
                block(s, NULL, call->b, 0, 0, 0, panels, 0, kblocks, NULL, 0, slice, 0, 0, 0, NULL);
            } else {
                MD_TN(keep)(s, slice, (const MD_REAL *)call->b, u.nr, kblocks);
            }
        }
        /* end: KEPT */
        int adds = 0, again = before + 1 == at && p > p0; /* rows as before */
        /* if: HELD */
        again |= before + 1 == at && t > t0 ? 2 : 0; /* and columns */
        /* end: HELD */
        before = at;
        const int64_t batch = (one ? i : i / call->gn / call->gm) % batches;
        const int64_t i1 = batch / s->b2.n, i2 = batch % s->b2.n;
        /* if: BANDED */
        again |= (int)md_tile_border_place(s, i1, i2) * 4;
        /* end: BANDED */
        const int64_t x_bytes = swapped ? b_bytes : a_bytes, y_bytes = a_bytes + b_bytes - x_bytes;
        const char *x =
            (const char *)(swapped ? call->b : call->a) + (i1 * s->b1.x + i2 * s->b2.x) * x_bytes;
        const char *y =
            (const char *)(swapped ? call->a : call->b) + (i1 * s->b1.y + i2 * s->b2.y) * y_bytes;
        /* if: COPIED */
        if (copy != NULL) {
            made = made_of == batch ? made : copy(call->ctx, batch, part);
            made_of = batch;
            *(swapped ? &y : &x) = (const char *)made;
        }
        /* end: COPIED */
        MD_REAL *c = s->is & MD_TILE_NO_C ? NULL : (MD_REAL *)call->c + i1 * s->b1.c + i2 * s->b2.c;
        int64_t q = 0, q1 = kblocks;
        /* if: STREAMS */
        md_tile_ask here;
        here.of = (const md_tile_stream *)call->ctx, here.batch = batch;
        here.ends = (void (*)(void))epi;
        ask = s->is & MD_TILE_STREAMS ? &here : NULL;
        /* end: STREAMS */
        /* if: CHUNKS */
        const int64_t chunk = i / call->gn / call->gm / batches;
        q = md_split(kblocks, chunk, s->chunks);
        q1 = md_split(kblocks, chunk + 1, s->chunks);
        /* end: CHUNKS */
        const int64_t row = md_tile_row(s, u, t), rows = md_tile_row(s, u, te) - row;
        const int64_t col = p * u.nr, cols = md_tile_min(pe * u.nr, s->cols.n) - col;
        int64_t ld = direct ? s->r2.c : s->block_cols; /* where the products go */
        MD_REAL *strip = direct ? c + row * s->r2.c + col : slice + s->strip_at;
        /* if: ENDS */
        ld = (s->is & MD_TILE_ENDS) && !direct ? u.nr : ld;
        /* end: ENDS */
        /* if: CHUNKS */
        if (s->chunks > 1) {
            ld = pitch;
            strip = (MD_REAL *)call->work + chunk * step +
                    (batch * s->r1.n * s->r2.n + row) * pitch + col;
            q = summing ? q1 : q;
        }
        /* end: CHUNKS */
        /* if: ADD */
        adds = (s->is & MD_TILE_ADD) && !turned && s->chunks == 1;
        if (adds && !direct) {
            MD_TN(gather)(s, strip, ld, c, row, rows, col, cols, 0);
        }
        /* end: ADD */
        /* if: GROUPS */
        for (const int64_t q0 = q; s->group_at > 0 && q < q1; q += s->group) {
            const int more = q > q0 || adds;
            MD_REAL *to = more ? slice + s->group_at : strip;
            const int64_t to_ld = more ? dp * u.nr : ld;
            block(s, x, y, t, te, p, pe, q, md_tile_min(q + s->group, q1), to, to_ld, slice, 0,
                  more || !direct, 0, NULL);
            if (more) {
                MD_TN(join)(strip, ld, to, to_ld, rows, cols);
            }
        }
        /* end: GROUPS */
        block(s, x, y, t, te, p, pe, q, q1, strip, ld, slice, adds, !direct, again, ask);
        /* if: ENDS */
        if (s->is & MD_TILE_ENDS) { /* which its tiles have called */
            continue;
        }
        /* end: ENDS */
        /* if: CHUNKS */
        if (s->chunks > 1) {
            if (!summing) {
                continue;
            }
            for (int64_t more = 1; more < s->chunks; more++) { /* in order */
                MD_TN(join)(strip, ld, strip + more * step, ld, rows, cols);
            }
            /* if: ADD */
            if ((s->is & MD_TILE_ADD) && !turned) {
                MD_TN(gather)(s, strip, ld, c, row, rows, col, cols, 1);
            }
            /* end: ADD */
        }
        /* end: CHUNKS */
        /* if: TRANSPOSED */
        if (turned) { /* the epilogue sees the transpose */
            const int inplace = (s->is & MD_TILE_IN_PLACE) != 0;
            const int add = (s->is & MD_TILE_ADD) != 0;
            MD_REAL *done = inplace ? c + col * s->cols.c + row : slice + s->turned_at;
            const int64_t done_ld = inplace ? s->cols.c : s->block_rows;
            MD_TN(turn)(done, done_ld, strip, ld, rows, cols, inplace && add, 0);
            /* if: ADD */
            if (add && !inplace) {
                MD_TN(gather)(s, done, done_ld, c, col, cols, row, rows, 1);
            }
            /* end: ADD */
            epi(call->ctx, batch, col, cols, row, rows, done, done_ld);
            /* if: SCATTERED */
            if (!inplace && !(s->is & MD_TILE_NO_C)) {
                MD_TN(scatter)(s, done, done_ld, c, col, cols, row, rows);
            }
            /* end: SCATTERED */
            continue;
        }
        /* end: TRANSPOSED */
        epi(call->ctx, batch, row, rows, col, cols, strip, ld);
        /* if: SCATTERED */
        if (!direct && !(s->is & MD_TILE_NO_C)) {
            MD_TN(scatter)(s, strip, ld, c, row, rows, col, cols);
        }
        /* end: SCATTERED */
    }
}

/* if: LARGE */
MD_NOINLINE void MD_TN(share_of)(const md_tile *s, const md_tile_call *call, int part,
                                 MD_TN(epi) epi, MD_TN(block_fn) block, md_tile_copy_fn copy) {
    const int64_t bytes = s->is & MD_TILE_HALF ? 2 : MD_ELEM;
    MD_TN(share)(s, call, part, epi, block, s->is & MD_TILE_WIDE_A ? MD_ELEM : bytes,
                 s->is & MD_TILE_WIDE_B ? MD_ELEM : bytes, copy);
}
/* end: LARGE */
/* if: BATCHED */
MD_BATCHED(MD_TN(batched_of), MD_REAL, MD_LANES, MD_TN(epi), MD_TN(block_fn))
/* end: BATCHED */

/* if: WINOGRAD */
MD_INLINE void MD_TN(winograd)(const md_tile *s, const void *xs, const void *ys, int64_t t0,
                               int64_t t1, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
                               MD_REAL *strip, int64_t ld, MD_REAL *panels, int add, int room,
                               int again, void *ask) {
    MD_WINOGRAD_PRODUCTS(MD_REAL, MD_LANES)
}
MD_WINOGRAD(MD_TN(winograd_of), MD_TN(pack), MD_REAL, MD_TN(many), MD_TN(many_u), MD_LANES,
            MD_TN(epi), MD_TN(block_fn))
/* end: WINOGRAD */

/* if: WINOGRAD_SUM */
MD_WINOGRAD_SUM(MD_TN(winograd_sum_of), MD_TN(scatter), MD_REAL, MD_TN(many), MD_TN(many_u),
                MD_LANES, MD_TN(epi), MD_TN(block_fn))
/* end: WINOGRAD_SUM */

MD_INLINE void MD_TN(part)(const md_tile *s, const md_tile_call *call, int part, MD_TN(epi) epi) {
    MD_TN(share)(s, call, part, epi, MD_TN(block), MD_ELEM, MD_ELEM, NULL);
}

/* if: COPIED */
MD_INLINE void MD_TN(part_copied)(const md_tile *s, const md_tile_call *call, int part,
                                  MD_TN(epi) epi, md_tile_copy_fn copy) {
    MD_TN(share)(s, call, part, epi, MD_TN(block), MD_ELEM, MD_ELEM, copy);
}
/* end: COPIED */

/* if: TEMPLATE */
#undef MD_TN
#undef MD_REAL
#undef MD_ELEM
#undef MD_LANES
#undef MD_VEC
#undef MD_VEC_U
#undef MD_LO
#undef MD_HI
#undef MD_HALVES
#undef MD_TILE_PARAMS
#undef MD_TILE_BODY
#endif
#undef MD_TILE_REAL
/* end: TEMPLATE */
