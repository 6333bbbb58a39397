/* Where large tensors of the state begin: not where a weight or another slot that its update
 * touches with them has the same place in a way of the first-level cache; small ones are dense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "passes/check.h"
#include "passes/plan/plan.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

/* `layers` apart, each with a weight of rows of 4,096 bytes, `rows` of them. */
static Program *plan(Dumped *m, int rows, int layers, const char *optimizer) {
    char text[2048];
    int n = snprintf(text, sizeof text,
                     "use nn;\ndim B = 4, R = %d;\n"
                     "model net(x: [B, 1024]) -> [B, R] {\n    return 0",
                     rows);
    for (int i = 0; i < layers; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      " + (x |> fc%d: linear(R, use_bias = false))", i);
    }
    snprintf(text + n, sizeof text - (size_t)n,
             ";\n}\ntrain fit(x: [B, 1024]) of net {\n"
             "    loss mean(net(x)^2);\n    optimizer %s;\n    steps 2;\n}\n",
             optimizer);
    Program *p = compiled_text(m, text, 1);
    assert_non_null(p);
    compiled_plan(p);
    Arena arena = {0};
    assert_null(check_program(&arena, p));
    arena_free(&arena);
    return p;
}

static int64_t sum_of(const Program *p, BufKind kind) {
    int64_t sum = 0;
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *buf = p->slot.at[i];
        sum += buf->kind == kind ? align_up(buf->bytes, MD_ALIGN) : 0;
    }
    return sum;
}

/* In sets of the cache by the bytes between them. */
static bool apart(const Buf *a, const Buf *b) {
    const int64_t far = llabs(a->offset - b->offset) % 4096;
    return far >= 256 && far <= 4096 - 256;
}

static void all_apart(const Program *p, int layers, const char *const *ends) {
    for (int i = 0; i < layers; i++) {
        const Buf *of[5];
        int n = 0;
        char name[64];
        snprintf(name, sizeof name, "net.fc%d.weight", i);
        of[n++] = compiled_slot(p, name);
        for (int k = 0; ends[k]; k++) {
            snprintf(name, sizeof name, "fit.fc%d.weight.%s", i, ends[k]);
            of[n++] = compiled_slot(p, name);
        }
        for (int k = 0; k < n; k++) {
            for (int l = k + 1; l < n; l++) {
                if (!apart(of[k], of[l])) {
                    fail_msg("layer %d: %s at %lld, %s at %lld", i, of[k]->name,
                             (long long)of[k]->offset, of[l]->name, (long long)of[l]->offset);
                }
            }
        }
    }
    assert_int_equal(p->params_bytes, sum_of(p, BUF_PARAM)); /* these stay dense */
}

static void test_moments(void **state) {
    (void)state;
    needs_usual_sizes(); /* small odd ones make an update several kernels */
    Dumped m = {0};
    Program *p = plan(&m, 512, 1, "adamw(lr = 1e-3)");
    all_apart(p, 1, (const char *const[]){"m", "v", NULL});
    assert_true(p->state_bytes < sum_of(p, BUF_STATE) + 2 * 4096);
    dumped_done(&m);
    p = plan(&m, 512, 1, "adamw(lr = 1e-3, amsgrad = true)");
    all_apart(p, 1, (const char *const[]){"m", "v", "top", NULL});
    dumped_done(&m);
    p = plan(&m, 512, 1, "sgd(lr = 1e-3, momentum = 0.9)");
    all_apart(p, 1, (const char *const[]){"b", NULL});
    dumped_done(&m);
}

/* Weights of one size one behind another, so that theirs are all at one place. */
static void test_layers(void **state) {
    (void)state;
    needs_usual_sizes(); /* small odd ones make an update several kernels */
    Dumped m = {0};
    Program *p = plan(&m, 512, 12, "adamw(lr = 1e-3)");
    all_apart(p, 12, (const char *const[]){"m", "v", NULL});
    assert_true(p->state_bytes < sum_of(p, BUF_STATE) + 12 * 1024);
    dumped_done(&m);
}

/* Of less than 1 MiB nothing is left free. */
static void test_small(void **state) {
    (void)state;
    needs_usual_sizes();
    Dumped m = {0};
    Program *p = plan(&m, 255, 4, "adamw(lr = 1e-3)");
    assert_int_equal(p->state_bytes, sum_of(p, BUF_STATE));
    assert_int_equal(p->params_bytes, sum_of(p, BUF_PARAM));
    dumped_done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
