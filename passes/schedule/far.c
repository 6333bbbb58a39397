/* far: what loops do about memory that no near cache holds.
 *
 * A processor reads ahead of what goes through memory line by line. Rows side by side in one vector
 * loop, or one register of each row, are no such order: lines are waited for one by one. So rows
 * of far tensors go one behind the other, or a turn asks for the lines that a later one touches
 * (`Stmt.ahead`), stores like loads: a store waits for the line that it is a part of. Changes no
 * values. */
#include "passes/schedule/product.h"

enum {
    FAR = TUNED(1 << 19, 64), /* bytes of such a tensor: the second-level cache does not hold it */
    AHEAD = 1 << 14,          /* bytes that the lines of a turn are asked for ahead of it */
    SIDE = TUNED(512, 256),   /* bytes of far rows that may be side by side in one loop */
    HELD = TUNED(8, 1),       /* vectors of sums that a C compiler keeps in registers */
    FUNCTION = 8              /* FLOPs of one */
};

bool far_arg(const Kernel *k, const Arg *arg) {
    return type_count(*kernel_buf(k, arg)->type) * (int64_t)elem_bytes(arg->elem) >= FAR;
}

int64_t far_turns(const Arg *arg, int64_t stride) {
    const int64_t each = (stride < 0 ? -stride : stride) * (int64_t)elem_bytes(arg->elem);
    return (AHEAD + each - 1) / each;
}

/* --- rows side by side ------------------------------------------------------------------------ */

typedef struct {
    const KernelBuild *b;
    int row, last;
    int64_t most;
} Side;

/* Rows that begin so far from each other. */
static void side_touch(Side *x, const Arg *arg, const Index *index) {
    int64_t along, across;
    if (!index_stride(index, x->last, &along) || !index_stride(index, x->row, &across) ||
        along == 0 || across == 0 || !far_arg(x->b->k, arg)) {
        return;
    }
    const int64_t each = (across < 0 ? -across : across) * (int64_t)elem_bytes(arg->elem);
    const int64_t most = each <= SIDE ? SIDE / each : 1;
    x->most = most < x->most ? most : x->most;
}

static void side_load(void *ctx, const Expr *e) {
    side_touch(ctx, e->arg, e->index);
}

int far_rows(const KernelBuild *b, int row, int last, const RootList *roots) {
    Side x = {b, row, last, INT8_MAX};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count; i++) {
        product_loads(roots->at[i].value, seen, side_load, &x);
        side_touch(&x, roots->at[i].arg, roots->at[i].index);
    }
    return (int)x.most;
}

/* --- sums over rows --------------------------------------------------------------------------- */

/* Sums that are loaded and stored for each row are what C compilers put rows side by side for
 * (gcc's unroll-and-jam). A loop that asks for a line in each turn stays as it is. */

typedef struct {
    KernelBuild *b;
    AxisSet around; /* the loop, and those around it */
    int turn, last; /* the loop; along a row */
    StreamList *to;
} Ask;

/* Does a load go through far memory row by row? Then *stream is the row that a turn asks for. */
static bool later_row(const Ask *x, const Expr *e, int last, Stream *stream) {
    IndexTable *t = &x->b->k->index;
    const int64_t extent = x->b->k->axis[last].extent;
    int64_t along, across;
    if (e->nin > 0 || !index_stride(e->index, last, &along) || along != 1 ||
        !index_stride(e->index, x->turn, &across) || across != extent ||
        !far_arg(x->b->k, e->arg)) {
        return false;
    }
    const Index *at = index_subst(t, e->index, last, index_const(t, 0));
    at = index_offset(t, at, far_turns(e->arg, across) * across);
    *stream = (Stream){e->arg, at, 0, extent, false};
    return true;
}

/* Of a row the first line, from which a processor reads on by itself where rows are not side by
 * side. */
static void ask_for(void *ctx, const Expr *e) {
    const Ask *x = ctx;
    Stream stream;
    if (later_row(x, e, x->last, &stream)) {
        stream.row = 1;
        VEC_PUSH(x->b->k->arena, x->to, stream);
    }
}

void far_sums(KernelBuild *b, Stmt *loop, int last, const RootList *roots) {
    int64_t held = 0;
    for (int i = 0; i < roots->count; i++) {
        const int64_t bytes = (int64_t)elem_bytes(roots->at[i].arg->elem);
        held += roots->at[i].add == OP_CONST ? 0 : b->k->axis[last].extent * bytes / MD_ALIGN;
    }
    Ask x = {b, 0, loop->axis, last, &loop->ahead};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count && held > HELD; i++) {
        product_loads(roots->at[i].value, seen, ask_for, &x);
    }
}

/* --- rows with functions ---------------------------------------------------------------------- */

/* Sums over a row, and what is stored of it, with exponentials of its elements are so much work
 * that a processor does not look as far as the next row, and of short rows it foresees nothing. */

static bool has_function(const Expr *e, AxisSet around, bool *seen) {
    if (seen[e->id]) {
        return false;
    }
    seen[e->id] = true;
    bool has = e->kind == EXPR_MAP && op_info[e->op].cost >= FUNCTION && (e->axes & ~around) != 0;
    for (int i = 0; i < e->nkid && !has; i++) {
        has = has_function(e->kid[i], around, seen);
    }
    return has;
}

/* Of a short row, whatever its axis, all lines, once. */
static void ask_for_row(void *ctx, const Expr *e) {
    const Ask *x = ctx;
    int last = 0;
    while (last < x->b->k->naxis && (AxisSet)1 << last != (e->index->axes & ~x->around)) {
        last++;
    }
    Stream stream;
    if (last == x->b->k->naxis || !later_row(x, e, last, &stream) ||
        stream.row * (int64_t)elem_bytes(e->arg->elem) > SIDE) {
        return;
    }
    bool known = false;
    for (int i = 0; i < x->to->count; i++) {
        known = known || (x->to->at[i].arg == stream.arg && x->to->at[i].at == stream.at);
    }
    if (!known) {
        VEC_PUSH(x->b->k->arena, x->to, stream);
    }
}

void far_functions(KernelBuild *b, Stmt *loop, AxisSet around, const RootList *roots) {
    bool has = false, *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count && !has; i++) {
        has = has_function(roots->at[i].value, around, seen);
    }
    Ask x = {b, around, loop->axis, -1, &loop->ahead};
    seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    for (int i = 0; i < roots->count && has; i++) {
        product_loads(roots->at[i].value, seen, ask_for_row, &x);
    }
}
