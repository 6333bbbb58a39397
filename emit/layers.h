/* layers: what each layer of a model costs, for `info` and the reports. */
#ifndef MDLC_EMIT_LAYERS_H
#define MDLC_EMIT_LAYERS_H

#include "emit/write.h"

/* The table of md_layer that `info` prints; gives the number of its rows. */
int layers_print(const Emit *e, Text *out);

/* What of an entry lies in the arena in 16 bits, by the layer that makes it: bytes, which are as
 * many less than in f32, and those of them that are kept for the backward part. */
typedef struct {
    const char *path;
    int64_t bytes, kept;
} HalfRow;
typedef VEC(HalfRow) HalfRows;
HalfRows layers_halves(const Emit *e, const ProgramEntry *entry);

#endif
