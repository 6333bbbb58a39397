/* plan_change: plans that can be put back, and changes of them as a planner with a fault could make
 * them: what is recorded beside the offsets (lifetimes, totals) agrees with them, so that nothing
 * is refused for its records alone. */
#ifndef MDLC_TESTS_PLAN_CHANGE_H
#define MDLC_TESTS_PLAN_CHANGE_H

#include "compiler/program.h"
#include "poison.h"

typedef struct NotedPlan NotedPlan;

/* Notes all of the entry that a change may touch: orders, steps with what they access, Bufs. */
NotedPlan *plan_note(Arena *arena, Program *p, ProgramEntry *e);
void plan_restore(NotedPlan *x);
/* Its run on real bytes. */
Poison *plan_poison(NotedPlan *x);

enum {
    PLAN_CHANGES = 12,
    PLAN_CHANGE_STRIDE = 9, /* makes texts anew: for random Programs alone */
    PLAN_CHANGES_ONCE = 10  /* from here on they are of steps that run again */
};

typedef struct {
    int made[PLAN_CHANGES], harmful[PLAN_CHANGES];
    int64_t executions, findings;
    uint64_t random;
} ChangeCount;

/* Makes the change and holds what the checker says against the run on real bytes; false: there was
 * no place for it. What disagrees is printed, with its Program where DUMP is set. */
bool plan_try_change(ChangeCount *count, NotedPlan *plan, const char *what, int kind);
void plan_print_counts(const ChangeCount *count, const char *what);

#endif
