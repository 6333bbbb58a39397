/* random_text_loop: loops of random texts, see random_text.h: with a trip count, with a condition,
 * and over the steps of a differential equation. Carries stay within a size that is known before
 * their body is drawn. */
#include "random_text.h"

#include <math.h>
#include <string.h>

/* The most that runs of loops in each other multiply to. */
enum { LOOP_WORK = 12, ODE_WORK = 48 };

/* Where they start from, one or two. */
typedef struct {
    const RtVar *at[2];
} Starts;

static void open_carries(RandomText *r, Stmt *s, const Starts *start, double more) {
    for (int i = 0; i < 2 && start->at[i]; i++) {
        RtVar *v = rt_var_new(r, RT_FLOAT, start->at[i]->rank, start->at[i]->dim);
        v->size = fmax(start->at[i]->size, 1) + more;
        VEC_PUSH(r->arena, &s->carry, ((RtCarry){v, start->at[i], NULL}));
        VEC_PUSH(r->arena, &r->scope, v);
    }
}

/* A bool over what is in scope, of the run: at the least of the count or time of the loop. */
static Sx *condition(RandomText *r, const RtVar *count) {
    RtWhere w = {.n = 0};
    Sx *e = rt_bool(r, &w, 2);
    if (!rt_depends(e)) {
        Sx *half = rt_num(r, count->kind, count->kind == RT_INT ? 1 : 0.5);
        e = rt_bin(r, "<", RT_BOOL, rt_whole(r, count), half, 1);
    }
    rt_write_extents(r, e);
    return e;
}

/* What the body emits of what it has made: behind `before` in the scope. */
static void emits(RandomText *r, Stmt *s, int before, int64_t n) {
    bool front = s->form == RT_WHILE || s->form == RT_ODE;
    for (int i = before; i < r->scope.count && s->emit.count < 2; i++) {
        const RtVar *of = r->scope.at[i];
        if (rt_chance(r, 60) && of->rank < 3 && rt_count(of) * n <= r->most) {
            int64_t dim[RT_RANK];
            RtEmit e = {.of = of, .axis = front ? -1 : (int)rt_below(r, of->rank + 2) - 1};
            int at = e.axis < 0 ? 0 : e.axis;
            for (int k = 0, from = 0; k <= of->rank; k++) {
                dim[k] = k == at ? n : of->dim[from++];
            }
            RtVar *out = rt_var_new(r, of->kind, of->rank + 1, dim);
            out->size = of->size;
            out->exact = of->exact;
            out->half = front ? TY_ERROR : of->half;
            out->lo = front && of->lo > 0 ? 0 : of->lo; /* zeros behind the end */
            out->hi = front && of->hi < 0 ? 0 : of->hi;
            e.out = out;
            VEC_PUSH(r->arena, &s->emit, e);
        }
    }
}

/* Of what the body made only `kept` variables and what is emitted are seen behind it. */
static void close_scope(RandomText *r, Stmt *s, int kept) {
    r->scope.count = kept;
    for (int i = 0; i < s->emit.count; i++) {
        VEC_PUSH(r->arena, &r->scope, s->emit.at[i].out);
    }
}

/* A few statements, and what the carries become. */
static void loop_body(RandomText *r, Stmt *s) {
    rt_statements(r, &s->body, 1 + (int)rt_below(r, 3));
    for (int i = 0; i < s->carry.count; i++) {
        const RtVar *v = s->carry.at[i].var;
        s->carry.at[i].next = rt_point(r, &s->body, v, v->size);
    }
}

static void counted(RandomText *r, Stmts *list, const Starts *start) {
    int64_t trip = 1 + rt_below(r, 4);
    if (r->depth >= 2 || r->work * trip > LOOP_WORK) {
        return;
    }
    int before = r->scope.count;
    Stmt *s = rt_stmt_new(r, list, ST_LOOP);
    s->form = rt_chance(r, 30) ? RT_REPEAT : RT_SCAN;
    s->loop = r->nloop++;
    s->trip = trip;
    open_carries(r, s, start, 0);
    int inside = r->scope.count;
    r->loop[r->depth] = s->loop;
    r->trip[r->depth++] = trip;
    r->work *= trip;
    loop_body(r, s);
    r->work /= trip;
    r->depth--;
    emits(r, s, inside, trip);
    close_scope(r, s, before + s->carry.count);
}

/* while n5 < 3 and ... max 4 carry x6 = x2, n5 = 0 { ... n5 <- n5 + 1; } */
static void with_condition(RandomText *r, Stmts *list, const Starts *start) {
    int64_t most = 1 + rt_below(r, 4), turns = rt_below(r, most + 1);
    if (r->work * most > LOOP_WORK) {
        return;
    }
    int before = r->scope.count;
    Stmt *s = rt_stmt_new(r, list, ST_LOOP);
    s->form = RT_WHILE;
    s->trip = most;
    RtVar *count = rt_var_new(r, RT_INT, 0, NULL);
    count->hi = most;
    s->count = count;
    open_carries(r, s, start, 0);
    VEC_PUSH(r->arena, &r->scope, count);
    Sx *few = rt_bin(r, "<", RT_BOOL, rt_whole(r, count), rt_num(r, RT_INT, (double)turns), 1);
    s->cond = few;
    if (!r->smooth && rt_chance(r, 50)) { /* a jump where a small change makes one more */
        s->cond = rt_bin(r, "and", RT_BOOL, few, condition(r, count), 1);
    }
    int inside = r->scope.count;
    r->work *= most;
    loop_body(r, s);
    r->work /= most;
    emits(r, s, inside, most);
    close_scope(r, s, before + s->carry.count + 1);
}

/* ---- differential equations ----------------------------------------------------------------- */

static const RtMethod library[] = {
    {.name = "euler", .stages = 1, .weight = {1}},
    {.name = "midpoint", .stages = 2, .below = {{0}, {0.5}}, .weight = {0, 1}},
    {.name = "heun",
     .stages = 2,
     .below = {{0}, {1}},
     .weight = {0.5, 0.5},
     .nerror = 2,
     .order = 2,
     .error = {0.5, -0.5}},
    {.name = "rk4",
     .stages = 4,
     .below = {{0}, {0.5}, {0, 0.5}, {0, 0, 1}},
     .weight = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}},
};

static void list_number(Text *out, bool first, double x) {
    text_printf(out, x == floor(x) ? "%s%.1f" : "%s%.9g", first ? "" : ", ", x);
}

/* A tableau of eighths, no row above 1; a constant of the text. */
static RtMethod own_method(RandomText *r, bool adapts) {
    RtMethod m = {.name = str_printf(r->arena, "method%d", r->nop++), .order = 2};
    Text *out = &r->ops;
    double rest = 1;
    m.stages = 2 + (int)rt_below(r, 2);
    text_printf(out, "const %s = [", m.name);
    text_add(out, adapts ? "2, [" : "");
    for (int i = 1; i < m.stages; i++) {
        for (int j = 0; j < i; j++) {
            m.below[i][j] = (double)rt_below(r, i > 1 ? 5 : 9) / 8;
            list_number(out, i + j == 1, m.below[i][j]);
        }
    }
    for (int i = 0; i < m.stages; i++) {
        m.weight[i] = i + 1 == m.stages ? rest : rest * (double)rt_below(r, 9) / 8;
        rest -= m.weight[i];
        list_number(out, false, m.weight[i]);
    }
    text_add(out, adapts ? "], [" : "");
    for (int i = 0; adapts && i < m.stages + 1 && (i < m.stages || rt_chance(r, 50)); i++) {
        m.error[m.nerror++] = (double)(1 + rt_below(r, 4)) / (i % 2 ? -8 : 8);
        list_number(out, i == 0, m.error[i]);
    }
    text_add(out, adapts ? "]];\n" : "];\n");
    return m;
}

/* A time within -1..1: a number, or of the run. */
static Sx *some_time(RandomText *r) {
    RtWhere w = {.n = 0};
    Sx *e = rt_chance(r, 70) ? rt_num(r, RT_FLOAT, rt_number(r, 1)) : rt_float(r, &w, 1);
    rt_write_extents(r, e);
    return rt_calm(r, e, 1);
}

static void some_steps(RandomText *r, RtOde *o) {
    bool adapts = !r->smooth && rt_chance(r, 40); /* sizes are constants for derivatives */
    o->steps = adapts ? 0 : 1 + rt_below(r, 2);
    o->rtol = (double)(1 + rt_below(r, 4)) / 8;
    o->atol = (double)(1 + rt_below(r, 4)) / 8;
    o->first = (double)(1 + rt_below(r, 8)) / 8;
    o->method = rt_chance(r, 50) ? own_method(r, adapts) : library[adapts ? 2 : rt_below(r, 4)];
    o->from = some_time(r);
    o->to = some_time(r);
    o->nat = rt_chance(r, 40) ? 2 : 0;
    for (int i = 0; i < o->nat; i++) {
        o->at[i] = rt_number(r, 1);
    }
}

/* Where an ode whose steps go by their error ends: so far from its start, which lies on no number
 * of the text. A condition of the data has many such places, and the search finds one or the other
 * by the last bit. */
static Sx *some_end(RandomText *r, RtOde *o, const RtVar *time) {
    double from = rt_number(r, 1), way = (double)(1 + rt_below(r, 8)) / 8;
    o->from = rt_num(r, RT_FLOAT, from);
    o->to = rt_num(r, RT_FLOAT, from > 0 ? from - way : from + way);
    double distance = 1.0 / 16 + (double)rt_below(r, 8) / 8;
    Sx *past = rt_bin(r, ">", RT_BOOL, rt_whole(r, time), rt_num(r, RT_FLOAT, from + distance), 1);
    Sx *before =
        rt_bin(r, "<", RT_BOOL, rt_whole(r, time), rt_num(r, RT_FLOAT, from - distance), 1);
    return rt_bin(r, "or", RT_BOOL, past, before, 1);
}

/* ode x7 from ... to ... using heun(steps = 2) at [0.5, 1.0] until ... carry x8 = x2 { ... } */
static void differential(RandomText *r, Stmts *list, const Starts *start) {
    if (r->work * 8 > ODE_WORK) {
        return;
    }
    Stmt *s = rt_stmt_new(r, list, ST_LOOP);
    s->form = RT_ODE;
    some_steps(r, &s->ode);
    open_carries(r, s, start, 8); /* ways of up to 4 in all, slopes of up to 2 */
    int carries = r->scope.count;
    s->count = rt_var_new(r, RT_FLOAT, 0, NULL);
    VEC_PUSH(r->arena, &r->scope, s->count);
    if (!r->smooth && rt_chance(r, 40)) {
        s->cond = s->ode.steps > 0 ? condition(r, s->count) : some_end(r, &s->ode, s->count);
    }
    int inside = r->scope.count;
    r->work *= 8;
    rt_statements(r, &s->body, 1 + (int)rt_below(r, 2));
    for (int i = 0; i < s->carry.count; i++) {
        s->carry.at[i].next = rt_point(r, &s->body, s->carry.at[i].var, 2);
    }
    r->work /= 8;
    if (s->ode.nat > 0) {
        emits(r, s, inside, s->ode.nat);
    }
    if (s->emit.count == 0) {
        s->ode.nat = 0;
    }
    close_scope(r, s, carries);
}

void rt_loop(RandomText *r, Stmts *list) {
    Starts start = {{rt_some_var(r, RT_FLOAT, 0)}};
    int64_t what = rt_below(r, 8);
    if (!start.at[0]) {
        return;
    }
    start.at[1] = rt_chance(r, 40) ? rt_some_var(r, RT_FLOAT, 0) : NULL;
    if (what < 4) {
        counted(r, list, &start);
    } else if (what < 6) {
        with_condition(r, list, &start);
    } else {
        differential(r, list, &start);
    }
}
