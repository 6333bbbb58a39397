/* random_op: one rule for each word of the column `shape` of the op table, so that a new row
 * without a rule does not compile. */
#include "random_module.h"

#include "compiler/shape.h"

#include <math.h>
#include <string.h>

enum { MOST_PRODUCTS = 40000 };

/* The op on these operands when the shape rule accepts them. */
static bool accepted(Gen *gen, OpCode op, Node *const *in, int nin, const Attr *attr, Type type,
                     Val *out) {
    const char *fault;
    Type t = shape_check(op, in, nin, attr, NULL, type, &fault);
    if (fault || t.rank > 8 || type_count(t) > 2 * gen->most) {
        return false;
    }
    out->node = graph_add(gen->g, op, in, nin, attr, type);
    return true;
}

static bool accepted1(Gen *gen, OpCode op, Val a, const Attr *attr, Val *out) {
    *out = a;
    return accepted(gen, op, &a.node, 1, attr, *a.node->type, out);
}

static int axis_of(Gen *gen, Val v) {
    return (int)gen_below(gen, v.node->type->rank);
}

static uint32_t some_axes(Gen *gen, int rank) {
    return 1 + (uint32_t)gen_below(gen, ((int64_t)1 << rank) - 1);
}

static Val hull(Val a, Val b) {
    return (Val){a.node, fmin(a.lo, b.lo), fmax(a.hi, b.hi)};
}

static double size_of(Val v) {
    return fmax(fabs(v.lo), fabs(v.hi));
}

/* --- leaves ----------------------------------------------------------------------------------- */

static bool op_cnst(Gen *gen, OpCode op, Val *out) {
    static const double values[] = {0, 1, -1, 2, 0.5, -0.25, 3, 0.1};
    static const int64_t far[] = {INT64_MAX, INT64_MIN, -1, 255, 1 << 20, 0};
    (void)op;
    if (gen_chance(gen, 60)) {
        double x = values[gen_below(gen, 8)];
        *out = (Val){node_const(gen->g, gen->elem, x), x, x};
        return true;
    }
    Elem elem = gen_int_elem(gen);
    int64_t x = elem == TY_I64 ? far[gen_below(gen, 6)] : gen_below(gen, 100);
    *out = (Val){node_int(gen->g, elem, x), (double)x, (double)x};
    return true;
}

static bool op_table(Gen *gen, OpCode op, Val *out) {
    (void)op;
    Elem elem = gen_chance(gen, 60) ? gen->elem : gen_chance(gen, 20) ? TY_BOOL : gen_int_elem(gen);
    bool number = elem_is_float(elem);
    *out = gen_table(gen, gen_type(gen, elem), elem_is_signed(elem) ? -1 : 0,
                     number            ? 1
                     : elem == TY_BOOL ? 2
                                       : 100);
    return true;
}

static bool op_slot(Gen *gen, OpCode op, Val *out) {
    (void)op;
    bool number = gen_chance(gen, 70);
    Elem elem = number ? gen->elem : gen_chance(gen, 30) ? TY_BOOL : gen_int_elem(gen);
    *out = number ? gen_input(gen, gen_type(gen, elem), gen_chance(gen, 30) ? 0.25 : -1, 1)
                  : gen_input(gen, gen_type(gen, elem), 0, elem == TY_BOOL ? 2 : 7);
    return true;
}

static bool op_body_param(Gen *gen, OpCode op, Val *out) { /* loops make them */
    (void)gen, (void)op, (void)out;
    return false;
}

static bool op_iota(Gen *gen, OpCode op, Val *out) {
    (void)op;
    Type t = gen_type(gen, gen_int_elem(gen));
    if (t.rank == 0) {
        return false;
    }
    int axis = (int)gen_below(gen, t.rank);
    *out = (Val){node_iota(gen->g, t, axis), 0, (double)(t.dim[axis] - 1)};
    return !(t.elem == TY_I8 && t.dim[axis] > 128) && !(t.elem == TY_U8 && t.dim[axis] > 256);
}

/* --- views ------------------------------------------------------------------------------------ */

static bool op_reshape(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Type t = {.elem = v.node->type->elem};
    int64_t left = type_count(*v.node->type);
    while (left > 1 && t.rank < 6) { /* factors, the rest at once, ones between */
        int64_t f = gen_chance(gen, 20) ? 1 : gen_chance(gen, 25) ? left : 2 + gen_below(gen, 6);
        if (left % f == 0) {
            t.dim[t.rank++] = f;
            left /= f;
        } else if (gen_chance(gen, 30)) {
            break;
        }
    }
    if (left > 1 || gen_chance(gen, 20)) {
        t.dim[t.rank++] = left;
    }
    *out = v;
    return accepted(gen, op, &v.node, 1, NULL, t, out);
}

static bool op_permute(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Attr at = {0};
    for (int i = 0; i < v.node->type->rank; i++) {
        int j = (int)gen_below(gen, i + 1);
        at.map[i] = at.map[j];
        at.map[j] = i;
    }
    return v.node->type->rank > 1 && accepted1(gen, op, v, &at, out);
}

static bool op_slice(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Attr at = {0};
    for (int i = 0; i < v.node->type->rank; i++) {
        int64_t n = v.node->type->dim[i];
        bool whole = gen_chance(gen, 50);
        at.step[i] = whole ? 1 : 1 + gen_below(gen, 3);
        at.lo[i] = whole ? 0 : gen_below(gen, n);
        int64_t most = (n - 1 - at.lo[i]) / at.step[i] + 1;
        at.hi[i] = whole ? n : 1 + gen_below(gen, most);
        at.step[i] = at.hi[i] == 1 ? 1 : at.step[i];
    }
    return accepted1(gen, op, v, &at, out);
}

/* A border and its value, within the type's range. */
static Val border(Gen *gen, Val v, Attr *at) {
    static const double values[] = {0, 0, 1, -0.5};
    at->border = (Border)(BORDER_VALUE + gen_below(gen, 3));
    Elem elem = v.node->type->elem;
    if (at->border == BORDER_VALUE) {
        at->value = values[gen_below(gen, elem_is_float(elem) ? 4 : 3)];
        v = hull(v, (Val){NULL, at->value, at->value});
    }
    return v;
}

static bool op_pad(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Attr at = {0};
    v = border(gen, v, &at);
    for (int i = 0; i < v.node->type->rank; i++) {
        at.lo[i] = gen_chance(gen, 50) ? gen_below(gen, 4) : 0;
        at.hi[i] = gen_chance(gen, 50) ? gen_below(gen, 4) : 0;
    }
    return accepted1(gen, op, v, &at, out);
}

static bool op_broadcast(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Type t = {.elem = v.node->type->elem};
    Attr at = {0};
    for (int from = 0; from <= v.node->type->rank;) {
        if (gen_chance(gen, 30) && t.rank < 6) {
            at.axes |= 1u << t.rank;
            t.dim[t.rank++] = gen->dim[gen_below(gen, gen->ndim)];
        } else if (from < v.node->type->rank) {
            t.dim[t.rank++] = v.node->type->dim[from++];
        } else {
            break;
        }
    }
    *out = v;
    return accepted(gen, op, &v.node, 1, &at, t, out);
}

static bool op_flip(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    if (v.node->type->rank == 0) {
        return false;
    }
    Attr at = {.axes = some_axes(gen, v.node->type->rank)};
    return accepted1(gen, op, v, &at, out);
}

static bool op_window(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    if (v.node->type->rank == 0) {
        return false;
    }
    Attr at = {.axis = axis_of(gen, v)};
    at.taps_n = v.node->type->dim[at.axis];
    at.s = 1 + gen_below(gen, 2);
    at.d = gen_chance(gen, 15) ? -1 : 1 + gen_below(gen, 2);
    at.taps = 1 + gen_below(gen, 4);
    at.count = 1 + gen_below(gen, at.taps_n + 2);
    at.p = gen_below(gen, 4) - (gen_chance(gen, 10) ? 3 : 0);
    if (gen_chance(gen, 30)) { /* as many as lie inside */
        at.d = at.d < 0 ? 1 : at.d;
        at.p = 0;
        at.count = (at.taps_n - 1 - at.d * (at.taps - 1)) / at.s + 1;
        return at.count > 0 && accepted1(gen, op, v, &at, out);
    }
    v = border(gen, v, &at);
    return accepted1(gen, op, v, &at, out);
}

static bool op_concat(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Type t = *v.node->type;
    if (t.rank == 0) {
        return false;
    }
    Attr at = {.axis = axis_of(gen, v)};
    Node *in[4] = {v.node};
    int n = 1 + (int)gen_below(gen, 4);
    *out = v;
    for (int k = 1; k < n; k++) {
        Val part = gen_like(gen, t);
        int64_t some = 1 + gen_below(gen, t.dim[at.axis]);
        int64_t extent = some < t.dim[at.axis] ? some : t.dim[at.axis];
        in[k] = gen_chance(gen, 50) ? part.node
                                    : node_slice_axis(gen->g, part.node, at.axis,
                                                      t.dim[at.axis] - extent, extent, 1);
        *out = hull(*out, part);
    }
    return accepted(gen, op, in, n, &at, t, out);
}

/* --- maps ------------------------------------------------------------------------------------- */

/* Moved off the places where an op has a kink: distinct numbers are added. */
static Val off_kink(Gen *gen, Val v) {
    Type t = *v.node->type;
    if (!gen->smooth || !elem_is_float(t.elem)) {
        return v;
    }
    int64_t n = type_count(t);
    double *data = ARENA_ARRAY(&gen->c->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = gen_below(gen, i + 1);
        data[i] = data[j];
        data[j] = 0.01 * (double)(i - n / 2) + gen_uniform(gen, 0.001, 0.009);
    }
    v = gen_calm(gen, v, 2);
    double far = 0.01 * (double)n + 0.01;
    return (Val){node_map2(gen->g, OP_ADD, v.node, node_table(gen->g, t, data)), v.lo - far,
                 v.hi + far};
}

static Val positive(Gen *gen, Val v) {
    Graph *g = gen->g;
    if (v.lo >= 0.2) {
        return v;
    }
    v = gen_calm(gen, v, 4);
    double size = size_of(v);
    if (gen_chance(gen, 40)) {
        return (Val){node_map1(g, OP_EXP, gen_calm(gen, v, 2).node), 0.13, 7.4};
    }
    Node *square = node_map2(g, OP_MUL, v.node, v.node);
    return (Val){node_map2(g, OP_ADD, square, node_const(g, v.node->type->elem, 0.25)), 0.25,
                 size * size + 0.25};
}

static Val number(Gen *gen) { /* any but a bool */
    return gen_chance(gen, 70) ? gen_float(gen) : gen_int(gen);
}

/* Bounds of integers are kept only where nothing wraps. */
static Val bounded(Val v, double lo, double hi) {
    Elem elem = v.node->type->elem;
    double most = elem == TY_I8 || elem == TY_U8 ? 127 : 30000;
    bool whole = elem_is_int(elem);
    if (whole && (!(lo >= (elem_is_signed(elem) ? -most : 0)) || !(hi <= most))) {
        return (Val){v.node, -INFINITY, INFINITY};
    }
    return (Val){v.node, lo, hi};
}

static void bounds2(OpCode op, Val a, Val b, Val *out) {
    double p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi}, lo, hi;
    switch (op) {
    case OP_ADD: lo = a.lo + b.lo, hi = a.hi + b.hi; break;
    case OP_SUB: lo = a.lo - b.hi, hi = a.hi - b.lo; break;
    case OP_MUL:
        lo = fmin(fmin(p[0], p[1]), fmin(p[2], p[3]));
        hi = fmax(fmax(p[0], p[1]), fmax(p[2], p[3]));
        break;
    case OP_NEG: lo = -a.hi, hi = -a.lo; break;
    case OP_ABS: lo = 0, hi = size_of(a); break;
    case OP_MIN: lo = fmin(a.lo, b.lo), hi = fmin(a.hi, b.hi); break;
    case OP_MAX: lo = fmax(a.lo, b.lo), hi = fmax(a.hi, b.hi); break;
    case OP_SIGN: lo = -1, hi = 1; break;
    default: lo = a.lo, hi = a.hi; break;
    }
    *out = isfinite(lo) && isfinite(hi) ? bounded(*out, lo, hi)
                                        : (Val){out->node, -INFINITY, INFINITY};
}

/* Values of any element type, which stay as they are. */
static bool op_same_any(Gen *gen, OpCode op, Val *out) {
    if (op == OP_STOP && gen->smooth) {
        return false;
    }
    Val a = gen_any(gen);
    if (!accepted(gen, op, &a.node, 1, NULL, *a.node->type, out)) {
        return false;
    }
    bounds2(op, a, a, out);
    return true;
}

static bool op_same(Gen *gen, OpCode op, Val *out) {
    Val a = number(gen), b = a;
    bool kink = op == OP_ABS || op == OP_MIN || op == OP_MAX || op == OP_SIGN;
    a = kink ? off_kink(gen, a) : a;
    if (op_info[op].nin == 2) {
        b = gen_like(gen, *a.node->type);
    }
    Node *in[2] = {a.node, b.node};
    if (!accepted(gen, op, in, op_info[op].nin, NULL, *a.node->type, out)) {
        return false;
    }
    bounds2(op, a, b, out);
    return true;
}

static bool op_same_float(Gen *gen, OpCode op, Val *out) {
    Val a = gen_calm(gen, gen_float(gen), 4), b = a, c = a;
    switch (op) {
    case OP_FMA:
        b = gen_calm(gen, gen_like(gen, *a.node->type), 4);
        c = gen_calm(gen, gen_like(gen, *a.node->type), 4);
        break;
    case OP_DIV:
        b = positive(gen, gen_like(gen, *a.node->type));
        if (gen_chance(gen, 30)) {
            b = (Val){node_map1(gen->g, OP_NEG, b.node), -b.hi, -b.lo};
        }
        break;
    case OP_POW:
        a = positive(gen, a);
        b = gen_chance(gen, 40)
                ? (Val){node_full(gen->g, *a.node->type, (double)gen_below(gen, 9) / 2 - 2), -2, 2}
                : gen_calm(gen, gen_like(gen, *a.node->type), 2);
        break;
    case OP_LOG:
    case OP_LOG1P:
    case OP_SQRT:
    case OP_RSQRT: a = positive(gen, a); break;
    case OP_ATAN2: b = positive(gen, gen_like(gen, *a.node->type)); break;
    case OP_TAN:
    case OP_ASIN:
    case OP_ACOS: /* away from poles and ends */
        a = gen_calm(gen, a, 1);
        a = (Val){node_map2(gen->g, OP_MUL, a.node, node_full(gen->g, *a.node->type, 0.7)),
                  0.7 * a.lo, 0.7 * a.hi};
        break;
    case OP_FLOOR:
    case OP_ROUND: a = off_kink(gen, a); break;
    default: break;
    }
    Node *in[3] = {a.node, b.node, c.node};
    if (!accepted(gen, op, in, op_info[op].nin, NULL, *a.node->type, out)) {
        return false;
    }
    double least = fmin(fabs(b.lo), fabs(b.hi)), size = size_of(a);
    switch (op) {
    case OP_FMA: size = size * size_of(b) + size_of(c); break;
    case OP_DIV: size = size / least; break;
    case OP_POW: size = pow(fmax(size, 1 / a.lo), size_of(b)); break;
    case OP_EXP:
    case OP_EXPM1: size = exp(size); break;
    case OP_LOG: size = fmax(fabs(log(a.lo)), fabs(log(a.hi))); break;
    case OP_RSQRT: size = 1 / sqrt(a.lo); break;
    case OP_SINH:
    case OP_COSH: size = cosh(size); break;
    case OP_ATAN2: size = 4; break;
    case OP_ACOS: size = 3; break;
    case OP_FLOOR:
    case OP_ROUND: size = size + 1; break;
    case OP_LOG1P:
    case OP_SQRT: break;
    default: size = 1; break;
    }
    bool above = op == OP_SQRT || op == OP_RSQRT || op == OP_LOG1P || op == OP_EXP || op == OP_POW;
    *out = (Val){out->node, above ? 0 : -fmax(size, 1), fmax(size, 1)};
    return true;
}

/* Of whole numbers: with digits behind the point that f32 and f64 disagree on, both may round to
 * another neighbour. */
static bool op_single_float(Gen *gen, OpCode op, Val *out) {
    Val a = gen_int(gen);
    Node *in[2] = {node_cast(gen->g, a.node, TY_F32)};
    if (gen->smooth || gen->elem != TY_F32) {
        return false;
    }
    if (op_info[op].nin == 2) { /* the second is of [0, 1) */
        Node *less = node_map2(gen->g, OP_LT, a.node, gen_like(gen, *a.node->type).node);
        Node *some = node_const(gen->g, TY_F32, 0.75);
        in[1] = node_map2(gen->g, OP_MUL, node_cast(gen->g, less, TY_F32), some);
    }
    *out = (Val){NULL, 1.01 * a.lo, 1.01 * a.hi};
    return accepted(gen, op, in, op_info[op].nin, NULL, *in[0]->type, out);
}

static bool op_same_int(Gen *gen, OpCode op, Val *out) {
    Val a = gen_int(gen), b = gen_like(gen, *a.node->type);
    Node *in[2] = {a.node, b.node};
    *out = (Val){NULL, -INFINITY, INFINITY};
    return accepted(gen, op, in, 2, NULL, *a.node->type, out);
}

static bool op_compare(Gen *gen, OpCode op, Val *out) {
    Val a = off_kink(gen, number(gen)), b = gen_like(gen, *a.node->type);
    Node *in[2] = {a.node, b.node};
    *out = (Val){NULL, 0, 1};
    return accepted(gen, op, in, 2, NULL, *a.node->type, out);
}

static bool op_logic(Gen *gen, OpCode op, Val *out) {
    Val a = gen_bool(gen), b = gen_like(gen, *a.node->type);
    Node *in[2] = {a.node, b.node};
    *out = (Val){NULL, 0, 1};
    return accepted(gen, op, in, op_info[op].nin, NULL, *a.node->type, out);
}

static bool op_isfinite(Gen *gen, OpCode op, Val *out) {
    Val a = gen_float(gen);
    *out = (Val){NULL, 0, 1};
    return accepted(gen, op, &a.node, 1, NULL, *a.node->type, out);
}

static bool op_select(Gen *gen, OpCode op, Val *out) {
    Val a = gen_chance(gen, 90) ? number(gen) : gen_bool(gen), b = gen_like(gen, *a.node->type);
    Type like = *a.node->type;
    like.elem = TY_BOOL;
    Val c = gen_fit(gen, gen_bool(gen), like);
    Node *in[3] = {c.node, a.node, b.node};
    *out = hull(a, b);
    return accepted(gen, op, in, 3, NULL, *a.node->type, out);
}

static bool op_cast(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Elem from = v.node->type->elem, to = gen_chance(gen, 45)   ? gen->elem
                                         : gen_chance(gen, 20) ? TY_BOOL
                                                               : gen_int_elem(gen);
    if (gen->mixed && elem_is_float(from) && gen_chance(gen, 50)) {
        to = from == TY_F32 ? TY_F64 : TY_F32;
    }
    if (from == to || (gen->smooth && elem_is_float(from) && to != TY_F64)) {
        return false;
    }
    if (elem_is_int(from) && elem_is_float(to) && !(size_of(v) <= 64)) {
        v = (Val){node_map2(gen->g, OP_IREM, v.node, node_int(gen->g, from, 16)), 0, 15};
    }
    Type t = *v.node->type;
    t.elem = to;
    *out = (Val){NULL, -INFINITY, INFINITY};
    if (to == TY_BOOL) {
        *out = (Val){NULL, 0, 1};
    } else if (elem_is_float(to) || (v.lo >= (elem_is_signed(to) ? -100 : 0) && v.hi <= 100)) {
        *out = (Val){NULL, floor(v.lo), ceil(v.hi)};
    }
    return accepted(gen, op, &v.node, 1, NULL, t, out);
}

static bool op_random(Gen *gen, OpCode op, Val *out) {
    Node *key[4];
    int n = 2 + (int)gen_below(gen, 3);
    for (int k = 0; k < n; k++) {
        Val v =
            gen_fit(gen, gen_chance(gen, 50) ? gen_int(gen) : gen_any(gen), type_scalar(TY_I64));
        key[k] = v.node;
    }
    Attr at = {.dist = (Dist)gen_below(gen, 3), .site = gen_bits(gen)};
    Type t = gen_type(gen, at.dist == DIST_BITS ? TY_U32 : gen->elem);
    static const double lo[] = {-INFINITY, 0, -9}, hi[] = {INFINITY, 1, 9};
    *out = (Val){NULL, lo[at.dist], hi[at.dist]};
    return accepted(gen, op, key, n, &at, t, out);
}

/* --- folds ------------------------------------------------------------------------------------ */

static bool op_fold(Gen *gen, OpCode op, Val *out) {
    Val v = number(gen);
    if (v.node->type->rank == 0) {
        return false;
    }
    Attr at = {.axes = some_axes(gen, v.node->type->rank)};
    bool sum = op == OP_SUM || op == OP_PROD;
    v = sum ? v : off_kink(gen, v);
    v = op == OP_PROD && elem_is_float(v.node->type->elem) ? gen_calm(gen, v, 1.1) : v;
    if (!accepted1(gen, op, v, &at, out)) {
        return false;
    }
    int64_t kept = type_count(*out->node->type);
    double n = (double)(type_count(*v.node->type) / (kept > 0 ? kept : 1)), size = size_of(v);
    bool whole = elem_is_int(v.node->type->elem);
    if (op == OP_PROD && !whole && n > 40) {
        return false;
    }
    size = op == OP_PROD ? pow(fmax(size, 1), n) : op == OP_SUM ? size * n : size;
    *out = whole && sum ? (Val){out->node, -INFINITY, INFINITY}
           : sum        ? (Val){out->node, -size, size}
                        : (Val){out->node, v.lo, v.hi};
    return true;
}

static bool op_argfold(Gen *gen, OpCode op, Val *out) {
    Val v = off_kink(gen, number(gen));
    if (v.node->type->rank == 0) {
        return false;
    }
    Attr at = {.axis = axis_of(gen, v)};
    bool ok = accepted1(gen, op, v, &at, out);
    *out = (Val){out->node, 0, (double)(v.node->type->dim[at.axis] - 1)};
    return ok;
}

static bool op_cumsum(Gen *gen, OpCode op, Val *out) {
    Val v = number(gen);
    if (v.node->type->rank == 0) {
        return false;
    }
    Attr at = {.axis = axis_of(gen, v)};
    at.reverse = gen_chance(gen, 50);
    at.exclusive = gen_chance(gen, 50);
    double size = size_of(v) * (double)v.node->type->dim[at.axis];
    bool ok = accepted1(gen, op, v, &at, out);
    bool whole = elem_is_int(v.node->type->elem);
    *out = whole ? (Val){out->node, -INFINITY, INFINITY} : (Val){out->node, -size, size};
    return ok;
}

static bool op_overlap_add(Gen *gen, OpCode op, Val *out) {
    Val v = number(gen);
    Type t = *v.node->type;
    if (t.rank < 2) {
        return false;
    }
    Attr at = {.axis = (int)gen_below(gen, t.rank - 1)};
    at.count = t.dim[at.axis];
    at.taps = t.dim[at.axis + 1];
    at.s = 1 + gen_below(gen, 2);
    at.d = 1 + gen_below(gen, 2);
    at.p = gen_below(gen, 3);
    at.border = BORDER_VALUE;
    at.taps_n = 1 + gen_below(gen, at.s * at.count + at.d * at.taps);
    if (gen_chance(gen, 30)) {
        at.border = BORDER_NONE;
        at.p = 0;
        at.taps_n = at.s * (at.count - 1) + at.d * (at.taps - 1) + 1 + gen_below(gen, 3);
    }
    double size = size_of(v) * (double)(at.count * at.taps);
    bool ok = accepted1(gen, op, v, &at, out);
    *out =
        elem_is_int(t.elem) ? (Val){out->node, -INFINITY, INFINITY} : (Val){out->node, -size, size};
    return ok;
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool op_contract(Gen *gen, OpCode op, Val *out) {
    Val a = gen_float(gen), b = gen_chance(gen, 20) ? a : gen_float(gen);
    Type ta = *a.node->type, tb = *b.node->type;
    Attr at = {0};
    int n = 0;
    double cost = 1, summed = 1;
    uint32_t shared = 0;
    for (int i = 0; i < ta.rank; i++) {
        at.la[i] = (int8_t)n++;
        cost *= (double)ta.dim[i];
    }
    for (int j = 0; j < tb.rank; j++) {
        at.lb[j] = -1;
        for (int i = 0; i < ta.rank && at.lb[j] < 0; i++) {
            if (ta.dim[i] == tb.dim[j] && !(shared >> i & 1) && gen_chance(gen, 75)) {
                at.lb[j] = (int8_t)i;
                shared |= 1u << i;
            }
        }
        if (at.lb[j] < 0) {
            at.lb[j] = (int8_t)n++;
            cost *= (double)tb.dim[j];
        }
    }
    int8_t kept[2 * MD_RANK];
    Type t = {.elem = ta.elem};
    for (int l = 0; l < n; l++) { /* shared labels are summed, or batch axes; in any order */
        if (shared >> l & 1 && gen_chance(gen, 70)) {
            summed *= (double)ta.dim[l];
            continue;
        }
        int j = (int)gen_below(gen, t.rank + 1);
        kept[t.rank] = kept[j];
        kept[j] = (int8_t)l;
        t.rank++;
    }
    if (t.rank > 7 || cost * (double)gen->repeats > 20.0 * (double)gen->most + MOST_PRODUCTS) {
        return false;
    }
    memcpy(at.lo_, kept, (size_t)t.rank);
    Node *in[2] = {a.node, b.node};
    double size = size_of(a) * size_of(b) * summed;
    *out = (Val){NULL, -size, size};
    return accepted(gen, op, in, 2, &at, t, out);
}

static bool op_gather(Gen *gen, OpCode op, Val *out) {
    Val v = gen_any(gen);
    Type x = *v.node->type, t = {.elem = gen_int_elem(gen)};
    if (x.rank == 0) {
        return false;
    }
    Attr at = {.batch = (int)gen_below(gen, gen_chance(gen, 50) ? 1 : x.rank)};
    for (int k = 0; k < at.batch; k++) {
        t.dim[t.rank++] = x.dim[k];
    }
    for (int k = (int)gen_below(gen, 3); k > 0; k--) {
        t.dim[t.rank++] = 1 + gen_below(gen, 6);
    }
    Val index = gen_index(gen, t, x.dim[at.batch]);
    Node *in[2] = {v.node, index.node};
    *out = v;
    return accepted(gen, op, in, 2, &at, x, out);
}

static bool op_scatter_add(Gen *gen, OpCode op, Val *out) {
    Val v = number(gen);
    Type u = *v.node->type, t = {.elem = u.elem}, i = {.elem = gen_int_elem(gen)};
    i.rank = (int)gen_below(gen, u.rank + 1);
    memcpy(i.dim, u.dim, sizeof *u.dim * (size_t)i.rank);
    Attr at = {.batch = (int)gen_below(gen, i.rank + 1)};
    int64_t n = 1 + gen_below(gen, 9);
    for (int k = 0; k < at.batch; k++) {
        t.dim[t.rank++] = u.dim[k];
    }
    t.dim[t.rank++] = n;
    for (int k = i.rank; k < u.rank; k++) {
        t.dim[t.rank++] = u.dim[k];
    }
    Val index = gen_index(gen, i, n);
    Node *in[2] = {v.node, index.node};
    double size = size_of(v) * (double)type_count(i);
    *out = elem_is_int(u.elem) ? (Val){NULL, -INFINITY, INFINITY} : (Val){NULL, -size, size};
    return accepted(gen, op, in, 2, &at, t, out);
}

static bool op_order(Gen *gen, OpCode op, Val *out) {
    Val v = off_kink(gen, number(gen));
    Type t = *v.node->type;
    if (t.rank == 0 || t.dim[t.rank - 1] == 0) {
        return false;
    }
    int64_t n = t.dim[t.rank - 1];
    Attr at = {.reverse = gen_chance(gen, 50)};
    t.elem = TY_I32;
    t.dim[t.rank - 1] = gen_chance(gen, 50) ? n : 1 + gen_below(gen, n);
    *out = (Val){NULL, 0, (double)(n - 1)};
    return accepted(gen, op, &v.node, 1, &at, t, out);
}

/* --- loops and marks -------------------------------------------------------------------------- */

static bool op_loop(Gen *gen, OpCode op, Val *out) {
    (void)op;
    return gen_loop(gen, out);
}

static bool op_pick(Gen *gen, OpCode op, Val *out) { /* loops make them */
    (void)gen, (void)op, (void)out;
    return false;
}

static bool op_grad(Gen *gen, OpCode op, Val *out) {
    (void)op;
    return gen_grad(gen, out);
}

static bool op_custom(Gen *gen, OpCode op, Val *out) {
    (void)op;
    return gen_custom(gen, out);
}

typedef bool (*GenRule)(Gen *gen, OpCode op, Val *out);
static const GenRule rules[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = op_##shape,
#include "compiler/op.def"
#undef OP
};

bool gen_op(Gen *gen, OpCode op, Val *out) {
    return rules[op](gen, op, out);
}
