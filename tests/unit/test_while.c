/* Loops that end by a condition: values, counts and derivatives against loops in C, the runs of a
 * loop that makes no iteration or meets its maximum, and plans that would compute something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiled.h"
#include "passes/check.h"
#include "text_eval.h"

/* ---- values --------------------------------------------------------------------------------- */

static const char newton[] = "entry root(a: f32) {\n"
                             "    while abs(x * x - a) > 1e-9 max 60 carry x = a, n = 0 {\n"
                             "        emit seen = x;\n"
                             "        x <- 0.5 * (x + a / x);\n"
                             "        n <- n + 1;\n"
                             "    }\n"
                             "    return x = x, n = n, seen = seen, d = grad(x, a);\n"
                             "}\n";

/* Iterations as a loop in C makes them, their values stacked, and zeros behind them. */
static void test_values(void **state) {
    (void)state;
    static const double numbers[] = {2, 0.01, 1e6, 1, 3, 1e-3, 49};
    TextEval t;
    text_open(&t, newton);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double a = numbers[i], x = a, seen[60] = {0};
        const double *in[1] = {&a};
        int n = 0;
        for (; n < 60 && fabs(x * x - a) > 1e-9; n++) {
            seen[n] = x;
            x = 0.5 * (x + a / x);
        }
        assert_true(text_number(&t, "root", "x", a) == x);
        assert_true(text_number(&t, "root", "n", a) == n);
        assert_true(text_number(&t, "root", NULL, a) == 0);
        Value stack = text_run(&t, "root", "seen", in);
        for (int k = 0; k < 60; k++) {
            assert_true(value_get(stack, k) == seen[k]);
        }
        /* Without an iteration x is a; else the derivative of the iterations, made in C too. */
        double d = 1, y = a;
        for (int k = 0; k < n; k++) {
            d = 0.5 * (d + (y - a * d) / (y * y));
            y = 0.5 * (y + a / y);
        }
        assert_true(fabs(text_number(&t, "root", "d", a) - d) <= 1e-12 * fabs(d));
    }
    assert_true(text_number(&t, "root", "n", 1) == 0 && text_number(&t, "root", "d", 1) == 1);
    text_close(&t);
}

/* The maximum: met with the condition true, met when it has just become false, never met. */
static void test_limit(void **state) {
    (void)state;
    TextEval t;
    text_open(&t, "entry go(a: f32) {\n"
                  "    while y < 10 max 4 carry y = a { y <- y + 1; }\n"
                  "    return y = y;\n"
                  "}\n"
                  "entry none(a: f32) {\n"
                  "    while y < 10 max 0 carry y = a { y <- y + 1; }\n"
                  "    return y = y;\n"
                  "}\n"
                  "entry inner(a: f32) {\n"
                  "    scan t < 5 carry s = 0.0 {\n"
                  "        while y < 10 max 3 carry y = a + f32(t) { y <- y + 1; }\n"
                  "        s <- s + y;\n"
                  "    }\n"
                  "    return s = s;\n"
                  "}\n");
    static const struct {
        double a, y, over;
    } runs[] = {{5.5, 9.5, 1}, {6, 10, 0}, {9, 10, 0}, {10, 10, 0}, {12, 12, 0}, {5, 9, 1}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        assert_true(text_number(&t, "go", "y", runs[i].a) == runs[i].y);
        assert_true(text_number(&t, "go", NULL, runs[i].a) == runs[i].over);
    }
    assert_true(text_number(&t, "none", "y", 3) == 3 && text_number(&t, "none", NULL, 3) == 1);
    assert_true(text_number(&t, "none", NULL, 10) == 0);
    /* The first of five turns alone meets it: that is not forgotten. */
    assert_true(text_number(&t, "inner", NULL, 6.5) == 1 && text_number(&t, "inner", NULL, 7) == 0);
    assert_true(text_number(&t, "inner", "s", 7) == 51);
    text_close(&t);
}

/* ---- derivatives ---------------------------------------------------------------------------- */

/* Loops with conditions in each other, in a scan and around one, with and without checkpoints, and
 * the derivative of a derivative. The conditions are far from their borders. */
#define NEST(CHECK)                                                                                \
    "op nest(x: [3], w: [3, 3]) -> [3] {\n"                                                        \
    "    " CHECK "scan t < 3 carry z = x {\n"                                                      \
    "        " CHECK "while sum(h^2) > 0.3 max 9 carry h = z, n = 0 {\n"                           \
    "            g[i] = tanh(sum[j] w[i, j] * h[j] + 0.1 * z[i]);\n"                               \
    "            " CHECK "while max(abs(v)) > 0.2 and k < 5 max 5 carry v = g, k = 0 {\n"          \
    "                v <- 0.5 * sin(v) * v;\n"                                                     \
    "                k <- k + 1;\n"                                                                \
    "            }\n"                                                                              \
    "            h <- 0.7 * g + v;\n"                                                              \
    "            n <- n + 1;\n"                                                                    \
    "        }\n"                                                                                  \
    "        z <- h + x * f32(n);\n"                                                               \
    "    }\n"                                                                                      \
    "    return z;\n"                                                                              \
    "}\n"                                                                                          \
    "entry e(x: [3], w: [3, 3]) {\n"                                                               \
    "    l = sum(sin(nest(x, w)));\n"                                                              \
    "    gx = grad(l, x);\n"                                                                       \
    "    gw = grad(l, w);\n"                                                                       \
    "    s = sum(gx * gx) + sum(cos(gw));\n"                                                       \
    "    return l = l, gx = gx, gw = gw, s = s, sx = grad(s, x), sw = grad(s, w);\n"               \
    "}\n"

static void test_derivatives(void **state) {
    (void)state;
    TextEval t[2];
    text_open(&t[0], NEST(""));
    text_open(&t[1], NEST("@checkpoint "));
    for (int seed = 0; seed < 6; seed++) {
        double x[3], w[9], gx[3], gw[9], worst = 0;
        const double *in[2] = {x, w};
        for (int i = 0; i < 9; i++) {
            w[i] = 1.3 * sin(12.9898 * (i + 1) + 78.233 * seed);
            x[i % 3] = 1.5 * cos(4.1414 * (i + 3) + 43.77 * seed);
        }
        for (int order = 0; order < 2; order++) {
            const char *of = order ? "s" : "l";
            Value dx = text_run(&t[0], "e", order ? "sx" : "gx", in);
            Value dw = text_run(&t[0], "e", order ? "sw" : "gw", in);
            for (int i = 0; i < 12; i++) {
                double *at = i < 3 ? &x[i] : &w[i - 3], old = *at, step = 1e-6, near[2];
                double exact = i < 3 ? value_get(dx, i) : value_get(dw, i - 3);
                for (int k = 0; k < 2; k++) {
                    *at = old + (k ? step : -step);
                    near[k] = value_get(text_run(&t[0], "e", of, in), 0);
                }
                *at = old;
                double error = fabs((near[1] - near[0]) / (2 * step) - exact) / (1 + fabs(exact));
                worst = fmax(worst, error);
            }
            for (int k = 0; order == 0 && k < 12; k++) {
                *(k < 3 ? &gx[k] : &gw[k - 3]) = k < 3 ? value_get(dx, k) : value_get(dw, k - 3);
            }
        }
        printf("seed %d: worst difference %.1e\n", seed, worst);
        assert_true(worst < 1e-6);
        /* What is computed again has the same bits. */
        Value again = text_run(&t[1], "e", "gw", in);
        for (int k = 0; k < 9; k++) {
            assert_true(value_get(again, k) == gw[k]);
        }
        again = text_run(&t[1], "e", "gx", in);
        for (int k = 0; k < 3; k++) {
            assert_true(value_get(again, k) == gx[k]);
        }
    }
    text_close(&t[0]);
    text_close(&t[1]);
}

/* ---- plans that do harm --------------------------------------------------------------------- */

static const char two_loops[] =
    "use nn;\n"
    "model net(x: [4]) -> [4] {\n"
    "    param w: [4] ~ normal(0, 0.5);\n"
    "    while sum(h^2) > 0.1 max 8 carry h = x { h <- 0.6 * tanh(h + w); }\n"
    "    while sum(g^2) > 0.2 max 8 carry g = x * w { g <- 0.5 * sin(g * w); }\n"
    "    return h + g;\n"
    "}\n"
    "train fit(x: [4]) of net { loss sum(net(x)^2); optimizer sgd(lr = 0.1); }\n"
    "entry seen(x: [4]) {\n"
    "    while sum(h) > 0.5 max 6 carry h = x { emit y = h * 2; h <- h / 2; }\n"
    "    while sum(k) > 0.7 max 6 carry k = x { emit z = k * 3; k <- k / 2; }\n"
    "    return y, z;\n"
    "}\n";

typedef struct {
    Dumped m;
    Program *p;
    ProgramEntry *e;
    Step *loop[8]; /* of its list, in order */
    int nloop;
    Step *clear[4];
    int nclear;
    Step *check;
} Plan;

static void plan_open(Plan *plan, EntryKind kind) {
    memset(plan, 0, sizeof *plan);
    plan->p = compiled_text(&plan->m, two_loops, 1);
    assert_non_null(plan->p);
    compiled_plan(plan->p);
    for (int i = 0; i < plan->p->entry.count; i++) {
        ProgramEntry *e = plan->p->entry.at[i];
        plan->e = e->entry->kind == kind ? e : plan->e;
    }
    for (int i = 0; i < plan->e->step.count; i++) {
        Step *step = plan->e->step.at[i];
        if (step->kind == STEP_LOOP) {
            plan->loop[plan->nloop++] = step;
        } else if (step->kind == STEP_CLEAR) {
            plan->clear[plan->nclear++] = step;
        }
        plan->check = step->kind == STEP_CHECK ? step : plan->check;
    }
}

/* A loop or step touches `to` instead of `from`. */
static void turn_access(AccessList *list, Buf *from, Buf *to) {
    for (int i = 0; i < list->count; i++) {
        list->at[i].buf = list->at[i].buf == from ? to : list->at[i].buf;
    }
}

static void drop_access(AccessList *list, const Buf *buf) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->at[i].buf != buf) {
            list->at[n++] = list->at[i];
        }
    }
    list->count = n;
}

/* The stack that the body of the loop writes. */
static Buf *stack_of(const Step *loop) {
    for (int i = 0; i < loop->body.count; i++) {
        const Step *step = loop->body.at[i];
        for (int k = 0; k < step->access.count; k++) {
            if ((step->access.at[k].mode & ACCESS_WRITE) && step->access.at[k].slice[0] == loop) {
                return step->access.at[k].buf;
            }
        }
    }
    fail_msg("the loop writes no stack");
    return NULL;
}

/* The adjoint that runs to the last index of `loop`. */
static Step *adjoint_of(const Plan *plan, const Step *loop) {
    for (int i = 0; i < plan->nloop; i++) {
        if (plan->loop[i]->last != NULL && plan->loop[i]->last == loop->made) {
            return plan->loop[i];
        }
    }
    fail_msg("no loop runs to that index");
    return NULL;
}

enum { HARMS = 14 };

/* Does so much harm to the plan; false: there is no such harm. */
static bool harm(Plan *plan, int kind) {
    bool train = kind < 9;
    Step *first = plan->loop[0], *second = plan->loop[1];
    Step *back = train ? adjoint_of(plan, first) : NULL;
    switch (kind) {
    case 0: /* the adjoint runs all turns */
        back->last = NULL;
        back->own.count = 0;
        return true;
    case 1: /* as many as the other loop has made */
        turn_access(&back->own, back->last, second->made);
        turn_access(&back->access, back->last, second->made);
        back->last = second->made;
        return true;
    case 2: /* nobody says how many there were */
        first->made = NULL;
        first->own.count = 1;
        return true;
    case 3: /* a stack that is a turn too short */
        stack_of(first)->bytes -= stack_of(first)->stride[0] * 4;
        return true;
    case 4: /* a loop of other turns */ back->trip--; return true;
    case 5: /* the condition is not kept while the loop runs */
        first->go->offset = stack_of(first)->offset;
        return true;
    case 6: /* nothing looks at the maximum */
        drop_access(&plan->check->access, plan->e->limit.at[0]);
        return true;
    case 7: /* what ends the loop is no carry of it */
        turn_access(&first->own, first->go, second->go);
        step_access(plan->p, first, second->go, ACCESS_READ);
        first->go = second->go;
        return true;
    case 8: /* all turns, and the last index is said nevertheless */
        first->go = NULL;
        first->own.at[0] = first->own.at[1];
        first->own.count = 1;
        return true;
    case 9: /* the rest is not cleared */
        plan->clear[0]->kind = STEP_COPY;
        plan->clear[0]->dst = plan->clear[0]->src;
        plan->clear[0]->access.count = 1;
        return true;
    case 10: /* behind the last index of the other loop */
        turn_access(&plan->clear[0]->access, plan->clear[0]->src, plan->clear[1]->src);
        plan->clear[0]->src = plan->clear[1]->src;
        return true;
    case 11: /* the other stack */
        turn_access(&plan->clear[0]->access, plan->clear[0]->dst, plan->clear[1]->dst);
        plan->clear[0]->dst = plan->clear[1]->dst;
        return true;
    case 12: /* the last index lies where the loop writes */
        first->made->offset = first->go->offset;
        return true;
    case 13: /* the loop writes all of its stack, as it says, and may never run */
        for (int i = 0; i < first->body.count; i++) {
            Step *step = first->body.at[i];
            for (int k = 0; k < step->access.count; k++) {
                Access *a = &step->access.at[k];
                a->slice[0] = a->buf == plan->clear[0]->dst ? NULL : a->slice[0];
            }
        }
        return true;
    default: return false;
    }
}

static void test_harmful_plans(void **state) {
    (void)state;
    for (int kind = 0; kind < HARMS; kind++) {
        Plan plan;
        Arena scratch = {0};
        plan_open(&plan, kind < 9 ? ENTRY_TRAIN : ENTRY_CALL);
        const char *fault = check_program(&scratch, plan.p);
        if (fault != NULL) {
            fail_msg("the plan as made: %s", fault);
        }
        assert_true(harm(&plan, kind));
        fault = check_program(&scratch, plan.p);
        if (fault == NULL) {
            fail_msg("harm %d is not noticed", kind);
        }
        printf("harm %d: %s\n", kind, fault);
        arena_free(&scratch);
        dumped_done(&plan.m);
    }
}

static const char beside[] =
    "entry seen(x: [4, 2], n: i32[4] in 0..6) {\n"
    "    while sum(h) < 50.0 max 9 carry h = x {\n"
    "        scan r < 4 carry z = sum(x) {\n"
    "            while i < n[r] max 9 carry u = x[r, :], i = 0 {\n"
    "                u <- sin(u);\n"
    "                i <- i + 1;\n"
    "            }\n"
    "            emit y = u;\n"
    "            z <- z + sum(u);\n"
    "        }\n"
    "        h <- h + y * sum(h) * 0.1 + 0.3;\n"
    "    }\n"
    "    g = grad(sum(h), x);\n"
    "    return g, k = grad(sum(g), x);\n"
    "}\n";

/* The first clear of a slice of a slice. */
static Step *clear_in(const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        Step *step = list->at[i], *in = clear_in(&step->body);
        if (step->kind == STEP_CLEAR && step_find(step, step->dst)->slice[1] != NULL) {
            return step;
        }
        if (in != NULL) {
            return in;
        }
    }
    return NULL;
}

/* A stack of stacks by an adjoint that runs again in each iteration around it, as far as a last
 * index that is picked by its second axis alone: nobody reads it before its rest is 0. */
static void test_beside(void **state) {
    (void)state;
    Dumped m;
    Arena scratch = {0};
    Program *p = compiled_text(&m, beside, 1);
    assert_non_null(p);
    compiled_plan(p);
    const char *fault = check_program(&scratch, p);
    if (fault != NULL) {
        fail_msg("the plan as made: %s", fault);
    }
    ProgramEntry *e = p->entry.at[p->entry.count - 1];
    Step *clear = clear_in(&e->step);
    assert_non_null(clear);
    assert_ptr_not_equal(step_find(clear, clear->src)->slice[0],
                         step_find(clear, clear->dst)->slice[0]);
    clear->kind = STEP_COPY;
    drop_access(&clear->access, clear->dst);
    clear->dst = clear->src;
    fault = check_program(&scratch, p);
    assert_non_null(fault);
    assert_non_null(strstr(fault, "has not written of"));
    arena_free(&scratch);
    dumped_done(&m);
}

/* What the plan of a train with two loops holds: two loops with conditions that say how far they
 * went, two adjoints that run as far, a check of both; nothing is cleared, since each stack has its
 * adjoint alone as a reader. */
static void test_structure(void **state) {
    (void)state;
    Plan plan;
    plan_open(&plan, ENTRY_TRAIN);
    int conditions = 0, adjoints = 0;
    for (int i = 0; i < plan.nloop; i++) {
        conditions += plan.loop[i]->go != NULL && plan.loop[i]->made != NULL;
        adjoints += plan.loop[i]->last != NULL && plan.loop[i]->reverse;
    }
    assert_int_equal(conditions, 2);
    assert_int_equal(adjoints, 2);
    assert_int_equal(plan.nclear, 0);
    assert_int_equal(plan.e->limit.count, 2);
    assert_non_null(step_find(plan.check, plan.e->limit.at[1]));
    dumped_done(&plan.m);
    plan_open(&plan, ENTRY_CALL);
    assert_int_equal(plan.nclear, 2);
    dumped_done(&plan.m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_derivatives),   cmocka_unit_test(test_structure),
        cmocka_unit_test(test_harmful_plans), cmocka_unit_test(test_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
