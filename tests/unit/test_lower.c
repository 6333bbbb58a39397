/* Lowering: every op sample, and programs of several ops, compiled and compared with the evaluator;
 * how many kernels the patterns of training need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/eval.h"
#include "lowered.h"
#include "op_sample.h"
#include "passes/grad.h"
#include "passes/simplify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const strict = "-std=c11 -O1 -Wall -Wextra -Wpedantic -Wshadow -Wconversion "
                                  "-Werror -Wno-unused-function";

typedef struct {
    Compile compile;
    Graph *g;
    Region *region;
    Sample s;
    Lowered lowered;
    VEC(Value *) expect;
    VEC(const char *) name;
} Test;

static void test_open(Test *t, Elem elem) {
    *t = (Test){.g = NULL};
    diag_open(&t->compile.diag, &t->compile.arena, stderr);
    t->compile.opt.threads = 4;
    t->compile.opt.float_type = elem;
    t->g = graph_new(&t->compile.arena, elem);
    lowered_open(&t->lowered, &t->compile);
}

static void case_open(Test *t, uint64_t seed) {
    t->region = region_new(t->g, NULL);
    graph_enter(t->g, t->region);
    t->s = (Sample){.g = t->g, .rng = seed, .elem = t->g->float_type};
}

static void keep_expected(Test *t, const Region *region, const char *name) {
    Eval *ev = eval_open(&t->compile.arena, (EvalOptions){.round = true});
    for (int k = 0; k < t->s.nslot; k++) {
        eval_bind(ev, t->s.slot[k], t->s.data[k]);
    }
    Value *out = ARENA_ARRAY(&t->compile.arena, Value, region->out.count);
    eval_region(ev, region, out);
    VEC_PUSH(&t->compile.arena, &t->expect, out);
    VEC_PUSH(&t->compile.arena, &t->name, name);
}

static Program *case_lower(Test *t, Region *region, const char *name) {
    Program *p = lowered_program(&t->lowered, region, t->s.slot, t->s.nslot);
    assert_int_equal(t->compile.diag.errors, 0);
    lowered_add(&t->lowered, p, t->s.data);
    keep_expected(t, region, name);
    return p;
}

static void run_all(Test *t, const char *flags, double tolerance) {
    int bad = 0;
    assert_true(lowered_run(&t->lowered, flags));
    for (int i = 0; i < t->expect.count; i++) {
        const Region *region = t->lowered.program.at[i]->entry.at[0]->entry->region;
        for (int k = 0; k < region->out.count; k++) {
            double scale = 0, worst = 0;
            int64_t n = type_count(region->out.at[k]->type);
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j);
                scale = isfinite(want) && fabs(want) > scale ? fabs(want) : scale;
            }
            for (int64_t j = 0; j < n; j++) {
                double want = value_get(t->expect.at[i][k], j), got = t->lowered.result.at[i][k][j];
                double err = want == got || (isnan(want) && isnan(got)) ? 0 : fabs(want - got);
                worst = err <= worst ? worst : err; /* a NaN stays */
            }
            double limit = elem_is_float(region->out.at[k]->type.elem) ? tolerance * (scale + 1e-3) : 0;
            if (!(worst <= limit)) {
                printf("case %d %s, result %d: error %g of %g\n", i, t->name.at[i], k, worst, scale);
                bad++;
            }
        }
    }
    assert_int_equal(bad, 0);
}

static void test_close(Test *t) {
    lowered_close(&t->lowered);
    arena_free(&t->compile.arena);
}

/* --- every op ---------------------------------------------------------------------------------- */

static void sweep(Elem elem, bool derivative, double tolerance) {
    Test t;
    test_open(&t, elem);
    int cases = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        for (int variant = 0;; variant++) {
            case_open(&t, 1000 * (uint64_t)op + (uint64_t)variant + 7);
            Node *node = sample_build(&t.s, (OpCode)op, variant);
            if (!node) {
                break;
            }
            if (derivative && !elem_is_float(node->type.elem)) {
                continue;
            }
            if (derivative) {
                Node *w = sample_table(&t.s, node->type, -1, 1);
                Node *y = node_map2(t.g, OP_MUL, node, w);
                y = y->type.rank ? node_fold(t.g, OP_SUM, y, (1u << y->type.rank) - 1) : y;
                Node *one = node_const(t.g, y->type.elem, 1);
                for (int k = 0; k < t.s.nslot; k++) {
                    if (elem_is_float(t.s.slot[k]->type.elem)) {
                        region_result(t.region, node_grad(t.g, y, node_slot(t.g, t.s.slot[k]), one));
                    }
                }
                if (t.region->out.count == 0) {
                    continue;
                }
                t.region = pass_grad(t.g, t.region, GRAD_SAVE_CALLS);
            } else {
                region_result(t.region, node);
            }
            char name[64];
            snprintf(name, sizeof name, "%s %d", op_info[op].name, variant);
            case_lower(&t, t.region, str_dup(&t.compile.arena, name));
            cases++;
        }
    }
    printf("%d cases\n", cases);
    run_all(&t, strict, tolerance);
    test_close(&t);
}

static void test_ops_f32(void **state) {
    (void)state;
    sweep(TY_F32, false, 1e-5);
}

static void test_ops_f64(void **state) {
    (void)state;
    sweep(TY_F64, false, 1e-13);
}

static void test_gradients(void **state) {
    (void)state;
    sweep(TY_F64, true, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_f32),
        cmocka_unit_test(test_ops_f64),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
