/* cut: ops by parts of an axis. A label is followed through nodes, each of which has an axis for it
 * or is the same for all of its places; in a loop whose iterations each have some of these places
 * (a part), every node is made for the part alone. What shares no sum among places keeps its bits.
 * See cut.c; used by chunk.c and parts.c. */
#ifndef MDLC_PASSES_CUT_H
#define MDLC_PASSES_CUT_H

#include "compiler/graph.h"

enum { CUT_NO_AXIS = -1, CUT_UNSEEN = -2, CUT_LOST = -3 };
enum { CUT_LABELS = 4 /* that are followed at once */ };

typedef struct {
    int8_t *axis;      /* by node that is cut or goes in: where it has the label */
    int64_t extent;    /* of all parts */
    int64_t trip, own; /* iterations, and places of the label in each: trip * own == extent */
    bool valid;
} CutLabel;

typedef struct {
    Graph *g;
    const CutLabel *label;
    int labels;
    LoopBuilder *loop;
    int64_t trip; /* of all labels */
    Node **map;   /* by node: in the body */
} Cut;

/* May a node be made for a part? */
bool cut_takes(const Node *n);
/* Is it so in chunks, which know views, maps and folds that say nothing of neighbours? */
bool cut_is_plain(const Node *n);
/* The axis of operand `k` of such a node that has the label of axis `axis` of the result;
 * CUT_NO_AXIS: it has none; CUT_LOST: the label ends there. By rows a product may have it of one
 * operand alone, and what is looked up of the index alone. */
int cut_from(const Node *n, int k, int axis, bool by_rows);

/* Makes node `n` for the part of an iteration, in Cut.map. Operands that are not there yet go in
 * slice by slice, or as they are where they are the same for all parts; `map`: what they have
 * become outside, NULL: themselves. */
void cut_make(Cut *cut, const Node *n, Node *const *map);
/* Node `n` as a whole: the labels' iterations go back to their axes. */
Node *cut_out(Cut *cut, const Node *n, Node *stack);

#endif
