/* evaluation: a train's loss and metrics over held-out rows, in infer mode.
 *
 * One entry sees up to B rows of one batch and gives sums over the rows in use; a second entry
 * turns the sums of all batches into the loss and the metrics. Folds over the batch become such
 * sums, and arithmetic on them happens in the second entry. */
#ifndef MDLC_LANG_EVALUATION_H
#define MDLC_LANG_EVALUATION_H

#include "lang/context.h"

/* Who runs on fewer rows than the batch has, in messages; NULL: the entry at hand does not. */
const char *evaluation_of_few(const Elab *e);
/* Where values that need all rows are computed. */
Region *evaluation_end_region(Elab *e);
/* v as the end entry sees it; poison after an error. */
const Value *evaluation_at_end(Elab *e, Loc loc, const Value *v);
/* A scalar input of the run, which all batches share, made in the end region, where the graph is
 * now; NULL: the slot is none. */
Node *evaluation_scalar(Elab *e, Slot *slot);
/* What is made of v, a value of the end, is made there: nodes go to that region from here to
 * evaluation_leave, which marks `r` (or NULL) as a value of the end too. */
Region *evaluation_enter(Elab *e, const Value *v);
const Value *evaluation_leave(Elab *e, const Value *v, Region *before, const Value *r);
/* Is an axis with this extent a fold over rows of which some may not be there? */
bool evaluation_masks(Elab *e, Dim dim);
/* A fold over all axes in `axes` (of v's node), some of which hold the batch. */
const Value *evaluation_fold(Elab *e, const char *name, const Value *v, uint32_t axes, Loc loc);
/* Warns of a / b where a is known at the end alone and b is the extent of the batch. */
void evaluation_divided(Elab *e, Loc loc, const Value *a, const Value *b);
/* Elaborates the evaluation of `train` from its source. */
void evaluation_entry(Elab *e, const Ast *ast, Entry *train);

#endif
