/* cpu_across: rows that lie side by side in memory, as columns do.
 *
 * Technique: where the elements of a row lie apart and those of the next rows beside them, vectors
 * run across a piece of the rows, which stays in cache from one stage to the next. The sums of a
 * row are a vector for each of their lanes then, kept in workspace; they are combined by the tree
 * and the levels that a row by itself has, so the choice changes no bits. What a stage needs of the
 * folds before it is a vector, too; what is dear of that is made once for all of the row.
 * Needs a ROWS part; gives its loops; changes no values: the order of sums stays. */
#include "passes/lower/value.h"
#include "passes/schedule/schedule.h"

enum {
    ACROSS_TERMS = TUNED(4096, 1), /* of a fold, of all rows: fewer stay in the nearest cache */
    ACROSS_LEAST = TUNED(16, 2),   /* rows side by side */
    ACROSS_PIECE = TUNED(32, 3),   /* rows of a piece, about */
    ACROSS_UNIT = TUNED(16, 1),    /* pieces are multiples of it: whole cache lines */
    ACROSS_PIECES = TUNED(16, 3),  /* that threads share, if lines allow it */
    ACROSS_DEAR = TUNED(4, 1),     /* of a value of a row: worth a place of its own, a quotient */
    ACROSS_AXES = AXES_MAX - 40    /* axes of a kernel that leave enough for sums in parts */
};

typedef struct {
    int extent, axis;
} OwnAxis;

typedef struct {
    KernelBuild *b;
    int last;       /* the axis of rows side by side */
    int piece;      /* axis: pieces of it, */
    int64_t span;   /* each so long; 0: it goes as a whole */
    AxisSet rows;   /* the axes of rows, */
    AxisSet around; /* and of the loops around a piece */
    RootList known; /* what `named` is in loops across rows: `value`, a load */
    VEC(OwnAxis) own;
} Across;

/* --- loops across rows ------------------------------------------------------------------------ */

/* An axis of parts of rows; loops that stand behind one another share it. */
static int across_axis(Across *x, int64_t extent) {
    for (int i = 0; i < x->own.count; i++) {
        if (x->own.at[i].extent == extent) {
            return x->own.at[i].axis;
        }
    }
    const OwnAxis own = {(int)extent, kernel_axis(x->b->k, extent, "l")};
    VEC_PUSH(x->b->scratch, &x->own, own);
    return own.axis;
}

/* The place of a row in its piece. */
static const Index *across_place(const Across *x) {
    IndexTable *t = &x->b->k->index;
    const Index *at = kernel_axis_index(x->b->k, x->last);
    return x->span == 0
               ? at
               : index_add(t, at, index_scale(t, kernel_axis_index(x->b->k, x->piece), -x->span));
}

static int64_t across_count(const Across *x) {
    return x->span > 0 ? x->span : x->b->k->axis[x->last].extent;
}

/* Vectors of a workspace, to be set to `value` or combined with it; `lane`: which of so many. */
static Root across_root(const Across *x, Elem elem, int64_t lanes, const Index *lane,
                        const Expr *value, OpCode add) {
    const Type type = {.elem = elem, .rank = 1, .dim = {lanes * across_count(x)}};
    const Arg *arg = kernel_row(x->b, type, lanes > 1 ? "lanes" : "part");
    IndexTable *t = &x->b->k->index;
    const Index *at = across_place(x);
    at = lane ? index_add(t, at, index_scale(t, lane, across_count(x))) : at;
    return (Root){.arg = arg, .index = at, .value = value, .add = add};
}

static const Expr *known_load(const Across *x, const Expr *e) {
    for (int i = 0; i < x->known.count; i++) {
        if (x->known.at[i].named == e) {
            return x->known.at[i].value;
        }
    }
    return NULL;
}

static void known_used(const Across *x, const Expr *e, bool *seen, ExprList *used) {
    if (seen[e->id]) {
        return;
    }
    seen[e->id] = true;
    if (known_load(x, e)) {
        VEC_PUSH(x->b->scratch, used, e);
        return;
    }
    for (int i = 0; i < e->nkid; i++) {
        known_used(x, e->kid[i], seen, used);
    }
}

/* Calls for what roots compute, their places included. */
static void roots_visit(const Across *x, const RootList *roots,
                        void (*visit)(const Across *x, const Expr *e, bool *seen, ExprList *list),
                        ExprList *list) {
    bind_room(x->b);
    bool *seen = ARENA_ARRAY(x->b->scratch, bool, x->b->nbound);
    for (int i = 0; i < roots->count; i++) {
        const Expr *kid[MD_RANK];
        const int n = index_kids(roots->at[i].index, kid, 0, MD_RANK);
        for (int k = 0; k < n; k++) {
            visit(x, kid[k], seen, list);
        }
        visit(x, roots->at[i].value, seen, list);
    }
}

/* The loop over the rows of the piece, which knows what was made before. */
static void across_vector(const Across *x, StmtList *list, AxisSet scope, const RootList *roots) {
    KernelBuild *b = x->b;
    ExprList used = {0}, made = {0};
    StmtList body = {0};
    roots_visit(x, roots, known_used, &used);
    for (int i = 0; i < used.count; i++) {
        b->bound[used.at[i]->id] = true;
    }
    Binder outside = bind_open(b, list, scope, &made);
    outside.early = true;
    for (int i = 0; i < roots->count; i++) {
        bind_root(&outside, &roots->at[i]);
    }
    nest_stage(b, list, scope, &x->last, 1, roots);
    Stmt *loop = list->at[list->count - 1];
    if (x->span > 0) {
        nest_piece(b, loop, x->piece, x->span);
    }
    for (int i = 0; i < used.count; i++) {
        stmt_let(b->k, &body, used.at[i], known_load(x, used.at[i]));
    }
    for (int i = 0; i < loop->body.count; i++) {
        VEC_PUSH(b->k->arena, &body, loop->body.at[i]);
    }
    loop->body = body;
    bind_end(b, &made);
    bind_end(b, &used);
}

/* --- sums ------------------------------------------------------------------------------------- */

/* The folds of a stage on their way. */
typedef struct {
    const Stage *stage;
    SumLevels sum;
    int lanes;      /* of each sum whose order matters */
    RootList whole; /* for each fold: where it is made whatever the level; `arg` NULL: its order
                       matters */
} Folds;

static bool fold_rounds(const Expr *fold) {
    return sum_rounds(fold->op, fold->elem);
}

/* Lane l of each sum gets the one behind it by half of them, then by a quarter and so on, as
 * md_lanes_addf does it. */
static void across_tree(Across *x, StmtList *list, const RootList *lane, int lanes) {
    KernelBuild *b = x->b;
    IndexTable *t = &b->k->index;
    for (int half = lanes / 2; half > 0; half /= 2) {
        const int axis = half > 1 ? across_axis(x, half) : -1;
        const Index *at = across_place(x);
        const int64_t count = across_count(x);
        at = axis < 0 ? at : index_add(t, at, index_scale(t, kernel_axis_index(b->k, axis), count));
        RootList roots = {0};
        for (int i = 0; i < lane->count; i++) {
            Root r = lane->at[i];
            r.index = at;
            r.value = expr_load(b->k, r.arg, index_offset(t, at, half * count), NULL);
            VEC_PUSH(b->scratch, &roots, r);
        }
        StmtList *inner = nest_loops(b, list, &axis, axis < 0 ? 0 : 1, false);
        across_vector(x, inner, axes_with(x->around, &axis, axis < 0 ? 0 : 1), &roots);
    }
}

/* The lowest level: the terms. Gives a load of each fold. */
static void across_terms(Across *x, StmtList *list, AxisSet scope, Folds *f, ExprList *load) {
    KernelBuild *b = x->b;
    IndexTable *t = &b->k->index;
    Turns turns = f->sum.level[0];
    Turn last = turns.at[turns.n - 1];
    const bool split = f->lanes > 1;
    const int64_t parts = (last.trip + f->lanes - 1) / f->lanes;
    const Index *begin = last.begin ? last.begin : index_const(t, 0);
    const int part = split && parts > 1 ? across_axis(x, parts) : -1;
    begin = part < 0 ? begin
                     : index_add(t, begin, index_scale(t, kernel_axis_index(b->k, part), f->lanes));
    const Index *lane = index_add(t, kernel_axis_index(b->k, last.axis), index_scale(t, begin, -1));
    const int all = split ? across_axis(x, f->lanes) : -1;
    RootList roots = {0}, lanes = {0}, init = {0};
    for (int i = 0; i < f->stage->fold.count; i++) {
        const Expr *fold = f->stage->fold.at[i];
        Root r = f->whole.at[i];
        if (!r.arg) {
            r = across_root(x, fold->elem, f->lanes, split ? lane : NULL, fold->in[0],
                            fold_map(fold->op));
            VEC_PUSH(b->scratch, &lanes, r);
            const Index *at = r.index;
            r.index =
                !split ? at
                       : index_add(t, across_place(x),
                                   index_scale(t, kernel_axis_index(b->k, all), across_count(x)));
            RootList one = {0};
            VEC_PUSH(b->scratch, &one, r);
            column_identity(b, &one, &init);
            r.index = at;
        }
        VEC_PUSH(b->scratch, &roots, r);
        VEC_PUSH(b->scratch, load, expr_load(b->k, r.arg, across_place(x), NULL));
    }
    for (int i = 0; i < f->stage->root.count; i++) {
        VEC_PUSH(b->scratch, &roots, f->stage->root.at[i]);
    }
    if (init.count > 0) {
        StmtList *inner = nest_loops(b, list, &all, split ? 1 : 0, false);
        across_vector(x, inner, axes_with(scope, &all, split ? 1 : 0), &init);
    }
    turns.n -= split ? 1 : 0;
    StmtList *inner = nest_turns(b, list, &turns);
    scope = turns_with(scope, &turns);
    if (split) {
        inner = nest_loops(b, inner, &part, part < 0 ? 0 : 1, false);
        scope = axes_with(scope, &part, part < 0 ? 0 : 1);
        const Turns one = {.n = 1, .at = {{last.axis, part < 0 ? last.begin : begin, f->lanes}}};
        inner = nest_turns(b, inner, &one);
        scope = turns_with(scope, &one);
    }
    across_vector(x, inner, scope, &roots);
    if (split && lanes.count > 0) {
        across_tree(x, list, &lanes, f->lanes);
    }
}

/* What levels 0 to `level` are made of; gives a load of each fold. */
static void across_level(Across *x, StmtList *list, AxisSet scope, Folds *f, int level,
                         ExprList *load) {
    KernelBuild *b = x->b;
    if (level == 0) {
        across_terms(x, list, scope, f, load);
        return;
    }
    RootList sums = {0}, init = {0};
    ExprList part = {0};
    for (int i = 0; i < f->stage->fold.count; i++) {
        const Expr *fold = f->stage->fold.at[i];
        const bool whole = f->whole.at[i].arg != NULL;
        const Root r =
            whole ? f->whole.at[i] : across_root(x, fold->elem, 1, NULL, NULL, fold_map(fold->op));
        if (!whole) {
            VEC_PUSH(b->scratch, &sums, r);
        }
        VEC_PUSH(b->scratch, load, expr_load(b->k, r.arg, r.index, NULL));
    }
    column_identity(b, &sums, &init);
    if (init.count > 0) {
        across_vector(x, list, scope, &init);
    }
    StmtList *inner = nest_turns(b, list, &f->sum.level[level]);
    scope = turns_with(scope, &f->sum.level[level]);
    across_level(x, inner, scope, f, level - 1, &part);
    for (int i = 0, s = 0; i < part.count; i++) {
        if (!f->whole.at[i].arg) {
            sums.at[s++].value = part.at[i];
        }
    }
    if (sums.count > 0) {
        across_vector(x, inner, scope, &sums);
    }
}

/* --- stages ----------------------------------------------------------------------------------- */

static void known_add(Across *x, const Expr *e, const Expr *load) {
    const Root known = {.named = e, .value = load};
    VEC_PUSH(x->b->scratch, &x->known, known);
}

/* Additions that computing `e` takes, of what is not known, as far as they matter. */
static int64_t cost_beyond(const Across *x, const Expr *e) {
    if (known_load(x, e)) {
        return 0;
    }
    int64_t cost = e->kind == EXPR_MAP ? op_info[e->op].cost : 0;
    for (int i = 0; i < e->nkid && cost < ACROSS_DEAR; i++) {
        cost += cost_beyond(x, e->kid[i]);
    }
    return cost;
}

/* The values of a row, one for all of it, that are dear. */
static void dear_values(const Across *x, const Expr *e, bool *seen, ExprList *dear) {
    if (seen[e->id] || known_load(x, e)) {
        return;
    }
    seen[e->id] = true;
    const bool one = (e->axes & ~x->rows) == 0 && e->axes >> x->last & 1;
    if (one && e->kind == EXPR_MAP && !e->term && elem_is_float(e->elem) &&
        cost_beyond(x, e) >= ACROSS_DEAR) {
        VEC_PUSH(x->b->scratch, dear, e);
        return;
    }
    for (int i = 0; i < e->nkid; i++) {
        dear_values(x, e->kid[i], seen, dear);
    }
}

/* What the loops of a stage compute. */
static RootList stage_roots(const Across *x, const Stage *s) {
    RootList all = {0};
    for (int i = 0; i < s->fold.count; i++) {
        const Root term = {.index = index_const(&x->b->k->index, 0), .value = s->fold.at[i]->in[0]};
        VEC_PUSH(x->b->scratch, &all, term);
    }
    for (int i = 0; i < s->root.count; i++) {
        VEC_PUSH(x->b->scratch, &all, s->root.at[i]);
    }
    return all;
}

static void across_dear(Across *x, StmtList *list, const Stage *s) {
    const RootList all = stage_roots(x, s);
    ExprList dear = {0};
    RootList made = {0};
    roots_visit(x, &all, dear_values, &dear);
    for (int i = 0; i < dear.count; i++) {
        const Root r = across_root(x, dear.at[i]->elem, 1, NULL, dear.at[i], OP_CONST);
        VEC_PUSH(x->b->scratch, &made, r);
    }
    if (made.count > 0) {
        across_vector(x, list, x->around, &made);
    }
    for (int i = 0; i < made.count; i++) {
        known_add(x, dear.at[i], expr_load(x->b->k, made.at[i].arg, made.at[i].index, NULL));
    }
}

/* The axes of a stage, outermost first: those of one space are numbered so. */
static Turns stage_turns(KernelBuild *b, const Stage *s) {
    int axis[AXES_MAX], n = 0;
    for (int i = 0; i < AXES_MAX; i++) {
        if (s->set >> i & 1) {
            axis[n++] = i;
        }
    }
    return turns_of(b, axis, n);
}

/* The terms of a fold of so many rows. */
static int64_t stage_terms(KernelBuild *b, const Stage *s, int64_t rows) {
    const Turns turns = stage_turns(b, s);
    for (int i = 0; i < turns.n; i++) {
        rows = count_add(0, rows, turns.at[i].trip);
    }
    return rows;
}

static void across_folds(Across *x, StmtList *list, const Stage *s, const Turns *turns) {
    KernelBuild *b = x->b;
    bool rounds = false, floats = true;
    for (int i = 0; i < s->fold.count; i++) {
        rounds = rounds || fold_rounds(s->fold.at[i]);
        floats = floats && elem_is_float(s->fold.at[i]->elem);
    }
    /* As open_folds of stage.c and the lanes that are printed of it have them. */
    const int lanes = sum_lanes(turns->at[turns->n - 1].trip);
    const AxisSet open = b->part_open;
    Folds f = {.stage = s, .sum = {.n = 1, .level = {*turns}}, .lanes = 1};
    if (rounds) {
        f.sum = sum_levels(b, turns, lanes, lanes == 1);
        f.lanes = floats ? lanes : 1;
    }
    RootList init = {0};
    ExprList load = {0};
    for (int i = 0; i < s->fold.count; i++) {
        const Expr *fold = s->fold.at[i];
        Root r = {.arg = NULL};
        if (!fold_rounds(fold)) {
            r = across_root(x, fold->elem, 1, NULL, fold->in[0], fold_map(fold->op));
            RootList one = {0};
            VEC_PUSH(b->scratch, &one, r);
            column_identity(b, &one, &init);
        }
        VEC_PUSH(b->scratch, &f.whole, r);
    }
    if (init.count > 0) {
        across_vector(x, list, x->around, &init);
    }
    across_level(x, list, x->around, &f, f.sum.n - 1, &load);
    b->part_open = open;
    for (int i = 0; i < s->fold.count; i++) {
        known_add(x, s->fold.at[i], load.at[i]);
    }
}

static void across_stage(Across *x, StmtList *list, const Stage *s) {
    if (s->set == 0) { /* values of rows */
        across_vector(x, list, x->around, &s->root);
        return;
    }
    across_dear(x, list, s);
    const Turns turns = stage_turns(x->b, s);
    if (s->fold.count > 0) {
        across_folds(x, list, s, &turns);
        return;
    }
    across_vector(x, nest_turns(x->b, list, &turns), turns_with(x->around, &turns), &s->root);
}

/* --- schedule --------------------------------------------------------------------------------- */

/* Does it hold a draw, whose vectors lie along its own rows, or a fold that is no stage? */
static bool holds_other(const Expr *e, const bool *staged, bool *seen) {
    if (seen[e->id]) {
        return false;
    }
    seen[e->id] = true;
    bool other = e->kind == EXPR_DRAW || (e->kind == EXPR_FOLD && !staged[e->id]);
    for (int i = 0; i < e->nkid && !other; i++) {
        other = holds_other(e->kid[i], staged, seen);
    }
    return other;
}

static bool across_fits(KernelBuild *b, const Part *part, void **plan) {
    const Radix *r = &part->rows;
    const int last = r->n > 0 ? r->axis[r->n - 1] : -1;
    if (last < 0 || b->k->axis[last].extent < ACROSS_LEAST || b->k->naxis > ACROSS_AXES) {
        return false;
    }
    StageList *stages = ARENA_NEW(b->scratch, StageList);
    *stages = nest_stages(b, space_set(r), &part->roots);
    bool *staged = ARENA_ARRAY(b->scratch, bool, b->nbound), fits = true;
    int64_t terms = 0;
    for (int s = 0; s < stages->count; s++) {
        const Stage *stage = &stages->at[s];
        const int64_t all = stage->fold.count > 0 ? stage_terms(b, stage, r->count) : 0;
        terms = all > terms ? all : terms;
        for (int i = 0; i < stage->fold.count; i++) {
            const Expr *fold = stage->fold.at[i];
            staged[fold->id] = true;
            fits = fits && !stage->search && fold->axes >> last & 1;
        }
    }
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    for (int i = 0; i < part->roots.count && fits; i++) {
        const Root *root = &part->roots.at[i];
        fits = root->arg && root_axes(root) >> last & 1 && !holds_other(root->value, staged, seen);
    }
    *plan = stages;
    return terms >= ACROSS_TERMS && fits;
}

static Cost across_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    return nest_cost(b, part, part->rows.axis[part->rows.n - 1], -1);
}

/* Rows of a piece: fewer where threads would have too few pieces. */
static int64_t piece_of(int64_t extent, int64_t others, bool parallel) {
    const int64_t most = (extent + ACROSS_UNIT - 1) / ACROSS_UNIT;
    int64_t pieces = (extent + ACROSS_PIECE - 1) / ACROSS_PIECE;
    const int64_t least = parallel ? (ACROSS_PIECES + others - 1) / others : 1;
    pieces = pieces < least ? least : pieces;
    pieces = pieces < most ? pieces : most;
    const int64_t span = align_up((extent + pieces - 1) / pieces, ACROSS_UNIT);
    return span < extent ? span : 0;
}

static void across_emit(KernelBuild *b, const Part *part, void *plan) {
    const StageList *stages = plan;
    const Radix *r = &part->rows;
    Across x = {.b = b, .last = r->axis[r->n - 1], .piece = -1, .rows = space_set(r)};
    const int64_t extent = b->k->axis[x.last].extent;
    int outer[AXES_MAX], n = 0;
    for (; n < r->n - 1; n++) {
        outer[n] = r->axis[n];
    }
    const bool parallel = nest_parallel(b, part);
    x.span = piece_of(extent, r->count / extent, parallel);
    if (x.span > 0) {
        x.piece = outer[n++] = kernel_axis(b->k, (extent + x.span - 1) / x.span, "c");
    }
    x.around = axes_with(0, outer, n);
    nest_lets(b, &b->k->body, 0, &part->roots);
    StmtList *list = nest_loops(b, &b->k->body, outer, n, parallel);
    nest_lets(b, list, x.around, &part->roots);
    for (int s = 0; s < stages->count; s++) {
        across_stage(&x, list, &stages->at[s]);
    }
}

const Schedule cpu_across = {"across", 1 << PART_ROWS, across_fits, across_cost, across_emit};
