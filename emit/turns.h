/* turns: where loops begin and end, as text. */
#ifndef MDLC_EMIT_TURNS_H
#define MDLC_EMIT_TURNS_H

#include "emit/cstyle.h"

const char *turns_extent(const Style *s, int axis);
/* First and end of a FOR, or of the loop over axis number `i` of a FOLD; names what is no number.
 */
void turns_bounds(Style *s, const Stmt *st, int i, const char **first, const char **end);

#endif
