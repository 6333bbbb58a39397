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
/* The same of the arenas alone, for who only wants to know how large they would be: at most `limit`
 * bytes each, or as few as are found. Of two limits the larger one never gives a plan that takes
 * more time: both are chosen from the same plans. */
void pass_plan_arenas(Program *p, int64_t limit);

#endif
