/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int total_refused(const total *m) {
    return m != NULL && !m->bound ? TOTAL_ERR_STATE : TOTAL_ERR_ARGUMENT;
}

/* total.mdl:3  entry main(x: [N]) { return sum(x * x), max(x); }  [] */
static void total_main_out0_out1(float *MD_RESTRICT out0, float *MD_RESTRICT out1,
        const float *MD_RESTRICT x, int64_t n) {
    float sum_part[64] = {0};
    uint32_t most_part[64] = {0};
    int64_t j_base = 0;
    for (; j_base + 64 <= n; j_base += 64) {
        for (int64_t l = 0; l < 64; l++) {
            const int64_t j = j_base + l;
            const float x_value = x[j];
            sum_part[l] += x_value * x_value;
            most_part[l] = md_max_key(md_key_of_f32(x_value), most_part[l]);
        }
    }
    for (int64_t l = 0; l < n - j_base; l++) {
        const int64_t j = j_base + l;
        const float x_value_2 = x[j];
        sum_part[l] += x_value_2 * x_value_2;
        most_part[l] = md_max_key(md_key_of_f32(x_value_2), most_part[l]);
    }
    const float sum = md_lanes_addf(sum_part, 64);
    const float most = md_lanes_maxf(most_part, 64);
    out0[0] = sum;
    out1[0] = most;
}

/* total_main_entry: 1 steps, 0 bytes of arena, 900 FLOPs, line 3 */
int total_main_entry(total *m, const total_main_entry_in *in, total_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return total_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [300] */
    /* results */
    float *out0 = MD_AT(float, m->io, 0); /* f32 */
    float *out1 = MD_AT(float, m->io, 64); /* f32 */

    /* line 3: entry main(x: [N]) { return sum(x * x), max(x); } */
    total_main_out0_out1(out0, out1, x, 300); /* 0 */
    out->out0 = *out0;
    out->out1 = *out1;
    return TOTAL_OK;
}

