/* owner: whose a node is. Summaries, reports and the names in emitted text ask for it. */
#ifndef MDLC_LANG_OWNER_H
#define MDLC_LANG_OWNER_H

#include "lang/context.h"

/* What follows is done by `item`, called with the path `path` if it is a layer or model, or by what
 * has that name, until owner_leave gets what this gives back. */
uint32_t owner_enter(Elab *e, const Item *item, const char *path);
uint32_t owner_enter_op(Elab *e, const char *does);
void owner_leave(Elab *e, uint32_t before);
/* Of what the item gave: the shape that summaries show for its layer. */
void owner_result(Elab *e, const Value *v);

#endif
