/* view: VIEW nodes as index maps, composed into loads so that no view moves data.
 *
 * Reshapes go through the linear index and come back as quotients and remainders; the algebra of
 * compiler/index.h makes them affine again wherever they are. Borders become guards (value),
 * clamped (edge) or wrapped (wrap) indices. Needs an Index for each axis of the result; gives one
 * for each axis of the operand; changes no values. */
#include "passes/view.h"

const Node *view_base(const Node *node) {
    while (op_info[node->op].cls == CLASS_VIEW) {
        node = node->in[0];
    }
    return node;
}

bool view_has_window(const Node *node) {
    while (op_info[node->op].cls == CLASS_VIEW && node->op != OP_WINDOW &&
           node->op != OP_BROADCAST) {
        node = node->in[0];
    }
    return node->op == OP_WINDOW && node->attr->count > 1;
}

void index_unflatten(IndexTable *t, const Index *flat, int rank, const int64_t *dim,
                     const Index **at) {
    int64_t below = 1;
    for (int i = rank - 1; i >= 0; i--) {
        const Index *high = index_div(t, flat, below);
        bool outermost = true;
        for (int j = 0; j < i; j++) {
            outermost = outermost && dim[j] == 1;
        }
        at[i] = outermost ? high : index_mod(t, high, dim[i] > 0 ? dim[i] : 1);
        if (dim[i] == 1) {
            at[i] = index_const(t, 0);
        }
        below *= dim[i] > 0 ? dim[i] : 1;
    }
}

const Index *index_flatten(IndexTable *t, int rank, const int64_t *dim, const Index *const *at) {
    const Index *flat = index_const(t, 0);
    for (int i = 0; i < rank; i++) {
        flat = index_add(t, index_scale(t, flat, dim[i]), at[i]);
    }
    return flat;
}

/* Position `at` of an axis of extent n, kept inside by clamping: an expression of the kernel, since
 * it is no sum. */
static const Index *clamped(Kernel *k, const Index *at, int64_t n) {
    if (at->least >= 0 && at->most < n) {
        return at;
    }
    const Expr *x = expr_index(k, TY_I64, at);
    const Expr *low[2] = {x, expr_int(k, TY_I64, 0)};
    const Expr *high[2] = {expr_map(k, OP_MAX, TY_I64, low, 2), expr_int(k, TY_I64, n - 1)};
    const Expr *e = expr_map(k, OP_MIN, TY_I64, high, 2);
    return index_value(&k->index, e, e->axes, 0, n - 1);
}

/* Applies the border rule to position `at`; narrows *guard for a value border. */
static const Index *bordered(Kernel *k, Border border, const Index *at, int64_t n,
                             const Expr **guard) {
    switch (border) {
    case BORDER_NONE: return at;
    case BORDER_VALUE: *guard = expr_and(k, *guard, expr_within(k, at, 0, n)); return at;
    case BORDER_EDGE: return clamped(k, at, n);
    case BORDER_WRAP: return index_mod(&k->index, at, n);
    }
    BUG("border %d", (int)border);
}

const Expr *view_index(Kernel *k, const Node *node, const Index *const *at, const Index **in) {
    IndexTable *t = &k->index;
    const Attr *a = node->attr;
    Type from = *node->in[0]->type, to = *node->type;
    const Expr *guard = NULL;
    switch (node->op) {
    case OP_RESHAPE:
        index_unflatten(t, index_flatten(t, to.rank, to.dim, at), from.rank, from.dim, in);
        break;
    case OP_PERMUTE:
        for (int i = 0; i < to.rank; i++) {
            in[a->map[i]] = at[i];
        }
        break;
    case OP_SLICE:
        for (int i = 0; i < to.rank; i++) {
            in[i] = index_offset(t, index_scale(t, at[i], a->step[i]), a->lo[i]);
        }
        break;
    case OP_PAD:
        for (int i = 0; i < to.rank; i++) {
            in[i] = bordered(k, a->border, index_offset(t, at[i], -a->lo[i]), from.dim[i], &guard);
        }
        break;
    case OP_BROADCAST:
        for (int i = 0, j = 0; i < to.rank; i++) {
            if (!(a->axes >> i & 1)) {
                in[j++] = at[i];
            }
        }
        break;
    case OP_FLIP:
        for (int i = 0; i < to.rank; i++) {
            in[i] = a->axes >> i & 1 ? index_offset(t, index_scale(t, at[i], -1), from.dim[i] - 1)
                                     : at[i];
        }
        break;
    case OP_WINDOW:
        for (int i = 0; i < from.rank; i++) {
            in[i] = at[i <= a->axis ? i : i + 1];
        }
        in[a->axis] = index_offset(
            t,
            index_add(t, index_scale(t, at[a->axis], a->s), index_scale(t, at[a->axis + 1], a->d)),
            -a->p);
        in[a->axis] = bordered(k, a->border, in[a->axis], a->taps_n, &guard);
        break;
    default: BUG("%s is no view", op_info[node->op].name);
    }
    return guard;
}
