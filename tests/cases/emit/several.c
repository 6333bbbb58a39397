/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int several_refused(const several *m) {
    return m != NULL && !m->bound ? SEVERAL_ERR_STATE : SEVERAL_ERR_ARGUMENT;
}

/* several.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> tanh; }  [8, 4] */
static void several_many_out_2(float *MD_RESTRICT out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight, const float *MD_RESTRICT bias) {
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        const float x_value = x[i * 4];
        const float x_value_2 = x[i * 4 + 1];
        const float x_value_3 = x[i * 4 + 2];
        const float x_value_4 = x[i * 4 + 3];
        MD_UNROLL(8)
        for (int64_t i_2 = 0; i_2 < 4; i_2++) {
            out[i * 4 + i_2] = md_tanhf(x_value * weight[i_2 * 4] + x_value_2 * weight[i_2 * 4 + 1] + x_value_3 * weight[i_2 * 4 + 2] + x_value_4 * weight[i_2 * 4 + 3] + bias[i_2]);
        }
    }
}

/* several_many: 1 steps, 0 bytes of arena, 288 FLOPs, line 5 */
int several_many(several *m, const several_many_in *in, several_many_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return several_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [8, 4] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [8, 4] */
    /* params */
    const float *fc_weight = MD_AT(const float, m->params, 0); /* [4, 4] */
    const float *fc_bias = MD_AT(const float, m->params, 64); /* [4] */

    /* line 4: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> tanh; } */
    several_many_out_2(out_, x, fc_weight, fc_bias); /* 0 */
    out->out = out_;
    return SEVERAL_OK;
}

/* several.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> tanh; }  [1, 4] */
static void several_one_out_2(float *out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight, const float *bias) {
    const float x_value = x[0];
    const float x_value_2 = x[1];
    const float x_value_3 = x[2];
    const float x_value_4 = x[3];
    MD_IVDEP
    for (int64_t i = 0; i < 4; i++) {
        out[i] = md_tanhf(x_value * weight[i * 4] + x_value_2 * weight[i * 4 + 1] + x_value_3 * weight[i * 4 + 2] + x_value_4 * weight[i * 4 + 3] + bias[i]);
    }
}

/* several_one: 1 steps, 0 bytes of arena, 36 FLOPs, line 6 */
int several_one(several *m, const several_one_in *in, several_one_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return several_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [1, 4] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [1, 4] */
    /* params */
    const float *fc_weight = MD_AT(const float, m->params, 0); /* [4, 4] */
    const float *fc_bias = MD_AT(const float, m->params, 64); /* [4] */

    /* line 4: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> tanh; } */
    several_one_out_2(out_, x, fc_weight, fc_bias); /* 0 */
    out->out = out_;
    return SEVERAL_OK;
}

/* several.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> tanh; }  [4, 4]; called at 2 places */
static void several_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_rand_uniform_f32(key, (uint64_t)i) + -0.5f;
    }
}

