/* Channels last from one convolution to the next: random nets of everything that is done with
 * images give the same values and derivatives, in loops too; and where channels are to lie last,
 * they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/layout.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what is done with images [b, c, h, w] ---------------------------------------------------- */

static Node *input(Fixture *f, int rank, const int64_t *dim) {
    Type type = {.elem = TY_F64, .rank = rank};
    for (int i = 0; i < rank; i++) {
        type.dim[i] = dim[i];
    }
    return sample_input(&f->s, type, -1, 1);
}

static Node *windows(Fixture *f, Node *x, int64_t k, int64_t stride) {
    int64_t p = k / 2, h = (x->type->dim[2] - 1) / stride + 1,
            w = (x->type->dim[3] - 1) / stride + 1;
    x = node_window(f->g, x, 2, stride, 1, p, h, k, BORDER_VALUE, 0);
    return node_window(f->g, x, 4, stride, 1, p, w, k, BORDER_VALUE, 0);
}

/* To `o` channels, k odd. */
static Node *conv(Fixture *f, Node *x, int64_t o, int64_t k, int64_t stride) {
    static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {6, 1, 3, 5}, to[] = {0, 6, 2, 4};
    Node *w = input(f, 4, (int64_t[]){o, x->type->dim[1], k, k});
    return node_contract(f->g, windows(f, x, k, stride), w, la, lb, to, 4);
}

static Node *pointwise(Fixture *f, Node *x) {
    static const int8_t la[] = {0, 1, 2, 3}, lb[] = {4, 1}, to[] = {0, 4, 2, 3};
    Node *w = input(f, 2, (int64_t[]){8 + sample_below(&f->s, 3), x->type->dim[1]});
    return node_contract(f->g, x, w, la, lb, to, 4);
}

static Node *depthwise(Fixture *f, Node *x) {
    static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {1, 3, 5}, to[] = {0, 1, 2, 4};
    Node *w = input(f, 3, (int64_t[]){x->type->dim[1], 3, 3});
    return node_contract(f->g, windows(f, x, 3, 1), w, la, lb, to, 4);
}

/* Two groups; of an odd number of channels the first ones. */
static Node *grouped(Fixture *f, Node *x) {
    static const int8_t la[] = {0, 1, 2, 3, 4, 5, 6}, lb[] = {1, 7, 2, 4, 6},
                        to[] = {0, 1, 7, 3, 5};
    int64_t half = x->type->dim[1] / 2, h = x->type->dim[2], w = x->type->dim[3];
    Node *even = windows(f, node_slice_axis(f->g, x, 1, 0, 2 * half, 1), 3, 1);
    even = node_reshape(f->g, even, 7, (int64_t[]){x->type->dim[0], 2, half, h, 3, w, 3});
    Node *weight = input(f, 5, (int64_t[]){2, 4, half, 3, 3});
    Node *y = node_contract(f->g, even, weight, la, lb, to, 5);
    return node_reshape(f->g, y, 4, (int64_t[]){x->type->dim[0], 8, h, w});
}

static Node *biased(Fixture *f, Node *x, OpCode op) {
    Node *bias = input(f, 1, &x->type->dim[1]);
    return node_map2(f->g, op, x, node_broadcast(f->g, bias, 1 | 4 | 8, 4, x->type->dim));
}

/* Of 2 x 2 places: what relu, max and its place give. */
static Node *pool(Fixture *f, Node *x, bool by_place) {
    Graph *g = f->g;
    int64_t b = x->type->dim[0], c = x->type->dim[1], h = x->type->dim[2] / 2,
            w = x->type->dim[3] / 2;
    Node *y = node_window(g, x, 2, 2, 1, 0, h, 2, BORDER_NONE, 0);
    y = node_window(g, y, 4, 2, 1, 0, w, 2, BORDER_NONE, 0);
    if (!by_place) {
        return node_fold(g, OP_FMAX, y, 8 | 32);
    }
    y = node_permute(g, y, (int[]){0, 1, 2, 4, 3, 5});
    y = node_reshape(g, y, 5, (int64_t[]){b, c, h, w, 4});
    Node *place = node_argfold(g, OP_ARGMAX, y, 4);
    return node_map2(g, OP_MUL, node_cast(g, place, TY_F64), node_fold(g, OP_SUM, y, 16));
}

/* Without its mean by channel, or by two groups of channels. */
static Node *centred(Fixture *f, Node *x, bool by_groups) {
    Graph *g = f->g;
    const int64_t *dim = x->type->dim;
    if (!by_groups || dim[1] % 2 != 0) {
        Node *mean = node_fold(g, OP_SUM, x, 1 | 4 | 8);
        return node_map2(g, OP_SUB, x, node_broadcast(g, mean, 1 | 4 | 8, 4, dim));
    }
    int64_t split[5] = {dim[0], 2, dim[1] / 2, dim[2], dim[3]};
    Node *parts = node_reshape(g, x, 5, split);
    Node *mean = node_fold(g, OP_SUM, parts, 4 | 8 | 16);
    parts = node_map2(g, OP_SUB, parts, node_broadcast(g, mean, 4 | 8 | 16, 5, split));
    return node_reshape(g, parts, 4, dim);
}

/* A part of it beside it, or it beside itself the other way round. */
static Node *joined(Fixture *f, Node *x) {
    int axis = 1 + (int)sample_below(&f->s, 3);
    Node *other = node_flip(f->g, x, 1u << (1 + sample_below(&f->s, 3)));
    if (sample_below(&f->s, 2)) {
        other = node_slice_axis(f->g, other, axis, 1, x->type->dim[axis] - 1, 1);
    }
    return node_concat(f->g, (Node *[]){x, other}, 2, axis);
}

static Node *padded(Fixture *f, Node *x) {
    int64_t lo[4] = {0, sample_below(&f->s, 2), 1, 0}, hi[4] = {0, 0, sample_below(&f->s, 3), 1};
    return node_pad(f->g, x, lo, hi, sample_below(&f->s, 2) ? BORDER_VALUE : BORDER_EDGE, 0);
}

/* Twice as high and wide. */
static Node *larger(Fixture *f, Node *x) {
    const int64_t *dim = x->type->dim;
    int64_t twice[6] = {dim[0], dim[1], dim[2], 2, dim[3], 2};
    Node *y = node_broadcast(f->g, x, 8 | 32, 6, twice);
    return node_reshape(f->g, y, 4, (int64_t[]){dim[0], dim[1], 2 * dim[2], 2 * dim[3]});
}

static Node *dropped(Fixture *f, Node *x) {
    Node *key[2] = {node_int(f->g, TY_I64, 5), node_int(f->g, TY_I64, 1)};
    return node_map2(f->g, OP_MUL, x, node_random(f->g, DIST_UNIFORM, 77, key, 2, *x->type));
}

/* What a user does who wants channels last, or something that has none. */
static Node *turned(Fixture *f, Node *x) {
    Node *y = node_permute(f->g, x, (int[]){0, 2, 3, 1});
    y = node_cumsum(f->g, y, 1 + (int)sample_below(&f->s, 3), false, false);
    return node_permute(f->g, y, (int[]){0, 3, 1, 2});
}

static Node *flattened(Fixture *f, Node *x) {
    const int64_t *dim = x->type->dim;
    int64_t flat[2] = {dim[0], dim[1] * dim[2] * dim[3]};
    Node *y = node_map1(f->g, OP_TANH, node_reshape(f->g, x, 2, flat));
    return node_reshape(f->g, y, 4, dim);
}

/* Residual convolutions in a loop, which starts as `x` or as nothing and leaves a stack. */
static Node *looped(Fixture *f, Node *x) {
    Graph *g = f->g;
    bool reverse = sample_below(&f->s, 2);
    Node *outside = biased(f, x, OP_ADD);
    Node *start = sample_below(&f->s, 2) ? x : node_full(g, *x->type, 0);
    LoopBuilder *loop = loop_open(g, 3, reverse);
    int carry = loop_carry(loop, start);
    Node *value = loop_carry_value(loop, carry);
    Node *y = conv(f, node_map2(g, OP_ADD, value, outside), x->type->dim[1], 3, 1);
    y = node_map2(g, OP_ADD, node_map1(g, OP_TANH, y), value);
    loop_next(loop, carry, y);
    int stack = loop_emit(loop, node_map1(g, OP_TANH, y));
    Node *made = loop_close(loop);
    Node *all = node_fold(g, OP_SUM, loop_stack(g, made, stack), 1);
    return node_map2(g, OP_ADD, loop_final(g, made, carry), all);
}

static Node *step(Fixture *f, Node *x) {
    bool large = x->type->dim[2] > 8 || x->type->dim[3] > 8 || x->type->dim[1] > 20;
    bool small = x->type->dim[2] < 4 || x->type->dim[3] < 4;
    switch (sample_below(&f->s, 17)) {
    case 0: return conv(f, x, 8, 3, 1);
    case 1: return conv(f, x, 9, 3, small ? 1 : 2);
    case 2: return conv(f, x, 3, 1, 1);
    case 3: return pointwise(f, x);
    case 4: return x->type->dim[1] >= 8 ? depthwise(f, x) : x;
    case 5: return x->type->dim[1] >= 4 ? grouped(f, x) : x;
    case 6: return node_map1(f->g, OP_TANH, biased(f, x, OP_ADD));
    case 7: return biased(f, x, OP_MAX);
    case 8: return small ? x : pool(f, x, sample_below(&f->s, 2));
    case 9: return centred(f, x, sample_below(&f->s, 2));
    case 10: return large ? x : joined(f, x);
    case 11: return large ? x : padded(f, x);
    case 12: return large ? x : larger(f, x);
    case 13: return dropped(f, x);
    case 14: return turned(f, x);
    case 15: return flattened(f, x);
    default: return looped(f, x);
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

static Node *image(Fixture *f, int64_t channels) {
    int64_t n = 4 + sample_below(&f->s, 3);
    return input(f, 4, (int64_t[]){2, channels, n, n});
}

static void test_random_nets(void **state) {
    (void)state;
    int applied = 0;
    for (uint64_t i = 0; i < 120; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 7000 + i);
        Node *x = conv(&f, image(&f, 1 + sample_below(&f.s, 9)), 8, 3, 1);
        for (int64_t n = 2 + sample_below(&f.s, 5); n > 0 && f.s.nslot < SAMPLE_SLOTS - 2; n--) {
            x = step(&f, x);
        }
        region_result(f.region, x);
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
        before = pass_halo(f.g, before);
        applied += layout_applies(before);
        Region *after = pass_layout(f.g, before);
        region_verify(after, STAGE_OPTIMISED);
        double gap = difference(&f, before, after);
        if (!(gap < 1e-11) && !(gap < tolerance(&f, before))) {
            region_dump(before, stderr, 0);
            fail_msg("net %d (MDLC_SEED=%llu): %g", (int)i, (unsigned long long)seed(), gap);
        }
        arena_free(&f.arena);
    }
    assert_true(applied > 60);
}

static bool is_turned_product(const Node *node) {
    return node->op == OP_CONTRACT && node->type->rank == 4 && node->type->dim[3] == 8 &&
           node->type->dim[0] == 2;
}

static bool is_product(const Node *node) {
    return node->op == OP_CONTRACT;
}

static bool is_straight(const Node *node) {
    return node->op == OP_FMAX && node->type->dim[1] == 8;
}

/* A chain of convolutions: all products of images have their channels last, nothing between them is
 * computed in another order, and the parameters' gradients stay as they are. */
static void test_chain(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    Node *x = input(&f, 4, (int64_t[]){2, 3, 12, 12});
    Node *y = biased(&f, conv(&f, x, 8, 3, 1), OP_ADD);
    y = pool(&f, node_map1(f.g, OP_TANH, y), false);
    y = biased(&f, conv(&f, y, 8, 3, 1), OP_ADD);
    y = total(&f, pool(&f, y, false));
    region_result(f.region, y);
    add_gradients(&f);
    Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
    Region *after = pass_layout(f.g, pass_halo(f.g, before));
    assert_true(difference(&f, before, after) < 1e-12);
    if (!ODD_SIZES) { /* both forwards, the adjoint by the input of the second */
        assert_int_equal(fixture_count(&f, after, is_turned_product), 3);
        assert_int_equal(fixture_count(&f, after, is_product), 6);
        assert_int_equal(fixture_count(&f, after, is_straight), 0);
    }
    arena_free(&f.arena);
}

static bool is_product_of_few(const Node *node) {
    return node->op == OP_CONTRACT && node->type->dim[node->type->rank - 1] == 4;
}

static bool is_map_of_few(const Node *node) {
    return op_info[node->op].cls == CLASS_MAP && node->type->rank > 3 &&
           node->type->dim[1] != 4 && node->type->dim[node->type->rank - 1] == 4;
}

/* Four channels fill no vector: the adjoint of the second convolution by its input has them last,
 * with two places in a vector, and what is made of it lies straight, as the gradient of the first
 * one's weights, whose vectors run along the places, reads it. */
static void test_few_channels(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    Node *x = input(&f, 4, (int64_t[]){24, 1, 28, 28});
    Node *y = pool(&f, node_map1(f.g, OP_TANH, conv(&f, x, 4, 5, 1)), false);
    y = node_map1(f.g, OP_TANH, conv(&f, y, 16, 5, 1));
    region_result(f.region, total(&f, y));
    add_gradients(&f);
    Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
    Region *after = pass_layout(f.g, pass_halo(f.g, before));
    region_verify(after, STAGE_OPTIMISED);
    if (!ODD_SIZES) {
        assert_int_equal(fixture_count(&f, after, is_product_of_few), 1);
        assert_int_equal(fixture_count(&f, after, is_map_of_few), 0);
    }
    arena_free(&f.arena);
}

static bool is_straight_map(const Node *node) {
    return node->op == OP_TANH && node->type->rank == 4 && node->type->dim[3] == 12;
}

static bool is_turned_map(const Node *node) {
    return node->op == OP_TANH && node->type->rank == 4 && node->type->dim[1] == 12;
}

/* A product without windows of a picture that is given: its channels lie last where windows read
 * it, with maps in between, and in front of the places where none do. */
static void test_read_by_windows(void **state) {
    (void)state;
    for (int read = 0; read < 2; read++) {
        Fixture f;
        fixture_open(&f, TY_F64, 1);
        Node *y = pointwise(&f, input(&f, 4, (int64_t[]){2, 9, 12, 12}));
        y = node_map1(f.g, OP_TANH, biased(&f, y, OP_ADD));
        region_result(f.region, total(&f, read ? depthwise(&f, y) : pointwise(&f, y)));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_layout(f.g, pass_halo(f.g, before));
        region_verify(after, STAGE_OPTIMISED);
        assert_true(difference(&f, before, after) < 1e-12);
        assert_int_equal(fixture_count(&f, after, is_turned_map), read);
        assert_int_equal(fixture_count(&f, after, is_straight_map), !read);
        arena_free(&f.arena);
    }
}

/* What only the results of an entry are made of is made in their order. */
static void test_results(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    Node *x = input(&f, 4, (int64_t[]){2, 8, 16, 16});
    region_result(f.region, node_map1(f.g, OP_TANH, conv(&f, x, 8, 3, 1)));
    Region *after = pass_layout(f.g, pass_halo(f.g, f.region));
    assert_int_equal(after->out.at[0]->op, OP_TANH);
    arena_free(&f.arena);
}

/* Carries of residual loops go through them with channels last, whatever they start as. */
static bool has_turned_carry(const Node *node) {
    return node->op == OP_LOOP && node->in[0]->type->rank == 4 && node->in[0]->type->dim[3] == 9;
}

static bool has_straight_carry(const Node *node) {
    return node->op == OP_LOOP && node->in[0]->type->rank == 4 && node->in[0]->type->dim[1] == 9;
}

static void test_carries(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 8; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 200 + i);
        Node *x = conv(&f, input(&f, 4, (int64_t[]){2, 3, 6, 6}), 9, 3, 1);
        region_result(f.region, total(&f, looped(&f, x)));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_layout(f.g, pass_halo(f.g, before));
        assert_true(difference(&f, before, after) < 1e-11);
        if (!ODD_SIZES) {
            assert_int_equal(fixture_count(&f, after, has_turned_carry), 2);
            assert_int_equal(fixture_count(&f, after, has_straight_carry), 0);
        }
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_few_channels),
        cmocka_unit_test(test_read_by_windows),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_carries),
        cmocka_unit_test(test_random_nets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
