/* work_product: products and what follows them.
 *
 * Technique: every label of the product gets axes, and the operands are asked for at these. Where
 * both are loads, no guards and nothing computed, any schedule can read the strides off them; what
 * follows is made when the schedule says how it counts the elements of its block. Anything else is
 * a fold over outer labels, summed ones and a vector of trailing ones.
 * Needs a CONTRACT unit with homes; gives its parts. */
#include "passes/lower/build.h"
#include "passes/view.h"

#include <string.h>

static const NodeInfo *info_of(const WorkBuild *b, const Node *node) {
    return &b->frame->fusion->info[node->id];
}

/* --- copies of operands ----------------------------------------------------------------------- */

/* Where a copy would lie if there were all of it at once. */
static Home staged_home(WorkBuild *b, const Node *x) {
    Buf *buf = ARENA_NEW(b->w.scratch, Buf);
    buf->storage = buf;
    buf->name = "halo";
    buf_set_type(b->l->p, buf, storage_of(b->frame, x));
    return (Home){.buf = buf};
}

Root work_copy(Work *w, int k, const Arg *to, const Index *const *at) {
    WorkBuild *b = (WorkBuild *)w; /* its first member */
    const Node *x = fuse_copied(b->frame->fusion, b->unit->atom.at[0], k);
    const Index *flat = index_flatten(&w->k->index, x->type->rank - 1, x->type->dim + 1, at + 1);
    return (Root){.arg = to,
                  .index = flat,
                  .value = value_at(&b->v, x, at),
                  .add = OP_CONST,
                  .owner = x->loc.owner};
}

/* Vector instructions for an element of `x` of what memory holds, up to `most`. */
static int64_t cost_of(const WorkBuild *b, const Node *x, int64_t most) {
    const NodeInfo *info = info_of(b, x);
    const OpClass cls = op_info[x->op].cls;
    if (info->stored || cls == CLASS_LEAF || (info->atom && info->unit != b->unit)) {
        return 0;
    }
    int64_t cost = most; /* a draw is dear */
    if (cls == CLASS_VIEW || (cls == CLASS_MAP && x->op != OP_RANDOM)) {
        cost = cls == CLASS_VIEW ? 0 : op_info[x->op].cost;
    }
    for (int i = 0; i < x->nin && cost < most; i++) {
        cost += cost_of(b, x->in[i], most - cost);
    }
    return cost;
}

/* Do windows read each element of the copy `x` so few times, and is it so little work, that it need
 * not be made? Only where the places of a window are summed, or each place adds to all sums of one,
 * whose loads and stores leave time for more. */
static bool reads_in_place(const WorkBuild *b, int k, const Node *x) {
    enum { READS = TUNED(3, 64), WORK = TUNED(3, 64), WORK_OF_SUMS = TUNED(8, 64) };
    const Node *node = b->unit->atom.at[0];
    const int64_t read = type_count(*node->in[k]->type), terms = fold_count(node);
    const int64_t work = type_count(*node->type) < terms ? WORK_OF_SUMS : WORK;
    return x->op == OP_PAD && x->attr->border == BORDER_VALUE && x->attr->value == 0 &&
           b->l->target->thread_row && read < READS * type_count(*x->type) &&
           type_count(*node->type) * terms == read && cost_of(b, x->in[0], work) < work;
}

/* The copies that the product makes for itself: by its schedule, or each as a part in front of it,
 * in the first index spaces, *spaces of them; true: these need more digits. Their values are asked
 * for before any of them is read. */
static bool make_copies(WorkBuild *b, int *spaces) {
    const Node *node = b->unit->atom.at[0];
    OwnCopy copy[2] = {{0}, {0}};
    bool again = false;
    *spaces = 0;
    b->copied = 0;
    for (int k = 0; k < 2; k++) {
        const Node *x = fuse_copied(b->frame->fusion, node, k);
        if (!x || x == copy[0].node) {
            continue;
        }
        if (!b->declined && !b->loops && !b->w.library) {
            copy[k] = (OwnCopy){x, staged_home(b, x)};
            b->staged = true;
            continue;
        }
        if (!b->copies && reads_in_place(b, k, x)) {
            b->w.in_place = true;
            continue;
        }
        Part part = {.kind = PART_MAP};
        part.rows = *kernel_space(b, (*spaces)++, type_count(*x->type), "i");
        const Index *at[MD_RANK];
        space_digits(b, &part.rows, x->type->rank, x->type->dim, at);
        copy[k] = (OwnCopy){x, {.buf = work_buf(&b->w, storage_of(b->frame, x), 0, "halo")}};
        kernel_store_at(b, &part.roots, x, &copy[k].home, at, value_at(&b->v, x, at));
        b->copied = count_add(b->copied, 1, (int64_t)copy[k].home.buf->bytes);
        again = kernel_refine(b, &part.roots) || again;
        VEC_PUSH(b->w.scratch, &b->w.part, part);
    }
    memcpy(b->own_copy, copy, sizeof copy);
    return again;
}

/* --- as loops --------------------------------------------------------------------------------- */

static bool has_label(const Node *node, int k, int label) {
    const Attr *a = node->attr;
    return find_label(k == 0 ? a->la : a->lb, node->in[k]->type->rank, label) >= 0;
}

/* Are the sums of a register of channels few, the places of a window in front? */
static bool has_few_places(const Node *node, int channels) {
    enum { PLACES = 8, LANES = TUNED(16, 4) };
    const int64_t *dim = node->type->dim;
    bool few = count_dims(node->type->rank - channels, dim + channels) % LANES == 0;
    for (int i = 0; i < channels; i++) {
        few = few && dim[i] <= PLACES;
    }
    return few;
}

/* Where the last labels of the result begin, that columns have: those of the second operand alone.
 * If it ends with labels that both operands have, these, and all where the result, or of a window
 * a part of it, stays near while many terms are added to it. */
static int trailing_labels(const Node *node) {
    enum { CACHED = TUNED(8192, 64), WINDOW = TUNED(32768, 128) };
    const int8_t *label = node->attr->lo_;
    int tail = node->type->rank, shared = tail;
    while (shared > 0 &&
           (node->type->dim[shared - 1] == 1 ||
            (has_label(node, 0, label[shared - 1]) && has_label(node, 1, label[shared - 1])))) {
        shared--;
    }
    int64_t count = type_count(*node->type);
    if (count_dims(tail - shared, node->type->dim + shared) > 1) {
        const bool window = has_few_places(node, shared);
        const int64_t terms = fold_count(node);
        return count <= (window ? WINDOW : CACHED) && (window ? 16 : 2) * terms >= count ? 0
                                                                                         : shared;
    }
    while (tail > 0 && has_label(node, 1, label[tail - 1]) &&
           !has_label(node, 0, label[tail - 1])) {
        tail--;
    }
    return tail;
}

static bool make_terms(WorkBuild *b, int first_space) {
    const Node *node = b->unit->atom.at[0];
    const Attr *a = node->attr;
    int64_t extent[3 * MD_RANK], dim[3][MD_RANK];
    int nlabel = contract_labels(node, extent), n[3] = {0}, label[3][MD_RANK];
    int tail = trailing_labels(node);
    for (int l = 0; l < nlabel; l++) {
        if (find_label(a->lo_, node->type->rank, l) < 0) {
            label[1][n[1]] = l;
            dim[1][n[1]++] = extent[l];
        }
    }
    for (int i = 0; i < node->type->rank; i++) { /* in the order of the result */
        int group = i < tail ? 0 : 2;
        label[group][n[group]] = a->lo_[i];
        dim[group][n[group]++] = node->type->dim[i];
    }
    static const char *const names[3] = {"r", "k", "j"};
    Part part = {.kind = PART_COLUMN};
    Radix *space[3] = {&part.rows, &part.terms, &part.columns};
    const Index *at[3 * MD_RANK], *out[MD_RANK];
    for (int p = 0; p < 3; p++) {
        const Index *digit[MD_RANK];
        *space[p] = *kernel_space(b, first_space + p, count_dims(n[p], dim[p]), names[p]);
        space_digits(b, space[p], n[p], dim[p], digit);
        for (int i = 0; i < n[p]; i++) {
            at[label[p][i]] = digit[i];
        }
    }
    for (int i = 0; i < node->type->rank; i++) {
        out[i] = at[a->lo_[i]];
    }
    kernel_store(b, &part.roots, node, out, value_product(&b->v, node, at));
    for (int i = 0; i < part.roots.count; i++) {
        part.roots.at[i].add = OP_ADD;
    }
    VEC_PUSH(b->w.scratch, &b->w.part, part);
    return kernel_refine(b, &part.roots);
}

/* The product, in memory, then what follows it. */
static bool make_loops(WorkBuild *b) {
    const Node *node = b->unit->atom.at[0];
    int copies;
    if (make_copies(b, &copies)) {
        return true;
    }
    if (!info_of(b, node)->stored) {
        kernel_home(b, node, "product");
    }
    if (make_terms(b, copies)) {
        return true;
    }
    memset(b->own_copy, 0, sizeof b->own_copy);
    b->known = true;
    b->first_space = copies + 3;
    return b->unit->atom.count > 1 && make_nest(b);
}

/* --- as a product ----------------------------------------------------------------------------- */

/* The storage whose strides the result has: of the first value that could take it as it comes. */
static void find_place(WorkBuild *b, Product *p, const Node *node, const Index *const *out) {
    IndexTable *t = &b->w.k->index;
    p->place = index_flatten(t, node->type->rank, node->type->dim, out);
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *atom = b->unit->atom.at[i];
        const HomeList *home = &b->frame->home[atom->id];
        if (home->count > 0 && home->at[0].buf->type->elem == node->type->elem) {
            const Index *at[MD_RANK];
            index_unflatten(t, p->place, atom->type->rank, atom->type->dim, at);
            p->place = home_place(b, &home->at[0], i == 0 ? out : at);
            p->part_of = home->at[0].part ? home->at[0].buf : NULL;
            return;
        }
    }
}

/* As a PRODUCT where the operands are loads at strides, else as loops (WorkBuild.loops). */
bool make_contract(WorkBuild *b) {
    if (b->loops) {
        return make_loops(b);
    }
    int copies;
    if (make_copies(b, &copies)) {
        return true;
    }
    const Node *node = b->unit->atom.at[0];
    Product *p = ARENA_NEW(b->w.scratch, Product);
    int64_t extent[3 * MD_RANK];
    const Index *label[3 * MD_RANK];
    p->nlabel = contract_labels(node, extent);
    p->elem = node->type->elem;
    p->count = type_count(*node->type);
    p->owner = node->loc.owner;
    p->band = product_band(node, b->l->readers);
    p->nborder = product_borders(node, p->border);
    for (int l = 0; l < p->nlabel; l++) {
        p->space[l] = *kernel_space(b, copies + l, extent[l], "r");
        label[l] = radix_flat(b->w.k, &p->space[l]);
        p->in[l] = (find_label(node->attr->la, node->in[0]->type->rank, l) >= 0 ? IN_A : 0) |
                   (find_label(node->attr->lb, node->in[1]->type->rank, l) >= 0 ? IN_B : 0) |
                   (find_label(node->attr->lo_, node->type->rank, l) >= 0 ? IN_C : 0);
    }
    const Index *out[MD_RANK];
    for (int i = 0; i < node->type->rank; i++) {
        out[i] = label[node->attr->lo_[i]];
    }
    find_place(b, p, node, out);
    RootList loads = {0};
    for (int k = 0; k < 2; k++) {
        const Index *at[MD_RANK];
        const int8_t *labels = k == 0 ? node->attr->la : node->attr->lb;
        for (int i = 0; i < node->in[k]->type->rank; i++) {
            at[i] = label[labels[i]];
        }
        const Expr *value = value_at(&b->v, node->in[k], at);
        p->copy[k] = b->staged && b->own_copy[k].node ? b->own_copy[k].home.buf->type : NULL;
        p->rounds[k] = value->kind == EXPR_MAP ? op_rounds_to(value->op) : TY_ERROR;
        p->load[k] = p->rounds[k] != TY_ERROR ? value->in[0] : value;
        if (p->load[k]->kind != EXPR_LOAD || p->load[k]->nin > 0) {
            b->loops = true;
            b->staged = false;
            b->radix.count = 0; /* the spaces of a product mean nothing to loops */
            return true;
        }
        Root root = {.index = p->load[k]->index, .value = p->load[k]};
        VEC_PUSH(b->w.scratch, &loads, root);
    }
    memset(b->own_copy, 0, sizeof b->own_copy);
    Part part = {.kind = PART_PRODUCT, .product = p};
    VEC_PUSH(b->w.scratch, &b->w.part, part);
    return kernel_refine(b, &loads);
}

const Index *work_finish(Work *w, const Expr *value, const Index *const *label, RootList *roots) {
    WorkBuild *b = (WorkBuild *)w; /* its first member */
    const Node *node = b->unit->atom.at[0];
    const Index *at[MD_RANK];
    for (int i = 0; i < node->type->rank; i++) {
        at[i] = label[node->attr->lo_[i]];
    }
    b->known = true;
    b->strip = value;
    memcpy(b->strip_at, at, sizeof at);
    const Index *flat = index_flatten(&w->k->index, node->type->rank, node->type->dim, at);
    for (int i = 0; i < b->unit->atom.count; i++) {
        const Node *atom = b->unit->atom.at[i];
        const Index *here[MD_RANK];
        if (!info_of(b, atom)->stored) {
            continue;
        }
        index_unflatten(&w->k->index, flat, atom->type->rank, atom->type->dim, here);
        kernel_store(b, roots, atom, i == 0 ? at : here, value_at(&b->v, atom, i == 0 ? at : here));
    }
    return b->elsewhere ? NULL : flat;
}
