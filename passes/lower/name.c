/* name: what temporaries are called: by the layer that they belong to and what they are, gradients
 * by what they are of.
 *
 * Technique: what a write of a parameter reads elementwise, has its type, is no slot, and lies in
 * front of the check of the gradients or is made otherwise than elementwise, is its gradient, if
 * there is one such value only. What goes into gradients and not into the loss has a d_ in front.
 * Needs a fused region; gives names, which tell no pass anything. */
#include "passes/lower/build.h"

#include <string.h>

/* "fc1.weight" of "net.fc1.weight". */
static const char *inside_model(const char *path) {
    const char *dot = strchr(path, '.');
    return dot ? dot + 1 : NULL;
}

const char *short_name(Arena *arena, const Node *node) {
    if (node->op == OP_SLOT) {
        const char *path = node->attr->slot->name, *name = inside_model(path);
        return str_dup(arena, name ? name : path);
    }
    return node->name ? node->name : op_info[node->op].name;
}

const Layer *layer_of(const Frame *f, const Node *node) {
    const Module *module = f->l->p->module;
    bool known = node->loc.layer > 0 && (int)node->loc.layer <= module->layer.count;
    return known ? &module->layer.at[node->loc.layer - 1] : NULL;
}

typedef struct {
    const Frame *f;
    const Type *type;
    const Node *found;
    bool several;
    uint32_t *seen; /* by node id: for which parameter it was met last */
    uint32_t turn;
} Search;

static void search(Search *s, const Node *node) {
    const NodeInfo *info = &s->f->fusion->info[node->id];
    if (s->seen[node->id] == s->turn) {
        return;
    }
    s->seen[node->id] = s->turn;
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

void name_gradients(Frame *f) {
    const Entry *entry = f->l->e->entry;
    if (f->up || entry->kind != ENTRY_TRAIN) {
        return;
    }
    Arena scratch = {0};
    Search s = {.f = f, .seen = ARENA_ARRAY(&scratch, uint32_t, f->region->node.count + 1)};
    f->gradient = ARENA_ARRAY(f->l->scratch, const Slot *, f->region->node.count + 1);
    f->backward = ARENA_ARRAY(f->l->scratch, bool, f->region->node.count + 1);
    for (int k = 0; k < entry->out.count; k++) {
        const Slot *slot = entry->out.at[k].slot;
        if (entry->out.at[k].role == OUT_WRITE && slot->kind == SLOT_PARAM) {
            s.type = f->region->out.at[k]->type;
            s.found = NULL;
            s.several = false;
            s.turn++;
            search(&s, f->region->out.at[k]);
            bool held = s.found && (s.found->op == OP_PICK || f->fusion->info[s.found->id].stored);
            if (held && !s.several && !f->gradient[s.found->id]) {
                f->gradient[s.found->id] = slot;
                f->backward[s.found->id] = true;
            }
        }
    }
    arena_free(&scratch);
    for (int i = f->region->node.count - 1; i >= 0; i--) {
        const Node *node = f->region->node.at[i];
        for (int k = 0; f->backward[i] && k < node->nin; k++) {
            f->backward[node->in[k]->id] = !f->fusion->info[node->in[k]->id].forward;
        }
    }
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
            return pick->name;
        }
    }
    const Node *inner = loop->body->out.at[k];
    return inner->name ? inner->name : op_info[inner->op].name;
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
        bool back = f->backward && f->backward[node->id];
        const Layer *layer = layer_of(f, node);
        const char *path = layer ? inside_model(layer->path) : NULL, *own = short_name(arena, node);
        role = str_printf(arena, "%s%s", back ? "d_" : "", own);
        name = path ? str_printf(arena, "%s%s.%s", back ? "d_" : "", path, own) : role;
    }
    Buf *buf = buf_new(f->l->p, f->l->e, BUF_TEMP, type, name);
    if (role) {
        buf_set_role(f->l->p, buf, role);
    }
    buf->loop = f->loop;
    buf->label = node->name;
    buf->loc = node->loc;
    return buf;
}
