/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int columns_refused(const columns *m) {
    return m != NULL && !m->bound ? COLUMNS_ERR_STATE : COLUMNS_ERR_ARGUMENT;
}

/* columns.mdl:4  s[j] = sum[i] x[i, j]  [6] */
static void columns_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT x) {
    MD_IVDEP
    for (int64_t j = 0; j < 6; j++) {
        out[j] = 0.0f;
    }
    for (int64_t k = 0; k < 20; k++) {
        MD_IVDEP
        for (int64_t j = 0; j < 6; j++) {
            out[j] += x[k * 6 + j];
        }
    }
}

/* columns_main_entry: 1 steps, 0 bytes of arena, 120 FLOPs, line 3 */
int columns_main_entry(columns *m, const columns_main_entry_in *in, columns_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return columns_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [20, 6] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [6] */

    /* line 4: s[j] = sum[i] x[i, j] */
    columns_main_out(out_, x); /* 0 */
    out->out = out_;
    return COLUMNS_OK;
}

