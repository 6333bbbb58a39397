/* fma: products and sums that become one multiply-add. See fma.c. */
#ifndef MDLC_PASSES_FMA_H
#define MDLC_PASSES_FMA_H

#include "compiler/graph.h"

/* Needs a region at STAGE_OPTIMISED that no other pass will change; gives one of that stage;
 * changes values by rounding alone. */
Region *pass_fma(Graph *g, const Region *region);

#endif
