/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int repeat_refused(const repeat *m) {
    return m != NULL && !m->bound ? REPEAT_ERR_STATE : REPEAT_ERR_ARGUMENT;
}

/* repeat.mdl:8  entry main(x: [B, C]) { return deep(x); }  [4, 16] */
static void repeat_x(float *x, const float *x_2, int64_t n) {
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        x[i] = x_2[i];
    }
}

/* repeat.mdl:5  repeat L carry x { x <- x + (x |> linear(C) |> tanh); }  [4, 16] */
typedef struct {
    float *x_next;
    const float *x, *bias;
} repeat_linear_linear_args;

static void repeat_linear_linear_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const repeat_linear_linear_args args = *(const repeat_linear_linear_args *)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 16; n++) {
            args.x_next[m * 16 + n] = args.x[m * 16 + n] + md_tanhf(block[n - n0] + args.bias[n]);
        }
    }
}

static const md_tile repeat_linear_linear_tile = {
    MD_TILE_ROWS(4, /* A */ 16, /* C */ 16), MD_TILE_COLUMNS(16, /* B */ 16, /* C */ 1),
    MD_TILE_SUM(16, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_NO_C | MD_TILE_PACKED,
    MD_TILE_BLOCKS(/* rows */ 4, /* columns */ 32, /* vectors */ 2, /* sum */ 16),
    MD_TILE_WORK(/* strip */ 256, /* turned */ 384, /* all */ 384)
};
MD_TILE_PART(repeat_linear_linear, repeat_linear_linear_tile, md_tile_part_f32, repeat_linear_linear_epilogue)

static void repeat_linear_linear(float *x_next, float *panels, const float *x,
        const float *weight, const float *bias) {
    repeat_linear_linear_args args = {x_next, x, bias};
    md_tile_run(&repeat_linear_linear_tile, repeat_linear_linear_part, x, weight, NULL, &args,
        panels, NULL, 8);
}

/* repeat_main_entry: 4 steps, 1792 bytes of arena, 6720 FLOPs, line 8 */
int repeat_main_entry(repeat *m, const repeat_main_entry_in *in, repeat_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return repeat_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 16] */
    /* results */
    const float *out_ = MD_AT(const float, m->io, 0); /* [4, 16] */
    /* params */
    const float *linear_weight = MD_AT(const float, m->params, 0); /* [3, 16, 16] */
    const float *linear_bias = MD_AT(const float, m->params, 3072); /* [3, 16] */
    /* arena */
    float *x_2 = MD_AT(float, m->io, 0); /* [4, 16] result out_ */
    float *x_2_next = MD_AT(float, m->arena, 1536); /* [4, 16] to 1792, steps 2..3 */
    float *panels = MD_AT(float, m->arena, 0); /* [384] to 1536, steps 2..2, workspace */

    /* line 8: entry main(x: [B, C]) { return deep(x); } */
    repeat_x(x_2, x, 64); /* 0 */
    /* line 5: repeat L carry x { x <- x + (x |> linear(C) |> tanh); } */
    for (int64_t i0 = 0; i0 < 3; i0++) {
        /* linear, line 5 */
        repeat_linear_linear(x_2_next, panels, x_2, linear_weight + i0 * 256,
                linear_bias + i0 * 16); /* 2 */
        memcpy(x_2, x_2_next, 256);
    }
    out->out = out_;
    return REPEAT_OK;
}

/* repeat.mdl:5  repeat L carry x { x <- x + (x |> linear(C) |> tanh); }  [3, 16, 16]; called at 2 places */
static void repeat_bias(float *MD_RESTRICT weight_next, const int64_t *MD_RESTRICT seed,
        uint64_t site0, int64_t n) {
    const md_key key = md_key_make((uint64_t)seed[0], site0, (uint64_t)0);
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        weight_next[i] = md_madf(md_rand_uniform_f32(key, (uint64_t)i), 0.5f, -0.25f);
    }
}

