/* cuda_running: sums whose terms go where they find a place: cumulative and scattered ones.
 *
 * Technique: a thread for each number that such sums stand behind or in front of; it runs through
 * the terms in their order, so that no two threads add to one place. Needs a RUNNING or SCATTER
 * part; gives its launches; changes no values beyond the order of sums. */
#include "passes/schedule/schedule.h"

/* `first` at each element of the spaces. */
static StmtList *launch_first(KernelBuild *b, const Radix *const *space, int n,
                              const RootList *first) {
    nest_open(b, first);
    StmtList *list = cuda_launch(b, space, n);
    nest_rows(b, list, cuda_scope(space, n), first);
    return list;
}

static void running_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *const space[] = {&part->rows, &part->columns};
    StmtList *list = launch_first(b, space, 2, &part->first);
    if (part->roots.count == 0) {
        return;
    }
    RootList next = part->roots;
    next.at = ARENA_ARRAY(b->scratch, Root, part->roots.count);
    for (int i = 0; i < next.count; i++) {
        Root *root = &next.at[i];
        *root = part->roots.at[i];
        const Expr *both[2] = {part->before, root->value};
        root->value = expr_map(b->k, root->add, part->before->elem, both, 2);
        root->add = OP_CONST;
    }
    nest_open(b, &next);
    int at = list->count;
    StmtList *inner = nest_loops(b, list, &part->axis, 1, false);
    list->at[at]->begin = index_const(&b->k->index, 1);
    list->at[at]->span = b->k->axis[part->axis].extent - 1;
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
    launch_first(b, all, 3, &part->first);
    RootList add = part->roots;
    add.at = ARENA_ARRAY(b->scratch, Root, part->roots.count);
    for (int i = 0; i < add.count; i++) {
        add.at[i] = part->roots.at[i];
        add.at[i].add = OP_ADD;
    }
    nest_open(b, &add);
    StmtList *list = cuda_launch(b, space, 2);
    AxisSet scope = cuda_scope(space, 2) | space_set(&part->terms);
    StmtList *inner = nest_loops(b, list, part->terms.axis, space_axes(&part->terms), false);
    nest_stage(b, inner, scope, NULL, 0, &add);
}

const Schedule cuda_running = {"running", 1 << PART_RUNNING, NULL, NULL, running_emit};
const Schedule cuda_scatter = {"scatter", 1 << PART_SCATTER, NULL, NULL, scatter_emit};
