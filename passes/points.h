/* points: the values to which a region takes derivatives. See points.c. */
#ifndef MDLC_PASSES_POINTS_H
#define MDLC_PASSES_POINTS_H

#include "compiler/graph.h"

/* Are they parameters, states, inputs, carries and hidden constants alone, in bodies of loops too?
 * Then no rewriting takes any of them out of what is made of it. */
bool points_fixed(const Region *region);

/* Sets point[] of each node of `region` itself, by its id, to which it takes a derivative. */
void points_note(const Region *region, bool *point);

#endif
