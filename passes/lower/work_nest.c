/* work_nest: the values of a unit's atoms: row by row, or element by element of one flat space, or
 * of the operands of a concatenation, each of a space of its own. Needs a unit whose atoms have the
 * rows; gives parts that store what is stored of them. */
#include "passes/lower/build.h"
#include "passes/view.h"

#include <string.h>

static void inner_space(WorkBuild *b, int64_t count) {
    if (inner_of(&b->v, count)) {
        return;
    }
    const Radix *r = kernel_space(b, b->first_space + 1 + b->v.inner.count, count, "j");
    InnerSpace inner = {.count = count, .naxis = r->n, .set = r->set};
    memcpy(inner.axis, r->axis, sizeof inner.axis);
    VEC_PUSH(b->w.scratch, &b->v.inner, inner);
}

void nest_spaces(WorkBuild *b, const Node *node, int64_t rows) {
    int64_t inner = type_count(*node->type) / (rows > 0 ? rows : 1);
    if (fold_is_loop(node)) {
        inner_space(b, fold_count(node));
    } else if (inner > 1) {
        inner_space(b, inner);
    }
}

void nest_place(WorkBuild *b, const Node *node, const Radix *row, const Index **at) {
    int leading;
    if (!fuse_split(*node->type, row->count, &leading)) {
        BUG("an atom without the rows of its kernel");
    }
    space_digits(b, row, leading, node->type->dim, at);
    inner_place(&b->v, node, leading, at);
}

bool make_nest(WorkBuild *b) {
    const Unit *u = b->unit;
    bool flat = u->rows == 0 || u->kind == UNIT_COLUMN; /* what follows its folds */
    int64_t rows = flat ? u->count : u->rows;
    Part part = {.kind = flat ? PART_MAP : PART_ROWS};
    part.rows = *kernel_space(b, b->first_space, rows, flat ? "i" : "r");
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        if (!kernel_known(b, node)) {
            nest_spaces(b, node, rows);
        }
    }
    for (int i = 0; i < u->atom.count; i++) {
        const Node *node = u->atom.at[i];
        const Index *at[MD_RANK];
        if (!kernel_known(b, node) && (b->frame->fusion->info[node->id].stored || b->copy)) {
            nest_place(b, node, &part.rows, at);
            kernel_store(b, &part.roots, node, at, value_at(&b->v, node, at));
        }
    }
    if (kernel_refine(b, &part.roots)) {
        return true;
    }
    if (part.roots.count > 0) {
        VEC_PUSH(b->w.scratch, &b->w.part, part);
    }
    return false;
}

bool make_concat(WorkBuild *b) {
    const Node *node = b->unit->atom.at[0];
    int axis = node->attr->axis;
    int64_t begin = 0;
    RootList all = {0};
    for (int i = 0; i < node->nin; i++) {
        const Index *at[MD_RANK];
        Type type = *node->in[i]->type;
        Part part = {.kind = PART_MAP, .rows = *kernel_space(b, i, type_count(type), "i")};
        space_digits(b, &part.rows, type.rank, type.dim, at);
        bool placed = i < 64 && (b->frame->placed[node->id] >> i & 1) != 0;
        if (type_count(type) > 0 && !placed) {
            const Expr *value = value_at(&b->v, node->in[i], at);
            at[axis] = index_offset(&b->w.k->index, at[axis], begin);
            kernel_store(b, &part.roots, node, at, value);
            b->touch.at[b->touch.count - 1].mode |= ACCESS_PART; /* never all of it in one go */
        }
        begin += type.dim[axis];
        for (int k = 0; k < part.roots.count; k++) {
            VEC_PUSH(b->w.scratch, &all, part.roots.at[k]);
        }
        if (part.roots.count > 0) {
            VEC_PUSH(b->w.scratch, &b->w.part, part);
        }
    }
    return kernel_refine(b, &all);
}
