/* test_tile_band: products of which only places near a diagonal count (runtime/tile_band.h).
 *
 * Random shapes whose plans have a band: terms outside of it are zero, or results there are asked
 * of nobody. Checked as in test_tile.c, against all terms in double, and that what is left out is
 * left out: a factor beyond all tiles' reach is NaN, results that a whole tile has for nobody are
 * zero. */
#include "tests/runtime/tile_case.h"

typedef struct {
    int64_t from, until;
} Edges;

/* Both ends, or one of them. */
static Edges draw_edges(int64_t n) {
    Edges e = {-MD_BAND_OPEN, MD_BAND_OPEN};
    const int ends = (int)draw(1, 3);
    if (ends & 1) {
        e.until = draw(-n / 3, n / 2);
    }
    if (ends & 2) {
        e.from = ends == 3 ? e.until - draw(1, n) : draw(-n / 2, n / 3);
    }
    return e;
}

static void make_plan(Case *t) {
    t->plan = md_tile_plan(t->shape, t->elem);
    case_band(t);
}

/* A dense case, operands in either order. */
static Case case_banded(int64_t band) {
    Case t;
    memset(&t, 0, sizeof t);
    md_tile_shape *s = &t.shape;
    s->b1 = 1, s->m1 = 1, s->ko = 1, s->k0 = 1, s->k1 = 1;
    const int large = (int)draw(0, 3);
    s->b2 = large == 2 ? 1 : draw(1, 3);
    s->m2 = draw(large == 2 ? 24 : 5, large == 0 ? 300 : 40);
    s->n = draw(large == 2 ? 24 : 4, large == 1 ? 250 : 40);
    s->k2 = large == 2 ? draw(400, 2200) : draw(2, 120);
    const int ta = (int)draw(0, 1), tb = (int)draw(0, 1);
    s->a_m2 = ta ? 1 : s->k2, s->a_k2 = ta ? s->m2 : 1;
    s->b_k2 = tb ? 1 : s->n, s->b_n = tb ? s->k2 : 1;
    s->c_m2 = s->n, s->c_n = 1;
    s->a_b2 = s->m2 * s->k2, s->b_b2 = s->n * s->k2, s->c_b2 = s->m2 * s->n;
    if (draw(0, 3) == 0) {
        s->flags |= MD_TILE_ACROSS;
        s->c_m2 = 1, s->c_n = s->m2;
    }
    t.a_size = s->b2 * s->a_b2, t.b_size = s->b2 * s->b_b2, t.c_size = s->b2 * s->c_b2;
    t.elem = draw(0, 3) == 0 ? 8 : 4;
    s->flags |= draw(0, 3) == 0 ? MD_TILE_ADD : draw(0, 3) == 0 ? MD_TILE_NO_C : 0;
    if (t.elem == 4 && draw(0, 2) == 0) {
        s->flags |= MD_TILE_HALF | (draw(0, 1) ? MD_TILE_WIDE_A : 0) |
                    (draw(0, 1) ? MD_TILE_WIDE_B : 0) | (draw(0, 3) == 0 ? MD_TILE_F16 : 0);
    }
    const Edges e = draw_edges(band == MD_BAND_ROW_COLUMN ? s->n : s->k2);
    t.scale = (int)draw(0, 1);
    t.band = band, t.from = e.from, t.until = e.until;
    make_plan(&t);
    return t;
}

/* Terms outside of the band are zero by one factor; the other one is NaN where no tile comes.
 * Gives how many are. */
static int make_terms(Case *t, int rows) {
    const md_tile_shape *s = &t->shape;
    const int64_t count = rows ? s->m2 : s->n, other = rows ? s->n : s->m2, reach = 64;
    int poisoned = 0;
    for (int64_t at = 0; at < s->b2 * s->k2; at++) {
        const int64_t batch = at / s->k2, k = at % s->k2;
        int near = t->plan.band == MD_BAND_NONE;
        for (int64_t i = 0; i < count; i++) {
            double *x = rows ? &t->a[batch * s->a_b2 + i * s->a_m2 + k * s->a_k2]
                             : &t->b[batch * s->b_b2 + i * s->b_n + k * s->b_k2];
            *x = k - i >= t->from && k - i < t->until ? *x : 0;
            near = near || (k - i >= t->from - reach && k - i < t->until + reach);
        }
        for (int64_t i = 0; i < other && !near; i++) {
            double *y = rows ? &t->b[batch * s->b_b2 + i * s->b_n + k * s->b_k2]
                             : &t->a[batch * s->a_b2 + i * s->a_m2 + k * s->a_k2];
            *y = NAN;
            poisoned++;
        }
    }
    return poisoned;
}

/* Further than a register tile reaches, zeros of the operand are not read: NaN there. */
static int make_unread(Case *t, int rows) {
    const md_tile_shape *s = &t->shape;
    const int64_t count = rows ? s->m2 : s->n, reach = 66;
    int unread = 0;
    for (int64_t at = 0; at < s->b2 * s->k2 && t->plan.band != MD_BAND_NONE; at++) {
        const int64_t batch = at / s->k2, k = at % s->k2;
        for (int64_t i = 0; i < count; i++) {
            double *x = rows ? &t->a[batch * s->a_b2 + i * s->a_m2 + k * s->a_k2]
                             : &t->b[batch * s->b_b2 + i * s->b_n + k * s->b_k2];
            if (k - i < t->from - reach || k - i >= t->until + reach) {
                *x = NAN;
                unread++;
            }
        }
    }
    return unread;
}

static void test_terms(void **state) {
    (void)state;
    int by_rows = 0, by_columns = 0, half = 0, chunks = 0, poisoned = 0, blocks = 0, packed = 0;
    int unread = 0;
    seed = 71;
    for (int i = 0; i < 400; i++) {
        const int rows = (int)draw(0, 1);
        Case t = case_banded(rows ? MD_BAND_ROW_SUM : MD_BAND_COLUMN_SUM);
        const int banded = t.plan.band != MD_BAND_NONE;
        case_fill(&t);
        poisoned += make_terms(&t, rows);
        memcpy(t.want, t.c, (size_t)t.c_size * sizeof *t.c);
        case_want(&t);
        unread += make_unread(&t, rows);
        case_check(&t);
        by_rows += t.plan.band == MD_BAND_ROW_SUM;
        by_columns += t.plan.band == MD_BAND_COLUMN_SUM;
        half += banded && (t.plan.is & MD_TILE_HALF) != 0;
        chunks += banded && t.plan.chunks > 1;
        blocks += banded && md_tile_blocks(&t.plan) > 1;
        packed += banded && (t.plan.is & MD_TILE_PACKED) != 0;
        case_free(&t);
    }
    printf("seed 71: %d by rows, %d by columns, %d of 16 bits, %d cut, %d of blocks, %d packed, "
           "%d factors NaN, %d zeros too\n",
           by_rows, by_columns, half, chunks, blocks, packed, poisoned, unread);
    assert_true(by_rows > 120 && by_columns > 120 && half > 60 && chunks > 15 && blocks > 60);
    assert_true(packed > 120 && poisoned > 10000 && unread > 100000);
}

static void test_results(void **state) {
    (void)state;
    int banded = 0, left_out = 0, half = 0;
    seed = 72;
    for (int i = 0; i < 300; i++) {
        Case t = case_banded(MD_BAND_ROW_COLUMN);
        t.shape.flags &= ~MD_TILE_ADD;
        make_plan(&t);
        case_fill(&t);
        case_check(&t);
        for (int64_t at = 0; at < t.shape.b2 * t.shape.m2 * t.shape.n; at++) {
            left_out += t.taken[at] == 0;
        }
        banded += t.plan.band == MD_BAND_ROW_COLUMN;
        half += t.plan.band != MD_BAND_NONE && (t.plan.is & MD_TILE_HALF) != 0;
        case_free(&t);
    }
    printf("seed 72: %d with a band, %d of 16 bits, %d results left out\n", banded, half, left_out);
    assert_true(banded > 200 && half > 40 && left_out > 200000);
}

/* Results that nobody reads, MD_TILE_UNREAD places from the band: C is left as it was there, and
 * nowhere nearer. */
static void test_unread(void **state) {
    (void)state;
    int left[2] = {0, 0};
    seed = 73;
    for (int i = 0; i < 60; i++) {
        Case t = case_banded(MD_BAND_ROW_COLUMN);
        md_tile_shape *s = &t.shape;
        s->flags &= MD_TILE_HALF | MD_TILE_WIDE_A | MD_TILE_WIDE_B | MD_TILE_F16;
        s->m2 = draw(150, 420), s->n = draw(150, 420), s->k2 = draw(2, 20), s->b2 = 1;
        s->a_m2 = s->k2, s->a_k2 = 1, s->b_k2 = s->n, s->b_n = 1, s->c_m2 = s->n, s->c_n = 1;
        t.a_size = s->m2 * s->k2, t.b_size = s->n * s->k2, t.c_size = s->m2 * s->n;
        t.scale = 0, t.elem = s->flags & MD_TILE_HALF ? 4 : t.elem;
        const int side = i % 2;
        t.from = side ? draw(-30, 30) : -MD_BAND_OPEN,
        t.until = side ? MD_BAND_OPEN : draw(-30, 30);
        make_plan(&t);
        const int swapped = (t.plan.is & MD_TILE_SWAPPED) != 0;
        if (!(t.plan.is & MD_TILE_IN_PLACE) || t.plan.band == MD_BAND_NONE || t.plan.group > 0) {
            continue; /* a strip of a group is added whether any of it was made or not */
        }
        t.plan.is |= side == swapped ? MD_TILE_AHEAD_UNREAD : MD_TILE_BEHIND_UNREAD;
        case_fill(&t);
        case_check(&t);
        for (int64_t at = 0; at < s->m2 * s->n; at++) {
            const int64_t ahead = at % s->n - at / s->n;
            const int64_t beyond = side ? t.from - ahead : ahead - t.until;
            left[side] += t.taken[at] != 0 && beyond >= 0;
            assert_true(t.taken[at] == t.c[at] || beyond < MD_TILE_UNREAD || t.taken[at] == 0);
        }
        case_free(&t);
    }
    printf("seed 73: %d results ahead, %d behind left as they were\n", left[0], left[1]);
    assert_true(left[0] > 1000 && left[1] > 1000);
}

/* Windows along two axes of an image with a border of zeros, and the gradient of their weights:
 * what is read in the border is NaN where no tile of rows holds places of several lines. `lists`:
 * by weights [out, c, kh, kw], whose steps go by a list (1), images as rows, lines as batches (2),
 * which share panels (3); or with panels of 16 bits that are kept (-1).
 */
static Case case_windows(int64_t band, int lists) {
    Case t;
    const int kept = lists < 0;
    lists = kept ? 0 : lists;
    memset(&t, 0, sizeof t);
    md_tile_shape *s = &t.shape;
    const int64_t taps = draw(2, 4), images = lists == 3 ? 3 : draw(1, 3) + 3 * kept;
    const int64_t channels = lists == 3 ? 64 : lists ? 16 * draw(1, 3) : draw(1, 12);
    t.from = draw(0, 3), t.until = t.from + draw(1, 9);
    const int64_t stride = draw(1, 2), dilation = draw(1, 2), by[2] = {stride, dilation};
    const int64_t places = draw(2, lists == 2 ? 3 : 7), width = draw(8, 20); /* 4: panels kept */
    const int64_t across = draw(lists ? 2 : 1, 3);
    const int64_t line = (width + across - 1) * channels;
    const int64_t lines = (places - 1) * by[0] + (taps - 1) * by[1] + 1;
    s->b1 = 1, s->m1 = 1, s->ko = 1, s->k0 = 1, s->k1 = 1, s->b2 = images;
    s->n = draw(lists ? 17 : 5, 70) + (lists == 3 ? 500 : 0), s->b_n = 1;
    t.a_size = images * lines * line;
    t.elem = draw(0, 2) == 0 && !kept ? 8 : 4;
    if (band == MD_BAND_ROW_STEP0 || band == MD_BAND_ROW_STEP1) {
        s->m1 = places, s->a_m1 = by[0] * line, s->m2 = width, s->a_m2 = channels;
        s->a_b2 = lines * line;
        s->k0 = band == MD_BAND_ROW_STEP0 ? taps : 1, s->a_k0 = by[1] * line;
        s->k1 = band == MD_BAND_ROW_STEP0 ? across : taps;
        s->a_k1 = band == MD_BAND_ROW_STEP0 ? channels : by[1] * line;
        s->k2 = channels, s->a_k2 = 1;
    } else {
        const int first = band == MD_BAND_BATCH1_STEP1;
        *(first ? &s->b1 : &s->b2) = taps;
        *(first ? &s->a_b1 : &s->a_b2) = by[1] * line;
        s->b2 = first ? across : s->b2, s->a_b2 = first ? channels : s->a_b2;
        s->m2 = channels, s->a_m2 = 1;
        s->k0 = images, s->a_k0 = lines * line;
        s->k1 = places, s->a_k1 = by[0] * line;
        s->k2 = width, s->a_k2 = channels;
    }
    if (lists >= 2) {
        s->b2 = places, s->a_b2 = s->a_m1, s->m1 = images, s->a_m1 = lines * line;
        band = MD_BAND_BATCH2_STEP1;
    }
    const int64_t rows = s->m1 * s->m2;
    s->b_k2 = s->n, s->b_k1 = s->k2 * s->n, s->b_k0 = s->k1 * s->b_k1;
    t.b_size = s->k0 * s->b_k0;
    if (draw(0, 1)) { /* weights as a layer has them */
        s->b_k2 = 1, s->b_k1 = s->k2, s->b_k0 = s->k1 * s->k2, s->b_n = s->k0 * s->b_k0;
    }
    if (lists) {
        s->b_k2 = taps * across, s->b_k1 = 1, s->b_k0 = across, s->b_n = channels * taps * across;
        s->flags |= MD_TILE_BATCHED;
    }
    s->c_m1 = s->m2 * s->n, s->c_m2 = s->n, s->c_n = 1;
    s->c_b2 = rows * s->n, s->c_b1 = s->b2 * s->c_b2;
    t.c_size = s->b1 * s->c_b1;
    s->flags |= draw(0, 3) == 0 ? MD_TILE_ADD : draw(0, 3) == 0 ? MD_TILE_NO_C : 0;
    if (t.elem == 4 && !lists && draw(0, 2) == 0) {
        s->flags |= MD_TILE_HALF | (draw(0, 1) ? MD_TILE_WIDE_A : 0) |
                    (draw(0, 1) ? MD_TILE_WIDE_B : 0) | (draw(0, 3) == 0 ? MD_TILE_F16 : 0);
    }
    if (kept) { /* so that A may be made in pairs */
        s->flags = (s->flags & MD_TILE_ADD) | MD_TILE_HALF | (draw(0, 1) ? MD_TILE_WIDE_B : 0) |
                   (draw(0, 3) == 0 ? MD_TILE_F16 : 0);
    }
    const int batch = band >= MD_BAND_BATCH1_STEP1 && !lists; /* whose places are taps */
    t.band = band, t.by[0] = by[batch], t.by[1] = by[!batch];
    make_plan(&t);
    return t;
}

static void set_border(Case *t, int64_t line, int64_t lines, double x) {
    for (int64_t i = 0; i < t->a_size; i++) {
        const int64_t at = i / line % lines;
        t->a[i] = at >= t->from && at < t->until ? t->a[i] : x;
    }
}

static void test_borders(void **state) {
    (void)state;
    int with[4] = {0, 0, 0, 0}, listed[4] = {0, 0, 0, 0}, several = 0, packed = 0, half = 0;
    seed = 74;
    for (int at = 0; at < 780; at++) {
        const int lists = at < 600 ? 0 : at % 12 == 0 ? 3 : 1 + at % 2, i = lists ? 0 : at;
        const int64_t band = MD_BAND_ROW_STEP0 + i % 4;
        Case t = case_windows(band, lists);
        const md_tile_shape *s = &t.shape;
        const int rows = i % 4 < 2;
        const int64_t step = i % 4 == 0 ? s->a_k0 : rows ? s->a_k1 : i % 4 == 2 ? s->a_b1 : s->a_b2;
        const int64_t line = step / t.by[rows];
        const int64_t lines = (lists >= 2 ? s->a_m1 : rows ? s->a_b2 : s->a_k0) / line;
        case_fill(&t);
        set_border(&t, line, lines, 0);
        memcpy(t.want, t.c, (size_t)t.c_size * sizeof *t.c);
        case_want(&t);
        if (t.plan.band != MD_BAND_NONE && (!(s->flags & MD_TILE_HALF) || s->k2 % 2 == 0)) {
            set_border(&t, line, lines, NAN); /* half a pair is multiplied by 0 */
        }
        case_check(&t);
        with[i % 4] += !lists && t.plan.band == band;
        listed[lists] += (t.plan.is & MD_TILE_LISTED) && t.plan.band != MD_BAND_NONE &&
                         (lists < 3 || (t.plan.is & MD_TILE_BATCHED));
        several += t.plan.band != MD_BAND_NONE && md_tile_blocks(&t.plan) > 1;
        packed += t.plan.band != MD_BAND_NONE && (t.plan.is & MD_TILE_PACKED) != 0;
        half += t.plan.band != MD_BAND_NONE && (t.plan.is & MD_TILE_HALF) != 0;
        case_free(&t);
    }
    printf("seed 74: %d, %d, %d and %d with a border, %d of blocks, %d packed, %d of 16 bits\n",
           with[0], with[1], with[2], with[3], several, packed, half);
    printf("  by lists %d, of images as rows %d, batched %d\n", listed[1], listed[2], listed[3]);
    if (MD_TILE_GROUP != 1024) { /* with small sizes most sums have groups, and few a border */
        assert_true(with[0] + with[1] > 20);
        return;
    }
    assert_true(listed[1] > 10 && listed[2] > 5 && listed[3] > 0);
    assert_true(with[0] > 60 && with[1] > 60 && with[2] > 60 && with[3] > 60 && several > 60);
    assert_true(packed > 20 && half > 60);
}

/* Blocks of a sum whose panels are kept are one to a register tile, those inside of the border. */
static void test_joined(void **state) {
    (void)state;
    int joined = 0, bordered = 0, several = 0;
    seed = 75;
    for (int i = 0; i < 200; i++) {
        Case t = case_windows(MD_BAND_ROW_STEP0, -1);
        const md_tile_shape *s = &t.shape;
        const int64_t line = s->a_k0 / t.by[1];
        if (i % 4 == 0) {
            t.band = MD_BAND_NONE;
            t.plan = md_tile_plan(t.shape, t.elem);
        }
        case_fill(&t);
        set_border(&t, line, s->a_b2 / line, 0);
        memcpy(t.want, t.c, (size_t)t.c_size * sizeof *t.c);
        case_want(&t);
        case_check(&t);
        md_tile_shape made = *s;
        made.flags |= MD_TILE_MADE;
        t.plan = md_tile_plan(made, t.elem);
        case_band(&t);
        const int64_t nr = md_tile_cut_rows(&t.plan, MD_LANES_F32, MD_VBYTES, MD_TILE_MANY).nr;
        const int taken = !md_tile_makes_x(&t.plan) || (t.plan.is & MD_TILE_TAKEN);
        const int joins = md_tile_joins(&t.plan, nr, taken, md_tile_lone(&t.plan));
        joined += joins;
        bordered += joins && t.plan.band == MD_BAND_ROW_STEP0;
        several += joins && t.plan.cols.n > nr;
        case_free(&t);
    }
    printf("seed 75: %d joined, %d with a border, %d of several panels\n", joined, bordered,
           several);
    assert_true(MD_TILE_GROUP != 1024 || (joined > 40 && bordered > 20 && several > 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_terms), cmocka_unit_test(test_results),
                                       cmocka_unit_test(test_unread),
                                       cmocka_unit_test(test_borders),
                                       cmocka_unit_test(test_joined)};
    return cmocka_run_group_tests_name("runtime tile band", tests, NULL, NULL);
}
