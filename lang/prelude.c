/* prelude: one table row a function: its parameters by name, then what it does. */
#include "lang/prelude.h"

#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/derive.h"
#include "lang/dims.h"
#include "lang/draw.h"
#include "lang/einsum.h"
#include "lang/evaluation.h"
#include "lang/expr.h"
#include "lang/fold.h"
#include "lang/half.h"
#include "lang/order.h"
#include "lang/prelude_several.h"
#include "lang/train.h"

#include <math.h>
#include <string.h>

enum { MAX_PARAMS = 6 };

typedef struct {
    Elab *e;
    const char *name;
    Loc loc;
    const Ast *call;
    const Value *arg[MAX_PARAMS]; /* NULL: not given */
    Loc at[MAX_PARAMS];
} Call;

typedef const Value *(*Builtin)(Call *c);

typedef struct {
    const char *name;
    int required, nparam;
    const char *param[MAX_PARAMS];
    Builtin make;
} Row;

/* --- shapes ---------------------------------------------------------------------------------- */

static const Value *tensor_needed(Call *c, int k) {
    return elab_error(c->e, c->at[k], 420, "'%s' needs a tensor, found %s", c->name,
                      value_kind_text(c->arg[k]));
}

static bool tensor_argument(Call *c, int k) {
    if (c->arg[k]->kind != V_TENSOR) {
        (void)tensor_needed(c, k);
        return false;
    }
    return elab_plain(c->e, c->at[k], c->arg[k]);
}

static bool axis_argument(Call *c, int k, int rank, int preset, int *axis) {
    return prelude_axis(c->e, c->name, c->loc, c->arg[k], c->at[k], rank, preset, axis);
}

static const Value *make_shape(Call *c) {
    const Value *x = c->arg[0], *item[MD_RANK];
    if (x->kind != V_TENSOR) {
        return value_list(c->e->scratch, NULL, 0);
    }
    for (int i = 0; i < x->rank; i++) {
        item[i] = value_dim(c->e->scratch, x->dim[i]);
    }
    Value *v = ARENA_NEW(c->e->scratch, Value);
    *v = *value_list(c->e->scratch, item, x->rank);
    v->from_shape = x->nspan > 0;
    return v;
}

/* In an evaluation the rows of the batch are known only when all batches have been seen: a sum of
 * ones. */
static const Value *count_rows(Call *c, const Value *v) {
    Graph *g = c->e->g;
    Type type = *v->node->type;
    type.elem = g->float_type;
    Value *ones = ARENA_NEW(c->e->scratch, Value);
    *ones = *v;
    ones->node = node_full(g, type, 1);
    return evaluation_fold(c->e, "sum", ones, (1u << v->rank) - 1, c->loc);
}

static const Value *make_known(Call *c) {
    const Value *v = c->arg[0];
    return value_bool(c->e->scratch, v->kind == V_BOOL || value_is_number(v));
}

static const Value *make_count(Call *c) {
    int64_t n = 1;
    bool batch = false;
    if (c->arg[0]->kind == V_LIST) {
        return value_int(c->e->arena, c->arg[0]->count);
    }
    for (int i = 0; c->arg[0]->kind == V_TENSOR && i < c->arg[0]->rank; i++) {
        if (c->arg[0]->nspan == 0 && !c->arg[0]->end && evaluation_masks(c->e, c->arg[0]->dim[i])) {
            return count_rows(c, c->arg[0]);
        }
    }
    for (int i = 0; c->arg[0]->kind == V_TENSOR && i < c->arg[0]->rank; i++) {
        n *= c->arg[0]->dim[i].size;
        batch = batch || (c->arg[0]->nspan == 0 && accumulate_rows(c->e, c->arg[0]->dim[i]));
    }
    return batch ? accumulate_count(c->e, n) : value_int(c->e->scratch, n);
}

/* How `x` is repeated to the shape, where its extents are the last ones there. */
static void hint_repeat(Call *c, const Value *x, int rank, const Dim *dim) {
    static const char index[] = "ijklmnpqrstu";
    int more = rank - x->rank;
    for (int i = 0; i < x->rank; i++) {
        if (more < 1 || x->nspan > 0 || x->dim[i].size != dim[more + i].size) {
            return;
        }
    }
    Text left = {.arena = c->e->arena}, right = {.arena = c->e->arena};
    for (int i = 0; i < rank; i++) {
        text_printf(&left, "%s%c", i > 0 ? ", " : "", index[i]);
        if (i < more) {
            text_printf(&left, " < %s", dim_text(c->e->arena, dim[i]));
        } else {
            text_printf(&right, "%s%c", i > more ? ", " : "", index[i]);
        }
    }
    diag_hint(&c->e->c->diag, "an index on the left alone repeats a tensor: y[%s] = x[%s]", left.at,
              right.at);
}

static const Value *filled(Call *c, const Value *number, const Value *shape, Loc loc) {
    int rank;
    Dim dim[MD_RANK];
    if (shape->kind == V_LIST && shape->from_shape) {
        /* a constant is the same for all indices */
        Value *plain = ARENA_NEW(c->e->scratch, Value);
        *plain = *shape;
        plain->from_shape = false;
        shape = plain;
    }
    number = arith_lift(c->e, c->loc, number);
    if (!elab_ok(number) || !elab_shape(c->e, shape, loc, &rank, dim)) {
        return &value_poison;
    }
    if (number->rank > 0 || number->nspan > 0) {
        elab_error(c->e, c->loc, 424, "'%s' fills with a scalar, found %s", c->name,
                   value_text(c->e->arena, number));
        hint_repeat(c, number, rank, dim);
        return &value_poison;
    }
    if (!elab_plain(c->e, c->loc, number)) {
        return &value_poison;
    }
    Node *node = node_broadcast_to(c->e->g, number->node, dims_type(value_elem(number), rank, dim));
    const Value *v = value_tensor(c->e->scratch, node, rank, dim);
    return number->ranged ? value_ranged(c->e->scratch, v, number->lo, number->hi) : v;
}

static const Value *make_zeros(Call *c) {
    return filled(c, value_real(c->e->scratch, 0), c->arg[0], c->at[0]);
}
static const Value *make_ones(Call *c) {
    return filled(c, value_real(c->e->scratch, 1), c->arg[0], c->at[0]);
}
/* An integer known now fills with floats, like zeros and ones. */
static const Value *make_full(Call *c) {
    const Value *v = c->arg[0];
    v = v->kind == V_INT ? value_real(c->e->scratch, value_number(v)) : v;
    return filled(c, v, c->arg[1], c->at[1]);
}

/* Drops axes of extent 1; declared dims stay, whatever their size. */
static const Value *make_squeeze(Call *c) {
    const Value *x = c->arg[0];
    int axis = -1;
    if (!tensor_argument(c, 0) || (c->arg[1] && !axis_argument(c, 1, x->rank, 0, &axis))) {
        return &value_poison;
    }
    if (axis >= 0 && x->dim[axis].size != 1) {
        return elab_error(c->e, c->at[1], 425, "axis %d has extent %s, only 1 can be dropped", axis,
                          dim_text(c->e->arena, x->dim[axis]));
    }
    Value *v = ARENA_NEW(c->e->scratch, Value);
    *v = *x;
    Dim *dim = value_axes(c->e->scratch, v, x->nspan, x->rank).dim;
    v->rank = 0;
    v->loop = NULL;
    int64_t to[MD_RANK];
    for (int i = 0; i < x->nspan; i++) {
        to[i] = x->node->type->dim[i];
    }
    for (int i = 0; i < x->rank; i++) {
        bool drop =
            axis >= 0 ? i == axis : x->dim[i].size == 1 && !x->dim[i].name && !x->dim[i].batch;
        if (!drop) {
            to[x->nspan + v->rank] = x->dim[i].size;
            dim[v->rank++] = x->dim[i];
        }
    }
    v->node = node_reshape(c->e->g, x->node, x->nspan + v->rank, to);
    return v;
}

static const Value *make_reshape(Call *c) {
    int rank;
    Dim dim[MD_RANK];
    if (!tensor_argument(c, 0) || !elab_shape(c->e, c->arg[1], c->at[1], &rank, dim)) {
        return &value_poison;
    }
    return elab_reshape(c->e, c->loc, c->arg[0], rank, dim);
}

static const Value *make_flip(Call *c) {
    int axis;
    const Value *x = c->arg[0];
    if (!tensor_argument(c, 0) || !axis_argument(c, 1, x->rank, x->rank - 1, &axis)) {
        return &value_poison;
    }
    if (evaluation_of_few(c->e) && x->dim[axis].batch) {
        return elab_error(c->e, c->loc, 651,
                          "%s may run on fewer rows than the batch, the first ones, so the batch "
                          "is not turned around in it",
                          evaluation_of_few(c->e));
    }
    const Value *v =
        value_with(c->e->scratch, x, node_flip(c->e->g, x->node, 1u << (x->nspan + axis)));
    return x->ranged ? value_ranged(c->e->scratch, v, x->lo, x->hi) : v;
}

/* PyTorch's: two axes change places, the last two by default. As an index statement it keeps
 * ranges, and turns what an evaluation knows at its end there. */
static const Value *make_transpose(Call *c) {
    int a, b;
    const Value *x = c->arg[0];
    if (x->kind != V_TENSOR) {
        return tensor_needed(c, 0);
    }
    if (c->arg[1] && c->arg[1]->kind == V_LIST) {
        elab_error(c->e, c->at[1], 672, "'transpose' takes two axes, not an order of all of them");
        diag_hint(&c->e->c->diag, "an index statement orders axes: z[k, b, c] = x[b, c, k];");
        return &value_poison;
    }
    if (!axis_argument(c, 1, x->rank, x->rank - 2, &a) ||
        !axis_argument(c, 2, x->rank, x->rank - 1, &b)) {
        return &value_poison;
    }
    if (a < 0) {
        return elab_error(c->e, c->at[0], 671, "'transpose' needs a tensor with two axes, found %s",
                          value_text(c->e->arena, x));
    }
    int map[MD_RANK];
    for (int i = 0; i < x->nspan + x->rank; i++) {
        map[i] = i == x->nspan + a ? x->nspan + b : i == x->nspan + b ? x->nspan + a : i;
    }
    Region *before = evaluation_enter(c->e, x);
    Value *r = ARENA_NEW(c->e->scratch, Value);
    *r = *x;
    r->loop = NULL;
    r->node = node_permute(c->e->g, x->node, map);
    Dim *dim = value_axes(c->e->scratch, r, x->nspan, x->rank).dim;
    dim[a] = x->dim[b];
    dim[b] = x->dim[a];
    return evaluation_leave(c->e, x, before, r);
}

static bool flag_argument(Call *c, int k, bool *out) {
    *out = false;
    if (c->arg[k] && c->arg[k]->kind != V_BOOL) {
        elab_error(c->e, c->at[k], 426, "a flag of '%s' is true or false, found %s", c->name,
                   value_kind_text(c->arg[k]));
        return false;
    }
    *out = c->arg[k] && c->arg[k]->truth;
    return true;
}

static const Value *make_cumsum(Call *c) {
    int axis;
    bool reverse, exclusive;
    const Value *x = c->arg[0];
    if (!tensor_argument(c, 0) || !axis_argument(c, 1, x->rank, x->rank - 1, &axis) ||
        !flag_argument(c, 2, &reverse) || !flag_argument(c, 3, &exclusive)) {
        return &value_poison;
    }
    if (value_elem(x) == TY_BOOL) {
        elab_error(c->e, c->at[0], 427, "'cumsum' is not defined for bools");
        diag_hint(&c->e->c->diag, "i32(c) is 1 where c is true");
        return &value_poison;
    }
    if (evaluation_of_few(c->e) && x->dim[axis].batch) {
        return elab_error(c->e, c->loc, 553,
                          "%s may run on fewer rows than the batch, so a running sum over the "
                          "batch is not defined in it",
                          evaluation_of_few(c->e));
    }
    x = arith_widened(c->e, c->loc, x);
    return value_with(c->e->scratch, x,
                      node_cumsum(c->e->g, x->node, x->nspan + axis, reverse, exclusive));
}

/* --- order ----------------------------------------------------------------------------------- */

static const Value *sorted(Call *c, OrderKind kind) {
    int axis;
    bool descending;
    if (!tensor_argument(c, 0) ||
        !axis_argument(c, 1, c->arg[0]->rank, c->arg[0]->rank - 1, &axis) ||
        !flag_argument(c, 2, &descending)) {
        return &value_poison;
    }
    return order_sorted(c->e, c->name, c->loc, c->arg[0], axis, descending, kind);
}

static const Value *make_sort(Call *c) {
    return sorted(c, ORDER_VALUES);
}
static const Value *make_argsort(Call *c) {
    return sorted(c, ORDER_PLACES);
}

static const Value *make_top_k(Call *c) {
    int axis;
    bool largest;
    if (!tensor_argument(c, 0) ||
        !axis_argument(c, 2, c->arg[0]->rank, c->arg[0]->rank - 1, &axis) ||
        !flag_argument(c, 3, &largest)) {
        return &value_poison;
    }
    return order_first(c->e, c->loc, c->arg[0], c->arg[1], c->at[1], axis, !c->arg[3] || largest);
}

static const Value *make_segment_sum(Call *c) {
    if (!tensor_argument(c, 0) || !tensor_argument(c, 1)) {
        return &value_poison;
    }
    const Value *list = value_list(c->e->scratch, &c->arg[2], 1);
    int rank;
    Dim n[MD_RANK];
    if (!elab_shape(c->e, list, c->at[2], &rank, n)) {
        return &value_poison;
    }
    return order_segment_sum(c->e, c->name, c->loc, c->arg[0], c->arg[1], n[0]);
}

/* to, with rows of x added where `at` says. */
static const Value *make_scatter_add(Call *c) {
    const Value *to = c->arg[0];
    if (!tensor_argument(c, 0) || !tensor_argument(c, 1) || !tensor_argument(c, 2)) {
        return &value_poison;
    }
    if (to->rank == 0 || to->nspan > 0) {
        return elab_error(c->e, c->at[0], 680, "'scatter_add' adds to a whole tensor, found %s",
                          value_text(c->e->arena, to));
    }
    const Value *more = order_segment_sum(c->e, c->name, c->loc, c->arg[2], c->arg[1], to->dim[0]);
    return elab_ok(more) ? arith_binary(c->e, c->loc, AO_ADD, to, more) : more;
}

/* --- elementwise ----------------------------------------------------------------------------- */

static const Value *make_select(Call *c) {
    return arith_select(c->e, c->loc, c->arg[0], c->arg[1], c->arg[2]);
}
static const Value *make_div(Call *c) {
    return arith_divide(c->e, c->loc, false, c->arg[0], c->arg[1]);
}
static const Value *make_rem(Call *c) {
    return arith_divide(c->e, c->loc, true, c->arg[0], c->arg[1]);
}
static const Value *make_pow(Call *c) {
    return arith_binary(c->e, c->loc, AO_POW, c->arg[0], c->arg[1]);
}

static const Value *make_atan2(Call *c) {
    return arith_map2(c->e, c->loc, c->name, OP_ATAN2, atan2, c->arg[0], c->arg[1]);
}

/* a + (b - a) * t */
static const Value *make_lerp(Call *c) {
    const Value *d = arith_binary(c->e, c->loc, AO_SUB, c->arg[1], c->arg[0]);
    return arith_binary(c->e, c->loc, AO_ADD, c->arg[0],
                        arith_binary(c->e, c->loc, AO_MUL, d, c->arg[2]));
}

static const Value *make_fma(Call *c) {
    return arith_fma(c->e, c->loc, c->arg[0], c->arg[1], c->arg[2]);
}

static const Value *make_clamp(Call *c) {
    const Value *v = arith_minmax(c->e, c->loc, true, c->arg[0], c->arg[1]);
    v = arith_minmax(c->e, c->loc, false, v, c->arg[2]);
    if (v->kind == V_TENSOR && elem_is_int(value_elem(v)) && c->arg[1]->kind == V_INT &&
        c->arg[2]->kind == V_INT && c->arg[1]->integer <= c->arg[2]->integer) {
        int64_t lo = c->arg[1]->integer, hi = c->arg[2]->integer + 1;
        if (c->arg[0]->ranged) {
            lo = c->arg[0]->lo > lo ? c->arg[0]->lo : lo;
            hi = c->arg[0]->hi < hi ? c->arg[0]->hi : hi;
        }
        return lo < hi ? value_ranged(c->e->scratch, v, lo, hi) : v;
    }
    return v;
}

static const Value *make_real(Call *c) {
    if (!value_is_number(c->arg[0])) {
        elab_error(c->e, c->loc, 428, "'real' converts compile-time numbers, found %s",
                   value_text(c->e->arena, c->arg[0]));
        diag_hint(&c->e->c->diag, "f32(x) converts at run time");
        return &value_poison;
    }
    return value_real(c->e->scratch, value_number(c->arg[0]));
}

static const Value *make_isfinite(Call *c) {
    const Value *x = c->arg[0];
    if (value_is_number(x)) {
        return value_bool(c->e->scratch, isfinite(value_number(x)) != 0);
    }
    if (x->kind != V_TENSOR || !elem_is_float(value_elem(x))) {
        return elab_error(c->e, c->loc, 429, "'isfinite' needs floats, found %s",
                          value_text(c->e->arena, x));
    }
    return arith_node(c->e, c->loc, OP_ISFINITE, &x, 1);
}

/* --- draws ----------------------------------------------------------------------------------- */

static const Value *drawn(Call *c, Dist dist, int shape) {
    int rank;
    Dim dim[MD_RANK];
    if (!elab_shape(c->e, c->arg[shape], c->at[shape], &rank, dim)) {
        return &value_poison;
    }
    Node *node = draw_node(c->e, c->loc, dist, rank, dim);
    return node ? value_tensor(c->e->scratch, node, rank, dim) : &value_poison;
}

static const Value *make_bernoulli(Call *c) {
    const Value *u = drawn(c, DIST_UNIFORM, 1);
    return arith_binary(c->e, c->loc, AO_LT, u, c->arg[0]);
}

static const Value *make_uniform(Call *c) {
    Elab *e = c->e;
    const Value *u = drawn(c, DIST_UNIFORM, 2), *a = c->arg[0], *b = c->arg[1];
    if (value_is_number(a) && value_is_number(b) &&
        draw_is_wide(value_number(a), value_number(b))) {
        const Value *rest = arith_binary(e, c->loc, AO_SUB, value_real(e->scratch, 1), u);
        return arith_binary(e, c->loc, AO_ADD, arith_binary(e, c->loc, AO_MUL, u, b),
                            arith_binary(e, c->loc, AO_MUL, rest, a));
    }
    const Value *width = arith_binary(e, c->loc, AO_SUB, b, a);
    return arith_binary(e, c->loc, AO_ADD, a, arith_binary(e, c->loc, AO_MUL, u, width));
}

static const Value *make_normal(Call *c) {
    const Value *z = drawn(c, DIST_NORMAL, 2);
    return arith_binary(c->e, c->loc, AO_ADD, c->arg[0],
                        arith_binary(c->e, c->loc, AO_MUL, z, c->arg[1]));
}

static const Value *make_randint(Call *c) {
    Elab *e = c->e;
    if (c->arg[0]->kind != V_INT || c->arg[1]->kind != V_INT ||
        c->arg[0]->integer >= c->arg[1]->integer ||
        c->arg[1]->integer - c->arg[0]->integer > (1 << 24)) {
        return elab_error(e, c->loc, 430,
                          "randint(lo, hi, shape) needs compile-time integers lo < hi, at "
                          "most 2^24 apart");
    }
    const Value *u = drawn(c, DIST_UNIFORM, 2);
    if (!elab_ok(u)) {
        return u;
    }
    int64_t n = c->arg[1]->integer - c->arg[0]->integer;
    const Value *k = arith_cast(
        e, c->loc, TY_I32, arith_binary(e, c->loc, AO_MUL, u, value_real(e->scratch, (double)n)));
    k = arith_minmax(e, c->loc, false, k,
                     value_int(e->scratch, n - 1)); /* u * n may round up to n */
    k = arith_binary(e, c->loc, AO_ADD, k, c->arg[0]);
    return elab_ok(k) ? value_ranged(e->scratch, k, c->arg[0]->integer, c->arg[1]->integer) : k;
}

/* The index of the largest of logit + Gumbel noise along the last axis. */
static const Value *make_categorical(Call *c) {
    Elab *e = c->e;
    const Value *x = c->arg[0];
    int axis;
    if (!tensor_argument(c, 0) || !axis_argument(c, 1, x->rank, x->rank - 1, &axis)) {
        return &value_poison;
    }
    Node *u = x->nspan == 0 ? draw_node(e, c->loc, DIST_UNIFORM, x->rank, x->dim) : NULL;
    if (!u) {
        return x->nspan == 0 ? &value_poison
                             : elab_error(e, c->loc, 431, "'categorical' is for whole tensors");
    }
    const Value *v = value_tensor(e->scratch, u, x->rank, x->dim);
    for (int i = 0; i < 2; i++) {
        v = arith_map(e, c->loc, "log", OP_LOG, log, v);
        v = arith_unary(e, c->loc, AO_NEG, v);
    }
    v = arith_binary(e, c->loc, AO_ADD, x, v);
    return fold_axes(e, "argmax", v, 1u << axis, c->loc);
}

/* refuse("..."): what an item says of a call that it cannot be called so. */
static const Value *make_refuse(Call *c) {
    Elab *e = c->e;
    if (c->arg[0]->kind != V_STRING) {
        return elab_error(e, c->at[0], 343, "'refuse' takes a text in quotes, found %s",
                          value_text(e->arena, c->arg[0]));
    }
    const Frame *frame = e->frame;
    Loc loc = frame && frame->item ? frame->call : c->loc;
    const char *who =
        frame && frame->item ? str_printf(e->arena, "'%s'", frame->item->name) : "the file";
    return elab_error(e, loc, 345, "%s refuses this: %s", who, c->arg[0]->text);
}

static const Row rows[] = {
    {"shape", 1, 1, {"x"}, make_shape},
    {"count", 1, 1, {"x"}, make_count},
    {"known", 1, 1, {"x"}, make_known},
    {"refuse", 1, 1, {"why"}, make_refuse},
    {"zeros", 1, 1, {"shape"}, make_zeros},
    {"ones", 1, 1, {"shape"}, make_ones},
    {"full", 2, 2, {"value", "shape"}, make_full},
    {"reshape", 2, 2, {"x", "shape"}, make_reshape},
    {"squeeze", 1, 2, {"x", "axis"}, make_squeeze},
    {"flip", 1, 2, {"x", "axis"}, make_flip},
    {"transpose", 1, 3, {"x", "a", "b"}, make_transpose},
    {"cumsum", 1, 4, {"x", "axis", "reverse", "exclusive"}, make_cumsum},
    {"sort", 1, 3, {"x", "axis", "descending"}, make_sort},
    {"argsort", 1, 3, {"x", "axis", "descending"}, make_argsort},
    {"top_k", 2, 4, {"x", "k", "axis", "largest"}, make_top_k},
    {"segment_sum", 3, 3, {"x", "ids", "n"}, make_segment_sum},
    {"scatter_add", 3, 3, {"to", "ids", "x"}, make_scatter_add},
    {"select", 3, 3, {"condition", "a", "b"}, make_select},
    {"div", 2, 2, {"a", "b"}, make_div},
    {"rem", 2, 2, {"a", "b"}, make_rem},
    {"pow", 2, 2, {"a", "b"}, make_pow},
    {"atan2", 2, 2, {"y", "x"}, make_atan2},
    {"lerp", 3, 3, {"a", "b", "t"}, make_lerp},
    {"fma", 3, 3, {"a", "b", "c"}, make_fma},
    {"clamp", 3, 3, {"x", "lo", "hi"}, make_clamp},
    {"real", 1, 1, {"x"}, make_real},
    {"isfinite", 1, 1, {"x"}, make_isfinite},
    {"bernoulli", 2, 2, {"p", "shape"}, make_bernoulli},
    {"uniform", 3, 3, {"a", "b", "shape"}, make_uniform},
    {"normal", 3, 3, {"mean", "std", "shape"}, make_normal},
    {"randint", 3, 3, {"lo", "hi", "shape"}, make_randint},
    {"categorical", 1, 2, {"logits", "axis"}, make_categorical},
};
enum { NROW = sizeof rows / sizeof *rows };

/* --- one-operand maps ------------------------------------------------------------------------ */

static double rsqrt_of(double x) {
    return 1 / sqrt(x);
}
static double sign_of(double x) {
    return isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
}
static double round_of(double x) {
    return nearbyint(x);
} /* ties to even */

static const struct {
    const char *name;
    OpCode op;
    double (*number)(double);
} maps[] = {
    {"abs", OP_ABS, fabs},         {"exp", OP_EXP, exp},       {"expm1", OP_EXPM1, expm1},
    {"log", OP_LOG, log},          {"log1p", OP_LOG1P, log1p}, {"sqrt", OP_SQRT, sqrt},
    {"rsqrt", OP_RSQRT, rsqrt_of}, {"sin", OP_SIN, sin},       {"cos", OP_COS, cos},
    {"tan", OP_TAN, tan},          {"asin", OP_ASIN, asin},    {"acos", OP_ACOS, acos},
    {"atan", OP_ATAN, atan},       {"sinh", OP_SINH, sinh},    {"cosh", OP_COSH, cosh},
    {"tanh", OP_TANH, tanh},       {"erf", OP_ERF, erf},       {"floor", OP_FLOOR, floor},
    {"round", OP_ROUND, round_of}, {"sign", OP_SIGN, sign_of},
};
enum { NMAP = sizeof maps / sizeof *maps };

static const char *const special[] = {"concat", "stack", "einsum", "matmul", "stop_gradient",
                                      "grad",   "vjp",   "jvp",    "under",  "gradcheck"};
enum { NSPECIAL = sizeof special / sizeof *special };
static const char *const constants[] = {"inf",   "nan",   "pi",   "true",  "false",
                                        "train", "infer", "step", "steps", "epoch"};
enum { NCONSTANT = sizeof constants / sizeof *constants };

static bool listed(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++) {
        if (str_eq(list[i], name)) {
            return true;
        }
    }
    return false;
}

bool prelude_has(const char *name) {
    Elem elem;
    for (int i = 0; i < NROW; i++) {
        if (str_eq(rows[i].name, name)) {
            return true;
        }
    }
    for (int i = 0; i < NMAP; i++) {
        if (str_eq(maps[i].name, name)) {
            return true;
        }
    }
    return fold_is_name(name) || listed(special, NSPECIAL, name) || elem_from_name(name, &elem);
}

bool prelude_has_constant(const char *name) {
    return listed(constants, NCONSTANT, name);
}

void prelude_each(void (*visit)(void *ctx, const char *name), void *ctx) {
    static const char *const folds[] = {"sum", "min", "max", "mean", "prod", "argmax", "argmin"};
    for (int i = 0; i < NROW; i++) {
        visit(ctx, rows[i].name);
    }
    for (int i = 0; i < NMAP; i++) {
        visit(ctx, maps[i].name);
    }
    for (int i = 0; i < NSPECIAL; i++) {
        visit(ctx, special[i]);
    }
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        visit(ctx, folds[i]);
    }
}

static void add_near(void *ctx, const char *name) {
    nearest_add(ctx, name);
}

void prelude_nearest(Nearest *n) {
    prelude_each(add_near, n);
    for (int i = 0; i < NCONSTANT; i++) {
        nearest_add(n, constants[i]);
    }
}

const Value *prelude_constant(Elab *e, const char *name, Loc loc) {
    if (str_eq(name, "inf")) {
        return value_real(e->scratch, INFINITY);
    }
    if (str_eq(name, "nan")) {
        return value_real(e->scratch, NAN);
    }
    if (str_eq(name, "pi")) {
        return value_real(e->scratch, 3.14159265358979323846);
    }
    if (str_eq(name, "true") || str_eq(name, "false")) {
        return value_bool(e->scratch, name[0] == 't');
    }
    if (str_eq(name, "train") || str_eq(name, "infer")) {
        return value_bool(e->scratch, (e->entry && e->entry->train) == (name[0] == 't'));
    }
    if (str_eq(name, "step") || str_eq(name, "steps") || str_eq(name, "epoch")) {
        return train_counter(e, name, loc);
    }
    return NULL;
}

/* --- calls --------------------------------------------------------------------------------- */

static const Value *call_row(Elab *e, const Row *row, const Ast *call, Arguments *args) {
    Call c = {.e = e, .name = row->name, .loc = call->loc, .call = call};
    int next = 0;
    bool ok = true;
    for (int i = 0; i < args->count; i++) {
        Argument *arg = &args->at[i];
        int k = next;
        if (arg->name) {
            k = 0;
            while (k < row->nparam && !str_eq(row->param[k], arg->name)) {
                k++;
            }
        } else {
            next++;
        }
        if (k >= row->nparam || c.arg[k]) {
            bool twice = k < row->nparam;
            elab_error(e, arg->loc, 438,
                       twice       ? "'%s' gets its argument '%s' twice"
                       : arg->name ? "'%s' has no parameter '%s'"
                                   : "'%s' takes fewer arguments%s",
                       row->name,
                       twice       ? row->param[k]
                       : arg->name ? arg->name
                                   : "");
            if (arg->name && !twice) {
                prelude_hint_axis(e, arg->name);
            }
            return &value_poison;
        }
        c.arg[k] = arg->value ? arg->value : elab_expr(e, arg->ast);
        c.at[k] = arg->loc;
        ok = elab_ok(c.arg[k]) && ok;
    }
    for (int k = 0; k < row->required; k++) {
        if (!c.arg[k] && str_eq(row->param[k], "shape") && e->entry && e->entry->row_shape) {
            c.arg[k] = e->entry->row_shape;
        }
        if (!c.arg[k]) {
            return elab_error(e, call->loc, 439, "'%s' needs its argument '%s'", row->name,
                              row->param[k]);
        }
    }
    return ok ? row->make(&c) : &value_poison;
}

static const Value *call_unary(Elab *e, const char *name, const Ast *call, Arguments *args) {
    Several s;
    if (!prelude_several(e, name, args, &s)) {
        return &value_poison;
    }
    if (s.n != 1 || s.axis) {
        return elab_error(e, call->loc, 440, "'%s' takes one argument, found %d", name,
                          s.n + (s.axis != NULL));
    }
    for (int i = 0; i < NMAP; i++) {
        if (str_eq(maps[i].name, name)) {
            return arith_map(e, call->loc, name, maps[i].op, maps[i].number, s.v[0]);
        }
    }
    Elem elem;
    if (!elem_from_name(name, &elem)) {
        BUG("prelude function %s", name);
    }
    if (elem_is_half(elem) && !half_in_build(e, call->loc, elem)) {
        return &value_poison;
    }
    return arith_cast(e, call->loc, elem == TY_F32 ? e->g->float_type : elem, s.v[0]);
}

const Value *prelude_call(Elab *e, const char *name, const Ast *call, Arguments *args) {
    for (int i = 0; i < NROW; i++) {
        if (str_eq(rows[i].name, name)) {
            return call_row(e, &rows[i], call, args);
        }
    }
    if (str_eq(name, "under")) {
        if (args->count != 1 || !args->at[0].ast) {
            elab_error(e, call->loc, 443, "under(path) takes one path");
            diag_hint(&e->c->diag, "several: under(net.fc1) or under(net.fc2)");
            return &value_poison;
        }
        return train_under(e, args->at[0].ast);
    }
    if (str_eq(name, "gradcheck")) {
        return elab_error(e, call->loc, 444,
                          "gradcheck(...) stands in a test: expect gradcheck(fit) < "
                          "1e-5;");
    }
    bool folds = fold_is_name(name), joins = str_eq(name, "concat") || str_eq(name, "stack");
    bool derives = str_eq(name, "stop_gradient") || str_eq(name, "grad") || str_eq(name, "vjp") ||
                   str_eq(name, "jvp");
    bool einsum = str_eq(name, "einsum"), products = einsum || str_eq(name, "matmul");
    if (!folds && !joins && !derives && !products) {
        return call_unary(e, name, call, args);
    }
    Several s;
    if (!prelude_several(e, name, args, &s)) {
        return &value_poison;
    }
    if (folds) {
        return prelude_fold(e, name, &s, call->loc);
    }
    if (joins) {
        return prelude_concat(e, name, &s, call->loc);
    }
    if (products) {
        return einsum ? einsum_call(e, &s, call->loc) : einsum_matmul(e, &s, call->loc);
    }
    return derive_call(e, name, s.v, s.n, call->loc);
}
