/* SPDX-License-Identifier: 0BSD */
/* tile_half: products of floats of 16 bits with sums in float, for tile_kernel.h.
 *
 * Of bfloat16 two elements that are neighbours along k2 make one lane of 32 bits. Y is packed into
 * panels of such pairs; X is read in pairs where it lies in them, else its rows are packed too. One
 * step of a register tile adds two products to each sum, the second element's first, by one
 * instruction: AVX-512 BF16, which takes subnormals for zero and rounds as md_mad does, or ARM's.
 *
 * Where that instruction is not there, or slow, and with MD_TILE_F16 or MD_TILE_EXACT, a lane is
 * one element, made a float while it is packed, X too: no machine adds products of IEEE halves, or
 * of a half and a float, to floats in one instruction, and every place is multiplied often.
 *
 * Bits are the same for any number of threads. Blocks, strips, partial sums and epilogues are those
 * of f32. Gives MD_TILE_HALF_PART, the part function of a plan with MD_TILE_HALF. */
#ifndef MD_TILE_HALF_H
#define MD_TILE_HALF_H

#include "runtime/tile_pairs.h"

/* What bfloat16 holds, as an A that a product makes for itself has it; float where all lanes are
 * single. */
#if MD_TILE_PAIRS
typedef uint16_t md_tile_lane;
#define MD_TILE_AS_LANE(x) md_cut_bf16(x)
#else
typedef float md_tile_lane;
#define MD_TILE_AS_LANE(x) (x)
#endif

/* NAME_part of such a plan; `copy` makes A batch element by batch element, NULL: it lies there. */
#define MD_TILE_HALF_PART(name, plan, epilogue, copy)                                              \
    static void name##_part(const md_tile_call *call, int part) {                                  \
        md_tile_share_f32(&(plan), call, part, epilogue, md_tile_block_half,                       \
                          (plan).is &MD_TILE_WIDE_A ? 4 : 2, (plan).is &MD_TILE_WIDE_B ? 4 : 2,    \
                          copy);                                                                   \
    }

/* if: LARGE */
/* The same of a large one, whose MD_TILE_BLOCK names md_tile_block_half. */
#define MD_TILE_LARGE_HALF_PART(name, plan, epilogue, of, copy)                                    \
    MD_TILE_LARGE_PART(name, plan, md_tile_share_of_f32, epilogue, of, copy)
/* end: LARGE */

/* So that what a step of a sum needs stays in registers, not what is asked for now and then. */
#if defined(__GNUC__)
#define MD_TILE_RARELY(x) __builtin_expect(x, 0)
#else
#define MD_TILE_RARELY(x) (x)
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define MD_TILE_UNROLL MD_PRAGMA(GCC unroll 16)
#elif defined(__clang__)
#define MD_TILE_UNROLL MD_PRAGMA(clang loop unroll(full))
#else
#define MD_TILE_UNROLL
#endif

/* What an operand of lanes of one element is in memory, and what is made of it. */
enum {
    MD_TILE_FROM_F16,
    MD_TILE_FROM_BF16,
    MD_TILE_FROM_FLOAT,
    MD_TILE_ROUND_F16,
    MD_TILE_ROUND_BF16
};
/* Is a lane one element? */
MD_INLINE int md_tile_lone(const md_tile *s) {
    return !MD_TILE_PAIRS || (s->is & MD_TILE_LONE) != 0;
}

/* `wide`: floats that are rounded; MD_TILE_AS_IT_IS: that stay what they are. */
enum { MD_TILE_AS_IT_IS = 2 };
MD_INLINE int md_tile_form(const md_tile *s, int wide) {
    const int f16 = (s->is & MD_TILE_F16) != 0;
    if (wide == MD_TILE_AS_IT_IS || (wide && (s->is & MD_TILE_EXACT))) {
        return MD_TILE_FROM_FLOAT;
    }
    return f16 ? (wide ? MD_TILE_ROUND_F16 : MD_TILE_FROM_F16)
               : (wide ? MD_TILE_ROUND_BF16 : MD_TILE_FROM_BF16);
}

/* to[i] = element at + i as a float. */
MD_INLINE void md_tile_widen(float *MD_RESTRICT to, const void *y, int64_t at, int64_t n,
                             int form) {
    const float *MD_RESTRICT floats = (const float *)y;
    const uint16_t *MD_RESTRICT halves = (const uint16_t *)y;
    int64_t i = 0;
    if (form == MD_TILE_FROM_FLOAT) {
        memcpy(to, floats + at, (size_t)n * sizeof *to);
        return;
    }
    if (form == MD_TILE_FROM_BF16 || form == MD_TILE_ROUND_BF16) {
        for (; i < n; i++) {
            to[i] =
                form == MD_TILE_FROM_BF16 ? md_from_bf16(halves[at + i]) : md_bf16f(floats[at + i]);
        }
        return;
    }
    const int wide = form == MD_TILE_ROUND_F16;
#if defined(__F16C__) && defined(__AVX512F__) && MD_VBYTES == 64
    for (; i + 16 <= n; i += 16) {
        __m256i h = wide ? _mm512_cvtps_ph(_mm512_loadu_ps(floats + at + i), 0)
                         : _mm256_loadu_si256((const __m256i_u *)(const void *)(halves + at + i));
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(h));
    }
#elif defined(__F16C__) && MD_VBYTES == 32
    for (; i + 8 <= n; i += 8) {
        __m128i h = wide ? _mm256_cvtps_ph(_mm256_loadu_ps(floats + at + i), 0)
                         : _mm_loadu_si128((const __m128i_u *)(const void *)(halves + at + i));
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(h));
    }
#endif
    for (; i < n; i++) {
        to[i] = wide ? md_f16f(floats[at + i]) : md_from_f16(halves[at + i]);
    }
}

/* What md_tile_pairs_of is for lanes of one element; `form` is a constant where this is inlined. */
MD_INLINE void md_tile_singles_of(float *MD_RESTRICT to, int64_t width, int64_t room, const void *y,
                                  int64_t yk1, int64_t yk2, int64_t yc, int64_t nk1, int64_t nk2,
                                  int64_t cols, int form) {
    enum { DEEP = 32, WIDE = 64 }; /* of a part that is turned in the cache */
    for (int64_t i = 0; i < nk1; i++, to += nk2 * width) {
        if (yc != 1 && yk2 == 1 && cols <= WIDE && room % MD_LANES_F32 == 0) {
            float part[WIDE * DEEP];
            for (int64_t j = 0; j < nk2; j += DEEP) {
                const int64_t deep = md_tile_min(DEEP, nk2 - j);
                for (int64_t c = 0; c < cols; c++) {
                    if (deep == DEEP) { /* whole vectors */
                        md_tile_widen(part + c * DEEP, y, i * yk1 + j + c * yc, DEEP, form);
                    } else {
                        md_tile_widen(part + c * DEEP, y, i * yk1 + j + c * yc, deep, form);
                    }
                }
                md_tile_turn_f32(to + j * width, width, part, DEEP, cols, deep, 0, 1);
            }
            continue;
        }
        if (yc == 1 && yk2 == cols && width == cols) { /* all of it in one run */
            md_tile_widen(to, y, i * yk1, nk2 * cols, form);
            continue;
        }
        for (int64_t j = 0; j < nk2; j++) {
            const int64_t from = i * yk1 + j * yk2;
            float *at = to + j * width;
            if (yc == 1) {
                md_tile_widen(at, y, from, cols, form);
            } else {
                for (int64_t c = 0; c < cols; c++) {
                    md_tile_widen(at + c, y, from + c * yc, 1, form);
                }
            }
            for (int64_t c = cols; c < room; c++) {
                at[c] = 0;
            }
        }
    }
}

/* Rows that lie along the sum, in their order. */
MD_INLINE void md_tile_along_of(float *MD_RESTRICT to, const void *x, int64_t xr, int64_t xk,
                                int64_t rows, int64_t nk1, int64_t nk2, int form) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < nk1; i++, to += nk2) {
            md_tile_widen(to, x, r * xr + i * xk, nk2, form);
        }
    }
}

/* All of them with loops of their own for each form. */
#define MD_TILE_FORMS(run)                                                                         \
    do {                                                                                           \
        switch (form) {                                                                            \
        /* if: F16 */                                                                              \
        case MD_TILE_FROM_F16: run(MD_TILE_FROM_F16); break;                                       \
        case MD_TILE_ROUND_F16: run(MD_TILE_ROUND_F16); break;                                     \
        /* end: F16 */                                                                             \
        case MD_TILE_FROM_BF16: run(MD_TILE_FROM_BF16); break;                                     \
        case MD_TILE_FROM_FLOAT: run(MD_TILE_FROM_FLOAT); break;                                   \
        default: run(MD_TILE_ROUND_BF16);                                                          \
        }                                                                                          \
    } while (0)
MD_NOINLINE void md_tile_singles(float *MD_RESTRICT to, int64_t width, int64_t room, const void *y,
                                 int64_t yk1, int64_t yk2, int64_t yc, int64_t nk1, int64_t nk2,
                                 int64_t cols, int form) {
#define MD_TILE_SINGLES(as) md_tile_singles_of(to, width, room, y, yk1, yk2, yc, nk1, nk2, cols, as)
    MD_TILE_FORMS(MD_TILE_SINGLES);
#undef MD_TILE_SINGLES
}
MD_NOINLINE void md_tile_singles_along(float *MD_RESTRICT to, const void *x, int64_t xr, int64_t xk,
                                       int64_t rows, int64_t nk1, int64_t nk2, int form) {
#define MD_TILE_ALONG(as) md_tile_along_of(to, x, xr, xk, rows, nk1, nk2, as)
    MD_TILE_FORMS(MD_TILE_ALONG);
#undef MD_TILE_ALONG
}

MD_NOINLINE void md_tile_span_of(float *MD_RESTRICT to, const void *x, int64_t from, int64_t count,
                                 int form) {
#define MD_TILE_SPAN_OF(as) md_tile_widen(to, x, from, count, as)
    MD_TILE_FORMS(MD_TILE_SPAN_OF);
#undef MD_TILE_SPAN_OF
}
/* A panel of Y, or rows of X. */
MD_INLINE void md_tile_lanes(const md_tile *s, void *to, int64_t width, int64_t room, const void *y,
                             int64_t yk1, int64_t yk2, int64_t yc, int64_t nk1, int64_t nk2,
                             int64_t cols, int wide) {
    if (md_tile_lone(s)) {
        md_tile_singles((float *)to, width, room, y, yk1, yk2, yc, nk1, nk2, cols,
                        md_tile_form(s, wide));
    } else {
        (wide ? md_tile_pairs_wide : md_tile_pairs)((uint32_t *)to, width, room, y, yk1, yk2, yc,
                                                    nk1, nk2, cols);
    }
}

/* if: FAR */
/* The panel that is packed next, whose lines register tiles ask for, one every `pause` steps:
 * `runs` of `lines` each, a `skip` behind one another. A panel is packed far faster than memory
 * gives what it is made of, and multiplied more slowly. */
typedef struct {
    uintptr_t at;
    int64_t lines, line, skip, runs, pause, wait;
} md_tile_soon;

MD_INLINE void md_tile_soon_line(md_tile_soon *soon) {
    MD_FETCH(soon->at);
    soon->at += 64;
    if (++soon->line == soon->lines) {
        soon->line = 0;
        soon->runs--;
        soon->at += (uintptr_t)soon->skip;
    }
}

/* Panel p of block q, over so many steps of what is multiplied before. */
MD_INLINE md_tile_soon md_tile_soon_of(const md_tile *s, const void *y, int64_t bytes, int64_t q,
                                       int64_t p, int64_t nr, int64_t steps) {
    md_tile_soon soon = {0, 0, 0, 0, 0, 0, 0};
    const md_tile_sums b = md_tile_sums_of(s, q);
    const int64_t cols = md_tile_min(nr, s->cols.n - p * nr), turned = s->cols.y != 1;
    const int64_t run = (turned ? b.nk2 : cols) * bytes;
    if (cols <= 0 || b.nk1 > 1 || (turned && s->k2.y != 1)) {
        return soon;
    }
    soon.at = (uintptr_t)y + (uintptr_t)((b.y + p * nr * s->cols.y) * bytes);
    const int64_t stride = (turned ? s->cols.y : s->k2.y) * bytes;
    soon.lines = ((stride % 64 == 0 ? (int64_t)(soon.at % 64) : 63) + run + 63) / 64;
    soon.skip = stride - soon.lines * 64;
    soon.runs = turned ? cols : b.nk2;
    soon.pause = steps / (soon.lines * soon.runs);
    soon.pause = soon.pause > 0 ? soon.pause : 1;
    soon.wait = soon.pause;
    return soon;
}
/* end: FAR */

#if MD_VBYTES > 0
typedef uint32_t md_tile_vpair __attribute__((vector_size(MD_VBYTES)));
typedef uint32_t md_tile_vpair_u __attribute__((vector_size(MD_VBYTES), aligned(4), may_alias));
typedef uint32_t md_tile_pair_u __attribute__((aligned(2), may_alias));
typedef float md_tile_single_u __attribute__((aligned(4), may_alias));

#if MD_TILE_PAIRS && defined(__AVX512BF16__)
#define md_tile_add_pair(x, y, c)                                                                  \
    ((md_vf32)_mm512_dpbf16_ps((__m512)(c), (__m512bh)(x), (__m512bh)(y)))
#elif MD_TILE_PAIRS && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && MD_VBYTES == 16
#define md_tile_add_pair(x, y, c)                                                                  \
    ((md_vf32)vbfdotq_f32((float32x4_t)(c), vreinterpretq_bf16_u32((uint32x4_t)(x)),               \
                          vreinterpretq_bf16_u32((uint32x4_t)(y))))
#else
/* What it does, but for subnormals. */
#define md_tile_add_pair(x, y, c)                                                                  \
    md_tile_vmad_f32((md_vf32)((x) << 16), (md_vf32)((y) << 16),                                   \
                     md_tile_vmad_f32((md_vf32)((x)&0xFFFF0000u), (md_vf32)((y)&0xFFFF0000u), c))
#endif

/* The register tile of `rows` x `nv` vectors, both constants where this is inlined: row r lies at
 * x + r / rm * xr1 + r % rm * xr2, a run of Y `gap` behind the one before. `ask`: an md_tile_ask
 * or NULL; `soon` may be NULL. */
MD_INLINE void md_tile_rows_half(int64_t rows, int64_t nv, const uint16_t *x, int64_t rm,
                                 int64_t xr1, int64_t xr2, int64_t xk1, int64_t xk2,
                                 const uint32_t *y, int64_t width, int64_t gap, int64_t nk1,
                                 int64_t pairs, float *strip, int64_t ld, int64_t lanes, int first,
                                 int lone, void *ask, void *far) {
    const md_vf32 zero = {0};
    (void)ask, (void)far;
    /* if: FAR */
    md_tile_soon *soon = (md_tile_soon *)far;
    int64_t wait = soon != NULL ? soon->wait : 0;
    /* end: FAR */
    /* if: STREAMS */
    md_tile_ask *asked = (md_tile_ask *)ask;
    int64_t left = ask != NULL && asked->pause > 0;
    /* end: STREAMS */
    const md_tile_vpair none = {0};
    md_vf32 c[MD_TILE_HIGH1][4];
    MD_TILE_UNROLL
    for (int64_t r = 0; r < rows; r++) {
        MD_TILE_UNROLL
        for (int64_t v = 0; v < nv; v++) {
            c[r][v] = zero;
        }
    }
    for (int64_t i = 0; i < nk1; i++, y += gap) {
        const uint16_t *p = x + i * xk1;
        for (int64_t j = 0; j < pairs; j++, p += xk2, y += width) {
            /* if: STREAMS */
            if (ask != NULL && MD_TILE_RARELY(--left == 0 && asked->rows > 0)) {
                left = asked->pause;
                md_tile_ask_row(asked);
            }
            /* end: STREAMS */
            /* if: FAR */
            if (soon != NULL && MD_TILE_RARELY(--wait <= 0 && soon->runs > 0)) {
                wait = soon->pause;
                md_tile_soon_line(soon);
            }
            /* end: FAR */
            md_tile_vpair b[4];
            MD_TILE_UNROLL
            for (int64_t v = 0; v < nv; v++) {
                b[v] = *(const md_tile_vpair_u *)(const void *)(y + v * MD_LANES_F32);
            }
            MD_TILE_UNROLL
            for (int64_t r = 0; r < rows; r++) {
                const void *at = p + r / rm * xr1 + r % rm * xr2;
                if (lone) { /* as a float: the multiply-add repeats it itself */
                    const md_vf32 f = *(const md_tile_single_u *)at - zero;
                    MD_TILE_UNROLL
                    for (int64_t v = 0; v < nv; v++) {
                        c[r][v] = md_tile_vmad_f32(f, (md_vf32)b[v], c[r][v]);
                    }
                    continue;
                }
                const md_tile_vpair e = *(const md_tile_pair_u *)at - none;
                MD_TILE_UNROLL
                for (int64_t v = 0; v < nv; v++) {
                    c[r][v] = md_tile_add_pair(e, b[v], c[r][v]);
                }
            }
        }
    }
    /* if: FAR */
    if (soon != NULL) {
        soon->wait = wait;
    }
    /* end: FAR */
    MD_TILE_UNROLL
    for (int64_t r = 0; r < rows; r++) {
        MD_TILE_UNROLL
        for (int64_t v = 0; v < nv; v++) {
            float *to = strip + r * ld + v * MD_LANES_F32;
            if (v + 1 < nv || lanes == MD_LANES_F32) {
                md_vf32_u *all = (md_vf32_u *)(void *)to;
                *all = first ? c[r][v] : c[r][v] + *all;
            } else {
                float part[MD_LANES_F32];
                memcpy(part, &c[r][v], sizeof part);
                for (int64_t l = 0; l < lanes; l++) {
                    to[l] = first ? part[l] : part[l] + to[l];
                }
            }
        }
    }
}
#else
MD_INLINE float md_tile_wide(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The same by plain loops. */
MD_FN void md_tile_rows_half(int64_t rows, int64_t nv, const uint16_t *x, int64_t rm, int64_t xr1,
                             int64_t xr2, int64_t xk1, int64_t xk2, const uint32_t *y,
                             int64_t width, int64_t gap, int64_t nk1, int64_t pairs, float *strip,
                             int64_t ld, int64_t lanes, int first, int lone, void *ask,
                             void *far) {
    (void)ask, (void)far;
    for (int64_t r = 0; r < rows; r++) {
        const uint16_t *row = x + r / rm * xr1 + r % rm * xr2;
        for (int64_t c = 0; c < (nv - 1) * MD_LANES_F32 + lanes; c++) {
            const uint32_t *q = y + c;
            float sum = 0;
            for (int64_t i = 0; i < nk1; i++, q += gap) {
                const uint16_t *p = row + i * xk1;
                for (int64_t j = 0; j < pairs; j++, p += xk2, q += width) {
                    uint32_t e;
                    memcpy(&e, p, sizeof e);
                    if (lone) {
                        sum = md_madf(md_tile_wide(e), md_tile_wide(*q), sum);
                        continue;
                    }
                    e = md_tile_pair(p, 0, 1, 1, 0);
                    sum =
                        md_madf(md_tile_wide(e & 0xFFFF0000u), md_tile_wide(*q & 0xFFFF0000u), sum);
                    sum = md_madf(md_tile_wide(e << 16), md_tile_wide(*q << 16), sum);
                }
            }
            strip[r * ld + c] = first ? sum : strip[r * ld + c] + sum;
        }
    }
}
#endif

/* Steps j .. j + n of k1 = i of rows row .. end of X, which do not lie along the sum, in lanes. */
MD_INLINE void md_tile_steps(const md_tile *s, uint32_t *to, const char *x, int64_t row,
                             int64_t end, int64_t i, int64_t j, int64_t n, int wide) {
    for (int64_t run, r = row; r < end; r += run) {
        run = md_tile_min(end - r, s->r2.n - r % s->r2.n);
        const int64_t from =
            r / s->r2.n * s->r1.x + r % s->r2.n * s->r2.x + i * s->k1.x + j * s->k2.x;
        md_tile_lanes(s, to + (r - row), end - row, run, x + from * (wide ? 4 : 2), s->k1.x,
                      s->k2.x, s->r2.x, 1, n, run, wide);
    }
}

/* Tiles t0 .. t1 of such an X, packed tile by tile: the lanes of a step side by side and steps one
 * behind another, so that a tile reads few lines, at strides that are known. Some steps of many
 * rows at a time, as they lie in memory. */
MD_INLINE void md_tile_take_across(const md_tile *s, md_tile_cut u, uint32_t *to, const char *x,
                                   int64_t t0, int64_t t1, md_tile_sums b, int wide) {
    enum { STEPS = 2 * MD_TILE_AHEAD, ROWS = 64 }; /* 4 KiB of the stack */
    uint32_t some[STEPS * ROWS];
    const int64_t each = md_tile_lone(s) ? 1 : 2, lanes = (b.nk2 + each - 1) / each;
    const size_t big = (size_t)u.big * sizeof *to, little = (size_t)u.little * sizeof *to;
    for (int64_t t = t0, next; t < t1; t = next) {
        const int64_t row = md_tile_row(s, u, t);
        for (next = t + 1; next < t1 && md_tile_row(s, u, next + 1) - row <= ROWS; next++) {
        }
        const int64_t end = md_tile_row(s, u, next), parts = (lanes + STEPS - 1) / STEPS;
        for (int64_t at = 0; at < b.nk1 * parts; at++) {
            const int64_t i = at / parts, j = at % parts * STEPS, n = md_tile_min(STEPS, lanes - j);
            md_tile_steps(s, some, x, row, end, i, j * each,
                          md_tile_min(n * each, b.nk2 - j * each), wide);
            for (int64_t v = t, from = row; v < next; v++) {
                const int64_t high = md_tile_row(s, u, v + 1) - from;
                const uint32_t *lane = some + (from - row);
                uint32_t *tile =
                    to + (from - md_tile_row(s, u, t0)) * b.nk1 * lanes + (i * lanes + j) * high;
                for (int64_t k = 0; k < n; k++) { /* in registers: both sizes are constants */
                    if (high == u.big) {
                        memcpy(tile + k * high, lane + k * (end - row), big);
                    } else {
                        memcpy(tile + k * high, lane + k * (end - row), little);
                    }
                }
                from += high;
            }
        }
    }
}

/* Tiles t0 .. t1 of X, packed, in lanes; those that lie along the sum keep their order. */
MD_INLINE void md_tile_take(const md_tile *s, md_tile_cut u, uint32_t *to, const char *x,
                            int64_t t0, int64_t t1, md_tile_sums b, int wide) {
    const int64_t row0 = md_tile_row(s, u, t0), row1 = md_tile_row(s, u, t1);
    if (s->k2.x != 1) {
        md_tile_take_across(s, u, to, x, t0, t1, b, wide);
        return;
    }
    for (int64_t run, r = row0; r < row1; r += run) {
        run = md_tile_min(row1 - r, s->r2.n - r % s->r2.n);
        const char *from = x + (r / s->r2.n * s->r1.x + r % s->r2.n * s->r2.x) * (wide ? 4 : 2);
        if (md_tile_lone(s)) {
            float *row = (float *)(void *)(to + (r - row0) * b.nk1 * b.nk2);
            md_tile_singles_along(row, from, s->r2.x, s->k1.x, run, b.nk1, b.nk2,
                                  md_tile_form(s, wide));
        } else {
            uint32_t *row = to + (r - row0) * b.nk1 * ((b.nk2 + 1) / 2);
            md_tile_pairs_rows(row, from, s->r2.x, s->k1.x, run, b.nk1, b.nk2, wide);
        }
    }
}

/* How much of X lies in front of a row, and from the first to the last element of some rows. */
typedef struct {
    int64_t from, count;
} md_tile_reach;
MD_INLINE md_tile_reach md_tile_reach_of(const md_tile *s, int64_t row0, int64_t row1,
                                         md_tile_sums b) {
    const int64_t a = row0 / s->r2.n, z = (row1 - 1) / s->r2.n; /* along r1, the last one too */
    const int64_t from = a * s->r1.x + (a == z ? row0 % s->r2.n : 0) * s->r2.x;
    const int64_t last = z * s->r1.x + (a == z ? (row1 - 1) % s->r2.n : s->r2.n - 1) * s->r2.x;
    const md_tile_reach reach = {from,
                                 last - from + (b.nk1 - 1) * s->k1.x + (b.nk2 - 1) * s->k2.x + 1};
    return reach;
}

/* if: KEPT */
enum { MD_TILE_JOINED = 20 << 10 }; /* bytes beside which X has room in the nearest cache */

/* Are all blocks of the sum one to a register tile? Where they are elements of k0 and the steps of
 * a block lie as far apart in X as lanes do, from one of k1 to the next too; while the panels of
 * all blocks leave X its room in the first-level cache. */
MD_INLINE int md_tile_joins(const md_tile *s, int64_t nr, int taken, int lone) {
    int whole = s->kb1 == s->k1.n && s->kb2 == s->k2.n && s->k0.n > 1;
    /* if: SKIP */
    whole = whole && s->skip.n == 1;
    /* end: SKIP */
    /* if: BANDED */
    whole = whole && (s->band == MD_BAND_ROW_STEP0 || s->band == MD_BAND_NONE);
    /* end: BANDED */
    const int even = s->k1.n == 1 || (s->k1.x == s->k2.n * s->k2.x && (lone || s->k2.n % 2 == 0));
    const int64_t lanes = s->k0.n * s->k1.n * (lone ? s->k2.n : (s->k2.n + 1) / 2);
    return (s->is & MD_TILE_KEPT) && !taken && whole && even && lanes * nr * 4 <= MD_TILE_JOINED;
}

/* Packs all panels of Y, in lanes. */
MD_INLINE void md_tile_keep_half(const md_tile *s, float *panels, const char *y, int64_t nr,
                                 int64_t blocks, int wide) {
    const int64_t bytes = wide ? 4 : 2;
    for (int64_t q = 0; q < blocks; q++) {
        const md_tile_sums b = md_tile_sums_of(s, q);
        const char *yq = y + b.y * bytes;
        for (int64_t p = 0; p * nr < s->cols.n; p++) {
            md_tile_lanes(s, md_tile_kept_f32(s, panels, nr, b, p), nr, nr,
                          yq + p * nr * s->cols.y * bytes, s->k1.y, s->k2.y, s->cols.y, b.nk1,
                          b.nk2, md_tile_min(nr, s->cols.n - p * nr), wide);
        }
    }
}
/* end: KEPT */

/* What md_tile_block_f32 is for operands of 16 bits. */
MD_INLINE void md_tile_block_half(const md_tile *s, const void *xs, const void *ys, int64_t t0,
                                  int64_t t1, int64_t p0, int64_t p1, int64_t q0, int64_t q1,
                                  float *strip, int64_t ld, float *slice, int add, int room,
                                  int again, void *ask) {
    (void)ask;
    const int swapped = (s->is & MD_TILE_SWAPPED) != 0;
    const int lone = md_tile_lone(s);
    const int made = lone && md_tile_makes_x(s); /* X is floats already; or Y is: */
    const int y_made = lone && !made && (s->is & MD_TILE_MADE);
    const int x_wide = (s->is & (swapped ? MD_TILE_WIDE_B : MD_TILE_WIDE_A)) != 0;
    const int y_wide =
        y_made ? (int)MD_TILE_AS_IT_IS : (s->is & (swapped ? MD_TILE_WIDE_A : MD_TILE_WIDE_B)) != 0;
    const int64_t x_bytes = x_wide || made ? 4 : 2, y_bytes = y_wide ? 4 : 2;
    const md_tile_cut u = md_tile_cut_rows(s, MD_LANES_F32, MD_VBYTES, MD_TILE_MANY);
    const int64_t nr = u.nr;
    const int held = md_tile_whole(s);
    const int whole = s->k0.n == 1 && s->kb1 == s->k1.n && s->kb2 == s->k2.n; /* X is one block */
    const int taken = !made && (lone || (s->is & MD_TILE_TAKEN));
    const int64_t row0 = md_tile_row(s, u, t0), row1 = md_tile_row(s, u, t1);
    const int64_t outer = held ? t1 - t0 : p1 - p0;
    const int64_t inner = held ? p1 - p0 : t1 - t0;
    const int span = taken && (s->is & MD_TILE_SPAN);
    const int across = taken && !span && s->k2.x != 1;
    const int lanes = span || made;    /* at the strides of X */
    const int64_t step = lone ? 1 : 2; /* elements of a lane */
    void *far = NULL;                  /* what register tiles ask for */
    /* if: FAR */
    md_tile_soon soon = {0, 0, 0, 0, 0, 0, 0};
    far = MD_VBYTES > 0 && md_tile_far(s) ? &soon : NULL;
    /* end: FAR */
    uint32_t *panels = (uint32_t *)(void *)slice;
    uint32_t *own = panels + s->slice - (md_tile_taken_count(s) + 15) / 16 * 16;
    int kept = 0;
    /* if: HELD */
    kept = md_tile_lies(s, again);
    /* end: HELD */
    /* if: KEPT */
    kept |= (s->is & MD_TILE_KEPT) != 0;
    if (t0 == t1) {
        md_tile_keep_half(s, slice, (const char *)ys, nr, q1, y_wide);
        return;
    }
    /* end: KEPT */
    int joined = 0; /* all blocks are one */
    /* if: KEPT */
    joined = md_tile_joins(s, nr, taken, lone);
    /* end: KEPT */
    for (int64_t q = q0; q < q1; q = joined ? q1 : q + 1) {
        const md_tile_sums b = md_tile_sums_of(s, q);
        const int64_t pairs = (lone ? b.nk2 : (b.nk2 + 1) / 2) * (joined ? b.nk1 : 1);
        /* From row to row of a tile, and along the sum, in units of 16 bits; those of rows that are
         * packed side by side are as many as a tile has. */
        const int64_t r1 = lanes ? 2 * s->r1.x : s->r1.x;
        const int64_t panel_step = s->k1.n * s->k2.n * ((s->cols.n + nr - 1) / nr); /* kept */
        const int64_t gap = joined ? (panel_step - pairs) * nr : 0;
        const int64_t row_step = lanes    ? 2 * s->r2.x
                                 : across ? 2
                                 : taken  ? 2 * b.nk1 * pairs
                                          : s->r2.x;
        const int64_t step1 = joined ? s->k0.x : s->k1.x;
        const int64_t k1 = lanes ? 2 * step1 : taken ? 2 * pairs : step1;
        const int64_t k2 = lanes ? 2 * step * s->k2.x : 2;
        const md_tile_reach reach = md_tile_reach_of(s, row0, row1, b);
        const char *xq = (const char *)xs + b.x * x_bytes;
        const char *yq = (const char *)ys + b.y * y_bytes;
        const int first = q == q0 && !add;
        if (span && !((again & 1) && whole)) {
            if (lone) {
                md_tile_span_of((float *)(void *)own, xq, reach.from, reach.count,
                                md_tile_form(s, x_wide));
            } else {
                md_tile_span_pairs(own, xq, reach.from, reach.count, s->k2.x, x_wide);
            }
        } else if (taken && !((again & 1) && whole)) {
            md_tile_take(s, u, own, xq, t0, t1, b, x_wide);
        }
        for (int64_t i = 0; i < outer; i++) {
            for (int64_t j = 0; j < inner; j++) {
                const int64_t t = t0 + (held ? i : j);
                const int64_t p = p0 + (held ? j : i);
                const int64_t row = md_tile_row(s, u, t);
                const int64_t rows = md_tile_row(s, u, t + 1) - row;
                const int64_t to = row / s->r2.n * s->r1.x + row % s->r2.n * s->r2.x;
                const void *packed = own + (span ? to - reach.from : (row - row0) * b.nk1 * pairs);
                const uint16_t *xt = taken ? (const uint16_t *)packed
                                           : (const uint16_t *)(const void *)(xq + to * x_bytes);
                uint32_t *panel = panels + (held ? (p - p0) * b.nk1 * pairs * nr : 0);
                /* if: KEPT */
                if (s->is & MD_TILE_KEPT) {
                    panel = (uint32_t *)(void *)md_tile_kept_f32(s, slice, nr, b, p);
                }
                /* end: KEPT */
                const char *yp = yq + p * nr * s->cols.y * y_bytes;
                float *st = strip + (row - row0) * ld + (p - p0) * nr;
                /* if: ENDS */
                st = (s->is & MD_TILE_ENDS) && !(s->is & MD_TILE_IN_PLACE) ? strip : st;
                /* end: ENDS */
                int begins = first;
                int64_t at = 0, count = pairs; /* lanes that the tile has of the block */
                int64_t at1 = 0, runs = joined ? q1 - q : b.nk1;
                /* if: BANDED */
                const md_tile_turn turn =
                    joined
                        ? md_tile_turn_joined(s, q0, q1, add, row, rows)
                        : md_tile_turn_of(s, b, q, q0, q1, add, row, rows, p * nr, nr, again >> 2);
                begins = turn.first, at = turn.at / step, at1 = turn.at1, runs = turn.runs;
                count = joined ? (turn.runs > 0 ? pairs : 0)
                               : (turn.at + turn.count + step - 1) / step - at;
                if (turn.none) {
                    md_tile_clear(st, ld * 4, rows, md_tile_min(nr, s->cols.n - p * nr) * 4);
                }
                /* end: BANDED */
                /* if: STREAMS */
                if (ask != NULL) {
                    md_tile_ask_of((md_tile_ask *)ask, s, u, t, t0, t1, p,
                                   q + 1 == q1 ? runs * pairs : 0);
                }
                /* end: STREAMS */
                /* if: FAR */
                if (far != NULL && (held ? i : j) == 0) { /* while this panel is multiplied */
                    const int same = p + 1 < p1, more = q + 1 < q1;
                    soon = md_tile_soon_of(s, ys, y_bytes,
                                           same   ? q
                                           : more ? q + 1
                                                  : q0,
                                           same   ? p + 1
                                           : more ? p0
                                                  : p1,
                                           nr, inner * b.nk1 * pairs);
                }
                /* end: FAR */
/* The panel and the tile with constants for rows and columns. */
#define MD_HALF_RUN(ROWS)                                                                          \
    md_tile_rows_half(ROWS, vectors, xt + (at * k2 + at1 * k1) * (across ? (ROWS) : 1),            \
                      taken && !span ? (int64_t)MD_TILE_HIGH1 : u.rm, r1, row_step,                \
                      across ? k1 * (ROWS) : k1, across ? k2 * (ROWS) : k2,                        \
                      panel + at1 * (pairs * width + gap) + at * width, width, gap, runs, count,   \
                      st, ld, room ? MD_LANES_F32 : last, begins, lone, ask, far)
#define MD_HALF_PANEL(COLS)                                                                        \
    {                                                                                              \
        const int64_t vectors = ((COLS) + MD_LANES_F32 - 1) / MD_LANES_F32;                        \
        const int64_t last = (COLS) - (vectors - 1) * MD_LANES_F32;                                \
        const int64_t width = held || kept ? nr : vectors * MD_LANES_F32;                          \
        if (!kept && (held ? i : j) == 0) {                                                        \
            md_tile_lanes(s, panel, width, vectors *MD_LANES_F32, yp, s->k1.y, s->k2.y, s->cols.y, \
                          b.nk1, b.nk2, (COLS), y_wide);                                           \
        }                                                                                          \
        const int all = u.big == u.little || rows == u.big;                                        \
        if (count > 0 && all) { /* at a border there may be nothing to add */                      \
            MD_HALF_RUN(u.big);                                                                    \
        } else if (count > 0) {                                                                    \
            MD_HALF_RUN(u.little);                                                                 \
        }                                                                                          \
    }
                if (s->cols.n % nr == 0 || p * nr + nr <= s->cols.n) {
                    MD_HALF_PANEL(nr)
                } else {
                    MD_HALF_PANEL(s->cols.n % nr)
                }
                /* if: ENDS */
                if (s->is & MD_TILE_ENDS) {
                    const md_tile_ask *of = (const md_tile_ask *)ask;
                    ((md_tile_epi_f32)of->ends)((void *)of->of, of->batch, row, rows, p * nr,
                                                md_tile_min(nr, s->cols.n - p * nr), st, ld);
                }
                /* end: ENDS */
#undef MD_HALF_RUN
#undef MD_HALF_PANEL
            }
        }
    }
}

#endif
