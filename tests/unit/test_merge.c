/* Loops over stacks that another loop makes run inside of it: where that may be, and where not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/merge.h"

enum { TRIP = 5, WIDE = 3 };

static Node *stacked(Fixture *f) {
    return sample_input(&f->s, (Type){.elem = TY_F64, .rank = 2, .dim = {TRIP, WIDE}}, -1, 1);
}

/* One that a train may overwrite. */
static Node *weight(Fixture *f) {
    Node *w = stacked(f);
    w->attr->slot->kind = SLOT_STATE;
    return w;
}

/* A loop that carries a vector along the slices of `xs`; gives the stack of what it adds. */
static Node *host(Fixture *f, Node *xs, bool reverse, int64_t trip, Node **final) {
    Graph *g = f->g;
    Node *start = sample_input(&f->s, (Type){.elem = TY_F64, .rank = 1, .dim = {WIDE}}, -1, 1);
    LoopBuilder *loop = loop_open(g, trip, reverse);
    int carry = loop_carry(loop, start);
    Node *part = node_map2(g, OP_MUL, loop_carry_value(loop, carry), loop_xs(loop, xs));
    loop_next(loop, carry, node_map2(g, OP_ADD, part, start));
    int stack = loop_emit(loop, part);
    Node *made = loop_close(loop);
    *final = loop_final(g, made, carry);
    return loop_stack(g, made, stack);
}

/* w - rate * slice, for every slice. */
static Node *guest(Fixture *f, Node *stack, Node *w, Node *rate) {
    LoopBuilder *loop = loop_open(f->g, stack->type->dim[0], false);
    Node *slice = loop_xs(loop, stack), *old = loop_xs(loop, w);
    Node *step = node_map2(f->g, OP_MUL, slice, rate);
    int next = loop_emit(loop, node_map2(f->g, OP_SUB, old, step));
    return loop_stack(f->g, loop_close(loop), next);
}

static bool is_loop(const Node *n) {
    return n->op == OP_LOOP;
}

/* Loops, before and after, in bodies too. */
static void expect_loops(Fixture *f, const bool *awaited, int before, int after) {
    Region *now = optimise(f, f->region); /* without anything awaited */
    if (awaited) {
        now = pass_merge(f->g, f->region, awaited);
        region_verify(now, STAGE_GRAD);
    }
    assert_int_equal(fixture_count(f, f->region, is_loop), before);
    assert_int_equal(fixture_count(f, now, is_loop), after);
    assert_true(difference(f, f->region, now) <= tolerance(f, f->region));
}

typedef enum {
    PLAIN,
    REVERSED,
    RATE_BEHIND,  /* what the guest reads is made behind its host, of nothing of it */
    RATE_OF_HOST, /* or of its last carry */
    READ_LATER,   /* the old weight is read again by what needs the host */
    CHAINED,      /* a guest reads what a guest makes */
    STACK_READ,   /* the stack is asked for as well */
    AWAITED,      /* a result that all writing waits for is made of the host */
    FORMS
} Form;

static void test_forms(void **state) {
    static const int after[FORMS] = {1, 1, 1, 2, 2, 1, 2, 2};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        Graph *g = f.g;
        Node *w = weight(&f), *final, *rate = sample_input(&f.s, type_scalar(TY_F64), -1, 1);
        Node *stack = host(&f, form == PLAIN ? stacked(&f) : w, form == REVERSED, TRIP, &final);
        if (form == RATE_BEHIND) {
            rate = node_map1(g, OP_EXP, node_map1(g, OP_NEG, rate));
        } else if (form == RATE_OF_HOST) {
            rate = node_fold(g, OP_SUM, final, 1);
        }
        Node *next = guest(&f, stack, w, rate);
        if (form == CHAINED) {
            Node *mean = guest(&f, next, weight(&f), rate);
            region_result(f.region, mean);
        }
        region_result(f.region, next);
        if (form == READ_LATER) {
            Node *sum = node_fold(g, OP_SUM, w, 1);
            region_result(f.region, node_map2(g, OP_MUL, sum, final));
        } else if (form == STACK_READ) {
            region_result(f.region, stack);
            region_result(f.region, w);
        }
        int results = f.region->out.count;
        region_result(f.region, final);
        bool awaited[8] = {false};
        awaited[results] = form == AWAITED;
        expect_loops(&f, form == AWAITED ? awaited : NULL, form == CHAINED ? 3 : 2, after[form]);
        arena_free(&f.arena);
    }
}

/* A loop that carries a vector along a stack, as derivatives along a direction do. */
static Node *carrying(Fixture *f, Node *stack, Node *start, bool reverse, Node **emitted) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, reverse);
    int carry = loop_carry(loop, start), still = loop_carry(loop, start);
    Node *was = loop_carry_value(loop, carry), *slice = loop_xs(loop, stack);
    Node *turn = node_map2(g, OP_MUL, loop_carry_value(loop, still), slice);
    Node *next = node_map1(g, OP_TANH, node_map2(g, OP_ADD, was, turn));
    loop_next(loop, carry, next);
    loop_next(loop, still, loop_carry_value(loop, still));
    int stacked = emitted ? loop_emit(loop, node_map2(g, OP_MUL, next, slice)) : -1;
    Node *made = loop_close(loop);
    if (emitted) {
        *emitted = loop_stack(g, made, stacked);
    }
    return node_map2(g, OP_ADD, loop_final(g, made, carry), loop_final(g, made, still));
}

typedef enum {
    SAME_WAY,
    BOTH_BACK,
    OTHER_WAY,       /* the first slice it wants is made last */
    STACK_KEPT,      /* nothing goes away */
    START_OF_HOST,   /* it begins with what the host ends with */
    STACK_FOR_STACK, /* it makes a stack in the place of the one that it reads */
    IN_CHAIN,        /* that is read by one more */
    CARRIES
} Carries;

static void test_carries(void **state) {
    static const int before[CARRIES] = {2, 2, 2, 2, 2, 2, 3},
                     after[CARRIES] = {1, 1, 2, 2, 2, 2, 1};
    (void)state;
    for (int form = 0; form < CARRIES; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        Node *final, *emitted = NULL;
        Node *start = sample_input(&f.s, (Type){.elem = TY_F64, .rank = 1, .dim = {WIDE}}, -1, 1);
        Node *stack = host(&f, stacked(&f), form == BOTH_BACK, TRIP, &final);
        Node *from = form == START_OF_HOST ? final : start;
        bool more = form == STACK_FOR_STACK || form == IN_CHAIN;
        Node *end = carrying(&f, stack, from, form == BOTH_BACK || form == OTHER_WAY,
                             more ? &emitted : NULL);
        region_result(f.region, end);
        region_result(f.region, final);
        if (form == STACK_KEPT) {
            region_result(f.region, stack);
        } else if (form == STACK_FOR_STACK) {
            region_result(f.region, emitted);
        } else if (form == IN_CHAIN) {
            region_result(f.region, carrying(&f, emitted, start, false, NULL));
        }
        expect_loops(&f, NULL, before[form], after[form]);
        arena_free(&f.arena);
    }
}

static int loops_at_all_depths(const Region *region) {
    int n = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        n += is_loop(node) + (node->body ? loops_at_all_depths(node->body) : 0);
    }
    return n;
}

/* Loops in the bodies of two that become one: when the stack between these is gone, so is what lies
 * between the inner ones. */
static void test_nested(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F64, 1);
    Graph *g = f.g;
    Node *x = sample_input(&f.s, (Type){.elem = TY_F64, .rank = 1, .dim = {WIDE}}, -1, 1);
    Node *d = sample_input(&f.s, *x->type, -1, 1);
    LoopBuilder *outer = loop_open(g, TRIP, false);
    int c = loop_carry(outer, x);
    LoopBuilder *inner = loop_open(g, 3, false);
    int k = loop_carry(inner, loop_carry_value(outer, c));
    Node *turned = node_map2(g, OP_MUL, loop_carry_value(inner, k), d);
    loop_next(inner, k, node_map1(g, OP_SIN, turned));
    loop_next(outer, c, loop_final(g, loop_close(inner), k));
    Node *y = loop_final(g, loop_close(outer), c);
    region_result(f.region, y);
    region_result(f.region, node_jvp(g, y, x, d));
    f.region = pass_grad(g, f.region, GRAD_SAVE_CALLS);
    graph_enter(g, f.region);
    Region *now = optimise(&f, f.region);
    assert_int_equal(loops_at_all_depths(f.region), 4);
    assert_int_equal(loops_at_all_depths(now), 2);
    assert_true(difference(&f, f.region, now) <= tolerance(&f, f.region));
    arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_carries),
                                       cmocka_unit_test(test_nested)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
