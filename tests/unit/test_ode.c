/* Differential equations: the order of every method, its steps beside those of a solver in C,
 * derivatives through all steps; steps that go by their error beside those of Diffrax. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text_eval.h"

/* Tableaux as they are published: rows below the diagonal, then weights. */
typedef struct {
    const char *name;
    int stages, order;
    double number[21];
} Method;

static const Method methods[] = {
    {"euler", 1, 1, {1}},
    {"midpoint", 2, 2, {0.5, 0, 1}},
    {"heun", 2, 2, {1, 0.5, 0.5}},
    {"bosh3", 3, 3, {0.5, 0, 0.75, 2.0 / 9, 1.0 / 3, 4.0 / 9}},
    {"rk4", 4, 4, {0.5, 0, 0.5, 0, 0, 1, 1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}},
    {"dopri5",
     6,
     5,
     {0.2,
      0.075,
      0.225,
      44.0 / 45,
      -56.0 / 15,
      32.0 / 9,
      19372.0 / 6561,
      -25360.0 / 2187,
      64448.0 / 6561,
      -212.0 / 729,
      9017.0 / 3168,
      -355.0 / 33,
      46732.0 / 5247,
      49.0 / 176,
      -5103.0 / 18656,
      35.0 / 384,
      0,
      500.0 / 1113,
      125.0 / 192,
      -2187.0 / 6784,
      11.0 / 84}},
    {"tsit5",
     6,
     5,
     {0.161,
      -0.008480655492356988544,
      0.335480655492356988544,
      2.897153057105493432,
      -6.359448489975074843,
      4.362295432869581411,
      5.325864828439256604,
      -11.74888356406282787,
      7.495539342889836208,
      -0.09249506636175524925,
      5.861455442946420028,
      -12.92096931784710929,
      8.159367898576158643,
      -0.07158497328140099722,
      -0.02826905039406838290,
      0.09646076681806522951,
      0.01,
      0.4798896504144995747,
      1.379008574103741893,
      -3.290069515436080679,
      2.324710524099773982}},
};
enum { METHODS = sizeof methods / sizeof *methods, N = 3 };

/* x' = sin(t) A x, s' = x . x + t */
static void slope(double t, const double *a, const double *y, double *out) {
    out[N] = t;
    for (int i = 0; i < N; i++) {
        out[i] = 0;
        for (int j = 0; j < N; j++) {
            out[i] += sin(t) * a[i * N + j] * y[j];
        }
        out[N] += y[i] * y[i];
    }
}

static void solve(const Method *m, int steps, double from, double to, const double *a, double *y) {
    double dt = (to - from) / steps;
    for (int n = 0; n < steps; n++) {
        double k[6][N + 1] = {{0}};
        const double *row = m->number;
        for (int s = 0; s <= m->stages; s++) {
            double at[N + 1], place = 0;
            int weights = s < m->stages ? s : m->stages;
            memcpy(at, y, sizeof at);
            for (int j = 0; j < weights; j++) {
                place += row[j];
                for (int i = 0; i <= N; i++) {
                    at[i] += dt * row[j] * k[j][i];
                }
            }
            row += weights;
            if (s < m->stages) {
                slope(from + dt * n + dt * place, a, at, k[s]);
            } else {
                memcpy(y, at, sizeof at);
            }
        }
    }
}

static const char *model(char *text, size_t size, const char *method, int steps,
                         const char *checkpoint) {
    snprintf(text, size,
             "use nn;\n"
             "op flow(x: [3], a: [3, 3], from_: f32, to_: f32) -> (x: [3], s: f32) {\n"
             "    %sode t from from_ to to_ using %s(steps = %d) carry x1 = x, s = 0.0 {\n"
             "        g[i] = sin(t) * sum[j] a[i, j] * x1[j];\n"
             "        x1' = g;\n"
             "        s' = sum(x1 * x1) + t;\n"
             "    }\n"
             "    return x = x1, s = s;\n"
             "}\n"
             "entry e(x: [3], a: [3, 3], b: f32, c: f32) {\n"
             "    r = flow(x, a, b, c);\n"
             "    l = sum(sin(r.x)) + r.s;\n"
             "    return x = r.x, s = r.s, l = l, dx = grad(l, x), da = grad(l, a),\n"
             "           db = grad(l, b), dc = grad(l, c);\n"
             "}\n",
             checkpoint, method, steps);
    return text;
}

static void numbers(double *x, double *a) {
    for (int i = 0; i < N * N; i++) {
        a[i] = sin(12.9898 * (i + 1));
        x[i % N] = cos(4.1414 * (i + 3));
    }
}

/* The same steps as in C, forward and backward in time, each carry by its own slopes. */
static void test_steps(void **state) {
    (void)state;
    double x[N], a[N * N], worst = 0;
    static const double times[2][2] = {{0.25, 1.5}, {2, 0.5}};
    numbers(x, a);
    for (int i = 0; i < METHODS; i++) {
        for (int k = 0; k < 4; k++) {
            char text[1200];
            int steps = k < 2 ? 1 : 7;
            const double *time = times[k % 2], *in[4] = {x, a, &time[0], &time[1]};
            double y[N + 1] = {x[0], x[1], x[2], 0};
            TextEval t;
            text_open(&t, model(text, sizeof text, methods[i].name, steps, ""));
            solve(&methods[i], steps, time[0], time[1], a, y);
            Value got = text_run(&t, "e", "x", in);
            for (int n = 0; n < N; n++) {
                worst = fmax(worst, fabs(value_get(got, n) - y[n]));
            }
            worst = fmax(worst, fabs(value_get(text_run(&t, "e", "s", in), 0) - y[N]));
            text_close(&t);
        }
    }
    printf("worst difference to the solver in C %.1e\n", worst);
    assert_true(worst < 1e-12);
}

/* Halving the steps makes the error smaller by 2 to the power of the order. */
static void test_orders(void **state) {
    (void)state;
    for (int i = 0; i < METHODS; i++) {
        double error[2];
        for (int k = 0; k < 2; k++) {
            char text[400];
            snprintf(text, sizeof text,
                     "use nn;\n"
                     "entry e(y: f32) {\n"
                     "    ode t from 0.0 to 1.0 using %s(steps = %d) carry x = y {\n"
                     "        x' = 3 * x * (1 - x);\n"
                     "    }\n"
                     "    return x = x;\n"
                     "}\n",
                     methods[i].name, k ? 80 : 40);
            TextEval t;
            text_open(&t, text);
            error[k] = fabs(text_number(&t, "e", "x", 0.1) - 1 / (1 + 9 * exp(-3)));
            text_close(&t);
        }
        double order = log2(error[0] / error[1]);
        printf("%s: errors %.2e and %.2e, order %.2f\n", methods[i].name, error[0], error[1],
               order);
        assert_true(fabs(order - methods[i].order) < 0.3);
    }
}

/* Derivatives by the start, by what the slopes read and by both times, against differences; the
 * same bits where only the carries of each step are kept. */
static void test_derivatives(void **state) {
    (void)state;
    for (int i = 0; i < METHODS; i++) {
        char text[1200];
        double x[N], a[N * N], times[2] = {0.25, 1.5}, worst = 0;
        const double *in[4] = {x, a, &times[0], &times[1]};
        static const char *const names[4] = {"dx", "da", "db", "dc"};
        double *const point[4] = {x, a, &times[0], &times[1]};
        TextEval t, kept;
        numbers(x, a);
        text_open(&t, model(text, sizeof text, methods[i].name, 4, ""));
        text_open(&kept, model(text, sizeof text, methods[i].name, 4, "@checkpoint "));
        for (int p = 0; p < 4; p++) {
            Value d = text_run(&t, "e", names[p], in), again = text_run(&kept, "e", names[p], in);
            for (int n = 0; n < (p == 0 ? N : p == 1 ? N * N : 1); n++) {
                double old = point[p][n], step = 1e-5, near[2];
                for (int k = 0; k < 2; k++) {
                    point[p][n] = old + (k ? step : -step);
                    near[k] = value_get(text_run(&t, "e", "l", in), 0);
                }
                point[p][n] = old;
                worst = fmax(worst, fabs((near[1] - near[0]) / (2 * step) - value_get(d, n)));
                assert_true(value_get(d, n) == value_get(again, n));
            }
        }
        printf("%s: worst difference %.1e\n", methods[i].name, worst);
        assert_true(worst < 1e-6);
        text_close(&t);
        text_close(&kept);
    }
}

/* What Diffrax 0.7.2 gives in double (JAX 0.10.2): diffeqsolve(ODETerm(f), Method(), a, b, +-0.01,
 * y0, stepsize_controller = PIDController(rtol, atol)); with `pid` also pcoeff = 0.3, icoeff = 0.4,
 * dcoeff = 0.1. */
typedef struct {
    const char *problem, *method;
    int pid, accepted, rejected;
    double end[2];
} Known;

static const Known known[] = {
    {"logistic", "heun", 0, 69, 4, {0.99981844219701}},
    {"logistic", "heun", 1, 83, 1, {0.999885662084869}},
    {"logistic", "bosh3", 0, 24, 5, {1.00000615255882}},
    {"logistic", "bosh3", 1, 29, 1, {0.99997656044584}},
    {"logistic", "dopri5", 0, 23, 2, {0.999944487425817}},
    {"logistic", "dopri5", 1, 27, 1, {0.99994467017931}},
    {"logistic", "tsit5", 0, 23, 2, {0.999944607272969}},
    {"logistic", "tsit5", 1, 27, 1, {0.999944687137192}},
    {"pendulum", "heun", 0, 317, 59, {-38.2023765728753, 11.3742976365043}},
    {"pendulum", "heun", 1, 341, 41, {-38.1841455595624, 11.3794820191481}},
    {"pendulum", "bosh3", 0, 126, 36, {-38.1221362076152, 11.3768789167696}},
    {"pendulum", "bosh3", 1, 138, 22, {-38.1329552202433, 11.3772028857669}},
    {"pendulum", "dopri5", 0, 70, 25, {-38.164491519558, 11.3799700159426}},
    {"pendulum", "dopri5", 1, 79, 11, {-38.1644997961402, 11.3799680112319}},
    {"pendulum", "tsit5", 0, 75, 23, {-38.1645163118507, 11.3799724099257}},
    {"pendulum", "tsit5", 1, 83, 12, {-38.1645203762169, 11.3799686580199}},
    {"vanderpol", "heun", 0, 733, 137, {1.95646570561499, -0.137192944940669}},
    {"vanderpol", "heun", 1, 802, 120, {1.95650837035187, -0.137198008095165}},
    {"vanderpol", "bosh3", 0, 226, 73, {1.95659508871114, -0.137214718265492}},
    {"vanderpol", "bosh3", 1, 255, 56, {1.95660428832612, -0.137211687451353}},
    {"vanderpol", "dopri5", 0, 181, 32, {1.95668202375485, -0.137188197605}},
    {"vanderpol", "dopri5", 1, 200, 24, {1.95668198192473, -0.137188223259906}},
    {"vanderpol", "tsit5", 0, 174, 36, {1.95668218425545, -0.137188187801393}},
    {"vanderpol", "tsit5", 1, 197, 25, {1.95668220585446, -0.137188200011615}},
};

static const char *adaptive(char *text, size_t size, const Known *k, int max) {
    bool heun = strcmp(k->method, "heun") == 0, bosh = strcmp(k->method, "bosh3") == 0;
    const char *carry, *body, *times;
    if (strcmp(k->problem, "logistic") == 0) {
        times = "0.0 to 4.0", carry = "x = y, v = 0.1", body = "x' = 3 * x * (1 - x);";
    } else if (strcmp(k->problem, "pendulum") == 0) {
        times = "6.0 to 0.0", carry = "x = y, v = 0.0";
        body = "x' = v; v' = -9 * sin(x) - 0.2 * v + sin(t);";
    } else {
        times = "0.0 to 12.0", carry = "x = y, v = 0.0";
        body = "x' = v; v' = 5 * (1 - x^2) * v - x;";
    }
    bool alone = strcmp(k->problem, "logistic") == 0;
    snprintf(text, size,
             "use nn;\n"
             "entry e(y: f32) {\n"
             "    ode t from %s using %s(rtol = %s, atol = %s, max = %d, first = 0.01%s)\n"
             "            carry %s {\n"
             "        %s\n"
             "    }\n"
             "    return x = x, v = %s;\n"
             "}\n",
             times, k->method, heun ? "1e-3" : bosh ? "1e-4" : "1e-6",
             heun ? "1e-6" : bosh ? "1e-7" : "1e-8", max,
             k->pid ? ", pcoeff = 0.3, icoeff = 0.4, dcoeff = 0.1" : "",
             alone ? "x = y" : carry, body, alone ? "x" : "v");
    return text;
}

/* As many attempts as Diffrax makes, or one more or less, are enough and fewer are not; where they
 * are as many, the values are the same. */
static void test_chosen_steps(void **state) {
    (void)state;
    double worst = 0;
    int same = 0, count = sizeof known / sizeof *known;
    for (int i = 0; i < count; i++) {
        const Known *k = &known[i];
        bool alone = strcmp(k->problem, "logistic") == 0, over[4];
        double start = alone ? 0.1 : 2, x[4], v[4];
        const double *in[1] = {&start};
        for (int n = 0; n < 4; n++) {
            char text[1000];
            TextEval t;
            text_open(&t, adaptive(text, sizeof text, k, k->accepted + k->rejected - 2 + n));
            over[n] = value_get(text_run(&t, "e", NULL, in), 0) != 0;
            x[n] = value_get(text_run(&t, "e", "x", in), 0);
            v[n] = value_get(text_run(&t, "e", "v", in), 0);
            text_close(&t);
        }
        if (!over[0] || over[3]) {
            fail_msg("%s by %s (pid %d): not about %d attempts", k->problem, k->method, k->pid,
                     k->accepted + k->rejected);
        }
        if (over[1] && !over[2]) {
            same++;
            worst = fmax(worst, fabs(x[2] - k->end[0]));
            worst = fmax(worst, alone ? 0 : fabs(v[2] - k->end[1]));
        }
    }
    printf("%d of %d with as many attempts, worst difference to Diffrax %.1e\n", same, count,
           worst);
    assert_true(same >= count - 2 && worst < 1e-8);
}

/* Where one attempt goes to the end, derivatives are those of one step; with several, of what they
 * approach. */
static void test_chosen_derivatives(void **state) {
    (void)state;
    static const char *const names[4] = {"dx", "da", "db", "dc"};
    static const char *const estimated[4] = {"heun", "bosh3", "dopri5", "tsit5"};
    double x[N], a[N * N], times[2] = {0.25, 1.5}, one = 0, many = 0;
    const double *in[4] = {x, a, &times[0], &times[1]};
    double *const point[4] = {x, a, &times[0], &times[1]};
    numbers(x, a);
    for (int i = 0; i < 4; i++) {
        char text[1200], chosen[1200], steps[20];
        TextEval t[2];
        text_open(&t[0], model(text, sizeof text, estimated[i], 1, ""));
        snprintf(steps, sizeof steps, "steps = 1");
        char *at = strstr(text, steps);
        snprintf(chosen, sizeof chosen,
                 "%.*srtol = 1e9, atol = 1e9, max = 1, first = 9.0%s", (int)(at - text), text,
                 at + strlen(steps));
        text_open(&t[1], chosen);
        for (int p = 0; p < 4; p++) {
            Value d[2] = {text_run(&t[0], "e", names[p], in), text_run(&t[1], "e", names[p], in)};
            for (int n = 0; n < (p == 0 ? N : p == 1 ? N * N : 1); n++) {
                one = fmax(one, fabs(value_get(d[0], n) - value_get(d[1], n)));
            }
        }
        text_close(&t[0]);
        text_close(&t[1]);
        if (i < 2) {
            continue;
        }
        snprintf(chosen, sizeof chosen, "%.*srtol = 1e-12, atol = 1e-13, max = 4000%s",
                 (int)(at - text), text, at + strlen(steps));
        text_open(&t[0], chosen);
        for (int p = 0; p < 4; p++) {
            Value d = text_run(&t[0], "e", names[p], in);
            for (int n = 0; n < (p == 0 ? N : p == 1 ? N * N : 1); n++) {
                double old = point[p][n], step = 1e-4, near[2];
                for (int k = 0; k < 2; k++) {
                    point[p][n] = old + (k ? step : -step);
                    near[k] = value_get(text_run(&t[0], "e", "l", in), 0);
                }
                point[p][n] = old;
                many = fmax(many, fabs((near[1] - near[0]) / (2 * step) - value_get(d, n)));
            }
        }
        text_close(&t[0]);
    }
    printf("one step: worst difference %.1e; many: %.1e\n", one, many);
    assert_true(one < 1e-12 && many < 1e-6);
}

/* An attempt that overflows is made again, and derivatives do not see it; two orders of them. */
static void test_overflow(void **state) {
    (void)state;
    TextEval t;
    text_open(&t, "use nn;\n"
                  "entry e(y: f32) {\n"
                  "    ode t from 0.0 to 0.05 using tsit5(rtol = 1e-10, atol = 1e-11, max = 300,\n"
                  "                                      first = 1000.0) carry x = y {\n"
                  "        x' = exp(x);\n"
                  "    }\n"
                  "    g = grad(x, y);\n"
                  "    return x = x, g = g, h = grad(g, y);\n"
                  "}\n"); /* x = -log(exp(-y) - t) */
    double y = 1, q = exp(-y) - 0.05, g = exp(-y) / q;
    double h = -g + g * g;
    assert_true(fabs(text_number(&t, "e", "x", y) + log(q)) < 1e-8);
    assert_true(fabs(text_number(&t, "e", "g", y) - g) < 1e-8);
    assert_true(fabs(text_number(&t, "e", "h", y) - h) < 1e-7);
    text_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_chosen_steps),
        cmocka_unit_test(test_chosen_derivatives),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
