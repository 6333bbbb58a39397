/* late: states of the optimizer that a phase behind the first begins with. */
#ifndef MDLC_PASSES_LATE_H
#define MDLC_PASSES_LATE_H

#include "compiler/graph.h"

/* Needs entries at STAGE_OPTIMISED of a program with a main, which maps its memory itself and goes
 * through the phases of the module in their order. */
void pass_late(Module *module);

#endif
