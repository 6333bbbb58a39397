/* inorder: sums whose loops a C compiler must leave in their order. */
#ifndef MDLC_EMIT_INORDER_H
#define MDLC_EMIT_INORDER_H

#include "compiler/kernel.h"

/* A fold over several axes of floats whose inner loops, unrolled, would read memory in another
 * order than its own: backwards, around, or by turns from here and there. gcc before 11.5, 12.4 and
 * 13.2 gives such a sum a wrong value when it vectorizes the loop around (its bug 110381);
 * MD_IN_ORDER in that loop keeps it from that. */
bool fold_in_order(Arena *arena, const Kernel *k, const Stmt *fold);

#endif
