/* A carry that adds up sums of what its loop stacks is the sum of that stack, where more than loops
 * reads that; the values are the same but for rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/sums.h"

enum { TRIP = 5, ROWS = 3, WIDE = 4 };

typedef enum {
    FROM_ZERO, /* the carry starts as zeros */
    STARTED,   /* as something else, which is added */
    REVERSE,   /* in a loop that goes backwards */
    TURNED,    /* the stack's own sum is one of its axes in another order: both are one then */
    SLICED,    /* another loop reads the stack, slice by slice, and nothing else */
    SEEN,      /* the loop stacks the carry too */
    RESULT,    /* the carry goes out */
    BEGINS,    /* another loop's carry starts from it */
    FORMS
} Form;

/* carry' = carry + column sums of sin(slice), which is stacked; gives the loop. */
static Node *summing(Fixture *f, Form form, Node *xs, Node *start) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, form == REVERSE);
    int carry = loop_carry(loop, start);
    Node *slice = node_map1(g, OP_SIN, loop_xs(loop, xs));
    Node *sum = node_fold(g, OP_SUM, slice, 1u << 0);
    loop_next(loop, carry, node_map2(g, OP_ADD, loop_carry_value(loop, carry), sum));
    loop_emit(loop, slice);
    if (form == SEEN) {
        loop_emit(loop, loop_carry_value(loop, carry));
    }
    return loop_close(loop);
}

/* carry' = carry * column sums of cos(slice). */
static Node *reading(Fixture *f, Node *stack, Node *start) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, false);
    int carry = loop_carry(loop, start);
    Node *sum = node_fold(g, OP_SUM, node_map1(g, OP_COS, loop_xs(loop, stack)), 1u << 0);
    loop_next(loop, carry, node_map2(g, OP_MUL, loop_carry_value(loop, carry), sum));
    return loop_final(g, loop_close(loop), carry);
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    const Type all = {.elem = f->s.elem, .rank = 3, .dim = {TRIP, ROWS, WIDE}};
    const Type row = {.elem = f->s.elem, .rank = 1, .dim = {WIDE}};
    Node *xs = sample_input(&f->s, all, -1, 1);
    Node *start = form == STARTED ? sample_input(&f->s, row, -1, 1) : node_full(g, row, 0);
    Node *loop = summing(f, form, xs, start);
    Node *end = loop_final(g, loop, 0), *stack = loop_stack(g, loop, 0);
    region_result(f->region, form == RESULT ? end : node_map1(g, OP_EXP, end));
    if (form == SLICED) {
        region_result(f->region, reading(f, stack, node_full(g, row, 1)));
    } else {
        const int map[3] = {1, 0, 2};
        Node *turned = form == TURNED ? node_permute(g, stack, map) : node_map1(g, OP_COS, stack);
        region_result(f->region,
                      node_map1(g, OP_TANH, node_fold(g, OP_SUM, turned, 1u << 0 | 1u << 1)));
    }
    if (form == SEEN) {
        region_result(f->region, total(f, loop_stack(g, loop, 1)));
    } else if (form == BEGINS) {
        region_result(f->region, reading(f, xs, end));
    }
}

static int count_of(const Region *region, OpCode op) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        count += region->node.at[i]->op == op;
    }
    return count;
}

static bool has_carries(const Node *n) {
    return n->op == OP_LOOP && n->attr->ncarry > 0;
}

static void test_forms(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        const bool sums = form <= TURNED;
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        assert_int_equal(sums_applies(before), sums);
        Region *after = pass_sums(f.g, before);
        region_verify(after, STAGE_OPTIMISED);
        const int left = fixture_count(&f, before, has_carries);
        assert_int_equal(fixture_count(&f, after, has_carries), left - sums);
        const int folds = count_of(before, OP_SUM) + sums - (form == TURNED);
        assert_int_equal(count_of(after, OP_SUM), folds);
        assert_true(difference(&f, before, after) < 1e-14);
        assert_false(sums_applies(after));
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
