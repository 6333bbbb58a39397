/* derive: derivatives in the source: grad, vjp, jvp, stop_gradient. */
#ifndef MDLC_LANG_DERIVE_H
#define MDLC_LANG_DERIVE_H

#include "lang/context.h"

const Value *derive_call(Elab *e, const char *name, const Value *const *v, int n, Loc loc);
/* Is the value made of a derivative? */
bool derive_used(Elab *e, const Node *value);

#endif
