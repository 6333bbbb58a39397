/* constant: values of the dims and constants of a file.
 *
 * A constant is elaborated once, apart from every entry, in a region of its own that nothing from
 * outside gets into: so all that it can be made of is known when compiling, and what is not has its
 * message there. Numbers are then used as they are. Tensors are copied, nodes and all, to where
 * they are used, where equal nodes become one. */
#include "lang/constant.h"

#include "lang/expr.h"
#include "lang/notation.h"

static bool rebound(const Elab *e, const Item *item, Dim *dim) {
    for (int i = 0; i < e->rebind.count; i++) {
        if (e->rebind.at[i].item == item) {
            *dim = e->rebind.at[i].dim;
            return true;
        }
    }
    return false;
}

/* Makes the nodes of v results of `home`. */
static void keep_nodes(Region *home, const Value *v) {
    if (v->kind == V_TENSOR) {
        region_result(home, v->node);
    }
    for (int i = 0; (v->kind == V_LIST || v->kind == V_RECORD) && i < v->count; i++) {
        keep_nodes(home, v->item[i]);
    }
}

/* What of the run the nodes read: a slot, or NULL. What else there is has its message where it is
 * read. */
static const Slot *slot_read(const Region *home) {
    for (int i = 0; i < home->node.count; i++) {
        if (home->node.at[i]->op == OP_SLOT) {
            return home->node.at[i]->attr->slot;
        }
    }
    return NULL;
}

static const Value *check_value(Elab *e, const Item *item, const Value *v) {
    Loc at = item->ast->kid[1]->loc;
    if (!elab_ok(v)) {
        return v;
    }
    if (item->kind == AST_DIMS) {
        if (v->kind == V_INT && v->integer >= 1) {
            return value_dim(e->scratch, (Dim){.size = v->integer, .name = item});
        }
        return elab_error(e, at, 201, "dim '%s' must be a positive compile-time integer, found %s",
                          item->name, value_text(e->arena, v));
    }
    const Slot *slot = slot_read(item->home);
    if (slot) {
        elab_error(e, at, 202, "const '%s' is known only at run time", item->name);
        diag_note(&e->c->diag, slot->loc, "it reads '%s', which is declared here", slot->name);
        return &value_poison;
    }
    if (v->kind == V_PATH || v->kind == V_INSTANCE) {
        elab_error(e, at, 610, "const '%s' is %s, which is no number or tensor", item->name,
                   value_kind_text(v));
        diag_hint(&e->c->diag, "use it by its own name, where it is called");
        return &value_poison;
    }
    return v;
}

static const Value *elaborate(Elab *e, Item *item) {
    const Ast *def = item->ast;
    Scope *scope = e->scope;
    Frame *frame = e->frame;
    LoopScope *loop = e->loop;
    EntryScope *entry = e->entry;
    IndexNotation *index = notation_save(e);
    Loc loc = e->g->loc;
    bool in_adjoint = e->in_adjoint;
    Frame top = {0};
    item->home = region_new(e->g, NULL);
    Region *region = graph_enter(e->g, item->home);
    e->scope = scope_new(e->scratch, NULL, item->file);
    e->frame = &top;
    e->loop = NULL;
    e->entry = NULL;
    e->in_adjoint = false;
    e->g->loc = item->loc;
    item->busy = true;
    const Value *v = def->kid[0] ? notation_statement(e, def->kid[0], def->kid[1], NULL)
                                 : elab_expr(e, def->kid[1]);
    item->busy = false;
    v = check_value(e, item, v);
    if (v->kind == V_TENSOR) {
        graph_name(v->node, item->name);
    }
    keep_nodes(item->home, v);
    graph_leave(e->g, region);
    e->g->loc = loc;
    e->scope = scope;
    e->frame = frame;
    e->loop = loop;
    e->entry = entry;
    e->in_adjoint = in_adjoint;
    notation_restore(e, index);
    return v;
}

/* --- tensors where they are used ------------------------------------------------------------- */

/* Elementwise work is made again with whatever reads it. More than that is done once, in front of
 * all loops. */
static bool is_elementwise(const Region *home) {
    for (int i = 0; i < home->node.count; i++) {
        OpClass cls = op_info[home->node.at[i]->op].cls;
        if (cls != CLASS_LEAF && cls != CLASS_VIEW && cls != CLASS_MAP) {
            return false;
        }
    }
    return true;
}

static const Value *with_nodes(Elab *e, const Value *v, Node *const *node, int *at) {
    if (v->kind == V_TENSOR) {
        Value *t = ARENA_NEW(e->scratch, Value);
        *t = *v;
        t->node = graph_import(e->g, node[(*at)++]);
        return t;
    }
    if (v->kind != V_LIST && v->kind != V_RECORD) {
        return v;
    }
    Value *all = ARENA_NEW(e->scratch, Value);
    *all = *v;
    all->item = ARENA_ARRAY(e->scratch, const Value *, v->count);
    for (int i = 0; i < v->count; i++) {
        all->item[i] = with_nodes(e, v->item[i], node, at);
    }
    return all;
}

static const Value *instantiate(Elab *e, const Item *item) {
    const Region *home = item->home;
    Region *here = e->g->region, *there = here;
    while (there->loop && !is_elementwise(home)) {
        there = there->up;
    }
    Node **node = ARENA_ARRAY(e->scratch, Node *, home->out.count);
    graph_enter(e->g, there);
    region_inline(e->g, home, NULL, node);
    graph_leave(e->g, here);
    int at = 0;
    return with_nodes(e, item->value, node, &at);
}

const Value *constant_value(Elab *e, Item *item, Loc loc) {
    bool before = item->loc.source == loc.source && loc.at < item->loc.at;
    if (before && item->file->ast->loc.source == loc.source) {
        elab_error(e, loc, 203, "'%s' is used before it is declared", item->name);
        diag_note(&e->c->diag, item->loc, "it is declared here");
        return &value_poison;
    }
    if (item->busy) {
        return elab_error(e, item->loc, 204, "'%s' is declared in terms of itself", item->name);
    }
    Dim dim;
    if (rebound(e, item, &dim)) {
        return value_dim(e->scratch, dim);
    }
    if (!item->value || item->stamp != e->stamp) {
        Arena *scratch = e->scratch;
        e->scratch = e->lasting;
        item->value = elaborate(e, item);
        item->stamp = e->stamp;
        e->scratch = scratch;
    }
    return item->home->out.count > 0 && e->g->region ? instantiate(e, item) : item->value;
}
