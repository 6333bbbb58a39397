/* A carry that adds up sums of what its loop stacks, or products of it, is that of the whole stack,
 * where more than loops reads that; the values are the same but for rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/loop_builder.h"
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

/* What the pass makes of the region, in which a carry goes or not: the same values, for good. */
static Region *summed(Fixture *f, Region *before, bool moves) {
    assert_int_equal(sums_applies(before), moves);
    Region *after = pass_sums(f->g, before);
    region_verify(after, STAGE_OPTIMISED);
    const int left = fixture_count(f, before, has_carries);
    assert_int_equal(fixture_count(f, after, has_carries), left - moves);
    assert_true(difference(f, before, after) < 1e-14);
    assert_false(sums_applies(after));
    return after;
}

static void test_forms(void **state) {
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        const bool sums = form <= TURNED;
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        Region *after = summed(&f, before, sums);
        const int folds = count_of(before, OP_SUM) + sums - (form == TURNED);
        assert_int_equal(count_of(after, OP_SUM), folds);
        arena_free(&f.arena);
    }
}

/* carry' = carry + slice^T x other, the slice as above; what the other one is: */
typedef enum {
    GIVEN,           /* a slice of another stack */
    BEFORE,          /* a carry as it was, from zeros: one turn has no product */
    BEFORE_STARTED,  /* from something else: one turn has another one */
    BEFORE_REVERSE,  /* in a loop that goes backwards, from zeros */
    STARTED_REVERSE, /* and from something else */
    STACKED,         /* it is a stack of the loop too */
    UNREAD,          /* and nothing but loops reads the stack */
    COMPUTED,        /* made in the loop, and kept nowhere */
    IN_THE_MIDDLE,   /* one turn that is neither first nor last has another one */
    FIRST_STARTED,   /* a slice, where the sum starts as something else */
    MOVED,           /* a slice of a longer stack, from its third one on */
    BORDERED,        /* the stack moved by one, its first slice repeated */
    TWO_APART,       /* both operands have another turn apart */
    OTHERS
} Other;

static const struct {
    int products; /* behind the loop */
    int folds;    /* what it is made of: the longest sum of iterations */
} behind[OTHERS] = {{1, TRIP}, {1, TRIP - 1}, {2, TRIP - 1}, {1, TRIP - 1}, {2, TRIP - 1},
                    {1, TRIP}, {0, 0},        {0, 0},        {0, 0},        {1, TRIP},
                    {1, TRIP}, {0, 0},        {0, 0}};

static Node *other_of(Fixture *f, LoopBuilder *loop, Other other, Node *stack, Node *start) {
    Graph *g = f->g;
    const bool reverse = other == BEFORE_REVERSE || other == STARTED_REVERSE;
    Node *slice = loop_xs(loop, stack);
    switch (other) {
    case STACKED:
        slice = node_map1(g, OP_COS, slice);
        loop_emit(loop, slice);
        return slice;
    case COMPUTED: return node_map1(g, OP_COS, slice);
    case IN_THE_MIDDLE: {
        Node *is = node_map2(g, OP_EQ, loop_index(loop), node_int(g, TY_I32, TRIP / 2));
        return node_select(g, is, graph_import(g, start), slice);
    }
    case BEFORE:
    case TWO_APART:
    case BEFORE_STARTED:
    case BEFORE_REVERSE:
    case STARTED_REVERSE: return loop_carry_before(loop, stack, start, reverse);
    default: return slice;
    }
}

static void build_product(Fixture *f, Other other) {
    Graph *g = f->g;
    const Type xs = {.elem = f->s.elem, .rank = 3, .dim = {TRIP, ROWS, WIDE}};
    const Type stack = {.elem = f->s.elem, .rank = 3, .dim = {TRIP, ROWS, 2}};
    const Type row = {.elem = f->s.elem, .rank = 2, .dim = {ROWS, 2}};
    const Type sum = {.elem = f->s.elem, .rank = 2, .dim = {WIDE, 2}};
    const int8_t la[2] = {0, 1}, lb[2] = {0, 2}, lo[2] = {1, 2};
    Node *x = sample_input(&f->s, xs, -1, 1), *y = sample_input(&f->s, stack, -1, 1);
    const bool zeros = other == BEFORE || other == BEFORE_REVERSE || other == TWO_APART;
    Node *start = zeros ? node_full(g, row, 0) : sample_input(&f->s, row, -1, 1);
    Node *first = other == FIRST_STARTED ? sample_input(&f->s, sum, -1, 1) : node_full(g, sum, 0);
    if (other == MOVED) {
        const Type longer = {.elem = f->s.elem, .rank = 3, .dim = {TRIP + 2, ROWS, 2}};
        y = node_slice_axis(g, sample_input(&f->s, longer, -1, 1), 0, 2, TRIP, 1);
    } else if (other == BORDERED) {
        const int64_t one[MD_RANK] = {1}, none[MD_RANK] = {0};
        y = node_pad(g, node_slice_axis(g, y, 0, 0, TRIP - 1, 1), one, none, BORDER_EDGE, 0);
    }
    LoopBuilder *loop = loop_open(g, TRIP, other == BEFORE_REVERSE || other == STARTED_REVERSE);
    int carry = loop_carry(loop, first);
    Node *slice = node_map1(g, OP_SIN, loop_xs(loop, x));
    int stacked = loop_emit(loop, slice);
    if (other == TWO_APART) {
        Node *is = node_map2(g, OP_EQ, loop_index(loop), node_int(g, TY_I32, TRIP - 1));
        slice = node_select(g, is, node_full(g, *slice->type, 0), slice);
    }
    Node *product = node_contract(g, slice, other_of(f, loop, other, y, start), la, lb, lo, 2);
    loop_next(loop, carry, node_map2(g, OP_ADD, loop_carry_value(loop, carry), product));
    Node *made = loop_close(loop);
    region_result(f->region, node_map1(g, OP_EXP, loop_final(g, made, carry)));
    Node *all = loop_stack(g, made, stacked);
    const Type ones = {.elem = f->s.elem, .rank = 1, .dim = {WIDE}};
    region_result(f->region, other == UNREAD ? reading(f, all, node_full(g, ones, 1))
                                             : total(f, node_map1(g, OP_COS, all)));
    if (other == STACKED) {
        region_result(f->region, total(f, loop_stack(g, made, stacked + 1)));
    }
}

static void test_products(void **state) {
    (void)state;
    for (int other = 0; other < OTHERS; other++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)other);
        build_product(&f, (Other)other);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        const bool moves = behind[other].products > 0;
        Region *after = summed(&f, before, moves);
        assert_int_equal(count_of(after, OP_CONTRACT), behind[other].products);
        int64_t longest = 0;
        for (int i = 0; i < after->node.count; i++) {
            const Node *n = after->node.at[i];
            if (n->op == OP_CONTRACT && n->in[0]->type->rank == 3) {
                longest = n->in[0]->type->dim[0];
            }
        }
        assert_int_equal(longest, behind[other].folds);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
