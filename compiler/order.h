/* order: sorting: the operation ORDER along any axis, and the same as other operations. */
#ifndef MDLC_COMPILER_ORDER_H
#define MDLC_COMPILER_ORDER_H

#include "compiler/graph.h"

/* The most elements that a line may have: places are i32. */
#define ORDER_MOST INT32_MAX

/* The places of x's elements along an axis, those of the first `most` in order: i32, of x's shape
 * but for that extent. Equal elements stay as they stand, NaN comes last, either way round. */
Node *node_order(Graph *g, Node *x, int axis, bool descending, int64_t most);
/* What an ORDER is, of new operand x, as operations that every target has. */
Node *order_spelled(Graph *g, const Node *order, Node *x);
/* x at such places: what it holds there, in that order. */
Node *node_along(Graph *g, Node *x, Node *place, int axis);

#endif
