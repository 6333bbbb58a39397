/* target: which inputs of a train are compared with what its models give. */
#ifndef MDLC_LANG_TARGET_H
#define MDLC_LANG_TARGET_H

#include "lang/context.h"

/* Marks the inputs (Slot.target) that something reads and from which no layer and no model computes
 * anything. Wants the region of the train with derivatives not yet written out. */
void target_mark(Elab *e, const Entry *train);

#endif
