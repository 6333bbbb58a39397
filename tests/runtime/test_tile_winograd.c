/* test_tile_winograd: products of windows of 3 x 3 and 2 x 2 places whose tiles are transformed
 * (runtime/tile_winograd.h), against all terms in double, as test_tile.c has it.
 *
 * Random windows of random weights' strides, forwards and backwards along each axis, whose last
 * places are odd or even, with channels and columns that fill no vector, added to C or not. */
#include "tests/runtime/tile_case.h"

/* X has no room behind the last place that a window reads, as a copy with a border. */
static Case strided(int64_t samples, int64_t height, int64_t width, int64_t channels,
                    int64_t columns, int64_t stride, int64_t more) {
    const int64_t taps = stride * more, row = stride * (width + more - 1) * channels;
    const int64_t image = stride * (height + more - 1) * row, each = taps * taps;
    Case t;
    memset(&t, 0, sizeof t);
    /* clang-format off */
    md_tile_shape s = {samples, 1, height, width, columns, taps, taps, channels,
                       image, 0, stride * row, stride * channels, row, channels, 1,
                       0, 0, taps, 1, each, each * channels,
                       height * width * columns, 0, width * columns, columns, 1, 1, 0, 0,
                       MD_TILE_WINOGRAD};
    /* clang-format on */
    t.shape = s;
    t.a_size = samples * image;
    t.b_size = columns * channels * each;
    t.c_size = samples * height * width * columns;
    t.elem = 4;
    return t;
}

static Case window(int64_t samples, int64_t height, int64_t width, int64_t channels,
                   int64_t columns, int64_t taps) {
    return strided(samples, height, width, channels, columns, 1, taps);
}

/* The adjoint reads weights [channels, columns, taps, taps] in reverse, or X, along either axis. */
static void turn_weights(Case *t, int form) {
    md_tile_shape *s = &t->shape;
    const int64_t taps = s->k0;
    if (form == 1) { /* [channels, columns, taps, taps] */
        s->b_n = taps * taps;
        s->b_k2 = taps * taps * s->n;
    } else if (form >= 2) { /* [taps, taps, channels, columns] */
        s->b_n = 1;
        s->b_k2 = s->n;
        s->b_k1 = s->k2 * s->n;
        s->b_k0 = taps * s->b_k1;
    }
    if (form == 3) {
        return;
    }
    if (draw(0, 1) == 0) {
        t->b_zero += (taps - 1) * s->b_k0;
        s->b_k0 = -s->b_k0;
    }
    if (draw(0, 1) == 0) {
        t->b_zero += (taps - 1) * s->b_k1;
        s->b_k1 = -s->b_k1;
    }
    if (draw(0, 1) == 0) {
        t->a_zero += (taps - 1) * s->a_k0;
        s->a_k0 = -s->a_k0;
    }
    if (draw(0, 1) == 0) {
        t->a_zero += (taps - 1) * s->a_k1;
        s->a_k1 = -s->a_k1;
    }
}

/* Images share X in pairs, of which each has weights of its own, with lines of C in turn, as phases
 * of repeated places have them; or all have weights of their own. */
static void phases(Case *t, int pairs) {
    md_tile_shape *s = &t->shape;
    const int64_t line = s->m2 * s->c_m2, weights = t->b_size;
    if (pairs) {
        s->b2 = 2, s->b_b2 = weights, s->c_b2 = line;
        s->c_m1 *= 2, s->c_b1 *= 2;
        t->c_size *= 2, t->b_size *= 2;
    } else {
        s->b_b1 = weights;
        t->b_size *= s->b1;
    }
}

/* Blocks of more lines of tiles, as large images have them. */
static void take_lines(md_tile *p, int64_t lines) {
    p->group = md_tile_min(lines, md_winograd_lines(p));
    md_winograd_slice(p);
}

static void test_random_windows(void **state) {
    (void)state;
    int odd = 0, ragged = 0, cut = 0, adds = 0, several = 0, sets = 0, lines = 0, beside = 0;
    int strides = 0, strips = 0;
    seed = 76;
    for (int i = 0; i < 110; i++) {
        const int64_t stride = i < 80 ? 1 : 2 + i % 7 / 6;
        const int64_t odd_one = i % 4 == 0, samples = draw(5, 12), taps = i < 40 ? 3 : 2;
        const int64_t height = draw(6, 14) | odd_one, width = draw(6, 18) | odd_one;
        const int64_t channels = i % 3 == 0 ? 32 : draw(33, 75);
        const int64_t columns = i % 3 == 1 ? 64 : draw(i % 7 == 2 ? 16 : 33, 75);
        const int few = i % 5 < 2; /* and large */
        Case t = strided(few ? 2 : samples, few ? 3 * height : height, width, channels, columns,
                         stride, i < 90 ? taps : 3);
        turn_weights(&t, (int)draw(0, 3));
        t.elem = draw(0, 3) == 0 ? ELEM_MAX : 4;
        t.scale = (int)draw(0, 1);
        const int way = (int)draw(0, 2);
        t.shape.flags |= way == 0 ? MD_TILE_ADD : way == 1 ? MD_TILE_NO_C : 0;
        if (i % 5 < 3) {
            phases(&t, i % 5 > 0);
        }
        const md_tile_shape s = md_tile_normal(t.shape);
        t.plan = md_tile_plan(s, t.elem);
        if (!(t.plan.is & MD_TILE_WINOGRAD)) {
            continue; /* few tiles, or many that lie in part outside */
        }
        take_lines(&t.plan, draw(0, 1) == 0 ? t.plan.group : draw(2, 9));
        const int64_t tiles = t.plan.group * md_winograd_tiles(&t.plan);
        odd += height % 2 + width % 2 == 2;
        ragged += channels % 16 != 0 && t.shape.n % 16 != 0;
        cut += tiles > MD_TILE_HIGH && md_winograd_lines(&t.plan) % t.plan.group != 0;
        several += md_winograd_lines(&t.plan) > 2 * t.plan.group;
        adds += (t.plan.is & MD_TILE_ADD) != 0;
        strips += (t.plan.is & MD_TILE_NO_C) != 0;
        sets += md_winograd_sets(&t.plan) > 1;
        lines += md_winograd_image(&t.plan) > md_winograd_rows(&t.plan, t.plan.r1.n);
        beside += s.k2 == taps * channels;
        strides += md_winograd_phases(&t.plan) > 1;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf("  seed 76, of 110: odd %d, no vectors %d, parts of blocks %d, blocks %d, added %d, "
           "weights of their own %d, images that end inside of a block %d, merged %d, "
           "at strides %d, not stored %d\n",
           odd, ragged, cut, several, adds, sets, lines, beside, strides, strips);
    assert_true(odd > 4 && ragged > 3 && cut > 4 && several > 5 && adds > 5);
    assert_true(sets > 8 && lines > 3 && beside > 3 && strides > 8 && strips > 8);
}

/* The gradient by the weights: sums over all places of images, of which one may be left. */
static void test_random_sums(void **state) {
    (void)state;
    int odd = 0, ragged = 0, several = 0, stored = 0, cut = 0, parts = 0, wide = 0;
    seed = 77;
    for (int i = 0; i < 30; i++) {
        const int64_t images = draw(0, 3) == 0 ? 1 : draw(5, 12);
        const int64_t odd_one = i % 4 == 0;
        const int64_t height = (images == 1 ? draw(30, 40) : draw(6, 14)) | odd_one;
        const int64_t width = draw(7, 18) | odd_one;
        const int64_t channels = i % 5 > 2 ? draw(129, 300) : i % 3 == 0 ? 32 : draw(33, 75);
        const int64_t columns = i % 5 == 4 ? draw(129, 280) : i % 3 == 1 ? 64 : draw(33, 75);
        const int64_t row = (width + 2) * channels, image = (height + 2) * row;
        Case t;
        memset(&t, 0, sizeof t);
        /* clang-format off */
        md_tile_shape s = {1, 3, channels, 3, columns, images, height, width,
                           0, row, 1, channels, image, row, channels,
                           0, 0, height * width * columns, width * columns, columns, 1,
                           0, 3, 9, 1, 9 * channels, 1, 0, 0,
                           MD_TILE_WINOGRAD};
        /* clang-format on */
        if (draw(0, 1) == 0) { /* the shifts between lines are the outer batch axis */
            s.b1 = 3, s.a_b1 = row, s.c_b1 = 3;
            s.b2 = 1, s.a_b2 = 0, s.c_b2 = 0;
        }
        s.flags |= draw(0, 2) == 0 ? MD_TILE_NO_C : 0;
        t.shape = s;
        t.elem = draw(0, 3) == 0 ? ELEM_MAX : 4;
        t.scale = (int)draw(0, 1);
        t.plan = md_tile_plan(draw(0, 1) == 0 ? s : md_tile_normal(s), t.elem);
        if (!(t.plan.is & MD_TILE_WINOGRAD_SUM)) {
            continue;
        }
        md_tile_call call = {.parts = 7};
        md_tile_grid(&t.plan, &call);
        odd += height % 2 + width % 2 == 2;
        ragged += channels % 16 != 0 && columns % 16 != 0;
        several += md_winograd_lines(&t.plan) > 2 * t.plan.group;
        stored += (t.plan.is & MD_TILE_NO_C) == 0;
        cut += call.gn > 1;
        parts += t.plan.kb1 > 1;
        wide += t.plan.kb2 < columns;
        t.a_size = images * image;
        t.b_size = images * height * width * columns;
        t.c_size = channels * columns * 9;
        case_fill(&t);
        case_check(&t);
        case_free(&t);
    }
    printf(
        "  seed 77, of 30: odd %d, no vectors %d, blocks %d, stored %d, columns cut %d, parts of "
        "the channels %d, of the columns %d\n",
        odd, ragged, several, stored, cut, parts, wide);
    assert_true(odd > 3 && ragged > 3 && several > 3 && stored > 5 && cut > 5);
    assert_true(parts > 5 && wide > 3);
}

/* A number between -1 and 1 with all of a float's bits. */
static double real_value(void) {
    return (double)(float)((double)draw(-INT32_MAX, INT32_MAX) / (double)INT32_MAX);
}

/* How far a product is from that of doubles, of the size of its results: with transformed tiles or
 * by the sum as it stands. */
static double rounding(Case *t, int64_t flags) {
    const md_tile_shape *s = &t->shape;
    double off = 0, all = 0;
    t->shape.flags = flags;
    t->plan = md_tile_plan(md_tile_normal(t->shape), 4);
    assert_true(((t->plan.is & MD_TILE_WINOGRAD) != 0) == (flags != 0));
    case_image(t);
    char *work = aligned_alloc(64, md_tile_workspace(&t->plan, 1) / 64 * 64 + 64);
    assert_non_null(work);
    md_winograd_work works = {work + t->plan.partial * 4, work};
    void *given = flags & MD_TILE_WINOGRAD ? (void *)&works : work;
    run_parts(&t->plan, part_f32, t->a_image, t->b_image, t->c_image, t, given, 1, 0);
    case_drop_images(t); /* C is another one now */
    free(work);
    for (int64_t i = 0; i < s->b1 * s->b2 * s->m1 * s->m2 * s->n; i++) {
        const double want = t->want[t->place[i]], by = t->taken[i] - want;
        off += by * by;
        all += want * want;
    }
    return sqrt(off / all);
}

/* The error is about that of the long sum, whose chains are longer. */
static void test_rounding(void **state) {
    (void)state;
    seed = 78;
    static const int64_t channels[] = {16, 64, 160};
    for (int i = 0; i < 6; i++) {
        const int taps = 3 - i % 2;
        Case t = window(taps == 3 ? 12 : 16, 12, 12, channels[i / 2], 32, taps);
        case_fill(&t);
        for (int64_t k = 0; k < t.a_size; k++) {
            t.a[k] = real_value();
        }
        for (int64_t k = 0; k < t.b_size; k++) {
            t.b[k] = real_value();
        }
        case_want(&t);
        const double plain = rounding(&t, 0), tiles = rounding(&t, MD_TILE_WINOGRAD);
        printf("  %d channels, %d x %d places: off by %.2e, of the sum as it stands %.2e\n",
               (int)channels[i / 2], taps, taps, tiles, plain);
        assert_true(tiles < 3.5e-7);
        /* With small sizes a sum as it stands is cut as often as a long one. */
        assert_true(tiles < 2 * plain || (taps == 2 && MD_TILE_WINOGRAD_LEAST != 16));
        case_free(&t);
    }
}

/* Which windows have their tiles transformed: at stride 1, of 3 x 3 places, where that spares much
 * and takes little memory. */
static void test_plans(void **state) {
    (void)state;
    static const struct {
        int64_t samples, height, width, channels, columns, taps;
        int transformed;
    } of[] = {{8, 64, 64, 64, 64, 3, 1},     {1, 64, 64, 64, 64, 3, 1}, {16, 7, 7, 512, 512, 3, 1},
              {64, 8, 8, 12, 64, 3, 0},      {64, 8, 8, 64, 12, 3, 0},  {64, 3, 3, 64, 64, 3, 0},
              {1, 8, 8, 64, 64, 3, 0},       {1, 14, 14, 64, 64, 3, 0}, {64, 16, 16, 128, 64, 3, 1},
              {1, 512, 512, 128, 128, 3, 0}, {2, 1, 300, 64, 64, 3, 0}, {8, 33, 33, 64, 64, 2, 1},
              {8, 17, 17, 128, 128, 2, 1},   {32, 4, 4, 128, 64, 2, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Case t = window(of[i].samples, of[i].height, of[i].width, of[i].channels, of[i].columns,
                        of[i].taps);
        md_tile plan = md_tile_plan(md_tile_normal(t.shape), 4);
        const int usual = MD_TILE_WINOGRAD_LEAST == 16; /* not what small sizes are tried with */
        if (usual && ((plan.is & MD_TILE_WINOGRAD) != 0) != of[i].transformed) {
            fail_msg("shape %d", (int)i);
        }
        t.shape.flags = 0; /* where nobody asks for it */
        plan = md_tile_plan(md_tile_normal(t.shape), 4);
        assert_true((plan.is & MD_TILE_WINOGRAD) == 0);
    }
    const Case usual = window(8, 64, 64, 64, 64, 3);
    md_tile_shape s = usual.shape;
    s.a_m1 *= 2, s.a_m2 *= 2; /* at stride 2 */
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    s = usual.shape;
    s.a_k0 *= 2, s.a_k1 *= 2; /* dilated */
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    s = usual.shape;
    s.k0 = 5, s.k1 = 5;
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    s = usual.shape;
    s.b_b1 = usual.b_size; /* weights of each of few large images */
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) != 0);
    s = usual.shape;
    s.b1 = 512, s.m1 = 2, s.m2 = 2, s.b_b1 = 1; /* weights of each of many small images */
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    s = usual.shape;
    s.a_k2 = 2; /* channels apart */
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    s = usual.shape;
    s.flags |= MD_TILE_ACROSS;
    assert_true((md_tile_plan(md_tile_normal(s), 4).is & MD_TILE_WINOGRAD) == 0);
    const md_tile stored = md_tile_plan(md_tile_normal(usual.shape), 4);
    s = usual.shape;
    s.flags |= MD_TILE_NO_C; /* two lines of all places and the columns of a block */
    const md_tile strip = md_tile_plan(md_tile_normal(s), 4);
    assert_true((strip.is & MD_TILE_WINOGRAD) && !(strip.is & MD_TILE_IN_PLACE));
    assert_int_equal(strip.strip_at, stored.slice);
    assert_int_equal(strip.slice, stored.slice + 2 * 64 * stored.block_cols);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_windows), cmocka_unit_test(test_random_sums),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
