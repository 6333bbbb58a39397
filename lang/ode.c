/* ode: `ode t from a to b using rk4(steps = n) carry y = y0 { y' = f(y, t); }`.
 *
 * A method of Runge and Kutta is a list of numbers in the library (nn/ode.mdl), so the solver is
 * one for all of them: a scan over the steps and in it one over the stages, whose body is that of
 * the statement. It carries the slopes of all stages of a step; a stage begins at the carry and the
 * slopes so far, weighed by the row of the stage, and the step ends at all of them, weighed by the
 * last one. Slopes are used linearly, so derivatives keep none, and the derivative is that of the
 * steps that are made. Loops stay loops: the text does not grow with stages and steps. */
#include "lang/ode.h"

#include "lang/arith.h"
#include "lang/expr.h"
#include "lang/loop.h"
#include "lang/stmt.h"

#include <string.h>

/* --- methods ---------------------------------------------------------------------------------- */

typedef struct {
    int64_t steps;
    int stages;
    double *row;    /* [stages, stages], 0 from the diagonal on */
    double *place;  /* of each stage in the step */
    double *weight; /* of each slope at its end */
} Method;

enum { STAGES = 64 };

static bool read_tableau(Elab *e, const Ast *name, const Value *v, Method *m) {
    int numbers = v->kind == V_LIST ? v->count : 0, s = 0;
    while (s < STAGES && (s + 1) * (s + 2) / 2 <= numbers) {
        s++;
    }
    bool ok = s > 0 && s * (s + 1) / 2 == numbers;
    for (int i = 0; ok && i < numbers; i++) {
        ok = value_is_number(v->item[i]);
    }
    if (!ok) {
        elab_error(e, name->loc, 331,
                   "a method is a list of numbers: the rows below the diagonal of its tableau, "
                   "then its weights, 1, 3, 6, 10, ... in all");
        return false;
    }
    m->stages = s;
    m->row = ARENA_ARRAY(e->arena, double, s *s);
    m->place = ARENA_ARRAY(e->arena, double, s);
    m->weight = ARENA_ARRAY(e->arena, double, s);
    int at = 0;
    for (int k = 1; k < s; k++) {
        for (int j = 0; j < k; j++) {
            m->row[k * s + j] = value_number(v->item[at++]);
            m->place[k] += m->row[k * s + j];
        }
    }
    for (int j = 0; j < s; j++) {
        m->weight[j] = value_number(v->item[at++]);
    }
    return true;
}

/* `rk4(steps = 10)` */
static bool read_method(Elab *e, const Ast *ast, Method *m) {
    const Ast *args = ast->kind == AST_CALL ? ast->kid[1] : NULL, *steps = NULL;
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        bool named = arg->kind == AST_ARG;
        if (named && (str_eq(arg->name, "rtol") || str_eq(arg->name, "atol") ||
                      str_eq(arg->name, "max"))) {
            elab_later(e, arg->loc, 289, "'ode' with steps of its own choice is not supported yet");
            diag_hint(&e->c->diag, "so many equal steps: steps = 100");
            return false;
        }
        steps = args->nkid == 1 && named && str_eq(arg->name, "steps") ? arg->kid[0] : NULL;
    }
    if (!steps || ast->kid[0]->kind != AST_NAME) {
        elab_error(e, ast->loc, 282, "'using' names a method and its steps: rk4(steps = 10)");
        return false;
    }
    const Value *v = elab_expr(e, ast->kid[0]);
    bool ok = elab_int(e, steps, "the number of steps", &m->steps);
    if (ok && (m->steps < 1 || m->steps >= INT32_MAX)) {
        elab_error(e, steps->loc, 300, "%lld steps are not possible", (long long)m->steps);
        ok = false;
    }
    return elab_ok(v) && ok && read_tableau(e, ast->kid[0], v, m);
}

/* --- what the solver computes ----------------------------------------------------------------- */

/* Where the time begins or ends, a scalar of the float type; NULL: an error was reported. */
static Node *read_time(Elab *e, const Ast *ast) {
    const Value *v = elab_single(e, ast, elab_expr(e, ast));
    if (!elab_ok(v) || !elab_plain(e, ast->loc, v)) {
        return NULL;
    }
    bool number = value_is_number(v), fits = v->kind == V_TENSOR && v->rank == 0 && v->nspan == 0;
    if (!number && !(fits && elem_is_float(value_elem(v)))) {
        elab_error(e, ast->loc, 383, "a time is a number or a float scalar, found %s",
                   value_text(e->arena, v));
        return NULL;
    }
    v = arith_tensor(e, ast->loc, v, e->g->float_type);
    return elab_ok(v) ? node_cast(e->g, v->node, e->g->float_type) : NULL;
}

static Type in_front(int64_t n, Type t) {
    Type stack = {.elem = t.elem, .rank = t.rank + 1, .dim = {n}};
    memcpy(stack.dim + 1, t.dim, sizeof *t.dim * (size_t)t.rank);
    return stack;
}

/* start + dt * sum over the stages of weight * slope */
static Node *moved(Graph *g, Node *start, Node *dt, Node *weight, Node *slopes) {
    int8_t of[1] = {0}, all[MD_RANK], rest[MD_RANK];
    int rank = start->type->rank;
    for (int i = 0; i <= rank; i++) {
        all[i] = (int8_t)i;
        rest[i] = (int8_t)(i + 1);
    }
    Node *sum = node_contract(g, weight, slopes, of, all, rest, rank);
    return node_map2(g, OP_ADD, start,
                     node_map2(g, OP_MUL, sum, node_cast(g, dt, start->type->elem)));
}

/* The slopes of the stages, that of stage `k` set to `slope`. */
static Node *with_slope(Graph *g, Node *slopes, Node *k, Node *slope) {
    Type t = *slopes->type, whole = t;
    whole.elem = TY_I32;
    Node *now = node_map2(g, OP_EQ, node_iota(g, whole, 0), k);
    return node_select(g, now, node_broadcast(g, slope, 1, t.rank, t.dim), slopes);
}

/* --- the statement ---------------------------------------------------------------------------- */

typedef struct {
    int carry, slopes; /* numbers in the loops over steps and stages */
    const Value *slope; /* y', once it is said */
} Flow;

static bool check_carries(Elab *e, const CarryVars *vars) {
    bool ok = true;
    for (int i = 0; i < vars->count; i++) {
        const CarryVar *var = &vars->at[i];
        if (!elem_is_float(var->start->node->type->elem) ||
            var->start->node->type->rank >= MD_RANK) {
            elab_error(e, var->loc, 405,
                       "'%s' is %s; what an ode carries are floats with less than %d axes",
                       var->name, value_text(e->arena, var->start), MD_RANK);
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

void ode_statement(Elab *e, const Ast *ast) {
    const Ast *carry = ast->kid[3], *body = ast->kid[4];
    Graph *g = e->g;
    Method m = {0};
    CarryVars vars = {0};
    if (e->loop && e->loop->depth + 2 >= MD_RANK) {
        loop_too_deep(e, ast);
        return;
    }
    bool ok = read_method(e, ast->kid[2], &m);
    Node *from = read_time(e, ast->kid[0]), *to = read_time(e, ast->kid[1]);
    ok = loop_read_carries(e, carry, &vars) && from && to && ok;
    if (!ok || !check_carries(e, &vars)) {
        stmt_poison(e, ast);
        return;
    }
    Elem real = g->float_type;
    Node *dt = node_map2(g, OP_DIV, node_map2(g, OP_SUB, to, from),
                         node_const(g, real, (double)m.steps));
    Scope *around = e->scope;
    e->scope = scope_new(e->scratch, around, around->file);
    LoopScope *steps = loop_scope_open(e, (Dim){.size = m.steps}, false);
    loop_checkpoint(steps->builder, stmt_has_attribute(ast, "checkpoint"));
    Flow *flow = ARENA_ARRAY(e->scratch, Flow, vars.count);
    for (int i = 0; i < vars.count; i++) {
        flow[i].carry = loop_carry(steps->builder, vars.at[i].start->node);
        graph_name(loop_carry_value(steps->builder, flow[i].carry), vars.at[i].name);
    }
    Node *begun = node_map2(
        g, OP_ADD, from,
        node_map2(g, OP_MUL, dt, node_cast(g, loop_index(steps->builder), real)));
    Type square = type_make(real, 2, (int64_t[]){m.stages, m.stages}), line = square;
    line.rank = 1;
    line.dim[1] = 0;
    Node *place = node_table(g, line, m.place);
    LoopScope *stages = loop_scope_open(e, (Dim){.size = m.stages}, false);
    stages->stages = true;
    Node *now = node_map2(g, OP_ADD, begun,
                          node_map2(g, OP_MUL, dt, loop_xs(stages->builder, place)));
    scope_add(e->scratch, e->scope, ast->name, ast->name_loc, BIND_VALUE,
              value_scalar(e->scratch, graph_name(now, ast->name)));
    for (int i = 0; i < vars.count; i++) {
        const CarryVar *var = &vars.at[i];
        Node *start = loop_carry_value(steps->builder, flow[i].carry);
        square.elem = start->type->elem;
        Region *inside = graph_enter(g, stages->outer);
        Node *none = node_full(g, in_front(m.stages, *start->type), 0);
        Node *rows = node_table(g, square, m.row);
        graph_leave(g, inside);
        flow[i].slopes = loop_carry(stages->builder, none);
        Node *slopes = loop_carry_value(stages->builder, flow[i].slopes);
        Node *y = moved(g, graph_import(g, start), dt, loop_xs(stages->builder, rows), slopes);
        ScopeName *name = scope_add(e->scratch, e->scope, var->name, var->loc, BIND_FLOW,
                                    value_with(e->scratch, var->start, graph_name(y, var->name)));
        name->ref = &flow[i];
    }
    int errors = e->errors;
    stages->scope = steps->scope = e->scope;
    stmt_block(e, body);
    e->scope = around;
    for (int i = 0; i < vars.count; i++) {
        if (!flow[i].slope && e->errors == errors) {
            elab_error(e, vars.at[i].loc, 341, "the body says nothing of %s' = ...",
                       vars.at[i].name);
        } else if (flow[i].slope && elab_ok(flow[i].slope)) {
            Node *slopes = loop_carry_value(stages->builder, flow[i].slopes);
            loop_next(stages->builder, flow[i].slopes,
                      with_slope(g, slopes, loop_index(stages->builder), flow[i].slope->node));
        }
    }
    Node *staged = loop_scope_close(e, stages);
    for (int i = 0; i < vars.count; i++) {
        Node *start = loop_carry_value(steps->builder, flow[i].carry);
        line.elem = start->type->elem;
        Node *slopes = loop_final(g, staged, flow[i].slopes);
        loop_next(steps->builder, flow[i].carry,
                  moved(g, start, dt, node_table(g, line, m.weight), slopes));
    }
    Node *done = loop_scope_close(e, steps);
    for (int i = 0; i < vars.count; i++) {
        const Value *v =
            value_with(e->scratch, vars.at[i].start, loop_final(g, done, flow[i].carry));
        loop_bind_result(e, &vars.at[i], v);
    }
    if (e->errors != errors) {
        stmt_poison(e, ast);
    }
}
