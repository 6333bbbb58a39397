/* cpu_running: sums whose terms go where they find a place: cumulative and scattered ones.
 *
 * Nothing says beforehand which terms meet, or each sum is a result itself, so there are no levels
 * (sum.c). Where more terms may meet than a chain has, what rounding drops of a sum is kept beside
 * it and taken off the next term (Kahan 1965): the error is that of one addition, whatever their
 * number. Scattered sums of f32 that a cache holds are f64 meanwhile, which is as exact and faster.
 * Needs a RUNNING or SCATTER part; gives its loops; changes no values beyond rounding. */
#include "passes/schedule/schedule.h"

#include <string.h>

enum {
    SCATTER_SPAN = TUNED(64, 2),
    SCATTER_BATCH = TUNED(4, 100), /* batch elements from which no spans are needed */
    SCATTER_NARROW = TUNED(16, 3), /* so many sums of a term are as fast in f64: half a vector, */
    SCATTER_WIDE = TUNED(1 << 18, 1 << 7) /* of a thread all of them, bytes */
};

const Expr *sum_keeping(KernelBuild *b, const Expr *old, const Expr *term, Root *lost) {
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

/* `one` and then `two`. */
static RootList roots_of(KernelBuild *b, const RootList *one, const RootList *two) {
    RootList all = {0};
    for (int i = 0; i < one->count + two->count; i++) {
        VEC_PUSH(b->scratch, &all, i < one->count ? one->at[i] : two->at[i - one->count]);
    }
    return all;
}

/* A row for each thread of what the sums have lost so far. */
static Root lost_root(KernelBuild *b, Elem elem, int64_t count, const Index *at) {
    Type type = {.elem = elem, .rank = 1, .dim = {count}};
    return (Root){.arg = kernel_row(b, type, "lost"), .index = at, .add = OP_CONST};
}

/* The roots of the part with `value` for theirs. */
static RootList with_value(KernelBuild *b, const Part *part, const Expr *value) {
    RootList roots = {0};
    for (int i = 0; i < part->roots.count; i++) {
        VEC_PUSH(b->scratch, &roots, part->roots.at[i]);
        roots.at[i].value = value;
        roots.at[i].add = OP_CONST;
    }
    return roots;
}

static Elem sum_elem(const Part *part) {
    return part->first.at[0].value->elem;
}

/* --- cumulative sums -------------------------------------------------------------------------- */

static int64_t running_work(const KernelBuild *b, const Part *part) {
    int64_t count = count_add(0, part->rows.count, part->columns.count);
    int64_t each = part->roots.count > 0 ? 2 + part->roots.at[0].value->cost : 1;
    return count_add(0, each, count_add(0, count, b->k->axis[part->axis].extent));
}

static void running_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *g = &part->rows, *v = &part->columns;
    int64_t extent = b->k->axis[part->axis].extent;
    RootList next = {0}, clear = {0};
    if (part->roots.count > 0) {
        const Expr *both[2] = {part->before, part->roots.at[0].value};
        OpCode add = part->roots.at[0].add;
        if (extent > SUM_CHAIN && add == OP_ADD && sum_rounds(add, sum_elem(part))) {
            Root lost = lost_root(b, sum_elem(part), v->count, radix_flat(b->k, v));
            next = with_value(b, part, sum_keeping(b, both[0], both[1], &lost));
            VEC_PUSH(b->scratch, &next, lost);
            lost.value = expr_const(b->k, sum_elem(part), 0);
            VEC_PUSH(b->scratch, &clear, lost);
        } else {
            next = with_value(b, part, expr_map(b->k, add, sum_elem(part), both, 2));
        }
    }
    RootList all = roots_of(b, &part->first, &next);
    nest_open(b, &all);
    nest_lets(b, &b->k->body, 0, &all);
    StmtList *list = nest_loops(b, &b->k->body, g->axis, space_axes(g),
                                kernel_parallel(b, running_work(b, part)));
    AxisSet scope = space_set(g);
    nest_lets(b, list, scope, &all);
    nest_stage(b, list, scope, v->axis, space_axes(v), &part->first);
    if (clear.count > 0) {
        nest_stage(b, list, scope, v->axis, space_axes(v), &clear);
    }
    if (next.count > 0) {
        int at_loop = list->count;
        StmtList *inner = nest_loops(b, list, &part->axis, 1, false);
        list->at[at_loop]->begin = index_const(&b->k->index, 1);
        list->at[at_loop]->span = extent - 1;
        scope |= (AxisSet)1 << part->axis;
        nest_lets(b, inner, scope, &next);
        nest_stage(b, inner, scope, v->axis, space_axes(v), &next);
    }
}

/* --- scattered sums --------------------------------------------------------------------------- */

static int64_t scatter_work(const Part *part) {
    int64_t count =
        count_add(0, part->rows.count, count_add(0, part->terms.count, part->columns.count));
    return count_add(0, 3 + part->roots.at[0].value->cost, count);
}

typedef struct {
    int chunk;           /* axis: spans of what stands behind the scattered axis; -1: all of it */
    int64_t row;         /* elements behind it that a thread has at hand */
    const Index *column; /* which of them */
    RootList add, forget, give; /* give: the sums from where they were kept, NULL: they are there */
} Scatter;

/* The loop over what stands behind the scattered axis, or over the span of it at hand. */
static void scatter_row(KernelBuild *b, StmtList *list, AxisSet scope, const Part *part,
                        const Scatter *x, const RootList *roots) {
    int before = list->count;
    nest_stage(b, list, scope, part->columns.axis, space_axes(&part->columns), roots);
    if (x->chunk >= 0) {
        nest_piece(b, list->at[before], x->chunk, SCATTER_SPAN);
    }
}

/* What a term is added to, and what that loses. */
static void scatter_keeping(KernelBuild *b, const Part *part, Scatter *x) {
    IndexTable *t = &b->k->index;
    const Index *at = index_add(t, index_scale(t, part->to, x->row), x->column);
    Root lost = lost_root(b, sum_elem(part), b->k->axis[part->axis].extent * x->row, at);
    const Expr *term = part->roots.at[0].value;
    x->add = with_value(b, part, sum_keeping(b, part->before, term, &lost));
    VEC_PUSH(b->scratch, &x->add, lost);
    at = index_scale(t, kernel_axis_index(b->k, part->axis), x->row);
    lost.index = index_add(t, at, x->column);
    lost.value = expr_const(b->k, sum_elem(part), 0);
    VEC_PUSH(b->scratch, &x->forget, lost);
}

/* Where sum number `at` along the axis lies among those of a thread. */
static const Index *scatter_place(KernelBuild *b, const Scatter *x, const Index *at) {
    IndexTable *t = &b->k->index;
    return index_add(t, index_scale(t, at, x->row), x->column);
}

static bool scatter_is_wide(const KernelBuild *b, const Part *part, const Scatter *x) {
    int64_t count = count_add(0, b->k->axis[part->axis].extent, x->row);
    return sum_elem(part) == TY_F32 && x->row <= SCATTER_NARROW &&
           count_add(0, (int64_t)elem_bytes(TY_F64), count) <= SCATTER_WIDE;
}

/* The sums of a thread in f64, stored when all terms are there. */
static void scatter_wide(KernelBuild *b, const Part *part, Scatter *x) {
    Kernel *k = b->k;
    const Index *own = kernel_axis_index(k, part->axis);
    Type type = {.elem = TY_F64, .rank = 1, .dim = {k->axis[part->axis].extent * x->row}};
    const Expr *term = part->roots.at[0].value;
    Root sum = {.arg = kernel_row(b, type, "sums"), .owner = part->roots.at[0].owner};
    sum.index = scatter_place(b, x, part->to);
    sum.value = expr_map(k, OP_CAST, TY_F64, &term, 1);
    sum.add = OP_ADD;
    VEC_PUSH(b->scratch, &x->add, sum);
    sum.index = scatter_place(b, x, own);
    sum.value = expr_const(k, TY_F64, 0);
    sum.add = OP_CONST;
    VEC_PUSH(b->scratch, &x->forget, sum);
    const Expr *load = expr_load(k, sum.arg, sum.index, NULL);
    for (int i = 0; i < part->first.count; i++) {
        Root root = part->first.at[i];
        root.value = expr_map(k, OP_CAST, TY_F32, &load, 1);
        VEC_PUSH(b->scratch, &x->give, root);
    }
}

/* Zeros, to which terms are added in their places. */
static void scatter_clear(KernelBuild *b, const Part *part) {
    const Radix *rest = &part->columns;
    nest_open(b, &part->first);
    int outer[2 * MD_RANK], nouter = space_axes(&part->rows);
    memcpy(outer, part->rows.axis, sizeof *outer * (size_t)nouter);
    outer[nouter++] = part->axis;
    int64_t cleared =
        count_add(0, part->rows.count, count_add(0, b->k->axis[part->axis].extent, rest->count));
    StmtList *list = nest_loops(b, &b->k->body, outer, nouter, kernel_parallel(b, cleared));
    AxisSet scope = space_set(&part->rows) | (AxisSet)1 << part->axis;
    nest_stage(b, list, scope, rest->axis, space_axes(rest), &part->first);
}

static void scatter_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    IndexTable *t = &b->k->index;
    const Radix *rest = &part->columns;
    bool parallel = kernel_parallel(b, scatter_work(part));
    bool keeps = part->terms.count > SUM_CHAIN && sum_rounds(OP_ADD, sum_elem(part));
    bool split = (parallel || keeps) && part->rows.count < SCATTER_BATCH &&
                 rest->digit[0] >= 2 * SCATTER_SPAN;
    Scatter x = {.chunk = -1, .row = rest->count};
    if (split) {
        x.chunk = kernel_axis(b->k, (rest->digit[0] + SCATTER_SPAN - 1) / SCATTER_SPAN, "c");
    }
    if (keeps) {
        x.column = radix_flat(b->k, rest);
        if (split) {
            x.row = SCATTER_SPAN * (rest->count / rest->digit[0]);
            const Index *begin = index_scale(t, kernel_axis_index(b->k, x.chunk), -x.row);
            x.column = index_add(t, x.column, begin);
        }
        if (scatter_is_wide(b, part, &x)) {
            scatter_wide(b, part, &x);
        } else {
            scatter_keeping(b, part, &x);
        }
    } else {
        x.add = with_value(b, part, part->roots.at[0].value);
        for (int i = 0; i < x.add.count; i++) {
            x.add.at[i].add = OP_ADD;
        }
    }
    if (x.give.count == 0) {
        scatter_clear(b, part);
    }
    AxisSet scope = space_set(&part->rows), to = (AxisSet)1 << part->axis;
    nest_open(b, &x.add);
    nest_lets(b, &b->k->body, 0, &x.add);
    StmtList *list = &b->k->body;
    if (split) {
        list = nest_loops(b, list, &x.chunk, 1, parallel);
    }
    list = nest_loops(b, list, part->rows.axis, space_axes(&part->rows), parallel && !split);
    if (keeps) {
        StmtList *row = nest_loops(b, list, &part->axis, 1, false);
        scatter_row(b, row, scope | to, part, &x, &x.forget);
    }
    StmtList *each = nest_loops(b, list, part->terms.axis, space_axes(&part->terms), false);
    AxisSet all = scope | space_set(&part->terms);
    nest_lets(b, each, all, &x.add);
    scatter_row(b, each, all, part, &x, &x.add);
    if (x.give.count > 0) {
        StmtList *row = nest_loops(b, list, &part->axis, 1, false);
        scatter_row(b, row, scope | to, part, &x, &x.give);
    }
}

const Schedule cpu_running = {"running", 1 << PART_RUNNING, NULL, NULL, running_emit};
const Schedule cpu_scatter = {"scatter", 1 << PART_SCATTER, NULL, NULL, scatter_emit};
