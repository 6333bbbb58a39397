/* model_copy: `state target = q;` is a second set of the parameters and layer states of model q,
 * under the paths target.* . It begins with the same values (the same draws), can be called like q,
 * and is no parameter of any train; only `<-` and `ema` change it. A copy is an instance whose
 * layer is the model. Its slots are made from those of the model when it is first met, so that they
 * all exist, in the model's order, even if no entry calls it. */
#include "lang/model_copy.h"

#include "lang/arith.h"
#include "lang/call.h"
#include "lang/expr.h"
#include "lang/half.h"
#include "lang/params.h"
#include "lang/scaler.h"
#include "lang/stmt.h"
#include "lang/train.h"
#include "lang/training.h"

#include <string.h>

Item *model_copy_of(const Elab *e, const Item *item) {
    const Ast *from =
        item && item->kind == AST_STATE && !item->ast->kid[0] ? item->ast->kid[2] : NULL;
    Item *model = from && from->kind == AST_NAME ? file_find(e->root, from->name) : NULL;
    return model && model->kind == AST_MODEL ? model : NULL;
}

bool model_copy_is(const Elab *e, const Item *item) {
    return model_copy_of(e, item) != NULL;
}

static Item *head_item(const Elab *e, const char *path) {
    const char *dot = strchr(path, '.');
    return file_find(e->root, dot ? str_ndup(e->arena, path, (size_t)(dot - path)) : path);
}

const char *model_copy_original(Elab *e, const char *path) {
    const char *dot = strchr(path, '.');
    const Item *model = dot ? model_copy_of(e, head_item(e, path)) : NULL;
    return model ? str_printf(e->arena, "%s%s", model->name, dot) : NULL;
}

/* --- slots ----------------------------------------------------------------------------------- */

static Slot *copy_slot(Elab *e, Slot *from, const char *path) {
    Type type = from->type;
    if (from->kind == SLOT_PARAM) { /* averages move by less than the digits of 16 bits */
        type.elem = elem_computed(type.elem);
    }
    Slot *slot = elab_state_slot(e, STATE_COPY, path, type, NULL, from->loc);
    slot->stacked = from->stacked;
    slot->doc = from->doc;
    slot->copy_of = from;
    return slot;
}

Parameter *model_copy_parameter(Elab *e, Parameter *p, const char *path) {
    Parameter *copy = ARENA_NEW(e->arena, Parameter);
    *copy = *p;
    copy->slot = copy_slot(e, p->slot, path);
    copy->order = e->param.count;
    if (copy->initial) {
        params_set_initial(e, copy->slot, copy->initial);
    }
    params_add(e, copy);
    return copy;
}

void model_copy_state(Elab *e, Slot *from, const char *path) {
    Slot *slot = copy_slot(e, from, path);
    if (params_initial(e, from)) {
        params_set_initial(e, slot, params_initial(e, from));
    }
}

static const char *path_in(Elab *e, const char *path, const Item *model, const Item *copy) {
    return str_printf(e->arena, "%s%s", copy->name, path + strlen(model->name));
}

Instance *model_copy_instance(Elab *e, Item *item, Loc loc) {
    if (item->instance || item->failed) {
        return item->instance;
    }
    Item *model = model_copy_of(e, item);
    if (!model) {
        BUG("'%s' is no copy of a model", item->name);
    }
    if (!call_ensure_model(e, model, loc)) {
        item->failed = true;
        return NULL;
    }
    int n = e->param.count, nstate = e->state.count;
    for (int i = 0; i < n; i++) {
        Parameter *p = e->param.at[i];
        if (p->slot->kind == SLOT_PARAM && params_under(p->slot->name, model->name)) {
            model_copy_parameter(e, p, path_in(e, p->slot->name, model, item));
        }
    }
    for (int i = 0; i < nstate; i++) {
        Slot *slot = e->state.at[i];
        if (slot->role == STATE_LAYER && params_under(slot->name, model->name)) {
            model_copy_state(e, slot, path_in(e, slot->name, model, item));
        }
    }
    Instance *instance = ARENA_NEW(e->arena, Instance);
    instance->item = model;
    instance->path = item->name;
    instance->loc = item->loc;
    item->instance = instance;
    return instance;
}

/* --- whole assignments ----------------------------------------------------------------------- */

bool model_copy_ensure(Elab *e, Item *head, Loc loc) {
    return head->kind == AST_MODEL ? call_ensure_model(e, head, loc)
                                   : model_copy_instance(e, head, loc) != NULL;
}

const Value *model_copy_each(Elab *e, const Ast *ast) {
    const char *path = e->each ? elab_path(e, ast) : NULL;
    Item *head = path ? head_item(e, path) : NULL;
    if (!head || (head->kind != AST_MODEL && !model_copy_is(e, head)) ||
        scope_find(e->scope, head->name)) {
        return NULL;
    }
    if (!model_copy_ensure(e, head, ast->loc)) {
        return &value_poison;
    }
    const Value *v = params_at(e, path);
    return v ? v : params_by_path(e, head, str_printf(e->arena, "%s.%s", path, e->each), ast->loc);
}

static void assign_each(Elab *e, const char *path, const char *rel, const Ast *target,
                        const Ast *right) {
    const char *full = str_printf(e->arena, "%s.%s", path, rel);
    e->each = rel;
    const Value *next = elab_single(e, right, elab_expr(e, right));
    e->each = NULL;
    /* One expression is for all of them, whatever they are stored as. */
    const Value *old = params_at(e, full);
    if (elab_ok(next) && elem_is_half(half_elem(old))) {
        next = arith_cast(e, right->loc, half_elem(old), next);
    }
    params_assign(e, full, next, target->loc, right->loc);
}

void model_copy_assign(Elab *e, Item *head, const char *path, const Ast *target, const Ast *right) {
    if (!model_copy_ensure(e, head, target->loc)) {
        return;
    }
    int errors = e->errors, n = e->param.count, nstate = e->state.count;
    size_t skip = strlen(path) + 1;
    for (int i = 0; i < n && e->errors == errors; i++) {
        const char *name = e->param.at[i]->slot->name;
        if (params_under(name, path)) {
            assign_each(e, path, name + skip, target, right);
        }
    }
    for (int i = 0; i < nstate && e->errors == errors; i++) {
        const Slot *slot = e->state.at[i];
        bool layer = slot->role == STATE_LAYER || slot->role == STATE_COPY;
        if (layer && params_under(slot->name, path) && !params_find(e, slot->name)) {
            assign_each(e, path, slot->name + skip, target, right);
        }
    }
}

/* --- moving averages ------------------------------------------------------------------------- */

void model_copy_ema_clause(Elab *e, Training *t, const Ast *clause) {
    const Ast *args = clause->kid[0];
    for (int i = 0; args && i < args->nkid; i++) {
        const Ast *arg = args->kid[i];
        Item *item = arg->kind == AST_ARG ? file_find(e->root, arg->name) : NULL;
        if (!model_copy_is(e, item)) {
            elab_error(e, arg->loc, 480,
                       "'ema' moves a second set of parameters: ema NAME = 0.999; with "
                       "'state NAME = MODEL;' at the top level");
            continue;
        }
        bool trained = false;
        for (int k = 0; k < t->of.count; k++) {
            trained = trained || params_under(t->of.at[k], model_copy_of(e, item)->name);
        }
        if (!trained) {
            elab_error(e, arg->loc, 481, "'%s' is a copy of '%s', which this train does not update",
                       item->name, model_copy_of(e, item)->name);
            continue;
        }
        Average a = {item, train_scalar(e, arg->kid[0], "the decay of 'ema'"), arg->loc};
        VEC_PUSH(e->arena, &t->average, a);
    }
}

/* What the slot holds after this update. */
static Node *next_value(Elab *e, const Training *t, Slot *slot) {
    for (int i = 0; i < t->update.count; i++) {
        if (t->update.at[i].param->slot == slot) {
            return t->update.at[i].next;
        }
    }
    for (int i = 0; i < e->entry->state.count; i++) {
        if (e->entry->state.at[i].slot == slot) {
            return e->entry->state.at[i].value;
        }
    }
    return node_slot(e->g, slot);
}

void model_copy_ema(Elab *e, Training *t) {
    for (int i = 0; i < t->average.count; i++) {
        const Average *a = &t->average.at[i];
        if (!elab_ok(a->decay) || !model_copy_instance(e, a->item, a->loc)) {
            continue;
        }
        for (int k = 0; k < e->state.count; k++) {
            Slot *slot = e->state.at[k];
            if (slot->role != STATE_COPY || !params_under(slot->name, a->item->name)) {
                continue;
            }
            Node *next = next_value(e, t, slot->copy_of);
            if (slot->copy_of->kind == SLOT_PARAM) { /* avg + (1 - d) * (p - avg) */
                Elem elem = slot->type.elem;
                Node *now = node_slot(e->g, slot);
                Node *part = node_map2(e->g, OP_SUB, node_const(e->g, elem, 1), a->decay->node);
                Node *move = node_map2(e->g, OP_MUL, part, node_map2(e->g, OP_SUB, next, now));
                next = node_map2(e->g, OP_ADD, now, move);
            }
            next = scaler_choose(e, t, next, node_slot(e->g, slot));
            params_write(e, slot, next, a->loc);
        }
    }
}
