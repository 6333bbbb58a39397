/* live_set: what lies in the arena at the peak of an entry, and why. */
#ifndef MDLC_EMIT_LIVE_SET_H
#define MDLC_EMIT_LIVE_SET_H

#include "emit/write.h"

typedef struct {
    const Buf *buf;
    const char *name, *layer, *role, *why;
    int64_t bytes; /* as placed */
} LiveItem;

typedef VEC(LiveItem) LiveSet;

LiveSet live_set(const Emit *e, const ProgramEntry *entry); /* largest first */
const Step *step_at(const ProgramEntry *entry, int id);
const char *step_word(const Step *step); /* contract, copy, ... */
/* What one more thread would add to the live bytes of the entry's peak. */
int64_t thread_adds(const Emit *e, const ProgramEntry *entry, int threads);

#endif
