/* The last value of a carry is read of the stack of its values, where that is there as long; to the
 * bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/final.h"

enum { TRIP = 5, WIDE = 8 };

typedef enum {
    NEXTS,   /* the next values are stacked */
    VALUES,  /* the values as turns begin, and the start is read behind the adjoint too */
    REVERSE, /* the same in a loop that goes backwards */
    BEGUN,   /* the same, but nobody reads the start any more */
    WHOLE,   /* a sum over all of the stack reads it as well */
    LATER,   /* the carry is read behind all readers of the stack */
    RESULT,  /* the carry goes out */
    STARTS,  /* another loop's carry starts from it */
    SMALL,   /* it takes less than is worth it */
    FORMS
} Form;

/* carry' = sin(carry) * slice, where a slice is given, else sin(carry); emits either. */
static Node *forward(Fixture *f, Node *start, bool reverse, bool values) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, reverse);
    int carry = loop_carry(loop, start);
    Node *next = node_map1(g, OP_SIN, loop_carry_value(loop, carry));
    loop_next(loop, carry, next);
    loop_emit(loop, values ? loop_carry_value(loop, carry) : next);
    return loop_close(loop);
}

/* carry' = carry * cos(slice), against the direction. */
static Node *adjoint(Fixture *f, Node *stack, Node *start, bool reverse) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, !reverse);
    int carry = loop_carry(loop, start);
    Node *slope = node_map1(g, OP_COS, loop_xs(loop, stack));
    loop_next(loop, carry, node_map2(g, OP_MUL, loop_carry_value(loop, carry), slope));
    return loop_final(g, loop_close(loop), carry);
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    const bool values = form != NEXTS, reverse = form == REVERSE;
    Type type = {.elem = f->s.elem, .rank = 1, .dim = {WIDE}};
    Node *start = node_map1(g, OP_EXP, sample_input(&f->s, type, -1, 1));
    Node *loop = forward(f, start, reverse, values);
    Node *last = loop_final(g, loop, 0), *stack = loop_stack(g, loop, 0);
    Node *sum = total(f, last);
    Node *seed = node_broadcast(g, sum, 1, 1, type.dim);
    Node *slope = adjoint(f, stack, seed, reverse);
    region_result(f->region, form == BEGUN ? slope : node_map2(g, OP_MUL, slope, start));
    if (form == WHOLE) {
        region_result(f->region, total(f, stack));
    } else if (form == LATER) {
        region_result(f->region, node_map2(g, OP_ADD, last, slope));
    } else if (form == RESULT) {
        region_result(f->region, last);
    } else if (form == STARTS) {
        region_result(f->region, loop_final(g, forward(f, last, false, false), 0));
    }
}

static bool picks_last(const Node *n) {
    return n->op == OP_PICK && n->in[0]->attr->nys > 0 && n->attr->axis < n->in[0]->attr->ncarry;
}

static int stacks(const Fixture *f, const Region *region) {
    (void)f;
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        count += region->node.at[i]->op == OP_LOOP ? region->node.at[i]->attr->nys : 0;
    }
    return count;
}

static void test_forms(void **state) {
    (void)state;
    const int64_t all = WIDE * (int64_t)sizeof(double);
    for (int form = 0; form < FORMS; form++) {
        const bool ends = form <= REVERSE;
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        const int64_t least = form == SMALL ? all + 1 : all;
        assert_int_equal(final_applies(before, least), ends);
        Region *after = pass_final(f.g, before, least);
        region_verify(after, STAGE_OPTIMISED);
        int left = fixture_count(&f, after, picks_last);
        assert_int_equal(left, ends ? 0 : fixture_count(&f, before, picks_last));
        assert_int_equal(stacks(&f, after), stacks(&f, before));
        assert_true(difference(&f, before, after) == 0);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
