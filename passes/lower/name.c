/* name: what temporaries are called: by the layer that they belong to and what they are, gradients
 * by what they are of.
 *
 * Technique: what a write of a parameter reads elementwise, has its type, is no slot, and lies in
 * front of the check of the gradients or is made otherwise than elementwise, is its gradient, if
 * there is one such value only. What goes into gradients and not into the loss has a d_ in front.
 * Needs a fused region; gives names, which tell no pass anything. */
#include "passes/lower/build.h"
#include "passes/view.h"

#include <stdlib.h>
#include <string.h>

/* "fc1.weight" of "net.fc1.weight". */
static const char *inside_model(const char *path) {
    const char *dot = strchr(path, '.');
    return dot ? dot + 1 : NULL;
}

static const Owner *owner_of(const Lower *l, const Node *node) {
    return module_owner(l->p->module, node->loc);
}

/* The layer that a node is of, without the model: "fc1"; NULL: none. */
static const char *layer_of(const Lower *l, const Node *node) {
    const Module *module = l->p->module;
    int layer = module_layer(module, node->loc);
    return layer > 0 ? inside_model(module->layer.at[layer - 1].path) : NULL;
}

/* The item of the library, or op of the model, that does it; NULL: the operation stands there. */
static const char *doer_of(const Lower *l, const Node *node) {
    const Owner *owner = owner_of(l, node);
    return owner && !owner->open ? owner->does : NULL;
}

const char *short_name(const Lower *l, const Node *node) {
    if (node->op == OP_SLOT) {
        const char *path = node->attr->slot->name, *name = inside_model(path);
        return str_dup(l->arena, name ? name : path);
    }
    if (node->name) {
        const char *dot = strrchr(node->name, '.');
        return dot ? dot + 1 : node->name;
    }
    if (node->op == OP_CAST && op_info[node->in[0]->op].cls == CLASS_FOLD) {
        return short_name(l, node->in[0]); /* the same in fewer bytes */
    }
    const char *does = doer_of(l, node), *op = op_info[node->op].name;
    bool fold = op_info[node->op].cls == CLASS_FOLD;
    op = strncmp(op, "fold_", 5) == 0 ? op + 5 : node->op == OP_CONTRACT ? "product" : op;
    if (!does || node->op == OP_LOOP) {
        return op;
    }
    if (owner_of(l, node)->itself) { /* its path stands in front */
        return node->op == OP_CONTRACT ? does : op;
    }
    return fold ? str_printf(l->arena, "%s_%s", does, op) : does;
}

typedef struct {
    Frame *f;
    const Type *type;
    const Node *found;
    bool several;
} Search;

static void search(Search *s, const Node *node) {
    const NodeInfo *info = &s->f->fusion->info[node->id];
    if (s->f->met[node->id] == s->f->turn) {
        return;
    }
    s->f->met[node->id] = s->f->turn;
    bool elementwise = op_info[node->op].cls == CLASS_MAP || op_info[node->op].cls == CLASS_VIEW;
    bool slot = info->leaf && node->op != OP_PICK;
    bool source = info->early ? node->op == OP_PICK || info->stored : !elementwise;
    if (source && !slot && !info->made && type_equal(*node->type, *s->type)) {
        s->several = s->found != NULL;
        s->found = node;
    }
    if (elementwise && !info->early) {
        for (int k = 0; k < node->nin; k++) {
            search(s, node->in[k]);
        }
    }
}

/* In the body of a loop: what its results are, which are gradients outside. */
static void name_body_gradients(Frame *f) {
    const LoopHomes *homes = &f->up->loops[f->node->id];
    f->gradient = ARENA_ARRAY(f->l->scratch, const Slot *, f->region->node.count + 1);
    for (int i = 0; f->up->gradient && i < homes->picks.count; i++) {
        const Node *pick = homes->picks.at[i];
        f->gradient[f->region->out.at[pick->attr->axis]->id] = f->up->gradient[pick->id];
    }
}

void name_gradients(Frame *f) {
    const Entry *entry = f->l->e->entry;
    f->met = ARENA_ARRAY(f->l->scratch, uint32_t, f->region->node.count + 1);
    if (entry->kind != ENTRY_TRAIN) {
        return;
    }
    if (f->up) {
        name_body_gradients(f);
        return;
    }
    Search s = {.f = f};
    f->gradient = ARENA_ARRAY(f->l->scratch, const Slot *, f->region->node.count + 1);
    f->backward = ARENA_ARRAY(f->l->scratch, bool, f->region->node.count + 1);
    for (int k = 0; k < entry->out.count; k++) {
        const Slot *slot = entry->out.at[k].slot;
        if (entry->out.at[k].role == OUT_WRITE && slot->kind == SLOT_PARAM) {
            s.type = f->region->out.at[k]->type;
            s.found = NULL;
            s.several = false;
            f->turn++;
            const Node *next = view_base(f->region->out.at[k]);
            if (next->op != OP_PICK) {
                search(&s, next);
            }
            for (int i = 0; next->op == OP_PICK && i < next->in[0]->nin; i++) {
                search(&s, next->in[0]->in[i]); /* an update loop over stacked parameters */
            }
            bool held = s.found && (s.found->op == OP_PICK || f->fusion->info[s.found->id].stored);
            if (s.found && !s.several) {
                f->backward[s.found->id] = true;
                if (held && !f->gradient[s.found->id]) {
                    f->gradient[s.found->id] = slot;
                }
            }
        }
    }
    for (int i = f->region->node.count - 1; i >= 0; i--) {
        const Node *node = f->region->node.at[i];
        for (int k = 0; f->backward[i] && k < node->nin; k++) {
            f->backward[node->in[k]->id] = !f->fusion->info[node->in[k]->id].forward;
        }
    }
}

typedef struct {
    const char *name, *role; /* d_fc1.out, d_out */
} Name;

static Name full_name(const Frame *f, const Node *node) {
    Arena *arena = f->l->arena;
    const char *layer = layer_of(f->l, node), *own = short_name(f->l, node);
    const char *dot = node->name ? strrchr(node->name, '.') : NULL;
    if (dot) { /* a layer's result */
        layer = str_printf(arena, "%.*s", (int)(dot - node->name), node->name);
    }
    bool known = node->name && strncmp(own, "d_", 2) == 0;
    own += known ? 2 : 0;
    const char *d = known || (f->backward && f->backward[node->id]) ? "d_" : "";
    const char *role = str_printf(arena, "%s%s", d, own);
    return (Name){layer ? str_printf(arena, "%s%s.%s", d, layer, own) : role, role};
}

/* The parameter or state that `node` is a view of, seen through loops; NULL: none. */
static const Slot *slot_behind(const Frame *f, const Node *node) {
    node = view_base(node);
    while (node->op == OP_BODY_PARAM && node->attr->axis > f->node->attr->ncarry) {
        node = view_base(f->node->in[node->attr->axis - 1]);
        f = f->up;
    }
    bool slot = node->op == OP_SLOT && node->attr->slot->kind == SLOT_PARAM;
    return slot ? node->attr->slot : NULL;
}

typedef VEC(const Node *) NodeList;

enum { MOST_NODES = 256, MOST_PLACES = 24, MOST_DOERS = 3 };

/* What the unit computes besides constants: its atoms, and what their expressions hold. */
static NodeList unit_nodes(Frame *f, const Unit *unit, Arena *scratch) {
    NodeList left = {0}, list = {0};
    f->turn++;
    for (int i = 0; i < unit->atom.count; i++) {
        f->met[unit->atom.at[i]->id] = f->turn;
        VEC_PUSH(scratch, &left, unit->atom.at[i]);
    }
    while (left.count > 0 && list.count < MOST_NODES) {
        const Node *node = left.at[--left.count];
        if (op_info[node->op].cls != CLASS_VIEW && node->op != OP_CONST) {
            VEC_PUSH(scratch, &list, node);
        }
        for (int k = 0; k < node->nin; k++) {
            const Node *in = node->in[k];
            const NodeInfo *n = &f->fusion->info[in->id];
            if (f->met[in->id] != f->turn && !n->leaf && (!n->atom || n->unit == unit)) {
                f->met[in->id] = f->turn;
                VEC_PUSH(scratch, &left, in);
            }
        }
    }
    return list;
}

/* Where the nodes are from besides `main`. */
static void note_places(const Frame *f, const NodeList *list, const Node *main, Step *step) {
    for (int i = 0; i < list->count && step->also.count < MOST_PLACES; i++) {
        const Node *node = list->at[i];
        bool met = node->loc.source == main->loc.source && node->loc.at == main->loc.at;
        for (int k = 0; k < step->also.count; k++) {
            const Loc *loc = &step->also.at[k];
            met = met || (loc->source == node->loc.source && loc->at == node->loc.at);
        }
        if (!met) {
            VEC_PUSH_FROM(f->l->p->arena, &step->also, node->loc, 2);
        }
    }
}

static int by_id(const void *a, const void *b) {
    const Node *const *x = a, *const *y = b;
    return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

/* "linear_gelu_dropout": what makes the nodes, the first in their order; NULL: nothing that has a
 * name. Sorts the list. */
static const char *doers(const Frame *f, NodeList *list) {
    bool scalars = true; /* else rates and the like are beside the point */
    for (int i = 0; i < list->count; i++) {
        scalars = scalars && list->at[i]->type->rank == 0;
    }
    if (list->count > 1) {
        qsort(list->at, (size_t)list->count, sizeof *list->at, by_id);
    }
    const char *name[MOST_DOERS];
    int count = 0;
    Text text = {.arena = f->l->arena};
    for (int i = 0; i < list->count && count < MOST_DOERS; i++) {
        bool counts = scalars || list->at[i]->type->rank > 0;
        const char *does = counts ? doer_of(f->l, list->at[i]) : NULL;
        int at = 0;
        while (does && at < count && !str_eq(name[at], does)) {
            at++;
        }
        if (does && at == count) {
            text_printf(&text, "%s%s", count > 0 ? "_" : "", does);
            name[count++] = does;
        }
    }
    return text.at;
}

/* What is made for good: the first parameter, else the results ("loss_acc"), or nothing. */
typedef struct {
    const Buf *param;
    const char *results;
} Made;

static Made made_by(const Frame *f, const Unit *unit) {
    Made made = {NULL, NULL};
    int results = 0;
    for (int i = 0; i < unit->atom.count; i++) {
        const HomeList *homes = &f->home[unit->atom.at[i]->id];
        for (int k = 0; k < homes->count; k++) {
            const Buf *buf = homes->at[k].buf, *dest = buf->final;
            bool param = dest && dest->slot && dest->slot->kind == SLOT_PARAM;
            made.param = made.param == NULL && param && k == 0 ? dest : made.param;
            if (buf->kind == BUF_RESULT && results++ < MOST_DOERS) {
                made.results = made.results
                                   ? str_printf(f->l->arena, "%s_%s", made.results, buf->name)
                                   : buf->name;
            }
        }
    }
    return made;
}

/* Does the loss of the train wait for some of it? */
static bool is_forward(const Frame *f, const Unit *unit) {
    bool forward = false;
    for (int i = 0; i < unit->atom.count; i++) {
        forward = forward || f->fusion->info[unit->atom.at[i]->id].forward;
    }
    return forward;
}

/* The parameter whose gradient the unit makes, and nothing that the loss waits for; or NULL. */
static const Slot *gradient_by(const Frame *f, const Unit *unit, const Node *main) {
    return f->gradient && !is_forward(f, unit) ? f->gradient[main->id] : NULL;
}

/* The layer in the name of a kernel: whose parameter a product reads, else the main node's. */
static const char *layer_by(const Frame *f, const Unit *unit, const Node *main) {
    const Node *first = unit->atom.at[0];
    const Slot *slot = NULL;
    for (int k = 0; first->op == OP_CONTRACT && k < first->nin && !slot; k++) {
        slot = slot_behind(f, first->in[k]);
    }
    const char *from = slot ? strchr(slot->name, '.') : NULL;
    const char *to = slot ? strrchr(slot->name, '.') : NULL;
    if (from && to > from) {
        return str_printf(f->l->arena, "%.*s", (int)(to - from - 1), from + 1);
    }
    return layer_of(f->l, main);
}

/* What goes into gradients, and not into the loss of a train. */
static bool is_backward(const Frame *f, const Unit *unit, const Node *main) {
    if (f->l->e->entry->kind != ENTRY_TRAIN || f->up) {
        return f->loop && f->loop->reverse;
    }
    return f->backward[main->id] && !is_forward(f, unit);
}

StepPart part_of(const Frame *f, const Node *node) {
    if (f->l->e->entry->kind != ENTRY_TRAIN || f->up) {
        return PART_NONE;
    }
    if (f->fusion->info[node->id].forward) {
        return module_layer(f->l->p->module, node->loc) > 0 ? PART_FORWARD : PART_LOSS;
    }
    return f->backward[node->id] ? PART_BACKWARD : PART_UPDATE;
}

void name_step(Frame *f, const Unit *unit, const Node *main, bool copy, Step *step) {
    Arena *arena = f->l->arena, scratch = {0};
    const Entry *entry = f->l->e->entry;
    const char *in = entry->name ? entry->name : "init";
    Made made = made_by(f, unit);
    const Slot *of = gradient_by(f, unit, main);
    NodeList list = unit_nodes(f, unit, &scratch);
    if (entry->kind == ENTRY_TRAIN && !copy) {
        note_places(f, &list, main, step);
    }
    const char *does = doers(f, &list);
    step->path = layer_by(f, unit, main);
    step->part = part_of(f, main);
    for (int i = 0; i < unit->atom.count; i++) { /* of what it does the first part */
        StepPart part = part_of(f, unit->atom.at[i]);
        step->part = part < step->part ? part : step->part;
    }
    if (made.param && entry->kind == ENTRY_INIT) {
        step->name = str_printf(arena, "init_%s", made.param->name);
        step->role = made.param->role;
    } else if (made.param) {
        does = does ? does : "update";
        step->name = str_printf(arena, "%s_%s", made.param->name, does);
        step->role = does;
    } else if (of) {
        const Buf *buf = slot_buf(f->l, of);
        step->name = str_printf(arena, "d_%s", buf->name);
        step->role = str_printf(arena, "d_%s", buf->role);
    } else if (made.results) {
        step->name = str_printf(arena, "%s_%s", in, made.results);
        step->role = made.results;
    } else if (list.count == 0) {
        const Node *base = view_base(main);
        const HomeList *homes = &f->home[unit->atom.at[0]->id];
        step->role = base->op == OP_CONST ? "fill" : "copy";
        const Buf *to = homes->count > 0 ? homes->at[0].buf : NULL;
        to = to && to->final ? to->final : to;
        step->name = to ? str_printf(arena, "%s_%s", step->role, to->name) : step->role;
    } else {
        const char *after = is_backward(f, unit, main) ? "_back" : "", *mine = doer_of(f->l, main);
        bool alone = does && mine && str_eq(does, mine) && !owner_of(f->l, main)->itself;
        does = does && !(alone && !main->name) ? does : short_name(f->l, main);
        bool cotangent = strncmp(does, "d_", 2) == 0;
        step->role = str_printf(arena, "%s%s", does, cotangent ? "" : after);
        step->name = cotangent    ? full_name(f, main).name
                     : step->path ? str_printf(arena, "%s_%s", step->path, step->role)
                                  : step->role;
    }
    arena_free(&scratch);
}

const char *result_name(Frame *f, const Node *loop, int k) {
    const LoopHomes *homes = &f->loops[loop->id];
    for (int i = 0; i < homes->picks.count; i++) {
        const Node *pick = homes->picks.at[i];
        const Slot *of = f->gradient && pick->attr->axis == k ? f->gradient[pick->id] : NULL;
        if (of) {
            return str_printf(f->l->arena, "d_%s", slot_buf(f->l, of)->name);
        }
        if (pick->attr->axis == k && pick->name) {
            return short_name(f->l, pick);
        }
    }
    const Node *inner = loop->body->out.at[k];
    return short_name(f->l, inner);
}

Buf *temp_new(Frame *f, const Node *node, Type type, const char *name) {
    Arena *arena = f->l->arena;
    /* With a name, the node may be one of a loop's body. */
    const Slot *slot = f->gradient && !name ? f->gradient[node->id] : NULL;
    const char *role = NULL;
    if (slot) {
        const Buf *of = slot_buf(f->l, slot);
        role = str_printf(arena, "d_%s", of->role);
        name = str_printf(arena, "d_%s", of->name);
    } else if (!name) {
        const Name full = full_name(f, node);
        role = full.role;
        name = full.name;
    }
    Buf *buf = buf_new(f->l->p, f->l->e, BUF_TEMP, type, name);
    if (role) {
        buf_set_role(f->l->p, buf, role);
    }
    buf->loop = f->loop;
    buf->label = node->name && strchr(node->name, '.') ? buf->name : node->name;
    buf->loc = node->loc;
    return buf;
}
