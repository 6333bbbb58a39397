/* phase: `phase a, b then c;`, what a run without a name does, and in which order. */
#ifndef MDLC_LANG_PHASE_H
#define MDLC_LANG_PHASE_H

#include "lang/context.h"

/* Does a `phase` name this train or entry? */
bool phase_names(const Elab *e, const char *entry);
/* After all trains and entries: fills Module.phase. */
void phase_check(Elab *e);

#endif
