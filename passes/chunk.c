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

#include <string.h>

const ChunkLimits chunk_limits = {TUNED(32 << 20, 4096), TUNED(2 << 20, 512), false};

ChunkLimits chunk_by_rows(int64_t own) {
    return (ChunkLimits){own, own, true};
}

enum {
    GROWTH = 2,     /* times what its product reads: less is not worth making it again */
    MOST_LABELS = 4 /* that are followed */
};
enum { NO_AXIS = -1, UNSEEN = -2, LOST = -3 };

/* A batch label of the exit. */
typedef struct {
    int8_t *axis;      /* by node inside or going in: where it has the label */
    int64_t extent;    /* of all chunks */
    int64_t trip, own; /* iterations, and places of the label in each: trip * own == extent */
    bool valid;
} Label;

typedef struct {
    ChunkLimits limits;
    const Node *exit;
    bool *inside, *made; /* by node: in the chain; made of a large product */
    Label label[MOST_LABELS];
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

/* A product that a chain may end in. */
static bool may_end(const Node *n, ChunkLimits limits) {
    return n->op == OP_CONTRACT && !is_large(n, limits) &&
           (is_large(n->in[0], limits) || is_large(n->in[1], limits));
}

static bool is_start(const Node *n, ChunkLimits limits) {
    return n->op == OP_CONTRACT && is_large(n, limits) &&
           size_of(n) / GROWTH >= size_of(n->in[0]) + size_of(n->in[1]);
}

/* How an op is made for a chunk alone. */
typedef struct Cut Cut;
typedef struct {
    /* The axis of operand `k` that has the label of axis `axis` of the result; NO_AXIS: it has
     * none; LOST: the label ends there. */
    int (*from)(const Node *n, int k, int axis);
    Node *(*own)(Cut *cut, const Node *n, Node *const *in);
} Rule;
static const Rule *rule_of(const Node *n); /* NULL: it is not */

static bool is_plain(const Node *n) {
    return n->op != OP_CONTRACT && rule_of(n);
}

/* Is it large and made of what is not? By rows what else goes in is sliced, not made again. */
static bool is_spread(const Node *n, ChunkLimits limits) {
    return is_plain(n) && is_large(n, limits) &&
           (!limits.rows || n->op == OP_BROADCAST || n->nin == 0);
}

/* Finds the chain that ends in `exit`; false where none begins with a product. */
static bool find_inside(Chain *c, Arena *scratch, const Region *region, const Node *exit) {
    int count = (int)exit->id + 1;
    bool *asked = ARENA_ARRAY(scratch, bool, count), started = false;
    c->exit = exit;
    c->inside = ARENA_ARRAY(scratch, bool, count);
    c->made = ARENA_ARRAY(scratch, bool, count);
    for (int i = 0; i < count; i++) {
        const Node *n = region->node.at[i];
        c->made[i] = is_start(n, c->limits);
        for (int k = 0; is_plain(n) && k < n->nin; k++) {
            c->made[i] = c->made[i] || c->made[n->in[k]->id];
        }
    }
    c->inside[exit->id] = asked[exit->id] = true;
    for (int i = count - 1; i >= 0; i--) {
        const Node *n = region->node.at[i];
        c->inside[i] = asked[i] && (n == exit || c->made[i] || is_spread(n, c->limits));
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

/* Is what is made inside read there alone? Else it is made as a whole anyway. */
static bool is_private(const Chain *c, Arena *scratch, const Region *region) {
    int count = (int)c->exit->id;
    bool *read = ARENA_ARRAY(scratch, bool, region->node.count); /* by what is needed outside */
    bool *live = ARENA_ARRAY(scratch, bool, region->node.count);
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
        if (c->inside[i] && c->made[i] && read[i]) {
            return false;
        }
    }
    return true;
}

/* --- labels ----------------------------------------------------------------------------------- */

static void put_axis(Label *l, const Node *n, int axis) {
    int8_t *at = &l->axis[n->id];
    l->valid = l->valid && (*at == UNSEEN || *at == axis);
    *at = (int8_t)axis;
}

static int axes_below(uint32_t axes, int axis) {
    int below = 0;
    for (int i = 0; i < axis; i++) {
        below += (axes >> i & 1) != 0;
    }
    return below;
}

static int from_same(const Node *n, int k, int axis) {
    (void)n, (void)k;
    return axis;
}

static int from_contract(const Node *n, int k, int axis) {
    const Attr *a = n->attr;
    int other = find_label(k == 0 ? a->lb : a->la, n->in[!k]->type->rank, a->lo_[axis]);
    int own = find_label(k == 0 ? a->la : a->lb, n->in[k]->type->rank, a->lo_[axis]);
    return own >= 0 && other >= 0 ? own : LOST;
}

static int from_reshape(const Node *n, int k, int axis) {
    Type from = *n->in[k]->type, to = *n->type;
    int64_t before = 1, seen = 1;
    for (int i = 0; i < axis; i++) {
        before *= to.dim[i];
    }
    for (int i = 0; i < from.rank; i++) {
        if (seen == before && from.dim[i] == to.dim[axis]) {
            return i;
        }
        seen *= from.dim[i];
    }
    return LOST;
}

static int from_permute(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->map[axis];
}

static int from_slice(const Node *n, int k, int axis) {
    bool whole = n->attr->hi[axis] == n->in[k]->type->dim[axis] && n->attr->step[axis] == 1;
    return whole ? axis : LOST;
}

static int from_broadcast(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axes >> axis & 1 ? NO_AXIS : axis - axes_below(n->attr->axes, axis);
}

static int from_fold(const Node *n, int k, int axis) {
    (void)k;
    int i = 0;
    for (int left = axis;; i++) {
        if (!(n->attr->axes >> i & 1) && left-- == 0) {
            return i;
        }
    }
}

/* Of what is looked up, and of the indices, axes that are the same in both. */
static int from_gather(const Node *n, int k, int axis) {
    (void)k;
    return axis < n->attr->batch ? axis : LOST;
}

static int from_iota(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axis == axis ? LOST : NO_AXIS;
}

/* Of a label that one operand alone may have. */
static int from_rows(const Node *n, int k, int axis) {
    const Attr *a = n->attr;
    int own = find_label(k == 0 ? a->la : a->lb, n->in[k]->type->rank, a->lo_[axis]);
    return own >= 0 ? own : NO_AXIS;
}

/* Hands the label from axis `axis` of `n` on to what it reads; `by_rows` as in ChunkLimits. */
static void follow(Label *l, const Node *n, int axis, bool by_rows) {
    for (int k = 0; k == 0 || k < n->nin; k++) {
        bool rows = by_rows && n->op == OP_CONTRACT;
        int from = rows ? from_rows(n, k, axis) : rule_of(n)->from(n, k, axis);
        l->valid = l->valid && from != LOST;
        if (l->valid && k < n->nin) {
            put_axis(l, n->in[k], from);
        }
    }
}

/* Follows each batch label of the exit; keeps those that all of the chain has. */
static void find_labels(Chain *c, Arena *scratch, const Region *region) {
    const Node *exit = c->exit;
    for (int axis = 0; axis < exit->type->rank && c->labels < MOST_LABELS; axis++) {
        Label *l = &c->label[c->labels];
        int count = (int)exit->id + 1;
        *l = (Label){ARENA_ARRAY(scratch, int8_t, count), exit->type->dim[axis], 1, 0, true};
        memset(l->axis, UNSEEN, (size_t)count);
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
                    put_axis(l, n->in[k], NO_AXIS);
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
        Label *l = &c->label[c->labels];
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

/* Axes of `n` that an iteration has not, since it is at one place of them. */
static uint32_t gone_axes(const Chain *c, const Node *n) {
    uint32_t gone = 0;
    for (int k = 0; k < c->labels; k++) {
        int axis = c->label[k].axis[n->id];
        gone |= axis >= 0 && c->label[k].own == 1 ? 1u << axis : 0;
    }
    return gone;
}

static int64_t own_extent(const Chain *c, const Node *n, int axis) {
    for (int k = 0; k < c->labels; k++) {
        if (c->label[k].axis[n->id] == axis) {
            return c->label[k].own;
        }
    }
    return n->type->dim[axis];
}

/* The type that `n` has in an iteration. */
static Type own_type(const Chain *c, const Node *n) {
    Type own = {.elem = n->type->elem};
    uint32_t gone = gone_axes(c, n);
    for (int i = 0; i < n->type->rank; i++) {
        if (!(gone >> i & 1)) {
            own.dim[own.rank++] = own_extent(c, n, i);
        }
    }
    return own;
}

/* Bits of `axes` for the axes that are left. */
static uint32_t left_axes(uint32_t axes, uint32_t gone) {
    uint32_t left = 0;
    for (int i = 0, at = 0; i < MD_RANK; i++) {
        if (!(gone >> i & 1)) {
            left |= (axes >> i & 1) << at++;
        }
    }
    return left;
}

/* Labels of the axes that are left, of `n` numbers. */
static int left_labels(const int8_t *from, int n, uint32_t gone, int8_t *to) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (!(gone >> i & 1)) {
            to[count++] = from[i];
        }
    }
    return count;
}

/* The product of an iteration: labels at one place are none of it. */
static Node *own_contract(Cut *cut, const Node *n, Node *const *in) {
    int8_t list[3][MD_RANK], number[3 * MD_RANK];
    const int8_t *from[3] = {n->attr->la, n->attr->lb, n->attr->lo_};
    const Node *of[3] = {n->in[0], n->in[1], n};
    int rank = 0;
    int8_t next = 0;
    memset(number, -1, sizeof number);
    for (int k = 0; k < 3; k++) {
        rank = left_labels(from[k], of[k]->type->rank, gone_axes(cut->c, of[k]), list[k]);
        for (int i = 0; i < rank; i++) {
            int8_t *to = &number[list[k][i]];
            *to = *to < 0 ? next++ : *to;
            list[k][i] = *to;
        }
    }
    bool exact = cut->g->exact;
    cut->g->exact = n->attr->exact;
    Node *made = node_contract(cut->g, in[0], in[1], list[0], list[1], list[2], rank);
    cut->g->exact = exact;
    return made;
}

static Node *own_reshape(Cut *cut, const Node *n, Node *const *in) {
    Type type = own_type(cut->c, n);
    return node_reshape(cut->g, in[0], type.rank, type.dim);
}

static Node *own_permute(Cut *cut, const Node *n, Node *const *in) {
    uint32_t gone = gone_axes(cut->c, n), behind = gone_axes(cut->c, n->in[0]);
    int map[MD_RANK] = {0}, rank = 0;
    for (int i = 0; i < n->type->rank; i++) {
        if (!(gone >> i & 1)) {
            int from = n->attr->map[i];
            map[rank++] = from - axes_below(behind, from);
        }
    }
    return node_permute(cut->g, in[0], map);
}

static Node *own_slice(Cut *cut, const Node *n, Node *const *in) {
    int64_t lo[MD_RANK], extent[MD_RANK], step[MD_RANK];
    uint32_t gone = gone_axes(cut->c, n);
    for (int i = 0, rank = 0; i < n->type->rank; i++) {
        if (!(gone >> i & 1)) {
            lo[rank] = n->attr->lo[i];
            extent[rank] = own_extent(cut->c, n, i);
            step[rank++] = n->attr->step[i];
        }
    }
    return node_slice(cut->g, in[0], lo, extent, step);
}

static Node *own_broadcast(Cut *cut, const Node *n, Node *const *in) {
    Type type = own_type(cut->c, n);
    uint32_t axes = left_axes(n->attr->axes, gone_axes(cut->c, n));
    return node_broadcast(cut->g, in[0], axes, type.rank, type.dim);
}

static Node *own_fold(Cut *cut, const Node *n, Node *const *in) {
    uint32_t axes = left_axes(n->attr->axes, gone_axes(cut->c, n->in[0]));
    return node_fold(cut->g, n->op, in[0], axes);
}

static Node *own_gather(Cut *cut, const Node *n, Node *const *in) {
    int batch = n->attr->batch - axes_below(gone_axes(cut->c, n), n->attr->batch);
    return node_gather(cut->g, in[0], in[1], batch);
}

static Node *own_iota(Cut *cut, const Node *n, Node *const *in) {
    (void)in;
    int axis = n->attr->axis - axes_below(gone_axes(cut->c, n), n->attr->axis);
    return node_iota(cut->g, own_type(cut->c, n), axis);
}

static Node *own_map(Cut *cut, const Node *n, Node *const *in) {
    return graph_add(cut->g, n->op, in, n->nin, n->attr, own_type(cut->c, n));
}

static const Rule *rule_of(const Node *n) {
    static const Rule fold = {from_fold, own_fold}, map = {from_same, own_map};
    static const Rule rules[OP_COUNT] = {
        [OP_CONTRACT] = {from_contract, own_contract},
        [OP_RESHAPE] = {from_reshape, own_reshape},
        [OP_PERMUTE] = {from_permute, own_permute},
        [OP_SLICE] = {from_slice, own_slice},
        [OP_IOTA] = {from_iota, own_iota},
        [OP_GATHER] = {from_gather, own_gather},
        [OP_STOP] = {from_same, own_map},
        [OP_BROADCAST] = {from_broadcast, own_broadcast},
    };
    bool folds = n->op == OP_SUM || n->op == OP_PROD || n->op == OP_FMAX || n->op == OP_FMIN;
    bool maps = op_info[n->op].cls == CLASS_MAP && n->op != OP_RANDOM;
    return rules[n->op].own ? &rules[n->op] : folds ? &fold : maps ? &map : NULL;
}

/* Node `n` of the chain for the chunk of an iteration. */
static Node *own_node(Cut *cut, const Node *n) {
    Node *in[3];
    for (int k = 0; k < n->nin; k++) {
        in[k] = cut->map[n->in[k]->id];
    }
    return rule_of(n)->own(cut, n, in);
}

/* What goes in, with the labels' iterations as one axis in front; the same for all: as it is. */
static Node *going_in(Cut *cut, Node *x) {
    const Chain *c = cut->c;
    int64_t split[MD_RANK + MOST_LABELS], front[MOST_LABELS], turned[MD_RANK + MOST_LABELS];
    int map[MD_RANK + MOST_LABELS], place[MOST_LABELS], rank = 0, cuts = 0, turns = 0;
    uint32_t fresh = 0;
    for (int i = 0; i < x->type->rank; i++) {
        int64_t own = x->type->dim[i];
        for (int k = 0; k < c->labels; k++) {
            if (c->label[k].axis[x->id] == i) {
                place[k] = rank;
                split[rank++] = c->label[k].trip;
                own = c->label[k].own;
                cuts++;
            }
        }
        split[rank++] = own;
    }
    if (cuts == 0) {
        return graph_import(cut->g, x);
    }
    Region *before = graph_enter(cut->g, x->region);
    Node *stack = node_reshape(cut->g, x, rank, split);
    uint32_t moved = 0;
    for (int k = 0; k < c->labels; k++) {
        if (c->label[k].axis[x->id] >= 0) {
            map[turns++] = place[k];
            moved |= 1u << place[k];
        }
    }
    for (int i = 0; i < rank; i++) {
        if (!(moved >> i & 1)) {
            map[turns++] = i;
        }
    }
    stack = node_permute(cut->g, stack, map);
    rank = c->labels;
    for (int k = 0; k < c->labels; k++) {
        front[k] = c->label[k].trip;
        fresh |= c->label[k].axis[x->id] >= 0 ? 0 : 1u << k;
    }
    memcpy(turned, front, sizeof *front * (size_t)rank);
    for (int i = cuts; i < stack->type->rank; i++) {
        turned[rank++] = stack->type->dim[i];
    }
    stack = node_broadcast(cut->g, stack, fresh, rank, turned);
    Type own = own_type(c, x);
    turned[0] = cut->trip;
    memcpy(turned + 1, own.dim, sizeof *own.dim * (size_t)own.rank);
    stack = node_reshape(cut->g, stack, 1 + own.rank, turned);
    graph_leave(cut->g, before);
    return loop_xs(cut->loop, stack);
}

/* The exit as a whole: the labels' iterations go back to their axes. */
static Node *coming_out(Cut *cut, Node *stack) {
    const Chain *c = cut->c;
    const Node *exit = c->exit;
    int64_t dim[MD_RANK + MOST_LABELS];
    int map[MD_RANK + MOST_LABELS], rank = c->labels, turns = 0;
    uint32_t gone = gone_axes(c, exit);
    for (int k = 0; k < c->labels; k++) {
        dim[k] = c->label[k].trip;
    }
    for (int i = 0; i < exit->type->rank; i++) {
        for (int k = 0; k < c->labels; k++) {
            if (c->label[k].axis[exit->id] == i) {
                map[turns++] = k;
            }
        }
        if (!(gone >> i & 1)) {
            map[turns++] = rank;
            dim[rank++] = own_extent(c, exit, i);
        }
    }
    Node *apart = node_permute(cut->g, node_reshape(cut->g, stack, rank, dim), map);
    return node_reshape(cut->g, apart, exit->type->rank, exit->type->dim);
}

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
    Cut cut = {.c = c, .g = g, .trip = trip};
    Loc loc = g->loc;
    cut.map = ARENA_ARRAY(scratch, Node *, c->exit->id + 1);
    cut.loop = loop_open(g, trip, false);
    loop_checkpoint(cut.loop, CHECKPOINT_EACH);
    for (int i = 0; i <= (int)c->exit->id; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; c->inside[i] && k < n->nin; k++) {
            Node **in = &cut.map[n->in[k]->id];
            *in = *in ? *in : going_in(&cut, n->in[k]);
        }
        if (c->inside[i]) {
            g->loc = n->loc;
            cut.map[i] = own_node(&cut, n);
            if (n->name) {
                graph_name(cut.map[i], n->name);
            }
        }
    }
    int y = loop_emit(cut.loop, cut.map[c->exit->id]);
    g->loc = c->exit->loc;
    Node *whole = coming_out(&cut, loop_stack(g, loop_close(cut.loop), y));
    g->loc = loc;
    return whole;
}

/* May a chain end in what is no product: where a value per row is all that is left of its rows? */
static bool may_close(const Node *n, ChunkLimits limits) {
    return limits.rows && n->type->rank > 0 && is_plain(n) && !is_large(n, limits) &&
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
