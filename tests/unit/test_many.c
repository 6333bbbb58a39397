/* many: which blocks a C compiler makes once for several products, and from how many loops on one
 * function runs them. Values: test_tile, test_random, the suite threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/schedule/product.h"

#include <stdio.h>
#include <string.h>

/* A convolution of 3 x 3 with 64 channels on 8 x 8, whose weights are [out, in, 3, 3]. */
/* clang-format off */
static const md_tile forward = {
    MD_TILE_ROWS2(8, 640, 512, 8, 64, 64), MD_TILE_COLUMNS(64, 576, 1),
    MD_TILE_SUM3(3, 640, 3, 3, 64, 1, 64, 1, 9), MD_TILE_BATCH(32, 6400, 0, 4096), sizeof(float),
    MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_PACKED | MD_TILE_KEPT | MD_TILE_HELPED,
    MD_TILE_BLOCKS2(64, 64, 2, 3, 64), MD_TILE_WORK(36864, 36864, 36864)
};
/* The gradient by its numbers, added to what is there. */
static const md_tile backward = {
    MD_TILE_ROWS2(8, 640, 512, 8, 64, 64), MD_TILE_COLUMNS(64, 9, 1),
    MD_TILE_SUM3(3, 640, -3, 3, 64, -1, 64, 1, 576), MD_TILE_BATCH(16, 6400, 0, 4096),
    sizeof(float),
    MD_TILE_ADD | MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_PACKED | MD_TILE_KEPT,
    MD_TILE_BLOCKS2(64, 64, 2, 3, 64), MD_TILE_WORK(36864, 36864, 36864)
};
/* linear(40 -> 10) of 128 rows. */
static const md_tile narrow = {
    MD_TILE_ROWS(128, 40, 10), MD_TILE_COLUMNS(10, 40, 1), MD_TILE_SUM(40, 1, 1),
    MD_TILE_NO_BATCH, sizeof(float), MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(128, 32, 2, 40), MD_TILE_WORK(640, 640, 640)
};
/* clang-format on */

static void test_same(void **state) {
    (void)state;
    assert_true(product_same_block(&forward, &backward));
    md_tile other = backward; /* packs Y in the block */
    md_tile one = forward;
    one.is &= ~(int64_t)MD_TILE_KEPT;
    other.is &= ~(int64_t)MD_TILE_KEPT;
    assert_false(product_same_block(&one, &other));
    assert_false(product_same_block(&forward, &one));
    other = forward; /* rows in tiles of other heights, and elsewhere */
    other.r2.n = 7;
    assert_false(product_same_block(&forward, &other));
    other = forward;
    other.r1.x = 641;
    assert_false(product_same_block(&forward, &other));
    other = forward;
    other.k2.n = other.kb2 = 32;
    assert_false(product_same_block(&forward, &other));
    other = forward; /* 16 bits: all of the plan counts */
    other.is |= MD_TILE_HALF;
    one = other;
    one.b2.n = 16;
    assert_true(product_same_block(&other, &other));
    assert_false(product_same_block(&one, &other));
}

/* What md_tile_known tells. */
static void test_told(void **state) {
    (void)state;
    md_tile other = narrow; /* the only block of the sum is added to C or not */
    assert_true(product_same_block(&narrow, &other));
    other.is |= MD_TILE_ADD;
    assert_false(product_same_block(&narrow, &other));
    other = narrow; /* ten columns fill no vector: is there room behind them? */
    other.is &= ~(int64_t)MD_TILE_IN_PLACE;
    assert_false(product_same_block(&narrow, &other));
    other = forward; /* 64 do */
    other.is &= ~(int64_t)MD_TILE_IN_PLACE;
    assert_true(product_same_block(&forward, &other));
    other = forward; /* a part of the sum begins anywhere */
    other.chunks = 3;
    assert_false(product_same_block(&forward, &other));
    md_tile more = other;
    more.chunks = 5;
    assert_true(product_same_block(&more, &other));
}

typedef struct {
    int tiles, blocks, shared; /* products, blocks of their own, products that have one of those */
    int loops, handed;
} Found;

static Found found_in(const char *text) {
    Dumped m;
    Program *p = compiled_text(&m, text, 4);
    assert_non_null(p);
    kernels_many(p, false);
    Found f = {0};
    for (int i = 0; i < p->kernel.count; i++) {
        const Tile *tile = kernel_tile(p->kernel.at[i]);
        f.loops += kernel_parallel_loops(p->kernel.at[i]);
        f.handed += p->kernel.at[i]->handed ? kernel_parallel_loops(p->kernel.at[i]) : 0;
        if (tile == NULL) {
            continue;
        }
        f.tiles++;
        f.shared += tile->block > 0;
        f.blocks = tile->block > f.blocks ? tile->block : f.blocks;
        assert_true(tile->block > 0 || !tile->large);
    }
    dumped_done(&m);
    return f;
}

/* `count` layers of 32 numbers, each with a function of its own behind it. */
static Found layers(int count) {
    static const char *const of[] = {"tanh(%s)",      "exp(%s)", "max(%s, 0)",  "%s * %s",
                                     "sqrt(abs(%s))", "sin(%s)", "cos(%s) + %s"};
    char text[4096] = "entry f(x0: [200, 32], w: [32, 32]) {\n";
    for (int i = 0; i < count; i++) {
        char value[64], last[32];
        snprintf(last, sizeof last, "s%d[i, j]", i);
        const char *form = of[i];
        size_t n = 0;
        for (const char *c = form; *c != 0; c++) {
            if (*c == '%') {
                n += (size_t)snprintf(value + n, sizeof value - n, "%s", last);
                c++;
            } else {
                value[n++] = *c;
            }
        }
        value[n] = 0;
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at,
                 "    s%d[i, j] = sum[k] x%d[i, k] * w[k, j];\n    x%d[i, j] = %s;\n", i, i, i + 1,
                 value);
    }
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, "    return x%d;\n}\n", count);
    return found_in(text);
}

static void test_blocks(void **state) {
    (void)state;
    Found f = layers(7);
    assert_int_equal(f.tiles, 7);
    assert_int_equal(f.shared, 7);
    assert_int_equal(f.blocks, 1);
    f = layers(4); /* three would be spared: all have theirs in their loops */
    assert_int_equal(f.tiles, 4);
    assert_int_equal(f.shared, 0);
}

/* `count` maps of large tensors of different sizes, each a loop on threads of its own. */
static Found maps(int count) {
    char text[2048] = "entry f(";
    static const char *const line[] = {"x%d: [%d, 512]", "    m%d[i] = max[j] sin(x%d[i, j]);\n",
                                       "m%d"};
    static const char *const end[] = {") {\n", "    return ", ";\n}\n"};
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < count; i++) {
            const char *comma = i > 0 && part != 1 ? ", " : "";
            const size_t at = strlen(text);
            const int n = snprintf(text + at, sizeof text - at, "%s", comma);
            snprintf(text + at + n, sizeof text - at - (size_t)n, line[part], i,
                     part == 0 ? 512 + 64 * i : i);
        }
        strncat(text, end[part], sizeof text - strlen(text) - 1);
    }
    return found_in(text);
}

static void test_loops(void **state) {
    (void)state;
    Found f = maps(3);
    assert_int_equal(f.loops, 3);
    assert_int_equal(f.handed, 0);
    f = maps(4);
    assert_int_equal(f.loops, 4);
    assert_int_equal(f.handed, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_told),
                                       cmocka_unit_test(test_blocks), cmocka_unit_test(test_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
