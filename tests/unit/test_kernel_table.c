/* kernel_table: what is one kernel, what is not, and what each call passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/check.h"
#include "tests/support.h"

enum { CALLS = 64 };

/* Kernel steps of an entry in order, those in loops too. */
typedef struct {
    int n;
    Step *at[CALLS];
} Steps;

static void note_step(void *ctx, Step *step, int depth) {
    Steps *steps = ctx;
    (void)depth;
    if (step->kind == STEP_KERNEL) {
        assert_true(steps->n < CALLS);
        steps->at[steps->n++] = step;
    }
}

static Steps steps_of(const Program *p, const char *entry) {
    Steps steps = {.n = 0};
    for (int i = 0; i < p->entry.count; i++) {
        const char *name = p->entry.at[i]->entry->name;
        if (name != NULL && str_eq(name, entry)) {
            steps_visit(&p->entry.at[i]->step, note_step, &steps);
            break;
        }
    }
    assert_true(steps.n > 0);
    return steps;
}

/* Each argument is of its kind, none is passed twice. */
static void check_call(const Step *step) {
    const Kernel *k = step->kernel;
    const Call *call = &step->call;
    assert_int_equal(call->loop.count, k->loop.count);
    assert_int_equal(call->site.count, k->site.count);
    for (int i = 0; i < k->arg.count; i++) {
        assert_int_equal(k->arg.at[i]->id, i);
        assert_int_equal(call->buf.at[i]->type->elem, k->arg.at[i]->elem);
        for (int j = 0; j < i; j++) {
            assert_ptr_not_equal(call->buf.at[i], call->buf.at[j]);
        }
    }
}

static const Buf *passed(const Step *step, const char *role) {
    for (int i = 0; i < step->kernel->arg.count; i++) {
        if (str_eq(step->call.buf.at[i]->role, role)) {
            return step->call.buf.at[i];
        }
    }
    fail_msg("%s passes no %s", step->name, role);
    return NULL;
}

/* Layers of one shape are one function, with the weights of each; another shape is another. */
static void test_layers(void **state) {
    (void)state;
    Dumped m;
    Program *p = compiled_text(&m,
                               "use nn;\n"
                               "model net(x: [8, 16]) -> [8, 4] {\n"
                               "    return x |> a: linear(16) |> relu |> b: linear(16) |> relu\n"
                               "             |> c: linear(16) |> relu |> d: linear(4);\n"
                               "}\n"
                               "entry run(x: [8, 16]) { return net(x); }\n",
                               2);
    assert_non_null(p);
    Steps s = steps_of(p, "run");
    assert_int_equal(s.n, 4);
    for (int i = 0; i < s.n; i++) {
        check_call(s.at[i]);
    }
    assert_ptr_equal(s.at[0]->kernel, s.at[1]->kernel);
    assert_ptr_equal(s.at[1]->kernel, s.at[2]->kernel);
    assert_ptr_not_equal(s.at[2]->kernel, s.at[3]->kernel);
    assert_int_equal(s.at[0]->kernel->ncall, 3);
    assert_string_equal(passed(s.at[0], "weight")->slot->name, "net.a.weight");
    assert_string_equal(passed(s.at[1], "weight")->slot->name, "net.b.weight");
    assert_string_equal(passed(s.at[2], "bias")->slot->name, "net.c.bias");
    dumped_done(&m);
}

/* Draws of one kind are one function; each call says which they are. */
static void test_draws(void **state) {
    (void)state;
    Dumped m;
    Program *p = compiled_text(&m,
                               "model net(x: [8]) -> [8] {\n"
                               "    param a: [8] ~ uniform(0, 1);\n"
                               "    param b: [8] ~ uniform(0, 1);\n"
                               "    param c: [8] ~ uniform(0, 2);\n"
                               "    return x * a * b * c;\n"
                               "}\n"
                               "entry run(x: [8]) { return net(x); }\n",
                               2);
    assert_non_null(p);
    const ProgramEntry *init = NULL;
    for (int i = 0; i < p->entry.count; i++) {
        init = p->entry.at[i]->entry->kind == ENTRY_INIT ? p->entry.at[i] : init;
    }
    Steps s = {.n = 0};
    steps_visit(&init->step, note_step, &s);
    int same = 0;
    for (int i = 0; i < s.n; i++) {
        check_call(s.at[i]);
        for (int j = 0; j < i; j++) {
            if (s.at[i]->kernel == s.at[j]->kernel && s.at[i]->call.site.count > 0) {
                assert_true(s.at[i]->call.site.at[0] != s.at[j]->call.site.at[0]);
                same++;
            }
        }
    }
    assert_int_equal(same, 1); /* a and b; c has another range */
    dumped_done(&m);
}

/* Loops one behind the other have steps of one function, each with the index of its own loop. */
static void test_loops(void **state) {
    (void)state;
    Dumped m;
    Program *p =
        compiled_text(&m,
                      "entry run(x: [5, 8], y: [5, 8]) {\n"
                      "    scan t < 5 carry h = zeros([8]) { h <- tanh(f32(t) * x[t, :] + h); }\n"
                      "    scan s < 5 carry g = zeros([8]) { g <- tanh(f32(s) * y[s, :] + g); }\n"
                      "    return h, g;\n"
                      "}\n",
                      2);
    assert_non_null(p);
    Steps s = steps_of(p, "run");
    const Step *body[2] = {NULL, NULL};
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        check_call(s.at[i]);
        if (s.at[i]->call.loop.count > 0) {
            assert_true(n < 2);
            body[n++] = s.at[i];
        }
    }
    assert_int_equal(n, 2);
    assert_ptr_equal(body[0]->kernel, body[1]->kernel);
    assert_ptr_equal(body[0]->call.loop.at[0], body[0]->up);
    assert_ptr_equal(body[1]->call.loop.at[0], body[1]->up);
    assert_ptr_not_equal(body[0]->up, body[1]->up);
    for (int i = 0; i < 2; i++) { /* and each with the slice that its own loop picks */
        assert_int_equal(body[i]->call.offset.count, 1);
        assert_int_equal(call_offset(&body[i]->call, body[i]->call.offset.at[0].arg, body[i]->up),
                         8);
    }
    dumped_done(&m);
}

/* Another constant, extent or element type is another function. */
static void test_constants(void **state) {
    (void)state;
    Dumped m;
    Program *p = compiled_text(&m,
                               "entry a(x: [8]) { return x * 2; }\n"
                               "entry b(y: [8]) { return y * 2; }\n"
                               "entry c(x: [8]) { return x * 3; }\n"
                               "entry d(x: [8]) { return x[0..4] * 2; }\n"
                               "entry e(x: f64[8]) { return x * 2; }\n",
                               2);
    assert_non_null(p);
    static const char *const entry[] = {"a", "b", "c", "d", "e"};
    const Kernel *kernel[5];
    int pairs = 0;
    for (int i = 0; i < 5; i++) {
        kernel[i] = steps_of(p, entry[i]).at[0]->kernel;
        for (int j = 0; j < i; j++) {
            pairs += kernel[i] == kernel[j];
        }
    }
    assert_ptr_equal(kernel[0], kernel[1]);
    assert_ptr_equal(kernel[0], kernel[3]); /* a flat loop takes its size */
    assert_int_equal(pairs, 3);
    dumped_done(&m);
}

/* Flat loops of any size are one kernel, in whole blocks, in others, and without; a size other than
 * that of what is written is refused. */
static void test_sizes(void **state) {
    (void)state;
    Dumped m;
    Program *p =
        compiled_text(&m,
                      "entry a(x: [3, 7]) { return exp(x) * 2; }\n"
                      "entry b(y: [2, 5]) { return exp(y) * 2; }\n"
                      "entry c(x: [16384]) { return exp(x) * 2; }\n"
                      "entry d(x: [32, 1024]) { return exp(x) * 2; }\n"
                      "entry e(x: [33, 1000]) { return exp(x) * 2; }\n"
                      "entry f(x: [35, 1000]) { return exp(x) * 2; }\n"
                      "entry g(x: [5, 70], r: [70]) { y[i, j] = x[i, j] * r[j]; return y; }\n"
                      "entry h(x: [4, 70], r: [70]) { y[i, j] = x[i, j] * r[j]; return y; }\n",
                      2);
    assert_non_null(p);
    static const char *const entry[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const int64_t size[] = {21, 10, 16384, 32768, 33000, 35000, 0, 0};
    Step *step[8];
    compiled_plan(p);
    for (int i = 0; i < 8; i++) {
        step[i] = steps_of(p, entry[i]).at[0];
        assert_int_equal(step[i]->call.size, size[i]);
    }
    for (int i = 0; i < 6 && !ODD_SIZES; i += 2) { /* else blocks end elsewhere */
        assert_ptr_equal(step[i]->kernel, step[i + 1]->kernel);
        assert_true(i == 0 || step[i]->kernel != step[i - 2]->kernel);
    }
    assert_ptr_not_equal(step[6]->kernel, step[7]->kernel); /* rows are no flat loop */
    assert_null(check_program(&m.c.arena, p));
    for (int i = 0; i < 8; i++) {
        const int64_t wrong[] = {0, size[i] - 1, size[i] + 1, size[i] / 2, 2 * size[i] + 2, -4};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            step[i]->call.size = wrong[k];
            step[i]->lowered_call = call_hash(&step[i]->call);
            bool harmless = wrong[k] == size[i];
            const char *fault = check_program(&m.c.arena, p);
            assert_true((fault == NULL) == harmless);
        }
        step[i]->call.size = size[i];
        step[i]->lowered_call = call_hash(&step[i]->call);
    }
    assert_null(check_program(&m.c.arena, p));
    dumped_done(&m);
}

/* So are sums along one axis: in whole lanes, with a rest behind them, and too short for lanes. */
static void test_sums(void **state) {
    (void)state;
    needs_usual_sizes();
    Dumped m;
    Program *p = compiled_text(&m,
                               "entry a(x: [128]) { return sum(x * x); }\n"
                               "entry b(y: [40, 32]) { return sum(y * y); }\n"
                               "entry c(x: [129]) { return sum(x * x); }\n"
                               "entry d(x: [3, 71]) { return sum(x * x); }\n"
                               "entry e(x: [10]) { return sum(x * x); }\n"
                               "entry f(x: [12]) { return sum(x * x); }\n"
                               "entry g(x: [128]) { return sum(x * x) / 128; }\n",
                               2);
    assert_non_null(p);
    static const char *const entry[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const int64_t size[] = {128, 1280, 129, 213, 10, 12, 128};
    Step *step[7];
    compiled_plan(p);
    for (int i = 0; i < 7; i++) {
        step[i] = steps_of(p, entry[i]).at[0];
        assert_int_equal(step[i]->call.size, size[i]);
        for (int k = 0; k < i; k++) {
            bool pair = i < 6 && i % 2 == 1 && k == i - 1;
            assert_true((step[i]->kernel == step[k]->kernel) == pair);
        }
    }
    for (int i = 0; i < 7; i++) { /* a sum of more than there is */
        step[i]->call.size = 2 * size[i] + 2;
        step[i]->lowered_call = call_hash(&step[i]->call);
        assert_non_null(check_program(&m.c.arena, p));
        step[i]->call.size = size[i];
        step[i]->lowered_call = call_hash(&step[i]->call);
    }
    assert_null(check_program(&m.c.arena, p));
    dumped_done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_loops),  cmocka_unit_test(test_constants),
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
