/* SPDX-License-Identifier: 0BSD */
/* tile_band: products of which only places near a diagonal count, or beside a border of zeros
 * (tile.h, `band`): which steps of the sum a register tile has, and none where nobody reads what it
 * would make. All else is zero: what is left out of a sum are terms that are zero, so its bits
 * stay. */
#ifndef MD_TILE_BAND_H
#define MD_TILE_BAND_H

#include "runtime/tile.h"

/* if: BANDED */
/* Of steps k0 .. k1 of the sum those that the tile of `rows` from `row` and `cols` columns from
 * `col` has. */
MD_INLINE void md_tile_band_steps(const md_tile *s, int64_t row, int64_t rows, int64_t col,
                                  int64_t cols, int64_t *k0, int64_t *k1) {
    const int by_columns = s->band == MD_BAND_COLUMN_SUM;
    const int64_t first = by_columns ? col : row, last = first + (by_columns ? cols : rows) - 1;
    if (s->band == MD_BAND_ROW_COLUMN) {
        const int out = col >= last + s->until || col + cols <= first + s->from;
        *k1 = out ? *k0 : *k1;
    } else if (s->band != MD_BAND_NONE) {
        *k0 = first + s->from > *k0 ? first + s->from : *k0;
        *k1 = md_tile_min(*k1, last + s->until);
    }
}

/* Is it so far from the band that nobody reads it? */
MD_INLINE int md_tile_band_unread(const md_tile *s, int64_t row, int64_t rows, int64_t col,
                                  int64_t cols) {
    return ((s->is & MD_TILE_AHEAD_UNREAD) &&
            col - (row + rows - 1) >= s->until + MD_TILE_UNREAD) ||
           ((s->is & MD_TILE_BEHIND_UNREAD) && row - (col + cols - 1) >= MD_TILE_UNREAD - s->from);
}

/* What a tile does in block `b` of those from q0 to q1: `at` .. `at + count` of its steps of k2,
 * `at1` .. `at1 + runs` of those of k1, as the `first` that it has. */
typedef struct {
    int64_t at, count, at1, runs;
    int first, none; /* none: of all these blocks it has no step, and this is the first block; C is
                        to be 0 */
} md_tile_turn;

/* At which steps of k0 or k1 the rows of a tile, or the elements of the batch at `place`, are read
 * inside of the border. */
MD_INLINE void md_tile_border_steps(const md_tile *s, int64_t row, int64_t rows, int64_t place,
                                    int64_t *begin, int64_t *end) {
    const int outer = s->band == MD_BAND_ROW_STEP0, batch = s->band >= MD_BAND_BATCH1_STEP1;
    const int first_batch = s->band == MD_BAND_BATCH1_STEP1;
    const md_tile_axis along = !batch ? s->r1 : first_batch ? s->b1 : s->b2;
    const md_tile_axis step = outer ? s->k0 : s->k1;
    const int64_t by = along.x != 0 ? along.x : along.y, up = along.x != 0 ? step.x : step.y;
    const int64_t first = batch ? place : row / s->r2.n;
    const int64_t last = batch ? place : (row + rows - 1) / s->r2.n;
    const int64_t from = s->from - last * by + up - 1, until = s->until - first * by + up - 1;
    *begin = from > 0 ? from / up : 0;
    *end = md_tile_min(until > 0 ? until / up : 0, outer ? s->k0.n : s->k1.n);
}

/* The place on that axis of the batch; 0: it is none. */
MD_INLINE int64_t md_tile_border_place(const md_tile *s, int64_t i1, int64_t i2) {
    return s->band == MD_BAND_BATCH1_STEP1 ? i1 : s->band == MD_BAND_BATCH2_STEP1 ? i2 : 0;
}

MD_INLINE md_tile_turn md_tile_turn_of(const md_tile *s, md_tile_sums b, int64_t q, int64_t q0,
                                       int64_t q1, int add, int64_t row, int64_t rows, int64_t col,
                                       int64_t width, int64_t place) {
    const int64_t cols = md_tile_min(width, s->cols.n - col);
    md_tile_turn t = {0, b.nk2, 0, b.nk1, q == q0 && !add, 0};
    /* if: LISTED */
    const int64_t line = md_tile_line(s), tap = line * s->k2.n; /* steps of one of k1 */
    if (s->is & MD_TILE_LISTED) { /* by lines, or all steps behind one another */
        t.count = line > 1 ? tap * s->k1.n : b.nk1 * b.nk2;
        t.runs = b.nk1 * b.nk2 / t.count;
    }
    if (line > 1 && s->band >= MD_BAND_ROW_STEP1) {
        int64_t begin, end;
        md_tile_border_steps(s, row, rows, place, &begin, &end);
        t.none = t.first && begin >= end;
        t.at = begin * tap;
        t.count = (end - begin) * tap;
        return t;
    }
    /* end: LISTED */
    if (s->band >= MD_BAND_ROW_STEP0) {
        int64_t begin, end;
        md_tile_border_steps(s, row, rows, place, &begin, &end);
        t.none = t.first && begin >= end;
        if (s->band == MD_BAND_ROW_STEP0) {
            t.first = b.i0 == begin && b.i1 == 0 && b.i2 == 0 && !add;
            t.count = b.i0 >= begin && b.i0 < end ? b.nk2 : 0;
        } else {
            t.at1 = begin;
            t.runs = end - begin;
            t.count = begin < end ? b.nk2 : 0;
        }
    } else if (s->band != MD_BAND_NONE) {
        const int64_t begin = q0 * s->kb2;
        int64_t from = begin, end = md_tile_min(q1 * s->kb2, s->k2.n);
        md_tile_band_steps(s, row, rows, col, cols, &from, &end);
        t.none = q == q0 && from >= end && !add && !md_tile_band_unread(s, row, rows, col, cols);
        t.first = from >= b.i2 && !add;
        t.at = from > b.i2 ? from - b.i2 : 0;
        t.count = md_tile_min(end - b.i2, b.nk2) - t.at;
    }
    return t;
}

/* The same where all blocks q0 .. q1, elements of k0, are one: of these those from at1. */
MD_INLINE md_tile_turn md_tile_turn_joined(const md_tile *s, int64_t q0, int64_t q1, int add,
                                           int64_t row, int64_t rows) {
    int64_t begin = q0, end = q1;
    if (s->band == MD_BAND_ROW_STEP0) {
        md_tile_border_steps(s, row, rows, 0, &begin, &end);
    }
    const int first = begin >= q0 && !add;
    begin = begin > q0 ? begin : q0;
    end = md_tile_min(end, q1);
    const md_tile_turn t = {0, 0, begin - q0, end - begin, first, first && begin >= end};
    return t;
}

/* Nothing was added up: the rows of a tile are zero. */
MD_INLINE void md_tile_clear(void *to, int64_t pitch, int64_t rows, int64_t bytes) {
    for (int64_t r = 0; r < rows; r++) {
        memset((char *)to + r * pitch, 0, (size_t)bytes);
    }
}
/* end: BANDED */

#endif
