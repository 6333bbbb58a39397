/* constant: values of the dims and constants of a file. */
#ifndef MDLC_LANG_CONSTANT_H
#define MDLC_LANG_CONSTANT_H

#include "lang/context.h"

/* The value of a dim or const item under the rebinding in force; tensors are nodes of the region at
 * hand, or of one around it. */
const Value *constant_value(Elab *e, Item *item, Loc loc);

#endif
