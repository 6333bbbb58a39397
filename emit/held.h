/* held: loops that have the few sums they add to in local variables. */
#ifndef MDLC_EMIT_HELD_H
#define MDLC_EMIT_HELD_H

#include "emit/cstyle.h"

/* In front of the loop and behind it: the variables, and what is copied to them and from them. */
void held_open(Style *s, const Stmt *loop);
void held_close(Style *s, const Stmt *loop);
/* Prints a store to them, or what copies it; false: it is another one. */
bool held_store(Style *s, const Stmt *store);

#endif
