/* chunk: large values between two products exist for a few of their batch axes' places at a time.
 * See chunk.c and docs/decisions/0033-chunks.md. */
#ifndef MDLC_PASSES_CHUNK_H
#define MDLC_PASSES_CHUNK_H

#include "compiler/graph.h"

/* In bytes. */
typedef struct {
    int64_t large; /* of a value that is worth a loop */
    int64_t own;   /* of it in an iteration, at most if the axes are enough */
} ChunkLimits;
extern const ChunkLimits chunk_limits;

/* Needs a region at STAGE_BUILT; gives one of that stage; changes no values. */
Region *pass_chunk(Graph *g, const Region *region, ChunkLimits limits);
bool chunk_applies(const Region *region); /* it holds a product of values large by chunk_limits */

#endif
