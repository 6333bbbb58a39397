/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int column_levels_refused(const column_levels *m) {
    return m != NULL && !m->bound ? COLUMN_LEVELS_ERR_STATE : COLUMN_LEVELS_ERR_ARGUMENT;
}

/* column_levels.mdl:7  t[c] = sum[b, i, j] y[b, i, j, c] * x[b, i, j, c]  [32] */
MD_NOINLINE void column_levels_main_z_t_loop(float *MD_RESTRICT partial,
        float *MD_RESTRICT partial_2, float *MD_RESTRICT part, float *MD_RESTRICT part_2,
        const float *MD_RESTRICT x, const float *MD_RESTRICT s, const float *MD_RESTRICT w,
        int part_3, int parts) {
    const int64_t c_end = md_split(4, part_3 + 1, parts);
    float *part_own = part + (int64_t)part_3 * 32;
    float *part_2_own = part_2 + (int64_t)part_3 * 32;
    for (int64_t c = md_split(4, part_3, parts); c < c_end; c++) {
        MD_IVDEP
        for (int64_t j = 0; j < 32; j++) {
            partial[j + c * 32] = 0.0f;
            partial_2[j + c * 32] = 0.0f;
        }
        const int64_t k_end = c + 1;
        for (int64_t k = c; k < k_end; k++) {
            for (int64_t k_2 = 0; k_2 < 64; k_2++) {
                MD_IVDEP
                for (int64_t j = 0; j < 32; j++) {
                    part_own[j] = 0.0f;
                    part_2_own[j] = 0.0f;
                }
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
                        part_own[j] += y;
                        part_2_own[j] += t_2;
                    }
                }
                MD_IVDEP
                for (int64_t j = 0; j < 32; j++) {
                    const float t_3 = part_own[j];
                    const float t_4 = part_2_own[j];
                    partial[j + c * 32] += t_3;
                    partial_2[j + c * 32] += t_4;
                }
            }
        }
    }
}

static void column_levels_main_z_t(float *MD_RESTRICT z, float *MD_RESTRICT t,
        float *MD_RESTRICT partial, float *MD_RESTRICT partial_2, float *MD_RESTRICT part,
        float *MD_RESTRICT part_2, const float *MD_RESTRICT x, const float *MD_RESTRICT s,
        const float *MD_RESTRICT w, md_pace *pace) {
    const int team = md_team(pace, 8);
    const int parts = team < 4 ? team : 4;
    if (parts == 1) {
        column_levels_main_z_t_loop(partial, partial_2, part, part_2, x, s, w, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part_3 = 0; part_3 < parts; part_3++) {
            const double begun = md_part_begin(pace, part_3);
            column_levels_main_z_t_loop(partial, partial_2, part, part_2, x, s, w, part_3, parts);
            md_part_end(pace, part_3, parts, begun);
        }
        md_team_join(pace, parts);
    }
    MD_IVDEP
    for (int64_t j = 0; j < 32; j++) {
        z[j] = 0.0f;
        t[j] = 0.0f;
    }
    for (int64_t c = 0; c < 4; c++) {
        MD_IVDEP
        for (int64_t j = 0; j < 32; j++) {
            const float t_5 = partial[j + c * 32];
            const float t_6 = partial_2[j + c * 32];
            z[j] += t_5;
            t[j] += t_6;
        }
    }
}

/* column_levels_main_entry: 1 steps, 2048 bytes of arena, 4735232 FLOPs, line 3 */
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
    float *partial = MD_AT(float, m->arena, 0); /* [128] to 512, steps 0..0, workspace */
    float *partial_2 = MD_AT(float, m->arena, 512); /* [128] to 1024, steps 0..0, workspace */
    float *part = MD_AT(float, m->arena, 1024); /* [4, 32] to 1536, steps 0..0, workspace */
    float *part_2 = MD_AT(float, m->arena, 1536); /* [4, 32] to 2048, steps 0..0, workspace */

    /* line 7: t[c] = sum[b, i, j] y[b, i, j, c] * x[b, i, j, c] */
    column_levels_main_z_t(z, t, partial, partial_2, part, part_2, x, s, w, &m->pace); /* 0 */
    out->z = z;
    out->t = t;
    return COLUMN_LEVELS_OK;
}

