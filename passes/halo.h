/* halo: what products read lies at plain strides: borders become padded copies, sums over
 * overlapping windows of a product become a product over windows. */
#ifndef MDLC_PASSES_HALO_H
#define MDLC_PASSES_HALO_H

#include "compiler/graph.h"

/* Needs a region at STAGE_OPTIMISED; gives one with the same values beyond the order of sums. */
Region *pass_halo(Graph *g, const Region *region);
/* It has something to do there. */
bool halo_applies(const Region *region);

/* A CONTRACT whose operand number `k` is worth a copy without borders: so many results are made of
 * each of its elements that the loops around them vectorise as a tile, or vectors run along the
 * channels that both operands have. */
bool halo_is_worth(const Node *contract, int k);
/* The first of these reasons: it is an operand of a tile. */
bool halo_is_tiled(const Node *contract, int k);
/* Is operand `k` a few numbers seen with the channels last that both operands have, in the order in
 * which the other one has the sum, or with a border? They are worth a copy as they are seen. */
bool halo_turns(const Node *contract, int k);
/* Is operand `k` as it is seen worth a copy beside what it is a view of: an image with its channels
 * last that is multiplied in the order of the model, as a sum or as rows of a gradient? */
bool halo_orders(const Node *contract, int k);

#endif
