/* needed: the multiplications and additions that a product asks for. */
#ifndef MDLC_PASSES_LOWER_NEEDED_H
#define MDLC_PASSES_LOWER_NEEDED_H

#include "passes/lower/band.h"

/* FLOPs of CONTRACT `node` over the whole space of its labels, a multiply-add as two. */
int64_t product_flops_all(const Node *node);
/* The same without terms that are zero because an operand is the border of a window or a pad of
 * zeros there: what the mathematics needs. Never more than all. */
int64_t product_flops_needed(const Node *node);

/* Where such terms are windows of an operand: of each of these axes its places (`first`, in the
 * result) and taps, or taps and places (of the gradient of weights). Gives how many. */
enum { BORDERS_MOST = 6 };
int product_borders(const Node *node, Band *list);

#endif
