/* product: what the schedules of products in tiles share: which axes are rows, columns and batches,
 * their strides, and what is made of the product at each of its elements. */
#ifndef MDLC_PASSES_SCHEDULE_PRODUCT_H
#define MDLC_PASSES_SCHEDULE_PRODUCT_H

#include "passes/schedule/schedule.h"
#include "runtime/tile_plan.h"

#include <string.h>

typedef struct Tiling Tiling;

/* The plan that the tile of a finished kernel holds. */
static inline md_tile product_plan(const Tile *tile) {
    md_tile plan;
    memcpy(&plan, tile->plan, sizeof plan);
    return plan;
}

/* --- cpu_tile.c --- */
/* Found once a product; NULL: an operand is read at no plain strides. `across`: the target can hand
 * on blocks as their transposes. */
Tiling *product_tiling(KernelBuild *b, const Part *part, bool across);
Elem product_half(const Product *of); /* in what an operand at least is stored; TY_ERROR: in none */
md_tile_shape product_shape(const Tiling *p);
int64_t product_bytes(const Product *of); /* operands and result, once */
/* Multiply-adds of a task, which an element of the batch or a part of its sum is. */
int64_t product_task(const md_tile *plan);
/* Are these so many that a loop over tasks which knows no plan as a constant takes no time? */
bool product_large(const md_tile *plan);
/* Loops around the tile, the tile, what follows on its blocks; all but the plan. */
Tile *product_emit(KernelBuild *b, Tiling *p);

/* --- outer.c --- */
/* Which field of a plan, from 1, is how long its outermost axis is: the one that goes with the
 * batch. 0: it has none, or that is short. */
int product_outer(const md_tile *plan);
/* The plan with as much along that axis as is common. */
md_tile product_nominal(const md_tile *plan);

/* --- seen.c --- */
/* Would a C compiler make the same of a block of either plan? */
bool product_same_block(const md_tile *a, const md_tile *b);

/* --- cpu_stream.c --- */
/* Calls `visit` with each load that a value is made of, once; `seen` by Expr.id. */
void product_loads(const Expr *e, bool *seen, void (*visit)(void *ctx, const Expr *load),
                   void *ctx);
/* What the roots read and write for each element of a block of `count` elements in all, along
 * batch, row and column, but the strip itself and root `in_place`, which is C; nothing where that
 * is little. */
void product_streams(KernelBuild *b, const RootList *roots, const Arg *strip, const int *axis,
                     int64_t count, int in_place, StreamList *to);

#endif
