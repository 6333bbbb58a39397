/* derive: derivatives in the source: grad, vjp, stop_gradient. */
#ifndef MDLC_LANG_DERIVE_H
#define MDLC_LANG_DERIVE_H

#include "lang/context.h"

const Value *derive_call(Elab *e, const char *name, const Value *const *v, int n, Loc loc);
/* Does a derivative flow from `value` back to `point`? Both are nodes of one region, or `point` of
 * an enclosing one. */
bool derive_reaches(Elab *e, Node *value, Node *point);

#endif
