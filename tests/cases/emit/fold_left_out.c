/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int fold_left_out_refused(const fold_left_out *m) {
    return m != NULL && !m->bound ? FOLD_LEFT_OUT_ERR_STATE : FOLD_LEFT_OUT_ERR_ARGUMENT;
}

/* fold_left_out.mdl:4  s[c] = sum[b, i, j] select(0 < y[b, c, i, j], x[b, c, i, j], 0)  [6] */
MD_NOINLINE void fold_left_out_main_out_loop(float *MD_RESTRICT partial,
        const float *MD_RESTRICT y, const float *MD_RESTRICT x, int part, int parts) {
    const int64_t c_end = md_split(26, part + 1, parts);
    for (int64_t c = md_split(26, part, parts); c < c_end; c++) {
        for (int64_t r = 0; r < 6; r++) {
            float sum = 0.0f;
            const int64_t k_end = c * 5 + 5 < 128 ? c * 5 + 5 : 128;
            for (int64_t k = c * 5; k < k_end; k++) {
                for (int64_t c_2 = 0; c_2 < 4; c_2++) {
                    float sum_2 = 0.0f;
                    const int64_t k_2_end = c_2 * 4 + 4 < 14 ? c_2 * 4 + 4 : 14;
                    for (int64_t k_2 = c_2 * 4; k_2 < k_2_end; k_2++) {
                        for (int64_t k_3 = 0; k_3 < 14; k_3++) {
                            const float x_value = x[r * 196 + k * 1176 + k_2 * 14 + k_3];
                            sum_2 += 0.0f < y[r * 196 + k * 1176 + k_2 * 14 + k_3] ? x_value : 0.0f;
                        }
                        MD_IN_ORDER;
                    }
                    sum += sum_2;
                }
                MD_IN_ORDER;
            }
            partial[r + c * 6] = sum;
        }
    }
}

static void fold_left_out_main_out(float *MD_RESTRICT out, float *MD_RESTRICT partial,
        const float *MD_RESTRICT y, const float *MD_RESTRICT x, md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        fold_left_out_main_out_loop(partial, y, x, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            fold_left_out_main_out_loop(partial, y, x, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
    for (int64_t r = 0; r < 6; r++) {
        out[r] = 0.0f;
        for (int64_t c = 0; c < 26; c++) {
            out[r] += partial[r + c * 6];
        }
    }
}

/* fold_left_out_main_entry: 1 steps, 640 bytes of arena, 352716 FLOPs, line 3 */
int fold_left_out_main_entry(fold_left_out *m, const fold_left_out_main_entry_in *in, fold_left_out_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return fold_left_out_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [128, 6, 14, 14] */
    const float *y = in->y; /* [128, 6, 14, 14] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [6] */
    /* arena */
    float *partial = MD_AT(float, m->arena, 0); /* [156] to 624, steps 0..0, workspace */

    /* line 4: s[c] = sum[b, i, j] select(0 < y[b, c, i, j], x[b, c, i, j], 0) */
    fold_left_out_main_out(out_, partial, y, x, &m->pace); /* 0 */
    out->out = out_;
    return FOLD_LEFT_OUT_OK;
}

