/* simplify: algebra on the graph. See simplify.c. */
#ifndef MDLC_PASSES_SIMPLIFY_H
#define MDLC_PASSES_SIMPLIFY_H

#include "compiler/graph.h"

/* Needs a verified region of any stage; gives one with less work in it and nothing unread; changes
 * values by rounding alone, in a way that depends on the program only. The sign of a zero may
 * change, and where an intermediate result was not finite another such value may come out; NaN and
 * numbers stay apart. A region that still takes derivatives to values that it computes loses what
 * is unread, and no more. */
Region *pass_simplify(Graph *g, const Region *region);

#endif
