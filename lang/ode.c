/* ode: `ode t from a to b using rk4(steps = 10) carry y = y0 { y' = f(y, t); }`.
 *
 * The body is elaborated once, as that of a loop which never runs: what it computes is
 * instantiated for each stage of the method (ode_step). With a number of steps the solver is a scan
 * over them, and the derivative is that of the steps that are made; steps of its own choice are in
 * ode_adapt. */
#include "lang/ode.h"

#include "lang/arith.h"
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

static bool check_carries(Elab *e, const CarryVars *vars) {
    bool ok = true;
    for (int i = 0; i < vars->count; i++) {
        const CarryVar *var = &vars->at[i];
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

/* --- the body --------------------------------------------------------------------------------- */

/* Elaborates the body at the region at hand; field->loop is NULL after an error. */
static LoopScope *read_field(Elab *e, const Ast *ast, const CarryVars *vars, const Method *m,
                             Node *from, Field *field) {
    Scope *around = e->scope;
    e->scope = scope_new(e->scratch, around, around->file);
    LoopScope *loop = loop_scope_open(e, (Dim){.size = m->stages}, false);
    loop->stages = true;
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
    stmt_block(e, ast->kid[4]);
    e->scope = around;
    for (int i = 0; i < vars->count; i++) {
        if (!flow[i].slope && e->errors == errors) {
            elab_error(e, vars->at[i].loc, 341, "the body says nothing of %s' = ...",
                       vars->at[i].name);
        } else if (flow[i].slope && elab_ok(flow[i].slope)) {
            loop_next(loop->builder, 1 + i, flow[i].slope->node);
        }
    }
    Node *closed = loop_scope_body(e, loop);
    *field = (Field){.loop = e->errors == errors ? closed : NULL, .count = vars->count};
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

static void solve_steps(Elab *e, const Ast *ast, const CarryVars *vars, const Method *m,
                        int64_t count, Node *from, Node *to, Node **end) {
    Graph *g = e->g;
    Elem real = g->float_type;
    int n = vars->count;
    Node *dt = node_map2(g, OP_DIV, node_map2(g, OP_SUB, to, from),
                         node_const(g, real, (double)count));
    LoopScope *steps = loop_scope_open(e, (Dim){.size = count}, false);
    loop_checkpoint(steps->builder, stmt_has_attribute(ast, "checkpoint"));
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
    LoopScope *body = read_field(e, ast, &inside, m, begun, &field);
    field.apart = true;
    field.again = stmt_has_attribute(ast, "checkpoint");
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
}

void ode_statement(Elab *e, const Ast *ast) {
    const Ast *carry = ast->kid[3], *method = ast->kid[2];
    Method m = {0};
    CarryVars vars = {0};
    Control control = {0};
    int64_t count = 0;
    if (e->loop && e->loop->depth + 2 >= MD_RANK) {
        loop_too_deep(e, ast);
        return;
    }
    bool named = method->kind == AST_CALL && method->kid[0]->kind == AST_NAME;
    bool adaptive = named && chooses(method->kid[1]), ok;
    if (!named) {
        elab_error(e, ast->kid[2]->loc, 282,
                   "'using' names a method and its steps: rk4(steps = 10), or what its error may "
                   "be: tsit5(rtol = 1e-3, atol = 1e-6, max = 64)");
        ok = false;
    } else {
        ok = method_read(e, method->kid[0], &m);
        ok = (adaptive ? adapt_read(e, ast, &m, &control) : read_steps(e, method, &count)) && ok;
    }
    Node *from = ode_scalar(e, ast->kid[0], "a time"), *to = ode_scalar(e, ast->kid[1], "a time");
    ok = loop_read_carries(e, carry, &vars) && from && to && ok;
    if (!ok || !check_carries(e, &vars)) {
        stmt_poison(e, ast);
        return;
    }
    int errors = e->errors;
    Node **end = ARENA_ARRAY(e->scratch, Node *, vars.count);
    if (adaptive) {
        int64_t draws = e->entry->draws;
        Field field;
        LoopScope *body = read_field(e, ast, &vars, &m, from, &field);
        if (field.loop && adapt_field(e, ast, body, &field, e->entry->draws != draws)) {
            Node **rest = field_rest_start(e->scratch, &field);
            Node **start = ARENA_ARRAY(e->scratch, Node *, vars.count);
            for (int i = 0; i < vars.count; i++) {
                start[i] = vars.at[i].start->node;
            }
            adapt_solve(e, ast, &m, &control, &field, from, to, start, rest, end);
            field_done(e, body, &field, rest);
        }
    } else {
        solve_steps(e, ast, &vars, &m, count, from, to, end);
    }
    for (int i = 0; i < vars.count; i++) {
        bool known = e->errors == errors;
        loop_bind_result(e, &vars.at[i],
                         known ? value_with(e->scratch, vars.at[i].start, end[i]) : &value_poison);
    }
    if (e->errors != errors) {
        stmt_poison(e, ast);
    }
}
