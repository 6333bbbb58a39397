/* merge: a loop over stacks that another loop makes, as part of that loop.
 *
 * Needs a region without marks; gives one where the updates of weights in `repeat` stand in the
 * reversed loop that makes their gradients, so that no stack holds all of these. Changes no
 * values. */
#ifndef MDLC_PASSES_MERGE_H
#define MDLC_PASSES_MERGE_H

#include "compiler/graph.h"

bool merge_applies(const Region *region);
/* `awaited`, by result: nothing may be written before it is known; NULL: there is no such. */
Region *pass_merge(Graph *g, const Region *region, const bool *awaited);
/* The loop `guest` of the region alone; NULL: it does not fit. */
Region *pass_merge_one(Graph *g, const Region *region, const Node *guest);

#endif
