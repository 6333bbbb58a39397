/* test_blas: runtime/blas.h and blas_plan.h. A gemm of plain loops stands in for the library,
 * checks its arguments as one would, and the result is compared with the contraction itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "runtime/blas_plan.h"

#define GEMM(name, real)                                                                           \
    void name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,  \
              const real *b, int ldb, real beta, real *c, int ldc) {                               \
        assert_int_equal(order, 101);                                                              \
        assert_true((ta == 111 || ta == 112) && (tb == 111 || tb == 112));                         \
        assert_true(lda >= (ta == 111 ? k : m) && ldb >= (tb == 111 ? n : k) && ldc >= n);         \
        for (int i = 0; i < m; i++) {                                                              \
            for (int j = 0; j < n; j++) {                                                          \
                real sum = 0;                                                                      \
                for (int l = 0; l < k; l++) {                                                      \
                    sum += (ta == 111 ? a[i * lda + l] : a[l * lda + i]) *                         \
                           (tb == 111 ? b[l * ldb + j] : b[j * ldb + l]);                          \
                }                                                                                  \
                c[i * ldc + j] = alpha * sum + beta * c[i * ldc + j];                              \
            }                                                                                      \
        }                                                                                          \
    }
GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)

enum { SIZE = 6000 };
static float a[SIZE], b[SIZE], c[SIZE];
static double c64[SIZE], a64[SIZE], b64[SIZE];
static int seen[SIZE];

static void epi(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                float *strip, int64_t ld) {
    const md_blas *p = (const md_blas *)ctx;
    assert_int_equal(n0, 0);
    assert_int_equal(cols, p->n);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = 0; j < cols; j++) {
            strip[r * ld + j] += 1.0f;
            seen[(batch * p->m + m0 + r) * p->n + j]++;
        }
    }
}

static void none64(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
                   double *strip, int64_t ld) {
    (void)ctx;
    (void)batch;
    (void)m0;
    (void)rows;
    (void)n0;
    (void)cols;
    (void)strip;
    (void)ld;
}

static void check(md_tile_shape s) {
    md_blas p;
    assert_int_equal(md_blas_plan(md_tile_normal(s), &p), 1);
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < SIZE; i++) {
        a64[i] = (double)(a[i] = (float)(i * 7 % 11 - 5));
        b64[i] = (double)(b[i] = (float)(i * 5 % 13 - 6));
        c64[i] = (double)(c[i] = (float)(i % 17));
    }
    md_blas_run_f32(&p, epi, a, b, c, &p);
    md_blas_run_f64(&p, none64, a64, b64, c64, &p);
    for (int64_t i = 0; i < s.b1 * s.b2 * s.m1 * s.m2 * s.n; i++) {
        int64_t n = i % s.n;
        int64_t m = i / s.n % (s.m1 * s.m2);
        int64_t i2 = i / s.n / (s.m1 * s.m2) % s.b2;
        int64_t i1 = i / s.n / (s.m1 * s.m2) / s.b2;
        int64_t pc = i1 * s.c_b1 + i2 * s.c_b2 + m / s.m2 * s.c_m1 + m % s.m2 * s.c_m2 + n * s.c_n;
        double sum = s.flags & MD_TILE_ADD ? (double)(pc % 17) : 0.0;
        for (int64_t k = 0; k < s.k1 * s.k2; k++) {
            int64_t pa = i1 * s.a_b1 + i2 * s.a_b2 + m / s.m2 * s.a_m1 + m % s.m2 * s.a_m2 +
                         k / s.k2 * s.a_k1 + k % s.k2 * s.a_k2;
            int64_t pb =
                i1 * s.b_b1 + i2 * s.b_b2 + k / s.k2 * s.b_k1 + k % s.k2 * s.b_k2 + n * s.b_n;
            sum += (double)(a[pa] * b[pb]);
        }
        assert_true((double)c[pc] == sum + 1.0);
        assert_true(c64[pc] == sum);
        assert_int_equal(seen[i], 1);
    }
}

static md_tile_shape dense(int64_t m, int64_t n, int64_t k, int ta, int tb, int flags) {
    md_tile_shape s = {1, 1, 1, m, n, 1, 1, k, 0, 0, 0, k, 0,    0,
                       1, 0, 0, 0, 0, n, 1, 0, 0, 0, n, 1, 1, 0, 0, flags};
    if (ta) {
        s.a_m2 = 1;
        s.a_k2 = m;
    }
    if (tb) {
        s.b_k2 = 1;
        s.b_n = k;
    }
    return s;
}

static void test_layouts(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        int flags = i & 4 ? MD_TILE_ADD : 0;
        check(dense(7, 9, 11, i & 1, i & 2, flags));
        check(dense(1, 9, 11, i & 1, i & 2, flags));
        check(dense(7, 1, 11, i & 1, i & 2, flags));
        check(dense(7, 9, 1, i & 1, i & 2, flags));
    }
    /* Two batch axes, heads of a row: pitches larger than the rows. */
    md_tile_shape s = {2, 3,  1, 5, 5, 1, 1,  4,  60, 4, 0, 12, 0, 0,
                       1, 60, 4, 0, 0, 1, 12, 75, 25, 0, 5, 1,  1, 0, 0,  0};
    check(s);
    /* Rows and sums that merge. */
    md_tile_shape u = dense(12, 5, 6, 0, 0, 0);
    u.m1 = 3;
    u.m2 = 4;
    u.a_m1 = 24;
    u.c_m1 = 20;
    u.k1 = 2;
    u.k2 = 3;
    u.a_k1 = 3;
    u.b_k1 = 15;
    check(u);
}

static void refuse(md_tile_shape s) {
    md_blas p;
    assert_int_equal(md_blas_plan(md_tile_normal(s), &p), 0);
}

static void test_refused(void **state) {
    (void)state;
    md_tile_shape s = dense(7, 9, 11, 0, 0, MD_TILE_NO_C);
    refuse(s);
    s = dense(7, 9, 11, 0, 0, 0);
    s.a_k2 = 2;
    s.a_m2 = 22;
    refuse(s);
    s = dense(7, 9, 11, 0, 0, 0);
    s.b_n = 0;
    s.b_k2 = 1;
    refuse(s); /* broadcast along n */
    s = dense(7, 9, 11, 0, 0, 0);
    s.a_m2 = -11;
    refuse(s);
    s = dense(7, 9, 11, 0, 0, 0);
    s.c_n = 7;
    s.c_m2 = 1;
    refuse(s);
    s = dense(7, 9, 11, 0, 0, 0);
    s.k1 = 2;
    s.a_k1 = 100;
    refuse(s);
    s = dense(7, 9, 11, 0, 0, 0);
    s.m1 = 2;
    s.a_m1 = 100;
    s.c_m1 = 63;
    refuse(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("runtime blas", tests, NULL, NULL);
}
