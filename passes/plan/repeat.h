/* repeat: memory for time, steps of a list that run again. */
#ifndef MDLC_PASSES_PLAN_REPEAT_H
#define MDLC_PASSES_PLAN_REPEAT_H

#include "passes/plan/value.h"

/* Makes the plan fit the limit by calls that make values again, or need as little as was found. */
void plan_repeat(PlanEval *e, Plan *plan, int64_t limit);

#endif
