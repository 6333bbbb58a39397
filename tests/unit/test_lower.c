/* Lowering: every op sample, and programs of several ops, compiled and compared with the evaluator;
 * how many kernels the patterns of training need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/eval.h"
#include "lowered.h"
#include "op_sample.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/schedule/schedule.h"
#include "passes/simplify.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRICT " -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-unused-function"
static const char *const strict = "-std=c11 -O0" STRICT;

typedef struct {
    Compile compile;
    Graph *g;
    Region *region;
    Sample s;
    Lowered lowered;
    bool planned;
    int stored;     /* random choices of values that are stored, for each case; 0: none */
    VEC(int) first; /* by case: the one whose bits it has, or itself */
    VEC(Value *) expect;
    VEC(const char *) name;
} Test;

static void test_open(Test *t, Elem elem) {
    *t = (Test){.g = NULL};
    diag_open(&t->compile.diag, &t->compile.arena, stderr);
    t->compile.opt.threads = 4;
    t->compile.opt.float_type = elem;
    t->g = graph_new(&t->compile.arena, elem);
    lowered_open(&t->lowered, &t->compile);
}

static void case_open(Test *t, uint64_t seed) {
    t->region = region_new(t->g, NULL);
    graph_enter(t->g, t->region);
    t->s = (Sample){.g = t->g, .rng = seed, .elem = t->g->float_type};
}

static void keep_expected(Test *t, const Region *region, const char *name) {
    Eval *ev = eval_open(&t->compile.arena, (EvalOptions){.round = true});
    for (int k = 0; k < t->s.nslot; k++) {
        eval_bind(ev, t->s.slot[k], t->s.data[k]);
    }
    Value *out = ARENA_ARRAY(&t->compile.arena, Value, region->out.count);
    eval_region(ev, region, out);
    VEC_PUSH(&t->compile.arena, &t->expect, out);
    VEC_PUSH(&t->compile.arena, &t->name, name);
}

static Program *case_lower(Test *t, Region *region, const char *name) {
    Program *p = lowered_program(&t->lowered, region, t->s.slot, t->s.nslot);
    assert_int_equal(t->compile.diag.errors, 0);
    if (t->planned) {
        lowered_plan(&t->lowered, p);
    }
    VEC_PUSH(&t->compile.arena, &t->first, lowered_add(&t->lowered, p, t->s.data));
    keep_expected(t, region, name);
    return p;
}

/* The same with other values stored, which changes no bits. */
static void case_stored(Test *t, Region *region, const char *name) {
    int first = t->first.at[t->first.count - 1];
    for (int i = 1; i <= t->stored; i++) {
        t->compile.opt.stored = (uint64_t)(1000 * first + i);
        case_lower(t, region, name);
        t->first.at[t->first.count - 1] = first;
    }
    t->compile.opt.stored = 0;
}

static int different(const Test *t, int i) {
    const Region *region = t->lowered.program.at[i]->entry.at[0]->entry->region;
    int bad = 0;
    for (int k = 0; k < region->out.count; k++) {
        const double *got = t->lowered.result.at[i][k],
                     *want = t->lowered.result.at[t->first.at[i]][k];
        int64_t n = type_count(*region->out.at[k]->type), j = 0;
        while (j < n && (got[j] == want[j] || (isnan(got[j]) && isnan(want[j])))) {
            j++;
        }
        if (j < n) {
            printf("%s, other values stored (%d): element %lld of result %d is %a, not %a\n",
                   t->name.at[i], i - t->first.at[i], (long long)j, k, got[j], want[j]);
            bad++;
        }
    }
    return bad;
}

static void run_all(Test *t, const char *flags, double tolerance) {
    int bad = 0;
    assert_true(lowered_run(&t->lowered, flags));
    for (int i = 0; i < t->expect.count; i++) {
        const Region *region = t->lowered.program.at[i]->entry.at[0]->entry->region;
        for (int k = 0; k < region->out.count; k++) {
            double scale = 0, worst = 0;
            int64_t n = type_count(*region->out.at[k]->type);
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j);
                scale = isfinite(want) && fabs(want) > scale ? fabs(want) : scale;
            }
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j), got = t->lowered.result.at[i][k][j];
                double err = want == got || (isnan(want) && isnan(got)) ? 0 : fabs(want - got);
                worst = worse_gap(worst, err);
            }
            bool exact = !elem_is_float(region->out.at[k]->type->elem);
            double limit = exact ? 0 : tolerance * (scale + 1e-3);
            if (!(worst <= limit)) {
                printf("case %d %s, result %d: error %g of %g\n", i, t->name.at[i], k, worst,
                       scale);
                bad++;
            }
        }
        bad += different(t, i);
    }
    assert_int_equal(bad, 0);
}

/* Values between kernels in 16 bits: half the bytes, and numbers that are rounded to that and to
 * nothing less. */
static int narrow_bufs(const Program *p, Elem storage) {
    const ProgramEntry *e = p->entry.at[0];
    int n = 0;
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        if (buf->type->elem == storage) {
            assert_int_equal(buf->kind, BUF_TEMP);
            assert_true(buf->bytes == 2 * type_count(*buf->type));
            n++;
        }
    }
    return n;
}

static void test_close(Test *t) {
    lowered_close(&t->lowered);
    arena_free(&t->compile.arena);
}

/* --- every op --------------------------------------------------------------------------------- */

static void sweep(Elem elem, bool derivative, double tolerance) {
    Test t;
    test_open(&t, elem);
    int cases = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        for (int variant = 0;; variant++) {
            case_open(&t, 1000 * (uint64_t)op + (uint64_t)variant + 7);
            Node *node = sample_build(&t.s, (OpCode)op, variant);
            if (!node) {
                break;
            }
            if (derivative && !elem_is_float(node->type->elem)) {
                continue;
            }
            if (derivative) {
                Node *w = sample_table(&t.s, *node->type, -1, 1);
                Node *y = node_map2(t.g, OP_MUL, node, w);
                y = y->type->rank ? node_fold(t.g, OP_SUM, y, (1u << y->type->rank) - 1) : y;
                Node *one = node_const(t.g, y->type->elem, 1);
                for (int k = 0; k < t.s.nslot; k++) {
                    if (elem_is_float(t.s.slot[k]->type.elem)) {
                        Node *x = node_slot(t.g, t.s.slot[k]);
                        region_result(t.region, node_grad(t.g, y, x, one));
                    }
                }
                if (t.region->out.count == 0) {
                    continue;
                }
            } else {
                region_result(t.region, node);
            }
            t.region = pass_grad(t.g, t.region, GRAD_SAVE_CALLS); /* marks go there too */
            char name[64];
            snprintf(name, sizeof name, "%s %d", op_info[op].name, variant);
            case_lower(&t, t.region, str_dup(&t.compile.arena, name));
            cases++;
        }
    }
    printf("%d cases\n", cases);
    run_all(&t, strict, tolerance);
    test_close(&t);
}

static void test_ops_f32(void **state) {
    (void)state;
    sweep(TY_F32, false, 1e-5);
}

static void test_ops_f64(void **state) {
    (void)state;
    sweep(TY_F64, false, 1e-13);
}

static void test_gradients(void **state) {
    (void)state;
    sweep(TY_F64, true, 1e-12);
}

/* --- random graphs ---------------------------------------------------------------------------- */

enum { POOL = 40 };

typedef struct {
    Test *t;
    Node *node[POOL];
    int n;
} Pool;

static Node *any(Pool *p) {
    return p->node[sample_below(&p->t->s, p->n)];
}

static void put(Pool *p, Node *node) {
    if (node && type_count(*node->type) <= 4000 && node->type->rank < MD_RANK - 1) {
        p->node[p->n < POOL ? p->n++ : sample_below(&p->t->s, POOL)] = node;
    }
}

/* Keeps numbers small, so that errors stay comparable. */
static Node *bounded(Pool *p, Node *a) {
    return node_map1(p->t->g, OP_TANH, a);
}

static Node *random_view(Pool *p, Node *a) {
    Sample *s = &p->t->s;
    Graph *g = p->t->g;
    int rank = a->type->rank, axis = rank ? (int)sample_below(s, rank) : 0;
    int64_t n = rank ? a->type->dim[axis] : 1, dim[MD_RANK], lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    int map[MD_RANK];
    memcpy(dim, a->type->dim, sizeof dim);
    switch (rank ? sample_below(s, 8) : 5) {
    case 0: /* merge two axes */
        if (axis + 1 == rank) {
            return NULL;
        }
        dim[axis] *= dim[axis + 1];
        memmove(&dim[axis + 1], &dim[axis + 2], sizeof *dim * (size_t)(rank - axis - 2));
        return node_reshape(g, a, rank - 1, dim);
    case 1: /* split one */
        for (int64_t f = 2; f < 8; f++) {
            if (n % f == 0) {
                memmove(&dim[axis + 1], &dim[axis], sizeof *dim * (size_t)(rank - axis));
                dim[axis] = f;
                dim[axis + 1] = n / f;
                return node_reshape(g, a, rank + 1, dim);
            }
        }
        return NULL;
    case 2:
        for (int i = 0; i < rank; i++) {
            map[i] = (i + 1 + axis) % rank;
        }
        return node_permute(g, a, map);
    case 3: return n > 2 ? node_slice_axis(g, a, axis, 1, (n - 1) / 2, 2) : NULL;
    case 4:
        lo[axis] = sample_below(s, 3);
        hi[axis] = sample_below(s, 3);
        return node_pad(g, a, lo, hi, (Border)(BORDER_VALUE + sample_below(s, n >= 3 ? 3 : 2)),
                        0.25);
    case 5:
        memmove(&dim[axis + 1], &dim[axis], sizeof *dim * (size_t)(rank - axis));
        dim[axis] = 1 + sample_below(s, 20);
        return node_broadcast(g, a, 1u << axis, rank + 1, dim);
    case 6: return node_flip(g, a, 1u << axis);
    default: return node_window(g, a, axis, 1, 1, 1, n, 3, BORDER_VALUE, 0);
    }
}

/* Something of the shape of `a`: another of the pool, or a fold of it broadcast back. */
static Node *partner(Pool *p, Node *a) {
    Sample *s = &p->t->s;
    Graph *g = p->t->g;
    for (int tries = 0; tries < 8; tries++) {
        Node *b = any(p);
        if (type_equal(*a->type, *b->type)) {
            return b;
        }
    }
    if (a->type->rank == 0) {
        return a;
    }
    uint32_t axes = 1u + (uint32_t)sample_below(s, (1 << a->type->rank) - 1);
    OpCode op = sample_below(s, 2) ? OP_SUM : OP_FMAX;
    Node *b = bounded(p, node_fold(g, op, a, axes));
    return node_broadcast(g, b, axes, a->type->rank, a->type->dim);
}

static Node *random_contract(Pool *p, Node *a) {
    Node *b = any(p);
    if (a->type->rank == 0 || b->type->rank == 0 || a->type->rank + b->type->rank > 7) {
        return NULL;
    }
    int i = (int)sample_below(&p->t->s, a->type->rank), j = -1;
    for (int k = 0; k < b->type->rank; k++) {
        j = b->type->dim[k] == a->type->dim[i] ? k : j;
    }
    if (j < 0) {
        return NULL;
    }
    bool batch = sample_below(&p->t->s, 4) == 0;
    int8_t la[MD_RANK], lb[MD_RANK], lo[MD_RANK];
    int rank = 0;
    int8_t next = 0;
    for (int k = 0; k < a->type->rank; k++) {
        la[k] = next++;
        if (k != i || batch) {
            lo[rank++] = la[k];
        }
    }
    for (int k = 0; k < b->type->rank; k++) {
        lb[k] = k == j ? la[i] : next++;
        if (k != j) {
            lo[rank++] = lb[k];
        }
    }
    if (rank > 1 && sample_below(&p->t->s, 2)) {
        int8_t first = lo[0];
        lo[0] = lo[rank - 1];
        lo[rank - 1] = first;
    }
    return bounded(p, node_contract(p->t->g, a, b, la, lb, lo, rank));
}

static Node *random_loop(Pool *p, Node *a) {
    Graph *g = p->t->g;
    Sample *s = &p->t->s;
    int64_t trip = a->type->rank ? a->type->dim[0] : 3;
    LoopBuilder *loop = loop_open(g, trip, sample_below(s, 2) != 0);
    Node *other = any(p);
    int carry = loop_carry(loop, any(p));
    Node *h = loop_carry_value(loop, carry);
    if (a->type->rank) {
        Node *x = loop_xs(loop, a);
        h = type_same_shape(*x->type, *h->type) ? node_map2(g, OP_MUL, h, x) : h;
        loop_emit(loop, bounded(p, x));
    }
    Node *inv = graph_import(g, other);
    h = type_same_shape(*inv->type, *h->type) ? node_map2(g, OP_ADD, h, inv) : h;
    Node *index = node_cast(g, loop_index(loop), h->type->elem);
    h = bounded(p, node_map2(g, OP_ADD, h, node_broadcast_to(g, index, *h->type)));
    loop_next(loop, carry, h);
    int y = loop_emit(loop, sample_below(s, 2) ? h : loop_carry_value(loop, carry));
    Node *node = loop_close(loop);
    put(p, loop_final(g, node, carry));
    return loop_stack(g, node, y);
}

static Node *random_other(Pool *p, Node *a) {
    Graph *g = p->t->g;
    Sample *s = &p->t->s;
    int axis = a->type->rank ? (int)sample_below(s, a->type->rank) : 0;
    if (a->type->rank == 0) {
        return NULL;
    }
    switch (sample_below(s, 6)) {
    case 0: return bounded(p, node_cumsum(g, a, axis, sample_below(s, 2), sample_below(s, 2)));
    case 1: {
        Node *parts[3] = {a, bounded(p, a), partner(p, a)};
        return node_concat(g, parts, 3, axis);
    }
    case 2: {
        Node *at = node_argfold(g, OP_ARGMAX, a, axis);
        return bounded(p, node_cast(g, at, a->type->elem));
    }
    case 3: {
        Type type = type_make(TY_I32, 1, (int64_t[]){1 + sample_below(s, 9)});
        return node_gather(g, a, sample_input(s, type, 0, (double)a->type->dim[0]), 0);
    }
    case 4: {
        Type type = type_make(TY_I32, 1, (int64_t[]){a->type->dim[0]});
        Type to = *a->type;
        to.dim[0] = 5;
        return node_scatter_add(g, a, sample_input(s, type, 0, 5), 0, to);
    }
    default: return bounded(p, node_fold(g, OP_SUM, a, 1u << axis));
    }
}

static void random_graph(Test *t, uint64_t seed) {
    case_open(t, seed);
    Pool p = {.t = t};
    static const int64_t sizes[] = {1, 3, 4, 6, 16, 20, 70};
    for (int i = 0; i < 3; i++) {
        Type type = {.elem = t->g->float_type, .rank = 1 + (int)sample_below(&t->s, 3)};
        for (int k = 0; k < type.rank; k++) {
            type.dim[k] = sizes[sample_below(&t->s, k == 2 ? 3 : 7)];
        }
        put(&p, sample_input(&t->s, type, -1, 1));
    }
    for (int i = 0; i < 18; i++) {
        Node *a = any(&p);
        switch (sample_below(&t->s, 9)) {
        case 0:
        case 1: put(&p, random_view(&p, a)); break;
        case 2: put(&p, bounded(&p, node_map2(t->g, OP_ADD, a, partner(&p, a)))); break;
        case 3: put(&p, node_map2(t->g, OP_MUL, a, partner(&p, a))); break;
        case 4: put(&p, bounded(&p, node_map1(t->g, OP_EXP, a))); break;
        case 5: put(&p, random_contract(&p, a)); break;
        case 6: put(&p, random_other(&p, a)); break;
        case 7: put(&p, node_map2(t->g, OP_SUB, a, partner(&p, a))); break;
        default: put(&p, t->s.nslot < 9 ? random_loop(&p, a) : NULL); break;
        }
    }
    for (int i = p.n - 1; i >= 0 && i >= p.n - 4; i--) {
        region_result(t->region, p.node[i]);
    }
    Region *region = pass_fma(t->g, region_rebuild(t->g, t->region, NULL, NULL));
    const char *name = str_printf(&t->compile.arena, "seed %d", (int)seed);
    case_lower(t, region, name);
    case_stored(t, region, name);
}

static void random_graphs(bool plan, const char *flags) {
    Test t;
    test_open(&t, TY_F64);
    t.planned = plan;
    t.stored = plan ? 7 : 0; /* 210 choices */
    const char *first = getenv("MDLC_SEED"), *count = getenv("MDLC_COUNT");
    int n = count ? atoi(count) : 30;
    for (int i = 0; i < n; i++) {
        random_graph(&t, (uint64_t)(first ? atoi(first) : 1) + (uint64_t)i);
    }
    run_all(&t, flags, 1e-10);
    test_close(&t);
}

static void test_random_graphs(void **state) {
    (void)state;
    random_graphs(false, "-std=c11 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all");
}

static void test_random_planned(void **state) {
    (void)state;
    /* gcc rounds what it knows of tanh better than the library does. */
    random_graphs(true, "-std=c11 -O1 -march=native -ffp-contract=off -fno-builtin");
}

/* --- patterns of training --------------------------------------------------------------------- */

static Node *input2(Test *t, int64_t rows, int64_t columns, double lo, double hi) {
    Type type = type_make(t->g->float_type, 2, (int64_t[]){rows, columns});
    return sample_input(&t->s, type, lo, hi);
}

static Node *input1(Test *t, int64_t n) {
    return sample_input(&t->s, type_make(t->g->float_type, 1, (int64_t[]){n}), -1, 1);
}

static Node *over_rows(Test *t, Node *a, Type type) {
    return node_broadcast(t->g, a, 2, 2, type.dim); /* [r] -> [r, c] */
}

static Node *over_columns(Test *t, Node *a, Type type) {
    return node_broadcast(t->g, a, 1, 2, type.dim); /* [c] -> [r, c] */
}

static Node *scaled(Test *t, Node *a, double by) {
    return node_map2(t->g, OP_MUL, a, node_const(t->g, a->type->elem, by));
}

static Node *softmax(Test *t, Node *x) {
    Node *m = node_stop(t->g, node_fold(t->g, OP_FMAX, x, 2));
    Node *e = node_map1(t->g, OP_EXP, node_map2(t->g, OP_SUB, x, over_rows(t, m, *x->type)));
    Node *z = node_fold(t->g, OP_SUM, e, 2);
    return node_map2(t->g, OP_DIV, e, over_rows(t, z, *x->type));
}

static Node *layernorm(Test *t, Node *x, Node *weight, Node *bias) {
    Graph *g = t->g;
    double n = (double)x->type->dim[1];
    Node *mean = scaled(t, node_fold(g, OP_SUM, x, 2), 1 / n);
    Node *d = node_map2(g, OP_SUB, x, over_rows(t, mean, *x->type));
    Node *var = scaled(t, node_fold(g, OP_SUM, node_map2(g, OP_MUL, d, d), 2), 1 / n);
    Node *shifted = node_map2(g, OP_ADD, var, node_const(g, var->type->elem, 1e-5));
    Node *rstd = node_map1(g, OP_RSQRT, shifted);
    Node *y = node_map2(g, OP_MUL, d, over_rows(t, rstd, *x->type));
    y = node_map2(g, OP_MUL, y, over_columns(t, weight, *x->type));
    return node_map2(g, OP_ADD, y, over_columns(t, bias, *x->type));
}

static Node *linear(Test *t, Node *x, Node *w, Node *bias) {
    static const int8_t la[] = {0, 2}, lb[] = {1, 2}, lo[] = {0, 1};
    Node *y = node_contract(t->g, x, w, la, lb, lo, 2);
    return node_map2(t->g, OP_ADD, y, over_columns(t, bias, *y->type));
}

static Node *gelu(Test *t, Node *x) {
    Node *e = node_map1(t->g, OP_ERF, scaled(t, x, 0.70710678118654752));
    e = node_map2(t->g, OP_ADD, e, node_const(t->g, x->type->elem, 1));
    return scaled(t, node_map2(t->g, OP_MUL, x, e), 0.5);
}

static Node *dropout(Test *t, Node *x, uint64_t site) {
    Graph *g = t->g;
    Node *key[2] = {node_int(g, TY_I64, 42), node_int(g, TY_I64, 3)};
    Node *u = node_random(g, DIST_UNIFORM, site, key, 2, *x->type);
    Node *keep = node_map2(g, OP_LT, u, node_const(g, x->type->elem, 0.9));
    return node_select(g, keep, scaled(t, x, 1 / 0.9), node_const(g, x->type->elem, 0));
}

static Node *cross_entropy(Test *t, Node *x, Node *label) {
    Graph *g = t->g;
    Node *m = node_stop(g, node_fold(g, OP_FMAX, x, 2));
    Node *e = node_map1(g, OP_EXP, node_map2(g, OP_SUB, x, over_rows(t, m, *x->type)));
    Node *z = node_map2(g, OP_ADD, node_map1(g, OP_LOG, node_fold(g, OP_SUM, e, 2)), m);
    Node *lp = node_map2(g, OP_SUB, x, over_rows(t, z, *x->type));
    Node *l = node_map1(g, OP_NEG, node_gather(g, lp, label, 1));
    return scaled(t, node_fold(g, OP_SUM, l, 1), 1 / (double)x->type->dim[0]);
}

static Node *labels(Test *t, int64_t rows, int64_t classes) {
    return sample_input(&t->s, type_make(TY_I32, 1, (int64_t[]){rows}), 0, (double)classes);
}

/* Weighs `y` into a loss and appends the derivatives by the first n inputs. */
static void gradients(Test *t, Node *y, int n) {
    if (y->type->rank > 0) {
        Node *w = sample_table(&t->s, *y->type, -1, 1);
        y = node_fold(t->g, OP_SUM, node_map2(t->g, OP_MUL, y, w), (1u << y->type->rank) - 1);
    }
    for (int k = 0; k < n; k++) {
        Node *x = node_slot(t->g, t->s.slot[k]);
        region_result(t->region, node_grad(t->g, y, x, node_const(t->g, y->type->elem, 1)));
    }
}

static void adamw(Test *t) {
    Graph *g = t->g;
    Node *p = input2(t, 37, 300, -1, 1), *d = input2(t, 37, 300, -1, 1);
    Node *m = input2(t, 37, 300, -1, 1), *v = input2(t, 37, 300, 0, 1);
    Node *lr = sample_input(&t->s, type_scalar(t->g->float_type), 0.001, 0.01);
    m = node_map2(g, OP_ADD, scaled(t, m, 0.9), scaled(t, d, 0.1));
    v = node_map2(g, OP_ADD, scaled(t, v, 0.999), scaled(t, node_map2(g, OP_MUL, d, d), 0.001));
    Node *root = node_map2(g, OP_ADD, node_map1(g, OP_SQRT, v), node_const(g, v->type->elem, 1e-8));
    Node *step = node_map2(g, OP_MUL, node_map2(g, OP_DIV, m, root), lr);
    region_result(t->region, node_map2(g, OP_SUB, scaled(t, p, 0.99), step));
    region_result(t->region, m);
    region_result(t->region, v);
}

static void pattern_case(Test *t, const char *name, int kernels) {
    t->region = pass_simplify(t->g, pass_grad(t->g, t->region, GRAD_SAVE_CALLS));
    t->region = pass_fma(t->g, t->region);
    Program *p = case_lower(t, t->region, name);
    int got = p->entry.at[0]->step.count;
    case_stored(t, t->region, name);
    if (ODD_SIZES) {
        return; /* other kernels, the same values */
    }
    if (got != kernels) {
        program_dump(p, stdout);
        printf("%s: %d kernels, expected %d\n", name, got, kernels);
    }
    assert_int_equal(got, kernels);
}

static void patterns(bool plan, int stored, const Target *target, const char *flags) {
    Test t;
    test_open(&t, TY_F32);
    t.compile.opt.target = target;
    t.planned = plan;
    t.stored = stored;

    case_open(&t, 1);
    region_result(t.region, softmax(&t, input2(&t, 50, 700, -2, 2)));
    pattern_case(&t, "softmax", 1);

    case_open(&t, 2);
    gradients(&t, softmax(&t, input2(&t, 50, 700, -2, 2)), 1);
    pattern_case(&t, "softmax backward", 1);

    case_open(&t, 3);
    Node *x = input2(&t, 64, 384, -1, 1), *w = input1(&t, 384), *b = input1(&t, 384);
    region_result(t.region, layernorm(&t, x, w, b));
    pattern_case(&t, "layernorm", 1);

    case_open(&t, 4);
    x = input2(&t, 1030, 96, -1, 1), w = input1(&t, 96), b = input1(&t, 96);
    gradients(&t, layernorm(&t, x, w, b), 3);
    pattern_case(&t, "layernorm backward", 1); /* rows, and what they add to columns */

    case_open(&t, 5);
    x = input2(&t, 70, 100, -1, 1), w = input2(&t, 90, 100, -1, 1), b = input1(&t, 90);
    region_result(t.region, gelu(&t, linear(&t, x, w, b)));
    pattern_case(&t, "linear gelu", 1);

    case_open(&t, 6);
    x = input2(&t, 70, 100, -1, 1), w = input2(&t, 90, 100, -1, 1), b = input1(&t, 90);
    region_result(t.region, dropout(&t, gelu(&t, linear(&t, x, w, b)), 7));
    pattern_case(&t, "linear gelu dropout", 1);

    case_open(&t, 7);
    x = input2(&t, 200, 100, -1, 1), w = input2(&t, 30, 100, -1, 1), b = input1(&t, 30);
    gradients(&t, gelu(&t, linear(&t, x, w, b)), 3);
    pattern_case(&t, "linear gelu backward", 4); /* y with dy; dx; dw; db */

    case_open(&t, 8);
    adamw(&t);
    pattern_case(&t, "adamw", 1);

    case_open(&t, 9);
    x = input2(&t, 90, 500, -2, 2);
    Node *loss = cross_entropy(&t, x, labels(&t, 90, 500));
    region_result(t.region, loss);
    gradients(&t, loss, 1);
    pattern_case(&t, "cross-entropy", 2); /* rows; the mean over them */

    case_open(&t, 10);
    x = input2(&t, 300, 400, -1, 1);
    Node *square = node_map2(t.g, OP_MUL, x, x);
    region_result(t.region, node_fold(t.g, OP_SUM, square, 3));
    region_result(t.region, node_fold(t.g, OP_FMAX, square, 3));
    pattern_case(&t, "norms", 1);

    case_open(&t, 11);
    x = input2(&t, 3000, 70, -1, 1);
    region_result(t.region, node_fold(t.g, OP_SUM, gelu(&t, x), 1));
    pattern_case(&t, "sum over rows", 1);

    case_open(&t, 12);
    x = input2(&t, 400, 200, -1, 1);
    Type to = *x->type;
    to.dim[0] = 50;
    region_result(t.region, node_scatter_add(t.g, x, labels(&t, 400, 50), 0, to));
    region_result(t.region, node_cumsum(t.g, x, 0, true, false));
    region_result(t.region, node_cumsum(t.g, x, 1, false, true));
    pattern_case(&t, "scatter and cumulative sums", 3);

    case_open(&t, 13);
    x = input2(&t, 70, 100, -1, 1);
    region_result(t.region, scaled(&t, node_permute(t.g, x, (int[]){1, 0}), 2));
    pattern_case(&t, "transpose", 1); /* by blocks, those at the ends in part */

    case_open(&t, 14);
    for (Border border = BORDER_VALUE; border <= BORDER_WRAP; border++) { /* more taps than one */
        x = input2(&t, 6, 40, -1, 1); /* writes out: a loop of its own in each element */
        Node *near = node_window(t.g, x, 1, 1, 1, 4, 40, 9, border, 0.5);
        Node *weighed = node_map2(t.g, OP_MUL, near, sample_table(&t.s, *near->type, -1, 1));
        Node *sum = node_fold(t.g, OP_SUM, node_map2(t.g, OP_MUL, weighed, near), 7);
        Node *one = node_const(t.g, sum->type->elem, 1);
        region_result(t.region, node_grad(t.g, sum, x, one));
    }
    /* an edge and a ring take one kernel more: what lies beyond is added to what it repeats */
    pattern_case(&t, "sums over windows, backward", 5);

    case_open(&t, 15);
    x = sample_input(&t.s, type_make(TY_F32, 5, (int64_t[]){2, 3, 4, 20, 30}), -1, 1);
    w = sample_input(&t.s, type_make(TY_F32, 5, (int64_t[]){4, 3, 2, 30, 40}), -1, 1);
    region_result(t.region, node_contract(t.g, x, w, (int8_t[]){0, 1, 2, 3, 4},
                                          (int8_t[]){2, 1, 0, 4, 5}, (int8_t[]){0, 1, 2, 3, 5}, 5));
    pattern_case(&t, "product of three batch axes in other orders", 1); /* a plan has two */

    case_open(&t, 16);
    x = sample_input(&t.s, type_make(TY_F32, 3, (int64_t[]){90, 20, 28}), -1, 1);
    Node *near = node_window(t.g, x, 1, 2, 1, 0, 10, 2, BORDER_NONE, 0);
    near = node_window(t.g, near, 3, 2, 1, 0, 14, 2, BORDER_NONE, 0);
    near = node_fold(t.g, OP_FMAX, near, 1u << 2 | 1u << 4);
    region_result(t.region, scaled(&t, near, 2));
    gradients(&t, near, 1);
    pattern_case(&t, "a pool of rows of 14 places, backward", 2); /* bytes through words */

    case_open(&t, 17);
    /* 12 samples, more than threads: products make copies with borders sample by sample */
    x = sample_input(&t.s, type_make(TY_F32, 4, (int64_t[]){12, 6, 9, 17}), -1, 1);
    w = sample_input(&t.s, type_make(TY_F32, 3, (int64_t[]){3, 3, 17}), -1, 1);
    near = node_window(t.g, scaled(&t, x, 2), 1, 1, 1, 1, 6, 3, BORDER_VALUE, 0.5);
    near = node_window(t.g, near, 3, 1, 1, 1, 9, 3, BORDER_VALUE, 0.5);
    near = node_contract(t.g, near, w, (int8_t[]){0, 1, 2, 3, 4, 5}, (int8_t[]){2, 4, 5},
                         (int8_t[]){0, 1, 3, 5}, 4);
    region_result(t.region, near);
    gradients(&t, near, 2);
    t.region = pass_simplify(t.g, pass_grad(t.g, t.region, GRAD_SAVE_CALLS));
    t.region = pass_simplify(t.g, pass_halo(t.g, t.region));
    pattern_case(&t, "depthwise, backward", 3);

    case_open(&t, 18);
    x = input2(&t, 264, 264, -1, 1), w = input1(&t, 264), b = input1(&t, 264);
    gradients(&t, layernorm(&t, x, w, b), 3); /* columns and numbers of rows are as many */
    pattern_case(&t, "layernorm backward, square", 1);

    run_all(&t, flags, 2e-5);
    test_close(&t);
}

static void test_patterns(void **state) {
    (void)state;
    patterns(false, 0, NULL, strict);
}

static void test_patterns_threads(void **state) {
    (void)state;
    patterns(true, 0, NULL, "-std=c11 -O2 -march=native -ffp-contract=off -fopenmp" STRICT);
}

/* A target without tiles, blocks and pieces computes the same. */
static void test_patterns_plain(void **state) {
    (void)state;
    const Schedule *const few[] = {&cpu_loops,   &cpu_column,  &cpu_total, &cpu_nest,
                                   &cpu_running, &cpu_scatter, &cpu_rows,  NULL};
    Target plain = target_cpu;
    plain.schedule = few;
    patterns(true, 0, &plain, "-std=c11 -O1 -march=native -ffp-contract=off -fopenmp" STRICT);
}

/* 210 choices more with LONG=1. */
static void test_patterns_stored(void **state) {
    (void)state;
    const char *more = getenv("LONG");
    patterns(true, more && *more == '1' ? 14 : 1, NULL,
             "-std=c11 -O1 -march=native -ffp-contract=off -fopenmp" STRICT);
}

/* Have all numbers of the result so few digits? */
static bool is_rounded(const double *number, int64_t n, int digits) {
    for (int64_t i = 0; i < n; i++) {
        int exponent;
        double whole = ldexp(frexp(number[i], &exponent), digits);
        if (whole != floor(whole)) {
            return false;
        }
    }
    return true;
}

/* Where y = tanh(x) is stored and read by another kernel, what that makes of it without rounding
 * has the digits of what was stored; and the sum of squares, in f32, has more. */
static void storage_case(Elem storage, int digits) {
    Test t;
    bool narrow[16];
    int rounded = 0, all = 0;
    test_open(&t, TY_F32);
    t.compile.opt.storage = storage;
    for (uint64_t seed = 1; seed <= sizeof narrow; seed++) {
        case_open(&t, seed);
        Graph *g = t.g;
        Node *x = input2(&t, 60, 400, -2, 2), *y = node_map1(g, OP_TANH, x);
        Node *sum = node_fold(g, OP_SUM, node_map2(g, OP_MUL, y, y), 3);
        Node *times = node_map2(g, OP_MUL, y, node_const(g, TY_F32, 4));
        region_result(t.region, times);
        region_result(t.region, sum);
        region_result(t.region, node_fold(g, OP_FMAX, node_permute(g, y, (int[]){1, 0}), 2));
        t.compile.opt.stored = seed;
        t.planned = seed % 2 == 0;
        Program *p = case_lower(&t, t.region, "stored in 16 bits");
        narrow[seed - 1] = narrow_bufs(p, storage) > 0;
    }
    run_all(&t, strict, ldexp(1, -digits));
    for (int i = 0; i < t.expect.count; i++) {
        double *const *got = t.lowered.result.at[i];
        assert_false(is_rounded(got[1], 1, digits));
        bool some = is_rounded(got[0], 60 * 400, digits) || is_rounded(got[2], 60, digits);
        assert_true(narrow[i] || !some);
        rounded += some;
        all += narrow[i];
    }
    printf("%s: %d of %d have values stored so, %d show it\n", elem_name(storage), all,
           t.expect.count, rounded);
    assert_true(all >= 3 && rounded >= 2);
    test_close(&t);
}

static void test_storage(void **state) {
    (void)state;
    storage_case(TY_BF16, 8);
    storage_case(TY_F16, 11);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_f32),          cmocka_unit_test(test_ops_f64),
        cmocka_unit_test(test_gradients),        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_patterns_threads), cmocka_unit_test(test_patterns_plain),
        cmocka_unit_test(test_patterns_stored),  cmocka_unit_test(test_storage),
        cmocka_unit_test(test_random_graphs),    cmocka_unit_test(test_random_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
