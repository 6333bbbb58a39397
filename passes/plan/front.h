/* front: of the plans of one list that were looked at, those that no other one beats both in bytes
 * and in cost. */
#ifndef MDLC_PASSES_PLAN_FRONT_H
#define MDLC_PASSES_PLAN_FRONT_H

#include "passes/plan/value.h"

typedef struct {
    int64_t peak, cost;
    int64_t height; /* what placing takes; 0: nobody has asked */
    int order;      /* whatever who adds it says: of the plan that it was made of */
    Plan plan;
} FrontPlan;

typedef struct {
    Arena *arena;
    VEC(FrontPlan) at; /* by peak, the lowest first, and so the dearest first */
    VEC(Plan) spare;
    int64_t least; /* cost: what costs less is left out */
    int order;     /* of what is added */
} Front;

/* Adds a copy of the plan where it belongs, and drops what it beats. */
void front_offer(Front *f, const Plan *plan, const PlanCost *cost);
/* The cheapest whose peak is at most `limit`; -1: there is none. */
int front_find(const Front *f, int64_t limit);
/* The cheapest that fits `limit` when it is placed, else what needs least; NULL: it is empty. */
FrontPlan *front_choose(Front *f, PlanEval *e, int64_t limit);

#endif
