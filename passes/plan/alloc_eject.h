/* alloc_eject: a placement of many blocks is made lower, a few blocks at a time. */
#ifndef MDLC_PASSES_PLAN_ALLOC_EJECT_H
#define MDLC_PASSES_PLAN_ALLOC_EJECT_H

#include "passes/plan/alloc.h"

/* `offset` places the blocks below `height`, whose lower bound is `bound`. Gives the height of a
 * placement that is as low or lower, in `offset`, after about `steps` looks at a block. */
int64_t alloc_eject(Arena *scratch, const AllocItem *item, int n, int64_t bound, int64_t height,
                    int64_t steps, int64_t *offset);

#endif
