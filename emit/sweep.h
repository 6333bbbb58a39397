/* sweep: what the gradient of a looked-up table costs a train, for reports. */
#ifndef MDLC_EMIT_SWEEP_H
#define MDLC_EMIT_SWEEP_H

#include "emit/write.h"

/* The gradient of a table that is only looked up is zero but in the rows that were; it is made, and
 * the table updated, as a whole tensor all the same. */
typedef struct {
    const char *path;    /* of the layer: net.embed */
    int64_t table_bytes; /* of the gradient */
    int64_t bytes;       /* moved a step in passes over all rows */
} Sweep;

typedef VEC(Sweep) SweepList;

SweepList sweeps_of(const Emit *e, const ProgramEntry *entry);

#endif
