/* cpu_total: folds of everything into one number each.
 *
 * Technique: chunks of the terms have sums of their own, which threads share; those of all chunks
 * are folded then. Needs a TOTAL part; gives its loops; changes no values beyond the order of
 * sums, which depends on the number of terms alone. */
#include "passes/schedule/schedule.h"

enum { FULL_CHUNKS = TUNED(64, 3) };

static int64_t total_work(const Part *part) {
    return count_add(0, 1 + part->roots.at[0].value->in[0]->cost, part->terms.count);
}

/* Folds of chunks, each into a number in workspace, and of these, which have the names of the whole
 * from there on. */
static void total_folds(KernelBuild *b, const Part *part, int chunk, int again, RootList *partial,
                        RootList *last) {
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    for (int i = 0; i < part->roots.count; i++) {
        const Expr *fold = part->roots.at[i].value;
        if (seen[fold->id]) {
            continue;
        }
        seen[fold->id] = true;
        Root r = part->roots.at[i];
        Type type = {.elem = fold->elem, .rank = 1, .dim = {b->k->axis[chunk].extent}};
        r.arg = kernel_work(b, type, 0, "partial");
        r.index = kernel_axis_index(b->k, chunk);
        VEC_PUSH(b->scratch, partial, r);
        const Expr *load = expr_load(b->k, r.arg, kernel_axis_index(b->k, again), NULL);
        r.value = expr_fold(b->k, fold->op, fold->elem, load, (AxisSet)1 << again);
        r.named = fold;
        r.arg = NULL;
        r.index = index_const(&b->k->index, 0);
        VEC_PUSH(b->scratch, last, r);
    }
}

static void total_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *all = &part->terms;
    Turns turns = turns_of(b, all->axis, all->n);
    int64_t span = (all->digit[0] + FULL_CHUNKS - 1) / FULL_CHUNKS;
    span = sum_span(&turns, sum_lanes(all->digit[all->n - 1]),
                    all->n == 1 ? align_up(span, CHUNK_UNIT) : span);
    int64_t chunks = (all->digit[0] + span - 1) / span;
    int chunk = kernel_axis(b->k, chunks, "c"), again = kernel_axis(b->k, chunks, "c");
    RootList partial = {0}, last = {0}, stored = {0};
    total_folds(b, part, chunk, again, &partial, &last);
    nest_open(b, &partial);
    nest_lets(b, &b->k->body, 0, &partial);
    bool parallel = kernel_parallel(b, total_work(part));
    StmtList *list = nest_loops(b, &b->k->body, &chunk, 1, parallel);
    turns_begin(b, &turns, chunk, span);
    b->piece = &turns.at[0];
    nest_rows(b, list, (AxisSet)1 << chunk, &partial);
    b->piece = NULL;
    nest_open(b, &last);
    nest_rows(b, &b->k->body, 0, &last);
    for (int i = 0; i < part->roots.count; i++) {
        if (part->roots.at[i].arg) {
            VEC_PUSH(b->scratch, &stored, part->roots.at[i]);
        }
    }
    nest_open(b, &stored);
    nest_rows(b, &b->k->body, 0, &stored);
}

const Schedule cpu_total = {"total", 1 << PART_TOTAL, NULL, NULL, total_emit};
