/* repeat: memory for time, steps of a list that run again. */
#ifndef MDLC_PASSES_PLAN_REPEAT_H
#define MDLC_PASSES_PLAN_REPEAT_H

#include "passes/plan/value.h"

/* Makes the plan fit the limit by calls that make values again, or need as little as was found. */
void plan_repeat(PlanEval *e, Plan *plan, int64_t limit);

/* Finds in `less` a plan that needs clearly less by calls that cost hardly anything beside `cost`,
 * that of the whole list; gives the bytes that saves, 0: none does. */
int64_t plan_repeat_little(PlanEval *e, const Plan *plan, int64_t cost, Plan *less);

/* The same for bytes that are live at once, whatever placing them takes: the search for what costs
 * least looks at about `touches` accesses. False: it does not fit. Of the problem it needs items
 * with what they read, touch, make and cost, and uses with their sizes and writers. */
bool repeat_fit(PlanEval *e, Plan *plan, int64_t limit, int64_t touches);

#endif
