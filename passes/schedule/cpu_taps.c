/* cpu_taps: the few places of a window along vectors of channels.
 *
 * A depthwise convolution adds some nine products to each element, and the gradient of its numbers
 * adds each product to one of nine sums. Looped over in memory, each of them is a load and a store.
 * Here one register of channels at a time runs along the picture: the numbers, or the sums, of all
 * places of the window are registers of their own; of a larger one those of some of its lines. Or
 * the sums of several places of the picture are, to which each number is added once it is read.
 * Needs the axes of a column (cpu_column.c); gives its innermost loops; changes no values: sums
 * keep their order. */
#include "passes/schedule/product.h"

#include <string.h>

enum {
    TAPS = TUNED(27, 9),         /* most places of a window, of 32 registers */
    TAPS_BESIDE = TUNED(64, 12), /* of one that several sums go through side by side */
    TAPS_TWICE = TUNED(12, 4),  /* most of which two registers run along the picture side by side */
    TAPS_LEAST = 4,             /* fewer are soon loaded and stored */
    TAP_TURNS = 8,              /* most along one axis: what MD_UNROLL writes out */
    TURNS_LEAST = TUNED(4, 2),  /* of the loop that shares them */
    NEAR = TUNED(1 << 18, 64),  /* bytes of all turns of two loops, which both share them, */
    LINES = TUNED(1 << 15, 64), /* unless the lines of a window are less, */
    TURNS_MANY = TUNED(16, 4),  /* and so many turns go along one of them */
    PLACES = TUNED(8, 3),       /* most sums of a window side by side, */
    PLACES_LEAST = TUNED(4, 2)  /* fewest */
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
    const Stream stream = {arg, at, 0, a->lanes, false};
    VEC_PUSH(a->b->k->arena, a->to, stream);
}

static void add_ahead(void *ctx, const Expr *e) {
    const Ahead *a = ctx;
    if (e->nin == 0 && e->axes >> a->last & 1) {
        ask_for(a, e->arg, e->index);
    }
}

/* Sums side by side: each number of the window is read once for them, and each element of the
 * picture for all windows that it stands in. 1: the turns all add to the same sums, or are no
 * multiple of a few. */
static int64_t places_of(const KernelBuild *b, const Turn *turn, const Root *root) {
    int64_t stride = 0;
    if (turn->begin || !index_stride(root->index, turn->axis, &stride) || stride == 0) {
        return 1;
    }
    for (int64_t places = PLACES; places >= PLACES_LEAST; places--) {
        if (b->k->axis[turn->axis].extent % places == 0) {
            return places;
        }
    }
    return 1;
}

/* The lines that windows of one turn reach: what a load goes through while `turn` stands still. */
typedef struct {
    const KernelBuild *b;
    AxisSet inside;
    int turn;
    int64_t bytes;
} Reached;

static void add_reached(void *ctx, const Expr *e) {
    Reached *x = ctx;
    int64_t stride, count = 1;
    if (!index_stride(e->index, x->turn, &stride) || stride == 0) {
        return;
    }
    for (int a = 0; a < x->b->k->naxis; a++) {
        if (x->inside >> a & 1 && index_stride(e->index, a, &stride)) {
            count += (x->b->k->axis[a].extent - 1) * (stride < 0 ? -stride : stride);
        }
    }
    const int64_t bytes = count * (int64_t)elem_bytes(e->arg->elem);
    x->bytes = bytes > x->bytes ? bytes : x->bytes;
}

int nest_taps_loops(const KernelBuild *b, const Turns *turns, const Radix *v,
                    const RootList *roots) {
    if (turns->n < 2) {
        return turns->n;
    }
    const Turn *one = &turns->at[turns->n - 1], *other = &turns->at[turns->n - 2];
    const int last = v->axis[space_axes(v) - 1];
    Reached x = {b, axes_with((AxisSet)1 << one->axis, v->axis, space_axes(v)), other->axis, 0};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    product_loads(roots->at[0].value, seen, add_reached, &x);
    const int64_t each = b->k->axis[last].extent * (int64_t)elem_bytes(roots->at[0].arg->elem);
    const bool lines = one->trip >= TURNS_MANY && x.bytes <= LINES;
    return !lines && count_add(0, each, one->trip * other->trip) <= NEAR ? 2 : 1;
}

int nest_taps_around(const KernelBuild *b, const Turn *turn, const int *tap, int n,
                     const RootList *roots) {
    int64_t most = roots->count == 1 && places_of(b, turn, &roots->at[0]) > 1 ? TAPS_BESIDE : TAPS;
    for (int64_t taps = 1; n > 0; n--) {
        const int64_t extent = b->k->axis[tap[n - 1]].extent;
        taps *= extent;
        if (extent > TAP_TURNS || taps > most) {
            break;
        }
    }
    return n;
}

/* A turn of `loop` asks for what each of the places along `axis` reads. */
static void ask_for_each(KernelBuild *b, Stmt *loop, int axis) {
    IndexTable *t = &b->k->index;
    const StreamList one = loop->ahead;
    loop->ahead = (StreamList){0};
    for (int i = 0; i < one.count; i++) {
        for (int64_t place = 0; place < b->k->axis[axis].extent; place++) {
            Stream stream = one.at[i];
            stream.at = index_subst(t, stream.at, axis, index_const(t, place));
            VEC_PUSH(b->k->arena, &loop->ahead, stream);
        }
    }
}

/* What a turn does: the places of the window, and those of the sums beside one another. */
typedef struct {
    int row[AXES_MAX], n, beside; /* the last axis is of the sums, where beside is 1 */
    RootList first, roots;
} Window;

/* Roots at place `at` of an axis. False: one is not known there. */
static bool window_at(KernelBuild *b, Window *w, int axis, const Index *at) {
    const RootList first = w->first, roots = w->roots;
    w->first = w->roots = (RootList){0};
    if (!roots_at(b, &first, axis, at, &w->first) || !roots_at(b, &roots, axis, at, &w->roots)) {
        return false;
    }
    bind_uses(b, &w->roots);
    return true;
}

/* Every `places` turns are one, with as many sums. False: a root is not known at such a place. */
static bool side_by_side(KernelBuild *b, Window *w, Turn *turn, int64_t places) {
    IndexTable *t = &b->k->index;
    const int axis = turn->axis, place = kernel_axis(b->k, places, "p");
    turn->axis = kernel_axis(b->k, turn->trip / places, "c");
    turn->trip /= places;
    const Index *at = index_scale(t, kernel_axis_index(b->k, turn->axis), places);
    at = index_add(t, at, kernel_axis_index(b->k, place));
    w->row[w->n++] = place;
    w->beside = 1;
    return window_at(b, w, axis, at);
}

/* Pieces of the vectors along *last, of `lanes` elements, get an axis of their own, which *last
 * becomes: gcc takes a loop of one register for one of any number of turns where it does not begin
 * at 0, and keeps nothing around it in registers. False: a root is not known at such a place. */
static bool piece_apart(KernelBuild *b, Window *w, int *last, int piece, int64_t lanes) {
    IndexTable *t = &b->k->index;
    const int lane = kernel_axis(b->k, lanes, "l"), axis = *last;
    const Index *at = index_scale(t, kernel_axis_index(b->k, piece), lanes);
    *last = lane;
    return window_at(b, w, axis, index_add(t, at, kernel_axis_index(b->k, lane)));
}

/* The lines that a turn of `loop` asks for, later ones along `axis`, and what it begins with. */
static void ask_ahead(KernelBuild *b, const Window *w, Stmt *loop, int axis, int last, int piece,
                      int64_t lanes) {
    const Root *root = &w->roots.at[0];
    Ahead ahead = {b, w->row, w->n - w->beside, axis, last, lanes, &loop->ahead};
    product_loads(root->value, ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1), add_ahead,
                  &ahead);
    if (w->first.count > 0) { /* stored for the first time: a store waits for its line, too */
        ask_for(&ahead, root->arg, root->index);
    }
    const Index *begin = index_const(&b->k->index, 0);
    begin = piece < 0 ? begin : index_scale(&b->k->index, kernel_axis_index(b->k, piece), lanes);
    for (int i = 0; i < loop->ahead.count; i++) {
        loop->ahead.at[i].at = index_subst(&b->k->index, loop->ahead.at[i].at, last, begin);
    }
    if (w->beside) {
        ask_for_each(b, loop, w->row[w->n - 1]);
    }
}

/* How many places of a window the next turn goes on by. */
typedef struct {
    int turn, tap;
    int64_t places;
} Advance;

static void add_advance(void *ctx, const Expr *e) {
    Advance *x = ctx;
    int64_t turn, tap;
    if (index_stride(e->index, x->turn, &turn) && index_stride(e->index, x->tap, &tap) &&
        tap != 0 && turn / tap > x->places) {
        x->places = turn / tap;
    }
}

/* Do the windows of two turns share fewer places than they do not? Then memory is waited for more
 * than its numbers are loaded for: whole places go one behind the other, as they lie there. */
static bool goes_by_places(const KernelBuild *b, const Turn *turn, int tap, const RootList *roots) {
    Advance x = {turn->axis, tap, 0};
    bool *seen = ARENA_ARRAY(b->scratch, bool, b->k->expr.count + 1);
    product_loads(roots->at[0].value, seen, add_advance, &x);
    return 2 * x.places > b->k->axis[tap].extent;
}

/* Do all turns add to the same sums? */
static bool adds_up(const Turns *turns, const Root *root) {
    int64_t stride;
    bool same = true;
    for (int i = 0; i < turns->n; i++) {
        same = same && index_stride(root->index, turns->at[i].axis, &stride) && stride == 0;
    }
    return same;
}

bool nest_taps(KernelBuild *b, StmtList *list, AxisSet scope, const Turns *around, const int *tap,
               int n, int last, const RootList *first, const RootList *roots) {
    Turns turns = *around;
    Turn *turn = &turns.at[turns.n - 1];
    int64_t taps = 1, stride = 0;
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
    if (extent % wide != 0 || !index_stride(root->index, last, &stride) || stride != 1 ||
        !is_straight(b, root->value, last, (size_t)bytes)) {
        return false;
    }
    Window w = {.n = n, .roots = *roots};
    memcpy(w.row, tap, sizeof *tap * (size_t)n);
    w.first = first ? *first : w.first;
    const int64_t places = taps > TAPS_TWICE ? places_of(b, turn, root) : 1;
    if (places > 1 && !side_by_side(b, &w, turn, places)) {
        return false;
    }
    const int64_t lanes = taps <= TAPS_TWICE && extent % (2 * wide) == 0 ? 2 * wide : wide;
    const int piece = extent > lanes ? kernel_axis(b->k, extent / lanes, "c") : -1;
    const bool by_places = piece >= 0 && places == 1 && (first || b->work->in_place) &&
                           goes_by_places(b, turn, tap[n - 1], &w.roots);
    /* Sums side by side need all registers, and whole places are loaded again anyway. */
    const bool apart = piece >= 0 && !w.beside && !by_places;
    if (apart && !piece_apart(b, &w, &last, piece, lanes)) {
        return false;
    }
    if (piece >= 0) {
        list = by_places ? list : nest_loops(b, list, &piece, 1, false);
        scope |= (AxisSet)1 << piece;
    }
    const StmtList *outer = list;
    list = nest_turns(b, list, &turns);
    scope = turns_with(scope, &turns);
    list = by_places ? nest_loops(b, list, &piece, 1, false) : list;
    nest_lets(b, list, scope, &w.roots);
    Stmt *vector = nest_written_out(b, list, scope, last, w.row, w.n, first ? &w.first : NULL,
                                    w.beside, &w.roots);
    Stmt *loop = outer->at[outer->count - 1];
    loop->held = !by_places && !w.beside && adds_up(&turns, &w.roots.at[0]);
    while (loop->axis != turn->axis) {
        loop = loop->body.at[loop->body.count - 1];
    }
    loop = by_places ? loop->body.at[loop->body.count - 1] : loop;
    ask_ahead(b, &w, loop, turn->axis, last, apart ? -1 : piece, lanes);
    if (piece >= 0 && !apart) {
        nest_piece(b, vector, piece, lanes);
    }
    vector->held = w.beside;
    return true;
}
