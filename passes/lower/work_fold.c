/* work_fold: sums over axes in front of kept ones, of everything, cumulative and scattered ones.
 * Needs a unit of such folds; gives a part for them, and one for what follows. */
#include "passes/lower/build.h"
#include "passes/view.h"

#include <string.h>

static const NodeInfo *info_of(const WorkBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

/* The operand of a fold, to be combined at the places of the fold. */
static void fold_roots(WorkBuild *b, RootList *roots, const Node *node, const Index *const *in,
                       const Index *const *out) {
    if (!info_of(b, node)->stored) {
        kernel_home(b, node, "column");
    }
    int before = roots->count;
    kernel_store(b, roots, node, out, value_at(&b->v, node->in[0], in));
    for (int k = before; k < roots->count; k++) {
        roots->at[k].add = fold_map(node->op);
    }
}

/* Adds the part and what follows it, of which `known` atoms are part already. */
static bool then_nest(WorkBuild *b, const Part *part, int known, int spaces) {
    if (kernel_refine(b, &part->roots)) {
        return true;
    }
    VEC_PUSH(b->w.scratch, &b->w.part, *part);
    b->known = true;
    b->first_space = spaces;
    return b->unit->atom.count > known && make_nest(b);
}

/* The spaces of what is made in each row, of which the columns are the first; gives how many spaces
 * there are then. */
static int row_spaces(WorkBuild *b, const Part *part) {
    const Radix *columns = &part->columns;
    InnerSpace inner = {.count = columns->count, .naxis = columns->n, .set = columns->set};
    memcpy(inner.axis, columns->axis, sizeof inner.axis);
    VEC_PUSH(b->w.scratch, &b->v.inner, inner);
    b->first_space = 1; /* that of the rows */
    for (int i = 0; i < b->unit->atom.count; i++) {
        if (info_of(b, b->unit->atom.at[i])->in_row) {
            nest_spaces(b, b->unit->atom.at[i], part->terms.count);
        }
    }
    return 2 + b->v.inner.count;
}

bool make_column(WorkBuild *b) {
    const Node *first = unit_fold(b->unit);
    Type from = *first->in[0]->type;
    uint32_t folded = folded_axes(first);
    int64_t dim[3][MD_RANK];
    int n[3] = {0}, group[MD_RANK], tail = from.rank;
    while (tail > 0 && !(folded >> (tail - 1) & 1)) {
        tail--;
    }
    for (int i = 0; i < from.rank; i++) {
        group[i] = folded >> i & 1 ? 1 : i < tail ? 0 : 2;
        dim[group[i]][n[group[i]]++] = from.dim[i];
    }
    static const char *const names[3] = {"r", "k", "j"};
    Part part = {.kind = PART_COLUMN};
    Radix *space[3] = {&part.rows, &part.terms, &part.columns};
    const Index *digit[3][MD_RANK];
    for (int p = 0; p < 3; p++) {
        *space[p] = *kernel_space(b, p, count_dims(n[p], dim[p]), names[p]);
        space_digits(b, space[p], n[p], dim[p], digit[p]);
    }
    const Index *in[MD_RANK], *out[MD_RANK], *here[MD_RANK];
    int at[3] = {0}, rank = 0, known = 0;
    for (int k = 0; k < from.rank; k++) {
        in[k] = digit[group[k]][at[group[k]]++];
        if (group[k] != 1) {
            out[rank++] = in[k];
        }
    }
    int spaces = 3;
    if (b->unit->rows > 0) {
        part.staged = true;
        spaces = row_spaces(b, &part);
    }
    const Index *flat = index_flatten(&b->w.k->index, from.rank, from.dim, in);
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *node = b->unit->atom.at[i];
        const bool in_row = info_of(b, node)->in_row;
        known += in_row || fold_is_loop(node) || unit_folds_over(b->unit, node);
        if (in_row && info_of(b, node)->stored) {
            nest_place(b, node, &part.terms, here);
            kernel_store(b, &part.roots, node, here, value_at(&b->v, node, here));
        } else if (unit_folds_over(b->unit, node) && info_of(b, node)->stored) {
            index_unflatten(&b->w.k->index, flat, node->type->rank, node->type->dim, here);
            kernel_store(b, &part.roots, node, here, value_at(&b->v, node, here));
        } else if (fold_is_loop(node) && !in_row) {
            fold_roots(b, &part.roots, node, in, out);
        }
    }
    return then_nest(b, &part, known, spaces);
}

bool make_total(WorkBuild *b) {
    const Node *first = unit_fold(b->unit);
    Part part = {.kind = PART_TOTAL, .terms = *kernel_space(b, 0, fold_count(first), "i")};
    InnerSpace inner = {.count = part.terms.count, .naxis = part.terms.n, .set = part.terms.set};
    memcpy(inner.axis, part.terms.axis, sizeof inner.axis);
    VEC_PUSH(b->w.scratch, &b->v.inner, inner);
    const Index *at[MD_RANK];
    for (int k = 0; k < MD_RANK; k++) {
        at[k] = index_const(&b->w.k->index, 0);
    }
    int known = 0;
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *node = b->unit->atom.at[i];
        if (fold_is_loop(node)) {
            known++;
            Root named = {.index = at[0], .value = value_at(&b->v, node, at), .add = OP_CONST};
            if (named.value->kind != EXPR_FOLD) {
                BUG("a fold of everything came out as something else");
            }
            VEC_PUSH(b->w.scratch, &part.roots, named);
            if (info_of(b, node)->stored) {
                kernel_store(b, &part.roots, node, at, named.value);
            }
        }
    }
    return then_nest(b, &part, known, 1);
}

/* As kernel_refine, of two lists one behind the other; the roots of the second are added to what
 * stands before them. */
static bool refine_both(WorkBuild *b, const RootList *one, const RootList *two,
                        const Expr *before) {
    RootList all = {0};
    for (int i = 0; i < one->count; i++) {
        VEC_PUSH(b->w.scratch, &all, one->at[i]);
    }
    for (int i = 0; i < two->count; i++) {
        Root root = two->at[i];
        root.value = before ? before : root.value;
        VEC_PUSH(b->w.scratch, &all, root);
        VEC_PUSH(b->w.scratch, &all, two->at[i]);
    }
    return kernel_refine(b, &all);
}

/* Each element is `add` of the one before it and its term; the first begins with `none`. */
static bool make_running(WorkBuild *b, OpCode add, double none) {
    const Node *node = b->unit->atom.at[0];
    Kernel *k = b->w.k;
    IndexTable *t = &k->index;
    int axis = node->attr->axis, rank = node->type->rank;
    const int64_t *dim = node->type->dim;
    Part part = {.kind = PART_RUNNING};
    part.rows = *kernel_space(b, 0, count_dims(axis, dim), "r");
    part.columns = *kernel_space(b, 1, count_dims(rank - axis - 1, dim + axis + 1), "j");
    part.axis = kernel_axis(k, dim[axis], "k");
    const Index *i = kernel_axis_index(k, part.axis), *at[MD_RANK];
    space_digits(b, &part.rows, axis, dim, at);
    space_digits(b, &part.columns, rank - axis - 1, dim + axis + 1, at + axis + 1);
    const Index *zero = index_const(t, 0), *before = index_offset(t, i, -1);
    if (node->attr->reverse) {
        zero = index_const(t, dim[axis] - 1);
        before = index_offset(t, index_scale(t, i, -1), dim[axis]);
        i = index_offset(t, index_scale(t, i, -1), dim[axis] - 1);
    }
    at[axis] = zero;
    kernel_store(b, &part.first, node, at,
                 node->attr->exclusive ? expr_const(k, node->type->elem, none)
                                       : value_at(&b->v, node->in[0], at));
    if (dim[axis] > 1) { /* else there is no place before any */
        at[axis] = node->attr->exclusive ? before : i;
        const Expr *x = value_at(&b->v, node->in[0], at);
        at[axis] = before;
        part.before = kernel_reload(b, node, at);
        at[axis] = i;
        kernel_store(b, &part.roots, node, at, x);
    }
    for (int r = 0; r < part.roots.count; r++) {
        part.roots.at[r].add = add;
    }
    VEC_PUSH(b->w.scratch, &b->w.part, part);
    return refine_both(b, &part.first, &part.roots, part.before);
}

bool make_cumsum(WorkBuild *b) {
    return make_running(b, OP_ADD, 0);
}

bool make_order(WorkBuild *b) {
    const Node *node = b->unit->atom.at[0], *x = node->in[0];
    int last = node->type->rank - 1;
    const int64_t *dim = node->type->dim;
    Part part = {.kind = PART_ORDER, .descending = node->attr->reverse};
    part.rows = *kernel_space(b, 0, count_dims(last, dim), "r");
    part.terms = *kernel_space(b, 1, x->type->dim[last], "i");
    part.columns = *kernel_space(b, 2, dim[last], "k");
    const Index *at[MD_RANK];
    space_digits(b, &part.rows, last, dim, at);
    space_digits(b, &part.terms, 1, x->type->dim + last, at + last);
    part.term = value_at(&b->v, x, at);
    space_digits(b, &part.columns, 1, dim + last, at + last);
    kernel_store(b, &part.roots, node, at, kernel_reload(b, node, at));
    Root term = {.index = index_const(&b->w.k->index, 0), .value = part.term};
    RootList all = {0};
    for (int i = 0; i < part.roots.count; i++) {
        VEC_PUSH(b->w.scratch, &all, part.roots.at[i]);
    }
    VEC_PUSH(b->w.scratch, &all, term);
    VEC_PUSH(b->w.scratch, &b->w.part, part);
    return kernel_refine(b, &all);
}

bool make_scatter_add(WorkBuild *b) {
    const Node *node = b->unit->atom.at[0], *index = node->in[1];
    Kernel *k = b->w.k;
    int nb = node->attr->batch, ni = index->type->rank - nb, nr = node->type->rank - nb - 1;
    const int64_t *dim = node->type->dim;
    Part part = {.kind = PART_SCATTER};
    part.rows = *kernel_space(b, 0, count_dims(nb, dim), "r");
    part.terms = *kernel_space(b, 1, count_dims(ni, index->type->dim + nb), "k");
    part.columns = *kernel_space(b, 2, count_dims(nr, dim + nb + 1), "j");
    part.axis = kernel_axis(k, dim[nb], "n");
    const Index *at[MD_RANK], *u[MD_RANK];
    space_digits(b, &part.rows, nb, dim, at);
    space_digits(b, &part.columns, nr, dim + nb + 1, at + nb + 1);
    at[nb] = kernel_axis_index(k, part.axis);
    kernel_store(b, &part.first, node, at, expr_const(k, node->type->elem, 0));
    memcpy(u, at, sizeof *u * (size_t)nb);
    space_digits(b, &part.terms, ni, index->type->dim + nb, u + nb);
    const Index *position = value_position(&b->v, index, u, dim[nb]);
    memcpy(u + nb + ni, at + nb + 1, sizeof *u * (size_t)nr);
    at[nb] = position;
    const Expr *term = value_at(&b->v, node->in[0], u);
    part.before = kernel_reload(b, node, at);
    kernel_store(b, &part.roots, node, at, term);
    part.to = at[nb];
    VEC_PUSH(b->w.scratch, &b->w.part, part);
    return refine_both(b, &part.roots, &part.first, NULL);
}
