/* random_loop: loops with carries, stacks and bodies of random ops; derivatives and adjoints. */
#include "random_module.h"

#include "compiler/flow.h"

#include <math.h>

enum { CARRIES = 3, YS = 2 };

typedef struct {
    LoopBuilder *builder;
    int64_t trip;
    int ncarry, ny;
    int carry[CARRIES], y[YS];
    Val state[CARRIES]; /* bounds of all iterations; the node is the start */
    Val slice[YS];
} RandomLoop;

/* What a carry may hold: its start, or a next value within -1..1. */
static Val carry_bounds(Val start) {
    Elem elem = start.node->type->elem;
    if (elem_is_float(elem)) {
        return (Val){start.node, fmin(start.lo, -1), fmax(start.hi, 1)};
    }
    bool flag = elem == TY_BOOL;
    return (Val){start.node, flag ? 0 : -INFINITY, flag ? 1 : INFINITY};
}

static void take_carries(Gen *gen, RandomLoop *r) {
    for (int k = 0; k < r->ncarry; k++) {
        r->carry[k] = loop_carry(r->builder, r->state[k].node);
        Node *value = loop_carry_value(r->builder, r->carry[k]);
        gen_keep(gen, (Val){value, r->state[k].lo, r->state[k].hi});
    }
}

static void take_stack(Gen *gen, RandomLoop *r, Val stack) {
    Type t = *stack.node->type;
    if (t.rank > 0 && t.dim[0] == r->trip) {
        gen_keep(gen, (Val){loop_xs(r->builder, stack.node), stack.lo, stack.hi});
    }
}

static void give_carries(Gen *gen, RandomLoop *r) {
    for (int k = 0; k < r->ncarry; k++) {
        Type t = *r->state[k].node->type;
        bool same = gen_chance(gen, 8);
        Val next = same ? (Val){loop_carry_value(r->builder, r->carry[k]), -1, 1}
                        : gen_fit(gen, gen_any(gen), t);
        next = elem_is_float(t.elem) && !same ? gen_calm(gen, next, 1) : next;
        loop_next(r->builder, r->carry[k], next.node);
    }
}

static void give_slices(Gen *gen, RandomLoop *r) {
    for (int k = 0; k < r->ny; k++) {
        Val v = gen_any(gen);
        if (v.node->type->rank > 6 || type_count(*v.node->type) * r->trip > 2 * gen->most) {
            v = gen_calm(gen, (Val){gen_total(gen, v), -INFINITY, INFINITY}, 1);
        }
        r->slice[k] = v;
        r->y[k] = loop_emit(r->builder, v.node);
    }
}

static void keep_results(Gen *gen, const RandomLoop *r, Node *done, Val *out) {
    for (int k = 0; k < r->ncarry; k++) {
        *out = r->state[k];
        out->node = loop_final(gen->g, done, r->carry[k]);
        gen_keep(gen, *out);
    }
    for (int k = 0; k < r->ny; k++) {
        *out = r->slice[k];
        out->node = loop_stack(gen->g, done, r->y[k]);
        gen_keep(gen, *out);
    }
}

/* Carries, stacks, values from outside; a body of random ops, loops among them. */
bool gen_loop(Gen *gen, Val *out) {
    static const int64_t trips[] = {1, 2, 3, 5, 2};
    Val stack[2] = {gen_any(gen), gen_any(gen)};
    Type t = *stack[0].node->type;
    RandomLoop r = {.trip = trips[gen_below(gen, 5)]};
    r.trip = t.rank > 0 && gen_chance(gen, 70) ? t.dim[0] : r.trip;
    if (gen->depth >= 3 || r.trip * gen->repeats > 60) {
        return false;
    }
    GenPool inner = {.n = 0}, *outer = gen->pool;
    r.ncarry = (int)gen_below(gen, CARRIES + 1);
    r.ny = r.ncarry ? (int)gen_below(gen, YS + 1) : 1;
    for (int k = 0; k < r.ncarry; k++) {
        Val start = gen_any(gen);
        bool number = elem_is_float(start.node->type->elem);
        r.state[k] = carry_bounds(number ? gen_calm(gen, start, 2) : start);
    }
    Val used[3] = {gen_any(gen), gen_any(gen), gen_float(gen)};
    r.builder = loop_open(gen->g, r.trip, gen_chance(gen, 40));
    loop_checkpoint(r.builder, gen_chance(gen, 30));
    gen->pool = &inner;
    gen->depth++;
    int64_t repeats = gen->repeats;
    gen->repeats *= r.trip > 0 ? r.trip : 1;
    take_carries(gen, &r);
    for (int k = 0; k < 3; k++) {
        gen_keep(gen, used[k]);
    }
    take_stack(gen, &r, stack[0]);
    take_stack(gen, &r, stack[1]);
    gen_keep(gen, (Val){loop_index(r.builder), 0, fmax((double)(r.trip - 1), 0)});
    gen_nodes(gen, 4 + (int)gen_below(gen, 14));
    give_carries(gen, &r);
    give_slices(gen, &r);
    gen->pool = outer;
    gen->depth--;
    gen->repeats = repeats;
    keep_results(gen, &r, loop_close(r.builder), out);
    return true;
}

Node *gen_slope(Gen *gen, Node *value, double cotangent) {
    Node *point = gen_float(gen).node;
    Arena scratch = {0};
    value = graph_import(gen->g, value);
    for (int i = 0; flow_ambiguous(&scratch, flow_of(&scratch, value), point); i++) {
        point = i < 8 ? gen_float(gen).node : node_full(gen->g, *value->type, 1);
    }
    arena_free(&scratch);
    return node_grad(gen->g, value, point, node_const(gen->g, value->type->elem, cotangent));
}

bool gen_grad(Gen *gen, Val *out) {
    Node *value = gen_total(gen, gen_calm(gen, gen_float(gen), 2));
    Node *d = gen_slope(gen, value, 0.5);
    *out = (Val){d, -INFINITY, INFINITY};
    return true;
}

/* sin(a) * b with the adjoint that it has. */
bool gen_custom(Gen *gen, Val *out) {
    Graph *g = gen->g;
    Val a = gen_float(gen), b = gen_calm(gen, gen_like(gen, *a.node->type), 8);
    Node *in[2] = {a.node, b.node};
    in[0] = graph_import(g, in[0]);
    in[1] = graph_import(g, in[1]);
    Node *value = node_map2(g, OP_MUL, node_map1(g, OP_SIN, in[0]), in[1]);
    Region *body = region_new(g, g->region), *before = graph_enter(g, body);
    Type t = *value->type;
    Node *x = region_param(body, t), *y = region_param(body, t), *u = region_param(body, t);
    Node *ux = node_map2(g, OP_MUL, u, node_map2(g, OP_MUL, y, node_map1(g, OP_COS, x)));
    Node *uy = node_map2(g, OP_MUL, u, node_map1(g, OP_SIN, x));
    graph_leave(g, before);
    region_result(body, ux);
    region_result(body, uy);
    *out = (Val){node_custom(g, value, in, 2, body), -8, 8};
    return true;
}
