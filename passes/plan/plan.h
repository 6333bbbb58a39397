/* plan: in which order the steps of each entry run, which of them run again, which values share
 * bytes, and where all of them lie. */
#ifndef MDLC_PASSES_PLAN_PLAN_H
#define MDLC_PASSES_PLAN_PLAN_H

#include "compiler/program.h"

/* Needs a lowered Program; gives orders, STEP_CHECK in trains, storage, copies to destinations that
 * are not made in place, step numbers, lifetimes, offsets and totals. Changes no values. `staging`:
 * callers of inputs find room for them in io. `budget`: most bytes for all regions, -1: any number;
 * what exceeds it is made smaller by running steps again, as far as that goes. */
void pass_plan(Program *p, bool staging, int64_t budget);

/* ---- plans that are only looked at ---------------------------------------------------------- */

typedef struct EntryPlan EntryPlan;

/* What an entry would come to. */
typedef struct {
    int64_t arena, flops;
    int64_t again;   /* of the FLOPs those of steps that run again */
    int64_t time;    /* picoseconds, as reports tell it */
    int64_t touched; /* bytes, see ProgramEntry.touched */
} PlanTold;

/* Needs a lowered Program of one entry, which is good for nothing else from then on. */
EntryPlan *entry_plan_open(Program *p);
/* With at most `limit` bytes of its arena, or as few as are found, as pass_plan would do it; may be
 * asked again. Of two limits the larger one never gives a plan that takes more time: both are
 * chosen from the same plans. */
PlanTold entry_plan_within(EntryPlan *x, int64_t limit);
int64_t entry_plan_bytes(const EntryPlan *x); /* of memory that it holds beside the Program */
void entry_plan_close(EntryPlan *x);

#endif
