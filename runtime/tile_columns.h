/* SPDX-License-Identifier: 0BSD */
/* tile_columns: which columns of C an epilogue is given, where that follows from the plan alone,
 * on any machine and for any number of threads: in its text they are constants. Runs in the
 * compiler. */
#ifndef MD_TILE_COLUMNS_H
#define MD_TILE_COLUMNS_H

#include "runtime/tile.h"

/* Columns of C where they are so few that every block has all of them, row behind row; else 0. Up
 * to six rows are one register tile on any machine. */
MD_FN int64_t md_tile_narrow(const md_tile *s) {
    int64_t pitch = s->is & MD_TILE_IN_PLACE ? s->cols.c : s->block_rows;
    const int one = !(s->is & MD_TILE_ALONG) && s->r1.n == 1 && s->r2.n <= 6;
    const int narrow = md_tile_turns(s) && one && pitch == s->r2.n;
    return narrow ? s->r2.n : 0;
}

/* How many columns C has where every block has all of them, as those of one panel; 0: that is not
 * known, as where tiles end by themselves, whose panels are narrower on some machines. */
MD_FN int64_t md_tile_columns(const md_tile *s) {
    const int64_t other =
        MD_TILE_SWAPPED | MD_TILE_ALONG | MD_TILE_DOTS | MD_TILE_WINOGRAD | MD_TILE_ENDS;
    const int64_t panel = s->wide * (64 / s->elem);
    return !(s->is & other) && !md_tile_turns(s) && s->cols.n <= panel ? s->cols.n : 0;
}

#endif
