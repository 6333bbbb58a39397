/* check_phases: the part of the proof that is about programs in phases. */
#ifndef MDLC_PASSES_CHECK_PHASES_H
#define MDLC_PASSES_CHECK_PHASES_H

#include "compiler/program.h"

/* NULL: what each phase touches is in memory while it runs, and the bound is that of the largest.
 * Else what is wrong, owned by `scratch`. */
const char *check_phases(Arena *scratch, const Program *p);

#endif
