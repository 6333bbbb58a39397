/* slices: every way to pick from a value in a loop, and what it gives by plain arrays.
 *
 * `slices model` prints a model file, `slices values` what its entries give, line by line. An entry
 * stands for what is picked from: a value from outside, a carry, a value made in the loop, one of
 * the loop around it, a state, a parameter stacked by the loop; in it each pick (an index of the
 * loop, a constant, data, beyond the border) meets each form (slices, index notation, folds).
 * Derivatives are central differences, which have no error of their own: everything is quadratic.
 * Shares nothing with the compiler. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 3, COLS = 4, TRIPS = 3, OUTER = 2 };
enum { PICKS = 9, FORMS = 12, LONGEST = 4 };

typedef double Tensor[ROWS][COLS];
typedef enum { OUTSIDE, CARRY, MADE, STATE, STACKED, AROUND } What;

typedef struct {
    const char *name, *object, *loop, *index;
    What what;
    bool nested, by_outer;
} Case;

static const Case cases[] = {
    {"outside", "x", "scan", "t", OUTSIDE, false, false},
    {"carry", "c", "scan", "t", CARRY, false, false},
    {"made", "z", "scan", "t", MADE, false, false},
    {"carry_repeat", "c", "repeat", "t", CARRY, false, false},
    {"made_repeat", "z", "repeat", "t", MADE, false, false},
    {"own_state", "s", "scan", "t", STATE, false, false},
    {"stacked", "w", "repeat", "t", STACKED, false, false},
    {"outside_nested", "x", "scan", "t", OUTSIDE, true, false},
    {"around", "y", "scan", "t", AROUND, true, false},
    {"made_nested", "z", "scan", "t", MADE, true, false},
    {"outside_outer", "x", "scan", "o", OUTSIDE, true, true},
    {"around_outer", "y", "scan", "o", AROUND, true, true},
    {"made_outer", "z", "scan", "o", MADE, true, true},
};
enum { CASES = sizeof cases / sizeof *cases };

/* --- picks ----------------------------------------------------------------------------------- */

static const int chosen[TRIPS] = {1, 0, 2}; /* pick[i] = (2 * i + 1) % 3, by a table here */

typedef struct {
    const char *text, *border; /* %s: the loop's index */
} Pick;

static const Pick picks[PICKS] = {
    {"%s", ""},
    {"2 - %s", ""},
    {"1", ""},
    {"n", ""},
    {"pick[%s]", ""},
    {"%s - 1", " else 0.5"},
    {"%s - 1", " else edge"},
    {"%s + 2", " else wrap"},
    {"2 * %s - 1", " else 0.25"},
};

static int place(int pick, int t) {
    const int at[PICKS] = {t, 2 - t, 1, 2, chosen[t], t - 1, t - 1, t + 2, 2 * t - 1};
    return at[pick];
}

static double element(Tensor o, int pick, int i, int j) {
    const char *border = picks[pick].border;
    if (i < 0 || i >= ROWS || j < 0 || j >= COLS) {
        if (strstr(border, "edge")) {
            i = i < 0 ? 0 : i >= ROWS ? ROWS - 1 : i;
            j = j < 0 ? 0 : j >= COLS ? COLS - 1 : j;
        } else if (strstr(border, "wrap")) {
            i = (i + ROWS) % ROWS;
            j = (j + COLS) % COLS;
        } else {
            return strstr(border, "0.25") ? 0.25 : 0.5;
        }
    }
    return o[i][j];
}

/* --- forms ----------------------------------------------------------------------------------- */

/* What form f gives at iteration t; the number of elements. */
static int form_value(int f, Tensor o, int pick, int t, double *out) {
    int p = place(pick, t), n = 0;
    double sum = 0;
    switch (f) {
    case 0:
    case 5:
        for (int j = 0; j < COLS; j++)
            out[n++] = element(o, pick, p, j);
        break;
    case 1:
    case 6:
        for (int i = 0; i < ROWS; i++)
            out[n++] = element(o, pick, i, p);
        break;
    case 2:
    case 7:
        for (int j = 1; j < 3; j++)
            out[n++] = element(o, pick, p, j);
        break;
    case 3:
        for (int i = 1; i < 3; i++)
            out[n++] = element(o, pick, i, p);
        break;
    case 4: out[n++] = element(o, pick, p, 2); break;
    case 8:
        for (int j = 0; j < 2; j++)
            out[n++] = element(o, pick, 1, p + j);
        break;
    case 9:
        for (int j = 0; j < COLS; j++)
            sum += element(o, pick, p, j) * (j + 1);
        out[n++] = sum;
        break;
    case 10: out[n++] = element(o, pick, p, p); break;
    default: out[n++] = element(o, pick, 1, p); break;
    }
    return n;
}

/* j + data has no range that fits an axis of 4, and slices of slices stay inside. */
static bool has_form(int f, int pick) {
    return f != 8 || (pick != 3 && pick != 4);
}

static void form_text(int f, const char *o, const char *p, const char *border, int pick) {
    switch (f) {
    case 0: printf("      emit r0_%d = %s[%s, :]%s;\n", pick, o, p, border); break;
    case 1: printf("      emit r1_%d = %s[:, %s]%s;\n", pick, o, p, border); break;
    case 2: printf("      emit r2_%d = %s[%s, 1..3]%s;\n", pick, o, p, border); break;
    case 3: printf("      emit r3_%d = %s[1..3, %s]%s;\n", pick, o, p, border); break;
    case 4: printf("      emit r4_%d = %s[%s, 2]%s;\n", pick, o, p, border); break;
    case 5: printf("      a5_%d[j < 4] = %s[%s, j]%s;", pick, o, p, border); break;
    case 6: printf("      a6_%d[i < 3] = %s[i, %s]%s;", pick, o, p, border); break;
    case 7: printf("      a7_%d[j < 2] = %s[%s, j + 1]%s;", pick, o, p, border); break;
    case 8:
        printf("      a8_%d[j < 2] = %s[1, %s + j]%s;", pick, o, p,
               border[0] ? border : " else 0.5");
        break;
    case 9:
        printf("      emit r9_%d = sum[j < 4] %s[%s, j]%s * f32(j + 1);\n", pick, o, p, border);
        break;
    case 10: printf("      emit r10_%d = %s[%s, %s]%s;\n", pick, o, p, p, border); break;
    default:
        printf("      a11_%d = %s[:, %s]%s; emit r11_%d = a11_%d[1];\n", pick, o, p, border, pick,
               pick);
    }
    if (f >= 5 && f <= 8) {
        printf(" emit r%d_%d = a%d_%d;\n", f, pick, f, pick);
    }
}

static double weight(int f) {
    return 1 + 0.25 * f;
}

/* --- the model ------------------------------------------------------------------------------- */

static void print_case(const Case *c) {
    bool model = c->what == STACKED;
    if (model) {
        printf("model m_%s(x: [3, 4]) -> (", c->name);
        for (int p = 0; p < PICKS; p++) {
            printf("%sl%d: f32", p ? ", " : "", p);
        }
        printf(") {\n");
    } else {
        printf("entry %s() {\n  x = start();\n", c->name);
    }
    printf("  pick[i < 3] = (2 * i + 1) %% 3;\n  n = pick[2];\n");
    if (c->nested) {
        printf("  scan o < %d carry k = x {\n    y = k + 1;\n", OUTER);
    }
    printf("    %s t < %d carry c = %s {\n", c->loop, TRIPS, c->nested ? "y" : "x");
    if (model) {
        printf("      w = held();\n");
    }
    printf("      z = 2 * c - x;\n");
    for (int p = 0; p < PICKS; p++) {
        for (int f = 0; f < FORMS; f++) {
            char at[32];
            snprintf(at, sizeof at, picks[p].text, c->index);
            if (has_form(f, p)) {
                form_text(f, c->object, at, picks[p].border, p);
            }
        }
    }
    printf("      c <- x - 0.5 * c;\n    }\n");
    if (c->nested) {
        for (int p = 0; p < PICKS; p++) {
            for (int f = 0; f < FORMS; f++) {
                if (has_form(f, p)) {
                    printf("    emit q%d_%d = r%d_%d;", f, p, f, p);
                }
            }
        }
        printf("\n    k <- 0.5 * k - x;\n  }\n");
    }
    for (int p = 0; p < PICKS; p++) {
        printf("  l%d = ", p);
        for (int f = 0; f < FORMS; f++) {
            if (has_form(f, p)) {
                printf("%s%g * sum(%s%d_%d^2)", f ? " + " : "", weight(f), c->nested ? "q" : "r", f,
                       p);
            }
        }
        printf(";\n");
    }
    printf("  return ");
    for (int p = 0; p < PICKS && model; p++) {
        printf("%sl%d = l%d", p ? ", " : "", p, p);
    }
    if (model) { /* a program calls its entries with the weights that a train has saved */
        printf(";\n}\ntrain keep of m_%s {\n  r = m_%s(start());\n  loss r.l0;\n"
               "  optimizer sgd(lr = 0);\n  steps 1;\n}\n",
               c->name, c->name);
        printf("entry %s() {\n  x = start();\n  r = m_%s(x);\n  return ", c->name, c->name);
    }
    for (int p = 0; p < PICKS; p++) {
        for (int f = 0; f < FORMS && !model; f++) {
            if (has_form(f, p)) {
                printf("v%d_%d = %s%d_%d, ", f, p, c->nested ? "q" : "r", f, p);
            }
        }
        const char *by = c->what == STATE ? "s" : "x";
        if (model) {
            printf("%sd%d = grad(r.l%d, m_%s.held.w)", p ? ", " : "", p, p, c->name);
        } else {
            printf("d%d = grad(l%d, %s)%s", p, p, by, p == PICKS - 1 ? "" : ", ");
        }
    }
    printf(";\n}\n");
}

/* --- the values ------------------------------------------------------------------------------ */

static double store[PICKS][FORMS][OUTER * TRIPS * LONGEST];
static int stored[PICKS][FORMS];

static void combine(Tensor r, double a, Tensor x, double b, Tensor y, double c) {
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            r[i][j] = a * x[i][j] + b * y[i][j] + c;
        }
    }
}

/* Fills the store with the values of a case. */
static void simulate(const Case *c, Tensor x, Tensor s, Tensor *w) {
    memset(stored, 0, sizeof stored);
    Tensor k, y, cv, z;
    memcpy(k, x, sizeof k);
    for (int o = 0; o < (c->nested ? OUTER : 1); o++) {
        combine(y, 1, k, 0, x, c->nested ? 1 : 0);
        memcpy(cv, y, sizeof cv);
        for (int t = 0; t < TRIPS; t++) {
            combine(z, 2, cv, -1, x, 0);
            double(*of)[COLS] = c->what == OUTSIDE   ? x
                                : c->what == CARRY   ? cv
                                : c->what == MADE    ? z
                                : c->what == STATE   ? s
                                : c->what == STACKED ? w[t]
                                                     : y;
            for (int p = 0; p < PICKS; p++) {
                for (int f = 0; f < FORMS; f++) {
                    if (has_form(f, p)) {
                        stored[p][f] +=
                            form_value(f, of, p, c->by_outer ? o : t, &store[p][f][stored[p][f]]);
                    }
                }
            }
            combine(cv, -0.5, cv, 1, x, 0);
        }
        combine(k, 0.5, k, -1, x, 0);
    }
}

static double loss(int p) {
    double sum = 0;
    for (int f = 0; f < FORMS; f++) {
        for (int i = 0; i < stored[p][f]; i++) {
            sum += weight(f) * store[p][f][i] * store[p][f][i];
        }
    }
    return sum;
}

static void start(Tensor x) {
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLS; j++) {
            x[i][j] = 0.25 * ((7 * i + 5 * j + 3 * i * j) % 11) - 1;
        }
    }
}

static void values_case(const Case *c) {
    Tensor x, s, w[TRIPS];
    start(x);
    start(s);
    for (int t = 0; t < TRIPS; t++)
        start(w[t]);
    simulate(c, x, s, w);
    printf("%s\n", c->name);
    for (int p = 0; p < PICKS; p++) {
        for (int f = 0; f < FORMS && c->what != STACKED; f++) {
            if (has_form(f, p)) {
                printf("v%d_%d", f, p);
                for (int i = 0; i < stored[p][f]; i++)
                    printf(" %.9g", store[p][f][i]);
                printf("\n");
            }
        }
        printf("d%d", p);
        Tensor *by = c->what == STACKED ? w : c->what == STATE ? &s : &x;
        for (int t = 0; t < (c->what == STACKED ? TRIPS : 1); t++) {
            for (int i = 0; i < ROWS * COLS; i++) {
                double *at = &by[t][i / COLS][i % COLS], side[2];
                for (int k = 0; k < 2; k++) {
                    *at += k ? -2.0 : 1.0;
                    simulate(c, x, s, w);
                    side[k] = loss(p);
                }
                *at += 1;
                printf(" %.9g", (side[0] - side[1]) / 2);
            }
        }
        printf("\n");
        simulate(c, x, s, w);
    }
}

int main(int argc, char **argv) {
    bool model = argc == 2 && !strcmp(argv[1], "model");
    if (!model && (argc != 2 || strcmp(argv[1], "values"))) {
        fputs("usage: slices model | values\n", stderr);
        return 2;
    }
    if (model) {
        printf("use nn;\nop start() -> [3, 4] {\n"
               "  x[i < 3, j < 4] = 0.25 * f32((7 * i + 5 * j + 3 * i * j) %% 11) - 1;\n"
               "  return x;\n}\nstate s: [3, 4] = start();\n"
               "layer held() -> [3, 4] { param w: [3, 4] = start(); return w; }\n");
    }
    for (int i = 0; i < CASES; i++) {
        (model ? print_case : values_case)(&cases[i]);
    }
    return 0;
}
