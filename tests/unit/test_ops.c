/* The op sweep: for every row of op.def and every sample of it, the evaluated shape is the inferred
 * one, and the first and second derivatives agree with central differences in double, alone and in
 * the body of a loop; rows without a rule have the derivative zero. MDLC_SEED=n starts elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "directional.h"
#include "passes/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double TOLERANCE = 1e-7;
enum { SEEDS = 3 };

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

static bool case_open(Case *c, OpCode op, int variant, Elem elem, uint64_t round) {
    *c = (Case){.op = op, .variant = variant};
    c->g = graph_new(&c->arena, elem);
    c->region = region_new(c->g, NULL);
    graph_enter(c->g, c->region);
    uint64_t rng = seed() + 1000 * (uint64_t)op + (uint64_t)variant + 1000000 * round;
    c->s = (Sample){.g = c->g, .rng = rng, .elem = elem};
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

static void test_shapes(void **state) {
    (void)state;
    int cases = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        Case c;
        for (int variant = 0; case_open(&c, (OpCode)op, variant, TY_F32, 0); variant++, cases++) {
            region_verify(c.region, STAGE_BUILT);
            Value out = directional_values(&c.arena, &c.s, c.region)[0];
            assert_true(type_equal(out.type, *c.region->out.at[0]->type));
            for (int64_t i = 0; i < type_count(out.type); i++) {
                assert_int_equal(isnan(value_get(out, i)) != 0, 0);
            }
            Region *copy = region_rebuild(c.g, c.region, NULL, NULL);
            Value again = directional_values(&c.arena, &c.s, copy)[0];
            assert_memory_equal(out.at, again.at, sizeof *out.at * (size_t)type_count(out.type));
            case_close(&c);
        }
    }
    printf("%d samples\n", cases);
}

/* --- derivatives ------------------------------------------------------------------------------ */

static bool has_rule(OpCode op) {
    static const char *const rule[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = #vjp,
#include "compiler/op.def"
#undef OP
    };
    return strcmp(rule[op], "none") != 0;
}

typedef struct {
    double error[2]; /* the worst ones */
    char name[2][64];
    int checked[OP_COUNT]; /* samples with a derivative */
} Worst;

static void check_expanded(Case *c, const Region *expanded, Worst *worst) {
    region_verify(expanded, STAGE_GRAD);
    Directional d = directional_check(&c->arena, &c->s, expanded);
    for (int order = 0; order < 2; order++) {
        if (!(d.error[order] <= worst->error[order])) {
            worst->error[order] = d.error[order];
            snprintf(worst->name[order], sizeof worst->name[order], "%s, variant %d",
                     op_info[c->op].name, c->variant);
        }
        if (!(d.error[order] < TOLERANCE)) {
            region_dump(expanded, stderr, 0);
            fail_msg("%s, variant %d, derivative %d: error %g (MDLC_SEED=%llu)",
                     op_info[c->op].name, c->variant, order + 1, d.error[order],
                     (unsigned long long)seed());
        }
    }
    worst->checked[c->op] += d.size[0] > 0;
}

/* Both ways round, and derived again. */
static void check_forward(Case *c, const Region *forward, Worst *worst) {
    Region *expanded = pass_grad(c->g, forward, GRAD_SAVE_CALLS);
    Value *out = directional_values(&c->arena, &c->s, expanded);
    double gap = value_get(out[expanded->out.count - 1], 0), size = 1;
    int half = expanded->out.count / 2;
    for (int r = 1; r < half; r++) {
        for (int64_t i = 0; i < type_count(out[r].type); i++) {
            size += fabs(value_get(out[r], i));
        }
    }
    if (!(gap <= 1e-12 * size)) {
        region_dump(expanded, stderr, 0);
        fail_msg("%s, variant %d: jvp and vjp differ by %g (MDLC_SEED=%llu)", op_info[c->op].name,
                 c->variant, gap, (unsigned long long)seed());
    }
    check_expanded(c, expanded, worst);
}

static void check_region(Case *c, const Region *region, GradSave save, Worst *worst) {
    check_expanded(c, pass_grad(c->g, region, save), worst);
}

/* Runs `check` on every sample of rows with a rule. */
static void sweep(void (*check)(Case *c, const Region *region, Worst *worst), Worst *worst) {
    *worst = (Worst){.error = {-1, -1}};
    for (uint64_t round = 0; round < SEEDS; round++) {
        for (int op = 0; op < OP_COUNT; op++) {
            Case c;
            for (int variant = 0; case_open(&c, (OpCode)op, variant, TY_F64, round); variant++) {
                Region *region = has_rule((OpCode)op) ? directional_region(&c.s, c.region) : NULL;
                if (region) {
                    check(&c, region, worst);
                }
                case_close(&c);
            }
        }
    }
    printf("worst first derivative %.2g (%s), second %.2g (%s)\n", worst->error[0], worst->name[0],
           worst->error[1], worst->name[1]);
}

static void check_alone(Case *c, const Region *region, Worst *worst) {
    check_region(c, region, GRAD_SAVE_ALL, worst);
}

/* A row with a rule and without a sample that has a derivative is not tested at all. */
static void test_derivatives(void **state) {
    (void)state;
    Worst worst;
    int untested = 0;
    sweep(check_alone, &worst);
    for (int op = 0; op < OP_COUNT; op++) {
        /* PICK is part of loops, the derivative of a rounding is no limit of differences. */
        if (has_rule((OpCode)op) && worst.checked[op] == 0 && op != OP_PICK &&
            !op_rounds((OpCode)op)) {
            untested++;
            fprintf(stderr, "no sample of '%s' has a derivative\n", op_info[op].name);
        }
    }
    assert_int_equal(untested, 0);
}

/* What a loop keeps for its adjoint changes no bit of a first derivative. (In the second, values
 * that were stacked pass their cotangents in another order than those computed again.) */
static void check_in_loop(Case *c, const Region *region, Worst *worst) {
    static const struct {
        bool checkpoint;
        GradSave save;
    } ways[] = {{false, GRAD_SAVE_ALL},
                {false, GRAD_SAVE_CALLS},
                {false, GRAD_SAVE_CARRIES},
                {true, GRAD_SAVE_ALL}};
    Value *first = NULL;
    uint64_t rng = c->s.rng;
    (void)region;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        c->s.rng = rng; /* the same weights each time */
        Region *looped = directional_looped(&c->s, c->region, c->variant & 1, ways[k].checkpoint);
        Region *made = directional_region(&c->s, looped);
        Region *expanded = pass_grad(c->g, made, ways[k].save);
        Value *out = directional_values(&c->arena, &c->s, expanded);
        for (int r = 0; first && r < expanded->out.count / 2; r++) {
            size_t bytes = sizeof *out[r].at * (size_t)type_count(out[r].type);
            if (memcmp(out[r].at, first[r].at, bytes) != 0) {
                fail_msg("%s, variant %d in a loop: result %d differs with %s (MDLC_SEED=%llu)",
                         op_info[c->op].name, c->variant, r,
                         ways[k].checkpoint ? "@checkpoint" : "another policy",
                         (unsigned long long)seed());
            }
        }
        first = first ? first : out;
        check_expanded(c, expanded, worst);
    }
}

static void test_in_loops(void **state) {
    (void)state;
    Worst worst;
    sweep(check_in_loop, &worst);
}

/* Derivatives along directions, alone and in loops that keep all and carries alone. */
static void check_along(Case *c, const Region *region, Worst *worst) {
    (void)region;
    check_forward(c, directional_forward(&c->s, c->region), worst);
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        Region *looped = directional_looped(&c->s, c->region, c->variant & 1, checkpoint);
        check_forward(c, directional_forward(&c->s, looped), worst);
    }
}

static void test_forward(void **state) {
    (void)state;
    Worst worst;
    sweep(check_along, &worst);
}

/* Rows without a rule: a float result has the derivative zero, whatever reads it. Other results
 * cannot be a value or a point of a derivative: the front end refuses that. */
static void test_no_derivative(void **state) {
    (void)state;
    int zero = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        Case c;
        for (int variant = 0; case_open(&c, (OpCode)op, variant, TY_F64, 0); variant++) {
            Region *region = has_rule((OpCode)op) ? NULL : directional_region(&c.s, c.region);
            if (region) {
                Region *expanded = pass_grad(c.g, region, GRAD_SAVE_ALL);
                Value *out = directional_values(&c.arena, &c.s, expanded);
                for (int r = 1; r < expanded->out.count; r++) {
                    for (int64_t i = 0; i < type_count(out[r].type); i++) {
                        assert_true(value_get(out[r], i) == 0);
                    }
                }
                if (variant == 0) {
                    printf("%s%s", zero++ ? ", " : "derivative zero: ", op_info[op].name);
                }
            }
            case_close(&c);
        }
    }
    printf("\n");
    assert_true(zero >= 4); /* floor, round, sign, stop_gradient */
}

/* --- loops, all policies ---------------------------------------------------------------------- */

static void test_loop_policies(void **state) {
    (void)state;
    static const GradSave policy[] = {GRAD_SAVE_CALLS, GRAD_SAVE_CARRIES};
    Worst worst = {.error = {-1, -1}};
    for (int p = 0; p < 2; p++) {
        Case c;
        for (int variant = 0; case_open(&c, OP_LOOP, variant, TY_F64, 0); variant++) {
            check_region(&c, directional_region(&c.s, c.region), policy[p], &worst);
            case_close(&c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_in_loops),      cmocka_unit_test(test_no_derivative),
        cmocka_unit_test(test_loop_policies), cmocka_unit_test(test_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
