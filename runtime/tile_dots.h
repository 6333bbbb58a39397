/* SPDX-License-Identifier: 0BSD */
/* tile_dots: products of up to four rows whose vectors run along the sum (tile_kernel.h), so that
 * columns times rows are so many sums. Columns go side by side, a vector of each: of one row eight,
 * of more four.
 *
 * Eight columns of one row whose sum is 1 KiB or longer go one behind the other, sixteen vectors at
 * a time with those of the row in registers: a second-level cache gives half as much again where
 * line follows line, and each sum still adds its terms in the same order. Words of the template
 * stand where it has them. Gives what MD_DOT_BODY is called with. */
#ifndef MD_TILE_DOTS_H
#define MD_TILE_DOTS_H

/* if: DOTS */
#define MD_DOT_PUT(r, v) part[v][r] = c##r##_##v;
#define MD_DOT_ROWS1 MD_DOT_ROW(0)
#define MD_DOT_MAC1(r) MD_MACS1(MD_DOT_VEC, r)
#define MD_DOT_PUT1(r) MD_DOT_PUT(r, 0)
#define MD_DOT_ROWS2 MD_DOT_ROWS1 MD_DOT_ROW(1)
#define MD_DOT_MAC2(r) MD_MACS2(MD_DOT_VEC, r)
#define MD_DOT_PUT2(r) MD_DOT_PUT1(r) MD_DOT_PUT(r, 1)
#define MD_DOT_ROWS3 MD_DOT_ROWS2 MD_DOT_ROW(2)
#define MD_DOT_MAC3(r) MD_MACS3(MD_DOT_VEC, r)
#define MD_DOT_PUT3(r) MD_DOT_PUT2(r) MD_DOT_PUT(r, 2)
#define MD_DOT_ROWS4 MD_DOT_ROWS3 MD_DOT_ROW(3)
#define MD_DOT_MAC4(r) MD_MACS4(MD_DOT_VEC, r)
#define MD_DOT_PUT4(r) MD_DOT_PUT3(r) MD_DOT_PUT(r, 3)

/* Behind MD_TN(fold), whose last steps bring 16 bytes together: the other steps, and the end. */
#define MD_DOT_END(R, C, REAL, ELEM, LANES, MAD)                                                   \
    REAL sum[R * C];                                                                               \
    /* if: DOTS_LONG */                                                                            \
    MD_UNROLL(16)                                                                                  \
    /* end: DOTS_LONG */                                                                           \
    for (int64_t at = 0; at < R * C; at++) {                                                       \
        const int64_t l = at % LANES, four = MD_VBYTES / 16;                                       \
        const int64_t place = at - l + l % four * (16 / ELEM) + l / four;                          \
        memcpy(sum + at, (const REAL *)(const void *)part + place, sizeof *sum);                   \
    }                                                                                              \
    /* if: DOTS_LONG */                                                                            \
    if (R == 1 && first && col + C <= cols && nk2 % LANES == 0) {                                  \
        memcpy(strip + col, sum, sizeof sum);                                                      \
        continue;                                                                                  \
    }                                                                                              \
    /* end: DOTS_LONG */                                                                           \
    for (int64_t at = 0; at < R * C; at++) {                                                       \
        const int64_t r = at / C, c = col + at % C, rest = nk2 % LANES;                            \
        for (int64_t i = 0; i < nk1 && c < cols && rest > 0; i++) {                                \
            for (int64_t j = nk2 - rest; j < nk2; j++) {                                           \
                sum[at] = MAD(x[r * xr2 + i * xk1 + j], y[c * yc + i * yk1 + j], sum[at]);         \
            }                                                                                      \
        }                                                                                          \
        REAL *to = c < cols ? strip + r * ld + c : sum + at;                                       \
        *to = first || c >= cols ? sum[at] : *to + sum[at];                                        \
    }
/* end: DOTS */

/* if: DOTS_LONG */
#define MD_DOT_HELD4(a, b, c, d) MD_DOT_HELD(a) MD_DOT_HELD(b) MD_DOT_HELD(c) MD_DOT_HELD(d)
#define MD_DOT_STEP4(r, a, b, c, d)                                                                \
    MD_DOT_STEP(r, a) MD_DOT_STEP(r, b) MD_DOT_STEP(r, c) MD_DOT_STEP(r, d)
#define MD_DOT_COLUMN(r)                                                                           \
    MD_DOT_STEP4(r, 0, 1, 2, 3) MD_DOT_STEP4(r, 4, 5, 6, 7)                                        \
    MD_DOT_STEP4(r, 8, 9, 10, 11) MD_DOT_STEP4(r, 12, 13, 14, 15)
#define MD_DOT_PIECES(LANES)                                                                       \
    for (; j + 16 * LANES <= nk2; j += 16 * LANES) {                                               \
        MD_DOT_HELD4(0, 1, 2, 3) MD_DOT_HELD4(4, 5, 6, 7)                                          \
        MD_DOT_HELD4(8, 9, 10, 11) MD_DOT_HELD4(12, 13, 14, 15) MD_ROWS8(MD_DOT_COLUMN)            \
    }
/* end: DOTS_LONG */

#endif
