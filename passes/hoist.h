/* hoist: loop-invariant work out of loop bodies. See hoist.c. */
#ifndef MDLC_PASSES_HOIST_H
#define MDLC_PASSES_HOIST_H

#include "compiler/graph.h"

/* Needs a region at STAGE_GRAD or later; gives one where folds and calls that depend on invariants
 * alone, and elementwise work on them that is no larger than what it reads, stand in front of the
 * loop; changes no values. */
Region *pass_hoist(Graph *g, const Region *region);
bool hoist_applies(const Region *region); /* it holds loops */

#endif
