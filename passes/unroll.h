/* unroll: loops of two turns whose sums begin with zeros, turn by turn. */
#ifndef MDLC_PASSES_UNROLL_H
#define MDLC_PASSES_UNROLL_H

#include "compiler/graph.h"

/* Needs a region without marks; gives one in which such loops are no loops. Changes no values but
 * the sign of zeros. */
Region *pass_unroll(Graph *g, const Region *region);
bool unroll_applies(const Region *region);

#endif
