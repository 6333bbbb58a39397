/* cut: see the header. A row of the table is how an op is made for a part: where each operand has
 * the label, and what it is of operands that are parts themselves.
 * Contract: needs nodes for which cut_takes says so; gives nodes with equal elements. */
#include "passes/cut.h"

#include <string.h>

typedef struct {
    int (*from)(const Node *n, int k, int axis); /* see cut_from */
    Node *(*own)(Cut *cut, const Node *n, Node *const *in);
    bool plain; /* see cut_is_plain */
} Rule;

/* --- labels ----------------------------------------------------------------------------------- */

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
    return own >= 0 && other >= 0 ? own : CUT_LOST;
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
    return CUT_LOST;
}

static int from_permute(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->map[axis];
}

static int from_slice(const Node *n, int k, int axis) {
    bool whole = n->attr->hi[axis] == n->in[k]->type->dim[axis] && n->attr->step[axis] == 1;
    return whole ? axis : CUT_LOST;
}

static int from_broadcast(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axes >> axis & 1 ? CUT_NO_AXIS : axis - axes_below(n->attr->axes, axis);
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
    return axis < n->attr->batch ? axis : CUT_LOST;
}

static int from_iota(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axis == axis ? CUT_LOST : CUT_NO_AXIS;
}

/* Of a label that one operand alone may have. */
static int from_rows(const Node *n, int k, int axis) {
    const Attr *a = n->attr;
    int own = find_label(k == 0 ? a->la : a->lb, n->in[k]->type->rank, a->lo_[axis]);
    return own >= 0 ? own : CUT_NO_AXIS;
}

/* Of an index's axis what is looked up is the same for all. */
static int from_looked_up(const Node *n, int k, int axis) {
    const int batch = n->attr->batch, rest = n->in[1]->type->rank;
    return axis < batch || (k == 1 && axis < rest) ? axis : axis < rest ? CUT_NO_AXIS : CUT_LOST;
}

/* Of ops along an axis of their own (Attr.axis), which an operand has as it is. */
static int from_beside(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axis == axis ? CUT_LOST : axis;
}

static int from_argfold(const Node *n, int k, int axis) {
    (void)k;
    return axis < n->attr->axis ? axis : axis + 1;
}

static int from_flip(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->axes >> axis & 1 ? CUT_LOST : axis;
}

static int from_pad(const Node *n, int k, int axis) {
    (void)k;
    return n->attr->lo[axis] != 0 || n->attr->hi[axis] != 0 ? CUT_LOST : axis;
}

/* Axis a of the operand is axes a and a + 1 of the result. */
static int from_window(const Node *n, int k, int axis) {
    (void)k;
    const int at = n->attr->axis;
    return axis < at ? axis : axis > at + 1 ? axis - 1 : CUT_LOST;
}

/* The other way round. */
static int from_overlap_add(const Node *n, int k, int axis) {
    (void)k;
    const int at = n->attr->axis;
    return axis < at ? axis : axis > at ? axis + 1 : CUT_LOST;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Axes of `n` that an iteration has not, since it is at one place of them. */
static uint32_t gone_axes(const Cut *cut, const Node *n) {
    uint32_t gone = 0;
    for (int k = 0; k < cut->labels; k++) {
        int axis = cut->label[k].axis[n->id];
        gone |= axis >= 0 && cut->label[k].own == 1 ? 1u << axis : 0;
    }
    return gone;
}

static int64_t own_extent(const Cut *cut, const Node *n, int axis) {
    for (int k = 0; k < cut->labels; k++) {
        if (cut->label[k].axis[n->id] == axis) {
            return cut->label[k].own;
        }
    }
    return n->type->dim[axis];
}

/* The type that `n` has in an iteration. */
static Type cut_type(const Cut *cut, const Node *n) {
    Type own = {.elem = n->type->elem};
    uint32_t gone = gone_axes(cut, n);
    for (int i = 0; i < n->type->rank; i++) {
        if (!(gone >> i & 1)) {
            own.dim[own.rank++] = own_extent(cut, n, i);
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
        rank = left_labels(from[k], of[k]->type->rank, gone_axes(cut, of[k]), list[k]);
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
    Type type = cut_type(cut, n);
    return node_reshape(cut->g, in[0], type.rank, type.dim);
}

static Node *own_permute(Cut *cut, const Node *n, Node *const *in) {
    uint32_t gone = gone_axes(cut, n), behind = gone_axes(cut, n->in[0]);
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
    uint32_t gone = gone_axes(cut, n);
    for (int i = 0, rank = 0; i < n->type->rank; i++) {
        if (!(gone >> i & 1)) {
            lo[rank] = n->attr->lo[i];
            extent[rank] = own_extent(cut, n, i);
            step[rank++] = n->attr->step[i];
        }
    }
    return node_slice(cut->g, in[0], lo, extent, step);
}

static Node *own_broadcast(Cut *cut, const Node *n, Node *const *in) {
    Type type = cut_type(cut, n);
    uint32_t axes = left_axes(n->attr->axes, gone_axes(cut, n));
    return node_broadcast(cut->g, in[0], axes, type.rank, type.dim);
}

static Node *own_fold(Cut *cut, const Node *n, Node *const *in) {
    uint32_t axes = left_axes(n->attr->axes, gone_axes(cut, n->in[0]));
    return node_fold(cut->g, n->op, in[0], axes);
}

static Node *own_gather(Cut *cut, const Node *n, Node *const *in) {
    int batch = n->attr->batch - axes_below(gone_axes(cut, n), n->attr->batch);
    return node_gather(cut->g, in[0], in[1], batch);
}

static Node *own_iota(Cut *cut, const Node *n, Node *const *in) {
    (void)in;
    int axis = n->attr->axis - axes_below(gone_axes(cut, n), n->attr->axis);
    return node_iota(cut->g, cut_type(cut, n), axis);
}

static Node *own_map(Cut *cut, const Node *n, Node *const *in) {
    return graph_add(cut->g, n->op, in, n->nin, n->attr, cut_type(cut, n));
}

/* An op along axes of its own: what it says of axes goes with those that are left. */
static Node *own_beside(Cut *cut, const Node *n, Node *const *in) {
    Attr attr = attr_copy(n->attr);
    const uint32_t gone = gone_axes(cut, n->in[0]);
    attr.axis -= axes_below(gone, attr.axis);
    attr.axes = left_axes(attr.axes, gone);
    for (int i = 0, at = 0; i < MD_RANK; i++) {
        if (!(gone >> i & 1)) {
            attr.lo[at] = attr.lo[i];
            attr.hi[at++] = attr.hi[i];
        }
    }
    return graph_add(cut->g, n->op, in, n->nin, &attr, cut_type(cut, n));
}

/* --- derivatives that are given -------------------------------------------------------------- */

/* Is the derivative at each place made of what is given there, and of numbers? */
static bool goes_by_places(const Node *custom) {
    const Region *body = custom->body;
    bool by_places = true;
    for (int k = 1; k < custom->nin; k++) {
        by_places = by_places && type_same_shape(*custom->in[k]->type, *custom->type);
    }
    for (int i = 0; i < body->node.count && by_places; i++) {
        const Node *n = body->node.at[i];
        const OpClass cls = op_info[n->op].cls;
        bool map = cls == CLASS_MAP && n->nin > 0 && n->op != OP_RANDOM;
        bool spread = n->op == OP_BROADCAST && n->in[0]->type->rank == 0;
        bool given = n->op == OP_BODY_PARAM || (n->op == OP_CUSTOM && goes_by_places(n));
        bool placed = type_same_shape(*n->type, *custom->type);
        by_places =
            n->type->rank == 0 ? map || cls == CLASS_LEAF : placed && (map || spread || given);
    }
    return by_places;
}

/* The body of such a derivative at the places of `own`. */
static Region *body_for(Graph *g, const Region *old, Type own) {
    Arena scratch = {0};
    Node **map = ARENA_ARRAY(&scratch, Node *, old->node.count);
    Region *body = region_new(g, g->region), *before = graph_enter(g, body);
    const Loc loc = g->loc;
    for (int k = 0; k < old->param.count; k++) {
        own.elem = old->param.at[k]->type->elem;
        map[old->param.at[k]->id] = region_param(body, own);
    }
    for (int i = 0; i < old->node.count; i++) {
        const Node *n = old->node.at[i];
        Node **in = ARENA_ARRAY(&scratch, Node *, n->nin + 1);
        for (int k = 0; k < n->nin; k++) {
            in[k] = map[n->in[k]->id];
        }
        own.elem = n->type->elem;
        g->loc = n->loc;
        if (n->op == OP_BODY_PARAM) {
            continue;
        }
        map[i] = n->op == OP_BROADCAST
                     ? node_broadcast(g, in[0], (1u << own.rank) - 1, own.rank, own.dim)
                 : n->op == OP_CUSTOM
                     ? node_custom(g, in[0], in + 1, n->nin - 1, body_for(g, n->body, own))
                     : graph_add(g, n->op, in, n->nin, n->attr, n->type->rank ? own : *n->type);
    }
    for (int k = 0; k < old->out.count; k++) {
        region_result(body, map[old->out.at[k]->id]);
    }
    g->loc = loc;
    graph_leave(g, before);
    arena_free(&scratch);
    return body;
}

static Node *own_custom(Cut *cut, const Node *n, Node *const *in) {
    return node_custom(cut->g, in[0], in + 1, n->nin - 1,
                       body_for(cut->g, n->body, cut_type(cut, n)));
}

/* --- rules ------------------------------------------------------------------------------------ */

static const Rule *rule_of(const Node *n) {
    static const Rule fold = {from_fold, own_fold, true}, map = {from_same, own_map, true};
    static const Rule custom = {from_same, own_custom, true};
    static const Rule rules[OP_COUNT] = {
        [OP_CONTRACT] = {from_contract, own_contract, false},
        [OP_RESHAPE] = {from_reshape, own_reshape, true},
        [OP_PERMUTE] = {from_permute, own_permute, true},
        [OP_SLICE] = {from_slice, own_slice, true},
        [OP_IOTA] = {from_iota, own_iota, true},
        [OP_GATHER] = {from_gather, own_gather, true},
        [OP_STOP] = {from_same, own_map, true},
        [OP_BROADCAST] = {from_broadcast, own_broadcast, true},
        [OP_CONCAT] = {from_beside, own_beside, false},
        [OP_CUMSUM] = {from_beside, own_beside, false},
        [OP_ARGMAX] = {from_argfold, own_beside, false},
        [OP_ARGMIN] = {from_argfold, own_beside, false},
        [OP_FLIP] = {from_flip, own_beside, false},
        [OP_PAD] = {from_pad, own_beside, false},
        [OP_WINDOW] = {from_window, own_beside, false},
        [OP_OVERLAP_ADD] = {from_overlap_add, own_beside, false},
    };
    bool folds = n->op == OP_SUM || n->op == OP_PROD || n->op == OP_FMAX || n->op == OP_FMIN;
    bool maps = op_info[n->op].cls == CLASS_MAP && n->op != OP_RANDOM;
    bool given = n->op == OP_CUSTOM && goes_by_places(n);
    return rules[n->op].own ? &rules[n->op] : folds ? &fold : maps ? &map : given ? &custom : NULL;
}

bool cut_takes(const Node *n) {
    return rule_of(n) != NULL;
}

bool cut_is_plain(const Node *n) {
    const Rule *rule = rule_of(n);
    return rule && rule->plain;
}

int cut_from(const Node *n, int k, int axis, bool by_rows) {
    return by_rows && n->op == OP_CONTRACT ? from_rows(n, k, axis)
           : by_rows && n->op == OP_GATHER ? from_looked_up(n, k, axis)
                                           : rule_of(n)->from(n, k, axis);
}

static Node *cut_node(Cut *cut, const Node *n) {
    Arena scratch = {0};
    Node **in = ARENA_ARRAY(&scratch, Node *, n->nin + 1);
    for (int k = 0; k < n->nin; k++) {
        in[k] = cut->map[n->in[k]->id];
    }
    Node *own = rule_of(n)->own(cut, n, in);
    arena_free(&scratch);
    return own;
}

/* The labels' iterations are one axis in front; `x` is what `n` has become. */
static Node *cut_in(Cut *cut, const Node *n, Node *x) {
    int64_t split[MD_RANK + CUT_LABELS], front[CUT_LABELS], turned[MD_RANK + CUT_LABELS];
    int map[MD_RANK + CUT_LABELS], place[CUT_LABELS], rank = 0, cuts = 0, turns = 0;
    uint32_t fresh = 0;
    for (int i = 0; i < x->type->rank; i++) {
        int64_t own = x->type->dim[i];
        bool gone = false;
        for (int k = 0; k < cut->labels; k++) {
            if (cut->label[k].axis[n->id] == i) {
                place[k] = rank;
                split[rank++] = cut->label[k].trip;
                own = cut->label[k].own;
                gone = own == 1;
                cuts++;
            }
        }
        if (!gone) {
            split[rank++] = own;
        }
    }
    if (cuts == 0) {
        return graph_import(cut->g, x);
    }
    Region *before = graph_enter(cut->g, x->region);
    Node *stack = node_reshape(cut->g, x, rank, split);
    uint32_t moved = 0;
    for (int k = 0; k < cut->labels; k++) {
        if (cut->label[k].axis[n->id] >= 0) {
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
    rank = cut->labels;
    for (int k = 0; k < cut->labels; k++) {
        front[k] = cut->label[k].trip;
        fresh |= cut->label[k].axis[n->id] >= 0 ? 0 : 1u << k;
    }
    memcpy(turned, front, sizeof *front * (size_t)rank);
    for (int i = cuts; i < stack->type->rank; i++) {
        turned[rank++] = stack->type->dim[i];
    }
    stack = node_broadcast(cut->g, stack, fresh, rank, turned);
    Type own = cut_type(cut, n);
    turned[0] = cut->trip;
    memcpy(turned + 1, own.dim, sizeof *own.dim * (size_t)own.rank);
    stack = node_reshape(cut->g, stack, 1 + own.rank, turned);
    graph_leave(cut->g, before);
    return loop_xs(cut->loop, stack);
}

void cut_make(Cut *cut, const Node *n, Node *const *map) {
    for (int k = 0; k < n->nin; k++) {
        Node **in = &cut->map[n->in[k]->id];
        *in = *in ? *in : cut_in(cut, n->in[k], map ? map[n->in[k]->id] : n->in[k]);
    }
    cut->g->loc = n->loc;
    Node *made = cut_node(cut, n);
    cut->map[n->id] = made;
    if (n->name) {
        graph_name(made, n->name);
    }
}

Node *cut_out(Cut *cut, const Node *n, Node *stack) {
    int64_t dim[MD_RANK + CUT_LABELS];
    int map[MD_RANK + CUT_LABELS], rank = cut->labels, turns = 0;
    uint32_t gone = gone_axes(cut, n);
    for (int k = 0; k < cut->labels; k++) {
        dim[k] = cut->label[k].trip;
    }
    for (int i = 0; i < n->type->rank; i++) {
        for (int k = 0; k < cut->labels; k++) {
            if (cut->label[k].axis[n->id] == i) {
                map[turns++] = k;
            }
        }
        if (!(gone >> i & 1)) {
            map[turns++] = rank;
            dim[rank++] = own_extent(cut, n, i);
        }
    }
    Node *apart = node_permute(cut->g, node_reshape(cut->g, stack, rank, dim), map);
    return node_reshape(cut->g, apart, n->type->rank, n->type->dim);
}
