/* stage: the stages of a nest, and the loops around them.
 *
 * Technique: each expression is computed in the outermost block where the axes that it depends on
 * are bound. Inside the rows of a grid the folds over a row come first, by the depth of their
 * dependence on each other; folds of one depth over the same axes share one loop, and stores whose
 * values are ready share it too. What a later stage of the same row needs and is dear is kept in a
 * row of workspace, or read back from the output that holds it.
 * Needs roots whose index vectors use the grid and inner axes; gives statements; changes no values
 * beyond the order of sums. */
#include "passes/schedule/schedule.h"

#include <string.h>

enum {
    KEEP_COST = TUNED(10, 1),          /* of an element: worth a store and a load of a cached row */
    PARALLEL_WORK = TUNED(1 << 17, 1), /* about 20 us of one thread */
    TEAM = TUNED(16, 1000)             /* iterations that are enough for any team of threads */
};

/* --- stages ----------------------------------------------------------------------------------- */

typedef struct {
    KernelBuild *b;
    AxisSet scope;
    int *depth; /* by Expr.id: number of folds of this scope under it, -1: unknown */
    int ndepth;
    StageList stage;
} Rows;

static bool is_row_fold(const Rows *x, const Expr *e) {
    return e->kind == EXPR_FOLD && (e->axes & ~x->scope) == 0 && !x->b->bound[e->id];
}

/* Folds of this scope under `e`, the deepest chain; files them under their stages. */
static int fold_depth(Rows *x, const Expr *e) {
    if (x->b->bound[e->id]) {
        return 0;
    }
    if (x->depth[e->id] >= 0) {
        return x->depth[e->id];
    }
    int depth = 0;
    for (int i = 0; i < e->nkid; i++) {
        int d = fold_depth(x, e->kid[i]);
        depth = d > depth ? d : depth;
    }
    if (is_row_fold(x, e)) {
        bool search = e->nin == 2;
        int at = 0;
        while (at < x->stage.count &&
               (x->stage.at[at].set != e->fold || x->stage.at[at].depth != depth ||
                x->stage.at[at].search != search)) {
            at++;
        }
        if (at == x->stage.count) {
            Stage s = {.set = e->fold, .depth = depth, .search = search};
            VEC_PUSH(x->b->scratch, &x->stage, s);
        }
        VEC_PUSH(x->b->scratch, &x->stage.at[at].fold, e);
        depth++;
    }
    x->depth[e->id] = depth;
    return depth;
}

static int root_depth(Rows *x, const Root *root) {
    const Expr *kid[MD_RANK];
    int n = index_kids(root->index, kid, 0, MD_RANK), depth = fold_depth(x, root->value);
    for (int i = 0; i < n; i++) {
        int d = fold_depth(x, kid[i]);
        depth = d > depth ? d : depth;
    }
    return depth;
}

/* Stores join the first loop over their axes that comes late enough, else get one of their own. */
static void place_roots(Rows *x, const RootList *roots) {
    int *depth = ARENA_ARRAY(x->b->scratch, int, roots->count);
    for (int i = 0; i < roots->count; i++) {
        depth[i] = root_depth(x, &roots->at[i]);
    }
    for (int i = 0; i < roots->count; i++) {
        AxisSet set = root_axes(&roots->at[i]) & ~x->scope;
        int best = -1;
        for (int s = 0; s < x->stage.count; s++) {
            const Stage *stage = &x->stage.at[s];
            if (stage->set == set && stage->depth >= depth[i] && !stage->search &&
                (set != 0 || stage->fold.count == 0) &&
                (best < 0 || stage->depth < x->stage.at[best].depth)) {
                best = s;
            }
        }
        if (best < 0) {
            Stage s = {.set = set, .depth = set == 0 ? 1 << 20 : depth[i]};
            VEC_PUSH(x->b->scratch, &x->stage, s);
            best = x->stage.count - 1;
        }
        VEC_PUSH(x->b->scratch, &x->stage.at[best].root, roots->at[i]);
    }
    /* By depth; loops with folds first, so that their values are there. Stable. */
    for (int i = 1; i < x->stage.count; i++) {
        for (int j = i; j > 0; j--) {
            Stage *a = &x->stage.at[j - 1], *c = &x->stage.at[j];
            if (a->depth < c->depth || (a->depth == c->depth && a->search <= c->search)) {
                break;
            }
            Stage t = *a;
            *a = *c;
            *c = t;
        }
    }
}

/* Cost of the part of `e` that depends on inner axes. */
static int inner_cost(const Rows *x, const Expr *e, bool *seen) {
    if (seen[e->id] || x->b->bound[e->id] || (e->axes & ~x->scope) == 0) {
        return 0;
    }
    seen[e->id] = true;
    int cost = e->kind == EXPR_MAP    ? op_info[e->op].cost
               : e->kind == EXPR_DRAW ? e->cost - e->in[0]->cost
               : e->kind == EXPR_FOLD ? 1000
                                      : 0;
    for (int i = 0; i < e->nkid; i++) {
        cost += inner_cost(x, e->kid[i], seen);
    }
    return cost;
}

typedef struct {
    Rows *rows;
    int *first; /* by Expr.id: 1 + the first stage that computes it */
    bool *seen;
    int stage;
} Keeper;

/* Decides what stage `stage` takes from an earlier one. */
static void keep_visit(Keeper *x, const Expr *e) {
    Rows *r = x->rows;
    if (x->seen[e->id] || (e->axes & ~r->scope) == 0 || e->kind == EXPR_LOAD || expr_is_plain(e)) {
        return;
    }
    x->seen[e->id] = true;
    int first = x->first[e->id] - 1;
    if (first >= 0 && first < x->stage) {
        bool *seen = ARENA_ARRAY(r->b->scratch, bool, r->b->nbound);
        Stage *from = &r->stage.at[first];
        if (from->set == r->stage.at[x->stage].set && inner_cost(r, e, seen) >= KEEP_COST) {
            bool known = false;
            for (int i = 0; i < from->keep.count; i++) {
                known = known || from->keep.at[i] == e;
            }
            if (!known) {
                VEC_PUSH(r->b->scratch, &from->keep, e);
            }
            VEC_PUSH(r->b->scratch, &r->stage.at[x->stage].take, e);
            return;
        }
    }
    if (first < 0) {
        x->first[e->id] = x->stage + 1;
    }
    for (int i = 0; i < e->nkid; i++) {
        keep_visit(x, e->kid[i]);
    }
}

static void plan_keeps(Rows *r) {
    Keeper x = {.rows = r, .first = ARENA_ARRAY(r->b->scratch, int, r->b->nbound)};
    for (int s = 0; s < r->stage.count; s++) {
        const Stage *stage = &r->stage.at[s];
        x.seen = ARENA_ARRAY(r->b->scratch, bool, r->b->nbound);
        x.stage = s;
        for (int i = 0; i < stage->fold.count; i++) {
            for (int k = 0; k < stage->fold.at[i]->nkid; k++) {
                keep_visit(&x, stage->fold.at[i]->kid[k]);
            }
        }
        for (int i = 0; i < stage->root.count; i++) {
            keep_visit(&x, stage->root.at[i].value);
        }
    }
}

static int set_axes(AxisSet set, int *axis) {
    int n = 0;
    for (int i = 0; i < AXES_MAX; i++) {
        if (set >> i & 1) {
            axis[n++] = i; /* axes of one space are numbered outermost first */
        }
    }
    return n;
}

/* Where a kept row value lives: the output that the stage writes anyway, or a workspace. */
static void place_keep(Rows *r, Stage *stage, const Expr *e) {
    KernelBuild *b = r->b;
    for (int i = 0; i < stage->root.count; i++) {
        const Root *root = &stage->root.at[i];
        if (root->value == e && root->add == OP_CONST) {
            const Expr *load = expr_load(b->k, root->arg, root->index, NULL);
            VEC_PUSH(b->scratch, &stage->kept_as, load);
            return;
        }
    }
    int axis[AXES_MAX], n = set_axes(stage->set, axis);
    const Index *flat = index_const(&b->k->index, 0);
    int64_t count = 1;
    for (int i = 0; i < n; i++) {
        flat = index_add(&b->k->index, index_scale(&b->k->index, flat, b->k->axis[axis[i]].extent),
                         kernel_axis_index(b->k, axis[i]));
        count *= b->k->axis[axis[i]].extent;
    }
    Type row = {.elem = e->elem, .rank = 1, .dim = {count}};
    const Arg *arg = kernel_row(b, row, "row");
    Root root = {.arg = arg, .index = flat, .value = e, .add = OP_CONST};
    VEC_PUSH(b->scratch, &stage->root, root);
    const Expr *load = expr_load(b->k, arg, flat, NULL);
    VEC_PUSH(b->scratch, &stage->kept_as, load);
}

/* Binds what is stored; of a term its factors. */
static void bind_value(KernelBuild *b, StmtList *into, const Expr *e, ExprList *made) {
    for (int i = 0; e->term && i < e->nin; i++) {
        bind_value(b, into, e->in[i], made);
    }
    if (!e->term && !b->bound[e->id] && !expr_is_plain(e)) {
        stmt_let(b->k, into, e, NULL);
        b->bound[e->id] = true;
        VEC_PUSH(b->scratch, made, e);
    }
}

/* Values before stores: a store may overwrite what another value of this iteration reads. */
static void emit_body(KernelBuild *b, StmtList *into, AxisSet scope, const RootList *roots,
                      const ExprList *folds) {
    ExprList made = {0};
    Binder x = bind_open(b, into, scope, &made);
    for (int i = 0; folds && i < folds->count; i++) {
        const Expr *fold = folds->at[i];
        for (int k = 0; k < fold->nkid; k++) {
            bind_expr(&x, fold->kid[k], false);
        }
    }
    for (int i = 0; i < roots->count; i++) {
        bind_root(&x, &roots->at[i]);
    }
    for (int i = 0; i < roots->count && roots->count > 1; i++) {
        bind_value(b, into, roots->at[i].value, &made);
    }
    for (int i = 0; i < roots->count; i++) {
        const Root *root = &roots->at[i];
        if (!root->arg) {
            stmt_let(b->k, into, root->named, root->value);
            continue;
        }
        Stmt *s = stmt_store(b->k, into, root->arg, root->index, root->value);
        s->add = root->add;
        s->owner = root->owner;
    }
    bind_end(b, &made);
}

/* Nested folds: those whose axes are bound only inside this loop become loops of their own in it.
 */
static void emit_nested(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots,
                        const ExprList *folds);

StmtList *nest_loops(KernelBuild *b, StmtList *list, const int *axis, int n, bool parallel) {
    int team = 0;
    int64_t width = 1;
    for (int i = 0; parallel && i < n && width < TEAM; i++) {
        width *= b->k->axis[axis[i]].extent;
        team = i + 1;
    }
    for (int i = 0; i < n; i++) {
        Stmt *s = stmt_for(b->k, list, axis[i]);
        s->parallel = i == 0 && width > 1 ? team : 0;
        list = &s->body;
    }
    return list;
}

StmtList *nest_turns(KernelBuild *b, StmtList *list, const Turns *turns) {
    for (int i = 0; i < turns->n; i++) {
        Stmt *s = stmt_for(b->k, list, turns->at[i].axis);
        s->begin = turns->at[i].begin;
        s->span = s->begin ? turns->at[i].trip : 0;
        list = &s->body;
    }
    return list;
}

/* A FOLD for each level of the sums, the others outside of the terms; gives the innermost body. */
static StmtList *open_folds(KernelBuild *b, StmtList *list, const int *axis, int naxis,
                            const ExprList *folds) {
    bool rounds = false;
    for (int i = 0; i < folds->count; i++) {
        rounds = rounds || sum_rounds(folds->at[i]->op, folds->at[i]->elem);
        b->bound[folds->at[i]->id] = false;
    }
    bool whole = folds->at[0]->nin < 2 && b->target->thread_row;
    int lanes = whole ? sum_lanes(b->k->axis[axis[naxis - 1]].extent) : 1;
    Turns turns = turns_of(b, axis, naxis);
    if (b->piece && b->piece->axis == axis[0]) {
        turns.at[0] = *b->piece;
    }
    SumLevels sum = {.n = 1, .level = {turns}};
    if (rounds) {
        sum = sum_levels(b, &turns, lanes, lanes == 1);
    }
    for (int l = sum.n - 1; l >= 0; l--) {
        const Turns *level = &sum.level[l];
        Stmt *s = stmt_fold(b->k, list, level->at[0].axis);
        for (int i = 1; i < level->n; i++) {
            VEC_PUSH(b->k->arena, &s->axes, level->at[i].axis);
        }
        for (int i = 0; i < folds->count; i++) {
            VEC_PUSH(b->k->arena, &s->fold, folds->at[i]);
        }
        s->begin = level->at[0].begin;
        s->span = s->begin ? level->at[0].trip : 0;
        s->parts = l > 0;
        s->lanes = l > 0 ? 1 : lanes;
        list = &s->body;
    }
    return list;
}

/* One loop over `axis`: its folds, what it stores. */
static void emit_stage(KernelBuild *b, StmtList *list, AxisSet scope, const int *axis, int naxis,
                       const RootList *roots, const ExprList *folds) {
    scope = axes_with(scope, axis, naxis);
    if (folds && folds->count > 0) {
        AxisSet open = b->part_open;
        StmtList *body = open_folds(b, list, axis, naxis, folds);
        emit_nested(b, body, scope, roots, folds);
        for (int i = 0; i < folds->count; i++) {
            b->bound[folds->at[i]->id] = true;
        }
        b->part_open = open;
        return;
    }
    StmtList *body = nest_loops(b, list, axis, naxis, false);
    emit_nested(b, body, scope, roots, NULL);
    if (naxis > 0) {
        Stmt *inner = list->at[list->count - 1];
        while (inner->axis != axis[naxis - 1]) {
            inner = inner->body.at[inner->body.count - 1];
        }
        inner->simd = true;
    }
}

static void emit_nested(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots,
                        const ExprList *folds) {
    Rows r = {.b = b, .scope = scope};
    bind_room(b);
    r.depth = ARENA_ARRAY(b->scratch, int, b->nbound);
    memset(r.depth, -1, sizeof *r.depth * (size_t)b->nbound);
    for (int i = 0; folds && i < folds->count; i++) {
        for (int k = 0; k < folds->at[i]->nkid; k++) {
            fold_depth(&r, folds->at[i]->kid[k]);
        }
    }
    for (int i = 0; i < roots->count; i++) {
        root_depth(&r, &roots->at[i]);
    }
    ExprList made = {0};
    RootList none = {0};
    for (int d = 0, left = r.stage.count; left > 0; d++) {
        for (int s = 0; s < r.stage.count; s++) {
            Stage *stage = &r.stage.at[s];
            if (stage->depth != d) {
                continue;
            }
            Binder x = bind_open(b, list, scope, &made);
            for (int i = 0; i < stage->fold.count; i++) {
                for (int k = 0; k < stage->fold.at[i]->nkid; k++) {
                    bind_expr(&x, stage->fold.at[i]->kid[k], true);
                }
            }
            int axis[AXES_MAX], n = set_axes(stage->set, axis);
            emit_stage(b, list, scope, axis, n, &none, &stage->fold);
            for (int i = 0; i < stage->fold.count; i++) {
                VEC_PUSH(b->scratch, &made, stage->fold.at[i]);
            }
            left--;
        }
    }
    emit_body(b, list, scope, roots, folds);
    bind_end(b, &made);
}

int64_t nest_piece_span(int64_t extent) {
    enum { LEAST = TUNED(64, 2), MOST = TUNED(512, 4), PIECES = TUNED(16, 3) /* about */ };
    if (extent < PIECES * LEAST) {
        return 0;
    }
    int64_t pieces = (extent + MOST - 1) / MOST;
    pieces = pieces < PIECES ? PIECES : pieces;
    return align_up((extent + pieces - 1) / pieces, LEAST);
}

void nest_piece(KernelBuild *b, Stmt *loop, int piece, int64_t span) {
    loop->begin = index_scale(&b->k->index, kernel_axis_index(b->k, piece), span);
    loop->span = span;
}

void nest_lets(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots) {
    Binder x = bind_open(b, list, scope, NULL);
    x.early = true;
    for (int i = 0; i < roots->count; i++) {
        bind_root(&x, &roots->at[i]);
    }
}

void nest_stage(KernelBuild *b, StmtList *list, AxisSet scope, const int *axis, int naxis,
                const RootList *roots) {
    emit_stage(b, list, scope, axis, naxis, roots, NULL);
}

/* The loop at the end of `list`, and those in it, `n` in all, are written out. */
static void write_out(const StmtList *list, int n) {
    for (int i = 0; i < n; i++) {
        Stmt *loop = list->at[list->count - 1];
        loop->simd = false;
        loop->unroll = true;
        list = &loop->body;
    }
}

Stmt *nest_written_out(KernelBuild *b, StmtList *list, AxisSet scope, int last, const int *row,
                       int n, const RootList *first, int nfirst, const RootList *roots) {
    Stmt *vector = stmt_for(b->k, list, last);
    vector->simd = true;
    scope |= (AxisSet)1 << last;
    if (first) {
        nest_stage(b, &vector->body, scope, row + n - nfirst, nfirst, first);
        write_out(&vector->body, nfirst);
    }
    nest_lets(b, &vector->body, scope, roots);
    nest_stage(b, &vector->body, scope, row, n, roots);
    write_out(&vector->body, n);
    return vector;
}

/* How the value `e`, kept by a stage before `s`, is read. */
static const Expr *kept_load(const Rows *r, int s, const Expr *e) {
    for (int i = 0; i < s; i++) {
        const Stage *from = &r->stage.at[i];
        for (int j = 0; j < from->keep.count; j++) {
            if (from->keep.at[j] == e) {
                return from->kept_as.at[j];
            }
        }
    }
    BUG("a kept row is lost");
}

/* The innermost loop of the statement that a stage has just added. */
static Stmt *inner_loop(const StmtList *list, int last) {
    Stmt *loop = list->at[list->count - 1];
    while ((loop->kind == STMT_FOR && loop->axis != last) || loop->parts) {
        loop = loop->body.at[loop->body.count - 1];
    }
    return loop;
}

static void emit_row_stage(Rows *r, StmtList *list, int s) {
    KernelBuild *b = r->b;
    Stage *stage = &r->stage.at[s];
    for (int i = 0; i < stage->take.count; i++) {
        b->bound[stage->take.at[i]->id] = true;
    }
    Binder x = bind_open(b, list, r->scope, NULL);
    for (int i = 0; i < stage->fold.count; i++) {
        for (int k = 0; k < stage->fold.at[i]->nkid; k++) {
            bind_expr(&x, stage->fold.at[i]->kid[k], true);
        }
    }
    for (int i = 0; i < stage->root.count; i++) {
        bind_root(&x, &stage->root.at[i]);
    }
    int axis[AXES_MAX], n = set_axes(stage->set, axis);
    emit_stage(b, list, r->scope, axis, n, &stage->root, &stage->fold);
    if (stage->take.count > 0) {
        Stmt *loop = inner_loop(list, axis[n - 1]);
        StmtList body = {0};
        for (int i = 0; i < stage->take.count; i++) {
            stmt_let(b->k, &body, stage->take.at[i], kept_load(r, s, stage->take.at[i]));
        }
        for (int i = 0; i < loop->body.count; i++) {
            VEC_PUSH(b->k->arena, &body, loop->body.at[i]);
        }
        loop->body = body;
    }
    bind_end(b, &stage->take);
}

StageList nest_stages(KernelBuild *b, AxisSet scope, const RootList *roots) {
    Rows r = {.b = b, .scope = scope};
    bind_room(b);
    r.depth = ARENA_ARRAY(b->scratch, int, b->nbound);
    memset(r.depth, -1, sizeof *r.depth * (size_t)b->nbound);
    place_roots(&r, roots);
    return r.stage;
}

/* All stages of one row. */
void nest_rows(KernelBuild *b, StmtList *list, AxisSet scope, const RootList *roots) {
    Rows r = {.b = b, .scope = scope, .stage = nest_stages(b, scope, roots)};
    if (b->target->thread_row) {
        plan_keeps(&r);
    }
    for (int s = 0; s < r.stage.count; s++) {
        for (int i = 0; i < r.stage.at[s].keep.count; i++) {
            place_keep(&r, &r.stage.at[s], r.stage.at[s].keep.at[i]);
        }
    }
    bind_room(b);
    for (int s = 0; s < r.stage.count; s++) {
        emit_row_stage(&r, list, s);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

bool kernel_parallel(const KernelBuild *b, int64_t work) {
    return work >= PARALLEL_WORK && b->k->threads > 1;
}
