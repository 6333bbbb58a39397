/* lower_unit: the kernel of each kind of unit.
 *
 * A kernel is built on flat index spaces; where an index then holds a quotient of an axis, the axis
 * gets digits and the kernel is built again, so that loads come out affine wherever they can be.
 * Needs a Fusion and homes for what it stores; gives the statements of one kernel. */
#include "passes/lower_kernel.h"
#include "passes/view.h"

#include <math.h>
#include <string.h>

enum {
    COLUMN_CHUNKS = TUNED(16, 3),
    COLUMN_ROWS = TUNED(16, 100), /* outer rows from which no chunks are needed */
    COLUMN_PIECE = TUNED(64, 2),  /* least and most elements of a piece of a long vector */
    COLUMN_PIECE_MOST = TUNED(512, 4),
    COLUMN_SERIAL = TUNED(4096, 64), /* most terms that are added one to another */
    FULL_CHUNKS = TUNED(64, 3),
    SCATTER_SPAN = TUNED(64, 2),
    SCATTER_BATCH = TUNED(4, 100) /* batch elements from which no spans are needed */
};

static const NodeInfo *info_of(const KernelBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

static Type vector_type(Elem elem, int64_t count) {
    return (Type){.elem = elem, .rank = 1, .dim = {count}};
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
            r.value = identity_of(b->k, r.add, r.arg->buf->type.elem);
            r.add = OP_CONST;
            VEC_PUSH(b->scratch, init, r);
        }
    }
}

void kernel_home(KernelBuild *b, const Node *node, const char *name) {
    HomeList *home = &b->frame->home[node->id];
    Home work = {.buf = kernel_work(b, node->type, 0, name)};
    home->count = 0;
    VEC_PUSH_FROM(b->l->scratch, home, work, 1);
}

/* --- nests ------------------------------------------------------------------------------------ */

static void inner_space(KernelBuild *b, int64_t count) {
    for (int i = 0; i < b->v.inner.count; i++) {
        if (b->v.inner.at[i].count == count) {
            return;
        }
    }
    const Radix *r = kernel_space(b, b->first_space + 1 + b->v.inner.count, count, "j");
    InnerSpace inner = {.count = count, .naxis = r->n, .set = r->set};
    memcpy(inner.axis, r->axis, sizeof inner.axis);
    VEC_PUSH(b->scratch, &b->v.inner, inner);
}

/* Index vector of an atom in a kernel of rows. */
static void row_index(KernelBuild *b, const Node *node, int64_t rows, const Radix *row,
                      const Index **at) {
    int leading;
    if (!fuse_split(node->type, rows, &leading)) {
        BUG("an atom without the rows of its kernel");
    }
    space_digits(b, row, leading, node->type.dim, at);
    int64_t inner = type_count(node->type) / (rows > 0 ? rows : 1);
    const Index *flat = index_const(&b->k->index, 0);
    for (int i = 0; inner > 1 && i < b->v.inner.count; i++) {
        if (b->v.inner.at[i].count == inner) {
            flat = inner_flat(&b->v, &b->v.inner.at[i]);
        }
    }
    index_unflatten(&b->k->index, flat, node->type.rank - leading, node->type.dim + leading,
                    at + leading);
}

bool build_nest(KernelBuild *b) {
    const Unit *u = b->unit;
    bool flat = u->rows == 0;
    int64_t rows = flat ? u->count : u->rows;
    const Radix row = *kernel_space(b, b->first_space, rows, flat ? "i" : "r");
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        if (kernel_known(b, node)) {
            continue;
        }
        int64_t inner = type_count(node->type) / (rows > 0 ? rows : 1);
        if (fold_is_loop(node)) {
            inner_space(b, fold_count(node));
        } else if (inner > 1) {
            inner_space(b, inner);
        }
    }
    RootList roots = {0};
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        const Index *at[MD_RANK];
        if (!kernel_known(b, node) && (info_of(b, node)->stored || b->copy)) {
            row_index(b, node, rows, &row, at);
            kernel_store(b, &roots, node, at, value_at(&b->v, node, at));
        }
    }
    if (kernel_refine(b, &roots)) {
        return true;
    }
    nest_emit(b, row.axis, space_axes(&row), flat, &roots);
    return false;
}

/* --- folds over leading axes ------------------------------------------------------------------ */

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

/* Sums of chunks of the rows: each has a vector in workspace, of which `last` gets the loads. */
static void column_partial(KernelBuild *b, const Radix *g, const Radix *v, int chunk,
                           const RootList *roots, RootList *acc, RootList *last) {
    IndexTable *t = &b->k->index;
    const Index *flat =
        index_add(t, index_scale(t, kernel_axis_index(b->k, chunk), g->count), radix_flat(b, g));
    flat = index_add(t, index_scale(t, flat, v->count), radix_flat(b, v));
    for (int i = 0; i < roots->count; i++) {
        Root r = roots->at[i], end = r;
        if (r.add == OP_CONST) { /* made on the way */
            VEC_PUSH(b->scratch, acc, r);
            continue;
        }
        int64_t count = b->k->axis[chunk].extent * g->count * v->count;
        Buf *buf = kernel_work(b, vector_type(r.arg->buf->type.elem, count), 0, "partial");
        const Arg *arg = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
        end.value = expr_load(b->k, arg, flat, NULL);
        VEC_PUSH(b->scratch, last, end);
        r.arg = arg;
        r.index = flat;
        VEC_PUSH(b->scratch, acc, r);
    }
}

/* Long vectors are made piece by piece, which threads share; of short ones each chunk of the rows
 * has its own sums, which are added in order. */
void emit_column(KernelBuild *b, const Radix *g, const Radix *f, const Radix *v,
                 const RootList *roots) {
    nest_open(b, roots);
    int64_t work = 0;
    for (int i = 0; i < roots->count; i++) {
        work += g->count * f->count * v->count * (1 + roots->at[i].value->cost);
    }
    bool parallel = kernel_parallel(b, work);
    RootList init = {0}, acc = {0}, last = {0};
    StmtList *list = &b->k->body;
    nest_lets(b, list, 0, roots);
    int64_t piece_span = column_piece(g, f, v);
    bool chunked =
        parallel && piece_span == 0 && g->count < COLUMN_ROWS && f->digit[0] >= 2 * COLUMN_CHUNKS;
    int64_t span = (f->digit[0] + COLUMN_CHUNKS - 1) / COLUMN_CHUNKS;
    int chunk = chunked ? kernel_axis(b->k, (f->digit[0] + span - 1) / span, "c") : 0;
    if (chunked) {
        column_partial(b, g, v, chunk, roots, &acc, &last);
    } else {
        acc = *roots;
    }
    int outer[2 * MD_RANK], nouter = 0, piece = 0;
    AxisSet scope = space_set(g);
    if (chunked) {
        scope |= (AxisSet)1 << chunk;
        outer[nouter++] = chunk;
    }
    memcpy(outer + nouter, g->axis, sizeof *outer * (size_t)space_axes(g));
    nouter += space_axes(g);
    if (piece_span > 0) {
        piece = kernel_axis(b->k, (v->count + piece_span - 1) / piece_span, "c");
        outer[nouter++] = piece;
    }
    list = nest_loops(b, list, outer, nouter, parallel);
    nest_lets(b, list, scope, &acc);
    roots_identity(b, &acc, &init);
    int before = list->count;
    nest_stage(b, list, scope, v->axis, space_axes(v), &init);
    if (piece_span > 0) {
        nest_piece(b, list->at[before], piece, piece_span);
    }
    before = list->count;
    Stmt *vector = NULL;
    if (!chunked && space_axes(f) > 0 && space_axes(v) == 1) {
        vector = block_jam(b, list, scope, f->axis, space_axes(f), v->axis[0], false, &acc);
    }
    if (!vector) {
        StmtList *inner = nest_loops(b, list, f->axis, space_axes(f), false);
        if (chunked) {
            nest_piece(b, list->at[before], chunk, span);
        }
        scope |= space_set(f);
        nest_lets(b, inner, scope, &acc);
        before = inner->count;
        nest_stage(b, inner, scope, v->axis, space_axes(v), &acc);
        vector = inner->at[before];
    }
    if (piece_span > 0) {
        nest_piece(b, vector, piece, piece_span);
    }
    if (!chunked) {
        return;
    }
    RootList first = {0};
    for (int i = 0; i < last.count; i++) {
        Root r = last.at[i];
        r.value = identity_of(b->k, r.add, r.value->elem);
        r.add = OP_CONST;
        VEC_PUSH(b->scratch, &first, r);
    }
    nest_open(b, &last);
    list = nest_loops(b, &b->k->body, g->axis, space_axes(g), false);
    nest_stage(b, list, space_set(g), v->axis, space_axes(v), &first);
    list = nest_loops(b, list, &chunk, 1, false);
    nest_stage(b, list, space_set(g) | (AxisSet)1 << chunk, v->axis, space_axes(v), &last);
}

static bool build_column(KernelBuild *b) {
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

/* --- folds of everything ---------------------------------------------------------------------- */

static bool build_full(KernelBuild *b) {
    const Unit *u = b->unit;
    const Radix all = *kernel_space(b, 0, fold_count(unit_fold(u)), "i");
    InnerSpace inner = {.count = all.count, .naxis = all.n, .set = all.set};
    memcpy(inner.axis, all.axis, sizeof inner.axis);
    VEC_PUSH(b->scratch, &b->v.inner, inner);
    const Expr **fold = ARENA_ARRAY(b->scratch, const Expr *, u->atom.count);
    const Index *at[MD_RANK];
    RootList part = {0}, last = {0};
    for (int k = 0; k < MD_RANK; k++) {
        at[k] = index_const(&b->k->index, 0);
    }
    for (int i = 0; i < u->atom.count; i++) {
        if (fold_is_loop(u->atom.at[i])) {
            fold[i] = value_at(&b->v, u->atom.at[i], at);
            if (fold[i]->kind != EXPR_FOLD) {
                BUG("a fold of everything came out as something else");
            }
            Root r = {.index = at[0], .value = fold[i], .add = OP_CONST};
            VEC_PUSH(b->scratch, &part, r);
        }
    }
    if (kernel_refine(b, &part)) {
        return true;
    }
    int64_t span = (all.digit[0] + FULL_CHUNKS - 1) / FULL_CHUNKS;
    span = all.n == 1 ? align_up(span, CHUNK_UNIT) : span;
    int64_t chunks = (all.digit[0] + span - 1) / span;
    int chunk = kernel_axis(b->k, chunks, "c"), again = kernel_axis(b->k, chunks, "c");
    const Expr **known = ARENA_ARRAY(b->scratch, const Expr *, b->frame->region->node.count);
    for (int i = 0, k = 0; i < u->atom.count; i++) {
        if (!fold[i]) {
            continue;
        }
        Buf *buf = kernel_work(b, vector_type(fold[i]->elem, chunks), 0, "partial");
        const Arg *arg = kernel_arg(b->k, buf, ACCESS_READ | ACCESS_WRITE);
        part.at[k].arg = arg;
        part.at[k++].index = kernel_axis_index(b->k, chunk);
        const Expr *load = expr_load(b->k, arg, kernel_axis_index(b->k, again), NULL);
        known[u->atom.at[i]->id] =
            expr_fold(b->k, fold[i]->op, fold[i]->elem, load, (AxisSet)1 << again);
    }
    nest_open(b, &part);
    nest_lets(b, &b->k->body, 0, &part);
    int64_t work = all.count * (1 + part.at[0].value->in[0]->cost);
    StmtList *list = nest_loops(b, &b->k->body, &chunk, 1, kernel_parallel(b, work));
    nest_rows(b, list, (AxisSet)1 << chunk, &part);
    for (int i = 0; i < list->count; i++) {
        if (list->at[i]->kind == STMT_FOLD) {
            nest_piece(b, list->at[i], chunk, span);
        }
    }
    b->known = true;
    b->known_value = known;
    values_forget(&b->v);
    for (int i = 0; i < u->atom.count; i++) {
        if (info_of(b, u->atom.at[i])->stored) {
            kernel_store(b, &last, u->atom.at[i], at, value_at(&b->v, u->atom.at[i], at));
        }
    }
    nest_open(b, &last);
    nest_rows(b, &b->k->body, 0, &last);
    return false;
}

/* --- cumulative sums -------------------------------------------------------------------------- */

static bool build_scan(KernelBuild *b) {
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
    RootList first = {0}, next = {0}, all = {0};
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
        kernel_store(b, &next, node, at, expr_map(b->k, OP_ADD, node->type.elem, both, 2));
        work *= 2 + x->cost;
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

static bool build_scatter(KernelBuild *b) {
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
    RootList clear = {0}, add = {0}, all = {0};
    at[nb] = kernel_axis_index(b->k, to);
    kernel_store(b, &clear, node, at, expr_const(b->k, node->type.elem, 0));
    memcpy(u, at, sizeof *u * (size_t)nb);
    space_digits(b, &from, ni, index->type.dim + nb, u + nb);
    const Expr *pos = value_at(&b->v, index, u);
    memcpy(u + nb + ni, at + nb + 1, sizeof *u * (size_t)nr);
    at[nb] = pos->kind == EXPR_INDEX   ? pos->index
             : pos->kind == EXPR_CONST ? index_const(&b->k->index, pos->ivalue)
                                       : index_value(&b->k->index, pos, pos->axes, 0, dim[nb] - 1);
    kernel_store(b, &add, node, at, value_at(&b->v, node->in[0], u));
    for (int i = 0; i < add.count; i++) {
        add.at[i].add = OP_ADD;
        VEC_PUSH(b->scratch, &all, add.at[i]);
        VEC_PUSH(b->scratch, &all, clear.at[i]);
    }
    if (kernel_refine(b, &all)) {
        return true;
    }
    int64_t work = type_count(node->in[0]->type) * (3 + add.at[0].value->cost);
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
    bool parallel = kernel_parallel(b, work);
    bool split = parallel && batch.count < SCATTER_BATCH && rest.digit[0] >= 2 * SCATTER_SPAN;
    list = &b->k->body;
    int chunk = 0;
    if (split) {
        chunk = kernel_axis(b->k, (rest.digit[0] + SCATTER_SPAN - 1) / SCATTER_SPAN, "c");
        list = nest_loops(b, list, &chunk, 1, true);
    }
    list = nest_loops(b, list, batch.axis, space_axes(&batch), parallel && !split);
    list = nest_loops(b, list, from.axis, space_axes(&from), false);
    scope |= space_set(&from);
    nest_lets(b, list, scope, &add);
    int before = list->count;
    nest_stage(b, list, scope, rest.axis, space_axes(&rest), &add);
    if (split) {
        nest_piece(b, list->at[before], chunk, SCATTER_SPAN);
    }
    return false;
}

/* --- concatenation ---------------------------------------------------------------------------- */

static bool build_concat(KernelBuild *b) {
    const Node *node = b->unit->atom.at[0];
    int axis = node->attr->axis;
    RootList *part = ARENA_ARRAY(b->scratch, RootList, node->nin), all = {0};
    Radix *space = ARENA_ARRAY(b->scratch, Radix, node->nin);
    int64_t begin = 0;
    for (int i = 0; i < node->nin; i++) {
        const Index *at[MD_RANK];
        Type type = node->in[i]->type;
        space[i] = *kernel_space(b, i, type_count(type), "i");
        space_digits(b, &space[i], type.rank, type.dim, at);
        bool placed = i < 64 && (b->frame->placed[node->id] >> i & 1) != 0;
        const Expr *value =
            type_count(type) > 0 && !placed ? value_at(&b->v, node->in[i], at) : NULL;
        at[axis] = index_offset(&b->k->index, at[axis], begin);
        begin += type.dim[axis];
        if (value) {
            kernel_store(b, &part[i], node, at, value);
            b->touch.at[b->touch.count - 1].mode |= ACCESS_PART; /* never all of it in one go */
        }
        for (int k = 0; k < part[i].count; k++) {
            VEC_PUSH(b->scratch, &all, part[i].at[k]);
        }
    }
    if (kernel_refine(b, &all)) {
        return true;
    }
    for (int i = 0; i < node->nin; i++) {
        if (part[i].count > 0) {
            nest_emit(b, space[i].axis, space_axes(&space[i]), true, &part[i]);
        }
    }
    return false;
}

/* --- units ------------------------------------------------------------------------------------ */

/* True when the kernel must be built again with more digits. */
static bool build(KernelBuild *b) {
    switch (b->unit->kind) {
    case UNIT_NEST: return build_nest(b);
    case UNIT_COLUMN: return build_column(b);
    case UNIT_FULL: return build_full(b);
    case UNIT_CONTRACT: return build_contract(b);
    case UNIT_SCAN: return build_scan(b);
    case UNIT_SCATTER: return build_scatter(b);
    case UNIT_CONCAT: return build_concat(b);
    case UNIT_LOOP: break;
    }
    BUG("a loop is no kernel");
}

/* Initialisation runs once, and its shapes grow with the depth of `repeat`, on which the text must
 * not depend: it stays on one thread. What has no instance may run before the threads of the run
 * are there and counted, as when the rows of a file are checked. */
static int entry_threads(const Lower *l) {
    EntryKind kind = l->e->entry->kind;
    bool alone = kind == ENTRY_INIT || kind == ENTRY_LOAD || kind == ENTRY_EVAL_END;
    return alone ? 1 : l->c->opt.threads;
}

void unit_build(KernelBuild *b) {
    do {
        arena_free(b->attempt);
        b->k = kernel_new(b->attempt, entry_threads(b->l));
        b->k->model = b->l->p->prefix;
        b->k->index.tables = b->scratch;
        values_open(&b->v, b->k, b->scratch);
        b->v.stored = kernel_stored;
        b->v.ctx = b;
        b->at = b->frame;
        b->touch.count = 0;
        b->nwork = 0;
        b->known = false;
        b->known_value = NULL;
        b->strip = NULL;
        b->first_space = 0;
    } while (build(b));
}
