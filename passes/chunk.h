/* chunk: large values between two products exist for a few of their batch axes' places at a time.
 * See chunk.c and docs/decisions/0033-chunks.md. */
#ifndef MDLC_PASSES_CHUNK_H
#define MDLC_PASSES_CHUNK_H

#include "compiler/graph.h"

/* In bytes. */
typedef struct {
    int64_t large; /* of a value that is worth a loop */
    int64_t own;   /* of it in an iteration, at most if the axes are enough */
    bool rows;     /* chains may end in sums, and go by rows that one operand of a product has: the
                    * derivative by the other one adds up over chunks */
} ChunkLimits;
extern const ChunkLimits chunk_limits;
/* By rows, so that an iteration has at most so many bytes of a value. */
ChunkLimits chunk_by_rows(int64_t own);

/* Needs a region at STAGE_BUILT; gives one of that stage; changes no values. */
Region *pass_chunk(Graph *g, const Region *region, ChunkLimits limits);
bool chunk_applies(const Region *region); /* it may do something by chunk_limits */
/* The bytes of the largest value that chunks of rows could take apart; 0: there is none. */
int64_t chunk_largest(const Region *region);

#endif
