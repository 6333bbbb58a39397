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
/* Of a ring as data: is it declared well? Then how many rows it holds and the count of its rows. */
bool ring_declared(Elab *e, Item *item);
int64_t ring_capacity(const Item *item);
Slot *ring_cursor(const Item *item);
/* Its field number k at the rows `at` (i32, `rows` of them), or NULL: it has no more. */
const Value *ring_rows_at(Elab *e, const Item *item, int k, Node *at, Dim rows, const char **name);
/* The entry at hand is refused until so many rows were pushed. */
void ring_need(Elab *e, const Item *item, int64_t rows, Loc loc);

#endif
