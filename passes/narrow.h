/* narrow: contractions with few results for each long column become column sums. See narrow.c. */
#ifndef MDLC_PASSES_NARROW_H
#define MDLC_PASSES_NARROW_H

#include "compiler/graph.h"

/* Needs a region at STAGE_OPTIMISED to which no rule of simplify applies any more; gives one of
 * that stage; changes values by rounding alone. */
Region *pass_narrow(Graph *g, const Region *region);
bool narrow_applies(const Region *region); /* it holds such a contraction */

#endif
