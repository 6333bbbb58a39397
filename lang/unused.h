/* unused: what no train, entry or test has reached is looked at too, for its errors alone. */
#ifndef MDLC_LANG_UNUSED_H
#define MDLC_LANG_UNUSED_H

#include "lang/context.h"

void unused_check(Elab *e);

#endif
