/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int many_refused(const many *m) {
    return m != NULL && !m->bound ? MANY_ERR_STATE : MANY_ERR_ARGUMENT;
}

/* many.mdl:5  b = tanh(s)  [200, 32] */
static void many_b_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    (void)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            block[n - n0] = md_tanhf(block[n - n0]);
        }
    }
}

static const md_tile many_b_tile = {
    MD_TILE_ROWS(200, /* A */ 32, /* C */ 32), MD_TILE_COLUMNS(32, /* B */ 1, /* C */ 1),
    MD_TILE_SUM(32, /* A */ 1, /* B */ 32), MD_TILE_NO_BATCH, sizeof(float), MD_TILE_IN_PLACE,
    MD_TILE_BLOCKS(/* rows */ 200, /* columns */ 32, /* vectors */ 2, /* sum */ 32),
    MD_TILE_NO_WORK
};
MD_TILE_BLOCK(many_b, many_b_tile, float, md_tile_block_f32)
MD_TILE_BLOCK_PART(many_b, many_b_tile, float, md_tile_share_f32, many_b_epilogue, many_b, NULL)

static void many_b(float *b, const float *a, const float *w) {
    md_tile_run(&many_b_tile, many_b_part, a, w, b, NULL, NULL, NULL, 8);
}

/* many.mdl:7  c = exp(t)  [200, 32] */
static void many_c_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    (void)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            block[n - n0] = md_expf(block[n - n0]);
        }
    }
}

MD_TILE_BLOCK_PART(many_c, many_b_tile, float, md_tile_share_f32, many_c_epilogue, many_b, NULL)

static void many_c(float *c, const float *b, const float *w) {
    md_tile_run(&many_b_tile, many_c_part, b, w, c, NULL, NULL, NULL, 8);
}

/* many.mdl:9  d = sqrt(abs(u))  [200, 32] */
static void many_d_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    (void)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            block[n - n0] = md_sqrtf(fabsf(block[n - n0]));
        }
    }
}

MD_TILE_BLOCK_PART(many_d, many_b_tile, float, md_tile_share_f32, many_d_epilogue, many_b, NULL)

static void many_d(float *d, const float *c, const float *w) {
    md_tile_run(&many_b_tile, many_d_part, c, w, d, NULL, NULL, NULL, 8);
}

/* many.mdl:11  e = v * v  [200, 32] */
static void many_e_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    (void)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            const float v = block[n - n0];
            block[n - n0] = v * v;
        }
    }
}

MD_TILE_BLOCK_PART(many_e, many_b_tile, float, md_tile_share_f32, many_e_epilogue, many_b, NULL)

static void many_e(float *e, const float *d, const float *w) {
    md_tile_run(&many_b_tile, many_e_part, d, w, e, NULL, NULL, NULL, 8);
}

/* many.mdl:12  y[i, j] = sum[k] e[i, k] * w[k, j]  [200, 32] */
static void many_main_out_epilogue(void *ctx, int64_t batch, int64_t m0, int64_t rows, int64_t n0,
    int64_t cols, float *strip, int64_t ld) {
    (void)ctx;
    (void)batch, (void)n0, (void)cols;
    for (int64_t m = m0; m < m0 + rows; m++) {
        float *block = strip + (m - m0) * ld;
        MD_IVDEP
        for (int64_t n = 0; n < 32; n++) {
            block[n - n0] = block[n - n0] + 1.0f;
        }
    }
}

MD_TILE_BLOCK_PART(many_main_out, many_b_tile, float, md_tile_share_f32, many_main_out_epilogue, many_b, NULL)

static void many_main_out(float *out, const float *e, const float *w) {
    md_tile_run(&many_b_tile, many_main_out_part, e, w, out, NULL, NULL, NULL, 8);
}

/* many_main_entry: 5 steps, 51200 bytes of arena, 2086400 FLOPs, line 3 */
int many_main_entry(many *m, const many_main_entry_in *in, many_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->a == NULL || in->w == NULL) {
        return many_refused(m);
    }
    /* inputs */
    const float *a = in->a; /* [200, 32] */
    const float *w = in->w; /* [32, 32] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [200, 32] */
    /* arena */
    float *b = MD_AT(float, m->arena, 0); /* [200, 32] to 25600, steps 0..1 */
    float *c = MD_AT(float, m->arena, 25600); /* [200, 32] to 51200, steps 1..2 */
    float *d = MD_AT(float, m->arena, 0); /* [200, 32] to 25600, steps 2..3 */
    float *e = MD_AT(float, m->arena, 25600); /* [200, 32] to 51200, steps 3..4 */

    /* line 5: b = tanh(s) */
    many_b(b, a, w); /* 0 */
    /* line 7: c = exp(t) */
    many_c(c, b, w); /* 1 */
    /* line 9: d = sqrt(abs(u)) */
    many_d(d, c, w); /* 2 */
    /* line 11: e = v * v */
    many_e(e, d, w); /* 3 */
    /* line 12: y[i, j] = sum[k] e[i, k] * w[k, j] */
    many_main_out(out_, e, w); /* 4 */
    out->out = out_;
    return MANY_OK;
}

/* many.mdl:16  a[i] = max[j] sin(p[i, j])  [512] */
MD_NOINLINE void many_rows_a_loop(float *MD_RESTRICT a, const float *MD_RESTRICT p, int part,
        int parts) {
    const int64_t r_end = md_split(512, part + 1, parts);
    for (int64_t r = md_split(512, part, parts); r < r_end; r++) {
        uint32_t most_part[64] = {0};
        int64_t j_base = 0;
        for (; j_base + 64 <= 512; j_base += 64) {
            for (int64_t l = 0; l < 64; l++) {
                const int64_t j = j_base + l;
                most_part[l] = md_max_key(md_key_of_f32(md_sinf(p[r * 512 + j])), most_part[l]);
            }
        }
        const float a_2 = md_lanes_maxf(most_part, 64);
        a[r] = a_2;
    }
}

typedef struct {
    float *a;
    const float *p;
} many_rows_a_loop_args;

static void many_rows_a_loop_part(const void *ctx, int part, int parts) {
    const many_rows_a_loop_args *args = (const many_rows_a_loop_args *)ctx;
    many_rows_a_loop(args->a, args->p, part, parts);
}

static void many_rows_a(float *MD_RESTRICT a, const float *MD_RESTRICT p, md_pace *pace) {
    const many_rows_a_loop_args loop = {a, p};
    md_team_run(pace, 8, 8, many_rows_a_loop_part, &loop);
}

/* many.mdl:17  b[i] = max[j] sin(q[i, j])  [576] */
MD_NOINLINE void many_rows_b_loop(float *MD_RESTRICT b, const float *MD_RESTRICT q, int part,
        int parts) {
    const int64_t r_end = md_split(576, part + 1, parts);
    for (int64_t r = md_split(576, part, parts); r < r_end; r++) {
        uint32_t most_part[64] = {0};
        int64_t j_base = 0;
        for (; j_base + 64 <= 512; j_base += 64) {
            for (int64_t l = 0; l < 64; l++) {
                const int64_t j = j_base + l;
                most_part[l] = md_max_key(md_key_of_f32(md_sinf(q[r * 512 + j])), most_part[l]);
            }
        }
        const float b_2 = md_lanes_maxf(most_part, 64);
        b[r] = b_2;
    }
}

typedef struct {
    float *b;
    const float *q;
} many_rows_b_loop_args;

static void many_rows_b_loop_part(const void *ctx, int part, int parts) {
    const many_rows_b_loop_args *args = (const many_rows_b_loop_args *)ctx;
    many_rows_b_loop(args->b, args->q, part, parts);
}

static void many_rows_b(float *MD_RESTRICT b, const float *MD_RESTRICT q, md_pace *pace) {
    const many_rows_b_loop_args loop = {b, q};
    md_team_run(pace, 8, 8, many_rows_b_loop_part, &loop);
}

/* many.mdl:18  c[i] = max[j] sin(r[i, j])  [640] */
MD_NOINLINE void many_rows_c_loop(float *MD_RESTRICT c, const float *MD_RESTRICT r, int part,
        int parts) {
    const int64_t r_2_end = md_split(640, part + 1, parts);
    for (int64_t r_2 = md_split(640, part, parts); r_2 < r_2_end; r_2++) {
        uint32_t most_part[64] = {0};
        int64_t j_base = 0;
        for (; j_base + 64 <= 512; j_base += 64) {
            for (int64_t l = 0; l < 64; l++) {
                const int64_t j = j_base + l;
                most_part[l] = md_max_key(md_key_of_f32(md_sinf(r[r_2 * 512 + j])), most_part[l]);
            }
        }
        const float c_2 = md_lanes_maxf(most_part, 64);
        c[r_2] = c_2;
    }
}

typedef struct {
    float *c;
    const float *r;
} many_rows_c_loop_args;

static void many_rows_c_loop_part(const void *ctx, int part, int parts) {
    const many_rows_c_loop_args *args = (const many_rows_c_loop_args *)ctx;
    many_rows_c_loop(args->c, args->r, part, parts);
}

static void many_rows_c(float *MD_RESTRICT c, const float *MD_RESTRICT r, md_pace *pace) {
    const many_rows_c_loop_args loop = {c, r};
    md_team_run(pace, 8, 8, many_rows_c_loop_part, &loop);
}

/* many.mdl:19  d[i] = max[j] sin(s[i, j])  [704] */
MD_NOINLINE void many_rows_d_loop(float *MD_RESTRICT d, const float *MD_RESTRICT s, int part,
        int parts) {
    const int64_t r_end = md_split(704, part + 1, parts);
    for (int64_t r = md_split(704, part, parts); r < r_end; r++) {
        uint32_t most_part[64] = {0};
        int64_t j_base = 0;
        for (; j_base + 64 <= 512; j_base += 64) {
            for (int64_t l = 0; l < 64; l++) {
                const int64_t j = j_base + l;
                most_part[l] = md_max_key(md_key_of_f32(md_sinf(s[r * 512 + j])), most_part[l]);
            }
        }
        const float d_2 = md_lanes_maxf(most_part, 64);
        d[r] = d_2;
    }
}

typedef struct {
    float *d;
    const float *s;
} many_rows_d_loop_args;

static void many_rows_d_loop_part(const void *ctx, int part, int parts) {
    const many_rows_d_loop_args *args = (const many_rows_d_loop_args *)ctx;
    many_rows_d_loop(args->d, args->s, part, parts);
}

static void many_rows_d(float *MD_RESTRICT d, const float *MD_RESTRICT s, md_pace *pace) {
    const many_rows_d_loop_args loop = {d, s};
    md_team_run(pace, 8, 8, many_rows_d_loop_part, &loop);
}

/* many_rows: 4 steps, 0 bytes of arena, 2490368 FLOPs, line 15 */
int many_rows(many *m, const many_rows_in *in, many_rows_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->p == NULL || in->q == NULL ||
            in->r == NULL || in->s == NULL) {
        return many_refused(m);
    }
    /* inputs */
    const float *p = in->p; /* [512, 512] */
    const float *q = in->q; /* [576, 512] */
    const float *r = in->r; /* [640, 512] */
    const float *s = in->s; /* [704, 512] */
    /* results */
    float *a = MD_AT(float, m->io, 0); /* [512] */
    float *b = MD_AT(float, m->io, 2048); /* [576] */
    float *c = MD_AT(float, m->io, 4352); /* [640] */
    float *d = MD_AT(float, m->io, 6912); /* [704] */

    /* line 16: a[i] = max[j] sin(p[i, j]) */
    many_rows_a(a, p, &m->pace); /* 0 */
    /* line 17: b[i] = max[j] sin(q[i, j]) */
    many_rows_b(b, q, &m->pace); /* 1 */
    /* line 18: c[i] = max[j] sin(r[i, j]) */
    many_rows_c(c, r, &m->pace); /* 2 */
    /* line 19: d[i] = max[j] sin(s[i, j]) */
    many_rows_d(d, s, &m->pace); /* 3 */
    out->a = a;
    out->b = b;
    out->c = c;
    out->d = d;
    return MANY_OK;
}

