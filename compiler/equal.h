/* equal: whether two texts or passes gave the same graph. */
#ifndef MDLC_COMPILER_EQUAL_H
#define MDLC_COMPILER_EQUAL_H

#include "compiler/graph.h"

/* Node by node in order: operations, operands, types, attributes, names, bodies, results. Slots are
 * the same by name and kind, tables by their numbers; places in the source do not count. */
bool region_equal(const Region *a, const Region *b);
/* NULL, or what differs first: slots, data sets, entries with their regions. The module's own name
 * does not count: it comes from the command line. */
const char *module_difference(const Module *a, const Module *b);

#endif
