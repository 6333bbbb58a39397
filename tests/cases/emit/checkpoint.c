/* ---- model ---- */

/* checkpoint.mdl:4  @checkpoint scan t < T carry h = zeros([N]) {  [8] */
static void checkpoint_main_broadcast(float *MD_RESTRICT h) {
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        h[i] = 0.0f;
    }
}

/* checkpoint.mdl:6  h <- tanh(u * u + h)  [8] */
static void checkpoint_main_h(float *h, float *h_next, const float *h_2, const float *x) {
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        const float h_3 = h_2[i];
        const float u = md_expf(h_3) * x[i];
        const float t = md_tanhf(md_madf(u, u, h_3));
        h[i] = h_3;
        h_next[i] = t;
    }
}

/* checkpoint.mdl:8  return grad(sum(h * h), x)  [8] */
static void checkpoint_main_mul(float *add, const float *h) {
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        add[i] = h[i] * 2.0f;
    }
}

/* checkpoint.mdl:5  u = exp(h) * x[t, :]  [8] */
static void checkpoint_main_add(float *out, float *add_next, const float *add, const float *h,
                                const float *x) {
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        const float t = h[i];
        const float t_2 = md_expf(t);
        const float x_value = x[i];
        const float t_3 = t_2 * x_value;
        const float t_4 = md_tanhf(md_madf(t_3, t_3, t));
        const float t_5 = add[i] * md_madf(-t_4, t_4, 1.0f);
        const float t_6 = t_5 * t_3 * 2.0f;
        const float t_7 = t_6 * t_2;
        const float t_8 = t_5 + t_6 * x_value * t_2;
        out[i] = t_7;
        add_next[i] = t_8;
    }
}

/* checkpoint_main_entry: 6 steps, 256 bytes of arena, 920 FLOPs, line 3 */
int checkpoint_main_entry(checkpoint *m, const checkpoint_main_entry_in *in, checkpoint_main_entry_out *out) {
    if (m == NULL || in == NULL || out == NULL) {
        return CHECKPOINT_ERR_ARGUMENT;
    }
    if (!m->bound) {
        return CHECKPOINT_ERR_STATE;
    }
    if (in->x == NULL) {
        return CHECKPOINT_ERR_ARGUMENT;
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

    checkpoint_main_broadcast(h); /* 0, line 4: @checkpoint scan t < T carry h = zeros([N]) {  [8] */
    for (int64_t i0 = 0; i0 < 6; i0++) { /* h <- tanh(u * u + h)  [] */
        checkpoint_main_h(h_2 + i0 * 8, h_next, h, x + i0 * 8); /* 2, line 6: h <- tanh(u * u + h)  [8] */
    }
    checkpoint_main_mul(add, h); /* 3, line 8: return grad(sum(h * h), x)  [8] */
    for (int64_t i1 = 5; i1 >= 0; i1--) { /* h <- tanh(u * u + h)  [] */
        checkpoint_main_add(out_ + i1 * 8, add_next, add, h_2 + i1 * 8, x + i1 * 8); /* 5, line 5: u = exp(h) * x[t, :]  [8] */
    }
    out->out = out_;
    return CHECKPOINT_OK;
}

