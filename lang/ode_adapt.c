/* ode_adapt: `ode t from a to b using tsit5(rtol = r, atol = a, max = n) carry ... { ... }`.
 *
 * A loop of at most n attempts that ends by itself. An attempt makes a step of the size at hand and
 * measures it: the root of the mean over all elements of all carries of the square of error / (atol
 * + rtol max(|y0|, |y1|)). Below 1 the step is taken. A PID controller gives the next size, and
 * Hairer's rule the first one: docs/decisions/0029-adaptive.md has the formulas and their source.
 *
 * The derivative is that of the steps that were taken, their sizes being constants, except for what
 * is left to b in the last one. The values of an attempt are a CUSTOM whose adjoint makes its
 * stages again from what it began at, so an attempt keeps its carries, its time and its size, and
 * no stage; of one that is not taken the size is 0 there, and whatever overflowed in it is not
 * looked at. */
#include "lang/ode_adapt.h"

#include "lang/expr.h"
#include "lang/ode.h"
#include "lang/stmt.h"

#include <math.h>
#include <string.h>

/* --- what the source says --------------------------------------------------------------------- */

static bool read_part(Elab *e, const Ast *ast, const char *name, double *number) {
    const Value *v = elab_expr(e, ast);
    if (elab_ok(v) && !value_is_number(v)) {
        elab_error(e, ast->loc, 380, "'%s' is a number known when compiling, found %s", name,
                   value_text(e->arena, v));
        return false;
    }
    *number = elab_ok(v) ? value_number(v) : 0;
    return elab_ok(v);
}

static bool read_argument(Elab *e, const Ast *arg, Control *c) {
    static const char *const part[3] = {"pcoeff", "icoeff", "dcoeff"};
    const char *name = arg->kind == AST_ARG ? arg->name : "";
    Node **scalar = str_eq(name, "rtol")    ? &c->rtol
                    : str_eq(name, "atol")  ? &c->atol
                    : str_eq(name, "first") ? &c->first
                                            : NULL;
    for (int i = 0; i < 3; i++) {
        if (str_eq(name, part[i])) {
            return read_part(e, arg->kid[0], name, &c->part[i]);
        }
    }
    if (str_eq(name, "max")) {
        bool ok = elab_int(e, arg->kid[0], "the number of attempts", &c->max);
        if (ok && (c->max < 1 || c->max >= INT32_MAX)) {
            elab_error(e, arg->kid[0]->loc, 300, "%lld steps are not possible", (long long)c->max);
            ok = false;
        }
        return ok;
    }
    if (!scalar) {
        elab_error(e, arg->loc, 282,
                   "'using' names a method and its steps: rk4(steps = 10), or what its error may "
                   "be: tsit5(rtol = 1e-3, atol = 1e-6, max = 64)");
        return false;
    }
    *scalar = ode_scalar(e, arg->kid[0], scalar == &c->first ? "a step" : "a tolerance");
    return *scalar != NULL;
}

/* Is the number `n` finite and at least 0? One of the run is taken to be: where it is not, the
 * attempts come to their maximum. */
static bool is_size(const Node *n) {
    const double x = n->op == OP_CONST ? n->attr->value : 1;
    return isfinite(x) && x >= 0;
}

/* What is wrong with the tolerances; NULL: nothing. */
static const char *wrong_control(const Control *c) {
    if (!c->rtol || !is_size(c->rtol)) {
        return "a finite relative tolerance, 0 or more: rtol = 1e-3";
    }
    if (!c->atol || !is_size(c->atol)) {
        return "a finite absolute tolerance, 0 or more: atol = 1e-6";
    }
    if (c->first && !is_size(c->first)) {
        return "a finite size of the first attempt, 0 or more: first = 0.1";
    }
    return c->max == 0 ? "the most attempts that memory is planned for: max = 64" : NULL;
}

bool adapt_read(Elab *e, const Ast *ast, const Method *m, Control *c) {
    const Ast *call = ast->kid[2], *args = call->kid[1];
    *c = (Control){.part = {0, 1, 0}};
    bool ok = loop_gives_status(e, ast->loc, "an 'ode' with steps of its own choice");
    for (int i = 0; ok && i < args->nkid; i++) {
        ok = read_argument(e, args->kid[i], c);
    }
    const char *wrong = ok ? wrong_control(c) : NULL;
    if (wrong) {
        elab_error(e, call->loc, 449, "steps that an 'ode' chooses need %s", wrong);
        ok = false;
    }
    if (ok && m->stages > 0 && !m->error) {
        elab_error(e, call->loc, 289, "the method has no estimate of its error to choose steps by");
        diag_hint(&e->c->diag, "'heun', 'bosh3', 'dopri5' and 'tsit5' have one; others make so "
                               "many equal steps: steps = 100");
        ok = false;
    }
    return ok;
}

/* Does a derivative in the body go by way of what lies outside of it? */
static bool leaves_body(const Region *region, const Node *const *borrowed) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_GRAD) {
            for (int k = 0; k < 2; k++) {
                const Node *p = n->in[k];
                if (p->op == OP_BODY_PARAM && borrowed[p->attr->axis]) {
                    return true;
                }
            }
        } else if (n->op == OP_LOOP) {
            Arena scratch = {0};
            const Node **inner = ARENA_ARRAY(&scratch, const Node *, 1 + n->nin);
            for (int k = 0; k < n->nin; k++) {
                const Node *p = n->in[k];
                inner[1 + k] = p->op == OP_BODY_PARAM ? borrowed[p->attr->axis] : NULL;
            }
            bool leaves = leaves_body(n->body, inner);
            arena_free(&scratch);
            if (leaves) {
                return true;
            }
        }
    }
    return false;
}

bool adapt_field(Elab *e, const Ast *ast, const LoopScope *body, const Field *field, bool draws) {
    const Attr *a = field->loop->attr;
    bool writes = false;
    for (int i = 0; i < body->state.count; i++) {
        writes = writes || body->state.at[i].written;
    }
    if (draws || writes) {
        elab_error(e, ast->loc, 385,
                   "the body of an 'ode' with steps of its own choice %s: each attempt would be "
                   "at another equation",
                   draws ? "draws numbers" : "writes a state");
        diag_hint(&e->c->diag, "do that in front of the 'ode', or give it 'steps = n'");
        return false;
    }
    const Node **borrowed = ARENA_ARRAY(e->scratch, const Node *, 1 + field->loop->nin);
    for (int k = 0; k < a->ninv; k++) {
        borrowed[1 + a->ncarry + k] = field->loop->in[a->ncarry + k];
    }
    if (leaves_body(field->loop->body, borrowed)) {
        elab_error(e, ast->loc, 448,
                   "a derivative in the body of an 'ode' with steps of its own choice is taken of "
                   "or by a value from outside of it");
        diag_hint(&e->c->diag, "take it in front of the 'ode', or give it 'steps = n'");
        return false;
    }
    return true;
}

/* --- parts of the controller ------------------------------------------------------------------ */

static Node *number(const Walk *a, double value) {
    return node_const(a->g, a->real, value);
}

static Node *scalar(const Walk *a, Node *x, Node *like) {
    return node_cast(a->g, x, like->type->elem);
}

/* atol + rtol max(|x|, |y|), and never 0: no error is within any tolerance. */
static Node *tolerance(const Walk *a, Node *x, Node *y) {
    Graph *g = a->g;
    Node *size = node_map1(g, OP_ABS, x);
    size = x == y ? size : node_map2(g, OP_MAX, size, node_map1(g, OP_ABS, y));
    Node *most = node_map2(g, OP_ADD, node_map2(g, OP_MUL, size, scalar(a, a->c->rtol, x)),
                           scalar(a, a->c->atol, x));
    return node_map2(g, OP_MAX, most, node_const(g, x->type->elem, 1e-30));
}

/* The root of the mean square of all elements of part[k] / scale[k]. */
static Node *norm(const Walk *a, Node *const *part, Node *const *scale) {
    Graph *g = a->g;
    double count = 0;
    Node *sum = NULL;
    for (int i = 0; i < a->n; i++) {
        Node *x = node_map2(g, OP_DIV, part[i], scale[i]);
        Node *square = node_fold(g, OP_SUM, node_map2(g, OP_MUL, x, x),
                                 (1u << x->type->rank) - 1);
        square = node_cast(g, square, a->real);
        sum = sum ? node_map2(g, OP_ADD, sum, square) : square;
        count += (double)type_count(*x->type);
    }
    count = count > 0 ? count : 1;
    return node_map1(g, OP_SQRT, node_map2(g, OP_MUL, sum, number(a, 1 / count)));
}

/* How large the first step is: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I,
 * II.4. slope: at the start. */
static Node *first_size(const Walk *a, Node *from, Node *sign, Node *const *y,
                        Node *const *slope, Node **rest) {
    Graph *g = a->g;
    Arena *arena = a->e->scratch;
    int n = a->n;
    Node **scale = ARENA_ARRAY(arena, Node *, n), **near = ARENA_ARRAY(arena, Node *, n),
         **bend = ARENA_ARRAY(arena, Node *, n);
    static const double one = 1;
    for (int i = 0; i < n; i++) {
        scale[i] = tolerance(a, y[i], y[i]);
    }
    Node *d0 = norm(a, y, scale), *d1 = norm(a, slope, scale);
    Node *small = node_map2(g, OP_OR, node_map2(g, OP_LT, d0, number(a, 1e-5)),
                            node_map2(g, OP_LT, d1, number(a, 1e-5)));
    Node *h0 = node_select(g, small, number(a, 1e-6),
                           node_map2(g, OP_MUL, number(a, 0.01), node_map2(g, OP_DIV, d0, d1)));
    Node *dt = node_map2(g, OP_MUL, sign, h0);
    for (int i = 0; i < n; i++) {
        near[i] = step_moved(g, y[i], dt, &one, &slope[i], 1);
    }
    field_slopes(g, a->field, NULL, 0, node_map2(g, OP_ADD, from, dt), near, rest, bend);
    for (int i = 0; i < n; i++) {
        bend[i] = node_map2(g, OP_SUB, bend[i], slope[i]);
    }
    Node *d2 = node_map2(g, OP_DIV, norm(a, bend, scale), h0), *d = node_map2(g, OP_MAX, d1, d2);
    Node *flat = node_map2(g, OP_MAX, number(a, 1e-6), node_map2(g, OP_MUL, h0, number(a, 1e-3)));
    Node *h1 = node_map2(g, OP_POW, node_map2(g, OP_DIV, number(a, 0.01), d),
                         number(a, 1.0 / a->m->order));
    h1 = node_select(g, node_map2(g, OP_LE, d, number(a, 1e-15)), flat, h1);
    return node_map2(g, OP_MIN, node_map2(g, OP_MUL, number(a, 100), h0), h1);
}

/* By how much the next step is larger; `error` and those before it are at least 1e-30. */
static Node *factor(const Walk *a, Node *error, Node *const *before, Node *taken) {
    Graph *g = a->g;
    double p = a->c->part[0], i = a->c->part[1], d = a->c->part[2], k = a->m->order;
    double power[3] = {-(p + i + d) / k, (p + 2 * d) / k, -d / k};
    Node *x[3] = {error, before[0], before[1]}, *f = number(a, 0.9);
    for (int j = 0; j < 3; j++) {
        if (power[j] != 0) {
            f = node_map2(g, OP_MUL, f, node_map2(g, OP_POW, x[j], number(a, power[j])));
        }
    }
    Node *least = node_select(g, taken, number(a, 1), number(a, 0.2));
    Node *most = node_select(g, taken, number(a, 10), number(a, 0.9));
    f = node_map2(g, OP_MIN, most, node_map2(g, OP_MAX, least, f));
    return node_select(g, node_map1(g, OP_ISFINITE, error), f, number(a, 0.2));
}

/* --- an attempt and its adjoint --------------------------------------------------------------- */

/* All carries in one tensor, and back. */
static Node *pack(const Walk *a, Node *const *y) {
    Graph *g = a->g;
    Node **flat = ARENA_ARRAY(a->e->scratch, Node *, a->n);
    for (int i = 0; i < a->n; i++) {
        int64_t count = type_count(*y[i]->type);
        flat[i] = node_cast(g, node_reshape(g, y[i], 1, &count), a->wide);
    }
    return a->n == 1 ? y[0] : node_concat(g, flat, a->n, 0);
}

static void unpack(const Walk *a, Node *all, Node *const *like, Node **y) {
    Graph *g = a->g;
    int64_t at = 0;
    for (int i = 0; a->n > 1 && i < a->n; i++) {
        const Type *t = like[i]->type;
        Node *part = node_slice_axis(g, all, 0, at, type_count(*t), 1);
        y[i] = node_reshape(g, node_cast(g, part, t->elem), t->rank, t->dim);
        at += type_count(*t);
    }
    if (a->n == 1) {
        y[0] = all;
    }
}

/* `value`, whose derivative is that of a step of size `dt` from `t` and `y`, made once more. */
static Node *with_adjoint(const Walk *a, Node *value, Node *t, Node *dt, Node *const *y) {
    Graph *g = a->g;
    Arena *arena = a->e->scratch;
    const Attr *attr = a->field->loop->attr;
    int n = a->n, narg = 2 + n + attr->ninv + field_rest(a->field);
    Node **arg = ARENA_ARRAY(arena, Node *, narg), **in = ARENA_ARRAY(arena, Node *, narg);
    Node **slope = ARENA_ARRAY(arena, Node *, a->m->stages * n);
    Node **end = ARENA_ARRAY(arena, Node *, n), **rest = field_rest_start(arena, a->field);
    arg[0] = t;
    arg[1] = dt;
    for (int k = 2; k < narg; k++) {
        int inv = k - 2 - n, other = inv - attr->ninv;
        arg[k] = graph_import(g, inv < 0     ? y[k - 2]
                                 : other < 0 ? a->field->loop->in[attr->ncarry + inv]
                                             : rest[other]);
    }
    Region *body = region_new(g, g->region);
    for (int k = 0; k < narg; k++) {
        in[k] = region_param(body, *arg[k]->type);
    }
    Node *u = region_param(body, *value->type);
    Region *before = graph_enter(g, body);
    memcpy(rest, in + 2 + n + attr->ninv, sizeof *rest * (size_t)field_rest(a->field));
    step_make(g, arena, a->m, a->field, in + 2 + n, in[0], in[1], in + 2, rest, slope, end);
    Node *whole = pack(a, end);
    for (int k = 0; k < narg; k++) {
        bool real = elem_is_float(in[k]->type->elem);
        region_result(body, real ? node_grad(g, whole, in[k], u) : node_full(g, *in[k]->type, 0));
    }
    graph_leave(g, before);
    return node_custom(g, value, arg, narg, body);
}

/* --- where `until` holds ---------------------------------------------------------------------- */

/* The size of an attempt where the ode is known to be over at the distance `reach`: half of it, and
 * all of it when that is small enough. */
static Node *within_reach(const Walk *a, Node *h, Node *reach) {
    Graph *g = a->g;
    Node *half = node_map2(g, OP_MIN, h, node_map2(g, OP_MUL, reach, number(a, 0.5)));
    return node_select(g, node_map2(g, OP_LE, reach, a->near_end), reach, half);
}

/* A step at whose end the condition holds is taken if it is small enough; else the way to there is
 * halved. Gives whether the step is taken, and notes how far the end is. */
static Node *short_of_end(const Walk *a, Node *dt, Node *good, Node *stops, const Turn *now,
                          Turn *next) {
    Graph *g = a->g;
    Node *length = node_stop(g, node_map1(g, OP_ABS, dt)), *reach = now->control[REACH];
    Node *small = node_map2(g, OP_LE, length, a->near_end);
    Node *taken = node_map2(g, OP_AND, good,
                            node_map2(g, OP_OR, small, node_map1(g, OP_NOT, stops)));
    Node *left = node_map2(g, OP_SUB, reach, length);
    Node *inf = number(a, INFINITY), *ahead = node_map2(g, OP_LT, number(a, 0), left);
    Node *found = node_map2(g, OP_AND, good, stops);
    next->control[REACH] = node_select(g, taken, node_select(g, ahead, left, inf),
                                       node_select(g, found, length, reach));
    next->control[STOPPED] = node_map2(g, OP_AND, taken, stops);
    return taken;
}

void adapt_attempt(const Walk *a, Node *to, const Turn *now, Turn *next) {
    Graph *g = a->g;
    Arena *arena = a->e->scratch;
    int n = a->n, s = a->m->stages;
    Node **slope = ARENA_ARRAY(arena, Node *, (s + 1) * n), **end = ARENA_ARRAY(arena, Node *, n),
         **scale = ARENA_ARRAY(arena, Node *, n), **error = ARENA_ARRAY(arena, Node *, n),
         **column = ARENA_ARRAY(arena, Node *, s + 1);
    Node *t = now->control[TIME], *h = now->control[SIZE], *stops = NULL;
    if (a->has[REACH]) {
        h = within_reach(a, h, now->control[REACH]);
    }
    Node *left = node_map2(g, OP_SUB, to, t);
    Node *reached = node_map2(g, OP_ADD, h, a->near_end);
    Node *last = node_map2(g, OP_LE, node_map1(g, OP_ABS, left), reached);
    Node *dt = node_select(g, last, left, node_stop(g, node_map2(g, OP_MUL, a->sign, h)));
    Node *t1 = node_select(g, last, to, node_map2(g, OP_ADD, t, dt));
    for (int i = 0; i < n && a->m->at_end; i++) {
        slope[i] = now->slope[i];
    }
    memcpy(next->rest, now->rest, sizeof *next->rest * (size_t)field_rest(a->field));
    step_make(g, arena, a->m, a->field, NULL, t, dt, now->y, next->rest, slope, end);
    if (a->m->at_end) {
        field_slopes(g, a->field, NULL, 0, t1, end, next->rest, slope + s * n);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= s; j++) {
            column[j] = slope[j * n + i];
        }
        Node *none = node_full(g, *end[i]->type, 0);
        error[i] = step_moved(g, none, dt, a->m->error, column, s + a->m->at_end);
        scale[i] = tolerance(a, now->y[i], end[i]);
    }
    Node *size = norm(a, error, scale), *good = node_map2(g, OP_LT, size, number(a, 1));
    Node *taken = good;
    if (a->has[REACH]) {
        stops = walk_stops(a, t1, end, next->rest);
        taken = short_of_end(a, dt, taken, stops, now, next);
    }
    Node *zero = node_map2(g, OP_LT, size, number(a, 1e-30));
    Node *grows = factor(a, node_select(g, zero, number(a, 1e-30), size), now->control + ERROR,
                         taken);
    Node *over = stops ? node_map2(g, OP_OR, last, stops) : last;
    next->control[GO] = node_map1(g, OP_NOT, node_map2(g, OP_AND, taken, over));
    next->control[TIME] = node_select(g, taken, t1, t);
    Node *longer = node_map2(g, OP_MUL, node_map1(g, OP_ABS, dt), grows);
    if (a->several) { /* one that was cut short at a time says little of how long it could be */
        Node *cut = node_map2(g, OP_AND, taken, last);
        longer = node_select(g, cut, node_map2(g, OP_MAX, now->control[SIZE], longer), longer);
    }
    if (stops) { /* nor does one that was cut short on the way to the end of all */
        Node *far = node_map2(g, OP_LT, h, now->control[SIZE]);
        far = node_map2(g, OP_OR, far, node_map1(g, OP_NOT, node_map2(g, OP_EQ, taken, good)));
        longer = node_select(g, far, now->control[SIZE], longer);
    }
    next->control[SIZE] = node_stop(g, longer);
    if (a->has[TAKEN]) {
        Node *one = node_int(g, TY_I32, 1), *none = node_int(g, TY_I32, 0);
        next->control[TAKEN] =
            node_map2(g, OP_ADD, now->control[TAKEN], node_select(g, taken, one, none));
        next->control[REJECTED] =
            node_map2(g, OP_ADD, now->control[REJECTED], node_select(g, taken, none, one));
    }
    next->control[ERROR] = node_stop(
        g, node_select(g, taken, node_select(g, zero, number(a, 1), size), now->control[ERROR]));
    next->control[ERROR_BEFORE] =
        node_select(g, taken, now->control[ERROR], now->control[ERROR_BEFORE]);
    for (int i = 0; i < n; i++) {
        end[i] = node_select(g, taken, end[i], now->y[i]);
        if (a->m->at_end) {
            next->slope[i] = node_stop(g, node_select(g, taken, slope[s * n + i], slope[i]));
        }
    }
    Node *made = node_select(g, taken, dt, number(a, 0));
    unpack(a, with_adjoint(a, pack(a, end), t, made, now->y), now->y, next->y);
}

void adapt_begin(const Walk *a, Node *from, Node *to, Turn *first) {
    Graph *g = a->g;
    Node *sign = node_stop(g, node_map1(g, OP_SIGN, node_map2(g, OP_SUB, to, from)));
    if (a->m->at_end || !a->c->first) {
        field_slopes(g, a->field, NULL, 0, from, first->y, first->rest, first->slope);
    }
    Node *h = a->c->first ? node_map1(g, OP_ABS, a->c->first)
                          : first_size(a, from, sign, first->y, first->slope, first->rest);
    /* A size of 0 would stay 0. */
    Node *least = node_map2(g, OP_MUL, a->way, number(a, a->real == TY_F64 ? 1e-16 : 1e-8));
    first->control[SIZE] = node_stop(g, node_map2(g, OP_MAX, h, least));
    first->control[ERROR] = first->control[ERROR_BEFORE] = number(a, 1);
    for (int i = 0; i < a->n && a->m->at_end; i++) {
        first->slope[i] = node_stop(g, first->slope[i]);
    }
}
