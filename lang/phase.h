/* phase: `phase a, b then c;`, the trains of a run without a name and their order. */
#ifndef MDLC_LANG_PHASE_H
#define MDLC_LANG_PHASE_H

#include "lang/context.h"

/* Does a `phase` name this train? */
bool phase_names(const Elab *e, const char *train);
/* After all trains: fills Module.phase. */
void phase_check(Elab *e);

#endif
