/* times: how long steps take on the machine that planning has in mind, by which schedules, plans
 * and budgets are compared, and which reports tell. */
#ifndef MDLC_COMPILER_TIMES_H
#define MDLC_COMPILER_TIMES_H

#include "compiler/program.h"

/* What one execution must move; workspaces are no part of it. Of a step that is no loop. */
int64_t step_bytes(const Step *step);
enum { FAR_WHOLE = 1024 };
/* ProgramEntry.far_share of an entry that touches so many bytes in a call. */
int64_t times_far_share(const StepTimes *times, int64_t touched);
/* Picoseconds in which so many bytes move. */
int64_t bytes_time(const StepTimes *times, int64_t far_share, int64_t bytes, int threads);
/* Picoseconds of one execution, all turns of a loop. */
int64_t step_time(const StepTimes *times, int64_t far_share, const Step *step);
int64_t list_time(const StepTimes *times, int64_t far_share, const StepList *list);

#endif
