/* order: sorting, as operations of the graph. */
#ifndef MDLC_COMPILER_ORDER_H
#define MDLC_COMPILER_ORDER_H

#include "compiler/graph.h"

/* The places of x's elements along an axis, those of the first `most` in order: i32, of x's shape
 * but for that extent. Equal elements stay as they stand, NaN comes last, either way round. */
Node *node_order(Graph *g, Node *x, int axis, bool descending, int64_t most);
/* x at such places: what it holds there, in that order. */
Node *node_along(Graph *g, Node *x, Node *place, int axis);

#endif
