/* ---- model ---- */

/* strip_unread.mdl:14  n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad")  [1, 1] */
static const md_tile strip_unread_product_tile = {
    MD_TILE_ROWS(1, /* A */ 0, /* C */ 0),
    MD_TILE_COLUMNS(1, /* B */ 1, /* C */ 0),
    MD_TILE_SUM(15, /* A */ 1, /* B */ 1),
    MD_TILE_NO_BATCH, sizeof(float), MD_TILE_NO_C,
    MD_TILE_BLOCKS(/* rows */ 1, /* columns */ 64, /* vectors */ 4, /* sum */ 15),
    MD_TILE_WORK(/* strip */ 240, /* turned */ 304, /* all */ 304)
};

typedef struct {
    uint8_t *argmax;
} strip_unread_product_args;

static void strip_unread_product_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const strip_unread_product_args args = *(const strip_unread_product_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            args.argmax[0] = 0;
        }
        (void)block;
    }
}

MD_TILE_PART(strip_unread_product, md_tile_part_f32, strip_unread_product_epilogue)

static void strip_unread_product(uint8_t *MD_RESTRICT argmax, float *MD_RESTRICT panels,
        const float *MD_RESTRICT x1) {
    strip_unread_product_args args = {argmax};
    md_tile_run(&strip_unread_product_tile, strip_unread_product_part, x1, x1, NULL, &args,
        panels, NULL, 8);
}

/* strip_unread.mdl:14  n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad")  [1, 1, 15, 1] */
static void strip_unread_call1_out6(float *out6, const uint8_t *MD_RESTRICT argmax,
        const float *x1, int64_t n) {
    const float t = 0 == argmax[0] ? 1.0f : 0.0f;
    MD_IVDEP
    for (int64_t i = 0; i < n; i++) {
        out6[i] = t * x1[i] * 2.0f;
    }
}

/* strip_unread_call1: 2 steps, 1280 bytes of arena, 61 FLOPs, line 11 */
int strip_unread_call1(strip_unread *m, const strip_unread_call1_in *in, strip_unread_call1_out *out) {
    if (m == NULL || in == NULL || out == NULL) {
        return STRIP_UNREAD_ERR_ARGUMENT;
    }
    if (!m->bound) {
        return STRIP_UNREAD_ERR_STATE;
    }
    if (in->x1 == NULL) {
        return STRIP_UNREAD_ERR_ARGUMENT;
    }
    /* inputs */
    const float *x1 = in->x1; /* [15, 1, 1, 1] */
    /* results */
    float *out6 = MD_AT(float, m->io, 0); /* [1, 1, 15, 1] */
    /* arena */
    uint8_t *argmax = MD_AT(uint8_t, m->arena, 1216); /* u8 to 1217, steps 0..1 */
    float *panels = MD_AT(float, m->arena, 0); /* [304] to 1216, steps 0..0, workspace */

    /* line 14: n2: f32[1, 1] = core.contract(n1, n1, a = "abcd", b = "abcd", to = "ad") */
    strip_unread_product(argmax, panels, x1); /* 0 */
    strip_unread_call1_out6(out6, argmax, x1, 15); /* 1 */
    out->out6 = out6;
    return STRIP_UNREAD_OK;
}

