/* Convolutions as products over windows: what becomes of them and of their adjoints, and that
 * values are those of loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/simplify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_bordered_window(const Node *node) {
    return node->op == OP_WINDOW && node->attr->border != BORDER_NONE;
}

static bool is_overlap(const Node *node) {
    return node->op == OP_OVERLAP_ADD;
}

static bool is_turned_pad(const Node *node) {
    return node->op == OP_PAD && node->in[0]->op == OP_PERMUTE;
}

static bool has_places_beside(const Node *node) {
    return node->op == OP_CONTRACT && node->type->rank == 5;
}

/* Few columns: the adjoint by four channels multiplies two places at a time, whose numbers have
 * zeros between them; not where places are odd, strides leave some out, or there is little to do.
 */
static void test_halo_of_few(void **state) {
    (void)state;
    static const struct {
        int64_t b, c, n, k, stride;
        int made;
    } row[] = {{9, 4, 18, 5, 1, 1}, {24, 4, 18, 3, 1, 1}, {9, 4, 19, 5, 1, 0},
               {9, 4, 18, 5, 2, 0}, {9, 5, 18, 5, 1, 0},  {2, 4, 18, 3, 1, ODD_SIZES}};
    static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {6, 1, 3, 5}, lo[] = {0, 6, 2, 4};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 3000 + i);
        Graph *g = f.g;
        int64_t k = row[i].k, n = row[i].n, pad = k / 2;
        int64_t count = (n + 2 * pad - k) / row[i].stride + 1;
        Type tx = {.elem = TY_F64, .rank = 4, .dim = {row[i].b, row[i].c, n, n}};
        Type tw = {.elem = TY_F64, .rank = 4, .dim = {16, row[i].c, k, k}};
        Node *x = sample_input(&f.s, tx, -1, 1), *w = sample_input(&f.s, tw, -1, 1);
        Node *win = node_window(g, x, 2, row[i].stride, 1, pad, count, k, BORDER_VALUE, 0);
        win = node_window(g, win, 4, row[i].stride, 1, pad, count, k, BORDER_VALUE, 0);
        region_result(f.region, node_contract(g, win, w, la, lb, lo, 4));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        assert_int_equal(fixture_count(&f, after, has_places_beside), row[i].made);
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
}

/* Terms as rows of taps and, behind them, channels, which the numbers beside them have in order. */
static bool has_terms_by_places(const Node *node) {
    static const int8_t places[] = {0, 2, 4}, columns[] = {3, 5, 1};
    const Attr *a = node->attr;
    const int at = node->op == OP_CONTRACT ? node->type->rank - 3 : -1;
    const int own = node->op == OP_CONTRACT ? node->in[1]->type->rank - 3 : -1;
    return at == 3 && own > 0 && memcmp(a->lo_, places, sizeof places) == 0 &&
           memcmp(a->lo_ + at, columns, sizeof columns) == 0 &&
           memcmp(a->lb + own, columns, sizeof columns) == 0 && halo_turns(node, 1);
}

/* The same of one tap; along the other axis the sum is the product's own. */
static bool has_terms_of_rows(const Node *node) {
    const Attr *a = node->attr;
    const int rank = node->type->rank;
    return node->op == OP_CONTRACT && rank == 5 && a->lo_[3] == 3 && a->lo_[4] == 1 &&
           halo_turns(node, 1);
}

/* Sums over windows that stay, at strides or where a product would have few columns and many zeros,
 * are of terms made place by place; where columns are many, or few taps are, they do not stay. */
static void test_halo_of_terms(void **state) {
    (void)state;
    static const struct {
        int64_t b, c, o, n, k, stride, pad;
        int by_places, of_rows, sums;
    } row[] = {{60, 5, 8, 9, 3, 2, 1, 1, 0, 2},   {700, 7, 8, 9, 3, 2, 0, 1, 0, 2},
               {160, 5, 8, 12, 4, 3, 1, 1, 0, 2}, {70, 6, 16, 14, 5, 1, 0, 0, 1, 1},
               {70, 8, 16, 14, 5, 1, 0, 0, 0, 0}, {70, 6, 16, 14, 3, 1, 1, 0, 0, 0}};
    static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {6, 1, 3, 5}, lo[] = {0, 6, 2, 4};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 4000 + i);
        Graph *g = f.g;
        int64_t k = row[i].k, n = row[i].n, pad = row[i].pad, stride = row[i].stride;
        int64_t count = (n + 2 * pad - k) / stride + 1;
        Type tx = {.elem = TY_F64, .rank = 4, .dim = {row[i].b, row[i].c, n, n}};
        Type tw = {.elem = TY_F64, .rank = 4, .dim = {row[i].o, row[i].c, k, k}};
        Node *x = sample_input(&f.s, tx, -1, 1), *w = sample_input(&f.s, tw, -1, 1);
        Node *win = node_window(g, x, 2, stride, 1, pad, count, k, BORDER_VALUE, 0);
        win = node_window(g, win, 4, stride, 1, pad, count, k, BORDER_VALUE, 0);
        region_result(f.region, node_contract(g, win, w, la, lb, lo, 4));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        const int by_places = fixture_count(&f, after, has_terms_by_places);
        const int of_rows = fixture_count(&f, after, has_terms_of_rows);
        const int sums = fixture_count(&f, after, is_overlap);
        if (!ODD_SIZES &&
            (by_places != row[i].by_places || of_rows != row[i].of_rows || sums != row[i].sums)) {
            fail_msg("%zu: %d by places, %d of rows, %d sums", i, by_places, of_rows, sums);
        }
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
}

static bool is_concat(const Node *node) {
    return node->op == OP_CONCAT;
}

static bool is_product(const Node *node) {
    return node->op == OP_CONTRACT;
}

/* Large sums over windows at strides whose taps do not fill the phases: a product for each phase,
 * and no terms; any padding, along one to three axes, of extents that no stride divides. */
static void test_halo_of_parts(void **state) {
    (void)state;
    int made[4] = {0};
    for (uint64_t i = 0; i < 16; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 7000 + i);
        Sample *s = &f.s;
        Graph *g = f.g;
        const int axes = i % 8 == 7 ? 3 : 1 + (i % 4 != 3);
        int64_t o = 2 + (int64_t)sample_below(s, 3), c = 8 + (int64_t)sample_below(s, 3);
        int64_t x[MD_RANK] = {0, o}, w[MD_RANK] = {o, c}, work = o * c, phases = 1;
        const int8_t of = (int8_t)(2 + 2 * axes);
        int8_t la[MD_RANK] = {0, 1}, lb[MD_RANK] = {1, of}, lo[MD_RANK] = {0, of};
        Attr window[3];
        for (int a = 0; a < axes; a++) {
            const int64_t r = axes == 3 ? 2 : 2 + (int64_t)(a == 0 && sample_below(s, 2));
            const int64_t n = axes == 3 ? 4 : 7 + (int64_t)sample_below(s, 3);
            const int64_t k = axes == 1 ? r + 1 : r + 1 + r * (int64_t)(sample_below(s, 4) / 3);
            const int64_t p = (int64_t)sample_below(s, 4) - 1;
            window[a] = (Attr){.axis = 2 + 2 * a,
                               .s = r,
                               .d = 1,
                               .p = p,
                               .count = n,
                               .taps = k,
                               .taps_n = (n - 1) * r + k - p + (int64_t)sample_below(s, 3) - 2,
                               .border = BORDER_VALUE};
            x[2 + a] = n;
            w[2 + a] = k;
            la[2 + a] = lo[2 + 2 * a] = (int8_t)(2 + 2 * a);
            lb[2 + a] = lo[3 + 2 * a] = (int8_t)(3 + 2 * a);
            phases *= r;
            work *= n * k;
        }
        x[0] = (1 << 22) / work + (i % 5 != 0); /* or too small a product */
        Node *sum = node_contract(g, sample_input(s, type_make(TY_F64, 2 + axes, x), -1, 1),
                                  sample_input(s, type_make(TY_F64, 2 + axes, w), -1, 1), la, lb,
                                  lo, 2 + 2 * axes);
        for (int a = axes - 1; a >= 0; a--) {
            sum = node_overlap_add(g, sum, &window[a]);
        }
        region_result(f.region, sum);
        Region *before = optimise(&f, f.region);
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        const bool apart = fixture_count(&f, after, is_concat) > 0;
        if (!ODD_SIZES && apart != (i % 5 != 0)) {
            fail_msg("%d: %s", (int)i, apart ? "apart" : "not apart");
        }
        assert_true(!apart || fixture_count(&f, after, is_product) == phases);
        assert_true(!apart || fixture_count(&f, after, is_overlap) == 0);
        made[axes] += apart;
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
    assert_true(made[1] > 1 && made[2] > 5 && made[3] > 0);
}

/* Convolutions of every stride, dilation, padding and border, with their derivatives: the same
 * values; and where there are enough results, no border is left under a product, nor, at stride 1,
 * a sum over windows. */
static void test_halo(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 1000 + i);
        Sample *s = &f.s;
        Graph *g = f.g;
        int64_t b = 2, c = sample_below(s, 2) ? 9 : 2, o = sample_below(s, 3) ? 8 : 3;
        int64_t n = 5 + (int64_t)sample_below(s, 5), k = 1 + (int64_t)sample_below(s, 4);
        int64_t stride = 1 + (int64_t)sample_below(s, 2), d = 1 + (int64_t)sample_below(s, 2);
        int64_t pad = (int64_t)sample_below(s, 4), reach = d * (k - 1) + 1;
        Border border = sample_below(s, 3)   ? BORDER_VALUE
                        : sample_below(s, 2) ? BORDER_EDGE
                                             : BORDER_WRAP;
        double value = sample_below(s, 3) ? 0 : 0.5;
        if (n + 2 * pad < reach) {
            arena_free(&f.arena);
            continue;
        }
        int64_t count = (n + 2 * pad - reach) / stride + 1;
        Type tx = {.elem = TY_F64, .rank = 4, .dim = {b, c, n, n}};
        Type tw = {.elem = TY_F64, .rank = 4, .dim = {o, c, k, k}};
        Node *x = sample_input(s, tx, -1, 1), *w = sample_input(s, tw, -1, 1);
        Node *win = node_window(g, x, 2, stride, d, pad, count, k, border, value);
        win = node_window(g, win, 4, stride, d, pad, count, k, border, value);
        static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {6, 1, 3, 5}, lo[] = {0, 6, 2, 4};
        region_result(f.region, node_contract(g, win, w, la, lb, lo, 4));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        bool wide = o >= 8 && pad > 0 && !ODD_SIZES;
        if (wide && fixture_count(&f, after, is_bordered_window) > 0) {
            fail_msg("%d: windows have borders", (int)i);
        }
        if (wide && c >= 8 && fixture_count(&f, after, is_turned_pad) == 0) {
            fail_msg("%d: channels do not lie side by side", (int)i);
        }
        if (wide && c >= 8 && stride == 1 && border == BORDER_VALUE &&
            fixture_count(&f, after, is_overlap) > 0) {
            fail_msg("%d: sums over windows are left", (int)i);
        }
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
}

/* A copy of a volume whose axes do not stand in their order. */
static bool is_mixed_pad(const Node *node) {
    bool mixed = false;
    for (int i = 2; is_turned_pad(node) && node->type->rank == 5 && i < 4; i++) {
        mixed = mixed || node->in[0]->attr->map[i] < node->in[0]->attr->map[i - 1];
    }
    return mixed;
}

/* The same along three axes of different extents, with taps that go backwards, too: the axes of a
 * copy stand in their order. */
static void test_halo_of_volumes(void **state) {
    (void)state;
    static const int8_t la[] = {0, 1, 2, 3, 4, 5, 6, 7}, lb[] = {8, 1, 3, 5, 7};
    static const int8_t lo[] = {0, 8, 2, 4, 6};
    int turned = 0;
    for (uint64_t i = 0; i < 40; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 5000 + i);
        Sample *s = &f.s;
        Graph *g = f.g;
        int64_t c = sample_below(s, 2) ? 9 : 2, o = sample_below(s, 3) ? 8 : 3;
        int64_t n = 4 + (int64_t)sample_below(s, 2), k = 1 + (int64_t)sample_below(s, 3);
        int64_t stride = 1 + (int64_t)sample_below(s, 2), d = 1 + (int64_t)(k < 3 && i % 2);
        int64_t pad = (int64_t)sample_below(s, 3), reach = d * (k - 1);
        Border border = sample_below(s, 3) ? BORDER_VALUE : BORDER_WRAP;
        bool back = sample_below(s, 3) == 0;
        Type tx = {.elem = TY_F64, .rank = 5, .dim = {2, c, n, n + 1, n + 2}};
        Type tw = {.elem = TY_F64, .rank = 5, .dim = {o, c, k, k, k}};
        Node *x = sample_input(s, tx, -1, 1), *w = sample_input(s, tw, -1, 1), *win = x;
        for (int axis = 0; axis < 3; axis++) {
            int64_t count = (n + axis + 2 * pad - reach - 1) / stride + 1;
            win = node_window(g, win, 2 + 2 * axis, stride, back ? -d : d, back ? pad - reach : pad,
                              count, k, border, 0);
        }
        region_result(f.region, node_contract(g, win, w, la, lb, lo, 5));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        bool wide = o >= 8 && c >= 8 && pad > 0 && !ODD_SIZES;
        bool whole = stride == 1 && border == BORDER_VALUE;
        int mixed = fixture_count(&f, after, is_mixed_pad);
        int pads = fixture_count(&f, after, is_turned_pad);
        if (wide && (fixture_count(&f, after, is_bordered_window) > 0 || pads == 0 || mixed > 0 ||
                     (whole && fixture_count(&f, after, is_overlap) > 0))) {
            fail_msg("%d: %d copies, %d in another order, %d borders, %d sums over windows", (int)i,
                     pads, mixed, fixture_count(&f, after, is_bordered_window),
                     fixture_count(&f, after, is_overlap));
        }
        turned += wide;
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
    assert_true(turned > 5 || ODD_SIZES);
}

static bool has_channels_last(const Node *node) {
    const Attr *a = node->attr;
    int axis = node->type->rank - 1;
    while (axis > 0 && node->type->dim[axis] == 1) {
        axis--;
    }
    int last = node->op == OP_CONTRACT && axis >= 0 ? a->lo_[axis] : -1;
    return last >= 0 && find_label(a->la, node->in[0]->type->rank, last) >= 0 &&
           find_label(a->lb, node->in[1]->type->rank, last) >= 0;
}

/* Convolutions whose operands share the channels, with their derivatives: the same values; three
 * products with the channels last, and no sum over windows at strides up to the window. */
static void test_halo_of_channels(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 1500 + i);
        Sample *s = &f.s;
        Graph *g = f.g;
        int64_t c = sample_below(s, 4) ? 9 : 2, n = 5 + (int64_t)sample_below(s, 5);
        int64_t k = 2 + (int64_t)sample_below(s, 3), pad = (int64_t)sample_below(s, 4);
        int64_t stride = 1 + (int64_t)sample_below(s, 3), d = 1 + (int64_t)sample_below(s, 2);
        int64_t reach = d * (k - 1) + 1;
        Border border = sample_below(s, 3) ? BORDER_VALUE : BORDER_EDGE;
        if (n + 2 * pad < reach + stride) {
            arena_free(&f.arena);
            continue;
        }
        bool line = sample_below(s, 3) == 0, unit = sample_below(s, 2) != 0;
        int64_t count = (n + 2 * pad - reach) / stride + 1;
        Type tx = type_make(TY_F64, line ? 3 : 4, (int64_t[]){2, c, n, n});
        Type tw = type_make(TY_F64, line ? 2 : 3, (int64_t[]){c, k, k});
        Node *x = sample_input(s, tx, -1, 1), *w = sample_input(s, tw, -1, 1);
        Node *win = node_window(g, x, 2, stride, d, pad, count, k, border, 0);
        win = line ? win : node_window(g, win, 4, stride, d, pad, count, k, border, 0);
        static const int8_t la[] = {0, 1, 2, 3, 4, 5}, lb[] = {1, 3, 5}, lo[] = {0, 1, 2, 4};
        const int8_t own = line ? 4 : 6, one[] = {1, own, 3, 5}, to[] = {0, 1, own, 2, 4};
        if (unit) { /* as a group of one result is written */
            w = node_reshape(g, w, line ? 3 : 4, (int64_t[]){c, 1, k, k});
        }
        region_result(f.region, node_contract(g, win, w, la, unit ? one : lb, unit ? to : lo,
                                              (line ? 3 : 4) + unit));
        add_gradients(&f);
        Region *before = optimise(&f, pass_grad(g, f.region, GRAD_SAVE_CALLS));
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        bool turned = c >= 8 && count > 1 && !ODD_SIZES;
        int products = fixture_count(&f, after, has_channels_last);
        int sums = fixture_count(&f, after, is_overlap);
        bool plain = stride <= k && border == BORDER_VALUE;
        if (turned && (products < (plain ? 3 : 2) || (plain && sums > 0))) {
            fail_msg("%d: %d products have channels last, %d sums", (int)i, products, sums);
        }
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halo),          cmocka_unit_test(test_halo_of_volumes),
        cmocka_unit_test(test_halo_of_few),   cmocka_unit_test(test_halo_of_terms),
        cmocka_unit_test(test_halo_of_parts), cmocka_unit_test(test_halo_of_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
