/* arith: elementwise arithmetic. Numbers that are known now are computed now; everything else is
 * one MAP node over operands that were brought to one element type, one span and one shape.
 *
 * Spans are joined lazily: `x[b,k] * w[k]` broadcasts w only here, so a product under a sum can
 * still be taken apart into a contraction (fold.c). */
#include "lang/arith.h"

#include "lang/arith_join.h"
#include "lang/evaluation.h"

#include <math.h>

/* --- numbers --------------------------------------------------------------------------------- */

static const Value *overflow(Elab *e, Loc loc) {
    return elab_error(e, loc, 320, "a compile-time integer leaves the range of 64 bits");
}

static const Value *not_of_bools(Elab *e, Loc loc, const char *what) {
    elab_error(e, loc, 338, "'%s' is not defined for bools", what);
    arith_bool_hint(e);
    return &value_poison;
}

const Value *arith_truncate(Elab *e, Loc loc, double x) {
    /* 2^63 is no int64_t, and nan compares with nothing. */
    bool fits = x >= -0x1p63 && x < 0x1p63;
    return fits ? value_int(e->scratch, (int64_t)x) : overflow(e, loc);
}

static const Value *int_divide(Elab *e, Loc loc, bool remainder, int64_t a, int64_t b) {
    if (b == 0) {
        return elab_error(e, loc, 321, "division by zero");
    }
    if (a == INT64_MIN && b == -1) {
        return overflow(e, loc);
    }
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) { /* floors, and the remainder has the sign of b */
        q--;
        r += b;
    }
    return value_int(e->scratch, remainder ? r : q);
}

static const Value *int_power(Elab *e, Loc loc, int64_t a, int64_t b) {
    int64_t r = 1;
    for (int64_t i = 0; i < b; i++) {
        if (__builtin_mul_overflow(r, a, &r)) {
            return overflow(e, loc);
        }
        if (r == 0 || (r == 1 && a == 1)) {
            break;
        }
        if (a == -1) {
            return value_int(e->scratch, b % 2 ? -1 : 1);
        }
    }
    return value_int(e->scratch, r);
}

static bool is_compare(AstOp op) {
    return op >= AO_LT && op <= AO_NE;
}

static bool number_compare(AstOp op, double a, double b) {
    switch (op) {
    case AO_LT: return a < b;
    case AO_GT: return a > b;
    case AO_LE: return a <= b;
    case AO_GE: return a >= b;
    case AO_EQ: return a == b;
    default: return a != b;
    }
}

static const Value *numbers(Elab *e, Loc loc, AstOp op, const Value *a, const Value *b) {
    if (is_compare(op)) {
        if (a->kind == V_INT && b->kind == V_INT && (op == AO_EQ || op == AO_NE)) {
            return value_bool(e->scratch, (a->integer == b->integer) == (op == AO_EQ));
        }
        return value_bool(e->scratch, number_compare(op, value_number(a), value_number(b)));
    }
    if (a->kind == V_INT && b->kind == V_INT) {
        int64_t x = a->integer, y = b->integer, r = 0;
        bool over = false;
        switch (op) {
        case AO_ADD: over = __builtin_add_overflow(x, y, &r); break;
        case AO_SUB: over = __builtin_sub_overflow(x, y, &r); break;
        case AO_MUL: over = __builtin_mul_overflow(x, y, &r); break;
        case AO_MOD: return int_divide(e, loc, true, x, y);
        case AO_DIV:
            if (y == 0 || y == -1 || x % y == 0) {
                return int_divide(e, loc, false, x, y);
            }
            return value_real(e->scratch, (double)x / (double)y);
        case AO_POW:
            if (y >= 0) {
                return int_power(e, loc, x, y);
            }
            if (x == 0) {
                return int_divide(e, loc, false, 1, x);
            }
            return value_real(e->scratch, pow((double)x, (double)y));
        default: BUG("arithmetic operator %d", op);
        }
        return over ? overflow(e, loc) : value_int(e->scratch, r);
    }
    double x = value_number(a), y = value_number(b), r = 0;
    switch (op) {
    case AO_ADD: r = x + y; break;
    case AO_SUB: r = x - y; break;
    case AO_MUL: r = x * y; break;
    case AO_DIV: r = x / y; break;
    case AO_POW: r = pow(x, y); break;
    case AO_MOD: return elab_error(e, loc, 322, "'%%' is for integers");
    default: BUG("arithmetic operator %d", op);
    }
    return value_real(e->scratch, r);
}

/* --- ranges of integers ---------------------------------------------------------------------- */

static bool range_of(const Value *v, int64_t *lo, int64_t *hi) {
    if (v->kind == V_INT) {
        *lo = v->integer;
        *hi = v->integer;
        return true;
    }
    if (v->kind == V_TENSOR && v->ranged) {
        *lo = v->lo;
        *hi = v->hi - 1;
        return true;
    }
    return false;
}

static int64_t least(const int64_t *p, int n) {
    int64_t r = p[0];
    for (int i = 1; i < n; i++) {
        r = p[i] < r ? p[i] : r;
    }
    return r;
}

static int64_t most(const int64_t *p, int n) {
    int64_t r = p[0];
    for (int i = 1; i < n; i++) {
        r = p[i] > r ? p[i] : r;
    }
    return r;
}

static const Value *ranged(Elab *e, const Value *v, int64_t lo, int64_t hi) {
    const int64_t limit = INT32_MAX;
    if (lo < -limit || hi >= limit) {
        return v;
    }
    return value_ranged(e->scratch, v, lo, hi + 1);
}

static const Value *range_binary(Elab *e, AstOp op, const Value *r, const Value *a,
                                 const Value *b) {
    int64_t al, ah, bl, bh;
    const int64_t limit = INT32_MAX;
    if (!elab_ok(r) || !range_of(a, &al, &ah) || !range_of(b, &bl, &bh)) {
        return r;
    }
    if (al < -limit || ah > limit || bl < -limit || bh > limit) {
        return r;
    }
    if (op == AO_ADD) {
        return ranged(e, r, al + bl, ah + bh);
    }
    if (op == AO_SUB) {
        return ranged(e, r, al - bh, ah - bl);
    }
    if (op == AO_MUL) {
        int64_t p[4] = {al * bl, al * bh, ah * bl, ah * bh};
        return ranged(e, r, least(p, 4), most(p, 4));
    }
    return r;
}

/* --- operators ------------------------------------------------------------------------------- */

static const Value *reciprocal_power(Elab *e, Loc loc, const Value *a, const Value *b) {
    /* x^2, x^3, x^-1, x^0.5: what people write most has cheaper and more exact forms. */
    double p = value_number(b);
    Elem elem = value_elem(a);
    bool small = p >= -4 && p <= 4 && p == (double)(int)p; /* in this order: p may be anything */
    if (p == 0.5 && elem_is_float(elem)) {
        return arith_node(e, loc, OP_SQRT, &a, 1);
    }
    if (p == -0.5 && elem_is_float(elem)) {
        return arith_node(e, loc, OP_RSQRT, &a, 1);
    }
    if (!small) {
        return NULL;
    }
    int n = (int)(p < 0 ? -p : p);
    if (n == 0) {
        return value_with(e->scratch, a, node_full(e->g, *a->node->type, 1));
    }
    const Value *r = a;
    for (int i = 1; i < n; i++) {
        r = n == 4 && i == 2 ? arith_binary(e, loc, AO_MUL, r, r)
                             : arith_binary(e, loc, AO_MUL, r, a);
        if (n == 4 && i == 2) {
            break;
        }
    }
    return p < 0 ? arith_binary(e, loc, AO_DIV, value_int(e->scratch, 1), r) : r;
}

static const Value *power(Elab *e, Loc loc, const Value *a, const Value *b) {
    if (a->kind == V_TENSOR && value_is_number(b)) {
        if (elem_is_int(value_elem(a)) && (b->kind != V_INT || b->integer < 1 || b->integer > 4)) {
            elab_error(e, loc, 333, "a run-time integer has only the powers 1 to 4");
            diag_hint(&e->c->diag, "f32(i) converts");
            return &value_poison;
        }
        const Value *r = reciprocal_power(e, loc, a, b);
        if (r) {
            return r;
        }
    }
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    if (!elem_is_float(elem)) {
        elab_error(e, loc, 334, "the power of run-time integers is not defined");
        diag_hint(&e->c->diag, "f32(i) converts");
        return &value_poison;
    }
    const Value *v[2] = {arith_to(e, loc, a, elem), arith_to(e, loc, b, elem)};
    return arith_node(e, loc, OP_POW, v, 2);
}

static const Value *logic(Elab *e, Loc loc, AstOp op, const Value *a, const Value *b) {
    const Value *v[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        bool is = v[i]->kind == V_BOOL || (v[i]->kind == V_TENSOR && value_elem(v[i]) == TY_BOOL);
        if (!is) {
            return elab_error(e, loc, 335, "'%s' needs bools, found %s", ast_op_name(op),
                              value_text(e->arena, v[i]));
        }
    }
    if (a->kind == V_BOOL && b->kind == V_BOOL) {
        return value_bool(e->scratch, op == AO_AND ? a->truth && b->truth : a->truth || b->truth);
    }
    for (int i = 0; i < 2; i++) {
        v[i] = arith_tensor(e, loc, v[i], TY_BOOL);
    }
    return arith_node(e, loc, op == AO_AND ? OP_AND : OP_OR, v, 2);
}

static const Value *compare(Elab *e, Loc loc, AstOp op, const Value *a, const Value *b) {
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    if (elem == TY_BOOL) {
        if (op != AO_EQ && op != AO_NE) {
            return elab_error(e, loc, 336, "bools have no order");
        }
        elem = TY_I32;
        a = arith_cast(e, loc, elem, arith_tensor(e, loc, a, TY_BOOL));
        b = arith_cast(e, loc, elem, arith_tensor(e, loc, b, TY_BOOL));
    }
    bool swap = op == AO_GT || op == AO_GE;
    const Value *v[2] = {arith_to(e, loc, swap ? b : a, elem),
                         arith_to(e, loc, swap ? a : b, elem)};
    OpCode code = op == AO_LT || op == AO_GT ? OP_LT : op == AO_LE || op == AO_GE ? OP_LE : OP_EQ;
    const Value *r = arith_node(e, loc, code, v, 2);
    return op == AO_NE && elab_ok(r) ? arith_node(e, loc, OP_NOT, &r, 1) : r;
}

static const Value *arith_operand(Elab *e, Loc loc, const Value *v) {
    if (v->kind == V_TENSOR || v->kind == V_BOOL || value_is_number(v) || !elab_ok(v)) {
        return v;
    }
    elab_error(e, loc, 337, "%s is no operand of arithmetic", value_kind_text(v));
    if (v->kind == V_RECORD) {
        diag_hint(&e->c->diag, "its results are '.%s'%s and so on", v->field[0],
                  v->count > 1 ? str_printf(e->arena, ", '.%s'", v->field[1]) : "");
    }
    return &value_poison;
}

/* A number computed of two that are known: i64 and f64 are wide enough for both, and stay. */
static const Value *kept_wide(Elab *e, const Value *r, const Value *a, const Value *b) {
    Elem wide = r->kind == V_INT ? TY_I64 : r->kind == V_REAL ? TY_F64 : TY_ERROR;
    if (wide == TY_ERROR || (a->as != wide && b->as != wide)) {
        return r;
    }
    Value *typed = ARENA_NEW(e->scratch, Value);
    *typed = *r;
    typed->as = wide;
    return typed;
}

const Value *arith_binary(Elab *e, Loc loc, AstOp op, const Value *a, const Value *b) {
    if (a->kind == V_STRING && b->kind == V_STRING && (op == AO_EQ || op == AO_NE)) {
        return value_bool(e->scratch, str_eq(a->text, b->text) == (op == AO_EQ));
    }
    a = arith_operand(e, loc, a);
    b = arith_operand(e, loc, b);
    if (!elab_ok(a) || !elab_ok(b)) {
        return &value_poison;
    }
    if (op == AO_OR || op == AO_AND) {
        return logic(e, loc, op, a, b);
    }
    if (value_is_number(a) && value_is_number(b)) {
        return kept_wide(e, numbers(e, loc, op, a, b), a, b);
    }
    if (is_compare(op)) {
        if (a->kind == V_BOOL && b->kind == V_BOOL && (op == AO_EQ || op == AO_NE)) {
            return value_bool(e->scratch, (a->truth == b->truth) == (op == AO_EQ));
        }
        return compare(e, loc, op, a, b);
    }
    if (op == AO_POW) {
        return power(e, loc, a, b);
    }
    if (op == AO_MOD) {
        return arith_divide(e, loc, true, a, b);
    }
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    if (elem == TY_BOOL) {
        return not_of_bools(e, loc, ast_op_name(op));
    }
    if (op == AO_DIV && !elem_is_float(elem)) {
        elab_error(e, loc, 339, "'/' is not defined for run-time integers");
        diag_hint(&e->c->diag,
                  "'div(a, b)' divides and rounds down; 'f32(a) / b' gives a fraction");
        return &value_poison;
    }
    elem = arith_computed(elem);
    const Value *v[2] = {arith_to(e, loc, a, elem), arith_to(e, loc, b, elem)};
    OpCode code = op == AO_ADD ? OP_ADD : op == AO_SUB ? OP_SUB : op == AO_MUL ? OP_MUL : OP_DIV;
    const Value *r = arith_node(e, loc, code, v, 2);
    return elem_is_int(elem) ? range_binary(e, op, r, a, b) : r;
}

const Value *arith_divide(Elab *e, Loc loc, bool remainder, const Value *a, const Value *b) {
    const char *what = remainder ? "%" : "div";
    if (!elab_ok(a) || !elab_ok(b)) {
        return &value_poison;
    }
    if (a->kind == V_INT && b->kind == V_INT) {
        return int_divide(e, loc, remainder, a->integer, b->integer);
    }
    const Value *v[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        bool is = v[i]->kind == V_INT || (v[i]->kind == V_TENSOR && elem_is_int(value_elem(v[i])));
        if (!is) {
            return elab_error(e, loc, 340, "'%s' needs integers, found %s", what,
                              value_text(e->arena, v[i]));
        }
    }
    if (b->kind == V_INT && b->integer == 0) {
        return elab_error(e, loc, 321, "division by zero");
    }
    Elem elem = arith_computed(arith_common(e, loc, a, b));
    v[0] = arith_to(e, loc, a, elem);
    v[1] = arith_to(e, loc, b, elem);
    const Value *r = arith_node(e, loc, remainder ? OP_IREM : OP_IDIV, v, 2);
    int64_t lo, hi;
    if (elab_ok(r) && b->kind == V_INT && b->integer > 0) {
        if (remainder) {
            return ranged(e, r, 0, b->integer - 1);
        }
        if (range_of(a, &lo, &hi)) {
            const Value *l = int_divide(e, loc, false, lo, b->integer);
            const Value *h = int_divide(e, loc, false, hi, b->integer);
            return ranged(e, r, l->integer, h->integer);
        }
    }
    return r;
}

const Value *arith_unary(Elab *e, Loc loc, AstOp op, const Value *a) {
    a = arith_operand(e, loc, a);
    if (!elab_ok(a)) {
        return a;
    }
    if (op == AO_NOT) {
        if (a->kind == V_BOOL) {
            return value_bool(e->scratch, !a->truth);
        }
        if (a->kind != V_TENSOR || value_elem(a) != TY_BOOL) {
            return elab_error(e, loc, 342, "'not' needs a bool, found %s", value_text(e->arena, a));
        }
        return arith_node(e, loc, OP_NOT, &a, 1);
    }
    if (a->kind == V_INT) {
        return a->integer == INT64_MIN ? overflow(e, loc)
                                       : kept_wide(e, value_int(e->scratch, -a->integer), a, a);
    }
    if (a->kind == V_REAL) {
        return kept_wide(e, value_real(e->scratch, -a->real), a, a);
    }
    if (a->kind == V_BOOL || value_elem(a) == TY_BOOL) {
        return not_of_bools(e, loc, "-");
    }
    int64_t lo, hi;
    bool known = range_of(a, &lo, &hi);
    a = arith_widened(e, loc, a);
    const Value *r = arith_node(e, loc, OP_NEG, &a, 1);
    return known ? ranged(e, r, -hi, -lo) : r;
}

const Value *arith_select(Elab *e, Loc loc, const Value *c, const Value *a, const Value *b) {
    c = arith_operand(e, loc, c);
    a = arith_operand(e, loc, a);
    b = arith_operand(e, loc, b);
    if (!elab_ok(a) || !elab_ok(b) || !elab_ok(c)) {
        return &value_poison;
    }
    bool is = c->kind == V_BOOL || (c->kind == V_TENSOR && value_elem(c) == TY_BOOL);
    if (!is) {
        return elab_error(e, loc, 344, "select(condition, a, b) needs a bool first, found %s",
                          value_text(e->arena, c));
    }
    if (c->kind == V_BOOL && a->kind != V_TENSOR && b->kind != V_TENSOR) {
        return c->truth ? a : b;
    }
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    const Value *v[3] = {arith_tensor(e, loc, c, TY_BOOL), arith_to(e, loc, a, elem),
                         arith_to(e, loc, b, elem)};
    const Value *r = arith_node(e, loc, OP_SELECT, v, 3);
    int64_t al, ah, bl, bh;
    if (elab_ok(r) && elem_is_int(elem) && range_of(a, &al, &ah) && range_of(b, &bl, &bh)) {
        return ranged(e, r, al < bl ? al : bl, ah > bh ? ah : bh);
    }
    return r;
}

const Value *arith_fma(Elab *e, Loc loc, const Value *a, const Value *b, const Value *c) {
    const Value *sum = arith_binary(e, loc, AO_ADD, arith_binary(e, loc, AO_MUL, a, b), c);
    if (!elab_ok(sum) || sum->kind != V_TENSOR || !elem_is_float(value_elem(sum))) {
        return sum;
    }
    Elem elem = value_elem(sum);
    const Value *v[3] = {arith_to(e, loc, a, elem), arith_to(e, loc, b, elem),
                         arith_to(e, loc, c, elem)};
    return arith_node(e, loc, OP_FMA, v, 3);
}

const Value *arith_minmax(Elab *e, Loc loc, bool max, const Value *a, const Value *b) {
    a = arith_operand(e, loc, a);
    b = arith_operand(e, loc, b);
    if (!elab_ok(a) || !elab_ok(b)) {
        return &value_poison;
    }
    if (value_is_number(a) && value_is_number(b)) {
        bool whole = a->kind == V_INT && b->kind == V_INT; /* beyond 2^53 no double tells apart */
        bool more = whole ? a->integer > b->integer : value_number(a) > value_number(b);
        bool less = whole ? a->integer < b->integer : value_number(a) < value_number(b);
        bool nan = isnan(value_number(a)); /* of either, as at run time; b is what no a is beyond */
        const Value *r = nan || (max ? more : less) ? a : b;
        /* max(1, 2.5) and max(1.0, 2) are reals both */
        r = a->kind == b->kind ? r : value_real(e->scratch, value_number(r));
        return kept_wide(e, r, a, b);
    }
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    if (elem == TY_BOOL) {
        return not_of_bools(e, loc, max ? "max" : "min");
    }
    const Value *v[2] = {arith_to(e, loc, a, elem), arith_to(e, loc, b, elem)};
    const Value *r = arith_node(e, loc, max ? OP_MAX : OP_MIN, v, 2);
    int64_t al, ah, bl, bh;
    if (elab_ok(r) && elem_is_int(elem)) {
        bool ka = range_of(a, &al, &ah), kb = range_of(b, &bl, &bh);
        if (ka && kb) {
            return max ? ranged(e, r, al > bl ? al : bl, ah > bh ? ah : bh)
                       : ranged(e, r, al < bl ? al : bl, ah < bh ? ah : bh);
        }
    }
    return r;
}

/* Neither a number nor a tensor of what `name` needs. */
static const Value *wrong_elem(Elab *e, Loc loc, const char *name, const char *needs,
                               const Value *v) {
    elab_error(e, loc, 346, "'%s' needs %s, found %s", name, needs, value_text(e->arena, v));
    if (v->kind == V_TENSOR && elem_is_int(value_elem(v))) {
        diag_hint(&e->c->diag, "f32(i) converts");
    }
    return &value_poison;
}

const Value *arith_map(Elab *e, Loc loc, const char *name, OpCode op, double (*number)(double),
                       const Value *a) {
    if (!elab_ok(a)) {
        return a;
    }
    if (value_is_number(a)) {
        bool keeps = op == OP_ABS || op == OP_SIGN || op == OP_FLOOR || op == OP_ROUND;
        if (a->kind == V_INT && keeps) {
            int64_t i = a->integer;
            i = op == OP_SIGN ? (i > 0) - (i < 0) : op == OP_ABS && i < 0 && i > INT64_MIN ? -i : i;
            return kept_wide(e, value_int(e->scratch, i), a, a);
        }
        return kept_wide(e, value_real(e->scratch, number(value_number(a))), a, a);
    }
    bool integers = op == OP_ABS || op == OP_SIGN;
    bool fits = a->kind == V_TENSOR &&
                (elem_is_float(value_elem(a)) || (integers && elem_is_int(value_elem(a))));
    if (!fits) {
        return wrong_elem(e, loc, name, integers ? "floats or integers" : "floats", a);
    }
    a = op == OP_ABS ? arith_widened(e, loc, a) : a;
    return arith_node(e, loc, op, &a, 1);
}

const Value *arith_map2(Elab *e, Loc loc, const char *name, OpCode op,
                        double (*number)(double, double), const Value *a, const Value *b) {
    a = arith_operand(e, loc, a);
    b = arith_operand(e, loc, b);
    if (!elab_ok(a) || !elab_ok(b)) {
        return &value_poison;
    }
    if (value_is_number(a) && value_is_number(b)) {
        return kept_wide(e, value_real(e->scratch, number(value_number(a), value_number(b))), a, b);
    }
    const Value *v[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        bool floats = v[i]->kind == V_TENSOR && elem_is_float(value_elem(v[i]));
        if (!floats && !value_is_number(v[i])) {
            return wrong_elem(e, loc, name, "floats", v[i]);
        }
    }
    Elem elem = arith_common(e, loc, a, b);
    if (elem == TY_ERROR) {
        return &value_poison;
    }
    v[0] = arith_to(e, loc, a, elem);
    v[1] = arith_to(e, loc, b, elem);
    return arith_node(e, loc, op, v, 2);
}
