/* SPDX-License-Identifier: 0BSD */
/* blas: products through a CBLAS library in place of the tile, same operands and same epilogue.
 *
 * md_blas_plan (blas_plan.h) says at compile time whether a shape can be written as one gemm for
 * each batch element; other products stay with the tile. The library brings its own threads and
 * memory; its bits are its own affair. Needs md.h and a library with cblas_sgemm and
 * cblas_dgemm. */
#ifndef MD_BLAS_H
#define MD_BLAS_H

#include "runtime/md.h"

#ifdef __cplusplus
extern "C" {
#endif
/* As in cblas.h, whose enumerations are passed as int. */
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);
#ifdef __cplusplus
}
#endif

typedef struct {
    int64_t b1, b2; /* batch axes */
    int64_t m, n, k;
    int64_t lda, ldb, ldc;                      /* row pitches as stored */
    int64_t trans_a, trans_b;                   /* A is stored [k, m], B is stored [n, k] */
    int64_t add;                                /* C += the product */
    int64_t a_b1, a_b2, b_b1, b_b2, c_b1, c_b2; /* strides of the batch axes */
    int64_t rows;                               /* that the epilogue gets at a time */
} md_blas;

/* All batch elements, each followed by its epilogue (see tile_kernel.h) over blocks of rows. */
#define MD_BLAS_RUN(run, real, gemm)                                                               \
    MD_INLINE void run(const md_blas *s,                                                           \
                       void (*epi)(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0, \
                                   int64_t cols, real *strip, int64_t ld),                         \
                       const real *a, const real *b, real *c, void *ctx) {                         \
        for (int64_t i = 0; i < s->b1 * s->b2; i++) {                                              \
            int64_t i1 = i / s->b2;                                                                \
            int64_t i2 = i % s->b2;                                                                \
            real *to = c + i1 * s->c_b1 + i2 * s->c_b2;                                            \
            gemm(101, s->trans_a ? 112 : 111, s->trans_b ? 112 : 111, (int)s->m, (int)s->n,        \
                 (int)s->k, 1, a + i1 * s->a_b1 + i2 * s->a_b2, (int)s->lda,                       \
                 b + i1 * s->b_b1 + i2 * s->b_b2, (int)s->ldb, s->add ? 1 : 0, to, (int)s->ldc);   \
            for (int64_t m = 0; m < s->m; m += s->rows) {                                          \
                int64_t rows = s->m - m < s->rows ? s->m - m : s->rows;                            \
                epi(ctx, i, m, rows, 0, s->n, to + m * s->ldc, s->ldc);                            \
            }                                                                                      \
        }                                                                                          \
    }
MD_BLAS_RUN(md_blas_run_f32, float, cblas_sgemm)
MD_BLAS_RUN(md_blas_run_f64, double, cblas_dgemm)

#endif
