/* Products of which only places near a diagonal count: which are found, and with which edges. The
 * numbers that they give are those of all terms: test_tile_band, and attention among the texts
 * whose programs are run. */
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

typedef struct {
    int64_t band, from, until; /* from, until: as in md_tile, INT64_MIN and INT64_MAX: open */
} Edges;

#define OPEN_BELOW INT64_MIN
#define OPEN_ABOVE INT64_MAX

static void collect(const StepList *list, Edges *found, int *n) {
    for (int i = 0; i < list->count; i++) {
        const Step *s = list->at[i];
        const Tile *tile = s->kernel ? kernel_tile(s->kernel) : NULL;
        collect(&s->body, found, n);
        if (tile && !tile->blas) {
            md_tile p;
            memcpy(&p, tile->plan, sizeof p);
            assert_true((tile->banded != 0) == (p.band != MD_BAND_NONE));
            assert_true((tile->banded > 1) == (p.band >= MD_BAND_ROW_STEP0));
            const bool below = p.from <= -MD_BAND_OPEN / 2, above = p.until >= MD_BAND_OPEN / 2;
            found[(*n)++] =
                (Edges){p.band, below ? OPEN_BELOW : p.from, above ? OPEN_ABOVE : p.until};
        }
    }
}

/* The products of the last entry, in order; those without a band have zeros. */
static void expect(const char *text, const Edges *want, int nwant) {
    Edges found[32];
    int n = 0;
    Dumped m;
    const Program *p = compiled_text(&m, text, 2);
    assert_non_null(p);
    collect(&p->entry.at[p->entry.count - 1]->step, found, &n);
    for (int i = 0; i < n; i++) {
        print_message("%d %lld %lld\n", (int)found[i].band, (long long)found[i].from,
                      (long long)found[i].until);
    }
    assert_int_equal(n, nwant);
    for (int i = 0; i < n; i++) {
        assert_int_equal(found[i].band, want[i].band);
        assert_int_equal(found[i].from, want[i].from);
        assert_int_equal(found[i].until, want[i].until);
    }
    dumped_done(&m);
}

#define EXPECT(text, ...)                                                                          \
    do {                                                                                           \
        const Edges want_[] = {__VA_ARGS__};                                                       \
        expect(text, want_, (int)(sizeof want_ / sizeof *want_));                                  \
    } while (0)
#define HEAD                                                                                       \
    "use nn;\n"                                                                                    \
    "entry f(q: [3, 96, 16], k: [3, 96, 16], v: [3, 96, 16]) {\n"
#define SCORES "    s[b, i, j] = sum[c] q[b, i, c] * k[b, j, c];\n"
#define VALUES "    y[b, i, c] = sum[j] p[b, i, j] * v[b, j, c];\n    return y;\n}\n"
#define BEFORE                                                                                     \
    { MD_BAND_ROW_SUM, OPEN_BELOW, 1 }
#define SEEN                                                                                       \
    { MD_BAND_ROW_COLUMN, OPEN_BELOW, 1 }
#define ALL                                                                                        \
    { MD_BAND_NONE, 0, 0 }

static void test_causal(void **state) {
    (void)state;
    EXPECT("use nn;\n" HEAD "    return attend(q, k, v, causal = true);\n}\n", SEEN, BEFORE);
    EXPECT("use nn;\n" HEAD "    return attend(q, k, v);\n}\n", ALL, ALL);
    /* With derivatives: values, and what is made of scores, by rows and by columns. */
    EXPECT("use nn;\nentry f(q: [3, 96, 16], k: [3, 96, 16], v: [3, 96, 16], u: [3, 96, 16]) {\n"
           "    y = attend(q, k, v, causal = true);\n"
           "    return a = vjp(y, q, u), b = vjp(y, k, u), c = vjp(y, v, u);\n}\n",
           SEEN, SEEN, {MD_BAND_ROW_SUM, 0, OPEN_ABOVE}, BEFORE, {MD_BAND_ROW_SUM, 0, OPEN_ABOVE});
}

#define SOFT(where) "    m[b, i, j] = select(" where ", s[b, i, j], -inf);\n    p = softmax(m);\n"

static void test_edges(void **state) {
    (void)state;
    /* A window of five places; what lies ahead; all but the place itself is no band. */
    EXPECT(HEAD SCORES SOFT("j <= i and i < j + 5") VALUES, {MD_BAND_ROW_COLUMN, -4, 1},
           {MD_BAND_ROW_SUM, -4, 1});
    EXPECT(HEAD SCORES SOFT("j > i + 2") VALUES, {MD_BAND_ROW_COLUMN, 3, OPEN_ABOVE},
           {MD_BAND_ROW_SUM, 3, OPEN_ABOVE});
    EXPECT(HEAD SCORES SOFT("not (i + 1 < j)") VALUES, {MD_BAND_ROW_COLUMN, OPEN_BELOW, 2},
           {MD_BAND_ROW_SUM, OPEN_BELOW, 2});
    EXPECT(HEAD SCORES SOFT("i == j or j - 3 < i") VALUES, {MD_BAND_ROW_COLUMN, OPEN_BELOW, 3},
           {MD_BAND_ROW_SUM, OPEN_BELOW, 3});
    EXPECT(HEAD SCORES SOFT("i != j") VALUES, ALL, ALL);
    EXPECT(HEAD SCORES SOFT("b <= j") VALUES, ALL, ALL);
    EXPECT(HEAD SCORES SOFT("2 * j <= i") VALUES, ALL, ALL);
    EXPECT(HEAD SCORES SOFT("j <= i or q[b, i, 0] > 0") VALUES, ALL, ALL);
    /* What could wrap is no sum of places. */
    EXPECT(HEAD SCORES SOFT("i64(j) <= i64(i)") VALUES, SEEN, BEFORE);
    EXPECT(HEAD SCORES SOFT("u8(j) <= u8(i)") VALUES, ALL, ALL);
    EXPECT(HEAD SCORES SOFT("j + 2147483000 <= i") VALUES, ALL, ALL);
    /* A slice of the keys begins elsewhere. */
    EXPECT(
        "use nn;\nentry f(q: [3, 96, 16], k: [3, 96, 16], v: [3, 64, 16]) {\n" SCORES SOFT(
            "j <= i") "    y[b, i, c] = sum[j] p[b, i, j + 20] * v[b, j, c];\n    return y;\n}\n",
        SEEN, {MD_BAND_ROW_SUM, OPEN_BELOW, -19});
}

/* What else reads the scores, or makes them other than zero, keeps all of them. */
static void test_readers(void **state) {
    (void)state;
    EXPECT(HEAD SCORES SOFT("j <= i") "    y[b, i, c] = sum[j] p[b, i, j] * v[b, j, c];\n"
                                      "    return y = y, s = s;\n}\n",
           ALL, BEFORE);
    EXPECT(HEAD SCORES SOFT("j <= i") "    y[b, i, c] = sum[j] p[b, i, j] * v[b, j, c];\n"
                                      "    return y = y, top = max(s);\n}\n",
           ALL, BEFORE);
    EXPECT(HEAD SCORES "    p[b, i, j] = select(j <= i, s[b, i, j], 1);\n" VALUES, SEEN, ALL);
    EXPECT(HEAD SCORES "    p[b, i, j] = select(j <= i, s[b, i, j], 0);\n" VALUES, SEEN, BEFORE);
    EXPECT(HEAD SCORES SOFT(
               "j <= i") "    r = p + 1;\n"
                         "    y[b, i, c] = sum[j] r[b, i, j] * v[b, j, c];\n    return y;\n}\n",
           SEEN, ALL);
}

/* A triangle of a matrix, on either side of a product and of its derivative. */
static void test_triangle(void **state) {
    (void)state;
    EXPECT("entry f(a: [90, 90], x: [90, 40]) {\n    l[i, j] = select(j <= i, a[i, j], 0);\n"
           "    y[i, c] = sum[j] l[i, j] * x[j, c];\n    return y;\n}\n",
           BEFORE);
    EXPECT("entry f(a: [90, 90], x: [40, 90]) {\n    l[i, j] = select(j <= i, a[i, j], 0);\n"
           "    y[c, i] = sum[j] x[c, j] * l[i, j];\n    return y;\n}\n",
           {MD_BAND_COLUMN_SUM, OPEN_BELOW, 1});
    EXPECT("entry f(a: [90, 90], x: [40, 90]) {\n    l[i, j] = select(j <= i, a[i, j], 0);\n"
           "    y[c, j] = sum[i] x[c, i] * l[i, j];\n    return y;\n}\n",
           {MD_BAND_COLUMN_SUM, 0, OPEN_ABOVE});
}

/* Of layers in a loop the adjoint reads what the loop before it has stacked. */
static void test_stacks(void **state) {
    (void)state;
    const char *text =
        "use nn;\n"
        "layer block(x: [b, t, n]) -> [b, t, n] {\n"
        "    return x + (a: multihead_attention(x, 2, causal = true));\n}\n"
        "model net(x: [4, 40, 32]) -> [4, 40, 32] { repeat 3 carry x { x <- block(x); } return x; "
        "}\n"
        "train fit(x: [4, 40, 32]) of net { loss mean(net(x) ^ 2); optimizer sgd(lr = 0.1); }\n";
    Edges found[64];
    int n = 0, banded = 0;
    Dumped m;
    const Program *p = compiled_text(&m, text, 2);
    assert_non_null(p);
    for (int i = 0; i < p->entry.count; i++) {
        if (p->entry.at[i]->entry->kind == ENTRY_TRAIN) {
            collect(&p->entry.at[i]->step, found, &n);
        }
    }
    for (int i = 0; i < n; i++) {
        banded += found[i].band != MD_BAND_NONE;
    }
    print_message("%d of %d products\n", banded, n);
    assert_int_equal(banded, 6);
    dumped_done(&m);
}

/* Windows with a border of zeros: lines of the result and of windows, for the result, the input's
 * gradient and that of the numbers, where lines of windows are batches. Strides and dilations
 * count; no border, and one of other values, do not. */
static void test_borders(void **state) {
    (void)state;
    needs_usual_sizes();
    EXPECT("use nn;\nmodel net(x: [64, 16, 12, 12]) -> [64, 32, 12, 12] {\n"
           "    return x |> c: conv2d(32, k = 3, pad = 1);\n}\n"
           "entry f(x: [64, 16, 12, 12]) { return net(x); }\n",
           {MD_BAND_ROW_STEP0, 14 * 16, 13 * 14 * 16});
    EXPECT("use nn;\nmodel net(x: [64, 1, 12, 12]) -> [64, 32, 12, 12] {\n"
           "    return x |> c1: conv2d(12, k = 3, pad = 1) |> relu |> c2: conv2d(32, k = 3, pad = "
           "1);\n}\n"
           "train fit(x: [64, 1, 12, 12], u: [64, 32, 12, 12]) of net {\n"
           "    loss mean((net(x) - u) * (net(x) - u));\n    optimizer sgd(lr = 0.1);\n}\n",
           {MD_BAND_ROW_STEP1, 14, 13 * 14}, {MD_BAND_ROW_STEP0, 14 * 12, 13 * 14 * 12},
           {MD_BAND_BATCH2_STEP1, 168, 13 * 168}, {MD_BAND_ROW_STEP0, 14 * 32, 13 * 14 * 32},
           {MD_BAND_ROW_STEP1, 14, 13 * 14});
    EXPECT("use nn;\nmodel net(x: [64, 16, 20, 20]) -> [64, 32, 9, 9] {\n"
           "    return x |> c: conv2d(32, k = 3, pad = 1, stride = 2, dilation = 2);\n}\n"
           "entry f(x: [64, 16, 20, 20]) { return net(x); }\n",
           {MD_BAND_ROW_STEP0, 21 * 16, 21 * 21 * 16});
    EXPECT("use nn;\nmodel net(x: [64, 16, 12, 12]) -> [64, 32, 10, 10] {\n"
           "    return x |> c: conv2d(32, k = 3);\n}\n"
           "entry f(x: [64, 16, 12, 12]) { return net(x); }\n",
           ALL);
    EXPECT("entry f(x: [64, 16, 12, 12], w: [32, 16, 3, 3]) {\n"
           "    y[b, o, i < 12, j < 12] = sum[c, p, q] (x[b, c, i + p - 1, j + q - 1] else 1) * "
           "w[o, c, p, q];\n"
           "    return y;\n}\n",
           ALL);
}

/* Beside the flags of plans: lines of channels leave a border out. */
#define BORDER (INT64_C(1) << 40)

/* The flags of the product of this name. */
static int64_t product_flags(const StepList *list, const char *name) {
    int64_t found = 0;
    for (int i = 0; i < list->count; i++) {
        const Step *s = list->at[i];
        const Tile *tile = s->kernel ? kernel_tile(s->kernel) : NULL;
        found |= product_flags(&s->body, name);
        const char *end = s->kernel ? strstr(s->kernel->name, name) : NULL; /* behind its file's */
        if (tile && !tile->blas && end && strcmp(end, name) == 0) {
            md_tile p;
            memcpy(&p, tile->plan, sizeof p);
            found |= p.is | (md_tile_line(&p) > 1 && p.band == MD_BAND_ROW_STEP1 ? BORDER : 0);
        }
    }
    return found;
}

/* Weights of many channels over few places: panels are packed once for all images where a copy of
 * these with borders is small beside the panels, and their steps go by a list, without the border.
 * Few channels are kept in panels as a whole, and many places of one image pay for packing. Without
 * a dilation tiles are transformed, where there are enough of them. */
static void test_batched(void **state) {
    (void)state;
    needs_usual_sizes();
    static const struct {
        int images, channels, side, dilation;
        int64_t want; /* of the product and of its adjoint by the input */
    } of[] = {{8, 160, 8, 2, MD_TILE_BATCHED | MD_TILE_LISTED | BORDER},
              {3, 160, 8, 1, MD_TILE_LISTED | BORDER},
              {3, 160, 8, 2, MD_TILE_LISTED | BORDER},
              {8, 160, 24, 2, MD_TILE_LISTED | BORDER},
              {64, 32, 8, 2, MD_TILE_KEPT},
              {8, 160, 8, 1, MD_TILE_WINOGRAD},
              {64, 32, 8, 1, MD_TILE_WINOGRAD}};
    const int64_t asked =
        MD_TILE_BATCHED | MD_TILE_LISTED | BORDER | MD_TILE_KEPT | MD_TILE_WINOGRAD;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[900];
        const int b = of[i].images, c = of[i].channels, n = of[i].side, d = of[i].dilation;
        snprintf(text, sizeof text,
                 "use nn;\nmodel net(x: [%d, 3, %d, %d]) -> [%d, %d, %d, %d] {\n"
                 "    return x |> c1: conv2d(%d, k = 3, pad = 1) |> relu\n"
                 "        |> c2: conv2d(%d, k = 3, pad = %d, dilation = %d);\n}\n"
                 "train fit(x: [%d, 3, %d, %d], u: [%d, %d, %d, %d]) of net {\n"
                 "    loss mean((net(x) - u)^2);\n    optimizer sgd(lr = 0.1);\n}\n",
                 b, n, n, b, c, n, n, c, c, d, d, b, n, n, b, c, n, n);
        Dumped m;
        const Program *p = compiled_text(&m, text, 2);
        assert_non_null(p);
        const StepList *steps = &p->entry.at[p->entry.count - 1]->step;
        print_message("%d %d %d %d\n", b, c, n, d);
        assert_int_equal(product_flags(steps, "c2_conv2d_relu") & asked, of[i].want);
        assert_int_equal(product_flags(steps, "c2_conv2d_relu_back") & asked, of[i].want);
        dumped_done(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causal),  cmocka_unit_test(test_edges),
        cmocka_unit_test(test_readers), cmocka_unit_test(test_triangle),
        cmocka_unit_test(test_stacks),  cmocka_unit_test(test_borders),
        cmocka_unit_test(test_batched)};
    return cmocka_run_group_tests_name("band", tests, NULL, NULL);
}
