/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int tile_refused(const tile *m) {
    return m != NULL && !m->bound ? TILE_ERR_STATE : TILE_ERR_ARGUMENT;
}

/* tile.mdl:5  y[i, o] = sum[k] x[i, k] * w[o, k]  [64, 32] */
typedef struct {
    const float *b;
} tile_main_out_args;

static void tile_main_out_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const tile_main_out_args args = *(const tile_main_out_args *)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            block[n - n0] = md_maxf(block[n - n0] + args.b[n], 0.0f);
        }
    }
}

static const md_tile tile_main_out_tile = {
    MD_TILE_ROWS(64, /* A */ 48, /* C */ 32), MD_TILE_COLUMNS(32, /* B */ 48, /* C */ 1),
    MD_TILE_SUM(48, /* A */ 1, /* B */ 1), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_PACKED,
    MD_TILE_BLOCKS(/* rows */ 64, /* columns */ 32, /* vectors */ 2, /* sum */ 48),
    MD_TILE_WORK(/* strip */ 1536, /* turned */ 1536, /* all */ 1536)
};
MD_TILE_PART(tile_main_out, tile_main_out_tile, md_tile_part_f32, tile_main_out_epilogue)

static void tile_main_out(float *out, float *panels, const float *x, const float *w,
        const float *b) {
    tile_main_out_args args = {b};
    md_tile_run(&tile_main_out_tile, tile_main_out_part, x, w, out, &args, panels, NULL, 8);
}

/* tile_main_entry: 1 steps, 6144 bytes of arena, 200704 FLOPs, line 4 */
int tile_main_entry(tile *m, const tile_main_entry_in *in, tile_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL ||
            in->b == NULL) {
        return tile_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [64, 48] */
    const float *w = in->w; /* [32, 48] */
    const float *b = in->b; /* [32] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [64, 32] */
    /* arena */
    float *panels = MD_AT(float, m->arena, 0); /* [1536] to 6144, steps 0..0, workspace */

    /* line 5: y[i, o] = sum[k] x[i, k] * w[o, k] */
    tile_main_out(out_, panels, x, w, b); /* 0 */
    out->out = out_;
    return TILE_OK;
}

