/* split: a model in several C files. */
#ifndef MDLC_EMIT_SPLIT_H
#define MDLC_EMIT_SPLIT_H

#include "compiler/base.h"

/* The text of a kernel, with what stands in front of it for it, in the text of a model; or of a
 * function that calls kernels. */
typedef struct {
    size_t from, end;
    bool calls;
} Chunk;
typedef VEC(Chunk) Chunks;

/* Moves chunks out of `model` to the texts `unit[0]` to `unit[units - 1]`, about as much to each,
 * and puts prototypes where the first one stood. Names of functions begin with `prefix` and '_'.
 * Chunks that share more than calls stay together; one that needs the model stays there. */
void split_chunks(Arena *arena, const Chunks *chunks, const char *prefix, Text *model, int units,
                  Text *unit);

#endif
