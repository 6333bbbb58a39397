/* op_sample: random legal uses of every op, column `sample` of op.def.
 *
 * A sample is an op on inputs of its own, with data that is legal for it and, where the op has a
 * derivative, away from kinks. Variants go over shapes (scalars, extents 1 and primes), element
 * types and attributes. */
#ifndef MDLC_TESTS_OP_SAMPLE_H
#define MDLC_TESTS_OP_SAMPLE_H

#include "compiler/graph.h"

enum { SAMPLE_SLOTS = 128 };

typedef struct {
    Graph *g;     /* nodes go to its current region */
    uint64_t rng; /* state of the generator; any seed */
    Elem elem;    /* float type of the inputs */
    Slot *slot[SAMPLE_SLOTS];
    double *data[SAMPLE_SLOTS];
    int nslot;
} Sample;

/* A node of op `op` on fresh slots, or NULL when there is no variant of that number. */
Node *sample_build(Sample *s, OpCode op, int variant);

double sample_uniform(Sample *s, double lo, double hi);
int64_t sample_below(Sample *s, int64_t n);
/* Slots with numbers of lo..hi (integers: below hi), or that differ by 0.1 or more. */
Node *sample_input(Sample *s, Type type, double lo, double hi);
Node *sample_distinct(Sample *s, Type type);
/* A constant of that type with numbers in lo..hi. */
Node *sample_table(Sample *s, Type type, double lo, double hi);

#endif
