/* The builder: hash-consing, folding, views of constants, loops with captured values, rebuilding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/graph.h"

typedef struct {
    Arena arena;
    Graph *g;
    Region *top;
} Fixture;

static int setup(void **state) {
    Fixture *f = test_calloc(1, sizeof *f);
    f->g = graph_new(&f->arena, TY_F32);
    f->top = region_new(f->g, NULL);
    graph_enter(f->g, f->top);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    Fixture *f = *state;
    arena_free(&f->arena);
    test_free(f);
    return 0;
}

static Node *input(Fixture *f, const char *name, int rank, const int64_t *dim) {
    Slot *slot = ARENA_NEW(&f->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = slot->file_name = slot->c_name = name;
    slot->type = type_make(TY_F32, rank, dim);
    return node_slot(f->g, slot);
}

static void test_equal_nodes_are_one(void **state) {
    Fixture *f = *state;
    int64_t dim[] = {3, 4};
    Node *x = input(f, "x", 2, dim), *y = input(f, "y", 2, dim);
    assert_ptr_equal(node_map2(f->g, OP_ADD, x, y), node_map2(f->g, OP_ADD, x, y));
    assert_ptr_equal(node_map2(f->g, OP_ADD, x, y), node_map2(f->g, OP_ADD, y, x));
    assert_ptr_not_equal(node_map2(f->g, OP_SUB, x, y), node_map2(f->g, OP_SUB, y, x));
    int map[] = {1, 0};
    Node *t = node_permute(f->g, x, map);
    assert_ptr_equal(t, node_permute(f->g, x, map));
    assert_int_equal(t->type->dim[0], 4);
    region_verify(f->top, STAGE_BUILT);
}

static void test_constants_fold(void **state) {
    Fixture *f = *state;
    Graph *g = f->g;
    Node *two = node_const(g, TY_F32, 2), *three = node_const(g, TY_F32, 3);
    Node *six = node_map2(g, OP_MUL, two, three);
    assert_int_equal(six->op, OP_CONST);
    assert_true(six->attr->value == 6);
    int64_t dim[] = {5};
    Node *full = node_full(g, type_make(TY_F32, 1, dim), 2);
    Node *sum = node_map2(g, OP_ADD, full, three);
    assert_int_equal(sum->op, OP_BROADCAST);
    assert_true(sum->in[0]->attr->value == 5);
    Node *tenth = node_map2(g, OP_DIV, node_const(g, TY_F32, 1), node_const(g, TY_F32, 10));
    assert_true(tenth->attr->value == (double)0.1f);
    Node *slice = node_slice_axis(g, full, 0, 1, 2, 2);
    assert_ptr_equal(slice->in[0], two);
}

static void test_identities_of_views(void **state) {
    Fixture *f = *state;
    Graph *g = f->g;
    int64_t dim[] = {4, 6}, flat[] = {24}, split[] = {2, 2, 6};
    Node *x = input(f, "x", 2, dim);
    assert_ptr_equal(node_reshape(g, node_reshape(g, x, 1, flat), 2, dim), x);
    int id[] = {0, 1};
    assert_ptr_equal(node_permute(g, x, id), x);
    assert_ptr_equal(node_slice_axis(g, x, 1, 0, 6, 1), x);
    Node *r = node_reshape(g, node_reshape(g, x, 1, flat), 3, split);
    assert_ptr_equal(r->in[0], x);
    int64_t one[] = {7, 4, 6}, two[] = {7, 4, 8, 6};
    Node *b = node_broadcast(g, node_broadcast(g, x, 1, 3, one), 1u << 2, 4, two);
    assert_ptr_equal(b->in[0], x);
    assert_int_equal(b->attr->axes, 1u | 1u << 2);
    assert_ptr_equal(node_concat(g, &x, 1, 0), x);
}

/* sum of x[i] * w over a loop that captures w, with a stack of the partial sums. */
static Node *small_loop(Fixture *f, Node **stack, Node *w) {
    Graph *g = f->g;
    int64_t dim[] = {5, 3}, row[] = {3};
    Node *x = input(f, "x", 2, dim);
    LoopBuilder *loop = loop_open(g, 5, false);
    int h = loop_carry(loop, node_full(g, type_make(TY_F32, 1, row), 0));
    int unused = loop_carry(loop, node_const(g, TY_F32, 1));
    Node *term = node_map2(g, OP_MUL, loop_xs(loop, x), w);
    Node *next = node_map2(g, OP_ADD, loop_carry_value(loop, h), term);
    loop_next(loop, h, next);
    loop_next(loop, unused, node_map2(g, OP_ADD, loop_carry_value(loop, unused), w));
    int y = loop_emit(loop, next);
    loop_emit(loop, node_map1(g, OP_NEG, next));
    Node *node = loop_close(loop);
    *stack = loop_stack(g, node, y);
    return loop_final(g, node, h);
}

static void test_loop_captures(void **state) {
    Fixture *f = *state;
    Node *w = input(f, "w", 0, NULL), *stack;
    Node *sum = small_loop(f, &stack, w);
    const Node *loop = sum->in[0];
    assert_int_equal(loop->attr->ncarry, 2);
    assert_int_equal(loop->attr->ninv, 1);
    assert_int_equal(loop->attr->nxs, 1);
    assert_int_equal(loop->attr->nys, 2);
    assert_int_equal(stack->type->rank, 2);
    assert_int_equal(stack->type->dim[0], 5);
    region_verify(f->top, STAGE_BUILT);
}

static void test_rebuild_drops_what_nobody_needs(void **state) {
    Fixture *f = *state;
    Node *w = input(f, "w", 0, NULL), *stack;
    Node *sum = small_loop(f, &stack, w);
    node_map1(f->g, OP_EXP, sum); /* dead */
    region_result(f->top, sum);
    graph_leave(f->g, NULL);
    Region *fresh = region_rebuild(f->g, f->top, NULL, NULL);
    region_verify(fresh, STAGE_BUILT);
    const Node *loop = fresh->out.at[0]->in[0];
    assert_int_equal(loop->attr->ncarry, 1);
    assert_int_equal(loop->attr->nys, 0);
    assert_int_equal(loop->attr->ninv, 1);
    for (int i = 0; i < fresh->node.count; i++) {
        assert_int_not_equal(fresh->node.at[i]->op, OP_EXP);
    }
    assert_true(fresh->node.count < f->top->node.count);
}

static void test_nested_loops_thread_values(void **state) {
    Fixture *f = *state;
    Graph *g = f->g;
    Node *w = input(f, "w", 0, NULL);
    LoopBuilder *outer = loop_open(g, 4, false);
    int a = loop_carry(outer, node_const(g, TY_F32, 0));
    LoopBuilder *inner = loop_open(g, 3, true);
    int b = loop_carry(inner, loop_carry_value(outer, a));
    loop_next(inner, b, node_map2(g, OP_ADD, loop_carry_value(inner, b), w));
    Node *in = loop_close(inner);
    loop_next(outer, a, loop_final(g, in, b));
    Node *out = loop_close(outer);
    assert_int_equal(out->attr->ninv, 1);
    assert_int_equal(in->attr->ninv, 1);
    region_result(f->top, loop_final(g, out, a));
    region_verify(f->top, STAGE_BUILT);
    graph_leave(g, NULL);
    Region *fresh = region_rebuild(g, f->top, NULL, NULL);
    region_verify(fresh, STAGE_OPTIMISED);
}

static void test_inline_puts_arguments_in(void **state) {
    Fixture *f = *state;
    Graph *g = f->g;
    int64_t dim[] = {3};
    Node *x = input(f, "x", 1, dim);
    Region *body = region_new(g, NULL);
    Node *p = region_param(body, *x->type), *q = region_param(body, *x->type);
    Region *before = graph_enter(g, body);
    region_result(body, node_map2(g, OP_SUB, p, node_map1(g, OP_NEG, q)));
    graph_leave(g, before);
    Node *arg[] = {x, x}, *out[1];
    region_inline(g, body, arg, out);
    assert_ptr_equal(out[0], node_map2(g, OP_SUB, x, node_map1(g, OP_NEG, x)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_equal_nodes_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_constants_fold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_identities_of_views, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loop_captures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rebuild_drops_what_nobody_needs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nested_loops_thread_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inline_puts_arguments_in, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
