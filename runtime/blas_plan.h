/* SPDX-License-Identifier: 0BSD */
/* blas_plan: can a contraction be written as gemm, and how? Runs in the compiler; emitted programs
 * contain the finished md_blas only. Gives md_blas_plan, a pure function. */
#ifndef MD_BLAS_PLAN_H
#define MD_BLAS_PLAN_H

#include "runtime/blas.h"
#include "runtime/tile_plan.h"

/* One matrix: contiguous along `inner` with pitch `outer`, over its extents. */
MD_FN int md_blas_layout(int64_t inner, int64_t outer, int64_t inner_extent, int64_t outer_extent) {
    return (inner == 1 || inner_extent == 1) && (outer >= inner_extent || outer_extent == 1) &&
           outer <= INT32_MAX;
}

MD_FN int64_t md_blas_pitch(int64_t outer, int64_t inner_extent, int64_t outer_extent) {
    return outer_extent == 1 ? inner_extent : outer;
}

/* 1 and the plan, or 0 where gemm cannot express the shape (in normal form, see md_tile_normal). */
MD_FN int md_blas_plan(md_tile_shape s, md_blas *p) {
    memset(p, 0, sizeof *p);
    int64_t m = s.m2;
    int64_t k = s.k2;
    if (s.m1 != 1 || s.ko != 1 || s.k0 != 1 || s.k1 != 1 || (s.flags & MD_TILE_NO_C) != 0 ||
        m > INT32_MAX || s.n > INT32_MAX || k > INT32_MAX ||
        !md_blas_layout(s.c_n, s.c_m2, s.n, m)) {
        return 0;
    }
    p->trans_a = !md_blas_layout(s.a_k2, s.a_m2, k, m);
    p->trans_b = !md_blas_layout(s.b_n, s.b_k2, s.n, k);
    if ((p->trans_a && !md_blas_layout(s.a_m2, s.a_k2, m, k)) ||
        (p->trans_b && !md_blas_layout(s.b_k2, s.b_n, k, s.n))) {
        return 0;
    }
    p->b1 = s.b1;
    p->b2 = s.b2;
    p->m = m;
    p->n = s.n;
    p->k = k;
    p->lda = p->trans_a ? md_blas_pitch(s.a_k2, m, k) : md_blas_pitch(s.a_m2, k, m);
    p->ldb = p->trans_b ? md_blas_pitch(s.b_n, k, s.n) : md_blas_pitch(s.b_k2, s.n, k);
    p->ldc = md_blas_pitch(s.c_m2, s.n, m);
    p->add = (s.flags & MD_TILE_ADD) != 0;
    p->a_b1 = s.a_b1;
    p->a_b2 = s.a_b2;
    p->b_b1 = s.b_b1;
    p->b_b2 = s.b_b2;
    p->c_b1 = s.c_b1;
    p->c_b2 = s.c_b2;
    p->rows = s.n < MD_TILE_BLOCK_SIZE ? MD_TILE_BLOCK_SIZE / s.n : 1;
    return 1;
}

#endif
