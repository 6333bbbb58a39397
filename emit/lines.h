/* lines: #line directives of --line, so that a debugger shows the model's source. */
#ifndef MDLC_EMIT_LINES_H
#define MDLC_EMIT_LINES_H

#include "emit/write.h"

/* In front of a line that belongs to a place of the source; nothing without --line. */
void lines_at(const Emit *e, Loc loc, Text *out);
/* In front of a line of the emitted file again. */
void lines_back(const Emit *e, Loc loc, Text *out);
/* A function all of whose lines belong to one place. */
void lines_all(const Emit *e, Loc loc, const char *function, Text *out);
/* The numbers that lines_back left out, when the whole file is there. */
void lines_finish(const Emit *e, Text *out);

#endif
