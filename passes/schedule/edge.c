/* edge: loops end where all that follows is known, as the softmax of a masked row is.
 *
 * Of an expression and an axis it is asked: from which place on is it one value, whatever memory
 * holds? The answer comes from comparisons of places, through choices and what is made of them
 * element by element (e^-inf is 0, and so is 0 times anything); the place is an index of the axes
 * around, or of values read at run time. A sum whose terms are 0 from there on, a largest of -inf,
 * and stores of one value end there (Stmt.until), rounded up to whole vectors, so that sums are
 * added in the order of before; the stores of the turns left out are of that value (Stmt.rest).
 * What no loop reads beyond its own end is not stored there.
 *
 * Finite values are taken for granted, as of bands (passes/lower/band.h). Needs the statements of a
 * kernel; changes no values but the sign of a zero. */
#include "passes/schedule/schedule.h"

#include <math.h>
#include <string.h>

enum {
    EDGE_UNIT = TUNED(64, 8), /* turns; a multiple of the lanes of every fold */
    EDGE_LEAST = 2,           /* units that an axis has at least */
    EDGE_BASE = 1 << 20,      /* numbers that an index is multiplied by: products fit 64 bits */
    EDGE_TURNS = TUNED(1 << 15, 1) /* of all loops around: fewer are not worth the text */
};

/* `value` wherever the axis is at `from` or beyond; NULL: everywhere. */
typedef struct {
    bool known;
    double value;
    const Index *from;
} Rest;

typedef struct {
    Kernel *k;
    Arena *scratch;
    int axis;
    Rest *rest; /* by Expr.id, of this axis */
    bool *seen;
    bool any; /* a fold has an end */
} Edge;

static const Rest unknown = {0};

/* --- places ----------------------------------------------------------------------------------- */

/* The integer as an index; NULL: it may wrap, or is none. */
static const Index *index_of(Edge *x, const Expr *e) {
    IndexTable *t = &x->k->index;
    const Index *a = NULL, *b = NULL;
    int64_t least, most;
    if (e->elem != TY_I32 && e->elem != TY_I64) {
        return NULL;
    }
    elem_range(e->elem, &least, &most);
    if (e->kind == EXPR_INDEX) {
        a = e->index;
    } else if (e->kind == EXPR_CONST) {
        a = e->ivalue > INT32_MIN && e->ivalue < INT32_MAX ? index_const(t, e->ivalue) : NULL;
    } else if (e->kind == EXPR_MAP && e->op == OP_CAST) {
        a = index_of(x, e->in[0]);
    } else if (e->kind == EXPR_MAP && (e->op == OP_ADD || e->op == OP_SUB)) {
        a = index_of(x, e->in[0]);
        b = a ? index_of(x, e->in[1]) : NULL;
        a = b ? index_add(t, a, index_scale(t, b, e->op == OP_ADD ? 1 : -1)) : NULL;
    } else if (e->kind == EXPR_MAP && e->op == OP_MUL) {
        const bool first = e->in[0]->kind == EXPR_CONST;
        const Expr *by = e->in[!first];
        a = by->kind == EXPR_CONST ? index_of(x, e->in[first]) : NULL;
        const bool fits = a && by->ivalue > -EDGE_BASE && by->ivalue < EDGE_BASE;
        a = fits ? index_scale(t, a, by->ivalue) : NULL;
    } else if (e->kind == EXPR_LOAD && e->elem == TY_I32 && !(e->axes >> x->axis & 1)) {
        a = index_value(t, e, e->axes, least, most);
    }
    return a && a->least >= least && a->most <= most ? a : NULL;
}

static Rest constant(double value) {
    return isnan(value) ? unknown : (Rest){true, value, NULL};
}

/* `value` where mul * at + rest, with `at` the place on the axis, is more than `bound`, or less
 * where the axis goes down. */
static Rest beyond(Edge *x, const Index *index, int64_t bound, bool value_of_more) {
    IndexTable *t = &x->k->index;
    int64_t mul;
    if (!index_stride(index, x->axis, &mul) || (mul != 1 && mul != -1)) {
        return unknown;
    }
    const Index *rest = index_subst(t, index, x->axis, index_const(t, 0));
    const Index *from = mul > 0 ? index_offset(t, index_scale(t, rest, -1), bound + 1)
                                : index_offset(t, rest, 1 - bound);
    return (Rest){true, mul > 0 ? value_of_more : !value_of_more, from};
}

/* a < b, a <= b: the difference of both beside 0. */
static Rest compared(Edge *x, const Expr *e) {
    const Index *a = index_of(x, e->in[0]), *b = a ? index_of(x, e->in[1]) : NULL;
    int64_t mul;
    if (!b) {
        return unknown;
    }
    IndexTable *t = &x->k->index;
    const Index *d = index_add(t, a, index_scale(t, b, -1));
    if (!index_stride(d, x->axis, &mul)) {
        return unknown;
    }
    /* False where d is more than `bound`; true where it is less than that, plus one. */
    const int64_t bound = e->op == OP_LT ? -1 : 0;
    return e->op == OP_EQ ? (Rest){mul == 1 || mul == -1, 0, beyond(x, d, 0, false).from}
                          : beyond(x, d, mul > 0 ? bound : bound + 1, false);
}

static Rest within(Edge *x, const Expr *e) {
    int64_t mul;
    if (!index_stride(e->index, x->axis, &mul)) {
        return unknown;
    }
    Rest r = beyond(x, e->index, mul > 0 ? e->hi - 1 : e->lo, false);
    r.value = 0;
    return r;
}

/* --- values ----------------------------------------------------------------------------------- */

static Rest rest_of(Edge *x, const Expr *e);

/* Both are known; false: which place is the later one is not. */
static bool later(Edge *x, const Index *a, const Index *b, const Index **place) {
    IndexTable *t = &x->k->index;
    *place = a ? a : b;
    if (a && b && a != b) {
        const Index *d = index_add(t, a, index_scale(t, b, -1));
        *place = d->least >= 0 ? a : b;
        return d->least >= 0 || d->most <= 0;
    }
    return true;
}

static Rest from_both(Edge *x, double value, Rest a, Rest b) {
    Rest r = constant(value);
    return a.known && b.known && r.known && later(x, a.from, b.from, &r.from) ? r : unknown;
}

/* The same of what an operation gives, if it gives that in every type and by every function. */
static Rest computed(Edge *x, double value, Rest a, Rest b) {
    const bool exact = value == 0 || fabs(value) == 1 || isinf(value);
    return exact ? from_both(x, value, a, b) : unknown;
}

/* The first of two that is known to be `value`. */
static Rest nearest(Edge *x, Rest a, Rest b, double value) {
    const bool is_a = a.known && a.value == value, is_b = b.known && b.value == value;
    const Index *place;
    if (!is_a || !is_b) {
        return is_a ? a : is_b ? b : unknown;
    }
    return !a.from || (later(x, a.from, b.from, &place) && place == b.from) ? a : b;
}

static Rest minus(Rest a) {
    a.value = -a.value;
    return a;
}

static Rest sum(Edge *x, Rest a, Rest b) {
    if (a.known && b.known) {
        return computed(x, a.value + b.value, a, b);
    }
    a = a.known ? a : b;
    return a.known && isinf(a.value) ? a : unknown;
}

static Rest product(Edge *x, Rest a, Rest b) {
    const Rest zero = nearest(x, a, b, 0);
    return zero.known ? zero : computed(x, a.value * b.value, a, b);
}

static Rest chosen(Edge *x, Rest c, Rest a, Rest b) {
    a = c.known && c.value != 0 ? a : b;
    return from_both(x, a.value, c, a);
}

static Rest rest_of_map(Edge *x, const Expr *e) {
    Rest in[3] = {unknown, unknown, unknown};
    for (int k = 0; k < e->nin && k < 3; k++) {
        in[k] = rest_of(x, e->in[k]);
    }
    const Rest a = in[0], b = in[1];
    switch (e->op) {
    case OP_LT:
    case OP_LE:
    case OP_EQ: return compared(x, e);
    case OP_SELECT: return chosen(x, a, b, in[2]);
    case OP_AND:
        return a.known && b.known && a.value != 0 ? from_both(x, b.value, a, b)
                                                  : nearest(x, a, b, 0);
    case OP_OR:
        return a.known && b.known && a.value == 0 ? from_both(x, b.value, a, b)
                                                  : nearest(x, a, b, 1);
    case OP_NOT: return a.known ? (Rest){true, a.value == 0, a.from} : unknown;
    case OP_ADD: return sum(x, a, b);
    case OP_SUB: return sum(x, a, minus(b));
    case OP_MUL: return product(x, a, b);
    case OP_FMA: {
        const Rest p = product(x, a, b);
        return p.known && in[2].known ? sum(x, p, in[2]) : unknown;
    }
    case OP_DIV: return a.known && a.value == 0 ? a : unknown;
    case OP_NEG: return minus(a);
    case OP_EXP: return computed(x, exp(a.value), a, a);
    case OP_CAST: /* also of a bool; and what 16 bits hold as it is */
    case OP_BF16:
    case OP_F16:
        return isinf(a.value) && elem_is_int(e->elem) ? unknown : computed(x, a.value, a, a);
    default: return unknown;
    }
}

static Rest rest_of(Edge *x, const Expr *e) {
    if (x->seen[e->id]) {
        return x->rest[e->id];
    }
    Rest r = unknown;
    if (e->kind == EXPR_CONST) {
        r = constant(elem_is_int(e->elem) ? (double)e->ivalue : e->value);
    } else if (e->axes >> x->axis & 1) {
        r = e->kind == EXPR_MAP      ? rest_of_map(x, e)
            : e->kind == EXPR_WITHIN ? within(x, e)
            : e->kind == EXPR_LOAD && e->nin == 2
                ? chosen(x, rest_of(x, e->in[0]), unknown, rest_of(x, e->in[1]))
                : unknown;
    }
    x->seen[e->id] = true;
    x->rest[e->id] = r;
    return r;
}

/* --- loops ------------------------------------------------------------------------------------ */

/* What an accumulator begins as: to add it changes nothing. */
static bool is_start(OpCode op, double value) {
    switch (op) {
    case OP_SUM:
    case OP_ADD: return value == 0;
    case OP_PROD:
    case OP_MUL: return value == 1;
    case OP_FMAX:
    case OP_MAX: return value == -INFINITY;
    case OP_FMIN:
    case OP_MIN: return value == INFINITY;
    default: return false;
    }
}

/* Where the loop over this axis alone may end; NULL: nowhere before its end. */
static const Index *end_of(Edge *x, const Stmt *s) {
    Rest all = constant(0);
    bool plain = s->parallel == 0 && !s->unroll && !s->held && !s->parts && s->ahead.count == 0;
    bool extremes = false;
    for (int i = 0; i < s->fold.count && plain; i++) {
        const Expr *e = s->fold.at[i];
        const Rest r = rest_of(x, e->in[0]);
        plain = e->nin == 1 && r.known && is_start(e->op, r.value);
        all = from_both(x, 0, all, r);
        extremes = extremes || e->op == OP_FMAX || e->op == OP_FMIN;
    }
    for (int i = 0; i < s->body.count && plain; i++) {
        const Stmt *in = s->body.at[i];
        const Rest r = in->kind == STMT_STORE ? rest_of(x, in->expr) : constant(0);
        plain = (in->kind == STMT_STORE || in->kind == STMT_LET) && r.known &&
                (in->kind == STMT_LET || in->add == OP_CONST || is_start(in->add, r.value)) &&
                (in->kind == STMT_LET || in->add != OP_CONST || !s->begin);
        all = from_both(x, 0, all, r);
    }
    if (!plain || !all.known || !all.from) {
        return NULL;
    }
    IndexTable *t = &x->k->index;
    const int64_t extent = x->k->axis[x->axis].extent;
    const Index *units = index_div(t, index_offset(t, all.from, EDGE_UNIT - 1), EDGE_UNIT);
    const Index *end = index_scale(t, units, EDGE_UNIT);
    /* One term makes sure that there is a largest one. */
    const bool some = !extremes || (end->least >= 1 && !s->begin);
    return some && end->least < extent ? end : NULL;
}

static void rest_open(Edge *x, int axis) {
    x->axis = axis;
    x->rest = ARENA_ARRAY(x->scratch, Rest, x->k->expr.count + 1);
    x->seen = ARENA_ARRAY(x->scratch, bool, x->k->expr.count + 1);
}

/* `turns`: of the loops around. */
static void find_ends(Edge *x, const StmtList *list, int64_t turns) {
    for (int i = 0; i < list->count; i++) {
        Stmt *s = list->at[i];
        const bool fold = s->kind == STMT_FOLD && s->axes.count == 1;
        const bool loop = fold || s->kind == STMT_FOR;
        const int axis = fold ? s->axes.at[0] : s->axis;
        const int64_t extent = loop ? x->k->axis[axis].extent : 1;
        const int64_t all = count_add(0, turns, extent);
        if (loop && extent >= EDGE_LEAST * EDGE_UNIT && all >= EDGE_TURNS) {
            rest_open(x, axis);
            s->until = end_of(x, s);
            x->any = x->any || (fold && s->until);
        }
        find_ends(x, &s->body, all);
    }
}

static void drop_ends(const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        list->at[i]->until = NULL;
        drop_ends(&list->at[i]->body);
    }
}

/* --- what the turns left out store ------------------------------------------------------------ */

typedef struct {
    const Arg *arg;
    const Index *until; /* of the loop that stores to it */
    bool read;          /* beyond that */
    bool *seen;
} Beyond;

static void read_expr(Beyond *b, const Expr *e, const Index *until) {
    if (b->seen[e->id]) {
        return;
    }
    b->seen[e->id] = true;
    b->read = b->read || (e->kind == EXPR_LOAD && e->arg == b->arg && until != b->until);
    for (int i = 0; i < e->nkid; i++) {
        read_expr(b, e->kid[i], until);
    }
}

/* Loops that end there stand in the same place as this one: they are over rows of one kernel. */
static void read_list(Beyond *b, Edge *x, const StmtList *list, const Index *until) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        const Index *end = s->until ? s->until : until;
        b->seen = ARENA_ARRAY(x->scratch, bool, x->k->expr.count + 1);
        if (s->kind == STMT_LET && s->as) {
            read_expr(b, s->as, end);
        } else if (s->expr) {
            read_expr(b, s->expr, end);
        }
        for (int k = 0; k < s->fold.count; k++) {
            read_expr(b, s->fold.at[k], end);
        }
        read_list(b, x, &s->body, end);
    }
}

static bool is_read_beyond(Edge *x, const Stmt *store, const Index *until) {
    Beyond b = {.arg = store->arg, .until = until, .read = !store->arg->work};
    if (!b.read) {
        read_list(&b, x, &x->k->body, NULL);
    }
    return b.read;
}

static void store_rests(Edge *x, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        for (int m = 0; m < s->body.count && s->until; m++) {
            Stmt *in = s->body.at[m];
            if (in->kind == STMT_STORE && in->add == OP_CONST && is_read_beyond(x, in, s->until)) {
                rest_open(x, s->kind == STMT_FOLD ? s->axes.at[0] : s->axis);
                const Elem elem = elem_computed(in->arg->elem);
                const double value = rest_of(x, in->expr).value;
                in->rest = elem_is_int(elem) ? expr_int(x->k, elem, (int64_t)value)
                                             : expr_const(x->k, elem, value);
            }
        }
        store_rests(x, &s->body);
    }
}

/* A place on one axis compared with one on another, or with a number that is read. */
static bool compares(const Kernel *k) {
    bool any = false;
    for (int i = 0; i < k->expr.count && !any; i++) {
        const Expr *e = k->expr.at[i];
        const bool map =
            e->kind == EXPR_MAP && (e->op == OP_LT || e->op == OP_LE || e->op == OP_EQ);
        any = (map && elem_is_int(e->in[0]->elem)) || e->kind == EXPR_WITHIN;
    }
    return any;
}

void loops_end_early(Kernel *k, Arena *scratch) {
    Edge x = {.k = k, .scratch = scratch};
    if (!compares(k)) {
        return;
    }
    find_ends(&x, &k->body, 1);
    if (x.any) {
        store_rests(&x, &k->body);
    } else { /* loops that only store would be two for little */
        drop_ends(&k->body);
    }
}
