/* vjp: column `vjp` of the op table, the adjoint of each op as ops of the same table, so that every
 * derivative can be differentiated again. Where a derivative can be had from the op's result it is,
 * because results are more often alive anyway. LOOP and PICK are in grad_loop.c.
 * Needs a sweep that has reached `n` with cotangent `u`; gives contributions to n's operands. */
#include "passes/grad_rule.h"

#include <math.h>
#include <string.h>

void vjp_none(Sweep *s, Node *n, Node *u) {
    (void)s, (void)u;
    BUG("%s has no derivative", op_info[n->op].name);
}

static Node *x_of(Sweep *s, Node *n, int k) {
    return sweep_value(s, n->in[k]);
}
static Node *add(Sweep *s, Node *a, Node *b) {
    return node_map2(s->g, OP_ADD, a, b);
}
static Node *sub(Sweep *s, Node *a, Node *b) {
    return node_map2(s->g, OP_SUB, a, b);
}
static Node *mul(Sweep *s, Node *a, Node *b) {
    return node_map2(s->g, OP_MUL, a, b);
}
static Node *divide(Sweep *s, Node *a, Node *b) {
    return node_map2(s->g, OP_DIV, a, b);
}
static Node *neg(Sweep *s, Node *a) {
    return node_map1(s->g, OP_NEG, a);
}
static Node *number(Sweep *s, Node *like, double x) {
    return node_const(s->g, like->type->elem, x);
}

/* --- maps ------------------------------------------------------------------------------------- */

void vjp_add(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, u);
    sweep_give(s, n, 1, u);
}

void vjp_sub(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, u);
    if (sweep_wants(s, n, 1)) {
        sweep_give(s, n, 1, neg(s, u));
    }
}

void vjp_mul(Sweep *s, Node *n, Node *u) {
    for (int k = 0; k < 2; k++) {
        if (sweep_wants(s, n, k)) {
            sweep_give(s, n, k, mul(s, u, x_of(s, n, 1 - k)));
        }
    }
}

void vjp_fma(Sweep *s, Node *n, Node *u) {
    vjp_mul(s, n, u);
    sweep_give(s, n, 2, u);
}

void vjp_div(Sweep *s, Node *n, Node *u) {
    Node *v = divide(s, u, x_of(s, n, 1));
    sweep_give(s, n, 0, v);
    if (sweep_wants(s, n, 1)) {
        sweep_give(s, n, 1, neg(s, mul(s, v, sweep_value(s, n))));
    }
}

void vjp_neg(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, neg(s, u));
}

void vjp_again(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, u);
}

/* As if nothing were rounded, or as the copy of a type that frameworks make. */
void vjp_rounding(Sweep *s, Node *n, Node *u) {
    Attr attr = {.reverse = n->attr->reverse};
    Type type = type_scalar(TY_ERROR);
    sweep_give(s, n, 0, attr.reverse ? graph_add(s->g, n->op, &u, 1, &attr, type) : u);
}

void vjp_abs(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, node_map1(s->g, OP_SIGN, x_of(s, n, 0))));
}

/* The first operand won exactly where the result differs from the second. */
static void give_winner(Sweep *s, Node *n, Node *u, Node *first) {
    Node *zero = number(s, u, 0);
    if (sweep_wants(s, n, 0)) {
        sweep_give(s, n, 0, node_select(s->g, first, u, zero));
    }
    if (sweep_wants(s, n, 1)) {
        sweep_give(s, n, 1, node_select(s->g, first, zero, u));
    }
}

void vjp_max(Sweep *s, Node *n, Node *u) {
    give_winner(s, n, u, node_map2(s->g, OP_LT, x_of(s, n, 1), sweep_value(s, n)));
}

void vjp_min(Sweep *s, Node *n, Node *u) {
    give_winner(s, n, u, node_map2(s->g, OP_LT, sweep_value(s, n), x_of(s, n, 1)));
}

/* x^0 is 1 also where x is 0, but 0 * 0^-1 is not a number. There the slope is 0 * 1^-1, which has
 * derivatives of its own, as the slope has at x^0 elsewhere. */
static Node *pow_slope(Sweep *s, Node *x, Node *y) {
    Graph *g = s->g;
    Node *zero = number(s, x, 0), *one = number(s, x, 1);
    Node *flat = node_map2(g, OP_AND, node_map2(g, OP_EQ, x, zero), node_map2(g, OP_EQ, y, zero));
    return mul(s, y, node_map2(g, OP_POW, node_select(g, flat, one, x), sub(s, y, one)));
}

void vjp_pow(Sweep *s, Node *n, Node *u) {
    Graph *g = s->g;
    Node *x = x_of(s, n, 0), *y = x_of(s, n, 1), *zero = number(s, u, 0);
    if (sweep_wants(s, n, 0)) {
        sweep_give(s, n, 0, mul(s, u, pow_slope(s, x, y)));
    }
    if (sweep_wants(s, n, 1)) {
        Node *positive = node_map2(g, OP_LT, zero, x), *one = number(s, x, 1);
        Node *log = node_map1(g, OP_LOG, node_select(g, positive, x, one));
        sweep_give(s, n, 1, mul(s, u, mul(s, log, sweep_value(s, n))));
    }
}

void vjp_exp(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, sweep_value(s, n)));
}

/* Not the value plus 1, which has no digits left where the exponential is small. */
void vjp_expm1(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, node_map1(s->g, OP_EXP, x_of(s, n, 0))));
}

void vjp_log(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, divide(s, u, x_of(s, n, 0)));
}

void vjp_log1p(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, divide(s, u, add(s, x_of(s, n, 0), number(s, u, 1))));
}

void vjp_sqrt(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, divide(s, mul(s, u, number(s, u, 0.5)), sweep_value(s, n)));
}

void vjp_rsqrt(Sweep *s, Node *n, Node *u) {
    Node *y = sweep_value(s, n);
    sweep_give(s, n, 0, mul(s, mul(s, u, number(s, u, -0.5)), mul(s, y, mul(s, y, y))));
}

void vjp_sin(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, node_map1(s->g, OP_COS, x_of(s, n, 0))));
}

void vjp_cos(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, neg(s, mul(s, u, node_map1(s->g, OP_SIN, x_of(s, n, 0)))));
}

void vjp_tan(Sweep *s, Node *n, Node *u) {
    Node *y = sweep_value(s, n);
    sweep_give(s, n, 0, mul(s, u, add(s, number(s, u, 1), mul(s, y, y))));
}

/* 1 / sqrt(1 - x^2), where 1 - x^2 is (1 - x)(1 + x): exact near the ends. */
static Node *arc_slope(Sweep *s, Node *x) {
    Node *one = number(s, x, 1);
    return node_map1(s->g, OP_RSQRT, mul(s, sub(s, one, x), add(s, one, x)));
}

void vjp_asin(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, arc_slope(s, x_of(s, n, 0))));
}

void vjp_acos(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, neg(s, mul(s, u, arc_slope(s, x_of(s, n, 0)))));
}

/* By both over the square of the distance; 0 at the origin, where there is no slope. */
void vjp_atan2(Sweep *s, Node *n, Node *u) {
    Node *y = x_of(s, n, 0), *x = x_of(s, n, 1), *square = add(s, mul(s, y, y), mul(s, x, x));
    Node *none = node_map2(s->g, OP_EQ, square, number(s, square, 0));
    Node *part = divide(s, u, node_select(s->g, none, number(s, square, 1), square));
    if (sweep_wants(s, n, 0)) {
        sweep_give(s, n, 0, mul(s, part, x));
    }
    if (sweep_wants(s, n, 1)) {
        sweep_give(s, n, 1, neg(s, mul(s, part, y)));
    }
}

void vjp_sinh(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, node_map1(s->g, OP_COSH, x_of(s, n, 0))));
}

void vjp_cosh(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, mul(s, u, node_map1(s->g, OP_SINH, x_of(s, n, 0))));
}

void vjp_atan(Sweep *s, Node *n, Node *u) {
    Node *x = x_of(s, n, 0);
    sweep_give(s, n, 0, node_map2(s->g, OP_DIV, u, add(s, number(s, u, 1), mul(s, x, x))));
}

void vjp_tanh(Sweep *s, Node *n, Node *u) {
    Node *y = sweep_value(s, n);
    sweep_give(s, n, 0, mul(s, u, sub(s, number(s, u, 1), mul(s, y, y))));
}

void vjp_erf(Sweep *s, Node *n, Node *u) {
    Node *x = x_of(s, n, 0), *bell = node_map1(s->g, OP_EXP, neg(s, mul(s, x, x)));
    sweep_give(s, n, 0,
               mul(s, u, mul(s, bell, number(s, u, 1.12837916709551257390)))); /* 2/sqrt(pi) */
}

void vjp_select(Sweep *s, Node *n, Node *u) {
    Node *c = x_of(s, n, 0), *zero = number(s, u, 0);
    if (sweep_wants(s, n, 1)) {
        sweep_give(s, n, 1, node_select(s->g, c, u, zero));
    }
    if (sweep_wants(s, n, 2)) {
        sweep_give(s, n, 2, node_select(s->g, c, zero, u));
    }
}

void vjp_cast(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_cast(s->g, u, n->in[0]->type->elem));
}

/* --- views and places ------------------------------------------------------------------------- */

static Node *reshape_like(Sweep *s, Node *a, Type type) {
    return node_reshape(s->g, a, type.rank, type.dim);
}

void vjp_reshape(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, reshape_like(s, u, *n->in[0]->type));
}

void vjp_permute(Sweep *s, Node *n, Node *u) {
    int back[MD_RANK] = {0};
    for (int i = 0; i < n->type->rank; i++) {
        back[n->attr->map[i]] = i;
    }
    sweep_give(s, n, 0, node_permute(s->g, u, back));
}

/* The adjoint of reading `axis` (of extent n) at step * i + lo: a window of one tap, backwards. */
static Node *scatter_axis(Sweep *s, Node *u, int axis, int64_t n, int64_t step, int64_t lo) {
    Type t = *u->type;
    Attr window = {.axis = axis,
                   .s = step,
                   .d = 1,
                   .p = -lo,
                   .count = t.dim[axis],
                   .taps = 1,
                   .taps_n = n,
                   .border = BORDER_NONE};
    memmove(t.dim + axis + 2, t.dim + axis + 1, sizeof *t.dim * (size_t)(t.rank - axis - 1));
    t.dim[axis + 1] = 1;
    t.rank++;
    return node_overlap_add(s->g, reshape_like(s, u, t), &window);
}

void vjp_slice(Sweep *s, Node *n, Node *u) {
    Type to = *n->in[0]->type;
    int64_t before[MD_RANK] = {0}, after[MD_RANK] = {0};
    for (int i = 0; i < to.rank; i++) {
        if (n->attr->step[i] != 1 && to.dim[i] != n->type->dim[i]) {
            u = scatter_axis(s, u, i, to.dim[i], n->attr->step[i], n->attr->lo[i]);
        } else {
            before[i] = n->attr->lo[i];
            after[i] = to.dim[i] - before[i] - n->type->dim[i];
        }
    }
    sweep_give(s, n, 0, node_pad(s->g, u, before, after, BORDER_VALUE, 0));
}

/* The elements [from, from + count) of `axis`, added up at place `to` of n, zeros elsewhere. */
static Node *gathered_at(Sweep *s, Node *u, int axis, int64_t from, int64_t count, int64_t to,
                         int64_t n) {
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    Type t = *u->type;
    t.dim[axis] = 1;
    lo[axis] = to;
    hi[axis] = n - 1 - to;
    u = node_fold(s->g, OP_SUM, node_slice_axis(s->g, u, axis, from, count, 1), 1u << axis);
    return node_pad(s->g, reshape_like(s, u, t), lo, hi, BORDER_VALUE, 0);
}

/* All periods of n elements along `axis`, of which the first lacks its first elements so that `lo`
 * elements stand in front of a whole one, added up. */
static Node *periods_added(Sweep *s, Node *u, int axis, int64_t n, int64_t lo) {
    int64_t before[MD_RANK] = {0}, after[MD_RANK] = {0};
    before[axis] = (n - lo % n) % n;
    after[axis] = (n - (u->type->dim[axis] - lo) % n) % n;
    u = node_pad(s->g, u, before, after, BORDER_VALUE, 0);
    Type t = *u->type, split = {.elem = t.elem, .rank = 4, .dim = {1, t.dim[axis] / n, n, 1}};
    for (int i = 0; i < t.rank; i++) {
        split.dim[0] *= i < axis ? t.dim[i] : 1;
        split.dim[3] *= i > axis ? t.dim[i] : 1;
    }
    t.dim[axis] = n;
    return reshape_like(s, node_fold(s->g, OP_SUM, reshape_like(s, u, split), 1u << 1), t);
}

/* The adjoint of `lo` elements in front of the n of `axis` and others behind them, which repeat
 * those at the ends or continue around: however many there are, so many nodes. */
static Node *border_added(Sweep *s, Node *u, int axis, int64_t n, int64_t lo, Border border) {
    int64_t all = u->type->dim[axis], hi = all - lo - n;
    if (lo == 0 && hi == 0) {
        return u;
    }
    if (border == BORDER_WRAP) {
        return periods_added(s, u, axis, n, lo);
    }
    Node *sum = node_slice_axis(s->g, u, axis, lo, n, 1);
    if (lo > 0) {
        sum = add(s, sum, gathered_at(s, u, axis, 0, lo, 0, n));
    }
    if (hi > 0) {
        sum = add(s, sum, gathered_at(s, u, axis, lo + n, hi, n - 1, n));
    }
    return sum;
}

void vjp_pad(Sweep *s, Node *n, Node *u) {
    Type to = *n->in[0]->type;
    if (n->attr->border == BORDER_VALUE) {
        sweep_give(s, n, 0, node_slice(s->g, u, n->attr->lo, to.dim, NULL));
        return;
    }
    for (int i = 0; i < to.rank; i++) {
        u = border_added(s, u, i, to.dim[i], n->attr->lo[i], n->attr->border);
    }
    sweep_give(s, n, 0, u);
}

void vjp_broadcast(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_fold(s->g, OP_SUM, u, n->attr->axes));
}

void vjp_flip(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_flip(s->g, u, n->attr->axes));
}

void vjp_window(Sweep *s, Node *n, Node *u) {
    Attr window = attr_copy(n->attr);
    int64_t lo = 0, extent = window.taps_n;
    window.value = 0;
    if (window.border == BORDER_EDGE || window.border == BORDER_WRAP) { /* of a padded axis */
        int64_t i1 = window.s * (window.count - 1), k1 = window.d * (window.taps - 1);
        int64_t least = (i1 < 0 ? i1 : 0) + (k1 < 0 ? k1 : 0) - window.p;
        int64_t most = (i1 > 0 ? i1 : 0) + (k1 > 0 ? k1 : 0) - window.p;
        lo = least < 0 ? -least : 0;
        window.taps_n += lo + (most >= extent ? most - extent + 1 : 0);
        window.p -= lo;
        window.border = BORDER_NONE;
    }
    u = node_overlap_add(s->g, u, &window);
    sweep_give(s, n, 0, border_added(s, u, window.axis, extent, lo, n->attr->border));
}

void vjp_overlap_add(Sweep *s, Node *n, Node *u) {
    const Attr *a = n->attr;
    sweep_give(s, n, 0,
               node_window(s->g, u, a->axis, a->s, a->d, a->p, a->count, a->taps, a->border, 0));
}

void vjp_concat(Sweep *s, Node *n, Node *u) {
    int axis = n->attr->axis;
    int64_t at = 0;
    for (int k = 0; k < n->nin; k++) {
        int64_t extent = n->in[k]->type->dim[axis];
        if (sweep_wants(s, n, k)) {
            sweep_give(s, n, k, node_slice_axis(s->g, u, axis, at, extent, 1));
        }
        at += extent;
    }
}

/* --- folds ------------------------------------------------------------------------------------ */

/* `a` repeated along the folded axes of `fold`. */
static Node *unfold(Sweep *s, Node *a, const Node *fold) {
    Type t = *fold->in[0]->type;
    return node_broadcast(s->g, a, fold->attr->axes, t.rank, t.dim);
}

void vjp_sum(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, unfold(s, u, n));
}

/* The folded axes of n put behind the others and merged: the operand as [kept..., all]. The way
 * back is `merged_back`. */
static Node *merged(Sweep *s, const Node *n, Node *x) {
    Type t = {.elem = x->type->elem};
    int map[MD_RANK] = {0}, at = 0;
    int64_t all = 1;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < x->type->rank; i++) {
            bool folded = n->attr->axes >> i & 1;
            if (folded == (pass == 1)) {
                map[at++] = i;
                if (folded) {
                    all *= x->type->dim[i];
                } else {
                    t.dim[t.rank++] = x->type->dim[i];
                }
            }
        }
    }
    t.dim[t.rank++] = all;
    return reshape_like(s, node_permute(s->g, x, map), t);
}

static Node *merged_back(Sweep *s, const Node *n, Node *x) {
    Type to = *n->in[0]->type, t = {.elem = to.elem};
    int back[MD_RANK] = {0}, at = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < to.rank; i++) {
            if ((n->attr->axes >> i & 1) == (uint32_t)pass) {
                back[i] = at++;
                t.dim[t.rank++] = to.dim[i];
            }
        }
    }
    return node_permute(s->g, reshape_like(s, x, t), back);
}

/* Products of all elements before (or behind) each one along the last axis, in log2(n) rounds. */
static Node *products(Sweep *s, Node *x, bool behind) {
    int axis = x->type->rank - 1;
    int64_t n = x->type->dim[axis];
    for (int64_t d = 1, first = 1; d < n; d = first ? 1 : 2 * d, first = 0) {
        int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
        (behind ? hi : lo)[axis] = d;
        Node *shifted = node_pad(s->g, node_slice_axis(s->g, x, axis, behind ? d : 0, n - d, 1), lo,
                                 hi, BORDER_VALUE, 1);
        x = first ? shifted : mul(s, x, shifted);
    }
    return n > 1 ? x : node_full(s->g, *x->type, 1);
}

/* By products of the others, not by division: right also where factors are zero. */
void vjp_prod(Sweep *s, Node *n, Node *u) {
    Node *x = merged(s, n, x_of(s, n, 0));
    Node *others = mul(s, products(s, x, false), products(s, x, true));
    sweep_give(s, n, 0, mul(s, unfold(s, u, n), merged_back(s, n, others)));
}

static void give_first_winner(Sweep *s, Node *n, Node *u, OpCode arg_fold) {
    Node *x = merged(s, n, x_of(s, n, 0));
    Type t = *x->type;
    t.elem = TY_I32;
    /* A byte tells which of few it is: what is kept of a pool. */
    Elem place = t.dim[t.rank - 1] <= 256 ? TY_U8 : TY_I32;
    Node *winner = node_cast(s->g, node_argfold(s->g, arg_fold, x, t.rank - 1), place);
    Node *there = node_map2(s->g, OP_EQ, node_cast(s->g, node_iota(s->g, t, t.rank - 1), place),
                            node_broadcast(s->g, winner, 1u << (t.rank - 1), t.rank, t.dim));
    sweep_give(s, n, 0,
               node_select(s->g, merged_back(s, n, there), unfold(s, u, n), number(s, u, 0)));
}

void vjp_fmax(Sweep *s, Node *n, Node *u) {
    give_first_winner(s, n, u, OP_ARGMAX);
}
void vjp_fmin(Sweep *s, Node *n, Node *u) {
    give_first_winner(s, n, u, OP_ARGMIN);
}

void vjp_cumsum(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_cumsum(s->g, u, n->attr->axis, !n->attr->reverse, n->attr->exclusive));
}

/* --- calls ------------------------------------------------------------------------------------ */

void vjp_contract(Sweep *s, Node *n, Node *u) {
    const Attr *a = n->attr;
    bool exact = s->g->exact;
    s->g->exact = a->exact;
    if (sweep_wants(s, n, 0)) {
        sweep_give(
            s, n, 0,
            node_contract(s->g, u, x_of(s, n, 1), a->lo_, a->lb, a->la, n->in[0]->type->rank));
    }
    if (sweep_wants(s, n, 1)) {
        sweep_give(
            s, n, 1,
            node_contract(s->g, u, x_of(s, n, 0), a->lo_, a->la, a->lb, n->in[1]->type->rank));
    }
    s->g->exact = exact;
}

void vjp_gather(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_scatter_add(s->g, u, x_of(s, n, 1), n->attr->batch, *n->in[0]->type));
}

void vjp_scatter_add(Sweep *s, Node *n, Node *u) {
    sweep_give(s, n, 0, node_gather(s->g, u, x_of(s, n, 1), n->attr->batch));
}

/* --- a derivative given in the source --------------------------------------------------------- */

void vjp_custom(Sweep *s, Node *n, Node *u) {
    int nargs = n->nin - 1;
    Node **arg = ARENA_ARRAY(s->scratch, Node *, nargs + 1),
         **out = ARENA_ARRAY(s->scratch, Node *, nargs + 1);
    for (int k = 0; k < nargs; k++) {
        arg[k] = x_of(s, n, k + 1);
    }
    arg[nargs] = u;
    region_inline(s->g, n->body, arg, out);
    for (int k = 0; k < nargs; k++) {
        sweep_give(s, n, k + 1, out[k]);
    }
}
