/* feed: a ring as the data of a train or an entry, `train fit of head on cache[B]`. */
#ifndef MDLC_LANG_FEED_H
#define MDLC_LANG_FEED_H

#include "lang/context.h"

/* Makes the data set of a ring that something is fed from; nothing otherwise. */
void feed_item(Elab *e, Item *item);
/* Its number in the module; -1: the ring is wrong, which was said. */
int feed_set(const Elab *e, const Item *item);

#endif
