/* alloc_exact: does a set of blocks fit a capacity? Search with a count of steps for a limit. */
#ifndef MDLC_PASSES_PLAN_ALLOC_EXACT_H
#define MDLC_PASSES_PLAN_ALLOC_EXACT_H

#include "passes/plan/alloc.h"

typedef enum { FIT_FOUND, FIT_NONE, FIT_LIMIT } Fit;

enum { ALLOC_RULES = 8 /* orders in which nothing is exchanged */ };

/* FOUND: offset[n] is a placement no higher than `capacity`. NONE: there is none. LIMIT: `steps`
 * were not enough; what is left of them is given back through it. `rule` is the order in which
 * blocks are tried: any number, other numbers are other orders, the first ALLOC_RULES plain ones.
 */
Fit alloc_fit(Arena *scratch, const AllocItem *item, int n, int64_t capacity, int rule,
              int64_t *steps, int64_t *offset);

#endif
