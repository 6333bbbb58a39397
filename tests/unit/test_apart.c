/* Rows of products of 16 bits that follow their operand alone, whatever order the result has
 * (passes/schedule/cpu_roles.c). Values: suites/convolutions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "runtime/tile.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

/* Gradients of windows of 3 x 3 places by their numbers, whose channels lie last in `elem`, and the
 * result as `of` says. */
static md_tile weights_of(const char *elem, int channels, int out, const char *of) {
    char text[1024];
    snprintf(text, sizeof text,
             "entry f(x: %s[16, 18, 18, %d], g: %s[16, 16, 16, %d]) {\n"
             "    y[%s] = sum[b, p, q] f32(x[b, p + i, q + j, c]) * f32(g[b, p, q, o]);\n"
             "    return y;\n}\n",
             elem, channels, elem, out, of);
    Dumped m;
    const Program *p = compiled_text(&m, text, 2);
    assert_non_null(p);
    const StepList *list = &p->entry.at[p->entry.count - 1]->step;
    md_tile plan;
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        const Tile *tile = list->at[i]->kernel ? kernel_tile(list->at[i]->kernel) : NULL;
        if (tile) {
            memcpy(&plan, tile->plan, sizeof plan);
            n++;
        }
    }
    assert_int_equal(n, 1);
    dumped_done(&m);
    return plan;
}

static void assert_rows(const md_tile *p, int64_t n1, int64_t x1, int64_t n2, int64_t x2) {
    print_message("%lld apart %lld, %lld apart %lld\n", (long long)p->r1.n, (long long)p->r1.x,
                  (long long)p->r2.n, (long long)p->r2.x);
    assert_true(p->r1.n == n1 && p->r1.x == x1 && p->r2.n == n2 && p->r2.x == x2);
}

static void test_apart(void **state) {
    (void)state;
    needs_usual_sizes();
    /* A line of the window and its channels are one axis of rows, the lines the other; the result
     * is stored by the epilogue. */
    md_tile p = weights_of("bf16", 16, 16, "o < 16, c < 16, i < 3, j < 3");
    assert_rows(&p, 3, 288, 48, 1);
    assert_true(p.b1.n * p.b2.n == 1 && (p.is & MD_TILE_NO_C));
    /* Where the result lies so, it is finished in place or turned. */
    p = weights_of("bf16", 16, 16, "o < 16, i < 3, j < 3, c < 16");
    assert_rows(&p, 3, 288, 48, 1);
    assert_true(p.b1.n * p.b2.n == 1 && !(p.is & MD_TILE_NO_C));
    /* Of a result that is too large to be added to again and again, lines are a batch. */
    p = weights_of("bf16", 64, 64, "o < 64, c < 64, i < 3, j < 3");
    assert_rows(&p, 64, 1, 3, 64);
    assert_true(p.b1.n * p.b2.n == 3 && !(p.is & MD_TILE_NO_C));
    /* Floats are packed for no line, and these have tiles to transform. */
    p = weights_of("f32", 16, 16, "o < 16, c < 16, i < 3, j < 3");
    assert_true(p.b1.n * p.b2.n == 3 && !(p.is & MD_TILE_NO_C));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests_name("rows apart", tests, NULL, NULL);
}
