/* Loops of two turns whose sums begin with zeros go turn by turn; others stay loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/simplify.h"
#include "passes/unroll.h"

enum { WIDE = 1024 };

typedef enum {
    PLAIN,
    REVERSED,
    STACKED, /* gives a stack of what it adds, which another loop goes through */
    INDEXED, /* turns read their number */
    INNER,   /* its body holds such a loop */
    FOLLOWS, /* what another one gives goes into it */
    THREE,   /* turns */
    STARTED, /* the sum begins with something */
    SMALL,   /* sums of a few elements */
    STOPPED, /* it ends by itself */
    TOP,     /* it stands in no other loop */
    FORMS
} Form;

static Node *input(Fixture *f, int rank, int64_t turns, int64_t wide) {
    Type type = {.elem = f->s.elem, .rank = rank};
    type.dim[0] = rank > 1 ? turns : wide;
    type.dim[1] = rank > 1 ? wide : 0;
    return sample_input(&f->s, type, -1, 1);
}

/* A loop over `xs` that adds up what its turns give, of `by` too. */
static Node *sum(Fixture *f, Form form, Node *xs, Node *by) {
    Graph *g = f->g;
    const int64_t turns = xs->type->dim[0];
    Node *start = form == STARTED ? by : node_full(g, *by->type, 0);
    Node *last = form == STOPPED ? node_int(g, TY_I32, 0) : NULL;
    LoopBuilder *loop = loop_open(g, turns, form == REVERSED);
    if (last) {
        loop_until(loop, last);
    }
    const int carry = loop_carry(loop, start);
    Node *slice = loop_xs(loop, xs), *term = node_map2(g, OP_MUL, node_map1(g, OP_SIN, slice), by);
    if (form == INDEXED) {
        term = node_map2(g, OP_MUL, term, node_cast(g, loop_index(loop), f->s.elem));
    }
    if (form == INNER) {
        term = node_map2(g, OP_ADD, term, sum(f, REVERSED, xs, slice));
    }
    loop_next(loop, carry, node_map2(g, OP_ADD, loop_carry_value(loop, carry), term));
    const int y = form == STACKED ? loop_emit(loop, term) : -1;
    Node *closed = loop_close(loop), *result = loop_final(g, closed, carry);
    if (y >= 0) {
        result = node_map2(g, OP_SUB, result, sum(f, THREE, loop_stack(g, closed, y), by));
    }
    return form == FOLLOWS ? sum(f, REVERSED, xs, result) : result;
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    const int64_t wide = form == SMALL ? 1 : WIDE;
    Node *xs = input(f, 2, form == THREE ? 3 : 2, wide), *by = input(f, 1, 0, wide);
    LoopBuilder *around = form == TOP ? NULL : loop_open(g, 3, false);
    const int carry = around ? loop_carry(around, by) : 0;
    Node *now = around ? loop_carry_value(around, carry) : by;
    Node *next = node_map1(g, OP_TANH, sum(f, form, xs, now));
    if (around) {
        loop_next(around, carry, next);
        next = loop_final(g, loop_close(around), carry);
    }
    region_result(f->region, next);
}

static int loops(const Region *region) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        count += n->op == OP_LOOP ? 1 + loops(n->body) : 0;
    }
    return count;
}

static void test_forms(void **state) {
    static const int before[FORMS] = {2, 2, 3, 2, 3, 3, 2, 2, 2, 2, 1};
    static const int after[FORMS] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 1};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        fixture_open(&f, TY_F32, (uint64_t)form);
        build(&f, (Form)form);
        const Region *region = pass_simplify(f.g, f.region);
        assert_int_equal(loops(region), before[form]);
        assert_int_equal(unroll_applies(region), after[form] < before[form]);
        const Region *turns = pass_unroll(f.g, region);
        region_verify(turns, STAGE_OPTIMISED);
        if (loops(turns) != after[form]) {
            fail_msg("form %d: %d loops are left", form, loops(turns));
        }
        if (difference(&f, region, turns) != 0) {
            fail_msg("form %d, seed %llu: other values", form, (unsigned long long)seed());
        }
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
