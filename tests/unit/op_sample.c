#include "op_sample.h"

#include "op_sample_loop.h"

#include <math.h>
#include <string.h>

/* --- numbers ---------------------------------------------------------------------------------- */

static uint64_t bits(Sample *s) {
    uint64_t x = s->rng += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

double sample_uniform(Sample *s, double lo, double hi) {
    return lo + (hi - lo) * (double)(bits(s) >> 11) * 0x1p-53;
}

int64_t sample_below(Sample *s, int64_t n) {
    return (int64_t)(bits(s) % (uint64_t)n);
}

static Node *slot_of(Sample *s, Type type, double *data) {
    if (s->nslot == SAMPLE_SLOTS) {
        BUG("too many slots in a sample");
    }
    Slot *slot = ARENA_NEW(s->g->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = str_printf(s->g->arena, "x%d", s->nslot);
    slot->c_name = slot->file_name = slot->name;
    slot->type = type;
    slot->loc = LOC_NONE;
    slot->index = -1;
    for (int64_t i = 0, n = type_count(type); i < n && type.elem == TY_F32; i++) {
        data[i] = (double)(float)data[i];
    }
    s->slot[s->nslot] = slot;
    s->data[s->nslot++] = data;
    return node_slot(s->g, slot);
}

static double *numbers(Sample *s, Type type, double lo, double hi) {
    int64_t n = type_count(type);
    double *data = ARENA_ARRAY(s->g->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        double x = sample_uniform(s, lo, hi);
        data[i] = elem_is_float(type.elem) ? x : floor(x);
    }
    return data;
}

Node *sample_input(Sample *s, Type type, double lo, double hi) {
    return slot_of(s, type, numbers(s, type, lo, hi));
}

Node *sample_table(Sample *s, Type type, double lo, double hi) {
    return node_table(s->g, type, numbers(s, type, lo, hi));
}

Node *sample_distinct(Sample *s, Type type) {
    int64_t n = type_count(type);
    double *data = ARENA_ARRAY(s->g->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = sample_below(s, i + 1);
        data[i] = data[j];
        data[j] = 0.2 * (double)(i - n / 2);
    }
    for (int64_t i = 0; i < n; i++) {
        data[i] += sample_uniform(s, 0.02, 0.08);
    }
    return slot_of(s, type, data);
}

/* --- shapes ----------------------------------------------------------------------------------- */

static const Type shapes[] = {
    {.rank = 2, .dim = {3, 5}}, {.rank = 0},
    {.rank = 1, .dim = {7}},    {.rank = 3, .dim = {2, 1, 11}},
    {.rank = 1, .dim = {1}},    {.rank = 4, .dim = {2, 3, 1, 5}},
};
enum { NSHAPES = (int)(sizeof shapes / sizeof *shapes) };

static Type shaped(int which, Elem elem) {
    Type t = shapes[which % NSHAPES];
    t.elem = elem;
    return t;
}

static Type dims2(Elem elem, int64_t a, int64_t b) {
    return type_make(elem, 2, (int64_t[]){a, b});
}

static Type dims3(Elem elem, int64_t a, int64_t b, int64_t c) {
    return type_make(elem, 3, (int64_t[]){a, b, c});
}

static Node *apply(Sample *s, OpCode op, Node *const *in, int nin) {
    return graph_add(s->g, op, in, nin, NULL, type_scalar(TY_ERROR));
}

typedef struct {
    Sample *s;
    OpCode op;
    int variant;
} Want;

static Node *sample_none(const Want *w) {
    (void)w;
    return NULL;
}

static Node *sample_iota(const Want *w) {
    Type t = dims3(w->variant == 3 ? TY_I64 : TY_I32, 3, 1, 5);
    return w->variant < 4 ? node_iota(w->s->g, t, w->variant % 3) : NULL;
}

/* --- views ------------------------------------------------------------------------------------ */

static Node *sample_reshape(const Want *w) {
    static const Type to[] = {{.rank = 2, .dim = {4, 6}},
                              {.rank = 1, .dim = {24}},
                              {.rank = 4, .dim = {2, 1, 2, 6}},
                              {.rank = 3, .dim = {3, 8, 1}}};
    if (w->variant >= 4) {
        return NULL;
    }
    Node *x = sample_input(w->s, dims3(w->s->elem, 2, 3, 4), -1, 1);
    return node_reshape(w->s->g, x, to[w->variant].rank, to[w->variant].dim);
}

static Node *sample_permute(const Want *w) {
    static const int map[][3] = {{1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}};
    if (w->variant >= 4) {
        return NULL;
    }
    return node_permute(w->s->g, sample_input(w->s, dims3(w->s->elem, 2, 3, 5), -1, 1),
                        map[w->variant]);
}

static Node *sample_slice(const Want *w) {
    static const int64_t lo[][2] = {{1, 0}, {0, 2}, {0, 1}, {2, 6}, {1, 0}};
    static const int64_t extent[][2] = {{2, 7}, {3, 1}, {2, 3}, {1, 1}, {2, 3}};
    static const int64_t step[][2] = {{1, 1}, {1, 1}, {2, 2}, {1, 1}, {1, 3}};
    if (w->variant >= 5) {
        return NULL;
    }
    Node *x = sample_input(w->s, dims2(w->s->elem, 3, 7), -1, 1);
    return node_slice(w->s->g, x, lo[w->variant], extent[w->variant], step[w->variant]);
}

static Node *sample_pad(const Want *w) {
    static const struct {
        int64_t lo[2], hi[2];
        Border border;
    } pads[] = {
        {{1, 0}, {0, 2}, BORDER_VALUE}, {{0, 2}, {1, 0}, BORDER_VALUE},
        {{1, 1}, {1, 2}, BORDER_EDGE},  {{2, 3}, {0, 1}, BORDER_WRAP},
        {{1, 2}, {3, 1}, BORDER_EDGE},  {{7, 0}, {0, 5}, BORDER_WRAP},
        {{9, 0}, {0, 17}, BORDER_EDGE}, {{0, 21}, {10, 0}, BORDER_WRAP},
        {{0, 13}, {0, 5}, BORDER_WRAP},
    };
    if (w->variant >= (int)(sizeof pads / sizeof *pads)) {
        return NULL;
    }
    Node *x = sample_input(w->s, dims2(w->s->elem, 3, 5), -1, 1);
    return node_pad(w->s->g, x, pads[w->variant].lo, pads[w->variant].hi, pads[w->variant].border,
                    w->variant == 1 ? 1.5 : 0);
}

static Node *sample_broadcast(const Want *w) {
    static const int64_t dim[] = {2, 5, 3};
    static const uint32_t axes[] = {1, 2, 4, 5, 3, 7};
    if (w->variant >= 6) {
        return NULL;
    }
    Type t = {.elem = w->s->elem};
    for (int i = 0; i < 3; i++) {
        if (!(axes[w->variant] >> i & 1)) {
            t.dim[t.rank++] = dim[i];
        }
    }
    return node_broadcast(w->s->g, sample_input(w->s, t, -1, 1), axes[w->variant], 3, dim);
}

static Node *sample_flip(const Want *w) {
    static const uint32_t axes[] = {1, 2, 4, 5};
    return w->variant < 4
               ? node_flip(w->s->g, sample_input(w->s, dims3(w->s->elem, 2, 3, 5), -1, 1),
                           axes[w->variant])
               : NULL;
}

typedef struct {
    int64_t n, s, d, p, count, taps;
    Border border;
    double value;
} WindowCase;

static const WindowCase windows[] = {
    {7, 1, 1, 0, 5, 3, BORDER_NONE, 0},    {7, 2, 1, 1, 4, 3, BORDER_VALUE, 0},
    {7, 1, 2, 2, 7, 3, BORDER_EDGE, 0},    {5, 1, 1, 3, 6, 4, BORDER_WRAP, 0},
    {5, 1, -1, -2, 5, 3, BORDER_VALUE, 0}, {8, 2, 1, 0, 4, 2, BORDER_NONE, 0},
    {1, 1, 1, 1, 1, 3, BORDER_EDGE, 0},    {4, 3, 2, 4, 3, 2, BORDER_VALUE, 0},
    {6, 1, 1, 1, 6, 3, BORDER_VALUE, -2},  {3, 2, -3, 9, 14, 2, BORDER_WRAP, 0},
    {1, 1, 2, 6, 9, 3, BORDER_EDGE, 0},    {2, -1, 1, -4, 3, 2, BORDER_EDGE, 0},
};
enum { NWINDOWS = (int)(sizeof windows / sizeof *windows) };

static Node *sample_window(const Want *w) {
    if (w->variant >= NWINDOWS) {
        return NULL;
    }
    const WindowCase *c = &windows[w->variant];
    int axis = w->variant % 3;
    Type t = dims3(w->s->elem, 2, 3, 2);
    t.dim[axis] = c->n;
    Node *x = sample_input(w->s, t, -1, 1);
    return node_window(w->s->g, x, axis, c->s, c->d, c->p, c->count, c->taps, c->border, c->value);
}

static Node *sample_overlap_add(const Want *w) {
    if (w->variant >= NWINDOWS) {
        return NULL;
    }
    const WindowCase *c = &windows[w->variant];
    int axis = w->variant % 3;
    Attr a = {.axis = axis,
              .s = c->s,
              .d = c->d,
              .p = c->p,
              .count = c->count,
              .taps = c->taps,
              .taps_n = c->n,
              .border = c->border == BORDER_NONE ? BORDER_NONE : BORDER_VALUE};
    Type t = type_make(w->s->elem, 4, (int64_t[]){2, 3, 2, 2});
    t.dim[axis] = c->count;
    t.dim[axis + 1] = c->taps;
    return node_overlap_add(w->s->g, sample_input(w->s, t, -1, 1), &a);
}

static Node *sample_concat(const Want *w) {
    if (w->variant >= 4) {
        return NULL;
    }
    int axis = w->variant % 3, nin = w->variant == 3 ? 2 : 3;
    Node *in[3];
    for (int k = 0; k < nin; k++) {
        Type t = dims3(w->s->elem, 2, 3, 1);
        t.dim[axis] = k + 1;
        in[k] = sample_input(w->s, t, -1, 1);
    }
    return node_concat(w->s->g, in, nin, axis);
}

/* --- maps ------------------------------------------------------------------------------------- */

static const Elem ints[] = {TY_I32, TY_I64, TY_U8, TY_I16};
enum { NINTS = (int)(sizeof ints / sizeof *ints) };

/* Numbers of both signs, none within 0.1 of zero. */
static Node *off_zero(Sample *s, Type type, double hi) {
    double *data = numbers(s, type, 0.1, hi);
    for (int64_t i = 0, n = type_count(type); i < n; i++) {
        data[i] = bits(s) & 1 ? data[i] : -data[i];
    }
    return slot_of(s, type, data);
}

/* The second operand differs from the first by 0.1 or more, unless the op has no derivative. */
static Node *sample_num2(const Want *w) {
    Sample *s = w->s;
    Node *in[2];
    if (w->variant >= NSHAPES + NINTS) {
        return NULL;
    }
    if (w->variant >= NSHAPES) {
        Type t = dims2(ints[w->variant - NSHAPES], 3, 7);
        in[0] = sample_input(s, t, 0, 100);
        in[1] = sample_input(s, t, 0, 100);
        return apply(s, w->op, in, 2);
    }
    Type t = shaped(w->variant, s->elem);
    bool ties = w->op == OP_EQ || w->op == OP_LE || w->op == OP_LT;
    in[0] = sample_input(s, t, -2, 2);
    const double *a = s->data[s->nslot - 1];
    double *b = ARENA_ARRAY(s->g->arena, double, type_count(t));
    for (int64_t i = 0, n = type_count(t); i < n; i++) {
        double gap = sample_uniform(s, 0.1, 2);
        b[i] = ties && i % 3 == 0 ? a[i] : bits(s) & 1 ? a[i] + gap : a[i] - gap;
    }
    in[1] = slot_of(s, t, b);
    return apply(s, w->op, in, 2);
}

static Node *sample_num1(const Want *w) {
    if (w->variant >= NSHAPES + NINTS) {
        return NULL;
    }
    Node *x = w->variant < NSHAPES
                  ? off_zero(w->s, shaped(w->variant, w->s->elem), 2)
                  : sample_input(w->s, dims2(ints[w->variant - NSHAPES], 3, 7), 0, 100);
    return apply(w->s, w->op, &x, 1);
}

static Node *sample_real3(const Want *w) {
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    Type t = shaped(w->variant, w->s->elem);
    Node *in[3];
    for (int k = 0; k < 3; k++) {
        in[k] = sample_input(w->s, t, -2, 2);
    }
    return apply(w->s, w->op, in, 3);
}

static Node *sample_real2_nonzero(const Want *w) {
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    Type t = shaped(w->variant, w->s->elem);
    Node *in[2] = {sample_input(w->s, t, -2, 2), off_zero(w->s, t, 2)};
    return apply(w->s, w->op, in, 2);
}

static Node *sample_int2(const Want *w) {
    if (w->variant >= NINTS) {
        return NULL;
    }
    Type t = dims2(ints[w->variant], 5, 7);
    double lo = elem_is_signed(t.elem) ? -50 : 0;
    Node *in[2] = {sample_input(w->s, t, lo, 50), sample_input(w->s, t, lo / 10, 5)};
    return apply(w->s, w->op, in, 2);
}

static Node *unary(const Want *w, double lo, double hi) {
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    Node *x = sample_input(w->s, shaped(w->variant, w->s->elem), lo, hi);
    return apply(w->s, w->op, &x, 1);
}

static Node *sample_real1(const Want *w) {
    return unary(w, -2, 2);
}
/* In 16 bits there is no f64, and no difference quotient shows the derivative. */
static Node *sample_half1(const Want *w) {
    return w->s->elem == TY_F32 ? unary(w, -300, 300) : NULL;
}
/* Draws in front of and behind the parts that they are held against, too. */
static Node *sample_drawn2(const Want *w) {
    if (w->variant >= NSHAPES || w->s->elem != TY_F32) {
        return NULL;
    }
    Type t = shaped(w->variant, w->s->elem);
    Node *in[2] = {sample_input(w->s, t, -300, 300), sample_input(w->s, t, 0, 0.999)};
    return apply(w->s, w->op, in, 2);
}
static Node *sample_inside1(const Want *w) {
    return unary(w, -0.8, 0.8);
}
static Node *sample_positive1(const Want *w) {
    return unary(w, 0.2, 3);
}

/* Bases are positive under any exponent, of both signs or 0 under constants that allow it; every
 * third exponent is 0. */
static Node *sample_pow(const Want *w) {
    static const double exponent[] = {2, 0.5, -1, 3, 1, 0};
    Sample *s = w->s;
    if (w->variant < NSHAPES) {
        Type t = shaped(w->variant, s->elem);
        Node *in[2] = {sample_input(s, t, 0.2, 3), sample_input(s, t, -2, 2)};
        for (int64_t i = 2; i < type_count(t); i += 3) {
            s->data[1][i] = 0;
        }
        return apply(s, OP_POW, in, 2);
    }
    int k = w->variant - NSHAPES;
    if (k >= 6) {
        return NULL;
    }
    Type t = dims2(s->elem, 3, 5);
    Node *x = exponent[k] == 0.5 ? sample_input(s, t, 0.2, 3) : off_zero(s, t, 2);
    for (int64_t i = 2; exponent[k] >= 0 && exponent[k] != 0.5 && i < type_count(t); i += 3) {
        s->data[0][i] = 0;
    }
    return node_map2(s->g, OP_POW, x, node_const(s->g, s->elem, exponent[k]));
}

static Node *sample_select(const Want *w) {
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    Type t = shaped(w->variant, w->s->elem);
    Node *in[3] = {sample_input(w->s, shaped(w->variant, TY_BOOL), 0, 2),
                   sample_input(w->s, t, -1, 1), sample_input(w->s, t, -1, 1)};
    return apply(w->s, OP_SELECT, in, 3);
}

static Node *sample_bool2(const Want *w) {
    Node *in[2];
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    in[0] = sample_input(w->s, shaped(w->variant, TY_BOOL), 0, 2);
    in[1] = sample_input(w->s, shaped(w->variant, TY_BOOL), 0, 2);
    return apply(w->s, w->op, in, 2);
}

static Node *sample_bool1(const Want *w) {
    if (w->variant >= NSHAPES) {
        return NULL;
    }
    Node *x = sample_input(w->s, shaped(w->variant, TY_BOOL), 0, 2);
    return apply(w->s, w->op, &x, 1);
}

static Node *sample_any1(const Want *w) {
    Want later = *w;
    later.variant -= NSHAPES + NINTS;
    return later.variant < 0 ? sample_num1(w) : sample_bool1(&later);
}

static Node *sample_cast(const Want *w) {
    static const Elem from[] = {TY_F32, TY_F64, TY_I32, TY_F32, TY_BOOL, TY_F64, TY_I64, TY_U8};
    static const Elem to[] = {TY_F64, TY_F32, TY_F32, TY_I32, TY_F32, TY_BOOL, TY_U8, TY_I32};
    if (w->variant >= 8) {
        return NULL;
    }
    Elem a = from[w->variant];
    double hi = a == TY_BOOL ? 2 : 90;
    return node_cast(w->s->g, sample_input(w->s, dims2(a, 3, 7), elem_is_signed(a) ? -hi : 0, hi),
                     to[w->variant]);
}

static Node *sample_random(const Want *w) {
    static const Dist dist[] = {DIST_UNIFORM, DIST_NORMAL, DIST_BITS, DIST_UNIFORM, DIST_NORMAL};
    Sample *s = w->s;
    if (w->variant >= 5) {
        return NULL;
    }
    Type scalar = type_scalar(TY_I64);
    Node *key[4];
    int nkey = 2 + w->variant % 3;
    for (int k = 0; k < nkey; k++) {
        key[k] = sample_input(s, scalar, 0, 1e9);
    }
    Elem elem = dist[w->variant] == DIST_BITS ? TY_U32 : w->variant >= 3 ? TY_F64 : s->elem;
    return node_random(s->g, dist[w->variant], 0x1234567890abcdef + (uint64_t)w->variant, key, nkey,
                       dims2(elem, 5, 7));
}

/* --- folds ------------------------------------------------------------------------------------ */

static Node *sample_fold(const Want *w) {
    static const uint32_t axes[] = {4, 1, 2, 7, 5, 8 | 1, 3};
    static const Type types[] = {{.rank = 3, .dim = {2, 3, 5}}, {.rank = 1, .dim = {13}},
                                 {.rank = 3, .dim = {3, 7, 2}}, {.rank = 3, .dim = {2, 3, 4}},
                                 {.rank = 3, .dim = {3, 1, 2}}, {.rank = 4, .dim = {2, 2, 1, 3}},
                                 {.rank = 2, .dim = {1, 1}}};
    if (w->variant >= 8) {
        return NULL;
    }
    if (w->variant == 7) {
        return node_fold(w->s->g, w->op, sample_input(w->s, dims2(TY_I32, 3, 5), -5, 6), 2);
    }
    Type t = types[w->variant];
    t.elem = w->s->elem;
    Node *x =
        w->op == OP_PROD || w->op == OP_SUM ? off_zero(w->s, t, 1.5) : sample_distinct(w->s, t);
    return node_fold(w->s->g, w->op, x, axes[w->variant]);
}

static Node *sample_argfold(const Want *w) {
    if (w->variant >= 4) {
        return NULL;
    }
    Type t = dims3(w->s->elem, 3, w->variant == 3 ? 1 : 7, 2);
    return node_argfold(w->s->g, w->op, sample_distinct(w->s, t), w->variant % 3);
}

static Node *sample_cumsum(const Want *w) {
    if (w->variant >= 8) {
        return NULL;
    }
    Node *x = sample_input(w->s, dims3(w->s->elem, 3, w->variant == 7 ? 1 : 5, 2), -1, 1);
    return node_cumsum(w->s->g, x, w->variant < 4 ? 1 : w->variant % 3, w->variant & 1,
                       w->variant >> 1 & 1);
}

/* --- calls ------------------------------------------------------------------------------------ */

typedef struct {
    const char *a, *b, *out; /* letters are labels */
} ContractCase;

static const ContractCase contracts[] = {
    {"ik", "kj", "ij"}, {"ki", "jk", "ij"},       {"bik", "bjk", "bij"}, {"i", "j", "ij"},
    {"k", "k", ""},     {"bhik", "bkhj", "bijh"}, {"ikl", "lkj", "ji"},  {"ij", "ij", "ij"},
    {"abk", "k", "ba"}, {"bk", "bk", "b"},        {"ixk", "kxj", "xji"},
};
enum { NCONTRACTS = (int)(sizeof contracts / sizeof *contracts) };

static int64_t extent_of(int letter) {
    static const int64_t extent[26] = {['a' - 'a'] = 3, ['b' - 'a'] = 2, ['h' - 'a'] = 1,
                                       ['i' - 'a'] = 5, ['j' - 'a'] = 7, ['k' - 'a'] = 11,
                                       ['l' - 'a'] = 3, ['x' - 'a'] = 2};
    return extent[letter - 'a'];
}

static Node *sample_contract(const Want *w) {
    if (w->variant >= NCONTRACTS) {
        return NULL;
    }
    const ContractCase *c = &contracts[w->variant];
    const char *text[3] = {c->a, c->b, c->out};
    int8_t label[3][MD_RANK], number[26];
    int nlabel = 0;
    memset(number, -1, sizeof number);
    Node *in[2];
    for (int k = 0; k < 3; k++) {
        Type t = {.elem = w->s->elem};
        for (const char *p = text[k]; *p; p++) {
            int8_t *n = &number[*p - 'a'];
            *n = *n < 0 ? (int8_t)nlabel++ : *n;
            label[k][t.rank] = *n;
            t.dim[t.rank++] = extent_of(*p);
        }
        if (k < 2) {
            in[k] = sample_input(w->s, t, -1, 1);
        }
    }
    return node_contract(w->s->g, in[0], in[1], label[0], label[1], label[2], (int)strlen(c->out));
}

static const Type gather_x[] = {{.rank = 2, .dim = {7, 3}},
                                {.rank = 1, .dim = {5}},
                                {.rank = 2, .dim = {3, 5}},
                                {.rank = 4, .dim = {2, 3, 7, 2}},
                                {.rank = 2, .dim = {1, 1}}};
static const Type gather_i[] = {{.rank = 2, .dim = {2, 5}},
                                {.rank = 0},
                                {.rank = 1, .dim = {3}},
                                {.rank = 3, .dim = {2, 3, 1}},
                                {.rank = 1, .dim = {11}}};
static const int gather_batch[] = {0, 0, 1, 2, 0};
static const Elem gather_elem[] = {TY_I32, TY_I64, TY_U8, TY_I32, TY_U16};

static Node *gather_index(Sample *s, int which) {
    Type t = gather_i[which];
    t.elem = gather_elem[which];
    Node *index = sample_input(s, t, 0, (double)gather_x[which].dim[gather_batch[which]]);
    s->slot[s->nslot - 1]->lo = 0;
    s->slot[s->nslot - 1]->hi = gather_x[which].dim[gather_batch[which]];
    return index;
}

static Node *sample_gather(const Want *w) {
    if (w->variant >= 5) {
        return NULL;
    }
    Type t = gather_x[w->variant];
    t.elem = w->s->elem;
    Node *x = sample_input(w->s, t, -1, 1);
    return node_gather(w->s->g, x, gather_index(w->s, w->variant), gather_batch[w->variant]);
}

static Node *sample_scatter_add(const Want *w) {
    if (w->variant >= 5) {
        return NULL;
    }
    int batch = gather_batch[w->variant];
    Type to = gather_x[w->variant], u = gather_i[w->variant];
    for (int i = batch + 1; i < to.rank; i++) {
        u.dim[u.rank++] = to.dim[i];
    }
    to.elem = u.elem = w->s->elem;
    Node *x = sample_input(w->s, u, -1, 1);
    return node_scatter_add(w->s->g, x, gather_index(w->s, w->variant), batch, to);
}

/* Lines of each way of runtime/sort.h, of floats without ties and of integers with many. */
static Node *sample_order(const Want *w) {
    static const struct {
        int64_t lines, n, most;
        Elem elem; /* TY_ERROR: that of the sample */
    } of[] = {{3, 7, 7, TY_ERROR},     {2, 1, 1, TY_ERROR},   {3, 30, 30, TY_I32},
              {2, 150, 150, TY_U8},    {2, 200, 3, TY_ERROR}, {2, 600, 20, TY_I64},
              {3, 150, 150, TY_ERROR}, {1, 40, 39, TY_I16}};
    int k = w->variant;
    if (k >= (int)(sizeof of / sizeof *of)) {
        return NULL;
    }
    bool is_int = of[k].elem != TY_ERROR, sign = is_int && elem_is_signed(of[k].elem);
    Type t = dims3(is_int ? of[k].elem : w->s->elem, 1, of[k].lines, of[k].n);
    Node *x = is_int ? sample_input(w->s, t, sign ? -40 : 0, 40) : sample_distinct(w->s, t);
    return node_places(w->s->g, x, k & 1, of[k].most);
}

/* --- loops ------------------------------------------------------------------------------------ */

static Node *sample_loop(const Want *w) {
    return sample_loop_build(w->s, w->variant);
}

/* --- marks ------------------------------------------------------------------------------------ */

static Node *times(Graph *g, Node *a, Node *b) {
    return node_map2(g, OP_MUL, a, b);
}

/* a * sin(b), cut off from both, with the derivative written out; or only that of b, where a is an
 * integer. */
static Node *sample_custom(const Want *w) {
    Sample *s = w->s;
    Graph *g = s->g;
    if (w->variant >= 2 * NSHAPES) {
        return NULL;
    }
    Type t = shaped(w->variant, s->elem), it = t;
    bool whole = w->variant >= NSHAPES;
    it.elem = whole ? TY_I32 : t.elem;
    Node *arg[2] = {sample_input(s, it, -3, 3), sample_input(s, t, -2, 2)};
    Node *value = times(g, node_cast(g, arg[0], t.elem), node_map1(g, OP_SIN, arg[1]));
    Region *body = region_new(g, g->region), *before = graph_enter(g, body);
    Node *a = region_param(body, it), *b = region_param(body, t), *u = region_param(body, t);
    Node *to_a = whole ? node_full(g, it, 0) : times(g, u, node_map1(g, OP_SIN, b));
    region_result(body, to_a);
    region_result(body, times(g, u, times(g, node_cast(g, a, t.elem), node_map1(g, OP_COS, b))));
    graph_leave(g, before);
    return node_custom(g, node_stop(g, value), arg, 2, body);
}

/* --- the table -------------------------------------------------------------------------------- */

typedef Node *(*SampleRule)(const Want *w);
static const SampleRule rules[OP_COUNT] = {
#define OP(NAME, name, nin, cls, shape, eval, vjp, lower, made, sample, cost, spelling)            \
    [OP_##NAME] = sample_##sample,
#include "compiler/op.def"
#undef OP
};

Node *sample_build(Sample *s, OpCode op, int variant) {
    s->nslot = 0;
    Want w = {s, op, variant};
    return rules[op](&w);
}
