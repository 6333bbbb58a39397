/* test_streams: what products with MD_TILE_STREAMS ask for while they multiply. Checked: every line
 * of the streams has been asked for before the epilogue gets its element, for any number of
 * workers; blocks are other ones than without streams, bits are not; plans keep the flag where
 * there is something to hide them behind; where tiles end by themselves, all but the first of a
 * block find what later ones asked for. And what products of 16 bits ask for of an operand that
 * comes from memory: all of it but what a worker begins with, and nothing else. The same of panels
 * of floats, and of rows side by side whose sum has several blocks (tile_early.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

/* What is asked for, to be read or written, in place of the instruction. */
void note_fetch(uintptr_t at, int written);
#define MD_FETCH(at) note_fetch(at, 0)
#define MD_FETCH_FOR(at, written) note_fetch(at, (written) != 0)

#include "runtime/tile_columns.h"
#include "runtime/tile_half.h"
#include "runtime/tile_plan.h"

#include "compiler/base.h"
#include "tests/support.h"

enum { STREAMS = 2, STREAM = 1 << 22, LINE = 64 };
/* In no memory. */
static const uintptr_t stream_at[STREAMS] = {(uintptr_t)1 << 24, (uintptr_t)1 << 26};
static unsigned char fetched[STREAMS][STREAM / LINE];

/* An operand in memory, and its lines. */
static uintptr_t far_at;
static int64_t far_lines, far_outside;
static unsigned char *far_asked;

void note_fetch(uintptr_t at, int written) {
    if (far_asked != NULL) {
        const int64_t line = (int64_t)(at / LINE) - (int64_t)(far_at / LINE);
        if (line >= 0 && line < far_lines) {
            far_asked[line] = 1;
        } else if (line != far_lines) { /* of a last run that begins within a line */
            far_outside++;
        }
        return;
    }
    for (int i = 0; i < STREAMS; i++) {
        if (at >= stream_at[i] && at < stream_at[i] + STREAM) {
            fetched[i][(at - stream_at[i]) / LINE] = (unsigned char)(1 + written);
        }
    }
}

typedef struct {
    md_tile_stream stream[STREAMS + 1]; /* first: where products look for it */
    md_tile plan;
    int64_t m, n;
    float *seen;     /* by the epilogue, [batch][m][n] */
    int64_t unasked; /* elements of streams that came too early: of tiles that end by themselves */
} Context;

static void epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                     float *strip, int64_t ld) {
    Context *t = (Context *)ctx;
    if (t->plan.is & MD_TILE_ENDS) { /* what its text takes for a constant */
        assert_int_equal(md_tile_ends_columns(t->n, t->plan.wide, cols), cols);
        assert_int_equal(md_tile_columns(&t->plan), 0);
    }
    for (int64_t m = m0; m < m0 + rows; m++) {
        for (int64_t n = n0; n < n0 + cols; n++) {
            t->seen[(batch * t->m + m) * t->n + n] = strip[(m - m0) * ld + n - n0];
            for (int i = 0; i < STREAMS && MD_VBYTES > 0 && t->stream[0].at != NULL; i++) {
                const md_tile_stream *s = &t->stream[i];
                const int64_t byte = batch * s->batch + m * s->row + n * s->elem;
                assert_true(byte >= 0 && byte < STREAM);
                const int asked = fetched[i][byte / LINE];
                if ((t->plan.is & MD_TILE_ENDS) && asked == 0) {
                    t->unasked++;
                    continue;
                }
                assert_int_equal(asked, 1 + s->written);
            }
        }
    }
}

static void part(const md_tile_call *call, int of) {
    const md_tile *s = &((const Context *)call->ctx)->plan;
    if (s->is & MD_TILE_HALF) {
        md_tile_share_f32(s, call, of, epilogue, md_tile_block_half, 2, 2, NULL);
    } else {
        md_tile_part_f32(s, call, of, epilogue);
    }
}

/* A^T B, or with `along` A B^T, all dense. */
static md_tile plan_of(int along, int64_t batch, int64_t m, int64_t n, int64_t k,
                       int64_t flags) {
    const md_tile_shape s = {.b1 = 1, .b2 = batch, .m1 = 1, .m2 = m, .n = n, .k0 = 1, .k1 = 1,
                             .k2 = k, .a_b2 = m * k, .a_m2 = along ? k : 1,
                             .a_k2 = along ? 1 : m, .b_b2 = n * k, .b_k2 = along ? 1 : n,
                             .b_n = along ? k : 1, .c_b2 = m * n, .c_m2 = n, .c_n = 1, .ko = 1,
                             .flags = flags};
    return md_tile_plan(md_tile_normal(s), 4);
}

static float *floats(int64_t n) {
    float *p = (float *)calloc((size_t)n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* Worker by worker. */
static void run(Context *t, const void *a, const void *b, float *c, int parts) {
    const size_t bytes = md_tile_workspace(&t->plan, parts);
    void *memory = malloc(bytes + 64);
    assert_non_null(memory);
    char *work = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
    md_tile_call call = {a, b, c, t, work, 1, 1, parts, 0, NULL};
    if (parts > 1) {
        md_tile_grid(&t->plan, &call);
    }
    for (int i = 0; i < call.parts; i++) {
        part(&call, i);
    }
    free(memory);
}

static int turned, ended; /* plans whose strips are transposed, whose tiles end by themselves */

/* The elements of `x`, in their place, as bfloat16: they are few bits wide. */
static void halved(float *x, int64_t n) {
    uint16_t *to = (uint16_t *)(void *)x;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t bits = md_to_bf16(x[i]);
        memcpy(to + i, &bits, sizeof bits);
    }
}

static void check(int along, int64_t batch, int64_t m, int64_t n, int64_t k, int flags) {
    const int64_t count = batch * m * n;
    float *a = floats(batch * m * k), *b = floats(batch * n * k), *c = floats(count);
    Context t = {.plan = plan_of(along, batch, m, n, k, flags), .m = m, .n = n,
                 .seen = floats(count)};
    const int64_t asked = flags | MD_TILE_STREAMS | (flags & MD_TILE_HALF ? MD_TILE_ENDS : 0);
    Context u = {.plan = plan_of(along, batch, m, n, k, asked), .m = m, .n = n,
                 .seen = floats(count)};
    for (int64_t i = 0; i < batch * m * k; i++) {
        a[i] = (float)(i * 7919 % 61 - 30) / 7;
    }
    for (int64_t i = 0; i < batch * n * k; i++) {
        b[i] = (float)(i * 104729 % 53 - 26) / 9;
    }
    const int half = (flags & MD_TILE_HALF) != 0, ends = (u.plan.is & MD_TILE_ENDS) != 0;
    if (half) {
        halved(a, batch * m * k);
        halved(b, batch * n * k);
    }
#ifndef MDLC_ODD_SIZES
    assert_true(u.plan.is & MD_TILE_STREAMS);
    assert_true((u.plan.is & MD_TILE_IN_PLACE) || u.plan.kb2 < k || half ||
                u.plan.block_rows <= MD_TILE_BLOCK_FAR);
    assert_true(!half || ends == (m > MD_TILE_BLOCK_HIGH && u.plan.kb2 == k &&
                                  !(u.plan.is & MD_TILE_SWAPPED)));
#endif
    turned += md_tile_turns(&u.plan);
    ended += ends;
    run(&t, a, b, c, 1);
    for (int parts = 1; parts < 4; parts++) {
        const int64_t pitch = (n + 15) / 16 * LINE;
        memset(fetched, 0, sizeof fetched);
        u.stream[0] = (md_tile_stream){(const void *)stream_at[0], m * pitch, pitch, 4, 0};
        u.stream[1] = (md_tile_stream){(const void *)stream_at[1], m * pitch / 2, pitch / 2, 2, 1};
#ifdef MDLC_ODD_SIZES /* sums are so short that rows are left out */
        u.stream[0].at = NULL;
#endif
        memset(u.seen, 0, (size_t)count * sizeof *u.seen);
        u.unasked = 0;
        run(&u, a, b, c, parts);
        /* The first tiles of each of a worker's blocks of rows. */
        const int64_t blocks = ends ? batch * ((m + u.plan.block_rows - 1) / u.plan.block_rows) : 0;
        assert_true(u.unasked <= STREAMS * (blocks + parts) * MD_TILE_ENDS_AHEAD * MD_TILE_HIGH1 *
                                     md_tile_min(n, u.plan.wide * 16));
        assert_memory_equal(t.seen, u.seen, (size_t)count * sizeof *t.seen);
    }
    free(a);
    free(b);
    free(c);
    free(t.seen);
    free(u.seen);
}

static void test_fetched(void **state) {
    (void)state;
    static const int64_t size[][4] = {{1, 300, 200, 64},  {1, 130, 47, 256},   {1, 96, 512, 900},
                                      {1, 14, 16, 100},   {1, 57, 300, 2000},  {1, 500, 100, 70},
                                      {5, 120, 64, 128},  {3, 200, 144, 2100},
                                      {1, 32, 1024, 256}, {1, 20, 333, 300}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        for (int way = 0; way < 4; way++) {
            check(way & 1, size[i][0], size[i][1], size[i][2], size[i][3],
                  way & 2 ? MD_TILE_NO_C : 0);
        }
    }
    assert_true(turned > 5);
}

/* Of 16 bits; blocks of several panels, of rows that no tile divides, tiles fewer than are asked
 * for ahead. */
static void test_ends(void **state) {
    (void)state;
    static const int64_t size[][4] = {{1, 900, 200, 70},  {1, 1000, 96, 256}, {1, 768, 768, 128},
                                      {2, 420, 130, 300}, {1, 390, 48, 64},   {1, 300, 200, 64},
                                      {1, 500, 40, 70},   {1, 60, 50, MD_TILE_K_PART},
                                      {3, 70, 99, MD_TILE_K_PART + 3}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        for (int way = 0; way < 4; way++) {
            check(way & 1, size[i][0], size[i][1], size[i][2], size[i][3],
                  MD_TILE_HALF | (way & 2 ? MD_TILE_NO_C : 0));
        }
    }
    assert_true(ended > 3);
}

/* Short sums, dot products and chunks ask for nothing. */
static void test_refused(void **state) {
    (void)state;
    needs_usual_sizes();
    assert_false(plan_of(0, 1, 300, 200, 63, MD_TILE_STREAMS).is & MD_TILE_STREAMS);
    assert_false(plan_of(1, 1, 3, 300, 256, MD_TILE_STREAMS).is & MD_TILE_STREAMS);
    assert_false(plan_of(0, 1, 64, 64, 8192, MD_TILE_STREAMS).is & MD_TILE_STREAMS);
}

static md_tile far_plan;
static int far_count;
MD_TILE_HALF_PART(far, far_plan, md_tile_none_f32, NULL)

/* B of k x n floats or halves, [k, n] or, `along` the sum, [n, k]. */
static void check_far(int along, int wide, int64_t m, int64_t n, int64_t k) {
    const int64_t bytes = wide ? 4 : 2;
    const md_tile_shape s = {.b1 = 1, .b2 = 1, .m1 = 1, .m2 = m, .n = n, .k0 = 1, .k1 = 1, .k2 = k,
                             .a_m2 = k, .a_k2 = 1, .b_k2 = along ? 1 : n, .b_n = along ? k : 1,
                             .c_m2 = n, .c_n = 1, .ko = 1,
                             .flags = MD_TILE_HALF | (wide ? MD_TILE_WIDE_B : 0)};
    far_plan = md_tile_plan(md_tile_normal(s), 4);
    const int swapped = (far_plan.is & MD_TILE_SWAPPED) != 0;
    assert_true(md_tile_far(&far_plan) == (!swapped && n * k * bytes >= MD_TILE_SHARES));
    far_count += md_tile_far(&far_plan);
    uint16_t *a = (uint16_t *)calloc((size_t)(m * k), sizeof *a);
    float *b = floats(n * k * bytes / 4 + 16), *c = floats(m * n);
    assert_non_null(a);
    far_at = (uintptr_t)b;
    far_lines = (int64_t)((far_at + (uintptr_t)(n * k * bytes) - 1) / LINE - far_at / LINE) + 1;
    for (int parts = 1; parts < 4; parts++) {
        far_asked = (unsigned char *)calloc((size_t)far_lines, 1);
        far_outside = 0;
        void *memory = malloc(md_tile_workspace(&far_plan, parts) + 64);
        assert_true(far_asked != NULL && memory != NULL);
        char *work = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
        md_tile_call call = {a, b, c, NULL, work, 1, 1, parts, 0, NULL};
        if (parts > 1) {
            md_tile_grid(&far_plan, &call);
        }
        for (int i = 0; i < call.parts; i++) {
            far_part(&call, i);
        }
        int64_t left = 0;
        for (int64_t i = 0; i < far_lines; i++) {
            left += far_asked[i] == 0;
        }
        const md_tile_cut u = md_tile_cut_rows(&far_plan, MD_LANES_F32, MD_VBYTES, MD_TILE_MANY);
        const int64_t first = (far_plan.kb2 + 1) * (u.nr * bytes / LINE + 2) * call.parts;
        assert_int_equal(far_outside, 0);
        if (md_tile_far(&far_plan) && MD_VBYTES > 0) {
            assert_true(left <= first && left < far_lines);
        } else {
            assert_int_equal(left, far_lines);
        }
        free(memory);
        free(far_asked);
        far_asked = NULL;
    }
    free(a);
    free(b);
    free(c);
}

/* Columns side by side and along the sum, sums in blocks, columns that fill no panel. */
static void test_far(void **state) {
    (void)state;
    static const int64_t size[][3] = {{176, 512, 1100}, {64, 1024, 700}, {70, 999, 1800},
                                      {64, 300, 300}, {200, 5000, 80}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        for (int way = 0; way < 4; way++) {
            check_far(way & 1, way >> 1, size[i][0], size[i][1], size[i][2]);
        }
    }
    assert_true(far_count > 8);
}

/* Lines of the operand that lies at `of` and that a run of `parts` workers does not ask for. */
static int64_t lines_left(Context *t, const float *of, int64_t count, const float *a,
                          const float *b, float *c, int parts) {
    far_at = (uintptr_t)of;
    far_lines = (int64_t)((far_at + (uintptr_t)count * 4 - 1) / LINE - far_at / LINE) + 1;
    far_asked = (unsigned char *)calloc((size_t)far_lines, 1);
    assert_non_null(far_asked);
    far_outside = 0;
    run(t, a, b, c, parts);
    int64_t left = 0;
    for (int64_t i = 0; i < far_lines; i++) {
        left += far_asked[i] == 0;
    }
    free(far_asked);
    far_asked = NULL;
    return left;
}

/* Panels of B are asked for but the first of each worker, A but the first block of its sum. */
static void check_early(int along, int64_t m, int64_t n, int64_t k, int by_x, int by_y) {
    float *a = floats(m * k + LINE), *b = floats(n * k + LINE), *c = floats(m * n);
    Context t = {.plan = plan_of(along, 1, m, n, k, 0), .m = m, .n = n, .seen = floats(m * n)};
    const md_tile *s = &t.plan;
    const md_tile_cut u = md_tile_cut_rows(s, MD_LANES_F32, MD_VBYTES, MD_TILE_MANY);
    const int64_t x_step = m * 4 / LINE + 2, panel = s->kb2 * u.nr * 4 / LINE;
    const int64_t y_begin = panel + 2 * (along ? u.nr : s->kb2);
#ifndef MDLC_ODD_SIZES
    assert_true(((s->is & MD_TILE_EARLY) != 0) == (by_x || by_y) && s->chunks == 1);
    assert_true(!by_x || md_tile_blocks(s) > 1);
#endif
    for (int parts = 1; parts < 4; parts++) {
        const int64_t x = lines_left(&t, a, m * k, a, b, c, parts), all_x = far_lines;
        const int64_t either = far_outside;
        const int64_t y = lines_left(&t, b, n * k, a, b, c, parts), all_y = far_lines;
        if (MD_VBYTES > 0 && (s->is & MD_TILE_EARLY)) {
            const int asks_x = md_tile_early_x(s) && md_tile_blocks(s) > s->chunks;
            /* Groups of blocks of a long sum each begin anew: small odd sizes have them. */
            const int bound = s->group_at > 0 || x <= s->chunks * s->kb2 * x_step;
            assert_true(asks_x ? bound && x < all_x : x == all_x);
            assert_true(md_tile_early_y(s) ? y <= s->chunks * parts * y_begin && y < all_y
                                           : y == all_y);
            assert_true(asks_x || far_outside == 0);
            assert_true(md_tile_early_y(s) || either == 0);
        } else {
            assert_true(x == all_x && y == all_y && either + far_outside == 0);
        }
    }
    free(a);
    free(b);
    free(c);
    free(t.seen);
}

static void test_early(void **state) {
    (void)state;
    check_early(1, 600, 300, 128, 0, 1);  /* weights [out, in]; columns that fill no panel */
    check_early(1, 900, 70, 1900, 0, 1);  /* sums in blocks */
    check_early(0, 1024, 256, 600, 1, 0); /* packed for each block, 4,096 bytes apart */
    check_early(0, 300, 512, 1700, 1, 0);
    check_early(0, 300, 1024, 1700, 1, 1);
    check_early(0, 300, 200, 700, 0, 0); /* one block */
    check_early(1, 600, 60, 128, 0, 0);  /* panels that a near cache holds */
    check_early(1, 50, 512, 600, 0, 0);  /* few rows */
    check_early(0, 60, 512, 1700, 0, 0); /* an X that one holds */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fetched), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_far),
                                       cmocka_unit_test(test_early)};
    return cmocka_run_group_tests_name("runtime streams", tests, NULL, NULL);
}
