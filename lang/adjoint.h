/* adjoint: derivatives that an op writes itself. */
#ifndef MDLC_LANG_ADJOINT_H
#define MDLC_LANG_ADJOINT_H

#include "lang/context.h"

/* The result `v` of a call of `item`, whose scope is still in force, with its adjoint. */
const Value *adjoint_wrap(Elab *e, Item *item, const Value *v);

#endif
