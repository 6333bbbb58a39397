/* random_graph: random regions, loops in loops included, of ops that have derivatives. */
#ifndef MDLC_TESTS_RANDOM_GRAPH_H
#define MDLC_TESTS_RANDOM_GRAPH_H

#include "op_sample.h"

enum { RANDOM_POOL = 64 };

typedef struct {
    Sample *s;
    Node *pool[RANDOM_POOL]; /* float values of the current region */
    int npool;
} RandomGraph;

/* Makes about so many values from fresh inputs of type f64, in the current region of s->g; gives
 * the sum over all of them, squashed. */
Node *random_graph(RandomGraph *r, Sample *s, int nodes);
/* One of the values at the top. */
Node *random_graph_any(RandomGraph *r);

#endif
