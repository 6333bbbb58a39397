/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int streams_written_refused(const streams_written *m) {
    return m != NULL && !m->bound ? STREAMS_WRITTEN_ERR_STATE : STREAMS_WRITTEN_ERR_ARGUMENT;
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [320, 512] */
typedef struct {
    md_tile_stream stream[3];
    float *gelu_tanh, *gelu_tanh_2;
    const float *bias;
} streams_written_up_linear_gelu_tanh_args;

static void streams_written_up_linear_gelu_tanh_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_written_up_linear_gelu_tanh_args args = *(const streams_written_up_linear_gelu_tanh_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float out = block[n - n0] + args.bias[n];
            const float t = 1.0f / (1.0f + md_expf(-(out * md_madf(0.071354814f, out * out, 1.5957692f))));
            const float t_2 = out * t;
            args.gelu_tanh[m * 512 + n] = t;
            args.gelu_tanh_2[m * 512 + n] = t_2;
        }
    }
}

static const md_tile streams_written_up_linear_gelu_tanh_tile = {
    MD_TILE_ROWS(320, /* A */ 128, /* C */ 512), MD_TILE_COLUMNS(512, /* B */ 128, /* C */ 1),
    MD_TILE_SUM(128, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_PACKED | MD_TILE_CLAIMED | MD_TILE_HELPED | MD_TILE_STREAMS | MD_TILE_EARLY,
    MD_TILE_BLOCKS(/* rows */ 320, /* columns */ 192, /* vectors */ 3, /* sum */ 128),
    MD_TILE_WORK(/* strip */ 6144, /* turned */ 6144, /* all */ 6144)
};
MD_TILE_BLOCK(streams_written_up_linear_gelu_tanh, streams_written_up_linear_gelu_tanh_tile, float, md_tile_block_f32)
MD_TILE_LARGE_PART(streams_written_up_linear_gelu_tanh, streams_written_up_linear_gelu_tanh_tile, md_tile_share_of_f32, streams_written_up_linear_gelu_tanh_epilogue, streams_written_up_linear_gelu_tanh, NULL)

static void streams_written_up_linear_gelu_tanh(float *linear, float *gelu_tanh,
        float *gelu_tanh_2, float *panels, const float *x, const float *weight, const float *bias,
        md_pace *pace) {
    streams_written_up_linear_gelu_tanh_args args = {{{gelu_tanh, 0, 2048, 4, 1},
        {gelu_tanh_2, 0, 2048, 4, 1}, {NULL, 0, 0, 0, 0}}, gelu_tanh, gelu_tanh_2, bias};
    md_tile_run(&streams_written_up_linear_gelu_tanh_tile,
        streams_written_up_linear_gelu_tanh_part, x, weight, linear, &args, panels, pace, 8);
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [320, 8] */
typedef struct {
    const float *bias, *y;
} streams_written_down_linear_args;

static void streams_written_down_linear_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_written_down_linear_args args = *(const streams_written_down_linear_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            block[n - n0] = block[n - n0] + args.bias[n] - args.y[m * 8 + n];
        }
    }
}

static const md_tile streams_written_down_linear_tile = {
    MD_TILE_ROWS(320, /* A */ 512, /* C */ 8), MD_TILE_COLUMNS(8, /* B */ 512, /* C */ 1),
    MD_TILE_SUM(512, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_ALONG,
    MD_TILE_BLOCKS(/* rows */ 224, /* columns */ 8, /* vectors */ 4, /* sum */ 512),
    MD_TILE_NO_WORK
};
MD_TILE_PART(streams_written_down_linear, streams_written_down_linear_tile, md_tile_part_f32, streams_written_down_linear_epilogue)

static void streams_written_down_linear(float *sub, const float *gelu_tanh, const float *weight,
        const float *bias, const float *y, md_pace *pace) {
    streams_written_down_linear_args args = {bias, y};
    md_tile_run(&streams_written_down_linear_tile, streams_written_down_linear_part, gelu_tanh,
        weight, sub, &args, NULL, pace, 8);
}

/* streams_written.mdl:7  loss mean((net(x) - y)^2)  [] */
static void streams_written_fit_loss(float *MD_RESTRICT loss, const float *MD_RESTRICT sub,
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
    loss[0] = sum * 0.000390625f;
}

/* streams_written.mdl:8  optimizer sgd(lr = 0.1, momentum = 0.9)  [] */
static void streams_written_fit_lr(float *MD_RESTRICT lr, int64_t *step_next, const int64_t *step) {
    const int64_t t = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    step_next[0] = t;
}

/* streams_written.mdl:8  optimizer sgd(lr = 0.1, momentum = 0.9)  [8] */
static void streams_written_down_bias_linear_sgd(float *b_next, float *bias_next,
        float *MD_RESTRICT column, const float *MD_RESTRICT sub,
        const int64_t *MD_RESTRICT step_next, const float *b, const float *bias) {
    MD_IVDEP
    for (int64_t j = 0; j < 8; j++) {
        column[j] = 0.0f;
    }
    for (int64_t k = 0; k < 320; k++) {
        MD_IVDEP
        for (int64_t j = 0; j < 8; j++) {
            column[j] += sub[k * 8 + j];
        }
    }
    const int t = step_next[0] == 1;
    MD_IVDEP
    for (int64_t i = 0; i < 8; i++) {
        const float t_2 = column[i];
        const float t_3 = t_2 * 0.00078125f;
        const float b_value = b[i];
        const float t_4 = t ? t_3 : 0.9f * (fabsf(b_value) < 1.1754944e-38f ? 0.0f : b_value) + t_3;
        const float t_5 = md_madf(-0.1f, t_4, bias[i]);
        b_next[i] = t_4;
        bias_next[i] = t_5;
    }
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [320, 512] */
MD_NOINLINE void streams_written_up_bias_linear_gelu_tanh_sgd_loop(float *d_out,
        float *MD_RESTRICT partial, const float *MD_RESTRICT sub, const float *MD_RESTRICT weight,
        const float *gelu_tanh, const float *gelu_tanh_2, const float *linear,
        const float *MD_RESTRICT bias, int part, int parts) {
    const int64_t c_end = md_split(16, part + 1, parts);
    for (int64_t c = md_split(16, part, parts); c < c_end; c++) {
        MD_IVDEP
        for (int64_t j = 0; j < 512; j++) {
            partial[j + c * 512] = 0.0f;
        }
        const int64_t k_end = c * 20 + 20;
        for (int64_t k = c * 20; k < k_end; k++) {
            MD_FETCH((uintptr_t)gelu_tanh + (size_t)(k * 512 + 4096) * 4);
            MD_FETCH((uintptr_t)gelu_tanh_2 + (size_t)(k * 512 + 4096) * 4);
            MD_FETCH((uintptr_t)linear + (size_t)(k * 512 + 4096) * 4);
            const float t = sub[k * 8];
            const float t_2 = sub[k * 8 + 1];
            const float t_3 = sub[k * 8 + 2];
            const float t_4 = sub[k * 8 + 3];
            const float t_5 = sub[k * 8 + 4];
            const float t_6 = sub[k * 8 + 5];
            const float t_7 = sub[k * 8 + 6];
            const float t_8 = sub[k * 8 + 7];
            MD_IVDEP
            for (int64_t j = 0; j < 512; j++) {
                const float t_9 = gelu_tanh_2[k * 512 + j];
                const float out = linear[k * 512 + j] + bias[j];
                const float d_out_2 = (t * weight[j] + t_2 * weight[j + 512] + t_3 * weight[j + 1024] + t_4 * weight[j + 1536] + t_5 * weight[j + 2048] + t_6 * weight[j + 2560] + t_7 * weight[j + 3072] + t_8 * weight[j + 3584]) * 0.00078125f * md_madf(gelu_tanh[k * 512 + j] * (1.0f - t_9), md_madf(0.21406445f, out * out, 1.5957692f), t_9);
                d_out[k * 512 + j] = d_out_2;
                partial[j + c * 512] += d_out_2;
            }
        }
    }
}

static void streams_written_up_bias_linear_gelu_tanh_sgd(float *d_out, float *b_next,
        float *bias_next, float *MD_RESTRICT column, float *MD_RESTRICT partial,
        const float *MD_RESTRICT sub, const float *MD_RESTRICT weight, const float *gelu_tanh,
        const float *gelu_tanh_2, const float *linear, const float *MD_RESTRICT bias,
        const int64_t *MD_RESTRICT step_next, const float *b, md_pace *pace) {
    const int parts = md_team(pace, 8);
    if (parts == 1) {
        streams_written_up_bias_linear_gelu_tanh_sgd_loop(d_out, partial, sub, weight, gelu_tanh,
            gelu_tanh_2, linear, bias, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(parts))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            streams_written_up_bias_linear_gelu_tanh_sgd_loop(d_out, partial, sub, weight,
                gelu_tanh, gelu_tanh_2, linear, bias, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
    MD_IVDEP
    for (int64_t j = 0; j < 512; j++) {
        column[j] = 0.0f;
    }
    for (int64_t c = 0; c < 16; c++) {
        MD_IVDEP
        for (int64_t j = 0; j < 512; j++) {
            column[j] += partial[j + c * 512];
        }
    }
    const int t_10 = step_next[0] == 1;
    MD_IVDEP
    for (int64_t i = 0; i < 512; i++) {
        const float t_11 = column[i];
        const float b_value = b[i];
        const float t_12 = t_10 ? t_11 : md_madf(0.9f, fabsf(b_value) < 1.1754944e-38f ? 0.0f : b_value, t_11);
        const float t_13 = md_madf(-0.1f, t_12, bias[i]);
        b_next[i] = t_12;
        bias_next[i] = t_13;
    }
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [8, 512] */
typedef struct {
    float *b_next, *weight_next;
    const int64_t *step_next;
    const float *b, *weight;
} streams_written_down_weight_linear_sgd_args;

static void streams_written_down_weight_linear_sgd_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_written_down_weight_linear_sgd_args args = *(const streams_written_down_weight_linear_sgd_args *)ctx;
    (void)batch;
    const int t = args.step_next[0] == 1;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float t_2 = block[n - n0];
            const float t_3 = t_2 * 0.00078125f;
            const float b_value = args.b[m * 512 + n];
            const float t_4 = t ? t_3 : 0.9f * (fabsf(b_value) < 1.1754944e-38f ? 0.0f : b_value) + t_3;
            const float t_5 = md_madf(-0.1f, t_4, args.weight[m * 512 + n]);
            args.b_next[m * 512 + n] = t_4;
            args.weight_next[m * 512 + n] = t_5;
        }
    }
}

static const md_tile streams_written_down_weight_linear_sgd_tile = {
    MD_TILE_ROWS(8, /* A */ 1, /* C */ 512), MD_TILE_COLUMNS(512, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(320, /* A */ 8, /* B */ 512), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_NO_C,
    MD_TILE_BLOCKS(/* rows */ 8, /* columns */ 128, /* vectors */ 2, /* sum */ 320),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 1024, /* all */ 1024)
};
MD_TILE_PART(streams_written_down_weight_linear_sgd, streams_written_down_weight_linear_sgd_tile, md_tile_part_f32, streams_written_down_weight_linear_sgd_epilogue)

static void streams_written_down_weight_linear_sgd(float *b_next, float *weight_next,
        float *panels, const float *sub, const float *gelu_tanh, const int64_t *step_next,
        const float *b, const float *weight, md_pace *pace) {
    streams_written_down_weight_linear_sgd_args args = {b_next, weight_next, step_next, b, weight};
    md_tile_run(&streams_written_down_weight_linear_sgd_tile,
        streams_written_down_weight_linear_sgd_part, sub, gelu_tanh, NULL, &args, panels, pace, 8);
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [512, 128] */
typedef struct {
    md_tile_stream stream[3];
    float *b_next, *weight_next;
    const int64_t *step_next;
    const float *b, *weight;
} streams_written_up_weight_linear_sgd_args;

static void streams_written_up_weight_linear_sgd_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const streams_written_up_weight_linear_sgd_args args = *(const streams_written_up_weight_linear_sgd_args *)ctx;
    (void)batch;
    const int t = args.step_next[0] == 1;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float t_2 = block[n - n0];
            const float b_value = args.b[m * 128 + n];
            const float t_3 = t ? t_2 : md_madf(0.9f, fabsf(b_value) < 1.1754944e-38f ? 0.0f : b_value, t_2);
            const float t_4 = md_madf(-0.1f, t_3, args.weight[m * 128 + n]);
            args.b_next[m * 128 + n] = t_3;
            args.weight_next[m * 128 + n] = t_4;
        }
    }
}

static const md_tile streams_written_up_weight_linear_sgd_tile = {
    MD_TILE_ROWS(512, /* A */ 1, /* C */ 128), MD_TILE_COLUMNS(128, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(320, /* A */ 512, /* B */ 128), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_SHARED | MD_TILE_NO_C | MD_TILE_HELPED | MD_TILE_STREAMS,
    MD_TILE_BLOCKS(/* rows */ 112, /* columns */ 128, /* vectors */ 2, /* sum */ 320),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 14336, /* all */ 14336)
};
MD_TILE_BLOCK(streams_written_up_weight_linear_sgd, streams_written_up_weight_linear_sgd_tile, float, md_tile_block_f32)
MD_TILE_LARGE_PART(streams_written_up_weight_linear_sgd, streams_written_up_weight_linear_sgd_tile, md_tile_share_of_f32, streams_written_up_weight_linear_sgd_epilogue, streams_written_up_weight_linear_sgd, NULL)

static void streams_written_up_weight_linear_sgd(float *b_next, float *weight_next, float *panels,
        const float *d_out, const float *x, const int64_t *step_next, const float *b,
        const float *weight, md_pace *pace) {
    streams_written_up_weight_linear_sgd_args args = {{{b, 0, 512, 4, 1}, {weight, 0, 512, 4, 1},
        {NULL, 0, 0, 0, 0}}, b_next, weight_next, step_next, b, weight};
    md_tile_run(&streams_written_up_weight_linear_sgd_tile,
        streams_written_up_weight_linear_sgd_part, d_out, x, NULL, &args, panels, pace, 8);
}

/* streams_written_fit: 10 steps, 2162688 bytes of arena, 95379521 FLOPs, line 6 */
int streams_written_fit(streams_written *m, const streams_written_fit_in *in, streams_written_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->y == NULL) {
        return streams_written_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [320, 128] */
    const float *y = in->y; /* [320, 8] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *lr = MD_AT(float, m->io, 64); /* f32 */
    /* params */
    float *up_weight = MD_AT(float, m->params, 0); /* [512, 128] */
    float *up_bias = MD_AT(float, m->params, 262144); /* [512] */
    float *down_weight = MD_AT(float, m->params, 264192); /* [8, 512] */
    float *down_bias = MD_AT(float, m->params, 280576); /* [8] */
    /* state */
    float *up_weight_b = MD_AT(float, m->state, 0); /* [512, 128] */
    float *up_bias_b = MD_AT(float, m->state, 262144); /* [512] */
    float *down_weight_b = MD_AT(float, m->state, 264192); /* [8, 512] */
    float *down_bias_b = MD_AT(float, m->state, 280576); /* [8] */
    int64_t *step = MD_AT(int64_t, m->state, 280704); /* i64 */
    /* arena */
    float *up_bias_next = MD_AT(float, m->arena, 2009088); /* [512] to 2011136, steps 6..9 */
    float *up_linear = MD_AT(float, m->arena, 1310720); /* [320, 512] to 1966080, steps 0..6 */
    float *gelu_tanh = MD_AT(float, m->arena, 0); /* [320, 512] to 655360, steps 0..8 */
    float *gelu_tanh_2 = MD_AT(float, m->arena, 655360); /* [320, 512] to 1310720, steps 0..7 */
    float *sub = MD_AT(float, m->arena, 1998848); /* [320, 8] to 2009088, steps 1..7 */
    float *d_up_out = MD_AT(float, m->arena, 0); /* [320, 512] to 655360, steps 6..8, in place of gelu_tanh */
    float *panels = MD_AT(float, m->arena, 1966080); /* [8, 6144] to 2162688, steps 0..0, workspace */
    float *column = MD_AT(float, m->arena, 1966080); /* [8] to 1966112, steps 5..5, workspace */
    float *panels_2 = MD_AT(float, m->arena, 1310720); /* [8, 1024] to 1343488, steps 7..7, workspace */
    float *column_2 = MD_AT(float, m->arena, 2011136); /* [512] to 2013184, steps 6..6, workspace */
    float *partial = MD_AT(float, m->arena, 1966080); /* [8192] to 1998848, steps 6..6, workspace */
    float *panels_3 = MD_AT(float, m->arena, 655360); /* [8, 14336] to 1114112, steps 8..8, workspace */


    /* ---- forward ---- */
    /* up, line 5: model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l */
    streams_written_up_linear_gelu_tanh(up_linear, gelu_tanh, gelu_tanh_2, panels, x, up_weight,
            up_bias, &m->pace); /* 0 */
    /* down, line 5 */
    streams_written_down_linear(sub, gelu_tanh_2, down_weight, down_bias, y, &m->pace); /* 1 */

    /* ---- loss ---- */
    /* line 7: loss mean((net(x) - y)^2) */
    streams_written_fit_loss(loss, sub, 2560); /* 2 */
    out->loss = *loss;
    if (!isfinite(*loss)) {
        return STREAMS_WRITTEN_ERR_NONFINITE; /* nothing is updated */
    }

    /* ---- update ---- */
    /* line 8: optimizer sgd(lr = 0.1, momentum = 0.9) */
    streams_written_fit_lr(lr, step, step); /* 4 */

    /* ---- backward ---- */
    /* line 8 */
    streams_written_down_bias_linear_sgd(down_bias_b, down_bias, column, sub, step, down_bias_b,
            down_bias); /* 5 */
    /* line 5 */
    streams_written_up_bias_linear_gelu_tanh_sgd(d_up_out, up_bias_b, up_bias_next, column_2,
            partial, sub, down_weight, gelu_tanh_2, gelu_tanh, up_linear, up_bias, step, up_bias_b,
            &m->pace); /* 6 */
    /* down, line 5 */
    streams_written_down_weight_linear_sgd(down_weight_b, down_weight, panels_2, sub, gelu_tanh_2,
            step, down_weight_b, down_weight, &m->pace); /* 7 */
    /* up, line 5 */
    streams_written_up_weight_linear_sgd(up_weight_b, up_weight, panels_3, d_up_out, x, step,
            up_weight_b, up_weight, &m->pace); /* 8 */
    memcpy(up_bias, up_bias_next, 2048);
    out->loss = *loss;
    out->lr = *lr;
    return STREAMS_WRITTEN_OK;
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [] */
static void streams_written_fill_step(int64_t *MD_RESTRICT step_next,
        int64_t *MD_RESTRICT steps_next) {
    step_next[0] = 0;
    steps_next[0] = 0;
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [512, 128]; called at 2 places */
static void streams_written_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.17677669f, -0.088388346f);
    }
}

/* streams_written.mdl:5  model net(x: [B, 128]) -> [B, 8] { return x |> up: linear(out = N) |> gelu_tanh |> down: l  [8, 512]; called at 2 places */
static void streams_written_bias_2(float *MD_RESTRICT weight_next,
        const int64_t *MD_RESTRICT seed, uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.088388346f, -0.044194173f);
    }
}

/* streams_written.mdl:8  optimizer sgd(lr = 0.1, momentum = 0.9)  [512, 128]; called at 4 places */
static void streams_written_fill(float *MD_RESTRICT b_next, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        b_next[i] = 0.0f;
    }
}

