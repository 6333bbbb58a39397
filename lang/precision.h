/* precision: what the `precision` clauses of trains ask for. */
#ifndef MDLC_LANG_PRECISION_H
#define MDLC_LANG_PRECISION_H

#include "lang/context.h"

/* What the build computes in: --precision, or else what the first train says that names f32 or
 * f64. */
Elem precision_of_build(const Compile *c, const Ast *file);
/* Notes whose parameters are kept in bf16; before any is made. */
void precision_start(Elab *e);
void precision_clause(Elab *e, const Ast *clause);
/* What a parameter is stored as that the text declares as `elem`. */
Elem precision_stored(const Elab *e, const char *path, Elem elem);
/* The next value of a parameter, inside of the optimizer that made it: where it is stored in bf16,
 * one of its neighbours there by a draw of its own. */
Node *precision_next(Elab *e, const Parameter *p, Node *next);

#endif
