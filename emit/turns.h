/* turns: where loops begin and end, as text. */
#ifndef MDLC_EMIT_TURNS_H
#define MDLC_EMIT_TURNS_H

#include "emit/cstyle.h"

const char *turns_extent(const Style *s, int axis);
/* First and end of a FOR, or of the loop over axis number `i` of a FOLD; names what is no number.
 */
void turns_bounds(Style *s, const Stmt *st, int i, const char **first, const char **end);

/* Names the end of a loop from `first` on over `most` places at most. */
const char *turns_most(Style *s, int axis, const char *first, int64_t most);

/* Do loops in an iteration of the axis end earlier in some than in others? */
bool turns_uneven(const StmtList *list, int axis);
/* Names the place on the axis of a turn: places go up from the first one and down from the last one
 * by turns, so that as many turns do as much, wherever they are. */
void turns_even(Style *s, int axis, const char *turn);

#endif
