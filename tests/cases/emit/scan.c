/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int scan_refused(const scan *m) {
    return m != NULL && !m->bound ? SCAN_ERR_STATE : SCAN_ERR_ARGUMENT;
}

/* scan.mdl:4  scan t < T carry h = zeros([N]), last = zeros([N]) {  [4] */
static void scan_fill_h_2(float *MD_RESTRICT h, float *MD_RESTRICT last, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        h[i] = 0.0f;
        last[i] = 0.0f;
    }
}

/* scan.mdl:5  g = tanh(x[t, :] + h)  [4] */
static void scan_main_seen(float *last_next, float *h_next, float *seen, const float *h,
        const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float h_value = h[i];
        const float g = md_tanhf(x[i] + h_value);
        last_next[i] = h_value;
        h_next[i] = g;
        seen[i] = g;
    }
}

/* scan_main_entry: 3 steps, 0 bytes of arena, 40 FLOPs, line 3 */
int scan_main_entry(scan *m, const scan_main_entry_in *in, scan_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return scan_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [5, 4] */
    /* results */
    const float *h = MD_AT(const float, m->io, 0); /* [4] */
    const float *last = MD_AT(const float, m->io, 64); /* [4] */
    float *seen = MD_AT(float, m->io, 128); /* [5, 4] */
    /* arena */
    float *h_2 = MD_AT(float, m->io, 0); /* [4] result h */
    float *last_2 = MD_AT(float, m->io, 64); /* [4] result last */
    float *h_2_next = MD_AT(float, m->io, 0); /* [4] result h */
    float *last_2_next = MD_AT(float, m->io, 64); /* [4] result last */

    /* line 4: scan t < T carry h = zeros([N]), last = zeros([N]) { */
    scan_fill_h_2(h_2, last_2, 4); /* 0 */
    /* line 5: g = tanh(x[t, :] + h) */
    for (int64_t i0 = 0; i0 < 5; i0++) {
        scan_main_seen(last_2_next, h_2_next, seen + i0 * 4, h_2, x + i0 * 4, 4); /* 2 */
    }
    out->h = h;
    out->last = last;
    out->seen = seen;
    return SCAN_OK;
}

