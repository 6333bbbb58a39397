/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int openblas_refused(const openblas *m) {
    return m != NULL && !m->bound ? OPENBLAS_ERR_STATE : OPENBLAS_ERR_ARGUMENT;
}

/* openblas.mdl:6  y[i, o] = sum[k] x[i, k] * w[o, k]  [64, 32] */
typedef struct {
    const float *b;
} openblas_main_out_args;

static void openblas_main_out_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    const openblas_main_out_args args = *(const openblas_main_out_args *)ctx;
    (void)batch;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = n0; n < n0 + cols; n++) {
            block[n - n0] = md_maxf(block[n - n0] + args.b[n], 0.0f);
        }
    }
}

static const md_blas openblas_main_out_blas = {
    /* batches */ 1, 1,
    /* rows */ 64, /* columns */ 32, /* sum */ 48,
    /* pitches of A, B, C */ 48, 48, 32,
    /* transposed: A, B */ 0, 1, /* C += */ 0,
    /* batches of A */ 0, 0, /* of B */ 0, 0, /* of C */ 0, 0,
    /* rows of a block */ 2048
};

static void openblas_main_out(float *out, const float *x, const float *w, const float *b) {
    openblas_main_out_args args = {b};
    md_blas_run_f32(&openblas_main_out_blas, openblas_main_out_epilogue, x, w, out, &args);
}

/* openblas_main_entry: 1 steps, 0 bytes of arena, 200704 FLOPs, line 5 */
int openblas_main_entry(openblas *m, const openblas_main_entry_in *in, openblas_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->w == NULL ||
            in->b == NULL) {
        return openblas_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [64, 48] */
    const float *w = in->w; /* [32, 48] */
    const float *b = in->b; /* [32] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [64, 32] */

    /* line 6: y[i, o] = sum[k] x[i, k] * w[o, k] */
    openblas_main_out(out_, x, w, b); /* 0 */
    out->out = out_;
    return OPENBLAS_OK;
}

