/* again: see the header.
 *
 * The adjoint of a loop makes elementwise values of an iteration again (GRAD_SAVE_CALLS). Of code
 * that stands in a list it reads what the forward part has stored: both sides of a GELU, since the
 * derivative asks for the one in front and a product for the one behind it; a normalised value
 * beside what was normalised. Here the fusion of the region as it is says what memory holds and who
 * reads it. A large elementwise value that kernels behind the loss read goes when each large
 * operand of it is read there by another kernel too; these read a copy of the expression then.
 * What is made again is a stream of memory more, so it is done when all of it takes little beside
 * the region's work, or not at all. */
#include "passes/again.h"

#include "passes/fuse.h"
#include "passes/view.h"

#include <string.h>

const int64_t again_least = TUNED(1 << 18, 64);
const int again_part = TUNED(32, 2);

enum {
    SMALLER = TUNED(8, 2), /* times: what is smaller is kept anyway */
    MOST_NODES = 48,       /* of one expression */
    STREAM = 96,           /* additions in the time in which memory takes and gives a float */
    FUNCTION = 4,          /* multiply-adds in the time of one addition of a function */
    DRAW = 25              /* additions in the time of a random number */
};

typedef struct {
    Arena *scratch;
    AgainLimits limits;
    const Region *region;
    const Fusion *f;
    bool *replaced;  /* by node: made again behind the loss */
    bool *reaches;   /* what is no atom and is made of such a value */
    uint8_t *behind; /* by node: so many units behind the loss read it, at most 2 */
    bool any;
    /* while the region is built again, by node of the old one: */
    Node **now, **later, **again;
} Pass;

static const NodeInfo *info_of(const Pass *p, const Node *node) {
    return &p->f->info[node->id];
}

static bool in_memory(const NodeInfo *n) {
    return n->leaf || (n->atom && !n->again);
}

/* Units behind the loss by what they read; loops read whole values, which are theirs to keep. */
static void count_readers(Pass *p) {
    for (int i = 0; i < p->f->unit.count; i++) {
        const Unit *u = p->f->unit.at[i];
        for (int k = 0; k < u->dep.count && !u->forward; k++) {
            uint8_t *count = &p->behind[u->dep.at[k]];
            *count = *count < 2 ? *count + 1 : 2;
        }
    }
}

/* By node: a loop or a result reads it, which goes on to do so. */
static bool *held_values(const Pass *p) {
    bool *held = ARENA_ARRAY(p->scratch, bool, p->region->node.count + 1);
    for (int i = p->region->node.count - 1; i >= 0; i--) {
        const Node *n = p->region->node.at[i];
        for (int k = 0; k < n->nin; k++) {
            const Node *x = n->in[k];
            bool through = held[i] && !in_memory(info_of(p, n));
            held[x->id] = held[x->id] || n->op == OP_LOOP || through;
        }
    }
    for (int i = 0; i < p->region->out.count; i++) {
        held[p->region->out.at[i]->id] = true;
    }
    return held;
}

/* The expression of an element. */
typedef struct {
    int64_t count;
    int nodes, large;
    double work;
} Made;

/* Adds what `node` is made of; false: not elementwise, or of what would have to be kept for it. */
static bool add_made(const Pass *p, Made *m, const Node *node, bool root) {
    const NodeInfo *n = info_of(p, node);
    if (node->op == OP_CONST) {
        return true;
    }
    if (!root && in_memory(n)) {
        bool large = type_count(*node->type) > m->count / SMALLER;
        m->large += large;
        return node->op != OP_LOOP && !p->replaced[node->id] &&
               (!large || p->behind[node->id] > 0 || node->op == OP_SLOT);
    }
    bool map = op_info[node->op].cls == CLASS_MAP;
    bool places = node->op == OP_BROADCAST || node->op == OP_PERMUTE || node->op == OP_RESHAPE;
    if ((!map && !places) || ++m->nodes > MOST_NODES) {
        return false;
    }
    int cost = node->op == OP_RANDOM ? DRAW : op_info[node->op].cost;
    m->work += map ? (cost > 1 ? FUNCTION * cost : cost) * (double)type_count(*node->type) : 0;
    for (int k = 0; k < node->nin; k++) {
        if (!add_made(p, m, node->in[k], false)) {
            return false;
        }
    }
    return true;
}

static double region_work(const Region *region) {
    double work = 0;
    for (int i = 0; i < region->node.count; i++) {
        work += node_flops(region->node.at[i]);
    }
    return work;
}

/* Chooses the values. */
static void choose(Pass *p) {
    const Region *region = p->region;
    count_readers(p);
    const bool *held = held_values(p);
    double work = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        const NodeInfo *n = info_of(p, node);
        int64_t count = type_count(*node->type);
        Made made = {.count = count};
        if (n->atom && !n->leaf && !n->again && !n->pick && n->stored && n->forward && !held[i] &&
            op_info[node->op].cls == CLASS_MAP && elem_is_float(node->type->elem) &&
            count >= p->limits.least && p->behind[i] > 0 && add_made(p, &made, node, true) &&
            made.large > 0) {
            p->replaced[i] = p->any = true;
            work += made.work + STREAM * (double)count;
        }
    }
    if (p->any && work * p->limits.part > region_work(region)) {
        memset(p->replaced, 0, sizeof *p->replaced * (size_t)region->node.count);
        p->any = false;
    }
    for (int i = 0; p->any && i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        for (int k = 0; k < node->nin && !in_memory(info_of(p, node)); k++) {
            int in = (int)node->in[k]->id;
            p->reaches[i] = p->reaches[i] || p->replaced[in] || p->reaches[in];
        }
    }
}

static Pass pass_open(Arena *scratch, const Region *region, const EntryOut *out,
                      AgainLimits limits) {
    int n = region->node.count + 1;
    Pass p = {.scratch = scratch, .region = region, .limits = limits};
    p.f = pass_fuse(scratch, region, out, false, 0, limits.total, limits.copies,
                    limits.sums);
    p.replaced = ARENA_ARRAY(scratch, bool, n);
    p.reaches = ARENA_ARRAY(scratch, bool, n);
    p.behind = ARENA_ARRAY(scratch, uint8_t, n);
    choose(&p);
    return p;
}

/* --- the region again ------------------------------------------------------------------------- */

static Node *later(Pass *p, Graph *g, const Node *node, int64_t count);

/* What an expression of so many elements that is made again reads for its operand `x`. */
static Node *operand_again(Pass *p, Graph *g, const Node *x, int64_t count) {
    if (x->op == OP_CONST) {
        return p->now[x->id];
    }
    if (!in_memory(info_of(p, x))) {
        return later(p, g, x, count);
    }
    bool large = type_count(*x->type) > count / SMALLER;
    Node **again = &p->again[x->id];
    if (large && !*again) {
        *again = node_map1(g, OP_AGAIN, p->now[x->id]);
    }
    return large ? *again : p->now[x->id];
}

/* A forward value as what stands behind the loss reads it. */
static Node *later(Pass *p, Graph *g, const Node *node, int64_t count) {
    Node **made = &p->later[node->id];
    if (*made) {
        return *made;
    }
    Node **in = ARENA_ARRAY(p->scratch, Node *, node->nin + 1);
    for (int k = 0; k < node->nin; k++) {
        in[k] = operand_again(p, g, node->in[k], count);
    }
    return *made = graph_copy(g, node, in);
}

/* The same for what is made of such a value, in the kernels that read it. */
static Node *made_later(Pass *p, Graph *g, const Node *node) {
    if (p->replaced[node->id]) {
        return later(p, g, node, type_count(*node->type));
    }
    if (!p->reaches[node->id]) {
        return p->now[node->id];
    }
    Node **made = &p->later[node->id];
    if (!*made) {
        Node **in = ARENA_ARRAY(p->scratch, Node *, node->nin + 1);
        for (int k = 0; k < node->nin; k++) {
            in[k] = made_later(p, g, node->in[k]);
        }
        *made = graph_copy(g, node, in);
    }
    return *made;
}

static Node *visit(void *ctx, Graph *g, const Node *old, Node *const *in) {
    Pass *p = ctx;
    if (old->region != p->region) {
        return NULL;
    }
    const NodeInfo *n = info_of(p, old);
    Node **fresh = ARENA_ARRAY(p->scratch, Node *, old->nin + 1);
    for (int k = 0; k < old->nin; k++) {
        p->now[old->in[k]->id] = in[k]; /* results of loops come by here alone */
        bool behind = !n->forward && info_of(p, old->in[k])->forward;
        fresh[k] = behind ? made_later(p, g, old->in[k]) : in[k];
    }
    return p->now[old->id] = graph_copy(g, old, fresh);
}

Region *pass_again(Graph *g, const Region *region, const EntryOut *out, AgainLimits limits) {
    Arena scratch = {0};
    Pass p = pass_open(&scratch, region, out, limits);
    p.now = ARENA_ARRAY(&scratch, Node *, region->node.count + 1);
    p.later = ARENA_ARRAY(&scratch, Node *, region->node.count + 1);
    p.again = ARENA_ARRAY(&scratch, Node *, region->node.count + 1);
    Region *fresh = region_rebuild(g, region, visit, &p);
    arena_free(&scratch);
    return fresh;
}

/* A cheap look first: most regions have no large value that a product reads. */
static bool may_apply(const Region *region, int64_t least) {
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; n->op == OP_CONTRACT && k < 2; k++) {
            const Node *base = view_base(n->in[k]);
            if (op_info[base->op].cls == CLASS_MAP && type_count(*base->type) >= least) {
                return true;
            }
        }
    }
    return false;
}

bool again_applies(const Region *region, const EntryOut *out, AgainLimits limits) {
    if (!may_apply(region, limits.least)) {
        return false;
    }
    Arena scratch = {0};
    bool any = pass_open(&scratch, region, out, limits).any;
    arena_free(&scratch);
    return any;
}
