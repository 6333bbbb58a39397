/* remat: see remat.c. */
#ifndef MDLC_PASSES_REMAT_H
#define MDLC_PASSES_REMAT_H

#include "passes/grad.h"

/* Needs a region at STAGE_OPTIMISED behind all passes that choose how values are computed; gives
 * one where loops make again what `plan` says, instead of going through stacks of it; changes no
 * values, to the bit. Plan.kept gets what could be made again. */
Region *pass_remat(Graph *g, const Region *region, const GradPlan *plan);

#endif
