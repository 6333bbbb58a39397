/* check_loop: what two turns of a loop do not show, and the order of steps. */
#ifndef MDLC_PASSES_CHECK_LOOP_H
#define MDLC_PASSES_CHECK_LOOP_H

#include "passes/check_value.h"

/* While a loop runs, a stack that it writes shares bytes with nothing that later turns read. */
bool check_tracks(Check *c, const Step *loop);
/* Positions of slices that two turns did not reach are filled. */
void check_fill(Check *c, const Step *loop, const StepList *list);
/* Steps that touch the same Buf, one of them writing, stand in the order in which they were
 * lowered. */
bool check_order(Check *c, const StepList *list, int depth);

#endif
