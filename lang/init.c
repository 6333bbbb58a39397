/* init: initial values. An initial draw is keyed by the path of its parameter, so adding a layer
 * changes no other one. */
#include "lang/init.h"

#include "compiler/loop_builder.h"
#include "lang/arith.h"
#include "lang/draw.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/init_presets.h"
#include "lang/notation.h"

#include <math.h>

/* --- draws ----------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    Dist dist;
    int nparam;
    const char *param[4];
    double preset[4];
    bool has_preset[4];
} Initializer;

static const Initializer initializers[] = {
    {"uniform", DIST_UNIFORM, 2, {"a", "b"}, {0}, {false}},
    {"normal", DIST_NORMAL, 2, {"mean", "std"}, {0}, {false}},
    {"trunc_normal",
     DIST_UNIFORM,
     4,
     {"mean", "std", "a", "b"},
     {0, 1, -2, 2},
     {true, true, true, true}},
    {"kaiming_uniform", DIST_UNIFORM, 1, {"gain"}, {1.4142135623730951}, {true}},
    {"kaiming_normal", DIST_NORMAL, 1, {"gain"}, {1.4142135623730951}, {true}},
    {"xavier_uniform", DIST_UNIFORM, 1, {"gain"}, {1}, {true}},
    {"xavier_normal", DIST_NORMAL, 1, {"gain"}, {1}, {true}},
    {"zeros", DIST_UNIFORM, 0, {0}, {0}, {false}},
    {"ones", DIST_UNIFORM, 0, {0}, {0}, {false}},
};
enum { NINITIALIZER = sizeof initializers / sizeof *initializers };

void init_each_preset(void (*visit)(void *ctx, const char *name, const char *param, double preset),
                      void *ctx) {
    for (int i = 0; i < NINITIALIZER; i++) {
        const Initializer *in = &initializers[i];
        for (int k = 0; k < in->nparam; k++) {
            if (in->has_preset[k]) {
                visit(ctx, in->name, in->param[k], in->preset[k]);
            }
        }
    }
}

static const Initializer *find_initializer(Elab *e, const Ast *call) {
    const Ast *callee = call->kind == AST_CALL ? call->kid[0] : call;
    if (callee->kind == AST_NAME) {
        Nearest n = nearest_start(callee->name);
        for (int i = 0; i < NINITIALIZER; i++) {
            if (str_eq(initializers[i].name, callee->name)) {
                return &initializers[i];
            }
            nearest_add(&n, initializers[i].name);
        }
        elab_error(e, callee->loc, 470, "unknown initial distribution '%s'", callee->name);
        elab_hint_nearest(e, &n);
        return NULL;
    }
    elab_error(e, call->loc, 471,
               "after '~' stands a distribution such as normal(0, 0.02); '=' sets a "
               "value");
    return NULL;
}

static bool initializer_arguments(Elab *e, const Initializer *in, const Ast *call, double *out) {
    bool given[4] = {false};
    const Ast *args = call->kind == AST_CALL ? call->kid[1] : NULL;
    int next = 0;
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        int k = next;
        if (arg->kind == AST_ARG) {
            k = 0;
            while (k < in->nparam && !str_eq(in->param[k], arg->name)) {
                k++;
            }
        } else {
            next++;
        }
        if (k >= in->nparam || given[k]) {
            elab_error(e, arg->loc, 472, "'%s' does not take this argument", in->name);
            return false;
        }
        const Value *v = elab_expr(e, arg->kind == AST_ARG ? arg->kid[0] : arg);
        if (!elab_ok(v)) {
            return false;
        }
        if (!value_is_number(v)) {
            elab_error(e, arg->loc, 473, "'%s' of '%s' must be a compile-time number, found %s",
                       in->param[k], in->name, value_text(e->arena, v));
            return false;
        }
        out[k] = value_number(v);
        given[k] = true;
    }
    for (int k = 0; k < in->nparam; k++) {
        if (!given[k] && !in->has_preset[k]) {
            elab_error(e, call->loc, 474, "'%s' needs its argument '%s'", in->name, in->param[k]);
            return false;
        }
        out[k] = given[k] ? out[k] : in->preset[k];
    }
    return true;
}

static Node *affine_map(Graph *g, Node *x, double scale, double shift) {
    Elem elem = x->type->elem;
    Node *y = node_map2(g, OP_MUL, x, node_const(g, elem, scale));
    return shift == 0 ? y : node_map2(g, OP_ADD, y, node_const(g, elem, shift));
}

static Node *polynomial(Graph *g, Node *x, const double *c, int n) {
    Node *p = node_full(g, *x->type, c[0]);
    for (int i = 1; i < n; i++) {
        p = node_map2(g, OP_ADD, node_map2(g, OP_MUL, p, x), node_const(g, x->type->elem, c[i]));
    }
    return p;
}

/* The inverse of erf (Giles 2012, "Approximating the erfinv function"), to about single precision.
 */
static Node *erfinv(Graph *g, Node *x) {
    static const double near[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                  -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                  -0.00417768164,  0.246640727,    1.50140941};
    static const double far[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};
    Elem elem = x->type->elem;
    Node *one = node_const(g, elem, 1);
    Node *w = node_map1(g, OP_NEG,
                        node_map1(g, OP_LOG,
                                  node_map2(g, OP_MUL, node_map2(g, OP_SUB, one, x),
                                            node_map2(g, OP_ADD, one, x))));
    Node *p = polynomial(g, affine_map(g, w, 1, -2.5), near, 9);
    Node *q = polynomial(g, affine_map(g, node_map1(g, OP_SQRT, w), 1, -3), far, 9);
    Node *small = node_map2(g, OP_LT, w, node_const(g, elem, 5));
    return node_map2(g, OP_MUL, node_select(g, small, p, q), x);
}

static double normal_cdf(double x) {
    return 0.5 * (1 + erf(x / sqrt(2)));
}

/* Of a..b, of which b - a may overflow. */
static Node *between(Graph *g, Node *u, double a, double b) {
    if (!draw_is_wide(a, b)) {
        return affine_map(g, u, b - a, a);
    }
    Node *rest = node_map2(g, OP_SUB, node_const(g, u->type->elem, 1), u);
    return node_map2(g, OP_ADD, affine_map(g, u, b, 0), affine_map(g, rest, a, 0));
}

/* By the inverse distribution function between a and b, which are absolute, as PyTorch does. */
static Node *truncated(Graph *g, Node *u, const double *arg) {
    double mean = arg[0], std = arg[1], a = arg[2], b = arg[3];
    double lo = 2 * normal_cdf((a - mean) / std) - 1, hi = 2 * normal_cdf((b - mean) / std) - 1;
    Elem elem = u->type->elem;
    const double edge = 1 - 1e-7; /* the last value whose inverse is finite in f32 */
    Node *x = affine_map(g, u, hi - lo, lo);
    x = node_map2(g, OP_MIN, node_map2(g, OP_MAX, x, node_const(g, elem, -edge)),
                  node_const(g, elem, edge));
    x = affine_map(g, erfinv(g, x), std * sqrt(2), mean);
    return node_map2(g, OP_MIN, node_map2(g, OP_MAX, x, node_const(g, elem, a)),
                     node_const(g, elem, b));
}

Node *init_draw(Elab *e, const Ast *call, Type type, int rank, const Dim *written,
                const char *path) {
    if (call->kind == AST_BINARY && call->op == AO_MUL) { /* normal(0, 1) * mask */
        Node *x = init_draw(e, call->kid[0], type, rank, written, path);
        Node *factor = x ? init_value(e, call->kid[1], type) : NULL;
        if (!factor) {
            return NULL;
        }
        Region *before = graph_enter(e->g, e->init->region);
        x = node_map2(e->g, OP_MUL, x, factor);
        graph_leave(e->g, before);
        return x;
    }
    const Initializer *in = find_initializer(e, call);
    double arg[4] = {0};
    if (!in || !initializer_arguments(e, in, call, arg)) {
        return NULL;
    }
    if (in->nparam == 0) { /* no draw at all */
        Region *before = graph_enter(e->g, e->init->region);
        Node *x = node_full(e->g, type, str_eq(in->name, "ones") ? 1 : 0);
        graph_leave(e->g, before);
        return x;
    }
    bool fans = in->nparam == 1;
    if (fans && rank < 2) {
        elab_error(e, call->loc, 475, "'%s' needs a shape with at least two axes [out, in, ...]",
                   in->name);
        return NULL;
    }
    double fan_in = 1, fan_out = 1;
    for (int i = 0; fans && i < rank; i++) {
        fan_in *= i == 0 ? 1 : (double)written[i].size;
        fan_out *= i == 1 ? 1 : (double)written[i].size;
    }
    double scale = 1, shift = 0;
    if (fans) {
        bool xavier = in->name[0] == 'x';
        double fan = xavier ? (fan_in + fan_out) / 2 : fan_in;
        scale = arg[0] * sqrt((in->dist == DIST_UNIFORM ? 3 : 1) / fan);
        if (in->dist == DIST_UNIFORM) {
            shift = -scale;
            scale = 2 * scale;
        }
    } else if (in->nparam == 2) { /* of uniform they are not used */
        scale = arg[1];
        shift = arg[0];
    }
    Region *before = graph_enter(e->g, e->init->region);
    Node *key[2] = {node_slot(e->g, e->seed), node_int(e->g, TY_I64, 0)};
    uint64_t site = hash_str(hash_str(HASH_START, "init "), path);
    Node *x = node_random(e->g, in->dist, site, key, 2, type);
    x = in->nparam == 4                               ? truncated(e->g, x, arg)
        : in->nparam == 2 && in->dist == DIST_UNIFORM ? between(e->g, x, arg[0], arg[1])
                                                      : affine_map(e->g, x, scale, shift);
    graph_leave(e->g, before);
    return x;
}

/* --- values ---------------------------------------------------------------------------------- */

typedef struct {
    Node *old, *made;
} Moved;
typedef VEC(Moved) MovedList;

static Node *transplant(Elab *e, Node *node, bool slots, MovedList *moved) {
    for (int i = 0; i < moved->count; i++) {
        if (moved->at[i].old == node) {
            return moved->at[i].made;
        }
    }
    LoopBuilder *loop = node->op == OP_BODY_PARAM ? node->region->loop : NULL;
    Node *captured = loop ? loop_captured(loop, node) : NULL;
    if (captured) { /* a constant that was made in front of the loop */
        return transplant(e, captured, slots, moved);
    }
    if (node->op == OP_SLOT && slots && node->attr->slot->kind == SLOT_INPUT) {
        return evaluation_scalar(e, node->attr->slot);
    }
    if (node->op == OP_BODY_PARAM || node->op == OP_RANDOM || node->body ||
        (node->op == OP_SLOT && !slots)) {
        return NULL;
    }
    Node **in = ARENA_ARRAY(e->arena, Node *, node->nin);
    for (int i = 0; i < node->nin; i++) {
        in[i] = transplant(e, node->in[i], slots, moved);
        if (!in[i]) {
            return NULL;
        }
    }
    Node *made =
        node->op == OP_SLOT ? node_slot(e->g, node->attr->slot) : graph_copy(e->g, node, in);
    Moved m = {node, made};
    VEC_PUSH(e->arena, moved, m);
    return made;
}

Node *init_transplant(Elab *e, Node *node, Region *region, bool slots) {
    MovedList moved = {0};
    Region *before = graph_enter(e->g, region);
    Node *made = transplant(e, node, slots, &moved);
    graph_leave(e->g, before);
    return made;
}

Node *init_value(Elab *e, const Ast *expr, Type type) {
    IndexNotation *index = notation_save(e);
    const Value *v = elab_expr(e, expr);
    notation_restore(e, index);
    if (!elab_ok(v)) {
        return NULL;
    }
    Node *node;
    Elem stored = type.elem;
    type.elem = elem_computed(stored);
    if (v->kind != V_TENSOR) {
        Region *before = graph_enter(e->g, e->init->region);
        v = arith_tensor(e, expr->loc, v, type.elem);
        node = elab_ok(v) ? half_round(e->g, node_broadcast_to(e->g, v->node, type), stored) : NULL;
        graph_leave(e->g, before);
        return node;
    }
    node = v->nspan == 0 ? init_transplant(e, v->node, e->init->region, false) : NULL;
    if (!node) {
        elab_error(e, expr->loc, 476,
                   "an initial value may not depend on inputs, parameters or draws");
        return NULL;
    }
    int lead = type.rank - v->rank;
    bool fits = value_elem(v) == type.elem && lead >= 0;
    for (int i = 0; fits && i < v->rank; i++) {
        fits = v->dim[i].size == type.dim[lead + i];
    }
    if (!fits) {
        elab_error(e, expr->loc, 414,
                   "the initial value is %s, which does not fit the declared type",
                   value_text(e->arena, v));
        return NULL;
    }
    Region *before = graph_enter(e->g, e->init->region);
    if (lead > 0) {
        node = node_broadcast(e->g, node, (1u << lead) - 1, type.rank, type.dim);
    }
    node = half_round(e->g, node, stored);
    graph_leave(e->g, before);
    return node;
}
