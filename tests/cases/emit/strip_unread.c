/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int strip_unread_refused(const strip_unread *m) {
    return m != NULL && !m->bound ? STRIP_UNREAD_ERR_STATE : STRIP_UNREAD_ERR_ARGUMENT;
}

/* strip_unread.mdl:14  n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad")  [1, 1] */
static void strip_unread_product(uint8_t *MD_RESTRICT argmax, float *MD_RESTRICT product,
        const float *MD_RESTRICT x1) {
    float sum = 0.0f;
    for (int64_t k = 0; k < 15; k++) {
        const float x1_value = x1[k];
        sum += x1_value * x1_value;
    }
    product[0] = sum;
    argmax[0] = 0;
}

/* strip_unread.mdl:14  n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad")  [1, 1, 15, 1] */
static void strip_unread_call1_out6(float *out6, const uint8_t *MD_RESTRICT argmax,
        const float *x1, int64_t n) {
    const float t = 0 == argmax[0] ? 1.0f : 0.0f;
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        out6[i] = t * x1[i] * 2.0f;
    }
}

/* strip_unread_call1: 2 steps, 128 bytes of arena, 61 FLOPs, line 11 */
int strip_unread_call1(strip_unread *m, const strip_unread_call1_in *in, strip_unread_call1_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x1 == NULL) {
        return strip_unread_refused(m);
    }
    /* inputs */
    const float *x1 = in->x1; /* [15, 1, 1, 1] */
    /* results */
    float *out6 = MD_AT(float, m->io, 0); /* [1, 1, 15, 1] */
    /* arena */
    uint8_t *argmax = MD_AT(uint8_t, m->arena, 0); /* u8 to 1, steps 0..1 */
    float *product = MD_AT(float, m->arena, 64); /* [1, 1] to 68, steps 0..0, workspace */

    /* line 14: n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad") */
    strip_unread_product(argmax, product, x1); /* 0 */
    strip_unread_call1_out6(out6, argmax, x1, 15); /* 1 */
    out->out6 = out6;
    return STRIP_UNREAD_OK;
}

