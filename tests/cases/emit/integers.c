/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int integers_refused(const integers *m) {
    return m != NULL && !m->bound ? INTEGERS_ERR_STATE : INTEGERS_ERR_ARGUMENT;
}

/* integers.mdl:3  entry main(i: i32[N]) { return i * 3 + 1, div(i, 4), i % 4; }  [9] */
static void integers_main_out0_out1_out2(int32_t *out0, int32_t *out1, int32_t *out2,
        const int32_t *i, int64_t n) {
    MD_IVDEP
    for (int64_t i_2 = 0; i_2 < n; i_2++) {
        const int32_t i_value = i[i_2];
        const int32_t t = (int32_t)((uint32_t)(int32_t)((uint32_t)i_value * (uint32_t)3) + (uint32_t)1);
        const int32_t t_2 = (int32_t)md_idiv(i_value, 4);
        const int32_t t_3 = (int32_t)md_irem(i_value, 4);
        out0[i_2] = t;
        out1[i_2] = t_2;
        out2[i_2] = t_3;
    }
}

/* integers_main_entry: 1 steps, 0 bytes of arena, 0 FLOPs, line 3 */
int integers_main_entry(integers *m, const integers_main_entry_in *in, integers_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->i == NULL) {
        return integers_refused(m);
    }
    /* inputs */
    const int32_t *i = in->i; /* [9] */
    /* results */
    int32_t *out0 = MD_AT(int32_t, m->io, 0); /* [9] */
    int32_t *out1 = MD_AT(int32_t, m->io, 64); /* [9] */
    int32_t *out2 = MD_AT(int32_t, m->io, 128); /* [9] */

    /* line 3: entry main(i: i32[N]) { return i * 3 + 1, div(i, 4), i % 4; } */
    integers_main_out0_out1_out2(out0, out1, out2, i, 9); /* 0 */
    out->out0 = out0;
    out->out1 = out1;
    out->out2 = out2;
    return INTEGERS_OK;
}

