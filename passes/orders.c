/* orders: ORDER as other operations, for targets that have no schedule for it.
 *
 * What takes its place is that of compiler/order.c: counts, selection, blocks or merges, by what
 * they cost. Needs a region at STAGE_BUILT, so that later passes see what it is made of; gives one
 * of that stage; changes no values: there is one order of a line. */
#include "passes/orders.h"

#include "compiler/order.h"

static Node *visit(void *ctx, Graph *g, const Node *n, Node *const *in) {
    (void)ctx;
    return n->op == OP_ORDER ? order_spelled(g, n, in[0]) : NULL;
}

Region *pass_orders(Graph *g, const Region *region) {
    return region_rebuild(g, region, visit, NULL);
}

static bool is_order(const Node *n) {
    return n->op == OP_ORDER;
}

bool orders_applies(const Region *region) {
    return region_any(region, is_order);
}
