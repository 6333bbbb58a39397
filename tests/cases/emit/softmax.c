/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int softmax_refused(const softmax *m) {
    return m != NULL && !m->bound ? SOFTMAX_ERR_STATE : SOFTMAX_ERR_ARGUMENT;
}

/* softmax.mdl:4  entry main(x: [N, M]) { return softmax(x); }  [4, 33] */
static void softmax_main_out(float *out, float *MD_RESTRICT row, const float *x) {
    for (int64_t r = 0; r < 4; r++) {
        uint32_t most_part[32] = {0};
        int64_t j_base = 0;
        for (; j_base + 32 <= 33; j_base += 32) {
            for (int64_t l = 0; l < 32; l++) {
                const int64_t j = j_base + l;
                const float x_value = x[r * 33 + j];
                most_part[l] = md_max_key(md_key_of_f32(x_value), most_part[l]);
            }
        }
        for (int64_t l = 0; l < 33 - j_base; l++) {
            const int64_t j = j_base + l;
            const float x_value_2 = x[r * 33 + j];
            most_part[l] = md_max_key(md_key_of_f32(x_value_2), most_part[l]);
        }
        const float most = md_lanes_maxf(most_part, 32);
        float sum_part[32] = {0};
        int64_t j_base_2 = 0;
        for (; j_base_2 + 32 <= 33; j_base_2 += 32) {
            for (int64_t l_2 = 0; l_2 < 32; l_2++) {
                const int64_t j = j_base_2 + l_2;
                const float x_value_3 = x[r * 33 + j];
                const float t = md_expf(x_value_3 - most);
                row[j] = t;
                sum_part[l_2] += t;
            }
        }
        for (int64_t l_2 = 0; l_2 < 33 - j_base_2; l_2++) {
            const int64_t j = j_base_2 + l_2;
            const float x_value_4 = x[r * 33 + j];
            const float t_2 = md_expf(x_value_4 - most);
            row[j] = t_2;
            sum_part[l_2] += t_2;
        }
        const float sum = md_lanes_addf(sum_part, 32);
        const float t_3 = fabsf(sum) < 1.1754944e-38f ? 1.8446744e+19f : 1.0f;
        const float t_4 = 1.0f / (sum * t_3);
        MD_IVDEP
        for (int64_t j = 0; j < 33; j++) {
            const float t_5 = row[j];
            out[r * 33 + j] = t_5 * t_3 * t_4;
        }
    }
}

/* softmax_main_entry: 1 steps, 192 bytes of arena, 808 FLOPs, line 4 */
int softmax_main_entry(softmax *m, const softmax_main_entry_in *in, softmax_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return softmax_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 33] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [4, 33] */
    /* arena */
    float *row = MD_AT(float, m->arena, 0); /* [1, 48] to 192, steps 0..0, workspace */

    /* line 4: entry main(x: [N, M]) { return softmax(x); } */
    softmax_main_out(out_, row, x); /* 0 */
    out->out = out_;
    return SOFTMAX_OK;
}

