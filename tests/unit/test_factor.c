/* Sums of a loop whose terms differ by what is the same in every turn become one; others stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dumped.h"
#include "pass_fixture.h"
#include "passes/factor.h"
#include "passes/simplify.h"

enum { TRIP = 5, WIDE = 4 };

typedef enum {
    TWO,     /* q a and q b */
    THREE,   /* and q, with nothing that is shared */
    SIGNS,   /* q a and -(b q) 2 */
    SPREAD,  /* the shared value is one element for all */
    UNLIKE,  /* q a and r b: not the same of the turn */
    POWERS,  /* q q a and q b: nor these */
    READ,    /* another value of the turn is made of the sum */
    KEPT,    /* the sum of each turn is stacked */
    STARTED, /* one begins with something */
    FOLLOWS, /* one adds up twice what the other has added up so far */
    STOPPED, /* a loop that ends by itself */
    BODY,    /* in a loop that stands in another one */
    FORMS
} Form;

static Node *times(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_MUL, a, b);
}

static Node *added(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_ADD, a, b);
}

static Node *input(Fixture *f, int rank) {
    static const Type types[] = {{.elem = TY_F64},
                                 {.elem = TY_F64, .rank = 1, .dim = {WIDE}},
                                 {.elem = TY_F64, .rank = 2, .dim = {TRIP, WIDE}}};
    return sample_input(&f->s, types[rank], -1, 1);
}

/* The terms of a turn, of the slices q and r; `a`, `b` and `c` are shared. Gives their number. */
static int terms(Fixture *f, Form form, Node *q, Node *r, Node *const *shared, Node **term) {
    Graph *g = f->g;
    term[0] = times(g, q, shared[0]);
    term[1] = times(g, shared[1], q);
    switch (form) {
    case THREE: term[2] = q; return 3;
    case SIGNS: {
        Node *two = node_full(g, *q->type, 2);
        term[1] = times(g, node_map1(g, OP_NEG, times(g, shared[1], q)), two);
        break;
    }
    case SPREAD: term[1] = times(g, q, node_broadcast(g, shared[2], 1, 1, q->type->dim)); break;
    case UNLIKE: term[1] = times(g, r, shared[1]); break;
    case POWERS: term[0] = times(g, times(g, q, q), shared[0]); break;
    default: break;
    }
    return 2;
}

static void sums(Fixture *f, Form form, Node *xs, Node *const *shared, Node **result) {
    Graph *g = f->g;
    const Type type = {.elem = TY_F64, .rank = 1, .dim = {WIDE}};
    Node *zeros = node_full(g, type, 0), *term[3];
    Node *first = node_map2(g, OP_LT, shared[2], node_const(g, TY_F64, 2));
    LoopBuilder *loop = loop_open(g, TRIP, false);
    Node *q = node_map1(g, OP_SIN, loop_xs(loop, xs)), *r = node_map1(g, OP_COS, q);
    int count = terms(f, form, q, r, shared, term), carry[3], kept = -1, go = -1;
    for (int k = 0; k < count; k++) {
        carry[k] = loop_carry(loop, form == STARTED && k == 1 ? shared[0] : zeros);
    }
    if (form == STOPPED) {
        go = loop_carry(loop, first);
        loop_while(loop, go);
        loop_next(
            loop, go,
            node_map2(g, OP_LT, node_cast(g, loop_index(loop), TY_F64), node_const(g, TY_F64, 2)));
    }
    for (int k = 0; k < count; k++) {
        Node *before = loop_carry_value(loop, carry[k]);
        Node *more = form == FOLLOWS && k == 1 ? loop_carry_value(loop, carry[0]) : term[k];
        more = form == READ && k == 1 ? added(g, more, loop_carry_value(loop, carry[0])) : more;
        Node *next = added(g, before, more);
        loop_next(loop, carry[k], next);
        kept = form == KEPT && k == 0 ? loop_emit(loop, next) : kept;
    }
    Node *closed = loop_close(loop);
    for (int k = 0; k < count; k++) {
        result[k] = loop_final(g, closed, carry[k]);
    }
    result[count] = kept >= 0 ? loop_stack(g, closed, kept) : NULL;
}

static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    Node *xs = input(f, 2), *result[4] = {NULL};
    Node *shared[3] = {input(f, 1), input(f, 1), input(f, 0)};
    if (form == BODY) {
        LoopBuilder *loop = loop_open(g, 2, false);
        int carry = loop_carry(loop, shared[0]);
        Node *inner[3] = {loop_carry_value(loop, carry), graph_import(g, shared[1]),
                          graph_import(g, shared[2])};
        sums(f, form, graph_import(g, xs), inner, result);
        loop_next(loop, carry, added(g, result[0], result[1]));
        region_result(f->region, loop_final(g, loop_close(loop), carry));
        return;
    }
    sums(f, form, xs, shared, result);
    for (int k = 0; result[k]; k++) {
        region_result(f->region, result[k]);
    }
}

/* Of floats, of the innermost loop. */
static int carries(const Region *region) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        for (int k = 0; n->op == OP_LOOP && k < n->attr->ncarry; k++) {
            count += elem_is_float(n->in[k]->type->elem);
        }
        if (n->op == OP_LOOP && region_count(n->body, OP_LOOP) > 0) {
            return carries(n->body);
        }
    }
    return count;
}

static void test_forms(void **state) {
    static const int left[FORMS] = {
        [TWO] = 1,  [THREE] = 1, [SIGNS] = 1,   [SPREAD] = 1,  [UNLIKE] = 2,  [POWERS] = 2,
        [READ] = 2, [KEPT] = 2,  [STARTED] = 2, [FOLLOWS] = 2, [STOPPED] = 2, [BODY] = 1};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)form);
        build(&f, (Form)form);
        Region *before = pass_simplify(f.g, f.region);
        assert_int_equal(factor_applies(before), form != STARTED);
        Region *after = pass_factor(f.g, before);
        region_verify(after, STAGE_OPTIMISED);
        if (carries(after) != left[form]) {
            fail_msg("form %d: %d sums are left", form, carries(after));
        }
        double gap = difference(&f, before, after);
        if (!(gap < 1e-13)) {
            fail_msg("form %d, seed %llu: %g", form, (unsigned long long)seed(), gap);
        }
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
