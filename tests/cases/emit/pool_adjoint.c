/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int pool_adjoint_refused(const pool_adjoint *m) {
    return m != NULL && !m->bound ? POOL_ADJOINT_ERR_STATE : POOL_ADJOINT_ERR_ARGUMENT;
}

/* pool_adjoint.mdl:4  y[i < 2, j < 3, c] = max[p < 2, q < 2] x[2 * i + p, 2 * j + q, c]  [2, 3, 16] */
static void pool_adjoint_pool_argmax(uint8_t *MD_RESTRICT pool_argmax, const float *MD_RESTRICT x) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_2 = 0; i_2 < 3; i_2++) {
            MD_IVDEP
            for (int64_t i_3 = 0; i_3 < 16; i_3++) {
                const float x_value = x[i * 192 + i_2 * 32 + i_3];
                const float x_value_2 = x[i * 192 + i_2 * 32 + i_3 + 112];
                const float x_value_3 = x[i * 192 + i_2 * 32 + i_3 + 96];
                const float x_value_4 = x[i * 192 + i_2 * 32 + i_3 + 16];
                const float t = md_maxf(x_value_2, md_maxf(x_value_3, md_maxf(x_value_4, x_value)));
                pool_argmax[i * 48 + i_2 * 16 + i_3] = (uint8_t)(x_value == t ? 0 : (x_value_4 == t ? 1 : (x_value_3 == t ? 2 : (x_value_2 == t ? 3 : 0))));
            }
        }
    }
}

/* pool_adjoint.mdl:4  y[i < 2, j < 3, c] = max[p < 2, q < 2] x[2 * i + p, 2 * j + q, c]  [4, 6, 16] */
static void pool_adjoint_main_out(float *MD_RESTRICT out, const uint8_t *MD_RESTRICT pool_argmax,
        const float *MD_RESTRICT u) {
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t i_3 = 0; i_3 < 3; i_3++) {
            MD_IVDEP
            for (int64_t i_5 = 0; i_5 < 16; i_5++) {
                const uint8_t t = pool_argmax[i * 48 + i_3 * 16 + i_5];
                const float u_value = u[i * 48 + i_3 * 16 + i_5];
                const float t_2 = 0 == t ? u_value : 0.0f;
                const float t_3 = 2 == t ? u_value : 0.0f;
                const float t_4 = 1 == t ? u_value : 0.0f;
                const float t_5 = 3 == t ? u_value : 0.0f;
                out[i * 192 + i_3 * 32 + i_5] = t_2;
                out[i * 192 + i_3 * 32 + i_5 + 96] = t_3;
                out[i * 192 + i_3 * 32 + i_5 + 16] = t_4;
                out[i * 192 + i_3 * 32 + i_5 + 112] = t_5;
            }
        }
    }
}

/* pool_adjoint_main_entry: 2 steps, 128 bytes of arena, 672 FLOPs, line 7 */
int pool_adjoint_main_entry(pool_adjoint *m, const pool_adjoint_main_entry_in *in, pool_adjoint_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL || in->u == NULL) {
        return pool_adjoint_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4, 6, 16] */
    const float *u = in->u; /* [2, 3, 16] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* [4, 6, 16] */
    /* arena */
    uint8_t *pool_argmax = MD_AT(uint8_t, m->arena, 0); /* [2, 3, 16] to 96, steps 0..1 */

    /* line 4: y[i < 2, j < 3, c] = max[p < 2, q < 2] x[2 * i + p, 2 * j + q, c] */
    pool_adjoint_pool_argmax(pool_argmax, x); /* 0 */
    pool_adjoint_main_out(out_, pool_argmax, u); /* 1 */
    out->out = out_;
    return POOL_ADJOINT_OK;
}

