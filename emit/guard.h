/* guard: the lines of an entry function that keep guard bands around its buffers, for
 * --checks=canary; nothing is printed where the plan has none. */
#ifndef MDLC_EMIT_GUARD_H
#define MDLC_EMIT_GUARD_H

#include "emit/write.h"

/* The table of what lives when, and the start of the call. Statements from here on. */
void guard_open(const ProgramEntry *entry, Text *out);
/* Around a step of the function; `indent` is in front of each line. */
void guard_before(const ProgramEntry *entry, const Step *step, const char *indent, Text *out);
void guard_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                 Text *out);
/* In front of any return. */
void guard_close(const ProgramEntry *entry, const char *indent, Text *out);

#endif
