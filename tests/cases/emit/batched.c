/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int batched_refused(const batched *m) {
    return m != NULL && !m->bound ? BATCHED_ERR_STATE : BATCHED_ERR_ARGUMENT;
}

/* batched.mdl:4  s[b, h, i, j] = select(i >= j, sum[d] q[b, i, h, d] * k[b, j, h, d] / sqrt(D), -inf)  [2, 3, 16, 16] */
static void batched_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT q,
        const float *MD_RESTRICT k) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_2 = 0; i_2 < 3; i_2++) {
            for (int64_t i_3 = 0; i_3 < 16; i_3++) {
                const float q_value = q[i * 384 + i_2 * 8 + i_3 * 24];
                const float q_value_2 = q[i * 384 + i_2 * 8 + i_3 * 24 + 1];
                const float q_value_3 = q[i * 384 + i_2 * 8 + i_3 * 24 + 2];
                const float q_value_4 = q[i * 384 + i_2 * 8 + i_3 * 24 + 3];
                const float q_value_5 = q[i * 384 + i_2 * 8 + i_3 * 24 + 4];
                const float q_value_6 = q[i * 384 + i_2 * 8 + i_3 * 24 + 5];
                const float q_value_7 = q[i * 384 + i_2 * 8 + i_3 * 24 + 6];
                const float q_value_8 = q[i * 384 + i_2 * 8 + i_3 * 24 + 7];
                MD_IVDEP
                for (int64_t i_4 = 0; i_4 < 16; i_4++) {
                    const float k_value = k[i * 384 + i_2 * 8 + i_4 * 24];
                    const float k_value_2 = k[i * 384 + i_2 * 8 + i_4 * 24 + 1];
                    const float k_value_3 = k[i * 384 + i_2 * 8 + i_4 * 24 + 2];
                    const float k_value_4 = k[i * 384 + i_2 * 8 + i_4 * 24 + 3];
                    const float k_value_5 = k[i * 384 + i_2 * 8 + i_4 * 24 + 4];
                    const float k_value_6 = k[i * 384 + i_2 * 8 + i_4 * 24 + 5];
                    const float k_value_7 = k[i * 384 + i_2 * 8 + i_4 * 24 + 6];
                    const float k_value_8 = k[i * 384 + i_2 * 8 + i_4 * 24 + 7];
                    out[i * 768 + i_2 * 256 + i_3 * 16 + i_4] = (int32_t)i_4 <= (int32_t)i_3 ? 0.35355338f * (q_value * k_value + q_value_2 * k_value_2 + q_value_3 * k_value_3 + q_value_4 * k_value_4 + q_value_5 * k_value_5 + q_value_6 * k_value_6 + q_value_7 * k_value_7 + q_value_8 * k_value_8) : -INFINITY;
                }
            }
        }
    }
}

/* batched_main_entry: 1 steps, 0 bytes of arena, 26112 FLOPs, line 3 */
int batched_main_entry(batched *m, const batched_main_entry_in *in, batched_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->q == NULL || in->k == NULL) {
        return batched_refused(m);
    }
    /* inputs */
    const float *q = in->q; /* [2, 16, 3, 8] */
    const float *k = in->k; /* [2, 16, 3, 8] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [2, 3, 16, 16] */

    /* line 4: s[b, h, i, j] = select(i >= j, sum[d] q[b, i, h, d] * k[b, j, h, d] / sqrt(D), -inf) */
    batched_main_out(out_, q, k); /* 0 */
    out->out = out_;
    return BATCHED_OK;
}

