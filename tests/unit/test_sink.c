/* What is looked up for all turns of loops is looked up for each; to the bit. In front of the pass
 * that differentiates, where segments are kept, the derivative is added up turn by turn as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/simplify.h"
#include "passes/sink.h"

enum { TRIP = 6, EACH = 2, ROWS = 3, WIDE = 8, WORDS = 5 };

typedef enum {
    PLAIN,    /* the turns are its first axis */
    TURNED,   /* or its second one */
    SEGMENTS, /* or a part of it, in each turn of a loop over segments */
    SMALL,    /* it takes less than is worth it */
    WHOLE,    /* something reads all of it */
    NARROW,   /* the indices take as much */
    BATCHED,  /* each turn has a table of its own */
    FORMS
} Form;

static Node *index_of(Fixture *f, int rank, const int64_t *dim) {
    Type type = {.elem = TY_I64, .rank = rank};
    for (int i = 0; i < rank; i++) {
        type.dim[i] = dim[i];
    }
    Node *count = node_iota(f->g, type, 0);
    for (int i = 1; i < rank; i++) {
        count = node_map2(f->g, OP_ADD, count, node_iota(f->g, type, i));
    }
    Node *to = node_cast(f->g, sample_input(&f->s, type_scalar(f->s.elem), 0, 3), TY_I64);
    return node_map2(f->g, OP_IREM, node_map2(f->g, OP_ADD, count, to),
                     node_int(f->g, TY_I64, WORDS));
}

/* carry' = sin(carry) + the sum of the slice, in a loop that goes either way. */
static Node *reader(Fixture *f, Node *stack, bool reverse) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, stack->type->dim[0], reverse);
    int carry = loop_carry(loop, node_const(g, f->s.elem, 0.5));
    Node *slice = loop_xs(loop, stack);
    Node *sum = node_fold(g, OP_SUM, slice, (1u << slice->type->rank) - 1);
    Node *next = node_map2(g, OP_ADD, node_map1(g, OP_SIN, loop_carry_value(loop, carry)), sum);
    loop_next(loop, carry, next);
    return loop_final(g, loop_close(loop), carry);
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    const int64_t width = form == NARROW ? 1 : WIDE;
    const int64_t rows[2] = {ROWS, TRIP}, turns[2] = {TRIP, ROWS};
    const int64_t segments[4] = {TRIP / EACH, EACH, ROWS, WIDE};
    const int map[3] = {1, 0, 2};
    Type table = {.elem = f->s.elem, .rank = 2, .dim = {WORDS, width}};
    Type tables = {.elem = f->s.elem, .rank = 3, .dim = {TRIP, WORDS, width}};
    bool turned = form == TURNED || form == SEGMENTS;
    Node *from = sample_input(&f->s, form == BATCHED ? tables : table, -1, 1);
    Node *x = node_gather(g, from, index_of(f, 2, turned ? rows : turns), form == BATCHED);
    x = turned ? node_permute(g, x, map) : x;
    Node *stack = form == SEGMENTS ? node_reshape(g, x, 4, segments) : x;
    region_result(f->region, reader(f, stack, false));
    region_result(f->region, reader(f, stack, true));
    if (form == WHOLE) {
        region_result(f->region, total(f, x));
    }
}

static bool looks_up(const Node *n) {
    return n->op == OP_GATHER;
}

static int looked_up_inside(const Region *region) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; n->body && k < n->body->node.count; k++) {
            count += looks_up(n->body->node.at[k]);
        }
    }
    return count;
}

static void test_forms(void **state) {
    (void)state;
    const int64_t all = TRIP * ROWS * WIDE * (int64_t)sizeof(double);
    for (int form = 0; form < FORMS; form++) {
        const bool sinks = form <= SEGMENTS;
        const int64_t least = form == SMALL ? all + 1 : form == NARROW ? 1 : all;
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        assert_true(sink_applies(before, least) == sinks);
        Region *after = pass_sink(f.g, before, least);
        region_verify(after, STAGE_OPTIMISED);
        assert_int_equal(fixture_count(&f, after, looks_up), sinks ? 0 : 1);
        assert_int_equal(looked_up_inside(after), sinks ? 2 : 0);
        assert_true(difference(&f, before, after) == 0);
        arena_free(&f.arena);
    }
}

typedef enum {
    ADDED,     /* segments, of which the last has fewer turns; the table is small */
    BY_A_PLAN, /* the text says nothing, but the plan */
    KEPT,      /* nobody says anything: the loop keeps all */
    LARGE,     /* the table takes more than what is the same for all turns */
    ASKED,     /* the derivative by what is looked up is asked for */
    LOOKUPS
} Lookup;

enum { LONGER = 5, DEEP = 80 };

/* carry' = sin(carry) + the sum of the slice times a weight, in segments of two turns. */
static void build_lookup(Fixture *f, Lookup form) {
    Graph *g = f->g;
    const int64_t turns[2] = {LONGER, ROWS};
    const bool silent = form == BY_A_PLAN || form == KEPT;
    const int8_t rows[2] = {0, 1}, columns[2] = {1, 2}, both[2] = {0, 2};
    Type table = {.elem = f->s.elem, .rank = 2, .dim = {WORDS, WIDE}};
    Type weights = {.elem = f->s.elem, .rank = 2, .dim = {WIDE, form == LARGE ? 1 : DEEP}};
    Node *from = sample_input(&f->s, table, -1, 1), *w = sample_input(&f->s, weights, -1, 1);
    Node *x = node_gather(g, from, index_of(f, 2, turns), 0);
    LoopBuilder *loop = loop_open(g, LONGER, form == ADDED);
    loop_checkpoint(loop, silent ? CHECKPOINT_NONE : EACH);
    int carry = loop_carry(loop, node_const(g, f->s.elem, 0.5));
    Node *slice = loop_xs(loop, x);
    Node *y = node_contract(g, slice, graph_import(g, w), rows, columns, both, 2);
    y = node_map1(g, OP_SIN, node_fold(g, OP_SUM, y, 3));
    loop_next(loop, carry,
              node_map2(g, OP_ADD, node_map1(g, OP_SIN, loop_carry_value(loop, carry)), y));
    region_result(f->region, loop_final(g, loop_close(loop), carry));
    if (form == ASKED) {
        Node *one = node_const(g, f->s.elem, 1);
        region_result(f->region, node_grad(g, f->region->out.at[0], x, one));
    }
    add_gradients(f);
}

static bool adds_rows(const Node *n) {
    return n->op == OP_SCATTER_ADD;
}

static void test_derivatives(void **state) {
    (void)state;
    for (int form = 0; form < LOOKUPS; form++) {
        const GradPlan segments = {.save = GRAD_SAVE_CALLS,
                                   .segment = form == BY_A_PLAN ? EACH : 0};
        const bool sinks = form <= BY_A_PLAN;
        Fixture f;
        fixture_open(&f, TY_F64, 30 + (uint64_t)form);
        build_lookup(&f, (Lookup)form);
        Region *built = pass_simplify(f.g, f.region);
        assert_true(sink_turns_applies(built, 1, &segments) == sinks);
        Region *sunk = pass_sink_turns(f.g, built, 1, &segments);
        region_verify(sunk, STAGE_BUILT);
        Region *before = optimise(&f, pass_grad_planned(f.g, built, &segments));
        Region *after = optimise(&f, pass_grad_planned(f.g, sunk, &segments));
        assert_int_equal(fixture_count(&f, before, adds_rows), 1);
        assert_int_equal(fixture_count(&f, after, adds_rows), sinks ? 0 : 1);
        assert_int_equal(fixture_count(&f, after, looks_up), sinks ? 0 : 1);
        assert_true(difference(&f, before, after) <= 1e-12);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_derivatives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
