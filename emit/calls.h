/* calls: what each step of an entry costs, for the reports and for programs that profile
 * themselves. FLOPs are those that the mathematics needs: what a product multiplies with the zeros
 * of a border is not counted, and nothing of what a schedule computes twice or pads. */
#ifndef MDLC_EMIT_CALLS_H
#define MDLC_EMIT_CALLS_H

#include "emit/write.h"

/* A step that is no loop, in the order of its entry. */
typedef struct {
    const Step *step;
    const char *name;         /* the function that it calls, or its word: "copy" */
    const char *layer, *part; /* path and "forward" ... "update"; "" where there is none */
    int64_t times;            /* executions in one call of the entry */
    /* of one execution */
    int64_t flops, products, bytes;
    int64_t predicted, limit; /* picoseconds on the machine that planning has in mind */
} CallCost;

/* Of one call of the entry. */
typedef struct {
    VEC(CallCost) at;
    int64_t flops, products; /* without steps that run again */
    int64_t bytes_once;      /* weights, states, inputs and results: read once, written once */
    int64_t predicted, limit;
} CallCosts;

CallCosts calls_of(const Emit *e, const ProgramEntry *entry);
/* Percent of the limit that a time in the same unit is worth; 0 where it takes no time. */
int call_share(int64_t limit, int64_t time);

#endif
