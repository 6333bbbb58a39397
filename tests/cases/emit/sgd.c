/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int sgd_refused(const sgd *m) {
    return m != NULL && !m->bound ? SGD_ERR_STATE : SGD_ERR_ARGUMENT;
}

/* sgd.mdl:4  model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; }  [32, 1] */
static void sgd_fc_linear(float *MD_RESTRICT linear, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight) {
    for (int64_t r = 0; r < 32; r++) {
        float sum_part[16] = {0};
        int64_t k_base = 0;
        for (; k_base + 16 <= 16; k_base += 16) {
            for (int64_t l = 0; l < 16; l++) {
                const int64_t k = k_base + l;
                sum_part[l] = md_madf(x[r * 16 + k], weight[k], sum_part[l]);
            }
        }
        const float sum = md_lanes_addf(sum_part, 16);
        linear[r] = sum;
    }
}

/* sgd.mdl:4  model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; }  [1] */
static void sgd_fit_loss(float *loss, float *d_mul, float *d_bias, const float *linear,
        const float *bias, const float *y) {
    const float bias_value = bias[0];
    float sum_part[32] = {0};
    float sum_part_2[32] = {0};
    int64_t j_base = 0;
    for (; j_base + 32 <= 32; j_base += 32) {
        for (int64_t l = 0; l < 32; l++) {
            const int64_t j = j_base + l;
            const float t = linear[j] + bias_value - y[j];
            const float d_out = t * 0.0625f;
            d_mul[j] = d_out;
            sum_part[l] += t * t;
            sum_part_2[l] += d_out;
        }
    }
    const float sum = md_lanes_addf(sum_part, 32);
    const float sum_2 = md_lanes_addf(sum_part_2, 32);
    const float t_2 = sum * 0.03125f;
    loss[0] = t_2;
    d_bias[0] = sum_2;
}

/* add  [] */
static void sgd_fc_bias_sgd(float *lr, float *bias_next, int64_t *step_next, const float *d_bias,
        const float *bias, const int64_t *step) {
    const float t = md_madf(-0.1f, d_bias[0], bias[0]);
    const int64_t t_2 = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    bias_next[0] = t;
    step_next[0] = t_2;
}

/* sgd.mdl:4  model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; }  [1, 16] */
static void sgd_fc_weight_linear_sgd(float *weight_next, float *MD_RESTRICT product,
        const float *MD_RESTRICT d_mul, const float *MD_RESTRICT x, const float *weight) {
    MD_IVDEP
    for (int64_t j = 0; j < 16; j++) {
        product[j] = 0.0f;
    }
    for (int64_t k = 0; k < 32; k++) {
        const float d_out = d_mul[k];
        MD_IVDEP
        for (int64_t j = 0; j < 16; j++) {
            product[j] = md_madf(d_out, x[k * 16 + j], product[j]);
        }
    }
    MD_IVDEP
    for (int64_t i = 0; i < 16; i++) {
        weight_next[i] = md_madf(-0.1f, product[i], weight[i]);
    }
}

/* sgd_fit: 5 steps, 192 bytes of arena, 2275 FLOPs, line 5 */
int sgd_fit(sgd *m, const sgd_fit_in *in, sgd_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return sgd_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [32, 16] */
    const float *y = in->y; /* [32] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *lr = MD_AT(float, m->io, 64); /* f32 */
    /* params */
    float *fc_weight = MD_AT(float, m->params, 0); /* [1, 16] */
    float *fc_bias = MD_AT(float, m->params, 64); /* [1] */
    /* state */
    int64_t *step = MD_AT(int64_t, m->state, 64); /* i64 */
    /* arena */
    float *fc_linear = MD_AT(float, m->arena, 0); /* [32, 1] to 128, steps 0..4 */
    float *d_mul = MD_AT(float, m->arena, 0); /* [32] to 128, steps 1..4, in place of fc_linear */
    float *d_fc_bias = MD_AT(float, m->arena, 128); /* [1] to 132, steps 1..3 */
    float *product = MD_AT(float, m->arena, 128); /* [1, 16] to 192, steps 4..4, workspace */


    /* ---- forward ---- */
    /* fc, line 4: model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; } */
    sgd_fc_linear(fc_linear, x, fc_weight); /* 0 */

    /* ---- loss ---- */
    /* fc, line 4 */
    sgd_fit_loss(loss, d_mul, d_fc_bias, fc_linear, fc_bias, y); /* 1 */
    out->loss = *loss;
    if (!isfinite(*loss)) {
        return SGD_ERR_NONFINITE; /* nothing is updated */
    }

    /* ---- update ---- */
    sgd_fc_bias_sgd(lr, fc_bias, step, d_fc_bias, fc_bias, step); /* 3 */

    /* ---- backward ---- */
    /* fc, line 4 */
    sgd_fc_weight_linear_sgd(fc_weight, product, d_mul, x, fc_weight); /* 4 */
    out->loss = *loss;
    out->lr = *lr;
    return SGD_OK;
}

