/* join: a loop that makes what the next one reads, and that loop, become one, slice by slice.
 *
 * Technique: what both run over is cut into as many slices, of which each turn of one loop around
 * both makes one. That is the same where what one of them writes and the other touches lies, in
 * each slice, in bytes of its own; where an index lies in slice m is found as a multiple of m and a
 * range. A workspace that only these two touch then needs no more than a slice for each thread,
 * which stays in its cache: this is what they are joined for. So the copy of a sample with its
 * border is made, read by all of its windows, and gone. Needs the statements of a kernel; changes
 * no values: each loop does what it did, in the same order. */
#include "passes/schedule/reach.h"

/* May turns of both be one behind the other, slice by slice? */
static bool slices_fit(const Sites *a, const Sites *b) {
    for (int i = 0; i < a->k->nargs; i++) {
        const Touched *x = &a->arg[i], *y = &b->arg[i];
        const bool in_a = x->load || x->store, in_b = y->load || y->store;
        if (!in_a || !in_b || (!x->store && !y->store)) {
            continue;
        }
        const int64_t lo = x->at.lo < y->at.lo ? x->at.lo : y->at.lo;
        const int64_t hi = x->at.hi > y->at.hi ? x->at.hi : y->at.hi;
        if (x->odd || y->odd || x->at.mul != y->at.mul || lo < 0 || hi >= x->at.mul) {
            return false;
        }
    }
    return !a->refused && !b->refused;
}

/* --- one loop of two -------------------------------------------------------------------------- */

/* A workspace, and the two loops that alone touch it. */
typedef struct {
    Kernel *k;
    Arena *scratch;
    Arg *arg;
    StmtList *list; /* that holds both */
    int pair[2];    /* in it */
    int64_t slices; /* of both */
    int64_t slice;  /* elements of one in the workspace */
    int axis;       /* number of the slice */
} Join;

static int64_t divisor(int64_t a, int64_t b) {
    return b == 0 ? a : divisor(b, a % b);
}

static int64_t turns_each(const Join *j, const Stmt *loop) {
    return j->k->axis[loop->axis].extent / j->slices;
}

/* Both loops are alike and can go slice by slice. */
static bool may_join(Join *j) {
    const Kernel *k = j->k;
    const Stmt *a = j->list->at[j->pair[0]], *b = j->list->at[j->pair[1]];
    if (a->kind != STMT_FOR || b->kind != STMT_FOR || a->begin || b->begin || a->simd || b->simd ||
        (a->parallel > 0) != (b->parallel > 0)) {
        return false;
    }
    j->slices = divisor(k->axis[a->axis].extent, k->axis[b->axis].extent);
    const int64_t fewest =
        j->list == &k->body ? k->threads : 1; /* that is no less for each thread */
    if (j->slices <= fewest || k->naxis + 4 > AXES_MAX) {
        return false;
    }
    const Sites x = sites_of(k, j->scratch, &a->body, a, turns_each(j, a));
    const Sites y = sites_of(k, j->scratch, &b->body, b, turns_each(j, b));
    j->slice = x.arg[j->arg->id].at.mul;
    return slices_fit(&x, &y);
}

/* What one of the loops does in a slice. */
static bool slice_loop(const Join *j, const Stmt *loop, StmtList *list) {
    Kernel *k = j->k;
    const int64_t each = turns_each(j, loop);
    const Index *slice = kernel_axis_index(k, j->axis);
    const Index *place = index_scale(&k->index, slice, each);
    if (each > 1) {
        Stmt *turns = stmt_for(k, list, kernel_axis(k, each, k->axis[loop->axis].name));
        place = index_add(&k->index, place, kernel_axis_index(k, turns->axis));
        list = &turns->body;
    }
    StmtList placed = {0};
    ExprAt x = expr_at_open(k, j->scratch, loop->axis, place);
    if (!stmts_at(&x, j->scratch, &loop->body, &placed)) {
        return false;
    }
    x = expr_at_open(k, j->scratch, loop->axis, place); /* where it stands no more */
    x.arg = j->arg;
    x.by = index_scale(&k->index, slice, -j->slice);
    return stmts_at(&x, j->scratch, &placed, list);
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool join_all(Join *j);

/* The loop of the two becomes one, and so do those that a slice is left with. */
static bool join(Join *j) {
    Kernel *k = j->k;
    const Stmt *a = j->list->at[j->pair[0]], *b = j->list->at[j->pair[1]];
    StmtList list = {0}, one = {0}, first = {0}, second = {0};
    j->axis = kernel_axis(k, j->slices, k->axis[a->axis].name);
    Stmt *both = stmt_for(k, &one, j->axis);
    both->parallel = a->parallel > 0;
    if (!slice_loop(j, a, &first) || !slice_loop(j, b, &second)) {
        return false;
    }
    stmts_apart(k, &first);
    list_append(k, &both->body, &first);
    list_append(k, &both->body, &second);
    for (int i = 0; i < j->list->count; i++) {
        if (i == j->pair[1]) {
            VEC_PUSH_FROM(k->arena, &list, both, j->list->count);
        } else if (i != j->pair[0]) {
            VEC_PUSH_FROM(k->arena, &list, j->list->at[i], j->list->count);
        }
    }
    *j->list = list;
    Join inner = {.k = k, .scratch = j->scratch, .arg = j->arg, .list = &both->body};
    const int64_t lines =
        join_all(&inner) ? inner.slice : lines_join(k, j->scratch, j->arg, &both->body);
    if (lines > 0) {
        j->slice = lines;
    } else {
        ask_for_next(k, j->scratch, both, &first, &second); /* each for what the other one reads */
        ask_for_next(k, j->scratch, both, &second, &first);
    }
    return true;
}

static bool join_all(Join *j) {
    return sites_pair(j->k, j->scratch, j->arg, j->list, j->pair) && may_join(j) && join(j);
}

int64_t loops_join(Kernel *k, Arena *scratch, Arg *arg) {
    Join j = {.k = k, .scratch = scratch, .arg = arg, .list = &k->body};
    return arg->work && !arg->thread && join_all(&j) ? j.slice : 0;
}
