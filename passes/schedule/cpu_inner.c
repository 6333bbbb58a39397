/* cpu_inner: windows that read their operand where it lies, with borders that it does not have.
 *
 * Technique: the places of a picture fall apart, axis by axis, into those whose windows touch a
 * border and the inner ones. Of these no term asks whether it lies inside, and they go by
 * registers (cpu_taps.c); those at the border go term by term, in the same order, so that sums
 * have the same bits. What the next line of places reads is asked for while one is made.
 * Needs the axes of a column (cpu_column.c); gives its innermost loops; changes no values. */
#include "passes/schedule/reach.h"

/* The turns of an axis in which no term asks whether it lies inside of its border. */
typedef struct {
    int axis;
    int64_t from, to;
} Inner;

static void find_inner(const KernelBuild *b, const Expr *e, Inner *inner, bool *seen) {
    if (seen[e->id] || !(e->axes >> inner->axis & 1)) {
        return;
    }
    seen[e->id] = true;
    if (e->kind == EXPR_WITHIN) {
        IndexTable *t = &b->k->index;
        const Index *at = kernel_axis_index(b->k, inner->axis);
        int64_t stride;
        if (!index_stride(e->index, inner->axis, &stride) || stride < 1) {
            inner->to = inner->from; /* in none */
            return;
        }
        const Index *rest = index_add(t, e->index, index_scale(t, at, -stride));
        const int64_t from = e->lo - rest->least + stride - 1, to = e->hi - 1 - rest->most;
        inner->from = from / stride > inner->from ? from / stride : inner->from;
        inner->to = to < 0 ? 0 : to / stride + 1 < inner->to ? to / stride + 1 : inner->to;
        return;
    }
    for (int i = 0; i < e->nkid; i++) {
        find_inner(b, e->kid[i], inner, seen);
    }
}

static Inner inner_of(const KernelBuild *b, const RootList *roots, int axis) {
    Inner inner = {axis, 0, b->k->axis[axis].extent};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    find_inner(b, roots->at[0].value, &inner, seen);
    return inner;
}

/* Sums of turns `from` to `to` of an axis, as roots of an axis of their own, *axis. */
static bool turns_between(KernelBuild *b, const RootList *roots, int *axis, int64_t from,
                          int64_t to, RootList *out) {
    const int fresh = kernel_axis(b->k, to - from, "r");
    const Index *at = index_offset(&b->k->index, kernel_axis_index(b->k, fresh), from);
    const bool fits = roots_at(b, roots, *axis, at, out);
    *axis = fresh;
    bind_uses(b, out);
    return fits;
}

/* Places at a border as they come, behind what `first` stores: those of the window one by one. */
static void border_places(KernelBuild *b, const WindowAxes *w, StmtList *list, AxisSet scope,
                          const int *axis, int n, const RootList *first, const RootList *roots) {
    list = nest_loops(b, list, axis, n, false);
    scope = axes_with(scope, axis, n);
    if (w->begins) {
        nest_stage(b, list, scope, &w->last, 1, first);
    }
    list = nest_loops(b, list, w->tap, w->n, false);
    scope = axes_with(scope, w->tap, w->n);
    nest_lets(b, list, scope, roots);
    nest_stage(b, list, scope, &w->last, 1, roots);
}

bool nest_inner(KernelBuild *b, const WindowAxes *w, StmtList *list, AxisSet scope, const int *axis,
                int n, const RootList *roots) {
    const Inner inner = inner_of(b, roots, axis[0]);
    const int64_t end[4] = {0, inner.from, inner.to, b->k->axis[axis[0]].extent};
    if (inner.from >= inner.to || b->k->naxis + 6 * n > AXES_MAX) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        RootList part = {0}, first = {0};
        int at[2] = {axis[0], n > 1 ? axis[1] : -1};
        if (end[i] == end[i + 1]) {
            continue;
        }
        if (!turns_between(b, roots, &at[0], end[i], end[i + 1], &part)) {
            return false;
        }
        if (w->begins) {
            column_identity(b, &part, &first);
        }
        if (i != 1) {
            border_places(b, w, list, scope, at, n, &first, &part);
        } else if (n == 1) {
            const Turns turn = turns_of(b, at, 1);
            if (!nest_taps(b, list, scope, &turn, w->tap, w->n, w->last, w->begins ? &first : NULL,
                           &part)) {
                return false;
            }
        } else {
            StmtList *body = nest_loops(b, list, at, 1, false);
            if (!nest_inner(b, w, body, axes_with(scope, at, 1), at + 1, n - 1, &part)) {
                return false;
            }
            ask_for_turns(b->k, b->scratch, list->at[list->count - 1]);
        }
    }
    return true;
}
