/* test_tile: runtime/tile_kernel.h against plain loops in double.
 *
 * Random shapes with random strides (permuted axes, gaps, broadcast, reversed), flags and batch
 * axes go through a part function whose plan is known only at run time; fixed shapes go through
 * ones that are specialised as in an emitted program. Checked: every value, nothing written
 * elsewhere (C and the workspace lie between canaries), the epilogue sees every element once,
 * and the bits do not depend on the number of workers. test_tile_plain.c and test_tile_wide.c
 * run the same with other widths. */
#include "tests/runtime/tile_case.h"

static Case case_random(void) {
    Case t;
    memset(&t, 0, sizeof t);
    md_tile_shape *s = &t.shape;
    int big = (int)draw(0, 5);
    s->b1 = draw(0, 3) == 0 ? draw(1, 3) : 1;
    s->b2 = draw(0, 3) == 0 ? draw(1, 6) : 1;
    s->m1 = draw(0, 2) == 0 ? draw(1, 9) : 1;
    s->m2 = big == 0 && s->m1 == 1 ? draw(1, 300) : draw(1, s->m1 > 5 ? 7 : 40);
    s->n = big == 1 ? draw(1, 400) : draw(1, 70);
    s->k0 = draw(0, 4) == 0 ? draw(1, 3) : 1;
    s->ko = draw(0, 3) == 0 ? draw(1, 3) : 1;
    s->k0 += s->ko > 1;
    s->k1 = draw(0, 2) == 0 ? draw(1, 6) : 1;
    s->k2 = big == 2 ? draw(1, 1700) : draw(1, 40);
    if (big == 2) {
        s->m2 = draw(1, 20);
        s->n = draw(1, 20);
    }
    s->k2 += draw(0, 3) > 0 ? s->k2 % 2 : 0; /* of 16 bits: pairs */
    s->flags = draw(0, 2) == 0 ? MD_TILE_ADD : 0;
    if ((s->flags & MD_TILE_ADD) == 0 && draw(0, 3) == 0) {
        s->flags |= MD_TILE_NO_C;
    }
    int64_t ea[] = {s->b1, s->b2, s->m1, s->m2, s->ko, s->k0, s->k1, s->k2};
    int64_t *sa[] = {&s->a_b1, &s->a_b2, &s->a_m1, &s->a_m2,
                     &s->a_ko, &s->a_k0, &s->a_k1, &s->a_k2};
    int64_t eb[] = {s->b1, s->b2, s->ko, s->k0, s->k1, s->k2, s->n};
    int64_t *sb[] = {&s->b_b1, &s->b_b2, &s->b_ko, &s->b_k0, &s->b_k1, &s->b_k2, &s->b_n};
    int64_t ec[] = {s->b1, s->b2, s->m1, s->m2, s->n};
    int64_t *sc[] = {&s->c_b1, &s->c_b2, &s->c_m1, &s->c_m2, &s->c_n};
    lay_out(sa, ea, 8, 1, &t.a_size, &t.a_zero);
    lay_out(sb, eb, 7, 1, &t.b_size, &t.b_zero);
    lay_out(sc, ec, 5, 0, &t.c_size, &t.c_zero);
    if (draw(0, 3) == 0) { /* rows lie side by side, or at one stride */
        s->flags |= MD_TILE_ACROSS;
        s->c_m2 = draw(0, 3) == 0 ? 2 : 1;
        s->c_m1 = s->c_m2 * s->m2;
        s->c_n = s->c_m1 * s->m1 + draw(0, 2);
        s->c_b2 = s->c_n * s->n;
        s->c_b1 = s->c_b2 * s->b2;
        t.c_size = s->c_b1 * s->b1;
        t.c_zero = 0;
    }
    if (draw(0, 1) == 0) { /* all batches have the same B */
        s->b_b1 = 0;
        s->b_b2 = 0;
    }
    t.elem = draw(0, 3) == 0 ? ELEM_MAX : 4;
    if (t.elem == 4 && draw(0, 2) == 0) {
        s->flags |= MD_TILE_HALF | (draw(0, 4) == 0 ? MD_TILE_F16 : 0) |
                    (draw(0, 6) == 0 ? MD_TILE_EXACT : 0) | (draw(0, 2) == 0 ? MD_TILE_WIDE_A : 0) |
                    (draw(0, 1) == 0 ? MD_TILE_WIDE_B : 0);
    }
    s->flags |= s->m2 % 4 > 0 ? MD_TILE_BATCHED : 0;
    t.scale = (int)draw(0, 1);
    return t;
}

static void test_random(void **state) {
    (void)state;
    int swapped = 0, packed = 0, kept = 0, chunks = 0, wide = 0, groups = 0, half = 0, taken = 0;
    int across = 0, both = 0, f16 = 0, listed = 0, short_runs = 0;
    int skips = 0, skips_half = 0, skips_swapped = 0;
    for (int i = 0; i < 1000; i++) {
        Case t = case_random();
        md_tile_shape s = draw(0, 3) == 0 ? t.shape : md_tile_normal(t.shape);
        t.plan = md_tile_plan(s, t.elem);
        swapped += (t.plan.is & MD_TILE_SWAPPED) != 0;
        packed += (t.plan.is & MD_TILE_PACKED) != 0;
        kept += (t.plan.is & MD_TILE_KEPT) != 0;
        chunks += t.plan.chunks > 1;
        listed += (t.plan.is & MD_TILE_LISTED) != 0;
        short_runs += (t.plan.is & MD_TILE_LISTED) && t.plan.kb1 < s.ko * s.k0 * s.k1 * s.k2;
        if (t.plan.skip.n > 1) {
            skips++;
            skips_half += (t.plan.is & MD_TILE_HALF) != 0;
            skips_swapped += (t.plan.is & MD_TILE_SWAPPED) != 0;
        }
        f16 += (t.plan.is & MD_TILE_LONE) != 0;
        half += (t.plan.is & MD_TILE_HALF) && !(t.plan.is & MD_TILE_LONE);
        const int64_t pairs = MD_TILE_TAKEN | MD_TILE_HALF;
        taken += (t.plan.is & (pairs | MD_TILE_LONE)) == pairs;
        across += (t.plan.is & MD_TILE_ACROSS) != 0;
        both += (t.plan.is & MD_TILE_ACROSS) && (t.plan.is & MD_TILE_SWAPPED);
        wide += t.plan.wide > 2;
        groups += t.plan.r1.n > 1 && t.plan.r2.n < 4;
        assert_true(t.plan.block_rows >= md_tile_min(MD_TILE_HIGH, t.plan.r1.n * t.plan.r2.n));
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf("  of 1000: swapped %d, packed %d, kept %d, wide %d, short rows %d, chunked %d, "
           "of bf16 %d, their rows packed %d, of lone lanes %d, across %d, swapped too %d, listed "
           "%d, by runs %d; of four axes %d, of them in 16 bits %d, swapped %d\n",
           swapped, packed, kept, wide, groups, chunks, half, taken, f16, across, both, listed,
           short_runs, skips, skips_half, skips_swapped);
    assert_true(skips > 40 && skips_half > 5 && skips_swapped > 10);
    assert_true(across > 100 && both > 5 && f16 > 50 && made_x > 50 && made_y > 2);
    assert_true(half > taken + 5 && taken > 20 && swapped > 20);
    assert_true(packed > 100 && kept > 10 && wide > 20 && groups > 20 && short_runs > 20 &&
                listed > short_runs + 10);
}

/* Dense operands: 'n' as they are written, 't' transposed. */
static Case case_dense(char ta, char tb, int64_t m, int64_t n, int64_t k, int flags, int elem) {
    Case t;
    memset(&t, 0, sizeof t);
    md_tile_shape s = {1, 1, 1, m, n, 1, 1, k, 0, 0, 0, k, 0, 0, 1,
                       0, 0, 0, 0, n, 1, 0, 0, 0, n, 1, 1, 0, 0, flags};
    if (ta == 't') {
        s.a_m2 = 1;
        s.a_k2 = m;
    }
    if (tb == 't') {
        s.b_k2 = 1;
        s.b_n = k;
    }
    if (flags & MD_TILE_ACROSS) {
        s.c_m2 = 1;
        s.c_n = m;
    }
    t.shape = s;
    t.plan = md_tile_plan(md_tile_normal(s), elem);
    t.elem = elem;
    t.a_size = m * k;
    t.b_size = n * k;
    t.c_size = m * n;
    return t;
}

static void check_dense(char ta, char tb, int64_t m, int64_t n, int64_t k, int flags) {
    for (int elem = 4; elem <= (flags & MD_TILE_HALF ? 4 : ELEM_MAX); elem += 4) {
        Case t = case_dense(ta, tb, m, n, k, flags, elem);
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    if ((flags & MD_TILE_HALF) == 0) {
        check_dense(ta, tb, m, n, k, flags | MD_TILE_HALF);
        check_dense(ta, tb, m, n, k, flags | MD_TILE_HALF | MD_TILE_F16);
        check_dense(ta, tb, m, n, k, flags | MD_TILE_HALF | MD_TILE_EXACT | MD_TILE_WIDE_A);
        check_dense(ta, tb, m, n, k, flags | MD_TILE_HALF | MD_TILE_EXACT | MD_TILE_WIDE_B);
    }
}

/* Every row count, column tail and short sum; all four layouts. */
static void test_tails(void **state) {
    (void)state;
    static const char layouts[4][3] = {"nn", "nt", "tn", "tt"};
    for (int l = 0; l < 4; l++) {
        for (int64_t m = 1; m <= 30; m++) {
            check_dense(layouts[l][0], layouts[l][1], m, 1 + m * 7 % 50, 1 + m * 5 % 23,
                        m % 3 == 0 ? MD_TILE_ADD : 0);
        }
        for (int64_t n = 1; n <= 67; n++) {
            check_dense(layouts[l][0], layouts[l][1], 1 + n * 5 % 17, n, 1 + n * 3 % 20, 0);
        }
    }
}

/* Few rows: dot products where both operands are contiguous along the sum, wide panels
 * otherwise. */
static void test_few_rows(void **state) {
    (void)state;
    for (int64_t m = 1; m <= 4; m++) {
        for (int64_t k = 14; k <= 40; k += 3) {
            check_dense('n', 't', m, 1 + k % 11, k, k % 2 ? MD_TILE_ADD : 0);
        }
        check_dense('n', 't', m, 100, 1700, 0);
        for (int64_t n = 1; n <= 9; n += 2) {
            check_dense('n', 't', m, n, 300 + n, MD_TILE_ADD);
            check_dense('n', 't', n, m, 4999 + n, 0); /* swapped, in more than one block */
        }
        check_dense('n', 'n', m, 200, 900, 0);
        check_dense('t', 't', m, 70, 33, MD_TILE_NO_C);
    }
}

/* Larger than one block in every direction, pitches of 4096 bytes, partial sums in chunks. */
static void test_blocks(void **state) {
    (void)state;
    check_dense('n', 'n', 300, 70, 50, 0);
    check_dense('n', 'n', 20, 600, 50, MD_TILE_ADD);
    check_dense('n', 't', 70, 40, 900, 0);
    check_dense('n', 't', 170, 33, 40, 0);
    check_dense('n', 'n', 60, 1024, 70, 0);
    check_dense('n', 't', 20, 30, 1024, 0);
    check_dense('n', 'n', 20, 30, 2048, MD_TILE_ADD);
    Case t = case_dense('t', 'n', 10, 30, 20000, 0, 4);
    assert_true(t.plan.chunks > 4);
    case_fill(&t);
    case_check(&t);
    case_free(&t);
    t = case_dense('t', 'n', 10, 30, 20000, MD_TILE_ADD, 4);
    t.scale = 1;
    case_fill(&t);
    case_check(&t);
    case_free(&t);
    t = case_dense('n', 'n', 3, 3, 600000, MD_TILE_NO_C, ELEM_MAX);
    assert_true(t.plan.chunks > 4);
    case_fill(&t);
    case_check(&t);
    case_free(&t);
    for (int i = 0; i < 6; i++) {
        const int flags[] = {0, MD_TILE_ADD, MD_TILE_NO_C};
        check_dense(i < 3 ? 'n' : 't', 'n', 300, 70, 50, flags[i % 3] | MD_TILE_ACROSS);
        t = case_dense('t', 'n', i < 3 ? 10 : 100, 30, 20000, flags[i % 3] | MD_TILE_ACROSS, 4);
        assert_true(t.plan.chunks > 1 && !(t.plan.is & MD_TILE_SWAPPED));
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
#ifndef MDLC_ODD_SIZES /* sums of eight register tiles and more are cut only if they are large */
    assert_true(case_dense('n', 'n', 64, 64, 576, 0, 4).plan.chunks == 1);
    assert_true(case_dense('n', 'n', 64, 64, 2048, 0, 4).plan.chunks > 1);
    assert_true(case_dense('n', 'n', 64, 32, 1024, 0, 4).plan.chunks > 1); /* of five */
#endif
}

/* The gradient of a recurrent layer's weights: the sum runs over steps and samples, at pitches of
 * 4096 and 128 Ki bytes. Columns are packed, rows too where less is read, and blocks of the sum are
 * short. */
static void test_pitches(void **state) {
    (void)state;
    const int64_t b = 32, t = 128, m = 1024, n = 256;
    md_tile_shape s = {0};
    s.b1 = s.b2 = s.m1 = s.ko = s.k0 = 1;
    s.m2 = m, s.n = n, s.k1 = t, s.k2 = b;
    s.a_m2 = 1, s.a_k1 = b * m, s.a_k2 = m;
    s.b_n = 1, s.b_k1 = n, s.b_k2 = t * n;
    s.c_m2 = n, s.c_n = 1;
    const md_tile plan = md_tile_plan(md_tile_normal(s), 4);
    assert_true((plan.is & MD_TILE_PACKED) && !(plan.is & MD_TILE_SWAPPED));
    assert_true(!(plan.is & MD_TILE_TAKEN) && plan.kb1 * plan.kb2 <= 256 && plan.chunks == 1);
    for (int i = 0; i < 8; i++) { /* tiles of two heights, several blocks, a sum of two axes */
        static const int flags[] = {0, MD_TILE_ADD, MD_TILE_NO_C, MD_TILE_ACROSS};
        Case c = case_dense('t', 'n', i % 3 == 0 ? 1001 : 230, 143 + i % 3 * 16, 300, flags[i % 4],
                            i < 4 ? 4 : ELEM_MAX);
        md_tile_shape *at = &c.shape;
        at->a_k2 = 1024;
        if (i % 2 != 0) {
            at->k1 = 10, at->k2 = 30, at->a_k1 = 31 * 1024, at->b_k1 = 30 * at->b_k2;
        }
        c.a_size = 310 * 1024;
        c.plan = md_tile_plan(md_tile_normal(*at), c.elem);
        assert_true((c.plan.is & MD_TILE_TAKEN) && c.plan.k1.n == at->k1);
        case_fill(&c);
        case_check(&c);
        case_free(&c);
    }
}

/* Many rows times two or three columns: the rows become vectors. They are packed where sums are
 * short, and dot products where they are long. */
static void test_few_columns(void **state) {
    (void)state;
    static const struct {
        int64_t m, n, k;
        int swapped, dots;
    } of[] = {{200, 2, 32, 1, 0}, {500, 3, 48, 1, 0},   {200, 2, 160, 1, 1}, {40, 2, 32, 1, 1},
              {333, 1, 32, 0, 0}, {70000, 2, 32, 0, 0}, {200, 12, 32, 0, 0}, {1, 90, 40, 0, 1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Case t = case_dense('n', 't', of[i].m, of[i].n, of[i].k, 0, 4);
        assert_int_equal((t.plan.is & MD_TILE_SWAPPED) != 0, of[i].swapped);
        assert_int_equal((t.plan.is & MD_TILE_DOTS) != 0, of[i].dots);
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
}

/* Sums over more blocks than a group holds, as over a batch and the places of an image: in one go,
 * in chunks, transposed, added to what is there. */
static void test_groups(void **state) {
    (void)state;
    int swapped = 0, chunks = 0;
    for (int i = 0; i < 6; i++) {
        const int64_t m = i % 3 == 2 ? 12 : 8, n = i % 3 == 0 ? 70 : i % 3 == 1 ? 24 : 40;
        const int64_t k0 = i % 3 == 1 ? 1100 : 1030 * 17, k1 = 2, k2 = 3;
        /* Single elements between the rows of each image keep the summed axes apart. */
        const int64_t row = k2 + 1, image = k1 * row + 1;
        Case t;
        memset(&t, 0, sizeof t);
        /* clang-format off */
        md_tile_shape s = {1, 1, 1, m, n, k0, k1, k2,
                           0, 0, 0, i % 2 == 0 ? k0 * image : 1,
                           i % 2 == 0 ? image : image * m, i % 2 == 0 ? row : row * m,
                           i % 2 == 0 ? 1 : m,
                           0, 0, image * n, row * n, n, 1,
                           0, 0, 0, n, 1, 1, 0, 0, i < 3 ? 0 : MD_TILE_ADD};
        /* clang-format on */
        if (i % 3 == 2) { /* weights stored [out, in] */
            s.b_k0 = image;
            s.b_k1 = row;
            s.b_k2 = 1;
            s.b_n = k0 * image;
        }
        t.shape = s;
        t.elem = 4;
        t.plan = md_tile_plan(md_tile_normal(s), 4);
        swapped += (t.plan.is & MD_TILE_SWAPPED) != 0;
        chunks += t.plan.chunks > 1;
        assert_true(t.plan.group_at > 0);
        t.a_size = k0 * image * m;
        t.b_size = k0 * image * n;
        t.c_size = m * n;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    assert_true(swapped > 0 && chunks > 0);
}

/* A window product, as a convolution is written: rows (y, x) with two strides, sums (ky, (kx,
 * c)). */
static void test_window(void **state) {
    (void)state;
    for (int64_t width = 3; width <= 20; width += 4) {
        for (int64_t step = 1; step <= 2; step++) {
            Case t;
            memset(&t, 0, sizeof t);
            const int64_t c = 3, out = 20, height = 5, kh = 3, kw = 3;
            const int64_t w = (width - 1) * step + kw;
            const int64_t h = (height - 1) * step + kh;
            /* clang-format off */
            md_tile_shape s = {2, 1, height, width, out, 1, kh, kw * c,
                               h * w * c, 0, step * w * c, step * c, 0, w * c, 1,
                               0, 0, 0, kw * c * out, out, 1,
                               height * width * out, 0, width * out, out, 1, 1, 0, 0, 0};
            /* clang-format on */
            t.shape = s;
            t.elem = 4;
            t.plan = md_tile_plan(md_tile_normal(s), 4);
            assert_true(t.plan.r1.n == height && t.plan.k1.n == kh);
            t.a_size = 2 * h * w * c;
            t.b_size = kh * kw * c * out;
            t.c_size = 2 * height * width * out;
            case_fill(&t);
            case_check(&t);
            case_free(&t);
        }
    }
}

/* A window of many channels over few places, by weights [out, c, kh, kw], and its adjoint: panels
 * are packed once for all samples, between which threads may be cut too. */
static void test_batched(void **state) {
    (void)state;
    int all_batched = 0, cut = 0, listed = 0, brief = 0;
    seed = 75;
    for (int i = 0; i < 24; i++) {
        const int few = i % 3 == 1; /* columns, of which not every worker has a panel */
        const int64_t samples = draw(4, 6), most = i % 3 == 0 ? 3 : 5;
        const int64_t height = draw(most / 2 + 1, most), width = draw(most / 2 + 1, most);
        const int64_t taps = draw(1, 2), step = draw(1, 2);
        const int64_t columns = draw(0, 30) + (few ? 34 : 300);
        const int64_t sum = (few ? draw(7000, 8100) : draw(900, 1400)) / (taps * taps);
        const int64_t out = i & 1 ? sum : columns, c = i & 1 ? columns : sum;
        const int64_t row = ((width - 1) * step + taps) * sum;
        const int64_t image = ((height - 1) * step + taps) * row, all = taps * taps;
        Case t;
        memset(&t, 0, sizeof t);
        /* clang-format off */
        md_tile_shape s = {samples, 1, height, width, columns, taps, taps, sum,
                           image, 0, step * row, step * sum, row, sum, 1,
                           0, 0, taps, 1, all, sum * all,
                           height * width * columns, 0, width * columns, columns, 1, 1, 0, 0,
                           MD_TILE_BATCHED | (i % 3 == 0 ? MD_TILE_ADD : 0)};
        /* clang-format on */
        if (i & 1) {
            s.b_k0 = -taps, s.b_k1 = -1, s.b_k2 = columns * all, s.b_n = all;
            t.b_zero = all - 1;
        }
        t.shape = s;
        t.elem = i % 4 < 3 ? 4 : ELEM_MAX;
        t.plan = md_tile_plan(md_tile_normal(s), t.elem);
        const int64_t products = height * width * columns * all * sum;
        const int batched = (t.plan.is & MD_TILE_BATCHED) != 0;
        assert_true(!batched || products >= MD_TILE_BATCHED_FROM);
        if (!batched) {
            continue;
        }
        md_tile_call call = {.parts = 3};
        md_tile_grid(&t.plan, &call);
        all_batched++;
        cut += call.gm > 1;
        listed += (t.plan.is & MD_TILE_LISTED) != 0;
        brief += t.plan.r1.n * t.plan.r2.n < MD_TILE_HIGH;
        t.a_size = samples * image;
        t.b_size = out * c * all;
        t.c_size = samples * height * width * columns;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf("  seed 75, of 24: batched %d, cut between samples %d, listed %d, few rows %d\n",
           all_batched, cut, listed, brief);
    assert_true(all_batched > 9 && cut > 1 && listed > 2 && brief > 2);
}

/* The same along three axes, and the adjoint by its input: sums of four axes of windows with their
 * channels last, weights [out, c, kd, kh, kw] of which the adjoint sums the first axis, its taps in
 * reverse. Few batches go by a list, for more the panels of the weights are kept. */
static void test_volumes(void **state) {
    (void)state;
    const int64_t c = 8, out = 20, height = 9, width = 12, taps = 27;
    for (int i = 0; i < 16; i++) {
        const int64_t samples = i & 1 ? 11 : 1, depth = i & 1 ? 2 : 1, step = i & 2 ? 2 : 1;
        const int64_t adjoint = i & 4, sum = adjoint ? out : c, columns = adjoint ? c * 3 : out;
        const int64_t row = ((width - 1) * step + 3) * sum, plane = ((height - 1) * step + 3) * row;
        const int64_t image = ((depth - 1) * step + 3) * plane;
        Case t;
        memset(&t, 0, sizeof t);
        /* clang-format off */
        md_tile_shape s = {samples, depth, height, width, columns, 3, 3, sum,
                           image, step * plane, step * row, step * sum, row, sum, 1,
                           0, 0, 3, 1, taps, sum * taps,
                           depth * height * width * columns, height * width * columns,
                           width * columns, columns, 1, 3, plane, 9, i & 8 ? MD_TILE_HALF : 0};
        /* clang-format on */
        if (adjoint) {
            s.b_ko = -9, s.b_k0 = -3, s.b_k1 = -1, s.b_k2 = columns * taps, s.b_n = taps;
            t.b_zero = taps - 1;
        }
        t.shape = s;
        t.elem = 4;
        t.plan = md_tile_plan(md_tile_normal(s), 4);
        assert_true(t.plan.skip.n == 3 || (t.plan.is & MD_TILE_LISTED));
#ifndef MDLC_ODD_SIZES
        const int64_t few = i & 8 ? 0 : MD_TILE_LISTED;
        const int64_t want = samples > 1 ? MD_TILE_KEPT : few;
        assert_int_equal(t.plan.is & (MD_TILE_KEPT | MD_TILE_LISTED), want);
#endif
        t.a_size = samples * image;
        t.b_size = out * c * 3 * taps;
        t.c_size = samples * depth * height * width * columns;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
}

/* The gradient of a convolution's weights [out, c, kh, kw]: rows (c, kx) of windows, which overlap,
 * sums over samples and places. */
static void test_taps(void **state) {
    (void)state;
    int spans = 0, pairs = 0, wide = 0;
    for (int i = 0; i < 120; i++) {
        Case t;
        memset(&t, 0, sizeof t);
        const int64_t batch = draw(1, 3), out = draw(1, 40), c = draw(1, 20), taps = draw(2, 3);
        const int64_t step = draw(1, 2), height = draw(1, 6), width = draw(1, 9);
        const int64_t w = (width - 1) * step + taps, h = (height - 1) * step + taps;
        /* clang-format off */
        md_tile_shape s = {1, taps, c, taps, out, batch, height, width,
                           0, w * c, 1, c, h * w * c, step * w * c, step * c,
                           0, 0, height * width * out, width * out, out, 1,
                           0, taps, taps * taps, 1, c * taps * taps, 1, 0, 0,
                           MD_TILE_NO_C | MD_TILE_HALF};
        /* clang-format on */
        s.flags |= draw(0, 2) == 0 ? MD_TILE_WIDE_A : 0;
        s.flags |= draw(0, 2) == 0 ? MD_TILE_WIDE_B : 0;
        t.shape = s;
        t.elem = 4;
        t.plan = md_tile_plan(md_tile_normal(s), 4);
        const int in_pairs = (t.plan.is & MD_TILE_SPAN) && !(t.plan.is & MD_TILE_LONE);
        spans += (t.plan.is & MD_TILE_SPAN) != 0;
        pairs += in_pairs;
        wide += in_pairs && (t.plan.is & MD_TILE_WIDE_A);
        t.a_size = batch * h * w * c;
        t.b_size = batch * height * width * out;
        t.c_size = out * c * taps * taps;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf("  of 120: spans %d, in pairs %d, those of floats %d\n", spans, pairs, wide);
    assert_true(spans > pairs + 5 && pairs > 20 && wide > 5);
}

/* The gradient of weights [out, 1, kh, kw] by few channels that go out, whose places lie side by
 * side: vectors run along the places, whose last ones fill none. */
static void test_along(void **state) {
    (void)state;
    int tails = 0, groups = 0, rests = 0, chunks = 0, along = 0;
    for (int i = 0; i < 80; i++) {
        Case t;
        memset(&t, 0, sizeof t);
        const int64_t batch = i % 4 == 0 ? 16 : draw(1, 9), out = draw(2, 8);
        const int64_t kh = draw(4, 6), kw = draw(2, 6);
        const int64_t height = draw(20, 30), width = i % 8 == 0 ? draw(120, 300) : draw(16, 48);
        const int64_t w = width + kw - 1, h = height + kh - 1;
        /* clang-format off */
        md_tile_shape s = {1, 1, kh, kw, out, batch, height, width,
                           0, 0, w, 1, h * w, w, 1,
                           0, 0, out * height * width, width, 1, height * width,
                           0, 0, kw, 1, kh * kw, 1, 0, 0,
                           draw(0, 2) == 0 ? MD_TILE_ADD : draw(0, 1) ? MD_TILE_NO_C : 0};
        /* clang-format on */
        s.flags |= draw(0, 1) ? MD_TILE_ACROSS : 0;
        t.shape = s;
        t.elem = draw(0, 3) == 0 ? ELEM_MAX : 4;
        t.plan = md_tile_plan(md_tile_normal(s), t.elem);
        if (!(t.plan.is & MD_TILE_ALONG)) {
            continue;
        }
        assert_false(t.plan.is & (MD_TILE_PACKED | MD_TILE_DOTS));
        assert_true(t.plan.wide <= 4 && t.plan.wide <= t.plan.cols.n && t.plan.k2.n == width);
        tails += width % (64 / t.elem) != 0;
        groups += kw < 4;
        rests += out % t.plan.wide != 0;
        chunks += t.plan.chunks > 1;
        along++;
        t.a_size = batch * h * w;
        t.b_size = batch * out * height * width;
        t.c_size = out * kh * kw;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf("  of 80: along %d, with tails %d, groups of rows %d, last columns %d, chunked %d\n",
           along, tails, groups, rests, chunks);
    assert_true(along > 40 && tails > 20 && groups > 5 && rests > 2 && chunks > 2);
    /* Many columns fill vectors, short runs do not, and of few sums adding lanes is too much. */
    static const int64_t other[][4] = {
        {12, 28, 28, 0}, {6, 28, 15, 0}, {6, 9, 28, 0}, {6, 28, 28, 1}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const int64_t out = other[i][0], height = other[i][1], width = other[i][2];
        md_tile_shape s = {
            1,         1, 5, 5, out, 1,     height, width,          0, 0, width + 4, 1, 0,
            width + 4, 1, 0, 0, 0,   width, 1,      height * width, 0, 0, 5,         1, 25,
            1,         0, 0, 0};
        const md_tile plan = md_tile_plan(md_tile_normal(s), 4);
#ifndef MDLC_ODD_SIZES
        assert_int_equal((plan.is & MD_TILE_ALONG) != 0, other[i][3]);
#else
        (void)plan;
#endif
    }
}

/* Columns that are read where they lie: those that fill no vector are part of one that begins
 * inside the one before it, and only where there is none are they packed. */
static void test_last_columns(void **state) {
    (void)state;
    for (int64_t n = 17; n < 64; n++) {
        for (int flags = 0; flags <= MD_TILE_ADD; flags += MD_TILE_ADD) {
            Case t = case_dense('n', 'n', 6, n, 25, flags, 4);
#ifndef MDLC_ODD_SIZES
            /* Of 16, 8 and 4 lanes, two vectors a panel. */
            const int packs = (n % 32 != 0 && n % 32 < 16) || (n % 16 != 0 && n % 16 < 8);
            assert_false(t.plan.is & MD_TILE_PACKED);
            assert_int_equal(md_tile_packs_last(&t.plan), packs || (n % 8 != 0 && n % 8 < 4));
#endif
            case_fill(&t);
            case_check(&t);
            case_free(&t);
        }
    }
    const Case row = case_dense('n', 'n', 6, 28, 25, 0, 4);
    assert_false(md_tile_packs_last(&row.plan));
    const Case less = case_dense('n', 'n', 6, 12, 25, 0, 4);
    assert_true(md_tile_packs_last(&less.plan));
}

/* Small results of long sums: what lies apart comes from memory, and is fetched a block ahead. */
static Case case_long(int64_t m, int64_t n, int64_t k, int64_t apart) {
    Case t = case_dense('t', 'n', m, n, k, 0, 4);
    t.shape.a_k2 = t.shape.b_k2 = apart;
    t.a_size = t.b_size = apart * k;
    t.plan = md_tile_plan(md_tile_normal(t.shape), t.elem);
    return t;
}

/* Results that memory takes are asked for, where sums are short. */
static void test_from_memory(void **state) {
    (void)state;
    Case t[] = {case_long(7, 40, 22400, 64),
                case_long(20, 33, 20000, 70),
                case_dense('n', 'n', 2060, 64, 5, 0, 4),
                case_dense('t', 't', 32900, 33, 3, MD_TILE_NO_C, 4),
                case_dense('n', 't', 2061, 64, 13, 0, 4),
                case_dense('n', 'n', 2059, 64, 3, 0, ELEM_MAX)};
    assert_true(t[2].plan.is & MD_TILE_CLAIMED);
    assert_false(t[3].plan.is & MD_TILE_CLAIMED);
    assert_true(t[4].plan.is & t[5].plan.is & MD_TILE_CLAIMED);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        case_fill(&t[i]);
        case_check(&t[i]);
        case_free(&t[i]);
    }
#ifndef MDLC_ODD_SIZES /* there all but a few products are packed */
    assert_true(t[0].plan.is & MD_TILE_NEXT && t[1].plan.is & MD_TILE_NEXT);
    assert_true(t[0].plan.kb2 < 64 && t[0].plan.chunks > 1);
    assert_false(case_long(7, 40, 22000, 64).plan.is & MD_TILE_NEXT); /* less to read */
    assert_false(case_long(7, 40, 99999, 63).plan.is & MD_TILE_NEXT); /* side by side */
    assert_false(case_long(256, 256, 8192, 256).plan.is & MD_TILE_NEXT);
    assert_false(case_dense('n', 'n', 2040, 64, 5, 0, 4).plan.is & MD_TILE_CLAIMED);
    assert_false(case_dense('n', 'n', 16500, 64, 300, 0, 4).plan.is & MD_TILE_CLAIMED);
    assert_false(case_dense('n', 'n', 16500, 64, 5, MD_TILE_ADD, 4).plan.is & MD_TILE_CLAIMED);
#endif
    /* Each row once, as the sum goes on, whether there are more rows or more steps. */
    for (int64_t rows = 1; rows <= MD_TILE_HIGH; rows++) {
        for (int64_t steps = 3; steps <= 67; steps += 4) {
            int64_t due = 0, claimed = 0;
            for (int64_t i = 0; i < steps; i++) {
                const int64_t before = claimed;
                MD_TILE_CLAIMS(due, rows, steps) {
                    claimed++;
                }
                assert_in_range(claimed - before, 0, rows / steps + 1);
                assert_int_equal(claimed, rows * (i + 1) / steps);
            }
            assert_int_equal(claimed, rows);
        }
    }
}

/* Rows of 16 bits that lie side by side are packed tile by tile, some dozens at a time. */
static void test_many_beside(void **state) {
    (void)state;
    Case t[] = {case_dense('t', 'n', 301, 200, 33, MD_TILE_HALF, 4),
                case_dense('t', 'n', 379, 330, 70, MD_TILE_HALF | MD_TILE_WIDE_A, 4)};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
#ifndef MDLC_ODD_SIZES
        assert_true((t[i].plan.is & MD_TILE_TAKEN) && t[i].plan.block_rows > 256);
#endif
        case_fill(&t[i]);
        case_check(&t[i]);
        case_free(&t[i]);
    }
    /* Panels of 256 KiB and more are asked for, in whatever elements they lie in memory. */
    const int as = MD_TILE_HALF, wide = MD_TILE_HALF | MD_TILE_WIDE_B;
    const Case far[] = {case_dense('t', 'n', 999, 512, 256, as, 4),
                        case_dense('t', 'n', 999, 511, 256, as, 4),
                        case_dense('t', 'n', 999, 256, 256, wide, 4)};
    assert_true(md_tile_far(&far[0].plan) && md_tile_far(&far[2].plan));
    assert_false(md_tile_far(&far[1].plan));
}

/* ---- specialised as in an emitted program ---------------------------------------------------- */

/* What the compiler prints for linear(128 -> 128) of a batch of 128, [out, in] weights, and for the
 * gradient of its weight; then for linear(40 -> 10), which stays on one thread. */
/* clang-format off */
static const md_tile forward = {
    MD_TILE_ROWS(128, 128, 128), MD_TILE_COLUMNS(128, 128, 1),
    MD_TILE_SUM(128, 1, 1), MD_TILE_NO_BATCH,
    sizeof(float), MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(128, 128, 2, 128), MD_TILE_WORK(4096, 4096, 4096)
};
static const md_tile weights = {
    MD_TILE_ROWS(128, 1, 128), MD_TILE_COLUMNS(128, 1, 1),
    MD_TILE_SUM(128, 128, 128), MD_TILE_NO_BATCH,
    sizeof(float), MD_TILE_SHARED | MD_TILE_IN_PLACE,
    MD_TILE_BLOCKS(128, 128, 2, 128), MD_TILE_NO_WORK
};
static const md_tile narrow = {
    MD_TILE_ROWS(128, 40, 10), MD_TILE_COLUMNS(10, 40, 1),
    MD_TILE_SUM(40, 1, 1), MD_TILE_NO_BATCH,
    sizeof(float), MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(128, 32, 2, 40), MD_TILE_WORK(640, 640, 640)
};
/* clang-format on */

static void forward_part(const md_tile_call *call, int part) {
    md_tile_part_f32(&forward, call, part, epi_f32);
}
static void weights_part(const md_tile_call *call, int part) {
    md_tile_part_f32(&weights, call, part, epi_f32);
}
static void narrow_part(const md_tile_call *call, int part) {
    md_tile_part_f32(&narrow, call, part, epi_f32);
}

MD_TILE_BLOCK(forward, forward, float, md_tile_block_f32)
MD_TILE_LARGE_PART(forward_large, forward, md_tile_share_of_f32, epi_f32, forward, NULL)
MD_TILE_BLOCK_PART(forward_small, forward, float, md_tile_share_f32, epi_f32, forward, NULL)
MD_TILE_BLOCK(weights, weights, float, md_tile_block_f32)
MD_TILE_LARGE_PART(weights_large, weights, md_tile_share_of_f32, epi_f32, weights, NULL)
MD_TILE_BLOCK(narrow, narrow, float, md_tile_block_f32)
MD_TILE_BLOCK_PART(narrow_small, narrow, float, md_tile_share_f32, epi_f32, narrow, NULL)

static void check_fixed(const md_tile *plan, md_tile_part_fn fn, char ta, char tb, int64_t m,
                        int64_t n, int64_t k) {
    Case t = case_dense(ta, tb, m, n, k, 0, 4);
#ifdef MDLC_ODD_SIZES
    t.plan = *plan; /* those above have the usual sizes */
#endif
    const int64_t *a = (const int64_t *)(const void *)plan;
    const int64_t *b = (const int64_t *)(const void *)&t.plan;
    for (size_t i = 0; i < sizeof t.plan / sizeof *a; i++) {
        if (a[i] != b[i]) {
            fail_msg("field %d of the plan is %lld, printed as %lld", (int)i, (long long)b[i],
                     (long long)a[i]);
        }
    }
    case_fill(&t);
    unsigned char *x = case_run(&t, fn, 1, 0);
    unsigned char *y = case_run(&t, fn, 2, 3);
    unsigned char *z = case_run(&t, part_f32, 3, 0); /* the same bits as the general code */
    assert_memory_equal(x, y, (size_t)t.c_size * 4);
    assert_memory_equal(x, z, (size_t)t.c_size * 4);
    free(x);
    free(y);
    free(z);
    case_free(&t);
}

static void test_specialised(void **state) {
    (void)state;
    check_fixed(&forward, forward_part, 'n', 't', 128, 128, 128);
    check_fixed(&weights, weights_part, 't', 'n', 128, 128, 128);
    check_fixed(&narrow, narrow_part, 'n', 't', 128, 10, 40);
    check_fixed(&forward, forward_large_part, 'n', 't', 128, 128, 128);
    check_fixed(&weights, weights_large_part, 't', 'n', 128, 128, 128);
    check_fixed(&forward, forward_small_part, 'n', 't', 128, 128, 128);
    check_fixed(&narrow, narrow_small_part, 'n', 't', 128, 10, 40);
}

/* Where step k of a sum of four axes lies. */
static int64_t step(int64_t k, int64_t k0, int64_t k1, int64_t k2, const int64_t *stride) {
    return k / k2 / k1 / k0 * stride[0] + k / k2 / k1 % k0 * stride[1] + k / k2 % k1 * stride[2] +
           k % k2 * stride[3];
}

/* Merging keeps every address. */
static void test_normal(void **state) {
    (void)state;
    for (int i = 0; i < 2000; i++) {
        Case t = case_random();
        md_tile_shape s = t.shape;
        if (draw(0, 1) == 0) { /* make merges likely */
            s.a_m1 = s.m2 * s.a_m2;
            s.c_m1 = s.m2 * s.c_m2;
            s.a_k1 = s.k2 * s.a_k2;
            s.b_k1 = s.k2 * s.b_k2;
            s.a_k0 = s.k1 * s.a_k1;
            s.b_k0 = s.k1 * s.b_k1;
        }
        if (draw(0, 1) == 0) {
            s.a_ko = s.k0 * s.a_k0;
            s.b_ko = s.k0 * s.b_k0;
        }
        md_tile_shape u = md_tile_normal(s);
        assert_int_equal(s.m1 * s.m2, u.m1 * u.m2);
        assert_int_equal(s.ko * s.k0 * s.k1 * s.k2, u.ko * u.k0 * u.k1 * u.k2);
        assert_int_equal(s.b1 * s.b2, u.b1 * u.b2);
        for (int64_t m = 0; m < s.m1 * s.m2; m++) {
            assert_int_equal(m / s.m2 * s.a_m1 + m % s.m2 * s.a_m2,
                             m / u.m2 * u.a_m1 + m % u.m2 * u.a_m2);
            assert_int_equal(m / s.m2 * s.c_m1 + m % s.m2 * s.c_m2,
                             m / u.m2 * u.c_m1 + m % u.m2 * u.c_m2);
        }
        const int64_t sa[] = {s.a_ko, s.a_k0, s.a_k1, s.a_k2};
        const int64_t sb[] = {s.b_ko, s.b_k0, s.b_k1, s.b_k2};
        const int64_t ua[] = {u.a_ko, u.a_k0, u.a_k1, u.a_k2};
        const int64_t ub[] = {u.b_ko, u.b_k0, u.b_k1, u.b_k2};
        for (int64_t k = 0; k < s.ko * s.k0 * s.k1 * s.k2; k++) {
            assert_int_equal(step(k, s.k0, s.k1, s.k2, sa), step(k, u.k0, u.k1, u.k2, ua));
            assert_int_equal(step(k, s.k0, s.k1, s.k2, sb), step(k, u.k0, u.k1, u.k2, ub));
        }
        for (int64_t b = 0; b < s.b1 * s.b2; b++) {
            assert_int_equal(index3(b, &s, s.a_b1, s.a_b2), index3(b, &u, u.a_b1, u.a_b2));
            assert_int_equal(index3(b, &s, s.b_b1, s.b_b2), index3(b, &u, u.b_b1, u.b_b2));
            assert_int_equal(index3(b, &s, s.c_b1, s.c_b2), index3(b, &u, u.c_b1, u.c_b2));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normal),      cmocka_unit_test(test_tails),
        cmocka_unit_test(test_few_rows),    cmocka_unit_test(test_window),
        cmocka_unit_test(test_volumes),     cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_pitches),     cmocka_unit_test(test_few_columns),
        cmocka_unit_test(test_groups),      cmocka_unit_test(test_specialised),
        cmocka_unit_test(test_random),      cmocka_unit_test(test_taps),
        cmocka_unit_test(test_from_memory), cmocka_unit_test(test_many_beside),
        cmocka_unit_test(test_along),       cmocka_unit_test(test_last_columns),
        cmocka_unit_test(test_batched),
    };
    return cmocka_run_group_tests_name("runtime tile", tests, NULL, NULL);
}
