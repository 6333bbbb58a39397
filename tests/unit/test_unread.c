/* What lies far from a diagonal and is read by nobody: which products and loops store no zeros
 * there, and which do since someone reads them. What programs give with them is in
 * suites/row_ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiled.h"
#include "compiler/kernel.h"
#include "passes/schedule/schedule.h"
#include "runtime/tile.h"
#include "tests/support.h"

#include <string.h>

typedef struct {
    int tiles, loops, bufs; /* products and loops that leave something out, of so many Bufs */
    int rests;              /* loops that store something behind their end */
    int64_t near;           /* of the last of these Bufs */
} Found;

static void collect_loops(const StmtList *list, Found *f) {
    for (int i = 0; i < list->count; i++) {
        const Stmt *s = list->at[i];
        bool rest = false;
        for (int k = 0; k < s->body.count; k++) {
            rest = rest || s->body.at[k]->rest;
        }
        assert_true(s->rests == 0 || (rest && s->rests == MD_TILE_UNREAD));
        f->loops += s->rests > 0;
        f->rests += rest;
        collect_loops(&s->body, f);
    }
}

static Found found_in(const char *text) {
    Dumped m;
    Program *p = compiled_text(&m, text, 2);
    assert_non_null(p);
    kernels_unread(p);
    Found f = {0};
    for (int i = 0; i < p->kernel.count; i++) {
        const Tile *tile = kernel_tile(p->kernel.at[i]);
        const int64_t unread = MD_TILE_AHEAD_UNREAD | MD_TILE_BEHIND_UNREAD;
        md_tile s = {.is = 0};
        if (tile) {
            memcpy(&s, tile->plan, sizeof s);
        }
        f.tiles += (s.is & unread) != 0;
        assert_true(!(s.is & unread) || s.band == MD_BAND_ROW_COLUMN);
        collect_loops(&p->kernel.at[i]->body, &f);
    }
    for (int i = 0; i < p->entry.count; i++) {
        for (int k = 0; k < p->entry.at[i]->buf.count; k++) {
            const int64_t near = p->entry.at[i]->buf.at[k]->near;
            f.bufs += near > 0;
            f.near = near > 0 ? near : f.near;
        }
    }
    print_message("%d products, %d of %d loops, %d Bufs, %lld places\n", f.tiles, f.loops, f.rests,
                  f.bufs, (long long)f.near);
    dumped_done(&m);
    return f;
}

#define EXPECT(text, want_tiles, want_loops, want_bufs)                                            \
    do {                                                                                           \
        const Found f_ = found_in(text);                                                           \
        assert_int_equal(f_.tiles, want_tiles);                                                    \
        assert_int_equal(f_.loops, want_loops);                                                    \
        assert_int_equal(f_.bufs, want_bufs);                                                      \
    } while (0)
#define HEAD                                                                                       \
    "use nn;\n"                                                                                    \
    "entry f(q: [3, 420, 16], k: [3, 420, 16], v: [3, 420, 16]) {\n"
#define SCORES "    s[b, i, j] = sum[c] q[b, i, c] * k[b, j, c];\n"
#define SOFT(where) "    m[b, i, j] = select(" where ", s[b, i, j], -inf);\n    p = softmax(m);\n"
#define VALUES "    y[b, i, c] = sum[j] p[b, i, j] * v[b, j, c];\n"
#define END "    return y;\n}\n"

static void test_causal(void **state) {
    (void)state;
    needs_usual_sizes();
    EXPECT(HEAD "    return attend(q, k, v, causal = true);\n}\n", 1, 1, 2);
    EXPECT(HEAD "    return attend(q, k, v);\n}\n", 0, 0, 0);
    /* Scores and their derivative, probabilities and what is made of them. */
    EXPECT(
        "use nn;\nentry f(q: [3, 420, 16], k: [3, 420, 16], v: [3, 420, 16], u: [3, 420, 16]) {\n"
        "    y = attend(q, k, v, causal = true);\n"
        "    return a = vjp(y, q, u), b = vjp(y, k, u), c = vjp(y, v, u);\n}\n",
        2, 1, 4);
    EXPECT(HEAD SCORES SOFT("j <= i + 9") VALUES END, 1, 1, 2);
    /* Both edges: rows are gone through from their first place on. */
    EXPECT(HEAD SCORES SOFT("j <= i and i < j + 50") VALUES END, 1, 1, 2);
    /* Nothing ends: no loop does before all of its row. */
    EXPECT(HEAD SCORES SOFT("j > i + 2 or j == 0") VALUES END, 0, 0, 0);
}

/* What is read where nobody ends is stored. */
static void test_readers(void **state) {
    (void)state;
    needs_usual_sizes();
    /* By a caller; by a sum of all; by a row or an element that is picked; by a slice that begins
     * elsewhere: the probabilities, and scores that only the softmax reads stay as they were. */
    EXPECT(HEAD SCORES SOFT("j <= i") VALUES "    return y = y, p = p;\n}\n", 1, 0, 1);
    EXPECT(HEAD SCORES SOFT("j <= i") VALUES "    return y = y, t = max(p);\n}\n", 1, 0, 1);
    EXPECT(HEAD SCORES SOFT("j <= i") VALUES "    t[b, i] = p[b, i, 419 - i];\n"
                                             "    return y = y, t = t;\n}\n",
           1, 0, 1);
    EXPECT("use nn;\nentry f(q: [3, 420, 16], k: [3, 420, 16], v: [3, 380, 16]) {\n" SCORES SOFT(
               "j <= i") "    y[b, i, c] = sum[j] p[b, i, j + 20] * v[b, j, c];\n" END,
           1, 0, 1);
    /* The product of all of it with something else. */
    EXPECT(HEAD SCORES SOFT("j <= i") VALUES "    z[b, c, j] = sum[i] p[b, i, j] * q[b, i, c];\n"
                                             "    r = p + 1;\n"
                                             "    w[b, i, c] = sum[j] r[b, i, j] * q[b, j, c];\n"
                                             "    return y = y, z = z, w = w;\n}\n",
           1, 0, 1);
    /* Of lengths that the run decides a loop knows its end, a product does not. */
    EXPECT(HEAD "    n[i < 420] = i32(abs(v[0, i, 0]));\n" SCORES SOFT("j <= n[i]") VALUES END, 0,
           0, 0);
}

/* A kernel is one for all its calls: one that is read as a whole keeps the zeros of all. */
static void test_calls(void **state) {
    (void)state;
    needs_usual_sizes();
#define TWICE(last)                                                                                \
    HEAD SCORES SOFT("j <= i") VALUES "    s2[b, i, j] = sum[c] k[b, i, c] * q[b, j, c];\n"        \
                                      "    m2[b, i, j] = select(j <= i, s2[b, i, j], -inf);\n"     \
                                      "    p2 = softmax(m2);\n"                                    \
                                      "    z[b, i, c] = sum[j] p2[b, i, j] * y[b, j, c];\n" last
    EXPECT(TWICE("    return z;\n}\n"), 1, 1, 4);
    EXPECT(TWICE("    return z = z, t = max(p2);\n}\n"), 1, 0, 2);
}

/* Layers in a loop, whose adjoint reads what is stacked. */
static void test_stacks(void **state) {
    (void)state;
    needs_usual_sizes();
    EXPECT("use nn;\n"
           "layer block(x: [b, t, n]) -> [b, t, n] {\n"
           "    return x + (a: multihead_attention(x, 2, causal = true));\n}\n"
           "model net(x: [2, 300, 32]) -> [2, 300, 32] {\n"
           "    repeat 3 carry x { x <- block(x); }\n    return x;\n}\n"
           "train fit(x: [2, 300, 32]) of net {\n"
           "    loss mean(net(x) ^ 2);\n    optimizer sgd(lr = 0.1);\n}\n",
           1, 3, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_causal),
                                       cmocka_unit_test(test_readers), cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_stacks)};
    return cmocka_run_group_tests_name("unread", tests, NULL, NULL);
}
