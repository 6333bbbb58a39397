/* ---- model ---- */

/* sgd.mdl:4  model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; }  [32, 1] */
static const md_tile sgd_fc_linear_tile = {
    MD_TILE_ROWS(1, /* A */ 0, /* C */ 0),
    MD_TILE_COLUMNS(32, /* B */ 16, /* C */ 1),
    MD_TILE_SUM(16, /* A */ 1, /* B */ 1),
    MD_TILE_NO_BATCH, sizeof(float), MD_TILE_IN_PLACE | MD_TILE_DOTS,
    MD_TILE_BLOCKS(/* rows */ 1, /* columns */ 64, /* vectors */ 4, /* sum */ 16),
    MD_TILE_NO_WORK
};

MD_TILE_PART(sgd_fc_linear, md_tile_part_f32, md_tile_none_f32)

static void sgd_fc_linear(float *MD_RESTRICT linear, const float *MD_RESTRICT x,
        const float *MD_RESTRICT weight) {
    md_tile_run(&sgd_fc_linear_tile, sgd_fc_linear_part, weight, x, linear, NULL, NULL, NULL, 8);
}

/* sgd.mdl:4  model net(x: [B, N]) -> [B] { return x |> fc: linear(out = 1) |> squeeze; }  [1] */
static void sgd_fit_loss(float *loss, float *d_mul, float *d_bias, const float *linear,
        const float *bias, const float *y) {
    const float bias_value = bias[0];
    float sum_part[32];
    float sum_part_2[32];
    for (int64_t l = 0; l < 32; l++) {
        sum_part[l] = 0.0f;
        sum_part_2[l] = 0.0f;
    }
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
static const md_tile sgd_fc_weight_linear_sgd_tile = {
    MD_TILE_ROWS(1, /* A */ 0, /* C */ 0),
    MD_TILE_COLUMNS(16, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(32, /* A */ 1, /* B */ 16),
    MD_TILE_NO_BATCH, sizeof(float), MD_TILE_NO_C,
    MD_TILE_BLOCKS(/* rows */ 1, /* columns */ 64, /* vectors */ 4, /* sum */ 32),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 64, /* all */ 64)
};

typedef struct {
    float *weight_next;
    const float *weight;
} sgd_fc_weight_linear_sgd_args;

static void sgd_fc_weight_linear_sgd_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const sgd_fc_weight_linear_sgd_args args = *(const sgd_fc_weight_linear_sgd_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            args.weight_next[n] = md_madf(-0.1f, block[n - n0], args.weight[n]);
        }
    }
}

MD_TILE_PART(sgd_fc_weight_linear_sgd, md_tile_part_f32, sgd_fc_weight_linear_sgd_epilogue)

static void sgd_fc_weight_linear_sgd(float *weight_next, float *MD_RESTRICT panels,
        const float *MD_RESTRICT d_mul, const float *MD_RESTRICT x, const float *weight) {
    sgd_fc_weight_linear_sgd_args args = {weight_next, weight};
    md_tile_run(&sgd_fc_weight_linear_sgd_tile, sgd_fc_weight_linear_sgd_part, d_mul, x, NULL,
        &args, panels, NULL, 8);
}

/* sgd_fit: 5 steps, 384 bytes of arena, 2275 FLOPs, line 5 */
int sgd_fit(sgd *m, const sgd_fit_in *in, sgd_fit_out *out) {
    if (m == NULL || in == NULL || out == NULL) {
        return SGD_ERR_ARGUMENT;
    }
    if (!m->bound) {
        return SGD_ERR_STATE;
    }
    if (in->x == NULL || in->y == NULL) {
        return SGD_ERR_ARGUMENT;
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
    float *fc_linear = MD_AT(float, m->arena, 256); /* [32, 1] to 384, steps 0..4 */
    float *d_mul = MD_AT(float, m->arena, 256); /* [32] to 384, steps 1..4, in place of fc_linear */
    float *d_fc_bias = MD_AT(float, m->arena, 0); /* [1] to 4, steps 1..3 */
    float *panels = MD_AT(float, m->arena, 0); /* [64] to 256, steps 4..4, workspace */


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
    sgd_fc_weight_linear_sgd(fc_weight, panels, d_mul, x, fc_weight); /* 4 */
    out->loss = *loss;
    out->lr = *lr;
    return SGD_OK;
}

