/* fold: sums, means and the like, over indices or whole axes; products under a sum. */
#ifndef MDLC_LANG_FOLD_H
#define MDLC_LANG_FOLD_H

#include "lang/context.h"

/* `name[indices] body` with the indices already in scope. */
const Value *fold_indices(Elab *e, const char *name, const Ast *body, Index *const *ix, int n,
                          Loc loc);
/* The sum over ix of the product of scalars with these and other indices. */
const Value *fold_product(Elab *e, const Value *const *v, int nv, Index *const *ix, int n, Loc loc);
/* `name(x, axis = ...)`: a mask of x's own axes. */
const Value *fold_axes(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc);
/* v without the node axes in `axes`, of which `node` has none. */
Value *fold_left(Elab *e, const Value *v, uint32_t axes, Node *node);
bool fold_is_name(const char *name);

#endif
