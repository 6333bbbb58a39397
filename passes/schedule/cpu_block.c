/* cpu_block: nests that go through memory by blocks.
 *
 * Technique: where one load runs along the vector axis and another across it, both axes go by
 * blocks, so that every cache line is used up while it is there. Where much of an element is the
 * same in the next rows, a few rows share one vector loop (unroll and jam): what they share is
 * loaded and computed once for all of them.
 * Needs a MAP part; gives its loops; changes no values: the order of sums stays. */
#include "passes/schedule/schedule.h"

enum {
    BLOCK = TUNED(32, 3),      /* elements of a block of a transposed copy, each way */
    JAM_VECTOR = TUNED(64, 2), /* least extent of the vector loop */
    JAM_BLOCKS = TUNED(4, 1),  /* least blocks of eight rows */
    JAM_SHARED = TUNED(3, 0),  /* additions, or loads, that rows must share */
    JAM_COST = TUNED(40, 40),  /* of one row: beyond it, what is shared is little of it */
    LONG_ROWS = TUNED(16, 3),  /* a row longer by so much than there are rows goes by pieces */
    JUMP_COST = 4              /* most that a load across the vector axis costs */
};

/* --- transposed ------------------------------------------------------------------------------- */

/* The outer axis along which a load that jumps along the inner one goes step by step; -1: none. */
static int turned_axis(const KernelBuild *b, const Expr *e, const int *grid, int n, bool *seen) {
    if (seen[e->id]) {
        return -1;
    }
    seen[e->id] = true;
    int64_t inner, outer;
    for (int i = 0; e->kind == EXPR_LOAD && i < n - 1; i++) {
        if (index_stride(e->index, grid[n - 1], &inner) &&
            index_stride(e->index, grid[i], &outer) && (inner >= BLOCK || inner <= -BLOCK) &&
            (outer == 1 || outer == -1) && b->k->axis[grid[i]].extent >= 2 * BLOCK) {
            return grid[i];
        }
    }
    for (int i = 0; i < e->nkid; i++) {
        int axis = turned_axis(b, e->kid[i], grid, n, seen);
        if (axis >= 0) {
            return axis;
        }
    }
    return -1;
}

/* A loop over blocks of `axis`; the loop inside it that runs over one block is set by nest_piece.
 */
static int block_axis(KernelBuild *b, int axis) {
    return kernel_axis(b->k, (b->k->axis[axis].extent + BLOCK - 1) / BLOCK, "c");
}

/* What one loop reads along its axis another would read across: both go by blocks, so that every
 * cache line is used up while it is there. */
static void emit_turned(KernelBuild *b, const int *grid, int n, int turned, bool parallel,
                        const RootList *roots) {
    int outer[AXES_MAX], nouter = 0, last = grid[n - 1];
    AxisSet scope = 0;
    for (int i = 0; i < n - 1; i++) {
        scope |= (AxisSet)1 << grid[i];
        if (grid[i] != turned) {
            outer[nouter++] = grid[i];
        }
    }
    int slow = block_axis(b, turned), fast = block_axis(b, last);
    outer[nouter++] = slow;
    StmtList *list = nest_loops(b, &b->k->body, outer, nouter, parallel);
    list = nest_loops(b, list, &fast, 1, false);
    int before = list->count;
    StmtList *row = nest_loops(b, list, &turned, 1, false);
    nest_piece(b, list->at[before], slow, BLOCK);
    nest_lets(b, row, scope, roots);
    before = row->count;
    nest_stage(b, row, scope, &last, 1, roots);
    nest_piece(b, row->at[before], fast, BLOCK);
}

/* --- rows that share a vector loop ------------------------------------------------------------ */

/* Rows that share a loop: as many as divide their number, more where enough blocks are left. */
static int block_rows(int64_t extent, int most) {
    static const int rows[] = {JAM_ROWS, 4, 3, 5, 2, 7};
    for (size_t i = extent >= JAM_BLOCKS * JAM_ROWS ? 0 : 1; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i] <= most && extent % rows[i] == 0) {
            return rows[i];
        }
    }
    return 1;
}

typedef struct {
    const KernelBuild *b;
    AxisSet row; /* the axis of the rows */
    int last;    /* the vector axis */
    bool *seen;
    size_t bytes;    /* of all elements: the outer of two loops has vectors of one size alone */
    int shared, own; /* cost of what all rows need, of what one row does */
    bool fits;
} Jam;

/* Loads of what rows share, by how many cache lines they touch. */
static void shared_loads(Jam *x, const Expr *e) {
    if (x->seen[e->id] || !(e->axes >> x->last & 1)) {
        return;
    }
    x->seen[e->id] = true;
    x->fits = x->fits && e->kind != EXPR_DRAW;
    if (e->kind == EXPR_LOAD) {
        x->fits = x->fits && elem_bytes(e->arg->elem) == x->bytes;
        int64_t stride = 0;
        bool plain = index_stride(e->index, x->last, &stride);
        stride = stride < 0 ? -stride : stride;
        x->shared += plain && stride < JUMP_COST ? (int)stride : JUMP_COST;
    }
    for (int i = 0; i < e->nkid; i++) {
        shared_loads(x, e->kid[i]);
    }
}

static void jam_visit(Jam *x, const Expr *e) {
    if (x->b->bound[e->id] || x->seen[e->id]) {
        return;
    }
    if ((e->axes & x->row) == 0) {
        x->shared += e->axes >> x->last & 1 && e->kind != EXPR_INDEX ? e->cost : 0;
        shared_loads(x, e);
        return;
    }
    x->seen[e->id] = true;
    x->own += e->kind == EXPR_MAP ? op_info[e->op].cost : 0;
    /* Draws have loops of their own, and a guarded load is a branch. */
    x->fits = x->fits && e->kind != EXPR_FOLD && e->kind != EXPR_DRAW && e->kind != EXPR_KEY &&
              (e->kind != EXPR_LOAD || (e->nin == 0 && elem_bytes(e->arg->elem) == x->bytes));
    for (int i = 0; i < e->nkid; i++) {
        jam_visit(x, e->kid[i]);
    }
}

/* What rows share, of one element; 0: it is not worth it, or they cannot share a loop. */
static int jam_shared(const KernelBuild *b, int row, int last, int most, const RootList *roots) {
    Jam x = {.b = b,
             .row = (AxisSet)1 << row,
             .last = last,
             .seen = ARENA_ARRAY(b->scratch, bool, b->nbound),
             .bytes = elem_bytes(roots->at[0].arg->elem),
             .fits = true};
    if (block_rows(b->k->axis[row].extent, most) == 1 || b->k->axis[last].extent < JAM_VECTOR) {
        return 0;
    }
    for (int i = 0; i < roots->count; i++) {
        jam_visit(&x, roots->at[i].value);
        x.fits = x.fits && (root_axes(&roots->at[i]) >> last & 1) &&
                 elem_bytes(roots->at[i].arg->elem) == x.bytes;
        x.shared += roots->at[i].add != OP_CONST ? JAM_SHARED : 0; /* the sums stay in registers */
    }
    bool worth = x.fits && x.shared >= JAM_SHARED && x.own <= JAM_COST;
    return !worth ? 0 : x.shared > 0 ? x.shared : 1;
}

Stmt *block_jam(KernelBuild *b, StmtList *list, AxisSet scope, const int *grid, int n, int last,
                int most, bool parallel, const Turn *first, const RootList *roots) {
    int row = grid[n - 1], outer[AXES_MAX], rows = block_rows(b->k->axis[row].extent, most);
    if (jam_shared(b, row, last, most, roots) == 0) {
        return NULL;
    }
    for (int i = 0; i < n - 1; i++) {
        outer[i] = grid[i];
        scope |= (AxisSet)1 << grid[i];
    }
    int64_t blocks = b->k->axis[row].extent / rows;
    bool part = first && first->begin;
    if (part && n == 1 && first->trip % rows != 0) {
        return NULL;
    }
    outer[n - 1] = blocks > 1 ? kernel_axis(b->k, blocks, "c") : row;
    int before = list->count;
    StmtList *around = list;
    list = nest_loops(b, list, outer, blocks > 1 ? n : n - 1, parallel);
    if (part) {
        Stmt *loop = around->at[before];
        loop->begin = n > 1 ? first->begin : index_div(&b->k->index, first->begin, rows);
        loop->span = n > 1 ? first->trip : first->trip / rows;
    }
    nest_lets(b, list, scope, roots);
    Stmt *vector = nest_written_out(b, list, scope, last, &row, 1, NULL, 0, roots);
    if (blocks > 1) {
        nest_piece(b, vector->body.at[vector->body.count - 1], outer[n - 1], rows);
    }
    return vector;
}

/* --- schedules -------------------------------------------------------------------------------- */

typedef struct {
    int turned;    /* axis */
    int rows;      /* most that share a loop */
    int64_t saved; /* operations that rows share */
} Blocks;

static bool has_blocks(KernelBuild *b, Blocks blocks, void **plan) {
    Blocks *kept = ARENA_NEW(b->scratch, Blocks);
    *kept = blocks;
    *plan = kept;
    return true;
}

static bool turned_fits(KernelBuild *b, const Part *part, void **plan) {
    int n = space_axes(&part->rows), turned = -1;
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
    if (n < 2 || b->k->axis[part->rows.axis[n - 1]].extent < 2 * BLOCK) {
        return false;
    }
    for (int i = 0; turned < 0 && i < part->roots.count; i++) {
        turned = turned_axis(b, part->roots.at[i].value, part->rows.axis, n, seen);
    }
    return turned >= 0 && has_blocks(b, (Blocks){.turned = turned}, plan);
}

static Cost turned_cost(KernelBuild *b, const Part *part, const void *plan) {
    const Blocks *blocks = plan;
    return nest_cost(b, part, part->rows.axis[part->rows.n - 1], blocks->turned);
}

static void turned_emit(KernelBuild *b, const Part *part, void *plan) {
    const Blocks *blocks = plan;
    nest_lets(b, &b->k->body, 0, &part->roots);
    emit_turned(b, part->rows.axis, part->rows.n, blocks->turned, nest_parallel(b, part),
                &part->roots);
}

/* Elements of the pieces of the rows that threads share; 0: threads share rows. Few long rows are a
 * wide layer's: its sums and its weights' gradients go by columns, and who made these has them in
 * its cache. */
static int64_t jammed_piece(const KernelBuild *b, const Radix *r, bool parallel) {
    const int64_t columns = b->k->axis[r->axis[r->n - 1]].extent, rows = r->count / columns;
    return parallel && columns >= LONG_ROWS * rows ? nest_piece_span(columns) : 0;
}

static bool jammed_fits(KernelBuild *b, const Part *part, void **plan) {
    const Radix *r = &part->rows;
    const int n = space_axes(r);
    if (n < 2) {
        return false;
    }
    /* Pieces of long rows jump through memory anyway. */
    const int row = r->axis[n - 2], last = r->axis[n - 1];
    const bool pieces = jammed_piece(b, r, nest_parallel(b, part)) > 0;
    const int most = pieces ? JAM_ROWS : far_rows(b, row, last, &part->roots);
    const int64_t shared = jam_shared(b, row, last, most, &part->roots);
    return shared > 0 && has_blocks(b, (Blocks){.rows = most, .saved = shared}, plan);
}

static Cost jammed_cost(KernelBuild *b, const Part *part, const void *plan) {
    const Blocks *blocks = plan;
    const Radix *r = &part->rows;
    Cost cost = nest_cost(b, part, r->axis[r->n - 1], -1);
    int64_t rows = block_rows(b->k->axis[r->axis[r->n - 2]].extent, blocks->rows);
    int64_t saved = count_add(0, blocks->saved * (rows - 1), r->count / rows);
    saved /= cost.launches > 0 ? b->k->threads : 1;
    cost.loop = cost.loop > saved ? cost.loop - saved : 0;
    return cost;
}

static void jammed_emit(KernelBuild *b, const Part *part, void *plan) {
    const Blocks *blocks = plan;
    const Radix *r = &part->rows;
    const int last = r->axis[r->n - 1];
    const bool parallel = nest_parallel(b, part);
    const int64_t span = jammed_piece(b, r, parallel);
    StmtList *list = &b->k->body;
    AxisSet scope = 0;
    int piece = -1;
    nest_lets(b, list, 0, &part->roots);
    if (span > 0) {
        piece = kernel_axis(b->k, (b->k->axis[last].extent + span - 1) / span, "c");
        list = nest_loops(b, list, &piece, 1, true);
        scope = (AxisSet)1 << piece;
    }
    Stmt *vector = block_jam(b, list, scope, r->axis, r->n - 1, last, blocks->rows,
                             parallel && span == 0, NULL, &part->roots);
    if (span > 0) {
        nest_piece(b, vector, piece, span);
    }
}

const Schedule cpu_turned = {"turned", 1 << PART_MAP, turned_fits, turned_cost, turned_emit};
const Schedule cpu_jammed = {"jammed", 1 << PART_MAP, jammed_fits, jammed_cost, jammed_emit};
