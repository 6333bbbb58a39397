/* view: VIEW nodes as index maps. */
#ifndef MDLC_PASSES_VIEW_H
#define MDLC_PASSES_VIEW_H

#include "compiler/kernel.h"

/* Where element `at` of the result of VIEW node `node` is read in its operand: in[rank of operand].
 * Gives the condition under which it is read at all (NULL: always); else it is the border value. */
const Expr *view_index(Kernel *k, const Node *node, const Index *const *at, const Index **in);
/* The first operand behind a chain of views (`node` itself when it is none). */
const Node *view_base(const Node *node);
/* Are windows behind a chain of views, more than one? */
bool view_has_window(const Node *node);
/* Digits of `flat` in the mixed radix dim[0..rank): its position as an index vector. */
void index_unflatten(IndexTable *t, const Index *flat, int rank, const int64_t *dim,
                     const Index **at);
const Index *index_flatten(IndexTable *t, int rank, const int64_t *dim, const Index *const *at);

#endif
