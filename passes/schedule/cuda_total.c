/* cuda_total: folds of everything into one number each, and sums that few threads would make.
 *
 * Technique: threads fold pieces of the terms into numbers of their own in workspace, one thread
 * folds these for each sum: no atomics, so the order is the same in every run. What later parts use
 * of a total they load.
 * Needs a TOTAL or COLUMN part; gives its launches; changes no values beyond the order of sums,
 * which depends on the number of sums and terms alone. */
#include "passes/schedule/schedule.h"

enum {
    PIECES = TUNED(1024, 3),    /* of a total: about so many threads */
    FEW_TERMS = TUNED(64, 2),   /* up to which one thread does it */
    FEW_SUMS = TUNED(16384, 8), /* of columns: about so many threads, */
    LEAST_TERMS = TUNED(64, 4)  /* of so many terms at least */
};

/* Each root that is a fold of `all` terms, at each of `space`, by `pieces` of about the same length
 * of the outermost axis: partial folds into workspace; gives the folds of these, by root. */
static RootList fold_pieces(KernelBuild *b, const Radix *all, const Radix *const *space, int n,
                            int64_t pieces, const RootList *roots) {
    Turns turns = turns_of(b, all->axis, all->n);
    int64_t span = sum_span(&turns, 1, (all->digit[0] + pieces - 1) / pieces);
    pieces = (all->digit[0] + span - 1) / span;
    const Radix threads = {
        .count = pieces, .n = 1, .digit = {pieces}, .axis = {kernel_axis(b->k, pieces, "c")}};
    int chunk = threads.axis[0], again = kernel_axis(b->k, pieces, "c");
    const Radix *within[3] = {&threads};
    IndexTable *t = &b->k->index;
    const Index *at = index_const(t, 0); /* in what one piece has of all sums */
    int64_t sums = 1;
    for (int i = 0; i < n; i++) {
        within[i + 1] = space[i];
        at = index_add(t, index_scale(t, at, space[i]->count), radix_flat(b->k, space[i]));
        sums = count_add(0, sums, space[i]->count);
    }
    RootList partial = {0}, last = *roots;
    last.at = ARENA_ARRAY(b->scratch, Root, roots->count);
    for (int i = 0; i < roots->count; i++) {
        Root r = last.at[i] = roots->at[i];
        const Expr *fold = r.value;
        int first = 0;
        while (roots->at[first].value != fold) {
            first++;
        }
        if (first < i || fold->kind != EXPR_FOLD) {
            last.at[i].value = last.at[first].value;
            continue;
        }
        Type type = {.elem = fold->elem, .rank = 1, .dim = {count_add(0, pieces, sums)}};
        r.arg = kernel_work(b, type, 0, "partial");
        r.index = index_add(t, index_scale(t, kernel_axis_index(b->k, chunk), sums), at);
        VEC_PUSH(b->scratch, &partial, r);
        const Index *of = index_add(t, index_scale(t, kernel_axis_index(b->k, again), sums), at);
        const Expr *load = expr_load(b->k, r.arg, of, NULL);
        last.at[i].value = expr_fold(b->k, fold->op, fold->elem, load, (AxisSet)1 << again);
    }
    nest_open(b, &partial);
    StmtList *list = cuda_launch(b, within, n + 1);
    turns_begin(b, &turns, chunk, span);
    b->piece = &turns.at[0];
    nest_rows(b, list, cuda_scope(space, n) | (AxisSet)1 << chunk, &partial);
    b->piece = NULL;
    return last;
}

void cuda_sums(KernelBuild *b, const Part *part, RootList *roots) {
    int64_t sums = count_add(0, part->rows.count, part->columns.count);
    int64_t terms = part->terms.count, pieces = sums < FEW_SUMS ? FEW_SUMS / sums : 1;
    pieces = pieces < terms / LEAST_TERMS ? pieces : terms / LEAST_TERMS;
    while (pieces > 1 && pieces > terms / pieces) { /* the last one's sum would be the longer one */
        pieces /= 2;
    }
    if (pieces > 1 && part->terms.n > 0 && part->terms.digit[0] > 1) {
        const Radix *const space[] = {&part->rows, &part->columns};
        *roots = fold_pieces(b, &part->terms, space, 2, pieces, roots);
    }
}

static void total_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    RootList roots = part->terms.count > FEW_TERMS
                         ? fold_pieces(b, &part->terms, NULL, 0, PIECES, &part->roots)
                         : part->roots;
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
