/* ring: buffers of rows that trains and entries fill and sample. */
#ifndef MDLC_LANG_RING_H
#define MDLC_LANG_RING_H

#include "lang/context.h"

/* replay.push(...), replay.sample(n) */
const Value *ring_call(Elab *e, Item *item, const Ast *call);
/* replay.count; replay.obs, all rows that there is room for. */
const Value *ring_field(Elab *e, Item *item, const Ast *dot);
/* The ring that a plain name means here; NULL: none. */
Item *ring_named(const Elab *e, const Ast *name);
/* Checks the declaration, whether anything uses it or not. */
void ring_item(Elab *e, Item *item);

#endif
