/* needs: what a block of a kernel uses of its surroundings when it becomes a function. */
#ifndef MDLC_EMIT_NEEDS_H
#define MDLC_EMIT_NEEDS_H

#include "compiler/loop.h"

enum { NEEDS_LOOPS = 64 };

typedef struct {
    bool *arg;               /* by Arg.id */
    AxisSet axes;            /* in indices, those of the block's own loops too */
    bool loop[NEEDS_LOOPS];  /* by position in Kernel.loop */
    VEC(const Expr *) value; /* values that have a name outside, in the order of their use */
} Needs;

/* `bound` by Expr.id: names of values outside of the block; NULL: it computes all of them. */
Needs needs_of(Arena *arena, const Kernel *k, const StmtList *list, const char *const *bound);

#endif
