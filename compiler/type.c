/* type: facts about element types, and shapes by value.
 *
 * One table row per element type; everything else is arithmetic on a Type. Needs nothing, gives
 * answers, changes no values. */
#include "compiler/type.h"

#include "compiler/base.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum { CLASS_NONE, CLASS_BOOL, CLASS_INT, CLASS_UINT, CLASS_FLOAT } ElemClass;

typedef struct {
    const char *name, *c_name;
    size_t bytes;
    ElemClass class;
} ElemRow;

/* f16 and bf16 are 16-bit patterns in C; the runtime converts. */
static const ElemRow table[TY_COUNT] = {
    [TY_ERROR] = {"error", NULL, 0, CLASS_NONE},
    [TY_BOOL] = {"bool", "uint8_t", 1, CLASS_BOOL},
    [TY_I8] = {"i8", "int8_t", 1, CLASS_INT},
    [TY_I16] = {"i16", "int16_t", 2, CLASS_INT},
    [TY_I32] = {"i32", "int32_t", 4, CLASS_INT},
    [TY_I64] = {"i64", "int64_t", 8, CLASS_INT},
    [TY_U8] = {"u8", "uint8_t", 1, CLASS_UINT},
    [TY_U16] = {"u16", "uint16_t", 2, CLASS_UINT},
    [TY_U32] = {"u32", "uint32_t", 4, CLASS_UINT},
    [TY_F16] = {"f16", "uint16_t", 2, CLASS_FLOAT},
    [TY_BF16] = {"bf16", "uint16_t", 2, CLASS_FLOAT},
    [TY_F32] = {"f32", "float", 4, CLASS_FLOAT},
    [TY_F64] = {"f64", "double", 8, CLASS_FLOAT},
    [TY_TUPLE] = {"tuple", NULL, 0, CLASS_NONE},
};

static const ElemRow *elem_row(Elem elem) {
    if ((unsigned)elem >= TY_COUNT)
        BUG("no element type %d", (int)elem);
    return &table[elem];
}

Type type_make(Elem elem, int rank, const int64_t *dim) {
    if (rank < 0 || rank > MD_RANK)
        BUG("rank %d is outside 0..%d", rank, MD_RANK);
    Type t = {.elem = elem, .rank = rank, .dim = {0}};
    for (int i = 0; i < rank; i++)
        t.dim[i] = dim[i];
    return t;
}

Type type_scalar(Elem elem) {
    return type_make(elem, 0, NULL);
}

bool type_same_shape(Type a, Type b) {
    return a.rank == b.rank && memcmp(a.dim, b.dim, sizeof a.dim) == 0;
}

bool type_equal(Type a, Type b) {
    return a.elem == b.elem && type_same_shape(a, b);
}

int64_t type_count(Type t) {
    int64_t n = 1;
    for (int i = 0; i < t.rank; i++)
        n *= t.dim[i];
    return n;
}

int64_t type_bytes(Type t) {
    return type_count(t) * (int64_t)elem_bytes(t.elem);
}

size_t elem_bytes(Elem elem) {
    return elem_row(elem)->bytes;
}

bool elem_is_half(Elem elem) {
    return elem == TY_F16 || elem == TY_BF16;
}

Elem elem_computed(Elem storage) {
    return elem_is_half(storage) ? TY_F32 : storage;
}

bool elem_is_float(Elem elem) {
    return elem_row(elem)->class == CLASS_FLOAT;
}

bool elem_is_int(Elem elem) {
    return elem_row(elem)->class == CLASS_INT || elem_row(elem)->class == CLASS_UINT;
}

bool elem_is_signed(Elem elem) {
    return elem_row(elem)->class == CLASS_INT || elem_row(elem)->class == CLASS_FLOAT;
}

void elem_range(Elem elem, int64_t *least, int64_t *most) {
    int64_t bits = elem == TY_BOOL ? 1 : 8 * (int64_t)elem_bytes(elem) - elem_is_signed(elem);
    *most = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
    *least = elem_is_signed(elem) ? -*most - 1 : 0;
}

bool elem_holds(Elem elem, double x) {
    if (elem_is_float(elem)) {
        return !isfinite(x) || isfinite(num_round(elem, x));
    }
    int64_t least, most;
    elem_range(elem, &least, &most);
    return fabs(x) <= 9007199254740992.0 && x == floor(x) && x >= (double)least &&
           x <= (double)most;
}

const char *elem_name(Elem elem) {
    return elem_row(elem)->name;
}

const char *elem_c_name(Elem elem) {
    const char *name = elem_row(elem)->c_name;
    if (!name)
        BUG("'%s' has no C type", elem_name(elem));
    return name;
}

bool elem_from_name(const char *name, Elem *elem) {
    for (int i = 0; i < TY_COUNT; i++) {
        if (table[i].class != CLASS_NONE && str_eq(table[i].name, name)) {
            *elem = (Elem)i;
            return true;
        }
    }
    return false;
}

int64_t num_wrap(Elem elem, int64_t x) {
    switch (elem) {
    case TY_BOOL: return x != 0;
    case TY_I8: return (int8_t)(uint64_t)x;
    case TY_I16: return (int16_t)(uint64_t)x;
    case TY_I32: return (int32_t)(uint64_t)x;
    case TY_U8: return (uint8_t)(uint64_t)x;
    case TY_U16: return (uint16_t)(uint64_t)x;
    case TY_U32: return (uint32_t)(uint64_t)x;
    default: return x;
    }
}

/* The distance of floats around x with `bits` of significand; `least` is the exponent of the
 * smallest normal. */
static double unit_of(double x, int bits, int least) {
    int e;
    frexp(x, &e);
    return ldexp(1, (e - 1 < least ? least + 1 : e) - bits);
}

/* Rounds to `bits` of significand, ties to even. */
static double round_to(double x, int bits, int least, double largest) {
    if (x == 0 || !isfinite(x)) {
        return x;
    }
    double unit = unit_of(x, bits, least);
    double y = rint(x / unit) * unit;
    return fabs(y) > largest ? copysign(INFINITY, y) : y;
}

static const double most_bf16 = 0x1.FEp127;

double num_round(Elem elem, double x) {
    switch (elem) {
    case TY_F32: return (double)(float)x;
    case TY_F16: return round_to(x, 11, -14, 65504);
    case TY_BF16: return round_to(x, 8, -126, most_bf16);
    default: return x;
    }
}

double num_round_drawn(Elem elem, double x, double draw) {
    if (elem != TY_BF16) {
        BUG("draws round to bf16, not to %s", elem_name(elem));
    }
    if (x == 0 || !isfinite(x)) {
        return x;
    }
    /* As on bits: the 16 that go are those of a float; as many of the draw are added to them. */
    double unit = unit_of(x, 8, -126), part = floor(draw * 65536) / 65536;
    double y = copysign(floor(fabs(x) / unit + part) * unit, x);
    return fabs(y) > most_bf16 ? copysign(INFINITY, y) : y;
}
