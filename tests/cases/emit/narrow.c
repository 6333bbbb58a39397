/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int narrow_refused(const narrow *m) {
    return m != NULL && !m->bound ? NARROW_ERR_STATE : NARROW_ERR_ARGUMENT;
}

/* narrow.mdl:6  s[j] = sum[k] y[k, j] * y[k, j]  [2048] */
MD_NOINLINE void narrow_main_s_loop(float *MD_RESTRICT concat, float *MD_RESTRICT s,
        const float *MD_RESTRICT x, const float *MD_RESTRICT t, int part, int parts) {
    const int64_t c_end = md_split(16, part + 1, parts);
    for (int64_t c = md_split(16, part, parts); c < c_end; c++) {
        const int64_t j_end = c * 128 + 128;
        MD_IVDEP
        for (int64_t j = c * 128; j < j_end; j++) {
            concat[j] = 0.0f;
            concat[j + 2048] = 0.0f;
            s[j] = 0.0f;
        }
        for (int64_t c_2 = 0; c_2 < 8; c_2++) {
            const int64_t j_end_2 = c * 128 + 128;
            MD_IVDEP
            for (int64_t j = c * 128; j < j_end_2; j++) {
                const int64_t k_end = c_2 * 8 + 8;
                MD_UNROLL(8)
                for (int64_t k = c_2 * 8; k < k_end; k++) {
                    const float y = md_maxf(x[k * 2048 + j], 0.0f);
                    const float t_value = t[k * 2];
                    const float t_value_2 = t[k * 2 + 1];
                    const float t_2 = y * y;
                    concat[j] = md_madf(y, t_value, concat[j]);
                    concat[j + 2048] = md_madf(y, t_value_2, concat[j + 2048]);
                    s[j] += t_2;
                }
            }
        }
    }
}

static void narrow_main_s(float *MD_RESTRICT concat, float *MD_RESTRICT s,
        const float *MD_RESTRICT x, const float *MD_RESTRICT t, md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        narrow_main_s_loop(concat, s, x, t, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            narrow_main_s_loop(concat, s, x, t, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* narrow.mdl:5  w[n, j] = sum[k] y[k, j] * t[k, n]  [2, 2048] */
static void narrow_main_w(float *w, const float *concat, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        w[i] = concat[i];
    }
}

/* narrow_main_entry: 2 steps, 16384 bytes of arena, 917504 FLOPs, line 3 */
int narrow_main_entry(narrow *m, const narrow_main_entry_in *in, narrow_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->t == NULL) {
        return narrow_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [64, 2048] */
    const float *t = in->t; /* [64, 2] */
    /* results */
    float *w = MD_AT(float, m->io, 0); /* [2, 2048] */
    float *s = MD_AT(float, m->io, 16384); /* [2048] */
    /* arena */
    float *concat = MD_AT(float, m->arena, 0); /* [4096] to 16384, steps 0..1 */

    /* line 6: s[j] = sum[k] y[k, j] * y[k, j] */
    narrow_main_s(concat, s, x, t, &m->pace); /* 0 */
    /* line 5: w[n, j] = sum[k] y[k, j] * t[k, n] */
    narrow_main_w(w, concat, 4096); /* 1 */
    out->w = w;
    out->s = s;
    return NARROW_OK;
}

