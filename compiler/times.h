/* times: how long steps take on the machine that planning has in mind, by which schedules, plans
 * and budgets are compared, and which reports tell. */
#ifndef MDLC_COMPILER_TIMES_H
#define MDLC_COMPILER_TIMES_H

#include "compiler/program.h"

/* What one execution must move; workspaces are no part of it. Of a step that is no loop. */
int64_t step_bytes(const Step *step);
/* Picoseconds of one execution, all turns of a loop. */
int64_t step_time(const MachineTimes *times, const Step *step);
int64_t list_time(const MachineTimes *times, const StepList *list);

#endif
