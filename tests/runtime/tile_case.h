/* tile_case: one product of runtime/tile_kernel.h, run and held against plain loops in double, for
 * test_tile.c.
 *
 * Gives a Case with its operands, case_fill, case_check (every value, canaries around C and the
 * workspace, the same bits for any number of workers, operands that are made in lanes) and
 * case_free. */
#ifndef TILE_CASE_H
#define TILE_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/half.h"
#include "runtime/tile_half.h"
#include "runtime/tile_kernel.h"
#ifndef TEST_F32_ONLY
#define MD_TILE_REAL 64
#include "runtime/tile_kernel.h"
#endif
#include "runtime/tile_plan.h"

static uint64_t seed = 1;

static int64_t draw(int64_t from, int64_t to) { /* inclusive */
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return from + (int64_t)((seed >> 33) % (uint64_t)(to - from + 1));
}

/* Small multiples of 1/8, so that short sums are exact in any order. */
static double value(void) {
    return (double)draw(-16, 16) / 8.0;
}

/* One product, the same code for both types: arrays are kept as double and converted. */
typedef struct {
    md_tile_shape shape;
    md_tile plan;
    int elem;
    double *a, *b;                                          /* a_size, b_size elements */
    double *c;                                              /* before */
    double *want;                                           /* after, without the epilogue */
    double *bound;                                          /* sum of |a b|, for the tolerance */
    int64_t a_size, b_size, c_size, a_zero, b_zero, c_zero; /* element index of (0, ..., 0) */
    unsigned char *seen;                                    /* by the epilogue, [batch][m][n] */
    double *taken;                                          /* values that the epilogue saw */
    int scale;                                              /* the epilogue doubles the strip */
    int64_t band, from, until; /* what the plan is told to count, of rows, columns and the sum; */
    int64_t by[2];             /* beside a border: what a place and a step go on by */
    /* Made once for all runs: where each element of the product lies in C, [batch][m][n], and the
     * operands and C as the product takes them (case_image); case_want drops the latter. */
    int64_t *place;
    void *a_image, *b_image, *c_image;
} Case;

/* Tells the plan what counts. */
static void case_band(Case *t) {
    if (t->band >= MD_BAND_ROW_STEP0) {
        (void)md_tile_set_border(&t->plan, t->band, t->by, t->from, t->until);
    } else {
        md_tile_set_band(&t->plan, t->band, t->from, t->until);
    }
}

/* ---- part functions -------------------------------------------------------------------------- */

/* A worker that is stopped somewhere while the next one goes on: where all help, that one does what
 * is left of all shares, and may be stopped as well. */
static struct {
    const md_tile_call *call; /* NULL: nobody is stopped */
    md_tile_part_fn fn;
    int next;      /* the worker that goes on */
    int64_t after; /* so many elements */
} stop;

static void stop_one(void) {
    if (stop.call != NULL && stop.next < stop.call->parts && stop.after-- == 0) {
        stop.after = draw(0, 300);
        stop.fn(stop.call, stop.next++);
    }
}

static void look(Case *t, int64_t batch, int64_t m, int64_t n, double x) {
    int64_t rows = t->shape.m1 * t->shape.m2;
    if (t->shape.flags & MD_TILE_ACROSS) {
        int64_t column = m;
        m = n;
        n = column;
    }
    if (!(batch >= 0 && batch < t->shape.b1 * t->shape.b2 && m >= 0 && m < rows && n >= 0 &&
          n < t->shape.n)) {
        fail_msg("an element that is none: batch %lld, row %lld, column %lld", (long long)batch,
                 (long long)m, (long long)n);
    }
    int64_t at = (batch * rows + m) * t->shape.n + n;
    t->seen[at]++;
    t->taken[at] = x;
    stop_one();
}

/* What the text of an epilogue takes for granted. */
static void look_columns(const Case *t, int64_t n0, int64_t cols) {
    const int64_t all = md_tile_columns(&t->plan);
    if (all > 0 && (n0 != 0 || cols != all)) {
        fail_msg("columns %lld and %lld more, not all %lld", (long long)n0, (long long)cols,
                 (long long)all);
    }
}

static void epi_f32(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                    float *strip, int64_t ld) {
    Case *t = (Case *)ctx;
    look_columns(t, n0, cols);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < cols; j++) {
            look(t, batch, m0 + r, n0 + j, (double)strip[r * ld + j]);
            strip[r * ld + j] *= t->scale ? 2.0f : 1.0f;
        }
    }
}

static void part_f32(const md_tile_call *call, int part) {
    const md_tile *s = &((const Case *)call->ctx)->plan;
    if (s->is & MD_TILE_BATCHED) {
        md_tile_batched_of_f32(s, call, part, epi_f32, md_tile_block_f32, NULL);
    } else if (s->is & MD_TILE_WINOGRAD_SUM) {
        md_tile_winograd_sum_of_f32(s, call, part, epi_f32, md_tile_winograd_f32, NULL);
    } else if (s->is & MD_TILE_WINOGRAD) {
        md_tile_winograd_of_f32(s, call, part, epi_f32, md_tile_winograd_f32, NULL);
    } else {
        md_tile_part_f32(s, call, part, epi_f32);
    }
}

/* A comes batch element by batch element from a function; the call knows nothing of it. Of 16 bits
 * it is made in lanes. */
static const void *copied_from;
static int made_x, made_y; /* how often that was which operand of the plan */
static const void *copy_of(void *ctx, int64_t batch, int part) {
    const md_tile *s = &((const Case *)ctx)->plan;
    const int swapped = (s->is & MD_TILE_SWAPPED) != 0;
    const int bytes = (s->is & MD_TILE_HALF) && !md_tile_lone(s) ? 2 : 4;
    (void)part;
    return (const char *)copied_from + (batch / s->b2.n * (swapped ? s->b1.y : s->b1.x) +
                                        batch % s->b2.n * (swapped ? s->b2.y : s->b2.x)) *
                                           bytes;
}
static void part_copied(const md_tile_call *call, int part) {
    const md_tile *s = &((const Case *)call->ctx)->plan;
    md_tile_call own = *call;
    own.a = own.b;
    copied_from = call->a;
    if (s->is & MD_TILE_WINOGRAD) {
        md_tile_winograd_of_f32(s, &own, part, epi_f32, md_tile_winograd_f32, copy_of);
    } else {
        md_tile_part_copied_f32(s, &own, part, epi_f32, copy_of);
    }
}

static void part_half(const md_tile_call *call, int part) {
    const md_tile *s = &((const Case *)call->ctx)->plan;
    md_tile_share_f32(s, call, part, epi_f32, md_tile_block_half, s->is & MD_TILE_WIDE_A ? 4 : 2,
                      s->is & MD_TILE_WIDE_B ? 4 : 2, s->is & MD_TILE_MADE ? copy_of : NULL);
}

/* As products of a program that are large have it: one loop over tasks, and a block that knows what
 * follows from its plan. */
static void block_f32(const md_tile *s, const void *x, const void *y, int64_t t0, int64_t t1,
                      int64_t p0, int64_t p1, int64_t q0, int64_t q1, float *strip, int64_t ld,
                      float *panels, int add, int room, int again, void *ask) {
    md_tile_known(s, &q0, &q1, &add, &room, &ask);
    md_tile_block_f32(s, x, y, t0, t1, p0, p1, q0, q1, strip, ld, panels, add, room, again, ask);
}
static void block_winograd(const md_tile *s, const void *x, const void *y, int64_t t0, int64_t t1,
                           int64_t p0, int64_t p1, int64_t q0, int64_t q1, float *strip, int64_t ld,
                           float *panels, int add, int room, int again, void *ask) {
    md_tile_known(s, &q0, &q1, &add, &room, &ask);
    md_tile_winograd_f32(s, x, y, t0, t1, p0, p1, q0, q1, strip, ld, panels, add, room, again, ask);
}
static void block_half(const md_tile *s, const void *x, const void *y, int64_t t0, int64_t t1,
                       int64_t p0, int64_t p1, int64_t q0, int64_t q1, float *strip, int64_t ld,
                       float *panels, int add, int room, int again, void *ask) {
    md_tile_known(s, &q0, &q1, &add, &room, &ask);
    md_tile_block_half(s, x, y, t0, t1, p0, p1, q0, q1, strip, ld, panels, add, room, again, ask);
}
static void part_large(const md_tile_call *call, int part) {
    const md_tile *s = &((const Case *)call->ctx)->plan;
    if (s->is & MD_TILE_BATCHED) {
        md_tile_batched_of_f32(s, call, part, epi_f32, block_f32, NULL);
    } else if (s->is & MD_TILE_WINOGRAD_SUM) {
        md_tile_winograd_sum_of_f32(s, call, part, epi_f32, block_winograd, NULL);
    } else if (s->is & MD_TILE_WINOGRAD) {
        md_tile_winograd_of_f32(s, call, part, epi_f32, block_winograd, NULL);
    } else {
        md_tile_share_of_f32(s, call, part, epi_f32, s->is & MD_TILE_HALF ? block_half : block_f32,
                             s->is & MD_TILE_MADE ? copy_of : NULL);
    }
}

#ifndef TEST_F32_ONLY
static void epi_f64(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                    double *strip, int64_t ld) {
    Case *t = (Case *)ctx;
    look_columns(t, n0, cols);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < cols; j++) {
            look(t, batch, m0 + r, n0 + j, strip[r * ld + j]);
            strip[r * ld + j] *= t->scale ? 2.0 : 1.0;
        }
    }
}

static void part_f64(const md_tile_call *call, int part) {
    const md_tile *s = &((const Case *)call->ctx)->plan;
    if (s->is & MD_TILE_BATCHED) {
        md_tile_batched_of_f64(s, call, part, epi_f64, md_tile_block_f64, NULL);
    } else if (s->is & MD_TILE_WINOGRAD_SUM) {
        md_tile_winograd_sum_of_f64(s, call, part, epi_f64, md_tile_winograd_f64, NULL);
    } else if (s->is & MD_TILE_WINOGRAD) {
        md_tile_winograd_of_f64(s, call, part, epi_f64, md_tile_winograd_f64, NULL);
    } else {
        md_tile_part_f64(s, call, part, epi_f64);
    }
}
enum { ELEM_MAX = 8 };
#else
#define part_f64 part_f32
enum { ELEM_MAX = 4 };
#endif

/* ---- cases ----------------------------------------------------------------------------------- */

/* Random strides for the axes that matter: axes are laid out in random order with random gaps;
 * `broadcast` allows stride 0, reversed axes get negative strides. Gives the size and the place of
 * index zero. */
static inline void lay_out(int64_t *const *stride, const int64_t *extent, int n, int broadcast,
                    int64_t *size, int64_t *zero) {
    int order[8];
    for (int i = 0; i < n; i++) {
        order[i] = i;
    }
    for (int i = n - 1; i > 0; i--) {
        int j = (int)draw(0, i);
        int o = order[i];
        order[i] = order[j];
        order[j] = o;
    }
    int64_t step = draw(0, 9) == 0 ? 2 : 1;
    *zero = 0;
    for (int i = 0; i < n; i++) {
        int axis = order[i];
        *stride[axis] = step;
        if (broadcast && draw(0, 15) == 0) {
            *stride[axis] = 0;
            continue;
        }
        if (draw(0, 15) == 0) {
            *zero += step * (extent[axis] - 1);
            *stride[axis] = -step;
        }
        step *= extent[axis];
        step += draw(0, 5) == 0 ? draw(1, 3) : 0;
    }
    *size = step;
}

static double *doubles(int64_t n) {
    double *p = (double *)calloc((size_t)(n > 0 ? n : 1), sizeof *p);
    assert_non_null(p);
    return p;
}

static int64_t index3(int64_t batch, const md_tile_shape *s, int64_t s1, int64_t s2) {
    return batch / s->b2 * s1 + batch % s->b2 * s2;
}

/* What must come out; a factor that is NaN stands beside zeros, which are left out. */
static void case_want(Case *t);

/* Where each element of the product lies in C. */
static int64_t *case_places(const Case *t) {
    const md_tile_shape *s = &t->shape;
    const int64_t batches = s->b1 * s->b2;
    int64_t *place = (int64_t *)malloc((size_t)(batches * s->m1 * s->m2 * s->n) * sizeof *place);
    assert_non_null(place);
    int64_t i = 0;
    for (int64_t batch = 0; batch < batches; batch++) {
        for (int64_t m = 0; m < s->m1 * s->m2; m++) {
            const int64_t row = t->c_zero + index3(batch, s, s->c_b1, s->c_b2) +
                                m / s->m2 * s->c_m1 + m % s->m2 * s->c_m2;
            for (int64_t n = 0; n < s->n; n++) {
                place[i++] = row + n * s->c_n;
            }
        }
    }
    return place;
}

/* Fills the operands and computes what must come out. */
static void case_fill(Case *t) {
    md_tile_shape *s = &t->shape;
    int64_t rows = s->m1 * s->m2;
    int64_t batches = s->b1 * s->b2;
    t->a = doubles(t->a_size);
    t->b = doubles(t->b_size);
    t->c = doubles(t->c_size);
    t->want = doubles(t->c_size);
    t->bound = doubles(t->c_size);
    t->seen = (unsigned char *)calloc((size_t)(batches * rows * s->n), 1);
    t->taken = doubles(batches * rows * s->n);
    assert_non_null(t->seen);
    t->place = case_places(t);
    for (int64_t i = 0; i < t->a_size; i++) {
        t->a[i] = value();
    }
    for (int64_t i = 0; i < t->b_size; i++) {
        t->b[i] = value();
    }
    const int fine = (s->flags & MD_TILE_EXACT) != 0; /* what 16 bits do not hold */
    for (int64_t i = 0; i < t->a_size && fine && (s->flags & MD_TILE_WIDE_A); i++) {
        t->a[i] = (double)(float)(t->a[i] * (1 + 1.0 / 3));
    }
    for (int64_t i = 0; i < t->b_size && fine && (s->flags & MD_TILE_WIDE_B); i++) {
        t->b[i] = (double)(float)(t->b[i] * (1 + 1.0 / 3));
    }
    for (int64_t i = 0; i < t->c_size; i++) {
        t->c[i] = value();
        t->want[i] = t->c[i];
    }
    case_want(t);
}

static void case_drop_images(Case *t) {
    free(t->a_image);
    free(t->b_image);
    free(t->c_image);
    t->a_image = t->b_image = t->c_image = NULL;
}

static int any_nan(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    return isnan(sum);
}

/* The terms of a row of A or a column of B, one after the other, of strides along the sum. */
static void take_terms(double *to, const double *from, const md_tile_shape *s, int64_t so,
                       int64_t s0, int64_t s1, int64_t s2) {
    for (int64_t o = 0; o < s->ko; o++) {
        for (int64_t k0 = 0; k0 < s->k0; k0++) {
            for (int64_t k1 = 0; k1 < s->k1; k1++) {
                const double *x = from + o * so + k0 * s0 + k1 * s1;
                for (int64_t k2 = 0; k2 < s->k2; k2++) {
                    *to++ = x[k2 * s2];
                }
            }
        }
    }
}

/* Adds the n products of two lists and their sizes; four sums each, which do not wait for each
 * other. A NaN counts as zero where there may be some. */
static void add_products(double *sum, double *size, const double *a, const double *b, int64_t n,
                         int nan) {
    double s[4] = {0, 0, 0, 0}, z[4] = {0, 0, 0, 0};
    int64_t k = 0;
    for (; k + 4 <= n && !nan; k += 4) {
        const double x0 = a[k] * b[k], x1 = a[k + 1] * b[k + 1];
        const double x2 = a[k + 2] * b[k + 2], x3 = a[k + 3] * b[k + 3];
        s[0] += x0, s[1] += x1, s[2] += x2, s[3] += x3;
        z[0] += fabs(x0), z[1] += fabs(x1), z[2] += fabs(x2), z[3] += fabs(x3);
    }
    for (; k < n; k++) {
        double x = a[k] * b[k];
        x = isnan(x) ? 0 : x;
        s[0] += x;
        z[0] += fabs(x);
    }
    *sum += (s[0] + s[1]) + (s[2] + s[3]);
    *size += (z[0] + z[1]) + (z[2] + z[3]);
}

static void case_want(Case *t) {
    const md_tile_shape *s = &t->shape;
    const int64_t rows = s->m1 * s->m2, batches = s->b1 * s->b2;
    const int64_t terms = s->ko * s->k0 * s->k1 * s->k2;
    const int nan = any_nan(t->a, t->a_size) || any_nan(t->b, t->b_size);
    double *row = doubles(terms), *columns = doubles(terms * s->n);
    case_drop_images(t);
    const int64_t *place = t->place;
    for (int64_t batch = 0; batch < batches; batch++) {
        const double *b = t->b + t->b_zero + index3(batch, s, s->b_b1, s->b_b2);
        for (int64_t n = 0; n < s->n; n++) {
            take_terms(columns + n * terms, b + n * s->b_n, s, s->b_ko, s->b_k0, s->b_k1, s->b_k2);
        }
        for (int64_t m = 0; m < rows; m++) {
            const double *a = t->a + t->a_zero + index3(batch, s, s->a_b1, s->a_b2) +
                              m / s->m2 * s->a_m1 + m % s->m2 * s->a_m2;
            take_terms(row, a, s, s->a_ko, s->a_k0, s->a_k1, s->a_k2);
            for (int64_t n = 0; n < s->n; n++, place++) {
                double sum = (s->flags & MD_TILE_ADD) != 0 ? t->c[*place] : 0.0;
                double size = fabs(sum);
                add_products(&sum, &size, row, columns + n * terms, terms, nan);
                t->want[*place] = sum;
                t->bound[*place] = size;
            }
        }
    }
    free(row);
    free(columns);
}

static void case_free(Case *t) {
    free(t->a);
    free(t->b);
    free(t->c);
    free(t->want);
    free(t->bound);
    free(t->seen);
    free(t->taken);
    free(t->place);
    case_drop_images(t);
}

/* As md_tile_run, with a given number of workers, one after another; where `helped`, of so many
 * units each, each of which may be stopped in the middle while the others go on. */
static void run_parts(const md_tile *p, md_tile_part_fn fn, const void *a, const void *b, void *c,
                      void *ctx, void *work, int parts, int helped) {
    md_tile_call call = {a, b, c, ctx, work, 1, 1, parts, 0, NULL};
    md_help help;
    if (parts > 1) {
        md_tile_grid(p, &call);
    }
    assert_true(call.parts >= 1 && call.parts <= parts);
    const int rounds = p->chunks > 1 || (p->is & MD_TILE_WINOGRAD) ? 2 : 1;
    for (call.sum = 0; call.sum < rounds; call.sum++) {
        call.help = helped ? md_help_open(&help, call.parts, helped) : NULL;
        stop.fn = fn;
        stop.after = draw(0, 300);
        stop.call = helped ? &call : NULL;
        for (stop.next = 0; stop.next < call.parts;) {
            fn(&call, stop.next++);
        }
        for (int part = 0; helped && part < call.parts; part++) {
            assert_true(help.begun[part] % 65536 + help.begun[part] / 65536 >= (uint32_t)helped);
        }
    }
    stop.call = NULL;
}

enum { CANARY = 64 };

static void put(void *p, int elem, int64_t i, double x) {
    if (elem == 4) {
        ((float *)p)[i] = (float)x;
    } else {
        ((double *)p)[i] = x;
    }
}

/* An element of an operand; all values are such that 16 bits of both kinds hold them. */
static void put_operand(const Case *t, int wide, void *p, int64_t i, double x) {
    if ((t->shape.flags & MD_TILE_HALF) && !(t->shape.flags & wide)) {
        const int f16 = (t->shape.flags & MD_TILE_F16) != 0;
        ((uint16_t *)p)[i] = f16 ? md_to_f16((float)x) : md_to_bf16((float)x);
    } else {
        put(p, t->elem, i, x);
    }
}

static double get(const void *p, int elem, int64_t i) {
    return elem == 4 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

/* The operands and C as the product takes them, of the widths that the case's flags tell. */
static void case_image(Case *t) {
    if (t->a_image != NULL) {
        return;
    }
    const size_t elem = (size_t)t->elem;
    t->a_image = malloc((size_t)(t->a_size + 1) * elem);
    t->b_image = malloc((size_t)(t->b_size + 1) * elem);
    t->c_image = malloc((size_t)(t->c_size + 1) * elem);
    assert_true(t->a_image != NULL && t->b_image != NULL && t->c_image != NULL);
    for (int64_t i = 0; i < t->a_size; i++) {
        put_operand(t, MD_TILE_WIDE_A, t->a_image, i, t->a[i]);
    }
    for (int64_t i = 0; i < t->b_size; i++) {
        put_operand(t, MD_TILE_WIDE_B, t->b_image, i, t->b[i]);
    }
    for (int64_t i = 0; i < t->c_size; i++) {
        put(t->c_image, t->elem, i, t->c[i]);
    }
}

/* Elements of an image, with room for one more behind them. */
static void *copied(const void *image, int64_t n, size_t elem) {
    void *p = malloc((size_t)(n + 1) * elem);
    assert_non_null(p);
    memcpy(p, image, (size_t)n * elem);
    return p;
}

/* Is C, or would be, what the product and its epilogue make of the operands? Puts the elements of C
 * as before and gives the first element that is wrong, or -1. */
static int64_t case_wrong(const Case *t, void *c, int stored) {
    const md_tile_shape *s = &t->shape;
    const int64_t count = s->b1 * s->b2 * s->m1 * s->m2 * s->n, rows = s->m1 * s->m2;
    const double eps = t->elem == 4 ? 3e-7 : 1e-15, scale = t->scale ? 2.0 : 1.0;
    int64_t m = 0, n = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t pc = t->place[i], ahead = n - m;
        const int wanted = t->band != MD_BAND_ROW_COLUMN || (ahead >= t->from && ahead < t->until);
        const int64_t beyond = ahead < t->from ? t->from - ahead : ahead - t->until;
        const int left = (t->plan.is & (MD_TILE_AHEAD_UNREAD | MD_TILE_BEHIND_UNREAD)) &&
                         beyond >= MD_TILE_UNREAD && t->taken[i] == t->c[pc];
        if (t->seen[i] != 1 || !(fabs(t->taken[i] - t->want[pc]) <= eps * t->bound[pc] ||
                                 (!wanted && (t->taken[i] == 0 || left)))) {
            return i;
        }
        if (stored) {
            if (!(get(c, t->elem, pc) == scale * t->taken[i])) {
                return i;
            }
            put(c, t->elem, pc, t->c[pc]); /* what is left must be as before */
        }
        if (++n == s->n) {
            n = 0;
            m = m + 1 == rows ? 0 : m + 1;
        }
    }
    return -1;
}

/* Asks a function of cmocka, which looks at each byte, only where there is something to show. */
static void assert_same_bytes(const unsigned char *one, const unsigned char *other, size_t bytes) {
    if (memcmp(one, other, bytes) != 0) {
        assert_memory_equal(one, other, bytes);
    }
}

/* Runs a filled case with `parts` workers (0: md_tile_run with three threads) and checks all of it.
 * Gives the bytes of C. */
static unsigned char *case_run(Case *t, md_tile_part_fn fn, int parts, int helped) {
    const size_t elem = (size_t)t->elem;
    case_image(t);
    void *a = copied(t->a_image, t->a_size, elem);
    void *b = copied(t->b_image, t->b_size, elem);
    unsigned char *c = (unsigned char *)copied(t->c_image, t->c_size, elem);
    size_t bytes = md_tile_workspace(&t->plan, parts == 0 ? 3 : parts);
    unsigned char *memory = (unsigned char *)malloc(bytes + 2 * CANARY + 64);
    assert_non_null(memory);
    unsigned char *work = memory + CANARY;
    work += (64 - (uintptr_t)work % 64) % 64;
    memset(memory, 0xA5, bytes + 2 * CANARY + 64); /* also poisons the workspace with odd numbers */
    memset(work, 0xFF, bytes);                     /* NaN */
    const md_tile_shape *s = &t->shape;
    int64_t count = s->b1 * s->b2 * s->m1 * s->m2 * s->n;
    memset(t->seen, 0, (size_t)count);
    int stored = (s->flags & MD_TILE_NO_C) == 0;
    const int half = (t->shape.flags & MD_TILE_HALF) != 0;
    const int a_bytes = half && !(t->shape.flags & MD_TILE_WIDE_A) ? 2 : t->elem;
    const int b_bytes = half && !(t->shape.flags & MD_TILE_WIDE_B) ? 2 : t->elem;
    const void *a0 = (const char *)a + t->a_zero * a_bytes;
    const void *b0 = (const char *)b + t->b_zero * b_bytes;
    void *c0 = stored ? c + t->c_zero * t->elem : NULL;
    md_winograd_work works = {work + t->plan.partial * t->elem, work};
    void *given = t->plan.is & MD_TILE_WINOGRAD ? (void *)&works : work;
    if (parts == 0) {
        md_tile_run(&t->plan, fn, a0, b0, c0, t, given, NULL, 3);
    } else {
        run_parts(&t->plan, fn, a0, b0, c0, t, given, parts, helped);
    }
    unsigned char canary[CANARY];
    memset(canary, 0xA5, sizeof canary);
    assert_memory_equal(work - CANARY, canary, sizeof canary);
    assert_memory_equal(work + bytes, canary, sizeof canary);
    const int64_t wrong = case_wrong(t, c, stored);
    if (wrong >= 0) {
        fail_msg("element %lld: seen %d times, %.17g, wanted %.17g", (long long)wrong,
                 t->seen[wrong], t->taken[wrong], t->want[t->place[wrong]]);
    }
    assert_same_bytes(c, (unsigned char *)t->c_image, (size_t)t->c_size * elem);
    for (int64_t i = 0; i < count; i++) {
        put(c, t->elem, i < t->c_size ? i : 0, t->taken[i]);
    }
    free(a);
    free(b);
    free(memory);
    return c;
}

/* All numbers of workers give the same bits. */
static void case_check(Case *t) {
    const int half = (t->shape.flags & MD_TILE_HALF) != 0;
    md_tile_part_fn fn = half ? part_half : t->elem == 4 ? part_f32 : part_f64;
    size_t bytes = (size_t)(t->c_size * t->elem);
    unsigned char *first = case_run(t, fn, 1, 0);
    static const int workers[] = {2, 3, 7, 0, 2, 3};
    for (int i = 0; i < 6; i++) {
        unsigned char *next = case_run(t, fn, workers[i], i > 3 ? (int)draw(1, 9) : 0);
        assert_same_bytes(first, next, bytes);
        free(next);
    }
    /* Who packs a panel once for all of the batch has all of A. */
    const int copies =
        fn == part_f32 && !(t->plan.is & (MD_TILE_BATCHED | MD_TILE_WINOGRAD_SUM));
    for (int parts = 1; parts <= 3 && copies; parts += 2) {
        unsigned char *next = case_run(t, part_copied, parts, parts == 3 ? 4 : 0);
        assert_same_bytes(first, next, bytes);
        free(next);
    }
    for (int parts = 1; parts <= 3 && t->elem == 4; parts += 2) {
        unsigned char *next = case_run(t, part_large, parts, parts == 3 ? 4 : 0);
        assert_same_bytes(first, next, bytes);
        free(next);
    }
    free(first);
    /* Of 16 bits A may be made in lanes. */
    if (half && !(t->shape.flags & (MD_TILE_WIDE_A | MD_TILE_EXACT))) {
        const md_tile plan = t->plan;
        t->shape.flags |= MD_TILE_MADE;
        t->plan = md_tile_plan(t->shape, t->elem);
        case_band(t);
        const int pairs = !md_tile_lone(&t->plan);
        float *lanes = calloc((size_t)t->a_size + 1, sizeof *lanes); /* pairs are read at an end */
        for (int64_t at = 0; at < t->a_size; at++) {
            put_operand(t, pairs ? 0 : MD_TILE_HALF, lanes, at, t->a[at]);
        }
        copied_from = (const char *)lanes + t->a_zero * (pairs ? 2 : 4);
        made_x += md_tile_makes_x(&t->plan);
        made_y += !md_tile_makes_x(&t->plan);
        first = case_run(t, fn, 1, 0);
        for (int large = 0; large < 2; large++) {
            unsigned char *next = case_run(t, large ? part_large : fn, 3, (int)draw(0, 5));
            assert_same_bytes(first, next, bytes);
            free(next);
        }
        free(first);
        free(lanes);
        t->shape.flags &= ~MD_TILE_MADE;
        t->plan = plan;
    }
}

#endif
