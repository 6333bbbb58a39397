/* Sums that a loop with kept carries makes for the loss alone are made by its adjoint: the loop in
 * front gives them up, values stay to the bit. Others stay where they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/simplify.h"

enum { TRIP = 5, OUTER = 2, ROWS = 8, WIDE = 32 };

typedef enum {
    SUM,     /* d' = d - e / 2, where e takes a product */
    BACK,    /* the loop runs backwards */
    INNER,   /* e is a sum over a loop in the body */
    STAGE,   /* e comes from a loop of one turn, whose carry it is */
    NESTED,  /* the loop stands in another one, which hands d on */
    READ,    /* the state is made of d too */
    SCALED,  /* d' = d e: its derivative asks for d */
    CHEAP,   /* e takes nothing */
    USED,    /* d's loop keeps all: nothing is run again */
    SQUARED, /* the loss asks for d: its derivative begins with it */
    FORMS
} Form;

static Node *product(Graph *g, Node *x, Node *w) {
    static const int8_t la[] = {0, 1}, lb[] = {1, 2}, to[] = {0, 2};
    return node_contract(g, x, w, la, lb, to, 2);
}

/* [ROWS]: what a turn adds, of the state. */
static Node *term(Fixture *f, Form form, Node *u, Node *w) {
    Graph *g = f->g;
    if (form == CHEAP) {
        return node_fold(g, OP_SUM, u, 2);
    }
    if (form == INNER) {
        const Type type = {.elem = f->s.elem, .rank = 1, .dim = {ROWS}};
        LoopBuilder *loop = loop_open(g, 3, false);
        const int carry = loop_carry(loop, node_full(g, type, 0));
        Node *at = node_cast(g, loop_index(loop), f->s.elem);
        Node *x = product(g, node_map1(g, OP_SIN, node_map2(g, OP_MUL, u, at)), w);
        Node *e = node_fold(g, OP_SUM, product(g, node_map1(g, OP_COS, x), w), 2);
        loop_next(loop, carry, node_map2(g, OP_ADD, loop_carry_value(loop, carry), e));
        return loop_final(g, loop_close(loop), carry);
    }
    Node *x = product(g, node_map1(g, OP_SIN, u), w);
    return node_fold(g, OP_SUM, product(g, node_map1(g, OP_COS, x), w), 2);
}

/* d behind TRIP turns; *u becomes the state there. */
static Node *turns(Fixture *f, Form form, Node **u, Node *start, Node *w) {
    Graph *g = f->g;
    LoopBuilder *loop = loop_open(g, TRIP, form == BACK);
    loop_checkpoint(loop, form == USED ? CHECKPOINT_NONE : CHECKPOINT_EACH);
    const int state = loop_carry(loop, *u), sum = loop_carry(loop, start);
    Node *x = loop_carry_value(loop, state), *d = loop_carry_value(loop, sum), *e;
    if (form == STAGE) {
        LoopBuilder *stage = loop_open(g, 1, false);
        loop_checkpoint(stage, CHECKPOINT_EACH);
        const int in = loop_carry(stage, x), out = loop_carry(stage, d);
        Node *slope = term(f, form, loop_carry_value(stage, in), w);
        loop_next(stage, in, node_map1(g, OP_TANH, loop_carry_value(stage, in)));
        loop_next(stage, out, slope);
        Node *closed = loop_close(stage);
        x = loop_final(g, closed, in);
        e = loop_final(g, closed, out);
    } else {
        e = term(f, form, x, w);
    }
    Node *half = node_map2(g, OP_MUL, e, node_const(g, f->s.elem, -0.5));
    Node *next = product(g, node_map1(g, OP_TANH, x), w);
    if (form == READ) {
        static const int64_t dim[] = {ROWS, WIDE};
        next = node_map2(g, OP_ADD, next, node_broadcast(g, d, 2, 2, dim));
    }
    loop_next(loop, state, next);
    loop_next(loop, sum, node_map2(g, form == SCALED ? OP_MUL : OP_ADD, d, half));
    Node *closed = loop_close(loop);
    *u = loop_final(g, closed, state);
    return loop_final(g, closed, sum);
}

/* The loss and its derivative by the weight. */
static void build(Fixture *f, Form form) {
    Graph *g = f->g;
    const Type matrix = {.elem = f->s.elem, .rank = 2, .dim = {WIDE, WIDE}};
    const Type rows = {.elem = f->s.elem, .rank = 2, .dim = {ROWS, WIDE}};
    const Type row = {.elem = f->s.elem, .rank = 1, .dim = {ROWS}};
    Node *w = sample_input(&f->s, matrix, -0.3, 0.3), *u = sample_input(&f->s, rows, -1, 1);
    Node *d = sample_input(&f->s, row, 0.5, 1);
    if (form == NESTED) {
        LoopBuilder *loop = loop_open(g, OUTER, false);
        const int state = loop_carry(loop, u), sum = loop_carry(loop, d);
        Node *x = loop_carry_value(loop, state);
        loop_next(loop, sum, turns(f, SUM, &x, loop_carry_value(loop, sum), w));
        loop_next(loop, state, x);
        Node *closed = loop_close(loop);
        u = loop_final(g, closed, state);
        d = loop_final(g, closed, sum);
    } else {
        d = turns(f, form, &u, d, w);
    }
    d = form == SQUARED ? node_map2(g, OP_MUL, d, d) : d;
    Node *loss = node_map2(g, OP_ADD, total(f, node_map2(g, OP_MUL, u, u)), total(f, d));
    region_result(f->region, loss);
    region_result(f->region, node_grad(g, loss, w, node_const(g, f->s.elem, 1)));
}

/* How many products the first loop of the region and those in it make. */
static int products_in_front(const Region *region, bool inside) {
    int count = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_LOOP && !inside) {
            return products_in_front(n->body, true);
        }
        count += n->op == OP_CONTRACT;
        count += n->op == OP_LOOP ? products_in_front(n->body, true) : 0;
    }
    return count;
}

/* As a program says whose loops keep all that their adjoints read. */
static void keep_all(Fixture *f, const Region *region) {
    for (int i = 0; i < region->node.count; i++) {
        Node *n = region->node.at[i];
        if (n->op == OP_LOOP) {
            Attr *attr = ARENA_NEW(&f->arena, Attr);
            *attr = *n->attr;
            attr->checkpoint = CHECKPOINT_NONE;
            n->attr = attr;
            keep_all(f, n->body);
        }
    }
}

static void test_forms(void **state) {
    /* The state's own product; two more are of e. */
    static const int products[FORMS] = {1, 1, 1, 1, 1, 3, 3, 1, 3, 3};
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        Fixture f;
        fixture_open(&f, TY_F32, (uint64_t)form);
        build(&f, (Form)form);
        const GradPlan usual = {.save = GRAD_SAVE_CALLS}, all = {.save = GRAD_SAVE_ALL};
        Region *late = pass_simplify(f.g, pass_grad_planned(f.g, f.region, &usual));
        region_verify(late, STAGE_GRAD);
        if (products_in_front(late, false) != products[form]) {
            fail_msg("form %d: %d products in front", form, products_in_front(late, false));
        }
        keep_all(&f, f.region);
        Region *now = pass_simplify(f.g, pass_grad_planned(f.g, f.region, &all));
        if (difference(&f, late, now) != 0) {
            fail_msg("form %d, seed %llu: other values", form, (unsigned long long)seed());
        }
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
