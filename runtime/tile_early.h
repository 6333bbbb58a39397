/* SPDX-License-Identifier: 0BSD */
/* tile_early: what a product (tile_kernel.h) packs or reads next is asked for while register tiles
 * multiply, a part in front of each: the panel behind the one that is multiplied, which is packed
 * far faster than memory gives what it is made of; and where steps of X lie far apart, X of the
 * next block of the sum. It goes to the second-level cache. Gives md_tile_early. */
#ifndef MD_TILE_EARLY_H
#define MD_TILE_EARLY_H

#include "runtime/tile.h"

/* if: EARLY */
#if MD_VBYTES > 0
/* Asks for runs `run` to `end` of `count` elements; run i * n + j begins i * far + j * near
 * elements behind `at`. */
MD_FN void md_tile_early_runs(const void *at, int64_t elem, int64_t n, int64_t far, int64_t near,
                              int64_t count, int64_t run, int64_t end) {
    for (; run < end; run++) {
        uintptr_t line = (uintptr_t)at + (size_t)((run / n * far + run % n * near) * elem);
        const uintptr_t behind = line + (size_t)(count * elem);
        for (line -= line % 64; line < behind; line += 64) {
            MD_FETCH(line);
        }
    }
}
#endif

/* In front of the i-th of `tiles` register tiles of panel p, of p0 to p1, of block q of the sum, of
 * q0 to q1. x: the first of the rows of these tiles. */
MD_NOINLINE void md_tile_early(const md_tile *s, const void *x, const void *y, int64_t nr,
                               int64_t rows, int64_t i, int64_t tiles, int64_t p, int64_t p0,
                               int64_t p1, int64_t q, int64_t q0, int64_t q1) {
#if MD_VBYTES > 0
    const int more = q + 1 < q1;
    if (md_tile_early_x(s) && more) {
        const md_tile_sums b = md_tile_sums_of(s, q + 1);
        const int64_t begun = (p - p0) * tiles + i, all = (p1 - p0) * tiles;
        md_tile_early_runs((const char *)x + b.x * s->elem, s->elem, b.nk2, s->k1.x, s->k2.x, rows,
                           md_split(b.nk1 * b.nk2, begun, all),
                           md_split(b.nk1 * b.nk2, begun + 1, all));
    }
    /* The next panel; that of the next block of the sum; of the next block of columns. */
    const int64_t next = p + 1 == p1 && more ? p0 : p + 1;
    const md_tile_sums b = md_tile_sums_of(s, p + 1 < p1 ? q : more ? q + 1 : q0);
    const int64_t cols = md_tile_min(nr, s->cols.n - next * nr);
    if (md_tile_early_y(s) && cols > 0) {
        const int turned = s->cols.y != 1;
        const int64_t n = turned ? cols : b.nk2;
        md_tile_early_runs((const char *)y + (b.y + next * nr * s->cols.y) * s->elem, s->elem, n,
                           s->k1.y, turned ? s->cols.y : s->k2.y, turned ? b.nk2 : cols,
                           md_split(b.nk1 * n, i, tiles), md_split(b.nk1 * n, i + 1, tiles));
    }
#else
    (void)s, (void)x, (void)y, (void)nr, (void)rows, (void)i, (void)tiles, (void)p, (void)p0;
    (void)p1, (void)q, (void)q0, (void)q1;
#endif
}
/* end: EARLY */

#endif
