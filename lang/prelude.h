/* prelude: the functions and constants that every file sees. */
#ifndef MDLC_LANG_PRELUDE_H
#define MDLC_LANG_PRELUDE_H

#include "lang/call.h"
#include "lang/prelude_names.h"

/* NULL: no such constant. */
const Value *prelude_constant(Elab *e, const char *name, Loc loc);
bool prelude_has(const char *name); /* a function */
bool prelude_has_constant(const char *name);
const Value *prelude_call(Elab *e, const char *name, const Ast *call, Arguments *args);
void prelude_nearest(Nearest *n);
/* A hint, if an argument's name is what others call an axis. */
bool prelude_hint_axis(Elab *e, const char *name);

#endif
