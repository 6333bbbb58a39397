/* Graph passes change no values: what a region gives before simplify and hoist it gives after, on
 * the op samples, their derivatives, and random programs; and what they are for happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/gradcheck.h"
#include "directional.h"
#include "pass_fixture.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/hoist.h"
#include "passes/narrow.h"
#include "passes/simplify.h"
#include "random_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(Fixture *f, const char *what, int number) {
    Region *plain = pass_grad(f->g, f->region, GRAD_SAVE_ALL);
    Region *early = pass_simplify(f->g, f->region);
    region_verify(early, STAGE_BUILT);
    Region *after = shaped(f, pass_grad(f->g, early, GRAD_SAVE_CALLS));
    double gap = difference(f, plain, after);
    if (!(gap < 1e-10) && !(gap < tolerance(f, plain))) {
        region_dump(plain, stderr, 0);
        fprintf(stderr, "---- after\n");
        region_dump(after, stderr, 0);
        fail_msg("%s %d: values differ by %g (MDLC_SEED=%llu)", what, number, gap,
                 (unsigned long long)seed());
    }
}

static void test_samples(void **state) {
    (void)state;
    for (int op = 0; op < OP_COUNT; op++) {
        for (int variant = 0;; variant++) {
            Fixture f;
            fixture_open(&f, TY_F64, (uint64_t)(1000 * op + variant));
            Node *node = sample_build(&f.s, (OpCode)op, variant);
            if (node) {
                region_result(f.region, node);
                add_gradients(&f);
                check(&f, op_info[op].name, variant);
            }
            arena_free(&f.arena);
            if (!node) {
                break;
            }
        }
    }
}

/* --- random programs -------------------------------------------------------------------------- */

/* Gives the sum over everything that was made, squashed; the region has no result yet. */
static Node *random_program(Fixture *f, RandomGraph *r, int number, int nodes) {
    fixture_open(f, TY_F64, (uint64_t)number * 7919);
    return random_graph(r, &f->s, nodes);
}

static int program_count(int usual) {
    const char *count = getenv("MDLC_PROGRAMS");
    return count ? atoi(count) : usual;
}

static void test_random_programs(void **state) {
    (void)state;
    int programs = program_count(150);
    for (int number = 0; number < programs; number++) {
        Fixture f;
        RandomGraph r;
        Node *sum = random_program(&f, &r, number, 20);
        region_result(f.region, sum);
        add_gradients(&f);
        for (int k = 0; number % 3 == 0 && k < 3; k++) { /* to values inside */
            Node *point = random_graph_any(&r);
            region_result(f.region, node_grad(f.g, sum, point, node_const(f.g, TY_F64, 1)));
        }
        check(&f, "program", number);
        arena_free(&f.arena);
    }
    printf("%d random programs\n", programs);
}

/* First and second derivatives of random programs, loops in loops included, against differences. */
static void test_random_derivatives(void **state) {
    (void)state;
    int programs = program_count(60);
    int unclear = 0; /* near kinks */
    double worst[2] = {0};
    for (int number = 0; number < programs; number++) {
        Fixture f;
        RandomGraph r;
        Node *value = random_program(&f, &r, number + 100000, 8),
             *unit = node_const(f.g, TY_F64, 1);
        for (int order = 0; order < 2; order++) {
            Node *next = node_const(f.g, TY_F64, 0);
            f.region->out.count = 0;
            region_result(f.region, value);
            for (int k = 0; k < f.s.nslot; k++) {
                Node *slope = node_grad(f.g, value, node_slot(f.g, f.s.slot[k]), unit);
                region_result(f.region, slope);
                next = node_map2(f.g, OP_ADD, next, total(&f, node_map1(f.g, OP_TANH, slope)));
            }
            Eval *ev = eval_open(&f.arena, (EvalOptions){0});
            for (int k = 0; k < f.s.nslot; k++) {
                eval_bind(ev, f.s.slot[k], f.s.data[k]);
            }
            Region *region = shaped(&f, pass_grad(f.g, f.region, (GradSave)(number % 3)));
            GradCheck c = gradcheck_region(ev, &f.arena, region, f.s.slot, f.s.nslot, seed(), 2);
            bool fails = !(c.error < 1e-5);
            if (fails && directional_unclear(&f.arena, region, f.s.slot,
                                             (const double *const *)f.s.data, f.s.nslot)) {
                unclear++;
                break;
            }
            worst[order] = fmax(worst[order], c.error);
            if (fails) {
                fail_msg("program %d, derivative %d: error %g, %.9g along a direction, quotient "
                         "%.9g (MDLC_SEED=%llu)",
                         number, order + 1, c.error, c.analytic, c.numeric,
                         (unsigned long long)seed());
            }
            value = next;
        }
        arena_free(&f.arena);
    }
    printf("worst first derivative %.2g, second %.2g, %d near kinks\n", worst[0], worst[1],
           unclear);
    assert_true(unclear <= 1 + programs / 50);
}

/* --- what the passes are for ------------------------------------------------------------------ */

static int count_op(const Region *region, OpCode op) {
    int n = 0;
    for (int i = 0; i < region->node.count; i++) {
        n += region->node.at[i]->op == op;
    }
    return n;
}

static Node *matrix(Fixture *f, int64_t a, int64_t b) {
    return sample_input(&f->s, type_make(f->s.elem, 2, (int64_t[]){a, b}), -1, 1);
}

/* sum[k] x[i, k] * w[j, k] written as a sum of products becomes a contraction, and so do its
 * adjoints. */
static void test_products_become_contractions(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    Node *x = matrix(&f, 5, 7), *w = matrix(&f, 3, 7);
    Node *wide[2] = {node_broadcast(f.g, x, 2, 3, (int64_t[]){5, 3, 7}),
                     node_broadcast(f.g, w, 1, 3, (int64_t[]){5, 3, 7})};
    Node *y = node_fold(f.g, OP_SUM, node_map2(f.g, OP_MUL, wide[0], wide[1]), 4);
    region_result(f.region, node_map1(f.g, OP_TANH, y));
    add_gradients(&f);
    Region *after = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_ALL));
    assert_true(count_op(after, OP_CONTRACT) == 3 || ODD_SIZES); /* narrow ones become sums */
    assert_true(ODD_SIZES || count_op(after, OP_BROADCAST) ==
                                 count_op(after, OP_CONST)); /* of constants alone */
    assert_true(count_op(after, OP_SUM) == 0 || ODD_SIZES);
    check(&f, "products", 0);
    arena_free(&f.arena);
}

/* Gradients of slices side by side are put together, not padded and added. */
static void test_pads_become_concat(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 2);
    Node *x = matrix(&f, 4, 6), *y = NULL;
    for (int k = 0; k < 3; k++) {
        Node *part =
            node_map1(f.g, k == 1 ? OP_SIN : OP_TANH, node_slice_axis(f.g, x, 1, 2 * k, 2, 1));
        y = y ? node_map2(f.g, OP_MUL, y, part) : part;
    }
    region_result(f.region, y);
    add_gradients(&f);
    Region *after = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_ALL));
    assert_int_equal(count_op(after, OP_PAD), 0);
    assert_int_equal(count_op(after, OP_CONCAT), 1);
    check(&f, "pads", 0);
    arena_free(&f.arena);
}

/* The gradient of picking one element in each row needs no scatter. */
static void test_scatter_becomes_select(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 3);
    Node *x = matrix(&f, 5, 7),
         *label = sample_input(&f.s, type_make(TY_U8, 1, (int64_t[]){5}), 0, 7);
    region_result(f.region, node_gather(f.g, x, label, 1));
    add_gradients(&f);
    Region *after = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_ALL));
    assert_int_equal(count_op(after, OP_SCATTER_ADD), 0);
    assert_int_equal(count_op(after, OP_SELECT), 1);
    check(&f, "scatter", 0);
    arena_free(&f.arena);
}

/* Scalar identities: what each of these becomes, in the words of a dump of its op. */
static Node *negated(Graph *g, Node *a) {
    return node_map1(g, OP_NEG, a);
}
static Node *two(Graph *g, OpCode op, Node *a, Node *b) {
    return node_map2(g, op, a, b);
}

static void test_identities(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F32, 5);
    Graph *g = f.g;
    Node *x = matrix(&f, 3, 5), *y = matrix(&f, 3, 5);
    Node *c = sample_input(&f.s, type_make(TY_BOOL, 2, (int64_t[]){3, 5}), 0, 2);
    Node *i = sample_input(&f.s, type_make(TY_I32, 2, (int64_t[]){3, 5}), -50, 50);
    Node *zero = node_const(g, TY_F32, 0), *one = node_const(g, TY_F32, 1),
         *yes = node_full(g, *c->type, 1);
    struct {
        Node *from;
        OpCode to;
        Node *is; /* or NULL */
    } cases[] = {
        {two(g, OP_SUB, x, zero), OP_SLOT, x},
        {two(g, OP_SUB, zero, x), OP_NEG, NULL},
        {two(g, OP_SUB, x, negated(g, y)), OP_ADD, NULL},
        {two(g, OP_ADD, x, negated(g, y)), OP_SUB, NULL},
        {two(g, OP_ADD, x, x), OP_MUL, NULL},
        {two(g, OP_DIV, x, one), OP_SLOT, x},
        {two(g, OP_DIV, x, node_const(g, TY_F32, 4)), OP_MUL, NULL},
        {two(g, OP_DIV, x, node_const(g, TY_F32, 3)), OP_MUL, NULL},
        {two(g, OP_SUB, two(g, OP_ADD, i, node_int(g, TY_I32, 3)), node_int(g, TY_I32, 3)), OP_SLOT,
         i},
        {two(g, OP_ADD, two(g, OP_SUB, i, node_int(g, TY_I32, 3)), node_int(g, TY_I32, 7)), OP_ADD,
         NULL},
        {two(g, OP_DIV, negated(g, x), negated(g, y)), OP_DIV, NULL},
        {two(g, OP_DIV, x, negated(g, y)), OP_NEG, NULL},
        {two(g, OP_MUL, negated(g, x), negated(g, y)), OP_MUL, NULL},
        {two(g, OP_MUL, i, node_int(g, TY_I32, 0)), OP_BROADCAST, NULL},
        {two(g, OP_SUB, i, i), OP_BROADCAST, NULL},
        {negated(g, negated(g, x)), OP_SLOT, x},
        {negated(g, two(g, OP_SUB, x, y)), OP_SUB, NULL},
        {two(g, OP_POW, x, node_const(g, TY_F32, 2)), OP_MUL, NULL},
        {two(g, OP_POW, x, node_const(g, TY_F32, 0.5)), OP_SQRT, NULL},
        {two(g, OP_POW, x, node_const(g, TY_F32, -0.5)), OP_SELECT, NULL},
        {two(g, OP_POW, x, one), OP_SLOT, x},
        {two(g, OP_POW, x, node_const(g, TY_F32, 2.5)), OP_POW, NULL},
        {two(g, OP_MAX, x, x), OP_SLOT, x},
        {node_select(g, c, x, x), OP_SLOT, x},
        {node_select(g, yes, x, y), OP_SLOT, x},
        {node_select(g, node_map1(g, OP_NOT, c), x, y), OP_SELECT, NULL},
        {node_select(g, c, node_select(g, c, x, y), y), OP_SELECT, NULL},
        {node_map1(g, OP_NOT, node_map1(g, OP_NOT, c)), OP_SLOT, c},
        {two(g, OP_AND, c, yes), OP_SLOT, c},
        {two(g, OP_OR, c, yes), OP_BROADCAST, NULL},
        {two(g, OP_AND, c, c), OP_SLOT, c},
        {node_cast(g, node_cast(g, x, TY_F64), TY_F32), OP_SLOT, x},
        {node_cast(g, node_cast(g, i, TY_I64), TY_I32), OP_SLOT, i},
        {node_cast(g, node_cast(g, i, TY_F32), TY_I32), OP_CAST, NULL},
        {node_flip(g, node_flip(g, x, 1), 1), OP_SLOT, x},
        {node_permute(g, node_permute(g, x, (int[]){1, 0}), (int[]){1, 0}), OP_SLOT, x},
        {node_window(g, x, 1, 2, 1, 0, 3, 1, BORDER_NONE, 0), OP_RESHAPE, NULL},
        {node_window(g, x, 1, -1, 1, -4, 5, 1, BORDER_NONE, 0), OP_WINDOW, NULL}, /* from the end */
    };
    enum { CASES = (int)(sizeof cases / sizeof *cases) };
    for (int k = 0; k < CASES; k++) {
        region_result(f.region, cases[k].from);
    }
    Region *after = pass_simplify(g, f.region);
    region_verify(after, STAGE_GRAD);
    for (int k = 0; k < CASES; k++) {
        const Node *to = after->out.at[k];
        if (to->op != cases[k].to) {
            fail_msg("case %d became %s, not %s", k, op_info[to->op].name,
                     op_info[cases[k].to].name);
        }
        if (cases[k].is) {
            assert_ptr_equal(to->attr->slot, cases[k].is->attr->slot);
        }
    }
    double gap = difference(&f, f.region, after);
    assert_true(gap < 1e-6); /* reciprocals are rounded */
    arena_free(&f.arena);
}

/* Before grad: what derivatives are taken to stays on the way to the value. */
static void test_points_stay(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 6);
    Graph *g = f.g;
    Node *x = matrix(&f, 3, 5), *w = matrix(&f, 7, 5), *unit = node_const(g, TY_F64, 1);
    Node *point[4];
    point[0] = graph_name(node_permute(g, x, (int[]){1, 0}), "p");
    point[1] = graph_name(two(g, OP_MUL, x, unit), "q");
    point[2] = graph_name(node_reshape(g, x, 1, (int64_t[]){15}), "r");
    point[3] = graph_name(node_broadcast(g, x, 1, 3, (int64_t[]){2, 3, 5}), "s");
    int8_t l[3][2] = {{2, 0}, {1, 2}, {0, 1}};
    Node *value[4];
    value[0] = node_contract(g, point[0], w, l[0], l[1], l[2], 2);
    value[1] = two(g, OP_MUL, two(g, OP_ADD, point[1], x), x);
    value[2] = node_map1(g, OP_SIN, node_reshape(g, point[2], 3, (int64_t[]){5, 1, 3}));
    value[3] = node_broadcast(g, point[3], 2, 4, (int64_t[]){2, 4, 3, 5});
    for (int k = 0; k < 4; k++) {
        Node *sum = total(&f, node_map1(g, OP_EXP, value[k]));
        region_result(f.region, node_grad(g, sum, point[k], unit));
    }
    Region *plain = pass_grad(g, f.region, GRAD_SAVE_ALL);
    Region *before = pass_simplify(g, f.region);
    region_verify(before, STAGE_BUILT);
    Region *after = pass_simplify(g, pass_grad(g, before, GRAD_SAVE_ALL));
    assert_true(difference(&f, plain, after) < 1e-12);
    for (int k = 0; k < 4; k++) {
        assert_false(after->out.at[k]->op == OP_BROADCAST && k != 3); /* not zeros */
    }
    arena_free(&f.arena);
}

static const Node *only_loop(const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        if (region->node.at[i]->op == OP_LOOP) {
            return region->node.at[i];
        }
    }
    return NULL;
}

/* A point that the body of a loop borrows is looked at where it comes from: one that a rule could
 * change keeps all of the region as it is, an input or a hidden constant does not. */
static void test_borrowed_points(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        Fixture f;
        fixture_open(&f, TY_F64, 7);
        Graph *g = f.g;
        Node *x = matrix(&f, 3, 5), *unit = node_const(g, TY_F64, 1);
        Node *point = kind == 0   ? graph_name(two(g, OP_MUL, x, unit), "p")
                      : kind == 1 ? x
                                  : node_stop(g, node_full(g, *x->type, 2));
        LoopBuilder *loop = loop_open(g, 2, false);
        int c = loop_carry(loop, x);
        Node *p = graph_import(g, point), *q = graph_import(g, x), *h = loop_carry_value(loop, c);
        Node *y = two(g, OP_MUL, node_map1(g, OP_SIN, p), negated(g, negated(g, q)));
        Node *slope = node_grad(g, total(&f, y), p, node_const(g, TY_F64, 1));
        loop_next(loop, c, two(g, OP_ADD, h, slope));
        region_result(f.region, loop_final(g, loop_close(loop), c));
        Region *before = pass_simplify(g, f.region);
        region_verify(before, STAGE_BUILT);
        assert_int_equal(count_op(only_loop(before)->body, OP_NEG), kind == 0 ? 2 : 0);
        Region *plain = pass_grad(g, f.region, GRAD_SAVE_ALL);
        Region *after = pass_simplify(g, pass_grad(g, before, GRAD_SAVE_ALL));
        assert_true(difference(&f, plain, after) < 1e-12);
        arena_free(&f.arena);
    }
}

/* What a rule of the last kind makes is simplified too: an index that is the same for all rows is
 * converted once. */
static void test_late_rules(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 8);
    Graph *g = f.g;
    Type to = type_make(TY_F64, 2, (int64_t[]){5, 7});
    Node *row = sample_input(&f.s, type_make(TY_F64, 1, to.dim), -1, 1);
    Node *label = sample_input(&f.s, type_scalar(TY_U8), 0, 7);
    region_result(f.region,
                  node_scatter_add(g, row, node_broadcast(g, label, 1, 1, to.dim), 1, to));
    Region *after = pass_simplify(g, f.region);
    assert_int_equal(after->out.at[0]->op, OP_SELECT);
    assert_int_equal(count_op(after, OP_CAST), 1);
    for (int i = 0; i < after->node.count; i++) {
        const Node *n = after->node.at[i];
        assert_true(n->op != OP_CAST || n->type->rank == 0);
    }
    assert_true(difference(&f, f.region, after) == 0);
    arena_free(&f.arena);
}

/* A product of invariants moves out of two loops; what depends on a carry stays. */
static void test_hoist(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 4);
    Node *x = matrix(&f, 3, 3), *w = matrix(&f, 3, 3);
    LoopBuilder *outer = loop_open(f.g, 4, false);
    int c = loop_carry(outer, x);
    LoopBuilder *inner = loop_open(f.g, 2, false);
    int d = loop_carry(inner, loop_carry_value(outer, c));
    int8_t l[3][2] = {{0, 1}, {1, 2}, {0, 2}};
    Node *square = node_contract(f.g, w, node_permute(f.g, w, (int[]){1, 0}), l[0], l[1], l[2], 2);
    loop_next(
        inner, d,
        node_map1(f.g, OP_TANH,
                  node_contract(f.g, loop_carry_value(inner, d), square, l[0], l[1], l[2], 2)));
    loop_next(outer, c, loop_final(f.g, loop_close(inner), d));
    region_result(f.region, loop_final(f.g, loop_close(outer), c));
    Region *after = optimise(&f, f.region);
    assert_int_equal(count_op(after, OP_CONTRACT), 1);
    const Node *loop = only_loop(after);
    assert_int_equal(count_op(loop->body, OP_CONTRACT), 0);
    assert_int_equal(count_op(only_loop(loop->body)->body, OP_CONTRACT), 1);
    check(&f, "hoist", 0);
    arena_free(&f.arena);
}

/* The derivative of a loop needs the carry of each turn, which is stacked, and the tanh of an
 * invariant, which is the same in each: that is computed again. */
static void test_loop_saves_what_changes(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 6);
    Node *x = matrix(&f, 3, 3), *w = matrix(&f, 3, 3);
    LoopBuilder *l = loop_open(f.g, 4, false);
    int c = loop_carry(l, x);
    Node *carry = loop_carry_value(l, c);
    loop_next(l, c, node_map2(f.g, OP_MUL, carry, node_map1(f.g, OP_TANH, w)));
    Node *sum = node_fold(f.g, OP_SUM, loop_final(f.g, loop_close(l), c), 3);
    region_result(f.region, sum);
    region_result(f.region, node_grad(f.g, sum, w, node_const(f.g, TY_F64, 1)));
    Region *after = pass_grad(f.g, f.region, GRAD_SAVE_ALL);
    region_verify(after, STAGE_GRAD);
    const Node *loop = only_loop(after);
    assert_int_equal(loop->attr->ncarry, 1);
    assert_int_equal(loop->body->out.count, 2); /* the carry, and its stack */
    arena_free(&f.arena);
}

static bool has_loop(const Region *region) {
    bool any = false;
    for (int i = 0; i < region->node.count; i++) {
        any = any || region->node.at[i]->op == OP_LOOP;
    }
    return any;
}

/* A loop that stacks what its turns begin with: where it runs once, that is what it starts from,
 * and nobody needs the loop. `reads_next`: somebody reads what it makes as well. */
static bool loop_stays(int64_t trip, bool reads_next) {
    Fixture f;
    fixture_open(&f, TY_F64, 6);
    Node *x = matrix(&f, 3, 3), *w = matrix(&f, 3, 3);
    LoopBuilder *l = loop_open(f.g, trip, false);
    int c = loop_carry(l, x);
    Node *carry = loop_carry_value(l, c), *fixed = graph_import(f.g, w);
    loop_next(l, c, node_map2(f.g, OP_MUL, node_map1(f.g, OP_TANH, carry), fixed));
    int begun = loop_emit(l, carry), same = loop_emit(l, fixed);
    Node *loop = loop_close(l);
    region_result(f.region, loop_stack(f.g, loop, begun));
    region_result(f.region, loop_stack(f.g, loop, same));
    if (reads_next) {
        region_result(f.region, loop_final(f.g, loop, c));
    }
    Region *after = pass_simplify(f.g, f.region);
    region_verify(after, STAGE_GRAD);
    for (int k = 0; k < f.region->out.count; k++) {
        assert_true(type_equal(*after->out.at[k]->type, *f.region->out.at[k]->type));
    }
    assert_true(difference(&f, f.region, after) == 0);
    bool stays = has_loop(after);
    arena_free(&f.arena);
    return stays;
}

static void test_stack_of_start(void **state) {
    (void)state;
    assert_false(loop_stays(1, false));
    assert_true(loop_stays(1, true));
    assert_true(loop_stays(2, false));
}

/* Which sums and differences of products become one operation. */
static void test_fma(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F32, 6);
    Graph *g = f.g;
    Node *x = matrix(&f, 3, 5), *y = matrix(&f, 3, 5), *z = matrix(&f, 3, 5);
    Node *xy = two(g, OP_MUL, x, y), *xz = two(g, OP_MUL, x, z), *xx = two(g, OP_MUL, x, x);
    Node *i = sample_input(&f.s, type_make(TY_I32, 1, (int64_t[]){5}), -50, 50);
    struct {
        Node *from, *also; /* a second result, or NULL */
        int fused;
    } cases[] = {
        {two(g, OP_ADD, xy, z), NULL, 1},
        {two(g, OP_ADD, z, xy), NULL, 1},
        {two(g, OP_SUB, xy, z), NULL, 1},
        {two(g, OP_SUB, z, xy), NULL, 1},
        {two(g, OP_ADD, two(g, OP_SUB, z, xy), xz), NULL, 2},
        {two(g, OP_ADD, xy, z), xy, 0},                      /* it is a value of its own */
        {two(g, OP_ADD, xy, z), two(g, OP_SUB, xy, x), 0},   /* used twice */
        {two(g, OP_SUB, xx, two(g, OP_MUL, y, y)), NULL, 0}, /* 0 where x is y */
        {two(g, OP_ADD, negated(g, xx), xy), NULL, 0},       /* likewise */
        {two(g, OP_ADD, two(g, OP_MUL, i, i), i), NULL, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        Node *out[2] = {cases[k].from, cases[k].also};
        f.region->out.count = 0;
        for (int o = 0; o < 2 && out[o]; o++) {
            region_result(f.region, out[o]);
        }
        Region *after = pass_fma(g, f.region);
        region_verify(after, STAGE_OPTIMISED);
        if (count_op(after, OP_FMA) != cases[k].fused) {
            fail_msg("case %zu: %d fused, not %d", k, count_op(after, OP_FMA), cases[k].fused);
        }
        Region *again = pass_fma(g, after);
        assert_int_equal(count_op(again, OP_FMA), cases[k].fused);
    }
    f.region->out.count = 0;
    arena_free(&f.arena);
}

/* What a contraction of labelled operands is: `sums` column sums, or still a product (0). */
typedef struct {
    const char *text; /* labels of the operands and the result, "kj,kn->jn" */
    int64_t j, n;     /* extents; k and l are 3, m is 2 */
    int sums;
} NarrowRow;

static Node *labelled(Fixture *f, const NarrowRow *row, const char **at, int8_t *label, int *rank) {
    Type type = {.elem = TY_F64};
    for (*rank = 0; **at >= 'a' && **at <= 'z'; ++*at) {
        int64_t extent = **at == 'j' ? row->j : **at == 'n' ? row->n : **at == 'm' ? 2 : 3;
        type.dim[type.rank++] = extent;
        label[(*rank)++] = (int8_t)(**at - 'a');
    }
    return sample_table(&f->s, type, -1, 1);
}

/* Few results for long columns that lie together in memory, whatever the order of the axes. */
static void test_narrow(void **state) {
    (void)state;
    static const NarrowRow rows[] = {
        {"kj,kn->jn", 1024, 4, 4},     {"kj,kn->nj", 1024, 4, 4},    {"kn,kj->jn", 1100, 3, 3},
        {"kj,kn->jn", 1024, 1, 1},     {"klj,lnk->nj", 1024, 2, 2},  {"klj,mkln->mjn", 1024, 2, 4},
        {"kj,k->j", 1024, 1, 1},       {"kj,kn->jn", 1023, 4, 0},    {"kj,kn->jn", 1024, 5, 0},
        {"jk,kn->jn", 1024, 4, 0},     {"lkj,lkn->ljn", 1024, 2, 0}, {"kjl,kn->jln", 400, 2, 2},
        {"klj,mkln->mjn", 1024, 3, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 900 + i);
        const char *at = rows[i].text;
        int8_t label[3][MD_RANK], fresh[26], next = 0;
        int rank[3];
        Node *a = labelled(&f, &rows[i], &at, label[0], &rank[0]);
        at += 1;
        Node *b = labelled(&f, &rows[i], &at, label[1], &rank[1]);
        at += 2;
        labelled(&f, &rows[i], &at, label[2], &rank[2]);
        memset(fresh, -1, sizeof fresh);
        for (int k = 0; k < 3; k++) {
            for (int d = 0; d < rank[k]; d++) {
                int8_t *to = &fresh[label[k][d]];
                *to = *to < 0 ? next++ : *to;
                label[k][d] = *to;
            }
        }
        region_result(f.region, node_contract(f.g, a, b, label[0], label[1], label[2], rank[2]));
        Region *after = pass_narrow(f.g, f.region);
        region_verify(after, STAGE_GRAD);
        /* Small sizes leave sums that are longer than a chain to products. */
        if (!ODD_SIZES && (count_op(after, OP_SUM) != rows[i].sums ||
                           count_op(after, OP_CONTRACT) != (rows[i].sums == 0))) {
            fail_msg("%s: %d sums, %d products", rows[i].text, count_op(after, OP_SUM),
                     count_op(after, OP_CONTRACT));
        }
        assert_true(difference(&f, f.region, after) < 1e-12);
        arena_free(&f.arena);
    }
}

static bool is_table(const Node *n) { /* of rows that are added up */
    return n->op == OP_SCATTER_ADD && n->type->dim[0] > 1000;
}

static Node *indices(Fixture *f, int rank, const int64_t *dim, int64_t below) {
    Node *at = sample_input(&f->s, type_make(TY_I32, rank, dim), 0, (double)below);
    return at;
}

/* Few rows that are added to a large table are summed by themselves, in the same order; many are
 * not, nor where the table is small. */
static void test_scatter_becomes_rows(void **state) {
    static const struct {
        int64_t rows, width, count;
        bool applies;
    } shape[] = {{4096, 256, 12, true}, {4096, 256, 600, false}, {2048, 16, 12, false}};
    (void)state;
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 5000 + i);
        int64_t count[] = {2, shape[i].count / 2}, table[] = {shape[i].rows, shape[i].width};
        Node *u =
            sample_input(&f.s, type_make(TY_F64, 3, (int64_t[]){2, count[1], table[1]}), -1, 1);
        Node *at = node_map2(f.g, OP_MUL, indices(&f, 2, count, 7), /* several on one row */
                             node_int(f.g, TY_I32, shape[i].rows / 7));
        Type type = type_make(TY_F64, 2, table);
        region_result(f.region, node_scatter_add(f.g, u, at, 0, type));
        Region *after = pass_simplify(f.g, f.region);
        if (!ODD_SIZES) {
            assert_int_equal(fixture_count(&f, after, is_table), !shape[i].applies);
        }
        assert_true(difference(&f, f.region, after) == 0);
        arena_free(&f.arena);
    }
}

static bool is_lookup_of_difference(const Node *n) {
    return n->op == OP_GATHER && n->in[0]->op == OP_SUB;
}

/* What is looked up in the logits less their largest, which the sum of their powers reads too, is
 * looked up in the logits; in what each column is less, and in what costs more, it is not. */
static void test_gather_of_shifted(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, 7000 + (uint64_t)form);
        Graph *g = f.g;
        int64_t dim[] = {3, 40}, count[] = {3};
        Node *x = sample_input(&f.s, type_make(TY_F64, 2, dim), -1, 1);
        Node *by = form == 1 ? node_fold(g, OP_FMAX, x, 1) : node_fold(g, OP_FMAX, x, 2);
        Node *less = node_map2(g, OP_SUB, x, node_broadcast(g, by, form == 1 ? 1 : 2, 2, dim));
        Node *e = node_map1(g, OP_EXP, less);
        region_result(f.region, node_gather(g, form == 2 ? e : less, indices(&f, 1, count, 40), 1));
        region_result(f.region, node_fold(g, OP_SUM, e, 2));
        Region *after = pass_simplify(g, f.region);
        assert_int_equal(fixture_count(&f, after, is_lookup_of_difference), form == 1);
        assert_true(difference(&f, f.region, after) == 0);
        arena_free(&f.arena);
    }
}

static bool is_wide_exp(const Node *n) {
    return n->op == OP_EXP && type_count(*n->type) > 100;
}

/* Elementwise work of which few elements are looked up is done for these; not where the whole is
 * read by others too, or most of it is looked up. */
static void test_gather_of_map(void **state) {
    (void)state;
    for (int form = 0; form < 4; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, 6000 + (uint64_t)form);
        Graph *g = f.g;
        int64_t dim[] = {3, 40, 5}, few[] = {3, 2}, many[] = {3, 30}, scale[] = {3, 5};
        Node *x = sample_input(&f.s, type_make(TY_F64, 3, dim), -1, 1);
        Node *by = sample_input(&f.s, type_make(TY_F64, 2, scale), -1, 1);
        Node *wide = node_broadcast(g, by, 2, 3, dim);
        Node *e = node_map1(g, OP_EXP, node_map2(g, OP_MUL, x, wide));
        Node *at = form == 1 ? indices(&f, 2, many, 40) : indices(&f, 2, few, 40);
        region_result(f.region, node_gather(g, e, at, 1));
        if (form == 2) {
            region_result(f.region, e);
        } else if (form == 3) { /* a repeated value itself */
            region_result(f.region, node_gather(g, wide, at, 1));
        }
        Region *after = pass_simplify(g, f.region);
        assert_int_equal(fixture_count(&f, after, is_wide_exp), form == 1 || form == 2);
        assert_true(difference(&f, f.region, after) == 0);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scatter_becomes_rows),
        cmocka_unit_test(test_gather_of_map),
        cmocka_unit_test(test_gather_of_shifted),
        cmocka_unit_test(test_fma),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_random_derivatives),
        cmocka_unit_test(test_products_become_contractions),
        cmocka_unit_test(test_pads_become_concat),
        cmocka_unit_test(test_scatter_becomes_select),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_points_stay),
        cmocka_unit_test(test_borrowed_points),
        cmocka_unit_test(test_late_rules),
        cmocka_unit_test(test_hoist),
        cmocka_unit_test(test_loop_saves_what_changes),
        cmocka_unit_test(test_stack_of_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
