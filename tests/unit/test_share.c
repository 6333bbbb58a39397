/* What the checker reads off kernels: pairs that may share storage and pairs that must not, made by
 * hand; random kernels and the kernels of the samples against a run of their loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiled.h"
#include "emit/printer.h"
#include "kernel_walk.h"
#include "passes/check.h"
#include "passes/check_kernel.h"
#include "random_program.h"

/* ---- by hand -------------------------------------------------------------------------------- */

enum { N = 8 };

/* A kernel over `in`, `other` and `out`, all [N, N] (or of the type asked for). */
typedef struct {
    Arena *arena;
    Program *p;
    ProgramEntry *e;
    Kernel *k;
    Buf *in, *other, *out, *out2, *work;
    int m, n;
    const Index *im, *in_, *flat; /* m, n, m * N + n */
} Hand;

static Hand *hand_open(Arena *arena) {
    Hand *h = ARENA_NEW(arena, Hand);
    h->arena = arena;
    h->p = random_program(arena, 5, 0);
    h->e = h->p->entry.at[0];
    Type type = type_make(TY_F32, 2, (int64_t[]){N, N});
    h->in = buf_new(h->p, h->e, BUF_TEMP, type, "in_");
    h->other = buf_new(h->p, h->e, BUF_TEMP, type, "other");
    h->out = buf_new(h->p, h->e, BUF_TEMP, type, "out_");
    h->out2 = buf_new(h->p, h->e, BUF_TEMP, type, "out2");
    h->work = buf_new(h->p, h->e, BUF_WORK, type, "panels");
    Kernel *k = h->k = kernel_new(arena, 2);
    h->m = kernel_axis(k, N, "m");
    h->n = kernel_axis(k, N, "n");
    h->im = kernel_axis_index(k, h->m);
    h->in_ = kernel_axis_index(k, h->n);
    h->flat = index_add(&k->index, index_scale(&k->index, h->im, N), h->in_);
    return h;
}

static const Expr *load_at(Hand *h, Buf *buf, const Index *at) {
    return expr_load(h->k, kernel_arg(h->k, buf, ACCESS_READ), at, NULL);
}

static void store_at(Hand *h, StmtList *list, Buf *buf, const Index *at, const Expr *value) {
    stmt_store(h->k, list, kernel_arg(h->k, buf, ACCESS_WRITE), at, value);
}

static StmtList *loops(Hand *h) {
    return &stmt_for(h->k, &stmt_for(h->k, &h->k->body, h->m)->body, h->n)->body;
}

static const Expr *fold_over(Hand *h, StmtList *list, int axis, Buf *buf, const Index *at) {
    const Expr *load = load_at(h, buf, at);
    const Expr *fold = expr_fold(h->k, OP_SUM, TY_F32, load, (AxisSet)1 << axis);
    Stmt *s = stmt_fold(h->k, list, axis);
    VEC_PUSH(h->k->arena, &s->fold, fold);
    return fold;
}

static const Expr *plus(Hand *h, const Expr *a, const Expr *b) {
    const Expr *in[2] = {a, b};
    return expr_map(h->k, OP_ADD, TY_F32, in, 2);
}

static void elementwise(Hand *h) {
    store_at(h, loops(h), h->out, h->flat, load_at(h, h->in, h->flat));
}

static void elementwise_of_let(Hand *h) {
    StmtList *list = loops(h);
    const Expr *x = load_at(h, h->in, h->flat);
    stmt_let(h->k, list, x, NULL);
    store_at(h, list, h->out2, h->flat, x);
    store_at(h, list, h->out, h->flat, plus(h, x, x));
}

static void softmax_rows(Hand *h) {
    StmtList *row = &stmt_for(h->k, &h->k->body, h->m)->body;
    const Expr *most = fold_over(h, row, h->n, h->in, h->flat);
    store_at(h, &stmt_for(h->k, row, h->n)->body, h->out, h->flat,
             plus(h, most, load_at(h, h->in, h->flat)));
}

static void norm_first(Hand *h) {
    int w = kernel_axis(h->k, (int64_t)N * N, "w");
    const Expr *sum = fold_over(h, &h->k->body, w, h->in, kernel_axis_index(h->k, w));
    store_at(h, loops(h), h->out, h->flat, plus(h, sum, load_at(h, h->in, h->flat)));
}

static void blocks(Hand *h) {
    IndexTable *t = &h->k->index;
    int slow = kernel_axis(h->k, 3, "c"), fast = kernel_axis(h->k, 3, "c");
    StmtList *list = &stmt_for(h->k, &h->k->body, slow)->body;
    list = &stmt_for(h->k, list, fast)->body;
    Stmt *s = stmt_for(h->k, list, h->m);
    s->begin = index_scale(t, kernel_axis_index(h->k, slow), 3);
    s->span = 3;
    s = stmt_for(h->k, &s->body, h->n);
    s->begin = index_scale(t, kernel_axis_index(h->k, fast), 3);
    s->span = 3;
    store_at(h, &s->body, h->out, h->flat, load_at(h, h->in, h->flat));
}

/* What is read lies behind, or before, all that is written. */
static void row_behind_to_first(Hand *h) {
    StmtList *list = &stmt_for(h->k, &h->k->body, h->n)->body;
    store_at(h, list, h->out, h->in_, load_at(h, h->in, index_offset(&h->k->index, h->in_, N)));
}

static void first_to_row_behind(Hand *h) {
    StmtList *list = &stmt_for(h->k, &h->k->body, h->n)->body;
    store_at(h, list, h->out, index_offset(&h->k->index, h->in_, N), load_at(h, h->in, h->in_));
}

static void blocks_that_overlap(Hand *h) {
    int slow = kernel_axis(h->k, 3, "c");
    Stmt *s = stmt_for(h->k, &stmt_for(h->k, &h->k->body, slow)->body, h->m);
    s->begin = index_scale(&h->k->index, kernel_axis_index(h->k, slow), 2);
    s->span = 3;
    s = stmt_for(h->k, &s->body, h->n);
    store_at(h, &s->body, h->out, h->flat, load_at(h, h->in, h->flat));
}

static void digits_of_a_flat_loop(Hand *h) {
    IndexTable *t = &h->k->index;
    int i = kernel_axis(h->k, (int64_t)N * N, "i");
    const Index *flat = kernel_axis_index(h->k, i);
    const Index *row = index_div(t, flat, N), *column = index_mod(t, flat, N);
    const Index *turned = index_add(t, index_scale(t, column, N), row);
    store_at(h, &stmt_for(h->k, &h->k->body, i)->body, h->out, turned, load_at(h, h->in, turned));
}

static void quotient_alone(Hand *h) {
    int i = kernel_axis(h->k, (int64_t)N * N, "i");
    const Index *half = index_div(&h->k->index, kernel_axis_index(h->k, i), 2);
    store_at(h, &stmt_for(h->k, &h->k->body, i)->body, h->out, half, load_at(h, h->in, half));
}

static void broadcast(Hand *h) {
    store_at(h, loops(h), h->out, h->flat, load_at(h, h->in, h->in_));
}

static void transposed(Hand *h) {
    IndexTable *t = &h->k->index;
    const Index *turned = index_add(t, index_scale(t, h->in_, N), h->im);
    store_at(h, loops(h), h->out, h->flat, load_at(h, h->in, turned));
}

static void shifted(Hand *h) {
    Stmt *s = stmt_for(h->k, &h->k->body, h->n);
    s->span = N - 1;
    store_at(h, &s->body, h->out, h->in_, load_at(h, h->in, index_offset(&h->k->index, h->in_, 1)));
}

static void same_place_in_every_row(Hand *h) {
    store_at(h, loops(h), h->out, h->in_, load_at(h, h->in, h->in_));
}

static void read_behind_the_loop(Hand *h) {
    elementwise(h);
    store_at(h, loops(h), h->out2, h->flat, load_at(h, h->in, h->flat));
}

static void read_behind_the_store(Hand *h) {
    StmtList *list = loops(h);
    store_at(h, list, h->out, h->flat, expr_const(h->k, TY_F32, 1));
    store_at(h, list, h->out2, h->flat, load_at(h, h->in, h->flat));
}

static void norm_inside(Hand *h) {
    int w = kernel_axis(h->k, (int64_t)N * N, "w");
    StmtList *list = loops(h);
    const Expr *sum = fold_over(h, list, w, h->in, kernel_axis_index(h->k, w));
    store_at(h, list, h->out, h->flat, plus(h, sum, load_at(h, h->in, h->flat)));
}

static void row_of_the_next(Hand *h) {
    StmtList *row = &stmt_for(h->k, &h->k->body, h->m)->body;
    const Index *near = index_add(&h->k->index, index_scale(&h->k->index, h->im, N - 1), h->in_);
    const Expr *sum = fold_over(h, row, h->n, h->in, near); /* rows overlap by one */
    store_at(h, &stmt_for(h->k, row, h->n)->body, h->out, h->flat, sum);
}

static void column_sum(Hand *h) {
    StmtList *list = &stmt_for(h->k, &h->k->body, h->n)->body;
    store_at(h, list, h->out, h->in_, expr_const(h->k, TY_F32, 0));
    list = loops(h);
    store_at(h, list, h->out, h->in_, load_at(h, h->in, h->flat));
    list->at[0]->add = OP_ADD;
}

static void gathered(Hand *h) {
    Type type = type_make(TY_I32, 1, (int64_t[]){N});
    Buf *where = buf_new(h->p, h->e, BUF_TEMP, type, "where");
    const Expr *v = load_at(h, where, h->in_);
    const Index *at = index_value(&h->k->index, v, v->axes, 0, N - 1);
    store_at(h, &stmt_for(h->k, &h->k->body, h->n)->body, h->out, at, load_at(h, h->in, at));
}

static void other_type(Hand *h) {
    Type type = *h->out->type;
    type.elem = TY_I32;
    buf_set_type(h->p, h->out, type);
    const Expr *x = load_at(h, h->in, h->flat);
    store_at(h, loops(h), h->out, h->flat, expr_map(h->k, OP_CAST, TY_I32, &x, 1));
}

static void written_itself(Hand *h) {
    StmtList *list = loops(h);
    store_at(h, list, h->out, h->flat, load_at(h, h->in, h->flat));
    store_at(h, list, h->in, h->flat, expr_const(h->k, TY_F32, 0));
}

/* out2 = in x other, out = the epilogue's; by `role` the operand that the pair names. */
static Tile *product(Hand *h, Buf *a, Buf *b, Buf *c) {
    Tile *t = stmt_tile(h->k, &h->k->body)->tile;
    t->batch = kernel_axis(h->k, 1, "batch");
    t->row = h->m;
    t->column = h->n;
    t->at_a = t->at_b = t->at_c = index_const(&h->k->index, 0);
    t->a = kernel_arg(h->k, a, ACCESS_READ);
    t->b = kernel_arg(h->k, b, ACCESS_READ);
    t->c = kernel_arg(h->k, c, ACCESS_WRITE);
    t->work = kernel_arg(h->k, h->work, ACCESS_READ | ACCESS_WRITE);
    t->count = (int64_t)N * N;
    Buf *block = ARENA_NEW(h->k->arena, Buf);
    block->type = c->type;
    block->storage = block;
    block->name = "strip";
    Arg *strip = kernel_arg(h->k, block, ACCESS_READ | ACCESS_WRITE);
    strip->strip = true;
    t->strip = strip;
    return t;
}

static StmtList *epilogue(Hand *h, Tile *t) {
    return &stmt_for(h->k, &stmt_for(h->k, &t->body, h->m)->body, h->n)->body;
}

static void product_over_a(Hand *h) {
    product(h, h->in, h->other, h->out);
}

static void product_over_b(Hand *h) {
    product(h, h->other, h->in, h->out);
}

static void product_over_epilogue(Hand *h) {
    Tile *t = product(h, h->other, h->other, h->out);
    store_at(h, epilogue(h, t), h->out2, h->flat, load_at(h, h->in, h->flat));
}

static void epilogue_over_a(Hand *h) {
    Tile *t = product(h, h->in, h->other, h->out2);
    store_at(h, epilogue(h, t), h->out, h->flat, expr_const(h->k, TY_F32, 0));
}

static void epilogue_over_residual(Hand *h) {
    Tile *t = product(h, h->other, h->other, h->out2);
    store_at(h, epilogue(h, t), h->out, h->flat, load_at(h, h->in, h->flat));
}

/* Read once for each row of a block: the next block of columns reads it again. */
static void epilogue_over_row(Hand *h) {
    Tile *t = product(h, h->other, h->other, h->out2);
    StmtList *row = &stmt_for(h->k, &t->body, h->m)->body;
    const Expr *x = load_at(h, h->in, index_scale(&h->k->index, h->im, N));
    stmt_let(h->k, row, x, NULL);
    store_at(h, &stmt_for(h->k, row, h->n)->body, h->out, h->flat, x);
}

static void product_that_adds(Hand *h) {
    Tile *t = product(h, h->other, h->other, h->out);
    t->add = kernel_arg(h->k, h->in, ACCESS_READ);
}

static void product_that_adds_its_operand(Hand *h) {
    Tile *t = product(h, h->in, h->other, h->out);
    t->add = kernel_arg(h->k, h->in, ACCESS_READ);
}

static void product_in_a_loop(Hand *h) {
    Tile *t = product(h, h->other, h->other, h->out);
    t->add = kernel_arg(h->k, h->in, ACCESS_READ);
    Stmt *inner = h->k->body.at[0];
    h->k->body.count = 0;
    int r = kernel_axis(h->k, 3, "r");
    Stmt *outer = stmt_for(h->k, &h->k->body, r);
    VEC_PUSH(h->k->arena, &outer->body, inner);
}

static const struct {
    const char *name;
    void (*make)(Hand *h);
    const char *fault; /* NULL: may share */
} hands[] = {
#define HAND(name, fault)                                                                          \
    { #name, name, fault }
    HAND(elementwise, NULL),
    HAND(elementwise_of_let, NULL),
    HAND(softmax_rows, NULL),
    HAND(norm_first, NULL),
    HAND(blocks, NULL),
    HAND(digits_of_a_flat_loop, NULL),
    HAND(row_behind_to_first, NULL),
    HAND(first_to_row_behind, NULL),
    HAND(epilogue_over_residual, NULL),
    HAND(product_that_adds, NULL),
    HAND(blocks_that_overlap, "an iteration of c may read of in_ what another one writes to out_"),
    HAND(quotient_alone, "an iteration of i may read of in_ what another one writes to out_"),
    HAND(broadcast, "an iteration of m may read of in_ what another one writes to out_"),
    HAND(transposed, "an iteration of m may read of in_ what another one writes to out_"),
    HAND(shifted, "an iteration of n may read of in_ what another one writes to out_"),
    HAND(same_place_in_every_row,
         "an iteration of m may read of in_ what another one writes to out_"),
    HAND(read_behind_the_loop, "in_ is read after out_ is written"),
    HAND(read_behind_the_store, "in_ is read after out_ is written"),
    HAND(norm_inside, "an iteration of m may read of in_ what another one writes to out_"),
    HAND(row_of_the_next, "an iteration of m may read of in_ what another one writes to out_"),
    HAND(column_sum, "in_ is read after out_ is written"),
    HAND(gathered, "an iteration of n may read of in_ what another one writes to out_"),
    HAND(other_type, "their element types differ"),
    HAND(written_itself, "in_ is written too"),
    HAND(product_over_a, "in_ is read after out_ is written"),
    HAND(product_over_b, "in_ is read after out_ is written"),
    HAND(product_over_epilogue, "in_ is read after out_ is written"),
    HAND(epilogue_over_a, "in_ is read after out_ is written"),
    HAND(epilogue_over_row, "an iteration of n may read of in_ what another one writes to out_"),
    HAND(product_that_adds_its_operand, "in_ is read after out_ is written"),
    HAND(product_in_a_loop, "an iteration of r may read of in_ what another one writes to out_"),
#undef HAND
};

static void test_hand_made(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof hands / sizeof *hands; i++) {
        Arena arena = {0};
        Hand *h = hand_open(&arena);
        hands[i].make(h);
        const Call *call = &h->k->call;
        const char *fault = kernel_share_fault(kernel_sites(&arena, h->k), call, h->in, h->out);
        bool same = hands[i].fault == NULL ? fault == NULL
                                           : fault != NULL && strcmp(fault, hands[i].fault) == 0;
        if (!same) {
            fail_msg("%s: %s", hands[i].name, fault != NULL ? fault : "passes");
        }
        /* What passes does no harm; what is refused for its places does some. */
        bool clobbers = kernel_clobbers(h->k, &h->k->call, h->in, h->out);
        bool by_type = hands[i].make == other_type;
        bool by_place = fault != NULL && !by_type && hands[i].make != gathered;
        if (fault == NULL ? clobbers : by_place && !clobbers) {
            fail_msg("%s: the loops %s", hands[i].name, clobbers ? "clobber" : "do no harm");
        }
        arena_free(&arena);
    }
}

/* ---- random --------------------------------------------------------------------------------- */

typedef struct {
    Hand *h;
    uint64_t random;
    int axis[4], naxis; /* bound now */
    int left;           /* statements */
    const Index *last;  /* of the last load or store */
    VEC(const Expr *) let;
} Gen;

static int64_t pick(Gen *g, int64_t n) {
    return (int64_t)(random_next(&g->random) % (uint64_t)n);
}

/* A place made of the bound axes: mostly the one before, or all axes in some order. */
static const Index *random_index(Gen *g) {
    IndexTable *t = &g->h->k->index;
    const Index *at = index_const(t, pick(g, 5) == 0 ? pick(g, 3) : 0);
    if (g->last != NULL && pick(g, 3) > 0) {
        AxisSet bound = 0;
        for (int i = 0; i < g->naxis; i++) {
            bound |= (AxisSet)1 << g->axis[i];
        }
        if ((g->last->axes & ~bound) == 0) {
            return g->last;
        }
    }
    int64_t stride = 1, begin = pick(g, g->naxis + 1);
    for (int i = 0; i < g->naxis; i++) {
        int axis = g->axis[(begin + i) % g->naxis];
        int64_t extent = g->h->k->axis[axis].extent;
        const Index *x = kernel_axis_index(g->h->k, axis);
        switch (pick(g, 10)) {
        case 0: continue; /* left out */
        case 1: x = index_div(t, x, 2); break;
        case 2:
            x = index_add(t, index_scale(t, index_mod(t, x, 2), (extent + 1) / 2),
                          index_div(t, x, 2));
            break;
        case 3: stride = stride > 1 ? stride - 1 : 1; break;
        default: break;
        }
        at = index_add(t, at, index_scale(t, x, stride));
        stride *= extent;
    }
    return g->last = pick(g, 12) == 0 ? index_div(t, at, 2) : at;
}

static const Expr *random_load(Gen *g) {
    Hand *h = g->h;
    return load_at(h, pick(g, 4) == 0 ? h->other : h->in, random_index(g));
}

static bool is_bound(const Gen *g, const Expr *e) {
    for (int i = 0; i < g->let.count; i++) {
        if (g->let.at[i] == e) {
            return true;
        }
    }
    return false;
}

static void random_list(Gen *g, StmtList *list, int depth) {
    Hand *h = g->h;
    const Expr *value = expr_const(h->k, TY_F32, 1);
    int nlet = g->let.count;
    for (int n = 1 + (int)pick(g, 3); n > 0 && g->left > 0; n--) {
        g->left--;
        int64_t what = depth < 3 && g->naxis < 4 ? pick(g, 5) : 2 + pick(g, 3);
        int axis = -1;
        if (what < 2) {
            axis = kernel_axis(h->k, 1 + pick(g, 4), "x");
            g->axis[g->naxis++] = axis;
        }
        if (what == 0) {
            Stmt *s = stmt_for(h->k, list, axis);
            if (pick(g, 4) == 0 && g->naxis > 1) { /* a block of its axis */
                int by = g->axis[g->naxis - 2];
                int64_t step = 1 + pick(g, 2);
                s->begin = index_scale(&h->k->index, kernel_axis_index(h->k, by), step);
                s->span = 1 + pick(g, 2);
                h->k->axis[axis].extent = (h->k->axis[by].extent - 1) * step + s->span;
            }
            random_list(g, &s->body, depth + 1);
            g->naxis--;
        } else if (what == 1) {
            const Expr *load = random_load(g);
            const Expr *fold = expr_fold(h->k, OP_SUM, TY_F32, load, (AxisSet)1 << axis);
            Stmt *s = stmt_fold(h->k, list, axis);
            VEC_PUSH(h->k->arena, &s->fold, fold);
            value = plus(h, value, fold);
            g->naxis--;
        } else if (what == 2) {
            const Expr *load = random_load(g);
            if (!is_bound(g, load)) {
                stmt_let(h->k, list, load, NULL);
                VEC_PUSH(h->arena, &g->let, load);
            }
            value = plus(h, value, load);
        } else {
            value = pick(g, 2) ? plus(h, value, random_load(g)) : value;
            store_at(h, list, pick(g, 4) == 0 ? h->out2 : h->out, random_index(g), value);
        }
    }
    g->let.count = nlet;
}

static uint64_t setting(const char *name, uint64_t other) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : other;
}

static void test_random_kernels(void **state) {
    (void)state;
    uint64_t seed = setting("SEED", 1), count = setting("COUNT", 10000);
    int shared = 0, refused = 0, strict = 0;
    for (uint64_t i = 0; i < count; i++) {
        Arena arena = {0};
        Gen g = {.h = hand_open(&arena), .random = seed * 1000003 + i, .left = 10};
        Type large = type_make(TY_F32, 1, (int64_t[]){4096});
        Buf *const all[] = {g.h->in, g.h->other, g.h->out, g.h->out2};
        for (int k = 0; k < 4; k++) {
            buf_set_type(g.h->p, all[k], large);
        }
        random_list(&g, &g.h->k->body, 0);
        const KernelSites *sites = kernel_sites(&arena, g.h->k);
        const char *fault = kernel_share_fault(sites, &g.h->k->call, g.h->in, g.h->out);
        bool clobbers = kernel_clobbers(g.h->k, &g.h->k->call, g.h->in, g.h->out);
        if (fault == NULL && clobbers) {
            Step step = {.kind = STEP_KERNEL, .name = "k", .kernel = g.h->k};
            Text text = {.arena = &arena};
            Products none = {.arena = &arena};
            printer_c.kernel(&text, &none, &step);
            fail_msg("SEED=%llu, kernel %llu: a harmful pair passes\n%s", (unsigned long long)seed,
                     (unsigned long long)i, text.at);
        }
        shared += fault == NULL;
        refused += clobbers;
        strict += fault != NULL && !clobbers;
        arena_free(&arena);
    }
    print_message("SEED=%llu: %d kernels may share, %d must not, %d are refused without need\n",
                  (unsigned long long)seed, shared, refused, strict);
    assert_true(shared > (int)(count / 20) && refused > (int)(count / 4));
}

/* ---- samples -------------------------------------------------------------------------------- */

typedef struct {
    int shared, refused, strict, stated;
    const char *path;
} Pairs;

static void visit_pairs(void *ctx, Step *step, int depth) {
    Pairs *pairs = ctx;
    Arena arena = {0};
    (void)depth;
    if (step->kind != STEP_KERNEL) {
        return;
    }
    const KernelSites *sites = kernel_sites(&arena, step->kernel);
    assert_null(kernel_access_fault(sites, step));
    pairs->stated += step->inplace.count;
    for (int i = 0; i < step->access.count; i++) {
        for (int k = 0; k < step->access.count; k++) {
            const Access *x = &step->access.at[i], *y = &step->access.at[k];
            if (!(x->mode & ACCESS_WRITE) || x->buf->kind == BUF_WORK || y->mode != ACCESS_READ ||
                x->buf->type->elem != y->buf->type->elem ||
                type_count(*x->buf->type) != type_count(*y->buf->type)) {
                continue;
            }
            const char *fault = kernel_share_fault(sites, &step->call, y->buf, x->buf);
            bool clobbers = kernel_clobbers(step->kernel, &step->call, y->buf, x->buf);
            if (fault == NULL && clobbers) {
                fail_msg("%s: %s: %s over %s passes", pairs->path, step->name, x->buf->name,
                         y->buf->name);
            }
            pairs->shared += fault == NULL;
            pairs->refused += clobbers;
            pairs->strict += fault != NULL && !clobbers;
        }
    }
    arena_free(&arena);
}

static void test_programs(void **state) {
    (void)state;
    static const char *const patterns[] = {"samples/*.mdl", "tests/library/*.mdl",
                                           "tests/cases/run/*.mdl"};
    Pairs pairs = {0};
    int programs = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        glob_t found;
        assert_int_equal(glob(patterns[i], 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            bool sample = i == 0; /* the others have the same kernels with the library as without */
            for (int openblas = 0; openblas < (sample ? 2 : 1); openblas++) {
                Dumped m;
                pairs.path = found.gl_pathv[k];
                Program *p = compiled_program(&m, pairs.path, 2, openblas);
                if (p == NULL) {
                    continue; /* a text that needs settings */
                }
                for (int e = 0; e < p->entry.count; e++) {
                    steps_visit(&p->entry.at[e]->step, visit_pairs, &pairs);
                }
                programs++;
                dumped_done(&m);
            }
        }
        globfree(&found);
    }
    print_message("%d programs: %d pairs may share (%d stated), %d must not, %d refused without "
                  "need\n",
                  programs, pairs.shared, pairs.stated, pairs.refused, pairs.strict);
    assert_true(programs >= 20 && pairs.shared >= 100 && pairs.refused >= 20);
}

/* ---- planted in a program ------------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    const Program *p;
    int planted;
    const char *missed;
} Plant;

/* Names one pair more, which the loops show to be wrong; the checker must name it. */
static void plant_pair(void *ctx, Step *step, int depth) {
    Plant *plant = ctx;
    (void)depth;
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        for (int k = 0; k < step->access.count; k++) {
            const Access *x = &step->access.at[i], *y = &step->access.at[k];
            if (!(x->mode & ACCESS_WRITE) || x->buf->kind == BUF_WORK || y->mode != ACCESS_READ ||
                type_count(*x->buf->type) != type_count(*y->buf->type) ||
                !kernel_clobbers(step->kernel, &step->call, y->buf, x->buf)) {
                continue;
            }
            VEC_PUSH(plant->arena, &step->inplace, ((InplacePair){y->buf, x->buf}));
            const char *fault = check_program(plant->arena, plant->p);
            const char *wanted = str_printf(plant->arena, "the pair (%s over %s) is wrong",
                                            x->buf->name, y->buf->name);
            if (fault == NULL || strstr(fault, wanted) == NULL) {
                plant->missed =
                    str_printf(plant->arena, "%s: %s", wanted, fault != NULL ? fault : "passes");
            }
            step->inplace.count--;
            plant->planted++;
        }
    }
}

static void test_planted_pairs(void **state) {
    (void)state;
    static const char *const paths[] = {"samples/digits.mdl", "samples/chars.mdl",
                                        "samples/residual.mdl"};
    Plant plant = {0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        Dumped m;
        Program *p = compiled_program(&m, paths[i], 2, false);
        assert_non_null(p);
        compiled_plan(p);
        plant.arena = &m.c.arena;
        plant.p = p;
        assert_null(check_program(&m.c.arena, p));
        for (int e = 0; e < p->entry.count; e++) {
            steps_visit(&p->entry.at[e]->step, plant_pair, &plant);
            if (plant.missed != NULL) {
                fail_msg("%s: %s", paths[i], plant.missed);
            }
        }
        dumped_done(&m);
    }
    print_message("%d wrong pairs are named\n", plant.planted);
    assert_true(plant.planted >= 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_made),
        cmocka_unit_test(test_random_kernels),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_planted_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
