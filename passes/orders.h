/* orders: ORDER as other operations, for targets that have no schedule for it. See orders.c. */
#ifndef MDLC_PASSES_ORDERS_H
#define MDLC_PASSES_ORDERS_H

#include "compiler/graph.h"

/* Needs a region at STAGE_BUILT; gives one of that stage without ORDER; changes no values. */
Region *pass_orders(Graph *g, const Region *region);
bool orders_applies(const Region *region); /* it holds one */

#endif
