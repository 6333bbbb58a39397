/* SPDX-License-Identifier: 0BSD */
/* fake_model: a small model written by hand in the form that the compiler prints, so that the host
 * part can be tested without a compiler.
 *
 *     dim B = 8;
 *     dataset rows { file f = "rows.csv"; x: f32[3] = f.columns(0..3) / 2;
 *                    k: u8 in 0..4 = f.column(3); y: f32 = f.column(4); holdout every(5); }
 *     model lin(x: [B, 3], k: u8[B] in 0..4) -> [B] { param w: [3] ~ ...; param c: [4] = 0; ... }
 *     train fit(lr: real = 0.1) of lin on rows[B] { loss mean(e^2); metric mae = mean(abs(e));
 *                    optimizer sgd(lr = lr, momentum = 0.9); epochs 3; }
 *     train feed(x: [B, 3], y: [B], lr: real = 0.1) of lin { ... }
 *     entry predict(x: [2, 3], k: u8[2] in 0..4, gain: f32) { return y = gain * lin(x, k); }
 *     entry weights() { return w = lin.w, c = lin.c; }
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "runtime/main.h"

/* ---- the model part: no allocation, no stdio ------------------------------------------------ */

enum { FAKE_B = 8, FAKE_N = 3, FAKE_K = 4, FAKE_P = 2 };

#define FAKE_ALIGN 64
#define FAKE_PARAMS_BYTES 128
#define FAKE_STATE_BYTES 384
#define FAKE_IO_BYTES 512
#define FAKE_ARENA_BYTES 64

typedef struct fake {
    float *w, *c;   /* params */
    float *mw, *mc; /* state: momentum */
    int64_t *step, *steps;
    float *lr, *feed_lr;
    float *y, *out_w, *out_c; /* io: results */
    float *e;                 /* arena: errors of a batch */
} fake;

typedef struct fake_fit_in {
    const float *x;
    const uint8_t *k;
    const float *y;
} fake_fit_in;
typedef struct fake_fit_out {
    float loss, mae, grad_norm;
} fake_fit_out;
typedef struct fake_fit_eval_out {
    double sum_square, sum_abs, rows;
} fake_fit_eval_out;
typedef struct fake_feed_in {
    const float *x;
    const float *y;
} fake_feed_in;
typedef struct fake_feed_out {
    float loss;
} fake_feed_out;
typedef struct fake_predict_in {
    const float *x;
    const uint8_t *k;
    float gain;
} fake_predict_in;
typedef struct fake_predict_out {
    const float *y;
} fake_predict_out;
typedef struct fake_weights_out {
    const float *w;
    const float *c;
} fake_weights_out;

static int fake_bind(fake *m, const md_memory *mem) {
    if (mem->params_bytes < FAKE_PARAMS_BYTES || mem->state_bytes < FAKE_STATE_BYTES ||
        mem->io_bytes < FAKE_IO_BYTES || mem->arena_bytes < FAKE_ARENA_BYTES) {
        return MD_ERR_SIZE;
    }
    char *params = (char *)mem->params, *state = (char *)mem->state, *io = (char *)mem->io;
    m->w = (float *)(void *)(params + 0);
    m->c = (float *)(void *)(params + 64);
    m->mw = (float *)(void *)(state + 0);
    m->mc = (float *)(void *)(state + 64);
    m->step = (int64_t *)(void *)(state + 128);
    m->steps = (int64_t *)(void *)(state + 192);
    m->lr = (float *)(void *)(state + 256);
    m->feed_lr = (float *)(void *)(state + 320);
    m->y = (float *)(void *)(io + 256);
    m->out_w = (float *)(void *)(io + 320);
    m->out_c = (float *)(void *)(io + 384);
    m->e = (float *)mem->arena;
    return MD_OK;
}

static int fake_init(fake *m, uint64_t seed) {
    for (int i = 0; i < FAKE_N; i++) {
        m->w[i] = (float)(md_mix64(seed + (uint64_t)i) >> 40) / 16777216.0f - 0.5f;
        m->mw[i] = 0;
    }
    for (int i = 0; i < FAKE_K; i++) {
        m->c[i] = 0;
        m->mc[i] = 0;
    }
    *m->step = 0;
    *m->steps = 0;
    *m->lr = 0.1f;
    *m->feed_lr = 0.1f;
    return MD_OK;
}

static float fake_model(const fake *m, const float *x, int k) {
    float y = m->c[k];
    for (int i = 0; i < FAKE_N; i++) {
        y += m->w[i] * x[i];
    }
    return y;
}

/* One update of both trains; without `k` every row is of class 0. */
static int fake_update(fake *m, const float *x, const uint8_t *k, const float *y, float lr,
                       fake_fit_out *out) {
    float gw[FAKE_N] = {0, 0, 0}, gc[FAKE_K] = {0, 0, 0, 0}, norm = 0;
    out->loss = 0;
    out->mae = 0;
    for (int r = 0; r < FAKE_B; r++) {
        int class_ = k == NULL ? 0 : k[r];
        m->e[r] = fake_model(m, x + r * FAKE_N, class_) - y[r];
        out->loss += m->e[r] * m->e[r] / FAKE_B;
        out->mae += fabsf(m->e[r]) / FAKE_B;
        gc[class_] += 2 * m->e[r] / FAKE_B;
        for (int i = 0; i < FAKE_N; i++) {
            gw[i] += 2 * m->e[r] / FAKE_B * x[r * FAKE_N + i];
        }
    }
    if (!isfinite(out->loss)) {
        return MD_ERR_NONFINITE;
    }
    for (int i = 0; i < FAKE_N; i++) {
        norm += gw[i] * gw[i];
        m->mw[i] = 0.9f * m->mw[i] + gw[i];
        m->w[i] -= lr * m->mw[i];
    }
    for (int i = 0; i < FAKE_K; i++) {
        norm += gc[i] * gc[i];
        m->mc[i] = 0.9f * m->mc[i] + gc[i];
        m->c[i] -= lr * m->mc[i];
    }
    out->grad_norm = sqrtf(norm);
    ++*m->step;
    return MD_OK;
}

static int fake_fit(fake *m, const fake_fit_in *in, fake_fit_out *out) {
    return fake_update(m, in->x, in->k, in->y, *m->lr, out);
}

static int fake_feed(fake *m, const fake_feed_in *in, fake_feed_out *out) {
    fake_fit_out all;
    int code = fake_update(m, in->x, NULL, in->y, *m->feed_lr, &all);
    out->loss = all.loss;
    return code;
}

static int fake_fit_eval(fake *m, const fake_fit_in *in, int64_t rows, fake_fit_eval_out *out) {
    memset(out, 0, sizeof *out);
    for (int64_t r = 0; r < rows; r++) {
        double e = (double)fake_model(m, in->x + r * FAKE_N, in->k[r]) - (double)in->y[r];
        out->sum_square += e * e;
        out->sum_abs += fabs(e);
        out->rows += 1;
    }
    return MD_OK;
}

static int fake_predict(fake *m, const fake_predict_in *in, fake_predict_out *out) {
    for (int r = 0; r < FAKE_P; r++) {
        m->y[r] = in->gain * fake_model(m, in->x + r * FAKE_N, in->k[r]);
    }
    out->y = m->y;
    return MD_OK;
}

static int fake_weights(fake *m, fake_weights_out *out) {
    memcpy(m->out_w, m->w, sizeof *m->w * FAKE_N);
    memcpy(m->out_c, m->c, sizeof *m->c * FAKE_K);
    out->w = m->out_w;
    out->c = m->out_c;
    return MD_OK;
}

static const char *fake_strerror(int code) {
    return code == MD_ERR_NONFINITE ? "a loss or a norm is NaN or infinite" : "failed";
}

/* ---- what the compiler prints in front of main: adapters and the descriptor ----------------- */

static void fake_load_rows_x(const void *raw, void *field) {
    const float *f = (const float *)raw;
    float *x = (float *)field;
    for (int i = 0; i < FAKE_N; i++) {
        x[i] = f[i] / 2;
    }
}

static int fake_host_bind(void *net, const md_memory *memory) {
    return fake_bind((fake *)net, memory);
}

static int fake_host_init(void *net, uint64_t seed) {
    return fake_init((fake *)net, seed);
}

static int fake_host_fit(void *net, const md_call *call) {
    fake_fit_in in;
    fake_fit_out out;
    memset(&out, 0, sizeof out);
    in.x = (const float *)call->in[0];
    in.k = (const uint8_t *)call->in[1];
    in.y = (const float *)call->in[2];
    int code = fake_fit((fake *)net, &in, &out);
    call->values[0] = (double)out.loss;
    call->values[1] = (double)out.mae;
    call->values[2] = (double)out.grad_norm;
    return code;
}

static int fake_host_fit_eval(void *net, const md_call *call) {
    fake_fit_in in;
    fake_fit_eval_out out;
    in.x = (const float *)call->in[0];
    in.k = (const uint8_t *)call->in[1];
    in.y = (const float *)call->in[2];
    int code = fake_fit_eval((fake *)net, &in, call->rows, &out);
    call->values[0] = out.sum_square;
    call->values[1] = out.sum_abs;
    call->values[2] = out.rows;
    return code;
}

typedef struct fake_fit_eval_sums {
    int64_t batches;
    double sum_square, sum_abs, rows;
} fake_fit_eval_sums;

static void fake_host_fit_eval_end(const void *net, const void *sums, double *values) {
    const fake_fit_eval_sums *all = (const fake_fit_eval_sums *)sums;
    (void)net;
    values[0] = all->sum_square / all->rows;
    values[1] = all->sum_abs / all->rows;
}

static int fake_host_feed(void *net, const md_call *call) {
    fake_feed_in in;
    fake_feed_out out;
    memset(&out, 0, sizeof out);
    in.x = (const float *)call->in[0];
    in.y = (const float *)call->in[1];
    int code = fake_feed((fake *)net, &in, &out);
    call->values[0] = (double)out.loss;
    return code;
}

static int fake_host_predict(void *net, const md_call *call) {
    fake_predict_in in;
    fake_predict_out out;
    memset(&out, 0, sizeof out);
    in.x = (const float *)call->in[0];
    in.k = (const uint8_t *)call->in[1];
    in.gain = *(const float *)call->in[2];
    int code = fake_predict((fake *)net, &in, &out);
    call->out[0] = out.y;
    return code;
}

static int fake_host_weights(void *net, const md_call *call) {
    fake_weights_out out;
    memset(&out, 0, sizeof out);
    int code = fake_weights((fake *)net, &out);
    call->out[0] = out.w;
    call->out[1] = out.c;
    return code;
}

static const md_tensor fake_tensor_table[] = {
    /* name, dtype, region, kind, trainable, rank, shape, offset, bytes */
    {"w", MD_F32, MD_PARAMS, MD_PARAM, 1, 1, {3}, 0, 12, 0, 0, 0, 0, 0},
    {"c", MD_F32, MD_PARAMS, MD_PARAM, 1, 1, {4}, 64, 16, 0, 0, 0, 0, 0},
    {"mdlc.fit.w.m", MD_F32, MD_STATE, MD_SLOT, 0, 1, {3}, 0, 12, 0, 0, 0, 0, 0},
    {"mdlc.fit.c.m", MD_F32, MD_STATE, MD_SLOT, 0, 1, {4}, 64, 16, 0, 0, 0, 0, 0},
    {"mdlc.fit.step", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 128, 8, 0, 0, 0, 0, 0},
    {"mdlc.fit.steps", MD_I64, MD_STATE, MD_SLOT, 0, 0, {0}, 192, 8, 0, 0, 0, 0, 0},
    {"mdlc.fit.lr", MD_F32, MD_STATE, MD_SLOT, 0, 0, {0}, 256, 4, 0, 0, 0, 0, 0},
    {"mdlc.feed.lr", MD_F32, MD_STATE, MD_SLOT, 0, 0, {0}, 320, 4, 0, 0, 0, 0, 0},
};

static const md_file fake_rows_files[] = {
    /* name, {train, held out, test}, format, rows, seed */
    {"f", {"rows.csv", NULL, NULL}, 0, 0},
};
static const md_field fake_rows_fields[] = {
    /* name, file, source, first, count, stride, raw, dtype, rank, shape, row_bytes, lo, hi, load,
     * norm, centre, spread, known */
    {"x",
     0,
     MD_COLUMNS,
     0,
     3,
     0,
     MD_F32,
     MD_F32,
     1,
     {3},
     12,
     0,
     0,
     fake_load_rows_x,
     MD_NORM_NONE,
     0,
     0,
     0},
    {"k", 0, MD_COLUMNS, 3, 1, 0, MD_U8, MD_U8, 0, {0}, 1, 0, 4, NULL, MD_NORM_NONE, 0, 0, 0},
    {"y", 0, MD_COLUMNS, 4, 1, 0, MD_F32, MD_F32, 0, {0}, 4, 0, 0, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset fake_datasets[] = {
    /* name, files, file_count, fields, field_count, every, order, in_ring, counter */
    {"rows", fake_rows_files, 1, fake_rows_fields, 3, {0, 5, 0}, MD_SHUFFLED, 0, 0},
};

static const md_port fake_fit_inputs[] = {
    /* name, dtype, rank, shape, bytes, field, io_offset, lo, hi, optional, initial */
    {"x", MD_F32, 2, {8, 3}, 96, 0, 0, 0, 0, 0, 0},
    {"k", MD_U8, 1, {8}, 8, 1, 128, 0, 4, 0, 0},
    {"y", MD_F32, 1, {8}, 32, 2, 192, 0, 0, 0, 0},
};
static const md_port fake_feed_inputs[] = {
    {"x", MD_F32, 2, {8, 3}, 96, -1, 0, 0, 0, 0, 0},
    {"y", MD_F32, 1, {8}, 32, -1, 192, 0, 0, 0, 0},
};
static const md_port fake_predict_inputs[] = {
    {"x", MD_F32, 2, {2, 3}, 24, -1, 0, 0, 0, 0, 0},
    {"k", MD_U8, 1, {2}, 2, -1, 64, 0, 4, 0, 0},
    {"gain", MD_F32, 0, {0}, 4, -1, 128, 0, 0, 0, 0},
};
static const md_port fake_predict_outputs[] = {
    {"y", MD_F32, 1, {2}, 8, -1, 0, 0, 0, 0, 0},
};
static const md_port fake_weights_outputs[] = {
    {"w", MD_F32, 1, {3}, 12, -1, 0, 0, 0, 0, 0},
    {"c", MD_F32, 1, {4}, 16, -1, 0, 0, 0, 0, 0},
};
static const md_scalar fake_fit_hypers[] = {
    /* name, dtype, offset */
    {"lr", MD_F32, 256},
};
static const md_scalar fake_fit_plan = {"steps", MD_I64, 192};
static const md_scalar fake_feed_hypers[] = {
    {"lr", MD_F32, 320},
};
static const char *const fake_fit_metrics[] = {"mae"};
static const char *const fake_fit_extras[] = {"grad_norm"};

/* clang-format off */
static const md_entry fake_entries[] = {
    /* name, kind, call,
     * inputs, input_count, outputs, output_count, hypers, hyper_count, needs, need_count, fill,
     * dataset, rows, eval_rows, steps, epochs, plan, epoch,
     * metrics, metric_count, extras, extra_count, eval, eval_sums, eval_end, traced,
     * pushes, push_count, scaled */
    {"fit", MD_TRAIN, fake_host_fit,
     fake_fit_inputs, 3, NULL, 0, fake_fit_hypers, 1, NULL, 0, NULL,
     0, 8, 8, 0, 3, &fake_fit_plan, NULL,
     fake_fit_metrics, 1, fake_fit_extras, 1, fake_host_fit_eval, 3, fake_host_fit_eval_end, NULL,
     NULL, 0, 0},
    {"feed", MD_TRAIN, fake_host_feed,
     fake_feed_inputs, 2, NULL, 0, fake_feed_hypers, 1, NULL, 0, NULL,
     -1, 0, 0, 0, 0, NULL, NULL,
     NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, 0, 0},
    {"predict", MD_ENTRY, fake_host_predict,
     fake_predict_inputs, 3, fake_predict_outputs, 1, NULL, 0, NULL, 0, NULL,
     -1, 0, 0, 0, 0, NULL, NULL,
     NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, 0, 0},
    {"weights", MD_ENTRY, fake_host_weights,
     NULL, 0, fake_weights_outputs, 2, NULL, 0, NULL, 0, NULL,
     -1, 0, 0, 0, 0, NULL, NULL,
     NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, 0, 0},
};
/* clang-format on */

static const char *const fake_info[] = {"entries\n", NULL, "layers\n", NULL};

static fake fake_net;

/* clang-format off */
static const md_model fake_descriptor = {
    /* name, source, net, bind, init, error */
    "fake", "fake.mdl", &fake_net, fake_host_bind, fake_host_init, fake_strerror,
    /* bytes of params, state, io, arena; align; stack_bytes, threads */
    FAKE_PARAMS_BYTES, FAKE_STATE_BYTES, FAKE_IO_BYTES, FAKE_ARENA_BYTES, FAKE_ALIGN, 4096, 8,
    fake_tensor_table, sizeof fake_tensor_table / sizeof *fake_tensor_table,
    fake_datasets, 1, fake_entries, 4, NULL, 0, NULL, 0, NULL, 0, NULL, /* phases */
    fake_info, NULL, NULL, NULL,
    NULL, NULL, /* limit, limit_lines */
    NULL, 0, NULL, NULL, /* profiled, profiled_count, names, profile */
};
/* clang-format on */

#ifndef FAKE_WITHOUT_MAIN
int main(int argc, char **argv) {
    return md_main(&fake_descriptor, argc, argv);
}
#endif
