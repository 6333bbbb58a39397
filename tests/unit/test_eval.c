/* The evaluator: numbers of every width, exact integers, rounding, the runtime's random numbers,
 * binding and memory, constant folding. Ops are swept by test_ops.c; here are values pinned by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/eval.h"
#include "runtime/rng.h"

#include <math.h>
#include <string.h>

typedef struct {
    Arena arena;
    Graph *g;
    Region *region;
    Eval *ev;
} Fixture;

static int setup(void **state) {
    static Fixture fixture;
    Fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    f->g = graph_new(&f->arena, TY_F32);
    f->region = region_new(f->g, NULL);
    graph_enter(f->g, f->region);
    f->ev = eval_open(&f->arena, (EvalOptions){.round = true, .check_nan = true});
    *state = f;
    return 0;
}

static int teardown(void **state) {
    arena_free(&((Fixture *)*state)->arena);
    return 0;
}

static Type vector(Elem elem, int64_t n) {
    return type_make(elem, 1, &n);
}

static Node *input(Fixture *f, Type type, const double *data) {
    Slot *slot = ARENA_NEW(&f->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = "x";
    slot->type = type;
    if (data) {
        eval_bind(f->ev, slot, data);
    }
    return node_slot(f->g, slot);
}

static Value value_of(Fixture *f, Node *node) {
    Value out;
    f->region->out.count = 0;
    region_result(f->region, node);
    eval_region(f->ev, f->region, &out);
    return out;
}

/* A slot with one number, so that nothing is folded. */
static Node *one(Fixture *f, Elem elem, double x) {
    return input(f, type_scalar(elem), &x);
}

static int64_t int_of(Fixture *f, OpCode op, Elem elem, double a, double b) {
    return value_of(f, node_map2(f->g, op, one(f, elem, a), one(f, elem, b))).at[0].i;
}

static void test_integers(void **state) {
    Fixture *f = *state;
    assert_int_equal(int_of(f, OP_ADD, TY_I8, 100, 100), -56);
    assert_int_equal(int_of(f, OP_ADD, TY_U8, 200, 100), 44);
    assert_int_equal(int_of(f, OP_SUB, TY_U32, 0, 1), 4294967295);
    assert_int_equal(int_of(f, OP_MUL, TY_I32, 65536, 65536), 0);
    assert_int_equal(int_of(f, OP_MUL, TY_I16, 300, 300), 24464);
    assert_int_equal(int_of(f, OP_IDIV, TY_I32, -7, 2), -4);
    assert_int_equal(int_of(f, OP_IREM, TY_I32, -7, 2), 1);
    assert_int_equal(int_of(f, OP_IDIV, TY_I32, 7, -2), -4);
    assert_int_equal(int_of(f, OP_IREM, TY_I32, 7, -2), -1);
    assert_int_equal(int_of(f, OP_IDIV, TY_I32, 7, 0), 0);
    assert_int_equal(int_of(f, OP_IREM, TY_I32, 7, 0), 0);
    assert_int_equal(int_of(f, OP_IDIV, TY_I32, -2147483648.0, -1), INT32_MIN);
}

/* What no double holds: seeds, keys and counters. */
static void test_exact_integers(void **state) {
    Fixture *f = *state;
    const int64_t big = INT64_C(9007199254740993); /* 2^53 + 1 */
    assert_int_equal(value_of(f, node_int(f->g, TY_I64, big)).at[0].i, big);
    Node *slot = input(f, type_scalar(TY_I64), NULL);
    eval_bind_int(f->ev, slot->attr->slot, big);
    assert_int_equal(value_of(f, node_map2(f->g, OP_MUL, slot, node_int(f->g, TY_I64, 3))).at[0].i,
                     3 * big);
    Node *folded = node_map2(f->g, OP_ADD, node_int(f->g, TY_I64, big), node_int(f->g, TY_I64, 1));
    assert_int_equal(folded->op, OP_CONST);
    assert_int_equal(folded->attr->ivalue, big + 1);
}

static double float_of(Fixture *f, OpCode op, Elem elem, double a, double b) {
    Node *made = node_map2(f->g, op, one(f, elem, a), one(f, elem, b));
    return value_of(f, elem_is_half(elem) ? node_map1(f->g, op_rounding(elem), made) : made)
        .at[0]
        .f;
}

static void test_rounding(void **state) {
    Fixture *f = *state;
    assert_true(float_of(f, OP_ADD, TY_F32, 1, 0x1p-25) == 1);
    assert_true(float_of(f, OP_ADD, TY_F64, 1, 0x1p-25) == 1 + 0x1p-25);
    assert_true(float_of(f, OP_DIV, TY_F32, 1, 3) == (double)(1.0f / 3.0f));
    assert_true(float_of(f, OP_ADD, TY_F16, 2048, 1) == 2048); /* ties to even */
    assert_true(float_of(f, OP_ADD, TY_F16, 2048, 3) == 2052);
    assert_true(isinf(float_of(f, OP_MUL, TY_F16, 60000, 2)));
    assert_true(float_of(f, OP_MUL, TY_F16, 0x1p-14, 0x1p-11) ==
                0); /* half of the least subnormal */
    assert_true(float_of(f, OP_MUL, TY_F16, 0x1p-14, 0x1p-10) == 0x1p-24);
    assert_true(float_of(f, OP_ADD, TY_BF16, 256, 1) == 256);
    assert_true(float_of(f, OP_ADD, TY_BF16, 256, 3) == 260);
    assert_true(value_of(f, node_cast(f->g, one(f, TY_F32, -2.75), TY_I32)).at[0].i == -2);
    assert_true(value_of(f, node_cast(f->g, one(f, TY_F32, (double)NAN), TY_I64)).at[0].i == 0);
    assert_true(value_of(f, node_cast(f->g, one(f, TY_F64, 1e30), TY_I64)).at[0].i == INT64_MAX);
    assert_true(value_of(f, node_map1(f->g, OP_ROUND, one(f, TY_F32, 2.5))).at[0].f == 2);
    assert_true(value_of(f, node_map1(f->g, OP_ROUND, one(f, TY_F32, -3.5))).at[0].f == -4);
}

static void test_special_values(void **state) {
    Fixture *f = *state;
    assert_true(isnan(float_of(f, OP_MIN, TY_F32, (double)NAN, 1)));
    assert_true(isnan(float_of(f, OP_MAX, TY_F32, 1, (double)NAN)));
    assert_true(value_of(f, node_map1(f->g, OP_SIGN, one(f, TY_F32, -0.5))).at[0].f == -1);
    assert_true(
        value_of(f, node_map1(f->g, OP_ISFINITE, one(f, TY_F32, (double)INFINITY))).at[0].i == 0);
    Node *list = input(f, vector(TY_F32, 4), (double[]){1, 3, 3, (double)NAN});
    assert_true(isnan(value_of(f, node_fold(f->g, OP_FMAX, list, 1)).at[0].f));
    Node *ties = input(f, vector(TY_F32, 4), (double[]){1, 3, 3, 0});
    assert_int_equal(value_of(f, node_argfold(f->g, OP_ARGMAX, ties, 0)).at[0].i, 1);
}

static void test_not_finite(void **state) {
    Fixture *f = *state;
    Node *x = one(f, TY_F32, 0);
    assert_true(value_of(f, node_map1(f->g, OP_EXP, x)).at[0].f == 1);
    assert_null(eval_not_finite(f->ev));
    Node *bad = node_map1(f->g, OP_LOG, x);
    value_of(f, node_map1(f->g, OP_NEG, bad));
    assert_ptr_equal(eval_not_finite(f->ev), bad);
}

/* The draws are those of the runtime, with the loop indices folded into the key in order. */
static void test_random(void **state) {
    Fixture *f = *state;
    Node *key[4] = {one(f, TY_I64, 42), one(f, TY_I64, 7), one(f, TY_I64, 3), one(f, TY_I64, 5)};
    md_key k = md_key_fold(md_key_fold(md_key_make(42, 99, 7), 3), 5);
    Value u = value_of(f, node_random(f->g, DIST_UNIFORM, 99, key, 4, vector(TY_F32, 5)));
    Value v = value_of(f, node_random(f->g, DIST_NORMAL, 99, key, 4, vector(TY_F32, 5)));
    Value w = value_of(f, node_random(f->g, DIST_UNIFORM, 99, key, 4, vector(TY_F64, 5)));
    Value b = value_of(f, node_random(f->g, DIST_BITS, 99, key, 4, vector(TY_U32, 5)));
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(u.at[i].f == (double)md_rand_uniform_f32(k, i));
        assert_true(v.at[i].f == (double)md_rand_normal_f32(k, i));
        assert_true(w.at[i].f == md_rand_uniform_f64(k, i));
        assert_int_equal(b.at[i].i, md_rand_bits(k, i));
    }
}

/* A million iterations take the memory of one. */
static void test_loop_memory(void **state) {
    Fixture *f = *state;
    Node *x = input(f, vector(TY_F64, 4), (double[]){1, 2, 3, 4});
    LoopBuilder *loop = loop_open(f->g, 100000, false);
    int c = loop_carry(loop, x);
    Node *more = node_map2(f->g, OP_ADD, loop_carry_value(loop, c), node_const(f->g, TY_F64, 0.5));
    loop_next(loop, c, more);
    Node *last = loop_final(f->g, loop_close(loop), c);
    size_t before = f->arena.used_bytes;
    Value out = value_of(f, last);
    assert_true(out.at[3].f == 50004);
    assert_true(f->arena.used_bytes - before < 100000);
}

/* Results may be bound again, for the next call. */
static void test_state(void **state) {
    Fixture *f = *state;
    Node *n = one(f, TY_I32, 5);
    Node *next = node_map2(f->g, OP_ADD, n, node_int(f->g, TY_I32, 1));
    for (int i = 0; i < 3; i++) {
        Value out = value_of(f, next);
        eval_bind_value(f->ev, n->attr->slot, out);
        eval_drop(f->ev, out);
    }
    Value now;
    assert_true(eval_bound(f->ev, n->attr->slot, &now));
    assert_true(value_get(now, 0) == 8);
}

static void test_tables(void **state) {
    Fixture *f = *state;
    static const double data[] = {1, 2.5, 300};
    Value ints = value_of(f, node_table(f->g, vector(TY_U8, 3), data));
    assert_int_equal(ints.at[1].i, 2);
    assert_int_equal(ints.at[2].i, 44);
    assert_true(value_of(f, node_table(f->g, vector(TY_F32, 3), data)).at[1].f == 2.5);
}

static void test_folding(void **state) {
    Fixture *f = *state;
    Node *third = node_map2(f->g, OP_DIV, node_const(f->g, TY_F32, 1), node_const(f->g, TY_F32, 3));
    assert_int_equal(third->op, OP_CONST);
    assert_true(third->attr->value == (double)(1.0f / 3.0f));
    Node *less = node_map2(f->g, OP_LT, node_int(f->g, TY_I32, -1), node_int(f->g, TY_I32, 2));
    assert_true(less->op == OP_CONST && less->type->elem == TY_BOOL && less->attr->value == 1);
    Node *cast = node_cast(f->g, node_const(f->g, TY_F64, 0.1), TY_F32);
    assert_true(cast->op == OP_CONST && cast->attr->value == (double)0.1f);
    Node *draw = node_random(f->g, DIST_UNIFORM, 1,
                             (Node *[]){node_int(f->g, TY_I64, 1), node_int(f->g, TY_I64, 2)}, 2,
                             type_scalar(TY_F32));
    assert_int_equal(draw->op, OP_RANDOM);
}

/* An index outside gives zeros and adds nowhere. */
static void test_index_outside(void **state) {
    Fixture *f = *state;
    Node *x = input(f, vector(TY_F32, 3), (double[]){1, 2, 3});
    Node *i = input(f, vector(TY_I32, 3), (double[]){2, -1, 7});
    Value out = value_of(f, node_gather(f->g, x, i, 0));
    assert_true(out.at[0].f == 3 && out.at[1].f == 0 && out.at[2].f == 0);
    out = value_of(f, node_scatter_add(f->g, x, i, 0, vector(TY_F32, 3)));
    assert_true(out.at[0].f == 0 && out.at[1].f == 0 && out.at[2].f == 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_integers),       TEST(test_exact_integers), TEST(test_rounding),
        TEST(test_special_values), TEST(test_not_finite),     TEST(test_random),
        TEST(test_loop_memory),    TEST(test_state),          TEST(test_tables),
        TEST(test_folding),        TEST(test_index_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
