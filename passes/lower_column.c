/* lower_column: folds over leading axes, whose result is a vector for each outer row.
 *
 * Technique: terms are added to the vector, which stays in cache; long vectors are made piece by
 * piece, which threads share; of short ones chunks of the rows have vectors of their own, which are
 * added in order. Sums of many rows go by levels (lower_sum.c): each level has a vector in the
 * workspace. A vector of one element is a number, a fold of each outer row.
 * Needs a unit of column folds, or the loops of a product; gives its kernel; changes no values
 * beyond the order of sums. */
#include "passes/lower_kernel.h"
#include "passes/view.h"

#include <math.h>
#include <string.h>

enum {
    COLUMN_CHUNKS = TUNED(16, 3),
    COLUMN_ROWS = TUNED(16, 100),     /* outer rows from which no chunks are needed */
    COLUMN_TERMS = TUNED(1 << 16, 1), /* from which chunks may pay, whatever a term costs: what is
                                         fused and how many threads there are changes no bits */
    COLUMN_PIECE = TUNED(64, 2),      /* least and most elements of a piece of a long vector */
    COLUMN_PIECE_MOST = TUNED(512, 4),
    COLUMN_SERIAL = TUNED(4096, 64) /* most rows of a vector that is made in pieces */
};

static const NodeInfo *info_of(const KernelBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

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

static void roots_identity(KernelBuild *b, const RootList *roots, RootList *init) {
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
    if (v->n != 1 || g->count >= COLUMN_ROWS || f->count > COLUMN_SERIAL ||
        v->count < COLUMN_CHUNKS * COLUMN_PIECE) {
        return 0;
    }
    int64_t pieces = (v->count + COLUMN_PIECE_MOST - 1) / COLUMN_PIECE_MOST;
    pieces = pieces < COLUMN_CHUNKS ? COLUMN_CHUNKS : pieces;
    return align_up((v->count + pieces - 1) / pieces, COLUMN_PIECE);
}

/* What the loops of a column share. */
typedef struct {
    const Radix *g, *f, *v;
    int piece;          /* axis: pieces of the vector, */
    int64_t piece_span; /* each so long; 0: it is made as a whole */
    int chunk;          /* axis: chunks of the rows, */
    int64_t chunk_span; /* each so many turns of their first axis; 0: none */
} Column;

/* Sums of chunks of the rows: each has a vector in workspace, of which `last` gets the loads. */
static void column_partial(KernelBuild *b, const Column *c, const RootList *roots, RootList *acc,
                           RootList *last) {
    IndexTable *t = &b->k->index;
    const Index *flat = index_scale(t, kernel_axis_index(b->k, c->chunk), c->g->count);
    flat = index_scale(t, index_add(t, flat, radix_flat(b, c->g)), c->v->count);
    flat = index_add(t, flat, radix_flat(b, c->v));
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i], end = r;
        if (r.add == OP_CONST) { /* made on the way */
            VEC_PUSH(b->scratch, acc, r);
            continue;
        }
        int64_t count = b->k->axis[c->chunk].extent * c->g->count * c->v->count;
        Type type = {.elem = r.arg->elem, .rank = 1, .dim = {count}};
        Buf *buf = kernel_work(b, type, 0, "partial");
        const Arg *arg = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
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

/* The terms of one level, each added to its root. */
static void column_terms(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                         const Turns *turns, const RootList *roots) {
    int axis[TURNS];
    for (int i = 0; i < turns->n; i++) {
        axis[i] = turns->at[i].axis;
    }
    Stmt *vector = NULL;
    if (c->chunk_span == 0 && turns->n > 0 && space_axes(c->v) == 1) {
        vector =
            block_jam(b, list, scope, axis, turns->n, c->v->axis[0], false, &turns->at[0], roots);
    }
    if (vector) {
        if (c->piece_span > 0) {
            nest_piece(b, vector, c->piece, c->piece_span);
        }
        return;
    }
    StmtList *inner = nest_turns(b, list, turns);
    for (int i = 0; i < turns->n; i++) {
        scope |= (AxisSet)1 << axis[i];
    }
    nest_lets(b, inner, scope, roots);
    column_vector(b, c, inner, scope, roots);
}

/* Adds what levels 0 to `level` of the rows are made of to the roots. */
static void column_level(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                         const SumLevels *sum, int level, const RootList *roots) {
    if (level == 0) {
        column_terms(b, c, list, scope, &sum->level[0], roots);
        return;
    }
    IndexTable *t = &b->k->index;
    StmtList *body = nest_turns(b, list, &sum->level[level]);
    const Index *at = radix_flat(b, c->v);
    if (c->piece_span > 0) {
        at = index_add(t, at, index_scale(t, kernel_axis_index(b->k, c->piece), -c->piece_span));
    }
    int64_t count = c->piece_span > 0 ? c->piece_span : c->v->count;
    RootList part = {0}, init = {0}, end = {0};
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i];
        if (r.add != OP_CONST) {
            Type type = {.elem = r.arg->elem, .rank = 1, .dim = {count}};
            Buf *buf = kernel_work(b, type, b->k->threads, "part");
            Arg *arg = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
            arg->thread = true;
            arg->part = buf->type.dim[buf->type.rank - 1];
            Root add = r;
            add.value = expr_load(b->k, arg, at, NULL);
            VEC_PUSH(b->scratch, &end, add);
            r.arg = arg;
            r.index = at;
        }
        VEC_PUSH(b->scratch, &part, r);
    }
    bind_room(b);
    roots_identity(b, &part, &init);
    column_vector(b, c, body, scope, &init);
    column_level(b, c, body, scope, sum, level - 1, &part);
    column_vector(b, c, body, scope, &end);
}

/* Vectors of the roots: at first nothing, then the rows by levels. */
static void column_rows(KernelBuild *b, const Column *c, StmtList *list, AxisSet scope,
                        const RootList *roots) {
    RootList init = {0};
    roots_identity(b, roots, &init);
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
        sum = sum_levels(b, &turns, 1);
    }
    column_level(b, c, list, scope, &sum, sum.n - 1, roots);
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

/* What is added up as a value: a fold over the rows. */
static RootList fold_roots(KernelBuild *b, const Radix *f, const RootList *roots) {
    RootList folds = {0};
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i];
        if (r.add != OP_CONST) {
            OpCode op = r.add == OP_MUL   ? OP_PROD
                        : r.add == OP_MAX ? OP_FMAX
                        : r.add == OP_MIN ? OP_FMIN
                                          : OP_SUM;
            r.value = expr_fold(b->k, op, r.arg->elem, r.value, space_set(f));
            r.add = OP_CONST;
        }
        VEC_PUSH(b->scratch, &folds, r);
    }
    return folds;
}

void emit_column(KernelBuild *b, const Radix *g, const Radix *f, const Radix *v,
                 const RootList *roots) {
    int64_t work = 0;
    int64_t terms = count_add(0, g->count, count_add(0, f->count, v->count));
    for (int i = 0; i < roots->count; i++) {
        work = count_add(work, 1 + roots->at[i].value->cost, terms);
    }
    bool parallel = kernel_parallel(b, work);
    bool number = space_axes(v) == 0 && space_axes(f) > 0;
    Column c = {.g = g, .f = f, .v = v, .piece_span = column_piece(g, f, v)};
    RootList acc = {0}, last = {0};
    if (terms >= COLUMN_TERMS && c.piece_span == 0 && g->count < COLUMN_ROWS &&
        f->digit[0] >= 2 * COLUMN_CHUNKS) {
        Turns turns = turns_of(b, f->axis, space_axes(f));
        int64_t span = (f->digit[0] + COLUMN_CHUNKS - 1) / COLUMN_CHUNKS;
        c.chunk_span = sum_span(&turns, number ? sum_lanes(f->digit[f->n - 1]) : 1, span);
        c.chunk = kernel_axis(b->k, (f->digit[0] + c.chunk_span - 1) / c.chunk_span, "c");
        column_partial(b, &c, roots, &acc, &last);
    } else {
        acc = *roots;
    }
    acc = number ? fold_roots(b, f, &acc) : acc;
    nest_open(b, &acc);
    nest_lets(b, &b->k->body, 0, &acc);
    int outer[2 * MD_RANK], nouter = 0;
    AxisSet scope = space_set(g);
    if (c.chunk_span > 0) {
        scope |= (AxisSet)1 << c.chunk;
        outer[nouter++] = c.chunk;
    }
    memcpy(outer + nouter, g->axis, sizeof *outer * (size_t)space_axes(g));
    nouter += space_axes(g);
    if (c.piece_span > 0) {
        c.piece = kernel_axis(b->k, (v->count + c.piece_span - 1) / c.piece_span, "c");
        outer[nouter++] = c.piece;
    }
    StmtList *list = nest_loops(b, &b->k->body, outer, nouter, parallel);
    nest_lets(b, list, scope, &acc);
    if (number) {
        column_folds(b, &c, list, scope, &acc);
    } else {
        column_rows(b, &c, list, scope, &acc);
    }
    if (c.chunk_span == 0) {
        return;
    }
    RootList first = {0};
    c.piece_span = 0;
    roots_identity(b, &last, &first);
    nest_open(b, &last);
    list = nest_loops(b, &b->k->body, g->axis, space_axes(g), false);
    scope = space_set(g);
    column_vector(b, &c, list, scope, &first);
    list = nest_loops(b, list, &c.chunk, 1, false);
    column_vector(b, &c, list, scope | (AxisSet)1 << c.chunk, &last);
}

bool build_column(KernelBuild *b) {
    const Node *first = unit_fold(b->unit);
    Type from = first->in[0]->type;
    uint32_t folded = folded_axes(first);
    int64_t dim[3][MD_RANK];
    int n[3] = {0}, part[MD_RANK], tail = from.rank;
    while (tail > 0 && !(folded >> (tail - 1) & 1)) {
        tail--;
    }
    for (int i = 0; i < from.rank; i++) {
        part[i] = folded >> i & 1 ? 1 : i < tail ? 0 : 2;
        dim[part[i]][n[part[i]]++] = from.dim[i];
    }
    static const char *const names[3] = {"r", "k", "j"};
    Radix space[3];
    const Index *digit[3][MD_RANK];
    for (int p = 0; p < 3; p++) {
        space[p] = *kernel_space(b, p, count_dims(n[p], dim[p]), names[p]);
        space_digits(b, &space[p], n[p], dim[p], digit[p]);
    }
    const Index *in[MD_RANK], *out[MD_RANK], *here[MD_RANK];
    int at[3] = {0}, rank = 0, known = 0;
    for (int k = 0; k < from.rank; k++) {
        in[k] = digit[part[k]][at[part[k]]++];
        if (part[k] != 1) {
            out[rank++] = in[k];
        }
    }
    const Index *flat = index_flatten(&b->k->index, from.rank, from.dim, in);
    RootList roots = {0};
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *node = b->unit->atom.at[i];
        known += fold_is_loop(node) || unit_folds_over(b->unit, node);
        if (unit_folds_over(b->unit, node) && info_of(b, node)->stored) {
            index_unflatten(&b->k->index, flat, node->type.rank, node->type.dim, here);
            kernel_store(b, &roots, node, here, value_at(&b->v, node, here));
        }
        if (!fold_is_loop(node)) {
            continue;
        }
        if (!info_of(b, node)->stored) {
            kernel_home(b, node, "column");
        }
        int before = roots.count;
        kernel_store(b, &roots, node, out, value_at(&b->v, node->in[0], in));
        for (int k = before; k < roots.count; k++) {
            roots.at[k].add = fold_map(node->op);
        }
    }
    if (kernel_refine(b, &roots)) {
        return true;
    }
    emit_column(b, &space[0], &space[1], &space[2], &roots);
    b->known = true;
    b->first_space = 3;
    return b->unit->atom.count > known && build_nest(b);
}
