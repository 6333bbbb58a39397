/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int depthwise_refused(const depthwise *m) {
    return m != NULL && !m->bound ? DEPTHWISE_ERR_STATE : DEPTHWISE_ERR_ARGUMENT;
}

/* depthwise.mdl:5  y[b, i < N, j < N, c] = sum[p, q] (x[b, i + p - 1, j + q - 1, c] else 0) * w[p, q, c]  [2, 14, 14, 32] */
static void depthwise_copy_conv(float *MD_RESTRICT conv, const float *MD_RESTRICT x) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_2 = 0; i_2 < 14; i_2++) {
            for (int64_t i_3 = 0; i_3 < 14; i_3++) {
                const int t = (i_2 - 1 >= 0 && i_2 - 1 < 12) & (i_3 - 1 >= 0 && i_3 - 1 < 12);
                MD_IVDEP
                for (int64_t i_4 = 0; i_4 < 32; i_4++) {
                    conv[i * 6272 + i_2 * 448 + i_3 * 32 + i_4] = t ? x[i * 4608 + i_2 * 384 + i_3 * 32 + i_4 - 416] : 0.0f;
                }
            }
        }
    }
}

/* depthwise.mdl:5  y[b, i < N, j < N, c] = sum[p, q] (x[b, i + p - 1, j + q - 1, c] else 0) * w[p, q, c]  [2, 12, 12, 32] */
MD_NOINLINE void depthwise_conv_loop(float *MD_RESTRICT y, const float *MD_RESTRICT conv,
        const float *MD_RESTRICT w, int part, int parts) {
    const int64_t at_end = md_split(24, part + 1, parts);
    for (int64_t at = md_split(24, part, parts); at < at_end; at++) {
        const int64_t r = at / 12;
        const int64_t r_2 = at % 12;
        for (int64_t r_3 = 0; r_3 < 12; r_3++) {
            MD_IVDEP
            for (int64_t j = 0; j < 32; j++) {
                y[r * 4608 + r_2 * 384 + r_3 * 32 + j] = 0.0f;
                MD_UNROLL(8)
                for (int64_t k = 0; k < 3; k++) {
                    MD_UNROLL(8)
                    for (int64_t k_2 = 0; k_2 < 3; k_2++) {
                        y[r * 4608 + r_2 * 384 + r_3 * 32 + j] = md_madf(conv[r * 6272 + r_2 * 448 + r_3 * 32 + k * 448 + k_2 * 32 + j], w[k * 96 + k_2 * 32 + j], y[r * 4608 + r_2 * 384 + r_3 * 32 + j]);
                    }
                }
            }
        }
    }
}

static void depthwise_conv(float *MD_RESTRICT y, const float *MD_RESTRICT conv,
        const float *MD_RESTRICT w, md_pace *pace) {
    const int team = md_team(pace, 8);
    const int parts = team < 2 ? team : 2;
    if (parts == 1) {
        depthwise_conv_loop(y, conv, w, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            depthwise_conv_loop(y, conv, w, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* depthwise.mdl:5  y[b, i < N, j < N, c] = sum[p, q] (x[b, i + p - 1, j + q - 1, c] else 0) * w[p, q, c]  [3, 3, 32] */
static void depthwise_f_out_2(float *MD_RESTRICT out, float *MD_RESTRICT product,
        const float *MD_RESTRICT y, const float *MD_RESTRICT conv) {
    for (int64_t j = 0; j < 3; j++) {
        for (int64_t j_2 = 0; j_2 < 3; j_2++) {
            MD_IVDEP
            for (int64_t j_3 = 0; j_3 < 32; j_3++) {
                product[j * 96 + j_2 * 32 + j_3] = 0.0f;
            }
        }
    }
    for (int64_t k = 0; k < 2; k++) {
        float held[288];
        for (int64_t j_3 = 0; j_3 < 32; j_3++) {
            MD_UNROLL(8)
            for (int64_t j = 0; j < 3; j++) {
                MD_UNROLL(8)
                for (int64_t j_2 = 0; j_2 < 3; j_2++) {
                    held[(j * 3 + j_2) * 32 + j_3] = product[j * 96 + j_2 * 32 + j_3];
                }
            }
        }
        for (int64_t k_2 = 0; k_2 < 12; k_2++) {
            for (int64_t k_3 = 0; k_3 < 12; k_3++) {
                MD_IVDEP
                for (int64_t j_3 = 0; j_3 < 32; j_3++) {
                    const float y_value = y[k * 4608 + k_2 * 384 + k_3 * 32 + j_3];
                    MD_UNROLL(8)
                    for (int64_t j = 0; j < 3; j++) {
                        MD_UNROLL(8)
                        for (int64_t j_2 = 0; j_2 < 3; j_2++) {
                            held[(j * 3 + j_2) * 32 + j_3] = md_madf(y_value, conv[k * 6272 + k_2 * 448 + k_3 * 32 + j * 448 + j_2 * 32 + j_3], held[(j * 3 + j_2) * 32 + j_3]);
                        }
                    }
                }
            }
        }
        for (int64_t j_3 = 0; j_3 < 32; j_3++) {
            MD_UNROLL(8)
            for (int64_t j = 0; j < 3; j++) {
                MD_UNROLL(8)
                for (int64_t j_2 = 0; j_2 < 3; j_2++) {
                    product[j * 96 + j_2 * 32 + j_3] = held[(j * 3 + j_2) * 32 + j_3];
                }
            }
        }
    }
    MD_IVDEP
    for (int64_t i = 0; i < 288; i++) {
        out[i] = product[i] * 2.0f;
    }
}

/* depthwise_f: 3 steps, 88192 bytes of arena, 332064 FLOPs, line 8 */
int depthwise_f(depthwise *m, const depthwise_f_in *in, depthwise_f_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL) {
        return depthwise_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 12, 12, 32] */
    const float *w = in->w; /* [3, 3, 32] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [3, 3, 32] */
    /* arena */
    float *conv = MD_AT(float, m->arena, 0); /* [2, 14, 14, 32] to 50176, steps 0..2 */
    float *y = MD_AT(float, m->arena, 50176); /* [2, 12, 12, 32] to 87040, steps 1..2 */
    float *product = MD_AT(float, m->arena, 87040); /* [3, 3, 32] to 88192, steps 2..2, workspace */

    /* line 5: y[b, i < N, j < N, c] = sum[p, q] (x[b, i + p - 1, j + q - 1, c] else 0) * w[p, q, c] */
    depthwise_copy_conv(conv, x); /* 0 */
    depthwise_conv(y, conv, w, &m->pace); /* 1 */
    depthwise_f_out_2(out_, product, y, conv); /* 2 */
    out->out = out_;
    return DEPTHWISE_OK;
}

