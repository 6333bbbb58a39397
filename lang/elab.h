/* elab: from a checked-by-grammar-only tree to the module: graph regions, slots, entries, data
 * sets. */
#ifndef MDLC_LANG_ELAB_H
#define MDLC_LANG_ELAB_H

#include "compiler/graph.h"
#include "lang/ast.h"

/* Needs the tree of the root file; gives the module, or NULL, or a partial one after errors (see
 * c->diag.errors). Regions and nodes live in `nodes`, everything else in `arena`. */
Module *elaborate(Compile *c, Arena *arena, Arena *nodes, const Ast *file);

#endif
