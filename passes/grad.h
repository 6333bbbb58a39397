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

/* Needs a verified region at STAGE_BUILT; gives an equal one without GRAD, STOP and CUSTOM
 * (STAGE_GRAD); changes no values. */
Region *pass_grad(Graph *g, const Region *region, GradSave save);

#endif
