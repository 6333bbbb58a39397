/* The rules of simplify, one at a time: every row of the tables fires on a pattern made for it and
 * keeps the values, in double on ordinary numbers, and in f32 on zeros of both signs, infinities,
 * not-a-numbers, subnormal and huge numbers. What a rule may change there stands with its pattern;
 * a row that no pattern fires, and a pattern that fires nothing, are failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "directional.h"
#include "passes/simplify_rule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What differs from the value before, on special numbers; 0: not a bit. A rule may round and lose
 * the sign of a zero, and where the number before was not finite, or an intermediate result was out
 * of range, another such number may come out. No rule may turn a number into a NaN or back. */
enum {
    ROUNDING = 1,  /* some last bits of the number */
    CANCELS = 2,   /* of a sum of terms of about 1 */
    ZERO_SIGN = 4, /* -0 for 0 or the other way */
    RANGE = 8,     /* infinities and NaN of one another; 0 or a subnormal where a product was */
    NUMBER = 16,   /* a number for a NaN or the other way */
    SAME = 0
};

enum { SPECIALS = 12 };
static const double special[SPECIALS] = {
    0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149, 3e38, 1.5, -2.5, 1e-30,
};

typedef struct {
    Sample s;
    Graph *g;
    Node *x, *y;           /* [12, 12] */
    Node *row, *one;       /* [12], scalar */
    Node *cond, *other;    /* bools */
    Node *k;               /* integers */
    Node *u, *index, *lot; /* [12], [12] of 0..12, [12, 12] of small numbers */
} Pattern;

/* --- makers ----------------------------------------------------------------------------------- */

static Node *num(Pattern *p, double x) {
    return node_const(p->g, p->s.elem, x);
}
static Node *m1(Pattern *p, OpCode op, Node *a) {
    return node_map1(p->g, op, a);
}
static Node *m2(Pattern *p, OpCode op, Node *a, Node *b) {
    return node_map2(p->g, op, a, b);
}
static Node *neg(Pattern *p, Node *a) {
    return m1(p, OP_NEG, a);
}
static Node *mul(Pattern *p, Node *a, Node *b) {
    return m2(p, OP_MUL, a, b);
}
static Node *integer(Pattern *p, int64_t n) {
    return node_int(p->g, TY_I32, n);
}
/* `row` along the new axis 0 or 1. */
static Node *rows(Pattern *p, Node *row, int axis) {
    return node_broadcast(p->g, row, 1u << axis, 2, p->x->type->dim);
}
static Node *powers(Pattern *p, double y) {
    return m2(p, OP_POW, p->x, num(p, y));
}
static Node *flag(Pattern *p, bool b) {
    return node_full(p->g, *p->cond->type, b);
}
static Node *padded(Pattern *p, Node *a, int64_t lo, int64_t hi) {
    return node_pad(p->g, a, (int64_t[]){lo, 0}, (int64_t[]){hi, 0}, BORDER_VALUE, 0);
}
static Node *part(Pattern *p, Node *a, int64_t lo, int64_t n) {
    return node_slice_axis(p->g, a, 0, lo, n, 1);
}
static Node *sum(Pattern *p, Node *a, uint32_t axes) {
    return node_fold(p->g, OP_SUM, a, axes);
}
static Node *shaped(Pattern *p, Node *a, int64_t d0, int64_t d1, int64_t d2) {
    return node_reshape(p->g, a, 3, (int64_t[]){d0, d1, d2});
}
static Node *turned(Pattern *p, Node *a) {
    return node_permute(p->g, a, (int[]){1, 0});
}
static Node *joined(Pattern *p, Node *a, Node *b) {
    return node_concat(p->g, (Node *[]){a, b}, 2, 0);
}
static Node *dot(Pattern *p, Node *a, Node *b) {
    return node_contract(p->g, a, b, (int8_t[]){0, 1}, (int8_t[]){1, 2}, (int8_t[]){0, 2}, 2);
}
static Node *twice(Pattern *p, OpCode op, uint32_t first, uint32_t then) {
    return node_fold(p->g, op, node_fold(p->g, op, shaped(p, p->lot, 3, 4, 12), first), then);
}
static Node *unit_fold(Pattern *p, OpCode op) {
    return node_fold(p->g, op, shaped(p, p->lot, 1, 12, 12), 3);
}
static Node *place_of_one(Pattern *p, OpCode op) {
    return node_argfold(p->g, op, shaped(p, p->lot, 1, 12, 12), 0);
}
static Node *window_of_one(Pattern *p) {
    return node_window(p->g, p->x, 0, 2, 1, -1, 5, 1, BORDER_NONE, 0);
}
/* Windows of four places, three of them, in an axis of `n`. */
static Node *side_by_side(Pattern *p, int64_t n) {
    Attr a = {.axis = 0, .s = 4, .d = 1, .count = 3, .taps = 4, .taps_n = n};
    return node_overlap_add(p->g, shaped(p, p->x, 3, 4, 12), &a);
}
/* Windows of four places at stride 2, three of them, of terms three times what they are. */
static Node *overlapping(Pattern *p) {
    Attr a = {.axis = 0, .s = 2, .d = 1, .count = 3, .taps = 4, .taps_n = 8};
    return node_overlap_add(p->g, mul(p, shaped(p, p->x, 3, 4, 12), num(p, 3)), &a);
}
static Node *scattered(Pattern *p) {
    Type t = *p->x->type;
    return node_scatter_add(p->g, p->u, p->index, 1, t);
}

/* What is left of the mean along axis 0. */
static Node *centred(Pattern *p, Node *x) {
    return m2(p, OP_SUB, x, rows(p, mul(p, sum(p, x, 1), num(p, 1.0 / SPECIALS)), 0));
}
static Node *extreme(Pattern *p, OpCode op, Node *x) {
    return node_fold(p->g, op, x, 1);
}
static Node *pool(Pattern *p, Node *x) {
    return node_fold(p->g, OP_FMAX, node_window(p->g, x, 0, 2, 1, 0, 6, 2, BORDER_NONE, 0), 2);
}

static Node *few(Pattern *p) {
    return node_slice_axis(p->g, p->index, 0, 0, 2, 1);
}
/* Two rows that are added to a large table. */
static Node *table(Pattern *p) {
    return node_scatter_add(p->g, node_slice_axis(p->g, p->x, 0, 0, 2, 1), few(p), 0,
                            type_make(p->s.elem, 2, (int64_t[]){90000, 12}));
}

/* To 16 bits, of which there is f32 alone. */
static Node *single(Pattern *p, Node *x) {
    return node_cast(p->g, x, TY_F32);
}
static Node *rounded(Pattern *p, Node *x) {
    return node_cast(p->g, node_map1(p->g, OP_BF16, single(p, x)), p->s.elem);
}
static Node *beside(Pattern *p) {
    Node *in[2] = {single(p, p->x), single(p, p->y)};
    return node_concat(p->g, in, 2, 0);
}

/* Without the makers' own merging. */
static Node *again_broadcast(Pattern *p, Node *a) {
    Attr attr = {.axes = 1};
    Type t = type_make(a->type->elem, 3, (int64_t[]){2, SPECIALS, SPECIALS});
    return graph_add(p->g, OP_BROADCAST, &a, 1, &attr, t);
}

/* Name, what may change, expression. N: no rule may fire in f32. */
#define PATTERNS                                                                                   \
    P("one and erf", ROUNDING | CANCELS,                                                           \
      m2(p, OP_ADD, num(p, 1), m1(p, OP_ERF, m1(p, OP_TANH, p->x))))                               \
    P("one less erf", ROUNDING | CANCELS,                                                          \
      m2(p, OP_SUB, num(p, 1), m1(p, OP_ERF, m1(p, OP_TANH, p->x))))                               \
    P("x + 0", ZERO_SIGN, m2(p, OP_ADD, p->x, num(p, 0)))                                          \
    P("x + -y", SAME, m2(p, OP_ADD, p->x, neg(p, p->y)))                                           \
    P("x + x", SAME, m2(p, OP_ADD, p->x, p->x))                                                    \
    P("pads", ZERO_SIGN,                                                                           \
      m2(p, OP_ADD, padded(p, part(p, p->x, 0, 5), 1, 7), padded(p, part(p, p->y, 0, 7), 6, 0)))   \
    P("twice rounded", SAME, rounded(p, node_map1(p->g, OP_BF16, single(p, p->x))))                \
    P("parts rounded", SAME, rounded(p, beside(p)))                                                \
    P("halves rounded", SAME,                                                                      \
      node_cast(p->g, node_map1(p->g, OP_F16, node_map1(p->g, OP_F16, single(p, p->x))),           \
                p->s.elem))                                                                        \
    P("k + 1 + 2", SAME, m2(p, OP_ADD, m2(p, OP_ADD, p->k, integer(p, 1)), integer(p, 2)))         \
    P("k - 1 + 2", SAME, m2(p, OP_ADD, m2(p, OP_SUB, p->k, integer(p, 1)), integer(p, 2)))         \
    P("k + 1 - 2", SAME, m2(p, OP_SUB, m2(p, OP_ADD, p->k, integer(p, 1)), integer(p, 2)))         \
    P("x - 0", SAME, m2(p, OP_SUB, p->x, num(p, 0)))                                               \
    P("0 - x", ZERO_SIGN, m2(p, OP_SUB, num(p, 0), p->x))                                          \
    P("x - -y", SAME, m2(p, OP_SUB, p->x, neg(p, p->y)))                                           \
    P("k - k", SAME, m2(p, OP_SUB, p->k, p->k))                                                    \
    P("-x * -y", SAME, mul(p, neg(p, p->x), neg(p, p->y)))                                         \
    P("-x * y", SAME, mul(p, neg(p, p->x), p->y))                                                  \
    P("x * 1", SAME, mul(p, p->x, num(p, 1)))                                                      \
    P("x * -1", SAME, mul(p, p->x, num(p, -1)))                                                    \
    P("k * 0", SAME, mul(p, p->k, integer(p, 0)))                                                  \
    P("-x * 3", SAME, mul(p, neg(p, p->x), num(p, 3)))                                             \
    P("x * 3 * 7", ROUNDING, mul(p, mul(p, p->x, num(p, 3)), num(p, 7)))                           \
    P("x * 1e-30 * 1e30", ROUNDING | RANGE, mul(p, mul(p, p->x, num(p, 1e-30)), num(p, 1e30)))     \
    N("x * 1e30 * 1e30", mul(p, mul(p, p->x, num(p, 1e30)), num(p, 1e30)))                         \
    N("x * 1e-30 * 1e-30", mul(p, mul(p, p->x, num(p, 1e-30)), num(p, 1e-30)))                     \
    P("x / 1", SAME, m2(p, OP_DIV, p->x, num(p, 1)))                                               \
    N("x / 1e-39", m2(p, OP_DIV, p->x, num(p, 1e-39)))                                             \
    N("x / 3e38", m2(p, OP_DIV, p->x, num(p, 3e38)))                                               \
    P("x / 3", ROUNDING, m2(p, OP_DIV, p->x, num(p, 3)))                                           \
    /* 1 / y is infinite for the least subnormal y, and 0 / y is 0 all the same */                 \
    P("x / row", ROUNDING, m2(p, OP_DIV, p->x, rows(p, p->row, 0)))                                \
    P("x / small row", ROUNDING,                                                                   \
      m2(p, OP_DIV, p->x, rows(p, mul(p, p->row, num(p, 0x1p-127)), 0)))                           \
    P("small x / row", ROUNDING,                                                                   \
      m2(p, OP_DIV, mul(p, p->x, num(p, 0x1p-140)), rows(p, p->row, 0)))                           \
    P("-x / -y", SAME, m2(p, OP_DIV, neg(p, p->x), neg(p, p->y)))                                  \
    P("-x / y", SAME, m2(p, OP_DIV, neg(p, p->x), p->y))                                           \
    P("x / -y", SAME, m2(p, OP_DIV, p->x, neg(p, p->y)))                                           \
    P("-(-x)", SAME, neg(p, neg(p, p->x)))                                                         \
    P("-(x - y)", ZERO_SIGN, neg(p, m2(p, OP_SUB, p->x, p->y)))                                    \
    P("-(x * 3)", SAME, neg(p, mul(p, p->x, num(p, 3))))                                           \
    P("-(3 / x)", SAME, neg(p, m2(p, OP_DIV, num(p, 3), p->x)))                                    \
    P("x^0", SAME, powers(p, 0))                                                                   \
    P("x^1", SAME, powers(p, 1))                                                                   \
    P("x^2", SAME, powers(p, 2))                                                                   \
    P("x^3", ROUNDING, powers(p, 3))                                                               \
    P("x^4", ROUNDING, powers(p, 4))                                                               \
    /* sqrt and rsqrt, as in PyTorch: they differ from pow at -0, and sqrt at -inf */              \
    P("x^0.5", ROUNDING | ZERO_SIGN | RANGE, powers(p, 0.5))                                       \
    P("x^-0.5", ROUNDING | RANGE, powers(p, -0.5))                                                 \
    P("x^-1", SAME, powers(p, -1))                                                                 \
    P("x^-2", ROUNDING | RANGE, powers(p, -2))                                                     \
    P("true ? x : y", SAME, node_select(p->g, flag(p, true), p->x, p->y))                          \
    P("c ? x : x", SAME, node_select(p->g, p->cond, p->x, p->x))                                   \
    P("!c ? x : y", SAME, node_select(p->g, m1(p, OP_NOT, p->cond), p->x, p->y))                   \
    P("c ? (c ? x : y) : 1", SAME,                                                                 \
      node_select(p->g, p->cond, node_select(p->g, p->cond, p->x, p->y), num(p, 1)))               \
    P("c ? 1 : (c ? x : y)", SAME,                                                                 \
      node_select(p->g, p->cond, num(p, 1), node_select(p->g, p->cond, p->x, p->y)))               \
    P("min(x, x)", SAME, m2(p, OP_MIN, p->x, p->x))                                                \
    P("max(x, x)", SAME, m2(p, OP_MAX, p->x, p->x))                                                \
    P("k <= k", SAME, m2(p, OP_LE, p->k, p->k))                                                    \
    P("k < k", SAME, m2(p, OP_LT, p->k, p->k))                                                     \
    P("k == k", SAME, m2(p, OP_EQ, p->k, p->k))                                                    \
    P("c and false", SAME, m2(p, OP_AND, p->cond, flag(p, false)))                                 \
    P("c and true", SAME, m2(p, OP_AND, p->cond, flag(p, true)))                                   \
    P("c or true", SAME, m2(p, OP_OR, p->cond, flag(p, true)))                                     \
    P("c or c", SAME, m2(p, OP_OR, p->cond, p->cond))                                              \
    P("!!c", SAME, m1(p, OP_NOT, m1(p, OP_NOT, p->cond)))                                          \
    P("k there and back", SAME, node_cast(p->g, node_cast(p->g, p->k, TY_I64), TY_I32))            \
    P("sin of rows", SAME, m1(p, OP_SIN, rows(p, p->row, 0)))                                      \
    P("rows added", SAME, m2(p, OP_ADD, rows(p, p->row, 0), rows(p, p->u, 0)))

#define VIEW_PATTERNS                                                                              \
    P("reshaped twice", SAME,                                                                      \
      node_reshape(p->g, graph_name(shaped(p, p->x, 3, 4, 12), "n"), 1, (int64_t[]){144}))         \
    P("turned twice", SAME, turned(p, graph_name(turned(p, p->x), "n")))                           \
    P("turned 1 and n", SAME, turned(p, node_reshape(p->g, p->row, 2, (int64_t[]){1, 12})))        \
    P("turned rows", SAME, turned(p, rows(p, p->row, 0)))                                          \
    P("rows of rows", SAME, again_broadcast(p, rows(p, p->row, 0)))                                \
    P("a new axis of one", SAME, node_broadcast(p->g, p->x, 1, 3, (int64_t[]){1, 12, 12}))         \
    P("flipped twice", SAME, node_flip(p->g, node_flip(p->g, p->x, 1), 3))                         \
    P("flip of one", SAME, node_flip(p->g, shaped(p, p->x, 1, 12, 12), 3))                         \
    P("slice of slice", SAME, part(p, node_slice_axis(p->g, p->x, 0, 1, 5, 2), 1, 3))              \
    P("slice of pad", SAME, part(p, padded(p, p->x, 3, 2), 1, 15))                                 \
    P("slice of rows", SAME, part(p, rows(p, p->row, 0), 2, 3))                                    \
    P("slice of a part", SAME, part(p, joined(p, p->x, p->y), 14, 3))                              \
    P("pad of pad", SAME, padded(p, padded(p, p->x, 1, 2), 3, 0))                                  \
    P("concat of concat", SAME, joined(p, joined(p, p->x, p->y), p->x))                            \
    P("window of one tap", SAME, window_of_one(p))                                                 \
    P("sum over windows side by side", ZERO_SIGN, side_by_side(p, 12))                             \
    P("sum over windows that end early", ZERO_SIGN, side_by_side(p, 14))

#define FOLD_PATTERNS                                                                              \
    P("sum of ones", SAME, unit_fold(p, OP_SUM))                                                   \
    P("product of ones", SAME, unit_fold(p, OP_PROD))                                              \
    P("max of ones", SAME, unit_fold(p, OP_FMAX))                                                  \
    P("min of ones", SAME, unit_fold(p, OP_FMIN))                                                  \
    P("sum of sums", ROUNDING | CANCELS, twice(p, OP_SUM, 1, 1))                                   \
    P("product of products", ROUNDING, twice(p, OP_PROD, 1, 1))                                    \
    P("max of max", SAME, twice(p, OP_FMAX, 2, 1))                                                 \
    P("min of min", SAME, twice(p, OP_FMIN, 1, 2))                                                 \
    P("sum of rows", ROUNDING | RANGE | ZERO_SIGN, sum(p, rows(p, p->row, 0), 1))                  \
    P("max of rows", SAME, node_fold(p->g, OP_FMAX, rows(p, p->row, 0), 1))                        \
    P("min of rows", SAME, node_fold(p->g, OP_FMIN, rows(p, p->row, 0), 1))                        \
    P("sum of -x", ZERO_SIGN, sum(p, neg(p, p->y), 1))                                             \
    P("sum of x * row", ROUNDING | CANCELS | RANGE | ZERO_SIGN,                                    \
      sum(p, mul(p, p->lot, rows(p, p->row, 0)), 1))                                               \
    P("sum of x / row", ROUNDING | CANCELS | RANGE | ZERO_SIGN,                                    \
      sum(p, m2(p, OP_DIV, p->lot, rows(p, p->row, 0)), 1))                                        \
    P("sum of x * row * y", ROUNDING | CANCELS | RANGE | ZERO_SIGN,                                \
      sum(p, mul(p, mul(p, p->lot, rows(p, p->row, 0)), p->lot), 1))                               \
    /* A NaN of the scale is one of all that is summed too, which others read */                   \
    P("sum of x + (y - mean) * row", ROUNDING | CANCELS | RANGE | NUMBER | ZERO_SIGN,              \
      sum(p, m2(p, OP_ADD, p->lot, mul(p, centred(p, p->lot), rows(p, p->row, 0))), 1))            \
    P("sum of (y - mean) - x", ROUNDING | CANCELS | ZERO_SIGN,                                     \
      sum(p, m2(p, OP_SUB, centred(p, p->lot), m1(p, OP_EXP, p->lot)), 1))                         \
    P("max of x + row", RANGE, extreme(p, OP_FMAX, m2(p, OP_ADD, p->x, rows(p, p->row, 0))))       \
    P("min of max(x, 0)", ZERO_SIGN, extreme(p, OP_FMIN, m2(p, OP_MAX, p->x, num(p, 0))))          \
    P("place of the largest of one", SAME, place_of_one(p, OP_ARGMAX))                             \
    P("place of the least of one", SAME, place_of_one(p, OP_ARGMIN))                               \
    P("pool of x - row", RANGE, pool(p, m2(p, OP_SUB, p->x, rows(p, p->row, 0))))                  \
    P("pool of turned", ZERO_SIGN, pool(p, turned(p, m2(p, OP_MAX, p->x, rows(p, p->row, 1)))))    \
    P("sum of pad", SAME, sum(p, padded(p, p->y, 2, 1), 1))                                        \
    P("sum of x - scattered", ROUNDING | CANCELS | RANGE,                                          \
      sum(p, m2(p, OP_SUB, p->x, scattered(p)), 2))                                                \
    P("sum of one scattered", SAME, sum(p, scattered(p), 2))                                       \
    P("sum of a product", ROUNDING | CANCELS, sum(p, dot(p, p->lot, p->lot), 1))                   \
    P("product summed", ROUNDING | CANCELS,                                                        \
      sum(p,                                                                                       \
          mul(p, node_broadcast(p->g, p->lot, 4, 3, (int64_t[]){12, 12, 12}),                      \
              node_broadcast(p->g, p->lot, 1, 3, (int64_t[]){12, 12, 12})),                        \
          2))                                                                                      \
    P("dot of turned", SAME, dot(p, p->lot, turned(p, p->lot)))                                    \
    P("dot of rows", ROUNDING | CANCELS, dot(p, p->lot, rows(p, p->u, 1)))                         \
    P("dot along one", SAME,                                                                       \
      dot(p, node_reshape(p->g, p->u, 2, (int64_t[]){12, 1}),                                      \
          node_reshape(p->g, p->row, 2, (int64_t[]){1, 12})))                                      \
    P("outer product", ZERO_SIGN,                                                                  \
      node_contract(p->g, p->u, p->row, (int8_t[]){0}, (int8_t[]){1}, (int8_t[]){0, 1}, 2))        \
    P("dot of scaled", ROUNDING | CANCELS,                                                         \
      dot(p, part(p, p->lot, 0, 1), mul(p, p->lot, num(p, 3))))                                    \
    P("terms of scaled", ROUNDING | CANCELS, overlapping(p))                                       \
    P("lookup in repeated", SAME,                                                                  \
      node_gather(p->g, node_broadcast(p->g, p->u, 1, 2, (int64_t[]){12, 12}), p->index, 0))       \
    P("lookup in one", SAME,                                                                       \
      node_gather(p->g, node_reshape(p->g, p->u, 2, (int64_t[]){1, 12}),                           \
                  node_full(p->g, *few(p)->type, 0), 0))                                           \
    P("lookup in a map", SAME, node_gather(p->g, m1(p, OP_EXP, p->x), few(p), 0))                  \
    P("rows of a table", SAME, table(p))                                                           \
    P("scatter of one", SAME, scattered(p))

static const struct {
    const char *name;
    int may;
    bool none;
} patterns[] = {
#define P(name, may, made) {name, may, false},
#define N(name, made) {name, SAME, true},
    PATTERNS VIEW_PATTERNS FOLD_PATTERNS
#undef P
#undef N
};
enum { NPATTERN = (int)(sizeof patterns / sizeof *patterns) };

static Node *maps(Pattern *p, int number) {
    int at = 0;
#define P(name, may, made)                                                                         \
    if (at++ == number) {                                                                          \
        return made;                                                                               \
    }
#define N(name, made) P(name, SAME, made)
    PATTERNS
    number -= at;
    at = 0;
    VIEW_PATTERNS
    number -= at;
    at = 0;
    FOLD_PATTERNS
#undef P
#undef N
    return NULL;
}

/* --- data ------------------------------------------------------------------------------------- */

static Node *input(Pattern *p, Elem elem, int rank, double lo, double hi) {
    return sample_input(&p->s, type_make(elem, rank, (int64_t[]){SPECIALS, SPECIALS}), lo, hi);
}

static Region *pattern_open(Pattern *p, Arena *arena, Elem elem, int number, bool specials) {
    *p = (Pattern){.g = graph_new(arena, elem)};
    Region *region = region_new(p->g, NULL);
    graph_enter(p->g, region);
    p->s = (Sample){.g = p->g, .rng = 17, .elem = elem};
    p->x = input(p, elem, 2, 0.2, 2);
    p->y = input(p, elem, 2, -2, 2);
    p->row = input(p, elem, 1, 0.5, 2);
    p->cond = input(p, TY_BOOL, 2, 0, 2);
    p->k = input(p, TY_I32, 2, -50, 50);
    p->u = input(p, elem, 1, -2, 2);
    p->index = input(p, TY_I32, 1, 0, SPECIALS);
    p->lot = input(p, elem, 2, -2, 2);
    for (int i = 0; specials && i < SPECIALS * SPECIALS; i++) {
        p->s.data[0][i] = (double)(float)special[i / SPECIALS];
        p->s.data[1][i] = (double)(float)special[i % SPECIALS];
        p->s.data[2][i % SPECIALS] = (double)(float)special[i % SPECIALS];
    }
    region_result(region, maps(p, number));
    region_verify(region, STAGE_GRAD);
    return region;
}

/* --- one row alone ---------------------------------------------------------------------------- */

typedef struct {
    const SimplifyRow *row;
    int fired;
} Alone;

static Node *offer(void *ctx, Graph *g, const Node *n, Node *const *in) {
    Alone *a = ctx;
    bool fits = a->row->op == n->op || (a->row->op == OP_COUNT && op_info[n->op].cls == CLASS_MAP);
    Node *made = fits ? a->row->rule(g, n, in) : NULL;
    a->fired += made != NULL;
    return made;
}

static Value values(Arena *arena, const Pattern *p, const Region *region, bool round) {
    Eval *ev = eval_open(arena, (EvalOptions){.round = round});
    Value out;
    for (int k = 0; k < p->s.nslot; k++) {
        eval_bind(ev, p->s.slot[k], p->s.data[k]);
    }
    eval_region(ev, region, &out);
    return out;
}

/* How b differs from a. */
static int change(Elem elem, double a, double b) {
    if (!elem_is_float(elem)) {
        return a == b ? SAME : NUMBER;
    }
    if ((isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b))) {
        return SAME;
    }
    if (a == 0 && b == 0) {
        return ZERO_SIGN;
    }
    double gap = fabs(a - b), scale = fmax(fabs(a), fabs(b));
    if (isfinite(a) && isfinite(b)) {
        return gap <= fmax(4e-7 * scale, 0x1p-147) ? ROUNDING
               : gap <= 4e-6 && scale > 1e-3       ? CANCELS
                                                   : RANGE;
    }
    return isfinite(a) || isfinite(b) ? (isnan(a) || isnan(b) ? NUMBER : RANGE) : RANGE;
}

static int check_special(const SimplifyRow *row, int number) {
    Arena arena = {0};
    Pattern p;
    Region *before = pattern_open(&p, &arena, TY_F32, number, true);
    Alone alone = {.row = row};
    Region *after = region_rebuild(p.g, before, offer, &alone);
    Value a = values(&arena, &p, before, true), b = values(&arena, &p, after, true);
    int seen = SAME, shown = 0;
    for (int64_t i = 0; i < type_count(a.type); i++) {
        double x = value_get(a, i), y = value_get(b, i);
        int how = change(a.type.elem, x, y);
        if (how & ~patterns[number].may && shown++ < 3) {
            printf("%s: element %lld is %g, was %g\n", patterns[number].name, (long long)i, y, x);
        }
        seen |= how;
    }
    arena_free(&arena);
    return seen;
}

/* Whether the row fires on the pattern; then the values are compared on ordinary numbers. */
static bool fires(const SimplifyRow *row, int number, Elem elem) {
    Arena arena = {0};
    Pattern p;
    Region *before = pattern_open(&p, &arena, elem, number, false);
    Alone alone = {.row = row};
    Region *after = region_rebuild(p.g, before, offer, &alone);
    region_verify(after, STAGE_GRAD);
    if (alone.fired && elem == TY_F64) {
        Value a = values(&arena, &p, before, false), b = values(&arena, &p, after, false);
        assert_true(type_equal(a.type, b.type));
        for (int64_t i = 0; i < type_count(a.type); i++) {
            double x = value_get(a, i), y = value_get(b, i);
            if (!(fabs(x - y) <= 1e-13 * (1 + fabs(x)))) {
                fail_msg("%s: element %lld is %.17g, was %.17g", patterns[number].name,
                         (long long)i, y, x);
            }
        }
    }
    arena_free(&arena);
    return alone.fired > 0;
}

static void test_rules(void **state) {
    (void)state;
    static const SimplifyRow *const tables[] = {simplify_maps, simplify_views, simplify_folds,
                                                simplify_late};
    static const char *const names[] = {"maps", "views", "folds", "late"};
    bool fired[NPATTERN] = {false};
    int bad = 0, row_count = 0, pairs = 0;
    for (int t = 0; t < 4; t++) {
        for (int r = 0; tables[t][r].rule; r++, row_count++) {
            bool any = false;
            for (int k = 0; k < NPATTERN; k++) {
                if (fires(&tables[t][r], k, patterns[k].none ? TY_F32 : TY_F64)) {
                    int seen = check_special(&tables[t][r], k);
                    any = fired[k] = true;
                    pairs++;
                    bad += (seen & ~patterns[k].may) != 0;
                }
            }
            if (!any) {
                printf("no pattern fires row %d of %s\n", r, names[t]);
                bad++;
            }
        }
    }
    for (int k = 0; k < NPATTERN; k++) {
        if (fired[k] == patterns[k].none) {
            printf("'%s' fires %s\n", patterns[k].name, fired[k] ? "a rule" : "nothing");
            bad++;
        }
    }
    printf("%d rules, %d patterns, %d pairs that fire\n", row_count, NPATTERN, pairs);
    assert_int_equal(bad, 0);
}

/* A rule that is wrong where x is not finite: x * c is 0. */
static Node *wrong_rule(Graph *g, const Node *n, Node *const *in) {
    return in[1]->op == OP_BROADCAST ? node_full(g, *n->type, 0) : NULL;
}

static void test_a_wrong_rule(void **state) {
    (void)state;
    static const SimplifyRow wrong = {OP_MUL, wrong_rule};
    int number = 0;
    while (strcmp(patterns[number].name, "x * 1") != 0) {
        assert_true(++number < NPATTERN);
    }
    printf("what follows is meant:\n");
    assert_int_equal(check_special(&wrong, number) & (NUMBER | RANGE), NUMBER | RANGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_a_wrong_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
