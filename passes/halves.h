/* halves: which values of a graph bfloat16 holds without rounding. */
#ifndef MDLC_PASSES_HALVES_H
#define MDLC_PASSES_HALVES_H

#include "compiler/graph.h"

typedef struct Halves Halves;

/* Of an entry's region and the bodies in it, in `arena`. */
Halves *halves_new(Arena *arena, const Region *region);
bool halves_hold(const Halves *h, const Node *node);

#endif
