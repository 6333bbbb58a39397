/* improve: a better order of one list of steps, from a good one. */
#ifndef MDLC_PASSES_PLAN_IMPROVE_H
#define MDLC_PASSES_PLAN_IMPROVE_H

#include "passes/plan/problem.h"

/* Needs a legal order; leaves a legal one with no higher peak, as far as the simulation sees. */
void order_improve(const Problem *s, int *order);

#endif
