/* ode: `ode t from a to b using rk4(steps = 10) carry y = y0 { y' = f(y, t); }`.
 *
 * The body is elaborated once, as that of a loop which never runs: what it computes is
 * instantiated for each stage of the method (ode_step). With a number of steps the solver is a scan
 * over them, and the derivative is that of the steps that are made; steps of its own choice, times
 * on the way and conditions are in ode_walk. */
#include "lang/ode.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/ode_adapt.h"
#include "lang/stmt.h"

typedef struct {
    const Value *slope; /* y', once it is said */
} Flow;

/* --- what stands in front of the body --------------------------------------------------------- */

Node *ode_scalar(Elab *e, const Ast *ast, const char *what) {
    const Value *v = elab_single(e, ast, elab_expr(e, ast));
    if (!elab_ok(v) || !elab_plain(e, ast->loc, v)) {
        return NULL;
    }
    bool number = value_is_number(v), fits = v->kind == V_TENSOR && v->rank == 0 && v->nspan == 0;
    if (!number && !(fits && elem_is_float(value_elem(v)))) {
        elab_error(e, ast->loc, 383, "%s is a number or a float scalar, found %s", what,
                   value_text(e->arena, v));
        return NULL;
    }
    v = arith_tensor(e, ast->loc, v, e->g->float_type);
    return elab_ok(v) ? node_cast(e->g, v->node, e->g->float_type) : NULL;
}

static bool check_carries(Elab *e, const char *time, const CarryVars *vars) {
    bool ok = true;
    for (int i = 0; i < vars->count; i++) {
        const CarryVar *var = &vars->at[i];
        if (str_eq(var->name, time)) {
            elab_error(e, var->loc, 441, "carry '%s' has the name of the time of its ode", time);
            ok = false;
        }
        if (!elem_is_float(var->start->node->type->elem)) {
            elab_error(e, var->loc, 405,
                       "'%s' is %s; what an ode carries are floats", var->name,
                       value_text(e->arena, var->start));
            ok = false;
        }
    }
    return ok;
}

void ode_derivative(Elab *e, const Ast *ast) {
    const Ast *target = ast->kid[0];
    ScopeName *n = target->kind == AST_NAME ? scope_find_here(e->scope, target->name) : NULL;
    if (!n || n->kind != BIND_FLOW) {
        elab_error(e, ast->loc, 291,
                   "a derivative y' = ... stands only in 'ode', of a carry, outside of inner "
                   "loops");
        return;
    }
    Flow *flow = n->ref;
    if (flow->slope) {
        elab_error(e, target->loc, 349, "%s' is set twice", n->name);
        diag_note(&e->c->diag, n->next_loc, "it is set here");
        return;
    }
    const Value *v = elab_single(e, ast->kid[1], elab_expr(e, ast->kid[1]));
    v = stmt_like(e, n->value, v, str_printf(e->arena, "%s'", n->name), ast->kid[1]->loc);
    n->next_loc = target->loc;
    flow->slope = v ? v : &value_poison;
}


/* `rk4(steps = 10)` */
static bool read_steps(Elab *e, const Ast *ast, int64_t *count) {
    const Ast *args = ast->kid[1], *arg = args->nkid == 1 ? args->kid[0] : NULL;
    if (!arg || arg->kind != AST_ARG || !str_eq(arg->name, "steps")) {
        elab_error(e, ast->loc, 282,
                   "'using' names a method and its steps: rk4(steps = 10), or what its error may "
                   "be: tsit5(rtol = 1e-3, atol = 1e-6, max = 64)");
        return false;
    }
    const Ast *steps = arg->kid[0];
    bool ok = elab_int(e, steps, "the number of steps", count);
    if (ok && (*count < 1 || *count >= INT32_MAX)) {
        elab_error(e, steps->loc, 300, "%lld steps are not possible", (long long)*count);
        ok = false;
    }
    return ok;
}

/* Are steps of the solver's own choice asked for? */
static bool chooses(const Ast *args) {
    for (int i = 0; i < args->nkid; i++) {
        if (args->kid[i]->kind == AST_ARG && !str_eq(args->kid[i]->name, "steps")) {
            return true;
        }
    }
    return false;
}

/* A list of numbers as a tensor. */
static const Value *list_of_times(Elab *e, const Value *v) {
    double *number = ARENA_ARRAY(e->arena, double, v->count + 1);
    Dim dim = {.size = v->count};
    for (int i = 0; i < v->count; i++) {
        if (!value_is_number(v->item[i])) {
            return v;
        }
        number[i] = value_number(v->item[i]);
    }
    Node *node = node_table(e->g, dims_type(e->g->float_type, 1, &dim), number);
    return v->count > 0 ? value_tensor(e->scratch, node, 1, &dim) : v;
}

/* `at ts`: the times, a tensor of one axis; false after an error. */
static bool read_times(Elab *e, const Ast *ast, Node **stop, Dim *count) {
    const Value *v = elab_expr(e, ast);
    v = elab_ok(v) && v->kind == V_LIST ? list_of_times(e, v) : v;
    if (!elab_ok(v)) {
        return false;
    }
    bool times = v->kind == V_TENSOR && v->rank == 1 && v->nspan == 0;
    if (!times || !elem_is_float(value_elem(v)) || v->dim[0].size < 1) {
        elab_error(e, ast->loc, 654, "'at' takes the times at which 'emit' collects, floats [n], "
                                     "found %s", value_text(e->arena, v));
        if (v->kind == V_LIST && v->count > 0) {
            diag_hint(&e->c->diag, "numbers of the run become one by stack(a, b, c)");
        }
        return false;
    }
    *stop = node_cast(e->g, v->node, e->g->float_type);
    *count = v->dim[0];
    return true;
}

/* --- the body --------------------------------------------------------------------------------- */

/* `until c`, where the names of the body are those of a step's end. */
static Node *read_until(Elab *e, const Ast *ast) {
    const Value *v = elab_single(e, ast, elab_expr(e, ast));
    if (!elab_ok(v) || !elab_plain(e, ast->loc, v)) {
        return NULL;
    }
    if (v->kind != V_TENSOR || value_elem(v) != TY_BOOL || v->rank > 0 || v->nspan > 0) {
        elab_error(e, ast->loc, 652,
                   "'until' needs one scalar condition on what the ode carries, found %s",
                   v->kind == V_BOOL ? "one that is known when compiling"
                                     : value_text(e->arena, v));
        return NULL;
    }
    return v->node;
}

/* What is looked at between the steps: the condition, then the emits. False where one of them is
 * not known. */
static bool add_looks(Elab *e, const Ast *ast, LoopScope *loop, Node *until, Field *field) {
    bool known = until || !ast->kid[4];
    field->look = ARENA_ARRAY(e->arena, int, 1 + loop->emitted.count);
    field->looks = 0;
    if (until) {
        field->look[field->looks++] = loop_emit(loop->builder, until);
    }
    for (int i = 0; i < loop->emitted.count; i++, field->looks++) {
        const Value *v = loop->emitted.at[i].value;
        known = known && elab_ok(v);
        field->look[field->looks] = elab_ok(v) ? loop_emit(loop->builder, v->node) : 0;
    }
    if (ast->kid[3] && loop->emitted.count == 0 && e->errors == 0) {
        elab_error(e, ast->kid[3]->loc, 653,
                   "'at' says when 'emit' collects, but the body emits nothing");
        diag_hint(&e->c->diag, "emit ys = y;");
    }
    return known;
}

/* Elaborates the body at the region at hand; field->loop is NULL after an error, and where what it
 * needs is not known because of one further up. `times`: how many there are to collect at; 0:
 * none. */
static LoopScope *read_field(Elab *e, const Ast *ast, const CarryVars *vars, const Method *m,
                             Node *from, Dim times, Field *field) {
    Scope *around = e->scope;
    e->scope = scope_new(e->scratch, around, around->file);
    LoopScope *loop = loop_scope_open(e, (Dim){.size = m->stages}, false);
    loop->stages = true;
    loop->times = times.size > 0;
    loop->trip = loop->times ? times : loop->trip;
    loop->scope = e->scope;
    Flow *flow = ARENA_ARRAY(e->scratch, Flow, vars->count);
    Node *now = loop_carry_value(loop->builder, loop_carry(loop->builder, from));
    scope_add(e->scratch, e->scope, ast->name, ast->name_loc, BIND_VALUE,
              value_scalar(e->scratch, graph_name(now, ast->name)));
    for (int i = 0; i < vars->count; i++) {
        const CarryVar *var = &vars->at[i];
        Node *y = loop_carry_value(loop->builder, loop_carry(loop->builder, var->start->node));
        ScopeName *name = scope_add(e->scratch, e->scope, var->name, var->loc, BIND_FLOW,
                                    value_with(e->scratch, var->start, graph_name(y, var->name)));
        name->ref = &flow[i];
    }
    int errors = e->errors;
    *field = (Field){.count = vars->count};
    Node *until = ast->kid[4] ? read_until(e, ast->kid[4]) : NULL;
    stmt_block(e, ast->kid[6]);
    e->scope = around;
    bool known = add_looks(e, ast, loop, until, field);
    for (int i = 0; i < vars->count; i++) {
        known = known && flow[i].slope && elab_ok(flow[i].slope);
        if (!flow[i].slope && e->errors == errors) {
            elab_error(e, vars->at[i].loc, 341, "the body says nothing of %s' = ...",
                       vars->at[i].name);
        } else if (flow[i].slope && elab_ok(flow[i].slope)) {
            loop_next(loop->builder, 1 + i, flow[i].slope->node);
        }
    }
    Node *closed = loop_scope_body(e, loop);
    field->loop = known && e->errors == errors ? closed : NULL;
    return loop;
}

/* Behind the body its states and the status of a `while` in it are as `rest` says. */
static void field_done(Elab *e, LoopScope *loop, const Field *field, Node **rest) {
    int first = 1 + field->count, n = field->loop->attr->ncarry;
    Node **final = ARENA_ARRAY(e->scratch, Node *, n);
    for (int k = first; k < n; k++) {
        final[k] = rest[k - first];
    }
    loop_scope_after(e, loop, field->loop, final);
}

/* --- the statement ---------------------------------------------------------------------------- */

/* Equal steps alone; false where the body is not known. */
static bool solve_steps(Elab *e, const Ast *ast, const CarryVars *vars, const Method *m,
                        int64_t count, Node *from, Node *to, Node **end) {
    Graph *g = e->g;
    Elem real = g->float_type;
    int n = vars->count;
    Node *dt = node_map2(g, OP_DIV, node_map2(g, OP_SUB, to, from),
                         node_const(g, real, (double)count));
    LoopScope *steps = loop_scope_open(e, (Dim){.size = count}, false);
    const int64_t kept = stmt_checkpoint(e, ast, false);
    loop_checkpoint(steps->builder, kept);
    Node **y = ARENA_ARRAY(e->scratch, Node *, n), **next = ARENA_ARRAY(e->scratch, Node *, n);
    CarryVars inside = {0};
    for (int i = 0; i < n; i++) {
        CarryVar var = vars->at[i];
        y[i] = loop_carry_value(steps->builder, loop_carry(steps->builder, var.start->node));
        var.start = value_with(e->scratch, var.start, graph_name(y[i], var.name));
        VEC_PUSH(e->arena, &inside, var);
    }
    Node *begun = node_map2(
        g, OP_ADD, from,
        node_map2(g, OP_MUL, dt, node_cast(g, loop_index(steps->builder), real)));
    Field field;
    LoopScope *body = read_field(e, ast, &inside, m, begun, (Dim){0}, &field);
    field.apart = true;
    field.again = kept > CHECKPOINT_NONE;
    if (field.loop) {
        Node **rest = field_rest_start(e->scratch, &field);
        Node **slope = ARENA_ARRAY(e->scratch, Node *, m->stages * n);
        step_make(g, e->scratch, m, &field, NULL, begun, dt, y, rest, slope, next);
        for (int i = 0; i < n; i++) {
            loop_next(steps->builder, i, next[i]);
        }
        field_done(e, body, &field, rest);
    }
    Node *done = loop_scope_close(e, steps);
    for (int i = 0; i < n; i++) {
        end[i] = loop_final(g, done, i);
    }
    return field.loop != NULL;
}

/* With equal steps, `at` and `until`: is the body the same whenever it is looked at? */
static bool steady_field(Elab *e, const Ast *ast, const LoopScope *body, bool draws) {
    bool writes = false;
    for (int i = 0; i < body->state.count; i++) {
        writes = writes || body->state.at[i].written;
    }
    if (draws || writes) {
        elab_error(e, ast->loc, 655,
                   "the body of an 'ode' with 'at' or 'until' %s, but it is also looked at between "
                   "the steps",
                   draws ? "draws numbers" : "writes a state");
        diag_hint(&e->c->diag, "do that in front of the 'ode'");
    }
    return !draws && !writes;
}

/* `using run: tsit5(...)`: behind the ode run.taken, run.rejected and run.time are known. */
static void bind_run(Elab *e, const Ast *method, Node *taken, Node *rejected, Node *time) {
    static const char *const name[] = {"taken", "rejected", "time"};
    Node *node[] = {taken, rejected, time};
    enum { FIELDS = sizeof name / sizeof *name };
    if (method->kind != AST_CALL || !method->name) {
        return;
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_RECORD;
    r->count = FIELDS;
    r->item = ARENA_ARRAY(e->scratch, const Value *, FIELDS);
    r->field = ARENA_ARRAY(e->scratch, const char *, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        r->field[i] = name[i];
        r->item[i] = node[i] ? value_scalar(e->scratch, node[i]) : &value_poison;
    }
    stmt_bind(e, method->name, method->loc, taken ? r : &value_poison);
}

typedef struct {
    Method m;
    Control control;
    CarryVars vars;
    int64_t count; /* of equal steps; 0: by their error */
    Node *from, *to, *stop; /* stop: times, or NULL */
    Dim times;
} Ode;

/* Everything in front of the body; false after an error. */
static bool read_head(Elab *e, const Ast *ast, Ode *o) {
    const Ast *method = ast->kid[2];
    bool named = method->kind == AST_CALL && method->kid[0]->kind == AST_NAME;
    bool adaptive = named && chooses(method->kid[1]), ok;
    if (!named) {
        elab_error(e, method->loc, 282,
                   "'using' names a method and its steps: rk4(steps = 10), or what its error may "
                   "be: tsit5(rtol = 1e-3, atol = 1e-6, max = 64)");
        ok = false;
    } else {
        ok = method_read(e, method->kid[0], &o->m);
        ok = (adaptive ? adapt_read(e, ast, &o->m, &o->control)
                       : read_steps(e, method, &o->count)) && ok;
    }
    o->from = ode_scalar(e, ast->kid[0], "a time");
    o->to = ode_scalar(e, ast->kid[1], "a time");
    ok = (!ast->kid[3] || read_times(e, ast->kid[3], &o->stop, &o->times)) && ok;
    ok = loop_read_carries(e, ast->kid[5], &o->vars) && o->from && o->to && ok;
    return ok && check_carries(e, ast->name, &o->vars);
}

/* Steps by their error, and whatever `at` and `until` ask for; false where the body is unknown. */
static bool solve_walk(Elab *e, const Ast *ast, Ode *o, Node **end) {
    int64_t draws = e->entry->draws;
    Field field;
    LoopScope *body = read_field(e, ast, &o->vars, &o->m, o->from, o->times, &field);
    bool adaptive = o->count == 0, drawn = e->entry->draws != draws;
    bool ok = field.loop && (adaptive ? adapt_field(e, ast, body, &field, drawn)
                                      : steady_field(e, ast, body, drawn));
    int emits = body->emitted.count;
    Node **stack = ARENA_ARRAY(e->scratch, Node *, emits + 1);
    if (ok) {
        const int64_t kept = stmt_checkpoint(e, ast, true);
        Walk w = {.e = e,
                  .g = e->g,
                  .m = &o->m,
                  .c = adaptive ? &o->control : NULL,
                  .field = &field,
                  .loc = ast->loc,
                  .most = adaptive ? o->control.max : o->count,
                  .n = field.count,
                  .real = e->g->float_type,
                  .wide = o->vars.at[0].start->node->type->elem,
                  .until = ast->kid[4] != NULL,
                  .checkpoint = kept > CHECKPOINT_NONE && !adaptive};
        w.has[TAKEN] = w.has[REJECTED] = ast->kid[2]->name != NULL;
        field.apart = !adaptive;
        field.again = w.checkpoint;
        Turn turn = walk_turn(&w);
        for (int i = 0; i < o->vars.count; i++) {
            turn.y[i] = o->vars.at[i].start->node;
            w.wide = turn.y[i]->type->elem == TY_F64 ? TY_F64 : w.wide;
        }
        turn.rest = field_rest_start(e->scratch, &field);
        walk_solve(&w, o->from, o->to, o->stop, o->times.size, &turn, stack);
        field_done(e, body, &field, turn.rest);
        for (int i = 0; i < o->vars.count; i++) {
            end[i] = turn.y[i];
        }
        bind_run(e, ast->kid[2], turn.control[TAKEN], turn.control[REJECTED],
                 turn.control[TIME]);
    }
    for (int i = 0; i < emits && ok; i++) {
        const Emitted *em = &body->emitted.at[i];
        stmt_bind(e, em->name, em->loc, loop_in_front(e, em->value, o->times, stack[i]));
    }
    return ok;
}

void ode_statement(Elab *e, const Ast *ast) {
    Ode o = {0};
    if (e->loop && e->loop->depth + 2 + (ast->kid[3] != NULL) >= MD_RANK) {
        loop_too_deep(e, ast);
        return;
    }
    if (!read_head(e, ast, &o)) {
        bind_run(e, ast->kid[2], NULL, NULL, NULL);
        stmt_poison(e, ast);
        return;
    }
    int errors = e->errors;
    Node **end = ARENA_ARRAY(e->scratch, Node *, o.vars.count);
    bool known;
    if (o.count == 0 || ast->kid[3] || ast->kid[4]) {
        known = solve_walk(e, ast, &o, end);
    } else {
        known = solve_steps(e, ast, &o.vars, &o.m, o.count, o.from, o.to, end);
        bind_run(e, ast->kid[2], node_int(e->g, TY_I32, o.count), node_int(e->g, TY_I32, 0),
                 o.to);
    }
    known = known && e->errors == errors;
    for (int i = 0; i < o.vars.count; i++) {
        const Value *start = o.vars.at[i].start;
        loop_bind_result(e, &o.vars.at[i],
                         known ? value_with(e->scratch, start, end[i]) : &value_poison);
    }
    if (!known) {
        if (ast->kid[2]->name && !scope_find_here(e->scope, ast->kid[2]->name)) {
            bind_run(e, ast->kid[2], NULL, NULL, NULL);
        }
        stmt_poison(e, ast);
    }
}
