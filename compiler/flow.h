/* flow: what a derivative of a value flows back to, through loop bodies that are open or closed. */
#ifndef MDLC_COMPILER_FLOW_H
#define MDLC_COMPILER_FLOW_H

#include "compiler/graph.h"

typedef struct Flow Flow;

/* Of `value`, which lies in the region that is being built or in one around it. */
const Flow *flow_of(Arena *arena, const Node *value);

/* Whether the derivative of the value by `point` is more than zero by its structure. A body
 * parameter that stands for a value of the region around is that value. */
bool flow_has(const Flow *flow, const Node *point);

/* A GRAD among what the value is made of whose derivative by `point` means nothing, or NULL.
 *
 * dL/dx is a function of x, and of no value y that lies between x and L: such a y changes with x
 * alone. Its formula may read y or not (of x/x it is 1/x - y/x as well as 1/x - x/x^2), so what
 * it would change with y depends on how the rules are written and on what loops save. */
const Node *flow_ambiguous(Arena *arena, const Flow *flow, const Node *point);

#endif
