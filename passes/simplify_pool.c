/* simplify_pool: what follows an extreme instead of standing in front of it; see simplify.c.
 *
 * Maps that keep the order of their operand, a bias or a ReLU, commute with a maximum, to the bit:
 * rounding keeps the order too. Behind a pool they have as many elements as it has windows, and the
 * derivative asks the pool's result instead of what it was made of. Of elements that a bias rounds
 * to one value the largest wins, not the first. */
#include "passes/simplify_rule.h"

/* The operand that is the same along `axes`, of a map that keeps the order of the other one; -1: it
 * is no such map. */
static int same_operand(const Node *x, uint32_t axes) {
    bool either = x->op == OP_ADD || x->op == OP_MAX || x->op == OP_MIN;
    for (int k = 0; k < 2 && (either || x->op == OP_SUB); k++) {
        if (same_along(x->in[k], axes) && (either || k == 1)) {
            return k;
        }
    }
    return -1;
}

/* A view that repeats or moves elements, and drops or adds none of its own. */
static bool is_passed(const Node *x) {
    return x->op == OP_PERMUTE || (x->op == OP_WINDOW && x->attr->border == BORDER_NONE);
}

/* The axis of the operand of such a view that axis `i` of the result comes from. */
static int axis_below(const Node *view, int i) {
    const Attr *a = view->attr;
    return view->op == OP_PERMUTE ? a->map[i] : i <= a->axis ? i : i - 1;
}

static uint32_t axes_below(const Node *view, uint32_t axes) {
    uint32_t below = 0;
    for (int i = 0; i < view->type->rank; i++) {
        below |= (axes >> i & 1) << axis_below(view, i);
    }
    return below;
}

/* `x` where the view's operand is. */
static Node *behind(Graph *g, const Node *view, Node *x) {
    return view->op == OP_PERMUTE
               ? node_permute(g, x, view->attr->map)
               : node_window(g, x, view->attr->axis, view->attr->s, view->attr->d, view->attr->p,
                             view->attr->count, view->attr->taps, BORDER_NONE, 0);
}

/* What `x` repeats along all axes that `n` folds, as a value with the axes of n. No axis of its own
 * is one of windows: those fold. */
static Node *same_behind(Graph *g, const Node *n, const Node *x, const Node *const *view,
                         int views) {
    int map[MD_RANK] = {0}, own = 0, rank = 0;
    uint32_t missing = 0;
    for (int i = 0; i < n->in[0]->type->rank; i++) {
        int axis = i;
        for (int v = 0; v < views; v++) {
            axis = axis_below(view[v], axis);
        }
        if (n->attr->axes >> i & 1) {
            continue;
        }
        if (x->attr->axes >> axis & 1) {
            missing |= 1u << rank;
        } else {
            for (int j = map[own] = 0; j < axis; j++) {
                map[own] += !(x->attr->axes >> j & 1);
            }
            own++;
        }
        rank++;
    }
    return node_broadcast(g, node_permute(g, x->in[0], map), missing, n->type->rank, n->type->dim);
}

Node *extreme_of_ordered(Graph *g, const Node *n, Node *const *in) {
    enum { VIEWS = 2 * MD_RANK };
    const Node *view[VIEWS], *read = n; /* as the notes of reads know it */
    int views = 0;
    uint32_t axes = n->attr->axes;
    Node *x = in[0], *made[2];
    for (; views < VIEWS && is_passed(x); x = x->in[0]) {
        axes = axes_below(x, axes);
        view[views++] = x;
    }
    for (int i = 0; i <= views && read->nin > 0; i++, read = read->in[0]) {
        if (is_shared(read, 0)) {
            return NULL;
        }
    }
    int same = elem_is_float(x->type->elem) ? same_operand(x, axes) : -1;
    if (same < 0) {
        return NULL;
    }
    made[same] = same_behind(g, n, x->in[same], view, views);
    Node *ordered = x->in[1 - same];
    for (int i = views - 1; i >= 0; i--) {
        ordered = behind(g, view[i], ordered);
    }
    made[1 - same] = node_fold(g, n->op, ordered, n->attr->axes);
    return node_map2(g, x->op, made[0], made[1]);
}
