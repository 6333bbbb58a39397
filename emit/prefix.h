/* prefix: of the names of an emitted file. */
#ifndef MDLC_EMIT_PREFIX_H
#define MDLC_EMIT_PREFIX_H

#include "compiler/compile.h"

/* The prefix of emitted names from --prefix or the file stem. A stem that is no C identifier or
 * means something in C is altered; NULL and a message for a --prefix of that kind. */
const char *emit_prefix(Compile *c);

#endif
