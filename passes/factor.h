/* factor: sums of loops whose terms differ by what is the same in every turn, as one sum. */
#ifndef MDLC_PASSES_FACTOR_H
#define MDLC_PASSES_FACTOR_H

#include "compiler/graph.h"

/* Needs a region without marks; gives one in which carries that add up q * a and q * b, with a and
 * b the same in every turn, are one that adds up q, multiplied by a and by b behind the loop.
 * Values change by roundings. */
Region *pass_factor(Graph *g, const Region *region);
/* Are there loops with two carries that start from zeros? */
bool factor_applies(const Region *region);

#endif
