/* live: lifetimes of the Bufs of an entry in linear step numbers, for the passes that order, share
 * and place them. The checker does not use it. */
#ifndef MDLC_PASSES_PLAN_LIVE_H
#define MDLC_PASSES_PLAN_LIVE_H

#include "compiler/program.h"

/* Sets Buf.first and Buf.last of every TEMP and WORK: of a root over all Bufs that use its bytes.
 * A Buf that nothing touches gets first == last. */
void live_ranges(ProgramEntry *e);

#endif
