/* notation: random statements in index notation, and what they give by plain loops.
 *
 * `notation model SEED` prints a model whose entry `go` returns each statement's value and its
 * derivatives by the tensors it reads, `notation values SEED` the same numbers. A statement is a
 * sum, product, choice or fold (sum, mean, prod, max, min, argmax) of accesses; an access has
 * affine indices in several indices, repeated ones, data, and borders of all three kinds. Half of
 * the statements stand in a loop, read its carry and use its index. Derivatives are central
 * differences; where a fold is close to a tie there are none. Shares nothing with the compiler. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENTS = 24, TRIPS = 3, TENSORS = 4, CARRY = 3, AXES = 3, MOST = 4096 };

static uint64_t seed;

static int draw(int n) {
    seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

static bool chance(int percent) {
    return draw(100) < percent;
}

/* --- tensors --------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    int rank, dim[AXES];
    double at[24];
} Tensor;

/* x0, x1, x2 from outside; the carry c begins as x1 */
static Tensor tensors[TENSORS] = {
    {"x0", 1, {5}, {0}}, {"x1", 2, {4, 3}, {0}}, {"x2", 3, {2, 3, 4}, {0}}, {"c", 2, {4, 3}, {0}}};
static const int count_of[TENSORS] = {5, 12, 24, 12};

static void tensors_start(void) {
    for (int k = 0; k < CARRY; k++) {
        for (int p = 0; p < count_of[k]; p++) {
            tensors[k].at[p] = (double)((p * 29 + 7 + k) % 61) / (16 - k) - 1.7;
        }
    }
}

/* Integers that are known to lie in 0..2 and 0..3. */
static const char *const data_name[2] = {"d0", "d1"};
static const int data_rank[2] = {1, 2}, data_dim[2][2] = {{4, 1}, {3, 2}}, data_most[2] = {2, 3};

static int data_value(int which, const int *at) {
    return which ? (3 * at[0] + 2 * at[1] + 1) % 4 : (2 * at[0] + 1) % 3;
}

/* --- expressions ----------------------------------------------------------------------------- */

typedef struct {
    char name[8];
    int extent, value;
} Index;

typedef struct {
    int c, n, coef[2];
    Index *ix[2];
} Affine;

typedef struct {
    bool data;
    int which;
    Affine at[2]; /* the index, or those of the data */
} Place;

typedef enum { NUMBER, COUNT, ACCESS, ADD, SUB, MUL, CHOICE, FOLD, ARGMAX } Kind;
typedef enum { SUM, MEAN, PROD, MAX, MIN } Fold;

typedef struct Expr Expr;
struct Expr {
    Kind kind;
    double number;
    Affine affine, other; /* COUNT; CHOICE: affine >= other */
    Expr *a, *b;
    int tensor, border; /* 0 none, 1 a number, 2 edge, 3 wrap */
    Place place[AXES];
    Fold fold;
    int nix;
    Index *ix[2];
};

static Index *scope[8];
static int nscope, names;

static void *make(size_t bytes) {
    void *p = calloc(1, bytes);
    if (!p) {
        exit(2);
    }
    return p;
}

static Index *new_index(const char *name) {
    Index *ix = make(sizeof *ix);
    snprintf(ix->name, sizeof ix->name, "%s%d", name, names++);
    ix->extent = 1 + draw(4);
    return ix;
}

static Affine draw_affine(int most) {
    Affine f = {.c = draw(5) - 1};
    while (nscope > 0 && f.n < most && chance(f.n == 0 ? 85 : 35)) {
        Index *ix = scope[draw(nscope)];
        if (f.n == 1 && f.ix[0] == ix) {
            break;
        }
        f.ix[f.n] = ix;
        f.coef[f.n++] = (1 + draw(2)) * (chance(25) ? -1 : 1);
    }
    if (f.n > 0 && chance(60)) {
        f.c = 0;
        f.coef[0] = 1;
    }
    return f;
}

static void affine_range(const Affine *f, int *lo, int *hi) {
    *lo = *hi = f->c;
    for (int i = 0; i < f->n; i++) {
        int last = f->coef[i] * (f->ix[i]->extent - 1);
        *lo += last < 0 ? last : 0;
        *hi += last > 0 ? last : 0;
    }
}

/* An affine index that stays in 0..n-1: one that does not becomes a number. */
static Affine draw_inside(int n) {
    Affine f = draw_affine(1);
    int lo, hi;
    affine_range(&f, &lo, &hi);
    return lo >= 0 && hi < n ? f : (Affine){.c = draw(n)};
}

static Expr *new_expr(Kind kind) {
    Expr *e = make(sizeof *e);
    e->kind = kind;
    return e;
}

static Expr *draw_access(bool in_loop) {
    Expr *e = new_expr(ACCESS);
    e->tensor = in_loop && chance(50) ? CARRY : draw(CARRY);
    bool inside = true;
    for (int i = 0; i < tensors[e->tensor].rank; i++) {
        Place *p = &e->place[i];
        int n = tensors[e->tensor].dim[i], lo, hi;
        p->data = chance(12);
        if (p->data) {
            p->which = draw(2);
            for (int k = 0; k < data_rank[p->which]; k++) {
                p->at[k] = draw_inside(data_dim[p->which][k]);
            }
            inside = inside && data_most[p->which] < n;
        } else {
            p->at[0] = draw_affine(2);
            affine_range(&p->at[0], &lo, &hi);
            inside = inside && lo >= 0 && hi < n;
        }
    }
    if (!inside || chance(15)) {
        e->border = 1 + draw(3);
        e->number = 0.25 * (draw(9) - 4);
    }
    return e;
}

static bool affine_uses(const Affine *f, const Index *ix) {
    return (f->n > 0 && f->ix[0] == ix) || (f->n > 1 && f->ix[1] == ix);
}

static bool uses(const Expr *e, const Index *ix) {
    bool found = e && (affine_uses(&e->affine, ix) || affine_uses(&e->other, ix));
    for (int i = 0; e && i < AXES; i++) {
        found = found || affine_uses(&e->place[i].at[0], ix) || affine_uses(&e->place[i].at[1], ix);
    }
    return found || (e && (uses(e->a, ix) || uses(e->b, ix)));
}

static Expr *draw_expr(int depth, bool in_loop);

static Expr *draw_fold(int depth, bool in_loop, bool argmax) {
    Expr *e = new_expr(argmax ? ARGMAX : FOLD);
    e->fold = (Fold)draw(5);
    e->nix = argmax ? 1 : 1 + chance(30);
    int before = nscope;
    for (int i = 0; i < e->nix; i++) {
        scope[nscope++] = e->ix[i] = new_index("k");
    }
    e->a = draw_expr(depth - 1, in_loop);
    nscope = before;
    for (int i = 0; i < e->nix; i++) { /* each has to be there */
        if (!uses(e->a, e->ix[i])) {
            Expr *add = new_expr(ADD), *zero = new_expr(MUL);
            zero->a = new_expr(NUMBER);
            zero->b = new_expr(COUNT);
            zero->b->affine = (Affine){.n = 1, .coef = {1}, .ix = {e->ix[i]}};
            add->a = e->a;
            add->b = zero;
            e->a = add;
        }
    }
    return e;
}

static Expr *draw_expr(int depth, bool in_loop) {
    int what = draw(100);
    if (depth == 0 || what < 40) {
        return draw_access(in_loop);
    }
    if (what < 46) {
        Expr *e = new_expr(NUMBER);
        e->number = 0.5 * (1 + draw(5));
        return e;
    }
    if (what < 52) {
        Expr *e = new_expr(COUNT);
        e->affine = draw_affine(2);
        return e;
    }
    if (what < 76) {
        Expr *e = new_expr((Kind)(ADD + draw(3)));
        e->a = draw_expr(depth - 1, in_loop);
        e->b = draw_expr(depth - 1, in_loop);
        return e;
    }
    if (what < 84) {
        Expr *e = new_expr(CHOICE);
        e->affine = draw_affine(2);
        e->other = draw_affine(1);
        e->a = draw_expr(depth - 1, in_loop);
        e->b = draw_expr(depth - 1, in_loop);
        return e;
    }
    if (nscope + 2 > 5) {
        return draw_access(in_loop);
    }
    return draw_fold(depth, in_loop, what >= 97);
}

/* --- text ------------------------------------------------------------------------------------ */

static void print_affine(const Affine *f) {
    printf("%d", f->c);
    for (int i = 0; i < f->n; i++) {
        printf(" %c %d * %s", f->coef[i] < 0 ? '-' : '+', abs(f->coef[i]), f->ix[i]->name);
    }
}

static void print_count(const Affine *f) {
    if (f->n == 0) {
        printf("%d.0", f->c);
    } else {
        printf("f32(");
        print_affine(f);
        printf(")");
    }
}

static void print_expr(const Expr *e) {
    static const char *const fold[] = {"sum", "mean", "prod", "max", "min"};
    switch (e->kind) {
    case NUMBER: printf("%.2f", e->number); break;
    case COUNT: print_count(&e->affine); break;
    case ACCESS:
        printf("%s[", tensors[e->tensor].name);
        for (int i = 0; i < tensors[e->tensor].rank; i++) {
            const Place *p = &e->place[i];
            printf("%s", i ? ", " : "");
            if (p->data) {
                printf("%s[", data_name[p->which]);
                print_affine(&p->at[0]);
                if (data_rank[p->which] > 1) {
                    printf(", ");
                    print_affine(&p->at[1]);
                }
                printf("]");
            } else {
                print_affine(&p->at[0]);
            }
        }
        printf("]");
        if (e->border == 1) {
            printf(" else %g", e->number);
        } else if (e->border) {
            printf(" else %s", e->border == 2 ? "edge" : "wrap");
        }
        break;
    case ADD:
    case SUB:
    case MUL:
        printf("(");
        print_expr(e->a);
        printf(" %c ", e->kind == ADD ? '+' : e->kind == SUB ? '-' : '*');
        print_expr(e->b);
        printf(")");
        break;
    case CHOICE:
        printf("select(");
        print_count(&e->affine);
        printf(" >= ");
        print_count(&e->other);
        printf(", ");
        print_expr(e->a);
        printf(", ");
        print_expr(e->b);
        printf(")");
        break;
    case FOLD:
    case ARGMAX:
        printf(e->kind == FOLD ? "(%s[" : "f32(%s[", e->kind == FOLD ? fold[e->fold] : "argmax");
        for (int i = 0; i < e->nix; i++) {
            printf("%s%s < %d", i ? ", " : "", e->ix[i]->name, e->ix[i]->extent);
        }
        printf("] ");
        print_expr(e->a);
        printf(")");
        break;
    }
}

/* --- values ---------------------------------------------------------------------------------- */

static double gap; /* the least distance of a fold's winner to another value */

static int affine_value(const Affine *f) {
    int v = f->c;
    for (int i = 0; i < f->n; i++) {
        v += f->coef[i] * f->ix[i]->value;
    }
    return v;
}

static double access_value(const Expr *e) {
    const Tensor *t = &tensors[e->tensor];
    int flat = 0;
    for (int i = 0; i < t->rank; i++) {
        const Place *p = &e->place[i];
        int n = t->dim[i], at[2] = {affine_value(&p->at[0]), affine_value(&p->at[1])};
        int v = p->data ? data_value(p->which, at) : at[0];
        if (v < 0 || v >= n) {
            if (e->border == 1) {
                return e->number;
            }
            v = e->border == 2 ? (v < 0 ? 0 : n - 1) : ((v % n) + n) % n;
        }
        flat = flat * n + v;
    }
    return t->at[flat];
}

static double value(const Expr *e) {
    switch (e->kind) {
    case NUMBER: return e->number;
    case COUNT: return affine_value(&e->affine);
    case ACCESS: return access_value(e);
    case ADD: return value(e->a) + value(e->b);
    case SUB: return value(e->a) - value(e->b);
    case MUL: return value(e->a) * value(e->b);
    case CHOICE: return value(affine_value(&e->affine) >= affine_value(&e->other) ? e->a : e->b);
    default: break;
    }
    double all[16], sum = 0, prod = 1;
    int n = 0, best = 0;
    bool least = e->kind == FOLD && e->fold == MIN;
    for (int i = 0; i < e->ix[0]->extent; i++) {
        for (int k = 0; k < (e->nix > 1 ? e->ix[1]->extent : 1); k++) {
            e->ix[0]->value = i;
            if (e->nix > 1) {
                e->ix[1]->value = k;
            }
            all[n] = value(e->a);
            sum += all[n];
            prod *= all[n];
            best = least ? (all[n] < all[best] ? n : best) : (all[n] > all[best] ? n : best);
            n++;
        }
    }
    if (e->kind == FOLD && e->fold < MAX) {
        return e->fold == SUM ? sum : e->fold == MEAN ? sum / n : prod;
    }
    for (int i = 0; i < n; i++) {
        double d = fabs(all[i] - all[best]);
        gap = i != best && d < gap ? d : gap;
    }
    return e->kind == ARGMAX ? best : all[best];
}

/* --- statements ------------------------------------------------------------------------------ */

typedef struct {
    bool in_loop;
    int nleft;
    Index *left[2];
    Expr *right;
} Statement;

static Statement all[STATEMENTS];
static Index loop = {"t", TRIPS, 0};

static void draw_statements(void) {
    for (int s = 0; s < STATEMENTS; s++) {
        Statement *st = &all[s];
        st->in_loop = s >= STATEMENTS / 2;
        st->nleft = 1 + draw(2);
        nscope = 0;
        for (int i = 0; i < st->nleft; i++) {
            scope[nscope++] = st->left[i] = new_index("i");
        }
        if (st->in_loop) {
            scope[nscope++] = &loop;
        }
        st->right = draw_expr(3, st->in_loop);
    }
}

static bool reads(const Expr *e, int tensor) {
    if (!e || e->kind == ARGMAX) { /* a constant for derivatives */
        return false;
    }
    return (e->kind == ACCESS && e->tensor == tensor) || reads(e->a, tensor) || reads(e->b, tensor);
}

static bool picks(const Expr *e) {
    return e && (e->kind == ARGMAX || picks(e->a) || picks(e->b));
}

/* The carry is made of x1. */
static bool depends(const Statement *s, int tensor) {
    return reads(s->right, tensor) || (tensor == 1 && s->in_loop && reads(s->right, CARRY));
}

static void print_model(void) {
    printf("entry go() {\n");
    for (int k = 0; k < CARRY; k++) {
        static const char *const left[] = {"i < 5", "i < 4, j < 3", "i < 2, j < 3, k < 4"};
        static const char *const flat[] = {"i", "(3 * i + j)", "(12 * i + 4 * j + k)"};
        printf("  x%d[%s] = f32((%s * 29 + %d) %% 61) / %d - 1.7;\n", k, left[k], flat[k], 7 + k,
               16 - k);
    }
    printf("  d0[i < 4] = (2 * i + 1) %% 3;\n  d1[i < 3, j < 2] = (3 * i + 2 * j + 1) %% 4;\n");
    for (int s = 0; s < STATEMENTS; s++) {
        if (s == STATEMENTS / 2) {
            printf("  scan t < %d carry c = x1 {\n", TRIPS);
        }
        printf("  %s%d[", all[s].in_loop ? "z" : "y", s);
        for (int i = 0; i < all[s].nleft; i++) {
            printf("%s%s < %d", i ? ", " : "", all[s].left[i]->name, all[s].left[i]->extent);
        }
        printf("] = ");
        print_expr(all[s].right);
        printf(";\n");
        if (all[s].in_loop) {
            printf("  emit y%d = z%d;\n", s, s);
        }
    }
    printf("  c <- 0.5 * c + 0.1;\n  }\n");
    for (int s = 0; s < STATEMENTS; s++) {
        bool in_loop = all[s].in_loop;
        printf("  l%d = sum[%si < %d] y%d[%si%s] * f32((3 * i%s) %% 5 + 1);\n", s,
               in_loop ? "t < 3, " : "", all[s].left[0]->extent, s, in_loop ? "t, " : "",
               all[s].nleft > 1 ? ", 0" : "", in_loop ? " + 2 * t" : "");
    }
    printf("  return one = 1.0");
    for (int s = 0; s < STATEMENTS; s++) {
        printf(",\n    y%d", s);
        for (int k = 0; k < CARRY; k++) {
            if (depends(&all[s], k)) {
                printf(", g%d_%d = grad(l%d, x%d)", s, k, s, k);
            }
        }
    }
    printf(";\n}\n");
}

/* All values of a statement; gives the weighted sum that is derived. */
static double run(const Statement *s, double *out, int *n) {
    double sum = 0;
    *n = 0;
    memcpy(tensors[CARRY].at, tensors[1].at, sizeof tensors[1].at);
    for (int t = 0; t < (s->in_loop ? TRIPS : 1); t++) {
        loop.value = t;
        for (int i = 0; i < s->left[0]->extent; i++) {
            for (int j = 0; j < (s->nleft > 1 ? s->left[1]->extent : 1); j++) {
                s->left[0]->value = i;
                if (s->nleft > 1) {
                    s->left[1]->value = j;
                }
                double v = value(s->right);
                out[(*n)++] = v;
                sum += j == 0 ? v * ((3 * i + 2 * t) % 5 + 1) : 0;
            }
        }
        for (int p = 0; p < count_of[CARRY]; p++) {
            tensors[CARRY].at[p] = 0.5 * tensors[CARRY].at[p] + 0.1;
        }
    }
    return sum;
}

static void print_values(void) {
    double out[MOST];
    int n;
    for (int s = 0; s < STATEMENTS; s++) {
        gap = 1;
        double size = fabs(run(&all[s], out, &n)), nearest = gap;
        if (nearest > 1e-9 || !picks(all[s].right)) { /* rounding decides between equal ones */
            printf("y%d", s);
            for (int i = 0; i < n; i++) {
                printf(" %.15g", out[i]);
            }
            printf("\n");
        }
        /* Differences of large values have a few digits only. */
        for (int k = 0; k < CARRY && nearest > 1e-2 && size < 1e5; k++) {
            if (!depends(&all[s], k)) {
                continue;
            }
            printf("g%d_%d", s, k);
            for (int p = 0; p < count_of[k]; p++) {
                double *at = &tensors[k].at[p], was = *at, h = 1e-4;
                double left[2];
                for (int side = 0; side < 2; side++) {
                    /* of order four, so that products of many values have no error to speak of */
                    *at = was + (side + 1) * h;
                    double up = run(&all[s], out, &n);
                    *at = was - (side + 1) * h;
                    left[side] = (up - run(&all[s], out, &n)) / (2 * (side + 1) * h);
                }
                *at = was;
                printf(" %.12g", (4 * left[0] - left[1]) / 3);
            }
            printf("\n");
        }
    }
}

int main(int argc, char **argv) {
    bool model = argc == 3 && strcmp(argv[1], "model") == 0;
    if (!model && (argc != 3 || strcmp(argv[1], "values") != 0)) {
        fputs("usage: notation model|values SEED\n", stderr);
        return 2;
    }
    seed = strtoull(argv[2], NULL, 10);
    tensors_start();
    draw_statements();
    if (model) {
        print_model();
    } else {
        print_values();
    }
    return 0;
}
