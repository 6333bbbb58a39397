/* order: the order of the steps of one list, for the least memory. */
#ifndef MDLC_PASSES_PLAN_ORDER_H
#define MDLC_PASSES_PLAN_ORDER_H

#include "passes/plan/value.h"

/* A plan in which each step stands once, and in `arena` the name of the order that won: that with
 * the lowest peak, or that stands least above the limit. */
Plan order_find(const Problem *s, PlanEval *eval, int64_t limit, Arena *arena, const char **name);

#endif
