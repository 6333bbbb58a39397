/* ---- model ---- */

/* Why a call is refused: no memory is bound, or an argument is none that is allowed. */
static int counter_refused(const counter *m) {
    return m != NULL && !m->bound ? COUNTER_ERR_STATE : COUNTER_ERR_ARGUMENT;
}

/* counter.mdl:7  mean_ <- mean_ + (sum(x) / N - mean_) / f32(n)  [] */
static void counter_main_out(int64_t *count_next, float *out, float *mean_next,
        const int64_t *count, const float *MD_RESTRICT x, const float *mean) {
    const int64_t t = (int64_t)((uint64_t)count[0] + (uint64_t)1);
    const float t_2 = x[0] + x[1] + x[2] + x[3];
    const float mean_ = mean[0];
    const float t_3 = mean_ + (t_2 / 4.0f - mean_) / (float)t;
    count_next[0] = t;
    out[0] = t_2;
    mean_next[0] = t_3;
}

/* counter_main_entry: 1 steps, 0 bytes of arena, 8 FLOPs, line 5 */
int counter_main_entry(counter *m, const counter_main_entry_in *in, counter_main_entry_out *out) {
    if (m == NULL || !m->bound || in == NULL || out == NULL || in->x == NULL) {
        return counter_refused(m);
    }
    /* inputs */
    const float *x = in->x; /* [4] */
    /* results */
    float *out_ = MD_AT(float, m->io, 0); /* f32 */
    /* state */
    int64_t *count = MD_AT(int64_t, m->state, 64); /* i64 */
    float *mean = MD_AT(float, m->state, 128); /* f32 mean_ */

    /* line 7: mean_ <- mean_ + (sum(x) / N - mean_) / f32(n) */
    counter_main_out(count, out_, mean, count, x, mean); /* 0 */
    out->out = *out_;
    return COUNTER_OK;
}

/* counter.mdl:7  mean_ <- mean_ + (sum(x) / N - mean_) / f32(n)  [] */
static void counter_fill_count(int64_t *MD_RESTRICT count_next, float *MD_RESTRICT mean_next) {
    count_next[0] = 0;
    mean_next[0] = 0.0f;
}

