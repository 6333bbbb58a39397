/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int strip_unread_refused(const strip_unread *m) {
    return m != NULL && !m->bound ? STRIP_UNREAD_ERR_STATE : STRIP_UNREAD_ERR_ARGUMENT;
}

/* strip_unread.mdl:4  z[i, j] = select(j < 600, u8(a[j]), u8(y[i, j]))  [128, 96] */
typedef struct {
    uint8_t *out;
    const float *a;
} strip_unread_f_out_2_args;

static void strip_unread_f_out_2_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const strip_unread_f_out_2_args args = *(const strip_unread_f_out_2_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            args.out[m * 96 + n] = (uint8_t)md_to_i64(args.a[n]);
        }
        (void)block;
    }
}

static const md_tile strip_unread_f_out_2_tile = {
    MD_TILE_ROWS(128, /* A */ 64, /* C */ 96), MD_TILE_COLUMNS(96, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(64, /* A */ 1, /* B */ 96), MD_TILE_NO_BATCH, sizeof(float), MD_TILE_NO_C,
    MD_TILE_BLOCKS(/* rows */ 128, /* columns */ 96, /* vectors */ 2, /* sum */ 64),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 12288, /* all */ 12288)
};
MD_TILE_PART(strip_unread_f_out_2, strip_unread_f_out_2_tile, md_tile_part_f32, strip_unread_f_out_2_epilogue)

static void strip_unread_f_out_2(uint8_t *out, float *panels, const float *x, const float *w,
        const float *a) {
    strip_unread_f_out_2_args args = {out, a};
    md_tile_run(&strip_unread_f_out_2_tile, strip_unread_f_out_2_part, x, w, NULL, &args, panels,
        NULL, 8);
}

/* strip_unread_f: 1 steps, 49152 bytes of arena, 1572864 FLOPs, line 2 */
int strip_unread_f(strip_unread *m, const strip_unread_f_in *in, strip_unread_f_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL ||
            in->a == NULL) {
        return strip_unread_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [128, 64] */
    const float *w = in->w; /* [64, 96] */
    const float *a = in->a; /* [96] */
    /* results */
    uint8_t *out_ = MD_AT(uint8_t, m->io, 0); /* [128, 96] */
    /* arena */
    float *panels = MD_AT(float, m->arena, 0); /* [12288] to 49152, steps 0..0, workspace */

    /* line 4: z[i, j] = select(j < 600, u8(a[j]), u8(y[i, j])) */
    strip_unread_f_out_2(out_, panels, x, w, a); /* 0 */
    out->out = out_;
    return STRIP_UNREAD_OK;
}

