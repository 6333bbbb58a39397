/* narrow: short rows whose bytes go through words. */
#ifndef MDLC_EMIT_NARROW_H
#define MDLC_EMIT_NARROW_H

#include "emit/cstyle.h"

/* In front of a loop over short rows: the local arrays, and what is copied to them; behind it: what
 * is copied from them. Other loops are left alone. */
void narrow_open(Style *s, const Stmt *loop);
void narrow_close(Style *s, const Stmt *loop);
/* What stands for the element of such an argument; NULL: it is another one. */
const char *narrow_place(const Style *s, const Arg *arg);

#endif
