/* stmt: statements run in order; each sees the names before it. */
#include "lang/stmt.h"

#include "lang/accumulate.h"
#include "lang/arith.h"
#include "lang/call.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/loop.h"
#include "lang/model_copy.h"
#include "lang/naming.h"
#include "lang/notation.h"
#include "lang/ode.h"
#include "lang/params.h"
#include "lang/point.h"
#include "lang/train.h"

/* An attribute that changes nothing says so. */
static void idle_attribute(Elab *e, const Ast *ast, const Ast *attr) {
    bool checkpoint = str_eq(attr->name, "checkpoint");
    bool loop = ast->kind == AST_REPEAT || ast->kind == AST_SCAN || ast->kind == AST_WHILE ||
                ast->kind == AST_ODE;
    bool idle = ast->kind == AST_DATASET || ast->kind == AST_RING || ast->kind == AST_DATA_FIELD ||
                ast->kind == AST_DIMS || ast->kind == AST_CONSTS || ast->kind == AST_PARAM ||
                ast->kind == AST_STATE;
    if (str_eq(attr->name, "f32")) {
        if (idle) {
            elab_warn(e, attr->loc, 673,
                      "'@f32' has an effect before statements, layers, models and ops alone");
        }
    } else if (str_eq(attr->name, "keep") || str_eq(attr->name, "remat")) {
        if (!e->loop && !(e->frame && e->frame->up)) {
            elab_warn(e, attr->loc, 674, "'@%s' has an effect in loops alone", attr->name);
        }
    } else if (!checkpoint && !str_eq(attr->name, "name")) {
        elab_warn(e, attr->loc, 642, "'@%s' has no effect yet", attr->name);
    } else if (checkpoint && !loop) {
        elab_warn(e, attr->loc, 643,
                  "'@checkpoint' has an effect before loops alone");
    }
}

void stmt_attributes(Elab *e, const Ast *ast) {
    static const char *const known[] = {"keep", "remat", "checkpoint", "f32", "name", "bound"};
    for (int i = 0; i < ast->nattr; i++) {
        const char *name = ast->attr[i]->name;
        Nearest n = nearest_start(name);
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            found = found || str_eq(known[k], name);
            nearest_add(&n, known[k]);
        }
        if (found) {
            idle_attribute(e, ast, ast->attr[i]);
        } else {
            elab_warn(e, ast->attr[i]->loc, 270, "unknown attribute '@%s' has no effect", name);
            elab_hint_nearest(e, &n);
        }
    }
}

bool stmt_has_attribute(const Ast *ast, const char *name) {
    bool has = false;
    for (int i = 0; i < ast->nattr && !has; i++) {
        has = str_eq(ast->attr[i]->name, name);
    }
    return has;
}

int64_t stmt_checkpoint(Elab *e, const Ast *ast, bool ends_itself) {
    for (int i = 0; i < ast->nattr; i++) {
        const Ast *attr = ast->attr[i], *args = attr->nkid > 0 ? attr->kid[0] : NULL;
        int64_t every = CHECKPOINT_EACH;
        if (!str_eq(attr->name, "checkpoint")) {
            continue;
        }
        if (args && (args->nkid != 1 || args->kid[0]->kind == AST_ARG)) {
            elab_error(e, attr->loc, 695, "'@checkpoint' takes one number: @checkpoint(8) keeps "
                                          "the carries of every eighth iteration");
        } else if (args && elab_int(e, args->kid[0], "'@checkpoint'", &every) && every < 1) {
            elab_error(e, args->kid[0]->loc, 696,
                       "the carries of every %lld iterations cannot be kept", (long long)every);
            diag_hint(&e->c->diag, "'@checkpoint(8)' keeps those of every eighth");
            every = CHECKPOINT_EACH;
        }
        if (ends_itself && every > CHECKPOINT_EACH) {
            elab_warn(e, attr->loc, 644,
                      "a loop that ends by itself keeps the carries of every iteration");
            every = CHECKPOINT_EACH;
        }
        return every;
    }
    return CHECKPOINT_NONE;
}

bool stmt_bind(Elab *e, const char *name, Loc loc, const Value *v) {
    const ScopeName *old = scope_find_here(e->scope, name);
    if (old) {
        elab_error(e, loc, 271, "'%s' has a value already", name);
        diag_note(&e->c->diag, old->loc, "it is set here");
        if (old->kind == BIND_CARRY || old->kind == BIND_STATE || old->kind == BIND_UPDATED) {
            diag_hint(&e->c->diag, "'%s <- ...' sets the value for the next %s", name,
                      old->kind == BIND_CARRY ? "iteration" : "call");
        } else {
            diag_hint(&e->c->diag, "a name has one '='; use another name, or chain with '|>'");
        }
        return false;
    }
    if (v->kind == V_TENSOR && v->nspan == 0 && v->rank > 0 && !e->scope->file->library) {
        graph_name(v->node, name);
        graph_name(v->node->op == OP_POINT ? v->node->in[0] : v->node, name);
    }
    scope_add(e->scratch, e->scope, name, loc, BIND_VALUE, v);
    return true;
}

/* --- = ---------------------------------------------------------------------------------------- */

static void assign_several(Elab *e, const Ast *left, const Ast *right) {
    const Value *v = elab_expr(e, right);
    if (elab_ok(v) && (v->kind != V_RECORD || v->count != left->nkid)) {
        v = elab_error(e, right->loc, 272, "%d names on the left, %d result%s on the right",
                       left->nkid, v->kind == V_RECORD ? v->count : 1,
                       v->kind == V_RECORD && v->count > 1 ? "s" : "");
    }
    for (int i = 0; i < left->nkid; i++) {
        if (left->kid[i]->kind != AST_NAME) {
            elab_error(e, left->kid[i]->loc, 273, "several results are bound to plain names");
            continue;
        }
        const char *name = left->kid[i]->name;
        stmt_bind(e, name, left->kid[i]->loc, elab_ok(v) ? point_bind(e, name, v->item[i]) : v);
    }
}

static void assign(Elab *e, const Ast *ast) {
    const Ast *left = ast->kid[0], *right = ast->kid[1];
    if (left->nkid > 1) {
        assign_several(e, left, right);
        return;
    }
    const Ast *target = left->kid[0];
    if (target->kind == AST_NAME) {
        const Value *v =
            right->kind == AST_NEW ? call_new(e, right, target->name) : elab_expr(e, right);
        const bool names = right->kind == AST_NAME || right->kind == AST_DOT; /* what there is */
        v = names ? v : point_bind(e, target->name, v);
        stmt_bind(e, target->name, target->loc, v);
        return;
    }
    if (target->kind == AST_INDEXED && target->kid[0]->kind == AST_NAME) {
        const Value *v = notation_statement(e, target->kid[1], right, NULL);
        const char *name = target->kid[0]->name;
        v = point_bind(e, name, v);
        if (elab_ok(v) || !scope_find_here(e->scope, name)) {
            stmt_bind(e, name, target->kid[0]->loc, v);
        }
        return;
    }
    if (target->kind == AST_ERROR) {
        return;
    }
    elab_error(e, target->loc, 274, "the left side of '=' is a name, or a name with indices");
    if (target->kind == AST_DOT) {
        diag_hint(&e->c->diag, "a label names a layer and its parameters: %s: linear(x, 8)",
                  target->name);
    }
}

/* --- <- --------------------------------------------------------------------------------------- */

const Value *stmt_like(Elab *e, const Value *old, const Value *next, const char *name, Loc loc) {
    if (!elab_ok(next) || !elab_ok(old)) {
        return NULL;
    }
    next = arith_tensor(e, loc, next, value_elem(old));
    if (!elab_ok(next) || !elab_plain(e, loc, next)) {
        return NULL;
    }
    bool fits = next->kind == V_TENSOR && value_elem(next) == value_elem(old) &&
                (next->rank == old->rank || next->rank == 0) && next->nspan <= old->nspan;
    for (int i = 0; fits && i < next->rank; i++) {
        fits = dims_agree(next->dim[i], old->dim[i]);
    }
    if (!fits) {
        elab_error(e, loc, 460, "the next value of '%s' is %s, but it is %s", name,
                   value_text(e->arena, next), value_text(e->arena, old));
        return NULL;
    }
    Node *node = arith_spread(e, next, old->span, old->nspan, old->rank, old->dim);
    return value_with(e->scratch, old, node);
}

static void update_parameter(Elab *e, const Ast *target, const Ast *right) {
    const char *path = elab_path(e, target);
    const Value *old = path ? elab_expr(e, target) : NULL;
    if (old && old->kind == V_PATH) {
        model_copy_assign(e, old->model, path, target, right);
        return;
    }
    const Value *next = elab_expr(e, right);
    if (!old) {
        elab_error(e, target->loc, 275,
                   "the left side of '<-' is a carry, a state, a parameter or 'p' of "
                   "an optimizer");
    } else if (elab_ok(old) && elab_ok(next)) {
        params_assign(e, path, next, target->loc, right->loc);
    }
}

static void update_name(Elab *e, ScopeName *n, const Ast *target, const Ast *right) {
    const Value *old = n->kind == BIND_STATE ? params_state_value(e, n->ref) : n->value;
    const Value *next = elab_single(e, right, elab_expr(e, right));
    if (n->next) {
        elab_error(e, target->loc, 278, "'%s' has its next value already", n->name);
        diag_note(&e->c->diag, n->next_loc, "it is set here");
        return;
    }
    const char *what = str_printf(e->arena, "the next value of '%s'", n->name);
    if (n->range && elab_ok(next) && !dims_within(e, n->range, next, right->loc, what)) {
        next = &value_poison;
    }
    const Slot *slot = n->kind == BIND_STATE     ? ((const StateUse *)n->ref)->slot
                       : n->kind == BIND_UPDATED ? n->ref
                                                 : NULL;
    const Value *given = next;
    next = half_next(e, slot, given, stmt_like(e, old, next, n->name, right->loc), n->name,
                     right->loc);
    if (n->range && next) {
        next = value_ranged(e->scratch, next, old->lo, old->hi);
    }
    n->value = old;
    n->next = next ? next : &value_poison;
    n->next_loc = target->loc;
    if (next && n->kind == BIND_STATE) {
        params_state_write(e, n->ref, next, target->loc);
    }
}

static bool can_update(BindKind kind) {
    return kind == BIND_CARRY || kind == BIND_STATE || kind == BIND_UPDATED;
}

static void update(Elab *e, const Ast *ast) {
    const Ast *left = ast->kid[0], *right = ast->kid[1], *target = left->kid[0];
    if (left->nkid > 1) {
        elab_error(e, left->loc, 279, "'<-' sets one name");
        return;
    }
    if (target->kind != AST_NAME) {
        if (target->kind != AST_ERROR) {
            update_parameter(e, target, right);
        }
        return;
    }
    ScopeName *n = scope_find(e->scope, target->name);
    if (n && can_update(n->kind)) {
        if (n->kind != BIND_STATE && !scope_find_here(e->scope, target->name)) {
            elab_error(e, target->loc, 280,
                       "'%s' belongs to an outer loop; it is set in its own body", target->name);
            return;
        }
        update_name(e, n, target, right);
        return;
    }
    if (n) {
        if (n->kind == BIND_VALUE && !elab_ok(n->value)) {
            return; /* a state or carry whose declaration failed */
        }
        elab_error(e, target->loc, 281,
                   "'%s' is no carry, state or parameter, so '<-' cannot set it", target->name);
        diag_note(&e->c->diag, n->loc, "it is set here");
        return;
    }
    Item *item = file_find(e->scope->file, target->name);
    bool lasting = item && (item->kind == AST_MODEL || item->kind == AST_STATE);
    if (lasting && !elab_outside_adjoint(e, target->loc, item->name)) {
        return;
    }
    if (item && (item->kind == AST_MODEL || model_copy_is(e, item))) {
        model_copy_assign(e, item, item->name, target, right);
        return;
    }
    if (item && item->kind == AST_STATE) {
        if (e->frame->item && e->frame->item->kind == AST_OP) {
            elab_error(e, target->loc, 467,
                       "an op is a pure function and sets no state; the entry or train that calls "
                       "it does");
            return;
        }
        const StateUse *use = params_top_state(e, item, target->loc);
        if (use) {
            /* bound here, so that reading it afterwards is seen */
            n = scope_add(e->scratch, e->scope, item->name, item->loc, BIND_STATE, &value_poison);
            n->ref = (void *)use;
            update_name(e, n, target, right);
        }
        return;
    }
    if (!elab_first_in_body(e, 205, target->name)) {
        return;
    }
    elab_error(e, target->loc, 283, "unknown name '%s' before '<-'", target->name);
    Nearest near = nearest_start(target->name);
    nearest_scope(&near, e->scope);
    elab_hint_nearest(e, &near);
}

/* --- the rest --------------------------------------------------------------------------------- */

static bool has_return(const Ast *ast) {
    bool found = ast && ast->kind == AST_RETURN;
    for (int i = 0; ast && !found && i < ast->nkid; i++) {
        found = has_return(ast->kid[i]);
    }
    return found;
}

/* What a block that could not be elaborated would have named is poison, so that nothing cascades.
 */
void stmt_poison(Elab *e, const Ast *ast) {
    if (!ast) {
        return;
    }
    const char *name = NULL;
    if (ast->kind == AST_ASSIGN) {
        for (int i = 0; i < ast->kid[0]->nkid; i++) {
            stmt_poison(e, ast->kid[0]->kid[i]);
        }
        return;
    }
    if (ast->kind == AST_EMIT) {
        stmt_poison(e, ast->kid[0]);
        return;
    }
    if (ast->kind == AST_INDEXED) {
        stmt_poison(e, ast->kid[0]);
        return;
    }
    if (ast->kind == AST_NAME || ast->kind == AST_PARAM || ast->kind == AST_DATA_FIELD ||
        ast->kind == AST_STATE || ast->kind == AST_DEF || ast->kind == AST_CARRY_VAR) {
        name = ast->name;
    } else if (ast->kind == AST_WHEN || ast->kind == AST_BLOCK || ast->kind == AST_CONSTS ||
               ast->kind == AST_CARRY) {
        for (int i = ast->kind == AST_WHEN ? 1 : 0; i < ast->nkid; i++) {
            stmt_poison(e, ast->kid[i]);
        }
    } else if (ast->kind == AST_REPEAT || ast->kind == AST_SCAN || ast->kind == AST_WHILE ||
               ast->kind == AST_ODE) {
        /* after a loop its carries and emits are named */
        const Ast *body = ast->kid[ast->nkid - 1];
        stmt_poison(e, ast->kid[ast->nkid - 2]);
        for (int i = 0; i < body->nkid; i++) {
            if (body->kid[i]->kind == AST_EMIT) {
                stmt_poison(e, body->kid[i]);
            }
        }
    }
    ScopeName *old = name ? scope_find_here(e->scope, name) : NULL;
    if (old && ast->kind == AST_CARRY_VAR) {
        old->value = &value_poison;
    } else if (name && !old) {
        scope_add(e->scratch, e->scope, name, ast->loc, BIND_VALUE, &value_poison);
    }
}

/* Does the condition ask for `train` or `infer`? */
static bool asks_mode(const Ast *ast) {
    bool mode = ast->kind == AST_NAME && (str_eq(ast->name, "train") || str_eq(ast->name, "infer"));
    for (int i = 0; !mode && i < ast->nkid; i++) {
        mode = ast->kid[i] && asks_mode(ast->kid[i]);
    }
    return mode;
}

static void when_statement(Elab *e, const Ast *ast) {
    bool condition;
    if (!elab_condition(e, ast->kid[0], &condition)) {
        stmt_poison(e, ast);
        e->frame->returned = e->frame->returned || has_return(ast);
        if (e->frame->returned && !e->frame->result) {
            e->frame->result = &value_poison;
        }
        return;
    }
    const Ast *taken = condition ? ast->kid[1] : ast->kid[2];
    if (!taken) {
        return;
    }
    bool by_mode = e->entry && asks_mode(ast->kid[0]);
    if (by_mode) {
        e->entry->by_mode++;
    }
    if (taken->kind == AST_WHEN) {
        when_statement(e, taken);
    } else {
        stmt_block(e, taken); /* its names stay visible after it */
    }
    if (by_mode) {
        e->entry->by_mode--;
    }
}

static void constants(Elab *e, const Ast *ast) {
    for (int i = 0; i < ast->nkid; i++) {
        const Ast *def = ast->kid[i];
        const Value *v = def->kid[0] ? notation_statement(e, def->kid[0], def->kid[1], NULL)
                                     : elab_expr(e, def->kid[1]);
        if (v->kind == V_TENSOR && !def->kid[0]) {
            v = elab_error(e, def->kid[1]->loc, 202, "const '%s' is known only at run time",
                           def->name);
            diag_hint(&e->c->diag, "without 'const' it is an ordinary name");
        }
        stmt_bind(e, def->name, def->name_loc, v);
    }
}

/* The arguments of a `return`: one value, or a record. */
static const Value *results(Elab *e, const Ast *ast) {
    int n = ast->nkid;
    if (n == 1 && ast->kid[0]->kind != AST_ARG) {
        return elab_expr(e, ast->kid[0]);
    }
    Value *r = ARENA_NEW(e->scratch, Value);
    r->kind = V_RECORD;
    r->count = n;
    r->item = ARENA_ARRAY(e->arena, const Value *, n);
    r->field = ARENA_ARRAY(e->arena, const char *, n);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        const Ast *arg = ast->kid[i];
        bool named = arg->kind == AST_ARG;
        r->field[i] = named                   ? arg->name
                      : arg->kind == AST_NAME ? arg->name
                                              : str_printf(e->arena, "out%d", i);
        r->item[i] = elab_expr(e, named ? arg->kid[0] : arg);
        ok = elab_ok(r->item[i]) && ok;
        for (int k = 0; k < i; k++) {
            if (str_eq(r->field[k], r->field[i])) {
                elab_error(e, arg->loc, 286, "result '%s' is returned twice", r->field[i]);
                ok = false;
            }
        }
    }
    return ok ? r : &value_poison;
}

static void return_statement(Elab *e, const Ast *ast) {
    if (e->loop != e->frame->call_loop) {
        elab_error(e, ast->loc, 287,
                   "'return' may not stand in a loop; what a loop gives are its carries "
                   "and emits");
        e->frame->result = &value_poison;
    } else {
        e->frame->result = results(e, ast);
        e->frame->result_loc = ast->loc;
    }
    e->frame->returned = true;
}

static void expression(Elab *e, const Ast *ast) {
    for (int i = 0; i < ast->nkid; i++) {
        const Value *v = elab_expr(e, ast->kid[i]);
        if (elab_ok(v) && v != &value_nothing) {
            elab_warn(e, ast->kid[i]->loc, 288, "the value of this expression is not used");
        }
    }
}

static void statement(Elab *e, const Ast *ast) {
    stmt_attributes(e, ast);
    switch (ast->kind) {
    case AST_ASSIGN: assign(e, ast); break;
    case AST_UPDATE: update(e, ast); break;
    case AST_EXPR_STMT: expression(e, ast); break;
    case AST_CONSTS: constants(e, ast); break;
    case AST_PARAM: params_declare(e, ast); break;
    case AST_STATE:
        if (e->frame->item && e->frame->item->kind == AST_OPTIMIZER) {
            train_optimizer_state(e, ast);
        } else {
            params_declare_state(e, ast);
        }
        break;
    case AST_EMIT: loop_emit_statement(e, ast); break;
    case AST_RETURN: return_statement(e, ast); break;
    case AST_CLAUSE: train_clause(e, ast); break;
    case AST_WHEN: when_statement(e, ast); break;
    case AST_REPEAT:
    case AST_SCAN:
    case AST_WHILE: loop_statement(e, ast); break;
    case AST_ODE: ode_statement(e, ast); break;
    case AST_DERIV: ode_derivative(e, ast); break;
    case AST_DATA_FIELD:
        elab_error(e, ast->loc, 292, "'%s: type = ...' stands only in a dataset", ast->name);
        diag_hint(&e->c->diag, "in a body write '%s = ...'; 'as [..]' gives a shape", ast->name);
        stmt_poison(e, ast);
        break;
    case AST_ERROR: break;
    default: BUG("%s is no statement", ast_kind_name(ast->kind));
    }
}

static void add_hint(Elab *e, const Node *n, bool keep) {
    const KeepHint hint = {.loc = n->loc, .op = n->op, .keep = keep};
    for (int i = 0; i < e->g->hint.count; i++) {
        const KeepHint *old = &e->g->hint.at[i];
        if (loc_equal(old->loc, hint.loc) && old->op == hint.op) {
            return;
        }
    }
    VEC_PUSH(e->g->keep, &e->g->hint, hint);
}

/* `@keep` is of what the statement ends in, `@remat` of all that it makes from node `from` on. */
static void note_hints(Elab *e, const Ast *ast, const Region *region, int from) {
    int end = region->node.count;
    if (e->loop && from < end && stmt_has_attribute(ast, "keep")) {
        add_hint(e, region->node.at[end - 1], true);
    }
    for (int i = from; e->loop && i < end && stmt_has_attribute(ast, "remat"); i++) {
        if (op_info[region->node.at[i]->op].cls == CLASS_CALL) {
            add_hint(e, region->node.at[i], false);
        }
    }
}

void stmt_one(Elab *e, const Ast *ast) {
    Loc before = elab_at(e, ast->loc);
    const Region *region = e->g->region;
    const int from = region->node.count;
    Naming *naming = naming_open(e, ast);
    bool exact = e->g->exact;
    e->g->exact = exact || stmt_has_attribute(ast, "f32");
    statement(e, ast);
    e->g->exact = exact;
    note_hints(e, ast, region, from);
    naming_close(e, naming);
    e->g->loc = before;
}

/* An evaluation writes nothing, so what its train assigns and pushes is left out of it. */
static bool without_effect(const Elab *e) {
    return e->entry && e->entry->evaluation && !e->frame->up && !e->loop;
}

void stmt_block(Elab *e, const Ast *block) {
    for (int i = 0; i < block->nkid; i++) {
        const Ast *ast = block->kid[i];
        if (e->frame->returned) {
            elab_error(e, ast->loc, 294, "nothing may follow 'return'");
            return;
        }
        bool sets = ast->kind == AST_UPDATE || ast->kind == AST_EXPR_STMT;
        if (!sets || (!without_effect(e) && !accumulate_defers(e, ast))) {
            stmt_one(e, ast);
        }
    }
}
