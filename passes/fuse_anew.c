/* fuse_anew: which large values a kernel makes again instead of reading them.
 *
 * Memory holds a value for a product, say the ReLU of a normalisation; its derivative asks only
 * where it is above 0, and reads what was normalised anyway. Then the value costs a stream of
 * memory where it would cost a few operations. So an atom that memory holds anyway is made again
 * by who reads it, element by element, where it is large, cheap, and made of what is read anyway or
 * is much smaller than it.
 * Needs merged units; gives their `anew`, and `dep` and readers without them; changes no values. */
#include "passes/fuse_units.h"

enum {
    LARGE = TUNED(1 << 18, 64), /* elements: what no second-level cache keeps */
    LITTLE = 12,                /* cost of an element that is less than its stream from memory */
    SMALLER = TUNED(64, 3),     /* times: a factor of each channel is no stream */
    MOST_MADE = 24              /* nodes of its expression */
};

bool unit_makes_anew(const Unit *u, const Node *atom) {
    return ids_have(u->anew.at, u->anew.count, atom->id);
}

/* The expression of an element: what it reads, what it costs, how many nodes it has. */
typedef struct {
    Fuse *fuse;
    VEC(uint32_t) read;
    int cost, nodes;
} Made;

static bool keeps_places(const Node *n) {
    return n->op == OP_BROADCAST || n->op == OP_PERMUTE || n->op == OP_RESHAPE;
}

/* Adds `node` and what it is made of; false: no cheap expression of values in memory. */
static bool add_made(Made *m, const Node *node, bool root) {
    const NodeInfo *n = info_of(m->fuse, node);
    if (node->op == OP_CONST) {
        return true;
    }
    if (!root && (n->leaf || (n->atom && !n->again))) {
        if (!ids_have(m->read.at, m->read.count, node->id)) {
            VEC_PUSH(m->fuse->scratch, &m->read, node->id);
        }
        return node->op != OP_PICK;
    }
    bool map = op_info[node->op].cls == CLASS_MAP && !op_rounds(node->op);
    m->cost += map ? op_info[node->op].cost : 0;
    bool fits = (map || keeps_places(node)) && m->cost <= LITTLE && ++m->nodes <= MOST_MADE;
    for (int k = 0; fits && k < node->nin; k++) {
        fits = add_made(m, node->in[k], false);
    }
    return fits;
}

/* Is all that it is made of read by the unit anyway, or no stream? */
static bool reads_no_more(const Made *m, const Unit *u, const Node *atom) {
    for (int i = 0; i < m->read.count; i++) {
        const Node *x = m->fuse->f->region->node.at[m->read.at[i]];
        bool small = type_count(*x->type) <= type_count(*atom->type) / SMALLER;
        if (!small && !ids_have(u->dep.at, u->dep.count, x->id)) {
            return false;
        }
    }
    return true;
}

/* Kernels of plain elements: what a product, a loop or an op of its own reads lies in memory. */
static bool is_plain(const Unit *u) {
    bool plain = u->kind == UNIT_NEST || u->kind == UNIT_COLUMN || u->kind == UNIT_TOTAL;
    for (int i = 0; plain && i < u->atom.count; i++) {
        OpClass cls = op_info[u->atom.at[i]->op].cls;
        plain = cls == CLASS_MAP || cls == CLASS_FOLD;
    }
    return plain && !u->pick;
}

static void read_no_more(Fuse *s, Unit *u, const Node *atom) {
    UnitIds *reader = &s->reader[atom->id];
    int n = 0;
    for (int i = 0; i < reader->count; i++) {
        if (unit_now(s->unit.at[reader->at[i]]) != u) {
            reader->at[n++] = reader->at[i];
        }
    }
    reader->count = n;
    n = 0;
    for (int i = 0; i < u->dep.count; i++) {
        if (u->dep.at[i] != atom->id) {
            u->dep.at[n++] = u->dep.at[i];
        }
    }
    u->dep.count = n;
}

static void read_too(Fuse *s, Unit *u, uint32_t id) {
    if (!ids_have(u->dep.at, u->dep.count, id)) {
        VEC_PUSH(s->arena, &u->dep, id);
        for (int i = u->dep.count - 1; i > 0 && u->dep.at[i - 1] > id; i--) {
            u->dep.at[i] = u->dep.at[i - 1];
            u->dep.at[i - 1] = id;
        }
        VEC_PUSH(s->scratch, &s->reader[id], u->id);
    }
}

/* Makes the first such value that the unit reads again; false: there is none. */
static bool make_anew(Fuse *s, Unit *u) {
    for (int i = 0; i < u->dep.count; i++) {
        const Node *atom = s->f->region->node.at[u->dep.at[i]];
        const NodeInfo *n = info_of(s, atom);
        Made made = {.fuse = s};
        if (n->leaf || n->again || !n->sink || n->pick || op_info[atom->op].cls != CLASS_MAP ||
            type_count(*atom->type) < LARGE || !add_made(&made, atom, true) ||
            !reads_no_more(&made, u, atom)) {
            continue;
        }
        VEC_PUSH(s->arena, &u->anew, atom->id);
        read_no_more(s, u, atom);
        for (int k = 0; k < made.read.count; k++) {
            read_too(s, u, made.read.at[k]);
        }
        return true;
    }
    return false;
}

void units_make_anew(Fuse *s) {
    for (int i = 0; i < s->unit.count; i++) {
        Unit *u = s->unit.at[i];
        while (!u->into && is_plain(u) && make_anew(s, u)) {
        }
    }
}
