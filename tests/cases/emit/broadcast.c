/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int broadcast_refused(const broadcast *m) {
    return m != NULL && !m->bound ? BROADCAST_ERR_STATE : BROADCAST_ERR_ARGUMENT;
}

/* broadcast.mdl:4  z[i, j] = x[i, j] * sqrt(r[i]) + c[j]  [5, 70] */
static void broadcast_main_out(float *out, const float *x, const float *MD_RESTRICT r,
        const float *MD_RESTRICT c) {
    for (int64_t i = 0; i < 5; i++) {
        const float t = md_sqrtf(r[i]);
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 70; i_2++) {
            out[i * 70 + i_2] = md_madf(x[i * 70 + i_2], t, c[i_2]);
        }
    }
}

/* broadcast_main_entry: 1 steps, 0 bytes of arena, 705 FLOPs, line 3 */
int broadcast_main_entry(broadcast *m, const broadcast_main_entry_in *in, broadcast_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->r == NULL ||
            in->c == NULL) {
        return broadcast_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [5, 70] */
    const float *r = in->r; /* [5] */
    const float *c = in->c; /* [70] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [5, 70] */

    /* line 4: z[i, j] = x[i, j] * sqrt(r[i]) + c[j] */
    broadcast_main_out(out_, x, r, c); /* 0 */
    out->out = out_;
    return BROADCAST_OK;
}

