/* cpu_taps: the few places of a window along vectors of channels.
 *
 * A depthwise convolution adds some nine products to each element, and the gradient of its numbers
 * adds each product to one of nine sums. Looped over in memory, each of them is a load and a store.
 * Here one register of channels at a time runs along the picture: the numbers, or the sums, of all
 * places of the window are registers of their own; of a larger one those of some of its lines.
 * Needs the axes of a column (cpu_column.c); gives its innermost loops; changes no values: sums
 * keep their order. */
#include "passes/schedule/product.h"

enum {
    TAPS = TUNED(27, 9),       /* most places of a window, of 32 registers */
    TAPS_TWICE = TUNED(12, 4), /* most of which two registers run along the picture side by side */
    TAPS_LEAST = 4,            /* fewer are soon loaded and stored */
    TAP_TURNS = 8,             /* most along one axis: what MD_UNROLL writes out */
    TURNS_LEAST = TUNED(4, 2)  /* of the loop that shares them */
};

/* Loads without a condition, along `last` or apart from it, and what is computed of them. */
static bool is_straight(const KernelBuild *b, const Expr *e, int last, size_t bytes) {
    if (b->bound[e->id]) {
        return true;
    }
    int64_t stride = 0;
    if (e->kind == EXPR_LOAD &&
        (e->nin > 0 || elem_bytes(e->arg->elem) != bytes ||
         (e->axes >> last & 1 && (!index_stride(e->index, last, &stride) || stride != 1)))) {
        return false;
    }
    bool fits = e->kind != EXPR_FOLD && e->kind != EXPR_DRAW && e->kind != EXPR_KEY;
    for (int i = 0; i < e->nkid && fits; i++) {
        fits = is_straight(b, e->kid[i], last, bytes);
    }
    return fits;
}

/* What asks for the lines that a turn will read. */
typedef struct {
    KernelBuild *b;
    const int *tap;
    int n, turn, last;
    int64_t lanes;
    StreamList *to;
} Ahead;

/* Of a window, the place that lies farthest: the others have been read for it before. */
static void ask_for(const Ahead *a, const Arg *arg, const Index *index) {
    IndexTable *t = &a->b->k->index;
    int64_t stride;
    if (!index_stride(index, a->turn, &stride) || stride == 0 || !far_arg(a->b->k, arg)) {
        return;
    }
    const Index *at = index_offset(t, index, far_turns(arg, stride) * stride);
    for (int i = 0; i < a->n; i++) {
        const int64_t extent = a->b->k->axis[a->tap[i]].extent;
        if (!index_stride(index, a->tap[i], &stride)) {
            return;
        }
        at = index_subst(t, at, a->tap[i], index_const(t, stride > 0 ? extent - 1 : 0));
    }
    const Stream stream = {arg, at, 0, a->lanes};
    VEC_PUSH(a->b->k->arena, a->to, stream);
}

static void add_ahead(void *ctx, const Expr *e) {
    const Ahead *a = ctx;
    if (e->nin == 0 && e->axes >> a->last & 1) {
        ask_for(a, e->arg, e->index);
    }
}

int nest_taps_around(const KernelBuild *b, const int *tap, int n) {
    for (int64_t taps = 1; n > 0; n--) {
        const int64_t extent = b->k->axis[tap[n - 1]].extent;
        taps *= extent;
        if (extent > TAP_TURNS || taps > TAPS) {
            break;
        }
    }
    return n;
}

bool nest_taps(KernelBuild *b, StmtList *list, AxisSet scope, const Turn *turn, const int *tap,
               int n, int last, const RootList *first, const RootList *roots) {
    int64_t taps = 1;
    for (int i = 0; i < n; i++) {
        taps *= b->k->axis[tap[i]].extent;
    }
    if (roots->count != 1 || roots->at[0].add != OP_ADD || taps < TAPS_LEAST ||
        turn->trip < TURNS_LEAST) {
        return false;
    }
    const Root *root = &roots->at[0];
    const int64_t bytes = (int64_t)elem_bytes(root->arg->elem), wide = MD_ALIGN / bytes;
    const int64_t extent = b->k->axis[last].extent;
    const int64_t lanes = taps <= TAPS_TWICE && extent % (2 * wide) == 0 ? 2 * wide : wide;
    int64_t stride = 0;
    if (extent % lanes != 0 || !index_stride(root->index, last, &stride) || stride != 1 ||
        !is_straight(b, root->value, last, (size_t)bytes)) {
        return false;
    }
    int piece = -1;
    if (extent > lanes) {
        piece = kernel_axis(b->k, extent / lanes, "c");
        list = nest_loops(b, list, &piece, 1, false);
        scope |= (AxisSet)1 << piece;
    }
    const Turns turns = {.n = 1, .at = {*turn}};
    const StmtList *outer = list;
    list = nest_turns(b, list, &turns);
    scope |= (AxisSet)1 << turn->axis;
    nest_lets(b, list, scope, roots);
    Stmt *vector = nest_written_out(b, list, scope, last, tap, n, first, roots);
    Stmt *loop = outer->at[outer->count - 1];
    Ahead ahead = {b, tap, n, turn->axis, last, lanes, &loop->ahead};
    product_loads(root->value, ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1), add_ahead,
                  &ahead);
    if (first) { /* stored for the first time: a store waits for its line as a load does */
        ask_for(&ahead, root->arg, root->index);
    }
    const Index *begin = index_const(&b->k->index, 0);
    begin = piece < 0 ? begin : index_scale(&b->k->index, kernel_axis_index(b->k, piece), lanes);
    for (int i = 0; i < loop->ahead.count; i++) {
        loop->ahead.at[i].at = index_subst(&b->k->index, loop->ahead.at[i].at, last, begin);
    }
    if (piece >= 0) {
        nest_piece(b, vector, piece, lanes);
    }
    outer->at[outer->count - 1]->held =
        index_stride(root->index, turn->axis, &stride) && stride == 0; /* all turns add to it */
    return true;
}
