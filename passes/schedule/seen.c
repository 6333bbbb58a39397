/* seen: what of the plan of a product its block depends on.
 *
 * A C compiler makes each block for the numbers of its plan (runtime/tile_kernel.h, block), which
 * takes it some 40 ms. What lies around the block, the batches, the workspace and where C goes, is
 * known to the loop over tasks alone, and how Y lies only to what packs it, where all of it is
 * packed first. So the forward product of a convolution and that of its gradient by the numbers,
 * which read their weights in other orders, have one block. Needs a plan. */
#include "passes/schedule/product.h"

#include <string.h>

/* The plan without what its block never looks at. */
static md_tile seen(const md_tile *plan) {
    md_tile p = *plan;
    if (p.is & MD_TILE_HALF) { /* makes its panels in the block, by more of the plan */
        return p;
    }
    if (p.is & MD_TILE_WINOGRAD) {
        const bool sum = p.is & MD_TILE_WINOGRAD_SUM;
        return (md_tile){.r1 = {sum ? p.r1.n : 0, 0, 0, 0},
                         .r2 = {p.r2.n, 0, 0, 0},
                         .cols = {p.cols.n, 0, 0, 0},
                         .k0 = {sum ? 0 : p.k0.n, 0, 0, 0},
                         .k1 = {sum ? 0 : p.k1.n, 0, 0, 0},
                         .kb1 = p.kb1,
                         .k2 = {sum ? p.k2.n : 0, 0, 0, 0},
                         .elem = p.elem,
                         .is = p.is & (MD_TILE_WINOGRAD | MD_TILE_WINOGRAD_SUM),
                         .block_cols = p.block_cols,
                         .wide = p.wide,
                         .group = p.group};
    }
    const md_tile_axis none = {1, 0, 0, 0};
    md_tile_axis *const axis[] = {&p.r1, &p.r2, &p.cols, &p.skip, &p.k0, &p.k1, &p.k2};
    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++) {
        axis[i]->c = 0;
        axis[i]->y = p.is & MD_TILE_KEPT ? 0 : axis[i]->y;
    }
    const bool border = p.band >= MD_BAND_BATCH1_STEP1; /* which it reads along the batch */
    p.b1 = border ? (md_tile_axis){1, p.b1.x, p.b1.y, 0} : none;
    p.b2 = border ? (md_tile_axis){1, p.b2.x, p.b2.y, 0} : none;
    const int64_t ends = MD_TILE_LISTED | MD_TILE_TAKEN; /* the slice, with what it reads of X */
    if (!(p.is & ends)) {
        p.block_rows = 0;
        p.slice = 0;
    }
    p.block_cols = 0;
    p.chunks = p.chunks > 1 ? 2 : 1;
    p.partial = 0;
    p.group = 0;
    p.group_at = 0;
    p.strip_at = 0;
    p.turned_at = 0;
    p.is &= ~(int64_t)(MD_TILE_ADD | MD_TILE_SHARED | MD_TILE_NO_C | MD_TILE_IN_PLACE |
                       MD_TILE_UNCUT | MD_TILE_HELPED);
    if (!md_tile_whole(&p) && !(p.is & (ends | MD_TILE_STREAMS))) {
        p.is &= ~(int64_t)(MD_TILE_SWAPPED | MD_TILE_ACROSS);
    }
    return p;
}

/* What md_tile_known tells the block. */
typedef struct {
    int64_t first, end;
    int add, room;
    bool cut;
} Told;

static Told told(const md_tile *plan) {
    Told t = {.add = 2, .room = 2, .cut = plan->chunks > 1 || plan->group_at > 0};
    void *ask = NULL;
    md_tile_known(plan, &t.first, &t.end, &t.add, &t.room, &ask);
    if (plan->cols.n % (64 / plan->elem) == 0) { /* its last vector is full on all machines */
        t.room = 2;
    }
    return t;
}

bool product_same_block(const md_tile *a, const md_tile *b) {
    const md_tile a_seen = seen(a), b_seen = seen(b);
    const Told a_told = told(a), b_told = told(b);
    return memcmp(&a_seen, &b_seen, sizeof a_seen) == 0 && a_told.first == b_told.first &&
           a_told.end == b_told.end && a_told.add == b_told.add && a_told.room == b_told.room &&
           a_told.cut == b_told.cut;
}
