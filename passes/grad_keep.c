/* grad_keep: what adjoints of loops make again, what of a loop is there for them, and how much a
 * turn makes: the part of the replay that asks nobody.
 *
 * Contract: changes no graph. */
#include "passes/grad_replay.h"

#include <string.h>

bool is_short(const Node *n) {
    enum { TERMS = 8, LESS = 4 };
    if (n->op != OP_CONTRACT) {
        return false;
    }
    double count = (double)type_count(*n->type), least = count / LESS;
    return node_flops(n) <= 2 * TERMS * count && (double)type_count(*n->in[0]->type) <= least &&
           (double)type_count(*n->in[1]->type) <= least;
}

bool computed_again(GradSave save, const Node *n, bool constant) {
    OpClass cls = op_info[n->op].cls;
    if (cls == CLASS_LEAF || cls == CLASS_VIEW || cls == CLASS_MARK || n->op == OP_RANDOM ||
        constant) {
        return true;
    }
    if (cls == CLASS_MAP && (n->type->elem == TY_BOOL || n->op == OP_CAST || n->nin == 0)) {
        return true;
    }
    switch (save) {
    case GRAD_SAVE_ALL: return false;
    case GRAD_SAVE_CALLS: return cls == CLASS_MAP || cls == CLASS_PLACE || is_short(n);
    case GRAD_SAVE_CARRIES: return true;
    }
    return false;
}

bool same_every_time(const Replay *r, const Node *n) {
    return (int)n->id < r->nconstant && r->constant[n->id];
}

double all_turns(const Node *loop) {
    double turns = (double)loop->attr->trip;
    const Node *around = loop->region->owner;
    return around && around->op == OP_LOOP ? turns * all_turns(around) : turns;
}

double made_bytes(const Region *body) {
    double bytes = 0;
    for (int i = 0; i < body->node.count; i++) {
        const Node *n = body->node.at[i];
        const OpClass cls = op_info[n->op].cls;
        const bool made = n->op != OP_LOOP && (cls == CLASS_MAP || cls == CLASS_CALL);
        bytes += made ? (double)type_bytes(*n->type) : 0;
        bytes += n->op == OP_LOOP ? made_bytes(n->body) : 0;
    }
    return bytes;
}

double weight_bytes(const Node *loop) {
    double bytes = 0;
    for (int k = loop->attr->ncarry + loop->attr->ninv; k < loop->nin; k++) {
        const Node *x = loop->in[k];
        while (op_info[x->op].cls == CLASS_VIEW) {
            x = x->in[0];
        }
        const bool weight = x->op == OP_SLOT && x->attr->slot->kind == SLOT_PARAM;
        bytes += weight ? (double)type_bytes(*x->type) : 0;
    }
    return bytes;
}

void replay_grow(Replay *r) {
    int count = r->loop->body->node.count;
    if (count <= r->nvalue) {
        return;
    }
    r->value = arena_grow(r->scratch, r->value, sizeof *r->value * (size_t)r->nvalue,
                          sizeof *r->value * (size_t)count);
    memset(r->value + r->nvalue, 0, sizeof *r->value * (size_t)(count - r->nvalue));
    r->nvalue = count;
}
