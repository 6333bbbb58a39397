/* arith: elementwise arithmetic on values. */
#ifndef MDLC_LANG_ARITH_H
#define MDLC_LANG_ARITH_H

#include "lang/context.h"

const Value *arith_binary(Elab *e, Loc loc, AstOp op, const Value *a, const Value *b);
const Value *arith_unary(Elab *e, Loc loc, AstOp op, const Value *a);
/* a * b + c, by whose rules it is checked; of floats one operation. */
const Value *arith_fma(Elab *e, Loc loc, const Value *a, const Value *b, const Value *c);
const Value *arith_select(Elab *e, Loc loc, const Value *c, const Value *a, const Value *b);
const Value *arith_minmax(Elab *e, Loc loc, bool max, const Value *a, const Value *b);
/* A one-operand map of floats, with its compile-time counterpart. */
const Value *arith_map(Elab *e, Loc loc, const char *name, OpCode op, double (*number)(double),
                       const Value *a);
/* The same of two operands. */
const Value *arith_map2(Elab *e, Loc loc, const char *name, OpCode op,
                        double (*number)(double, double), const Value *a, const Value *b);
const Value *arith_cast(Elab *e, Loc loc, Elem elem, const Value *a);
/* What values of a type are added and multiplied in: integers of fewer bits than i32 in that, u32
 * in i64; and such a value in that type. */
Elem arith_computed(Elem elem);
const Value *arith_widened(Elab *e, Loc loc, const Value *v);
/* div(a, b) and a % b; compile-time or run-time integers. */
const Value *arith_divide(Elab *e, Loc loc, bool remainder, const Value *a, const Value *b);

/* A number or bool as a scalar tensor of that element type; tensors as they are. */
const Value *arith_tensor(Elab *e, Loc loc, const Value *v, Elem elem);
/* A compile-time value as a tensor of its own kind: i32, the build's float, or bool. */
const Value *arith_lift(Elab *e, Loc loc, const Value *v);
/* The node of v with axes span[nspan] (a superset of v's, in that order) and then the axes
 * dim[rank] (v's own, or v is a scalar). */
Node *arith_spread(Elab *e, const Value *v, Index *const *span, int nspan, int rank,
                   const Dim *dim);
/* The union of spans and shapes. False after an error. */
bool arith_join(Elab *e, Loc loc, const Value *const *v, int n, Value *like);
/* One MAP node over joined operands of settled element types. */
const Value *arith_node(Elab *e, Loc loc, OpCode op, const Value *const *v, int n);

/* The integer towards zero; an error where it is none of 64 bits. */
const Value *arith_truncate(Elab *e, Loc loc, double x);

#endif
