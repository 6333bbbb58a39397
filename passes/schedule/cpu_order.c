/* cpu_order: the places of the elements of lines in order, by runtime/sort.h in one of three ways.
 *
 * What it reads and writes is dense: lines that memory does not hold so are copied first, places
 * that go elsewhere, or to several values, behind it. Needs an ORDER part; gives its statements;
 * there is one order, so no way changes a value. */
#include "passes/schedule/schedule.h"

#include "runtime/sort_plan.h"

#include <math.h>

/* What it takes, in picoseconds as measured (one core with AVX-512,
 * docs/decisions/0039-order-kernel.md). */
enum {
    LINE = 5000,       /* a line */
    PAIR = 800,        /* two elements of a short line that are compared, one by one, */
    ELEMENT = 5500,    /* of one that is not so short an element, */
    COMPARED = 60,     /* and each that it is compared with, in vectors */
    MOVED = 1500,      /* an element that a digit moves */
    COUNTED = 100000,  /* the counts of a digit */
    LOOKED = 160,      /* an element that is looked at for the first few, in vectors, */
    HIT = 25000,       /* the step of some elements that has a candidate among them, */
    CANDIDATE = 10000, /* one that is put among a few best ones, */
    PASSED = 700,      /* and each that it passes there */
    CUT = 3000,        /* a candidate in a list that is cut down, */
    CUTS = 1000000     /* and the digits that say how */
};

enum {
    CACHED = TUNED(1 << 20, 1 << 10), /* bytes of workspace that a thread has by itself, at most */
    SHARED = TUNED(1 << 13, 16),      /* elements from which threads may share a line, */
    STEPS = 9                         /* in so many loops */
};

static Ordering ordering_of(const Part *part, OrderWay way) {
    return (Ordering){.way = way,
                      .rows = part->rows.count,
                      .n = part->terms.count,
                      .most = part->columns.count,
                      .descending = part->descending};
}

/* Digits that the keys of short integers do not have are left out. */
static double line_time(const Part *part, double n) {
    if (n <= MD_SORT_PAIRS) {
        return LINE + PAIR * n * n / 2;
    }
    if (n <= MD_SORT_SHORT) {
        return LINE + n * (ELEMENT + COMPARED * n);
    }
    return LINE + (double)elem_bytes(part->term->elem) * (MOVED * n + COUNTED);
}

/* Of random elements the one at place i is a candidate in most / i of all cases. */
static double first_time(const Part *part) {
    double n = (double)part->terms.count, most = (double)part->columns.count;
    double some = most * (1 + log(n / most)), looked = LINE + LOOKED * n;
    if (most <= MD_SORT_FEW) {
        return looked + some * (CANDIDATE + PASSED * most);
    }
    double room = (double)md_sort_room(part->terms.count, part->columns.count);
    double hits = fmin(some, n / MD_SORT_STEP), cuts = 1 + some / (room - most);
    return looked + HIT * hits + cuts * (CUTS + CUT * room) + line_time(part, most);
}

/* Picoseconds as operations of loops. */
static int64_t work_of(const KernelBuild *b, double time) {
    double work = time / (double)b->target->loop_time;
    return work < 1e15 ? (int64_t)work + 1 : (int64_t)1e15;
}

/* Lines one by one, each of `time`. */
static Cost lines_of(const KernelBuild *b, const Part *part, double time) {
    int64_t rows = part->rows.count;
    bool parallel = rows > 1 && kernel_parallel(b, work_of(b, time * (double)rows));
    int64_t turns = parallel ? (rows + b->k->threads - 1) / b->k->threads : rows;
    return (Cost){.loop = work_of(b, time * (double)turns), .launches = parallel};
}

static bool lines_fit(KernelBuild *b, const Part *part, void **plan) {
    (void)plan;
    bool alone = b->k->threads == 1 || part->rows.count == 1;
    return alone || md_sort_line_bytes(part->terms.count, order_bits(part->term->elem)) <= CACHED;
}

static Cost lines_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    return lines_of(b, part, line_time(part, (double)part->terms.count));
}

static bool long_fits(KernelBuild *b, const Part *part, void **plan) {
    (void)plan;
    return b->k->threads > 1 && part->terms.count >= SHARED;
}

/* Digits are counted once more, stretch by stretch, and pairs move through memory that threads
 * share: two take 0.65 of the time of one, more are not counted on. */
static Cost long_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    double rows = (double)part->rows.count, n = (double)part->terms.count;
    double time = rows * 0.65 * line_time(part, n);
    return (Cost){.loop = work_of(b, time), .launches = count_add(0, part->rows.count, STEPS)};
}

static Cost first_cost(KernelBuild *b, const Part *part, const void *plan) {
    (void)plan;
    return lines_of(b, part, first_time(part));
}

/* --- what is dense ---------------------------------------------------------------------------- */

/* The place of the first element where `index` counts all `columns` of all `rows`; else NULL. */
static const Index *dense_from(KernelBuild *b, const Radix *rows, const Radix *columns,
                               const Index *index) {
    IndexTable *t = &b->k->index;
    const Index *flat = index_scale(t, radix_flat(b->k, rows), columns->count);
    flat = index_add(t, flat, radix_flat(b->k, columns));
    const Index *from = index_add(t, index, index_scale(t, flat, -1));
    bool plain = from->axes == 0;
    for (int i = 0; i < from->nterm; i++) {
        plain = plain && from->term[i].atom->kind == ATOM_LOOP;
    }
    return plain ? from : NULL;
}

/* Loops over all of them that store the roots. */
static void copy_all(KernelBuild *b, const Radix *rows, const Radix *columns,
                     const RootList *roots) {
    nest_open(b, roots);
    int64_t count = count_add(0, rows->count, columns->count);
    nest_lets(b, &b->k->body, 0, roots);
    StmtList *list = nest_loops(b, &b->k->body, rows->axis, space_axes(rows),
                                kernel_parallel(b, count_add(0, 4, count)));
    nest_lets(b, list, space_set(rows), roots);
    nest_stage(b, list, space_set(rows), columns->axis, space_axes(columns), roots);
}

static Arg *dense_work(KernelBuild *b, const Radix *rows, const Radix *columns, Elem elem,
                       const char *name) {
    Type type = {.elem = elem, .rank = 1, .dim = {count_add(0, rows->count, columns->count)}};
    return kernel_work(b, type, 0, name);
}

static const Index *dense_index(KernelBuild *b, const Radix *rows, const Radix *columns) {
    IndexTable *t = &b->k->index;
    const Index *flat = index_scale(t, radix_flat(b->k, rows), columns->count);
    return index_add(t, flat, radix_flat(b->k, columns));
}

/* The lines in memory. */
static void take_lines(KernelBuild *b, const Part *part, Ordering *o) {
    const Expr *x = part->term;
    if (x->kind == EXPR_LOAD && x->nin == 0 && x->arg->elem == x->elem) {
        o->x = x->arg;
        o->at_x = dense_from(b, &part->rows, &part->terms, x->index);
    }
    if (o->at_x) {
        return;
    }
    Root root = {.arg = dense_work(b, &part->rows, &part->terms, x->elem, "lines"),
                 .index = dense_index(b, &part->rows, &part->terms),
                 .value = x,
                 .add = OP_CONST};
    RootList roots = {0};
    VEC_PUSH(b->scratch, &roots, root);
    copy_all(b, &part->rows, &part->terms, &roots);
    o->x = root.arg;
    o->at_x = index_const(&b->k->index, 0);
}

/* Where places go at first, and the roots that are left. */
static RootList give_places(KernelBuild *b, const Part *part, Ordering *o) {
    RootList left = {0};
    const Root *first = &part->roots.at[0];
    const Expr *value = first->value;
    o->out = first->arg;
    o->at_out = dense_from(b, &part->rows, &part->columns, first->index);
    if (!o->at_out) {
        o->out = dense_work(b, &part->rows, &part->columns, TY_I32, "places");
        o->at_out = index_const(&b->k->index, 0);
        const Index *at = dense_index(b, &part->rows, &part->columns);
        value = expr_load(b->k, o->out, at, NULL);
    }
    for (int i = o->out == first->arg ? 1 : 0; i < part->roots.count; i++) {
        Root root = part->roots.at[i];
        root.value = value;
        VEC_PUSH(b->scratch, &left, root);
    }
    return left;
}

static void order_emit(KernelBuild *b, const Part *part, OrderWay way, Cost cost) {
    Ordering o = ordering_of(part, way);
    take_lines(b, part, &o);
    RootList left = give_places(b, part, &o);
    o.team = cost.launches > 0;
    int64_t words = ordering_work(b->k, &o) / (int64_t)elem_bytes(TY_I64);
    Type type = {.elem = TY_I64, .rank = 1, .dim = {words}};
    bool each = o.team && way != ORDER_LONG;
    o.work = each ? kernel_row(b, type, "order") : kernel_work(b, type, 0, "order");
    *stmt_order(b->k, &b->k->body)->order = o;
    if (left.count > 0) {
        copy_all(b, &part->rows, &part->columns, &left);
    }
}

static void lines_emit(KernelBuild *b, const Part *part, void *plan) {
    order_emit(b, part, ORDER_LINES, lines_cost(b, part, plan));
}

static void long_emit(KernelBuild *b, const Part *part, void *plan) {
    order_emit(b, part, ORDER_LONG, long_cost(b, part, plan));
}

static void first_emit(KernelBuild *b, const Part *part, void *plan) {
    order_emit(b, part, ORDER_FIRST, first_cost(b, part, plan));
}

const Schedule cpu_order_lines = {"lines", 1 << PART_ORDER, lines_fit, lines_cost, lines_emit};
const Schedule cpu_order_long = {"long", 1 << PART_ORDER, long_fits, long_cost, long_emit};
const Schedule cpu_order_first = {"first", 1 << PART_ORDER, NULL, first_cost, first_emit};
