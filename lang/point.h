/* point: the values that derivatives are taken by are values of their own. See point.c. */
#ifndef MDLC_LANG_POINT_H
#define MDLC_LANG_POINT_H

#include "lang/context.h"

/* `v`, which is bound to the name in the body at hand; as a value of its own if the body takes
 * derivatives by that name. */
const Value *point_bind(Elab *e, const char *name, const Value *v);
/* The same of an argument: one that is known when compiling. Others are values of the caller. */
const Value *point_given(Elab *e, const char *name, const Value *v);

#endif
