/* simplify_view: rules for views and places; see simplify.c. The aim is few views, broadcasts last,
 * so that elementwise work happens before values are repeated. */
#include "passes/simplify_rule.h"

#include <string.h>

static Node *reshape_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    if (x->op == OP_RESHAPE) {
        return node_reshape(g, x->in[0], n->type->rank, n->type->dim);
    }
    if (x->op == OP_BROADCAST && x->in[0]->type->rank == 0) {
        return node_broadcast_to(g, x->in[0], *n->type);
    }
    return NULL;
}

static Node *permute_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    int map[MD_RANK] = {0};
    if (x->op == OP_PERMUTE) {
        for (int i = 0; i < n->type->rank; i++) {
            map[i] = x->attr->map[n->attr->map[i]];
        }
        return node_permute(g, x->in[0], map);
    }
    if (x->op != OP_BROADCAST) {
        int64_t last = -1; /* moving axes of extent 1 alone is a reshape */
        for (int i = 0; i < n->type->rank; i++) {
            if (n->type->dim[i] != 1) {
                if (n->attr->map[i] < last) {
                    return NULL;
                }
                last = n->attr->map[i];
            }
        }
        return node_reshape(g, x, n->type->rank, n->type->dim);
    }
    /* Axes of the operand in their new order, then repeated. */
    int place[MD_RANK] = {0}, rank = 0;
    uint32_t axes = 0;
    for (int i = 0, k = 0; i < x->type->rank; i++) {
        place[i] = x->attr->axes >> i & 1 ? -1 : k++;
    }
    for (int i = 0; i < n->type->rank; i++) {
        int from = place[n->attr->map[i]];
        if (from < 0) {
            axes |= 1u << i;
        } else {
            map[rank++] = from;
        }
    }
    return node_broadcast(g, node_permute(g, x->in[0], map), axes, n->type->rank, n->type->dim);
}

/* A repeated value repeated along more axes; new axes of extent 1 are a matter of shape. */
static Node *broadcast_rule(Graph *g, const Node *n, Node *const *in) {
    if (in[0]->op == OP_BROADCAST) {
        uint32_t axes = n->attr->axes;
        for (int i = 0, k = 0; i < n->type->rank; i++) {
            if (!(n->attr->axes >> i & 1)) {
                axes |= (in[0]->attr->axes >> k++ & 1) << i;
            }
        }
        return node_broadcast(g, in[0]->in[0], axes, n->type->rank, n->type->dim);
    }
    for (int i = 0; i < n->type->rank; i++) {
        if (n->attr->axes >> i & 1 && n->type->dim[i] != 1) {
            return NULL;
        }
    }
    return node_reshape(g, in[0], n->type->rank, n->type->dim);
}

static Node *flip_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    uint32_t axes = n->attr->axes;
    for (int i = 0; i < n->type->rank; i++) {
        if (n->type->dim[i] == 1) {
            axes &= ~(1u << i);
        }
    }
    if (x->op == OP_FLIP) {
        return node_flip(g, x->in[0], axes ^ x->attr->axes);
    }
    return axes != n->attr->axes ? node_flip(g, x, axes) : NULL;
}

static Node *slice_of_slice(Graph *g, const Node *n, Node *x) {
    int64_t lo[MD_RANK], step[MD_RANK];
    for (int i = 0; i < n->type->rank; i++) {
        lo[i] = x->attr->lo[i] + n->attr->lo[i] * x->attr->step[i];
        step[i] = x->attr->step[i] * n->attr->step[i];
    }
    return node_slice(g, x->in[0], lo, n->type->dim, step);
}

/* What a slice takes of a padded value: less of it, and less padding. */
static Node *slice_of_pad(Graph *g, const Node *n, Node *x) {
    int64_t lo[MD_RANK], extent[MD_RANK], before[MD_RANK], after[MD_RANK];
    if (x->attr->border != BORDER_VALUE) {
        return NULL;
    }
    for (int i = 0; i < n->type->rank; i++) {
        int64_t from = n->attr->lo[i] - x->attr->lo[i], to = from + n->type->dim[i];
        int64_t size = x->in[0]->type->dim[i];
        if (n->attr->step[i] != 1 || from >= size || to <= 0) {
            return NULL;
        }
        lo[i] = from > 0 ? from : 0;
        extent[i] = (to < size ? to : size) - lo[i];
        before[i] = from < 0 ? -from : 0;
        after[i] = to > size ? to - size : 0;
    }
    return node_pad(g, node_slice(g, x->in[0], lo, extent, NULL), before, after, BORDER_VALUE,
                    x->attr->value);
}

static Node *slice_of_broadcast(Graph *g, const Node *n, Node *x) {
    int64_t lo[MD_RANK], extent[MD_RANK], step[MD_RANK];
    for (int i = 0, k = 0; i < n->type->rank; i++) {
        if (!(x->attr->axes >> i & 1)) {
            lo[k] = n->attr->lo[i];
            extent[k] = n->type->dim[i];
            step[k++] = n->attr->step[i];
        }
    }
    return node_broadcast(g, node_slice(g, x->in[0], lo, extent, step), x->attr->axes,
                          n->type->rank, n->type->dim);
}

/* A slice that lies in one part of a concatenation. */
static Node *slice_of_concat(Graph *g, const Node *n, Node *x) {
    int axis = x->attr->axis;
    int64_t lo[MD_RANK], at = 0;
    memcpy(lo, n->attr->lo, sizeof lo);
    int64_t last = n->attr->lo[axis] + (n->type->dim[axis] - 1) * n->attr->step[axis];
    for (int k = 0; k < x->nin; k++) {
        int64_t extent = x->in[k]->type->dim[axis];
        if (n->attr->lo[axis] >= at && last < at + extent) {
            lo[axis] -= at;
            return node_slice(g, x->in[k], lo, n->type->dim, n->attr->step);
        }
        at += extent;
    }
    return NULL;
}

typedef struct {
    OpCode op; /* of what is sliced */
    Node *(*rule)(Graph *g, const Node *n, Node *x);
} SliceRow;

static const SliceRow slices[] = {
    {OP_SLICE, slice_of_slice},   {OP_PAD, slice_of_pad}, {OP_BROADCAST, slice_of_broadcast},
    {OP_CONCAT, slice_of_concat}, {OP_COUNT, NULL},
};

static Node *slice_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    for (const SliceRow *row = slices; row->rule; row++) {
        if (row->op == x->op) {
            return row->rule(g, n, x);
        }
    }
    return NULL;
}

static Node *pad_rule(Graph *g, const Node *n, Node *const *in) {
    Node *x = in[0];
    int64_t lo[MD_RANK], hi[MD_RANK];
    if (x->op != OP_PAD || n->attr->border != BORDER_VALUE || x->attr->border != BORDER_VALUE ||
        n->attr->value != x->attr->value) {
        return NULL;
    }
    for (int i = 0; i < n->type->rank; i++) {
        lo[i] = n->attr->lo[i] + x->attr->lo[i];
        hi[i] = n->attr->hi[i] + x->attr->hi[i];
    }
    return node_pad(g, x->in[0], lo, hi, BORDER_VALUE, n->attr->value);
}

/* A concatenation of concatenations along the same axis; one of too many parts. */
static Node *concat_rule(Graph *g, const Node *n, Node *const *in) {
    Node *part[CONCAT_PARTS];
    int axis = n->attr->axis, count = 0;
    bool changed = false;
    if (n->nin > CONCAT_PARTS) {
        return node_concat(g, in, n->nin, axis);
    }
    for (int k = 0; k < n->nin; k++) {
        bool nested = in[k]->op == OP_CONCAT && in[k]->attr->axis == axis;
        int parts = nested ? in[k]->nin : 1;
        if (count + parts > CONCAT_PARTS) {
            return NULL;
        }
        for (int j = 0; j < parts; j++) {
            part[count++] = nested ? in[k]->in[j] : in[k];
        }
        changed = changed || nested;
    }
    return changed ? node_concat(g, part, count, axis) : NULL;
}

/* A window of one tap is a slice where it stays inside. */
static Node *window_rule(Graph *g, const Node *n, Node *const *in) {
    const Attr *a = n->attr;
    int64_t first = -a->p, last = a->s * (a->count - 1) - a->p;
    if (a->taps != 1 || a->s <= 0 || first < 0 || last >= a->taps_n) {
        return NULL;
    }
    Node *part = node_slice_axis(g, in[0], a->axis, first, a->count, a->s);
    return node_reshape(g, part, n->type->rank, n->type->dim);
}

/* An axis of what begins at place `first` of x: zeros where x has none. */
static Node *placed(Graph *g, Node *x, int axis, int64_t first, int64_t count) {
    const int64_t last = first + count, have = x->type->dim[axis];
    const int64_t from = first > 0 ? first : 0, to = last < have ? last : have;
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    if (from >= to) {
        return NULL;
    }
    lo[axis] = from - first;
    hi[axis] = last - to;
    Node *part = to - from < have ? node_slice_axis(g, x, axis, from, to - from, 1) : x;
    return lo[axis] > 0 || hi[axis] > 0 ? node_pad(g, part, lo, hi, BORDER_VALUE, 0) : part;
}

/* Windows that lie side by side do not overlap: they are the axis cut in parts, and zeros where it
 * is longer. So the adjoint of a pool asks once which place of a window it is at, not for each
 * place whether a window has it. Nor does a single window overlap, as of a convolution over all of
 * an axis. Of few long windows each element is a sum over windows, not over taps: a place and a tap
 * change roles. */
static Node *overlap_add_rule(Graph *g, const Node *n, Node *const *in) {
    const Attr *a = n->attr;
    const int64_t covered = a->count * a->taps;
    const bool beside = a->s == a->taps && a->d == 1 && a->p == 0 && covered <= a->taps_n;
    const bool one = a->count == 1 && a->taps > 1 && a->d == 1;
    if (covered > 0 && (beside || one)) {
        Type type = *n->type;
        type.dim[a->axis] = covered;
        Node *joined = node_reshape(g, in[0], type.rank, type.dim);
        return placed(g, joined, a->axis, a->p, a->taps_n);
    }
    if (3 * a->count > a->taps || a->count == 0 || a->s <= 0 || a->d <= 0) {
        return NULL;
    }
    int perm[MD_RANK];
    for (int i = 0; i < in[0]->type->rank; i++) {
        perm[i] = i == a->axis ? i + 1 : i == a->axis + 1 ? i - 1 : i;
    }
    Attr turned = attr_copy(a);
    turned.s = a->d;
    turned.d = a->s;
    turned.count = a->taps;
    turned.taps = a->count;
    return node_overlap_add(g, node_permute(g, in[0], perm), &turned);
}

const SimplifyRow simplify_views[] = {
    {OP_RESHAPE, reshape_rule}, {OP_PERMUTE, permute_rule}, {OP_BROADCAST, broadcast_rule},
    {OP_FLIP, flip_rule},       {OP_SLICE, slice_rule},     {OP_PAD, pad_rule},
    {OP_CONCAT, concat_rule},   {OP_WINDOW, window_rule},   {OP_OVERLAP_ADD, overlap_add_rule},
    {OP_COUNT, NULL},
};
