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
#include "passes/grad.h"
#include "passes/simplify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const strict = "-std=c11 -O1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion "
                                  "-Werror -Wno-unused-function";

typedef struct {
    Compile compile;
    Graph *g;
    Region *region;
    Sample s;
    Lowered lowered;
    bool planned;
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
    lowered_add(&t->lowered, p, t->s.data);
    keep_expected(t, region, name);
    return p;
}

static void run_all(Test *t, const char *flags, double tolerance) {
    int bad = 0;
    assert_true(lowered_run(&t->lowered, flags));
    for (int i = 0; i < t->expect.count; i++) {
        const Region *region = t->lowered.program.at[i]->entry.at[0]->entry->region;
        for (int k = 0; k < region->out.count; k++) {
            double scale = 0, worst = 0;
            int64_t n = type_count(region->out.at[k]->type);
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j);
                scale = isfinite(want) && fabs(want) > scale ? fabs(want) : scale;
            }
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j), got = t->lowered.result.at[i][k][j];
                double err = want == got || (isnan(want) && isnan(got)) ? 0 : fabs(want - got);
                worst = err <= worst ? worst : err; /* a NaN stays */
            }
            double limit = elem_is_float(region->out.at[k]->type.elem) ? tolerance * (scale + 1e-3) : 0;
            if (!(worst <= limit)) {
                printf("case %d %s, result %d: error %g of %g\n", i, t->name.at[i], k, worst, scale);
                bad++;
            }
        }
    }
    assert_int_equal(bad, 0);
}

static void test_close(Test *t) {
    lowered_close(&t->lowered);
    arena_free(&t->compile.arena);
}

/* --- every op ---------------------------------------------------------------------------------- */

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
            if (derivative && !elem_is_float(node->type.elem)) {
                continue;
            }
            if (derivative) {
                Node *w = sample_table(&t.s, node->type, -1, 1);
                Node *y = node_map2(t.g, OP_MUL, node, w);
                y = y->type.rank ? node_fold(t.g, OP_SUM, y, (1u << y->type.rank) - 1) : y;
                Node *one = node_const(t.g, y->type.elem, 1);
                for (int k = 0; k < t.s.nslot; k++) {
                    if (elem_is_float(t.s.slot[k]->type.elem)) {
                        region_result(t.region, node_grad(t.g, y, node_slot(t.g, t.s.slot[k]), one));
                    }
                }
                if (t.region->out.count == 0) {
                    continue;
                }
                t.region = pass_grad(t.g, t.region, GRAD_SAVE_CALLS);
            } else {
                region_result(t.region, node);
            }
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

/* --- random graphs ----------------------------------------------------------------------------- */

enum { POOL = 40 };

typedef struct {
    Test *t;
    Node *node[POOL];
    int n;
} Pool;

static Node *any(Pool *p) { return p->node[sample_below(&p->t->s, p->n)]; }

static void put(Pool *p, Node *node) {
    if (node && type_count(node->type) <= 4000 && node->type.rank < MD_RANK - 1) {
        p->node[p->n < POOL ? p->n++ : sample_below(&p->t->s, POOL)] = node;
    }
}

/* Keeps numbers small, so that errors stay comparable. */
static Node *bounded(Pool *p, Node *a) { return node_map1(p->t->g, OP_TANH, a); }

static Node *random_view(Pool *p, Node *a) {
    Sample *s = &p->t->s;
    Graph *g = p->t->g;
    int rank = a->type.rank, axis = rank ? (int)sample_below(s, rank) : 0;
    int64_t n = rank ? a->type.dim[axis] : 1, dim[MD_RANK], lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    int map[MD_RANK];
    memcpy(dim, a->type.dim, sizeof dim);
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
        return node_pad(g, a, lo, hi, (Border)(BORDER_VALUE + sample_below(s, n >= 3 ? 3 : 2)), 0.25);
    case 5:
        memmove(&dim[axis + 1], &dim[axis], sizeof *dim * (size_t)(rank - axis));
        dim[axis] = 1 + sample_below(s, 20);
        return node_broadcast(g, a, 1u << axis, rank + 1, dim);
    case 6: return node_flip(g, a, 1u << axis);
    default:
        return node_window(g, a, axis, 1, 1, 1, n, 3, BORDER_VALUE, 0);
    }
}

/* Something of the shape of `a`: another of the pool, or a fold of it broadcast back. */
static Node *partner(Pool *p, Node *a) {
    Sample *s = &p->t->s;
    Graph *g = p->t->g;
    for (int tries = 0; tries < 8; tries++) {
        Node *b = any(p);
        if (type_equal(a->type, b->type)) {
            return b;
        }
    }
    if (a->type.rank == 0) {
        return a;
    }
    uint32_t axes = 1u + (uint32_t)sample_below(s, (1 << a->type.rank) - 1);
    OpCode op = sample_below(s, 2) ? OP_SUM : OP_FMAX;
    return node_broadcast(g, bounded(p, node_fold(g, op, a, axes)), axes, a->type.rank, a->type.dim);
}

static Node *random_contract(Pool *p, Node *a) {
    Node *b = any(p);
    if (a->type.rank == 0 || b->type.rank == 0 || a->type.rank + b->type.rank > 7) {
        return NULL;
    }
    int i = (int)sample_below(&p->t->s, a->type.rank), j = -1;
    for (int k = 0; k < b->type.rank; k++) {
        j = b->type.dim[k] == a->type.dim[i] ? k : j;
    }
    if (j < 0) {
        return NULL;
    }
    bool batch = sample_below(&p->t->s, 4) == 0;
    int8_t la[MD_RANK], lb[MD_RANK], lo[MD_RANK];
    int rank = 0;
    int8_t next = 0;
    for (int k = 0; k < a->type.rank; k++) {
        la[k] = next++;
        if (k != i || batch) {
            lo[rank++] = la[k];
        }
    }
    for (int k = 0; k < b->type.rank; k++) {
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
    int64_t trip = a->type.rank ? a->type.dim[0] : 3;
    LoopBuilder *loop = loop_open(g, trip, sample_below(s, 2) != 0);
    Node *other = any(p);
    int carry = loop_carry(loop, any(p));
    Node *h = loop_carry_value(loop, carry);
    if (a->type.rank) {
        Node *x = loop_xs(loop, a);
        h = type_same_shape(x->type, h->type) ? node_map2(g, OP_MUL, h, x) : h;
        loop_emit(loop, bounded(p, x));
    }
    Node *inv = graph_import(g, other);
    h = type_same_shape(inv->type, h->type) ? node_map2(g, OP_ADD, h, inv) : h;
    Node *index = node_cast(g, loop_index(loop), h->type.elem);
    h = bounded(p, node_map2(g, OP_ADD, h, node_broadcast_to(g, index, h->type)));
    loop_next(loop, carry, h);
    int y = loop_emit(loop, sample_below(s, 2) ? h : loop_carry_value(loop, carry));
    Node *node = loop_close(loop);
    put(p, loop_final(g, node, carry));
    return loop_stack(g, node, y);
}

static Node *random_other(Pool *p, Node *a) {
    Graph *g = p->t->g;
    Sample *s = &p->t->s;
    int axis = a->type.rank ? (int)sample_below(s, a->type.rank) : 0;
    if (a->type.rank == 0) {
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
        return bounded(p, node_cast(g, at, a->type.elem));
    }
    case 3: {
        Type type = type_make(TY_I32, 1, (int64_t[]){1 + sample_below(s, 9)});
        return node_gather(g, a, sample_input(s, type, 0, (double)a->type.dim[0]), 0);
    }
    case 4: {
        Type type = type_make(TY_I32, 1, (int64_t[]){a->type.dim[0]});
        Type to = a->type;
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
    Region *region = region_rebuild(t->g, t->region, NULL, NULL);
    case_lower(t, region, str_printf(&t->compile.arena, "seed %d", (int)seed));
}

static void random_graphs(bool plan, const char *flags) {
    Test t;
    test_open(&t, TY_F64);
    t.planned = plan;
    const char *first = getenv("MDLC_SEED"), *count = getenv("MDLC_COUNT");
    int n = count ? atoi(count) : 60;
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
    random_graphs(true, "-std=c11 -O1 -march=native");
}

int main(int argc, char **argv) {
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_f32),
        cmocka_unit_test(test_ops_f64),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_random_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
