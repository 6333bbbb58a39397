/* final: what a carry has become by the end of its loop is read of the stack of its values. */
#ifndef MDLC_PASSES_FINAL_H
#define MDLC_PASSES_FINAL_H

#include "compiler/graph.h"

/* Needs a region without marks whose values are computed as they will be, and stacked as they will
 * be; gives one in which nothing behind a loop reads the last value of a carry of at least so many
 * bytes where a stack of its values is there as long. To the bit. */
Region *pass_final(Graph *g, const Region *region, int64_t least);
/* Is there such a carry? */
bool final_applies(const Region *region, int64_t least);
/* Less is not worth it. */
extern const int64_t final_least;

#endif
