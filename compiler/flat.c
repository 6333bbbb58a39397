/* flat: loops over a flat space, whose extent may be a parameter of the kernel.
 *
 * A kernel is flat if all it does is one loop over one axis, by itself or in blocks of `span`, or
 * one fold along it, and each array is touched at that axis or at a fixed place. Then nothing in it
 * but the ends of the loops depends on the extent, and fills, copies, casts, updates and sums of
 * tensors of any size are one function. Needs a finished kernel; gives Kernel.flat. */
#include "compiler/kernel.h"

static bool is_axis(const Index *index, int axis) {
    return index->nterm == 1 && index->base == 0 && index->term[0].mul == 1 &&
           index->term[0].atom->kind == ATOM_AXIS && index->term[0].atom->number == axis;
}

static bool fixed_or_axis(const Index *index, int axis) {
    return index->nterm == 0 || is_axis(index, axis);
}

/* `fold`: the statement whose results are known there, or NULL. */
static bool expr_flat(const Expr *e, int axis, const Stmt *fold) {
    switch (e->kind) {
    case EXPR_INDEX:
    case EXPR_WITHIN: return false;
    case EXPR_FOLD: return fold != NULL && e->fold == fold->fold.at[0]->fold;
    case EXPR_DRAW:
        if (!is_axis(e->index, axis)) {
            return false;
        }
        break;
    case EXPR_LOAD:
        if (e->nin > 0 || !fixed_or_axis(e->index, axis)) {
            return false;
        }
        break;
    case EXPR_CONST:
    case EXPR_KEY:
    case EXPR_MAP: break;
    }
    for (int i = 0; i < e->nin; i++) {
        if (!expr_flat(e->in[i], axis, fold)) {
            return false;
        }
    }
    return true;
}

/* What is computed and stored at one place. */
static bool place_flat(const Stmt *s, int axis) {
    if (s->kind == STMT_LET) {
        return expr_flat(s->as != NULL ? s->as : s->expr, axis, NULL);
    }
    return s->kind == STMT_STORE && s->add == OP_CONST && is_axis(s->index, axis) &&
           expr_flat(s->expr, axis, NULL);
}

/* A statement beside the loop; `fold`: the one in front of it, or NULL. */
static bool beside_flat(const Stmt *s, const Stmt *fold) {
    bool store = s->kind == STMT_STORE && fold != NULL && s->index->nterm == 0;
    return (s->kind == STMT_LET || store) && expr_flat(s->as != NULL ? s->as : s->expr, -1, fold);
}

static bool whole_loop(const Stmt *s) {
    return s->kind == STMT_FOR && s->begin == NULL && s->span == 0;
}

/* The loop over a block of the axis, in the loop over the blocks; or NULL. */
static const Stmt *block_loop(const Stmt *s) {
    const Stmt *inner = whole_loop(s) && s->body.count == 1 ? s->body.at[0] : NULL;
    const Index *begin = inner != NULL && inner->kind == STMT_FOR ? inner->begin : NULL;
    bool blocks = begin != NULL && begin->nterm == 1 && begin->base == 0 &&
                  begin->term[0].mul == inner->span && begin->term[0].atom->kind == ATOM_AXIS &&
                  begin->term[0].atom->number == s->axis;
    return blocks ? inner : NULL;
}

/* A fold along one axis of what is computed at each of its places. */
static bool fold_flat(const Stmt *s) {
    const int axis = s->axes.at[0];
    bool flat = s->axes.count == 1 && s->begin == NULL && s->span == 0 && !s->parts;
    for (int i = 0; i < s->body.count; i++) {
        flat = flat && s->body.at[i]->kind == STMT_LET && place_flat(s->body.at[i], axis);
    }
    for (int i = 0; i < s->fold.count; i++) {
        const Expr *e = s->fold.at[i];
        flat = flat && e->nin == 1 && expr_flat(e->in[0], axis, NULL);
    }
    return flat;
}

/* The loop of a flat kernel that stores at each place; false: it is none. */
static bool loop_flat(const Kernel *k, const Stmt *loop, Flat *flat) {
    const Stmt *inner = block_loop(loop), *at = inner != NULL ? inner : loop;
    int64_t extent = k->axis[at->axis].extent;
    *flat = (Flat){.axis = at->axis, .block = inner != NULL ? loop->axis : -1};
    if ((inner == NULL && (!whole_loop(loop) || loop->parallel > 0)) || loop->parallel > 1 ||
        at->unroll) {
        return false;
    }
    if (inner != NULL) {
        flat->span = inner->span;
        flat->exact = extent % inner->span == 0;
        if (k->axis[flat->block].extent != flat_blocks(flat, extent)) {
            return false;
        }
    }
    for (int i = 0; i < at->body.count; i++) {
        if (!place_flat(at->body.at[i], flat->axis)) {
            return false;
        }
    }
    return true;
}

void kernel_find_flat(Kernel *k) {
    const Stmt *loop = NULL, *fold = NULL;
    for (int i = 0; i < k->body.count; i++) {
        const Stmt *s = k->body.at[i];
        if ((s->kind == STMT_FOR || s->kind == STMT_FOLD) && loop == NULL) {
            loop = s;
            fold = s->kind == STMT_FOLD ? s : NULL;
        } else if (!beside_flat(s, fold)) {
            return;
        }
    }
    for (int i = 0; i < k->arg.count; i++) {
        if (k->arg.at[i]->work) {
            return;
        }
    }
    Flat flat;
    if (fold != NULL) {
        flat = (Flat){.axis = fold->axes.at[0], .block = -1};
        flat.span = fold->lanes > 1 ? fold->lanes : 0;
        /* Whole lanes: nothing is left over behind them. */
        flat.exact = fold->lanes > 1 && k->axis[flat.axis].extent % fold->lanes == 0;
    }
    if (loop == NULL || (fold != NULL ? !fold_flat(fold) : !loop_flat(k, loop, &flat)) ||
        k->axis[flat.axis].extent < 2) {
        return;
    }
    flat.known = true;
    k->flat = flat;
    k->call.size = k->axis[flat.axis].extent;
}

int64_t flat_blocks(const Flat *flat, int64_t size) {
    return (size + flat->span - 1) / flat->span;
}

bool kernel_sized(const Kernel *k, int axis) {
    return k->flat.known && (axis == k->flat.axis || axis == k->flat.block);
}

int64_t kernel_extent(const Kernel *k, const Call *call, int axis) {
    if (!kernel_sized(k, axis)) {
        return k->axis[axis].extent;
    }
    return axis == k->flat.axis ? call->size : flat_blocks(&k->flat, call->size);
}
