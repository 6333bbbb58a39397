/* locals: the pointers that a function of steps has, one for each Buf that it touches. A section is
 * a run of its steps that need no more than their memory and have a function of their own, so that
 * another file may have them (sections.h). */
#ifndef MDLC_EMIT_LOCALS_H
#define MDLC_EMIT_LOCALS_H

#include "emit/stmts.h"

typedef struct {
    const Emit *e;
    const ProgramEntry *entry;
    const StepList *top; /* its steps */
    bool *used;          /* by Buf.id: a step names it */
    bool *written;       /* by Buf.id: a step writes it, or what lies in its bytes */
    bool seeded;         /* the parameter of init is used */
    bool calls;          /* sections */
    const DevicePrinter *device;
    const char *arena; /* expression */
    const Step *turns; /* whose function it is; NULL: the entry's */
    const StepList
        *section;     /* whose function it is; NULL: it takes and gives what the entry does */
    NameSet met;      /* places in the source whose text stands in the function */
    const Step *last; /* that a comment was for */
    StepPart part;    /* of a train, at hand */
    Arena scratch;
} Locals;

/* Of the entry, or of a loop of it whose turns have a function of their own. The scratch is to be
 * freed. */
Locals locals_open(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                   const Step *turns, const char *arena);
/* The same of steps of one of them. */
Locals locals_section(const Emit *e, const Printer *printer, const ProgramEntry *entry,
                      const Step *turns, const StepList *section);
/* Inputs and results of a function of the API. */
void locals_ports(const Locals *names, Text *out);
void locals_slots(const Locals *names, Text *out); /* parameters, state, tables */
/* Temporaries of the entry, or of a loop whose turns run side by side. */
void locals_temps(const Locals *names, const Step *aside, Text *out);

/* How many steps of the list from there on are a section; 0: none begins there. */
int section_steps(const Emit *e, const StepList *list, int first);
const char *section_name(const Locals *names, const Step *first);
/* What its function takes, as parameters with their types or as arguments. */
void section_arguments(const Locals *section, bool typed, Words *words);

#endif
