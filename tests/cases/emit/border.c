/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int border_refused(const border *m) {
    return m != NULL && !m->bound ? BORDER_ERR_STATE : BORDER_ERR_ARGUMENT;
}

/* border.mdl:4  y[i < N] = x[i - 1] else 0 + x[i + 1] else 0 - 2 * x[i]  [12] */
static void border_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT x) {
    MD_IVDEP
    for (int64_t i = 0; i < 12; i++) {
        out[i] = md_madf(-2.0f, x[i], ((i - 1 >= 0) ? x[i - 1] : 0.0f) + ((i < 11) ? x[i + 1] : 0.0f));
    }
}

/* border_main_entry: 1 steps, 0 bytes of arena, 36 FLOPs, line 3 */
int border_main_entry(border *m, const border_main_entry_in *in, border_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return border_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [12] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [12] */

    /* line 4: y[i < N] = x[i - 1] else 0 + x[i + 1] else 0 - 2 * x[i] */
    border_main_out(out_, x); /* 0 */
    out->out = out_;
    return BORDER_OK;
}

