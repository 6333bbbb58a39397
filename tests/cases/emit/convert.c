/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int convert_refused(const convert *m) {
    return m != NULL && !m->bound ? CONVERT_ERR_STATE : CONVERT_ERR_ARGUMENT;
}

/* convert.mdl:3  entry main(x: u8[N]) { return f32(x) / 255, i32(f32(x) * 0.5), f64(x); }  [8] */
static void convert_main_out0_out1_out2(float *MD_RESTRICT out0, int32_t *MD_RESTRICT out1,
        double *MD_RESTRICT out2, const uint8_t *MD_RESTRICT x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const uint8_t x_value = x[i];
        const float t = (float)x_value;
        const float t_2 = t * 0.003921569f;
        const int32_t t_3 = (int32_t)md_to_i64(t * 0.5f);
        const double t_4 = (double)x_value;
        out0[i] = t_2;
        out1[i] = t_3;
        out2[i] = t_4;
    }
}

/* convert_main_entry: 1 steps, 0 bytes of arena, 32 FLOPs, line 3 */
int convert_main_entry(convert *m, const convert_main_entry_in *in, convert_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return convert_refused(m);
    }
    /* inputs */
    const uint8_t *x = in->x; /* [8] */
    /* results */
    float *out0 = MD_AT(float, m->io, 0); /* [8] */
    int32_t *out1 = MD_AT(int32_t, m->io, 64); /* [8] */
    double *out2 = MD_AT(double, m->io, 128); /* [8] */

    /* line 3: entry main(x: u8[N]) { return f32(x) / 255, i32(f32(x) * 0.5), f64(x); } */
    convert_main_out0_out1_out2(out0, out1, out2, x, 8); /* 0 */
    out->out0 = out0;
    out->out1 = out1;
    out->out2 = out2;
    return CONVERT_OK;
}

