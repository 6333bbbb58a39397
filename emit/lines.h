/* lines: #line directives of --line, so that a debugger shows the model's source. */
#ifndef MDLC_EMIT_LINES_H
#define MDLC_EMIT_LINES_H

#include "emit/write.h"

/* Text all of whose lines belong to one place, which --line puts in front of each. */
void lines_all(const Emit *e, Loc loc, const char *text, Text *out);
/* Where the last line ends with `behind`, puts `text` in its place, in the same line of the source;
 * false: it does not, or there is no room. */
bool lines_add(Text *out, const char *behind, const char *text);
/* The numbers of lines of the emitted file behind such text, when the whole file is there. */
void lines_finish(const Emit *e, Text *out);

#endif
