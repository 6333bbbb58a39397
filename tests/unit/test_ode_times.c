/* Differential equations that are looked at on the way: values at given times beside those of one
 * `ode` behind the other, ends by a condition, the numbers of steps, and derivatives of all that
 * against differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text_eval.h"

enum { TIMES = 4, MORE = 1500 };

/* A pendulum from `a` to `b` by way of the times ts, and the same in pieces. */
static const char *pendulum(char *text, size_t size, const char *using, const char *before) {
    snprintf(text, size,
             "use nn;\n"
             "op swing(y: f32, v: f32, k: f32, a: f32, b: f32) -> (y: f32, v: f32) {\n"
             "    %sode t from a to b using %s carry x = y, w = v {\n"
             "        x' = w; w' = -k * sin(x) - 0.2 * w + cos(t);\n"
             "    }\n"
             "    return y = x, v = w;\n"
             "}\n"
             "op path(y: f32, k: f32, ts: [n], a: f32, b: f32) -> (ys: [n], y: f32, e: [n]) {\n"
             "    %sode t from a to b using %s at ts carry x = y, w = 0.1 {\n"
             "        x' = w; w' = -k * sin(x) - 0.2 * w + cos(t);\n"
             "        emit ys = x;\n"
             "        emit es = w^2 + 0 * t;\n"
             "    }\n"
             "    return ys = ys, y = x, e = es;\n"
             "}\n"
             "entry e(y: f32, k: f32, ts: [4], a: f32, b: f32) {\n"
             "    r = path(y, k, ts, a, b);\n"
             "    p0 = swing(y, 0.1, k, a, ts[0]);\n"
             "    p1 = swing(p0.y, p0.v, k, ts[0], ts[1]);\n"
             "    p2 = swing(p1.y, p1.v, k, ts[1], ts[2]);\n"
             "    p3 = swing(p2.y, p2.v, k, ts[2], ts[3]);\n"
             "    p4 = swing(p3.y, p3.v, k, ts[3], b);\n"
             "    apart = abs(r.ys[0] - p0.y) + abs(r.ys[1] - p1.y) + abs(r.ys[2] - p2.y) +\n"
             "            abs(r.ys[3] - p3.y) + abs(r.y - p4.y) + abs(r.e[3] - p3.v^2);\n"
             "    l = sum(sin(r.ys)) + r.y * sum(r.e);\n"
             "    return apart = apart, l = l, dy = grad(l, y), dk = grad(l, k),\n"
             "           dts = grad(l, ts), da = grad(l, a), db = grad(l, b);\n"
             "}\n",
             before, using, before, using);
    return text;
}

static const char *const names[5] = {"dy", "dk", "dts", "da", "db"};

/* In order, out of order and twice the same, backwards, at both ends. */
static const double times[4][TIMES + 2] = {{0, 0.3, 0.9, 1.1, 2, 2.5},
                                           {0.2, 1.5, 0.4, 0.4, 1.9, 1},
                                           {3, 2.9, 2, 0.5, 0.1, 0},
                                           {0, 0, 1, 2, 2, 2}};

static double worst_derivative(TextEval *t, double *const *point) {
    double worst = 0;
    for (int p = 0; p < 5; p++) {
        Value d = text_run(t, "e", names[p], (const double *const *)point);
        for (int n = 0; n < (p == 2 ? TIMES : 1); n++) {
            double old = point[p][n], near[2], step = 1e-5;
            for (int k = 0; k < 2; k++) {
                point[p][n] = old + (k ? step : -step);
                near[k] = value_get(text_run(t, "e", "l", (const double *const *)point), 0);
            }
            point[p][n] = old;
            double size = fmax(1, fabs(value_get(d, n)));
            worst = fmax(worst, fabs((near[1] - near[0]) / (2 * step) - value_get(d, n)) / size);
        }
    }
    return worst;
}

static void check_times(const char *using, const char *before, double apart, double derivative) {
    char text[MORE + 600];
    TextEval t;
    text_open(&t, pendulum(text, sizeof text, using, before));
    double far = 0, worst = 0;
    for (int i = 0; i < 4; i++) {
        double y = 1.2, k = 4, ts[TIMES], a = times[i][0], b = times[i][TIMES + 1];
        double *point[5] = {&y, &k, ts, &a, &b};
        memcpy(ts, times[i] + 1, sizeof ts);
        Value d = text_run(&t, "e", "apart", (const double *const *)point);
        far = fmax(far, value_get(d, 0));
        worst = fmax(worst, worst_derivative(&t, point));
        if (strstr(using, "max")) {
            d = text_run(&t, "e", NULL, (const double *const *)point);
            assert_true(value_get(d, 0) == 0);
        }
    }
    printf("%s%s: %.1e from those in pieces, derivatives %.1e\n", before, using, far, worst);
    assert_true(far <= apart && worst < derivative);
    text_close(&t);
}

/* Steps end at the times, so equal ones are those of the pieces. */
static void test_times(void **state) {
    (void)state;
    check_times("rk4(steps = 6)", "", 1e-14, 1e-7);
    check_times("tsit5(steps = 3)", "@checkpoint ", 1e-14, 1e-7);
    check_times("tsit5(rtol = 1e-11, atol = 1e-12, max = 400)", "", 1e-8, 1e-6);
    check_times("bosh3(rtol = 1e-8, atol = 1e-9, max = 900)", "@checkpoint ", 1e-5, 1e-4);
}

/* A weight that falls from `h` until it is below 0, y(t) = h - 4.905 t^2; a value that decays. */
static const char *fall(char *text, size_t size, const char *using, const char *at) {
    snprintf(text, size,
             "use nn;\n"
             "entry e(h: f32) {\n"
             "    ode t from 0.0 to 10.0 using run: %s %s until y < 0.0\n"
             "            carry y = h, v = 0.0, z = h {\n"
             "        y' = v; v' = -9.81; z' = -0.5 * z;\n"
             "%s"
             "    }\n"
             "    return y = y, z = z, d = grad(z, h), time = run.time, taken = f32(run.taken),\n"
             "           rejected = f32(run.rejected)%s;\n"
             "}\n",
             using, at, at[0] ? "        emit ys = y;\n" : "",
             at[0] ? ", first = ys[0], second = ys[1], third = ys[2]" : "");
    return text;
}

static void test_until(void **state) {
    (void)state;
    char text[MORE];
    TextEval t;
    /* Equal steps end with the first one whose end is below: 20 = 4.905 t^2 at 2.0193. */
    text_open(&t, fall(text, sizeof text, "rk4(steps = 100)", ""));
    assert_true(fabs(text_number(&t, "e", "time", 20) - 2.1) < 1e-12);
    assert_true(text_number(&t, "e", "taken", 20) == 21);
    assert_true(fabs(text_number(&t, "e", "y", 20) - (20 - 4.905 * 2.1 * 2.1)) < 1e-11);
    double z = text_number(&t, "e", "z", 20);
    assert_true(fabs(text_number(&t, "e", "d", 20) - z / 20) < 1e-13);
    /* It holds at once, or never. */
    assert_true(text_number(&t, "e", "time", -1) == 0 && text_number(&t, "e", "taken", -1) == 0);
    assert_true(text_number(&t, "e", "y", -1) == -1 && text_number(&t, "e", "d", -1) == 1);
    assert_true(text_number(&t, "e", "time", 900) == 10);
    text_close(&t);
    /* Steps by their error find the time, to 1e-13 of the whole. */
    text_open(&t, fall(text, sizeof text, "tsit5(rtol = 1e-8, atol = 1e-9, max = 300)", ""));
    double late = sqrt(20 / 4.905), found = text_number(&t, "e", "time", 20);
    printf("found at %.14f, %.1e late, %g steps taken, %g not\n", found, found - late,
           text_number(&t, "e", "taken", 20), text_number(&t, "e", "rejected", 20));
    assert_true(fabs(found - late) < 1e-11);
    z = text_number(&t, "e", "z", 20);
    assert_true(fabs(z - 20 * exp(-0.5 * late)) < 1e-6);
    assert_true(fabs(text_number(&t, "e", "d", 20) - z / 20) < 1e-6);
    assert_true(text_number(&t, "e", "time", -1) == 0 && text_number(&t, "e", "time", 900) == 10);
    text_close(&t);
    /* Times behind the end have zeros. */
    static const char *const kind[2] = {"rk4(steps = 50)",
                                        "tsit5(rtol = 1e-8, atol = 1e-9, max = 300)"};
    for (int i = 0; i < 2; i++) {
        text_open(&t, fall(text, sizeof text, kind[i], "at [1.0, 2.0, 3.0]"));
        assert_true(fabs(text_number(&t, "e", "first", 20) - (20 - 4.905)) < 1e-7);
        assert_true(fabs(text_number(&t, "e", "second", 20) - (20 - 4 * 4.905)) < 1e-7);
        assert_true(text_number(&t, "e", "third", 20) == 0);
        assert_true(fabs(text_number(&t, "e", "time", 20) - late) < (i ? 1e-11 : 0.021));
        text_close(&t);
    }
}

/* The whole way goes to times outside of the ends, which are equal here: where it is over is found
 * all the same, forward and back, and so is that it never is. */
static void test_equal_ends(void **state) {
    (void)state;
    static const char *const at[3] = {"", "at [2.0, 3.0]", "at [0.5, -2.0]"};
    for (int i = 0; i < 3; i++) {
        TextEval t;
        char text[1000];
        snprintf(text, sizeof text,
                 "use nn;\n"
                 "entry e(h: f32) {\n"
                 "    a = stop_gradient(0 * h) + 1;\n"
                 "    ode t from a to a using run: tsit5(rtol = 1e-8, atol = 1e-9, max = 300) %s\n"
                 "        until y < 0.0 carry y = h, z = h {\n"
                 "        y' = -9.81 * (t - 1); z' = -z; %s\n"
                 "    }\n"
                 "    return time = run.time, z = z, d = grad(z, h)%s;\n"
                 "}\n",
                 at[i], i ? "emit ys = y;" : "", i ? ", first = ys[0], last = ys[1]" : "");
        text_open(&t, text);
        const double h = 4.905 * 2.25, end = i == 0 ? 1 : i == 1 ? 2.5 : -0.5;
        const double path = i == 0 ? 0 : i == 1 ? 1.5 : -1.5;
        assert_true(text_run(&t, "e", NULL, (const double *const[]){&h}).at[0].i == 0);
        assert_true(fabs(text_number(&t, "e", "time", h) - end) < 2e-11);
        assert_true(fabs(text_number(&t, "e", "z", h) - h * exp(-path)) < 1e-6);
        assert_true(fabs(text_number(&t, "e", "d", h) - exp(-path)) < 1e-6);
        assert_true(text_number(&t, "e", "time", 900) == 1);
        assert_true(text_number(&t, "e", "time", -1) == 1);
        if (i) {
            const double first = i == 1 ? 1 : 0.25;
            assert_true(fabs(text_number(&t, "e", "first", h) - (h - 4.905 * first)) < 1e-7);
            assert_true(text_number(&t, "e", "last", h) == 0);
            assert_true(fabs(text_number(&t, "e", "z", 900) - 900) < 1e-4);
        }
        text_close(&t);
    }
}

/* What has no error is within any tolerance, also where that is 0; a first size of 0 is none. */
static void test_no_tolerance(void **state) {
    (void)state;
    static const char *const using[3] = {"rtol = 0, atol = 0, max = 100",
                                         "rtol = 1e-6, atol = 0, max = 100",
                                         "rtol = 1e-6, atol = 1e-6, max = 100, first = 0"};
    for (int i = 0; i < 3; i++) {
        TextEval t;
        char text[600];
        snprintf(text, sizeof text,
                 "use nn;\n"
                 "entry e(y: f32) {\n"
                 "    ode t from 0.0 to 2.0 using tsit5(%s) carry x = y, z = 0 * y {\n"
                 "        x' = %s; z' = 0 * x;\n"
                 "    }\n"
                 "    return x = x, d = grad(x, y);\n"
                 "}\n",
                 using[i], i ? "-x" : "0 * x");
        text_open(&t, text);
        const double y = 1.5, grows = i ? exp(-2) : 1;
        assert_true(text_run(&t, "e", NULL, (const double *const[]){&y}).at[0].i == 0);
        assert_true(fabs(text_number(&t, "e", "x", y) - y * grows) < 1e-5);
        assert_true(fabs(text_number(&t, "e", "d", y) - grows) < 1e-5);
        text_close(&t);
    }
}

/* As many steps as Diffrax 0.7.2 makes of the same problem, see test_ode.c. */
static void test_counts(void **state) {
    (void)state;
    TextEval t;
    text_open(&t, "use nn;\n"
                  "entry e(y: f32) {\n"
                  "    ode t from 6.0 to 0.0\n"
                  "        using run: tsit5(rtol = 1e-6, atol = 1e-8, max = 200, first = 0.01)\n"
                  "        carry x = y, v = 0.0 {\n"
                  "        x' = v; v' = -9 * sin(x) - 0.2 * v + sin(t);\n"
                  "    }\n"
                  "    ode t from 0.0 to 1.0 using fixed: rk4(steps = 7) carry z = y { z' = -z; }\n"
                  "    return taken = f32(run.taken), rejected = f32(run.rejected),\n"
                  "           time = run.time, steps = f32(fixed.taken), end = fixed.time;\n"
                  "}\n");
    assert_true(text_number(&t, "e", "taken", 2) == 75);
    assert_true(text_number(&t, "e", "rejected", 2) == 23);
    assert_true(text_number(&t, "e", "time", 2) == 0);
    assert_true(text_number(&t, "e", "steps", 2) == 7 && text_number(&t, "e", "end", 2) == 1);
    text_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_until),
        cmocka_unit_test(test_equal_ends),
        cmocka_unit_test(test_no_tolerance),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
