/* shared: weights that a loss is made of in several places, as a tied head is. */
#ifndef MDLC_PASSES_SHARED_H
#define MDLC_PASSES_SHARED_H

#include "compiler/graph.h"

/* Sets Slot.uses of parameters. Needs trains at STAGE_BUILT; changes nothing else. */
void pass_shared(Module *module);

#endif
