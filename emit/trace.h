/* trace: the lines of a train that note which step made the first NaN, for --checks=nan and for the
 * programs with a main, which run a step again when its loss is no number. Nothing is printed for
 * other entries, nor in a model without main that was built without the check. */
#ifndef MDLC_EMIT_TRACE_H
#define MDLC_EMIT_TRACE_H

#include "emit/write.h"

bool trace_wanted(const Emit *e, const ProgramEntry *entry);
/* The member of the instance, in the words of the header. */
void trace_member(const Emit *e, Text *out);
/* The places of a train: a constant NAME_traced. */
void trace_table(const Emit *e, const ProgramEntry *entry, Text *out);
/* In front of the first step: what the train is given. */
void trace_open(const Emit *e, const ProgramEntry *entry, Text *out);
void trace_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                 Text *out);
/* Behind the last step: with --checks=nan the parameters must be numbers. */
void trace_close(const Emit *e, const ProgramEntry *entry, Text *out);
/* 32-bit notes that the largest train takes; 0: none is traced. */
int trace_notes(const Emit *e);
/* NAME_nonfinite, with --checks=nan. */
void trace_accessor(const Emit *e, Text *out);

#endif
