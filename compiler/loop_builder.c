/* loop_builder: LOOP nodes. While a loop is open its body parameters are made in the order of use;
 * at close they are put into the order that graph.h promises (index, carries, invariants, stacks).
 */
#include "compiler/loop_builder.h"

#include "compiler/shape.h"

typedef struct {
    Node *outer; /* value in the region around */
    Node *param; /* in the body */
} Capture;

typedef struct {
    Node *start, *param, *next;
} Carry;

struct LoopBuilder {
    Graph *graph;
    Region *body, *outer;
    Node *index;
    int64_t trip;
    int64_t checkpoint; /* as in Attr */
    bool reverse, aside;
    int go, last; /* as in Attr */
    VEC(Carry) carry;
    VEC(Capture) inv;
    VEC(Capture) xs;
    VEC(Node *) ys;
};

/* A body parameter whose place in the list is settled at close. */
static Node *loose_param(LoopBuilder *loop, Type type) {
    Region *before = graph_enter(loop->graph, loop->body);
    Attr attr = {0};
    Node *node = graph_append(loop->graph, OP_BODY_PARAM, NULL, 0, &attr, NULL, type);
    graph_leave(loop->graph, before);
    return node;
}

LoopBuilder *loop_open(Graph *g, int64_t trip, bool reverse) {
    LoopBuilder *loop = ARENA_NEW(g->arena, LoopBuilder);
    loop->graph = g;
    loop->outer = g->region;
    loop->body = region_new(g, g->region);
    loop->body->loop = loop;
    loop->trip = trip;
    loop->reverse = reverse;
    loop->index = loose_param(loop, type_scalar(TY_I32));
    graph_enter(g, loop->body);
    return loop;
}

static Node *in_outer(LoopBuilder *loop, Node *node) {
    Region *before = graph_enter(loop->graph, loop->outer);
    Node *outer = graph_import(loop->graph, node);
    graph_leave(loop->graph, before);
    return outer;
}

void loop_checkpoint(LoopBuilder *loop, int64_t kept) {
    loop->checkpoint = kept;
}

void loop_aside(LoopBuilder *loop) {
    loop->aside = true;
}

void loop_while(LoopBuilder *loop, int carry) {
    loop->go = 1 + carry;
}

void loop_until(LoopBuilder *loop, Node *last) {
    Node *outer = in_outer(loop, last);
    loop_capture(loop, outer);
    for (int i = 0; i < loop->inv.count; i++) {
        loop->last = loop->inv.at[i].outer == outer ? 1 + i : loop->last;
    }
}

Node *loop_index(LoopBuilder *loop) {
    return loop->index;
}

int loop_carry(LoopBuilder *loop, Node *start) {
    start = in_outer(loop, start);
    Carry carry = {start, loose_param(loop, *start->type), NULL};
    carry.param->name = start->name;
    VEC_PUSH(loop->graph->arena, &loop->carry, carry);
    return loop->carry.count - 1;
}

Node *loop_carry_value(const LoopBuilder *loop, int carry) {
    return loop->carry.at[carry].param;
}

Node *loop_carry_next(const LoopBuilder *loop, int carry) {
    return loop->carry.at[carry].next;
}

int loop_carries(const LoopBuilder *loop) {
    return loop->carry.count;
}

int64_t loop_trip(const LoopBuilder *loop) {
    return loop->trip;
}

static Type without_front(Type t) {
    Type s = {.elem = t.elem, .rank = t.rank - 1};
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = t.dim[i + 1];
    }
    return s;
}

Node *loop_xs(LoopBuilder *loop, Node *stack) {
    stack = in_outer(loop, stack);
    if (stack->type->rank == 0 || stack->type->dim[0] != loop->trip) {
        BUG("a stack of %lld slices is needed", (long long)loop->trip);
    }
    for (int i = 0; i < loop->xs.count; i++) {
        if (loop->xs.at[i].outer == stack) {
            return loop->xs.at[i].param;
        }
    }
    Capture xs = {stack, loose_param(loop, without_front(*stack->type))};
    xs.param->name = stack->name;
    xs.param->loc = stack->loc;
    VEC_PUSH(loop->graph->arena, &loop->xs, xs);
    return xs.param;
}

Node *loop_capture(LoopBuilder *loop, Node *outer) {
    for (int i = 0; i < loop->inv.count; i++) {
        if (loop->inv.at[i].outer == outer) {
            return loop->inv.at[i].param;
        }
    }
    Capture inv = {outer, loose_param(loop, *outer->type)};
    inv.param->name = outer->name;
    inv.param->loc = outer->loc;
    VEC_PUSH(loop->graph->arena, &loop->inv, inv);
    return inv.param;
}

Node *loop_captured(const LoopBuilder *loop, const Node *param) {
    for (int i = 0; i < loop->inv.count; i++) {
        if (loop->inv.at[i].param == param) {
            return loop->inv.at[i].outer;
        }
    }
    return NULL;
}

Node *loop_stack_of(const Node *param) {
    const Region *body = param->region;
    const LoopBuilder *loop = body->loop;
    if (param->op != OP_BODY_PARAM) {
        return NULL;
    }
    for (int i = 0; loop && i < loop->xs.count; i++) {
        if (loop->xs.at[i].param == param) {
            return loop->xs.at[i].outer;
        }
    }
    const Node *owner = loop ? NULL : body->owner;
    int k = param->attr->axis - 1;
    return owner && owner->op == OP_LOOP && k >= owner->attr->ncarry + owner->attr->ninv
               ? owner->in[k]
               : NULL;
}

/* No second stack holds the same values: this one is read a place earlier. */
Node *loop_carry_before(LoopBuilder *loop, Node *next, Node *start, bool reverse) {
    Graph *g = loop->graph;
    const int64_t trip = next->type->dim[0];
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    Region *before = graph_enter(g, next->region);
    lo[0] = !reverse;
    hi[0] = reverse;
    Node *shifted = node_pad(g, node_slice_axis(g, next, 0, reverse, trip - 1, 1), lo, hi,
                             BORDER_EDGE, 0); /* no guard in a vector loop */
    graph_leave(g, before);
    Node *slice = loop_xs(loop, shifted);
    Node *first = node_int(g, TY_I32, reverse ? trip - 1 : 0);
    Node *starts = node_map2(g, OP_EQ, loop_index(loop), first);
    return node_select(g, starts, graph_import(g, start), slice);
}

int loop_next_stack(const Node *loop, int carry) {
    const Region *body = loop->body;
    const Attr *a = loop->attr;
    if (loop_ends_itself(a) || a->trip < 2 || body->out.at[carry]->type->rank >= MD_RANK) {
        return -1;
    }
    for (int k = a->ncarry; k < body->out.count; k++) {
        if (body->out.at[k] == body->out.at[carry]) {
            return k;
        }
    }
    return -1;
}

static Node *in_body(LoopBuilder *loop, Node *node) {
    Region *before = graph_enter(loop->graph, loop->body);
    Node *inner = graph_import(loop->graph, node);
    graph_leave(loop->graph, before);
    return inner;
}

void loop_next(LoopBuilder *loop, int carry, Node *next) {
    loop->carry.at[carry].next = in_body(loop, next);
}

int loop_emit(LoopBuilder *loop, Node *slice) {
    slice = in_body(loop, slice);
    for (int i = 0; i < loop->ys.count; i++) {
        if (loop->ys.at[i] == slice) {
            return i;
        }
    }
    VEC_PUSH(loop->graph->arena, &loop->ys, slice);
    return loop->ys.count - 1;
}

static void place_param(LoopBuilder *loop, Node *param) {
    Attr *attr = ARENA_NEW(loop->graph->arena, Attr);
    attr->axis = loop->body->param.count;
    param->attr = attr;
    VEC_PUSH(loop->graph->arena, &loop->body->param, param);
}

Node *loop_close(LoopBuilder *loop) {
    Graph *g = loop->graph;
    Region *body = loop->body;
    VEC(Node *) in = {0};
    place_param(loop, loop->index);
    for (int i = 0; i < loop->carry.count; i++) {
        Carry *carry = &loop->carry.at[i];
        place_param(loop, carry->param);
        VEC_PUSH(g->arena, &in, carry->start);
        region_result(body, carry->next ? carry->next : carry->param);
    }
    for (int i = 0; i < loop->inv.count; i++) {
        place_param(loop, loop->inv.at[i].param);
        VEC_PUSH(g->arena, &in, loop->inv.at[i].outer);
    }
    for (int i = 0; i < loop->xs.count; i++) {
        place_param(loop, loop->xs.at[i].param);
        VEC_PUSH(g->arena, &in, loop->xs.at[i].outer);
    }
    for (int i = 0; i < loop->ys.count; i++) {
        region_result(body, loop->ys.at[i]);
    }
    Attr attr = {.trip = loop->trip,
                 .reverse = loop->reverse,
                 .aside = loop->aside,
                 .checkpoint = loop->checkpoint,
                 .ncarry = loop->carry.count,
                 .ninv = loop->inv.count,
                 .nxs = loop->xs.count,
                 .nys = loop->ys.count,
                 .go = loop->go,
                 .last = loop->last};
    graph_leave(g, loop->outer);
    body->loop = NULL;
    Type type = shape_infer(OP_LOOP, in.at, in.count, &attr, body, type_scalar(TY_TUPLE));
    return graph_append(g, OP_LOOP, in.at, in.count, &attr, body, type);
}

int loop_last_carry(const Node *loop) {
    const Region *body = loop->body;
    for (int k = 0; k < loop->attr->ncarry; k++) {
        const Node *start = loop->in[k];
        if (body->out.at[k] == body->param.at[0] && start->op == OP_CONST &&
            start->attr->ivalue == -1) {
            return k;
        }
    }
    return -1;
}

int loop_made_carry(const Node *loop) {
    int made = loop->attr->go ? loop_last_carry(loop) : -1;
    for (int i = 0; made >= 0 && i < loop->body->node.count; i++) {
        if (node_reads(loop->body->node.at[i], loop->body->param.at[1 + made])) {
            return -1; /* its iterations ask for it too */
        }
    }
    for (int k = 0; made >= 0 && k < loop->body->out.count; k++) {
        if (loop->body->out.at[k] == loop->body->param.at[1 + made]) {
            return -1;
        }
    }
    return made;
}

static Node *pick(Graph *g, Node *loop, int k) {
    Attr attr = {.axis = k};
    return graph_add(g, OP_PICK, &loop, 1, &attr, type_scalar(TY_ERROR));
}

Node *loop_final(Graph *g, Node *loop, int carry) {
    return pick(g, loop, carry);
}
Node *loop_stack(Graph *g, Node *loop, int y) {
    return pick(g, loop, loop->attr->ncarry + y);
}
