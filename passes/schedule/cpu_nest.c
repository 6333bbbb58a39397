/* cpu_nest: nested loops over one index space: its last axis in vectors, or rows with stages; a
 * single long loop in pieces for threads.
 * Needs a MAP or ROWS part; gives its loops; changes no values. */
#include "passes/schedule/schedule.h"

enum {
    FLAT_CHUNK = TUNED(1024, 5), /* least elements of one piece of a flat loop */
    FLAT_CHUNKS = TUNED(64, 3),
    SHORT = TUNED(4, 2) /* most turns of a loop that is written out inside of one over vectors */
};

/* --- what it costs ---------------------------------------------------------------------------- */

static int64_t axes_count(const Kernel *k, AxisSet set) {
    int64_t count = 1;
    for (int a = 0; a < k->naxis; a++) {
        count = set >> a & 1 ? count_add(0, count, k->axis[a].extent) : count;
    }
    return count;
}

static int64_t root_work(KernelBuild *b, const RootList *roots) {
    int64_t work = 0;
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    for (int i = 0; i < roots->count; i++) {
        const Root *root = &roots->at[i];
        const Expr *e = root->value;
        int each = 2 + (e->kind == EXPR_FOLD || seen[e->id] ? 0 : e->cost % 1000);
        work = count_add(work, each, axes_count(b->k, root_axes(root)));
        seen[e->id] = true;
    }
    return work;
}

static int64_t fold_work(KernelBuild *b, const Expr *e, bool *seen) {
    if (seen[e->id]) {
        return 0;
    }
    seen[e->id] = true;
    int64_t work = 0;
    for (int i = 0; i < e->nkid; i++) {
        work = count_add(work, 1, fold_work(b, e->kid[i], seen));
    }
    if (e->kind == EXPR_FOLD) {
        int64_t count = axes_count(b->k, e->fold | e->axes);
        work = count_add(work, 1 + e->in[0]->cost % 1000, count);
    }
    return work;
}

int64_t nest_work(KernelBuild *b, const Part *part) {
    if (b->operations < 0) {
        b->operations = root_work(b, &part->roots);
        bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
        for (int i = 0; i < part->roots.count; i++) {
            int64_t folds = fold_work(b, part->roots.at[i].value, seen);
            b->operations = count_add(b->operations, 1, folds);
        }
    }
    return b->operations;
}

bool nest_parallel(KernelBuild *b, const Part *part) {
    return kernel_parallel(b, nest_work(b, part));
}

/* What is moved for one place of memory that a loop over `last` meets. */
static int64_t place_bytes(const Kernel *k, Elem elem, const Index *index, AxisSet axes, int last,
                           int turned) {
    int64_t bytes = (int64_t)elem_bytes(elem), stride = 0, across = 0;
    if (last >= 0 && index_stride(index, last, &stride)) {
        stride = stride < 0 ? -stride : stride;
        bool used = turned >= 0 && index_stride(index, turned, &across) && across * across == 1;
        bytes = stride <= 1 || used ? bytes : stride * bytes < MD_ALIGN ? stride * bytes : MD_ALIGN;
    }
    return count_add(0, bytes, axes_count(k, axes));
}

/* The innermost of the axes; -1: there are none. Those of one space are numbered outermost first.
 */
static int last_axis(AxisSet set) {
    int last = -1;
    for (int a = 0; a < AXES_MAX; a++) {
        last = set >> a & 1 ? a : last;
    }
    return last;
}

/* `rows`: a fold has vectors along its own last axis. */
static int64_t expr_bytes(KernelBuild *b, const Expr *e, int last, int turned, bool rows,
                          bool *seen) {
    if (seen[e->id]) {
        return 0;
    }
    seen[e->id] = true;
    int64_t bytes = 0;
    last = rows && e->kind == EXPR_FOLD ? last_axis(e->fold) : last;
    if (e->kind == EXPR_LOAD) {
        bytes = place_bytes(b->k, e->arg->elem, e->index, e->index->axes, last, turned);
    }
    for (int i = 0; i < e->nkid; i++) {
        bytes = count_add(bytes, 1, expr_bytes(b, e->kid[i], last, turned, rows, seen));
    }
    return bytes;
}

Cost nest_cost(KernelBuild *b, const Part *part, int last, int turned) {
    Cost cost = {.loop = nest_work(b, part)};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    for (int i = 0; i < part->roots.count; i++) {
        const Root *root = &part->roots.at[i];
        const bool rows = part->kind == PART_ROWS && last < 0;
        const int along = rows ? last_axis(root_axes(root) & ~space_set(&part->rows)) : last;
        int64_t bytes =
            place_bytes(b->k, root->arg->elem, root->index, root_axes(root), along, turned);
        cost.bytes = count_add(cost.bytes, 1, bytes);
        bytes = expr_bytes(b, root->value, along, turned, rows, seen);
        cost.bytes = count_add(cost.bytes, 1, bytes);
    }
    if (nest_parallel(b, part)) {
        cost.loop /= b->k->threads;
        cost.launches = 1;
    }
    return cost;
}

/* --- nests ------------------------------------------------------------------------------------ */

static bool is_flat(const Part *part) {
    return part->kind == PART_MAP && space_axes(&part->rows) > 0;
}

static bool flat_fits(KernelBuild *b, const Part *part, void **plan) {
    (void)b;
    (void)plan;
    return is_flat(part);
}

static bool pieces_fit(KernelBuild *b, const Part *part, void **plan) {
    (void)plan;
    return is_flat(part) && part->rows.n == 1 && part->rows.count >= 2 * FLAT_CHUNK &&
           nest_parallel(b, part);
}

static bool rows_fit(KernelBuild *b, const Part *part, void **plan) {
    (void)b;
    (void)plan;
    return !is_flat(part);
}

static Cost flat_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    const Radix *r = &part->rows;
    Cost cost = nest_cost(b, part, r->axis[r->n - 1], -1);
    if (r->n == 1) { /* its only loop is that over vectors */
        cost = (Cost){.loop = nest_work(b, part), .bytes = cost.bytes};
    }
    return cost;
}

static Cost pieces_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    return nest_cost(b, part, -1, -1);
}

static bool has_draw(const Expr *e, bool *seen) {
    if (seen[e->id]) {
        return false;
    }
    seen[e->id] = true;
    bool has = e->kind == EXPR_DRAW;
    for (int i = 0; i < e->nkid && !has; i++) {
        has = has_draw(e->kid[i], seen);
    }
    return has;
}

/* Is the last axis too short for vectors, and the one around it long enough? Rows of draws are made
 * for the last one. */
static bool last_is_short(KernelBuild *b, const Part *part) {
    const Radix *r = &part->rows;
    bool parallel = nest_parallel(b, part);
    if (r->n < (parallel ? 3 : 2) || b->k->axis[r->axis[r->n - 1]].extent > SHORT ||
        b->k->axis[r->axis[r->n - 2]].extent <= SHORT) {
        return false;
    }
    bool draws = false, *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    for (int i = 0; i < part->roots.count; i++) {
        draws = draws || has_draw(part->roots.at[i].value, seen);
    }
    return !draws;
}

/* Where the last axis is short, vectors run along the one around it: what of its few places is a
 * condition or a constant falls away there. */
static void flat_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *r = &part->rows;
    const bool is_short = last_is_short(b, part);
    const int outer = r->n - (is_short ? 2 : 1);
    const AxisSet scope = axes_with(0, r->axis, outer);
    nest_lets(b, &b->k->body, 0, &part->roots);
    StmtList *list = nest_loops(b, &b->k->body, r->axis, outer, nest_parallel(b, part));
    nest_lets(b, list, scope, &part->roots);
    if (is_short) {
        nest_written_out(b, list, scope, r->axis[outer], &r->axis[outer + 1], 1, NULL, 0,
                         &part->roots);
    } else {
        nest_stage(b, list, scope, &r->axis[outer], 1, &part->roots);
    }
}

static void pieces_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    int64_t extent = part->rows.count;
    int64_t span = align_up((extent + FLAT_CHUNKS - 1) / FLAT_CHUNKS, CHUNK_UNIT);
    span = span < FLAT_CHUNK ? FLAT_CHUNK : span;
    nest_lets(b, &b->k->body, 0, &part->roots);
    int chunk = kernel_axis(b->k, (extent + span - 1) / span, "c");
    StmtList *list = nest_loops(b, &b->k->body, &chunk, 1, true);
    int before = list->count;
    nest_stage(b, list, 0, part->rows.axis, 1, &part->roots);
    nest_piece(b, list->at[before], chunk, span);
}

static Cost rows_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    return nest_cost(b, part, -1, -1);
}

static void rows_emit(KernelBuild *b, const Part *part, void *plan) {
    (void)plan;
    const Radix *r = &part->rows;
    /* Folds of everything have no rows around them: they run before the grid opens. */
    nest_lets(b, &b->k->body, 0, &part->roots);
    StmtList *body = &b->k->body;
    StmtList *list = nest_loops(b, body, r->axis, space_axes(r), nest_parallel(b, part));
    nest_rows(b, list, space_set(r), &part->roots);
    Stmt *row = NULL;
    for (; body != list; body = &row->body) {
        row = body->at[body->count - 1];
    }
    if (row && part->kind == PART_ROWS) {
        far_functions(b, row, space_set(r), &part->roots);
    }
}

const Schedule cpu_nest = {"nest", 1 << PART_MAP, flat_fits, flat_cost, flat_emit};
const Schedule cpu_pieces = {"pieces", 1 << PART_MAP, pieces_fit, pieces_cost, pieces_emit};
const Schedule cpu_rows = {"rows", 1 << PART_MAP | 1 << PART_ROWS, rows_fit, rows_cost, rows_emit};
