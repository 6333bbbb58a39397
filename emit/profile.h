/* profile: what a program has that was compiled with --profile: a mark behind each step of what its
 * main calls, and the tables of what each step needs. Without the option nothing is printed. */
#ifndef MDLC_EMIT_PROFILE_H
#define MDLC_EMIT_PROFILE_H

#include "emit/write.h"

/* The member of the instance. */
void profile_member(const Emit *e, Text *out);
/* Behind a step in the function of an entry. */
void profile_after(const Emit *e, const ProgramEntry *entry, const Step *step, const char *indent,
                   Text *out);
/* In front of the call of the entry in its adapter, and behind it. */
void profile_open(const Emit *e, const ProgramEntry *entry, Text *out);
void profile_close(const Emit *e, const ProgramEntry *entry, Text *out);
/* The tables, in front of main, and what the descriptor says of them, its last line. */
void profile_tables(const Emit *e, Text *out);
void profile_descriptor(const Emit *e, Text *out);
/* Multiplies a program that is to be profiled pairs of 16 bits? */
bool profile_has_pairs(const Emit *e);

#endif
