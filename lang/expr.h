/* expr: expressions to values. */
#ifndef MDLC_LANG_EXPR_H
#define MDLC_LANG_EXPR_H

#include "lang/context.h"

const Value *elab_expr(Elab *e, const Ast *ast);
/* Compile-time integer, bool or number; false after an error. `what` names it in messages. */
bool elab_int(Elab *e, const Ast *ast, const char *what, int64_t *out);
/* v, or poison and an error if it is several results. `ast` is the expression that gave it. */
const Value *elab_single(Elab *e, const Ast *ast, const Value *v);
bool elab_condition(Elab *e, const Ast *ast, bool *out);
/* A list of extents as written in a call: `[B, 64]` or shape(x). */
bool elab_shape(Elab *e, const Value *v, Loc loc, int *rank, Dim *dim);
/* The elements of a tensor, in order, in another shape; poison and an error if it has others. */
const Value *elab_reshape(Elab *e, Loc loc, const Value *v, int rank, Dim *dim);
const Value *elab_name(Elab *e, const Ast *ast);
/* The error, with the nearest name in scope. */
const Value *elab_unknown_name(Elab *e, const char *name, Loc loc);
/* The dotted path of a NAME or DOT chain, or NULL. */
const char *elab_path(Elab *e, const Ast *ast);

#endif
