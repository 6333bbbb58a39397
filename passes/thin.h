/* thin: what loops stack for others, where it takes fewest bytes. */
#ifndef MDLC_PASSES_THIN_H
#define MDLC_PASSES_THIN_H

#include "compiler/graph.h"

/* Needs a region without marks whose values are computed as they will be; gives one in which a loop
 * that goes through stacks of another loop, slice by slice, reads fewer bytes of it: values that
 * are made of these slices in cheap ways, and are made by the other loop instead. To the bit.
 * `half`: in what values that are rounded to it are stored; TY_ERROR: all as their types say. */
Region *pass_thin(Graph *g, const Region *region, Elem half);
/* Are there loops that go through stacks? */
bool thin_applies(const Region *region);

#endif
