/* sums: sums over the iterations of a loop are sums of its stacks, or keep what rounding drops.
 *
 * A carry that adds up what the loop sums of a slice which it stacks for someone else, as of the
 * gradient of a recurrent layer's bias, is the sum of that stack: one kernel behind the loop and
 * not a short one in each turn, and the same node as another bias' gradient. Sums of a stack whose
 * axes have changed places are those of the stack as it lies, so that both are one.
 *
 * Another carry whose next value is itself and a term that does not depend on it, as of the
 * gradient of a weight over the steps of a scan, is one chain as long as the loop. Where that is
 * longer than SUM_CHAIN, a second carry holds what the last addition has lost, which the next one
 * makes good (Kahan 1965): the error is that of one addition, whatever the trip count. It costs the
 * memory of the sum once more. Needs a region at STAGE_OPTIMISED, gives one; a second run changes
 * nothing. */
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

/* --- sums of stacks -------------------------------------------------------------------------- */

/* The term of a carry that adds up sums of what the loop also stacks, and nothing else reads, and
 * in *y which of its stacks that is; NULL: it is none. */
static const Node *stacked_term(const Node *loop, int carry, int *y) {
    const Region *body = loop->body;
    const Attr *a = loop->attr;
    const Node *next = body->out.at[carry], *param = body->param.at[1 + carry];
    if (loop_ends_itself(a) || next->op != OP_ADD ||
        (next->in[0] == param) == (next->in[1] == param)) {
        return NULL;
    }
    const Node *term = next->in[next->in[0] == param];
    if (term->op != OP_SUM || region_readers(body, param) != 1 || region_readers(body, next) != 1) {
        return NULL;
    }
    for (*y = 0; *y < a->nys && body->out.at[a->ncarry + *y] != term->in[0]; ++*y) {
    }
    return *y < a->nys ? term : NULL;
}

/* Is x what becomes of that result of the loop? */
static bool is_result(const Node *x, const Node *loop, int result) {
    return x->op == OP_PICK && x->in[0] == loop && x->attr->axis == result;
}

/* Is the carry's end such a sum, which no loop begins with and which is no result by itself, and
 * does more than loops read the stack, slice by slice, so that it is there as a whole? */
static bool sums_stack(const Node *loop, int carry) {
    const Region *region = loop->region;
    int y;
    if (!stacked_term(loop, carry, &y)) {
        return false;
    }
    bool whole = false, fits = true;
    for (int i = (int)loop->id + 1; i < region->node.count && fits; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            whole |= n->op != OP_LOOP && is_result(n->in[k], loop, loop->attr->ncarry + y);
            fits = fits && (n->op != OP_LOOP || !is_result(n->in[k], loop, carry));
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        fits = fits && !is_result(region->out.at[k], loop, carry);
    }
    return whole && fits;
}

/* What the sum is of in the axes of `x`, which `turned` has in another order; 0: what is left of
 * them changes places too. */
static uint32_t axes_behind(const Node *turned, uint32_t axes) {
    uint32_t behind = 0;
    int before = -1;
    for (int i = 0; i < turned->type->rank; i++) {
        const int from = turned->attr->map[i];
        if (axes >> i & 1) {
            behind |= 1u << from;
        } else if (from < before) {
            return 0;
        } else {
            before = from;
        }
    }
    return behind;
}

/* The sum that the end of a carry of a loop, which is made new already, stands for. */
static Node *sum_of_stack(Graph *g, const Node *end) {
    Node *loop = end->in[0];
    int y;
    const Node *term = stacked_term(loop, end->attr->axis, &y);
    if (!term) {
        BUG("a carry that was a sum of slices is none in the copy of its loop");
    }
    Node *start = loop->in[end->attr->axis];
    Node *sum = node_fold(g, OP_SUM, loop_stack(g, loop, y), term->attr->axes << 1 | 1u);
    return node_is_zero(start) ? sum : node_map2(g, OP_ADD, start, sum);
}

static Node *read_stacks(void *ctx, Graph *g, const Node *old, Node *const *in) {
    (void)ctx;
    if (old->op == OP_SUM && in[0]->op == OP_PERMUTE && in[0]->in[0]->op == OP_PICK) {
        uint32_t axes = axes_behind(in[0], old->attr->axes);
        return axes ? node_fold(g, OP_SUM, in[0]->in[0], axes) : NULL;
    }
    Arena scratch = {0};
    Node **instead = NULL, *copy = NULL;
    for (int k = 0; k < old->nin; k++) {
        const Node *x = old->in[k], *loop = x->op == OP_PICK ? x->in[0] : NULL;
        if (loop && loop->op == OP_LOOP && x->attr->axis < loop->attr->ncarry &&
            sums_stack(loop, x->attr->axis)) {
            instead = instead ? instead : ARENA_ARRAY(&scratch, Node *, old->nin);
            instead[k] = sum_of_stack(g, in[k]);
        }
    }
    for (int k = 0; instead && k < old->nin; k++) {
        instead[k] = instead[k] ? instead[k] : in[k];
    }
    copy = instead ? graph_copy(g, old, instead) : NULL;
    arena_free(&scratch);
    return copy;
}

static bool sums_stacks(const Node *n) {
    bool any = false;
    for (int k = 0; n->op == OP_LOOP && k < n->attr->ncarry && !any; k++) {
        any = sums_stack(n, k);
    }
    return any;
}

static bool is_long(const Node *n) {
    return n->op == OP_LOOP && n->attr->trip > SUM_CHAIN;
}

bool sums_applies(const Region *region) {
    return region_any(region, is_long) || region_any(region, sums_stacks);
}

Region *pass_sums(Graph *g, const Region *region) {
    const Region *stacks =
        region_any(region, sums_stacks) ? region_rebuild(g, region, read_stacks, NULL) : region;
    return region_rebuild_loops(g, stacks, close_loop, NULL);
}
