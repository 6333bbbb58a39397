/* optim: the first clause whose `on` holds for a parameter updates it. A parameter that `repeat`
 * has stacked is updated in loops over its leading axes, so that norms, ranks and shapes are those
 * of one layer. Slots belong to (train, parameter). */
#include "lang/optim.h"

#include "lang/arith.h"
#include "lang/call.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/init.h"
#include "lang/loop.h"
#include "lang/modules.h"
#include "lang/owner.h"
#include "lang/params.h"
#include "lang/precision.h"
#include "lang/scaler.h"
#include "lang/stmt.h"
#include "lang/train.h"

#include <float.h>
#include <math.h>

typedef struct {
    const Ast *clause;
    Item *item;
    Arguments args; /* evaluated once; the same for all parameters */
} Optimizer;

const Value *train_under(Elab *e, const Ast *path) {
    const Training *t = e->entry ? e->entry->training : NULL;
    if (!t || !t->at) {
        return elab_error(e, path->loc, 539, "under(path) stands behind 'on' of an optimizer");
    }
    const char *prefix = elab_path(e, path);
    if (!prefix || !elab_ok(elab_expr(e, path))) {
        return prefix ? &value_poison
                      : elab_error(e, path->loc, 540, "under(path) takes a path: under(net.fc1)");
    }
    return value_bool(e->scratch, params_under(t->at->slot->name, prefix));
}

/* A number known now that would spoil every parameter in the first update. */
static bool check_number(Elab *e, const Value *v, Loc loc, const char *to, const char *optimizer) {
    bool bad = v->kind == V_REAL && (isnan(v->real) || (isinf(v->real) && str_eq(to, "lr")));
    if (bad) {
        elab_error(e, loc, 568, "'%s' of '%s' is %g; a finite number is needed", to, optimizer,
                   v->real);
    }
    return !bad;
}

/* `optimizer adamw(lr = 1e-3) on rank >= 2;` */
static bool read_clause(Elab *e, const Ast *clause, Optimizer *out) {
    const Ast *args = clause->kid[0], *call = args && args->nkid == 1 ? args->kid[0] : NULL;
    *out = (Optimizer){.clause = clause};
    if (!call || call->kind != AST_CALL || call->kid[0]->kind != AST_NAME) {
        elab_error(e, clause->loc, 541, "'optimizer' takes a call: optimizer adamw(lr = 3e-3);");
        return false;
    }
    const char *name = call->kid[0]->name;
    out->item = file_find(e->root, name);
    if (!out->item || out->item->kind != AST_OPTIMIZER) {
        const char *module = out->item ? NULL : modules_with(e, name);
        if (module && !elab_first(e, 242, module)) {
            return false;
        }
        elab_error(e, call->kid[0]->loc, 542,
                   out->item ? "'%s' is no optimizer" : "unknown optimizer '%s'", name);
        if (module) {
            diag_hint(&e->c->diag, "it is in the library: 'use %s;'", module);
            return false;
        }
        if (!out->item && elab_hint_foreign(e, name)) {
            return false;
        }
        Nearest n = nearest_start(name);
        for (int u = -1; u < e->root->use.count; u++) {
            const File *file = u < 0 ? e->root : e->root->use.at[u];
            for (int i = 0; i < file->item.count; i++) {
                if (file->item.at[i]->kind == AST_OPTIMIZER) {
                    nearest_add(&n, file->item.at[i]->name);
                }
            }
        }
        elab_hint_nearest(e, &n);
        return false;
    }
    const Ast *params = out->item->ast->kid[0];
    out->item->called = true;
    if (!params || params->nkid < 2) {
        elab_error(e, out->item->loc, 543,
                   "an optimizer takes the parameter and its gradient first: "
                   "optimizer %s(p: [...], g: [...], ...)",
                   name);
        return false;
    }
    bool ok = true;
    for (int i = 0; i < 2; i++) { /* p and g; their values come for each parameter */
        Argument arg = {.name = params->kid[i]->name, .loc = clause->loc};
        VEC_PUSH(e->arena, &out->args, arg);
    }
    for (int i = 0; call->kid[1] && i < call->kid[1]->nkid; i++) {
        const Ast *a = call->kid[1]->kid[i];
        Argument arg = {.loc = a->loc};
        if (a->kind == AST_ARG) {
            arg.name = a->name;
            a = a->kid[0];
        }
        e->entry->training->reading = clause;
        arg.value = elab_expr(e, a);
        e->entry->training->reading = NULL;
        const char *to = arg.name ? arg.name : 2 + i < params->nkid ? params->kid[2 + i]->name : "";
        ok = elab_ok(arg.value) && check_number(e, arg.value, a->loc, to, name) && ok;
        VEC_PUSH(e->arena, &out->args, arg);
    }
    return ok;
}

/* Does `on` hold for this parameter? -1 after an error. */
static int applies(Elab *e, Training *t, const Optimizer *o, const Parameter *p) {
    const Ast *on = o->clause->kid[1];
    if (!on) {
        return 1;
    }
    Scope *before = e->scope;
    e->scope = scope_new(e->scratch, before, before->file);
    scope_add(e->scratch, e->scope, "rank", on->loc, BIND_VALUE, value_int(e->scratch, p->rank));
    t->at = p;
    const Value *v = elab_expr(e, on);
    t->at = NULL;
    e->scope = before;
    if (elab_ok(v) && v->kind != V_BOOL) {
        elab_error(e, on->loc, 569, "'on' takes a condition such as rank >= 2, found %s",
                   value_kind_text(v));
        const char *path = v->kind == V_PATH || v->kind == V_TENSOR ? elab_path(e, on) : NULL;
        if (path) {
            diag_hint(&e->c->diag, "for the parameters under a path: under(%s)", path);
        }
        return -1;
    }
    return elab_ok(v) ? v->truth : -1;
}

/* Averages that fade away are read as zero: subnormal numbers say nothing and are slow to multiply
 * (docs/decisions/0010-fading-averages.md). */
static Node *without_subnormals(Elab *e, Node *n) {
    if (n->type->elem != TY_F32 && n->type->elem != TY_F64) {
        return n;
    }
    Elem elem = n->type->elem;
    Node *least = node_const(e->g, elem, elem == TY_F32 ? (double)FLT_MIN : DBL_MIN);
    Node *small = node_map2(e->g, OP_LT, node_map1(e->g, OP_ABS, n), least);
    return node_select(e->g, small, node_const(e->g, elem, 0), n);
}

/* The loops around, from the outermost; gives how many. */
static int open_loops(const Elab *e, LoopScope **loop) {
    int n = 0;
    for (const LoopScope *l = e->loop; l; l = l->up) {
        n++;
    }
    int at = n;
    for (LoopScope *l = e->loop; l; l = l->up) {
        loop[--at] = l;
    }
    return n;
}

/* What a state holds in front of the update. */
static Node *state_now(Elab *e, Slot *slot) {
    LoopScope *loop[MD_RANK];
    int nloop = open_loops(e, loop);
    return params_slices(e, slot, loop, nloop);
}

void train_optimizer_state(Elab *e, const Ast *ast) {
    Training *t = e->entry->training;
    const Parameter *p = t->at;
    const Value *v = &value_poison;
    Elem elem;
    int rank;
    Dim dim[MD_RANK];
    Slot *slot = NULL;
    LoopScope *loop[MD_RANK];
    int nloop = open_loops(e, loop);
    if (e->loop != e->frame->call_loop) {
        elab_error(e, ast->loc, 544, "'state' of an optimizer may not stand in a loop");
    } else if (!ast->kid[0]) {
        elab_error(e, ast->loc, 545, "'state %s' needs a type: state %s: [...] = 0;", ast->name,
                   ast->name);
    } else if (ast->flags & AST_DRAW) {
        elab_error(e, ast->loc, 546,
                   "the state of an optimizer starts from a value ('='), not a draw");
    } else if (dims_elem(e, ast->kid[0], &elem) && dims_eval_type(e, ast->kid[0], &rank, dim) &&
               params_stackable(e, ast->kid[0]->loc, loop, nloop, rank, dim)) {
        Type type = {.elem = elem == TY_ERROR ? TY_I32 : elem};
        for (int i = 0; i < p->slot->stacked + rank; i++) {
            int own = i - p->slot->stacked;
            type.dim[type.rank++] = own >= 0 ? dim[own].size : p->slot->type.dim[i];
        }
        const char *name = str_printf(e->arena, "%s.%s.%s", e->entry->name,
                                      params_file_name(e, p->slot->name), ast->name);
        slot = elab_state_slot(e, STATE_OPTIMIZER, name, type, e->entry->entry, ast->loc);
        slot->stacked = p->slot->stacked;
        Node *initial = init_value(e, ast->kid[2], type);
        if (initial) {
            params_set_initial(e, slot, initial);
            Node *node = without_subnormals(e, state_now(e, slot));
            v = value_tensor(e->scratch, node, rank, dim);
        }
    }
    ScopeName *n = scope_add(e->scratch, e->scope, ast->name, ast->name_loc,
                             elab_ok(v) ? BIND_UPDATED : BIND_VALUE, v);
    n->ref = slot;
}

/* The first rate, if it is one number for the whole train, is a result of the update. */
static void keep_rate(Elab *e, Training *t, const Value *v) {
    Region *before = graph_enter(e->g, e->entry->entry->region);
    if (value_is_number(v)) {
        v = arith_lift(e, e->g->loc, value_real(e->scratch, value_number(v)));
    }
    if (v->kind == V_TENSOR && v->rank == 0 && v->node->region == e->g->region) {
        t->rate = value_scalar(e->lasting, v->node);
    }
    graph_leave(e->g, before);
}

/* The written body for one tensor: values of the innermost loop. False after an error. */
static bool run_body(Elab *e, Training *t, Optimizer *o, Update *u, Node *p, Node *g) {
    Frame *frame = ARENA_NEW(e->scratch, Frame);
    Scope *before = e->scope;
    frame->draw_owner = frame;
    frame->draw_path = str_printf(e->arena, "update %s", u->param->slot->name);
    o->args.at[0].value = value_tensor(e->scratch, p, u->param->rank, u->param->dim);
    o->args.at[1].value = value_tensor(e->scratch, g, u->param->rank, u->param->dim);
    int errors = e->errors;
    if (!call_enter(e, o->item, &o->args, o->clause->loc, frame)) {
        return false;
    }
    uint32_t owner = owner_enter(e, o->item, NULL);
    const ScopeName *rate = scope_find_here(e->scope, "lr");
    if (!t->rate && rate) {
        keep_rate(e, t, rate->value);
    }
    const char *name = o->item->ast->kid[0]->kid[0]->name;
    ScopeName *updated = scope_find_here(e->scope, name);
    updated->kind = BIND_UPDATED;
    t->at = u->param;
    stmt_block(e, o->item->ast->kid[1]);
    owner_leave(e, owner);
    t->at = NULL;
    if (!updated->next && e->errors == errors) {
        elab_error(e, o->item->loc, 547, "optimizer '%s' never sets '%s <- ...'", o->item->name,
                   name);
    }
    if (e->errors == errors) {
        u->next = precision_next(e, u->param, scaler_choose(e, t, updated->next->node, p));
        for (int i = 0; i < e->scope->name.count; i++) {
            const ScopeName *s = e->scope->name.at[i];
            if (s->kind == BIND_UPDATED && s->ref) {
                Node *next = s->next ? s->next->node : s->value->node;
                if (t->scaler) {
                    next = scaler_choose(e, t, next, state_now(e, s->ref));
                }
                SlotUpdate state = {s->ref, next};
                VEC_PUSH(e->arena, &u->state, state);
            }
        }
    }
    call_leave(e, frame, before);
    return e->errors == errors;
}

/* One loop for each stacking axis that is left, then the body. */
static bool update_stack(Elab *e, Training *t, Optimizer *o, Update *u, int left, Node *p,
                         Node *g) {
    if (left == 0) {
        return run_body(e, t, o, u, p, g);
    }
    LoopScope *loop = loop_scope_open(e, (Dim){.size = p->type->dim[0]}, false);
    bool ok =
        update_stack(e, t, o, u, left - 1, loop_xs(loop->builder, p), loop_xs(loop->builder, g));
    int next = 0, *state = ARENA_ARRAY(e->arena, int, u->state.count);
    for (int i = 0; ok && i < u->state.count; i++) {
        state[i] = loop_emit(loop->builder, u->state.at[i].next);
    }
    if (ok) {
        next = loop_emit(loop->builder, u->next);
    }
    Node *node = loop_scope_close(e, loop);
    if (ok) {
        u->next = loop_stack(e->g, node, next);
        for (int i = 0; i < u->state.count; i++) {
            u->state.at[i].next = loop_stack(e->g, node, state[i]);
        }
    }
    return ok;
}

bool optim_apply(Elab *e, Training *t) {
    VEC(Optimizer) optimizers = {0};
    for (int i = 0; i < t->optimizer.count; i++) {
        Optimizer o;
        if (!read_clause(e, t->optimizer.at[i], &o)) {
            return false;
        }
        VEC_PUSH(e->arena, &optimizers, o);
    }
    for (int i = 0; i < t->update.count; i++) {
        Update *u = &t->update.at[i];
        Optimizer *first = NULL;
        for (int k = 0; !first && k < optimizers.count; k++) {
            int holds = applies(e, t, &optimizers.at[k], u->param);
            if (holds < 0) {
                return false;
            }
            first = holds ? &optimizers.at[k] : NULL;
        }
        if (!first) {
            elab_error(e, t->ast->loc, 548, "no optimizer of '%s' is for parameter '%s'",
                       e->entry->name, u->param->slot->name);
            diag_note(&e->c->diag, u->param->slot->loc, "it is declared here");
            diag_hint(&e->c->diag, "a last clause without 'on' takes what is left");
            return false;
        }
        Loc before = elab_at(e, first->clause->loc);
        Arena own = {0}, *scratch = e->scratch; /* there may be thousands of parameters */
        e->scratch = &own;
        bool ok = update_stack(e, t, first, u, u->param->slot->stacked, u->point, u->grad);
        e->scratch = scratch;
        arena_free(&own);
        e->g->loc = before;
        if (!ok) {
            return false;
        }
    }
    return true;
}
