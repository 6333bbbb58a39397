/* band: products of which only places near a diagonal count, as those of causal attention. */
#ifndef MDLC_PASSES_LOWER_BAND_H
#define MDLC_PASSES_LOWER_BAND_H

#include "compiler/graph.h"

/* Of the labels of a CONTRACT two, and what lies between their places: nothing outside of
 * from <= by[0] * at[first] + by[1] * at[second] < until counts. `second` is summed, and the terms
 * there are zero, or both are axes of the result, and nobody reads it there. by: -1 and 1 of a
 * diagonal; both above 0 of windows with a border of zeros. */
typedef struct {
    bool known;
    int first, second;
    int64_t by[2];
    int64_t from, until; /* BAND_OPEN: without an end on that side, with its sign */
} Band;

#define BAND_OPEN (INT64_MAX / 4)

/* Who reads each node, of the regions that were asked for. */
typedef struct Readers Readers;
Readers *readers_new(Arena *arena);

/* Of a diagonal. Finite values are taken for granted: a term that is zero by the places of its
 * factors is zero, whatever the other factor holds. Needs a finished graph; never `known` where
 * nothing is saved. */
Band product_band(const Node *node, Readers *readers);
/* The part of `count` operations, as many for each place of first x second, that lies in it; all
 * where the band is not known. `extent`: of each label. */
int64_t band_part(const Band *band, const int64_t *extent, int64_t count);

#endif
