/* cuda_nest: a thread for each element, a thread or a block for each row with what is folded along
 * it, or a thread for each sum over leading axes, so that threads side by side read terms side by
 * side.
 * Needs a MAP, ROWS or COLUMN part; gives its launch; changes no values beyond the order of sums,
 * which depends on the number of terms alone. */
#include "passes/schedule/schedule.h"

static void launch_rows(KernelBuild *b, const Radix *const *space, int n, const RootList *roots) {
    nest_open(b, roots);
    StmtList *list = cuda_launch(b, space, n);
    nest_rows(b, list, cuda_scope(space, n), roots);
}

/* What is done for a row is shared by a block where its loops are long enough for one. */
static void nest_emit(KernelBuild *b, const Part *part, void *plan) {
    enum { LEAST = TUNED(32, 4), LONG = 512, LONGEST = 4096 };
    (void)plan;
    const Radix *const space[] = {&part->rows};
    int at = b->k->body.count;
    launch_rows(b, space, 1, &part->roots);
    Stmt *rows = b->k->body.at[at], *inner = rows;
    for (int i = 1; i < rows->parallel; i++) {
        inner = inner->body.at[0];
    }
    int64_t extent = list_shared_extent(b->k, &inner->body);
    rows->lanes = extent < LEAST ? 1 : extent < LONG ? 32 : extent < LONGEST ? 128 : 512;
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
