/* A batch in parts of its rows: every op that goes through by rows, in random chains, gives the
 * same bits, and derivatives that differ by rounding; what is in there is made for a part at a
 * time. So it is with the turns of a loop, whose adjoint gives what is made of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dumped.h"
#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/parts.h"
#include "passes/simplify.h"

#include <string.h>

enum { ROWS = 12, SHARES = 3, CHAINS = 300, STEPS = 6, MOST = 400 /* elements of a row */ };

typedef enum {
    MAPPED,  /* half of them with derivatives that are given */
    SHIFTED, /* by a value for each place but the row */
    TURNED,
    PADDED,
    WINDOWED,
    PLACED, /* what windows have is added up where it was read */
    FLIPPED,
    JOINED,
    RUNNING,
    SLICED,
    SUMMED,
    LARGEST,
    MULTIPLIED,
    LOOKED_UP,
    DROPPED,
    KINDS
} Kind;

static const PartsPlan in_shares = {ROWS, SHARES, false};
static bool done[KINDS];

/* A random axis of at least two places that is not the rows'; -1: there is none. */
static int other_axis(Fixture *f, const Node *x, int rows) {
    int axis = (int)sample_below(&f->s, x->type->rank);
    return axis != rows && x->type->dim[axis] > 1 ? axis : -1;
}

static Node *padded(Fixture *f, Node *x, int axis) {
    int64_t lo[MD_RANK] = {0}, hi[MD_RANK] = {0};
    lo[axis] = 1;
    hi[axis] = 2;
    return node_pad(f->g, x, lo, hi, BORDER_VALUE, 0.5);
}

static Node *multiplied(Fixture *f, Node *x, int axis) {
    Type t = {.elem = TY_F64, .rank = 2, .dim = {5, x->type->dim[axis]}};
    int8_t la[MD_RANK], lb[2] = {MD_RANK - 1, 0}, out[MD_RANK];
    for (int i = 0; i < x->type->rank; i++) {
        la[i] = (int8_t)i;
        out[i] = (int8_t)i;
    }
    lb[0] = (int8_t)x->type->rank;
    lb[1] = (int8_t)axis;
    out[axis] = lb[0];
    return node_contract(f->g, x, sample_input(&f->s, t, -1, 1), la, lb, out, x->type->rank);
}

static Node *dropped(Fixture *f, Node *x) {
    Node *key[2] = {node_int(f->g, TY_I64, 3), node_int(f->g, TY_I64, 1)};
    Node *draw = node_random(f->g, DIST_UNIFORM, 7, key, 2, *x->type);
    Node *keep = node_map2(f->g, OP_LT, draw, node_full(f->g, *x->type, 0.5));
    return node_select(f->g, keep, x, node_full(f->g, *x->type, 0));
}

/* Of `value`, made of x: u * 2 cos x, where cos x is a value with a given derivative too. */
static Node *given(Graph *g, Node *value, Node *x, int depth) {
    Region *body = region_new(g, g->region), *before = graph_enter(g, body);
    Node *a = region_param(body, *x->type), *u = region_param(body, *x->type);
    Node *slope = node_map1(g, OP_COS, a);
    slope = depth > 0 ? given(g, slope, a, depth - 1) : slope;
    slope = node_map2(g, OP_MUL, slope, node_full(g, *x->type, 2));
    region_result(body, node_map2(g, OP_MUL, u, slope));
    graph_leave(g, before);
    return node_custom(g, value, &x, 1, body);
}

/* The place of the largest, as a number of the same rows. */
static Node *largest(Fixture *f, Node *x, int axis) {
    Node *at = node_cast(f->g, node_argfold(f->g, OP_ARGMAX, x, axis), TY_F64);
    return node_map2(f->g, OP_ADD, node_fold(f->g, OP_FMAX, x, 1u << axis), at);
}

/* One step by rows; the same where the kind does not fit. */
static Node *step(Fixture *f, Kind kind, Node *x, int *rows) {
    Graph *g = f->g;
    const int axis = other_axis(f, x, *rows), rank = x->type->rank;
    if (axis < 0 || (kind == LOOKED_UP && *rows != 0)) {
        return x;
    }
    const int64_t extent = x->type->dim[axis];
    const bool splits = rank<MD_RANK - 2, folds = rank> 2;
    Type row = {.elem = TY_F64, .rank = 1, .dim = {extent}};
    Node *joined[2] = {x, node_map1(g, OP_NEG, x)}, *y = x;
    int map[MD_RANK];
    switch (kind) {
    case MAPPED:
        y = node_map1(g, OP_TANH, x);
        y = extent % 2 == 0 ? given(g, y, x, 1) : y;
        break;
    case SHIFTED:
        y = node_map2(g, OP_MUL, x,
                      node_broadcast(g, sample_input(&f->s, row, -1, 1),
                                     ((1u << rank) - 1) & ~(1u << axis), rank, x->type->dim));
        break;
    case TURNED:
        for (int i = 0; i < rank; i++) {
            map[i] = i == axis ? *rows : i == *rows ? axis : i;
        }
        *rows = axis;
        y = node_permute(g, x, map);
        break;
    case PADDED: y = padded(f, x, axis); break;
    case WINDOWED:
    case PLACED:
        if (splits) {
            y = node_window(g, x, axis, 1, 1, 0, extent - 1, 2, BORDER_NONE, 0);
            y = node_map1(g, OP_TANH, y);
            y = kind == PLACED ? node_overlap_add(g, y, y->in[0]->attr) : y;
            *rows += kind == WINDOWED && axis < *rows;
        }
        break;
    case FLIPPED: y = node_flip(g, x, 1u << axis); break;
    case JOINED: y = node_concat(g, joined, 2, axis); break;
    case RUNNING: y = node_cumsum(g, x, axis, false, true); break;
    case SLICED: y = node_slice_axis(g, x, axis, 1, extent - 1, 1); break;
    case SUMMED:
    case LARGEST:
        if (folds) {
            y = kind == SUMMED ? node_fold(g, OP_SUM, x, 1u << axis) : largest(f, x, axis);
            *rows -= axis < *rows;
        }
        break;
    case MULTIPLIED: y = multiplied(f, x, axis); break;
    case LOOKED_UP: {
        Type index = {.elem = TY_I32, .rank = 1, .dim = {ROWS}};
        Node *at =
            node_map2(g, OP_IREM, node_iota(g, index, 0), node_int(g, TY_I32, x->type->dim[1]));
        y = rank > 1 ? node_gather(g, x, at, 1) : x;
        break;
    }
    case DROPPED: y = dropped(f, x); break;
    case KINDS: break;
    }
    if (type_count(*y->type) > ROWS * MOST) {
        return x;
    }
    done[kind] = done[kind] || y != x;
    return y;
}

/* What goes on is made of the rows of an input, */
static Node *rows_of_input(Fixture *f) {
    Type type = {.elem = TY_F64, .rank = 3, .dim = {ROWS, 5, 4}};
    return sample_input(&f->s, type, -1, 1);
}

/* or of the turns of a loop, which goes either way and keeps segments: the last has fewer turns. */
static Node *rows_of_turns(Fixture *f, int64_t segment) {
    Type type = {.elem = TY_F64, .rank = 2, .dim = {5, 4}};
    Node *start = sample_input(&f->s, type, -1, 1), *weight = sample_input(&f->s, type, -1, 1);
    LoopBuilder *loop = loop_open(f->g, ROWS, sample_below(&f->s, 2) == 0);
    loop_checkpoint(loop, segment);
    int carry = loop_carry(loop, start);
    Node *h = node_map2(f->g, OP_MUL, loop_carry_value(loop, carry), weight);
    Node *next = node_map1(f->g, OP_TANH, node_map2(f->g, OP_ADD, h, weight));
    loop_next(loop, carry, next);
    int y = loop_emit(loop, next);
    return loop_stack(f->g, loop_close(loop), y);
}

/* Results: the sum of all, and a number for each row. */
static void build(Fixture *f, Node *x) {
    int rows = 0;
    for (int i = 0; i < STEPS; i++) {
        x = step(f, (Kind)sample_below(&f->s, KINDS), x, &rows);
    }
    uint32_t others = ((1u << x->type->rank) - 1) & ~(1u << rows);
    Node *row = node_map1(f->g, OP_TANH, x);
    row = others ? node_fold(f->g, OP_SUM, row, others) : row;
    region_result(f->region, total(f, row));
    region_result(f->region, row);
}

static bool is_loop(const Node *n) {
    return n->op == OP_LOOP;
}

/* Is it made of as many rows as there are, and more than a number for each? */
static bool is_whole(const Node *n) {
    OpClass cls = op_info[n->op].cls;
    return (cls == CLASS_FOLD || cls == CLASS_CALL || n->op == OP_TANH) &&
           type_count(*n->type) > ROWS && type_count(*n->type) % ROWS == 0;
}

static bool is_given_outside(const Node *n) {
    return n->op == OP_CUSTOM && n->region->up == NULL;
}

static void test_values(void **state) {
    int customs = 0;
    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, (uint64_t)i);
        build(&f, rows_of_input(&f));
        Region *before = pass_simplify(f.g, f.region);
        assert_true(parts_applies(before, in_shares));
        Region *now = pass_parts(f.g, before, in_shares);
        region_verify(now, STAGE_BUILT);
        assert_int_equal(fixture_count(&f, now, is_loop), 1);
        customs += fixture_count(&f, before, is_given_outside);
        assert_int_equal(fixture_count(&f, now, is_given_outside), 0);
        assert_true(difference(&f, before, now) == 0); /* no sum is cut */
        arena_free(&f.arena);
    }
    assert_true(customs > CHAINS / 8);
    for (int kind = 0; kind < KINDS; kind++) {
        assert_true(done[kind]);
    }
}

static void test_gradients(void **state) {
    (void)state;
    for (int i = 0; i < CHAINS; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 1000 + (uint64_t)i);
        build(&f, rows_of_input(&f));
        add_gradients(&f);
        Region *built = pass_simplify(f.g, f.region);
        Region *before = optimise(&f, pass_grad(f.g, built, GRAD_SAVE_CALLS));
        Region *now = pass_parts(f.g, built, in_shares);
        now = optimise(&f, pass_grad(f.g, now, GRAD_SAVE_CALLS));
        assert_true(difference(&f, before, now) <= tolerance(&f, before));
        arena_free(&f.arena);
    }
}

/* Products, pads and windows of a whole batch are gone; a mean over the batch ends the parts, and
 * so does a derivative by what would be inside. */
static void test_borders(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, 7);
        Type type = {.elem = TY_F64, .rank = 2, .dim = {ROWS, 5}};
        Node *x = multiplied(&f, sample_input(&f.s, type, -1, 1), 1), *h = x;
        if (form == 1) {
            Node *mean = node_fold(f.g, OP_SUM, x, 1);
            h = node_map2(f.g, OP_SUB, x, node_broadcast(f.g, mean, 1, 2, x->type->dim));
        }
        Node *y = node_fold(f.g, OP_SUM, node_map1(f.g, OP_TANH, multiplied(&f, h, 1)), 2);
        Node *sum = total(&f, y);
        region_result(f.region, sum);
        if (form == 2) {
            region_result(f.region, node_grad(f.g, sum, x, node_const(f.g, TY_F64, 1)));
        }
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        assert_true(parts_applies(before, in_shares) == (form != 2));
        assert_false(parts_applies(before, (PartsPlan){.rows = ROWS + 1}));
        if (form != 2) {
            Region *now = pass_parts(f.g, before, in_shares);
            assert_true(fixture_count(&f, before, is_whole) > 0);
            assert_int_equal(fixture_count(&f, now, is_whole), form == 0 ? 0 : 2);
            assert_true(difference(&f, before, now) == 0);
        }
        arena_free(&f.arena);
    }
}

static bool stays_out(const Node *n) {
    return n->op == OP_CONTRACT;
}

/* Light parts end in front of a product whose weight is large beside the batch; both give the same
 * values. */
static void test_large_weights(void **state) {
    (void)state;
    for (int side = 4; side <= 36; side += 32) {
        Fixture f;
        fixture_open(&f, TY_F64, 13);
        Type rows = {.elem = TY_F64, .rank = 2, .dim = {ROWS, side}}, weight = rows;
        weight.dim[0] = side;
        Node *x = node_map1(f.g, OP_TANH, sample_input(&f.s, rows, -1, 1));
        Node *y = node_contract(f.g, x, sample_input(&f.s, weight, -1, 1), (int8_t[]){0, 1},
                                (int8_t[]){2, 1}, (int8_t[]){0, 2}, 2);
        region_result(f.region, node_fold(f.g, OP_SUM, node_map1(f.g, OP_TANH, y), 2));
        for (int light = 0; light < 2; light++) {
            const PartsPlan plan = {ROWS, SHARES, light};
            const bool ends = light && side > 4;
            Region *now = pass_parts(f.g, f.region, plan);
            assert_true(parts_applies(f.region, plan) == (!light || ends));
            assert_int_equal(fixture_count(&f, now, is_loop), 1);
            assert_int_equal(fixture_count(&f, now, stays_out), ends);
            assert_true(difference(&f, f.region, now) == 0);
        }
        arena_free(&f.arena);
    }
}

/* Chains that take no more than the stack move into the loop, to the bit; their derivatives too. */
static void test_turns(void **state) {
    (void)state;
    const GradPlan plan = {.save = GRAD_SAVE_CALLS};
    int moved = 0;
    for (int i = 0; i < CHAINS; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 2000 + (uint64_t)i);
        build(&f, rows_of_turns(&f, 5));
        const bool derives = i % 2 == 0;
        if (derives) {
            add_gradients(&f);
        }
        Region *before = pass_simplify(f.g, f.region);
        assert_true(turns_applies(before, &plan));
        Region *now = pass_turns(f.g, before, &plan);
        region_verify(now, STAGE_BUILT);
        assert_int_equal(fixture_count(&f, now, is_loop), 1);
        moved += fixture_count(&f, now, is_whole) < fixture_count(&f, before, is_whole);
        if (derives) {
            before = optimise(&f, pass_grad(f.g, before, GRAD_SAVE_CALLS));
            now = optimise(&f, pass_grad(f.g, now, GRAD_SAVE_CALLS));
            assert_true(difference(&f, before, now) <= tolerance(&f, before));
        } else {
            assert_true(difference(&f, before, now) == 0);
        }
        arena_free(&f.arena);
    }
    assert_true(moved > CHAINS / 2);
}

/* Where the loop keeps all its turns, where something else reads the stack, a derivative is taken
 * to it, and where what comes of it takes more, nothing moves. */
static void test_turns_that_stay(void **state) {
    (void)state;
    for (int form = 0; form < 5; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, 9);
        Node *x = rows_of_turns(&f, form == 1 ? CHECKPOINT_NONE : 4);
        Node *y = multiplied(&f, x, 2); /* 5 numbers for 4 */
        region_result(f.region, form == 3 ? y : node_fold(f.g, OP_SUM, y, 6));
        if (form == 4) {
            Node *all = total(&f, node_map2(f.g, OP_MUL, y, y));
            region_result(f.region, node_grad(f.g, all, x, node_const(f.g, TY_F64, 1)));
        }
        if (form == 2) {
            region_result(f.region, node_fold(f.g, OP_SUM, x, 1));
        }
        Region *before = region_rebuild(f.g, f.region, NULL, NULL);
        const GradPlan plan = {.save = GRAD_SAVE_CALLS};
        assert_true(turns_applies(before, &plan) == (form != 1));
        Region *now = pass_turns(f.g, before, &plan);
        assert_int_equal(fixture_count(&f, now, stays_out), form == 0 ? 0 : 1);
        const GradPlan segments = {.save = GRAD_SAVE_CALLS, .segment = 3};
        now = pass_turns(f.g, before, &segments);
        assert_int_equal(fixture_count(&f, now, stays_out), form < 2 ? 0 : 1);
        before = pass_grad(f.g, before, GRAD_SAVE_CALLS);
        assert_true(difference(&f, before, pass_grad(f.g, now, GRAD_SAVE_CALLS)) == 0);
        arena_free(&f.arena);
    }
}

/* The adjoint has each turn's value at hand, and so gives it: the loop itself makes carries alone.
 * Where the cotangent is made of the values, each is made in both. */
static void test_given_by_adjoints(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        Fixture f;
        fixture_open(&f, TY_F64, 11);
        Node *x = rows_of_turns(&f, 4);
        Node *row = node_fold(f.g, OP_SUM, node_map1(f.g, OP_EXP, x), 6);
        Node *sum = total(&f, node_map1(f.g, OP_TANH, row));
        Node *loss = form == 0 ? sum : node_map2(f.g, OP_MUL, sum, sum);
        region_result(f.region, loss);
        region_result(f.region, node_grad(f.g, loss, node_slot(f.g, f.s.slot[0]),
                                          node_const(f.g, TY_F64, 1)));
        const GradPlan plan = {.save = GRAD_SAVE_CALLS};
        Region *built = pass_simplify(f.g, f.region);
        Region *before = pass_grad(f.g, built, GRAD_SAVE_CALLS);
        Region *now = pass_grad(f.g, pass_turns(f.g, built, &plan), GRAD_SAVE_CALLS);
        region_verify(now, STAGE_GRAD);
        now = optimise(&f, now);
        assert_int_equal(region_count(now, OP_SUM), form == 0 ? 2 : 3); /* one is the loss */
        assert_true(difference(&f, before, now) <= 1e-12);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_gradients),
                                       cmocka_unit_test(test_borders),
                                       cmocka_unit_test(test_large_weights),
                                       cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_turns_that_stay),
                                       cmocka_unit_test(test_given_by_adjoints)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
