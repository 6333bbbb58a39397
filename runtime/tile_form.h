/* SPDX-License-Identifier: 0BSD */
/* tile_form: products whose plan stands in another file. A C compiler makes a product for the
 * numbers of its plan (tile.h); a change of the batch would have it make all of them again. So in a
 * program of several files a product has a form: its plan, in which numbers that follow from how
 * long the outermost axis is are MD_TILE_READ, and where the whole plan is (md_tile_apart). To a C
 * compiler all others are constants as before. Needs tile.h. */
#ifndef MD_TILE_FORM_H
#define MD_TILE_FORM_H

#include "runtime/tile.h"

/* if: FORMS */
/* What it is on this machine: vectors of 64 bytes, of 32, of 16 with 32 registers and with 16. */
#if MD_VBYTES == 64
#define MD_TILE_ON(most, wide, many, few) (most)
#elif MD_VBYTES == 32 && !MD_TILE_MANY
#define MD_TILE_ON(most, wide, many, few) (wide)
#elif MD_VBYTES == 16 && MD_TILE_MANY
#define MD_TILE_ON(most, wide, many, few) (many)
#else
#define MD_TILE_ON(most, wide, many, few) (few)
#endif

/* MD_TILE_ROWS2 with the rows of register tiles. */
#define MD_TILE_ROWS_IN(big, little, n1, x1, c1, n, x, c)                                          \
    MD_TILE_AXIS(n1, x1, big, c1), MD_TILE_AXIS(n, x, little, c)

/* One call for each number of vectors, which is a constant in it. */
#define MD_TILE_SOME(pick, rows, nv, ...)                                                          \
    if ((nv) == 1) {                                                                               \
        pick(rows, 1)(__VA_ARGS__);                                                                \
    } else if ((nv) == 2) {                                                                        \
        pick(rows, 2)(__VA_ARGS__);                                                                \
    } else if ((nv) == 3) {                                                                        \
        pick(rows, 3)(__VA_ARGS__);                                                                \
    } else {                                                                                       \
        pick(rows, 4)(__VA_ARGS__);                                                                \
    }
/* end: FORMS */

#endif
