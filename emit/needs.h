/* needs: what a block of a kernel uses of its surroundings when it becomes a function. */
#ifndef MDLC_EMIT_NEEDS_H
#define MDLC_EMIT_NEEDS_H

#include "compiler/kernel.h"

/* The parameters of a kernel that are numbers: the indices of loops around its call, then the sites
 * of its draws. */
int scalar_count(const Kernel *k);
bool scalar_used(const Kernel *k, int scalar); /* or it is no parameter */
const char *scalar_name(Arena *arena, const Kernel *k, int scalar);
const char *scalar_declared(Arena *arena, const Kernel *k, int scalar); /* type and name */

typedef struct {
    bool *arg;    /* by Arg.id */
    AxisSet axes; /* in indices, those of the block's own loops too */
    bool *scalar;
    VEC(const Expr *) value; /* values that have a name outside, in the order of their use */
} Needs;

/* `bound` by Expr.id: names of values outside of the block; NULL: it computes all of them. */
Needs needs_of(Arena *arena, const Kernel *k, const StmtList *list, const char *const *bound);
/* Of a product whose sums are made in pieces, in its workspace: what makes these, and what adds
 * them up and follows. */
Needs needs_of_pieces(Arena *arena, const Kernel *k, const Tile *tile);
Needs needs_of_end(Arena *arena, const Kernel *k, const Tile *tile);

#endif
