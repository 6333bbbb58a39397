/* simplify_map: rules for elementwise ops; see simplify.c. */
#include "passes/simplify_rule.h"

#include <float.h>
#include <math.h>

static Node *map1(Graph *g, OpCode op, Node *a) {
    return node_map1(g, op, a);
}
static Node *map2(Graph *g, OpCode op, Node *a, Node *b) {
    return node_map2(g, op, a, b);
}

static bool is_float(const Node *n) {
    return elem_is_float(n->type->elem);
}

/* The constant behind a broadcast, or NULL. */
static Node *constant_of(Node *n) {
    Node *c = n->op == OP_BROADCAST ? n->in[0] : n;
    return c->op == OP_CONST ? c : NULL;
}

/* Whether x, rounded to that type, has all its digits and does not stand for 0 or infinity: a
 * constant made of others must, or it would make a NaN of x * 1e30 * 1e30 where x is 0. */
static bool is_normal(double x, Elem elem) {
    return elem == TY_F32 ? isnormal((float)x) : isnormal(x);
}

/* op over operands that are all repeated along the same new axes: once, then repeated. */
static Node *narrow_map(Graph *g, const Node *n, Node *const *in) {
    uint32_t common = UINT32_MAX;
    bool any = false;
    for (int k = 0; k < n->nin; k++) {
        common &= in[k]->op == OP_BROADCAST ? in[k]->attr->axes : 0;
        any = any || !constant_of(in[k]);
    }
    if (n->nin == 0 || n->op == OP_RANDOM || common == 0 || !any) {
        return NULL;
    }
    Node *small[3]; /* of all that is done element by element only a draw has more operands */
    for (int k = 0; k < n->nin; k++) {
        uint32_t kept = axes_without(in[k]->attr->axes, common, n->type->rank);
        Type t = without_axes(*in[k]->type, common);
        small[k] = node_broadcast(g, in[k]->in[0], kept, t.rank, t.dim);
    }
    Node *once = same_op(g, n, small, type_scalar(n->type->elem));
    return node_broadcast(g, once, common, n->type->rank, n->type->dim);
}

/* x + c or x - c of x = y + d or y - d, in integers: one constant. */
static Node *int_offset(Graph *g, const Node *n, Node *const *in) {
    Node *c = constant_of(in[1]), *x = in[0];
    if (is_float(in[0]) || !c || (x->op != OP_ADD && x->op != OP_SUB)) {
        return NULL;
    }
    Node *d = constant_of(x->in[1]);
    if (!d) {
        return NULL;
    }
    Node *both = map2(g, x->op == n->op ? OP_ADD : OP_SUB, c, d);
    return map2(g, n->op, x->in[0], both);
}

static Node *add_rule(Graph *g, const Node *n, Node *const *in) {
    (void)n;
    for (int k = 0; k < 2; k++) {
        if (is_number(in[k], 0)) {
            return in[1 - k];
        }
        if (in[k]->op == OP_NEG) {
            return map2(g, OP_SUB, in[1 - k], in[k]->in[0]);
        }
        if (in[k]->op == OP_ERF && is_number(in[1 - k], 1)) {
            return map1(g, OP_ERFP1, in[k]->in[0]);
        }
    }
    return in[0] == in[1] && is_float(in[0])
               ? map2(g, OP_MUL, in[0], node_const(g, in[0]->type->elem, 2))
               : NULL;
}

/* Two values padded with zeros to ranges of one axis that touch: their concatenation. */
static bool padded_axis(const Node *n, int *axis) {
    int found = -1;
    if (n->op != OP_PAD || n->attr->border != BORDER_VALUE || n->attr->value != 0) {
        return false;
    }
    for (int i = 0; i < n->type->rank; i++) {
        if (n->attr->lo[i] != 0 || n->attr->hi[i] != 0) {
            if (found >= 0) {
                return false;
            }
            found = i;
        }
    }
    *axis = found;
    return found >= 0;
}

static Node *join_pads(Graph *g, const Node *x, const Node *y) {
    int axis, other;
    if (!padded_axis(x, &axis) || !padded_axis(y, &other) || axis != other) {
        return NULL;
    }
    for (int k = 0; k < 2; k++) {
        const Node *a = k == 0 ? x : y, *b = k == 0 ? y : x;
        int64_t from = a->attr->lo[axis] + a->in[0]->type->dim[axis];
        if (from != b->attr->lo[axis]) {
            continue;
        }
        Node *part[2] = {a->in[0], b->in[0]};
        int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
        lo[axis] = a->attr->lo[axis];
        hi[axis] = b->attr->hi[axis];
        Node *both = node_concat(g, part, 2, axis);
        Node *whole = node_pad(g, both, lo, hi, BORDER_VALUE, 0);
        return type_equal(*whole->type, *x->type) ? whole : NULL;
    }
    return NULL;
}

/* Parts of like size, as gates are; the ends of a long axis are made where they are added. */
static bool alike(const Node *x, const Node *y) {
    int64_t a = x->nin > 0 ? type_count(*x->in[0]->type) : 0;
    int64_t b = y->nin > 0 ? type_count(*y->in[0]->type) : 0;
    return a <= 4 * b && b <= 4 * a;
}

/* In a sum of more terms too: where one of the two is padded, the other adds a zero. */
static Node *add_pads(Graph *g, const Node *n, Node *const *in) {
    Node *joined = join_pads(g, in[0], in[1]);
    for (int k = 0; k < 2 && !joined; k++) {
        const Node *sum = in[k];
        for (int j = 0; j < 2 && sum->op == OP_ADD && !joined; j++) {
            Node *const x = sum->in[j], *const y = in[1 - k];
            Node *both = alike(x, y) ? join_pads(g, x, y) : NULL;
            joined = both ? map2(g, n->op, both, sum->in[1 - j]) : NULL;
        }
    }
    return joined;
}

static Node *sub_rule(Graph *g, const Node *n, Node *const *in) {
    if (is_number(in[1], 0)) {
        return in[0];
    }
    if (is_number(in[0], 0)) {
        return map1(g, OP_NEG, in[1]);
    }
    if (in[1]->op == OP_NEG) {
        return map2(g, OP_ADD, in[0], in[1]->in[0]);
    }
    if (in[1]->op == OP_ERF && is_number(in[0], 1)) {
        return map1(g, OP_ERFP1, map1(g, OP_NEG, in[1]->in[0]));
    }
    if (in[0]->op == OP_NEG && in[0]->in[0] == in[1] && is_float(in[1])) { /* to the bit */
        return map2(g, OP_MUL, in[1], node_const(g, in[1]->type->elem, -2));
    }
    return in[0] == in[1] && !is_float(in[0]) ? node_full(g, *n->type, 0) : NULL;
}

static Node *mul_rule(Graph *g, const Node *n, Node *const *in) {
    for (int k = 0; k < 2; k++) {
        Node *x = in[1 - k], *c = constant_of(in[k]);
        if (in[k]->op == OP_NEG && x->op == OP_NEG) {
            return map2(g, OP_MUL, in[k]->in[0], x->in[0]);
        }
        if (in[k]->op == OP_NEG && !c && !constant_of(x)) {
            return map1(g, OP_NEG, map2(g, OP_MUL, in[k]->in[0], x));
        }
        if (!c) {
            continue;
        }
        if (is_number(in[k], 1)) {
            return x;
        }
        if (is_number(in[k], -1)) {
            return map1(g, OP_NEG, x);
        }
        if (is_number(in[k], 0) && !is_float(x)) {
            return node_full(g, *n->type, 0);
        }
        if (x->op == OP_NEG) {
            return map2(g, OP_MUL, x->in[0], map1(g, OP_NEG, c));
        }
        for (int j = 0; x->op == OP_MUL && j < 2; j++) {
            Node *d = constant_of(x->in[j]), *both = d ? map2(g, OP_MUL, c, d) : NULL;
            if (both && (!is_float(x) || is_normal(both->attr->value, n->type->elem))) {
                return map2(g, OP_MUL, x->in[1 - j], both);
            }
        }
    }
    return NULL;
}

/* One division for all elements that share the divisor y: x * (1 / y), up to 1.5 units in the last
 * place off. Where 1 / y would be infinite and y is not 0, x / y is (x * a) * (1 / (y * a)), with
 * the a that makes y a normal number; else a is 1. */
static Node *times_inverse(Graph *g, const Node *n, Node *x, const Node *divisor) {
    Elem elem = n->type->elem;
    Node *y = divisor->in[0], *one = node_const(g, elem, 1);
    double known;
    if (!is_uniform(y, &known)) {
        Node *least = node_const(g, elem, elem == TY_F32 ? FLT_MIN : DBL_MIN);
        Node *is_small = map2(g, OP_LT, map1(g, OP_ABS, y), least);
        Node *a = node_select(g, is_small, node_const(g, elem, 0x1p64), one);
        y = map2(g, OP_MUL, y, a);
        a = node_broadcast(g, a, divisor->attr->axes, n->type->rank, n->type->dim);
        x = map2(g, OP_MUL, x, a);
    } else if (!is_normal(1 / known, elem)) {
        return NULL;
    }
    y = map2(g, OP_DIV, one, y);
    y = node_broadcast(g, y, divisor->attr->axes, n->type->rank, n->type->dim);
    return map2(g, OP_MUL, x, y);
}

static Node *div_rule(Graph *g, const Node *n, Node *const *in) {
    enum { SHARED = 4 }; /* elements to a divisor, at least */
    double y;
    int power;
    if (is_number(in[1], 1)) {
        return in[0];
    }
    bool shared = in[1]->op == OP_BROADCAST &&
                  type_count(*in[1]->in[0]->type) <= type_count(*n->type) / SHARED;
    const Reads *reads = n->note;
    const bool exact = is_uniform(in[1], &y) && frexp(fabs(y), &power) == 0.5;
    Node *product = NULL;
    if (shared && !is_number(in[0], 1) && (exact || !reads || !reads->jumps)) {
        product = times_inverse(g, n, in[0], in[1]);
    }
    if (product) {
        return product;
    }
    if (in[0]->op == OP_NEG && in[1]->op == OP_NEG) {
        return map2(g, OP_DIV, in[0]->in[0], in[1]->in[0]);
    }
    for (int k = 0; k < 2; k++) {
        if (in[k]->op == OP_NEG) {
            Node *a = k == 0 ? in[0]->in[0] : in[0], *b = k == 1 ? in[1]->in[0] : in[1];
            return map1(g, OP_NEG, map2(g, OP_DIV, a, b));
        }
    }
    return NULL;
}

static Node *neg_rule(Graph *g, const Node *n, Node *const *in) {
    (void)n;
    Node *x = in[0];
    if (x->op == OP_NEG) {
        return x->in[0];
    }
    if (x->op == OP_SUB) {
        return map2(g, OP_SUB, x->in[1], x->in[0]);
    }
    for (int k = 0; (x->op == OP_MUL || x->op == OP_DIV) && k < 2; k++) {
        Node *c = constant_of(x->in[k]);
        if (c) {
            Node *minus = map1(g, OP_NEG, c), *other = x->in[1 - k];
            return k == 0 ? map2(g, x->op, minus, other) : map2(g, x->op, other, minus);
        }
    }
    return NULL;
}

static Node *pow_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    double y;
    if (!is_uniform(in[1], &y)) {
        return NULL;
    }
    if (y == 0) {
        return node_full(g, *n->type, 1);
    }
    if (y == 1) {
        return x;
    }
    if (y == 2) {
        return map2(g, OP_MUL, x, x);
    }
    if (y == 3 || y == 4) {
        Node *square = map2(g, OP_MUL, x, x);
        return map2(g, OP_MUL, square, y == 3 ? x : square);
    }
    if (y == 0.5) {
        return map1(g, OP_SQRT, x);
    }
    if (y == -0.5) { /* 0 at -inf */
        Node *least = node_full(g, *x->type, -INFINITY), *zero = node_full(g, *x->type, 0);
        return node_select(g, map2(g, OP_EQ, x, least), zero, map1(g, OP_RSQRT, x));
    }
    if (y == -1 || y == -2) {
        Node *one = node_const(g, x->type->elem, 1);
        return map2(g, OP_DIV, one, y == -1 ? x : map2(g, OP_MUL, x, x));
    }
    return NULL;
}

static Node *select_rule(Graph *g, const Node *n, Node *const *in) {
    (void)n;
    double c;
    if (is_uniform(in[0], &c)) {
        return in[c != 0 ? 1 : 2];
    }
    if (in[1] == in[2]) {
        return in[1];
    }
    if (in[0]->op == OP_NOT) {
        return node_select(g, in[0]->in[0], in[2], in[1]);
    }
    for (int k = 1; k <= 2; k++) { /* the same question asked again */
        if (in[k]->op == OP_SELECT && in[k]->in[0] == in[0]) {
            Node *branch = in[k]->in[k];
            return k == 1 ? node_select(g, in[0], branch, in[2])
                          : node_select(g, in[0], in[1], branch);
        }
    }
    return NULL;
}

static Node *extreme_rule(Graph *g, const Node *n, Node *const *in) {
    (void)g, (void)n;
    return in[0] == in[1] ? in[0] : NULL;
}

static Node *logic_rule(Graph *g, const Node *n, Node *const *in) {
    double absorbing = n->op == OP_OR; /* true or x, false and x */
    for (int k = 0; k < 2; k++) {
        if (is_number(in[k], absorbing)) {
            return node_full(g, *n->type, absorbing);
        }
        if (is_number(in[k], 1 - absorbing)) {
            return in[1 - k];
        }
    }
    return in[0] == in[1] ? in[0] : NULL;
}

/* Not of floats: NaN. */
static Node *compare_rule(Graph *g, const Node *n, Node *const *in) {
    const bool same = in[0] == in[1] && !elem_is_float(in[0]->type->elem);
    return same ? node_full(g, *n->type, n->op != OP_LT) : NULL;
}

static Node *not_rule(Graph *g, const Node *n, Node *const *in) {
    (void)g, (void)n;
    return in[0]->op == OP_NOT ? in[0]->in[0] : NULL;
}

/* A conversion there and back through a type that holds every value. */
static Node *cast_rule(Graph *g, const Node *n, Node *const *in) {
    (void)g;
    Node *x = in[0];
    if (n->type->elem == x->type->elem) {
        return x;
    }
    if (x->op != OP_CAST || x->in[0]->type->elem != n->type->elem) {
        return NULL;
    }
    Elem narrow = n->type->elem, wide = x->type->elem;
    bool floats = elem_is_float(narrow) && elem_is_float(wide);
    bool ints = elem_is_int(narrow) && elem_is_int(wide);
    bool holds = (floats && wide == TY_F64) || (floats && wide == TY_F32 && narrow != TY_F64) ||
                 (ints && elem_bytes(wide) >= elem_bytes(narrow)) ||
                 (narrow == TY_BOOL && wide != TY_BOOL) ||
                 (elem_is_int(narrow) && wide == TY_F64 && elem_bytes(narrow) <= 4);
    return holds ? x->in[0] : NULL;
}

/* Rounded where it is made, not where parts of it lie side by side or in another order. */
static Node *round_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    if (x->op == n->op) {
        return x;
    }
    if (x->op != OP_CONCAT && x->op != OP_RESHAPE && x->op != OP_PERMUTE) {
        return NULL;
    }
    Arena scratch = {0};
    Node **part = ARENA_ARRAY(&scratch, Node *, x->nin);
    for (int k = 0; k < x->nin; k++) {
        part[k] = same_op(g, n, &x->in[k], type_scalar(TY_F32));
    }
    Node *made = same_op(g, x, part, *x->type);
    arena_free(&scratch);
    return made;
}

const SimplifyRow simplify_maps[] = {
    {OP_ADD, add_rule},    {OP_ADD, add_pads},       {OP_ADD, int_offset},   {OP_SUB, int_offset},
    {OP_SUB, sub_rule},    {OP_MUL, mul_rule},       {OP_DIV, div_rule},     {OP_NEG, neg_rule},
    {OP_POW, pow_rule},    {OP_SELECT, select_rule}, {OP_MIN, extreme_rule}, {OP_MAX, extreme_rule},
    {OP_AND, logic_rule},  {OP_OR, logic_rule},      {OP_NOT, not_rule},     {OP_LT, compare_rule},
    {OP_LE, compare_rule}, {OP_EQ, compare_rule},    {OP_CAST, cast_rule},   {OP_BF16, round_rule},
    {OP_F16, round_rule},  {OP_COUNT, narrow_map},   {OP_COUNT, NULL},
};
