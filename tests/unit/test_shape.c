/* Every rule of compiler/shape.c at its borders: operands and attributes that just fit, and their
 * type, beside those that just do not, and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "compiler/graph.h"
#include "compiler/shape.h"

enum { MOST = 6 };

/* "f32[2, 3]" as "f32[2,3]"; the text behind it. */
static const char *read_type(const char *text, Type *type) {
    char name[16];
    int n = 0;
    size_t length = strcspn(text, "[ ");
    assert_true(length < sizeof name);
    memcpy(name, text, length);
    name[length] = '\0';
    *type = type_scalar(TY_ERROR);
    assert_true(elem_from_name(name, &type->elem));
    text += length;
    while (*text == '[' || *text == ',') {
        long long dim;
        assert_int_equal(sscanf(text + 1, "%lld%n", &dim, &n), 1);
        type->dim[type->rank++] = dim;
        text += 1 + n;
    }
    text += *text == ']';
    return text + strspn(text, " ");
}

typedef struct {
    OpCode op;
    const char *in, *given, *want; /* a type, "!" and the fault, or "": any type */
    Attr attr;
} Row;

static const double numbers[2] = {1, 2};

static const Row rows[] = {
    /* leaves */
    {OP_CONST, "", "f32", "f32", {0}},
    {OP_CONST, "", "f32[1]", "!a constant is a scalar", {0}},
    {OP_CONST, "f32", "f32", "!operand count", {0}},
    {OP_TABLE, "", "f32[2]", "f32[2]", {.data = numbers}},
    {OP_TABLE, "", "f32[2]", "!a table has data", {0}},
    {OP_SLOT, "", "f32[2]", "!a slot node names its slot", {0}},
    {OP_IOTA, "", "i32[2,3]", "i32[2,3]", {.axis = 1}},
    {OP_IOTA, "", "i32[2,3]", "!axis out of range", {.axis = 2}},
    {OP_IOTA, "", "i32[2,3]", "!axis out of range", {.axis = -1}},
    {OP_IOTA, "", "f32[2,3]", "!iota counts in integers", {0}},
    /* views */
    {OP_RESHAPE, "u8[2,3]", "f32[6]", "u8[6]", {0}},
    {OP_RESHAPE, "u8[2,3]", "u8[5]", "!element counts differ", {0}},
    {OP_PERMUTE, "f32[2,3,4]", "", "f32[4,2,3]", {.map = {2, 0, 1}}},
    {OP_PERMUTE, "f32[2,3,4]", "", "!not a permutation", {.map = {2, 0, 2}}},
    {OP_PERMUTE, "f32[2,3,4]", "", "!not a permutation", {.map = {3, 0, 1}}},
    {OP_PERMUTE, "f32[2,3,4]", "", "!not a permutation", {.map = {0, -1, 1}}},
    {OP_SLICE, "f32[7]", "", "f32[3]", {.lo = {2}, .hi = {3}, .step = {2}}},
    {OP_SLICE, "f32[7]", "", "!range leaves the operand", {.lo = {2}, .hi = {4}, .step = {2}}},
    {OP_SLICE, "f32[7]", "", "f32[0]", {.lo = {7}, .hi = {0}, .step = {1}}},
    {OP_SLICE, "f32[7]", "", "!range leaves the operand", {.lo = {7}, .hi = {1}, .step = {1}}},
    {OP_SLICE, "f32[7]", "", "f32[1]", {.lo = {6}, .hi = {1}, .step = {9}}},
    {OP_SLICE, "f32[7]", "", "!bad range", {.lo = {-1}, .hi = {1}, .step = {1}}},
    {OP_SLICE, "f32[7]", "", "!bad range", {.lo = {0}, .hi = {-1}, .step = {1}}},
    {OP_SLICE, "f32[7]", "", "!bad range", {.lo = {0}, .hi = {1}, .step = {0}}},
    {OP_PAD, "f32[2,3]", "", "f32[2,6]", {.border = BORDER_VALUE, .lo = {0, 1}, .hi = {0, 2}}},
    {OP_PAD, "f32[2,3]", "", "!a pad has a border rule", {.lo = {0, 1}, .hi = {0, 2}}},
    {OP_PAD, "f32[2]", "", "!negative padding", {.border = BORDER_EDGE, .lo = {-1}}},
    {OP_PAD, "f32[2]", "", "!negative padding", {.border = BORDER_EDGE, .hi = {-1}}},
    {OP_PAD, "f32[0]", "", "f32[3]", {.border = BORDER_VALUE, .lo = {3}}},
    {OP_PAD, "f32[2,0]", "", "!an empty axis has no edge", {.border = BORDER_EDGE, .lo = {0, 3}}},
    {OP_PAD, "f32[1,0]", "", "!an empty axis has no edge", {.border = BORDER_WRAP, .hi = {0, 1}}},
    {OP_PAD, "f32[1,0]", "", "f32[2,0]", {.border = BORDER_WRAP, .hi = {1, 0}}},
    {OP_WINDOW, "f32[2]", "", "f32[0,3]", {.s = 1, .d = 1, .taps = 3, .taps_n = 2}},
    {OP_WINDOW, "f32[2]", "", "f32[3,0]", {.s = 1, .d = 1, .p = 9, .count = 3, .taps_n = 2}},
    {OP_WINDOW, "f32[0]", "", "f32[2,0]", {.border = BORDER_EDGE, .count = 2}},
    {OP_WINDOW, "f32[0]", "", "f32[1,1]", {.border = BORDER_VALUE, .count = 1, .taps = 1}},
    {OP_WINDOW,
     "f32[0]",
     "",
     "!an empty axis has no edge",
     {.border = BORDER_EDGE, .count = 1, .taps = 1}},
    {OP_WINDOW,
     "f32[0]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 1, .count = 1, .taps = 1}},
    {OP_BROADCAST, "u8[3]", "f32[2,3,4]", "u8[2,3,4]", {.axes = 5}},
    {OP_BROADCAST, "u8[3]", "f32[2,4,4]", "!kept axes differ", {.axes = 5}},
    {OP_BROADCAST, "u8[3]", "u8[2,3,3]", "!kept axes differ", {.axes = 1}},
    {OP_BROADCAST, "u8[3]", "u8[2,3]", "!axes out of range", {.axes = 5}},
    {OP_BROADCAST, "u8[3,2]", "u8[3]", "!an axis of the operand is lost", {0}},
    {OP_FLIP, "f32[2,3]", "", "f32[2,3]", {.axes = 3}},
    {OP_FLIP, "f32[2,3]", "", "!axes out of range", {.axes = 4}},
    {OP_WINDOW,
     "f32[2,5,3]",
     "",
     "f32[2,3,2,3]",
     {.axis = 1, .s = 1, .d = 2, .count = 3, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 2, .count = 4, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "f32[4,2]",
     {.border = BORDER_WRAP, .s = 1, .d = 2, .count = 4, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 1, .p = 1, .count = 2, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "f32[5,1]",
     {.s = -1, .d = 1, .p = -4, .count = 5, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = -1, .d = 1, .p = -3, .count = 5, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!extent differs from the attribute",
     {.count = 1, .taps = 1, .taps_n = 4}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!axis out of range",
     {.axis = 1, .count = 1, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!axis out of range",
     {.axis = -1, .count = 1, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[1,1,1,1,1,1,1,1,1,1,1,1]",
     "",
     "!axis out of range",
     {.count = 1, .taps = 1, .taps_n = 1}},
    {OP_WINDOW,
     "f32[1,1,1,1,1,1,1,1,1,1,1]",
     "",
     "f32[1,1,1,1,1,1,1,1,1,1,1,1]",
     {.count = 1, .taps = 1, .taps_n = 1}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .s = INT64_C(1) << 60, .count = 2, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .d = INT64_C(1) << 60, .count = 1, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .p = INT64_MIN / 4, .count = 1, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .count = -1, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .count = 1, .taps = -1, .taps_n = 5}},
    /* places and maps */
    {OP_CONCAT, "f32[2,3] f32[2,1] f32[2,2]", "", "f32[2,6]", {.axis = 1}},
    {OP_CONCAT, "f32[2,3] f32[1,3]", "", "!operands differ outside the axis", {.axis = 1}},
    {OP_CONCAT, "f32[2,3] u8[2,3]", "", "!operands differ outside the axis", {.axis = 1}},
    {OP_CONCAT, "f32[2,3] f32[2]", "", "!operands differ outside the axis", {.axis = 0}},
    {OP_CONCAT, "f32[2,3]", "", "!axis out of range", {.axis = 2}},
    {OP_CONCAT, "f32[2,3]", "", "!axis out of range", {.axis = -1}},
    {OP_CONCAT, "", "", "!nothing to put together", {0}},
    {OP_ADD, "f32[2] f32[2]", "", "f32[2]", {0}},
    {OP_ADD, "f32[2] f64[2]", "", "!operand types differ", {0}},
    {OP_ADD, "f32[2] f32[3]", "", "!operand types differ", {0}},
    {OP_ADD, "bool[2] bool[2]", "", "!not an operation on bool", {0}},
    {OP_STOP, "bool[2]", "", "bool[2]", {0}},
    {OP_POINT, "f32[2, 3]", "", "f32[2, 3]", {0}},
    {OP_DIV, "f64 f64", "", "f64", {0}},
    {OP_DIV, "i32 i32", "", "!floats only", {0}},
    {OP_IDIV, "u8 u8", "", "u8", {0}},
    {OP_IDIV, "f32 f32", "", "!integers only", {0}},
    {OP_LT, "u8[3] u8[3]", "", "bool[3]", {0}},
    {OP_LT, "u8[3] u8[2]", "", "!operand types differ", {0}},
    {OP_LT, "u8[3] i8[3]", "", "!operand types differ", {0}},
    {OP_AND, "bool[3] bool[3]", "", "bool[3]", {0}},
    {OP_AND, "bool[3] bool[2]", "", "!operand types differ", {0}},
    {OP_AND, "bool[3] u8[3]", "", "!bool only", {0}},
    {OP_NOT, "u8[3]", "", "!bool only", {0}},
    {OP_ISFINITE, "f32[3]", "", "bool[3]", {0}},
    {OP_ISFINITE, "i32[3]", "", "!floats only", {0}},
    {OP_SELECT, "bool[3] u8[3] u8[3]", "", "u8[3]", {0}},
    {OP_SELECT, "u8[3] u8[3] u8[3]", "", "!the condition is bool", {0}},
    {OP_SELECT, "bool[2] u8[3] u8[3]", "", "!shapes differ", {0}},
    {OP_SELECT, "bool[3] u8[3] i8[3]", "", "!branch types differ", {0}},
    {OP_SELECT, "bool[3] u8[3] u8[2]", "", "!branch types differ", {0}},
    {OP_CAST, "f32[2,3]", "u8", "u8[2,3]", {0}},
    {OP_RANDOM, "i64 i64", "f32[3]", "f32[3]", {.dist = DIST_UNIFORM}},
    {OP_RANDOM, "i64 i64 i64", "u32[3]", "u32[3]", {.dist = DIST_BITS}},
    {OP_RANDOM, "i64", "f32[3]", "!a draw has a seed and a counter", {.dist = DIST_UNIFORM}},
    {OP_RANDOM, "i64 i64[1]", "f32[3]", "!keys are i64 scalars", {.dist = DIST_UNIFORM}},
    {OP_RANDOM, "i32 i64", "f32[3]", "!keys are i64 scalars", {.dist = DIST_UNIFORM}},
    {OP_RANDOM,
     "i64 i64",
     "f32[3]",
     "!element type does not fit the distribution",
     {.dist = DIST_BITS}},
    {OP_RANDOM,
     "i64 i64",
     "u32[3]",
     "!element type does not fit the distribution",
     {.dist = DIST_NORMAL}},
    /* folds */
    {OP_SUM, "f32[2,3,4]", "", "f32[3]", {.axes = 5}},
    {OP_SUM, "f32[2,3]", "", "!axes out of range", {.axes = 4}},
    {OP_SUM, "f32[2,3]", "", "!axes out of range", {.axes = 0}},
    {OP_SUM, "bool[2,3]", "", "!not a fold over bool", {.axes = 1}},
    {OP_SUM, "f32[2,0]", "", "f32[2]", {.axes = 2}},
    {OP_PROD, "f32[2,0]", "", "f32[2]", {.axes = 2}},
    {OP_FMAX, "f32[2,0]", "", "f32[0]", {.axes = 1}},
    {OP_FMAX, "f32[2,0]", "", "!an empty axis has no extreme", {.axes = 2}},
    {OP_FMIN, "f32[2,0]", "", "!an empty axis has no extreme", {.axes = 3}},
    {OP_ARGMAX, "f32[2,3]", "", "i32[2]", {.axis = 1}},
    {OP_ARGMAX, "f32[2,3]", "", "!axis out of range", {.axis = 2}},
    {OP_ARGMAX, "f32[2,3]", "", "!axis out of range", {.axis = -1}},
    {OP_ARGMAX, "f32[2,0]", "", "!an empty axis has no winner", {.axis = 1}},
    {OP_ARGMAX, "f32[0,2]", "", "i32[0]", {.axis = 1}},
    {OP_CUMSUM, "f32[2,3]", "", "f32[2,3]", {.axis = 1}},
    {OP_CUMSUM, "f32[2,3]", "", "!axis out of range", {.axis = 2}},
    {OP_CUMSUM, "f32[2,3]", "", "!axis out of range", {.axis = -1}},
    {OP_OVERLAP_ADD,
     "f32[7,3,2,4]",
     "",
     "f32[7,9,4]",
     {.axis = 1, .s = 1, .d = 1, .count = 3, .taps = 2, .taps_n = 9}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!extents differ from the attribute",
     {.count = 2, .taps = 2, .taps_n = 9}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!extents differ from the attribute",
     {.count = 3, .taps = 3, .taps_n = 9}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!axis out of range",
     {.axis = 1, .count = 2, .taps = 2, .taps_n = 9}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!axis out of range",
     {.axis = -1, .count = 3, .taps = 2, .taps_n = 9}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!what lies outside is left out",
     {.s = 1, .d = 1, .count = 3, .taps = 2, .taps_n = 9, .border = BORDER_EDGE}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!what lies outside is left out",
     {.s = 1, .d = 1, .count = 3, .taps = 2, .taps_n = 9, .border = BORDER_WRAP}},
    {OP_OVERLAP_ADD,
     "f32[3,2]",
     "",
     "!positions are out of range",
     {.s = INT64_C(1) << 60, .count = 3, .taps = 2, .taps_n = 9}},
    /* calls */
    {OP_CONTRACT,
     "f32[5,2,3] f32[3,5,4]",
     "f32[0,0,0]",
     "f32[5,2,4]",
     {.la = {0, 1, 2}, .lb = {2, 0, 3}, .lo_ = {0, 1, 3}}},
    {OP_CONTRACT,
     "f32[2,3] f64[3]",
     "f32[0]",
     "!two operands of one float type",
     {.la = {0, 1}, .lb = {1}}},
    {OP_CONTRACT,
     "i32[2,3] i32[3]",
     "i32[0]",
     "!two operands of one float type",
     {.la = {0, 1}, .lb = {1}}},
    {OP_CONTRACT,
     "f32[2,2] f32[2]",
     "f32[0]",
     "!a label twice in the first operand",
     {.la = {0, 0}, .lb = {0}}},
    {OP_CONTRACT,
     "f32[2,3] f32[2]",
     "f32[0]",
     "!a label of the first operand alone",
     {.la = {0, 1}, .lb = {0}}},
    {OP_CONTRACT,
     "f32[2,3] f32[4]",
     "f32[0]",
     "!extents of a shared label differ",
     {.la = {0, 1}, .lb = {1}}},
    {OP_CONTRACT,
     "f32[2,3] f32[3,3]",
     "f32[0]",
     "!a label twice in the second operand",
     {.la = {0, 1}, .lb = {1, 1}}},
    {OP_CONTRACT,
     "f32[2,3] f32[3,4]",
     "f32[0]",
     "!a label of the second operand alone",
     {.la = {0, 1}, .lb = {1, 2}}},
    {OP_CONTRACT, "f32[2,3] f32[3]", "f32[0]", "!labels are not 0..n-1", {.la = {0, 2}, .lb = {2}}},
    {OP_CONTRACT,
     "f32[2,3] f32[3]",
     "f32[0,0]",
     "!a label twice in the result",
     {.la = {0, 1}, .lb = {1}, .lo_ = {0, 0}}},
    {OP_CONTRACT,
     "f32[2,3] f32[3]",
     "f32[0,0]",
     "!a label of the result alone",
     {.la = {0, 1}, .lb = {1}, .lo_ = {0, 2}}},
    {OP_GATHER, "f32[5,7,3] u8[5,2]", "", "f32[5,2,3]", {.batch = 1}},
    {OP_GATHER, "f32[5,7,3] f32[5,2]", "", "!indices are integers", {.batch = 1}},
    {OP_GATHER, "f32[5,7,3] u8[4,2]", "", "!batch extents differ", {.batch = 1}},
    {OP_GATHER, "f32[5,7] u8[5,7]", "", "!batch axes out of range", {.batch = 2}},
    {OP_GATHER, "f32[5,7,2] u8[5]", "", "!batch axes out of range", {.batch = 2}},
    {OP_GATHER, "f32[5,7] u8[5,7]", "", "!batch axes out of range", {.batch = -1}},
    {OP_GATHER, "f32[5,7] u8[5]", "", "f32[5]", {.batch = 1}},
    {OP_GATHER, "f32[2,1,1,1,1,1,1] u8[1,1,1,1,1,1]", "", "f32[1,1,1,1,1,1,1,1,1,1,1,1]", {0}},
    {OP_GATHER, "f32[2,1,1,1,1,1,1] u8[1,1,1,1,1,1,1]", "", "!too many axes", {0}},
    {OP_ORDER, "f32[5,7,3]", "i32[5,7,2]", "i32[5,7,2]", {0}},
    {OP_ORDER, "u8[3]", "i32[3]", "i32[3]", {.reverse = true}},
    {OP_ORDER, "f32[2,0]", "i32[2,0]", "i32[2,0]", {0}},
    {OP_ORDER, "f32[2,3]", "i32[2,4]", "!more places than elements", {0}},
    {OP_ORDER, "f32[2,3]", "i32[3,3]", "!extents differ", {0}},
    {OP_ORDER, "f32[2,3]", "i32[2]", "!ranks do not fit", {0}},
    {OP_ORDER, "f32", "i32", "!ranks do not fit", {0}},
    {OP_ORDER, "f32[2,3]", "i64[2,3]", "!places are i32", {0}},
    {OP_ORDER, "bool[3]", "i32[3]", "!bools have no order", {0}},
    {OP_ORDER, "u8[2147483647]", "i32[9]", "i32[9]", {0}},
    {OP_ORDER, "u8[2147483648]", "i32[9]", "!places are no i32", {0}},
    {OP_OVERLAP_ADD, "f32[0,0]", "", "f32[0]", {0}},
    {OP_OVERLAP_ADD, "f32[0,0]", "", "!a negative extent", {.taps_n = -1}},
    {OP_GATHER, "f32[0,3] u8[0,2]", "", "f32[0,2,3]", {0}},
    {OP_GATHER, "f32[0,3] u8[2]", "", "!an empty axis has nothing to pick", {0}},
    {OP_GATHER, "f32[0,0] u8[2]", "", "f32[2,0]", {0}},
    {OP_SCATTER_ADD, "f32[0,3] u8[0]", "f32[2,3]", "f32[2,3]", {0}},
    {OP_SCATTER_ADD, "f32[2,3] u8[2]", "f32[0,3]", "!an empty axis takes nothing", {0}},
    {OP_SCATTER_ADD, "f32[2,0] u8[2]", "f32[0,0]", "f32[0,0]", {0}},
    {OP_SCATTER_ADD, "f32[5,2,3] u8[5,2]", "u8[5,7,3]", "f32[5,7,3]", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5,2,3] f32[5,2]", "f32[5,7,3]", "!indices are integers", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5,2] u8[5,2]", "f32[5,7,3]", "!ranks do not fit", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5,4,3] u8[5,2]", "f32[5,7,3]", "!index extents differ", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5,2,3] u8[5,2]", "f32[4,7,3]", "!batch extents differ", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5,2,3] u8[5,2]", "f32[5,7,4]", "!rest extents differ", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5] u8[5]", "f32[5]", "!batch axes out of range", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[5] u8[5]", "f32[5]", "!batch axes out of range", {.batch = -1}},
    {OP_SCATTER_ADD, "f32[5] u8[5]", "f32[5,6,7]", "!batch axes out of range", {.batch = 2}},
    /* the first axis, place and label, and the last that fits */
    {OP_IOTA, "", "i32[2,3]", "i32[2,3]", {.axis = 0}},
    {OP_SLICE, "f32[7]", "", "f32[7]", {.lo = {0}, .hi = {7}, .step = {1}}},
    {OP_SLICE, "f32[7]", "", "!range leaves the operand", {.lo = {7}, .hi = {1}, .step = {2}}},
    {OP_PAD, "f32[2]", "", "f32[3]", {.border = BORDER_VALUE, .lo = {1, -1}}},
    {OP_BROADCAST, "u8[3]", "u8[4,5]", "!kept axes differ", {.axes = 2}},
    {OP_BROADCAST, "u8[3]", "u8[3,0]", "!kept axes differ", {0}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .s = 1 << 30, .count = 1 << 30, .taps = 1, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!positions are out of range",
     {.border = BORDER_WRAP, .d = 1 << 30, .count = 1, .taps = 1 << 30, .taps_n = 5}},
    {OP_WINDOW, "f32[5]", "", "f32[0,0]", {.border = BORDER_WRAP, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "f32[2,3]",
     {.s = 1, .d = -1, .p = -2, .count = 2, .taps = 3, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = -1, .p = -1, .count = 2, .taps = 3, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 1, .count = 2, .taps = 5, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 1, .count = 5, .taps = 2, .taps_n = 5}},
    {OP_WINDOW,
     "f32[5]",
     "",
     "!reads outside without a border",
     {.s = 1, .d = 1, .p = -1, .count = 5, .taps = 1, .taps_n = 5}},
    {OP_NEG, "bool[2]", "", "!not an operation on bool", {0}},
    {OP_EXP, "i32[2]", "", "!floats only", {0}},
    {OP_IDIV, "f32 i32", "", "!integers only", {0}},
    {OP_NOT, "bool[3]", "", "bool[3]", {0}},
    {OP_SUM, "f32[2,3]", "", "f32[2]", {.axes = 2}},
    {OP_ARGMAX, "f32[1,3]", "", "i32[3]", {.axis = 0}},
    {OP_CUMSUM, "f32[2,3]", "", "f32[2,3]", {.axis = 0}},
    {OP_CONTRACT, "f32[3,2] f32[3]", "f32[0]", "f32[2]", {.la = {0, 1}, .lb = {0}, .lo_ = {1}}},
    {OP_CONTRACT, "f32[3] f32[4,3]", "f32[0]", "f32[4]", {.la = {0}, .lb = {1, 0}, .lo_ = {1}}},
    {OP_CONTRACT, "f32[2,3] f32[3]", "f32[0]", "f32[2]", {.la = {0, 1}, .lb = {1}, .lo_ = {0}}},
    {OP_CONTRACT,
     "f32[2,3] f32[3]",
     "f32",
     "!a label of the first operand alone",
     {.la = {0, 1}, .lb = {1}}},
    {OP_CONTRACT,
     "f32[2,3] f32[4,3]",
     "f32[0]",
     "!a label of the second operand alone",
     {.la = {0, 1}, .lb = {2, 1}}},
    {OP_GATHER,
     "f32[1,2,1,1,1,1,1] u8[1,1,1,1,1,1,1]",
     "",
     "f32[1,1,1,1,1,1,1,1,1,1,1,1]",
     {.batch = 1}},
    {OP_SCATTER_ADD, "f32[2,3] u8[2]", "f32[7,3]", "f32[7,3]", {0}},
    {OP_SCATTER_ADD, "f32[5] u8[5]", "f32[5,7]", "f32[5,7]", {.batch = 1}},
    {OP_SCATTER_ADD, "f32[4,3] u8[2]", "f32[7,3]", "!index extents differ", {0}},
    /* marks */
    {OP_GRAD, "f32[2] f64[3] f32[2]", "", "f64[3]", {0}},
    {OP_GRAD, "f32[2] f64[3] f32[3]", "", "!cotangent type", {0}},
    {OP_GRAD, "f32[2] i32[3] f32[2]", "", "!the point is a float", {0}},
};

static void check_row(OpCode op, Node *const *in, int nin, const Attr *attr, const Region *body,
                      Type given, const char *want, const char *what) {
    const char *fault = NULL;
    Type type = shape_check(op, in, nin, attr, body, given, &fault);
    if (want[0] == '!') {
        if (fault == NULL || strcmp(fault, want + 1) != 0) {
            fail_msg("%s of %s: '%s' is said, not '%s'", op_info[op].name, what,
                     fault ? fault : "nothing", want + 1);
        }
        return;
    }
    Type wanted = type;
    if (want[0] != '\0') {
        read_type(want, &wanted);
    }
    if (fault != NULL || !type_equal(type, wanted)) {
        fail_msg("%s of %s: %s", op_info[op].name, what, fault ? fault : "another type");
    }
}

static void test_rules(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Node node[MOST] = {0}, none = {0}, *in[MOST] = {&none, &none, &none, &none, &none, &none};
        Type type[MOST];
        int n = 0;
        Type given = type_scalar(TY_F32);
        for (const char *p = rows[i].in; *p != '\0'; n++) {
            assert_true(n < MOST);
            p = read_type(p, &type[n]);
            node[n].type = &type[n];
            in[n] = &node[n];
        }
        if (rows[i].given[0] != '\0') {
            read_type(rows[i].given, &given);
        }
        check_row(rows[i].op, in, n, &rows[i].attr, NULL, given, rows[i].want, rows[i].in);
    }
}

/* Regions: a LOOP of one carry, one invariant and one stack that emits one value; a CUSTOM of one
 * argument. `wrong` says which type or count is changed. */
typedef struct {
    const char *what, *want;
    int operand, param, result; /* 1 + the one whose type becomes f64[9]; 0: none */
    int nin, nparam, nout;      /* counts when not 0 */
    int64_t trip;
    const char *stack; /* the type of that operand */
    bool no_body, no_trip;
} Wrong;

static void check_region(OpCode op, const char *const *in, int nin, const char *const *param,
                         int nparam, const char *const *out, int nout, const Wrong *w) {
    Arena arena = {0};
    Attr attr = {.trip = op == OP_LOOP ? 3 : 0, .ncarry = op == OP_LOOP};
    attr.ninv = attr.nxs = attr.nys = op == OP_LOOP;
    attr.trip = w->trip != 0 ? w->trip : w->no_trip ? 0 : attr.trip;
    Node node[MOST] = {0}, *operand[MOST];
    Region body = {0};
    for (int i = 0; i < nin; i++) {
        const char *type = w->stack && i == 2 ? w->stack : in[i];
        Type *own = ARENA_NEW(&arena, Type);
        read_type(w->operand == i + 1 ? "f64[9]" : type, own);
        node[i].type = own;
        operand[i] = &node[i];
    }
    for (int i = 0; i < nparam + nout; i++) {
        Node *made = ARENA_NEW(&arena, Node);
        bool of_param = i < nparam;
        bool wrong = of_param ? w->param == i + 1 : w->result == i - nparam + 1;
        Type *own = ARENA_NEW(&arena, Type);
        read_type(wrong ? "f64[9]" : of_param ? param[i] : out[i - nparam], own);
        made->type = own;
        if (of_param) {
            VEC_PUSH(&arena, &body.param, made);
        } else {
            VEC_PUSH(&arena, &body.out, made);
        }
    }
    body.param.count = w->nparam ? w->nparam : body.param.count;
    body.out.count = w->nout ? w->nout : body.out.count;
    check_row(op, operand, w->nin ? w->nin : nin, &attr, w->no_body ? NULL : &body,
              type_scalar(TY_F32), w->want, w->what);
    arena_free(&arena);
}

static void test_regions(void **state) {
    (void)state;
    static const char *const in[] = {"f32[2]", "u8[4]", "f32[3,5]"};
    static const char *const param[] = {"i32", "f32[2]", "u8[4]", "f32[5]"};
    static const char *const out[] = {"f32[2]", "f32[6]"};
    static const Wrong loops[] = {
        {.what = "a loop that fits", .want = ""},
        {.what = "a loop without a turn", .no_trip = true, .stack = "f32[0,5]", .want = ""},
        {.what = "a scalar for a stack",
         .no_trip = true,
         .stack = "f32",
         .want = "!a stack has the trip count in front"},
        {.what = "a loop without a body",
         .no_body = true,
         .want = "!a loop has a body and a trip count"},
        {.what = "a negative trip", .trip = -1, .want = "!a loop has a body and a trip count"},
        {.what = "an operand less", .nin = 2, .want = "!operand count"},
        {.what = "a parameter less", .nparam = 3, .want = "!body parameter count"},
        {.what = "a result less", .nout = 1, .want = "!body result count"},
        {.what = "another carry", .operand = 1, .want = "!body parameter type"},
        {.what = "another invariant", .operand = 2, .want = "!body parameter type"},
        {.what = "a shorter stack", .operand = 3, .want = "!a stack has the trip count in front"},
        {.what = "another trip", .trip = 4, .want = "!a stack has the trip count in front"},
        {.what = "another parameter", .param = 4, .want = "!body parameter type"},
        {.what = "a carry that changes", .result = 1, .want = "!a carry keeps its type"},
    };
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++) {
        check_region(OP_LOOP, in, 3, param, 4, out, 2, &loops[i]);
    }
    static const char *const values[] = {"f32[2]", "f32[4]"};
    static const char *const given[] = {"f32[4]", "f32[2]"};
    static const char *const adjoint[] = {"f32[4]"};
    static const Wrong customs[] = {
        {.what = "an adjoint that fits", .want = "f32[2]"},
        {.what = "none", .no_body = true, .want = "!adjoint parameter count"},
        {.what = "a parameter less", .nparam = 1, .want = "!adjoint parameter count"},
        {.what = "no result", .operand = 0, .nin = 1, .nparam = 1, .want = "!adjoint result count"},
        {.what = "another argument", .param = 1, .want = "!adjoint parameter type"},
        {.what = "another result", .result = 1, .want = "!adjoint result type"},
        {.what = "another cotangent", .param = 2, .want = "!cotangent type"},
    };
    for (size_t i = 0; i < sizeof customs / sizeof *customs; i++) {
        check_region(OP_CUSTOM, values, 2, given, 2, adjoint, 1, &customs[i]);
    }
}

static void test_picks(void **state) {
    (void)state;
    Arena arena = {0};
    Region body = {0};
    Node carry = {0}, emitted = {0}, wide = {0}, loop = {.op = OP_LOOP, .body = &body}, *in = &loop;
    Attr of_loop = {.trip = 7, .ncarry = 1, .nys = 2};
    loop.attr = &of_loop;
    Type type[3];
    read_type("f32[2]", &type[0]);
    read_type("u8[3]", &type[1]);
    read_type("u8[1,1,1,1,1,1,1,1,1,1,1,1]", &type[2]);
    carry.type = &type[0];
    emitted.type = &type[1];
    wide.type = &type[2];
    VEC_PUSH(&arena, &body.out, &carry);
    VEC_PUSH(&arena, &body.out, &emitted);
    VEC_PUSH(&arena, &body.out, &wide);
    static const char *const want[] = {"!result out of range", "f32[2]", "u8[7,3]",
                                       "!too many axes", "!result out of range"};
    for (int k = -1; k < 4; k++) {
        check_row(OP_PICK, &in, 1, &(Attr){.axis = k}, NULL, type_scalar(TY_F32), want[k + 1],
                  "a loop");
    }
    loop.op = OP_ADD;
    check_row(OP_PICK, &in, 1, &(Attr){0}, NULL, type_scalar(TY_F32),
              "!only loops have several results", "a sum");
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_picks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
