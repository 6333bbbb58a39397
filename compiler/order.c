/* order: sorting, as operations of the graph. Four techniques, by what they cost:
 *
 *   counts     a place is the number of elements that go before: n^2 comparisons side by side
 *   selection  k times the best of what is left: 3 k n comparisons in folds
 *   blocks     the first k lie in those k blocks of the line whose best elements are first: one
 *              fold over the line, then the order of these best ones and of the blocks' elements
 *   merges     runs of 64 elements by counts, then of 128, 256, ...: an element's place in the
 *              merged run is its own plus what a binary search finds in the other one; all
 *              elements at once, n log(n / 64) log(n) steps
 *
 * All are pure functions of the elements, so the order does not depend on threads or targets.
 * Contract: x has elements that compare (no bools); no derivative goes through. */
#include "compiler/order.h"

#include <math.h>

/* What the first k of n elements take, in picoseconds as measured (one core with AVX-512,
 * docs/decisions/0030-order.md): two elements that are compared, one that selection looks at once
 * more, one that merging moves one step down its search, one that lies in a block; what a handful
 * of kernels take to start. */
enum { COUNTS = 130, SELECTION = 900, MERGES = 510, BLOCKS = 200, START = 2000000 };

enum { RUN = 64 }; /* elements that are sorted by counts before runs are merged */

/* Lines of n elements: the axis as the last one, all others as one in front of it. */
typedef struct {
    Graph *g;
    Node *x;
    int64_t rows, n;
    bool descending;
} Lines;

static Type line_type(const Lines *l, Elem elem, int64_t n) {
    return (Type){.elem = elem, .rank = 2, .dim = {l->rows, n}};
}

static Node *lines_of(Graph *g, Node *x, int axis) {
    int map[MD_RANK], n = 0;
    for (int i = 0; i < x->type->rank; i++) {
        if (i != axis) {
            map[n++] = i;
        }
    }
    map[n] = axis;
    int64_t extent = x->type->dim[axis], dim[2] = {1, extent};
    for (int i = 0; i < n; i++) {
        dim[0] *= x->type->dim[map[i]];
    }
    return node_reshape(g, node_permute(g, x, map), 2, dim);
}

/* The way back, to the shape of `like` but for the extent of the axis. */
static Node *lines_back(Graph *g, Node *lines, const Type *like, int axis) {
    int map[MD_RANK], n = 0;
    int64_t dim[MD_RANK];
    for (int i = 0; i < like->rank; i++) {
        if (i != axis) {
            dim[n++] = like->dim[i];
        }
    }
    dim[n++] = lines->type->dim[1];
    for (int i = 0; i < n; i++) {
        map[i] = i < axis ? i : i == axis ? n - 1 : i - 1;
    }
    return node_permute(g, node_reshape(g, lines, n, dim), map);
}

static Node *is_number(Graph *g, Node *a) {
    return node_map2(g, OP_LE, a, a);
}

/* Must a stand in front of b, wherever the two stand now? */
static Node *goes_before(const Lines *l, Node *a, Node *b) {
    Graph *g = l->g;
    Node *less = l->descending ? node_map2(g, OP_LT, b, a) : node_map2(g, OP_LT, a, b);
    if (!elem_is_float(a->type->elem)) {
        return less;
    }
    Node *last = node_map2(g, OP_AND, is_number(g, a), node_map1(g, OP_NOT, is_number(g, b)));
    return node_map2(g, OP_OR, less, last);
}

/* What stands at place p[i] of the result is u[i]; each place is met once. */
static Node *put(const Lines *l, Node *u, Node *place) {
    return node_scatter_add(l->g, u, place, 1, *u->type);
}

static Node *by_counts(const Lines *l) {
    Graph *g = l->g;
    int64_t dim[3] = {l->rows, l->n, l->n};
    Type cube = {.elem = TY_I32, .rank = 3, .dim = {l->rows, l->n, l->n}};
    Node *mine = node_broadcast(g, l->x, 4u, 3, dim), *other = node_broadcast(g, l->x, 2u, 3, dim);
    Node *earlier = node_map2(g, OP_LT, node_iota(g, cube, 2), node_iota(g, cube, 1));
    Node *before = node_select(g, earlier, node_map1(g, OP_NOT, goes_before(l, mine, other)),
                               goes_before(l, other, mine));
    Node *place = node_fold(g, OP_SUM, node_cast(g, before, TY_I32), 4u);
    return put(l, node_iota(g, line_type(l, TY_I32, l->n), 1), place);
}

/* The least or greatest number of the type: it goes behind all others. */
static Node *behind_all(const Lines *l) {
    Elem elem = l->x->type->elem;
    if (elem_is_float(elem)) {
        return node_const(l->g, elem, l->descending ? -INFINITY : INFINITY);
    }
    int bits = 8 * (int)elem_bytes(elem) - (elem_is_signed(elem) ? 1 : 0);
    int64_t most = bits == 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    int64_t least = elem_is_signed(elem) ? -most - 1 : 0;
    return node_int(l->g, elem, l->descending ? least : most);
}

static Node *by_selection(const Lines *l, int64_t most) {
    Graph *g = l->g;
    Node *none = node_full(g, (Type){.elem = TY_I32, .rank = 2, .dim = {l->rows, 1}}, -1);
    int64_t all[2] = {l->rows, l->n}, one[2] = {l->rows, 1};
    LoopBuilder *loop = loop_open(g, most, false);
    Node *last = loop_carry_value(loop, loop_carry(loop, none));
    Node *x = graph_import(g, l->x);
    Node *own = node_iota(g, line_type(l, TY_I32, l->n), 1);
    Node *first = node_map2(g, OP_LT, last, node_int(g, TY_I32, 0));
    Node *from = node_gather(g, x, node_map2(g, OP_MAX, last, node_int(g, TY_I32, 0)), 1);
    from = node_broadcast(g, node_reshape(g, from, 1, one), 2u, 2, all);
    Node *at = node_broadcast(g, node_reshape(g, last, 1, one), 2u, 2, all);
    /* What is left goes behind the last one that was taken. */
    Node *left =
        node_select(g, node_map2(g, OP_LT, at, own), node_map1(g, OP_NOT, goes_before(l, x, from)),
                    goes_before(l, from, x));
    left = node_map2(g, OP_OR, left, node_broadcast(g, node_reshape(g, first, 1, one), 2u, 2, all));
    Node *numbers = left;
    if (elem_is_float(x->type->elem)) {
        numbers = node_map2(g, OP_AND, left, is_number(g, x));
    }
    Node *best = node_fold(g, l->descending ? OP_FMAX : OP_FMIN,
                           node_select(g, numbers, x, behind_all(l)), 2u);
    Node *wins =
        node_map2(g, OP_AND, numbers, node_map2(g, OP_EQ, x, node_broadcast(g, best, 2u, 2, all)));
    if (numbers != left) {         /* nothing but NaN is left: the first of them */
        Elem elem = x->type->elem; /* folds of one type go side by side */
        Node *any = node_fold(g, OP_FMAX, node_cast(g, numbers, elem), 2u);
        any = node_map2(g, OP_LT, node_const(g, elem, 0), any);
        wins = node_select(g, node_broadcast(g, any, 2u, 2, all), wins, left);
    }
    Node *next =
        node_fold(g, OP_FMIN, node_select(g, wins, own, node_int(g, TY_I32, l->n - 1)), 2u);
    loop_next(loop, 0, node_reshape(g, next, 2, one));
    int taken = loop_emit(loop, next);
    static const int turned[2] = {1, 0};
    return node_permute(g, loop_stack(g, loop_close(loop), taken), turned);
}

/* In runs of `run` elements, sorted each: the place of each element once pairs of runs are merged.
 * The search goes down the bits of what it counts, in a loop: each step reads the one before twice,
 * and as one value that would be 2^steps reads. */
static Node *merged_places(const Lines *l, Node *x, Node *run, int levels) {
    Graph *g = l->g;
    Node *own = node_iota(g, line_type(l, TY_I32, l->n), 1), *zero = node_int(g, TY_I32, 0);
    Node *one = node_int(g, TY_I32, 1), *two = node_int(g, TY_I32, 2);
    Node *extent = node_int(g, TY_I32, l->n), *last = node_int(g, TY_I32, l->n - 1);
    Node *number = node_map2(g, OP_IDIV, own, run);
    Node *second = node_map2(g, OP_EQ, node_map2(g, OP_IREM, number, two), one);
    Node *beside = node_select(g, second, node_map2(g, OP_SUB, number, one),
                               node_map2(g, OP_ADD, number, one));
    Node *start = node_map2(g, OP_MUL, beside, run);
    Node *length = node_map2(g, OP_MIN, node_map2(g, OP_SUB, extent, start), run);
    Node *none = node_full(g, line_type(l, TY_I32, l->n), 0);
    LoopBuilder *loop = loop_open(g, levels, false);
    Node *count = loop_carry_value(loop, loop_carry(loop, none));
    Node *bit =
        loop_carry_value(loop, loop_carry(loop, node_int(g, TY_I32, (int64_t)1 << (levels - 1))));
    Node *more = node_map2(g, OP_ADD, count, bit);
    Node *at = node_map2(g, OP_SUB, node_map2(g, OP_ADD, graph_import(g, start), more), one);
    at = node_map2(g, OP_MAX, node_map2(g, OP_MIN, at, last), zero);
    Node *mine = graph_import(g, x), *other = node_gather(g, mine, at, 1);
    Node *before =
        node_select(g, graph_import(g, second), node_map1(g, OP_NOT, goes_before(l, mine, other)),
                    goes_before(l, other, mine));
    before = node_map2(g, OP_AND, before, node_map2(g, OP_LE, more, graph_import(g, length)));
    loop_next(loop, 0, node_select(g, before, more, count));
    loop_next(loop, 1, node_map2(g, OP_IDIV, bit, two));
    count = loop_final(g, loop_close(loop), 0);
    /* A second run's elements stand behind all of the first, so those found replace the run. */
    Node *place = node_map2(g, OP_ADD, own, count);
    return node_select(g, second, node_map2(g, OP_SUB, place, run), place);
}

static int levels_of(int64_t n) {
    int levels = 0;
    while ((int64_t)1 << levels < n) {
        levels++;
    }
    return levels;
}

/* Runs of RUN elements and what is left behind them, each in its order by counts. */
static Node *sorted_runs(const Lines *l) {
    Graph *g = l->g;
    int64_t runs = l->n / RUN, rest = l->n - runs * RUN, dim[2] = {l->rows * runs, RUN};
    Node *whole = node_slice_axis(g, l->x, 1, 0, runs * RUN, 1);
    Lines part = {g, node_reshape(g, whole, 2, dim), dim[0], RUN, l->descending};
    Type cube = {.elem = TY_I32, .rank = 3, .dim = {l->rows, runs, RUN}};
    Node *at = node_map2(g, OP_MUL, node_iota(g, cube, 1), node_int(g, TY_I32, RUN));
    at = node_map2(g, OP_ADD, at, node_reshape(g, by_counts(&part), 3, cube.dim));
    int64_t flat[2] = {l->rows, runs * RUN};
    at = node_reshape(g, at, 2, flat);
    if (rest == 0) {
        return at;
    }
    Lines end = {g, node_slice_axis(g, l->x, 1, runs * RUN, rest, 1), l->rows, rest, l->descending};
    Node *both[2] = {at, node_map2(g, OP_ADD, by_counts(&end), node_int(g, TY_I32, runs * RUN))};
    return node_concat(g, both, 2, 1);
}

static Node *by_merges(const Lines *l) {
    Graph *g = l->g;
    int levels = levels_of(l->n), first = levels_of(RUN);
    Node *start = sorted_runs(l);
    Node *sorted = node_gather(g, l->x, start, 1);
    LoopBuilder *loop = loop_open(g, levels - first, false);
    Node *order = loop_carry_value(loop, loop_carry(loop, start));
    Node *x = loop_carry_value(loop, loop_carry(loop, sorted));
    Node *run = loop_carry_value(loop, loop_carry(loop, node_int(g, TY_I32, RUN)));
    Node *place = merged_places(l, x, run, levels);
    Node *from = put(l, node_iota(g, line_type(l, TY_I32, l->n), 1), place);
    loop_next(loop, 0, node_gather(g, order, from, 1));
    loop_next(loop, 1, node_gather(g, x, from, 1));
    loop_next(loop, 2, node_map2(g, OP_ADD, run, run));
    return loop_final(g, loop_close(loop), 0);
}

typedef enum { BY_COUNTS, BY_SELECTION, BY_BLOCKS, BY_MERGES } Way;

/* Elements of a block: blocks and candidates are about as many. */
static int64_t block_extent(int64_t n, int64_t most) {
    int64_t s = 1;
    while ((s + 1) * (s + 1) * most <= n) {
        s++;
    }
    int64_t side = s < 16 ? 1 : s < 64 ? 16 : 64; /* that many are compared side by side */
    return s - s % side;
}

static double least_cost(double rows, int64_t n, int64_t most, Way *way) {
    double least = START + COUNTS * rows * (double)n * (double)n;
    *way = BY_COUNTS;
    double selection = START + SELECTION * rows * (double)most * (double)n;
    if (selection < least) {
        *way = BY_SELECTION;
        least = selection;
    }
    int levels = levels_of(n);
    int merged = levels - levels_of(RUN);
    double merges = START * (merged + 1.0) +
                    rows * (double)n * (COUNTS * RUN + (double)MERGES * merged * levels);
    if (merges < least && merged > 0) {
        *way = BY_MERGES;
        least = merges;
    }
    int64_t s = block_extent(n, most), blocks = n / s, some = n - (blocks - most) * s;
    if (s > 2 && least > 4 * START) {
        Way inner;
        double cost = START + BLOCKS * rows * (double)n + least_cost(rows, blocks, most, &inner) +
                      least_cost(rows, most, most, &inner) + least_cost(rows, some, most, &inner);
        if (cost < least) {
            *way = BY_BLOCKS;
            least = cost;
        }
    }
    return least;
}

/* Orders within an order are spelled out too. */
static Node *spelled(Graph *g, Node *lines, bool descending, int64_t most);

/* The blocks whose best elements are first, in the order in which they stand, and what is left
 * behind the last block; these in order. What is in no such block has `most` elements before it. */
static Node *by_blocks(const Lines *l, int64_t most) {
    Graph *g = l->g;
    int64_t s = block_extent(l->n, most), blocks = l->n / s, rest = l->n - blocks * s;
    int64_t cube[3] = {l->rows, blocks, s}, chosen[3] = {l->rows, most, s};
    Node *x = node_reshape(g, node_slice_axis(g, l->x, 1, 0, blocks * s, 1), 3, cube);
    OpCode op = l->descending ? OP_FMAX : OP_FMIN;
    Node *best;
    if (elem_is_float(x->type->elem)) { /* a block of NaN is one itself */
        Node *number = is_number(g, x);
        best = node_fold(g, op, node_select(g, number, x, behind_all(l)), 4u);
        Elem elem = x->type->elem; /* folds of one type go side by side */
        Node *any = node_fold(g, OP_FMAX, node_cast(g, number, elem), 4u);
        any = node_map2(g, OP_LT, node_const(g, elem, 0), any);
        best = node_select(g, any, best, node_const(g, x->type->elem, NAN));
    } else {
        best = node_fold(g, op, x, 4u);
    }
    Node *block = spelled(g, best, l->descending, most);
    block = node_along(g, block, spelled(g, block, false, most), 1);
    Type places = {.elem = TY_I32, .rank = 3, .dim = {l->rows, most, s}};
    Node *at =
        node_map2(g, OP_MUL, node_broadcast(g, block, 4u, 3, chosen), node_int(g, TY_I32, s));
    at = node_map2(g, OP_ADD, at, node_iota(g, places, 2));
    int64_t flat[2] = {l->rows, most * s};
    at = node_reshape(g, at, 2, flat);
    if (rest > 0) {
        Node *end = node_iota(g, line_type(l, TY_I32, rest), 1);
        Node *both[2] = {at, node_map2(g, OP_ADD, end, node_int(g, TY_I32, blocks * s))};
        at = node_concat(g, both, 2, 1);
    }
    Node *found = node_gather(g, l->x, at, 1);
    return node_along(g, at, spelled(g, found, l->descending, most), 1);
}

/* The axis as the last one. */
static Node *last_axis(Graph *g, Node *x, int axis, bool back) {
    int map[MD_RANK], last = x->type->rank - 1;
    for (int i = 0; i <= last; i++) {
        map[i] = back        ? i < axis    ? i
                               : i == axis ? last
                                           : i - 1
                 : i < axis  ? i
                 : i == last ? axis
                             : i + 1;
    }
    return axis == last ? x : node_permute(g, x, map);
}

Node *node_order(Graph *g, Node *x, int axis, bool descending, int64_t most) {
    Type like = *x->type;
    like.elem = TY_I32;
    like.dim[axis] = most;
    if (type_count(like) == 0 || x->type->dim[axis] == 1) {
        return node_iota(g, like, axis);
    }
    Node *lines = last_axis(g, x, axis, false);
    return last_axis(g, node_places(g, lines, descending, most), axis, true);
}

static Node *spelled(Graph *g, Node *lines, bool descending, int64_t most) {
    if (lines->type->dim[1] == 1) {
        return node_iota(g, (Type){.elem = TY_I32, .rank = 2, .dim = {lines->type->dim[0], most}},
                         1);
    }
    Lines l = {g, lines, lines->type->dim[0], lines->type->dim[1], descending};
    Way way;
    (void)least_cost((double)l.rows, l.n, most, &way);
    Node *order = way == BY_COUNTS      ? by_counts(&l)
                  : way == BY_SELECTION ? by_selection(&l, most)
                  : way == BY_BLOCKS    ? by_blocks(&l, most)
                                        : by_merges(&l);
    return order->type->dim[1] > most ? node_slice_axis(g, order, 1, 0, most, 1) : order;
}

Node *order_spelled(Graph *g, const Node *order, Node *x) {
    int last = x->type->rank - 1;
    int64_t most = order->type->dim[last];
    if (type_count(*order->type) == 0 || x->type->dim[last] == 1) {
        return node_iota(g, *order->type, last);
    }
    Node *places = spelled(g, lines_of(g, node_stop(g, x), last), order->attr->reverse, most);
    return lines_back(g, places, x->type, last);
}

Node *node_along(Graph *g, Node *x, Node *place, int axis) {
    if (type_count(*place->type) == 0) {
        return node_slice_axis(g, x, axis, 0, place->type->dim[axis], 1);
    }
    Node *found = node_gather(g, lines_of(g, x, axis), lines_of(g, place, axis), 1);
    Type like = *x->type;
    return lines_back(g, found, &like, axis);
}
