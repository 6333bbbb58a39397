/* space: flat index spaces of a kernel and the axes that their digits become.
 *
 * A kernel is tried on flat spaces first. Where an index then holds the quotient of an axis by a
 * number that divides its extent, the axis becomes two digits and the kernel is built again; so a
 * loop has as few axes as its loads allow, and loads are affine wherever they can be. Needs a
 * kernel under construction; gives axes; changes no values. */
#include "passes/lower/build.h"
#include "passes/view.h"

#include <string.h>

Radix *kernel_space(WorkBuild *b, int which, int64_t count, const char *name) {
    while (b->radix.count <= which) {
        Radix r = {.count = count, .name = name, .n = 1, .digit = {count}};
        VEC_PUSH(b->w.scratch, &b->radix, r);
    }
    Radix *r = &b->radix.at[which];
    r->set = 0;
    for (int i = 0; i < r->n; i++) {
        r->axis[i] = kernel_axis(b->w.k, r->digit[i], r->name);
        r->set |= (AxisSet)1 << r->axis[i];
    }
    return r;
}

const Index *radix_flat(Kernel *k, const Radix *r) {
    const Index *flat = index_const(&k->index, 0);
    for (int i = 0; i < r->n; i++) {
        flat = index_add(&k->index, index_scale(&k->index, flat, r->digit[i]),
                         kernel_axis_index(k, r->axis[i]));
    }
    return flat;
}

/* Splits the digit of an axis that stands alone under a quotient. */
static bool refine_index(WorkBuild *b, const Index *index) {
    for (int i = 0; i < index->nterm; i++) {
        const Atom *atom = index->term[i].atom;
        if (!atom->of) {
            continue;
        }
        if (refine_index(b, atom->of)) {
            return true;
        }
        const Index *of = atom->of;
        if (of->nterm != 1 || of->base != 0 || of->term[0].mul != 1 ||
            of->term[0].atom->kind != ATOM_AXIS) {
            continue;
        }
        for (int r = 0; r < b->radix.count; r++) {
            Radix *x = &b->radix.at[r];
            for (int d = 0; d < x->n; d++) {
                if (x->axis[d] != of->term[0].atom->number || x->digit[d] % atom->by != 0 ||
                    x->n == MD_RANK) {
                    continue;
                }
                memmove(&x->digit[d + 1], &x->digit[d], sizeof *x->digit * (size_t)(x->n - d));
                x->digit[d] /= atom->by;
                x->digit[d + 1] = atom->by;
                x->n++;
                return true;
            }
        }
    }
    return false;
}

static bool refine_expr(WorkBuild *b, const Expr *e, bool *seen) {
    if (seen[e->id]) {
        return false;
    }
    seen[e->id] = true;
    if (e->index && refine_index(b, e->index)) {
        return true;
    }
    for (int i = 0; i < e->nkid; i++) {
        if (refine_expr(b, e->kid[i], seen)) {
            return true;
        }
    }
    return false;
}

bool kernel_refine(WorkBuild *b, const RootList *roots) {
    bool *seen = ARENA_ARRAY(b->w.scratch, bool, b->w.k->expr.count + 1);
    for (int i = 0; i < roots->count; i++) {
        if (refine_index(b, roots->at[i].index) || refine_expr(b, roots->at[i].value, seen)) {
            return true;
        }
    }
    return false;
}

void space_digits(WorkBuild *b, const Radix *r, int n, const int64_t *dim, const Index **at) {
    index_unflatten(&b->w.k->index, radix_flat(b->w.k, r), n, dim, at);
}

int space_axes(const Radix *r) {
    return r->count == 1 ? 0 : r->n;
}

AxisSet space_set(const Radix *r) {
    return r->count == 1 ? 0 : r->set;
}
