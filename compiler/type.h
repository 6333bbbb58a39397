/* type: element type and shape, by value. Dims are sizes here; their nominal identity lives in
 * lang/ until the graph is built. */
#ifndef MDLC_COMPILER_TYPE_H
#define MDLC_COMPILER_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MD_RANK 12 /* the most axes a tensor or an index space may have */

typedef enum {
    TY_ERROR, /* poison: whatever it touches stays silent */
    TY_BOOL,
    TY_I8,
    TY_I16,
    TY_I32,
    TY_I64,
    TY_U8,
    TY_U16,
    TY_U32,
    TY_F16,
    TY_BF16,
    TY_F32,
    TY_F64,
    TY_TUPLE, /* of a LOOP: its results are taken with PICK */
    TY_COUNT
} Elem;

typedef struct {
    Elem elem;
    int rank;
    int64_t dim[MD_RANK]; /* entries past rank are 0, so that types compare as bytes */
} Type;

/* Is it a float of 16 bits? These are stored and never computed in. */
bool elem_is_half(Elem elem);
/* What a value of this storage element is computed in: f32 for the floats of 16 bits. */
Elem elem_computed(Elem storage);

Type type_scalar(Elem elem);
Type type_make(Elem elem, int rank, const int64_t *dim);
bool type_equal(Type a, Type b);
bool type_same_shape(Type a, Type b);
int64_t type_count(Type t); /* elements */
int64_t type_bytes(Type t); /* elements x element bytes, dense */
size_t elem_bytes(Elem elem);
bool elem_is_float(Elem elem);
bool elem_is_int(Elem elem); /* not bool */
bool elem_is_signed(Elem elem);
int64_t num_wrap(Elem elem, int64_t x); /* the low bits, as an element of that type */
double num_round(Elem elem, double x); /* a float, to the nearest of that type */
/* To one of the two of that type (bf16) that are nearest, away from 0 where `draw`, of [0, 1), says
 * so: the mean over all draws is `x`. */
double num_round_drawn(Elem elem, double x, double draw);
void elem_range(Elem elem, int64_t *least, int64_t *most); /* of an integer or bool */
/* Is there an element near `x`? Floats are rounded; integers are exact, up to 2^53. */
bool elem_holds(Elem elem, double x);
const char *elem_name(Elem elem);   /* "f32" */
const char *elem_c_name(Elem elem); /* "float" */
bool elem_from_name(const char *name, Elem *elem);

#endif
