/* apply: what a plan says, written into the entry. */
#ifndef MDLC_PASSES_PLAN_APPLY_H
#define MDLC_PASSES_PLAN_APPLY_H

#include "passes/plan/value.h"

/* Orders the list as the plan that was evaluated last, sets Buf.storage, makes copies to
 * destinations at its end. A call that runs again is a step of its own, whose results are Bufs of
 * their own, and the calls behind it read those. Lists of loops come before the list that holds
 * them. */
void plan_apply(Program *p, const Plan *plan, const PlanEval *eval);
/* Bytes moved by the copy of a value to its destination, where it is not made there. */
int64_t copy_bytes(const Buf *buf);

#endif
