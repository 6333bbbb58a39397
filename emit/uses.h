/* uses: what an entry needs each storage of its arena for, and of which layer it is. */
#ifndef MDLC_EMIT_USES_H
#define MDLC_EMIT_USES_H

#include "emit/write.h"

/* Of one storage. Steps are NULL where there is none. */
typedef struct {
    const Step *maker;             /* the first that writes it */
    const Step *backward, *update; /* the first that reads it in that part of a train */
    const Step *turns;             /* a loop whose turns have a slice each */
    const Step *carried;           /* the loop that carries it */
    const Buf *weight;             /* that a reader of the update writes: it is its gradient */
    const Step *next;              /* the first that reads it behind the step of the peak */
    bool here;                     /* that step touches it */
    bool saved;                    /* a value in it lives from the forward to the backward part */
} Use;

typedef struct {
    const Emit *e;
    const ProgramEntry *entry;
    Use *at;   /* by Buf.id */
    bool norm; /* the norm of all gradients is known before the update */
} Uses;

Uses uses_of(const Emit *e, const ProgramEntry *entry);
/* workspace, carry, gradient, saved, derivative, update, value */
const char *use_role(const Uses *uses, const Buf *buf);
const char *use_layer(const Uses *uses, const Buf *buf); /* path of the layer; "": none */
/* Why it is there at all; "": its readers say that. */
const char *use_why(const Uses *uses, const Buf *buf);
/* The part of a train that the step belongs to, or the loop around it. */
StepPart step_part(const Step *step);
/* The path of the layer that most of its FLOPs are for; "": none. */
const char *step_layer(const Emit *e, const Step *step);

#endif
