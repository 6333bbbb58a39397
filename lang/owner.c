/* owner: whose a node is: its layer, and the op, layer or optimizer that does what it is part of,
 * as a reader of the model knows it: of calls in each other the outermost in the text of the model.
 *
 * Technique: an op has an owner of its own where text of the model calls it; what library items
 * call is theirs, but for layers, which have their path. */
#include "lang/owner.h"

#include <stdio.h>

static int owner_at(Elab *e, const Owner *owner, const char *key) {
    int i = names_at(&e->owners, key);
    if (i < 0) {
        i = e->module->owner.count;
        VEC_PUSH(e->arena, &e->module->owner, *owner);
        names_push(e->arena, &e->owners, str_dup(e->arena, key));
    }
    return i + 1;
}

static int layer_at(Elab *e, const Item *item, const char *path) {
    int i = names_at(&e->owners, path);
    if (i >= 0) {
        return i + 1;
    }
    Layer layer = {.path = path, .result = {.elem = TY_ERROR}};
    VEC_PUSH(e->arena, &e->module->layer, layer);
    Owner owner = {.layer = e->module->layer.count,
                   .does = item->name,
                   .itself = true,
                   .open = !item->file->library};
    return owner_at(e, &owner, path);
}

uint32_t owner_enter(Elab *e, const Item *item, const char *path) {
    uint32_t before = e->g->loc.owner;
    if (item->kind != AST_LAYER && item->kind != AST_MODEL) {
        return owner_enter_op(e, item->name);
    }
    e->g->loc.owner = (uint32_t)layer_at(e, item, path);
    return before;
}

uint32_t owner_enter_op(Elab *e, const char *does) {
    uint32_t before = e->g->loc.owner;
    const Owner *outer = before > 0 ? &e->module->owner.at[before - 1] : NULL;
    if (outer == NULL || outer->open) {
        Owner owner = {.layer = outer ? outer->layer : 0, .does = does};
        char key[256]; /* a longer name gives a coarser owner */
        snprintf(key, sizeof key, "%d %s", owner.layer, owner.does);
        e->g->loc.owner = (uint32_t)owner_at(e, &owner, key);
    }
    return before;
}

void owner_leave(Elab *e, uint32_t before) {
    e->g->loc.owner = before;
}

void owner_result(Elab *e, const Value *v) {
    int layer = e->module->owner.at[e->g->loc.owner - 1].layer;
    Layer *mine = &e->module->layer.at[layer - 1];
    bool first = mine->result.elem == TY_ERROR && v->kind == V_TENSOR && v->nspan == 0;
    mine->result = first ? *v->node->type : mine->result;
}
