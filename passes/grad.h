/* grad: derivatives. See grad.c. */
#ifndef MDLC_PASSES_GRAD_H
#define MDLC_PASSES_GRAD_H

#include "compiler/graph.h"

/* What of a loop body is stacked for the adjoint loop; all else is computed again there. Constants,
 * invariants, random draws, views and comparisons are never stacked. */
typedef enum {
    GRAD_SAVE_ALL,    /* every value that a rule reads */
    GRAD_SAVE_CALLS,  /* carries, and results of contractions, gathers, folds and inner loops */
    GRAD_SAVE_CARRIES /* carries alone: least memory, one more forward pass of the body */
} GradSave;

/* What one op of one place in the source makes in loops. */
typedef struct {
    Loc loc;
    OpCode op;
    double bytes; /* of its stacks */
    double flops; /* of making them again, without what goes in */
} Kept;
typedef struct {
    VEC(Kept) of;
    Arena *arena;
} KeptList;

/* What loops keep for their adjoints. */
typedef struct GradPlan {
    GradSave save;
    const Kept *again; /* of what `save` stacks these are made again: loc and op say what */
    int nagain;
    bool late; /* by pass_remat, from the values as they are computed: to the bit */
    int64_t segment; /* > 1: longer loops that say nothing keep the carries of every such turn */
    int64_t rows;    /* > 0: of pass_chunk, chunks of rows of so many bytes */
    int64_t parts;   /* > 1: of pass_parts, of the rows of the batch, */
    bool light;      /* which end in front of large weights */
    KeptList *kept;  /* or NULL: to it is added what is stacked and could be made again instead */
} GradPlan;

/* What the list has of values like `n`; the first time nothing yet. */
Kept *kept_entry(KeptList *list, const Node *n);
bool plan_makes_again(const GradPlan *plan, const Node *n);
/* Of how many turns are the segments whose carries alone the LOOP keeps, by its text or the plan?
 * At most CHECKPOINT_EACH: it has none. */
int64_t grad_segment(const Node *loop, const GradPlan *plan);

/* Needs a verified region at STAGE_BUILT; gives an equal one without GRAD, STOP and CUSTOM
 * (STAGE_GRAD); changes no values. */
Region *pass_grad(Graph *g, const Region *region, GradSave save);
Region *pass_grad_planned(Graph *g, const Region *region, const GradPlan *plan);

#endif
