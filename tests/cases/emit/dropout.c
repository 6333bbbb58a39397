/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int dropout_refused(const dropout *m) {
    return m != NULL && !m->bound ? DROPOUT_ERR_STATE : DROPOUT_ERR_ARGUMENT;
}

/* dropout.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> dropout(0.25); }  [8, 16] */
static const md_tile dropout_fc_linear_tile = {
    MD_TILE_ROWS(8, /* A */ 16, /* C */ 16), MD_TILE_COLUMNS(16, /* B */ 16, /* C */ 1),
    MD_TILE_SUM(16, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(/* rows */ 8, /* columns */ 32, /* vectors */ 2, /* sum */ 16),
    MD_TILE_WORK(/* strip */ 256, /* turned */ 256, /* all */ 256)
};
MD_TILE_PART(dropout_fc_linear, dropout_fc_linear_tile, md_tile_part_f32, md_tile_none_f32)

static void dropout_fc_linear(float *linear, float *panels, const float *x, const float *weight) {
    md_tile_run(&dropout_fc_linear_tile, dropout_fc_linear_part, x, weight, linear, NULL, panels,
        NULL, 8);
}

/* dropout.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> dropout(0.25); }  [8, 16] */
static void dropout_fit_loss(float *MD_RESTRICT loss, float *d_dropout,
        const int64_t *MD_RESTRICT seed, const int64_t *MD_RESTRICT step, const float *linear,
        const float *MD_RESTRICT bias, uint64_t site0) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)step[0]);
    float sum_part[16] = {0};
    for (int64_t j = 0; j < 8; j++) {
        int64_t j_2_base = 0;
        for (; j_2_base + 16 <= 16; j_2_base += 16) {
            for (int64_t l = 0; l < 16; l++) {
                const int64_t j_2 = j_2_base + l;
                const int t = md_rand_uniform_f32(key, (uint64_t)(j * 16 + j_2)) < 0.75f;
                const float t_2 = linear[j * 16 + j_2];
                const float bias_value = bias[j_2];
                const float t_3 = t ? (t_2 + bias_value) * 1.3333334f : 0.0f;
                d_dropout[j * 16 + j_2] = t ? t_3 * 0.015625f : 0.0f;
                sum_part[l] += t_3 * t_3;
            }
        }
    }
    const float sum = md_lanes_addf(sum_part, 16);
    loss[0] = sum * 0.0078125f;
}

/* add  [] */
static void dropout_fit_lr(float *MD_RESTRICT lr, int64_t *step_next, const int64_t *step) {
    const int64_t t = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    step_next[0] = t;
}

/* dropout.mdl:7  optimizer sgd(lr = 0.1)  [16, 16] */
static void dropout_fc_weight_linear_sgd(float *weight_next, const float *MD_RESTRICT d_dropout,
        const float *MD_RESTRICT x, const float *weight) {
    for (int64_t i = 0; i < 16; i++) {
        const float t = d_dropout[i];
        const float t_2 = d_dropout[i + 16];
        const float t_3 = d_dropout[i + 32];
        const float t_4 = d_dropout[i + 48];
        const float t_5 = d_dropout[i + 64];
        const float t_6 = d_dropout[i + 80];
        const float t_7 = d_dropout[i + 96];
        const float t_8 = d_dropout[i + 112];
        MD_IVDEP
        for (int64_t i_2 = 0; i_2 < 16; i_2++) {
            weight_next[i * 16 + i_2] = md_madf(t * x[i_2] + t_2 * x[i_2 + 16] + t_3 * x[i_2 + 32] + t_4 * x[i_2 + 48] + t_5 * x[i_2 + 64] + t_6 * x[i_2 + 80] + t_7 * x[i_2 + 96] + t_8 * x[i_2 + 112], -0.13333334f, weight[i * 16 + i_2]);
        }
    }
}

/* dropout.mdl:7  optimizer sgd(lr = 0.1)  [16] */
static void dropout_fc_bias_linear_sgd(float *bias_next, const float *MD_RESTRICT d_dropout,
        const float *bias) {
    MD_IVDEP
    for (int64_t i = 0; i < 16; i++) {
        bias_next[i] = md_madf(d_dropout[i] + d_dropout[i + 16] + d_dropout[i + 32] + d_dropout[i + 48] + d_dropout[i + 64] + d_dropout[i + 80] + d_dropout[i + 96] + d_dropout[i + 112], -0.13333334f, bias[i]);
    }
}

/* dropout_fit: 6 steps, 1536 bytes of arena, 9489 FLOPs, line 5 */
int dropout_fit(dropout *m, const dropout_fit_in *in, dropout_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return dropout_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [8, 16] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *lr = MD_AT(float, m->io, 64); /* f32 */
    /* params */
    float *fc_weight = MD_AT(float, m->params, 0); /* [16, 16] */
    float *fc_bias = MD_AT(float, m->params, 1024); /* [16] */
    /* state */
    const int64_t *seed_ = MD_AT(const int64_t, m->state, 0); /* i64 seed */
    int64_t *step = MD_AT(int64_t, m->state, 64); /* i64 */
    /* arena */
    float *fc_linear = MD_AT(float, m->arena, 1024); /* [8, 16] to 1536, steps 0..5 */
    float *d_dropout = MD_AT(float, m->arena, 1024); /* [8, 16] to 1536, steps 1..5, in place of fc_linear */
    float *panels = MD_AT(float, m->arena, 0); /* [256] to 1024, steps 0..0, workspace */


    /* ---- forward ---- */
    /* fc, line 4: model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> dropout(0.25); } */
    dropout_fc_linear(fc_linear, panels, x, fc_weight); /* 0 */

    /* ---- loss ---- */
    /* line 4 */
    dropout_fit_loss(loss, d_dropout, seed_, step, fc_linear, fc_bias,
            UINT64_C(14094139763521864013)); /* 1 */
    out->loss = *loss;
    if (!isfinite(*loss)) {
        return DROPOUT_ERR_NONFINITE; /* nothing is updated */
    }

    /* ---- update ---- */
    dropout_fit_lr(lr, step, step); /* 3 */
    /* line 7: optimizer sgd(lr = 0.1) */
    dropout_fc_weight_linear_sgd(fc_weight, d_dropout, x, fc_weight); /* 4 */
    dropout_fc_bias_linear_sgd(fc_bias, d_dropout, fc_bias); /* 5 */
    out->loss = *loss;
    out->lr = *lr;
    return DROPOUT_OK;
}

/* dropout.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> dropout(0.25); }  [] */
static void dropout_fill_step(int64_t *MD_RESTRICT step_next, int64_t *MD_RESTRICT steps_next) {
    step_next[0] = 0;
    steps_next[0] = 0;
}

/* dropout.mdl:4  model net(x: [B, N]) -> [B, N] { return x |> fc: linear(out = N) |> dropout(0.25); }  [16, 16]; called at 2 places */
static void dropout_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.5f, -0.25f);
    }
}

