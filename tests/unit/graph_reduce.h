/* graph_reduce: makes a failing case small. */
#ifndef MDLC_TESTS_GRAPH_REDUCE_H
#define MDLC_TESTS_GRAPH_REDUCE_H

#include "graph_oracle.h"

/* Whether the case fails in the same way; it may run the case to death. */
typedef bool (*StillFails)(void *ctx, GraphCase *c);

/* Edits the case as long as it still fails: drops entries, results, slots and loops, replaces nodes
 * by an operand or by an input of their type, takes extents, trips and attributes down. Each trial
 * runs in a process of its own. Ends when nothing helps, or after so many seconds. */
void graph_reduce(GraphCase *c, StillFails fails, void *ctx, int seconds);
/* Nodes of all entries but init's, in bodies too. */
int graph_size(const GraphCase *c);

#endif
