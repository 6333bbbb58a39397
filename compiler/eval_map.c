/* eval_map: the elementwise rules of the evaluator; see eval.h. */
#include "compiler/eval_rule.h"

#include <math.h>

/* Integers wrap: sums and products are formed unsigned. */
static int64_t wrap_add(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x + (uint64_t)y);
}
static int64_t wrap_sub(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x - (uint64_t)y);
}
static int64_t wrap_mul(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

static int64_t int_div(int64_t x, int64_t y) {
    if (y == 0) {
        return 0;
    }
    if (y == -1) {
        return wrap_sub(0, x);
    }
    int64_t q = x / y;
    return q - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t int_rem(int64_t x, int64_t y) {
    if (y == 0 || y == -1) {
        return 0;
    }
    int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* NaN of either operand stays. */
static double num_min(double x, double y) {
    return isnan(x) || x < y ? x : y;
}
static double num_max(double x, double y) {
    return isnan(x) || x > y ? x : y;
}

/* --- floats and integers ---------------------------------------------------------------------- */

#define UNARY(rule, float_value, int_value)                                                        \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at;                                                                \
        Elem elem = c->type.elem;                                                                  \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; elem_is_float(elem) && i < n; i++) {                                   \
            double x = a[i].f;                                                                     \
            out[i].f = float_value;                                                                \
        }                                                                                          \
        for (int64_t i = 0; !elem_is_float(elem) && i < n; i++) {                                  \
            int64_t x = a[i].i;                                                                    \
            out[i].i = num_wrap(elem, int_value);                                                  \
        }                                                                                          \
    }

#define BINARY(rule, float_value, int_value)                                                       \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at, *b = c->in[1].at;                                              \
        Elem elem = c->type.elem;                                                                  \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; elem_is_float(elem) && i < n; i++) {                                   \
            double x = a[i].f, y = b[i].f;                                                         \
            out[i].f = float_value;                                                                \
        }                                                                                          \
        for (int64_t i = 0; !elem_is_float(elem) && i < n; i++) {                                  \
            int64_t x = a[i].i, y = b[i].i;                                                        \
            out[i].i = num_wrap(elem, int_value);                                                  \
        }                                                                                          \
    }

BINARY(add, x + y, wrap_add(x, y))
BINARY(sub, x - y, wrap_sub(x, y))
BINARY(mul, x *y, wrap_mul(x, y))
BINARY(min, num_min(x, y), x < y ? x : y)
BINARY(max, num_max(x, y), x > y ? x : y)
UNARY(neg, -x, wrap_sub(0, x))
UNARY(again, x, x)
UNARY(abs, fabs(x), x < 0 ? wrap_sub(0, x) : x)
UNARY(sign, isnan(x) ? x : (double)((x > 0) - (x < 0)), (x > 0) - (x < 0))

/* --- floats only, integers only --------------------------------------------------------------- */

#define FLOAT1(rule, float_value)                                                                  \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at;                                                                \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double x = a[i].f;                                                                     \
            out[i].f = float_value;                                                                \
        }                                                                                          \
    }

#define FLOAT2(rule, float_value)                                                                  \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at, *b = c->in[1].at;                                              \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double x = a[i].f, y = b[i].f;                                                         \
            out[i].f = float_value;                                                                \
        }                                                                                          \
    }

#define INT2(rule, int_value)                                                                      \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at, *b = c->in[1].at;                                              \
        Elem elem = c->type.elem;                                                                  \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t x = a[i].i, y = b[i].i;                                                        \
            out[i].i = num_wrap(elem, int_value);                                                  \
        }                                                                                          \
    }

FLOAT2(div, x / y)
FLOAT2(pow, pow(x, y))
FLOAT2(atan2, atan2(x, y))
void eval_fma(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        out[i].f = fma(c->in[0].at[i].f, c->in[1].at[i].f, c->in[2].at[i].f);
    }
}

FLOAT1(exp, exp(x))
FLOAT1(expm1, expm1(x))
FLOAT1(log, log(x))
FLOAT1(log1p, log1p(x))
FLOAT1(sqrt, sqrt(x))
FLOAT1(rsqrt, 1 / sqrt(x))
FLOAT1(sin, sin(x))
FLOAT1(cos, cos(x))
FLOAT1(tan, tan(x))
FLOAT1(asin, asin(x))
FLOAT1(acos, acos(x))
FLOAT1(atan, atan(x))
FLOAT1(sinh, sinh(x))
FLOAT1(cosh, cosh(x))
FLOAT1(tanh, tanh(x))
FLOAT1(erf, erf(x))
FLOAT1(erfp1, erfc(-x))
FLOAT1(floor, floor(x))
FLOAT1(round, rint(x))
static double to_half(const EvalCall *c, Elem half, double x) {
    return c->smooth ? x : num_round(half, x * (1 + c->tilt));
}
static double to_drawn(const EvalCall *c, double x, double draw) {
    return c->smooth ? x : num_round_drawn(TY_BF16, x * (1 + c->tilt), draw);
}
FLOAT1(bf16, to_half(c, TY_BF16, x))
FLOAT1(f16, to_half(c, TY_F16, x))
FLOAT2(bf16_drawn, to_drawn(c, x, y))
INT2(idiv, int_div(x, y))
INT2(irem, int_rem(x, y))

/* --- to and from bool ------------------------------------------------------------------------- */

#define COMPARE(rule, op)                                                                          \
    void eval_##rule(EvalCall *c) {                                                                \
        Num *out = eval_out(c);                                                                    \
        const Num *a = c->in[0].at, *b = c->in[1].at;                                              \
        bool is_float = elem_is_float(c->in[0].type.elem);                                         \
        int64_t n = type_count(c->type);                                                           \
        for (int64_t i = 0; i < n; i++) {                                                          \
            out[i].i = is_float ? a[i].f op b[i].f : a[i].i op b[i].i;                             \
        }                                                                                          \
    }

COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(eq, ==)
INT2(and, x &&y)
INT2(or, x || y)

void eval_not(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        out[i].i = !c->in[0].at[i].i;
    }
}

void eval_isfinite(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        out[i].i = isfinite(c->in[0].at[i].f) != 0;
    }
}

void eval_select(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        out[i] = c->in[c->in[0].at[i].i ? 1 : 2].at[i];
    }
}

/* Truncates; what does not fit saturates at 64 bits, a NaN gives 0. */
static int64_t to_int(double x) {
    if (isnan(x)) {
        return 0;
    }
    if (x >= 0x1p63) {
        return INT64_MAX;
    }
    return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

void eval_cast(EvalCall *c) {
    Num *out = eval_out(c);
    const Num *a = c->in[0].at;
    bool from_float = elem_is_float(c->in[0].type.elem), to_float = elem_is_float(c->type.elem);
    int64_t n = type_count(c->type);
    for (int64_t i = 0; i < n; i++) {
        if (to_float) {
            out[i].f = from_float ? a[i].f : (double)a[i].i;
        } else if (c->type.elem == TY_BOOL) {
            out[i].i = from_float ? a[i].f != 0 : a[i].i != 0;
        } else {
            out[i].i = num_wrap(c->type.elem, from_float ? to_int(a[i].f) : a[i].i);
        }
    }
}

void eval_iota(EvalCall *c) {
    Num *out = eval_out(c);
    int64_t stride[MD_RANK], n = type_count(c->type);
    value_strides(c->type, stride);
    for (int64_t i = 0; i < n; i++) {
        out[i].i = i / stride[c->attr->axis] % c->type.dim[c->attr->axis];
    }
}
