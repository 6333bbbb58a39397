/* layout: channels lie last from one convolution to the next.
 *
 * A model has its channels in front of the places of an image; products of windows have them as
 * their columns, and everything else that is done with them (scales, sums, pools) is the same for
 * all places: with the channels side by side each row of registers is stored as it is, and each
 * loop around it runs along vectors.
 *
 * Technique: a product of windows, and one that windows read, gives its result with the axes of the
 * other operand last, seen through a PERMUTE (it is turned: compiler/turn.h). What reads it is
 * computed behind that view, and has one itself: maps, folds, windows, pads, slices,
 * concatenations, products that sum the channels or share them, and reshapes that leave the places
 * and the channels apart. So values that are stored lie as they are computed. Where a reader
 * cannot, or what is random goes by the number of its element, the view is what it reads.
 * Parameters, inputs and results stay as they are.
 * Needs and gives: see layout.h. */
#include "passes/layout.h"

#include "compiler/turn.h"
#include "passes/halo.h"
#include "passes/simplify_rule.h"
#include "passes/view.h"

#include <string.h>

enum {
    LEAST_CHANNELS = TUNED(8, 2), /* that are worth to lie side by side */
    FEW_IN_GROUP = 16             /* channels of a group: more are vectors by themselves */
};

static const Turn straight = {0, 0};
static const char asked_as_it_is = 0;  /* the note of a value that nothing wants turned, */
static const char seen_in_windows = 0; /* and of one that windows read, which want it turned */

/* The view that a value is seen through, where its channels are worth to lie side by side: in loops
 * along fewer (a product with several places in a vector gives such, passes/halo.c) few lanes would
 * work, and the gradient of weights has no use for them so: what is made of them lies straight. */
static Turn channels_turn(const Node *x) {
    Turn t = turn_of(x);
    int64_t channels = 1;
    for (int i = t.axis; i < t.axis + t.count; i++) {
        channels *= x->type->dim[i];
    }
    return channels < LEAST_CHANNELS ? straight : t;
}

/* --- products --------------------------------------------------------------------------------- */

/* The labels of operand `k`, and of the other one. */
static const int8_t *labels(const Node *n, int k) {
    return k == 0 ? n->attr->la : n->attr->lb;
}

static bool has_label(const Node *n, Node *const *in, int k, int label) {
    return find_label(labels(n, k), in[k]->type->rank, label) >= 0;
}

/* Are the channels of operand `k` summed, or those of the other operand as well? */
static bool channels_end(const Node *n, Node *const *in, int k) {
    Turn t = channels_turn(in[k]);
    bool end = t.count > 0;
    for (int i = t.axis; i < t.axis + t.count; i++) {
        int label = labels(n, k)[i];
        end = end &&
              (find_label(n->attr->lo_, n->type->rank, label) < 0 || has_label(n, in, !k, label));
    }
    return end;
}

/* The first neighbouring axes of the result that operand `k`, the image, does not have for itself:
 * behind its first axis and in front of its last ones, and enough of them. */
static Turn channels_of(const Node *n, Node *const *in, int k) {
    int rank = n->type->rank, first = 0, end;
    int64_t count = 1;
    while (first < rank && !has_label(n, in, !k, n->attr->lo_[first])) {
        first++;
    }
    for (end = first; end < rank && has_label(n, in, !k, n->attr->lo_[end]); end++) {
        count *= n->type->dim[end];
    }
    bool fits = first > 0 && first < end && end < rank && count >= LEAST_CHANNELS;
    return fits ? (Turn){first, end - first} : straight;
}

/* How the result is to be turned. */
static Turn product_turn(const Node *n, Node *const *in) {
    Turn t = straight;
    for (int k = 0; k < 2 && t.count == 0; k++) {
        if (n->note == &seen_in_windows || channels_end(n, in, k) || view_has_window(in[k])) {
            t = channels_of(n, in, k);
        }
    }
    return t;
}

static Node *product_behind(Graph *g, const Node *n, Node *const *in, Turn t) {
    int8_t list[2][MD_RANK], to[MD_RANK];
    Node *operand[2];
    for (int k = 0; k < 2; k++) {
        Turn own = halo_turns(n, k) ? straight : channels_turn(in[k]);
        int rank = in[k]->type->rank;
        for (int i = 0; i < rank; i++) {
            list[k][turn_place(own, rank, i)] = labels(n, k)[i];
        }
        operand[k] = turn_behind(g, in[k], own);
    }
    for (int i = 0; i < n->type->rank; i++) {
        to[turn_place(t, n->type->rank, i)] = n->attr->lo_[i];
    }
    return node_contract(g, operand[0], operand[1], list[0], list[1], to, n->type->rank);
}

static Node *contract_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = n->note == &asked_as_it_is ? straight : product_turn(n, in);
    bool any = t.count > 0 || channels_turn(in[0]).count > 0 || channels_turn(in[1]).count > 0;
    return any ? turn_view(g, product_behind(g, n, in, t), t) : NULL;
}

/* --- what reads turned values ----------------------------------------------------------------- */

static Type type_behind(Type type, Turn t) {
    Type behind = type;
    turn_list(t, type.rank, type.dim, behind.dim);
    return behind;
}

/* Of the operands, all of one shape. */
static Turn first_turn(const Node *n, Node *const *in) {
    Turn t = straight;
    for (int k = 0; k < n->nin && t.count == 0; k++) {
        t = channels_turn(in[k]);
    }
    return t;
}

/* What a group of channels shares, repeated for all places, is repeated for each channel first:
 * that is little, and worth a place in memory (fuse), so that vectors run along all channels. The
 * channels are one axis there: repeated twice a value would be repeated once. */
static Node *by_channel(Graph *g, Node *x) {
    const int rank = x->type->rank;
    const uint32_t axes = x->op == OP_BROADCAST ? x->attr->axes : 0;
    int first = rank;
    int64_t lanes = 1, dim[MD_RANK];
    while (first > 0 && axes >> (first - 1) & 1) {
        lanes *= x->type->dim[--first];
    }
    const uint32_t front = first > 0 ? axes & ((UINT32_C(1) << (first - 1)) - 1) : 0;
    if (first == 0 || first == rank || front == 0 || lanes == 1 || lanes >= FEW_IN_GROUP) {
        return x;
    }
    const Node *base = x->in[0];
    int own = base->type->rank;
    memcpy(dim, base->type->dim, sizeof *dim * (size_t)own);
    dim[own] = lanes;
    Node *each = node_broadcast(g, x->in[0], UINT32_C(1) << own, own + 1, dim);
    dim[own - 1] *= lanes;
    each = node_reshape(g, each, own, dim);
    graph_name(each, "by_channel");
    memcpy(dim, x->type->dim, sizeof *dim * (size_t)first);
    dim[first - 1] *= lanes;
    return node_reshape(g, node_broadcast(g, each, front, first, dim), rank, x->type->dim);
}

static Node *map_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = first_turn(n, in);
    Node *operand[3];
    for (int k = 0; k < n->nin && t.count > 0; k++) {
        if (in[k]->op == OP_RANDOM) {
            return NULL;
        }
        operand[k] = by_channel(g, turn_behind(g, in[k], t));
    }
    return t.count > 0 ? turn_view(g, same_op(g, n, operand, type_behind(*n->type, t)), t) : NULL;
}

/* The turn of the result of a fold over `axes`. */
static Turn turn_without(Turn t, uint32_t axes) {
    Turn left = t;
    for (int i = 0; i < t.axis + t.count; i++) {
        left.axis -= i < t.axis && axes >> i & 1;
        left.count -= i >= t.axis && axes >> i & 1;
    }
    return left;
}

/* A turn that moves something. */
static Turn turn_of_rank(Turn t, int rank) {
    return t.axis < 1 || t.axis + t.count >= rank ? straight : t;
}

/* The turn of what is left when `axes` of the operand are folded; false: its channels would be in
 * front of all else. */
static bool folded_turn(const Node *n, const Node *x, uint32_t axes, Turn *left) {
    *left = turn_without(channels_turn(x), axes);
    if (left->count > 0 && left->axis < 1 && left->count < n->type->rank) {
        return false;
    }
    *left = turn_of_rank(*left, n->type->rank);
    return true;
}

/* The fold over `axes`. Channels of a group lie side by side, groups behind one another: where few
 * are folded with all that lies in front of the groups, each channel is folded first, so that
 * vectors run along them. */
static Node *fold_behind(Graph *g, OpCode op, Node *x, uint32_t axes) {
    const int last = x->type->rank - 1;
    const uint32_t front = axes & ~(UINT32_C(1) << last);
    if (front == axes || front == 0 || last < 1 || axes >> (last - 1) & 1 ||
        x->type->dim[last] >= FEW_IN_GROUP || x->type->dim[last - 1] == 1) {
        return node_fold(g, op, x, axes);
    }
    Node *each = node_fold(g, op, x, front);
    return node_fold(g, op, each, UINT32_C(1) << (each->type->rank - 1));
}

static Node *fold_rule(Graph *g, const Node *n, Node *const *in) {
    Turn left;
    uint32_t axes = turn_axes(channels_turn(in[0]), in[0]->type->rank, n->attr->axes);
    return folded_turn(n, in[0], n->attr->axes, &left)
               ? turn_view(g, fold_behind(g, n->op, in[0]->in[0], axes), left)
               : NULL;
}

static Node *argfold_rule(Graph *g, const Node *n, Node *const *in) {
    Turn left;
    int axis = turn_place(channels_turn(in[0]), in[0]->type->rank, n->attr->axis);
    return folded_turn(n, in[0], 1u << n->attr->axis, &left)
               ? turn_view(g, node_argfold(g, n->op, in[0]->in[0], axis), left)
               : NULL;
}

static bool inside(Turn t, int axis) {
    return axis >= t.axis && axis < t.axis + t.count;
}

static Node *window_rule(Graph *g, const Node *n, Node *const *in) {
    const Attr *a = n->attr;
    Turn t = channels_turn(in[0]);
    if (inside(t, a->axis)) {
        return NULL;
    }
    int axis = turn_place(t, in[0]->type->rank, a->axis);
    Node *behind = node_window(g, in[0]->in[0], axis, a->s, a->d, a->p, a->count, a->taps,
                               a->border, a->value);
    t.axis += a->axis < t.axis;
    return turn_view(g, behind, t);
}

static Node *overlap_add_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]);
    Attr a = attr_copy(n->attr);
    if (inside(t, a.axis) || inside(t, a.axis + 1)) {
        return NULL;
    }
    bool in_front = a.axis < t.axis;
    a.axis = turn_place(t, in[0]->type->rank, a.axis);
    t.axis -= in_front;
    return turn_view(g, node_overlap_add(g, in[0]->in[0], &a), turn_of_rank(t, n->type->rank));
}

static Node *pad_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]);
    int64_t lo[MD_RANK], hi[MD_RANK];
    for (int i = t.axis; n->in[0]->op == OP_PERMUTE && i < t.axis + t.count; i++) {
        if (n->attr->lo[i] != 0 || n->attr->hi[i] != 0) {
            return NULL; /* places, which lie behind the channels until they are copied (halo.c) */
        }
    }
    turn_list(t, n->type->rank, n->attr->lo, lo);
    turn_list(t, n->type->rank, n->attr->hi, hi);
    return turn_view(g, node_pad(g, in[0]->in[0], lo, hi, n->attr->border, n->attr->value), t);
}

static Node *slice_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]);
    int64_t lo[MD_RANK], extent[MD_RANK], step[MD_RANK];
    turn_list(t, n->type->rank, n->attr->lo, lo);
    turn_list(t, n->type->rank, n->type->dim, extent);
    turn_list(t, n->type->rank, n->attr->step, step);
    return turn_view(g, node_slice(g, in[0]->in[0], lo, extent, step), t);
}

static Node *flip_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]);
    uint32_t axes = turn_axes(t, n->type->rank, n->attr->axes);
    return turn_view(g, node_flip(g, in[0]->in[0], axes), t);
}

/* New axes: in front of the channels, between them and the others, behind all. */
static Node *broadcast_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]), wide = {-1, 0};
    int rank = n->type->rank;
    for (int i = 0, k = 0; i < rank; i++) {
        if (!(n->attr->axes >> i & 1)) {
            if (inside(t, k)) {
                wide.axis = wide.count == 0 ? i : wide.axis;
                wide.count = i + 1 - wide.axis;
            }
            k++;
        }
    }
    if (wide.count != t.count) { /* one of them stands between the channels */
        return NULL;
    }
    int64_t dim[MD_RANK];
    turn_list(wide, rank, n->type->dim, dim);
    uint32_t axes = turn_axes(wide, rank, n->attr->axes);
    return turn_view(g, node_broadcast(g, in[0]->in[0], axes, rank, dim), wide);
}

/* The axes of the result that hold those of the operand from `first` on, up to `end`; count 0: they
 * do not begin and end there. */
static Turn same_axes(const Type *from, Turn t, const Type *to) {
    int64_t before = 1, count = 1, seen = 1, size = 1;
    int first = 0, end;
    for (int i = 0; i < t.axis + t.count; i++) {
        before *= i < t.axis ? from->dim[i] : 1;
        count *= i < t.axis ? 1 : from->dim[i];
    }
    while (first < to->rank && seen < before) {
        seen *= to->dim[first++];
    }
    while (first < to->rank && to->dim[first] == 1) { /* belongs to those in front */
        first++;
    }
    for (end = first; end < to->rank && size < count; end++) {
        size *= to->dim[end];
    }
    return seen == before && size == count && count > 1 ? (Turn){first, end - first} : straight;
}

static Node *reshape_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = same_axes(in[0]->type, channels_turn(in[0]), n->type);
    if (t.count == 0 || t.axis < 1) {
        return NULL;
    }
    int64_t dim[MD_RANK];
    t = turn_of_rank(t, n->type->rank);
    turn_list(t, n->type->rank, n->type->dim, dim);
    return turn_view(g, node_reshape(g, in[0]->in[0], n->type->rank, dim), t);
}

/* The channels stay together: the others are permuted behind the view. */
static Node *permute_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = channels_turn(in[0]), moved = {0, t.count};
    int rank = n->type->rank, map[MD_RANK];
    while (n->attr->map[moved.axis] != t.axis) {
        moved.axis++;
    }
    for (int i = 0; i < t.count; i++) {
        if (moved.axis + i == rank || n->attr->map[moved.axis + i] != t.axis + i) {
            return NULL;
        }
    }
    if (moved.axis < 1) {
        return NULL;
    }
    for (int i = 0; i < rank; i++) {
        map[turn_place(moved, rank, i)] = turn_place(t, rank, n->attr->map[i]);
    }
    return turn_view(g, node_permute(g, in[0]->in[0], map), turn_of_rank(moved, rank));
}

static Node *concat_rule(Graph *g, const Node *n, Node *const *in) {
    Turn t = first_turn(n, in);
    Node *part[CONCAT_PARTS];
    if (n->nin > CONCAT_PARTS || (inside(t, n->attr->axis) && t.count > 1)) {
        return NULL;
    }
    for (int k = 0; k < n->nin; k++) {
        part[k] = turn_behind(g, in[k], t);
    }
    int axis = turn_place(t, n->type->rank, n->attr->axis);
    return turn_view(g, node_concat(g, part, n->nin, axis), t);
}

/* --- the pass --------------------------------------------------------------------------------- */

typedef struct {
    OpCode op; /* each stands here once */
    SimplifyRule rule;
} Row;

static const Row rows[] = {
    {OP_SUM, fold_rule},        {OP_PROD, fold_rule},
    {OP_FMAX, fold_rule},       {OP_FMIN, fold_rule},
    {OP_ARGMAX, argfold_rule},  {OP_ARGMIN, argfold_rule},
    {OP_WINDOW, window_rule},   {OP_OVERLAP_ADD, overlap_add_rule},
    {OP_PAD, pad_rule},         {OP_SLICE, slice_rule},
    {OP_FLIP, flip_rule},       {OP_BROADCAST, broadcast_rule},
    {OP_RESHAPE, reshape_rule}, {OP_PERMUTE, permute_rule},
    {OP_CONCAT, concat_rule},
};

static Node *layout_node(void *ctx, Graph *g, const Node *n, Node *const *in) {
    (void)ctx;
    Node *made = NULL;
    if (n->op == OP_CONTRACT) {
        made = contract_rule(g, n, in);
    } else if (op_info[n->op].cls == CLASS_MAP && n->op != OP_RANDOM) {
        made = map_rule(g, n, in);
    } else if (first_turn(n, in).count > 0) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            made = rows[i].op == n->op ? rows[i].rule(g, n, in) : made;
        }
    }
    if (made && made->op == OP_PERMUTE && n->name) {
        graph_name(made->in[0], n->name); /* that is what is stored */
    }
    return made;
}

/* Can channels, the axes behind the first one, be told from places in what a reshape gives? */
static bool keeps_channels(const Node *n) {
    bool kept = false;
    for (int count = 1; count + 1 < n->in[0]->type->rank; count++) {
        kept = kept || same_axes(n->in[0]->type, (Turn){1, count}, n->type).count > 0;
    }
    return kept;
}

/* Notes the values that only results of the entry and values like them are made of: a copy of them
 * would be all that is gained; and those that windows read, as they are or with what is computed
 * element by element of them in between: a product without windows, of a picture as a caller gives
 * it, has its channels in front else, and so has all that is computed of it. */
static void note_wishes(const Region *region, bool inside) {
    Arena scratch = {0};
    bool *wanted = ARENA_ARRAY(&scratch, bool, region->node.count);
    bool *windows = ARENA_ARRAY(&scratch, bool, region->node.count);
    for (int i = 0; inside && i < region->out.count; i++) {
        wanted[region->out.at[i]->id] = true; /* goes on to the next iteration, or to a stack */
    }
    for (int i = region->node.count - 1; i >= 0; i--) {
        Node *n = region->node.at[i];
        OpClass class = op_info[n->op].cls;
        bool asks = class == CLASS_FOLD || class == CLASS_LOOP || n->op == OP_CONTRACT;
        bool passes = class == CLASS_VIEW || class == CLASS_MAP || class == CLASS_PLACE;
        bool kept = n->op != OP_RESHAPE || keeps_channels(n);
        for (int k = 0; (asks || (passes && kept && wanted[i])) && k < n->nin; k++) {
            wanted[n->in[k]->id] = true;
        }
        for (int k = 0; passes && kept && k < n->nin; k++) {
            bool *in = &windows[n->in[k]->id];
            *in = *in || windows[i] || n->op == OP_WINDOW;
        }
        if (n->op == OP_CONTRACT && (windows[i] || !wanted[i])) {
            n->note = (void *)(uintptr_t)(windows[i] ? &seen_in_windows : &asked_as_it_is);
        }
        if (n->body) {
            note_wishes(n->body, true);
        }
    }
    arena_free(&scratch);
}

static bool is_image(const Node *n) {
    return n->op == OP_CONTRACT && product_turn(n, n->in).count > 0 &&
           (view_has_window(n->in[0]) || view_has_window(n->in[1]));
}

bool layout_applies(const Region *region) {
    return region_any(region, is_image);
}

Region *pass_layout(Graph *g, const Region *region) {
    Arena notes = {0};
    bool differs;
    note_wishes(region, false);
    Region *fresh = region_rebuild_turned(g, region, layout_node, NULL, &notes, &differs);
    if (differs) { /* carries of loops: now it is known what their next values are */
        fresh = region_rebuild_turned(g, region, layout_node, NULL, &notes, &differs);
    }
    arena_free(&notes);
    return fresh;
}
