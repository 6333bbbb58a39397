/* chunk: a chain of work from a product to a product through values that are much larger than what
 * goes in and comes out, as the scores of attention are, becomes a loop over batch axes that all of
 * it has. Each iteration makes the chain for its part of these axes (a chunk), so the large values
 * exist for a chunk at a time, in the cache, and the derivative makes them again from what went in
 * instead of keeping them (Attr.checkpoint).
 *
 * Technique: backwards from the last product (the exit) what is large, and what is small but made
 * of it, is inside; a product with a large result ends the walk, since what it reads is small. A
 * label that both operands and the result of each product inside have is followed through the
 * chain: where each node has an axis for it, iterations share nothing and no sum is cut, so values
 * and their bits stay. What goes in is read by slices of views, which cost no copy.
 * Needs and gives: see chunk.h. */
#include "passes/chunk.h"

#include "passes/cut.h"
#include "passes/points.h"

#include <string.h>

const ChunkLimits chunk_limits = {TUNED(8 << 20, 4096), TUNED(2 << 20, 512), false};

ChunkLimits chunk_by_rows(int64_t own) {
    return (ChunkLimits){own, own, true};
}

enum {
    GROWTH = 2, /* times what its product reads: less is not worth making it again */
    LIGHT = 4   /* the cost of an operation that takes no longer than to read what it makes */
};

typedef struct {
    ChunkLimits limits;
    const Node *exit;
    bool *inside, *made; /* by node: in the chain; made of the product that it begins with */
    bool *stored; /* by node: large, and made of what an earlier operation leaves in memory */
    bool *places; /* by node: made of indices alone; where `masks` are inside */
    bool masks;
    CutLabel label[CUT_LABELS];
    int labels;
    int64_t largest; /* bytes */
} Chain;

/* --- what is inside --------------------------------------------------------------------------- */

/* As if it were of floats: a mask is as large as what it is for. */
static int64_t size_of(const Node *n) {
    int64_t each = (int64_t)elem_bytes(n->region->graph->float_type);
    return n->type->elem == TY_TUPLE ? 0 : type_count(*n->type) * each;
}

static bool is_large(const Node *n, ChunkLimits limits) {
    return size_of(n) >= limits.large;
}

/* A product that a chain may end in: what it gives is little beside what it reads. */
static bool may_end(const Node *n, ChunkLimits limits) {
    if (n->op != OP_CONTRACT) {
        return false;
    }
    const int64_t a = size_of(n->in[0]), b = size_of(n->in[1]), most = a > b ? a : b;
    return most >= limits.large &&
           (limits.rows ? !is_large(n, limits) : size_of(n) <= most / GROWTH);
}

static bool is_start(const Node *n, ChunkLimits limits) {
    return n->op == OP_CONTRACT && is_large(n, limits) &&
           size_of(n) / GROWTH >= size_of(n->in[0]) + size_of(n->in[1]);
}

static bool is_leaf(const Node *n) {
    return n->op == OP_SLOT || n->op == OP_TABLE || n->op == OP_BODY_PARAM;
}

/* Is it large and made of what is not, or of inputs? What else goes in is sliced, not made again:
 * with many rows queries and keys are large, too. */
static bool is_spread(const Chain *c, const Node *n) {
    return cut_is_plain(n) && is_large(n, c->limits) && !c->stored[n->id] &&
           (!c->limits.rows || n->op == OP_BROADCAST || n->nin == 0);
}

/* What says where it is, such as a mask, costs less to make in each chunk than to read; and who
 * sees how it is made knows where all of it is one value. */
static bool is_of_places(const Chain *c, const Node *n) {
    const OpClass cls = op_info[n->op].cls;
    bool of = c->masks && (n->op == OP_IOTA || n->op == OP_CONST);
    of = of || (n->nin > 0 && n->op != OP_RANDOM && (cls == CLASS_MAP || cls == CLASS_VIEW) &&
                op_info[n->op].cost <= LIGHT);
    for (int k = 0; k < n->nin && of; k++) {
        of = c->places[n->in[k]->id];
    }
    return of && cut_is_plain(n);
}

/* Marks what is made of the products that the exit's large operand is made of, without another
 * product between. */
static void find_made(Chain *c, Arena *scratch, const Region *region, const Node *exit) {
    const int count = (int)exit->id;
    bool *reached = ARENA_ARRAY(scratch, bool, count);
    for (int k = 0; k < exit->nin; k++) {
        const Node *in = exit->in[k];
        const bool larger = c->limits.rows || size_of(in) / GROWTH >= size_of(exit);
        reached[in->id] = exit->op != OP_CONTRACT || (is_large(in, c->limits) && larger);
    }
    for (int i = count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        c->made[i] = reached[i] && is_start(n, c->limits);
        for (int k = 0; reached[i] && cut_is_plain(n) && k < n->nin; k++) {
            reached[n->in[k]->id] = true;
        }
    }
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; cut_is_plain(n) && k < n->nin; k++) {
            c->made[i] = c->made[i] || c->made[n->in[k]->id];
        }
    }
}

/* Finds the chain that ends in `exit`; false where none begins with a product. */
static bool find_inside(Chain *c, Arena *scratch, const Region *region, const Node *exit) {
    int count = (int)exit->id + 1;
    bool *asked = ARENA_ARRAY(scratch, bool, count), started = false;
    c->exit = exit;
    c->inside = ARENA_ARRAY(scratch, bool, count);
    c->made = ARENA_ARRAY(scratch, bool, count);
    c->stored = ARENA_ARRAY(scratch, bool, count);
    c->places = ARENA_ARRAY(scratch, bool, count);
    find_made(c, scratch, region, exit);
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i];
        const bool plain = cut_is_plain(n);
        c->places[i] = is_of_places(c, n);
        c->stored[i] = is_large(n, c->limits) && !plain && !is_leaf(n);
        for (int k = 0; plain && is_large(n, c->limits) && k < n->nin; k++) {
            c->stored[i] = c->stored[i] || c->stored[n->in[k]->id];
        }
    }
    c->inside[exit->id] = asked[exit->id] = true;
    for (int i = count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        c->inside[i] = asked[i] && (n == exit || c->made[i] || c->places[i] || is_spread(c, n));
        started = started || (c->inside[i] && is_start(n, c->limits));
        for (int k = 0; c->inside[i] && k < n->nin; k++) {
            asked[n->in[k]->id] = true;
        }
        if (c->inside[i] && size_of(n) > c->largest) {
            c->largest = size_of(n);
        }
    }
    return started;
}

/* Is what is made inside read there alone? Else it is made as a whole anyway. Nor may a derivative
 * be taken to anything inside. */
static bool is_private(const Chain *c, Arena *scratch, const Region *region) {
    int count = (int)c->exit->id;
    bool *read = ARENA_ARRAY(scratch, bool, region->node.count); /* by what is needed outside */
    bool *live = ARENA_ARRAY(scratch, bool, region->node.count);
    bool *point = ARENA_ARRAY(scratch, bool, region->node.count);
    points_note(region, point);
    for (int k = 0; k < region->out.count; k++) {
        read[region->out.at[k]->id] = live[region->out.at[k]->id] = true;
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        bool inside = i <= count && c->inside[i];
        for (int k = 0; live[i] && k < n->nin; k++) {
            live[n->in[k]->id] = true;
            read[n->in[k]->id] = read[n->in[k]->id] || !inside;
        }
    }
    for (int i = 0; i < count; i++) {
        if (c->inside[i] && ((c->made[i] && read[i]) || point[i])) {
            return false;
        }
    }
    return true;
}

/* --- labels ----------------------------------------------------------------------------------- */

static void put_axis(CutLabel *l, const Node *n, int axis) {
    int8_t *at = &l->axis[n->id];
    l->valid = l->valid && (*at == CUT_UNSEEN || *at == axis);
    *at = (int8_t)axis;
}

/* Hands the label from axis `axis` of `n` on to what it reads; `by_rows` as in ChunkLimits. */
static void follow(CutLabel *l, const Node *n, int axis, bool by_rows) {
    for (int k = 0; k == 0 || k < n->nin; k++) {
        int from = cut_from(n, k, axis, by_rows);
        l->valid = l->valid && from != CUT_LOST;
        if (l->valid && k < n->nin) {
            put_axis(l, n->in[k], from);
        }
    }
}

/* Follows each batch label of the exit; keeps those that all of the chain has. */
static void find_labels(Chain *c, Arena *scratch, const Region *region) {
    const Node *exit = c->exit;
    for (int axis = 0; axis < exit->type->rank && c->labels < CUT_LABELS; axis++) {
        CutLabel *l = &c->label[c->labels];
        int count = (int)exit->id + 1;
        *l = (CutLabel){ARENA_ARRAY(scratch, int8_t, count), exit->type->dim[axis], 1, 0, true};
        memset(l->axis, CUT_UNSEEN, (size_t)count);
        put_axis(l, exit, axis);
        for (int i = count - 1; i >= 0 && l->valid; i--) {
            const Node *n = region->node.at[i];
            if (!c->inside[i]) {
                continue;
            }
            if (l->axis[i] >= 0) {
                follow(l, n, l->axis[i], c->limits.rows);
            } else { /* it is the same in all chunks */
                l->valid = !c->made[i];
                for (int k = 0; k < n->nin; k++) {
                    put_axis(l, n->in[k], CUT_NO_AXIS);
                }
            }
        }
        c->labels += l->valid && l->extent > 1;
    }
}

/* Outer labels first, as few iterations as make the chunks small enough; keeps those that are cut.
 */
static int64_t cut_labels(Chain *c) {
    int64_t bytes = c->largest, trip = 1;
    int labels = c->labels;
    c->labels = 0;
    for (int k = 0; k < labels; k++) {
        CutLabel *l = &c->label[c->labels];
        *l = c->label[k];
        while (l->extent % l->trip != 0 ||
               (bytes / l->trip > c->limits.own && l->trip < l->extent)) {
            l->trip++;
        }
        l->own = l->extent / l->trip;
        bytes /= l->trip;
        trip *= l->trip;
        c->labels += l->trip > 1;
    }
    return trip;
}

/* --- the loop --------------------------------------------------------------------------------- */

struct Cut {
    const Chain *c;
    Graph *g;
    LoopBuilder *loop;
    int64_t trip;
    Node **map; /* by node: in the body */
};

/* Ranks of the views at the border: all axes, those of the labels twice. */
static bool ranks_fit(const Chain *c, const Region *region) {
    for (int i = 0; i <= (int)c->exit->id; i++) {
        bool crosses = false;
        for (int k = 0; k < c->labels; k++) {
            crosses = crosses || c->label[k].axis[i] >= 0;
        }
        if (crosses && region->node.at[i]->type->rank + c->labels > MD_RANK) {
            return false;
        }
    }
    return true;
}

static Node *chain_loop(Graph *g, const Chain *c, Arena *scratch, int64_t trip) {
    const Region *region = c->exit->region;
    Cut cut = {.g = g, .label = c->label, .labels = c->labels, .trip = trip};
    Loc loc = g->loc;
    cut.map = ARENA_ARRAY(scratch, Node *, c->exit->id + 1);
    cut.loop = loop_open(g, trip, false);
    loop_checkpoint(cut.loop, CHECKPOINT_EACH);
    for (int i = 0; i <= (int)c->exit->id; i++) {
        const Node *n = region->node.at[i];
        if (c->inside[i]) {
            cut_make(&cut, n, NULL);
        }
    }
    int y = loop_emit(cut.loop, cut.map[c->exit->id]);
    g->loc = c->exit->loc;
    Node *whole = cut_out(&cut, c->exit, loop_stack(g, loop_close(cut.loop), y));
    g->loc = loc;
    return whole;
}

/* May a chain end in what is no product: where a value per row is all that is left of its rows? */
static bool may_close(const Node *n, ChunkLimits limits) {
    return limits.rows && n->type->rank > 0 && cut_is_plain(n) && !is_large(n, limits) &&
           op_info[n->op].cls != CLASS_VIEW;
}

static bool may_exit(const Node *n, ChunkLimits limits) {
    return may_end(n, limits) || may_close(n, limits);
}

static Node *visit(void *ctx, Graph *g, const Node *old, Node *const *in) {
    const ChunkLimits limits = *(const ChunkLimits *)ctx;
    if (!may_exit(old, limits)) {
        return NULL;
    }
    Arena scratch = {0};
    Chain was = {.limits = limits}, c = was;
    Node *whole = NULL;
    if (find_inside(&was, &scratch, old->region, old) && is_private(&was, &scratch, old->region)) {
        whole = graph_copy(g, old, in);
    }
    if (whole && may_exit(whole, limits) && find_inside(&c, &scratch, g->region, whole)) {
        find_labels(&c, &scratch, g->region);
        int64_t trip = cut_labels(&c);
        /* A mask that differs from chunk to chunk goes in slice by slice. */
        Chain with = {.limits = limits, .masks = true};
        if (trip > 1 && find_inside(&with, &scratch, g->region, whole)) {
            find_labels(&with, &scratch, g->region);
            c = cut_labels(&with) == trip && with.labels == c.labels ? with : c;
        }
        if (trip > 1 && ranks_fit(&c, g->region)) {
            whole = chain_loop(g, &c, &scratch, trip);
        }
    }
    arena_free(&scratch);
    return whole;
}

static bool usually_ends(const Node *n) {
    return may_end(n, chunk_limits);
}

int64_t chunk_largest(const Region *region) {
    int64_t most = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (is_start(n, chunk_by_rows(1)) && size_of(n) > most) {
            most = size_of(n);
        }
    }
    return most;
}

bool chunk_applies(const Region *region) {
    return region_any(region, usually_ends);
}

Region *pass_chunk(Graph *g, const Region *region, ChunkLimits limits) {
    return region_rebuild(g, region, visit, &limits);
}
