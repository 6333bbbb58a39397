/* lower_row: the nest of a unit's atoms: row by row, or element by element of one flat space.
 * Needs a unit whose atoms have the rows; gives stores of what is stored of them. */
#include "passes/lower_kernel.h"
#include "passes/view.h"

#include <string.h>

void kernel_home(KernelBuild *b, const Node *node, const char *name) {
    HomeList *home = &b->frame->home[node->id];
    Home work = {.buf = kernel_work(b, node->type, 0, name)};
    home->count = 0;
    VEC_PUSH_FROM(b->l->scratch, home, work, 1);
}

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
        if (!kernel_known(b, node) && (b->frame->fusion->info[node->id].stored || b->copy)) {
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
