/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int assign_refused(const assign *m) {
    return m != NULL && !m->bound ? ASSIGN_ERR_STATE : ASSIGN_ERR_ARGUMENT;
}

/* assign.mdl:7  return sum(net.fc.bias)  [] */
static void assign_shrink_out_2(float *MD_RESTRICT out, const float *MD_RESTRICT bias) {
    out[0] = bias[0] + bias[1] + bias[2] + bias[3] + bias[4] + bias[5];
}

/* assign.mdl:6  net.fc.bias <- net.fc.bias * 0.5  [6] */
static void assign_fc_bias_update(float *bias_next, const float *bias, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        bias_next[i] = bias[i] * 0.5f;
    }
}

/* assign_shrink: 2 steps, 0 bytes of arena, 11 FLOPs, line 5 */
int assign_shrink(assign *m, assign_shrink_out *out) {
    if (m == NULL || !m->bound || out == NULL) {
        return assign_refused(m);
    }
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* f32 */
    /* params */
    float *fc_bias = MD_AT(float, m->params, 192); /* [6] */

    /* line 7: return sum(net.fc.bias) */
    assign_shrink_out_2(out_, fc_bias); /* 0 */
    /* line 6: net.fc.bias <- net.fc.bias * 0.5 */
    assign_fc_bias_update(fc_bias, fc_bias, 6); /* 1 */
    out->out = *out_;
    return ASSIGN_OK;
}

/* assign.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(N); }  [2, 6] */
static void assign_run_out_2(float *MD_RESTRICT out, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight, const float *MD_RESTRICT bias) {
    for (int64_t i = 0; i < 2; i++) {
        const float x_value = x[i * 6];
        const float x_value_2 = x[i * 6 + 1];
        const float x_value_3 = x[i * 6 + 2];
        const float x_value_4 = x[i * 6 + 3];
        const float x_value_5 = x[i * 6 + 4];
        const float x_value_6 = x[i * 6 + 5];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 6; i_2++) {
            out[i * 6 + i_2] = x_value * weight[i_2 * 6] + x_value_2 * weight[i_2 * 6 + 1] + x_value_3 * weight[i_2 * 6 + 2] + x_value_4 * weight[i_2 * 6 + 3] + x_value_5 * weight[i_2 * 6 + 4] + x_value_6 * weight[i_2 * 6 + 5] + bias[i_2];
        }
    }
}

/* assign_run: 1 steps, 0 bytes of arena, 144 FLOPs, line 9 */
int assign_run(assign *m, const assign_run_in *in, assign_run_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return assign_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 6] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [2, 6] */
    /* params */
    const float *fc_weight = MD_AT(const float, m->params, 0); /* [6, 6] */
    const float *fc_bias = MD_AT(const float, m->params, 192); /* [6] */

    /* fc, line 4: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(N); } */
    assign_run_out_2(out_, x, fc_weight, fc_bias); /* 0 */
    out->out = out_;
    return ASSIGN_OK;
}

/* assign.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(N); }  [6, 6]; called at 2 places */
static void assign_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.8164966f, -0.4082483f);
    }
}

