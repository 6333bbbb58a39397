/* eval_scalar: the value of one elementwise op on constants, for the builder's folding. */
#ifndef MDLC_COMPILER_EVAL_SCALAR_H
#define MDLC_COMPILER_EVAL_SCALAR_H

#include "compiler/graph.h"

/* The value of a MAP over CONST scalars `in` (as many as the op takes), by the evaluator's rules
 * and rounded to the element type of `out`: in *value for a float or bool, in *ivalue for an
 * integer. False when `op` is no elementwise op or an operand is no constant. */
bool eval_scalar(OpCode op, Type out, const Attr *attr, const Node *const *in, double *value,
                 int64_t *ivalue);

#endif
