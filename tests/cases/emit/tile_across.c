/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int tile_across_refused(const tile_across *m) {
    return m != NULL && !m->bound ? TILE_ACROSS_ERR_STATE : TILE_ACROSS_ERR_ARGUMENT;
}

/* tile_across.mdl:6  g[n, c, h] = sum[b] d[b, n] * x[b, h, c]  [24, 16, 7] */
typedef struct {
    const float *w;
} tile_across_main_out_args;

static void tile_across_main_out_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const tile_across_main_out_args args = *(const tile_across_main_out_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            const float g = block[n - n0];
            block[n - n0] = args.w[n + m * 112] - 0.1f * g / (fabsf(g) + 1.0f);
        }
    }
}

static const md_tile tile_across_main_out_tile = {
    MD_TILE_ROWS2(16, /* A */ 1, /* C */ 7, 7, /* A */ 16, /* C */ 1),
    MD_TILE_COLUMNS(24, /* B */ 1, /* C */ 112), MD_TILE_SUM(32, /* A */ 112, /* B */ 24),
    MD_TILE_NO_BATCH, sizeof(float), MD_TILE_IN_PLACE | MD_TILE_ACROSS,
    MD_TILE_BLOCKS(/* rows */ 112, /* columns */ 32, /* vectors */ 2, /* sum */ 32),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 3584, /* all */ 3584)
};
MD_TILE_PART(tile_across_main_out, tile_across_main_out_tile, md_tile_part_f32, tile_across_main_out_epilogue)

static void tile_across_main_out(float *out, float *panels, const float *d, const float *x,
        const float *w) {
    tile_across_main_out_args args = {w};
    md_tile_run(&tile_across_main_out_tile, tile_across_main_out_part, x, d, out, &args, panels,
        NULL, 8);
}

/* tile_across_main_entry: 1 steps, 14336 bytes of arena, 185472 FLOPs, line 5 */
int tile_across_main_entry(tile_across *m, const tile_across_main_entry_in *in, tile_across_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->w == NULL || in->d == NULL ||
            in->x == NULL) {
        return tile_across_refused(m);
    }
    /* inputs */
    const float *w = in->w; /* [24, 16, 7] */
    const float *d = in->d; /* [32, 24] */
    const float *x = in->x; /* [32, 7, 16] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [24, 16, 7] */
    /* arena */
    float *panels = MD_AT(float, m->arena, 0); /* [3584] to 14336, steps 0..0, workspace */

    /* line 6: g[n, c, h] = sum[b] d[b, n] * x[b, h, c] */
    tile_across_main_out(out_, panels, d, x, w); /* 0 */
    out->out = out_;
    return TILE_ACROSS_OK;
}

