/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int depthwise_beside_refused(const depthwise_beside *m) {
    return m != NULL && !m->bound ? DEPTHWISE_BESIDE_ERR_STATE : DEPTHWISE_BESIDE_ERR_ARGUMENT;
}

/* depthwise_beside.mdl:3  y[b, i < 12, j < 12, c] = sum[p < 5, q < 5] x[b, i + p, j + q, c] * w[p, q, c]  [2, 12, 12, 32] */
MD_NOINLINE void depthwise_beside_f_out_2_loop(float *MD_RESTRICT out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT w, int part, int parts) {
    const int64_t at_end = md_split(24, part + 1, parts);
    for (int64_t at = md_split(24, part, parts); at < at_end; at++) {
        const int64_t r = at / 12;
        const int64_t r_2 = at % 12;
        for (int64_t c_2 = 0; c_2 < 2; c_2++) {
            for (int64_t c = 0; c < 2; c++) {
                const int64_t j_end = c_2 * 16 + 16;
                MD_IVDEP
                for (int64_t j = c_2 * 16; j < j_end; j++) {
                    float held[6];
                    MD_UNROLL(8)
                    for (int64_t p = 0; p < 6; p++) {
                        held[p] = 0.0f;
                    }
                    MD_UNROLL(8)
                    for (int64_t k = 0; k < 5; k++) {
                        MD_UNROLL(8)
                        for (int64_t k_2 = 0; k_2 < 5; k_2++) {
                            MD_UNROLL(8)
                            for (int64_t p = 0; p < 6; p++) {
                                held[p] = md_madf(x[r * 8192 + r_2 * 512 + k * 512 + k_2 * 32 + j + c * 192 + p * 32], w[k * 160 + k_2 * 32 + j], held[p]);
                            }
                        }
                    }
                    MD_UNROLL(8)
                    for (int64_t p = 0; p < 6; p++) {
                        out[r * 4608 + r_2 * 384 + j + c * 192 + p * 32] = held[p];
                    }
                }
            }
        }
    }
}

static void depthwise_beside_f_out_2(float *MD_RESTRICT out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT w, md_pace *pace) {
    const int team = md_team(pace, 8);
    const int parts = team < 2 ? team : 2;
    if (parts == 1) {
        depthwise_beside_f_out_2_loop(out, x, w, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            depthwise_beside_f_out_2_loop(out, x, w, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* depthwise_beside_f: 1 steps, 0 bytes of arena, 460800 FLOPs, line 2 */
int depthwise_beside_f(depthwise_beside *m, const depthwise_beside_f_in *in, depthwise_beside_f_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL) {
        return depthwise_beside_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 16, 16, 32] */
    const float *w = in->w; /* [5, 5, 32] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [2, 12, 12, 32] */

    /* line 3: y[b, i < 12, j < 12, c] = sum[p < 5, q < 5] x[b, i + p, j + q, c] * w[p, q, c] */
    depthwise_beside_f_out_2(out_, x, w, &m->pace); /* 0 */
    out->out = out_;
    return DEPTHWISE_BESIDE_OK;
}

