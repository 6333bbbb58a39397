/* fma: products and sums that become one multiply-add.
 *
 * A product of floats whose only use is a sum or a difference is rounded together with it, unless
 * what it is added to is a product too: x * x - y * y is 0 where x is y. What a loop adds up over
 * its turns has rounded terms, as sums over axes have: turns that run side by side add theirs
 * behind the loop. That is decided here, on the graph, by uses alone: what is fused, stored,
 * recomputed or split among threads later changes no bits, nor does a C compiler, which is told to
 * join nothing by itself (docs/decisions/0016-multiply-adds.md). Needs a region at
 * STAGE_OPTIMISED, gives one; a second run changes nothing. */
#include "passes/fma.h"

#include "passes/simplify_rule.h"
#include "passes/sums.h"

/* Products that a carry adds up, of which it is no part, are not rounded with it. */
static void note_sums(const Node *loop) {
    for (int i = 0; i < loop->attr->ncarry; i++) {
        Node *term = sums_term(loop->body->out.at[i], loop->body->param.at[1 + i]);
        if (term && term->op == OP_MUL) {
            term->note = term;
        }
    }
}

/* Node.note of what is needed: its only user; itself where it is used more than once. */
static void note_users(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        region->node.at[i]->note = NULL;
    }
    for (int i = 0; i < region->out.count; i++) {
        region->out.at[i]->note = region->out.at[i];
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        Node *user = region->node.at[i];
        for (int k = 0; user->note && k < user->nin; k++) {
            user->in[k]->note = user->in[k]->note ? user->in[k] : user;
        }
        if (user->op == OP_LOOP) {
            note_users(user->body);
            note_sums(user);
        }
    }
}

static bool is_product(const Node *n) {
    return n->op == OP_MUL || (n->op == OP_NEG && n->in[0]->op == OP_MUL);
}

/* The sum or difference `n`, whose operand k is a product, as one operation. */
static Node *multiply_add(Graph *g, const Node *n, Node *const *in, int k) {
    Node *three[3] = {in[k]->in[0], in[k]->in[1], in[!k]};
    if (n->op == OP_SUB) {
        double value;
        int minus = k == 0 ? 2 : is_uniform(three[1], &value);
        three[minus] = node_map1(g, OP_NEG, three[minus]);
    }
    return graph_add(g, OP_FMA, three, 3, NULL, *n->type);
}

static Node *fuse(void *ctx, Graph *g, const Node *n, Node *const *in) {
    (void)ctx;
    bool sum = (n->op == OP_ADD || n->op == OP_SUB) && elem_is_float(n->type->elem);
    int k = sum && is_product(n->in[1]);
    bool fits = sum && in[k]->op == OP_MUL && n->in[k]->note == n && !is_product(n->in[!k]);
    return fits ? multiply_add(g, n, in, k) : NULL;
}

Region *pass_fma(Graph *g, const Region *region) {
    note_users(region);
    return region_rebuild(g, region, fuse, NULL);
}
