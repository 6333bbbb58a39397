/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int tile_swapped_refused(const tile_swapped *m) {
    return m != NULL && !m->bound ? TILE_SWAPPED_ERR_STATE : TILE_SWAPPED_ERR_ARGUMENT;
}

/* tile_swapped.mdl:4  y[i, o] = sum[k] x[k, i] * w[k, o]  [64, 2] */
static const md_tile tile_swapped_main_out_tile = {
    MD_TILE_ROWS(2, /* B */ 1, /* C */ 1), MD_TILE_COLUMNS(64, /* A */ 1, /* C */ 2),
    MD_TILE_SUM(256, /* B */ 2, /* A */ 64), MD_TILE_NO_BATCH, sizeof(float),
    MD_TILE_IN_PLACE | MD_TILE_SWAPPED,
    MD_TILE_BLOCKS(/* rows */ 2, /* columns */ 64, /* vectors */ 4, /* sum */ 256),
    MD_TILE_WORK(/* strip */ 0, /* turned */ 128, /* all */ 128)
};
MD_TILE_PART(tile_swapped_main_out, tile_swapped_main_out_tile, md_tile_part_f32, md_tile_none_f32)

static void tile_swapped_main_out(float *out, float *panels, const float *x, const float *w) {
    md_tile_run(&tile_swapped_main_out_tile, tile_swapped_main_out_part, x, w, out, NULL, panels,
        NULL, 8);
}

/* tile_swapped_main_entry: 1 steps, 512 bytes of arena, 65536 FLOPs, line 3 */
int tile_swapped_main_entry(tile_swapped *m, const tile_swapped_main_entry_in *in, tile_swapped_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL) {
        return tile_swapped_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [256, 64] */
    const float *w = in->w; /* [256, 2] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [64, 2] */
    /* arena */
    float *panels = MD_AT(float, m->arena, 0); /* [128] to 512, steps 0..0, workspace */

    /* line 4: y[i, o] = sum[k] x[k, i] * w[k, o] */
    tile_swapped_main_out(out_, panels, x, w); /* 0 */
    out->out = out_;
    return TILE_SWAPPED_OK;
}

