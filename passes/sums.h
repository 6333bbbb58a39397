/* sums: sums over the iterations of a loop are sums of its stacks, or keep what rounding drops. See
 * sums.c. */
#ifndef MDLC_PASSES_SUMS_H
#define MDLC_PASSES_SUMS_H

#include "compiler/graph.h"

/* Needs a region at STAGE_OPTIMISED to which no rule of simplify applies any more; gives one of
 * that stage; changes values by rounding alone. */
Region *pass_sums(Graph *g, const Region *region);
bool sums_applies(const Region *region); /* it holds such a loop */

/* What `sum`, the next value of a carry of floats, adds to it; NULL where it is no such sum, or the
 * carry is part of the term. */
Node *sums_term(const Node *sum, const Node *carry);

#endif
