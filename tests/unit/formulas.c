/* formulas: see formulas.h. */
#include "formulas.h"

#include <math.h>

/* --- optimizers ------------------------------------------------------------------------------- */

void formula_clip(const Rule *r, double *g) {
    double square = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        square += g[i] * g[i];
    }
    for (int i = 0; i < ELEMENTS && r->clip_norm > 0; i++) {
        g[i] *= fmin(1, r->clip_norm / (sqrt(square) + 1e-6));
    }
    for (int i = 0; i < ELEMENTS && r->clip_value > 0; i++) {
        g[i] = fmax(-r->clip_value, fmin(r->clip_value, g[i]));
    }
}

static double norm(const double *x) {
    double square = 0;
    for (int i = 0; i < ELEMENTS; i++) {
        square += x[i] * x[i];
    }
    return sqrt(square);
}

static void sgd(const Rule *r, int t, double lr, const double *g, Weights *w) {
    for (int i = 0; i < ELEMENTS; i++) {
        double d = g[i] + r->decay * w->p[i], move = d;
        if (r->momentum > 0) {
            w->a[i] = t == 1 ? d : r->momentum * w->a[i] + (1 - r->dampening) * d;
            move = r->nesterov ? d + r->momentum * w->a[i] : w->a[i];
        }
        w->p[i] -= lr * move;
    }
}

static void adam(const Rule *r, int t, double lr, const double *g, Weights *w) {
    for (int i = 0; i < ELEMENTS; i++) {
        double d = g[i] + (r->decoupled ? 0 : r->decay * w->p[i]);
        w->p[i] *= r->decoupled ? 1 - lr * r->decay : 1;
        w->a[i] = r->beta1 * w->a[i] + (1 - r->beta1) * d;
        w->b[i] = r->beta2 * w->b[i] + (1 - r->beta2) * d * d;
        w->c[i] = fmax(w->c[i], w->b[i]);
        double second = r->amsgrad ? w->c[i] : w->b[i];
        double root = sqrt(second) / sqrt(1 - pow(r->beta2, t)) + r->eps;
        w->p[i] -= lr / (1 - pow(r->beta1, t)) * w->a[i] / root;
    }
}

/* The numbers of 8 bits, as bitsandbytes makes them (create_dynamic_map), in order: middles of
 * parts of 0.1..1 for each of seven decades, of both signs or, where none is negative, twice as
 * many, and 0 and 1. */
static void dynamic_map(bool is_signed, double *map) {
    int n = 0;
    for (int decade = 0; decade < 7; decade++) {
        int parts = (1 << decade) * (is_signed ? 1 : 2);
        for (int i = 0; i < parts; i++) {
            double low = 0.1 + 0.9 * i / parts, high = 0.1 + 0.9 * (i + 1) / parts;
            map[n++] = pow(10, decade - 6) * (low + high) / 2;
            if (is_signed) {
                map[n] = -map[n - 1];
                n++;
            }
        }
    }
    map[n++] = 0;
    map[n++] = 1;
    for (int i = 1; i < n; i++) {
        for (int k = i; k > 0 && map[k] < map[k - 1]; k--) {
            double swap = map[k];
            map[k] = map[k - 1];
            map[k - 1] = swap;
        }
    }
}

/* What 8 bits keep of x[0..n), which has one scale. */
static void keep_8(const double *map, double *x, int n) {
    double most = 0;
    for (int i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    for (int i = 0; i < n; i++) {
        int near = 0;
        for (int k = 1; k < 256; k++) {
            near = fabs(map[k] * most - x[i]) < fabs(map[near] * most - x[i]) ? k : near;
        }
        x[i] = map[near] * most;
    }
}

/* Adam in full digits, then its moments are rounded. */
static void adam8(const Rule *r, int t, double lr, const double *g, Weights *w) {
    double both[256], positive[256];
    dynamic_map(true, both);
    dynamic_map(false, positive);
    adam(r, t, lr, g, w);
    for (int i = 0; i < ELEMENTS; i += r->block) {
        int n = ELEMENTS - i < r->block ? ELEMENTS - i : r->block;
        keep_8(both, w->a + i, n);
        keep_8(positive, w->b + i, n);
    }
}

static void rmsprop(const Rule *r, int t, double lr, const double *g, Weights *w) {
    (void)t;
    for (int i = 0; i < ELEMENTS; i++) {
        double d = g[i] + r->decay * w->p[i];
        w->a[i] = r->beta1 * w->a[i] + (1 - r->beta1) * d * d;
        w->b[i] = r->beta1 * w->b[i] + (1 - r->beta1) * d;
        double root = sqrt(w->a[i] - (r->centered ? w->b[i] * w->b[i] : 0)) + r->eps;
        w->c[i] = r->momentum * w->c[i] + d / root;
        w->p[i] -= lr * w->c[i];
    }
}

static void adagrad(const Rule *r, int t, double lr, const double *g, Weights *w) {
    for (int i = 0; i < ELEMENTS; i++) {
        double d = g[i] + r->decay * w->p[i];
        w->a[i] = (t == 1 ? r->initial : w->a[i]) + d * d;
        w->p[i] -= lr / (1 + (t - 1) * r->lr_decay) * d / (sqrt(w->a[i]) + r->eps);
    }
}

static void lion(const Rule *r, int t, double lr, const double *g, Weights *w) {
    (void)t;
    for (int i = 0; i < ELEMENTS; i++) {
        double c = r->beta1 * w->a[i] + (1 - r->beta1) * g[i];
        w->p[i] = w->p[i] * (1 - lr * r->decay) - lr * ((c > 0) - (c < 0));
        w->a[i] = r->beta2 * w->a[i] + (1 - r->beta2) * g[i];
    }
}

/* The second moment of a block of a matrix, from means of rows (w->a) and columns (w->b). */
static void factors(double keep, int rows, int columns, const double *g, double eps, double *row,
                    double *column, double *v) {
    double mean = 0;
    for (int i = 0; i < rows; i++) {
        double square = 0;
        for (int j = 0; j < columns; j++) {
            square += g[i * columns + j] * g[i * columns + j];
        }
        row[i] += keep * (square / columns - row[i]);
        mean += row[i] / rows;
    }
    for (int j = 0; j < columns; j++) {
        double square = 0;
        for (int i = 0; i < rows; i++) {
            square += g[i * columns + j] * g[i * columns + j];
        }
        column[j] += keep * (square / rows - column[j]);
    }
    for (int i = 0; i < rows * columns; i++) {
        v[i] = row[i / columns] * column[i % columns] / fmax(mean, eps);
    }
}

static void adafactor(const Rule *r, int t, double lr, const double *g, Weights *w) {
    double v[ELEMENTS], u[ELEMENTS], keep = pow(t, r->beta2);
    double rate = fmax(r->eps2, norm(w->p) / sqrt(ELEMENTS)) * fmin(lr, 1 / sqrt(t));
    int blocks = r->blocks ? 2 : 1, size = ELEMENTS / blocks;
    for (int k = 0; k < blocks && r->rows > 0; k++) {
        int at = k * size;
        factors(keep, r->rows, size / r->rows, g + at, r->eps, w->a + at, w->b + at, v + at);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        if (r->rows == 0) {
            w->a[i] += keep * (g[i] * g[i] - w->a[i]);
            v[i] = w->a[i];
        }
        u[i] = g[i] / sqrt(fmax(v[i], r->eps * r->eps));
    }
    double over = fmax(1, norm(u) / sqrt(ELEMENTS) / r->limit);
    for (int i = 0; i < ELEMENTS; i++) {
        w->p[i] = w->p[i] * (1 - lr * r->decay) - rate / over * u[i];
    }
}

static void lars(const Rule *r, int t, double lr, const double *g, Weights *w) {
    (void)t;
    double np = norm(w->p), ng = norm(g);
    double trust = np > 0 && ng > 0 ? r->limit * np / (ng + r->decay * np + r->eps) : 1;
    for (int i = 0; i < ELEMENTS; i++) {
        w->a[i] = r->momentum * w->a[i] + lr * trust * (g[i] + r->decay * w->p[i]);
        w->p[i] -= w->a[i];
    }
}

static void lamb(const Rule *r, int t, double lr, const double *g, Weights *w) {
    double u[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        w->a[i] = r->beta1 * w->a[i] + (1 - r->beta1) * g[i];
        w->b[i] = r->beta2 * w->b[i] + (1 - r->beta2) * g[i] * g[i];
        double root = sqrt(w->b[i] / (1 - pow(r->beta2, t))) + r->eps;
        u[i] = w->a[i] / (1 - pow(r->beta1, t)) / root + r->decay * w->p[i];
    }
    double ratio = norm(w->p) > 0 && norm(u) > 0 ? norm(w->p) / norm(u) : 1;
    for (int i = 0; i < ELEMENTS; i++) {
        w->p[i] -= lr * ratio * u[i];
    }
}

/* x <- a x + (b S + c S S) x with S = x x^T, for n rows of m. */
static void newton_schulz(double *x, int n, int m) {
    double s[ELEMENTS * ELEMENTS], y[ELEMENTS];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            s[i * n + j] = 0;
            for (int k = 0; k < m; k++) {
                s[i * n + j] += x[i * m + k] * x[j * m + k];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < m; k++) {
            y[i * m + k] = 3.4445 * x[i * m + k];
            for (int j = 0; j < n; j++) {
                double ss = 0;
                for (int l = 0; l < n; l++) {
                    ss += s[i * n + l] * s[l * n + j];
                }
                y[i * m + k] += (-4.7750 * s[i * n + j] + 2.0315 * ss) * x[j * m + k];
            }
        }
    }
    for (int i = 0; i < n * m; i++) {
        x[i] = y[i];
    }
}

static void muon(const Rule *r, int t, double lr, const double *g, Weights *w) {
    double x[ELEMENTS], u[ELEMENTS];
    int rows = r->rows, columns = ELEMENTS / rows, least = rows > columns ? columns : rows;
    (void)t;
    for (int i = 0; i < ELEMENTS; i++) {
        w->a[i] = r->momentum * w->a[i] + g[i];
        u[i] = r->nesterov ? g[i] + r->momentum * w->a[i] : w->a[i];
    }
    double size = norm(u) + 1e-7;
    for (int i = 0; i < ELEMENTS; i++) { /* the smaller side first */
        int to = rows > columns ? i % columns * rows + i / columns : i;
        x[to] = u[i] / size;
    }
    for (int round = 0; round < (int)r->limit; round++) {
        newton_schulz(x, least, ELEMENTS / least);
    }
    for (int i = 0; i < ELEMENTS; i++) {
        int from = rows > columns ? i % columns * rows + i / columns : i;
        double scale = sqrt(fmax(1, (double)rows / columns));
        w->p[i] = w->p[i] * (1 - lr * r->decay) - lr * scale * x[from];
    }
}

#define ADAM .update = adam, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define FACTOR .update = adafactor, .beta2 = -0.8, .eps = 1e-7, .eps2 = 1e-3, .limit = 1

const Rule rules[] = {
    {"o_sgd", .update = sgd},
    {"o_sgd_decay", .update = sgd, .decay = 0.3},
    {"o_sgd_momentum", .update = sgd, .decay = 0.3, .momentum = 0.9, .dampening = 0.2},
    {"o_sgd_nesterov", .update = sgd, .momentum = 0.8, .nesterov = true},
    {"o_adam", .update = adam, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-3},
    {"o_adam_decay", .update = adam, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-8, .decay = 0.2},
    {"o_adam_amsgrad", .update = adam, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .amsgrad = true},
    {"o_adamw", ADAM, .decay = 1e-2, .decoupled = true},
    {"o_adamw_amsgrad", .update = adam, .beta1 = 0.7, .beta2 = 0.5, .eps = 1e-2, .decay = 0.4,
     .amsgrad = true, .decoupled = true},
    {"o_adamw8", .update = adam8, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.3,
     .decoupled = true, .block = 256},
    {"o_adamw8_blocks", "line.p", .update = adam8, .beta1 = 0.7, .beta2 = 0.5, .eps = 1e-2,
     .decay = 1e-2, .decoupled = true, .block = 4},
    {"o_adamw8_zero", "zero.p", .update = adam8, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8,
     .decay = 1e-2, .decoupled = true, .block = 2},
    {"o_rmsprop", .update = rmsprop, .beta1 = 0.99, .eps = 1e-8},
    {"o_rmsprop_momentum", .update = rmsprop, .beta1 = 0.9, .eps = 1e-8, .momentum = 0.8,
     .decay = 0.2},
    {"o_rmsprop_centered", .update = rmsprop, .beta1 = 0.7, .eps = 1e-3, .centered = true},
    {"o_adagrad", .update = adagrad, .eps = 1e-10},
    {"o_adagrad_decay", .update = adagrad, .eps = 1e-3, .lr_decay = 0.3, .decay = 0.2,
     .initial = 0.5},
    {"o_lion", .update = lion, .beta1 = 0.7, .beta2 = 0.8, .decay = 0.3},
    {"o_adafactor", FACTOR, .rows = 2},
    {"o_adafactor_decay", .update = adafactor, .beta2 = -0.5, .eps = 0.5, .eps2 = 1, .limit = 0.5,
     .decay = 0.3, .rows = 2},
    {"o_adafactor_vector", "line.p", FACTOR},
    {"o_adafactor_blocks", "blocks.p", FACTOR, .rows = 1, .blocks = true},
    {"o_lars", .update = lars, .momentum = 0.7, .decay = 0.3, .limit = 0.5, .eps = 1e-8},
    {"o_lamb", .update = lamb, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .decay = 0.3},
    {"o_muon", .update = muon, .rows = 2, .momentum = 0.95, .nesterov = true, .limit = 5,
     .decay = 0.1},
    {"o_muon_tall", "tall.p", .update = muon, .rows = 3, .momentum = 0.8, .limit = 3},
    /* From weights of 0, whose norm no rate may be a multiple of. */
    {"o_lars_zero", "zero.p", .update = lars, .momentum = 0.9, .limit = 0.5, .eps = 1e-8},
    {"o_lamb_zero", "zero.p", .update = lamb, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6},
    {"o_adafactor_zero", "zero.p", FACTOR},
    {"o_clip_norm", .update = sgd, .clip_norm = 0.7},
    {"o_clip_value", .update = sgd, .clip_value = 0.4},
};
const int nrules = sizeof rules / sizeof *rules;

/* --- schedules -------------------------------------------------------------------------------- */

static double ramp(double k, double warmup) {
    return k < warmup ? (k + 1) / warmup : 1;
}
static double part(double k, double warmup, double total) {
    return fmin(1, fmax(0, (k - warmup) / fmax(1, total - warmup)));
}
static double half_cosine(double x) {
    return (1 + cos(3.14159265358979323846 * x)) / 2;
}
static double s_constant(double k) {
    return ramp(k, 3);
}
static double s_linear_decay(double k) {
    return k < 3 ? ramp(k, 3) : 0.1 + 0.9 * (1 - part(k, 3, 12));
}
static double s_cosine(double k) {
    return k < 3 ? ramp(k, 3) : 0.1 + 0.9 * half_cosine(part(k, 3, 12));
}
static double s_cosine_total(double k) {
    return half_cosine(part(k, 0, 7));
}
static double s_cosine_hf(double k) {
    return k < 3 ? k / 3 : half_cosine(part(k, 3, 12));
}
static double s_exponential(double k) {
    return pow(0.7, floor(k / 3));
}
static double s_polynomial(double k) {
    return 0.2 + 0.8 * pow(1 - part(k, 0, 10), 2);
}
static double s_inverse_sqrt(double k) {
    return k + 1 < 4 ? (k + 1) / 4 : sqrt(4 / (k + 1));
}
static double s_steps_at(double k) {
    return k < 3 ? 1 : k < 4 ? 0.5 : k < 9 ? 0.25 : 0.125;
}
static double s_linear_factor(double k) {
    return k < 6 ? 1.0 / 3 + (0.5 - 1.0 / 3) * k / 6 : 0.5;
}
static double s_cosine_restarts(double k) {
    return 0.1 + 0.9 * half_cosine(fmod(k, 4) / 4);
}
/* Periods 0..2, 2..6 and 6..14. */
static double s_cosine_grows(double k) {
    return half_cosine(k < 2 ? k / 2 : k < 6 ? (k - 2) / 4 : (k - 6) / 8);
}
static double cycle(double k, double total, double up, double low, double lowest) {
    double turn = up * total - 1;
    if (k <= turn) {
        return 1 + (low - 1) * half_cosine(k / turn);
    }
    return lowest + (1 - lowest) * half_cosine(fmin(1, (k - turn) / (total - 1 - turn)));
}
static double s_one_cycle(double k) {
    return cycle(k, 14, 0.3, 1.0 / 25, 1.0 / 25e4);
}
static double s_one_cycle_total(double k) {
    return cycle(k, 10, 0.5, 1.0 / 4, 1.0 / 40);
}
/* A rise without length is the peak, a fall without length the end. */
static double s_one_cycle_falls(double k) {
    return 1e-5 + (1 - 1e-5) * half_cosine(fmin(1, k / 9));
}
static double s_one_cycle_rises(double k) {
    return k > 9 ? 1e-5 : 1 + (0.1 - 1) * half_cosine(k / 9);
}
static double s_inverse_sqrt_at_once(double k) {
    return 1 / sqrt(k + 1);
}
static double s_wsd(double k) {
    return k < 3 ? ramp(k, 3) : k < 8 ? 1 : 1 - 0.9 * fmin(1, (k - 8) / 4);
}

const ScheduleFormula schedules[] = {
    {"s_constant", s_constant},
    {"s_linear_decay", s_linear_decay},
    {"s_cosine", s_cosine},
    {"s_cosine_total", s_cosine_total},
    {"s_cosine_hf", s_cosine_hf},
    {"s_exponential", s_exponential},
    {"s_polynomial", s_polynomial},
    {"s_inverse_sqrt", s_inverse_sqrt},
    {"s_steps_at", s_steps_at},
    {"s_linear_factor", s_linear_factor},
    {"s_cosine_restarts", s_cosine_restarts},
    {"s_cosine_grows", s_cosine_grows},
    {"s_one_cycle", s_one_cycle},
    {"s_one_cycle_total", s_one_cycle_total},
    {"s_wsd", s_wsd},
    {"s_one_cycle_falls", s_one_cycle_falls},
    {"s_one_cycle_rises", s_one_cycle_rises},
    {"s_inverse_sqrt_at_once", s_inverse_sqrt_at_once},
};
const int nschedules = sizeof schedules / sizeof *schedules;
