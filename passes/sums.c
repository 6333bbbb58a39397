/* sums: sums over many iterations of a loop keep what rounding drops.
 *
 * A carry whose next value is itself and a term that does not depend on it, as of the gradient of a
 * weight over the steps of a scan, is one chain as long as the loop. Where that is longer than
 * SUM_CHAIN, a second carry holds what the last addition has lost, which the next one makes good
 * (Kahan 1965): the error is that of one addition, whatever the trip count. It costs the memory of
 * the sum once more. Needs a region at STAGE_OPTIMISED, gives one; a second run changes nothing. */
#include "passes/sums.h"

#include "compiler/loop_builder.h"

typedef struct {
    const Node *carry;
    bool *seen;
} Depends;

/* Whether the carry is part of `n`; loops read it as an operand. */
static bool depends(const Depends *d, const Node *n) {
    if (n == d->carry) {
        return true;
    }
    if (d->seen[n->id]) {
        return false;
    }
    d->seen[n->id] = true;
    for (int k = 0; k < n->nin; k++) {
        if (depends(d, n->in[k])) {
            return true;
        }
    }
    return false;
}

/* The term of a carry that sums; NULL where it does something else. */
static Node *term_of(Graph *g, const LoopBuilder *loop, int carry) {
    const Node *sum = loop_carry_next(loop, carry), *param = loop_carry_value(loop, carry);
    if (!sum || sum->op != OP_ADD || !elem_is_float(sum->type->elem) ||
        (sum->in[0] == param) == (sum->in[1] == param)) {
        return NULL;
    }
    Arena scratch = {0};
    Node *term = sum->in[sum->in[0] == param];
    Depends d = {param, ARENA_ARRAY(&scratch, bool, g->region->node.count)};
    bool other = depends(&d, term);
    arena_free(&scratch);
    return other ? NULL : term;
}

/* Whether the term already makes good what the carry has lost. */
static bool keeps_already(const LoopBuilder *loop, int carry, const Node *term) {
    const Node *sum = loop_carry_next(loop, carry), *param = loop_carry_value(loop, carry);
    for (int k = 0; term->op == OP_SUB && k < loop_carries(loop); k++) {
        const Node *lost = loop_carry_next(loop, k);
        lost = lost && lost->op == OP_SELECT ? lost->in[1] : NULL;
        if (term->in[1] == loop_carry_value(loop, k) && lost && lost->op == OP_SUB &&
            lost->in[1] == term && lost->in[0]->op == OP_SUB && lost->in[0]->in[0] == sum &&
            lost->in[0]->in[1] == param) {
            return true;
        }
    }
    return false;
}

static void close_loop(void *ctx, Graph *g, LoopBuilder *loop) {
    (void)ctx;
    int carries = loop_trip(loop) > SUM_CHAIN ? loop_carries(loop) : 0;
    for (int i = 0; i < carries; i++) {
        Node *term = term_of(g, loop, i), *old = loop_carry_value(loop, i);
        if (!term || keeps_already(loop, i, term)) {
            continue;
        }
        Region *body = graph_enter(g, g->region->up);
        Node *zero = node_full(g, *old->type, 0);
        graph_leave(g, body);
        int lost = loop_carry(loop, zero);
        Node *more = node_map2(g, OP_SUB, term, loop_carry_value(loop, lost));
        Node *sum = node_map2(g, OP_ADD, old, more);
        loop_next(loop, i, sum);
        Node *dropped = node_map2(g, OP_SUB, node_map2(g, OP_SUB, sum, old), more);
        /* An infinite sum has lost nothing: what the subtractions say there would make it a NaN. */
        loop_next(loop, lost,
                  node_select(g, node_map1(g, OP_ISFINITE, sum), dropped,
                              node_const(g, old->type->elem, 0)));
    }
}

static bool is_long(const Node *n) {
    return n->op == OP_LOOP && n->attr->trip > SUM_CHAIN;
}

bool sums_applies(const Region *region) {
    return region_any(region, is_long);
}

Region *pass_sums(Graph *g, const Region *region) {
    return region_rebuild_loops(g, region, close_loop, NULL);
}
