/* check: the independent proof that a finished Program computes what its steps say. */
#ifndef MDLC_PASSES_CHECK_H
#define MDLC_PASSES_CHECK_H

#include "compiler/program.h"

/* NULL: proved. Otherwise the first fault, naming entry, step and Buf; owned by `scratch`. */
const char *check_program(Arena *scratch, const Program *p);

#endif
