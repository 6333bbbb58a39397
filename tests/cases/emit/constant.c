/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int constant_refused(const constant *m) {
    return m != NULL && !m->bound ? CONSTANT_ERR_STATE : CONSTANT_ERR_ARGUMENT;
}

/* constant.mdl:6  when wide { y = exp(x); } else { y = x * table; }  [4] */
static void constant_main_out(float *out, const float *x) {
    MD_IVDEP
    for (int64_t i = 0; i < 4; i++) {
        out[i] = x[i] * md_madf(0.5f, (float)(int32_t)i, 1.0f);
    }
}

/* constant_main_entry: 1 steps, 0 bytes of arena, 16 FLOPs, line 5 */
int constant_main_entry(constant *m, const constant_main_entry_in *in, constant_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return constant_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [4] */

    /* line 6: when wide { y = exp(x); } else { y = x * table; } */
    constant_main_out(out_, x); /* 0 */
    out->out = out_;
    return CONSTANT_OK;
}

