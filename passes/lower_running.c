/* lower_running: sums whose terms go where they find a place: cumulative and scattered ones.
 *
 * Nothing says beforehand which terms meet, or each sum is a result itself, so there are no levels
 * (lower_sum.c). Where more terms may meet than a chain has, what rounding drops of a sum is kept
 * beside it and taken off the next term (Kahan 1965): the error is that of one addition, whatever
 * their number. Needs a unit of one CUMSUM or SCATTER_ADD; gives its kernel; changes no values
 * beyond rounding. */
#include "passes/lower_kernel.h"
#include "passes/view.h"

#include <string.h>

enum {
    SCATTER_SPAN = TUNED(64, 2),
    SCATTER_BATCH = TUNED(4, 100) /* batch elements from which no spans are needed */
};

/* What the sums have lost so far: a row of `count` for each thread. */
static Arg *lost_row(KernelBuild *b, Elem elem, int64_t count) {
    Type type = {.elem = elem, .rank = 1, .dim = {count}};
    Buf *buf = kernel_work(b, type, b->k->threads, "lost");
    Arg *arg = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
    arg->thread = true;
    arg->part = buf->type.dim[buf->type.rank - 1];
    return arg;
}

/* The sum behind `old` and `term`, and in `lost` (whose place is set) what it loses. */
static const Expr *sum_keeping(KernelBuild *b, const Expr *old, const Expr *term, Root *lost) {
    Kernel *k = b->k;
    Elem elem = old->elem;
    lost->add = OP_CONST;
    const Expr *two[2] = {term, expr_load(k, lost->arg, lost->index, NULL)};
    const Expr *more = expr_map(k, OP_SUB, elem, two, 2);
    two[0] = old;
    two[1] = more;
    const Expr *sum = expr_map(k, OP_ADD, elem, two, 2);
    two[0] = sum;
    two[1] = old;
    two[0] = expr_map(k, OP_SUB, elem, two, 2);
    two[1] = more;
    /* An infinite sum has lost nothing: what the subtractions say there would make it a NaN. */
    const Expr *kept[3] = {expr_map(k, OP_ISFINITE, TY_BOOL, &sum, 1),
                           expr_map(k, OP_SUB, elem, two, 2), expr_const(k, elem, 0)};
    lost->value = expr_map(k, OP_SELECT, elem, kept, 3);
    return sum;
}

/* --- cumulative sums -------------------------------------------------------------------------- */

bool build_scan(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0];
    IndexTable *t = &b->k->index;
    int axis = node->attr->axis, rank = node->type.rank;
    const int64_t *dim = node->type.dim;
    const Radix g = *kernel_space(b, 0, count_dims(axis, dim), "r");
    const Radix v = *kernel_space(b, 1, count_dims(rank - axis - 1, dim + axis + 1), "j");
    int steps = kernel_axis(b->k, dim[axis], "k");
    const Index *i = kernel_axis_index(b->k, steps), *at[MD_RANK];
    space_digits(b, &g, axis, dim, at);
    space_digits(b, &v, rank - axis - 1, dim + axis + 1, at + axis + 1);
    RootList first = {0}, next = {0}, clear = {0}, all = {0};
    const Index *zero = index_const(t, 0), *before = index_offset(t, i, -1);
    if (node->attr->reverse) {
        zero = index_const(t, dim[axis] - 1);
        before = index_offset(t, index_scale(t, i, -1), dim[axis]);
        i = index_offset(t, index_scale(t, i, -1), dim[axis] - 1);
    }
    at[axis] = zero;
    kernel_store(b, &first, node, at,
                 node->attr->exclusive ? expr_const(b->k, node->type.elem, 0)
                                       : value_at(&b->v, node->in[0], at));
    int64_t work = type_count(node->type);
    if (dim[axis] > 1) { /* else there is no place before any */
        at[axis] = node->attr->exclusive ? before : i;
        const Expr *x = value_at(&b->v, node->in[0], at);
        at[axis] = before;
        const Expr *both[2] = {kernel_reload(b, node, at), x};
        at[axis] = i;
        if (dim[axis] > SUM_CHAIN && sum_rounds(OP_ADD, node->type.elem)) {
            Root lost = {.arg = lost_row(b, node->type.elem, v.count), .index = radix_flat(b, &v)};
            kernel_store(b, &next, node, at, sum_keeping(b, both[0], x, &lost));
            VEC_PUSH(b->scratch, &next, lost);
            lost.value = expr_const(b->k, node->type.elem, 0);
            VEC_PUSH(b->scratch, &clear, lost);
        } else {
            kernel_store(b, &next, node, at, expr_map(b->k, OP_ADD, node->type.elem, both, 2));
        }
        work = count_add(0, 2 + x->cost, work);
    }
    for (int k = 0; k < first.count + next.count; k++) {
        VEC_PUSH(b->scratch, &all, k < first.count ? first.at[k] : next.at[k - first.count]);
    }
    if (kernel_refine(b, &all)) {
        return true;
    }
    nest_open(b, &all);
    nest_lets(b, &b->k->body, 0, &all);
    StmtList *list = nest_loops(b, &b->k->body, g.axis, space_axes(&g), kernel_parallel(b, work));
    AxisSet scope = space_set(&g);
    nest_lets(b, list, scope, &all);
    nest_stage(b, list, scope, v.axis, space_axes(&v), &first);
    if (clear.count > 0) {
        nest_stage(b, list, scope, v.axis, space_axes(&v), &clear);
    }
    if (next.count > 0) {
        int at_loop = list->count;
        StmtList *inner = nest_loops(b, list, &steps, 1, false);
        list->at[at_loop]->begin = index_const(t, 1);
        list->at[at_loop]->span = dim[axis] - 1;
        scope |= (AxisSet)1 << steps;
        nest_lets(b, inner, scope, &next);
        nest_stage(b, inner, scope, v.axis, space_axes(&v), &next);
    }
    return false;
}

/* --- scattered sums --------------------------------------------------------------------------- */

/* The loop over what stands behind the scattered axis, or over the span of it at hand. */
static void scatter_row(KernelBuild *b, StmtList *list, AxisSet scope, const Radix *rest, int chunk,
                        const RootList *roots) {
    int before = list->count;
    nest_stage(b, list, scope, rest->axis, space_axes(rest), roots);
    if (chunk >= 0) {
        nest_piece(b, list->at[before], chunk, SCATTER_SPAN);
    }
}

bool build_scatter(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0], *index = node->in[1];
    int nb = node->attr->batch, ni = index->type.rank - nb, nr = node->type.rank - nb - 1;
    const int64_t *dim = node->type.dim;
    const Radix batch = *kernel_space(b, 0, count_dims(nb, dim), "r");
    const Radix from = *kernel_space(b, 1, count_dims(ni, index->type.dim + nb), "k");
    const Radix rest = *kernel_space(b, 2, count_dims(nr, dim + nb + 1), "j");
    int to = kernel_axis(b->k, dim[nb], "n");
    const Index *at[MD_RANK], *u[MD_RANK];
    space_digits(b, &batch, nb, dim, at);
    space_digits(b, &rest, nr, dim + nb + 1, at + nb + 1);
    RootList clear = {0}, add = {0}, forget = {0}, all = {0};
    at[nb] = kernel_axis_index(b->k, to);
    kernel_store(b, &clear, node, at, expr_const(b->k, node->type.elem, 0));
    memcpy(u, at, sizeof *u * (size_t)nb);
    space_digits(b, &from, ni, index->type.dim + nb, u + nb);
    const Expr *pos = value_at(&b->v, index, u);
    memcpy(u + nb + ni, at + nb + 1, sizeof *u * (size_t)nr);
    at[nb] = pos->kind == EXPR_INDEX   ? pos->index
             : pos->kind == EXPR_CONST ? index_const(&b->k->index, pos->ivalue)
                                       : index_value(&b->k->index, pos, pos->axes, 0, dim[nb] - 1);
    const Expr *term = value_at(&b->v, node->in[0], u);
    int64_t work = count_add(0, 3 + term->cost, type_count(node->in[0]->type));
    bool parallel = kernel_parallel(b, work);
    bool keeps = from.count > SUM_CHAIN && sum_rounds(OP_ADD, node->type.elem);
    bool split =
        (parallel || keeps) && batch.count < SCATTER_BATCH && rest.digit[0] >= 2 * SCATTER_SPAN;
    int chunk = 0;
    if (split) {
        chunk = kernel_axis(b->k, (rest.digit[0] + SCATTER_SPAN - 1) / SCATTER_SPAN, "c");
    }
    if (keeps) {
        IndexTable *t = &b->k->index;
        const Index *column = radix_flat(b, &rest);
        int64_t row = rest.count;
        if (split) {
            int64_t inner = rest.count / rest.digit[0];
            row = SCATTER_SPAN * inner;
            column = index_add(t, column, index_scale(t, kernel_axis_index(b->k, chunk), -row));
        }
        Root lost = {.arg = lost_row(b, node->type.elem, dim[nb] * row)};
        lost.index = index_add(t, index_scale(t, at[nb], row), column);
        kernel_store(b, &add, node, at, sum_keeping(b, kernel_reload(b, node, at), term, &lost));
        VEC_PUSH(b->scratch, &add, lost);
        lost.index = index_add(t, index_scale(t, kernel_axis_index(b->k, to), row), column);
        lost.value = expr_const(b->k, node->type.elem, 0);
        VEC_PUSH(b->scratch, &forget, lost);
    } else {
        kernel_store(b, &add, node, at, term);
        for (int i = 0; i < add.count; i++) {
            add.at[i].add = OP_ADD;
        }
    }
    for (int i = 0; i < add.count + clear.count; i++) {
        VEC_PUSH(b->scratch, &all, i < add.count ? add.at[i] : clear.at[i - add.count]);
    }
    if (kernel_refine(b, &all)) {
        return true;
    }
    int64_t cleared = type_count(node->type);
    nest_open(b, &clear);
    int outer[2 * MD_RANK], nouter = space_axes(&batch);
    memcpy(outer, batch.axis, sizeof *outer * (size_t)nouter);
    outer[nouter++] = to;
    StmtList *list = nest_loops(b, &b->k->body, outer, nouter, kernel_parallel(b, cleared));
    AxisSet scope = space_set(&batch);
    nest_stage(b, list, scope | (AxisSet)1 << to, rest.axis, space_axes(&rest), &clear);

    nest_open(b, &add);
    nest_lets(b, &b->k->body, 0, &add);
    list = &b->k->body;
    if (split) {
        list = nest_loops(b, list, &chunk, 1, parallel);
    }
    list = nest_loops(b, list, batch.axis, space_axes(&batch), parallel && !split);
    if (keeps) {
        StmtList *row = nest_loops(b, list, &to, 1, false);
        scatter_row(b, row, scope | (AxisSet)1 << to, &rest, split ? chunk : -1, &forget);
    }
    list = nest_loops(b, list, from.axis, space_axes(&from), false);
    scope |= space_set(&from);
    nest_lets(b, list, scope, &add);
    scatter_row(b, list, scope, &rest, split ? chunk : -1, &add);
    return false;
}
