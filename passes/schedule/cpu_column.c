/* cpu_column: folds over leading axes, whose result is a vector for each outer row.
 *
 * Technique: terms are added to the vector, which stays in cache; long vectors are made piece by
 * piece, which threads share; of short ones chunks of the rows have vectors of their own, which are
 * added in order. Sums of many rows go by levels (sum.c): each level has a vector in the
 * workspace. A vector of one element is a number, a fold of each outer row.
 * Needs a COLUMN part; gives its loops; changes no values beyond the order of sums. */
#include "passes/schedule/reach.h"

#include <math.h>
#include <string.h>

enum {
    COLUMN_CHUNKS = TUNED(16, 3),
    COLUMN_LEAST = TUNED(4, 2),       /* chunks, where the first of several axes is short */
    COLUMN_ROWS = TUNED(16, 100),     /* outer rows from which no chunks are needed */
    COLUMN_TERMS = TUNED(1 << 16, 1), /* from which chunks may pay, whatever a term costs: what is
                                         fused and how many threads there are changes no bits */
    COLUMN_SERIAL = TUNED(4096, 64)   /* most rows of a vector that is made in pieces */
};

static const Expr *identity_of(Kernel *k, OpCode op, Elem elem) {
    bool is_float = elem_is_float(elem);
    int64_t least = 0, most = 0;
    if (!is_float) {
        elem_range(elem, &least, &most);
    }
    switch (op) {
    case OP_MUL: return expr_const(k, elem, 1);
    case OP_MAX: return is_float ? expr_const(k, elem, -INFINITY) : expr_int(k, elem, least);
    case OP_MIN: return is_float ? expr_const(k, elem, INFINITY) : expr_int(k, elem, most);
    default: return expr_const(k, elem, 0);
    }
}

void column_identity(KernelBuild *b, const RootList *roots, RootList *init) {
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i];
        if (r.add != OP_CONST) {
            r.value = identity_of(b->k, r.add, r.arg->elem);
            r.add = OP_CONST;
            VEC_PUSH(b->scratch, init, r);
        }
    }
}

/* Elements of the pieces in which a long vector of sums is made; 0: it is made as a whole. */
static int64_t column_piece(const Radix *g, const Radix *f, const Radix *v) {
    bool whole = v->n != 1 || g->count >= COLUMN_ROWS || f->count > COLUMN_SERIAL;
    return whole ? 0 : nest_piece_span(v->count);
}

/* Whether terms go by chunks, whatever else is done with them. */
static bool by_chunks(int64_t rows, int64_t first, int64_t terms, int64_t piece) {
    return terms >= COLUMN_TERMS && piece == 0 && rows < COLUMN_ROWS && first >= COLUMN_LEAST;
}

bool column_in_chunks(int64_t first, int64_t terms, int64_t columns) {
    const Radix g = {.count = 1}, f = {.count = terms, .n = 1};
    const Radix v = {.count = columns, .n = 1};
    return by_chunks(1, first, count_add(0, terms, columns), column_piece(&g, &f, &v));
}

/* What the loops of a column share. */
typedef struct {
    const Radix *g, *f, *v;
    int piece;          /* axis: pieces of the vector, */
    int64_t piece_span; /* each so long; 0: it is made as a whole */
    int chunk;          /* axis: chunks of the rows, */
    int64_t chunk_span; /* each so many turns of their first axis; 0: none */
    bool staged;        /* each term is a row with folds along it */
} Column;

/* Sums of chunks of the rows: each has a vector in workspace, of which `last` gets the loads. */
static void column_partial(KernelBuild *b, const Column *c, const RootList *roots, RootList *acc,
                           RootList *last) {
    IndexTable *t = &b->k->index;
    const Index *flat = index_scale(t, kernel_axis_index(b->k, c->chunk), c->g->count);
    flat = index_scale(t, index_add(t, flat, radix_flat(b->k, c->g)), c->v->count);
    flat = index_add(t, flat, radix_flat(b->k, c->v));
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i], end = r;
        if (r.add == OP_CONST) { /* made on the way */
            VEC_PUSH(b->scratch, acc, r);
            continue;
        }
        int64_t count = b->k->axis[c->chunk].extent * c->g->count * c->v->count;
        Type type = {.elem = r.arg->elem, .rank = 1, .dim = {count}};
        const Arg *arg = kernel_work(b, type, 0, "partial");
        end.value = expr_load(b->k, arg, flat, NULL);
        VEC_PUSH(b->scratch, last, end);
        r.arg = arg;
        r.index = flat;
        VEC_PUSH(b->scratch, acc, r);
    }
}

/* The loop over the vector, or over the piece of it at hand. */
static void column_vector(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                          const RootList *roots) {
    int before = list->count;
    nest_stage(b, list, scope, c->v->axis, space_axes(c->v), roots);
    if (c->piece_span > 0) {
        nest_piece(b, list->at[before], c->piece, c->piece_span);
    }
}

/* The sums of one level, the places of a window, in registers along the last of its loops. False,
 * and nothing done, where they are none. */
static bool column_taps(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                        const Turns *turns, const RootList *roots) {
    const int n = space_axes(c->v), before = list->count;
    if (turns->n == 0 || n < 2) {
        return false;
    }
    Turns outer = *turns, shared = {.n = nest_taps_loops(b, turns, c->v, roots)};
    outer.n -= shared.n;
    memcpy(shared.at, turns->at + outer.n, sizeof *shared.at * (size_t)shared.n);
    const int around = nest_taps_around(b, &turns->at[turns->n - 1], c->v->axis, n - 1, roots);
    StmtList *inner = nest_turns(b, nest_loops(b, list, c->v->axis, around, false), &outer);
    scope = axes_with(scope, c->v->axis, around);
    scope = turns_with(scope, &outer);
    if (!nest_taps(b, inner, scope, &shared, c->v->axis + around, n - 1 - around, c->v->axis[n - 1],
                   NULL, roots)) {
        list->count = before;
        return false;
    }
    return true;
}

/* The sums of one level, the places of a window, of an operand that is read where it lies: each
 * place of the picture adds to all of them, which stay near. */
static bool column_sums_in_place(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                                 const Turns *turns, const RootList *roots) {
    const int n = space_axes(c->v);
    Turns outer = *turns;
    outer.n -= 2;
    if (outer.n < 0 || n < 3 || roots->count != 1 || c->piece_span > 0) {
        return false;
    }
    const Turn *last = &turns->at[outer.n];
    if (last[0].begin || last[1].begin) {
        return false;
    }
    const WindowAxes w = {c->v->axis, n - 1, c->v->axis[n - 1], false};
    const int picture[2] = {last[0].axis, last[1].axis};
    list = nest_turns(b, list, &outer);
    return nest_inner(b, &w, list, turns_with(scope, &outer), picture, 2, roots);
}

/* The terms of one level, each added to its root. */
static void column_terms(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                         const Turns *turns, const RootList *roots) {
    int axis[TURNS];
    for (int i = 0; i < turns->n; i++) {
        axis[i] = turns->at[i].axis;
    }
    Stmt *vector = NULL;
    if (b->work->in_place) {
        b->work->refused = !column_sums_in_place(b, c, list, scope, turns, roots);
        return;
    }
    if (c->staged) {
        StmtList *row = nest_turns(b, list, turns);
        nest_rows(b, row, axes_with(scope, axis, turns->n), roots);
        return;
    }
    if (c->chunk_span == 0 && turns->n > 0 && space_axes(c->v) == 1) {
        vector = block_jam(b, list, scope, axis, turns->n, c->v->axis[0], JAM_ROWS, false,
                           &turns->at[0], roots);
    }
    if (vector) {
        if (c->piece_span > 0) {
            nest_piece(b, vector, c->piece, c->piece_span);
        }
        return;
    }
    if (column_taps(b, c, list, scope, turns, roots)) {
        return;
    }
    StmtList *inner = nest_turns(b, list, turns);
    Stmt *row = NULL;
    scope = turns_with(scope, turns);
    for (int i = 0; i < turns->n; i++) {
        const StmtList *at = row ? &row->body : list;
        row = at->at[at->count - 1];
    }
    nest_lets(b, inner, scope, roots);
    column_vector(b, c, inner, scope, roots);
    if (row && c->piece_span == 0 && space_axes(c->v) == 1) {
        far_sums(b, row, c->v->axis[0], roots);
    }
}

/* Adds what levels 0 to `level` of the rows are made of to the roots. */
static void column_level(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                         const SumLevels *sum, int level, const RootList *roots) {
    if (level == 0) {
        column_terms(b, c, list, scope, &sum->level[0], roots);
        return;
    }
    IndexTable *t = &b->k->index;
    const Turns *turns = &sum->level[level];
    StmtList *body = nest_turns(b, list, turns);
    scope = turns_with(scope, turns);
    const Index *at = radix_flat(b->k, c->v);
    if (c->piece_span > 0) {
        at = index_add(t, at, index_scale(t, kernel_axis_index(b->k, c->piece), -c->piece_span));
    }
    int64_t count = c->piece_span > 0 ? c->piece_span : c->v->count;
    RootList part = {0}, init = {0}, end = {0};
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i];
        if (r.add != OP_CONST) {
            Type type = {.elem = r.arg->elem, .rank = 1, .dim = {count}};
            const Arg *arg = kernel_row(b, type, "part");
            Root add = r;
            add.value = expr_load(b->k, arg, at, NULL);
            VEC_PUSH(b->scratch, &end, add);
            r.arg = arg;
            r.index = at;
        }
        VEC_PUSH(b->scratch, &part, r);
    }
    bind_room(b);
    column_identity(b, &part, &init);
    column_vector(b, c, body, scope, &init);
    column_level(b, c, body, scope, sum, level - 1, &part);
    column_vector(b, c, body, scope, &end);
}

/* Are levels short? Not of one sum over few rows, such as those of a batch: nothing depends on how
 * many these are then but the turns of a loop, so that another batch has the same text. */
static bool short_levels(const Column *c) {
    const bool batch = c->g->count == 1 && c->f->n == 1 && c->f->count <= SUM_CHAIN;
    return space_axes(c->v) == 1 && !batch;
}

/* Vectors of the roots: at first nothing, then the rows by levels. */
static void column_rows(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                        const RootList *roots) {
    RootList init = {0};
    column_identity(b, roots, &init);
    column_vector(b, c, list, scope, &init);
    Turns turns = turns_of(b, c->f->axis, space_axes(c->f));
    if (c->chunk_span > 0) {
        turns_begin(b, &turns, c->chunk, c->chunk_span);
    }
    SumLevels sum = {.n = 1, .level = {turns}};
    bool rounds = false;
    for (int i = 0; i < roots->count; i++) {
        rounds = rounds || sum_rounds(roots->at[i].add, roots->at[i].arg->elem);
    }
    if (rounds) {
        sum = sum_levels(b, &turns, 1, short_levels(c));
    }
    column_level(b, c, list, scope, &sum, sum.n - 1, roots);
}

/* Windows that read their operand where it lies. False: the operand has to be copied. */
static bool column_in_place(KernelBuild *b, const Column *c, const RootList *roots, bool parallel) {
    const int n = space_axes(c->g);
    if (n < 3 || c->piece_span > 0 || roots->count != 1) {
        return false;
    }
    const WindowAxes w = {c->f->axis, space_axes(c->f), c->v->axis[0], true};
    nest_open(b, roots);
    nest_lets(b, &b->k->body, 0, roots);
    StmtList *list = nest_loops(b, &b->k->body, c->g->axis, n - 2, parallel);
    const AxisSet scope = space_set(c->g) & ~((AxisSet)3 << c->g->axis[n - 2]);
    return nest_inner(b, &w, list, scope, c->g->axis + n - 2, 2, roots);
}

/* Sums of few terms, the places of a window: made in registers along the rows. False, and nothing
 * done, where they are none. */
static bool column_window(KernelBuild *b, const Column *c, const RootList *roots, bool parallel) {
    const int n = space_axes(c->g), before = b->k->body.count;
    if (n < 2 || c->chunk_span > 0 || c->piece_span > 0 || space_axes(c->v) != 1) {
        return false;
    }
    const int row = c->g->axis[n - 1];
    const Turns turn = turns_of(b, &row, 1);
    RootList init = {0};
    column_identity(b, roots, &init);
    StmtList *list = nest_loops(b, &b->k->body, c->g->axis, n - 1, parallel);
    AxisSet scope = space_set(c->g) & ~((AxisSet)1 << row);
    const int around = nest_taps_around(b, &turn.at[0], c->f->axis, space_axes(c->f), roots);
    if (around > 0) { /* the row is there before the first line of the window */
        nest_stage(b, nest_loops(b, list, &row, 1, false), space_set(c->g), c->v->axis, 1, &init);
        list = nest_loops(b, list, c->f->axis, around, false);
    }
    scope = axes_with(scope, c->f->axis, around);
    if (!nest_taps(b, list, scope, &turn, c->f->axis + around, space_axes(c->f) - around,
                   c->v->axis[0], around > 0 ? NULL : &init, roots)) {
        b->k->body.count = before;
        return false;
    }
    return true;
}

/* Numbers: folds of each outer row. */
static void column_folds(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                         const RootList *roots) {
    Turns turns = turns_of(b, c->f->axis, space_axes(c->f));
    if (c->chunk_span > 0) {
        turns_begin(b, &turns, c->chunk, c->chunk_span);
        b->piece = &turns.at[0];
    }
    nest_rows(b, list, scope, roots);
    b->piece = NULL;
}

/* --- schedule --------------------------------------------------------------------------------- */

/* The vectors of the chunks, one added to the other. */
static void column_join(KernelBuild *b, const Column *c, const RootList *last) {
    RootList first = {0};
    column_identity(b, last, &first);
    nest_open(b, last);
    StmtList *list = nest_loops(b, &b->k->body, c->g->axis, space_axes(c->g), false);
    AxisSet scope = space_set(c->g);
    column_vector(b, c, list, scope, &first);
    list = nest_loops(b, list, &c->chunk, 1, false);
    column_vector(b, c, list, scope | (AxisSet)1 << c->chunk, last);
}

/* The operations that it takes. */
static int64_t column_work(const Part *part, int64_t terms) {
    int64_t work = 0;
    for (int i = 0; i < part->roots.count; i++) {
        work = count_add(work, 1 + part->roots.at[i].value->cost, terms);
    }
    return work;
}

static void column_emit(KernelBuild *b, const Part *whole, void *plan) {
    (void)plan;
    const Part left = whole->staged ? *whole : spelled_before(b, whole), *part = &left;
    const Radix *g = &part->rows, *f = &part->terms, *v = &part->columns;
    Column of = {.g = g, .f = f, .v = v, .piece_span = column_piece(g, f, v)}, *c = &of;
    c->staged = part->staged;
    int64_t terms = count_add(0, g->count, count_add(0, f->count, v->count));
    bool number = space_axes(v) == 0 && space_axes(f) > 0;
    const bool chunks = by_chunks(g->count, f->digit[0], terms, c->piece_span);
    const bool parallel = kernel_parallel(b, column_work(part, terms));
    if (b->work->in_place && (number || space_axes(v) == 1)) {
        b->work->refused = number || chunks || !column_in_place(b, c, &part->roots, parallel);
        return;
    }
    if (chunks) {
        Turns turns = turns_of(b, f->axis, space_axes(f));
        const int64_t most = f->digit[0] >= 2 * COLUMN_CHUNKS ? COLUMN_CHUNKS : f->digit[0];
        const int64_t span = sum_even((f->digit[0] + most - 1) / most);
        c->chunk_span = sum_span(&turns, number ? sum_lanes(f->digit[f->n - 1]) : 1, span);
    }
    RootList acc = part->roots, last = {0};
    int outer[2 * MD_RANK], nouter = 0;
    AxisSet scope = space_set(c->g);
    if (c->chunk_span > 0) {
        acc = (RootList){0};
        c->chunk = kernel_axis(b->k, (c->f->digit[0] + c->chunk_span - 1) / c->chunk_span, "c");
        column_partial(b, c, &part->roots, &acc, &last);
        scope |= (AxisSet)1 << c->chunk;
        outer[nouter++] = c->chunk;
    }
    acc = number ? sum_folds(b, c->f, &acc) : acc;
    nest_open(b, &acc);
    nest_lets(b, &b->k->body, 0, &acc);
    memcpy(outer + nouter, c->g->axis, sizeof *outer * (size_t)space_axes(c->g));
    nouter += space_axes(c->g);
    if (c->piece_span > 0) {
        c->piece = kernel_axis(b->k, (c->v->count + c->piece_span - 1) / c->piece_span, "c");
        outer[nouter++] = c->piece;
    }
    if (!number && !b->work->in_place && column_window(b, c, &acc, parallel)) {
        return;
    }
    StmtList *list = nest_loops(b, &b->k->body, outer, nouter, parallel);
    nest_lets(b, list, scope, &acc);
    if (number) {
        column_folds(b, c, list, scope, &acc);
    } else {
        column_rows(b, c, list, scope, &acc);
    }
    if (c->chunk_span > 0) {
        c->piece_span = 0;
        column_join(b, c, &last);
    }
}

const Schedule cpu_column = {"column", 1 << PART_COLUMN, NULL, NULL, column_emit};
