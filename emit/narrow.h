/* narrow: short rows whose bytes go through words. */
#ifndef MDLC_EMIT_NARROW_H
#define MDLC_EMIT_NARROW_H

#include "emit/cstyle.h"

/* Prints a loop over short rows, from `first` to `end`; false, and nothing done: it is none. */
bool narrow_loop(Style *s, const Stmt *loop, const char *first, const char *end);
/* What stands for the element of such an argument; NULL: it is another one. */
const char *narrow_place(const Style *s, const Arg *arg);

#endif
