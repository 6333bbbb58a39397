/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int momentum_clip_refused(const momentum_clip *m) {
    return m != NULL && !m->bound ? MOMENTUM_CLIP_ERR_STATE : MOMENTUM_CLIP_ERR_ARGUMENT;
}

/* momentum_clip.mdl:4  model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); }  [32, 24] */
typedef struct {
    const float *bias, *y;
} momentum_clip_fc_linear_args;

static void momentum_clip_fc_linear_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const momentum_clip_fc_linear_args args = *(const momentum_clip_fc_linear_args *)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 24; n++) {
            block[n - n0] = block[n - n0] + args.bias[n] - args.y[m * 24 + n];
        }
    }
}

static const md_tile momentum_clip_fc_linear_tile = {
    MD_TILE_ROWS(32, /* A */ 16, /* C */ 24), MD_TILE_COLUMNS(24, /* B */ 16, /* C */ 1),
    MD_TILE_SUM(16, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(/* rows */ 32, /* columns */ 32, /* vectors */ 2, /* sum */ 16),
    MD_TILE_WORK(/* strip */ 512, /* turned */ 512, /* all */ 512)
};
MD_TILE_PART(momentum_clip_fc_linear, momentum_clip_fc_linear_tile, md_tile_part_f32, momentum_clip_fc_linear_epilogue)

static void momentum_clip_fc_linear(float *sub, float *panels, const float *x,
        const float *weight, const float *bias, const float *y) {
    momentum_clip_fc_linear_args args = {bias, y};
    md_tile_run(&momentum_clip_fc_linear_tile, momentum_clip_fc_linear_part, x, weight, sub,
        &args, panels, NULL, 8);
}

/* momentum_clip.mdl:6  loss mean((net(x) - y)^2)  [] */
static void momentum_clip_fit_loss(float *MD_RESTRICT loss, const float *MD_RESTRICT sub,
        int64_t n) {
    float sum_part[64] = {0};
    int64_t j_base = 0;
    for (; j_base + 64 <= n; j_base += 64) {
        for (int64_t l = 0; l < 64; l++) {
            const int64_t j = j_base + l;
            const float t = sub[j];
            sum_part[l] += t * t;
        }
    }
    const float sum = md_lanes_addf(sum_part, 64);
    loss[0] = sum * 0.0013020834f;
}

/* momentum_clip.mdl:4  model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); }  [24] */
static void momentum_clip_fc_linear_2(float *MD_RESTRICT sum, const float *MD_RESTRICT sub) {
    MD_IVDEP
    for (int64_t j = 0; j < 24; j++) {
        sum[j] = 0.0f;
    }
    for (int64_t k = 0; k < 32; k++) {
        MD_IVDEP
        for (int64_t j = 0; j < 24; j++) {
            sum[j] += sub[k * 24 + j];
        }
    }
}

/* momentum_clip.mdl:4  model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); }  [24, 16] */
static const md_tile momentum_clip_fc_linear_3_tile = {
    MD_TILE_ROWS(24, /* A */ 1, /* C */ 16), MD_TILE_COLUMNS(16, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(32, /* A */ 24, /* B */ 16), MD_TILE_NO_BATCH, sizeof(float), MD_TILE_IN_PLACE,
    MD_TILE_BLOCKS(/* rows */ 24, /* columns */ 32, /* vectors */ 2, /* sum */ 32),
    MD_TILE_NO_WORK
};
MD_TILE_PART(momentum_clip_fc_linear_3, momentum_clip_fc_linear_3_tile, md_tile_part_f32, md_tile_none_f32)

static void momentum_clip_fc_linear_3(float *linear, const float *sub, const float *x) {
    md_tile_run(&momentum_clip_fc_linear_3_tile, momentum_clip_fc_linear_3_part, sub, x, linear,
        NULL, NULL, NULL, 8);
}

/* momentum_clip.mdl:8  clip norm(1.0)  [] */
static void momentum_clip_linear_clip(float *MD_RESTRICT clip_sum,
        const float *MD_RESTRICT linear, int64_t n) {
    float sum_part[64] = {0};
    int64_t j_base = 0;
    for (; j_base + 64 <= n; j_base += 64) {
        for (int64_t l = 0; l < 64; l++) {
            const int64_t j = j_base + l;
            const float t = linear[j] * 0.0026041667f;
            sum_part[l] += t * t;
        }
    }
    const float sum = md_lanes_addf(sum_part, 64);
    clip_sum[0] = sum;
}

/* momentum_clip.mdl:8  clip norm(1.0)  [] */
static void momentum_clip_fit_grad_norm(float *grad_norm, const float *clip_sum,
        const float *MD_RESTRICT sum, int64_t n) {
    float sum_part[16] = {0};
    int64_t j_base = 0;
    for (; j_base + 16 <= n; j_base += 16) {
        for (int64_t l = 0; l < 16; l++) {
            const int64_t j = j_base + l;
            const float t = sum[j] * 0.0026041667f;
            sum_part[l] += t * t;
        }
    }
    for (int64_t l = 0; l < n - j_base; l++) {
        const int64_t j = j_base + l;
        const float t_2 = sum[j] * 0.0026041667f;
        sum_part[l] += t_2 * t_2;
    }
    const float sum_2 = md_lanes_addf(sum_part, 16);
    grad_norm[0] = md_sqrtf(clip_sum[0] + sum_2);
}

/* momentum_clip.mdl:7  optimizer sgd(lr = 0.1, momentum = 0.9)  [] */
static void momentum_clip_fit_lr(float *MD_RESTRICT lr, int64_t *step_next, const int64_t *step) {
    const int64_t t = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    step_next[0] = t;
}

/* momentum_clip.mdl:7  optimizer sgd(lr = 0.1, momentum = 0.9)  [24, 16]; called at 2 places */
static void momentum_clip_linear_clip_sgd(float *b_next, float *weight_next,
        const int64_t *MD_RESTRICT step_next, const float *linear,
        const float *MD_RESTRICT grad_norm, const float *b, const float *weight, int64_t n) {
    const int t = step_next[0] == 1;
    const float t_2 = md_minf(1.0f / (grad_norm[0] + 1e-06f), 1.0f);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        const float t_3 = linear[i];
        const float t_4 = t_3 * 0.0026041667f * t_2;
        const float b_value = b[i];
        const float t_5 = t ? t_4 : 0.9f * (fabsf(b_value) < 1.1754944e-38f ? 0.0f : b_value) + t_4;
        const float t_6 = md_madf(-0.1f, t_5, weight[i]);
        b_next[i] = t_5;
        weight_next[i] = t_6;
    }
}

/* momentum_clip_fit: 10 steps, 5120 bytes of arena, 57897 FLOPs, line 5 */
int momentum_clip_fit(momentum_clip *m, const momentum_clip_fit_in *in, momentum_clip_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return momentum_clip_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [32, 16] */
    const float *y = in->y; /* [32, 24] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *grad_norm = MD_AT(float, m->io, 64); /* f32 */
    float *lr = MD_AT(float, m->io, 128); /* f32 */
    /* params */
    float *fc_weight = MD_AT(float, m->params, 0); /* [24, 16] */
    float *fc_bias = MD_AT(float, m->params, 1536); /* [24] */
    /* state */
    float *fc_weight_b = MD_AT(float, m->state, 0); /* [24, 16] */
    float *fc_bias_b = MD_AT(float, m->state, 1536); /* [24] */
    int64_t *step = MD_AT(int64_t, m->state, 1728); /* i64 */
    /* arena */
    float *sub = MD_AT(float, m->arena, 0); /* [32, 24] to 3072, steps 0..3 */
    float *fc_sum = MD_AT(float, m->arena, 4608); /* [24] to 4704, steps 2..9 */
    float *fc_linear = MD_AT(float, m->arena, 3072); /* [24, 16] to 4608, steps 3..8 */
    float *clip_sum = MD_AT(float, m->arena, 0); /* f32 to 4, steps 4..5 */
    float *panels = MD_AT(float, m->arena, 3072); /* [512] to 5120, steps 0..0, workspace */


    /* ---- forward ---- */
    /* fc, line 4: model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); } */
    momentum_clip_fc_linear(sub, panels, x, fc_weight, fc_bias, y); /* 0 */

    /* ---- loss ---- */
    /* line 6: loss mean((net(x) - y)^2) */
    momentum_clip_fit_loss(loss, sub, 768); /* 1 */

    /* ---- update ---- */
    /* fc, line 4 */
    momentum_clip_fc_linear_2(fc_sum, sub); /* 2 */
    momentum_clip_fc_linear_3(fc_linear, sub, x); /* 3 */
    /* line 8: clip norm(1.0) */
    momentum_clip_linear_clip(clip_sum, fc_linear, 384); /* 4 */
    momentum_clip_fit_grad_norm(grad_norm, clip_sum, fc_sum, 24); /* 5 */
    out->loss = *loss;
    out->grad_norm = *grad_norm;
    if (!isfinite(*loss) || !isfinite(*grad_norm)) {
        return MOMENTUM_CLIP_ERR_NONFINITE; /* nothing is updated */
    }
    /* line 7: optimizer sgd(lr = 0.1, momentum = 0.9) */
    momentum_clip_fit_lr(lr, step, step); /* 7 */
    momentum_clip_linear_clip_sgd(fc_weight_b, fc_weight, step, fc_linear, grad_norm, fc_weight_b,
            fc_weight, 384); /* 8 */
    momentum_clip_linear_clip_sgd(fc_bias_b, fc_bias, step, fc_sum, grad_norm, fc_bias_b, fc_bias,
            24); /* 9 */
    out->loss = *loss;
    out->grad_norm = *grad_norm;
    out->lr = *lr;
    return MOMENTUM_CLIP_OK;
}

/* momentum_clip.mdl:4  model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); }  [] */
static void momentum_clip_fill_step(int64_t *MD_RESTRICT step_next,
        int64_t *MD_RESTRICT steps_next) {
    step_next[0] = 0;
    steps_next[0] = 0;
}

/* momentum_clip.mdl:4  model net(x: [B, N]) -> [B, M] { return x |> fc: linear(out = M); }  [24, 16]; called at 2 places */
static void momentum_clip_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.5f, -0.25f);
    }
}

/* momentum_clip.mdl:7  optimizer sgd(lr = 0.1, momentum = 0.9)  [24, 16]; called at 2 places */
static void momentum_clip_fill(float *MD_RESTRICT b_next, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        b_next[i] = 0.0f;
    }
}

