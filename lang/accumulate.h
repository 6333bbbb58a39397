/* accumulate: one update from several micro-batches.
 *
 * `accumulate k;` in a train runs its body in a loop of k turns, each with B rows of the data set.
 * What the update then sees are the loss, the metrics and the gradients of all k*B rows: an
 * outermost `sum` over the batch adds up, a `mean` is the mean of the turns, and what is made of
 * such folds (a quotient, a root) is made of their totals. So accumulation is the larger batch up
 * to rounding, also where rows count differently; only what normalises inside a batch sees B rows.
 * A loss of another form is the mean of the turns' losses, with a warning; so is every one under
 * `torch_compat = true`, as scripts do that divide the loss by k and call backward k times.
 *
 * Clauses that concern the update (optimizer, clip, ema) and assignments come behind the loop. */
#ifndef MDLC_LANG_ACCUMULATE_H
#define MDLC_LANG_ACCUMULATE_H

#include "lang/training.h"

/* Reads the clause among those statements of a train that will run, before its inputs are made, and
 * opens the loop. False after an error. */
bool accumulate_open(Elab *e, Training *t, const Ast *block);
/* The clause, met again when the body runs. */
void accumulate_clause(Elab *e, const Training *t, const Ast *clause);
/* Is `scope` that of a train whose loop is open? */
bool accumulate_running(const EntryScope *scope);
/* The type of an input that has one part for each turn, and the part of the turn at hand. */
Type accumulate_stacked(const Elab *e, Type type);
Node *accumulate_slice(Elab *e, Slot *slot);
/* `rows` is the axis of rows of an input: marks it. Nothing unless a loop is open. */
void accumulate_batch(Elab *e, Dim *rows);
/* Statements of the train itself that come behind the loop: true if `ast` was kept for then. */
bool accumulate_defers(Elab *e, const Ast *ast);
/* Does this axis hold rows of the batch? False unless a loop is open. */
bool accumulate_rows(const Elab *e, Dim dim);
/* v, a `sum` or `mean` over rows: a scalar of the body's top is noted. Returns v. */
const Value *accumulate_fold(Elab *e, const char *name, const Value *v);
/* The number of elements of a batch's tensor, a float that the update sees for all rows. */
const Value *accumulate_count(Elab *e, int64_t n);
/* Adds up the gradient of the loss with respect to u->point over the turns. */
void accumulate_gradient(Elab *e, Training *t, const Update *u);
/* Closes the loop: loss, metrics, gradients and names are those of the update. */
void accumulate_close(Elab *e, Training *t);

#endif
