/* target: see the header. What an input flows into is followed node by node, through the bodies of
 * loops; a derivative is where it ends, since every layer's adjoint reads the loss. */
#include "lang/target.h"

typedef struct {
    const Module *module;
    Arena *scratch;
    const Slot *slot;
    bool read, layer; /* by anything; by a layer */
} Flood;

static void flood(Flood *f, const Region *region, bool *wet);

static bool is_wet(const Flood *f, const Node *node, const bool *wet) {
    if (node->op == OP_SLOT) {
        return node->attr->slot == f->slot;
    }
    bool any = false;
    for (int i = 0; i < node->nin && !any; i++) {
        any = wet[node->in[i]->id];
    }
    return any && node->op != OP_GRAD;
}

/* Operands are the last parameters of a body; a loop has its index in front of them. */
static void flood_body(Flood *f, const Node *node, const bool *wet) {
    const Region *body = node->body;
    bool *inner = ARENA_ARRAY(f->scratch, bool, body->node.count + 1);
    int first = body->param.count - node->nin;
    for (int i = 0; i < node->nin && first >= 0; i++) {
        inner[body->param.at[first + i]->id] = wet[node->in[i]->id];
    }
    bool again = true;
    while (again) {
        again = false;
        flood(f, body, inner);
        for (int i = 0; i < node->attr->ncarry && node->op == OP_LOOP; i++) {
            bool *carry = &inner[body->param.at[first + i]->id];
            again = again || (!*carry && inner[body->out.at[i]->id]);
            *carry = *carry || inner[body->out.at[i]->id];
        }
    }
}

static void flood(Flood *f, const Region *region, bool *wet) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        if (node->op == OP_BODY_PARAM) {
            continue;
        }
        wet[node->id] = is_wet(f, node, wet);
        if (!wet[node->id] || node->op == OP_SLOT) {
            continue;
        }
        f->read = true;
        f->layer = f->layer || (!node->body && module_layer(f->module, node->loc) > 0);
        if (node->body) {
            flood_body(f, node, wet);
        }
    }
}

void target_mark(Elab *e, const Entry *train) {
    for (int i = 0; i < train->input.count; i++) {
        Flood f = {.module = e->module, .scratch = e->scratch, .slot = train->input.at[i]};
        flood(&f, train->region, ARENA_ARRAY(e->scratch, bool, train->region->node.count + 1));
        train->input.at[i]->target = f.read && !f.layer;
    }
}
