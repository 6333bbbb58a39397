/* held: what sums add, and loops that have the few they add to in local variables. */
#ifndef MDLC_EMIT_HELD_H
#define MDLC_EMIT_HELD_H

#include "emit/cstyle.h"

/* In front of the loop and behind it: the variables, and what is copied to them and from them. */
void held_open(Style *s, const Stmt *loop);
void held_close(Style *s, const Stmt *loop);
/* A turn of a vector loop that is held: its body between these. */
void held_turn(Style *s, const Stmt *loop);
/* a = a combined with what `e` gives, as a statement, by the op of a fold or an accumulating store:
 * a term of a product's sum is rounded together with it. */
void combined_print(Style *s, OpCode op, Elem elem, const char *a, const Expr *e);
/* Prints a store to them, or what copies it; false: it is another one. */
bool held_store(Style *s, const Stmt *store);

#endif
