/* What loops stack for loops behind them: of what is cheaply made of stacks, that which takes
 * fewest bytes; values are the same to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dumped.h"
#include "pass_fixture.h"
#include "passes/thin.h"

enum { TRIP = 5, WIDE = 4, NUMBER = sizeof(double) };

typedef enum {
    SUMS,     /* two stacks are added up: one is enough */
    MASK,     /* asked is whether it is above zero: a byte each */
    PART,     /* one half of it is read */
    SHAPED,   /* in another shape: it stays as it is */
    AS_IT_IS, /* the stack itself is read too */
    DRAWN,    /* a draw is no cheap value */
    FOLDED,   /* nor is a sum, which takes fewer bytes */
    WANTED,   /* the stacks are results */
    TWO,      /* two loops go through them */
    CHAIN,    /* a sum with what else both loops have, an invariant, a slice and the index */
    FOREIGN,  /* with an invariant that the maker has not */
    LATE,     /* a value far behind the sum, of the same bytes: it is that which is stacked */
    FORMS
} Form;

static Node *input(Fixture *f, int rank) {
    Type vector = {.elem = TY_F64, .rank = 1, .dim = {WIDE}};
    Type stack = {.elem = TY_F64, .rank = 2, .dim = {TRIP, WIDE}};
    return sample_input(&f->s, rank == 1 ? vector : stack, -1, 1);
}

static Node *added(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_ADD, a, b);
}

/* What the reader makes of two slices. `of` is of the region: a stack and an invariant that the
 * maker has too, and an invariant that it has not. */
static Node *made(Fixture *f, Form form, LoopBuilder *loop, Node *const *slice, Node *const *of) {
    Graph *g = f->g;
    const Type type = *slice[0]->type;
    const int64_t lo = 0, half = WIDE / 2, one = 1, square[2] = {2, WIDE / 2};
    Node *sum = added(g, slice[0], slice[1]), *zero = node_full(g, type, 0);
    switch (form) {
    case MASK: return node_select(g, node_map2(g, OP_LT, sum, zero), zero, node_full(g, type, 2));
    case PART: return node_fold(g, OP_PROD, node_slice(g, sum, &lo, &half, &one), 1);
    case SHAPED: return node_fold(g, OP_SUM, node_reshape(g, slice[0], 2, square), 3);
    case AS_IT_IS:
        return added(g, node_fold(g, OP_PROD, slice[0], 1),
                     node_fold(g, OP_PROD, node_map2(g, OP_MUL, slice[1], sum), 1));
    case DRAWN: {
        Node *key[2] = {node_int(g, TY_I64, 3), node_int(g, TY_I64, 1)};
        Node *draw = node_random(g, DIST_UNIFORM, 7, key, 2, type);
        return node_fold(g, OP_PROD, added(g, node_map2(g, OP_MUL, slice[0], draw), slice[1]), 1);
    }
    case FOLDED:
        return added(g, node_fold(g, OP_PROD, slice[0], 1), node_fold(g, OP_PROD, slice[1], 1));
    case CHAIN: {
        Node *at = node_broadcast(g, node_cast(g, loop_index(loop), TY_F64), 1, 1, type.dim);
        sum = added(g, node_map2(g, OP_MUL, sum, of[1]),
                    node_map2(g, OP_MUL, loop_xs(loop, of[0]), at));
        return node_fold(g, OP_PROD, node_map1(g, OP_TANH, sum), 1);
    }
    case FOREIGN:
        return node_fold(g, OP_PROD, added(g, node_map2(g, OP_MUL, slice[0], of[2]), slice[1]), 1);
    case LATE: return node_fold(g, OP_PROD, node_map1(g, OP_TANH, node_map1(g, OP_SIN, sum)), 1);
    default: return node_fold(g, OP_PROD, sum, 1);
    }
}

static Node *reader(Fixture *f, Form form, Node *const *stack, Node *const *of) {
    Graph *g = f->g;
    Node *start = node_const(g, TY_F64, 0.5), *slice[2];
    LoopBuilder *loop = loop_open(g, TRIP, true);
    int carry = loop_carry(loop, start);
    slice[0] = loop_xs(loop, stack[0]);
    slice[1] = loop_xs(loop, stack[1]);
    Node *y = made(f, form, loop, slice, of);
    y = y->type->rank > 0 ? node_fold(g, OP_SUM, y, 1) : y;
    loop_next(loop, carry, added(g, node_map1(g, OP_SIN, loop_carry_value(loop, carry)), y));
    return loop_final(g, loop_close(loop), carry);
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    Node *xs = input(f, 2), *w = input(f, 1), *start = input(f, 1), *stack[2];
    Node *of[3] = {xs, w, input(f, 1)};
    LoopBuilder *loop = loop_open(g, TRIP, false);
    int carry = loop_carry(loop, start), y[2];
    Node *was = loop_carry_value(loop, carry), *x = loop_xs(loop, xs);
    Node *first = node_map1(g, OP_COS, node_map2(g, OP_MUL, was, w));
    Node *second = node_map1(g, OP_COS, added(g, was, x));
    loop_next(loop, carry, added(g, first, second));
    y[0] = loop_emit(loop, first);
    y[1] = loop_emit(loop, second);
    Node *maker = loop_close(loop);
    stack[0] = loop_stack(g, maker, y[0]);
    stack[1] = loop_stack(g, maker, y[1]);
    region_result(f->region, loop_final(g, maker, carry));
    region_result(f->region, reader(f, form, stack, of));
    if (form == WANTED) {
        region_result(f->region, stack[0]);
        region_result(f->region, stack[1]);
    } else if (form == TWO) {
        region_result(f->region, reader(f, form, stack, of));
    }
}

/* Bytes that the first loop stacks in a turn. */
static int64_t stacked(const Region *region) {
    int64_t bytes = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 1; n->op == OP_LOOP && n->attr->nys > 0 && k < n->body->out.count; k++) {
            bytes += type_bytes(*n->body->out.at[k]->type);
        }
    }
    return bytes;
}

static void test_forms(void **state) {
    static const int64_t bytes[FORMS] = {
        [SUMS] = WIDE * NUMBER,         [MASK] = WIDE,
        [PART] = WIDE / 2 * NUMBER,     [SHAPED] = WIDE * NUMBER,
        [AS_IT_IS] = 2 * WIDE * NUMBER, [DRAWN] = 2 * WIDE * NUMBER,
        [FOLDED] = 2 * WIDE * NUMBER,   [WANTED] = 2 * WIDE * NUMBER,
        [TWO] = 2 * WIDE * NUMBER,      [CHAIN] = WIDE * NUMBER,
        [FOREIGN] = 2 * WIDE * NUMBER,  [LATE] = WIDE * NUMBER};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        assert_true(thin_applies(before));
        Region *after = pass_thin(f.g, before, TY_ERROR);
        region_verify(after, STAGE_OPTIMISED);
        assert_int_equal(stacked(after), bytes[form]);
        /* moved, not more */
        assert_int_equal(region_count(after, OP_TANH), region_count(before, OP_TANH));
        assert_true(difference(&f, before, after) == 0);
        arena_free(&f.arena);
    }
}

/* Values that a type of 16 bits holds take two bytes: a sum of two such takes as much as both. */
static void test_halves(void **state) {
    (void)state;
    for (int rounded = 0; rounded < 2; rounded++) {
        Fixture f;
        fixture_open(&f, TY_F32, 3);
        Graph *g = f.g;
        Type type = {.elem = TY_F32, .rank = 1, .dim = {WIDE}};
        Node *start = sample_input(&f.s, type, -1, 1), *stack[2];
        LoopBuilder *loop = loop_open(g, TRIP, false);
        int carry = loop_carry(loop, start), y[2];
        Node *was = loop_carry_value(loop, carry), *next = node_map1(g, OP_COS, was);
        loop_next(loop, carry, next);
        for (int k = 0; k < 2; k++) {
            Node *value = node_map1(g, k == 0 ? OP_SIN : OP_TANH, was);
            y[k] = loop_emit(loop, rounded ? node_map1(g, OP_BF16, value) : value);
        }
        Node *maker = loop_close(loop);
        stack[0] = loop_stack(g, maker, y[0]);
        stack[1] = loop_stack(g, maker, y[1]);
        loop = loop_open(g, TRIP, true);
        carry = loop_carry(loop, node_const(g, TY_F32, 0));
        Node *sum = added(g, loop_xs(loop, stack[0]), loop_xs(loop, stack[1]));
        loop_next(loop, carry, added(g, loop_carry_value(loop, carry), total(&f, sum)));
        region_result(f.region, loop_final(g, loop_close(loop), carry));
        Region *before = region_rebuild(g, f.region, NULL, NULL);
        Region *after = pass_thin(g, before, TY_BF16);
        assert_int_equal(stacked(after), (rounded ? 2 : 1) * WIDE * (int)sizeof(float));
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
