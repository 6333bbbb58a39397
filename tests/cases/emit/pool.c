/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int pool_refused(const pool *m) {
    return m != NULL && !m->bound ? POOL_ERR_STATE : POOL_ERR_ARGUMENT;
}

/* pool.mdl:4  y[b, i < H/2, j < W/2] = max[p < 2, q < 2] x[b, 2*i + p, 2*j + q]  [2, 3, 4] */
static void pool_main_out(float *MD_RESTRICT out, const float *MD_RESTRICT x) {
    MD_IVDEP
    for (int64_t i = 0; i < 6; i++) {
        MD_UNROLL(8)
        for (int64_t i_2 = 0; i_2 < 4; i_2++) {
            out[i * 4 + i_2] = md_maxf(x[i * 16 + i_2 * 2 + 9], md_maxf(x[i * 16 + i_2 * 2 + 8], md_maxf(x[i * 16 + i_2 * 2 + 1], x[i * 16 + i_2 * 2])));
        }
    }
}

/* pool_main_entry: 1 steps, 0 bytes of arena, 72 FLOPs, line 3 */
int pool_main_entry(pool *m, const pool_main_entry_in *in, pool_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return pool_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [2, 6, 8] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [2, 3, 4] */

    /* line 4: y[b, i < H/2, j < W/2] = max[p < 2, q < 2] x[b, 2*i + p, 2*j + q] */
    pool_main_out(out_, x); /* 0 */
    out->out = out_;
    return POOL_OK;
}

