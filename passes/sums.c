/* sums: sums over the iterations of a loop are sums of its stacks, or keep what rounding drops.
 *
 * A carry that adds up what the loop sums of a slice which it stacks for someone else, as of the
 * gradient of a recurrent layer's bias, is the sum of that stack: one kernel behind the loop and
 * not a short one in each turn, and the same node as another bias' gradient. Sums of a stack whose
 * axes have changed places are those of the stack as it lies, so that both are one. A carry that
 * adds up products of such slices, as of the gradient of a recurrent weight, is one product of the
 * stacks behind the loop (docs/decisions/0135-products-of-stacks.md).
 *
 * Another carry whose next value is itself and a term that does not depend on it, as of the
 * gradient of a weight over the steps of a scan, is one chain as long as the loop. Where that is
 * longer than SUM_CHAIN, a second carry holds what the last addition has lost, which the next one
 * makes good (Kahan 1965): the error is that of one addition, whatever the trip count. It costs the
 * memory of the sum once more. Needs a region at STAGE_OPTIMISED, gives one; a second run changes
 * nothing. */
#include "passes/sums.h"

#include <string.h>

#include "compiler/loop_builder.h"

/* Is `n`, of the body of a loop, made of the carry? Loops read it as an operand. */
static bool is_made_of(const Node *n, const Node *carry) {
    Arena scratch = {0};
    const Region *body = carry->region;
    bool *of = ARENA_ARRAY(&scratch, bool, body->node.count);
    of[carry->id] = true;
    for (uint32_t i = carry->id + 1; i <= n->id; i++) {
        const Node *made = body->node.at[i];
        for (int k = 0; k < made->nin; k++) {
            of[i] = of[i] || of[made->in[k]->id];
        }
    }
    const bool is = of[n->id];
    arena_free(&scratch);
    return is;
}

Node *sums_term(const Node *sum, const Node *carry) {
    if (sum->op != OP_ADD || !elem_is_float(sum->type->elem) ||
        (sum->in[0] == carry) == (sum->in[1] == carry)) {
        return NULL;
    }
    Node *term = sum->in[sum->in[0] == carry];
    return is_made_of(term, carry) ? NULL : term;
}

/* The term of a carry of a loop that is open; NULL where it does something else. */
static Node *term_of(const LoopBuilder *loop, int carry) {
    const Node *sum = loop_carry_next(loop, carry);
    return sum ? sums_term(sum, loop_carry_value(loop, carry)) : NULL;
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
        Node *term = term_of(loop, i), *old = loop_carry_value(loop, i);
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

/* The term of a carry that adds up something and that nothing else in the loop reads; NULL: it is
 * none. */
static const Node *summed_term(const Node *loop, int carry) {
    const Region *body = loop->body;
    const Node *next = body->out.at[carry], *param = body->param.at[1 + carry];
    if (loop_ends_itself(loop->attr) || next->op != OP_ADD ||
        (next->in[0] == param) == (next->in[1] == param) || region_readers(body, param) != 1 ||
        region_readers(body, next) != 1) {
        return NULL;
    }
    return next->in[next->in[0] == param];
}

/* Which of the loop's stacks has that value of its body as slices; -1: none. */
static int stack_of(const Node *loop, const Node *n) {
    for (int y = 0; y < loop->attr->nys; y++) {
        if (loop->body->out.at[loop->attr->ncarry + y] == n) {
            return y;
        }
    }
    return -1;
}

/* Is x what becomes of that result of the loop? */
static bool is_result(const Node *x, const Node *loop, int result) {
    return x->op == OP_PICK && x->in[0] == loop && x->attr->axis == result;
}

/* Does more than loops read the stack, slice by slice, so that it is there as a whole? */
static bool is_whole(const Node *loop, int y) {
    const Region *region = loop->region;
    for (int i = (int)loop->id + 1; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            if (n->op != OP_LOOP && is_result(n->in[k], loop, loop->attr->ncarry + y)) {
                return true;
            }
        }
    }
    return false;
}

/* --- products of stacks ---------------------------------------------------------------------- */

/* What the operands of a product in a loop's body are slices of. */
typedef struct {
    const Node *loop;
    int64_t apart;       /* the iteration where one of them is something else, see
                          * loop_carry_before; -1: there is none */
    int64_t from, count; /* the other ones */
    bool whole;          /* one of them is a stack of the loop that is there as a whole */
} Slices;

/* A stack outside of a loop without the views that move its slices, as far as all of those from
 * `*from` on lie in it; sets where they begin there. */
static Node *moved_stack(Node *x, int64_t *from, int64_t count) {
    for (bool more = true; more;) {
        const Attr *a = x->attr;
        const int64_t at = *from + (x->op == OP_PAD ? -a->lo[0] : x->op == OP_SLICE ? a->lo[0] : 0);
        more = (x->op == OP_SLICE ? a->step[0] == 1 : x->op == OP_PAD) && at >= 0 &&
               at + count <= x->in[0]->type->dim[0];
        for (int i = 1; more && i < x->type->rank; i++) {
            more = x->op == OP_PAD ? a->lo[i] == 0 && a->hi[i] == 0
                                   : x->type->dim[i] == x->in[0]->type->dim[i];
        }
        if (more) {
            *from = at;
            x = x->in[0];
        }
    }
    return x;
}

/* The number among the operands of the loop of a parameter of its body; -1: it is none. */
static int operand_of(const Node *loop, const Node *n) {
    for (int k = 0; n->op == OP_BODY_PARAM && k < loop->nin; k++) {
        if (loop->body->param.at[1 + k] == n) {
            return k;
        }
    }
    return -1;
}

/* Does it choose by whether this is the first or the last iteration? Sets which one. */
static bool is_apart(const Node *loop, const Node *n, int64_t *at) {
    const Node *is = n->op == OP_SELECT ? n->in[0] : NULL;
    is = is && is->op == OP_BROADCAST ? is->in[0] : is;
    if (!is || is->op != OP_EQ || is->in[0] != loop->body->param.at[0] ||
        is->in[1]->op != OP_CONST) {
        return false;
    }
    *at = is->in[1]->attr->ivalue;
    return *at == 0 || *at == loop->attr->trip - 1;
}

static bool are_slices(Slices *s, const Node *n) {
    const Attr *a = s->loop->attr;
    const int y = stack_of(s->loop, n), k = operand_of(s->loop, n);
    int64_t at = s->from;
    if (n->type->rank >= MD_RANK) {
        return false;
    }
    if (y >= 0) {
        s->whole = s->whole || is_whole(s->loop, y);
        return true;
    }
    if (k >= a->ncarry + a->ninv) {
        const OpCode op = moved_stack(s->loop->in[k], &at, s->count)->op;
        return op == OP_PICK || op == OP_SLOT;
    }
    if (op_rounds(n->op)) {
        return are_slices(s, n->in[0]);
    }
    if (!is_apart(s->loop, n, &at) || s->apart != at) {
        return false;
    }
    const int start = operand_of(s->loop, n->in[1]);
    return (node_is_zero(n->in[1]) || (start >= a->ncarry && start < a->ncarry + a->ninv)) &&
           are_slices(s, n->in[2]);
}

/* A product of slices, of which one lies in a stack that is there as a whole. */
static bool is_product(Slices *s, const Node *term) {
    *s = (Slices){.loop = s->loop, .apart = -1};
    if (term->op != OP_CONTRACT || s->loop->attr->trip < 2) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        const Node *n = term->in[k];
        while (op_rounds(n->op)) {
            n = n->in[0];
        }
        int64_t at;
        s->apart = is_apart(s->loop, n, &at) ? at : s->apart;
    }
    s->from = s->apart == 0;
    s->count = s->loop->attr->trip - (s->apart >= 0);
    return are_slices(s, term->in[0]) && are_slices(s, term->in[1]) && s->whole;
}

/* The value that `n` has in all iterations but the one that is apart, one behind the other; `made`
 * is the copy of the loop that is looked at. */
static Node *slices(Graph *g, const Slices *s, Node *made, const Node *n) {
    const int y = stack_of(s->loop, n), k = operand_of(s->loop, n);
    if (y >= 0 || k >= 0) {
        int64_t from = s->from;
        Node *x = y >= 0 ? loop_stack(g, made, y) : moved_stack(made->in[k], &from, s->count);
        return x->type->dim[0] == s->count ? x : node_slice_axis(g, x, 0, from, s->count, 1);
    }
    Node *x = slices(g, s, made, n->in[op_rounds(n->op) ? 0 : 2]);
    return op_rounds(n->op) ? graph_add(g, n->op, &x, 1, n->attr, *x->type) : x;
}

/* The value that `n` has in the iteration that is apart; NULL: it is 0. */
static Node *slice_apart(Graph *g, const Slices *s, Node *made, const Node *n) {
    const int y = stack_of(s->loop, n), k = operand_of(s->loop, n);
    if (node_is_zero(n)) {
        return NULL;
    }
    if (k >= 0 && k < s->loop->attr->ncarry + s->loop->attr->ninv) {
        return made->in[k];
    }
    if (y >= 0 || k >= 0) {
        return node_index_axis(g, y >= 0 ? loop_stack(g, made, y) : made->in[k], 0, s->apart);
    }
    Node *x = slice_apart(g, s, made, n->in[op_rounds(n->op) ? 0 : 1]);
    return x && op_rounds(n->op) ? graph_add(g, n->op, &x, 1, n->attr, *x->type) : x;
}

/* The sum of a product of slices over all iterations. */
static Node *product_of_stacks(Graph *g, const Slices *s, Node *made, const Node *term) {
    const Attr *a = term->attr;
    int8_t label[2][MD_RANK] = {{0}}, turns = 0;
    Node *x[2], *one[2] = {NULL};
    for (int k = 0; k < 2; k++) {
        const int rank = term->in[k]->type->rank;
        memcpy(label[k] + 1, k == 0 ? a->la : a->lb, (size_t)rank);
        for (int i = 1; i <= rank; i++) {
            turns = (int8_t)(label[k][i] >= turns ? label[k][i] + 1 : turns);
        }
        x[k] = slices(g, s, made, term->in[k]);
        one[k] = s->apart >= 0 ? slice_apart(g, s, made, term->in[k]) : NULL;
    }
    label[0][0] = label[1][0] = turns;
    const int rank = term->type->rank;
    Node *sum = node_contract(g, x[0], x[1], label[0], label[1], a->lo_, rank);
    return one[0] && one[1]
               ? node_map2(g, OP_ADD, sum,
                           node_contract(g, one[0], one[1], a->la, a->lb, a->lo_, rank))
               : sum;
}

/* Is the carry's end the sum of one of the loop's stacks, or of products of one, which no loop
 * begins with and which is no result by itself? */
static bool sums_stack(const Node *loop, int carry) {
    const Region *region = loop->region;
    const Node *term = summed_term(loop, carry);
    if (!term) {
        return false;
    }
    const int y = term->op == OP_SUM ? stack_of(loop, term->in[0]) : -1;
    Slices s = {.loop = loop};
    bool fits = y >= 0 ? is_whole(loop, y) : is_product(&s, term);
    for (int i = (int)loop->id + 1; i < region->node.count && fits; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            fits = fits && (n->op != OP_LOOP || !is_result(n->in[k], loop, carry));
        }
    }
    for (int k = 0; k < region->out.count; k++) {
        fits = fits && !is_result(region->out.at[k], loop, carry);
    }
    return fits;
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

/* The sum that the end of a carry of `loop` stands for; `end` is that of its copy. */
static Node *sum_of_stack(Graph *g, const Node *loop, const Node *end) {
    const int carry = end->attr->axis;
    const Node *term = summed_term(loop, carry);
    Node *made = end->in[0], *start = made->in[carry], *sum;
    Slices s = {.loop = loop};
    if (is_product(&s, term)) {
        sum = product_of_stacks(g, &s, made, term);
    } else {
        sum = node_fold(g, OP_SUM, loop_stack(g, made, stack_of(loop, term->in[0])),
                        term->attr->axes << 1 | 1u);
    }
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
            instead[k] = sum_of_stack(g, loop, in[k]);
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
