/* What lowering makes of small models: which loops run in parallel, by blocks, along a vector, what
 * is a product, what is made once. Values: test_lower. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/lower/lower.h"
#include "tests/support.h"

#include <string.h>

enum { THREADS = 4 };

typedef struct {
    Dumped m;
    const ProgramEntry *e; /* the last one */
} Model;

static void model_open(Model *x, const char *text) {
    const Program *p = compiled_text(&x->m, text, THREADS);
    assert_non_null(p);
    x->e = p->entry.at[p->entry.count - 1];
}

static void model_close(Model *x) {
    dumped_done(&x->m);
}

static const Kernel *kernel_of(const Model *x, int step) {
    assert_true(step < x->e->step.count);
    assert_int_equal(x->e->step.at[step]->kind, STEP_KERNEL);
    return x->e->step.at[step]->kernel;
}

static int count_stmts(const StmtList *list, StmtKind kind) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        n += (list->at[i]->kind == kind) + count_stmts(&list->at[i]->body, kind);
    }
    return n;
}

static int count_sums(const StmtList *list) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        n += list->at[i]->fold.count + count_sums(&list->at[i]->body);
    }
    return n;
}

static int64_t extent_of(const Kernel *k, const Stmt *loop) {
    assert_int_equal(loop->kind, STMT_FOR);
    return k->axis[loop->axis].extent;
}

/* The last statement of a loop. */
static const Stmt *last_of(const Stmt *loop) {
    assert_true(loop->body.count > 0);
    return loop->body.at[loop->body.count - 1];
}

/* --- products --------------------------------------------------------------------------------- */

/* Where few results are made of each element, borders stay and the product is plain loops: threads
 * share the places of the windows, and a row of the matrix is added at a time. */
static void test_plain_product(void **state) {
    (void)state;
    needs_usual_sizes();
    Model x;
    model_open(&x, "dim N = 1000, K = 41, J = 3;\n"
                   "entry main(x: [N], w: [K, J]) {\n"
                   "    y[i < N, j] = sum[k] (x[i + k - 20] else 0) * w[k, j];\n"
                   "    return y;\n"
                   "}\n");
    const Kernel *k = kernel_of(&x, 0);
    assert_int_equal(x.e->step.count, 1);
    assert_int_equal(k->body.count, 1);
    const Stmt *place = k->body.at[0], *tap = last_of(place), *column = last_of(tap);
    assert_int_equal(extent_of(k, place), 1000);
    assert_true(place->parallel > 0);
    assert_int_equal(extent_of(k, tap), 41);
    assert_int_equal(extent_of(k, column), 3);
    assert_true(column->simd);
    model_close(&x);
}

/* Four axes that one operand has reversed lie behind one another in both: one axis of the plan. */
static void test_reversed_axes(void **state) {
    (void)state;
    Model x;
    model_open(&x, "dim I = 50, J = 20, K = 3;\n"
                   "entry main(x: [I, K, K, K, K], w: [J, K, K, K, K]) {\n"
                   "    y[i, j] = sum[k, l, m, n]\n"
                   "        x[i, 2 - k, 2 - l, 2 - m, 2 - n] * w[j, k, l, m, n];\n"
                   "    return y;\n"
                   "}\n");
    const Kernel *k = kernel_of(&x, 0);
    assert_int_equal(x.e->step.count, 1);
    assert_int_equal(k->body.count, 1);
    assert_int_equal(k->body.at[0]->kind, STMT_TILE);
    model_close(&x);
}

/* --- nests ------------------------------------------------------------------------------------ */

/* What a row keeps for its next stage lies in a part of the workspace that is the thread's own. */
static void test_thread_rows(void **state) {
    (void)state;
    Model x;
    model_open(&x, "use nn;\n"
                   "dim N = 500, M = 1000;\n"
                   "entry main(x: [N, M], y: [N, M]) { return softmax(x) * y; }\n");
    const Kernel *k = kernel_of(&x, 0);
    int rows = 0;
    for (int i = 0; i < k->arg.count; i++) {
        const Arg *arg = k->arg.at[i];
        if (arg->thread) {
            const Buf *buf = x.e->step.at[0]->call.buf.at[arg->id];
            assert_int_equal(buf->per_thread, THREADS);
            assert_int_equal(arg->part * THREADS, type_count(*buf->type));
            rows++;
        }
    }
    assert_true(rows == 1 || ODD_SIZES); /* small sizes store it whole */
    model_close(&x);
}

/* A transposed copy of two blocks each way goes block by block. */
static void test_transposed_copy(void **state) {
    (void)state;
    Model x;
    model_open(&x, "dim N = 64;\n"
                   "entry main(x: [N, N]) { t[j, i] = 2 * x[i, j]; return t; }\n");
    const Kernel *k = kernel_of(&x, 0);
    const Stmt *loop = k->body.at[0];
    int64_t blocks[2] = {extent_of(k, loop), extent_of(k, last_of(loop))};
    const Stmt *row = last_of(last_of(loop)), *column = last_of(row);
    assert_int_equal(extent_of(k, row), 64);
    assert_int_equal(extent_of(k, column), 64);
    assert_true(row->span > 0 && row->span == column->span);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(blocks[i], (64 + row->span - 1) / row->span);
        assert_true(blocks[i] == 2 || ODD_SIZES);
    }
    model_close(&x);
}

/* The derivative of a window of nine taps around a ring: one sum over the taps for each place,
 * those beyond the ends too, then each element with those that are the same place of the ring. */
static void test_ring_of_windows(void **state) {
    (void)state;
    Model x;
    needs_usual_sizes(); /* the sums are kernels of their own with others */
    model_open(&x, "dim N = 40, K = 9;\n"
                   "entry main(x: [N], w: [K]) {\n"
                   "    y[i < N] = sum[k < K] (x[i + k - 4] else wrap) * w[k];\n"
                   "    return grad(sum(y^2), x);\n"
                   "}\n");
    assert_int_equal(x.e->step.count, 3);
    for (int i = 1; i < 3; i++) {
        const Kernel *k = kernel_of(&x, i);
        assert_int_equal(k->body.count, 1);
        assert_int_equal(extent_of(k, k->body.at[0]), i == 1 ? 48 : 40);
        assert_int_equal(count_stmts(&k->body, STMT_FOLD), i == 1);
        assert_int_equal(count_sums(&k->body), i == 1);
    }
    model_close(&x);
}

static void no_empty_loops(const Kernel *k, const StmtList *list) {
    for (int i = 0; i < list->count; i++) {
        assert_true(list->at[i]->kind != STMT_FOR || extent_of(k, list->at[i]) > 0);
        no_empty_loops(k, &list->at[i]->body);
    }
}

/* A part without elements costs no loop. */
static void test_empty_part(void **state) {
    (void)state;
    Model x;
    model_open(&x, "dim M = 10;\n"
                   "entry main(x: [M], y: [M]) { return concat(x[3..3], y * 2, x); }\n");
    for (int i = 0; i < x.e->step.count; i++) {
        const Kernel *k = kernel_of(&x, i);
        no_empty_loops(k, &k->body);
    }
    model_close(&x);
}

/* --- memory of the compiler ------------------------------------------------------------------- */

/* Programs hold no nodes: those of an entry are freed as soon as it is lowered. */
static void test_nodes_are_freed(void **state) {
    (void)state;
    Dumped m;
    Arena arena = {0};
    const char *text = "entry main(x: [5]) { return 2 * x; }\n";
    dumped_make(&m, "text.mdl", text, strlen(text), TY_F32);
    assert_non_null(m.module);
    m.module->name = "net";
    for (int pass = 0; pass < DUMPED_PASSES; pass++) {
        dumped_pass(m.module, pass);
    }
    for (int i = 0; i < m.module->entry.count; i++) {
        for (int k = 0; k < 2; k++) {
            assert_non_null(arena_alloc(&m.module->entry.at[i]->nodes[k], 64));
        }
    }
    pass_lower(&m.c, &arena, m.module);
    for (int i = 0; i < m.module->entry.count; i++) {
        assert_null(m.module->entry.at[i]->nodes[0].head);
        assert_null(m.module->entry.at[i]->nodes[1].head);
        assert_null(m.module->entry.at[i]->region);
    }
    arena_free(&arena);
    dumped_done(&m);
}

typedef struct {
    int64_t dear, turn; /* of all steps; bytes that the largest step in a loop moves */
} Times;

static void add_times(void *ctx, Step *step, int depth) {
    Times *t = ctx;
    bool kernel = step->kind == STEP_KERNEL;
    t->dear += kernel ? step->dear : 0;
    t->turn = kernel && depth > 0 && step->bytes_moved > t->turn ? step->bytes_moved : t->turn;
}

static Times times_of(const char *text) {
    Model x;
    model_open(&x, text);
    Times t = {0};
    steps_visit(&x.e->step, add_times, &t);
    model_close(&x);
    return t;
}

/* What a function takes beyond one FLOP is that of its row in op.def, what a draw takes its own;
 * a turn that reads one column of each row moves these, not the rows. */
static void test_times(void **state) {
    (void)state;
    const int64_t n = 8 * 24;
    assert_int_equal(times_of("entry f(x: [8, 24]) { return y = x + 2 * x; }").dear, 0);
    assert_int_equal(times_of("entry f(x: [8, 24]) { return y = sin(x); }").dear,
                     n * (op_info[OP_SIN].cost - 1));
    assert_int_equal(times_of("entry f(x: [8, 24]) { return y = exp(x) + x; }").dear,
                     n * (op_info[OP_EXP].cost - 1));
    const int64_t uniform = times_of("entry f() { return y = uniform(0, 1, [8, 24]); }").dear;
    const int64_t normal = times_of("entry f() { return y = normal(0, 1, [8, 24]); }").dear;
    assert_true(uniform >= 8 * n && normal >= 4 * uniform);
    const Times t =
        times_of("entry f(x: [8, 24], w: [8]) {\n"
                 "    scan t < 24 carry h = w { v[b] = x[b, t]; h <- h / (1 + v ^ 2); }\n"
                 "    return y = h;\n"
                 "}\n");
    assert_int_equal(t.turn, 3 * 8 * 4); /* the column, the carry and its next value */
}

/* Vector loops of the statements that store several values a turn: their extents, multiplied. */
static int64_t wide_stores(const Kernel *k, const StmtList *list) {
    int64_t all = 1;
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        const bool wide = s->kind == STMT_FOR && s->simd && count_stmts(&s->body, STMT_STORE) > 1;
        all *= wide ? extent_of(k, s) : wide_stores(k, &s->body);
    }
    return all;
}

/* The adjoint of a pool whose six channels lie last, read of values that have them in front:
 * vectors run along the 14 places, of which they are more than half full. */
static void test_few_channels(void **state) {
    (void)state;
    Model x;
    model_open(&x, "use nn;\ndim B = 128;\n"
                   "model net(x: [B, 784]) -> [B, 16] {\n"
                   "    h = x as [B, 1, 28, 28] |> conv1: conv2d(6, k = 5, pad = 2) |> relu\n"
                   "        |> maxpool(2) |> conv2: conv2d(16, k = 5);\n"
                   "    g[b, c] = mean[i, j] h[b, c, i, j];\n    return g;\n}\n"
                   "train fit(x: [B, 784]) of net { loss mean(net(x)^2); optimizer sgd(lr = 0.1);"
                   " steps 1; }\n");
    int64_t most = 0;
    for (int i = 0; i < x.e->step.count; i++) {
        const Step *step = x.e->step.at[i];
        const Kernel *k = step->kind == STEP_KERNEL ? step->kernel : NULL;
        const int64_t wide = k ? wide_stores(k, &k->body) : 1;
        assert_true(wide == 1 || wide > 6 || ODD_SIZES);
        most = wide > most ? wide : most;
    }
    assert_true(most == 14 || ODD_SIZES);
    model_close(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_product),   cmocka_unit_test(test_reversed_axes),
        cmocka_unit_test(test_thread_rows),     cmocka_unit_test(test_transposed_copy),
        cmocka_unit_test(test_ring_of_windows), cmocka_unit_test(test_empty_part),
        cmocka_unit_test(test_nodes_are_freed), cmocka_unit_test(test_times),
        cmocka_unit_test(test_few_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
