/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int streams_refused(const streams *m) {
    return m != NULL && !m->bound ? STREAMS_ERR_STATE : STREAMS_ERR_ARGUMENT;
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [64, 384] */
typedef struct {
    const float *bias;
} streams_wide_linear_args;

static void streams_wide_linear_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_wide_linear_args args = *(const streams_wide_linear_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            block[n - n0] = block[n - n0] + args.bias[n];
        }
    }
}

static const md_tile streams_wide_linear_tile = {
    MD_TILE_ROWS(384, /* B */ 512, /* C */ 1), MD_TILE_COLUMNS(64, /* A */ 512, /* C */ 384),
    MD_TILE_SUM(512, /* B */ 1, /* A */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_SWAPPED | MD_TILE_PACKED | MD_TILE_UNCUT,
    MD_TILE_BLOCKS(/* rows */ 224, /* columns */ 64, /* vectors */ 2, /* sum */ 512),
    MD_TILE_WORK(/* strip */ 32768, /* turned */ 47104, /* all */ 47104)
};
MD_TILE_BLOCK(streams_wide_linear, streams_wide_linear_tile, float, md_tile_block_f32)
MD_TILE_LARGE_PART(streams_wide_linear, streams_wide_linear_tile, md_tile_share_of_f32, streams_wide_linear_epilogue, streams_wide_linear, NULL)

static void streams_wide_linear(float *out, float *panels, const float *x, const float *weight,
        const float *bias, md_pace *pace) {
    streams_wide_linear_args args = {bias};
    md_tile_run(&streams_wide_linear_tile, streams_wide_linear_part, x, weight, out, &args,
        panels, pace, 8);
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [64, 8] */
typedef struct {
    const float *bias, *y;
} streams_head_linear_args;

static void streams_head_linear_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_head_linear_args args = *(const streams_head_linear_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            block[n - n0] = block[n - n0] + args.bias[n] - args.y[m * 8 + n];
        }
    }
}

static const md_tile streams_head_linear_tile = {
    MD_TILE_ROWS(64, /* A */ 384, /* C */ 8), MD_TILE_COLUMNS(8, /* B */ 384, /* C */ 1),
    MD_TILE_SUM(384, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_ALONG,
    MD_TILE_BLOCKS(/* rows */ 64, /* columns */ 8, /* vectors */ 4, /* sum */ 384),
    MD_TILE_NO_WORK
};
MD_TILE_PART(streams_head_linear, streams_head_linear_tile, md_tile_part_f32, streams_head_linear_epilogue)

static void streams_head_linear(float *sub, const float *out, const float *weight,
        const float *bias, const float *y) {
    streams_head_linear_args args = {bias, y};
    md_tile_run(&streams_head_linear_tile, streams_head_linear_part, out, weight, sub, &args,
        NULL, NULL, 8);
}

/* streams.mdl:7  loss mean((net(x) - y)^2)  [] */
static void streams_fit_loss(float *MD_RESTRICT loss, const float *MD_RESTRICT sub, int64_t n) {
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
    loss[0] = sum * 0.001953125f;
}

/* streams.mdl:8  optimizer adamw(lr = 0.1)  [] */
static void streams_fit_lr(float *MD_RESTRICT lr, int64_t *step_next, const int64_t *step) {
    const int64_t t = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    step_next[0] = t;
}

/* streams.mdl:8  optimizer adamw(lr = 0.1)  [8] */
static void streams_head_bias_linear_adamw(float *m_next, float *v_next, float *bias_next,
        float *MD_RESTRICT column, const float *MD_RESTRICT sub, const float *m, const float *v,
        const float *bias, const int64_t *MD_RESTRICT step_next) {
    MD_IVDEP
    for (int64_t j = 0; j < 8; j++) {
        column[j] = 0.0f;
    }
    for (int64_t k = 0; k < 64; k++) {
        MD_IVDEP
        for (int64_t j = 0; j < 8; j++) {
            column[j] += sub[k * 8 + j];
        }
    }
    const float t = (float)step_next[0];
    const float t_2 = -0.1f / md_expm1f(t * (-0.105360515f));
    const float t_3 = md_sqrtf(-(md_expm1f(t * (-0.0010005003f))));
    const float t_4 = fabsf(t_3) < 1.1754944e-38f ? 1.8446744e+19f : 1.0f;
    const float t_5 = 1.0f / (t_3 * t_4);
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        const float m_value = m[i];
        const float t_6 = column[i];
        const float t_7 = 0.9f * (fabsf(m_value) < 1.1754944e-38f ? 0.0f : m_value) + t_6 * 0.000390625f;
        const float v_value = v[i];
        const float t_8 = t_6 * 0.00390625f;
        const float t_9 = 0.999f * (fabsf(v_value) < 1.1754944e-38f ? 0.0f : v_value) + 0.001f * (t_8 * t_8);
        const float t_10 = md_madf(bias[i], 0.999f, -(t_2 * t_7 / md_madf(md_sqrtf(t_9) * t_4, t_5, 1e-08f)));
        m_next[i] = t_7;
        v_next[i] = t_9;
        bias_next[i] = t_10;
    }
}

/* streams.mdl:8  optimizer adamw(lr = 0.1)  [384] */
static void streams_wide_bias_linear_adamw(float *MD_RESTRICT d_linear, float *m_next,
        float *v_next, float *bias_next, float *MD_RESTRICT column, const float *MD_RESTRICT sub,
        const float *MD_RESTRICT weight, const float *m, const float *v, const float *bias,
        const int64_t *MD_RESTRICT step_next) {
    MD_IVDEP
    for (int64_t j = 0; j < 384; j++) {
        column[j] = 0.0f;
    }
    for (int64_t c = 0; c < 8; c++) {
        MD_IVDEP
        for (int64_t j = 0; j < 384; j++) {
            const float weight_value = weight[j];
            const float weight_value_2 = weight[j + 384];
            const float weight_value_3 = weight[j + 768];
            const float weight_value_4 = weight[j + 1152];
            const float weight_value_5 = weight[j + 1536];
            const float weight_value_6 = weight[j + 1920];
            const float weight_value_7 = weight[j + 2304];
            const float weight_value_8 = weight[j + 2688];
            const int64_t k_end = c * 8 + 8;
            MD_UNROLL(8)
            for (int64_t k = c * 8; k < k_end; k++) {
                const float t = sub[k * 8] * weight_value + sub[k * 8 + 1] * weight_value_2 + sub[k * 8 + 2] * weight_value_3 + sub[k * 8 + 3] * weight_value_4 + sub[k * 8 + 4] * weight_value_5 + sub[k * 8 + 5] * weight_value_6 + sub[k * 8 + 6] * weight_value_7 + sub[k * 8 + 7] * weight_value_8;
                d_linear[k * 384 + j] = t;
                column[j] += t;
            }
        }
    }
    const float t_2 = (float)step_next[0];
    const float t_3 = -0.1f / md_expm1f(t_2 * (-0.105360515f));
    const float t_4 = md_sqrtf(-(md_expm1f(t_2 * (-0.0010005003f))));
    const float t_5 = fabsf(t_4) < 1.1754944e-38f ? 1.8446744e+19f : 1.0f;
    const float t_6 = 1.0f / (t_4 * t_5);
    MD_IVDEP
    for (int64_t i = 0; i < 384; i++) {
        const float m_value = m[i];
        const float t_7 = column[i];
        const float t_8 = 0.9f * (fabsf(m_value) < 1.1754944e-38f ? 0.0f : m_value) + t_7 * 0.000390625f;
        const float v_value = v[i];
        const float t_9 = t_7 * 0.00390625f;
        const float t_10 = 0.999f * (fabsf(v_value) < 1.1754944e-38f ? 0.0f : v_value) + 0.001f * (t_9 * t_9);
        const float t_11 = md_madf(bias[i], 0.999f, -(t_3 * t_8 / md_madf(md_sqrtf(t_10) * t_5, t_6, 1e-08f)));
        m_next[i] = t_8;
        v_next[i] = t_10;
        bias_next[i] = t_11;
    }
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [8, 384] */
typedef struct {
    float *m_next, *v_next, *weight_next;
    const float *m, *v, *weight;
    const int64_t *step_next;
} streams_head_weight_linear_adamw_args;

static void streams_head_weight_linear_adamw_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_head_weight_linear_adamw_args args = *(const streams_head_weight_linear_adamw_args *)ctx;
    (void)batch;
    const float t = (float)args.step_next[0];
    const float t_2 = -0.1f / md_expm1f(t * (-0.105360515f));
    const float t_3 = md_sqrtf(-(md_expm1f(t * (-0.0010005003f))));
    const float t_4 = fabsf(t_3) < 1.1754944e-38f ? 1.8446744e+19f : 1.0f;
    const float t_5 = 1.0f / (t_3 * t_4);
    for (int64_t m_2 = m0; m_2 < m0 + rows; m_2++) {
        float *block = strip + (m_2 - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float m_value = args.m[m_2 * 384 + n];
            const float t_6 = block[n - n0];
            const float t_7 = 0.9f * (fabsf(m_value) < 1.1754944e-38f ? 0.0f : m_value) + t_6 * 0.000390625f;
            const float v_value = args.v[m_2 * 384 + n];
            const float t_8 = t_6 * 0.00390625f;
            const float t_9 = 0.999f * (fabsf(v_value) < 1.1754944e-38f ? 0.0f : v_value) + 0.001f * (t_8 * t_8);
            const float t_10 = md_madf(args.weight[m_2 * 384 + n], 0.999f, -(t_2 * t_7 / md_madf(md_sqrtf(t_9) * t_4, t_5, 1e-08f)));
            args.m_next[m_2 * 384 + n] = t_7;
            args.v_next[m_2 * 384 + n] = t_9;
            args.weight_next[m_2 * 384 + n] = t_10;
        }
    }
}

static const md_tile streams_head_weight_linear_adamw_tile = {
    MD_TILE_ROWS(8, /* A */ 1, /* C */ 384), MD_TILE_COLUMNS(384, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(64, /* A */ 8, /* B */ 384), MD_TILE_NO_BATCH, sizeof(float), MD_TILE_NO_C,
    MD_TILE_BLOCKS(/* rows */ 8, /* columns */ 128, /* vectors */ 2, /* sum */ 64),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 1024, /* all */ 1024)
};
MD_TILE_PART(streams_head_weight_linear_adamw, streams_head_weight_linear_adamw_tile, md_tile_part_f32, streams_head_weight_linear_adamw_epilogue)

static void streams_head_weight_linear_adamw(float *m_next, float *v_next, float *weight_next,
        float *panels, const float *sub, const float *out, const float *m, const float *v,
        const float *weight, const int64_t *step_next) {
    streams_head_weight_linear_adamw_args args = {m_next, v_next, weight_next, m, v, weight,
        step_next};
    md_tile_run(&streams_head_weight_linear_adamw_tile, streams_head_weight_linear_adamw_part,
        sub, out, NULL, &args, panels, NULL, 8);
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [384, 512] */
typedef struct {
    md_tile_stream stream[4];
    float *m_next, *v_next, *weight_next;
    const float *m, *v, *weight;
    const int64_t *step_next;
} streams_wide_weight_linear_adamw_args;

static void streams_wide_weight_linear_adamw_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_wide_weight_linear_adamw_args args = *(const streams_wide_weight_linear_adamw_args *)ctx;
    (void)batch;
    const float t = (float)args.step_next[0];
    const float t_2 = -0.1f / md_expm1f(t * (-0.105360515f));
    const float t_3 = md_sqrtf(-(md_expm1f(t * (-0.0010005003f))));
    const float t_4 = fabsf(t_3) < 1.1754944e-38f ? 1.8446744e+19f : 1.0f;
    const float t_5 = 1.0f / (t_3 * t_4);
    for (int64_t m_2 = m0; m_2 < m0 + rows; m_2++) {
        float *block = strip + (m_2 - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float m_value = args.m[m_2 * 512 + n];
            const float t_6 = block[n - n0];
            const float t_7 = 0.9f * (fabsf(m_value) < 1.1754944e-38f ? 0.0f : m_value) + t_6 * 0.000390625f;
            const float v_value = args.v[m_2 * 512 + n];
            const float t_8 = t_6 * 0.00390625f;
            const float t_9 = 0.999f * (fabsf(v_value) < 1.1754944e-38f ? 0.0f : v_value) + 0.001f * (t_8 * t_8);
            const float t_10 = md_madf(args.weight[m_2 * 512 + n], 0.999f, -(t_2 * t_7 / md_madf(md_sqrtf(t_9) * t_4, t_5, 1e-08f)));
            args.m_next[m_2 * 512 + n] = t_7;
            args.v_next[m_2 * 512 + n] = t_9;
            args.weight_next[m_2 * 512 + n] = t_10;
        }
    }
}

static const md_tile streams_wide_weight_linear_adamw_tile = {
    MD_TILE_ROWS(384, /* A */ 1, /* C */ 512), MD_TILE_COLUMNS(512, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(64, /* A */ 384, /* B */ 512), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_NO_C | MD_TILE_STREAMS,
    MD_TILE_BLOCKS(/* rows */ 112, /* columns */ 128, /* vectors */ 2, /* sum */ 64),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 14336, /* all */ 14336)
};
MD_TILE_BLOCK(streams_wide_weight_linear_adamw, streams_wide_weight_linear_adamw_tile, float, md_tile_block_f32)
MD_TILE_LARGE_PART(streams_wide_weight_linear_adamw, streams_wide_weight_linear_adamw_tile, md_tile_share_of_f32, streams_wide_weight_linear_adamw_epilogue, streams_wide_weight_linear_adamw, NULL)

static void streams_wide_weight_linear_adamw(float *m_next, float *v_next, float *weight_next,
        float *panels, const float *d_linear, const float *x, const float *m, const float *v,
        const float *weight, const int64_t *step_next, md_pace *pace) {
    streams_wide_weight_linear_adamw_args args = {{{m, 0, 2048, 4, 1}, {v, 0, 2048, 4, 1},
        {weight, 0, 2048, 4, 1}, {NULL, 0, 0, 0, 0}}, m_next, v_next, weight_next, m, v, weight,
        step_next};
    md_tile_run(&streams_wide_weight_linear_adamw_tile, streams_wide_weight_linear_adamw_part,
        d_linear, x, NULL, &args, panels, pace, 8);
}

/* streams_fit: 9 steps, 1605632 bytes of arena, 55539917 FLOPs, line 6 */
int streams_fit(streams *m, const streams_fit_in *in, streams_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return streams_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [64, 512] */
    const float *y = in->y; /* [64, 8] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *lr = MD_AT(float, m->io, 64); /* f32 */
    /* params */
    float *wide_weight = MD_AT(float, m->params, 0); /* [384, 512] */
    float *wide_bias = MD_AT(float, m->params, 786432); /* [384] */
    float *head_weight = MD_AT(float, m->params, 787968); /* [8, 384] */
    float *head_bias = MD_AT(float, m->params, 800256); /* [8] */
    /* state */
    float *wide_weight_m = MD_AT(float, m->state, 0); /* [384, 512] */
    float *wide_weight_v = MD_AT(float, m->state, 786432); /* [384, 512] */
    float *wide_bias_m = MD_AT(float, m->state, 1572864); /* [384] */
    float *wide_bias_v = MD_AT(float, m->state, 1574400); /* [384] */
    float *head_weight_m = MD_AT(float, m->state, 1575936); /* [8, 384] */
    float *head_weight_v = MD_AT(float, m->state, 1588224); /* [8, 384] */
    float *head_bias_m = MD_AT(float, m->state, 1600512); /* [8] */
    float *head_bias_v = MD_AT(float, m->state, 1600576); /* [8] */
    int64_t *step = MD_AT(int64_t, m->state, 1600704); /* i64 */
    /* arena */
    float *wide_out = MD_AT(float, m->arena, 1507328); /* [64, 384] to 1605632, steps 0..7 */
    float *sub = MD_AT(float, m->arena, 4096); /* [64, 8] to 6144, steps 1..7 */
    float *d_head_linear = MD_AT(float, m->arena, 458752); /* [64, 384] to 557056, steps 6..8 */
    float *panels = MD_AT(float, m->arena, 0); /* [8, 47104] to 1507328, steps 0..0, workspace */
    float *column = MD_AT(float, m->arena, 0); /* [8] to 32, steps 5..5, workspace */
    float *column_2 = MD_AT(float, m->arena, 0); /* [384] to 1536, steps 6..6, workspace */
    float *panels_2 = MD_AT(float, m->arena, 0); /* [1024] to 4096, steps 7..7, workspace */
    float *panels_3 = MD_AT(float, m->arena, 0); /* [8, 14336] to 458752, steps 8..8, workspace */


    /* ---- forward ---- */
    /* wide, line 5: model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out = */
    streams_wide_linear(wide_out, panels, x, wide_weight, wide_bias, &m->pace); /* 0 */
    /* head, line 5 */
    streams_head_linear(sub, wide_out, head_weight, head_bias, y); /* 1 */

    /* ---- loss ---- */
    /* line 7: loss mean((net(x) - y)^2) */
    streams_fit_loss(loss, sub, 512); /* 2 */
    out->loss = *loss;
    if (!isfinite(*loss)) {
        return STREAMS_ERR_NONFINITE; /* nothing is updated */
    }

    /* ---- update ---- */
    /* line 8: optimizer adamw(lr = 0.1) */
    streams_fit_lr(lr, step, step); /* 4 */

    /* ---- backward ---- */
    /* line 8 */
    streams_head_bias_linear_adamw(head_bias_m, head_bias_v, head_bias, column, sub, head_bias_m,
            head_bias_v, head_bias, step); /* 5 */
    /* head, line 8 */
    streams_wide_bias_linear_adamw(d_head_linear, wide_bias_m, wide_bias_v, wide_bias, column_2,
            sub, head_weight, wide_bias_m, wide_bias_v, wide_bias, step); /* 6 */
    /* head, line 5 */
    streams_head_weight_linear_adamw(head_weight_m, head_weight_v, head_weight, panels_2, sub,
            wide_out, head_weight_m, head_weight_v, head_weight, step); /* 7 */
    /* wide, line 5 */
    streams_wide_weight_linear_adamw(wide_weight_m, wide_weight_v, wide_weight, panels_3,
            d_head_linear, x, wide_weight_m, wide_weight_v, wide_weight, step, &m->pace); /* 8 */
    out->loss = *loss;
    out->lr = *lr;
    return STREAMS_OK;
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [] */
static void streams_fill_step(int64_t *MD_RESTRICT step_next, int64_t *MD_RESTRICT steps_next) {
    step_next[0] = 0;
    steps_next[0] = 0;
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [384, 512]; called at 2 places */
static void streams_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.088388346f, -0.044194173f);
    }
}

/* streams.mdl:5  model net(x: [B, N]) -> [B, 8] { return x |> wide: linear(out = 384) |> head: linear(out =  [8, 384]; called at 2 places */
static void streams_bias_2(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.10206208f, -0.05103104f);
    }
}

/* streams.mdl:8  optimizer adamw(lr = 0.1)  [384, 512]; called at 4 places */
static void streams_fill(float *MD_RESTRICT m_next, float *MD_RESTRICT v_next, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        m_next[i] = 0.0f;
        v_next[i] = 0.0f;
    }
}

