/* halves: which values of a graph a float of 16 bits holds without rounding. */
#ifndef MDLC_PASSES_HALVES_H
#define MDLC_PASSES_HALVES_H

#include "compiler/graph.h"

typedef struct Halves Halves;

/* Of an entry's region and the bodies in it, in `arena`; `elem`: bf16 or f16. */
Halves *halves_new(Arena *arena, const Region *region, Elem elem);
Elem halves_elem(const Halves *h);
bool halves_hold(const Halves *h, const Node *node);

#endif
