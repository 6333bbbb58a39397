/* outer: which axis of a product goes with the batch, and that a batch decides nothing about the
 * text of kernels where numbers stand apart from it. Texts: the suite split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/schedule/product.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

/* The field of a plan by its number. */
#define FIELD(f) ((int)(offsetof(md_tile, f) / sizeof(int64_t)) + 1)

/* m rows and n columns, each operand dense, with the strides that are said. */
static md_tile product(int64_t m, int64_t n, int64_t k, int64_t a_m, int64_t a_k, int64_t b_k,
                       int64_t b_n) {
    const md_tile_shape s = {.b1 = 1,
                             .b2 = 1,
                             .m1 = 1,
                             .m2 = m,
                             .n = n,
                             .k0 = 1,
                             .k1 = 1,
                             .k2 = k,
                             .ko = 1,
                             .a_m2 = a_m,
                             .a_k2 = a_k,
                             .b_k2 = b_k,
                             .b_n = b_n,
                             .c_m2 = n,
                             .c_n = 1};
    return md_tile_plan(md_tile_normal(s), sizeof(float));
}

static void test_axis(void **state) {
    (void)state;
    const md_tile forward = product(200, 32, 32, 32, 1, 32, 1);
    assert_int_equal(product_outer(&forward), FIELD(r2.n));
    const md_tile gradient = product(32, 48, 200, 1, 32, 48, 1);
    assert_int_equal(product_outer(&gradient), FIELD(k2.n));
    const md_tile turned = product(200, 2, 32, 32, 1, 1, 32); /* few columns: the roles change */
    assert_true(turned.is & MD_TILE_SWAPPED);
    assert_int_equal(product_outer(&turned), FIELD(cols.n));
    const md_tile few = product(48, 32, 32, 32, 1, 32, 1);
    assert_int_equal(product_outer(&few), 0);
    md_tile batched = forward; /* of each its own rows: now those are inside */
    batched.b2 = (md_tile_axis){10, 6400, 0, 6400};
    assert_int_equal(product_outer(&batched), FIELD(b2.n));
    md_tile skips = forward;
    skips.skip.n = 2;
    assert_int_equal(product_outer(&skips), 0);
}

static void test_nominal(void **state) {
    (void)state;
    needs_usual_sizes();
    const md_tile one = product(200, 32, 32, 32, 1, 32, 1);
    const md_tile other = product(5000, 32, 32, 32, 1, 32, 1);
    const md_tile of_one = product_nominal(&one), of_other = product_nominal(&other);
    assert_int_equal(of_one.r2.n, of_other.r2.n);
    assert_int_equal(product_task(&of_one), product_task(&of_other));
    assert_false(product_large(&of_other));
    assert_true(product_large(&other));
    const md_tile few = product(48, 32, 32, 32, 1, 32, 1), of_few = product_nominal(&few);
    assert_memory_equal(&of_few, &few, sizeof few);
}

/* Products of `rows` rows whose loop over tasks is one for all. */
static int large(int rows, bool apart) {
    enum { LAYERS = 14 };
    char text[4096];
    snprintf(text, sizeof text, "entry f(x0: [%d, 32], w: [32, 32]) {\n", rows);
    for (int i = 0; i < LAYERS; i++) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at,
                 "    s%d[i, j] = sum[k] x%d[i, k] * w[k, j];\n    x%d[i, j] = sin(s%d[i, j]);\n",
                 i, i, i + 1, i);
    }
    strcat(text, "    return x14;\n}\n");
    Dumped m;
    Program *p = compiled_text(&m, text, 4);
    assert_non_null(p);
    kernels_many(p, apart);
    int count = 0, tiles = 0;
    for (int i = 0; i < p->kernel.count; i++) {
        const Tile *tile = kernel_tile(p->kernel.at[i]);
        tiles += tile != NULL;
        count += tile != NULL && tile->large;
    }
    assert_true(tiles >= 1);
    dumped_done(&m);
    return count > 0;
}

static void test_decides_nothing(void **state) {
    (void)state;
    assert_int_equal(large(200, true), large(2000, true));
    assert_int_not_equal(large(200, false), large(2500, false));
    assert_int_equal(large(200, true), large(2500, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_axis), cmocka_unit_test(test_nominal),
                                       cmocka_unit_test(test_decides_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
