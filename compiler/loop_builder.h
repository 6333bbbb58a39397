/* loop_builder: the part of loop construction that the builder and the rebuilder share. */
#ifndef MDLC_COMPILER_LOOP_BUILDER_H
#define MDLC_COMPILER_LOOP_BUILDER_H

#include "compiler/graph.h"

/* The body's view of a value of the region around the loop; the same one for the same value. */
Node *loop_capture(LoopBuilder *loop, Node *outer);
/* The value of the region around that the body parameter `param` stands for as an invariant; NULL
 * when it is none. */
Node *loop_captured(const LoopBuilder *loop, const Node *param);
/* The stack of which a body parameter is the slice of an iteration, of a loop that is open or
 * closed; NULL: it is no such parameter. */
Node *loop_stack_of(const Node *param);
/* A carry of another loop of that trip and direction as it was in the same iteration, which `loop`
 * is in: of the stack of its next values, and of what it started from. */
Node *loop_carry_before(LoopBuilder *loop, Node *next, Node *start, bool reverse);
/* The stack of a loop of which carry `carry`'s next values are slices; -1: there is none that
 * loop_carry_before could read. */
int loop_next_stack(const Node *loop, int carry);
/* Of an open loop: its carries so far, and the next value of one; NULL: it stays what it is. */
int64_t loop_trip(const LoopBuilder *loop);
int loop_carries(const LoopBuilder *loop);
Node *loop_carry_next(const LoopBuilder *loop, int carry);
/* The carry of a LOOP that ends as its last index, see graph.h; -1: there is none. */
int loop_last_carry(const Node *loop);
/* The same of a loop with a condition, where no iteration reads it: a step sets it when it ends. */
int loop_made_carry(const Node *loop);
/* Appends a node without hash-consing. */
Node *graph_append(Graph *g, OpCode op, Node *const *in, int nin, const Attr *attr, Region *body,
                   Type type);

#endif
