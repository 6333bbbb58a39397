/* cuda_nest: a thread for each element, for each row with what is folded along it, or for each sum
 * over leading axes, so that threads side by side read terms side by side.
 * Needs a MAP, ROWS or COLUMN part; gives its launch; changes no values beyond the order of sums,
 * which depends on the number of terms alone. */
#include "passes/schedule/schedule.h"

static void launch_rows(KernelBuild *b, const Radix *const *space, int n, const RootList *roots) {
    nest_open(b, roots);
    StmtList *list = cuda_launch(b, space, n);
    nest_rows(b, list, cuda_scope(space, n), roots);
}

static void nest_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *const space[] = {&part->rows};
    launch_rows(b, space, 1, &part->roots);
}

static void column_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *const space[] = {&part->rows, &part->columns};
    RootList roots = sum_folds(b, &part->terms, &part->roots);
    for (int i = 0; i < roots.count && space_axes(&part->terms) == 0; i++) {
        roots.at[i].value = part->roots.at[i].value; /* its only term */
    }
    cuda_sums(b, part, &roots);
    launch_rows(b, space, 2, &roots);
}

const Schedule cuda_nest = {"nest", 1 << PART_MAP | 1 << PART_ROWS, NULL, NULL, nest_emit};
const Schedule cuda_column = {"column", 1 << PART_COLUMN, NULL, NULL, column_emit};
