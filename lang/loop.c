/* loop: the body of a loop is elaborated once; carries are names of its scope, and what it uses
 * from outside becomes an invariant of the LOOP by itself.
 *
 * The condition of a `while` is elaborated twice, of the carries' starts in front of the loop and
 * of their next values at the end of the body: what it gives is a carry that the loop looks at
 * before each iteration. Where it still holds behind the loop, the maximum was met; that goes
 * through the loops around, as a carry of each, to the entry, which ends with a status. */
#include "lang/loop.h"

#include "lang/arith.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/notation.h"
#include "lang/params.h"
#include "lang/stmt.h"

#include <string.h>

Node *loop_slice(LoopScope *loop, Node *stack) {
    return loop_xs(loop->builder, stack);
}

LoopScope *loop_scope_open(Elab *e, Dim trip, bool repeat) {
    LoopScope *loop = ARENA_NEW(e->scratch, LoopScope);
    loop->up = e->loop;
    loop->outer = e->g->region;
    loop->builder = loop_open(e->g, trip.size, false);
    loop->body = e->g->region;
    loop->trip = trip;
    loop->repeat = repeat;
    loop->depth = e->loop ? e->loop->depth + 1 : 0;
    loop->scope = e->scope;
    Value *index = ARENA_NEW(e->scratch, Value);
    *index = *value_ranged(e->scratch, value_scalar(e->scratch, loop_index(loop->builder)), 0,
                           trip.size > 0 ? trip.size : 1);
    index->loop = loop;
    loop->index = index;
    e->loop = loop;
    return loop;
}

Node *loop_scope_body(Elab *e, LoopScope *loop) {
    params_loop_closing(loop);
    if (loop->over) {
        loop_next(loop->builder, loop->over_carry, loop->over);
    }
    e->loop = loop->up;
    return loop_close(loop->builder);
}

void loop_scope_after(Elab *e, LoopScope *loop, Node *node, Node *const *final) {
    if (loop->over) {
        int k = loop->over_carry;
        loop_note_over(e, final ? final[k] : loop_final(e->g, node, k), loop->over_loc);
    }
    params_loop_closed(e, loop, node, final);
}

Node *loop_scope_close(Elab *e, LoopScope *loop) {
    Node *node = loop_scope_body(e, loop);
    loop_scope_after(e, loop, node, NULL);
    return node;
}

static bool read_trip(Elab *e, const Ast *expr, Dim *trip, const char **index) {
    *index = NULL;
    if (expr->kind == AST_BINARY && expr->op == AO_LT && expr->kid[0]->kind == AST_NAME) {
        *index = expr->kid[0]->name;
        expr = expr->kid[1];
    }
    const Value *v = elab_expr(e, expr);
    if (!elab_ok(v)) {
        return false;
    }
    if (v->kind != V_INT) {
        elab_error(e, expr->loc, 461,
                   "the number of iterations must be a compile-time integer, found %s",
                   v->kind == V_TENSOR && expr->kind == AST_NAME
                       ? str_printf(e->arena, "the run-time value '%s'", expr->name)
                   : v->kind == V_REAL ? value_text(e->arena, v)
                                       : value_kind_text(v));
        return false;
    }
    if (v->integer < 0 || v->integer >= INT32_MAX) {
        elab_error(e, expr->loc, 462, "%lld iterations are not possible", (long long)v->integer);
        return false;
    }
    *trip = value_to_dim(v);
    return true;
}

/* `max i < n` names an index that nothing could be stacked along. */
static bool no_index(Elab *e, const Ast *count) {
    elab_error(e, count->loc, 419, "'max' of a 'while' is a number; its iterations have no index");
    diag_hint(&e->c->diag, "carry a counter: 'carry n = 0 { ...; n <- n + 1; }'");
    return false;
}

bool loop_read_carries(Elab *e, const Ast *carry, CarryVars *vars) {
    bool ok = true;
    for (int i = 0; carry && i < carry->nkid; i++) {
        const Ast *ast = carry->kid[i];
        CarryVar var = {.name = ast->name, .loc = ast->loc};
        const Value *start;
        if (ast->kid[0]) {
            const ScopeName *old = scope_find_here(e->scope, ast->name);
            if (old) {
                elab_error(e, ast->loc, 295,
                           "'%s' has a value already, and after the loop the carry "
                           "would give it another",
                           ast->name);
                diag_note(&e->c->diag, old->loc, "it is set here");
                diag_hint(&e->c->diag, "'carry %s' alone goes on with that value", ast->name);
                ok = false;
            }
            start = elab_expr(e, ast->kid[0]);
        } else {
            var.outer = scope_find_here(e->scope, ast->name);
            Ast name = *ast;
            name.kind = AST_NAME;
            start = elab_name(e, &name);
            if (var.outer && (var.outer->kind == BIND_CARRY || var.outer->kind == BIND_STATE)) {
                elab_error(e, ast->loc, 296,
                           "'%s' is a carry or state here; give the inner loop's carry "
                           "another name: 'carry inner_%s = %s'",
                           ast->name, ast->name, ast->name);
                ok = false;
            }
        }
        int64_t lo = 0, hi = 0;
        const char *what = str_printf(e->arena, "the start of '%s'", ast->name);
        if (elab_ok(start) && ast->kid[1] &&
            (!dims_within(e, ast->kid[1], start, ast->loc, what) ||
             !dims_range(e, ast->kid[1], &lo, &hi))) {
            start = &value_poison;
        }
        if (elab_ok(start)) {
            start = arith_lift(e, ast->loc, start);
        }
        if (elab_ok(start) && ast->kid[1]) {
            start = value_ranged(e->scratch, start, lo, hi);
            var.range = ast->kid[1];
        }
        ok = elab_ok(start) && elab_plain(e, ast->loc, start) && ok;
        for (int k = 0; k < vars->count; k++) {
            if (str_eq(vars->at[k].name, var.name)) {
                elab_error(e, ast->loc, 297, "carry '%s' is named twice", var.name);
                ok = false;
            }
        }
        var.start = start;
        VEC_PUSH(e->arena, vars, var);
    }
    return ok;
}

void loop_bind_result(Elab *e, const CarryVar *var, const Value *v) {
    if (var->outer) {
        var->outer->value = v;
    } else if (!scope_find_here(e->scope, var->name)) {
        scope_add(e->scratch, e->scope, var->name, var->loc, BIND_VALUE, v);
    }
    if (v->kind == V_TENSOR && v->nspan == 0 && !e->scope->file->library) {
        graph_name(v->node, var->name);
    }
}

const Value *loop_in_front(Elab *e, const Value *v, Dim trip, Node *stack) {
    Value *r = ARENA_NEW(e->scratch, Value);
    *r = (Value){.kind = V_TENSOR, .ranged = v->ranged, .lo = v->lo, .hi = v->hi};
    Dim *dim = value_axes(e->scratch, r, 0, v->rank + 1).dim;
    r->rank = v->rank + 1;
    dim[0] = trip;
    for (int i = 0; i < v->rank; i++) {
        dim[1 + i] = v->dim[i];
    }
    r->node = stack;
    return r;
}

/* The stacked axis of an emit moves from the front to where the left side named the loop's index.
 */
static const Value *emitted_value(Elab *e, const LoopScope *loop, const Emitted *em, Node *node) {
    Node *stack = loop_stack(e->g, node, em->number);
    stack = em->reversed && loop->trip.size > 1 ? node_flip(e->g, stack, 1u) : stack;
    const Value *v = em->value;
    int map[MD_RANK], n = 0, place = v->nspan + em->position;
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_TENSOR;
    Dim *dim = value_axes(e->scratch, r, 0, v->rank + 1).dim;
    r->nspan = v->nspan;
    r->span = v->span;
    r->ranged = v->ranged;
    r->lo = v->lo;
    r->hi = v->hi;
    for (int i = 0; i < v->nspan + v->rank; i++) {
        if (n == place) {
            map[n++] = 0;
        }
        map[n++] = i + 1;
    }
    if (n == place) {
        map[n++] = 0;
    }
    for (int i = 0, k = 0; i <= v->rank; i++) {
        dim[r->rank++] = i == em->position ? loop->trip : v->dim[k++];
    }
    r->node = node_permute(e->g, stack, map);
    return r;
}

/* A loop without iterations has no body to take the shapes of its emits from. */
static void no_emits(Elab *e, const Ast *body) {
    for (int i = 0; i < body->nkid; i++) {
        const Ast *ast = body->kid[i];
        if (ast->kind != AST_EMIT) {
            continue;
        }
        elab_error(e, ast->loc, 466, "the loop has no iterations, so nothing is emitted");
        stmt_poison(e, ast);
    }
}

/* Has the stack of all iterations a possible shape? */
static bool stackable(Elab *e, const LoopScope *loop, const Value *v, Loc loc) {
    if (v->rank + v->nspan + 1 > MD_RANK) {
        elab_error(e, loc, 463,
                   "one value an iteration is stacked along one more axis, but a "
                   "tensor has at most %d axes",
                   MD_RANK);
        return false;
    }
    Value like = *v;
    value_axes(e->scratch, &like, v->nspan, v->rank + 1).dim[like.rank++] = loop->trip;
    return dims_possible(e, loc, &like);
}

/* --- conditions ------------------------------------------------------------------------------- */

bool loop_gives_status(Elab *e, Loc loc, const char *what) {
    const Entry *entry = e->entry ? e->entry->entry : NULL;
    bool alone = e->entry && !entry;
    bool called = entry && entry->kind != ENTRY_INIT && entry->kind != ENTRY_LOAD &&
                  entry->kind != ENTRY_EVAL_END;
    const Region *home = e->loop ? e->loop->body : called ? entry->region : NULL;
    if (alone || (called && e->g->region == home)) {
        return true;
    }
    elab_error(e, loc, 418,
               "%s stands in what entries and trains compute: %s could not say that the "
               "maximum was met",
               what, e->in_adjoint ? "an adjoint" : "this");
    diag_hint(&e->c->diag, e->in_adjoint ? "the derivative of the op itself needs no 'adjoint'"
                                         : "'scan' runs a fixed number of iterations");
    return false;
}

void loop_note_over(Elab *e, Node *over, Loc loc) {
    LoopScope *loop = e->loop;
    if (!loop) {
        if (e->entry->entry) {
            NodePlace place = {over, loc};
            VEC_PUSH(e->arena, &e->entry->over, place);
        }
        return;
    }
    if (!loop->over) {
        Region *before = graph_enter(e->g, loop->outer);
        Node *no = node_const(e->g, TY_BOOL, 0);
        graph_leave(e->g, before);
        loop->over_carry = loop_carry(loop->builder, no);
        loop->over = loop_carry_value(loop->builder, loop->over_carry);
        loop->over_loc = loc;
    }
    loop->over = node_map2(e->g, OP_OR, loop->over, over);
}

/* The condition of a `while` where its carries have these values; NULL: it has an error. */
static Node *condition(Elab *e, const Ast *ast, Scope *around, const CarryVars *vars,
                       const Value *const *value) {
    Scope *before = e->scope;
    int segments = e->frame->segment.count;
    int64_t draws = e->entry->draws;
    e->scope = scope_new(e->scratch, around, around->file);
    for (int i = 0; i < vars->count; i++) {
        scope_add(e->scratch, e->scope, vars->at[i].name, vars->at[i].loc, BIND_VALUE, value[i]);
    }
    const Value *v = elab_single(e, ast, elab_expr(e, ast));
    e->scope = before;
    if (!elab_ok(v) || !elab_plain(e, ast->loc, v)) {
        return NULL;
    }
    if (e->frame->segment.count != segments || e->entry->draws != draws) {
        elab_error(e, ast->loc, 417,
                   "the condition of 'while' owns no parameters and draws no numbers");
        diag_hint(&e->c->diag, "do that in the body, and carry what it gives");
        return NULL;
    }
    if (v->kind == V_BOOL) {
        elab_error(e, ast->loc, 416,
                   "the condition of 'while' is known when compiling: it is always %s",
                   v->truth ? "true" : "false");
        diag_hint(&e->c->diag, "it looks at the carries, and 'scan' needs no condition");
        return NULL;
    }
    if (v->kind != V_TENSOR || value_elem(v) != TY_BOOL || v->rank > 0 || v->nspan > 0) {
        elab_error(e, ast->loc, 415, "'while' needs one scalar condition, found %s",
                   v->nspan > 0 ? "one for each place of an index notation"
                                : value_text(e->arena, v));
        return NULL;
    }
    return v->node;
}

void loop_too_deep(Elab *e, const Ast *ast) {
    elab_error(e, ast->loc, 465, "loops stand in each other at most %d deep", MD_RANK);
    stmt_poison(e, ast);
}

/* A later value of the carry: it has the shape of the start, and a written range. */
static const Value *carried(Elab *e, const CarryVar *var, Node *node) {
    const Value *v = value_with(e->scratch, var->start, node);
    return var->range ? value_ranged(e->scratch, v, var->start->lo, var->start->hi) : v;
}

void loop_statement(Elab *e, const Ast *ast) {
    bool is_while = ast->kind == AST_WHILE;
    const Ast *test = is_while ? ast->kid[0] : NULL, *count = ast->kid[is_while];
    const Ast *carry = ast->kid[is_while + 1], *body = ast->kid[is_while + 2];
    Dim trip;
    const char *index = NULL;
    CarryVars vars = {0};
    if (e->loop && e->loop->depth + 1 >= MD_RANK) {
        loop_too_deep(e, ast);
        return;
    }
    bool ok = !is_while || loop_gives_status(e, ast->loc, "'while'");
    ok = ok && read_trip(e, count, &trip, &index);
    ok = ok && is_while && index ? no_index(e, count) : ok;
    ok = loop_read_carries(e, carry, &vars) && ok;
    const Value **value = ARENA_ARRAY(e->scratch, const Value *, vars.count + 1);
    for (int i = 0; i < vars.count; i++) {
        value[i] = vars.at[i].start;
    }
    Node *go = ok && is_while ? condition(e, test, e->scope, &vars, value) : NULL;
    if (!ok || (is_while && !go)) {
        stmt_poison(e, ast);
        return;
    }
    if (trip.size == 0) { /* no iteration: the carries keep their start */
        no_emits(e, body);
        if (is_while) {
            loop_note_over(e, go, test->loc);
        }
        for (int i = 0; i < vars.count; i++) {
            loop_bind_result(e, &vars.at[i], vars.at[i].start);
        }
        return;
    }
    LoopScope *loop = loop_scope_open(e, trip, ast->kind == AST_REPEAT);
    loop_checkpoint(loop->builder, stmt_checkpoint(e, ast, is_while));
    Scope *outer = e->scope;
    e->scope = scope_new(e->scratch, outer, outer->file);
    loop->scope = e->scope;
    loop->index_name = index;
    if (index) {
        scope_add(e->scratch, e->scope, index, count->kid[0]->loc, BIND_VALUE, loop->index);
    }
    int go_carry = go ? loop_carry(loop->builder, go) : 0;
    if (go) {
        graph_name(loop_carry_value(loop->builder, go_carry), "goes_on");
    }
    for (int i = 0; i < vars.count; i++) {
        vars.at[i].number = loop_carry(loop->builder, vars.at[i].start->node);
        Node *node = loop_carry_value(loop->builder, vars.at[i].number);
        graph_name(node, vars.at[i].name);
        ScopeName *n = scope_add(e->scratch, e->scope, vars.at[i].name, vars.at[i].loc, BIND_CARRY,
                                 carried(e, &vars.at[i], node));
        n->range = vars.at[i].range;
    }
    int errors = e->errors;
    stmt_block(e, body);
    for (int i = 0; i < vars.count; i++) {
        ScopeName *n = scope_find_here(e->scope, vars.at[i].name);
        if (!n->next) {
            if (e->errors == errors) {
                elab_warn(e, vars.at[i].loc, 298, "carry '%s' is never set: it keeps its start",
                          n->name);
            }
        } else if (elab_ok(n->next)) {
            loop_next(loop->builder, vars.at[i].number, n->next->node);
        }
        value[i] = n->next ? n->next : n->value;
    }
    e->scope = outer;
    if (go) {
        Node *next = e->errors == errors ? condition(e, test, outer, &vars, value) : NULL;
        loop_next(loop->builder, go_carry, next ? next : go);
        loop_while(loop->builder, go_carry);
    }
    for (int i = 0; i < loop->emitted.count; i++) {
        if (!elab_ok(loop->emitted.at[i].value)) {
            continue;
        }
        loop->emitted.at[i].number = loop_emit(loop->builder, loop->emitted.at[i].value->node);
    }
    Node *node = loop_scope_close(e, loop);
    if (go) {
        loop_note_over(e, loop_final(e->g, node, go_carry), test->loc);
    }
    for (int i = 0; i < vars.count; i++) {
        Node *final = loop_final(e->g, node, vars.at[i].number);
        loop_bind_result(e, &vars.at[i], carried(e, &vars.at[i], final));
    }
    for (int i = 0; i < loop->emitted.count; i++) {
        const Emitted *em = &loop->emitted.at[i];
        const Value *v = elab_ok(em->value) ? emitted_value(e, loop, em, node) : em->value;
        stmt_bind(e, em->name, em->loc, v);
    }
    if (e->errors != errors) {
        stmt_poison(e, ast);
    }
}

void loop_emit_statement(Elab *e, const Ast *ast) {
    const Ast *target = ast->kid[0], *right = ast->kid[1];
    if (!e->loop || e->loop == e->frame->call_loop || (e->loop->stages && !e->loop->times)) {
        elab_error(e, ast->loc, 299,
                   "'emit' stands in the body of 'repeat', 'scan' or 'while', or of an 'ode' with "
                   "'at'");
        stmt_poison(e, ast);
        return;
    }
    const Ast *name = target->kind == AST_INDEXED ? target->kid[0] : target;
    if (name->kind != AST_NAME) {
        elab_error(e, target->loc, 267,
                   "'emit' names a new tensor: 'emit y = ...' or 'emit y[i, t] = "
                   "...'");
        return;
    }
    Emitted em = {.name = name->name, .loc = name->loc};
    if (target->kind == AST_INDEXED) {
        LoopAxis axis = {.position = -1};
        em.value = notation_statement(e, target->kid[1], right, &axis);
        em.position = axis.position;
        em.reversed = axis.reversed;
        if (em.position < 0 && elab_ok(em.value)) {
            elab_error(e, target->loc, 464,
                       "the left side of 'emit' names no index of the loop, so it is "
                       "not clear where the stacked axis goes");
            diag_hint(&e->c->diag,
                      e->loop->times        ? "'emit %s = ...' stacks in front"
                      : e->loop->index_name ? "put '%s' among the indices"
                                            : "name the loop's index: 'scan %s < n'",
                      e->loop->times        ? em.name
                      : e->loop->index_name ? e->loop->index_name
                                            : "t");
            return;
        }
    } else {
        em.value = elab_expr(e, right);
    }
    if (elab_ok(em.value)) {
        em.value = arith_lift(e, right->loc, em.value);
    }
    if (elab_ok(em.value) &&
        (!elab_plain(e, right->loc, em.value) || !stackable(e, e->loop, em.value, name->loc))) {
        em.value = &value_poison;
    }
    for (int i = 0; i < e->loop->emitted.count; i++) {
        if (str_eq(e->loop->emitted.at[i].name, em.name)) {
            elab_error(e, target->loc, 268, "'%s' is emitted twice", em.name);
            return;
        }
    }
    VEC_PUSH(e->arena, &e->loop->emitted, em);
}
