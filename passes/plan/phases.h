/* phases: what is in memory while each phase of a program runs. */
#ifndef MDLC_PASSES_PLAN_PHASES_H
#define MDLC_PASSES_PLAN_PHASES_H

#include "compiler/program.h"

/* Needs a lowered Program; gives Buf.begins and Buf.ends of all slots. Where the program goes
 * through no phases (`goes` false) all are there at once. */
void plan_phases(Program *p, bool goes);
/* Where a slot stands in its region: what goes on to the end first, then what ends earlier, what
 * begins later last. So what is there in a phase are few stretches. */
int plan_phases_order(const Buf *a, const Buf *b);
/* Needs the totals of the regions; gives Program.phase. */
void plan_phases_total(Program *p);
/* What the arena of an entry comes on top of, in the fullest phase that calls it. */
int64_t plan_phases_beside(const Program *p, const ProgramEntry *e);

#endif
