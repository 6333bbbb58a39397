/* turn: values whose channels lie last in memory, seen with them where the model has them.
 *
 * A turned value is a PERMUTE of what is computed: some neighbouring axes of the view are the last
 * ones behind it, and all others stand in their order. What reads the view may read what is behind
 * it instead, with axes of other numbers. */
#ifndef MDLC_COMPILER_TURN_H
#define MDLC_COMPILER_TURN_H

#include "compiler/graph.h"

/* Axes axis .. axis + count - 1 of the view are the last ones of what is behind it; count 0: it is
 * as it is seen. */
typedef struct {
    int axis, count;
} Turn;

/* How `x` is turned: a PERMUTE of this form. */
Turn turn_of(const Node *x);
bool turn_equal(Turn a, Turn b);
/* Axis `axis` of a view of `rank` axes, and a mask of such, behind it. */
int turn_place(Turn t, int rank, int axis);
uint32_t turn_axes(Turn t, int rank, uint32_t axes);
/* `to` gets the numbers of `from` in the order behind the view. */
void turn_list(Turn t, int rank, const int64_t *from, int64_t *to);
/* What is to be behind the view: without a PERMUTE where `x` is turned so, or is a repeated value.
 */
Node *turn_behind(Graph *g, Node *x, Turn t);
/* The view of what is behind it. */
Node *turn_view(Graph *g, Node *behind, Turn t);
/* That of a value with `more` axes in front of it (of fewer: negative); such that leave nothing in
 * front are none. */
Turn turn_shifted(Turn t, int more);

#endif
