/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int stored_apart_refused(const stored_apart *m) {
    return m != NULL && !m->bound ? STORED_APART_ERR_STATE : STORED_APART_ERR_ARGUMENT;
}

/* stored_apart.mdl:6  model net(x: [B, C, N, N]) -> [B, C, N, N] { return x |> c: conv2d(C, k = 3, pad = 1, use_  [2, 8, 8, 16] */
static const md_tile stored_apart_c_conv2d_tile = {
    MD_TILE_ROWS2(8, /* A */ 160, /* C */ 128, 8, /* A */ 16, /* C */ 16),
    MD_TILE_COLUMNS(16, /* B */ 144, /* C */ 1),
    MD_TILE_SUM3(3, /* A */ 160, /* B */ 3, 3, /* A */ 16, /* B */ 1, 16, /* A */ 1, /* B */ 9),
    MD_TILE_BATCH(2, /* A */ 1600, /* B */ 0, /* C */ 1024), sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS2(/* rows */ 64, /* columns */ 32, /* vectors */ 2, /* sum */ 3, /* sum */ 16),
    MD_TILE_BAND(/* strip */ 768, /* turned */ 768, /* all */ 768, MD_BAND_ROW_STEP0, /* from */ 160, /* until */ 1440)
};
MD_TILE_PART(stored_apart_c_conv2d, stored_apart_c_conv2d_tile, md_tile_part_f32, md_tile_none_f32)

static void stored_apart_c_conv2d(float *MD_RESTRICT out, float *MD_RESTRICT halo,
        float *MD_RESTRICT panels, const float *MD_RESTRICT x, const float *MD_RESTRICT weight) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_2 = 0; i_2 < 10; i_2++) {
            for (int64_t i_3 = 0; i_3 < 10; i_3++) {
                const int t = (i_2 - 1 >= 0 && i_2 - 1 < 8) & (i_3 - 1 >= 0 && i_3 - 1 < 8);
                MD_IVDEP
                for (int64_t i_4 = 0; i_4 < 16; i_4++) {
                    halo[i * 1600 + i_2 * 160 + i_3 * 16 + i_4] = t ? x[i * 1024 + i_2 * 8 + i_3 + i_4 * 64 - 9] : 0.0f;
                }
            }
        }
    }
    md_tile_run(&stored_apart_c_conv2d_tile, stored_apart_c_conv2d_part, halo, weight, out, NULL,
        panels, NULL, 8);
}

/* stored_apart.mdl:8  loss mean(net(x)^2)  [] */
static void stored_apart_fit_loss(float *MD_RESTRICT loss, const float *MD_RESTRICT out,
        int64_t n) {
    float sum_part[64] = {0};
    int64_t j_base = 0;
    for (; j_base + 64 <= n; j_base += 64) {
        for (int64_t l = 0; l < 64; l++) {
            const int64_t j = j_base + l;
            const float out_value = out[j];
            sum_part[l] += out_value * out_value;
        }
    }
    const float sum = md_lanes_addf(sum_part, 64);
    loss[0] = sum * 0.00048828125f;
}

/* stored_apart.mdl:6  model net(x: [B, C, N, N]) -> [B, C, N, N] { return x |> c: conv2d(C, k = 3, pad = 1, use_  [16, 16, 3, 3] */
typedef struct {
    float *weight_next;
    const float *weight;
} stored_apart_c_weight_conv2d_sgd_args;

static void stored_apart_c_weight_conv2d_sgd_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const stored_apart_c_weight_conv2d_sgd_args args = *(const stored_apart_c_weight_conv2d_sgd_args *)ctx;
    (void)n0, (void)cols;
    for (int64_t begin = 0; begin < 16; begin += 16) {
        const int64_t end = begin < 16 - 16 ? begin + 16 : 16;
        for (int64_t m = m0; m < m0 + rows; m++) {
            float *block = strip + (m - m0) * ld;
            for (int64_t n = begin; n < end; n++) {
                args.weight_next[batch * 3 + m % 3 + (m / 3) * 9 + n * 144] = md_madf(block[n - n0], -9.765625e-05f, args.weight[batch * 3 + m % 3 + (m / 3) * 9 + n * 144]);
                MD_IN_ORDER;
            }
        }
    }
}

static const md_tile stored_apart_c_weight_conv2d_sgd_tile = {
    MD_TILE_ROWS2(16, /* A */ 1, /* C */ 9, 3, /* A */ 16, /* C */ 1),
    MD_TILE_COLUMNS(16, /* B */ 1, /* C */ 144),
    MD_TILE_SUM3(2, /* A */ 1600, /* B */ 1024, 8, /* A */ 160, /* B */ 128, 8, /* A */ 16, /* B */ 16),
    MD_TILE_BATCH(3, /* A */ 160, /* B */ 0, /* C */ 3), sizeof(float), MD_TILE_NO_C,
    MD_TILE_BLOCKS2(/* rows */ 48, /* columns */ 32, /* vectors */ 2, /* sum */ 8, /* sum */ 8),
    MD_TILE_BAND(/* strip */ 0, /* turned */ 1536, /* all */ 1536, MD_BAND_BATCH2_STEP1, /* from */ 160, /* until */ 1440)
};
MD_TILE_PART(stored_apart_c_weight_conv2d_sgd, stored_apart_c_weight_conv2d_sgd_tile, md_tile_part_f32, stored_apart_c_weight_conv2d_sgd_epilogue)

static void stored_apart_c_weight_conv2d_sgd(float *weight_next, float *MD_RESTRICT halo,
        float *MD_RESTRICT panels, const float *MD_RESTRICT x, const float *MD_RESTRICT out,
        const float *weight) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_2 = 0; i_2 < 10; i_2++) {
            for (int64_t i_3 = 0; i_3 < 10; i_3++) {
                const int t = (i_2 - 1 >= 0 && i_2 - 1 < 8) & (i_3 - 1 >= 0 && i_3 - 1 < 8);
                MD_IVDEP
                for (int64_t i_4 = 0; i_4 < 16; i_4++) {
                    halo[i * 1600 + i_2 * 160 + i_3 * 16 + i_4] = t ? x[i * 1024 + i_2 * 8 + i_3 + i_4 * 64 - 9] : 0.0f;
                }
            }
        }
    }
    stored_apart_c_weight_conv2d_sgd_args args = {weight_next, weight};
    md_tile_run(&stored_apart_c_weight_conv2d_sgd_tile, stored_apart_c_weight_conv2d_sgd_part,
        halo, out, NULL, &args, panels, NULL, 8);
}

/* add  [] */
static void stored_apart_fit_lr(float *MD_RESTRICT lr, int64_t *step_next, const int64_t *step) {
    const int64_t t = (int64_t)((uint64_t)step[0] + (uint64_t)1);
    lr[0] = 0.1f;
    step_next[0] = t;
}

/* stored_apart_fit: 5 steps, 27136 bytes of arena, 1090049 FLOPs, line 7 */
int stored_apart_fit(stored_apart *m, const stored_apart_fit_in *in, stored_apart_fit_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return stored_apart_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 16, 8, 8] */
    /* results */
    float *loss = MD_AT(float, m->io, 0); /* f32 */
    float *lr = MD_AT(float, m->io, 64); /* f32 */
    /* params */
    float *c_weight = MD_AT(float, m->params, 0); /* [16, 16, 3, 3] */
    /* state */
    int64_t *step = MD_AT(int64_t, m->state, 64); /* i64 */
    /* arena */
    float *c_out = MD_AT(float, m->arena, 12800); /* [2, 8, 8, 16] to 20992, steps 0..3 */
    float *halo = MD_AT(float, m->arena, 0); /* [2, 10, 10, 16] to 12800, steps 0..0, workspace */
    float *panels = MD_AT(float, m->arena, 20992); /* [768] to 24064, steps 0..0, workspace */
    float *halo_2 = MD_AT(float, m->arena, 0); /* [2, 10, 10, 16] to 12800, steps 3..3, workspace */
    float *panels_2 = MD_AT(float, m->arena, 20992); /* [1536] to 27136, steps 3..3, workspace */


    /* ---- forward ---- */
    /* c, line 6: model net(x: [B, C, N, N]) -> [B, C, N, N] { return x |> c: conv2d(C, k = 3, pad = 1, use_ */
    stored_apart_c_conv2d(c_out, halo, panels, x, c_weight); /* 0 */

    /* ---- loss ---- */
    /* line 8: loss mean(net(x)^2) */
    stored_apart_fit_loss(loss, c_out, 2048); /* 1 */
    out->loss = *loss;
    if (!isfinite(*loss)) {
        return STORED_APART_ERR_NONFINITE; /* nothing is updated */
    }

    /* ---- backward ---- */
    /* c, line 6 */
    stored_apart_c_weight_conv2d_sgd(c_weight, halo_2, panels_2, x, c_out, c_weight); /* 3 */

    /* ---- update ---- */
    stored_apart_fit_lr(lr, step, step); /* 4 */
    out->loss = *loss;
    out->lr = *lr;
    return STORED_APART_OK;
}

/* stored_apart.mdl:6  model net(x: [B, C, N, N]) -> [B, C, N, N] { return x |> c: conv2d(C, k = 3, pad = 1, use_  [] */
static void stored_apart_fill_step(int64_t *MD_RESTRICT step_next,
        int64_t *MD_RESTRICT steps_next) {
    step_next[0] = 0;
    steps_next[0] = 0;
}

