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
    Node *wanted, *none; /* of one with a condition: iterations, -1; else NULL */
    int go, last;        /* carries; 0 is never the last index */
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

/* --- loops that end by themselves ------------------------------------------------------------ */

/* How many iterations a run makes: an integer that data decides, now and then beyond the trip count
 * or below 0. */
static Node *turns_wanted(Gen *gen, int64_t trip) {
    Graph *g = gen->g;
    Val at = gen_index(gen, type_scalar(TY_I32), trip + 3);
    return node_map2(g, OP_SUB, at.node, node_int(g, TY_I32, 1));
}

/* The condition: so many iterations, and while a value of the body says so. */
static void ends_open(Gen *gen, RandomLoop *r, Node *wanted, Node *go) {
    r->wanted = wanted;
    r->go = loop_carry(r->builder, go);
    loop_while(r->builder, r->go);
    if (gen_chance(gen, 70)) {
        r->last = loop_carry(r->builder, r->none);
        loop_next(r->builder, r->last, loop_index(r->builder));
    }
}

static void ends_close(Gen *gen, const RandomLoop *r) {
    Graph *g = gen->g;
    Node *count = node_map2(g, OP_ADD, loop_index(r->builder), node_int(g, TY_I32, 1));
    Node *go = node_map2(g, OP_LT, count, graph_import(g, r->wanted));
    if (gen_chance(gen, 40)) {
        Val some = gen_fit(gen, gen_bool(gen), type_scalar(TY_BOOL));
        go = node_map2(g, gen_chance(gen, 50) ? OP_AND : OP_OR, go, some.node);
    }
    loop_next(r->builder, r->go, go);
}

/* Reads the stacks of a loop that has ended up to its last index, in either direction. */
static void gen_reader(Gen *gen, const RandomLoop *r, Node *done) {
    Graph *g = gen->g;
    Node *last = loop_final(g, done, r->last);
    Node *stack = r->ny ? loop_stack(g, done, r->y[0]) : NULL;
    if (!stack || r->slice[0].node->type->elem != gen->elem) {
        return;
    }
    Type t = *r->slice[0].node->type;
    Node *start = node_full(g, t, 0.5);
    LoopBuilder *back = loop_open(g, r->trip, gen_chance(gen, 70));
    loop_until(back, last);
    int carry = loop_carry(back, start);
    Val slice = {loop_xs(back, stack), r->slice[0].lo, r->slice[0].hi};
    Node *half = node_const(g, t.elem, 0.5);
    Node *next = node_map2(g, OP_MUL, half, loop_carry_value(back, carry));
    loop_next(back, carry, node_map2(g, OP_ADD, next, gen_calm(gen, slice, 1).node));
    int y = loop_emit(back, loop_carry_value(back, carry));
    Node *read = loop_close(back);
    gen_keep(gen, (Val){loop_final(g, read, carry), -3, 3});
    if (gen_chance(gen, 50)) {
        gen_keep(gen, (Val){loop_stack(g, read, y), -3, 3});
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
    int ends = gen_chance(gen, 35) ? 1 + (int)gen_below(gen, 3) : 0; /* 1, 2: go; 3: last */
    Node *wanted = ends ? turns_wanted(gen, r.trip) : NULL;
    Node *go = ends ? node_map2(gen->g, OP_LT, node_int(gen->g, TY_I32, 0), wanted) : NULL;
    r.none = node_int(gen->g, TY_I32, -1);
    r.builder = loop_open(gen->g, r.trip, gen_chance(gen, 40) && (!ends || ends == 3));
    loop_checkpoint(r.builder, gen_chance(gen, 30) ? 1 + r.trip % 3 : CHECKPOINT_NONE);
    if (ends == 3) {
        loop_until(r.builder, wanted);
    } else if (!ends && !r.ncarry && gen_chance(gen, 60)) {
        loop_aside(r.builder);
    }
    gen->pool = &inner;
    gen->depth++;
    int64_t repeats = gen->repeats;
    gen->repeats *= r.trip > 0 ? r.trip : 1;
    if (ends == 1 || ends == 2) {
        ends_open(gen, &r, wanted, go);
    }
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
    if (r.wanted) {
        ends_close(gen, &r);
    }
    gen->pool = outer;
    gen->depth--;
    gen->repeats = repeats;
    Node *done = loop_close(r.builder);
    keep_results(gen, &r, done, out);
    if (r.last > 0) {
        gen_reader(gen, &r, done);
    }
    return true;
}

static Node *point_for(Gen *gen, const Node *value) {
    Node *point = gen_float(gen).node;
    Arena scratch = {0};
    for (int i = 0; flow_ambiguous(&scratch, flow_of(&scratch, value), point); i++) {
        point = i < 8 ? gen_float(gen).node : node_full(gen->g, *value->type, 1);
    }
    arena_free(&scratch);
    return graph_name(point, "point"); /* as every point of a text: what has a name is not folded */
}

Node *gen_slope(Gen *gen, Node *value, double cotangent) {
    value = graph_import(gen->g, value);
    Node *point = point_for(gen, value);
    return node_grad(gen->g, value, point, node_const(gen->g, value->type->elem, cotangent));
}

static Node *gen_tangent(Gen *gen, Node *value, double direction) {
    value = graph_import(gen->g, value);
    Node *point = point_for(gen, value);
    return node_jvp(gen->g, value, point, node_const(gen->g, point->type->elem, direction));
}

/* One in three is a derivative along a direction. */
bool gen_grad(Gen *gen, Val *out) {
    Val calm = gen_calm(gen, gen_float(gen), 2);
    if (gen_below(gen, 3) == 0) {
        *out = (Val){gen_tangent(gen, calm.node, 0.5), -INFINITY, INFINITY};
        return true;
    }
    Node *value = gen_total(gen, calm);
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
