/* text_meaning: what a random text means, from its tree: one element at a time, in double, by loops
 * over all indices. Shares nothing with the compiler. See random_text.h. */
#include "random_text.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct {
    Arena *arena;
    const RandomText *r;
    double **at;    /* of a variable, by its number */
    int64_t *index; /* the value of each index */
    int64_t *loop;
} Run;

static double *room(Run *run, const RtVar *v) {
    return run->at[v->id] = ARENA_ARRAY(run->arena, double, rt_count(v));
}

static double element(Run *run, const Sx *e, int64_t at);

static int64_t index_value(const Run *run, int index) {
    return index < 0 ? run->loop[-1 - index] : run->index[index];
}

static double read(Run *run, const Sx *e, int64_t at) {
    int64_t flat = 0;
    for (int i = 0; i < e->var->rank; i++) {
        const RtPlace *p = &e->place[i];
        int64_t n = e->var->dim[i], x = p->value ? (int64_t)element(run, p->value, at) : p->add;
        for (int k = 0; k < p->nterm; k++) {
            x += p->term[k].by * index_value(run, p->term[k].index);
        }
        if ((x < 0 || x >= n) && e->border == RT_NUMBER) {
            return e->number;
        }
        if (x < 0 || x >= n) {
            int64_t wrapped = ((x % n) + n) % n;
            x = e->border == RT_WRAP ? wrapped : x < 0 ? 0 : n - 1;
            if (e->border == RT_NONE) {
                BUG("a random text reads outside of %s", e->var->name);
            }
        }
        flat = flat * n + x;
    }
    return run->at[e->var->id][flat];
}

static double fold(Run *run, const Sx *e, int64_t at) {
    int64_t n[2] = {run->r->extent[e->fold[0]], e->nfold > 1 ? run->r->extent[e->fold[1]] : 1};
    double result = str_eq(e->op, "prod") ? 1 : 0, best = 0;
    for (int64_t i = 0; i < n[0]; i++) {
        for (int64_t k = 0; k < n[1]; k++) {
            run->index[e->fold[0]] = i;
            if (e->nfold > 1) {
                run->index[e->fold[1]] = k;
            }
            double x = element(run, e->kid[0], at);
            bool first = i == 0 && k == 0, max = strstr(e->op, "max") != NULL;
            if (str_eq(e->op, "sum") || str_eq(e->op, "mean")) {
                result += x;
            } else if (str_eq(e->op, "prod")) {
                result *= x;
            } else if (first || (max ? x > best : x < best)) {
                best = x;
                result = e->op[0] == 'a' ? (double)i : x;
            }
        }
    }
    return str_eq(e->op, "mean") ? result / (double)(n[0] * n[1]) : result;
}

/* The nearest with `bits` of fraction and no exponent below `least`, ties to even. */
static double shortened(double x, int bits, int least) {
    int e = x == 0 ? least : ilogb(x);
    double unit = ldexp(1, (e < least ? least : e) - bits), whole = floor(fabs(x) / unit);
    double rest = fabs(x) / unit - whole;
    whole += rest > 0.5 || (rest == 0.5 && fmod(whole, 2) == 1);
    return copysign(whole * unit, x);
}

static double function(const char *op, double x, double y, double z) {
    switch (op[0]) {
    case '-': return -x;
    case 'a': return fabs(x);
    case 'c': return op[1] == 'o' ? cos(x) : fmin(fmax(x, y), z);
    case 'e': return op[1] == 'r' ? erf(x) : str_eq(op, "exp") ? exp(x) : expm1(x);
    case 'b': return shortened(x, 7, -126);
    case 'f': return op[1] == '3' ? x : op[1] == '1' ? shortened(x, 10, -14) : floor(x);
    case 'g': return 0.5 * x * (1 + erf(x / sqrt(2)));
    case 'i': return x; /* a conversion to i32 of what is one */
    case 'l': return str_eq(op, "lerp") ? x + z * (y - x) : str_eq(op, "log1p") ? log1p(x) : log(x);
    case 'n': return x == 0;
    case 'r': return op[1] == 's' ? 1 / sqrt(x) : fmax(x, 0);
    case 's':
        return str_eq(op, "sqrt")      ? sqrt(x)
               : str_eq(op, "sin")     ? sin(x)
               : str_eq(op, "sigmoid") ? 1 / (1 + exp(-x))
               : str_eq(op, "silu")    ? x / (1 + exp(-x))
                                       : (double)((x > 0) - (x < 0)); /* sign */
    case 't': return tanh(x);
    default: BUG("no meaning of %s", op);
    }
}

static double operation(const char *op, bool whole, double a, double b) {
    double q = floor(a / b);
    switch (op[0]) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '%': return a - b * q;
    case '^': return pow(a, b);
    case '<': return op[1] ? a <= b : a < b;
    case '>': return op[1] ? a >= b : a > b;
    case '=': return a == b;
    case '!': return a != b;
    case 'a': return a != 0 && b != 0;
    case 'o': return a != 0 || b != 0;
    case 'd': return q;
    case 'm': return (op[1] == 'a') == (a > b) ? a : b;
    default: BUG("no meaning of %s%s", op, whole ? " of integers" : "");
    }
}

static double element(Run *run, const Sx *e, int64_t at) {
    switch (e->kind) {
    case SX_NUM: return e->number;
    case SX_VAR: return run->at[e->var->id][e->var->rank ? at : 0];
    case SX_AT: return read(run, e, at);
    case SX_INDEX: return (double)index_value(run, e->index);
    case SX_FOLD: return fold(run, e, at);
    case SX_SELECT: return element(run, e->kid[element(run, e->kid[0], at) != 0 ? 1 : 2], at);
    case SX_CALL: {
        double x[3] = {0};
        for (int i = 0; i < 3 && e->kid[i]; i++) {
            x[i] = element(run, e->kid[i], at);
        }
        return function(e->op, x[0], x[1], x[2]);
    }
    case SX_BIN:
        return operation(e->op, e->type == RT_INT, element(run, e->kid[0], at),
                         element(run, e->kid[1], at));
    }
    return 0;
}

static void run_index(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    for (int64_t flat = 0, n = rt_count(s->out); flat < n; flat++) {
        int64_t rest = flat;
        for (int i = s->out->rank - 1; i >= 0; i--) {
            run->index[s->index[i]] = rest % s->out->dim[i];
            rest /= s->out->dim[i];
        }
        to[flat] = element(run, s->e, 0);
    }
}

static void run_slice(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    const double *from = run->at[s->from[0]->id];
    int64_t at[RT_RANK], n = 0;
    for (int64_t flat = 0, all = rt_count(s->from[0]); flat < all; flat++) {
        int64_t rest = flat;
        bool in = true;
        for (int i = s->from[0]->rank - 1; i >= 0; i--) {
            at[i] = rest % s->from[0]->dim[i];
            rest /= s->from[0]->dim[i];
            int64_t lo = s->cut[i].lo, hi = s->cut[i].hi;
            lo = lo < 0 ? run->loop[-1 - lo] : lo;
            in = in && at[i] >= lo && at[i] < (s->cut[i].lo < 0 || hi < lo ? lo + 1 : hi);
        }
        if (in) {
            to[n++] = from[flat];
        }
    }
}

/* Along one axis, or over everything as one. */
static void run_axes(Run *run, const Stmt *s) {
    const RtVar *v = s->from[0];
    int64_t outer = 1, inner = 1, n = s->whole ? rt_count(v) : v->dim[s->axis];
    for (int i = 0; !s->whole && i < v->rank; i++) {
        *(i < s->axis ? &outer : &inner) *= i == s->axis ? 1 : v->dim[i];
    }
    double *to = room(run, s->out);
    const double *from = run->at[v->id];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0, product = 1;
            int64_t best = 0;
            for (int64_t k = 0; k < n; k++) {
                int64_t at = (o * n + k) * inner + i, mirror = (o * n + n - 1 - k) * inner + i;
                double x = from[at], most = from[(o * n + best) * inner + i];
                sum += x;
                product *= x;
                bool max = strstr(s->op, "max") != NULL;
                best = (max ? x > most : x < most) ? k : best;
                if (str_eq(s->op, "cumsum")) {
                    to[at] = sum;
                } else if (str_eq(s->op, "flip")) {
                    to[mirror] = x;
                }
            }
            double *one = to + o * inner + i;
            if (str_eq(s->op, "sum") || str_eq(s->op, "mean")) {
                *one = s->op[0] == 's' ? sum : sum / (double)n;
            } else if (str_eq(s->op, "prod")) {
                *one = product;
            } else if (s->op[0] == 'm' || s->op[0] == 'a') {
                *one = s->op[0] == 'a' ? (double)best : from[(o * n + best) * inner + i];
            }
        }
    }
}

static void run_join(Run *run, const Stmt *s) {
    double *to = room(run, s->out);
    int64_t outer = 1, n = 0;
    for (int i = 0; i < s->axis; i++) {
        outer *= s->out->dim[i];
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int k = 0; k < s->nfrom; k++) {
            int64_t part = rt_count(s->from[k]) / outer;
            memcpy(to + n, run->at[s->from[k]->id] + o * part, sizeof *to * (size_t)part);
            n += part;
        }
    }
}

static void run_list(Run *run, const Stmts *list);

/* What the body emits of turn `t` of n. */
static void stack_slices(const Run *run, const Stmt *s, double *const *stack, int64_t t,
                         int64_t n) {
    for (int i = 0; i < s->emit.count; i++) {
        const RtEmit *e = &s->emit.at[i];
        int64_t inner = 1, count = rt_count(e->of);
        for (int k = e->axis < 0 ? 0 : e->axis; k < e->of->rank; k++) {
            inner *= e->of->dim[k];
        }
        for (int64_t at = 0; at < count; at++) {
            stack[i][(at / inner * n + t) * inner + at % inner] = run->at[e->of->id][at];
        }
    }
}

static void run_loop(Run *run, const Stmt *s) {
    for (int i = 0; i < s->carry.count; i++) {
        run->at[s->carry.at[i].var->id] = run->at[s->carry.at[i].start->id];
    }
    double *stack[8];
    for (int i = 0; i < s->emit.count; i++) {
        stack[i] = room(run, s->emit.at[i].out);
    }
    double *count = s->count ? room(run, s->count) : NULL;
    for (int64_t t = 0; t < s->trip && (!s->cond || element(run, s->cond, 0) != 0); t++) {
        if (!s->count) {
            run->loop[s->loop] = t;
        }
        run_list(run, &s->body);
        stack_slices(run, s, stack, t, s->trip);
        double *next[8];
        for (int i = 0; i < s->carry.count; i++) {
            next[i] = run->at[s->carry.at[i].next->id];
        }
        for (int i = 0; i < s->carry.count; i++) {
            run->at[s->carry.at[i].var->id] = next[i];
        }
        if (count) {
            *count += 1;
        }
    }
}

/* ---- differential equations ----------------------------------------------------------------- */

enum { CARRIES = 2 };
typedef struct {
    double *of[CARRIES];
} Slopes;

/* An ode on its way: where it is, how long the next attempt will be. */
typedef struct {
    Run *run;
    const Stmt *s;
    double time, size;
    double near;  /* what is no distance */
    double reach; /* where it is known to be over, so far ahead */
    double *y[CARRIES];
    bool over;
} Solve;

static void take_place(Solve *v, double time, double *const *y) {
    *v->run->at[v->s->count->id] = time;
    for (int i = 0; i < v->s->carry.count; i++) {
        v->run->at[v->s->carry.at[i].var->id] = y[i];
    }
}

static Slopes slopes_at(Solve *v, double time, double *const *y) {
    Slopes k;
    take_place(v, time, y);
    run_list(v->run, &v->s->body);
    for (int i = 0; i < v->s->carry.count; i++) {
        k.of[i] = v->run->at[v->s->carry.at[i].next->id];
    }
    return k;
}

/* y + h times the sum of n slopes by their weights. */
static void moved(Solve *v, double *const *y, double h, const double *weight, const Slopes *k,
                  int n, double **out) {
    for (int i = 0; i < v->s->carry.count; i++) {
        int64_t count = rt_count(v->s->carry.at[i].var);
        out[i] = ARENA_ARRAY(v->run->arena, double, count);
        for (int64_t at = 0; at < count; at++) {
            double sum = 0;
            for (int j = 0; j < n; j++) {
                sum += weight[j] * k[j].of[i][at];
            }
            out[i][at] = (y ? y[i][at] : 0) + h * sum;
        }
    }
}

/* The end of a step of size h in `end`, and how large its error is where that is asked for. */
static double make_step(Solve *v, double h, double **end) {
    const RtOde *o = &v->s->ode;
    const RtMethod *m = &o->method;
    Slopes k[RT_STAGES + 1];
    double *stage[CARRIES], *error[CARRIES], square = 0, all = 0;
    for (int i = 0; i < m->stages; i++) {
        double c = 0;
        for (int j = 0; j < i; j++) {
            c += m->below[i][j];
        }
        moved(v, v->y, h, m->below[i], k, i, stage);
        k[i] = slopes_at(v, v->time + c * h, stage);
    }
    moved(v, v->y, h, m->weight, k, m->stages, end);
    if (o->steps > 0) {
        return 0;
    }
    if (m->nerror > m->stages) {
        k[m->stages] = slopes_at(v, v->time + h, end);
    }
    moved(v, NULL, h, m->error, k, m->nerror, error);
    for (int i = 0; i < v->s->carry.count; i++) {
        for (int64_t at = 0, n = rt_count(v->s->carry.at[i].var); at < n; at++) {
            double most = fmax(fabs(v->y[i][at]), fabs(end[i][at]));
            double x = error[i][at] / (o->atol + o->rtol * most);
            square += x * x;
            all += 1;
        }
    }
    return sqrt(square / all);
}

static void arrive(Solve *v, double time, double *const *end) {
    v->time = time;
    memcpy(v->y, end, sizeof v->y);
}

/* Does the condition hold there? */
static bool holds(Solve *v, double time, double *const *y) {
    take_place(v, time, y);
    return v->s->cond && element(v->run, v->s->cond, 0) != 0;
}

static bool ends_here(Solve *v) {
    return holds(v, v->time, v->y);
}

static void equal_steps(Solve *v, double to) {
    double from = v->time, *end[CARRIES];
    int64_t n = v->s->ode.steps;
    for (int64_t i = 0; i < n && !v->over; i++) {
        double next = i + 1 == n ? to : from + (to - from) * (double)(i + 1) / (double)n;
        make_step(v, (to - from) / (double)n, end);
        arrive(v, next, end);
        v->over = ends_here(v);
    }
}

/* A part of the way to the farthest of `to` and the times, no less than two floats lie apart. */
static double no_distance(const Solve *v, double to) {
    const RtOde *o = &v->s->ode;
    bool wide = v->run->r->elem == TY_F64;
    double way = fabs(to - v->time), late = fmax(fabs(v->time), fabs(to));
    for (int i = 0; i < o->nat; i++) {
        way = fmax(way, fabs(o->at[i] - v->time));
        late = fmax(late, fabs(o->at[i]));
    }
    return fmax((wide ? 1e-13 : 1e-5) * way, 2 * (wide ? DBL_EPSILON : FLT_EPSILON) * late);
}

/* As docs/decisions/0029-adaptive.md and 0032-times.md have it. */
static void steps_by_error(Solve *v, double to) {
    double near = v->near, *end[CARRIES];
    int attempts = 0;
    while (v->time != to && !v->over) {
        double most = v->size <= v->reach / 2 ? v->size : v->reach / 2;
        most = v->reach <= near ? v->reach : most;
        bool last = fabs(to - v->time) <= most + near;
        double h = last ? to - v->time : to > v->time ? most : -most;
        double e = fmax(make_step(v, h, end), 1e-30);
        bool good = e < 1, stops = holds(v, last ? to : v->time + h, end);
        bool taken = good && (!stops || fabs(h) <= near);
        if (taken) {
            v->reach = v->reach > fabs(h) ? v->reach - fabs(h) : INFINITY;
        } else if (good) {
            v->reach = fabs(h);
        }
        double f = 0.9 * pow(e, -1.0 / v->s->ode.method.order);
        f = fmin(taken ? 10 : 0.9, fmax(taken ? 1 : 0.2, f));
        double longer = fabs(h) * (isfinite(e) ? f : 0.2);
        bool cut = taken && last && v->s->ode.nat > 0;
        bool searches = v->s->cond && (most < v->size || taken != good);
        v->size = searches ? v->size : cut ? fmax(v->size, longer) : longer;
        if (taken) {
            arrive(v, last ? to : v->time + h, end);
            v->over = stops;
        }
        if (++attempts > RT_ATTEMPTS + (v->s->cond ? RT_SEARCH : 0)) {
            BUG("a random text makes more than %d attempts", RT_ATTEMPTS);
        }
    }
}

static void run_ode(Run *run, const Stmt *s) {
    const RtOde *o = &s->ode;
    Solve v = {.run = run, .s = s, .time = element(run, o->from, 0), .size = o->first};
    v.reach = INFINITY;
    double to = element(run, o->to, 0), *stack[8];
    v.near = no_distance(&v, to);
    room(run, s->count);
    for (int i = 0; i < s->carry.count; i++) {
        v.y[i] = run->at[s->carry.at[i].start->id];
    }
    for (int i = 0; i < s->emit.count; i++) {
        stack[i] = room(run, s->emit.at[i].out);
    }
    v.over = ends_here(&v);
    for (int i = 0; i <= o->nat; i++) {
        double time = i < o->nat ? o->at[i] : to;
        o->steps > 0 ? equal_steps(&v, time) : steps_by_error(&v, time);
        if (i < o->nat && v.time == time) {
            slopes_at(&v, time, v.y);
            stack_slices(run, s, stack, i, o->nat);
        }
    }
    take_place(&v, v.time, v.y);
}

static void run_list(Run *run, const Stmts *list) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        switch (s->kind) {
        case ST_POINT: {
            double *to = room(run, s->out);
            for (int64_t at = 0, n = rt_count(s->out); at < n; at++) {
                to[at] = element(run, s->e, at);
            }
            break;
        }
        case ST_INDEX: run_index(run, s); break;
        case ST_SLICE: run_slice(run, s); break;
        case ST_AS: run->at[s->out->id] = run->at[s->from[0]->id]; break;
        case ST_AXES: run_axes(run, s); break;
        case ST_JOIN: run_join(run, s); break;
        case ST_LOOP: s->form == RT_ODE ? run_ode(run, s) : run_loop(run, s); break;
        case ST_WHEN: run_list(run, &s->body); break;
        case ST_CALL:
            for (int k = 0; k < s->nfrom; k++) {
                run->at[s->param.at[k]->id] = run->at[s->from[k]->id];
            }
            run_list(run, &s->body);
            run->at[s->out->id] = run->at[s->result->id];
            break;
        }
    }
}

double **text_meaning(Arena *arena, const RandomText *r, const RtEntry *entry,
                      const double *const *input) {
    Run run = {.arena = arena, .r = r};
    run.at = ARENA_ARRAY(arena, double *, r->nvar + 1);
    run.index = ARENA_ARRAY(arena, int64_t, r->nindex + 1);
    run.loop = ARENA_ARRAY(arena, int64_t, r->nloop + 1);
    for (int i = 0; i < entry->input.count; i++) {
        double *at = room(&run, entry->input.at[i]);
        memcpy(at, input[i], sizeof *at * (size_t)rt_count(entry->input.at[i]));
    }
    run_list(&run, &entry->body);
    double **result = ARENA_ARRAY(arena, double *, entry->result.count + 1);
    for (int i = 0; i < entry->result.count; i++) {
        result[i] = run.at[entry->result.at[i]->id];
    }
    return result;
}
