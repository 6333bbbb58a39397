/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int volume_refused(const volume *m) {
    return m != NULL && !m->bound ? VOLUME_ERR_STATE : VOLUME_ERR_ARGUMENT;
}

/* volume.mdl:4  model net(x: [4, 8, 8, 6, 10]) { return x |> c: conv3d(16, 3, pad = 1, stride = [1, 2, 1])  [4, 1, 10, 7, 12, 8] */
MD_NOINLINE void volume_copy_c_pad_loop(float *MD_RESTRICT pad, const float *MD_RESTRICT x,
        int part, int parts) {
    const int64_t at_end = md_split(40, part + 1, parts);
    for (int64_t at = md_split(40, part, parts); at < at_end; at++) {
        const int64_t i = at / 10;
        const int64_t i_2 = at % 10;
        for (int64_t i_3 = 0; i_3 < 7; i_3++) {
            for (int64_t i_4 = 0; i_4 < 12; i_4++) {
                const int t = ((i_2 - 1 >= 0 && i_2 - 1 < 8) & (i_3 - 1 >= 0)) & (i_4 - 1 >= 0 && i_4 - 1 < 10);
                MD_IVDEP
                for (int64_t i_5 = 0; i_5 < 8; i_5++) {
                    pad[i * 6720 + i_2 * 672 + i_3 * 96 + i_4 * 8 + i_5] = t ? x[i * 3840 + i_2 * 60 + i_3 * 10 + i_4 + i_5 * 480 - 71] : 0.0f;
                }
            }
        }
    }
}

static void volume_copy_c_pad(float *MD_RESTRICT pad, const float *MD_RESTRICT x, md_pace *pace) {
    const int team = md_team(pace, 8);
    const int parts = team < 4 ? team : 4;
    if (parts == 1) {
        volume_copy_c_pad_loop(pad, x, 0, 1);
    } else {
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            volume_copy_c_pad_loop(pad, x, part, parts);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
    }
}

/* volume.mdl:4  model net(x: [4, 8, 8, 6, 10]) { return x |> c: conv3d(16, 3, pad = 1, stride = [1, 2, 1])  [4, 1, 16, 8, 3, 10] */
typedef struct {
    const float *bias;
} volume_main_out_args;

static void volume_main_out_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const volume_main_out_args args = *(const volume_main_out_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        const float bias_value = args.bias[m];
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            block[n - n0] = md_maxf(block[n - n0] + bias_value, 0.0f);
        }
    }
}

static const md_tile volume_main_out_tile = {
    MD_TILE_ROWS2(3, /* A */ 192, /* C */ 10, 10, /* A */ 8, /* C */ 1),
    MD_TILE_COLUMNS(16, /* B */ 216, /* C */ 240),
    MD_TILE_SUM4(3, /* A */ 384, /* B */ 0, 9, /* A */ 96, /* B */ 3, 3, /* A */ 8, /* B */ 1, 8, /* A */ 1, /* B */ 27),
    MD_TILE_BATCH2(4, /* A */ 6720, /* B */ 0, /* C */ 3840, 8, /* A */ 672, /* B */ 0, /* C */ 30),
    sizeof(float), MD_TILE_SHARED | MD_TILE_IN_PLACE | MD_TILE_PACKED | MD_TILE_ACROSS,
    MD_TILE_BLOCKS2(/* rows */ 30, /* columns */ 32, /* vectors */ 2, /* sum */ 3, /* sum */ 8),
    MD_TILE_WORK(/* strip */ 384, /* turned */ 1344, /* all */ 1344)
};
MD_TILE_PART(volume_main_out, volume_main_out_tile, md_tile_part_f32, volume_main_out_epilogue)

static void volume_main_out(float *out, float *panels, const float *pad, const float *weight,
        const float *bias, md_pace *pace) {
    volume_main_out_args args = {bias};
    md_tile_run(&volume_main_out_tile, volume_main_out_part, pad, weight, out, &args, panels,
        pace, 8);
}

/* volume_main_entry: 2 steps, 150528 bytes of arena, 6666240 FLOPs, line 5 */
int volume_main_entry(volume *m, const volume_main_entry_in *in, volume_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return volume_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 8, 8, 6, 10] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [4, 16, 8, 3, 10] */
    /* params */
    const float *c_weight = MD_AT(const float, m->params, 0); /* [16, 8, 3, 3, 3] */
    const float *c_bias = MD_AT(const float, m->params, 13824); /* [16] */
    /* arena */
    float *c_pad = MD_AT(float, m->arena, 0); /* [4, 1, 10, 7, 12, 8] to 107520, steps 0..1 */
    float *panels = MD_AT(float, m->arena, 107520); /* [8, 1344] to 150528, steps 1..1, workspace */

    /* c, line 4: model net(x: [4, 8, 8, 6, 10]) { return x |> c: conv3d(16, 3, pad = 1, stride = [1, 2, 1]) */
    volume_copy_c_pad(c_pad, x, &m->pace); /* 0 */
    volume_main_out(out_, panels, c_pad, c_weight, c_bias, &m->pace); /* 1 */
    out->out = out_;
    return VOLUME_OK;
}

/* volume.mdl:4  model net(x: [4, 8, 8, 6, 10]) { return x |> c: conv3d(16, 3, pad = 1, stride = [1, 2, 1])  [16, 8, 3, 3, 3]; called at 2 places */
static void volume_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.13608277f, -0.068041384f);
    }
}

