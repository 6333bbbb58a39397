/* lower_unit: the kernel of each kind of unit.
 *
 * A kernel is built on flat index spaces; where an index then holds a quotient of an axis, the axis
 * gets digits and the kernel is built again, so that loads come out affine wherever they can be.
 * Needs a Fusion and homes for what it stores; gives the statements of one kernel. */
#include "passes/lower_kernel.h"
#include "passes/view.h"

#include <string.h>

enum { FULL_CHUNKS = TUNED(64, 3) };

static const NodeInfo *info_of(const KernelBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

static Type vector_type(Elem elem, int64_t count) {
    return (Type){.elem = elem, .rank = 1, .dim = {count}};
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
    Turns turns = turns_of(b, all.axis, all.n);
    int64_t span = (all.digit[0] + FULL_CHUNKS - 1) / FULL_CHUNKS;
    span = sum_span(&turns, sum_lanes(all.digit[all.n - 1]),
                    all.n == 1 ? align_up(span, CHUNK_UNIT) : span);
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
    int64_t work = count_add(0, 1 + part.at[0].value->in[0]->cost, all.count);
    StmtList *list = nest_loops(b, &b->k->body, &chunk, 1, kernel_parallel(b, work));
    turns_begin(b, &turns, chunk, span);
    b->piece = &turns.at[0];
    nest_rows(b, list, (AxisSet)1 << chunk, &part);
    b->piece = NULL;
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
        b->piece = NULL;
        b->part_axes = b->part_open = 0;
    } while (build(b));
}
