/* pass_fixture: a region made of random parts, and what it gives before and after passes. */
#ifndef MDLC_TESTS_PASS_FIXTURE_H
#define MDLC_TESTS_PASS_FIXTURE_H

#include "compiler/eval.h"
#include "compiler/graph.h"
#include "op_sample.h"

typedef struct {
    Arena arena;
    Graph *g;
    Region *region;
    Sample s;
} Fixture;

uint64_t seed(void); /* MDLC_SEED or a constant */
void fixture_open(Fixture *f, Elem elem, uint64_t number);
/* The passes up to `merge`, each verified. */
Region *optimise(Fixture *f, const Region *region);
/* And those behind them, which choose how products are made. */
Region *shaped(Fixture *f, const Region *region);
/* The largest difference of the results, relative to the size of each; b may be moved by noise. */
double difference_with(Fixture *f, const Region *a, const Region *b, EvalOptions options);
double difference(Fixture *f, const Region *a, const Region *b);
/* How far rounding may move the results: what noise of 2^-36 does to them, as 2^-48 of it would. */
double tolerance(Fixture *f, const Region *region);
Node *total(Fixture *f, Node *a); /* the sum of all elements */
/* Adds the derivatives of a random functional of result 0 to the results. */
void add_gradients(Fixture *f);
/* How many of the nodes that a result needs pass the test. */
int fixture_count(Fixture *f, const Region *region, bool (*test)(const Node *node));

#endif
