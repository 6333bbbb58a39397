/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int rows_together_refused(const rows_together *m) {
    return m != NULL && !m->bound ? ROWS_TOGETHER_ERR_STATE : ROWS_TOGETHER_ERR_ARGUMENT;
}

/* rows_together.mdl:7  s[n] = sum[i] h[i, n]  [1024] */
MD_NOINLINE void rows_together_main_h_s_loop(float *MD_RESTRICT h, float *MD_RESTRICT s,
        const float *MD_RESTRICT x, const float *MD_RESTRICT w, const float *MD_RESTRICT b,
        int part, int parts) {
    const int64_t c_end = md_split(16, part + 1, parts);
    for (int64_t c = md_split(16, part, parts); c < c_end; c++) {
        const int64_t j_end = c * 64 + 64;
        MD_IVDEP
        for (int64_t j = c * 64; j < j_end; j++) {
            s[j] = 0.0f;
        }
        for (int64_t c_2 = 0; c_2 < 4; c_2++) {
            const int64_t j_end_2 = c * 64 + 64;
            MD_IVDEP
            for (int64_t j = c * 64; j < j_end_2; j++) {
                const float w_value = w[j * 4];
                const float w_value_2 = w[j * 4 + 1];
                const float w_value_3 = w[j * 4 + 2];
                const float w_value_4 = w[j * 4 + 3];
                const float b_value = b[j];
                const int64_t k_end = c_2 * 8 + 8;
                MD_UNROLL(8)
                for (int64_t k = c_2 * 8; k < k_end; k++) {
                    const float h_2 = md_maxf(x[k * 4] * w_value + x[k * 4 + 1] * w_value_2 + x[k * 4 + 2] * w_value_3 + x[k * 4 + 3] * w_value_4 + b_value, 0.0f);
                    h[k * 1024 + j] = h_2;
                    s[j] += h_2;
                }
            }
        }
    }
}

static void rows_together_main_h_s(float *MD_RESTRICT h, float *MD_RESTRICT s,
        const float *MD_RESTRICT x, const float *MD_RESTRICT w, const float *MD_RESTRICT b,
        md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        rows_together_main_h_s_loop(h, s, x, w, b, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            rows_together_main_h_s_loop(h, s, x, w, b, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* rows_together_main_entry: 1 steps, 0 bytes of arena, 327680 FLOPs, line 5 */
int rows_together_main_entry(rows_together *m, const rows_together_main_entry_in *in, rows_together_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL ||
            in->b == NULL) {
        return rows_together_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [32, 4] */
    const float *w = in->w; /* [1024, 4] */
    const float *b = in->b; /* [1024] */
    /* results */
    float *h = MD_AT(float, m->io, 0); /* [32, 1024] */
    float *s = MD_AT(float, m->io, 131072); /* [1024] */

    /* line 7: s[n] = sum[i] h[i, n] */
    rows_together_main_h_s(h, s, x, w, b, &m->pace); /* 0 */
    out->h = h;
    out->s = s;
    return ROWS_TOGETHER_OK;
}

