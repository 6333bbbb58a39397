/* sink: what loops go through slice by slice and is looked up, is looked up slice by slice. */
#ifndef MDLC_PASSES_SINK_H
#define MDLC_PASSES_SINK_H

#include "passes/grad.h"

/* Needs a region without marks whose values are computed as they will be; gives one in which loops
 * that alone read a value looked up in a table, of at least so many bytes, slice by slice, look up
 * each slice. To the bit. */
Region *pass_sink(Graph *g, const Region *region, int64_t least);
/* Is there such a value? */
bool sink_applies(const Region *region, int64_t least);

/* The same at STAGE_BUILT for loops that keep the carries of segments of turns alone, by their text
 * or by `plan`, where the table is small beside what is the same for all turns: the adjoint of such
 * a loop adds up the derivative by the table turn by turn. */
Region *pass_sink_turns(Graph *g, const Region *region, int64_t least, const GradPlan *plan);
bool sink_turns_applies(const Region *region, int64_t least, const GradPlan *plan);
/* Less is not worth a kernel more in each turn. */
extern const int64_t sink_least;

#endif
