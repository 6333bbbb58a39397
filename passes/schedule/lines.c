/* lines: a loop that makes what the next one reads window by window, and that loop, become one,
 * line by line.
 *
 * Technique: turn r of the second loop reads a window of lines, from line r * step on, and each
 * turn of the first loop makes one. So the lines that windows share with the one before are made
 * in front of the first window, and `step` more in front of each; no more than a window of them is
 * there at a time, in a ring: where an element lies is a remainder. So of the copy of a sample with
 * its border three lines are enough for windows of 3 x 3. Places whose distance would have all of
 * them in a few sets of the first-level cache lie a little further apart there. Needs the
 * statements of a kernel; changes no values: each turn does what it did, and each loop in the same
 * order. */
#include "passes/schedule/reach.h"

enum {
    LINE = TUNED(1024, 8), /* bytes of a line that pay for a remainder */
    WINDOW = TUNED(4, 64), /* most lines: each has an address of its own in the innermost loop */
    WINDOWS = TUNED(2, 1), /* that the lines of all are at least */
    SETS = TUNED(1024, 16) /* bytes between places of which a multiple is too even */
};

typedef struct {
    Kernel *k;
    Arena *scratch;
    const Arg *arg;
    Stmt *make, *read;          /* the two loops */
    int64_t line, window, step; /* elements, lines, lines */
    int64_t place, gap;         /* elements: from place to place, and what is between them */
} Lines;

static int64_t trips(const Kernel *k, const Stmt *loop) {
    return k->axis[loop->axis].extent;
}

static bool is_plain(const Stmt *s) {
    return s->kind == STMT_FOR && !s->begin && !s->until && !s->simd && !s->unroll && !s->held;
}

/* Loops that the C compiler does not write out. */
static AxisSet rolled(const StmtList *list) {
    AxisSet set = 0;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        set |= s->kind == STMT_FOR && !s->simd && !s->unroll ? (AxisSet)1 << s->axis : 0;
        set |= rolled(&s->body);
    }
    return set;
}

/* Does an index go on by whole places, and else stay inside of one? */
static bool inside_place(const Kernel *k, const Index *index, int64_t place) {
    int64_t stride, most = 0;
    for (int a = 0; a < k->naxis; a++) {
        if (!index_stride(index, a, &stride)) {
            return false;
        }
        most += stride % place == 0 ? 0 : stride < 0 ? place : stride * (k->axis[a].extent - 1);
    }
    return index->base >= 0 && index->base % place + most < place;
}

/* How places lie: from one to the next the least stride above 1 of the loop that makes them. */
static void find_places(Lines *l, const Index *made, const Index *read) {
    Kernel *k = l->k;
    int64_t stride, place = l->line;
    for (int a = 0; a < k->naxis; a++) {
        if (index_stride(made, a, &stride) && stride > 1 && stride < place) {
            place = stride;
        }
    }
    bool fits = l->line % place == 0 && place * (int64_t)elem_bytes(l->arg->elem) % SETS == 0 &&
                inside_place(k, made, place) && inside_place(k, read, place);
    l->place = place;
    l->gap = fits ? MD_ALIGN / (int64_t)elem_bytes(l->arg->elem) : 0;
}

/* The lines that a turn of each loop touches; false: that is no window. */
static bool find_window(Lines *l) {
    Kernel *k = l->k;
    Sites x = sites_of(k, l->scratch, &l->make->body, l->make, 1);
    Sites y = sites_of(k, l->scratch, &l->read->body, l->read, 1);
    const Touched made = x.arg[l->arg->id], read = y.arg[l->arg->id];
    for (int i = 0; i < k->nargs; i++) {
        if (x.arg[i].store != (i == l->arg->id)) {
            return false;
        }
    }
    x.arg[l->arg->id] = y.arg[l->arg->id] = (Touched){0};
    if (!sites_apart(&x, &y) || made.load || made.odd || !read.load || read.store || read.odd ||
        made.at.lo < 0 || made.at.hi >= made.at.mul || read.at.lo < 0 ||
        read.at.mul % made.at.mul != 0) {
        return false;
    }
    l->line = made.at.mul;
    l->step = read.at.mul / l->line;
    l->window = read.at.hi / l->line + 1;
    l->window = l->window < l->step ? l->step : l->window;
    find_places(l, made.index, read.index);
    return (trips(k, l->read) - 1) * l->step + l->window <= trips(k, l->make) &&
           (rolled(&l->read->body) & index_mod(&k->index, read.index, l->line)->axes) != 0;
}

static bool is_worth_it(const Lines *l) {
    return l->line * (int64_t)elem_bytes(l->arg->elem) >= LINE && l->window <= WINDOW &&
           WINDOWS * l->window <= trips(l->k, l->make);
}

/* For expressions at a place of the axis, where the workspace is a ring of a window's lines. */
static ExprAt in_ring(const Lines *l, int axis, const Index *place) {
    ExprAt x = expr_at_open(l->k, l->scratch, axis, place);
    x.arg = l->arg;
    x.ring = l->window * l->line;
    x.pitch = l->place;
    x.gap = l->gap;
    return x;
}

/* Adds `n` turns of the first loop, from line `from` on. */
static bool make_lines(const Lines *l, const Index *from, int64_t n, StmtList *list) {
    Kernel *k = l->k;
    if (n > 1) {
        Stmt *turns = stmt_for(k, list, kernel_axis(k, n, k->axis[l->make->axis].name));
        from = index_add(&k->index, from, kernel_axis_index(k, turns->axis));
        list = &turns->body;
    }
    ExprAt x = in_ring(l, l->make->axis, from);
    return n == 0 || stmts_at(&x, l->scratch, &l->make->body, list);
}

int64_t lines_join(Kernel *k, Arena *scratch, const Arg *arg, StmtList *list) {
    int pair[2];
    if (k->naxis + 4 > AXES_MAX || !sites_pair(k, scratch, arg, list, pair)) {
        return 0;
    }
    Lines l = {.k = k, .scratch = scratch, .arg = arg, .make = list->at[pair[0]]};
    l.read = list->at[pair[1]];
    while (is_plain(l.read) && trips(k, l.read) == 1 && l.read->body.count == 1) {
        l.read = l.read->body.at[0];
    }
    if (!is_plain(l.make) || !is_plain(l.read) || l.make->parallel || l.read->parallel ||
        !find_window(&l) || !is_worth_it(&l)) {
        return 0;
    }
    const int64_t shared = l.window - l.step;
    const Index *turn = kernel_axis_index(k, l.read->axis);
    const Index *next = index_offset(&k->index, index_scale(&k->index, turn, l.step), shared);
    StmtList before = {0}, made = {0}, window = {0}, all = {0};
    ExprAt x = in_ring(&l, l.read->axis, turn);
    if (!make_lines(&l, index_const(&k->index, 0), shared, &before) ||
        !make_lines(&l, next, l.step, &made) || !stmts_at(&x, scratch, &l.read->body, &window)) {
        return 0;
    }
    stmts_apart(k, &before);
    stmts_apart(k, &made);
    ask_in_turn(k, scratch, l.read, &made, &window);
    l.read->body = (StmtList){0};
    list_append(k, &l.read->body, &made);
    list_append(k, &l.read->body, &window);
    for (int i = 0; i < list->count; i++) {
        if (i == pair[1]) {
            list_append(k, &all, &before);
        }
        if (i != pair[0]) {
            VEC_PUSH_FROM(k->arena, &all, list->at[i], list->count);
        }
    }
    *list = all;
    return l.window * l.line / l.place * (l.place + l.gap);
}
