/* The op sweep: for every row of op.def and every sample of it, the evaluated shape is the inferred
 * one, and the first and second derivatives agree with central differences in double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/eval.h"
#include "op_sample.h"
#include "passes/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 1e-7;

static uint64_t seed(void) {
    const char *text = getenv("MDLC_SEED");
    return text ? strtoull(text, NULL, 10) : 20240607;
}

typedef struct {
    Arena arena;
    Graph *g;
    Sample s;
    Region *region;
    OpCode op;
    int variant;
} Case;

static bool case_open(Case *c, OpCode op, int variant, Elem elem) {
    *c = (Case){.op = op, .variant = variant};
    c->g = graph_new(&c->arena, elem);
    c->region = region_new(c->g, NULL);
    graph_enter(c->g, c->region);
    c->s =
        (Sample){.g = c->g, .rng = seed() + 1000 * (uint64_t)op + (uint64_t)variant, .elem = elem};
    Node *node = sample_build(&c->s, op, variant);
    if (node) {
        region_result(c->region, node);
    } else {
        arena_free(&c->arena);
    }
    return node != NULL;
}

static void case_close(Case *c) {
    arena_free(&c->arena);
}

/* Results of a region with the sample's data moved by t along `direction` (may be NULL). */
static void evaluate(Case *c, const Region *region, double t, double *const *direction,
                     Value *out) {
    Eval *ev = eval_open(&c->arena, (EvalOptions){0});
    for (int k = 0; k < c->s.nslot; k++) {
        int64_t n = type_count(c->s.slot[k]->type);
        double *data = ARENA_ARRAY(&c->arena, double, n);
        for (int64_t i = 0; i < n; i++) {
            data[i] = c->s.data[k][i] + (direction && direction[k] ? t * direction[k][i] : 0);
        }
        eval_bind(ev, c->s.slot[k], data);
    }
    eval_region(ev, region, out);
}

static void test_shapes(void **state) {
    (void)state;
    int cases = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        Case c;
        for (int variant = 0; case_open(&c, (OpCode)op, variant, TY_F32); variant++, cases++) {
            Value out;
            region_verify(c.region, STAGE_BUILT);
            evaluate(&c, c.region, 0, NULL, &out);
            assert_true(type_equal(out.type, c.region->out.at[0]->type));
            for (int64_t i = 0; i < type_count(out.type); i++) {
                assert_int_equal(isnan(value_get(out, i)) != 0, 0);
            }
            Region *copy = region_rebuild(c.g, c.region, NULL, NULL);
            Value again;
            evaluate(&c, copy, 0, NULL, &again);
            assert_memory_equal(out.at, again.at, sizeof *out.at * (size_t)type_count(out.type));
            case_close(&c);
        }
    }
    printf("%d samples\n", cases);
}

/* --- derivatives ------------------------------------------------------------------------------ */

static Node *total(Graph *g, Node *a) {
    return a->type.rank == 0 ? a : node_fold(g, OP_SUM, a, (1u << a->type.rank) - 1);
}

/* sum(a * random numbers) */
static Node *weighed(Case *c, Node *a) {
    Node *w = sample_table(&c->s, a->type, -1, 1);
    return total(c->g, node_map2(c->g, OP_MUL, a, w));
}

/* Appends the derivative of `value` to each float slot to the region's results. */
static void append_gradients(Case *c, Node *value) {
    Node *one = node_const(c->g, value->type.elem, 1);
    for (int k = 0; k < c->s.nslot; k++) {
        if (elem_is_float(c->s.slot[k]->type.elem)) {
            region_result(c->region, node_grad(c->g, value, node_slot(c->g, c->s.slot[k]), one));
        }
    }
}

static double **random_direction(Case *c) {
    double **d = ARENA_ARRAY(&c->arena, double *, c->s.nslot);
    for (int k = 0; k < c->s.nslot; k++) {
        if (elem_is_float(c->s.slot[k]->type.elem)) {
            int64_t n = type_count(c->s.slot[k]->type);
            d[k] = ARENA_ARRAY(&c->arena, double, n);
            for (int64_t i = 0; i < n; i++) {
                d[k][i] = sample_uniform(&c->s, -1, 1);
            }
        }
    }
    return d;
}

/* Compares results at+1.. of the region, the gradients of result `at`, with differences of it. */
static double gradient_error(Case *c, const Region *region, int at) {
    double **d = random_direction(c), h = 1e-3;
    Value *out[5];
    for (int k = 0; k < 5; k++) {
        out[k] = ARENA_ARRAY(&c->arena, Value, region->out.count);
        evaluate(c, region, (k - 2) * h, d, out[k]);
    }
    double numeric = (8 * (value_get(out[3][at], 0) - value_get(out[1][at], 0)) -
                      (value_get(out[4][at], 0) - value_get(out[0][at], 0))) /
                     (12 * h);
    double analytic = 0, size = 0;
    for (int k = 0, r = at + 1; k < c->s.nslot; k++) {
        for (int64_t i = 0; d[k] && i < type_count(c->s.slot[k]->type); i++) {
            double term = d[k][i] * value_get(out[2][r], i);
            analytic += term;
            size += fabs(term);
        }
        r += d[k] != NULL;
    }
    return fabs(analytic - numeric) / (1e-3 + size);
}

static bool differentiable(const Case *c) {
    const Node *out = c->region->out.at[0];
    bool has_rule = true;
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, sample, spelling)                        \
    has_rule = has_rule && (c->op != OP_##NAME || strcmp(#vjp, "none") != 0);
#include "compiler/op.def"
#undef OP
    bool from_float = false;
    for (int k = 0; k < c->s.nslot; k++) {
        from_float = from_float || elem_is_float(c->s.slot[k]->type.elem);
    }
    return has_rule && from_float && elem_is_float(out->type.elem);
}

static double worst[2];
static char worst_name[2][64];

static void check_case(Case *c, GradSave save) {
    Node *value = weighed(c, c->region->out.at[0]);
    c->region->out.count = 0;
    region_result(c->region, value);
    append_gradients(c, value);
    Node *second = node_const(c->g, value->type.elem, 0);
    for (int k = 1; k < c->region->out.count; k++) {
        Node *part = weighed(c, c->region->out.at[k]);
        second = node_map2(c->g, OP_ADD, second, node_cast(c->g, part, value->type.elem));
    }
    int at = c->region->out.count;
    region_result(c->region, second);
    append_gradients(c, second);
    region_verify(c->region, STAGE_BUILT);
    Region *region = pass_grad(c->g, c->region, save);
    region_verify(region, STAGE_GRAD);
    for (int order = 0; order < 2; order++) {
        double error = gradient_error(c, region, order ? at : 0);
        if (!(error <= worst[order])) {
            worst[order] = error;
            snprintf(worst_name[order], sizeof worst_name[order], "%s, variant %d",
                     op_info[c->op].name, c->variant);
        }
        if (!(error < TOLERANCE)) {
            region_dump(region, stderr, 0);
            fail_msg("%s, variant %d, derivative %d: error %g (MDLC_SEED=%llu)",
                     op_info[c->op].name, c->variant, order + 1, error, (unsigned long long)seed());
        }
    }
}

static void sweep(GradSave save) {
    worst[0] = worst[1] = -1;
    for (int op = 0; op < OP_COUNT; op++) {
        Case c;
        for (int variant = 0; case_open(&c, (OpCode)op, variant, TY_F64); variant++) {
            if (differentiable(&c)) {
                check_case(&c, save);
            }
            case_close(&c);
        }
    }
    printf("worst first derivative %.2g (%s), second %.2g (%s)\n", worst[0], worst_name[0],
           worst[1], worst_name[1]);
}

static void test_derivatives(void **state) {
    (void)state;
    sweep(GRAD_SAVE_ALL);
}

/* --- loops, all policies ---------------------------------------------------------------------- */

static void test_loop_policies(void **state) {
    (void)state;
    static const GradSave policy[] = {GRAD_SAVE_CALLS, GRAD_SAVE_CARRIES};
    for (int p = 0; p < 2; p++) {
        Case c;
        for (int variant = 0; case_open(&c, OP_LOOP, variant, TY_F64); variant++) {
            check_case(&c, policy[p]);
            case_close(&c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_loop_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
