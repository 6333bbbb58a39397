/* alloc_time: blocks placed in the order in which they begin. */
#ifndef MDLC_PASSES_PLAN_ALLOC_TIME_H
#define MDLC_PASSES_PLAN_ALLOC_TIME_H

#include "passes/plan/alloc.h"

/* Places the blocks one by one, each into the lowest gap that holds it, or with `best_fit` into the
 * tightest; none of `order` begins before the one in front of it. Fills offset; gives the height.
 * `work` grows by the blocks that are live at each step. */
int64_t alloc_by_time(Arena *scratch, const AllocItem *item, int n, const int *order, bool best_fit,
                      int64_t *offset, int64_t *work);

#endif
