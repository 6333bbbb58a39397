/* offsets: bytes. Offsets in one arena an entry, and the layout of the regions that stay. */
#ifndef MDLC_PASSES_PLAN_OFFSETS_H
#define MDLC_PASSES_PLAN_OFFSETS_H

#include "compiler/program.h"
#include "passes/plan/alloc.h"

/* Needs an entry whose plan is applied; gives offsets of TEMP and WORK, lifetimes, arena_bytes,
 * lower_bound_bytes, peak_step, and the sums of work of the entry. `memo`: placements that planning
 * has made. */
void plan_offsets(Program *p, ProgramEntry *e, AllocMemo *memo);
/* These sums alone, of the list as it is. */
void plan_count(ProgramEntry *e);
/* Needs all entries planned; gives offsets in params, state and io, and the totals. With `staging`
 * the inputs of trains and entries have a place in io, where `main` puts them. */
void plan_regions(Program *p, bool staging);

#endif
