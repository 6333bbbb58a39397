/* alloc: offsets for blocks that live during half-open intervals of time, so that no two blocks
 * that live at once share a byte. Knows nothing of programs: the planner and the tests feed it. */
#ifndef MDLC_PASSES_PLAN_ALLOC_H
#define MDLC_PASSES_PLAN_ALLOC_H

#include "compiler/base.h"

typedef struct {
    int64_t lower, upper; /* lives in [lower, upper) */
    int64_t size;         /* already rounded to the alignment that the caller wants */
} AllocItem;

enum { ALLOC_STEPS = 1100000000 }; /* some seconds, where the bound is not reached */

/* Bytes times life; the largest number where it does not fit. */
int64_t alloc_area(const AllocItem *item);
/* Of a placement: where its highest block ends. */
int64_t alloc_height(const AllocItem *item, int n, const int64_t *offset);
/* The most bytes live at one time: no placement can be lower. */
int64_t alloc_lower_bound(Arena *scratch, const AllocItem *item, int n);
/* Fills offset[n] and returns the height. Stops at the first placement whose height is the lower
 * bound, which proves it the best; otherwise after about `steps` looks at a block. */
int64_t alloc_place(Arena *scratch, const AllocItem *item, int n, int64_t steps, int64_t *offset);
/* Placements that were made, of who asks for the same blocks more than once: the last few. */
enum { ALLOC_MEMOS = 8 };
typedef struct {
    Arena *arena;
    struct {
        AllocItem *item; /* sorted */
        int64_t *at, height;
        int n;
    } made[ALLOC_MEMOS];
    int next;
} AllocMemo;

/* The same height for the same blocks in whatever order they stand. */
int64_t alloc_place_any(AllocMemo *memo, const AllocItem *item, int n, int64_t *offset);

#endif
