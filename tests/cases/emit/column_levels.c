/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int column_levels_refused(const column_levels *m) {
    return m != NULL && !m->bound ? COLUMN_LEVELS_ERR_STATE : COLUMN_LEVELS_ERR_ARGUMENT;
}

/* column_levels.mdl:7  t[c] = sum[b, i, j] y[b, i, j, c] * x[b, i, j, c]  [32] */
static void column_levels_main_z_t(float *MD_RESTRICT z, float *MD_RESTRICT t,
        float *MD_RESTRICT part, float *MD_RESTRICT part_2, const float *MD_RESTRICT x,
        const float *MD_RESTRICT s, const float *MD_RESTRICT w) {
    MD_IVDEP
    for (int64_t j = 0; j < 32; j++) {
        z[j] = 0.0f;
        t[j] = 0.0f;
    }
    for (int64_t k = 0; k < 4; k++) {
        for (int64_t c = 0; c < 4; c++) {
            MD_IVDEP
            for (int64_t j = 0; j < 32; j++) {
                part[j] = 0.0f;
                part_2[j] = 0.0f;
            }
            const int64_t k_2_end = c * 16 + 16;
            for (int64_t k_2 = c * 16; k_2 < k_2_end; k_2++) {
                for (int64_t k_3 = 0; k_3 < 64; k_3++) {
                    const float s_value = s[k * 12288 + k_2 * 64 + k_3 + 8192];
                    const float s_value_2 = s[k * 12288 + k_2 * 64 + k_3];
                    const float s_value_3 = s[k * 12288 + k_2 * 64 + k_3 + 4096];
                    MD_IVDEP
                    for (int64_t j = 0; j < 32; j++) {
                        const float x_value = x[k * 131072 + k_2 * 2048 + k_3 * 32 + j];
                        const float w_value = w[j + 64];
                        const float w_value_2 = w[j];
                        const float w_value_3 = w[j + 32];
                        const float y = 0.0f < x_value ? md_madf(s_value, w_value, s_value_2 * w_value_2 + s_value_3 * w_value_3) : 0.0f;
                        const float t_2 = y * x_value;
                        part[j] += y;
                        part_2[j] += t_2;
                    }
                }
            }
            MD_IVDEP
            for (int64_t j = 0; j < 32; j++) {
                const float t_3 = part[j];
                const float t_4 = part_2[j];
                z[j] += t_3;
                t[j] += t_4;
            }
        }
    }
}

/* column_levels_main_entry: 1 steps, 256 bytes of arena, 4719616 FLOPs, line 3 */
int column_levels_main_entry(column_levels *m, const column_levels_main_entry_in *in, column_levels_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->s == NULL ||
            in->w == NULL) {
        return column_levels_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 64, 64, 32] */
    const float *s = in->s; /* [4, 3, 64, 64] */
    const float *w = in->w; /* [3, 32] */
    /* results */
    float *z = MD_AT(float, m->io, 0); /* [32] */
    float *t = MD_AT(float, m->io, 128); /* [32] */
    /* arena */
    float *part = MD_AT(float, m->arena, 0); /* [1, 32] to 128, steps 0..0, workspace */
    float *part_2 = MD_AT(float, m->arena, 128); /* [1, 32] to 256, steps 0..0, workspace */

    /* line 7: t[c] = sum[b, i, j] y[b, i, j, c] * x[b, i, j, c] */
    column_levels_main_z_t(z, t, part, part_2, x, s, w); /* 0 */
    out->z = z;
    out->t = t;
    return COLUMN_LEVELS_OK;
}

