/* Derivatives beyond the op sweep: marks, points inside a program, derivatives in and out of loops,
 * derivatives of derivatives, ties and kinks, pruning, and the gradient checker itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/gradcheck.h"
#include "dumped.h"
#include "op_sample.h"
#include "passes/grad.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    Arena arena;
    Graph *g;
    Region *region;
    Sample s;
    Region *done;
    Eval *ev;
} Fixture;

static int setup(void **state) {
    static Fixture fixture;
    Fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    f->g = graph_new(&f->arena, TY_F64);
    f->region = region_new(f->g, NULL);
    graph_enter(f->g, f->region);
    f->s = (Sample){.g = f->g, .rng = 7, .elem = TY_F64};
    *state = f;
    return 0;
}

static int teardown(void **state) {
    arena_free(&((Fixture *)*state)->arena);
    return 0;
}

static Node *vector(Fixture *f, int64_t n) {
    return sample_input(&f->s, type_make(TY_F64, 1, &n), 0.3, 1.5);
}

static Node *total(Fixture *f, Node *a) {
    return a->type->rank == 0 ? a : node_fold(f->g, OP_SUM, a, (1u << a->type->rank) - 1);
}

static Node *number(Fixture *f, double x) {
    return node_const(f->g, TY_F64, x);
}
static Node *times(Fixture *f, Node *a, Node *b) {
    return node_map2(f->g, OP_MUL, a, b);
}
static Node *plus(Fixture *f, Node *a, Node *b) {
    return node_map2(f->g, OP_ADD, a, b);
}
static Node *grad(Fixture *f, Node *v, Node *x) {
    return node_grad(f->g, v, x, number(f, 1));
}

/* Expands and evaluates; result k, element i through `at`. */
static void expand(Fixture *f, GradSave save) {
    region_verify(f->region, STAGE_BUILT);
    f->done = pass_grad(f->g, f->region, save);
    region_verify(f->done, STAGE_GRAD);
    f->ev = eval_open(&f->arena, (EvalOptions){.check_nan = true});
    for (int k = 0; k < f->s.nslot; k++) {
        eval_bind(f->ev, f->s.slot[k], f->s.data[k]);
    }
}

static Value *results(Fixture *f, GradSave save) {
    expand(f, save);
    Value *out = ARENA_ARRAY(&f->arena, Value, f->done->out.count);
    eval_region(f->ev, f->done, out);
    return out;
}

static void assert_near(double a, double b) {
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static void test_stop(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 3), *y = times(f, x, node_stop(f->g, x));
    region_result(f->region, grad(f, total(f, y), x));
    region_result(f->region, grad(f, total(f, node_stop(f->g, x)), x));
    Value *out = results(f, GRAD_SAVE_ALL);
    for (int i = 0; i < 3; i++) {
        assert_near(out[0].at[i].f, f->s.data[0][i]);
        assert_true(out[1].at[i].f == 0);
    }
}

/* The adjoint given with an op is used, whatever the op computes: here u times 2 x. */
static void test_custom(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 3);
    Node *value = node_map1(f->g, OP_FLOOR, x);
    Region *body = region_new(f->g, f->region), *before = graph_enter(f->g, body);
    Node *arg = region_param(body, *x->type), *u = region_param(body, *x->type);
    region_result(body, times(f, u, plus(f, arg, arg)));
    graph_leave(f->g, before);
    Node *custom = node_custom(f->g, value, &x, 1, body);
    Node *first = grad(f, total(f, times(f, custom, x)), x);
    region_result(f->region, custom);
    region_result(f->region, first);
    region_result(f->region, grad(f, total(f, node_custom(f->g, value, &x, 1, body)), x));
    Value *out = results(f, GRAD_SAVE_ALL);
    for (int i = 0; i < 3; i++) {
        double a = f->s.data[0][i];
        assert_near(out[0].at[i].f, floor(a));
        assert_near(out[1].at[i].f, floor(a) + a * 2 * a);
        assert_near(out[2].at[i].f, 2 * a);
    }
}

/* A point may be any value; the value may be the point itself, or not depend on it. */
static void test_points(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 3), *y = node_map1(f->g, OP_EXP, x), *z = total(f, times(f, y, y));
    Node *late = node_map1(f->g, OP_SIN, x);
    region_result(f->region, grad(f, z, y));
    region_result(f->region, grad(f, z, x));
    region_result(f->region, grad(f, z, z));
    region_result(f->region, grad(f, z, late));
    Value *out = results(f, GRAD_SAVE_ALL);
    for (int i = 0; i < 3; i++) {
        double e = exp(f->s.data[0][i]);
        assert_near(out[0].at[i].f, 2 * e);
        assert_near(out[1].at[i].f, 2 * e * e);
        assert_true(out[3].at[i].f == 0);
    }
    assert_near(out[2].at[0].f, 1);
    assert_int_equal(region_count(f->done, OP_SIN), 0);
}

/* Along a direction: the primal of the first sweep goes, and with it all that reads u. */
static void test_jvp(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 4), *d = vector(f, 4);
    Node *v = node_map1(f->g, OP_SIN, times(f, x, x));
    region_result(f->region, node_jvp(f->g, v, x, d));
    Value *out = results(f, GRAD_SAVE_ALL);
    for (int i = 0; i < 4; i++) {
        double a = f->s.data[0][i];
        assert_near(out[0].at[i].f, cos(a * a) * 2 * a * f->s.data[1][i]);
    }
}

/* Third derivative of x^5, by nesting. */
static void test_nested_derivatives(void **state) {
    Fixture *f = *state;
    Node *x = sample_input(&f->s, type_scalar(TY_F64), 1, 2);
    Node *v = node_map2(f->g, OP_POW, x, number(f, 5));
    for (int i = 0; i < 3; i++) {
        v = grad(f, v, x);
    }
    region_result(f->region, v);
    Value *out = results(f, GRAD_SAVE_ALL);
    double a = f->s.data[0][0];
    assert_near(out[0].at[0].f, 60 * a * a);
}

static void test_kinks(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 4), *zero = node_full(f->g, *x->type, 0);
    memcpy(f->s.data[0], (double[]){0, 0, 1, 1}, 4 * sizeof(double));
    Node *y = vector(f, 4);
    memcpy(f->s.data[1], (double[]){0, 1, 1, 0}, 4 * sizeof(double));
    region_result(f->region, grad(f, total(f, node_map2(f->g, OP_MAX, x, zero)), x));
    region_result(f->region, grad(f, total(f, node_map2(f->g, OP_MAX, x, y)), x));
    region_result(f->region, grad(f, total(f, node_map2(f->g, OP_MAX, x, y)), y));
    region_result(f->region, grad(f, node_fold(f->g, OP_FMAX, x, 1), x));
    region_result(f->region, grad(f, total(f, node_map1(f->g, OP_ABS, x)), x));
    region_result(f->region, grad(f, node_fold(f->g, OP_PROD, x, 1), x));
    region_result(f->region, grad(f, node_fold(f->g, OP_PROD, y, 1), y));
    Value *out = results(f, GRAD_SAVE_ALL);
    static const double expect[][4] = {{0, 0, 1, 1}, {0, 0, 0, 1}, {1, 1, 1, 0}, {0, 0, 1, 0},
                                       {0, 0, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    for (int k = 0; k < 7; k++) {
        for (int i = 0; i < 4; i++) {
            assert_near(out[k].at[i].f, expect[k][i]);
        }
    }
}

/* One zero among the factors: the product of the others is its derivative. */
static void test_product_with_zero(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 3);
    memcpy(f->s.data[0], (double[]){2, 0, 5}, 3 * sizeof(double));
    Node *first = grad(f, node_fold(f->g, OP_PROD, x, 1), x);
    region_result(f->region, first);
    region_result(f->region, grad(f, total(f, node_slice_axis(f->g, first, 0, 0, 1, 1)), x));
    Value *out = results(f, GRAD_SAVE_ALL);
    static const double expect[][3] = {{0, 10, 0}, {0, 5, 0}};
    for (int i = 0; i < 3; i++) {
        assert_near(out[0].at[i].f, expect[0][i]);
        assert_near(out[1].at[i].f, expect[1][i]);
    }
}

/* Where a base is 0 or less, or has no end: first and second derivatives by the base, and the first
 * by the exponent, which is 0 where the logarithm is none. */
static void test_pow_edges(void **state) {
    static const double at[][2] = {{0, 0},    {0, 1},    {0, 2},       {0, 3},
                                   {-1.5, 2}, {-1.5, 0}, {INFINITY, 0}};
    static const double expect[][3] = {{0, 0, 0},  {1, 0, 0}, {0, 2, 0},       {0, 0, 0},
                                       {-3, 2, 0}, {0, 0, 0}, {0, 0, INFINITY}};
    enum { N = sizeof at / sizeof *at };
    Fixture *f = *state;
    Node *x = vector(f, N), *y = vector(f, N);
    for (int i = 0; i < N; i++) {
        f->s.data[0][i] = at[i][0];
        f->s.data[1][i] = at[i][1];
    }
    Node *v = total(f, node_map2(f->g, OP_POW, x, y)), *first = grad(f, v, x);
    region_result(f->region, first);
    region_result(f->region, grad(f, total(f, first), x));
    region_result(f->region, grad(f, v, y));
    region_result(f->region, grad(f, total(f, first), y));
    Value *out = results(f, GRAD_SAVE_ALL);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++) {
            if (!isinf(expect[i][k])) {
                assert_near(out[k].at[i].f, expect[i][k]);
            }
        }
        assert_true(at[i][0] != 0 || isfinite(out[3].at[i].f)); /* no number holds for both sides */
    }
    assert_near(out[3].at[5].f, 1 / -1.5); /* of y x^(y-1) by y, where y is 0 */
}

/* A loop that takes a gradient in its body: Newton's method for the square root of 2. */
static void test_gradient_in_loop(void **state) {
    Fixture *f = *state;
    Node *start = number(f, 1.5), *aim = sample_input(&f->s, type_scalar(TY_F64), 0, 1);
    f->s.data[0][0] = 2;
    LoopBuilder *loop = loop_open(f->g, 6, false);
    int c = loop_carry(loop, start);
    Node *x = loop_carry_value(loop, c);
    Node *v = node_map2(f->g, OP_SUB, times(f, x, x), aim);
    loop_next(loop, c, node_map2(f->g, OP_SUB, x, node_map2(f->g, OP_DIV, v, grad(f, v, x))));
    Node *root = loop_final(f->g, loop_close(loop), c);
    region_result(f->region, root);
    region_result(f->region, grad(f, root, aim));
    for (int save = GRAD_SAVE_ALL; save <= GRAD_SAVE_CARRIES; save++) {
        Value *out = results(f, (GradSave)save);
        assert_near(out[0].at[0].f, sqrt(2));
        assert_near(out[1].at[0].f, 0.5 / sqrt(2));
    }
}

/* A body that asks for the derivative of a value of the region around it, through a loop there. */
static void test_gradient_across_regions(void **state) {
    Fixture *f = *state;
    Node *x = sample_input(&f->s, type_scalar(TY_F64), 0.5, 1);
    LoopBuilder *first = loop_open(f->g, 3, false);
    int p = loop_carry(first, x);
    loop_next(first, p, times(f, loop_carry_value(first, p), x));
    Node *fourth = loop_final(f->g, loop_close(first), p); /* x^4 */
    LoopBuilder *loop = loop_open(f->g, 2, false);
    int c = loop_carry(loop, number(f, 0));
    Node *inside = times(f, fourth, x); /* x^5, made in the body */
    LoopBuilder *deep = loop_open(f->g, 2, false);
    int d = loop_carry(deep, number(f, 0));
    loop_next(deep, d,
              plus(f, loop_carry_value(deep, d), grad(f, times(f, inside, fourth), x))); /* 9 x^8 */
    Node *sum = loop_final(f->g, loop_close(deep), d);
    Node *slope = plus(f, grad(f, fourth, x), grad(f, inside, x));
    loop_next(loop, c, plus(f, loop_carry_value(loop, c), plus(f, slope, sum)));
    region_result(f->region, loop_final(f->g, loop_close(loop), c));
    double a = f->s.data[0][0];
    for (int save = GRAD_SAVE_ALL; save <= GRAD_SAVE_CARRIES; save++) {
        Value *out = results(f, (GradSave)save);
        assert_near(out[0].at[0].f, 2 * (4 * pow(a, 3) + 5 * pow(a, 4) + 2 * 9 * pow(a, 8)));
    }
}

/* The least policy stacks carries alone; no policy stacks what no rule reads. */
static void test_what_is_saved(void **state) {
    Fixture *f = *state;
    int64_t n = 4;
    Node *x = vector(f, n), *w = vector(f, n);
    LoopBuilder *loop = loop_open(f->g, 8, false);
    int c = loop_carry(loop, x);
    Node *h = loop_carry_value(loop, c);
    loop_next(loop, c, node_map1(f->g, OP_TANH, node_map1(f->g, OP_SIN, plus(f, h, w))));
    region_result(f->region, grad(f, total(f, loop_final(f->g, loop_close(loop), c)), x));
    static const int stacks[] = {
        [GRAD_SAVE_ALL] = 2, [GRAD_SAVE_CALLS] = 1, [GRAD_SAVE_CARRIES] = 1};
    for (int save = GRAD_SAVE_ALL; save <= GRAD_SAVE_CARRIES; save++) {
        expand(f, (GradSave)save);
        const Node *forward = NULL;
        int loops = 0;
        for (int i = 0; i < f->done->node.count; i++) {
            if (f->done->node.at[i]->op == OP_LOOP) {
                forward = forward ? forward : f->done->node.at[i];
                loops++;
            }
        }
        assert_int_equal(loops, 2);
        assert_int_equal(forward->attr->nys, stacks[save]);
        assert_int_equal(forward->attr->ncarry, 1);
    }
}

/* An addition needs no values: the adjoint of a loop of them reads no stack. */
static void test_nothing_saved(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 4), *w = vector(f, 4);
    LoopBuilder *loop = loop_open(f->g, 8, false);
    int c = loop_carry(loop, x);
    loop_next(loop, c, plus(f, loop_carry_value(loop, c), w));
    region_result(f->region, grad(f, total(f, loop_final(f->g, loop_close(loop), c)), w));
    Value *out = results(f, GRAD_SAVE_ALL);
    assert_near(out[0].at[0].f, 8);
    for (int i = 0; i < f->done->node.count; i++) {
        const Node *node = f->done->node.at[i];
        assert_true(node->op != OP_LOOP || (node->attr->nys == 0 && node->attr->nxs == 0));
    }
}

/* The depth of a loop does not show in the size of its derivative. */
static void test_depth(void **state) {
    Fixture *f = *state;
    int nodes[2] = {0};
    for (int k = 0; k < 2; k++) {
        Region *region = region_new(f->g, NULL);
        graph_enter(f->g, region);
        Node *x = node_slot(f->g, f->s.nslot ? f->s.slot[0] : vector(f, 3)->attr->slot);
        LoopBuilder *loop = loop_open(f->g, k ? 512 : 8, false);
        int c = loop_carry(loop, x);
        loop_next(loop, c, node_map1(f->g, OP_SIN, loop_carry_value(loop, c)));
        region_result(region, grad(f, total(f, loop_final(f->g, loop_close(loop), c)), x));
        Region *done = pass_grad(f->g, region, GRAD_SAVE_ALL);
        for (int i = 0; i < done->node.count; i++) {
            nodes[k] += 1 + (done->node.at[i]->body ? done->node.at[i]->body->node.count : 0);
        }
    }
    assert_int_equal(nodes[0], nodes[1]);
}

/* Two derivatives that are equal: along a direction whose elements have one size and two signs the
 * sum is 0 for any pair, right or wrong. */
static void test_gradcheck_of_equal(void **state) {
    Fixture *f = *state;
    Node *w = vector(f, 2);
    f->s.data[0][0] = f->s.data[0][1] = 1;
    Node *loss = total(f, times(f, w, w));
    region_result(f->region, loss);
    region_result(f->region, grad(f, loss, w));
    expand(f, GRAD_SAVE_ALL);
    graph_enter(f->g, f->done);
    f->done->out.at[1] = times(f, f->done->out.at[1], number(f, 50));
    for (uint64_t seed = 0; seed < 16; seed++) {
        GradCheck bad = gradcheck_region(f->ev, &f->arena, f->done, f->s.slot, 1, seed, 1);
        assert_true(bad.error > 1e-3);
    }
}

static void test_gradcheck(void **state) {
    Fixture *f = *state;
    Node *x = vector(f, 5), *w = vector(f, 3);
    Node *y = node_contract(f->g, x, w, (int8_t[]){0}, (int8_t[]){1}, (int8_t[]){0, 1}, 2);
    Node *loss = total(f, node_map1(f->g, OP_TANH, y));
    region_result(f->region, loss);
    region_result(f->region, grad(f, loss, x));
    region_result(f->region, grad(f, loss, w));
    expand(f, GRAD_SAVE_ALL);
    GradCheck good = gradcheck_region(f->ev, &f->arena, f->done, f->s.slot, 2, 1, 3);
    assert_true(good.worst != NULL && good.error < 1e-8);
    Value after;
    assert_true(eval_bound(f->ev, f->s.slot[0], &after));
    assert_true(after.at[0].f == f->s.data[0][0]);
    graph_enter(f->g, f->done);
    Node *right = f->done->out.at[2];
    f->done->out.at[2] = times(f, right, number(f, 0)); /* none, of a value that moves */
    GradCheck none = gradcheck_region(f->ev, &f->arena, f->done, f->s.slot, 2, 1, 3);
    assert_true(none.worst == f->s.slot[1] && none.error > 1);
    f->done->out.at[2] = times(f, right, number(f, 1.001)); /* a wrong gradient */
    GradCheck bad = gradcheck_region(f->ev, &f->arena, f->done, f->s.slot, 2, 1, 3);
    assert_ptr_equal(bad.worst, f->s.slot[1]);
    assert_true(bad.error > 1e-4 && bad.error < 1e-2);
    printf("gradcheck: right %.2g, wrong by 1e-3 %.2g\n", good.error, bad.error);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_stop),
        TEST(test_custom),
        TEST(test_points),
        TEST(test_jvp),
        TEST(test_nested_derivatives),
        TEST(test_kinks),
        TEST(test_product_with_zero),
        TEST(test_pow_edges),
        TEST(test_gradient_in_loop),
        TEST(test_gradient_across_regions),
        TEST(test_what_is_saved),
        TEST(test_nothing_saved),
        TEST(test_depth),
        TEST(test_gradcheck),
        TEST(test_gradcheck_of_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
