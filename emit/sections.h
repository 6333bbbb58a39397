/* sections: functions of steps that may stand in another file than the entry that they are of. */
#ifndef MDLC_EMIT_SECTIONS_H
#define MDLC_EMIT_SECTIONS_H

#include "emit/locals.h"
#include "emit/split.h"

typedef struct {
    Chunks *chunks;
    struct Numbers *numbers; /* theirs stand with those of kernels; NULL: there are no sections */
} Sections;

bool sections_wanted(const Emit *e);
/* The functions of the sections of an entry, in front of those that call them. */
void sections_print(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                    const Sections *to, Text *out);
/* What these take of the instance, in front of the steps that call them. */
void sections_frame(const Locals *names, Text *out);

#endif
