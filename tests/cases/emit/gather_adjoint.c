/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int gather_adjoint_refused(const gather_adjoint *m) {
    return m != NULL && !m->bound ? GATHER_ADJOINT_ERR_STATE : GATHER_ADJOINT_ERR_ARGUMENT;
}

static int gather_adjoint_outside_u8(const uint8_t *x, int64_t count, int64_t lo, int64_t hi) {
    int outside = 0;
    for (int64_t i = 0; i < count; i++) {
        outside |= (int64_t)x[i] < lo || (int64_t)x[i] >= hi;
    }
    return outside;
}

/* gather_adjoint.mdl:4  y[n, c] = w[i[n], c]  [11, 4] */
static void gather_adjoint_main_out(float *MD_RESTRICT out, const uint8_t *MD_RESTRICT i,
        const float *MD_RESTRICT w) {
    for (int64_t n = 0; n < 11; n++) {
        MD_IVDEP
        for (int64_t j = 0; j < 4; j++) {
            out[j + n * 4] = 0.0f;
        }
    }
    for (int64_t k = 0; k < 7; k++) {
        const uint8_t i_value = i[k];
        MD_IVDEP
        for (int64_t j = 0; j < 4; j++) {
            out[j + (int64_t)i_value * 4] += w[j + (int64_t)i_value * 4] * 2.0f;
        }
    }
}

/* gather_adjoint_main_entry: 2 steps, 0 bytes of arena, 56 FLOPs, line 3 */
int gather_adjoint_main_entry(gather_adjoint *m, const gather_adjoint_main_entry_in *in, gather_adjoint_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->w == NULL || in->i == NULL) {
        return gather_adjoint_refused(m);
    }
    /* inputs */
    const float *w = in->w; /* [11, 4] */
    const uint8_t *i = in->i; /* [7] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [11, 4] */

    if (gather_adjoint_outside_u8(i, 7, 0, 11)) {
        return GATHER_ADJOINT_ERR_RANGE;
    }
    /* line 4: y[n, c] = w[i[n], c] */
    gather_adjoint_main_out(out_, i, w); /* 1 */
    out->out = out_;
    return GATHER_ADJOINT_OK;
}

