/* arith_join: what arith.c and arith_join.c share. */
#ifndef MDLC_LANG_ARITH_JOIN_H
#define MDLC_LANG_ARITH_JOIN_H

#include "lang/context.h"

void arith_bool_hint(Elab *e); /* behind an error about a bool among numbers */
/* The element type that both are brought to. */
Elem arith_common(Elab *e, Loc loc, const Value *a, const Value *b);
const Value *arith_to(Elab *e, Loc loc, const Value *v, Elem elem);

#endif
