/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int nested_refused(const nested *m) {
    return m != NULL && !m->bound ? NESTED_ERR_STATE : NESTED_ERR_ARGUMENT;
}

/* nested.mdl:4  scan s < S carry a = zeros([N]) {  [5] */
static void nested_fill_a(float *MD_RESTRICT a, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        a[i] = 0.0f;
    }
}

/* nested.mdl:5  scan t < T carry b = a { b <- b * 0.5 + x[s, t, :]; }  [5] */
static void nested_a(float *b, const float *a, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        b[i] = a[i];
    }
}

/* nested.mdl:5  scan t < T carry b = a { b <- b * 0.5 + x[s, t, :]; }  [5] */
static void nested_fma(float *b_next, const float *b, const float *x, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        b_next[i] = md_madf(b[i], 0.5f, x[i]);
    }
}

/* nested_main_entry: 5 steps, 0 bytes of arena, 120 FLOPs, line 3 */
int nested_main_entry(nested *m, const nested_main_entry_in *in, nested_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return nested_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [3, 4, 5] */
    /* results */
    const float *out_ = MD_AT(const float, m->io, 0); /* [5] */
    /* arena */
    float *a = MD_AT(float, m->io, 0); /* [5] result out_ */
    float *b = MD_AT(float, m->io, 0); /* [5] result out_ */
    float *b_next = MD_AT(float, m->io, 0); /* [5] result out_ */

    /* line 4: scan s < S carry a = zeros([N]) { */
    nested_fill_a(a, 5); /* 0 */
    /* line 5: scan t < T carry b = a { b <- b * 0.5 + x[s, t, :]; } */
    for (int64_t i0 = 0; i0 < 3; i0++) {
        nested_a(b, a, 5); /* 2 */
        for (int64_t i1 = 0; i1 < 4; i1++) {
            nested_fma(b_next, b, x + i1 * 5 + i0 * 20, 5); /* 4 */
        }
    }
    out->out = out_;
    return NESTED_OK;
}

