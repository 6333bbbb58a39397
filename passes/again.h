/* again: elementwise values that adjoints read are made again of what these read anyway. */
#ifndef MDLC_PASSES_AGAIN_H
#define MDLC_PASSES_AGAIN_H

#include "compiler/graph.h"

typedef struct {
    int64_t least; /* elements of such a value */
    int part;      /* all of it takes at most one part of the region's work in so many; 0: any */
    int64_t total; /* how lowering will fuse, see pass_fuse */
    int copies;    /* the same */
    RowSums *sums; /* the same */
} AgainLimits;

/* Needs the region of a train at STAGE_OPTIMISED, computed as it will be, and what its results are;
 * gives one in which what comes behind the loss reads such values from a place of their own, made
 * of OP_AGAIN of what memory holds then anyway. To the bit. */
Region *pass_again(Graph *g, const Region *region, const EntryOut *out, AgainLimits limits);
/* Are there any, within the limits? */
bool again_applies(const Region *region, const EntryOut *out, AgainLimits limits);

/* From how many elements on, and what part of the work is worth it. */
extern const int64_t again_least;
extern const int again_part;

#endif
