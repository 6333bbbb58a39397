/* cuda_total: folds of everything into one number each.
 *
 * Technique: threads fold pieces of the terms into numbers of their own in workspace, one thread
 * folds these: no atomics, so the order is the same in every run. What later parts use of the
 * result they load.
 * Needs a TOTAL part; gives its launches; changes no values beyond the order of sums, which depends
 * on the number of terms alone. */
#include "passes/schedule/schedule.h"

enum {
    PIECES = TUNED(1024, 3), /* about so many threads */
    FEW_TERMS = TUNED(64, 2) /* up to which one thread does it */
};

/* Folds the terms by pieces into workspace; gives the folds of the pieces, by root. */
static RootList fold_pieces(KernelBuild *b, const Part *part) {
    const Radix *all = &part->terms;
    Turns turns = turns_of(b, all->axis, all->n);
    int64_t span = sum_span(&turns, 1, (all->digit[0] + PIECES - 1) / PIECES);
    int64_t pieces = (all->digit[0] + span - 1) / span;
    const Radix threads = {
        .count = pieces, .n = 1, .digit = {pieces}, .axis = {kernel_axis(b->k, pieces, "c")}};
    int chunk = threads.axis[0], again = kernel_axis(b->k, pieces, "c");
    RootList partial = {0}, last = part->roots;
    last.at = ARENA_ARRAY(b->scratch, Root, part->roots.count);
    for (int i = 0; i < part->roots.count; i++) {
        Root r = last.at[i] = part->roots.at[i];
        const Expr *fold = r.value;
        int first = 0;
        while (part->roots.at[first].value != fold) {
            first++;
        }
        if (first < i) {
            last.at[i].value = last.at[first].value;
            continue;
        }
        Type type = {.elem = fold->elem, .rank = 1, .dim = {pieces}};
        r.arg = kernel_work(b, type, 0, "partial");
        r.index = kernel_axis_index(b->k, chunk);
        VEC_PUSH(b->scratch, &partial, r);
        const Expr *load = expr_load(b->k, r.arg, kernel_axis_index(b->k, again), NULL);
        last.at[i].value = expr_fold(b->k, fold->op, fold->elem, load, (AxisSet)1 << again);
    }
    const Radix *const space[] = {&threads};
    nest_open(b, &partial);
    StmtList *list = cuda_launch(b, space, 1);
    turns_begin(b, &turns, chunk, span);
    b->piece = &turns.at[0];
    nest_rows(b, list, (AxisSet)1 << chunk, &partial);
    b->piece = NULL;
    return last;
}

static void total_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    RootList roots = part->terms.count > FEW_TERMS ? fold_pieces(b, part) : part->roots;
    RootList stored = {0}, known = {0};
    bool last = part == &b->work->part.at[b->work->part.count - 1];
    for (int i = 0; i < roots.count; i++) {
        Root r = roots.at[i];
        if (!r.arg && !last) { /* the parts behind find it in memory */
            Type type = {.elem = r.value->elem, .rank = 1, .dim = {1}};
            r.arg = kernel_work(b, type, 0, "total");
            Root load = {.named = part->roots.at[i].value,
                         .value = expr_load(b->k, r.arg, r.index, NULL)};
            VEC_PUSH(b->scratch, &known, load);
        }
        if (r.arg) {
            VEC_PUSH(b->scratch, &stored, r);
        }
    }
    nest_open(b, &stored);
    StmtList *list = cuda_launch(b, NULL, 0);
    nest_rows(b, list, 0, &stored);
    for (int i = 0; i < known.count; i++) {
        VEC_PUSH(b->scratch, &b->known, known.at[i]);
    }
}

const Schedule cuda_total = {"total", 1 << PART_TOTAL, NULL, NULL, total_emit};
