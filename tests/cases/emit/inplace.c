/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int inplace_refused(const inplace *m) {
    return m != NULL && !m->bound ? INPLACE_ERR_STATE : INPLACE_ERR_ARGUMENT;
}

/* inplace.mdl:4  a[i, j] = x[i, j] - mean[k] x[i, k]  [40] */
static void inplace_sum(float *MD_RESTRICT sum, const float *MD_RESTRICT x) {
    for (int64_t r = 0; r < 40; r++) {
        float sum_part[16] = {0};
        int64_t j_base = 0;
        for (; j_base + 16 <= 30; j_base += 16) {
            for (int64_t l = 0; l < 16; l++) {
                const int64_t j = j_base + l;
                sum_part[l] += x[r * 30 + j];
            }
        }
        for (int64_t l = 0; l < 30 - j_base; l++) {
            const int64_t j = j_base + l;
            sum_part[l] += x[r * 30 + j];
        }
        const float sum_2 = md_lanes_addf(sum_part, 16);
        sum[r] = sum_2;
    }
}

/* inplace.mdl:5  b[i, j] = a[i, j] * rsqrt(mean[k] a[k, j]^2 + 1)  [30] */
static void inplace_sum_2(float *MD_RESTRICT sum, const float *MD_RESTRICT x,
        const float *MD_RESTRICT sum_2) {
    MD_IVDEP
    for (int64_t j = 0; j < 30; j++) {
        sum[j] = 0.0f;
    }
    for (int64_t k = 0; k < 40; k++) {
        const float t = sum_2[k] * 0.033333335f;
        MD_IVDEP
        for (int64_t j = 0; j < 30; j++) {
            const float a = x[k * 30 + j] - t;
            sum[j] += a * a;
        }
    }
}

/* inplace.mdl:6  c[i, j] = b[i, j] - mean[k, l] b[k, l]  [40, 30] */
static void inplace_main_out(float *out, float *MD_RESTRICT row, const float *x,
        const float *MD_RESTRICT sum, const float *MD_RESTRICT sum_2) {
    float sum_part[16] = {0};
    for (int64_t j = 0; j < 40; j++) {
        int64_t j_2_base = 0;
        for (; j_2_base + 16 <= 30; j_2_base += 16) {
            for (int64_t l = 0; l < 16; l++) {
                const int64_t j_2 = j_2_base + l;
                const float b = (x[j * 30 + j_2] - sum[j] * 0.033333335f) * (1.0f / md_sqrtf(md_madf(sum_2[j_2], 0.025f, 1.0f)));
                row[j * 30 + j_2] = b;
                sum_part[l] += b;
            }
        }
        for (int64_t l = 0; l < 30 - j_2_base; l++) {
            const int64_t j_2 = j_2_base + l;
            const float b_2 = (x[j * 30 + j_2] - sum[j] * 0.033333335f) * (1.0f / md_sqrtf(md_madf(sum_2[j_2], 0.025f, 1.0f)));
            row[j * 30 + j_2] = b_2;
            sum_part[l] += b_2;
        }
    }
    const float sum_3 = md_lanes_addf(sum_part, 16);
    const float t = sum_3 * 0.00083333335f;
    for (int64_t j = 0; j < 40; j++) {
        MD_IVDEP
        for (int64_t j_2 = 0; j_2 < 30; j_2++) {
            const float b_3 = row[j * 30 + j_2];
            out[j * 30 + j_2] = b_3 - t;
        }
    }
}

/* inplace_main_entry: 3 steps, 5120 bytes of arena, 14441 FLOPs, line 3 */
int inplace_main_entry(inplace *m, const inplace_main_entry_in *in, inplace_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return inplace_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [40, 30] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [40, 30] */
    /* arena */
    float *sum = MD_AT(float, m->arena, 4800); /* [40] to 4960, steps 0..2 */
    float *sum_2 = MD_AT(float, m->arena, 4992); /* [30] to 5112, steps 1..2 */
    float *row = MD_AT(float, m->arena, 0); /* [1, 1200] to 4800, steps 2..2, workspace */

    /* line 4: a[i, j] = x[i, j] - mean[k] x[i, k] */
    inplace_sum(sum, x); /* 0 */
    /* line 5: b[i, j] = a[i, j] * rsqrt(mean[k] a[k, j]^2 + 1) */
    inplace_sum_2(sum_2, x, sum); /* 1 */
    /* line 6: c[i, j] = b[i, j] - mean[k, l] b[k, l] */
    inplace_main_out(out_, row, x, sum, sum_2); /* 2 */
    out->out = out_;
    return INPLACE_OK;
}

