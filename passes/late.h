/* late: weights and states that phases behind the first begin with. */
#ifndef MDLC_PASSES_LATE_H
#define MDLC_PASSES_LATE_H

#include "compiler/graph.h"

/* Needs entries at STAGE_OPTIMISED of a program with a main, which maps its memory itself and goes
 * through the phases of the module in their order. Gives an `init` of each later phase that
 * anything but zeros begins in, behind all entries; what they are made of comes from `arena`. */
void pass_late(Arena *arena, Module *module);

#endif
