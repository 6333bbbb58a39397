/* grad_late: results of a loop that are made for others than its adjoint, made by the adjoint.
 *
 * An adjoint that runs the turns of its loop again has at hand what they are made of. What
 * nothing of the derivative asks for, such as the logarithm of a density that a flow adds up on
 * its way to the loss, need then not be made by the loop as well: the adjoint stacks what each
 * turn adds, and a loop behind it goes through the stacks as the carry did, in the order of the
 * turns and by the same operations, so that bits stay. Loops in the body hand on what their own
 * adjoints give. Whether the loop in front can do without is known when all adjoints are made
 * (grad_moved.c); what nobody reads then is left out.
 *
 * Contract: the adjoint of the loop is open and complete; adds results to it and no stacks to
 * the loop in front. */
#include "passes/grad_replay.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 64,       /* nodes between a carry and its next value, at most */
    PART = 4,         /* stacks take at most one in so many bytes that a turn makes, */
    FLOPS_A_BYTE = 64 /* and spare so many FLOPs for each of theirs */
};

/* What the next value of a carry is made of beside the carry: a value of the turn, or leaf `of` of
 * what a loop in the body gives. */
typedef struct {
    Node *node;
    const Given *inner;
    int of;
} Leaf;

/* A carry that nothing but itself reads, and adds something to: no derivative asks for it. */
struct Late {
    const Node *loop;
    Node *carry; /* as a parameter of the body */
    Node *next;
    bool *depends; /* by node of the body: on the carry */
    Arena *scratch;
    int steps;
    VEC(Leaf) leaf;
};

typedef struct {
    int result;
    const Late *late;   /* NULL: a stack */
    int count, *number; /* of what the adjoint emits for it */
} Gift;
struct Gifts {
    const Node *loop;
    VEC(Gift) of;
};

/* --- late carries ----------------------------------------------------------------------------- */

static bool result_reads(const Node *loop, int result, int operand, Arena *scratch);

/* Marks all nodes of a body that depend on those marked. */
static void find_depending(const Region *body, bool *on, Arena *scratch) {
    for (int i = 0; i < body->node.count; i++) {
        const Node *n = body->node.at[i];
        const Node *of = n->op == OP_PICK ? n->in[0] : n;
        for (int k = 0; k < of->nin && n->op != OP_LOOP && !on[i]; k++) {
            on[i] = on[of->in[k]->id] && (of == n || result_reads(of, n->attr->axis, k, scratch));
        }
    }
}

/* Does a result of a loop depend on one of its operands? */
static bool result_reads(const Node *loop, int result, int operand, Arena *scratch) {
    const Region *body = loop->body;
    const int turns = loop->attr->trip > 1 ? loop->attr->ncarry : 0;
    bool *on = ARENA_ARRAY(scratch, bool, body->node.count + 1);
    on[body->param.at[1 + operand]->id] = true;
    for (bool grown = true; grown;) {
        grown = false;
        find_depending(body, on, scratch);
        for (int k = 0; k < turns; k++) {
            bool *param = &on[body->param.at[1 + k]->id];
            grown = grown || (on[body->out.at[k]->id] && !*param);
            *param = *param || on[body->out.at[k]->id];
        }
    }
    return on[body->out.at[result]->id] || loop->attr->trip < 1 || loop_ends_itself(loop->attr);
}

static const Given *given_for(const Replay *r, const Node *pick) {
    for (int i = 0; pick->op == OP_PICK && i < r->given.count; i++) {
        const Given *given = &r->given.at[i];
        if (given->loop == pick->in[0] && given->result == pick->attr->axis) {
            return given;
        }
    }
    return NULL;
}

static bool is_number(const Node *n) {
    return (n->op == OP_BROADCAST ? n->in[0] : n)->op == OP_CONST;
}

static void add_leaf(Late *l, Node *n, const Given *inner, int of) {
    for (int i = 0; i < l->leaf.count; i++) {
        const Leaf *leaf = &l->leaf.at[i];
        if (leaf->node == n && leaf->inner == inner && leaf->of == of) {
            return;
        }
    }
    Leaf fresh = {n, inner, of};
    VEC_PUSH(l->scratch, &l->leaf, fresh);
}

/* Is `n` linear in the carry, by few operations? Notes the leaves. Products by numbers are none:
 * additions round them together with the sum. */
static bool find_leaves(const Replay *r, Late *l, Node *n) {
    if (++l->steps > STEPS) {
        return false;
    }
    if (n == l->carry || (!l->depends[n->id] && is_number(n))) {
        return true;
    }
    if (!l->depends[n->id] && n->op == OP_MUL && is_number(n->in[1])) {
        return find_leaves(r, l, n->in[0]);
    }
    if (!l->depends[n->id]) {
        add_leaf(l, n, NULL, 0);
        return n->type->rank < MD_RANK;
    }
    const Given *given = given_for(r, n);
    if (given && given->late) {
        for (int i = 0; i < given->late->leaf.count; i++) {
            add_leaf(l, NULL, given, i);
        }
        return find_leaves(r, l, n->in[0]->in[n->attr->axis]);
    }
    bool linear = n->op == OP_ADD || n->op == OP_SUB || n->op == OP_NEG ||
                  (n->op == OP_MUL && is_number(n->in[1]));
    for (int k = 0; linear && k < n->nin; k++) {
        linear = find_leaves(r, l, n->in[k]);
    }
    return linear;
}

/* NULL: the carry is none. */
static Late *late_find(const Replay *r, int carry, int nresults, Arena *scratch) {
    const Node *loop = r->loop;
    const Region *body = loop->body;
    Node *param = body->param.at[1 + carry], *next = body->out.at[carry];
    if (!elem_is_float(param->type->elem) || next == param) {
        return NULL;
    }
    Late *l = ARENA_NEW(scratch, Late);
    *l = (Late){.loop = loop, .carry = param, .next = next, .scratch = scratch};
    l->depends = ARENA_ARRAY(scratch, bool, body->node.count + 1);
    l->depends[param->id] = true;
    find_depending(body, l->depends, scratch);
    for (int k = 0; k < nresults; k++) {
        if (k != carry && l->depends[body->out.at[k]->id]) {
            return NULL;
        }
    }
    return find_leaves(r, l, next) && l->leaf.count > 0 ? l : NULL;
}

static Late *late_stack(const Replay *r, int result, Arena *scratch) {
    Late *l = ARENA_NEW(scratch, Late);
    *l = (Late){.loop = r->loop, .next = r->loop->body->out.at[result], .scratch = scratch};
    add_leaf(l, l->next, NULL, 0);
    return l->next->type->rank < MD_RANK ? l : NULL;
}

/* --- what they end as ------------------------------------------------------------------------- */

static Node *late_end(Graph *g, const Late *l, Node *start, Node *const *stack);

/* `n` of the body in the current region, where the carry and the leaves are these. */
static Node *made_late(Graph *g, const Late *l, const Node *n, Node *carry, Node *const *leaf) {
    if (n == l->carry) {
        return carry;
    }
    for (int i = 0; i < l->leaf.count; i++) {
        const Leaf *of = &l->leaf.at[i];
        if (of->node == n) {
            return leaf[i];
        }
        if (of->inner && n->op == OP_PICK && n->in[0] == of->inner->loop &&
            n->attr->axis == of->inner->result) {
            Node *start = made_late(g, l, n->in[0]->in[n->attr->axis], carry, leaf);
            return late_end(g, of->inner->late, start, leaf + i);
        }
    }
    Node **in = ARENA_ARRAY(l->scratch, Node *, n->nin + 1);
    for (int k = 0; k < n->nin; k++) {
        in[k] = made_late(g, l, n->in[k], carry, leaf);
    }
    g->loc = n->loc;
    return graph_copy(g, n, in);
}

/* The carry behind all turns, of the stacks of its leaves. */
static Node *late_end(Graph *g, const Late *l, Node *start, Node *const *stack) {
    const Attr *a = l->loop->attr;
    const bool whole = l->depends[l->next->id] && a->trip > 1;
    const int64_t last = a->reverse ? 0 : a->trip - 1;
    LoopBuilder *turns = whole ? loop_open(g, a->trip, a->reverse) : NULL;
    Node **leaf = ARENA_ARRAY(l->scratch, Node *, l->leaf.count);
    Node *carry = start;
    int number = turns ? loop_carry(turns, start) : 0;
    for (int i = 0; i < l->leaf.count; i++) {
        leaf[i] = turns ? loop_xs(turns, stack[i]) : node_index_axis(g, stack[i], 0, last);
    }
    carry = turns ? loop_carry_value(turns, number) : carry;
    Node *next = made_late(g, l, l->next, carry, leaf);
    if (!turns) {
        return next;
    }
    loop_next(turns, number, next);
    return loop_final(g, loop_close(turns), number);
}

/* --- what it costs ---------------------------------------------------------------------------- */

typedef struct {
    Replay *r;
    bool *seen;
    bool given; /* something of it is given by an inner adjoint */
} Search;

static double flops_more(Search *s, Node *n);

/* What stands for the result of an inner loop in the body of the adjoint. */
static double take_given(Search *s, const Node *pick, const Given *given) {
    Replay *r = s->r;
    Node *start = NULL, *value = given->stack[0];
    s->given = true;
    if (given->late) {
        Node *from = pick->in[0]->in[pick->attr->axis];
        const bool needs = given->late->depends[given->late->next->id];
        if (needs && isinf(flops_more(s, from))) {
            return INFINITY;
        }
        Region *before = graph_enter(r->g, r->at);
        start = needs ? r->make(r, from) : NULL;
        value = late_end(r->g, given->late, start, given->stack);
        graph_leave(r->g, before);
    }
    replay_grow(r);
    r->value[pick->id] = value;
    return 0;
}

/* FLOPs of making `n` in a turn of the adjoint, beside what it makes anyway. Infinite: it takes a
 * loop or a stack. */
static double flops_more(Search *s, Node *n) {
    Replay *r = s->r;
    replay_grow(r);
    if (r->value[n->id] || s->seen[n->id]) {
        return 0;
    }
    s->seen[n->id] = true;
    const Attr *a = r->loop->attr;
    if (n->op == OP_BODY_PARAM) {
        return n->attr->axis > 0 && n->attr->axis <= a->ncarry ? INFINITY : 0;
    }
    const Given *given = given_for(r, n);
    if (given) {
        return take_given(s, n, given);
    }
    if (n->op == OP_PICK || n->op == OP_LOOP ||
        !computed_again(r->save, n, same_every_time(r, n))) {
        return INFINITY;
    }
    double flops = node_flops(n);
    for (int k = 0; k < n->nin; k++) {
        flops += flops_more(s, n->in[k]);
    }
    return flops;
}

/* What results of a body are made of. */
typedef struct {
    bool *result; /* by result; with those that turns hand on to one another for them */
    bool *made;   /* by node */
    bool **inner; /* by node: the results of that loop; NULL: none */
} Made;

static Made find_made(const Region *body, const Attr *loop, bool *result, Arena *scratch) {
    const int count = body->node.count;
    Made m = {.result = result,
              .made = ARENA_ARRAY(scratch, bool, count + 1),
              .inner = ARENA_ARRAY(scratch, bool *, count + 1)};
    for (bool grown = true; grown;) {
        grown = false;
        for (int k = 0; k < body->out.count; k++) {
            m.made[body->out.at[k]->id] |= result[k];
        }
        for (int i = count - 1; i >= 0; i--) {
            const Node *n = body->node.at[i];
            Made in = {0};
            if (m.inner[i]) {
                in = find_made(n->body, n->attr, m.inner[i], scratch);
            }
            for (int k = 0; m.made[i] && k < n->nin; k++) {
                m.made[n->in[k]->id] |= !in.made || in.made[n->body->param.at[1 + k]->id];
            }
            if (m.made[i] && n->op == OP_PICK) {
                bool **of = &m.inner[n->in[0]->id];
                *of = *of ? *of : ARENA_ARRAY(scratch, bool, n->in[0]->body->out.count);
                (*of)[n->attr->axis] = true;
            }
        }
        for (int k = 0; loop && k < loop->ncarry; k++) {
            grown = grown || (m.made[body->param.at[1 + k]->id] && !result[k]);
            result[k] = result[k] || m.made[body->param.at[1 + k]->id];
        }
    }
    return m;
}

/* FLOPs of a body for the results `wanted` that none of the others needs. */
static double flops_alone(const Region *body, const Attr *loop, bool *wanted, bool *others,
                          Arena *scratch) {
    const Made want = find_made(body, NULL, wanted, scratch);
    const Made other = find_made(body, loop, others, scratch);
    double flops = 0;
    for (int i = 0; i < body->node.count; i++) {
        const Node *n = body->node.at[i];
        if (want.made[i] && !other.made[i]) {
            flops += node_flops(n);
        } else if (want.inner[i] && other.inner[i]) {
            flops += (double)n->attr->trip *
                     flops_alone(n->body, n->attr, want.inner[i], other.inner[i], scratch);
        }
    }
    return flops;
}

/* Does it spare more than it takes to have the adjoint of the loop make that result? */
static bool pays(Replay *r, const Late *l, int result, int nresults) {
    const Region *body = r->loop->body;
    Arena *scratch = l->scratch;
    bool *wanted = ARENA_ARRAY(scratch, bool, body->out.count);
    bool *others = ARENA_ARRAY(scratch, bool, body->out.count);
    for (int k = 0; k < nresults; k++) {
        wanted[k] = k == result;
        others[k] = k != result;
    }
    Search s = {.r = r, .seen = ARENA_ARRAY(scratch, bool, body->node.count)};
    double more = 0, bytes = 0;
    for (int i = 0; i < l->leaf.count; i++) {
        const Leaf *leaf = &l->leaf.at[i];
        more += leaf->inner ? 0 : flops_more(&s, leaf->node);
        bytes += (double)type_bytes(
            *(leaf->inner ? leaf->inner->stack[leaf->of]->type : leaf->node->type));
        s.given = s.given || leaf->inner;
    }
    if (isinf(more) || !(s.given || r->save == GRAD_SAVE_CARRIES)) {
        return false;
    }
    const double alone = flops_alone(body, r->loop->attr, wanted, others, scratch);
    return alone > 2 * more && alone > FLOPS_A_BYTE * bytes &&
           (double)r->loop->attr->trip * bytes <= made_bytes(body) / PART;
}

/* --- gifts ------------------------------------------------------------------------------------ */

/* Would updates of weights that run in the adjoint, slice by slice, have to wait for a loss that it
 * makes? Their gradients are kept as a whole then: few beside what a turn makes may be. */
static bool weights_wait(const Node *loop) {
    return weight_bytes(loop) > made_bytes(loop->body) / PART;
}

static void emit(Replay *r, const Late *l, int result, Gifts *gifts) {
    Gift gift = {.result = result, .late = l->carry ? l : NULL, .count = l->leaf.count};
    gift.number = ARENA_ARRAY(l->scratch, int, gift.count);
    for (int i = 0; i < gift.count; i++) {
        const Leaf *leaf = &l->leaf.at[i];
        Node *value = leaf->inner ? leaf->inner->stack[leaf->of] : r->make(r, leaf->node);
        gift.number[i] = loop_emit(r->adjoint, value);
    }
    VEC_PUSH(l->scratch, &gifts->of, gift);
}

Gifts *gifts_open(Sweep *s, Replay *r, const Node *n, int nresults, bool stacks) {
    const Attr *a = n->attr;
    Gifts *gifts = ARENA_NEW(s->scratch, Gifts);
    *gifts = (Gifts){.loop = n};
    const bool beside = n->region == r->at->up; /* as their region ends, readers are told */
    const bool pay = (s->replay || beside) && a->trip > 0 && !loop_ends_itself(a) &&
                     (s->replay || !weights_wait(n));
    for (int k = 0; k < nresults && (pay || stacks); k++) {
        const bool stack = k >= a->ncarry, anyway = stack && stacks;
        const Late *l =
            stack ? late_stack(r, k, s->scratch) : late_find(r, k, nresults, s->scratch);
        if (l && (anyway || (pay && pays(r, l, k, nresults)))) {
            emit(r, l, k, gifts);
        }
    }
    return gifts->of.count > 0 ? gifts : NULL;
}

void gifts_note(Sweep *s, const Gifts *gifts, Node *adjoint) {
    const Node *loop = gifts->loop;
    for (int i = 0; i < gifts->of.count; i++) {
        const Gift *gift = &gifts->of.at[i];
        Given given = {.loop = loop, .result = gift->result, .late = gift->late};
        given.stack = ARENA_ARRAY(s->scratch, Node *, gift->count);
        for (int k = 0; k < gift->count; k++) {
            given.stack[k] = loop_stack(s->g, adjoint, gift->number[k]);
        }
        if (s->replay) {
            VEC_PUSH(s->scratch, &s->replay->given, given);
            continue;
        }
        const Late *l = gift->late;
        Node *again = l ? late_end(s->g, l, loop->in[gift->result], given.stack) : given.stack[0];
        Moved moved = {loop, gift->result, again};
        VEC_PUSH(s->scratch, &s->run->moved->of, moved);
    }
}
