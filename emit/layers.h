/* layers: what each layer of a model costs, for `info` and the reports. */
#ifndef MDLC_EMIT_LAYERS_H
#define MDLC_EMIT_LAYERS_H

#include "compiler/names.h"
#include "emit/write.h"

/* What `info` prints of the layers, line by line. */
void layers_info(const Emit *e, NameList *lines);

/* What of an entry lies in the arena in 16 bits, by the layer that makes it: bytes, which are as
 * many less than in f32, and those of them that are kept for the backward part. */
typedef struct {
    const char *path;
    int64_t bytes, kept;
} HalfRow;
typedef VEC(HalfRow) HalfRows;
HalfRows layers_halves(const Emit *e, const ProgramEntry *entry);

#endif
