/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int choose_refused(const choose *m) {
    return m != NULL && !m->bound ? CHOOSE_ERR_STATE : CHOOSE_ERR_ARGUMENT;
}

/* choose.mdl:4  return select(x > y and not (x == 0), x, y)  [9] */
static void choose_main_out(float *out, const float *y, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float y_value = y[i];
        const float x_value = x[i];
        out[i] = ((y_value < x_value) & (!(x_value == 0.0f))) ? x_value : y_value;
    }
}

/* choose_main_entry: 1 steps, 0 bytes of arena, 9 FLOPs, line 3 */
int choose_main_entry(choose *m, const choose_main_entry_in *in, choose_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return choose_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [9] */
    const float *y = in->y; /* [9] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [9] */

    /* line 4: return select(x > y and not (x == 0), x, y) */
    choose_main_out(out_, y, x, 9); /* 0 */
    out->out = out_;
    return CHOOSE_OK;
}

