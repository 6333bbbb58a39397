/* Stacks that loops make again where they read them: which may go away, and that nothing but the
 * memory changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/remat.h"

enum { TRIP = 5, WIDE = 3 };

static Node *vector(Fixture *f) {
    return sample_input(&f->s, (Type){.elem = TY_F64, .rank = 1, .dim = {WIDE}}, -1, 1);
}

static Node *stacked(Fixture *f) {
    return sample_input(&f->s, (Type){.elem = TY_F64, .rank = 2, .dim = {TRIP, WIDE}}, -1, 1);
}

typedef enum {
    OF_CARRY,      /* its values are stacked too */
    OF_NEXT,       /* or what it becomes is */
    OF_LAST_STEPS, /* that, in a loop that goes the other way */
    OF_LOST_CARRY, /* no stack says what it was */
    READ_WHOLE,    /* something reads the stack without the loop */
    WANTED,        /* the stack is a result */
    CHAINED,       /* one stack is made of what another one holds */
    INNER,         /* it is made by a loop in the body */
    TWO_READERS,   /* two loops go through it */
    FORMS
} Form;

/* acc' = acc * w + slice, in a loop against the one that made the stack; gives the sums. */
static Node *reader(Fixture *f, Node *const *stack, int count, bool reverse) {
    Graph *g = f->g;
    Node *start = vector(f), *w = vector(f);
    LoopBuilder *loop = loop_open(g, TRIP, reverse);
    int acc = loop_carry(loop, start);
    Node *sum = node_map2(g, OP_MUL, loop_carry_value(loop, acc), w);
    for (int i = 0; i < count; i++) {
        sum = node_map2(g, OP_ADD, sum, node_map1(g, OP_TANH, loop_xs(loop, stack[i])));
    }
    loop_next(loop, acc, sum);
    return loop_final(g, loop_close(loop), acc);
}

/* x * x + 1, four times. */
static Node *inner_loop(Graph *g, Node *x) {
    LoopBuilder *loop = loop_open(g, 4, false);
    int carry = loop_carry(loop, x);
    Node *was = loop_carry_value(loop, carry);
    Node *one = node_const(g, TY_F64, 1);
    loop_next(loop, carry, node_map2(g, OP_ADD, node_map1(g, OP_TANH, was), one));
    return loop_final(g, loop_close(loop), carry);
}

/* The forward loop and what reads its stacks; what of them may go away has the op *what. */
static void build(Fixture *f, Form form, OpCode *what) {
    Graph *g = f->g;
    bool reverse = form == OF_LAST_STEPS;
    Node *xs = stacked(f), *w = vector(f), *start = vector(f), *read[3];
    LoopBuilder *loop = loop_open(g, TRIP, reverse);
    int carry = loop_carry(loop, start), emitted[3], n = 0;
    Node *was = loop_carry_value(loop, carry);
    Node *part = node_map1(g, OP_SIN, node_map2(g, OP_MUL, was, loop_xs(loop, xs)));
    if (form == INNER) {
        part = node_map1(g, OP_SIN, inner_loop(g, part));
    }
    Node *next = node_map2(g, OP_ADD, node_map2(g, OP_MUL, part, w), was);
    loop_next(loop, carry, next);
    *what = OP_SIN;
    emitted[n++] = loop_emit(loop, part);
    if (form == CHAINED) {
        emitted[n++] = loop_emit(loop, node_map1(g, OP_COS, part));
        *what = OP_COS;
    }
    if (form == OF_NEXT || form == OF_LAST_STEPS) {
        emitted[n++] = loop_emit(loop, next);
    } else if (form != OF_LOST_CARRY) {
        emitted[n++] = loop_emit(loop, was);
    }
    Node *made = loop_close(loop);
    for (int i = 0; i < n; i++) {
        read[i] = loop_stack(g, made, emitted[i]);
    }
    region_result(f->region, loop_final(g, made, carry));
    region_result(f->region, reader(f, read, n, !reverse));
    if (form == TWO_READERS) {
        region_result(f->region, reader(f, read, 1, reverse));
    } else if (form == READ_WHOLE) {
        region_result(f->region, node_fold(g, OP_SUM, read[0], 1));
    } else if (form == WANTED) {
        region_result(f->region, read[0]);
    }
}

/* Stacks of the loops of the region. */
static int stacks(const Region *region) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        count += n->op == OP_LOOP ? n->attr->nys : 0;
    }
    return count;
}

/* Sines of the region, and of bodies in it. */
static int sines(const Region *region) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        count += (n->op == OP_SIN) + (n->body ? sines(n->body) : 0);
    }
    return count;
}

static void test_forms(void **state) {
    static const int gone[FORMS] = {1, 1, 1, 0, 0, 0, 1, 1, 1};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        OpCode what;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form, &what);
        KeptList kept = {.of = {0}, .arena = &f.arena};
        GradPlan plan = {.kept = &kept};
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        Region *same = pass_remat(f.g, before, &plan);
        assert_int_equal(stacks(same), stacks(before)); /* nothing is asked for */
        Kept chosen = {.op = what};
        for (int i = 0; i < kept.of.count; i++) {
            bool here = kept.of.at[i].op == what;
            chosen = here ? kept.of.at[i] : chosen;
            assert_true(!here || kept.of.at[i].bytes == TRIP * WIDE * sizeof(double));
        }
        assert_int_equal(chosen.bytes > 0, gone[form]);
        plan = (GradPlan){.again = &chosen, .nagain = 1};
        Region *after = pass_remat(f.g, before, &plan);
        region_verify(after, STAGE_OPTIMISED);
        assert_int_equal(stacks(before) - stacks(after), gone[form]);
        assert_true(difference(&f, before, after) == 0);
        /* What another stack holds is read, not made. */
        bool two = form == INNER || form == TWO_READERS;
        assert_int_equal(sines(after) - sines(before), form == CHAINED ? 0 : two ? 2 : gone[form]);
        arena_free(&f.arena);
    }
}

/* All that may go away at once: what one stack held is made of what made another. */
static void test_all(void **state) {
    (void)state;
    Fixture f;
    OpCode what;
    fixture_open(&f, TY_F64, 1);
    build(&f, CHAINED, &what);
    KeptList kept = {.of = {0}, .arena = &f.arena};
    GradPlan plan = {.kept = &kept};
    Region *before = region_rebuild(f.g, f.region, NULL, NULL);
    pass_remat(f.g, before, &plan);
    assert_int_equal(kept.of.count, 2);
    plan = (GradPlan){.again = kept.of.at, .nagain = kept.of.count};
    Region *after = pass_remat(f.g, before, &plan);
    region_verify(after, STAGE_OPTIMISED);
    assert_int_equal(stacks(after), 1); /* the carry's */
    assert_int_equal(sines(after), 2);
    assert_true(difference(&f, before, after) == 0);
    arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
