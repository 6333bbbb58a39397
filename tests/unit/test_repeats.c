/* Products over windows of repeated places, and sums over windows at strides: what becomes of them,
 * with their derivatives, and that values are those of the places one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pass_fixture.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/repeats.h"

#include <string.h>

/* A convolution of places that repeat, a number of times along each axis. */
typedef struct {
    int axes;
    int64_t b, c, o, n[3], factor[3], k[3], pad[3];
    int64_t beside; /* channels behind those that repeat, which do not; 0: none */
    bool in_front;  /* they stand in front of them */
    bool weight_first, once_more;
} Convolution;

/* x with each place factor[] times along its last axes. */
static Node *repeated(Graph *g, Node *x, const Convolution *conv) {
    int64_t wide[MD_RANK], whole[MD_RANK];
    uint32_t axes = 0;
    int rank = 2;
    memcpy(wide, x->type->dim, sizeof *wide * 2);
    memcpy(whole, x->type->dim, sizeof *whole * 2);
    for (int i = 0; i < conv->axes; i++) {
        wide[rank++] = conv->n[i];
        axes |= conv->factor[i] > 1 ? 1u << rank : 0;
        wide[rank] = conv->factor[i];
        rank += conv->factor[i] > 1;
        whole[2 + i] = conv->n[i] * conv->factor[i];
    }
    return node_reshape(g, node_broadcast(g, x, axes, rank, wide), 2 + conv->axes, whole);
}

static Node *convolution(Fixture *f, const Convolution *conv) {
    Graph *g = f->g;
    const int64_t all = conv->c + conv->beside + (conv->once_more ? conv->c : 0);
    Type tx = {.elem = TY_F64, .rank = 2 + conv->axes, .dim = {conv->b, conv->c}}, tz = tx;
    Type tw = {.elem = TY_F64, .rank = 2 + conv->axes, .dim = {conv->o, all}};
    tz.dim[1] = conv->beside;
    for (int i = 0; i < conv->axes; i++) {
        tx.dim[2 + i] = conv->n[i];
        tz.dim[2 + i] = conv->n[i] * conv->factor[i];
        tw.dim[2 + i] = conv->k[i];
    }
    Node *part[3], *x = sample_input(&f->s, tx, -1, 1), *w = sample_input(&f->s, tw, -1, 1);
    int parts = 0;
    part[parts++] = repeated(g, x, conv);
    if (conv->beside > 0) {
        Node *z = sample_input(&f->s, tz, -1, 1);
        part[parts++] = conv->in_front ? part[0] : z;
        part[0] = conv->in_front ? z : part[0];
    }
    if (conv->once_more) {
        part[parts++] = repeated(g, sample_input(&f->s, tx, -1, 1), conv);
    }
    Node *shown = parts > 1 ? node_concat(g, part, parts, 1) : part[0];
    const int8_t out = (int8_t)(2 + 2 * conv->axes);
    int8_t lx[MD_RANK] = {0, 1}, lw[MD_RANK] = {out, 1}, to[MD_RANK] = {0, out};
    for (int i = 0; i < conv->axes; i++) {
        const int64_t count = conv->n[i] * conv->factor[i] + 2 * conv->pad[i] - conv->k[i] + 1;
        shown = node_window(g, shown, 2 + 2 * i, 1, 1, conv->pad[i], count, conv->k[i],
                            BORDER_VALUE, 0);
        lx[2 + 2 * i] = to[2 + i] = (int8_t)(2 + 2 * i);
        lx[3 + 2 * i] = lw[2 + i] = (int8_t)(3 + 2 * i);
    }
    return conv->weight_first ? node_contract(g, w, shown, lw, lx, to, 2 + conv->axes)
                              : node_contract(g, shown, w, lx, lw, to, 2 + conv->axes);
}

static bool is_sum_of_terms(const Node *n) {
    const Node *of = n;
    while (of->op == OP_OVERLAP_ADD || of->op == OP_PERMUTE) {
        of = of->in[0];
    }
    return n->op == OP_OVERLAP_ADD && of->op == OP_CONTRACT;
}

/* Multiplications of the products of a region, of which all nodes are needed. */
static double work(const Region *region) {
    double flops = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        flops += n->op == OP_CONTRACT ? node_flops(n) : 0;
    }
    return flops / 2;
}

/* The usual case, with derivatives: 16 taps of a place for 36, in all three products; forward one
 * product over windows of the places, and no sum of terms is left. */
static void test_repeats_of_two(void **state) {
    (void)state;
    for (int beside = 0; beside <= 6; beside += 6) {
        Fixture f;
        fixture_open(&f, TY_F64, 6000 + (uint64_t)beside);
        const Convolution conv = {.axes = 2,
                                  .b = 2,
                                  .c = 4,
                                  .o = 8,
                                  .n = {8, 8},
                                  .factor = {2, 2},
                                  .k = {3, 3},
                                  .pad = {1, 1},
                                  .beside = beside,
                                  .in_front = true};
        region_result(f.region, convolution(&f, &conv));
        add_gradients(&f);
        Region *made = pass_repeats(f.g, f.region, 1);
        region_verify(made, STAGE_BUILT);
        Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
        Region *after = optimise(&f, pass_grad(f.g, made, GRAD_SAVE_CALLS));
        const double places = 2.0 * 8 * 8 * 8, other = places * 4 * 9 * beside * 3;
        assert_true(work(before) == places * 4 * 36 * 3 + other);
        assert_true(work(after) == places * 4 * 16 * 3 + other);
        assert_int_equal(fixture_count(&f, after, is_sum_of_terms),
                         beside ? 4 : 2); /* of both parts */
        Region *shaped = pass_halo(f.g, after);
        region_verify(shaped, STAGE_OPTIMISED);
        assert_int_equal(fixture_count(&f, shaped, is_sum_of_terms), 0);
        assert_true(difference(&f, before, after) < 1e-12);
        assert_true(difference(&f, before, shaped) < 1e-12);
        arena_free(&f.arena);
    }
}

/* Random factors, windows, borders and neighbours along one to three axes, with derivatives. */
static void test_repeats(void **state) {
    (void)state;
    int less = 0;
    for (uint64_t i = 0; i < 80; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 6100 + i);
        Sample *s = &f.s;
        Convolution conv = {.axes = 1 + (int)sample_below(s, 3), .b = 2, .c = 3, .o = 8};
        bool fits = true;
        for (int a = 0; a < conv.axes; a++) {
            conv.n[a] = 2 + (int64_t)sample_below(s, conv.axes < 3 ? 9 : 3);
            conv.factor[a] = 1 + (int64_t)sample_below(s, 3);
            conv.k[a] = 1 + (int64_t)sample_below(s, 5);
            conv.pad[a] = (int64_t)sample_below(s, 4);
            fits = fits && conv.n[a] * conv.factor[a] + 2 * conv.pad[a] >= conv.k[a];
        }
        conv.beside = sample_below(s, 2) ? 2 : 0;
        conv.in_front = sample_below(s, 2) != 0;
        conv.weight_first = sample_below(s, 2) != 0;
        conv.once_more = sample_below(s, 3) == 0;
        if (!fits) {
            arena_free(&f.arena);
            continue;
        }
        region_result(f.region, convolution(&f, &conv));
        add_gradients(&f);
        Region *made = pass_repeats(f.g, f.region, 1);
        region_verify(made, STAGE_BUILT);
        Region *before = optimise(&f, pass_grad(f.g, f.region, GRAD_SAVE_CALLS));
        Region *after = optimise(&f, pass_grad(f.g, made, GRAD_SAVE_CALLS));
        const double now = work(before), then = work(after);
        Region *shaped = pass_halo(f.g, after);
        region_verify(shaped, STAGE_OPTIMISED);
        less += then < now;
        assert_true(then <= now);
        assert_true(difference(&f, before, after) < 1e-12);
        assert_true(difference(&f, before, shaped) < 1e-12);
        arena_free(&f.arena);
    }
    assert_true(less > 15);
}

/* What stays as it is: too little to do, few columns, strides, borders that are no zeros, one tap,
 * channels that are repeated, and what a derivative is taken to the repeated places of. */
static void test_repeats_not(void **state) {
    (void)state;
    static const struct {
        int64_t o, k, stride, least;
        Border border;
        int made;
        bool point;
    } row[] = {{8, 3, 1, 1, BORDER_VALUE, 1, false}, {8, 3, 1, 1 << 20, BORDER_VALUE, 0, false},
               {1, 3, 1, 1, BORDER_VALUE, 0, false}, {8, 3, 2, 1, BORDER_VALUE, 0, false},
               {8, 3, 1, 1, BORDER_EDGE, 0, false},  {8, 1, 1, 1, BORDER_VALUE, 0, false},
               {8, 2, 1, 1, BORDER_VALUE, 0, false}, {8, 3, 1, 1, BORDER_VALUE, 0, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 6300 + i);
        Graph *g = f.g;
        const int64_t k = row[i].k, count = (16 + 2 - k) / row[i].stride + 1;
        Node *x = sample_input(&f.s, type_make(TY_F64, 3, (int64_t[]){3, 4, 8}), -1, 1);
        Node *w = sample_input(&f.s, type_make(TY_F64, 3, (int64_t[]){row[i].o, 4, k}), -1, 1);
        Node *wide = node_broadcast(g, x, 8, 4, (int64_t[]){3, 4, 8, 2});
        Node *u = wide = node_reshape(g, wide, 3, (int64_t[]){3, 4, 16});
        wide = node_window(g, wide, 2, row[i].stride, 1, 1, count, k, row[i].border, 0);
        static const int8_t la[] = {0, 1, 2, 3}, lb[] = {4, 1, 3}, lo[] = {0, 4, 2};
        Node *y = node_contract(g, wide, w, la, lb, lo, 3);
        region_result(f.region, y);
        if (row[i].point) {
            Node *all = node_fold(g, OP_SUM, node_map2(g, OP_MUL, y, y), 7);
            region_result(f.region, node_grad(g, all, u, node_const(g, TY_F64, 1)));
        }
        Region *made = pass_repeats(g, f.region, row[i].least);
        const int sums = fixture_count(&f, made, is_sum_of_terms);
        if (sums != row[i].made) {
            fail_msg("%zu: %d sums over windows", i, sums);
        }
        Region *before = pass_grad(g, f.region, GRAD_SAVE_CALLS);
        assert_true(difference(&f, before, pass_grad(g, made, GRAD_SAVE_CALLS)) < 1e-12);
        arena_free(&f.arena);
    }
}

/* Sums over windows at strides: products of phases where taps fill these, terms elsewhere. */
static void test_phases(void **state) {
    (void)state;
    int made[2] = {0, 0};
    for (uint64_t i = 0; i < 80; i++) {
        Fixture f;
        fixture_open(&f, TY_F64, 6400 + i);
        Sample *s = &f.s;
        Graph *g = f.g;
        const int64_t n = 10 + (int64_t)sample_below(s, 3), o = 4 + (int64_t)sample_below(s, 5);
        int64_t stride[2], k[2], p[2], wide[2];
        bool full = true;
        for (int a = 0; a < 2; a++) {
            stride[a] = 2 + (int64_t)sample_below(s, 2) - (a == 0 && sample_below(s, 3) == 0);
            k[a] = stride[a] * (1 + (int64_t)sample_below(s, 2)) + (i % 3 == 0);
            full = full && k[a] % stride[a] == 0;
            p[a] = (int64_t)sample_below(s, 5) - 2;
            wide[a] = (n - 1) * stride[a] + k[a] - p[a] + (int64_t)sample_below(s, 3) - 2;
        }
        Node *x = sample_input(s, type_make(TY_F64, 4, (int64_t[]){2, 2, n, n}), -1, 1);
        Node *w = sample_input(s, type_make(TY_F64, 4, (int64_t[]){2, o, k[0], k[1]}), -1, 1);
        static const int8_t la[] = {0, 1, 2, 4}, lb[] = {1, 6, 3, 5}, lo[] = {0, 6, 2, 3, 4, 5};
        Node *sum = node_contract(g, x, w, la, lb, lo, 6);
        for (int a = 1; a >= 0; a--) {
            const Attr window = {.axis = 2 + 2 * a,
                                 .s = stride[a],
                                 .d = 1,
                                 .p = p[a],
                                 .count = n,
                                 .taps = k[a],
                                 .taps_n = wide[a],
                                 .border = BORDER_VALUE};
            sum = node_overlap_add(g, sum, &window);
        }
        region_result(f.region, sum);
        Region *before = optimise(&f, f.region);
        Region *after = pass_halo(g, before);
        region_verify(after, STAGE_OPTIMISED);
        const int sums = fixture_count(&f, after, is_sum_of_terms);
        full = full && p[0] >= 0 && p[1] >= 0; /* else many places have no terms */
        const bool poor =
            i % 3 == 0 && stride[0] > 1 && k[0] < 5 && k[1] < 5 && p[0] <= 0 && p[1] <= 0;
        if (!ODD_SIZES && ((full && sums > 0) || (poor && sums == 0))) {
            fail_msg("%d: %d sums over windows", (int)i, sums);
        }
        made[full] += sums == 0;
        assert_true(difference(&f, before, after) < 1e-12);
        arena_free(&f.arena);
    }
    assert_true(made[1] > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats_of_two),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_repeats_not),
        cmocka_unit_test(test_phases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
