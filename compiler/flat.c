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

/* Where values are computed: at each place of an axis, or, with -1, beside the loop. */
typedef struct {
    int axis;
    const Stmt *fold; /* the statement whose results are known there, or NULL */
    bool *flat;       /* by Expr.id: that is known, and values are made of others in many ways */
} Where;

static bool expr_flat(const Expr *e, const Where *at) {
    if (at->flat[e->id]) {
        return true;
    }
    switch (e->kind) {
    case EXPR_INDEX:
    case EXPR_WITHIN: return false;
    case EXPR_FOLD: return at->fold != NULL && e->fold == at->fold->fold.at[0]->fold;
    case EXPR_DRAW:
        if (!is_axis(e->index, at->axis)) {
            return false;
        }
        break;
    case EXPR_LOAD:
        if (e->nin > 0 || !fixed_or_axis(e->index, at->axis)) {
            return false;
        }
        break;
    case EXPR_CONST:
    case EXPR_KEY:
    case EXPR_MAP: break;
    }
    for (int i = 0; i < e->nin; i++) {
        if (!expr_flat(e->in[i], at)) {
            return false;
        }
    }
    at->flat[e->id] = true;
    return true;
}

/* What is computed and stored at one place. */
static bool place_flat(const Stmt *s, const Where *at) {
    if (s->kind == STMT_LET) {
        return expr_flat(s->as != NULL ? s->as : s->expr, at);
    }
    return s->kind == STMT_STORE && s->add == OP_CONST && is_axis(s->index, at->axis) &&
           expr_flat(s->expr, at);
}

/* A statement beside the loop. */
static bool beside_flat(const Stmt *s, const Where *at) {
    bool store = s->kind == STMT_STORE && at->fold != NULL && s->index->nterm == 0;
    return (s->kind == STMT_LET || store) && expr_flat(s->as != NULL ? s->as : s->expr, at);
}

static bool whole_loop(const Stmt *s) {
    return s->kind == STMT_FOR && s->begin == NULL && s->span == 0 && s->until == NULL;
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
static bool fold_flat(const Stmt *s, bool *known) {
    const Where at = {.axis = s->axes.at[0], .flat = known};
    bool flat =
        s->axes.count == 1 && s->begin == NULL && s->span == 0 && !s->parts && s->until == NULL;
    for (int i = 0; i < s->body.count; i++) {
        flat = flat && s->body.at[i]->kind == STMT_LET && place_flat(s->body.at[i], &at);
    }
    for (int i = 0; i < s->fold.count; i++) {
        const Expr *e = s->fold.at[i];
        flat = flat && e->nin == 1 && expr_flat(e->in[0], &at);
    }
    return flat;
}

/* The loop of a flat kernel that stores at each place; false: it is none. */
static bool loop_flat(const Kernel *k, const Stmt *loop, bool *known, Flat *flat) {
    const Stmt *inner = block_loop(loop), *at = inner != NULL ? inner : loop;
    int64_t extent = k->axis[at->axis].extent;
    *flat = (Flat){.axis = at->axis, .block = inner != NULL ? loop->axis : -1};
    if ((inner == NULL && (!whole_loop(loop) || loop->parallel > 0)) || loop->parallel > 1 ||
        at->unroll || at->until != NULL) {
        return false;
    }
    if (inner != NULL) {
        flat->span = inner->span;
        flat->exact = extent % inner->span == 0;
        if (k->axis[flat->block].extent != flat_blocks(flat, extent)) {
            return false;
        }
    }
    const Where where = {.axis = flat->axis, .flat = known};
    for (int i = 0; i < at->body.count; i++) {
        if (!place_flat(at->body.at[i], &where)) {
            return false;
        }
    }
    return true;
}

/* `known`: of the places, and beside the loop. */
static void find_flat(Kernel *k, bool *const known[2]) {
    const Stmt *loop = NULL, *fold = NULL;
    Where beside = {.axis = -1, .flat = known[1]};
    for (int i = 0; i < k->body.count; i++) {
        const Stmt *s = k->body.at[i];
        if ((s->kind == STMT_FOR || s->kind == STMT_FOLD) && loop == NULL) {
            loop = s;
            beside.fold = fold = s->kind == STMT_FOLD ? s : NULL;
        } else if (!beside_flat(s, &beside)) {
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
    if (loop == NULL ||
        (fold != NULL ? !fold_flat(fold, known[0]) : !loop_flat(k, loop, known[0], &flat)) ||
        k->axis[flat.axis].extent < 2) {
        return;
    }
    flat.known = true;
    k->flat = flat;
    k->call.size = k->axis[flat.axis].extent;
}

void kernel_find_flat(Kernel *k) {
    Arena scratch = {0};
    bool *const known[2] = {ARENA_ARRAY(&scratch, bool, k->expr.count + 1),
                            ARENA_ARRAY(&scratch, bool, k->expr.count + 1)};
    find_flat(k, known);
    arena_free(&scratch);
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
