/* Rows that lie side by side in memory: which loops they get. Values: suites/across, test_lower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dumped.h"
#include "passes/lower/lower.h"
#include "passes/schedule/schedule.h"
#include "tests/support.h"

#include <string.h>

/* Of the first kernel of an entry that is no product. */
typedef struct {
    int folds, vectors;
    int64_t most; /* places that a turn of the loops around passes over, in an innermost loop */
} Loops;

static int64_t stride_of(const Expr *e, int axis) {
    int64_t most = 0, stride = 0;
    if (e->kind == EXPR_LOAD && index_stride(e->index, axis, &stride)) {
        most = stride;
    }
    for (int i = 0; i < e->nkid && e->kind != EXPR_FOLD; i++) { /* which has been made */
        const int64_t kid = stride_of(e->kid[i], axis);
        most = kid > most ? kid : most;
    }
    return most;
}

static void count_loops(const StmtList *list, int axis, Loops *loops) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        for (int k = 0; k < s->fold.count; k++) {
            const int64_t stride = stride_of(s->fold.at[k]->in[0], s->axes.at[s->axes.count - 1]);
            loops->most = stride > loops->most ? stride : loops->most;
        }
        if (s->kind == STMT_STORE && axis >= 0) {
            const int64_t stride = stride_of(s->expr, axis);
            loops->most = stride > loops->most ? stride : loops->most;
        }
        loops->folds += s->kind == STMT_FOLD;
        loops->vectors += s->simd;
        count_loops(&s->body, s->kind == STMT_FOR ? s->axis : axis, loops);
    }
}

/* As the driver has it where there are no convolutions: pass_layout would turn what is folded. */
static Loops loops_of(const char *text, const Target *target) {
    enum { SIMPLIFIED = 4 }; /* passes up to that one behind differentiation */
    Dumped m;
    dumped_make(&m, "text.mdl", text, strlen(text), TY_F32);
    assert_non_null(m.module);
    m.c.opt.target = target;
    m.c.opt.threads = 4;
    m.module->name = "net";
    for (int pass = 0; pass < SIMPLIFIED; pass++) {
        dumped_pass(m.module, pass);
    }
    const Program *p = pass_lower(&m.c, &m.c.arena, m.module);
    const ProgramEntry *e = p->entry.at[p->entry.count - 1];
    Loops loops = {0};
    const Step *step = e->step.at[0];
    for (int i = 1; i < e->step.count && kernel_tile(step->kernel); i++) { /* behind a product */
        step = e->step.at[i];
    }
    count_loops(&step->kernel->body, -1, &loops);
    dumped_done(&m);
    return loops;
}

/* Along an axis that is not the innermost, vectors run across the rows, and no loop passes from one
 * line of memory to the next. */
static void test_softmax(void **state) {
    (void)state;
    needs_usual_sizes();
    static const char *const texts[] = {
        "use nn;\nentry f(x: [8, 512, 128]) { return softmax(x, axis = 1); }\n",
        "use nn;\nentry f(x: [8, 21, 64, 64]) { return softmax(x, axis = 1); }\n",
        "use nn;\nentry f(x: [1000, 256]) { return log_softmax(x, axis = 0); }\n",
        "op spread(x: [..., n]) -> [...] {\n    m[...] = mean[j] x[..., j];\n"
        "    v[...] = mean[j] (x[..., j] - m[...])^2;\n    return v / sqrt(m * m + 1);\n}\n"
        "entry f(x: [8, 512, 128]) { return spread(x, axis = 1); }\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const Loops loops = loops_of(texts[i], &target_cpu);
        if (loops.folds > 0 || loops.most > 1) {
            fail_msg("%d folds, a step of %d: %s", loops.folds, (int)loops.most, texts[i]);
        }
        assert_true(loops.vectors >= 3);
    }
}

/* Rows that lie one behind another, few terms, and rows that lie apart as well stay as they are. */
static void test_others(void **state) {
    (void)state;
    needs_usual_sizes();
    static const char *const texts[] = {
        "use nn;\nentry f(x: [8, 128, 512]) { return softmax(x); }\n",
        "use nn;\nentry f(x: [4, 32, 16]) { return softmax(x, axis = 1); }\n",
        "use nn;\nentry f(x: [8, 512, 9]) { return softmax(x, axis = 1); }\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(loops_of(texts[i], &target_cpu).folds > 0);
    }
}

/* Of one kernel for the rows of a matrix and for its columns, these go across. */
static void test_both(void **state) {
    (void)state;
    needs_usual_sizes();
    const Loops loops =
        loops_of("op size(x: [..., n]) -> [...] {\n    m[...] = max[j] x[..., j];\n"
                 "    s[...] = log(sum[j] exp(x[..., j] - m[...]));\n    return m + s;\n}\n"
                 "entry f(a: [256, 64], b: [64, 256]) {\n    x = matmul(a, b);\n"
                 "    return x = x, rows = size(x), columns = size(x, axis = 0);\n}\n",
                 &target_cpu);
    assert_int_equal(loops.folds, 2);
    assert_int_equal(loops.most, 1);
    assert_true(loops.vectors >= 3);
}

/* It is the cost of lines of memory that decides. */
static void test_cost(void **state) {
    (void)state;
    needs_usual_sizes();
    const char *text = "use nn;\nentry f(x: [8, 512, 128]) { return softmax(x, axis = 1); }\n";
    Target free_bytes = target_cpu;
    free_bytes.byte_time = 0;
    const Loops loops = loops_of(text, &free_bytes);
    assert_true(loops.folds > 0);
    assert_int_equal(loops.most, 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
