/* improve: a better order of one list of steps, from a good one. */
#ifndef MDLC_PASSES_PLAN_IMPROVE_H
#define MDLC_PASSES_PLAN_IMPROVE_H

#include "passes/plan/problem.h"

/* Needs a legal order and its peak; leaves a legal one whose peak, which it gives, is no higher. */
int64_t order_improve(const Sched *s, int *order, int64_t peak);

#endif
