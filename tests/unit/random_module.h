/* random_module: random modules over the whole op table.
 *
 * An op is chosen by row; operands, shapes and attributes are drawn, and what the shape rule
 * refuses is dropped (no solver). Values carry bounds, so that domains, overflows and ranges of
 * indices are right by construction; the rest (kinks, cancellation) is left to an oracle that
 * measures how much rounding a result feels. An entry named "smooth..." gives a scalar and its
 * derivatives to all its inputs, and keeps away from kinks: a difference quotient must agree. */
#ifndef MDLC_TESTS_RANDOM_MODULE_H
#define MDLC_TESTS_RANDOM_MODULE_H

#include "graph_case.h"

enum { GEN_POOL = 80 };

typedef struct {
    Node *node;
    double lo, hi; /* bounds of every element */
} Val;

/* The values of a region that may be used as operands. */
typedef struct {
    Val at[GEN_POOL];
    int n;
} GenPool;

typedef struct {
    GraphCase *c;
    Graph *g;
    uint64_t rng;
    Elem elem;   /* of floats */
    bool smooth; /* no kinks, no stop_gradient */
    bool mixed;  /* casts between float types */
    bool init;   /* no inputs here */
    int64_t dim[5];
    int ndim;
    int64_t most;    /* elements of a value */
    int64_t repeats; /* of the loops around */
    int depth;       /* loops around */
    Entry *entry;
    GenPool *pool;
    int made[OP_COUNT]; /* how often each row was made: rare ones come first */
} Gen;

typedef struct {
    uint64_t seed;
    Elem elem;
    bool big;  /* some values of 100,000 elements, few nodes */
    int nodes; /* about so many an entry */
} GenWish;

void random_module(GraphCase *c, const GenWish *wish);

/* --- shared by random_module.c, random_op.c, random_loop.c ------------------------------------ */

uint64_t gen_bits(Gen *gen);
int64_t gen_below(Gen *gen, int64_t n);
bool gen_chance(Gen *gen, int percent);
double gen_uniform(Gen *gen, double lo, double hi);

Val gen_any(Gen *gen);
Val gen_float(Gen *gen); /* of element type gen->elem */
Val gen_int(Gen *gen);   /* of any integer type */
Val gen_bool(Gen *gen);
Val gen_like(Gen *gen, Type type);          /* some value of exactly this type */
Val gen_fit(Gen *gen, Val v, Type like);    /* `v`, made a value of this type by views and folds */
Val gen_calm(Gen *gen, Val v, double most); /* a float within +-most */
Val gen_index(Gen *gen, Type type, int64_t n); /* integers of 0..n-1 */
Type gen_type(Gen *gen, Elem elem);
Elem gen_int_elem(Gen *gen);
Val gen_input(Gen *gen, Type type, double lo, double hi);
Val gen_table(Gen *gen, Type type, double lo, double hi);
/* Keeps it for later operands, calmed; false when it is too large. */
bool gen_keep(Gen *gen, Val v);
/* A scalar of type gen->elem that depends on all of `v`. */
Node *gen_total(Gen *gen, Val v);

/* A value of this op; false when the operands at hand do not fit. random_op.c */
bool gen_op(Gen *gen, OpCode op, Val *out);
bool gen_loop(Gen *gen, Val *out); /* random_loop.c */
/* A derivative of `value` by a value of the pool by which it has one. */
Node *gen_slope(Gen *gen, Node *value, double cotangent);
bool gen_grad(Gen *gen, Val *out);
bool gen_custom(Gen *gen, Val *out);
/* Makes `n` values in the current region. */
void gen_nodes(Gen *gen, int n);

#endif
