/* index: symbolic integers that address tensors: sums of multiples of axis variables, of loop
 * indices, of values read at run time, and of floored quotients and remainders of such sums.
 *
 * Every Index of one table exists once, so equal values that the rules below can see as equal are
 * equal pointers. The rules keep what views do affine wherever it is affine: ranges decide
 * quotients and remainders, and (x div n) * n * c + (x mod n) * c becomes x * c again, so a dense
 * tensor read through any chain of reshapes is read at one linear address.
 * Needs int64 arithmetic without overflow (extents of tensors); all divisions floor. */
#ifndef MDLC_COMPILER_INDEX_H
#define MDLC_COMPILER_INDEX_H

#include "compiler/base.h"

typedef struct Index Index;
typedef struct Atom Atom;

enum { AXES_MAX = 64 };
typedef uint64_t AxisSet;

typedef enum {
    ATOM_AXIS,  /* a loop of the kernel: number `of_axis` */
    ATOM_LOOP,  /* the index of an enclosing STEP_LOOP, by number: an argument of the kernel */
    ATOM_VALUE, /* an integer expression read at run time (a gathered position) */
    ATOM_DIV,   /* of / by, floored */
    ATOM_MOD    /* of - by * (of / by): 0 .. by-1 */
} AtomKind;

struct Atom {
    AtomKind kind;
    int id; /* order of creation: the order of terms */
    int number;
    const void *value; /* ATOM_VALUE: an Expr of compiler/kernel.h */
    const Index *of;
    int64_t by;
    int64_t least, most; /* inclusive */
    AxisSet axes;        /* what it depends on */
};

typedef struct {
    const Atom *atom;
    int64_t mul;
} Term;

struct Index {
    int64_t base;
    int nterm;
    const Term *term; /* by Atom.id, no zero multiples */
    int64_t least, most;
    AxisSet axes;
};

typedef struct {
    Arena *arena;
    Arena *tables; /* of what finds equal ones: may go before the rest */
    const Index **cons;
    int cons_size, cons_used;
    VEC(const Atom *) atom;
} IndexTable;

void index_open(IndexTable *t, Arena *arena);
const Index *index_const(IndexTable *t, int64_t value);
const Index *index_axis(IndexTable *t, int number, int64_t extent);
/* The index of a loop of at most `trip` turns. Of a single turn it is 0, but where it is asked for
 * as what `picks` slices. */
const Index *index_loop(IndexTable *t, int number, int64_t trip, bool picks);
const Index *index_value(IndexTable *t, const void *value, AxisSet axes, int64_t least,
                         int64_t most);
const Index *index_add(IndexTable *t, const Index *a, const Index *b);
const Index *index_scale(IndexTable *t, const Index *a, int64_t by);
const Index *index_offset(IndexTable *t, const Index *a, int64_t by);
const Index *index_div(IndexTable *t, const Index *a, int64_t by); /* by > 0 */
const Index *index_mod(IndexTable *t, const Index *a, int64_t by);
/* `a` with the given Index in place of axis `number`, simplified again. */
const Index *index_subst(IndexTable *t, const Index *a, int number, const Index *with);
/* a / b, floored; b > 0. */
int64_t floor_div(int64_t a, int64_t b);
/* True when `a` is a constant; its value. */
bool index_is_const(const Index *a, int64_t *value);
/* The multiple of axis `number` in `a`; false when the axis also stands inside another atom. */
bool index_stride(const Index *a, int number, int64_t *mul);

#endif
