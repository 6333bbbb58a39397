/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int transpose_refused(const transpose *m) {
    return m != NULL && !m->bound ? TRANSPOSE_ERR_STATE : TRANSPOSE_ERR_ARGUMENT;
}

/* transpose.mdl:5  return t * 2  [5, 3] */
static void transpose_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT x) {
    MD_IVDEP
    for (int64_t i = 0; i < 5; i++) {
        MD_UNROLL(8)
        for (int64_t i_2 = 0; i_2 < 3; i_2++) {
            out[i * 3 + i_2] = x[i + i_2 * 5] * 2.0f;
        }
    }
}

/* transpose_main_entry: 1 steps, 0 bytes of arena, 15 FLOPs, line 3 */
int transpose_main_entry(transpose *m, const transpose_main_entry_in *in, transpose_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return transpose_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [3, 5] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [5, 3] */

    /* line 5: return t * 2 */
    transpose_main_out(out_, x); /* 0 */
    out->out = out_;
    return TRANSPOSE_OK;
}

