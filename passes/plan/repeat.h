/* repeat: memory for time, steps of a list that run again. */
#ifndef MDLC_PASSES_PLAN_REPEAT_H
#define MDLC_PASSES_PLAN_REPEAT_H

#include "passes/plan/front.h"

/* Adds to the front plans of less and less bytes, down to the least that are found, that have the
 * calls of one of the orders and some that make values again; then cheaper ones, as long as about
 * `touches` accesses last. */
void plan_curve(PlanEval *e, const Plan *order, int orders, Front *front, int64_t touches);

/* Finds in `less` a plan that needs clearly less by calls that cost hardly anything beside `cost`,
 * that of the whole list; false: none does, and it is the same. */
bool plan_repeat_little(PlanEval *e, const Plan *plan, int64_t cost, Plan *less);

#endif
