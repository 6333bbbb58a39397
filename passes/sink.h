/* sink: what loops go through slice by slice and is looked up, is looked up slice by slice. */
#ifndef MDLC_PASSES_SINK_H
#define MDLC_PASSES_SINK_H

#include "compiler/graph.h"

/* Needs a region without marks whose values are computed as they will be; gives one in which loops
 * that alone read a value looked up in a table, of at least so many bytes, slice by slice, look up
 * each slice. To the bit. */
Region *pass_sink(Graph *g, const Region *region, int64_t least);
/* Is there such a value? */
bool sink_applies(const Region *region, int64_t least);
/* Less is not worth a kernel more in each turn. */
extern const int64_t sink_least;

#endif
