/* simplify: algebra and strength reduction as tables of small local rules.
 *
 * Technique: a rebuild offers every node to the rules of its op; the first that applies gives the
 * node to use instead. Rebuilds go on until no rule applies, so a rule may leave its result for
 * another one. No two rules are inverse, every rule makes the work or the nesting of views
 * smaller, and the number of rounds is bounded all the same.
 *
 * Before grad, a rule must not look through the point of a derivative (the value would no longer
 * be computed from it) nor make another value equal to it, so a program that takes derivatives to
 * values that it computes is left as it is until they are expanded. Needs and gives: see
 * simplify.h. */
#include "passes/simplify.h"

#include "passes/points.h"
#include "passes/simplify_rule.h"

#include <math.h>

enum { ROUNDS = 24 };

bool is_uniform(const Node *n, double *value) {
    if (n->op == OP_BROADCAST) {
        n = n->in[0];
    }
    if (n->op != OP_CONST) {
        return false;
    }
    *value = elem_is_int(n->type->elem) ? (double)n->attr->ivalue : n->attr->value;
    return true;
}

bool is_number(const Node *n, double value) {
    double x;
    return is_uniform(n, &x) && x == value;
}

Node *same_op(Graph *g, const Node *n, Node *const *in, Type type) {
    return graph_add(g, n->op, in, n->nin, n->attr, type);
}

Type without_axes(Type t, uint32_t axes) {
    Type r = {.elem = t.elem};
    for (int i = 0; i < t.rank; i++) {
        if (!(axes >> i & 1)) {
            r.dim[r.rank++] = t.dim[i];
        }
    }
    return r;
}

uint32_t axes_without(uint32_t axes, uint32_t dropped, int rank) {
    uint32_t r = 0;
    for (int i = 0, k = 0; i < rank; i++) {
        if (!(dropped >> i & 1)) {
            r |= (axes >> i & 1) << k++;
        }
    }
    return r;
}

static Node *first_rule(Graph *g, const SimplifyRow *row, const Node *n, Node *const *in) {
    for (; row->rule; row++) {
        bool fits = row->op == n->op || (row->op == OP_COUNT && op_info[n->op].cls == CLASS_MAP);
        Node *made = fits ? row->rule(g, n, in) : NULL;
        if (made) {
            if (!type_equal(*made->type, *n->type)) {
                BUG("a rule for %s changed its type", op_info[n->op].name);
            }
            return made;
        }
    }
    return NULL;
}

/* --- reads ------------------------------------------------------------------------------------ */

static const Reads *reads_of(const Node *n) {
    return n->note;
}

/* Is a jump made of operand k of `n`, where one is made of `n` (`later`) or is not? */
static bool jumps(const Node *n, int k, bool later) {
    double x;
    switch (n->op) {
    case OP_SUM:
    case OP_PROD:
    case OP_CUMSUM:
    case OP_OVERLAP_ADD:
    case OP_CONTRACT:
    case OP_SCATTER_ADD:
    case OP_GRAD: return false;
    case OP_FLOOR:
    case OP_ROUND:
    case OP_ARGMAX:
    case OP_ARGMIN:
    case OP_ORDER: return true;
    case OP_LT:
    case OP_LE:
    case OP_EQ: return !(is_uniform(n->in[1 - k], &x) && (x == 0 || isinf(x))); /* signs stay */
    case OP_LOOP: return reads_of(n->body->param.at[1 + k])->jumps;
    case OP_CAST: return later || elem_is_int(n->type->elem);
    default: return later;
    }
}

static void count_reads(const Region *region, const bool *later, Arena *scratch);

/* In the body of node `n`, of which the picks have theirs. */
static void count_in_body(const Node *n, Arena *scratch) {
    bool *later = ARENA_ARRAY(scratch, bool, n->body->out.count + 1);
    for (int i = (int)n->id + 1; n->op == OP_LOOP && i < n->region->node.count; i++) {
        const Node *pick = n->region->node.at[i];
        if (pick->op == OP_PICK && pick->in[0] == n && reads_of(pick)->jumps) {
            later[pick->attr->axis] = true;
        }
    }
    count_reads(n->body, later, scratch);
}

/* Leaves its Reads in every node. `later`: is a jump made of a result? NULL: of none. */
static void count_reads(const Region *region, const bool *later, Arena *scratch) {
    Reads *reads = ARENA_ARRAY(scratch, Reads, region->node.count);
    for (int i = 0; i < region->out.count; i++) {
        Reads *out = &reads[region->out.at[i]->id];
        *out = (Reads){out->count + 1, out->jumps || (later && later[i])};
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        Node *n = region->node.at[i];
        n->note = &reads[i];
        if (n->body) {
            count_in_body(n, scratch);
        }
        for (int k = 0; reads[i].count > 0 && k < n->nin; k++) {
            Reads *in = &reads[n->in[k]->id];
            *in = (Reads){in->count + 1, in->jumps || jumps(n, k, reads[i].jumps)};
        }
    }
}

static void forget_reads(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        region->node.at[i]->note = NULL;
        if (region->node.at[i]->body) {
            forget_reads(region->node.at[i]->body);
        }
    }
}

/* --- the pass --------------------------------------------------------------------------------- */

typedef struct {
    int applied;
    bool late; /* also the rules that wait for the others */
} Round;

static Node *simplify_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    static const SimplifyRow *const tables[] = {simplify_maps, simplify_views, simplify_folds,
                                                simplify_late};
    Round *round = ctx;
    size_t count = sizeof tables / sizeof *tables;
    bool exact = g->exact;
    Node *made = NULL;
    g->exact = n->attr->exact; /* products made of it */
    for (size_t t = 0; !made && t < (round->late ? count : count - 1); t++) {
        made = first_rule(g, tables[t], n, in);
    }
    g->exact = exact;
    round->applied += made != NULL;
    return made;
}

/* With those of all bodies. */
static int64_t nodes_of(const Region *region) {
    int64_t count = region->node.count;
    for (int i = 0; i < region->node.count; i++) {
        count += region->node.at[i]->body ? nodes_of(region->node.at[i]->body) : 0;
    }
    return count;
}

static bool has_body(const Node *n) {
    return n->body != NULL;
}

/* Does a rule apply to some node that matters, of a region without bodies? What it makes is left
 * where nothing reads it. */
static bool any_applies(Round *round, Graph *g, const Region *region) {
    bool any = false;
    for (int i = region->node.count - 1; i >= 0 && !any; i--) {
        const Node *n = region->node.at[i];
        const Reads *reads = n->note;
        if (reads->count > 0) {
            Region *before = graph_enter(g, n->region);
            any = simplify_node(round, g, n, n->in) != NULL;
            graph_leave(g, before);
        }
    }
    return any;
}

/* Something is left to do: for the rules that wait for the others once those have nothing. */
static bool goes_on(Round *round, Graph *g, const Region *now) {
    bool any = any_applies(round, g, now);
    if (!any && !round->late) {
        round->late = true;
        any = any_applies(round, g, now);
    }
    return any;
}

/* Rounds until no rule applies any more; each frees what the one before it has read. Where there
 * are loops, copying also drops what only unused results of theirs have needed, level by level, so
 * that another round may find more; else a look is enough to see that there is nothing. */
static Region *simplify_rounds(Graph *g, const Region *region) {
    Arena *home = g->arena,
          nodes[2] = {{.chunk_bytes = home->chunk_bytes}, {.chunk_bytes = home->chunk_bytes}};
    Arena scratch = {0};
    Round round = {0};
    g->arena = &nodes[0];
    const Region *now = region_any(region, is_empty) ? region_without_empty(g, region) : region;
    Region *fresh = NULL;
    bool loops = region_any(region, has_body);
    int64_t size = 0;
    count_reads(now, NULL, &scratch);
    for (int i = 1; i <= ROUNDS; i++) {
        round.applied = 0;
        g->arena = &nodes[i % 2];
        fresh = region_rebuild(g, now, simplify_node, &round);
        if (i == 1) { /* what was given is copied: it is the caller's, or goes now */
            forget_reads(now);
            graph_spend(g);
        }
        now = fresh;
        arena_free(&nodes[1 - i % 2]);
        arena_free(&scratch);
        int64_t before = size, applied = round.applied;
        size = loops ? nodes_of(fresh) : 0;
        bool quiet = applied == 0 && size == before, done = quiet && round.late;
        round.late = round.late || quiet;
        count_reads(now, NULL, &scratch);
        if (done || (!loops && !goes_on(&round, g, now))) {
            break;
        }
    }
    forget_reads(fresh);
    arena_free(&scratch);
    arena_adopt(home, g->arena);
    g->arena = home;
    return fresh;
}

Region *pass_simplify(Graph *g, const Region *region) {
    return points_fixed(region) ? simplify_rounds(g, region)
                                : region_rebuild(g, region, NULL, NULL);
}
