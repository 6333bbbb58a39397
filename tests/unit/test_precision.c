/* 16 bits: what is rounded and how, which products are, what 16 bits hold without rounding, and
 * what derivatives make of a rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "compiler/eval_rule.h"
#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/halves.h"
#include "passes/precision.h"
#include "runtime/half.h"

/* --- the rounding ----------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

typedef struct {
    Elem elem;
    float (*from)(uint16_t h);
    uint16_t (*to)(float f);
    float (*round)(float f);
    uint16_t (*cut)(float f);
} Format;
static const Format formats[] = {{TY_BF16, md_from_bf16, md_to_bf16, md_bf16f, md_cut_bf16},
                                 {TY_F16, md_from_f16, md_to_f16, md_f16f, md_cut_f16}};

/* The program and the evaluator agree on `x`, to the bit. */
static void expect_rounded(const Format *f, float x) {
    float made = f->round(x);
    double want = num_round(f->elem, (double)x);
    assert_true(isnan(x) ? isnan(made) && isnan(want) : (double)made == want);
    assert_true(isnan(x) || signbit(made) == signbit(x));
    assert_true(f->cut(made) == f->to(x));
}

/* What the bits of IEEE's half mean. */
static double meaning(uint32_t h) {
    double fraction = h & 1023, sign = h & 0x8000 ? -1 : 1;
    int exponent = (int)(h >> 10 & 31);
    if (exponent == 31) {
        return fraction == 0 ? sign * INFINITY : (double)NAN;
    }
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

/* All values of 16 bits, the midpoints between them and their neighbours: subnormals, infinities,
 * NaN are among them. */
static void test_rounding(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        double want = meaning(h), is = (double)md_from_f16((uint16_t)h);
        assert_true(isnan(want) ? isnan(is) : is == want && !signbit(is) == !(h & 0x8000));
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
            const Format *f = &formats[i];
            float x = f->from((uint16_t)h);
            assert_true(isnan(x) ? isnan(f->round(x)) : f->to(x) == h);
            for (uint32_t low = 0; low < 8; low++) {
                static const uint32_t bits[8] = {0,      1,      0x7FFF, 0x8000,
                                                 0x8001, 0xFFFF, 0x4000, 0xC000};
                expect_rounded(f, float_of(h << 16 | bits[low]));
            }
        }
    }
    for (uint32_t h = 0; h < 0x7C00; h++) { /* of the larger neighbour the float below it */
        double least = meaning(h), next = h == 0x7BFF ? 65536 : meaning(h + 1);
        float between = (float)((least + next) / 2);
        float near[3] = {between, nextafterf(between, 0), nextafterf(between, INFINITY)};
        uint32_t even = h % 2 == 0 ? h : h + 1;
        uint32_t want[3] = {even, h, h + 1};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(md_to_f16(near[k]), want[k]);
            assert_int_equal(md_to_f16(-near[k]), want[k] | 0x8000u);
            expect_rounded(&formats[1], near[k]);
            expect_rounded(&formats[1], -near[k]);
        }
    }
}

/* Draws choose between two neighbours, in the program as in the evaluator, and of all draws as many
 * each that their mean is the number. */
static void test_drawn(void **state) {
    (void)state;
    enum { DRAWS = 256 }; /* each the first of its kind: of 2^-8 */
    for (uint32_t h = 0; h < 65536; h += 1 + h % 7) {
        static const uint32_t low[] = {0, 0x100, 0x1200, 0x7F00, 0x8000, 0xFF00, 0xFFFF};
        for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
            float x = float_of(h << 16 | low[i]), down = float_of(h << 16);
            uint32_t ups = 0;
            for (uint32_t k = 0; k < DRAWS; k++) {
                float made = md_bf16_drawn(x, (float)k / DRAWS);
                double want = num_round_drawn(TY_BF16, (double)x, (double)k / DRAWS);
                assert_true(isnan(x) ? isnan(made) && isnan(want) : (double)made == want);
                assert_true(isnan(x) || signbit(made) == signbit(x));
                assert_true(isnan(x) || md_from_bf16(md_cut_bf16(made)) == made);
                ups += made != down;
            }
            if (isfinite(x)) {
                assert_int_equal(ups, low[i] >> 8);
            }
        }
    }
    assert_true(md_bf16_drawn(3.0e38f * 1.13f, 0.999f) == INFINITY);
}

/* --- which products --------------------------------------------------------------------------- */

static Node *matrix(Fixture *f, int64_t rows, int64_t columns) {
    Type t = {.elem = TY_F32, .rank = 2, .dim = {rows, columns}};
    return sample_input(&f->s, t, -1, 1);
}

/* a b^T, both [rows, k]. */
static Node *product(Fixture *f, Node *a, Node *b) {
    return node_contract(f->g, a, b, (const int8_t[]){0, 2}, (const int8_t[]){1, 2},
                         (const int8_t[]){0, 1}, 2);
}

static bool is_rounding(const Node *n) {
    return op_rounds(n->op);
}

static int roundings(Fixture *f,
                     Region *(*pass)(Graph *g, const Region *region, Elem half, int64_t rounds),
                     Elem half, int64_t rounds) {
    Region *made = pass(f->g, f->region, half, rounds);
    region_verify(made, STAGE_GRAD);
    return fixture_count(f, made, is_rounding);
}

static void test_products(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns, sum;
        int before, after; /* roundings in front of derivatives, and behind them */
    } rows[] = {{64, 64, 64, 3, 2},
                {64, 64, 1, 0, 0},
                {32, 48, 8, 3, 2},
                {32, 48, 7, ODD_SIZES ? 3 : 0, ODD_SIZES ? 2 : 0},
                {31, 64, 64, ODD_SIZES ? 3 : 0, ODD_SIZES ? 2 : 0},
                {64, 1, 64, 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Fixture f;
        fixture_open(&f, TY_F32, 900 + i);
        Node *a = matrix(&f, rows[i].rows, rows[i].sum),
             *b = matrix(&f, rows[i].columns, rows[i].sum);
        region_result(f.region, product(&f, a, b));
        for (Elem half = TY_F16; half <= TY_BF16; half++) {
            assert_int_equal(roundings(&f, pass_precision, half, ROUND_ALL), rows[i].before);
            assert_int_equal(roundings(&f, pass_operands, half, ROUND_ALL), rows[i].after);
            assert_int_equal(roundings(&f, pass_precision, half, ROUND_CONVOLUTIONS), 0);
        }
        arena_free(&f.arena);
    }
}

/* Rows, columns and the sum decide, by what a machine takes for an operation of a loop and for one
 * of a product; what is converted counts less where it is made in 16 bits, and a byte that no cache
 * holds is won. Where bfloat16 multiplies in pairs more of it pays. */
static void test_pays(void **state) {
    (void)state;
    static const MachineTimes machine = {.loop = 150, .tile = 10, .byte = 50};
    static const MachineTimes pairs = {.loop = 150, .tile = 10, .byte = 50, .pairs = true};
    static const struct {
        int64_t rows, columns, sum;
        bool made; /* the first operand is */
        bool pays, in_pairs;
    } rows[] = {{64, 512, 784, false, false, true},  {128, 128, 128, true, false, true},
                {256, 3072, 768, true, true, true},  {128, 3072, 768, false, false, true},
                {4096, 512, 512, false, true, true}, {768, 128, 64, true, false, true},
                {32768, 128, 64, true, false, true}, {131072, 128, 64, true, true, true},
                {32, 64, 64, false, false, false},   {128, 84, 120, true, false, false},
                {512, 64, 32, true, false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Fixture f;
        fixture_open(&f, TY_F32, 950 + i);
        Node *a = matrix(&f, rows[i].rows, rows[i].sum),
             *b = matrix(&f, rows[i].columns, rows[i].sum);
        a = rows[i].made ? node_map1(f.g, OP_TANH, a) : a;
        region_result(f.region, product(&f, a, b));
        int64_t pays = precision_pays(f.region, TY_BF16, &machine);
        assert_int_equal(pays & ROUND_PRODUCTS, rows[i].pays || ODD_SIZES ? ROUND_PRODUCTS : 0);
        pays = precision_pays(f.region, TY_BF16, &pairs);
        assert_int_equal(pays & ROUND_PRODUCTS, rows[i].in_pairs || ODD_SIZES ? ROUND_PRODUCTS : 0);
        assert_int_equal(precision_pays(f.region, TY_F16, &pairs),
                         precision_pays(f.region, TY_F16, &machine));
        arena_free(&f.arena);
    }
}

/* A bias and a number go in front of the rounding; so does not what another reads, nor a sum of two
 * products. A rounded operand is not rounded again, and one that is shared is rounded once. */
static void test_ends(void **state) {
    (void)state;
    Fixture f;
    fixture_open(&f, TY_F32, 910);
    Node *a = matrix(&f, 64, 64), *b = matrix(&f, 64, 64);
    Type vector = {.elem = TY_F32, .rank = 1, .dim = {64}};
    Node *bias = node_broadcast(f.g, sample_input(&f.s, vector, -1, 1), 1, 2, a->type->dim);
    Node *linear = node_map2(f.g, OP_ADD, product(&f, a, b), bias);
    Node *twice = node_map2(f.g, OP_ADD, product(&f, b, a), product(&f, b, b));
    region_result(f.region, linear);
    region_result(f.region, twice);
    Region *made = pass_precision(f.g, f.region, TY_F16, ROUND_ALL);
    assert_int_equal(fixture_count(&f, made, is_rounding), 5); /* a, b, three products */
    const Node *end = made->out.at[0];
    assert_true(end->op == OP_F16 && end->attr->reverse && end->in[0]->op == OP_ADD);
    assert_true(made->out.at[1]->op == OP_ADD && made->out.at[1]->in[0]->op == OP_F16);
    assert_int_equal(fixture_count(&f, pass_operands(f.g, made, TY_F16, ROUND_ALL), is_rounding),
                     5);
    arena_free(&f.arena);
}

/* Products that are marked, and those of their derivatives, round nothing. */
static void test_exact(void **state) {
    (void)state;
    for (int marked = 0; marked < 2; marked++) {
        Fixture f;
        fixture_open(&f, TY_F32, 915);
        Node *a = matrix(&f, 64, 64), *b = matrix(&f, 64, 64);
        f.g->exact = marked;
        Node *c = product(&f, a, b);
        f.g->exact = false;
        Node *loss = total(&f, node_map2(f.g, OP_MUL, c, c));
        region_result(f.region, node_grad(f.g, loss, a, node_const(f.g, TY_F32, 1)));
        region_result(f.region, node_grad(f.g, loss, b, node_const(f.g, TY_F32, 1)));
        Region *made = pass_precision(f.g, f.region, TY_BF16, ROUND_ALL);
        made = pass_operands(f.g, pass_grad(f.g, made, GRAD_SAVE_ALL), TY_BF16, ROUND_ALL);
        assert_int_equal(fixture_count(&f, made, is_rounding), marked ? 0 : 4);
        arena_free(&f.arena);
    }
}

/* --- what 16 bits hold ------------------------------------------------------------------------ */

static void held_case(Elem half) {
    Fixture f;
    fixture_open(&f, TY_F32, 920);
    Node *x = matrix(&f, 6, 5), *y = node_map1(f.g, op_rounding(half), x);
    Node *zero = node_full(f.g, *x->type, 0), *third = node_full(f.g, *x->type, 1.0 / 3);
    Node *large = node_full(f.g, *x->type, 98304), *fine = node_full(f.g, *x->type, 1.0009765625);
    Node *other_way = node_map1(f.g, op_rounding(half == TY_F16 ? TY_BF16 : TY_F16), x);
    LoopBuilder *loop = loop_open(f.g, 6, false);
    Node *slice = loop_xs(loop, y), *other = loop_xs(loop, x);
    int kept = loop_emit(loop, node_map1(f.g, OP_NEG, slice));
    int made = loop_emit(loop, node_map2(f.g, OP_MUL, slice, other));
    Node *closed = loop_close(loop);
    const struct {
        Node *node;
        bool held;
    } rows[] = {{x, false},
                {y, true},
                {node_reshape(f.g, y, 1, (int64_t[]){30}), true},
                {node_map1(f.g, OP_NEG, y), true},
                {node_map2(f.g, OP_MAX, y, zero), true},
                {node_map2(f.g, OP_MAX, y, third), false},
                {node_map2(f.g, OP_MAX, y, large), half == TY_BF16},
                {node_map2(f.g, OP_MAX, y, fine), half == TY_F16},
                {other_way, false},
                {node_map2(f.g, OP_MAX, y, x), false},
                {node_map2(f.g, OP_ADD, y, y), false},
                {node_map1(f.g, OP_EXP, y), false},
                {loop_stack(f.g, closed, kept), true},
                {loop_stack(f.g, closed, made), false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        region_result(f.region, rows[i].node);
    }
    Halves *h = halves_new(&f.arena, f.region, half);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (halves_hold(h, rows[i].node) != rows[i].held) {
            fail_msg("row %d", (int)i);
        }
    }
    arena_free(&f.arena);
}

static void test_halves(void **state) {
    (void)state;
    held_case(TY_BF16);
    held_case(TY_F16);
}

/* --- derivatives ------------------------------------------------------------------------------ */

/* d/dx of sum(round(x) * c) is c, or c rounded where the cotangent is rounded too. */
static void test_derivative(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        Elem half = i / 2 ? TY_F16 : TY_BF16;
        bool both = i % 2;
        Fixture f;
        fixture_open(&f, TY_F32, 930);
        Node *x = matrix(&f, 4, 8), *c = matrix(&f, 4, 8);
        Attr attr = {.reverse = both};
        Node *y = graph_add(f.g, op_rounding(half), &x, 1, &attr, type_scalar(TY_ERROR));
        Node *loss = total(&f, node_map2(f.g, OP_MUL, y, c));
        region_result(f.region, node_grad(f.g, loss, x, node_const(f.g, TY_F32, 1)));
        Region *made = pass_grad(f.g, f.region, GRAD_SAVE_ALL);
        Eval *ev = eval_open(&f.arena, (EvalOptions){.round = false});
        for (int k = 0; k < f.s.nslot; k++) {
            eval_bind(ev, f.s.slot[k], f.s.data[k]);
        }
        Value out[1];
        eval_region(ev, made, out);
        for (int k = 0; k < 32; k++) {
            double is = f.s.data[1][k], want = both ? num_round(half, is) : is;
            assert_true(out[0].at[k].f == want);
        }
        arena_free(&f.arena);
    }
}

/* The gradients of a net of two products, with the roundings of the policy in the evaluator and
 * without: apart by about what a rounding moves, and apart. `moved`: so are those by what has been
 * moved, whose rounding does not go in front of where it was. */
static void policy_case(Elem half, bool moved) {
    Fixture f;
    fixture_open(&f, TY_F32, 940);
    Node *x = matrix(&f, 64, 48), *w = matrix(&f, 40, 48), *v = matrix(&f, 36, 40);
    if (moved) {
        x = node_flip(f.g, x, 1);
        w = node_slice_axis(f.g, node_flip(f.g, w, 2), 0, 4, 36, 1);
        v = node_slice_axis(f.g, v, 1, 2, 36, 1);
    }
    Node *h = node_map1(f.g, OP_TANH, product(&f, x, w)), *y = product(&f, h, v);
    Node *loss = total(&f, node_map2(f.g, OP_MUL, y, y));
    Node *point[3] = {x, w, v};
    for (int k = 0; k < 3; k++) {
        region_result(f.region, node_grad(f.g, loss, point[k], node_const(f.g, TY_F32, 1)));
    }
    Region *rounds = pass_precision(f.g, f.region, half, ROUND_ALL);
    rounds = pass_operands(f.g, pass_grad(f.g, rounds, GRAD_SAVE_ALL), half, ROUND_ALL);
    Region *plain = pass_grad(f.g, f.region, GRAD_SAVE_ALL);
    assert_true(fixture_count(&f, rounds, is_rounding) >= 7);
    Value got[2][3];
    for (int r = 0; r < 2; r++) {
        Eval *ev = eval_open(&f.arena, (EvalOptions){.round = false});
        for (int k = 0; k < f.s.nslot; k++) {
            eval_bind(ev, f.s.slot[k], f.s.data[k]);
        }
        eval_region(ev, r ? rounds : plain, got[r]);
    }
    for (int k = 0; k < 3; k++) {
        double gap = 0, size = 0;
        for (int64_t i = 0; i < type_count(got[0][k].type); i++) {
            double a = got[0][k].at[i].f, b = got[1][k].at[i].f;
            gap += (a - b) * (a - b);
            size += a * a;
        }
        double unit = half == TY_F16 ? 0x1p-11 : 0x1p-8;
        assert_true(gap > 0 && sqrt(gap / size) < 4 * unit);
    }
    arena_free(&f.arena);
}

static void test_policy(void **state) {
    (void)state;
    for (Elem half = TY_F16; half <= TY_BF16; half++) {
        policy_case(half, false);
        policy_case(half, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_drawn),
        cmocka_unit_test(test_products), cmocka_unit_test(test_pays),
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_exact),
        cmocka_unit_test(test_halves),   cmocka_unit_test(test_derivative),
        cmocka_unit_test(test_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
