/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int gather_refused(const gather *m) {
    return m != NULL && !m->bound ? GATHER_ERR_STATE : GATHER_ERR_ARGUMENT;
}

static int gather_outside_u8(const uint8_t *x, int64_t count, int64_t lo, int64_t hi) {
    int outside = 0;
    for (int64_t i = 0; i < count; i++) {
        outside |= (int64_t)x[i] < lo || (int64_t)x[i] >= hi;
    }
    return outside;
}

/* gather.mdl:4  y[n, c] = w[i[n], c]  [7, 4] */
static void gather_main_out(float *MD_RESTRICT out, const uint8_t *MD_RESTRICT i,
        const float *MD_RESTRICT w) {
    MD_IVDEP
    for (int64_t i_2 = 0; i_2 < 7; i_2++) {
        const uint8_t i_value = i[i_2];
        MD_UNROLL(8)
        for (int64_t i_3 = 0; i_3 < 4; i_3++) {
            out[i_2 * 4 + i_3] = w[i_3 + (int64_t)i_value * 4];
        }
    }
}

/* gather_main_entry: 2 steps, 0 bytes of arena, 0 FLOPs, line 3 */
int gather_main_entry(gather *m, const gather_main_entry_in *in, gather_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->w == NULL || in->i == NULL) {
        return gather_refused(m);
    }
    /* inputs */
    const float *w = in->w; /* [11, 4] */
    const uint8_t *i = in->i; /* [7] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [7, 4] */

    if (gather_outside_u8(i, 7, 0, 11)) {
        return GATHER_ERR_RANGE;
    }
    /* line 4: y[n, c] = w[i[n], c] */
    gather_main_out(out_, i, w); /* 1 */
    out->out = out_;
    return GATHER_OK;
}

