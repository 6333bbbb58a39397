/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int narrow_rows_refused(const narrow_rows *m) {
    return m != NULL && !m->bound ? NARROW_ROWS_ERR_STATE : NARROW_ROWS_ERR_ARGUMENT;
}

/* narrow_rows.mdl:5  y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q]  [2, 14, 14] */
static void narrow_rows_main_out0(float *MD_RESTRICT out0, uint8_t *MD_RESTRICT argmax,
        const float *MD_RESTRICT x) {
    int32_t words[392];
    for (int64_t i = 0; i < 28; i++) {
        for (int64_t i_2_from = 0; i_2_from <= 6; i_2_from += 6) {
            MD_IVDEP
            for (int64_t i_2 = i_2_from; i_2 < i_2_from + 8; i_2++) {
                const float x_value = x[i * 56 + i_2 * 2 + 29];
                const float x_value_2 = x[i * 56 + i_2 * 2 + 28];
                const float x_value_3 = x[i * 56 + i_2 * 2 + 1];
                const float x_value_4 = x[i * 56 + i_2 * 2];
                const float y = md_maxf(x_value, md_maxf(x_value_2, md_maxf(x_value_3, x_value_4)));
                const float t = 2.0f * y;
                const uint8_t t_2 = (uint8_t)(x_value_4 == y ? 0 : (x_value_3 == y ? 1 : (x_value_2 == y ? 2 : (x_value == y ? 3 : 0))));
                out0[i * 14 + i_2] = t;
                words[i * 14 + i_2] = t_2;
            }
        }
    }
    MD_IVDEP
    for (int64_t i_2 = 0; i_2 < 392; i_2++) {
        argmax[i_2] = (uint8_t)words[i_2];
    }
}

/* narrow_rows.mdl:5  y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q]  [2, 28, 28] */
static void narrow_rows_main_out1(float *MD_RESTRICT out1, const uint8_t *MD_RESTRICT argmax,
        const float *MD_RESTRICT u) {
    int32_t words[392];
    MD_IVDEP
    for (int64_t i_3 = 0; i_3 < 392; i_3++) {
        words[i_3] = argmax[i_3];
    }
    for (int64_t i = 0; i < 28; i++) {
        for (int64_t i_3_from = 0; i_3_from <= 6; i_3_from += 6) {
            MD_IVDEP
            for (int64_t i_3 = i_3_from; i_3 < i_3_from + 8; i_3++) {
                const int32_t t = words[i * 14 + i_3];
                const float u_value = u[i * 14 + i_3];
                const float t_2 = 0 == t ? u_value : 0.0f;
                const float t_3 = 2 == t ? u_value : 0.0f;
                const float t_4 = 1 == t ? u_value : 0.0f;
                const float t_5 = 3 == t ? u_value : 0.0f;
                out1[i * 56 + i_3 * 2] = t_2;
                out1[i * 56 + i_3 * 2 + 28] = t_3;
                out1[i * 56 + i_3 * 2 + 1] = t_4;
                out1[i * 56 + i_3 * 2 + 29] = t_5;
            }
        }
    }
}

/* narrow_rows_main_entry: 2 steps, 448 bytes of arena, 3136 FLOPs, line 4 */
int narrow_rows_main_entry(narrow_rows *m, const narrow_rows_main_entry_in *in, narrow_rows_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->u == NULL) {
        return narrow_rows_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 28, 28] */
    const float *u = in->u; /* [2, 14, 14] */
    /* results */
    float *out0 = MD_AT(float, m->io, 0); /* [2, 14, 14] */
    float *out1 = MD_AT(float, m->io, 1600); /* [2, 28, 28] */
    /* arena */
    uint8_t *argmax = MD_AT(uint8_t, m->arena, 0); /* [2, 14, 14] to 392, steps 0..1 */

    /* line 5: y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q] */
    narrow_rows_main_out0(out0, argmax, x); /* 0 */
    narrow_rows_main_out1(out1, argmax, u); /* 1 */
    out->out0 = out0;
    out->out1 = out1;
    return NARROW_ROWS_OK;
}

/* narrow_rows.mdl:10  z[i, j, k] = u8(f32(x[i, j, k]) * s[i, j])  [3, 5, 9] */
static void narrow_rows_bytes_z(uint8_t *z, const uint8_t *x, const float *MD_RESTRICT s) {
    int32_t words[135];
    int32_t words_2[135];
    MD_IVDEP
    for (int64_t i_2 = 0; i_2 < 135; i_2++) {
        words[i_2] = x[i_2];
    }
    for (int64_t i = 0; i < 15; i++) {
        const float s_value = s[i];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 9; i_2++) {
            words_2[i * 9 + i_2] = (uint8_t)md_to_i64((float)words[i * 9 + i_2] * s_value);
        }
    }
    MD_IVDEP
    for (int64_t i_2 = 0; i_2 < 135; i_2++) {
        z[i_2] = (uint8_t)words_2[i_2];
    }
}

/* narrow_rows.mdl:11  w[i, j, k] = u8(f32(y[i, j, k]) * s[i, j])  [3, 5, 16] */
static void narrow_rows_bytes_w(uint8_t *w, const uint8_t *y, const float *MD_RESTRICT s) {
    for (int64_t i = 0; i < 15; i++) {
        const float s_value = s[i];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 16; i_2++) {
            w[i * 16 + i_2] = (uint8_t)md_to_i64((float)y[i * 16 + i_2] * s_value);
        }
    }
}

/* narrow_rows_bytes: 2 steps, 0 bytes of arena, 750 FLOPs, line 9 */
int narrow_rows_bytes(narrow_rows *m, const narrow_rows_bytes_in *in, narrow_rows_bytes_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->s == NULL ||
            in->y == NULL) {
        return narrow_rows_refused(m);
    }
    /* inputs */
    const uint8_t *x = in->x; /* [3, 5, 9] */
    const float *s = in->s; /* [3, 5] */
    const uint8_t *y = in->y; /* [3, 5, 16] */
    /* results */
    uint8_t *z = MD_AT(uint8_t, m->io, 0); /* [3, 5, 9] */
    uint8_t *w = MD_AT(uint8_t, m->io, 192); /* [3, 5, 16] */

    /* line 10: z[i, j, k] = u8(f32(x[i, j, k]) * s[i, j]) */
    narrow_rows_bytes_z(z, x, s); /* 0 */
    /* line 11: w[i, j, k] = u8(f32(y[i, j, k]) * s[i, j]) */
    narrow_rows_bytes_w(w, y, s); /* 1 */
    out->z = z;
    out->w = w;
    return NARROW_ROWS_OK;
}

/* narrow_rows.mdl:15  y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q]  [64, 14, 14] */
MD_NOINLINE void narrow_rows_many_out0_loop(float *MD_RESTRICT out0, uint8_t *MD_RESTRICT argmax,
        const float *MD_RESTRICT x, int part, int parts) {
    const int64_t i_end = md_split(896, part + 1, parts);
    int32_t words[448];
    for (int64_t i_from = md_split(896, part, parts); i_from < i_end; i_from += 32) {
        const int64_t i_to = i_from + 32 < i_end ? i_from + 32 : i_end;
        for (int64_t i = i_from; i < i_to; i++) {
            for (int64_t i_2_from = 0; i_2_from <= 6; i_2_from += 6) {
                MD_IVDEP
                for (int64_t i_2 = i_2_from; i_2 < i_2_from + 8; i_2++) {
                    const float x_value = x[i * 56 + i_2 * 2 + 29];
                    const float x_value_2 = x[i * 56 + i_2 * 2 + 28];
                    const float x_value_3 = x[i * 56 + i_2 * 2 + 1];
                    const float x_value_4 = x[i * 56 + i_2 * 2];
                    const float y = md_maxf(x_value, md_maxf(x_value_2, md_maxf(x_value_3, x_value_4)));
                    const float t = 2.0f * y;
                    const uint8_t t_2 = (uint8_t)(x_value_4 == y ? 0 : (x_value_3 == y ? 1 : (x_value_2 == y ? 2 : (x_value == y ? 3 : 0))));
                    out0[i * 14 + i_2] = t;
                    words[(i - i_from) * 14 + i_2] = t_2;
                }
            }
        }
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < (i_to - i_from) * 14; i_2++) {
            argmax[i_from * 14 + i_2] = (uint8_t)words[i_2];
        }
    }
}

static void narrow_rows_many_out0(float *MD_RESTRICT out0, uint8_t *MD_RESTRICT argmax,
        const float *MD_RESTRICT x, md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        narrow_rows_many_out0_loop(out0, argmax, x, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            narrow_rows_many_out0_loop(out0, argmax, x, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* narrow_rows.mdl:15  y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q]  [64, 28, 28] */
MD_NOINLINE void narrow_rows_many_out1_loop(float *MD_RESTRICT out1,
        const uint8_t *MD_RESTRICT argmax, const float *MD_RESTRICT u, int part, int parts) {
    const int64_t i_end = md_split(896, part + 1, parts);
    int32_t words[448];
    for (int64_t i_from = md_split(896, part, parts); i_from < i_end; i_from += 32) {
        const int64_t i_to = i_from + 32 < i_end ? i_from + 32 : i_end;
        MD_IVDEP
        for (int64_t i_3 = 0; i_3 < (i_to - i_from) * 14; i_3++) {
            words[i_3] = argmax[i_from * 14 + i_3];
        }
        for (int64_t i = i_from; i < i_to; i++) {
            for (int64_t i_3_from = 0; i_3_from <= 6; i_3_from += 6) {
                MD_IVDEP
                for (int64_t i_3 = i_3_from; i_3 < i_3_from + 8; i_3++) {
                    const int32_t t = words[(i - i_from) * 14 + i_3];
                    const float u_value = u[i * 14 + i_3];
                    const float t_2 = 0 == t ? u_value : 0.0f;
                    const float t_3 = 2 == t ? u_value : 0.0f;
                    const float t_4 = 1 == t ? u_value : 0.0f;
                    const float t_5 = 3 == t ? u_value : 0.0f;
                    out1[i * 56 + i_3 * 2] = t_2;
                    out1[i * 56 + i_3 * 2 + 28] = t_3;
                    out1[i * 56 + i_3 * 2 + 1] = t_4;
                    out1[i * 56 + i_3 * 2 + 29] = t_5;
                }
            }
        }
    }
}

static void narrow_rows_many_out1(float *MD_RESTRICT out1, const uint8_t *MD_RESTRICT argmax,
        const float *MD_RESTRICT u, md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        narrow_rows_many_out1_loop(out1, argmax, u, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            narrow_rows_many_out1_loop(out1, argmax, u, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* narrow_rows_many: 2 steps, 12544 bytes of arena, 100352 FLOPs, line 14 */
int narrow_rows_many(narrow_rows *m, const narrow_rows_many_in *in, narrow_rows_many_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->u == NULL) {
        return narrow_rows_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [64, 28, 28] */
    const float *u = in->u; /* [64, 14, 14] */
    /* results */
    float *out0 = MD_AT(float, m->io, 0); /* [64, 14, 14] */
    float *out1 = MD_AT(float, m->io, 50176); /* [64, 28, 28] */
    /* arena */
    uint8_t *argmax = MD_AT(uint8_t, m->arena, 0); /* [64, 14, 14] to 12544, steps 0..1 */

    /* line 15: y[b, i < 14, j < 14] = max[p < 2, q < 2] x[b, 2 * i + p, 2 * j + q] */
    narrow_rows_many_out0(out0, argmax, x, &m->pace); /* 0 */
    narrow_rows_many_out1(out1, argmax, u, &m->pace); /* 1 */
    out->out0 = out0;
    out->out1 = out1;
    return NARROW_ROWS_OK;
}

