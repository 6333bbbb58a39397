/* cuda_running: sums whose terms go where they find a place: cumulative and scattered ones.
 *
 * Technique: a thread for each number that such sums stand behind or in front of; it runs through
 * the terms in their order, so that no two threads add to one place. What rounding drops of sums of
 * more terms than a chain has is kept beside them (cpu_running.c). Needs a RUNNING or SCATTER part;
 * gives its launches; changes no values beyond the order of sums. */
#include "passes/schedule/schedule.h"

static RootList copy_of(KernelBuild *b, const RootList *roots) {
    RootList copy = {0};
    for (int i = 0; i < roots->count; i++) {
        VEC_PUSH(b->scratch, &copy, roots->at[i]);
    }
    return copy;
}

/* What is stored where a term is added: the sum, and in workspace of `count` elements, at `at`,
 * what it loses, where that is worth it: `first` then gets its beginning, at `begin`. */
static RootList roots_adding(KernelBuild *b, const Part *part, int64_t terms, int64_t count,
                             const Index *at, const Index *begin, RootList *first) {
    RootList next = copy_of(b, &part->roots);
    const Expr *both[2] = {part->before, next.at[0].value};
    OpCode add = next.at[0].add == OP_CONST ? OP_ADD : next.at[0].add;
    Elem elem = part->before->elem;
    const Expr *sum = NULL;
    if (terms > SUM_CHAIN && add == OP_ADD && sum_rounds(add, elem)) {
        Type type = {.elem = elem, .rank = 1, .dim = {count}};
        Root lost = {.arg = kernel_work(b, type, 0, "lost"), .index = at, .add = OP_CONST};
        sum = sum_keeping(b, both[0], both[1], &lost);
        VEC_PUSH(b->scratch, &next, lost);
        lost.index = begin;
        lost.value = expr_const(b->k, elem, 0);
        VEC_PUSH(b->scratch, first, lost);
    } else {
        sum = expr_map(b->k, add, elem, both, 2);
    }
    for (int i = 0; i < part->roots.count; i++) {
        next.at[i].value = sum;
        next.at[i].add = OP_CONST;
    }
    return next;
}

/* `first` at each element of the spaces. */
static StmtList *launch_first(KernelBuild *b, const Radix *const *space, int n,
                              const RootList *first) {
    nest_open(b, first);
    StmtList *list = cuda_launch(b, space, n);
    nest_rows(b, list, cuda_scope(space, n), first);
    return list;
}

/* The number of the element of two spaces, and of what lies between. */
static const Index *place_of(KernelBuild *b, const Part *part, const Index *along, int64_t extent) {
    IndexTable *t = &b->k->index;
    const Index *at = index_scale(t, radix_flat(b->k, &part->rows), extent);
    at = index_scale(t, index_add(t, at, along), part->columns.count);
    return index_add(t, at, radix_flat(b->k, &part->columns));
}

static void running_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *const space[] = {&part->rows, &part->columns};
    int64_t extent = b->k->axis[part->axis].extent;
    RootList first = copy_of(b, &part->first), next = {0};
    if (part->roots.count > 0) {
        const Index *at = place_of(b, part, index_const(&b->k->index, 0), 1);
        int64_t count = count_add(0, part->rows.count, part->columns.count);
        next = roots_adding(b, part, extent, count, at, at, &first);
    }
    StmtList *list = launch_first(b, space, 2, &first);
    if (next.count == 0) {
        return;
    }
    nest_open(b, &next);
    int at = list->count;
    StmtList *inner = nest_loops(b, list, &part->axis, 1, false);
    list->at[at]->begin = index_const(&b->k->index, 1);
    list->at[at]->span = extent - 1;
    nest_stage(b, inner, cuda_scope(space, 2) | (AxisSet)1 << part->axis, NULL, 0, &next);
}

static void scatter_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    int64_t extent = b->k->axis[part->axis].extent;
    const Radix along = {.count = extent,
                         .n = 1,
                         .digit = {extent},
                         .axis = {part->axis},
                         .set = (AxisSet)1 << part->axis};
    const Radix *const all[] = {&part->rows, &along, &part->columns};
    const Radix *const space[] = {&part->rows, &part->columns};
    RootList first = copy_of(b, &part->first);
    const Index *begin = place_of(b, part, radix_flat(b->k, &along), extent);
    const Index *at = place_of(b, part, part->to, extent);
    int64_t count = count_add(0, extent, count_add(0, part->rows.count, part->columns.count));
    RootList add = roots_adding(b, part, part->terms.count, count, at, begin, &first);
    launch_first(b, all, 3, &first);
    nest_open(b, &add);
    StmtList *list = cuda_launch(b, space, 2);
    AxisSet scope = cuda_scope(space, 2) | space_set(&part->terms);
    StmtList *inner = nest_loops(b, list, part->terms.axis, space_axes(&part->terms), false);
    nest_stage(b, inner, scope, NULL, 0, &add);
}

const Schedule cuda_running = {"running", 1 << PART_RUNNING, NULL, NULL, running_emit};
const Schedule cuda_scatter = {"scatter", 1 << PART_SCATTER, NULL, NULL, scatter_emit};
