/* sparse: is a sum into rows a gradient that is zero in all rows that were not looked up? */
#ifndef MDLC_PASSES_SPARSE_H
#define MDLC_PASSES_SPARSE_H

#include "compiler/graph.h"

/* Of a SCATTER_ADD: its rows are chosen by data, and nothing that may be anything in other rows is
 * added to it. */
bool scatter_is_sparse(const Node *node);

#endif
