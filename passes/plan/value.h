/* value: a Plan, that is in which order the steps of a list run and which of them run again, and
 * what it comes to. Evaluating one changes nothing. */
#ifndef MDLC_PASSES_PLAN_VALUE_H
#define MDLC_PASSES_PLAN_VALUE_H

#include "passes/plan/alloc.h"
#include "passes/plan/problem.h"

/* The calls of a list by item. Every item stands in it, after all its predecessors; one that is
 * pure may stand in it again, and makes its results again, for the calls from there on. */
typedef struct {
    Ints call;
} Plan;

/* One value of a use, from the call that makes it to the last that touches it. */
typedef struct {
    int use, first, last;
    int root; /* the value whose bytes it has: itself, or an operand of its first call */
    Buf *in;  /* the carry whose bytes it has meanwhile; NULL: none, it is placed */
} PlanValue;

typedef struct {
    int64_t peak; /* the most bytes live: offsets cannot be lower */
    int at;       /* the first call that has them */
    int64_t over; /* bytes above the limit, summed over calls */
    int64_t cost; /* of the calls that make something again */
} PlanCost;

/* A use that an item touches. */
typedef struct {
    int use;
    bool makes, kept; /* the item writes it; see Use */
} PlanTouch;

/* Room for evaluations of one problem, and what the last of them found. */
typedef struct {
    const Problem *s;
    PlanTouch *touch; /* what the items touch, item after item: evaluations read little else */
    int *start;       /* by item: its first in touch; then that behind the last */
    PlanValue *value;
    int count, room;
    int *now;       /* by use: its value at the present call; -1: none yet */
    Ints seen;      /* the values that calls touch, call after call */
    int *taken;     /* by value: the last call of which a result took its bytes */
    bool *fits;     /* by value: it may have the bytes of the carry at hand */
    int64_t *need;  /* by call: bytes live while it runs, with what is inside of it */
    int *place;     /* by item: of its first call */
    int calls;      /* what need has room for */
    AllocMemo memo; /* of plan_height */
} PlanEval;

void plan_copy(Arena *arena, Plan *to, const Plan *from);
PlanEval plan_eval_new(const Problem *s);
/* In time linear in the accesses of its calls. */
PlanCost plan_eval(PlanEval *e, const Plan *plan, int64_t limit);
/* The value whose bytes value v of the last evaluation has: itself, or one that dies for it. */
int plan_root(const PlanEval *e, int v);
/* The bytes that placing its values takes, to the byte; of an entry's list. */
int64_t plan_height(PlanEval *e, const Plan *plan);
/* May item i run again at `place` of the plan that was evaluated last? It is pure, and what it
 * reads has not been overwritten since it ran first. */
bool plan_repeatable(const PlanEval *e, int i, int place);

#endif
