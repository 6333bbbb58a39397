/* access: `x[...]` as views: slices, flips, windows, paddings, diagonals, gathers. */
#ifndef MDLC_LANG_ACCESS_H
#define MDLC_LANG_ACCESS_H

#include "lang/notation.h"

/* An index expression c + sum coef * index + loop_coef * (loop index). */
typedef struct {
    Index *ix;
    int64_t coef;
} Term;
typedef struct {
    int64_t c;
    int n;
    Term term[MD_RANK];
    const LoopScope *loop;
    int64_t loop_coef;
} Affine;

/* False: data-dependent (or an error, which evaluating it will report). */
bool access_affine(Elab *e, const Ast *ast, Affine *out);
/* Does the expression use an index of the notation at hand? */
bool access_uses_index(Elab *e, const Ast *ast);
/* The value of an object or an index-free subexpression, evaluated once a statement. */
const Value *access_object(Elab *e, const Ast *ast);
const Value *access_eval(Elab *e, const Ast *indexed);

#endif
