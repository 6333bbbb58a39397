/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int scan_adjoint_refused(const scan_adjoint *m) {
    return m != NULL && !m->bound ? SCAN_ADJOINT_ERR_STATE : SCAN_ADJOINT_ERR_ARGUMENT;
}

/* scan_adjoint.mdl:4  scan t < T carry h = zeros([N]) { h <- tanh(x[t, :] + h); }  [8] */
static void scan_adjoint_fill_h(float *MD_RESTRICT h, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        h[i] = 0.0f;
    }
}

/* scan_adjoint.mdl:4  scan t < T carry h = zeros([N]) { h <- tanh(x[t, :] + h); }  [8] */
static void scan_adjoint_h(float *h, float *h_next, const float *h_2, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float h_3 = h_2[i];
        const float t = md_tanhf(x[i] + h_3);
        h[i] = h_3;
        h_next[i] = t;
    }
}

/* scan_adjoint.mdl:5  return grad(sum(h * h), x)  [8] */
static void scan_adjoint_d_h(float *mul, const float *h, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        mul[i] = h[i] * 2.0f;
    }
}

/* scan_adjoint.mdl:4  scan t < T carry h = zeros([N]) { h <- tanh(x[t, :] + h); }  [8] */
static void scan_adjoint_main_out(float *mul_next, float *out, const float *mul, const float *x,
        const float *h, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float t = md_tanhf(x[i] + h[i]);
        const float t_2 = mul[i] * md_madf(-t, t, 1.0f);
        mul_next[i] = t_2;
        out[i] = t_2;
    }
}

/* scan_adjoint_main_entry: 6 steps, 256 bytes of arena, 344 FLOPs, line 3 */
int scan_adjoint_main_entry(scan_adjoint *m, const scan_adjoint_main_entry_in *in, scan_adjoint_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return scan_adjoint_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [6, 8] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [6, 8] */
    /* arena */
    float *h = MD_AT(float, m->arena, 192); /* [8] to 224, steps 0..5 */
    float *mul = MD_AT(float, m->arena, 192); /* [8] to 224, steps 3..5, in place of h */
    float *h_2 = MD_AT(float, m->arena, 0); /* [6, 8] to 192, steps 1..5 */
    float *h_next = MD_AT(float, m->arena, 192); /* [8] to 224, steps 2..2, in place of h */
    float *mul_next = MD_AT(float, m->arena, 192); /* [8] to 224, steps 5..5, in place of h */

    /* line 4: scan t < T carry h = zeros([N]) { h <- tanh(x[t, :] + h); } */
    scan_adjoint_fill_h(h, 8); /* 0 */
    for (int64_t i0 = 0; i0 < 6; i0++) {
        scan_adjoint_h(h_2 + i0 * 8, h_next, h, x + i0 * 8, 8); /* 2 */
    }
    /* line 5: return grad(sum(h * h), x) */
    scan_adjoint_d_h(mul, h, 8); /* 3 */
    /* line 4 */
    for (int64_t i1 = 5; i1 >= 0; i1--) {
        scan_adjoint_main_out(mul_next, out_ + i1 * 8, mul, x + i1 * 8, h_2 + i1 * 8, 8); /* 5 */
    }
    out->out = out_;
    return SCAN_ADJOINT_OK;
}

