/* lines: #line directives of --line, so that a debugger shows the model's source. */
#ifndef MDLC_EMIT_LINES_H
#define MDLC_EMIT_LINES_H

#include "emit/write.h"

/* Text all of whose lines belong to one place, which --line puts in front of each. */
void lines_all(const Emit *e, Loc loc, const char *text, Text *out);
/* The numbers of lines of the emitted file behind such text, when the whole file is there. */
void lines_finish(const Emit *e, Text *out);

#endif
