/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int argmax_refused(const argmax *m) {
    return m != NULL && !m->bound ? ARGMAX_ERR_STATE : ARGMAX_ERR_ARGUMENT;
}

/* argmax.mdl:6  hot[i, k < K] = f32(best[i] == k)  [5, 10] */
static void argmax_main_best_hot(int32_t *MD_RESTRICT best, float *hot, const float *x) {
    for (int64_t r = 0; r < 5; r++) {
        float most = -INFINITY;
        for (int64_t j = 0; j < 10; j++) {
            const float x_value = x[r * 10 + j];
            most = md_maxf(x_value, most);
        }
        int32_t best_2 = 0;
        int found = 0;
        for (int64_t j = 0; j < 10 && !(found); j++) {
            const float x_value_2 = x[r * 10 + j];
            if (!found && x_value_2 == most) {
                best_2 = (int32_t)(j);
                found = 1;
            }
        }
        MD_IVDEP
        for (int64_t j = 0; j < 10; j++) {
            hot[r * 10 + j] = (float)(best_2 == (int32_t)j);
        }
        best[r] = best_2;
    }
}

/* argmax_main_entry: 1 steps, 0 bytes of arena, 150 FLOPs, line 4 */
int argmax_main_entry(argmax *m, const argmax_main_entry_in *in, argmax_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return argmax_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [5, 10] */
    /* results */
    int32_t *best = MD_AT(int32_t, m->io, 0); /* [5] */
    float *hot = MD_AT(float, m->io, 64); /* [5, 10] */

    /* line 6: hot[i, k < K] = f32(best[i] == k) */
    argmax_main_best_hot(best, hot, x); /* 0 */
    out->best = best;
    out->hot = hot;
    return ARGMAX_OK;
}

