/* half: floats of 16 bits as element types. */
#ifndef MDLC_LANG_HALF_H
#define MDLC_LANG_HALF_H

#include "lang/context.h"

/* Rounded to `half`, unless it is of that type or `half` is none. */
Node *half_round(Graph *g, Node *node, Elem half);
/* What `v` is an element type of: that of 16 bits where it is one, else what it is computed in. */
Elem half_elem(const Value *v);
/* Has the build such floats? Those that compute in f64 have none. */
bool half_in_build(Elab *e, Loc loc, Elem half);
/* Behind an error: where a float is given and `elem` is one of 16 bits, how to make it one. */
void half_hint(Elab *e, const Value *v, Elem elem);
/* May it stand where elements of this type are asked for? What 16 bits hold is a float, too. */
bool half_fits(const Value *v, Elem elem);
/* The next value of what `slot` stores, `given` in the text as `next`: a number is rounded; what is
 * computed is refused, as it would lose digits that nobody sees go. NULL after an error. */
const Value *half_next(Elab *e, const Slot *slot, const Value *given, const Value *next,
                       const char *name, Loc loc);

#endif
