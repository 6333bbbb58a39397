/* repeats: products over windows of repeated places read each of them once. See repeats.c. */
#ifndef MDLC_PASSES_REPEATS_H
#define MDLC_PASSES_REPEATS_H

#include "compiler/graph.h"

extern const int64_t repeats_least; /* multiplications of a product that is worth it */

/* Needs a region at STAGE_BUILT; gives one of that stage; changes values by rounding alone.
 * Products of fewer than `least` multiplications stay as they are. */
Region *pass_repeats(Graph *g, const Region *region, int64_t least);
bool repeats_applies(const Region *region); /* it holds such a product, by repeats_least */

#endif
