/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int small_refused(const small *m) {
    return m != NULL && !m->bound ? SMALL_ERR_STATE : SMALL_ERR_ARGUMENT;
}

/* small.mdl:4  z[i, j] = sum[k] x[i, k] * y[k, j]  [2, 2] */
static void small_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT y) {
    for (int64_t i = 0; i < 2; i++) {
        const float x_value = x[i * 3];
        const float x_value_2 = x[i * 3 + 1];
        const float x_value_3 = x[i * 3 + 2];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 2; i_2++) {
            out[i * 2 + i_2] = x_value * y[i_2] + x_value_2 * y[i_2 + 2] + x_value_3 * y[i_2 + 4];
        }
    }
}

/* small_main_entry: 1 steps, 0 bytes of arena, 20 FLOPs, line 3 */
int small_main_entry(small *m, const small_main_entry_in *in, small_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return small_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 3] */
    const float *y = in->y; /* [3, 2] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [2, 2] */

    /* line 4: z[i, j] = sum[k] x[i, k] * y[k, j] */
    small_main_out(out_, x, y); /* 0 */
    out->out = out_;
    return SMALL_OK;
}

