/* reach: which part of each argument a turn of a loop touches.
 *
 * An index at turn m is a multiple of m and a range: what the other loops of the statements run
 * over, and what is known of values read at run time. */
#ifndef MDLC_PASSES_SCHEDULE_REACH_H
#define MDLC_PASSES_SCHEDULE_REACH_H

#include "passes/schedule/schedule.h"

/* What a turn reaches: `mul` times its number, and from there `lo` to `hi`. */
typedef struct {
    bool known;
    int64_t mul, lo, hi;
    bool inside; /* of an axis: a loop of the statements at hand runs over it */
} Reach;

/* What is reached of an argument by all turns of a loop. */
typedef struct {
    bool load, store, odd; /* odd: not by slices */
    Reach at;
    const Index *index; /* of what touches it first */
} Touched;

typedef struct {
    const Kernel *k;
    Reach axis[AXES_MAX];
    Touched *arg; /* by Arg.id */
    bool refused; /* it holds what is no loop */
} Sites;

/* What the statements touch: those of a parallel loop where each turn is so many of its own, or
 * any others. */
Sites sites_of(const Kernel *k, Arena *scratch, const StmtList *list, const Stmt *loop,
               int64_t each);
/* How many turns a loop has that runs over `span` places of its axis, 0: over all. */
int64_t loop_turns(const Kernel *k, int axis, int64_t span);
/* Statements in any order: none touches what another one writes. */
bool sites_apart(const Sites *a, const Sites *b);
StmtList list_part(const StmtList *list, int from, int to);
void list_append(Kernel *k, StmtList *to, const StmtList *from);
/* The two statements that alone touch the argument, where the first may stand right in front of the
 * second; false: there are none. */
bool sites_pair(const Kernel *k, Arena *scratch, const Arg *arg, const StmtList *list, int pair[2]);

/* --- placed.c --- */
/* Adds the statements where the axis is at its place; false: that cannot be said. */
bool stmts_at(ExprAt *x, Arena *scratch, const StmtList *from, StmtList *to);
/* Puts statements that bind values into a loop of one turn, with which these end: what stands
 * behind may bind the same ones again. */
void stmts_apart(Kernel *k, StmtList *list);

/* --- lines.c --- */
/* Makes one loop of the two of the list that touch a workspace, line by line; gives the elements of
 * it that are needed then, or 0, and nothing is done. */
int64_t lines_join(Kernel *k, Arena *scratch, const Arg *arg, StmtList *list);

/* --- next.c --- */
/* While `second` is at work, what `first` reads of large arguments in the next turn of the loop
 * around both is asked for: memory would rest meanwhile, and be waited for then. */
void ask_for_next(Kernel *k, Arena *scratch, const Stmt *loop, const StmtList *first,
                  const StmtList *second);
/* The same of a loop that asks for it by itself: what its statements load, and nothing else. */
void ask_for_turns(Kernel *k, Arena *scratch, const Stmt *loop);
/* The same of two loops that take turns: while each of them is at work, so that memory never rests,
 * for what the other one touches then. */
void ask_in_turn(Kernel *k, Arena *scratch, const Stmt *loop, const StmtList *first,
                 const StmtList *second);

#endif
