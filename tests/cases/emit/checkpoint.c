/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int checkpoint_refused(const checkpoint *m) {
    return m != NULL && !m->bound ? CHECKPOINT_ERR_STATE : CHECKPOINT_ERR_ARGUMENT;
}

/* checkpoint.mdl:4  @checkpoint scan t < T carry h = zeros([N]) {  [8] */
static void checkpoint_fill_h(float *MD_RESTRICT h, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        h[i] = 0.0f;
    }
}

/* checkpoint.mdl:6  h <- tanh(u * u + h)  [8] */
static void checkpoint_h(float *h, float *h_next, const float *h_2, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float h_3 = h_2[i];
        const float u = md_expf(h_3) * x[i];
        const float t = md_tanhf(md_madf(u, u, h_3));
        h[i] = h_3;
        h_next[i] = t;
    }
}

/* checkpoint.mdl:8  return grad(sum(h * h), x)  [8] */
static void checkpoint_d_h(float *add, const float *h, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        add[i] = h[i] * 2.0f;
    }
}

/* checkpoint.mdl:5  u = exp(h) * x[t, :]  [8] */
static void checkpoint_main_out(float *out, float *add_next, const float *add, const float *h,
        const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float t = h[i];
        const float t_2 = md_expf(t);
        const float x_value = x[i];
        const float u = t_2 * x_value;
        const float t_3 = md_tanhf(md_madf(u, u, t));
        const float t_4 = add[i] * md_madf(-t_3, t_3, 1.0f);
        const float d_u = t_4 * u * 2.0f;
        const float t_5 = d_u * t_2;
        const float t_6 = t_4 + d_u * x_value * t_2;
        out[i] = t_5;
        add_next[i] = t_6;
    }
}

/* checkpoint_main_entry: 6 steps, 256 bytes of arena, 920 FLOPs, line 3 */
int checkpoint_main_entry(checkpoint *m, const checkpoint_main_entry_in *in, checkpoint_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return checkpoint_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [6, 8] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [6, 8] */
    /* arena */
    float *h = MD_AT(float, m->arena, 192); /* [8] to 224, steps 0..5 */
    float *add = MD_AT(float, m->arena, 192); /* [8] to 224, steps 3..5, in place of h */
    float *h_2 = MD_AT(float, m->arena, 0); /* [6, 8] to 192, steps 1..5 */
    float *h_next = MD_AT(float, m->arena, 192); /* [8] to 224, steps 2..2, in place of h */
    float *add_next = MD_AT(float, m->arena, 192); /* [8] to 224, steps 5..5, in place of h */

    /* line 4: @checkpoint scan t < T carry h = zeros([N]) { */
    checkpoint_fill_h(h, 8); /* 0 */
    /* line 6: h <- tanh(u * u + h) */
    for (int64_t i0 = 0; i0 < 6; i0++) {
        checkpoint_h(h_2 + i0 * 8, h_next, h, x + i0 * 8, 8); /* 2 */
    }
    /* line 8: return grad(sum(h * h), x) */
    checkpoint_d_h(add, h, 8); /* 3 */
    /* line 6 */
    for (int64_t i1 = 5; i1 >= 0; i1--) {
        /* line 5: u = exp(h) * x[t, :] */
        checkpoint_main_out(out_ + i1 * 8, add_next, add, h_2 + i1 * 8, x + i1 * 8, 8); /* 5 */
    }
    out->out = out_;
    return CHECKPOINT_OK;
}

