/* train: training blocks: loss, metrics, gradients, clipping, optimizers. */
#ifndef MDLC_LANG_TRAIN_H
#define MDLC_LANG_TRAIN_H

#include "lang/context.h"

void train_entry(Elab *e, const Ast *ast);
/* An entry that gives the train's loss and gradients, for expect gradcheck(train) < tolerance. */
void train_gradcheck(Elab *e, const Ast *ast, Entry *train, const char *title, double tolerance,
                     Loc loc);
/* `step`, `steps` or `epoch`; poison and an error where there is no train. */
const Value *train_counter(Elab *e, const char *name, Loc loc);
/* A clause of a train, met by the statement walker. */
void train_clause(Elab *e, const Ast *clause);
/* A float scalar of a train, for the messages `what`; poison after an error. */
const Value *train_scalar(Elab *e, const Ast *expr, const char *what);
/* Is a number of an optimizer being read whose clause stands before `loc`? */
bool train_reads_before(const Elab *e, Loc loc);
/* `state m: [...] = 0;` in an optimizer. */
void train_optimizer_state(Elab *e, const Ast *state);
/* under(path) in the `on` of an optimizer. */
const Value *train_under(Elab *e, const Ast *path);
/* May the entry at hand write this layer state? */
/* Has a layer or model parameters, by what its text says and that of the layers that it names? */
bool train_owns_parameters(Item *item);
bool train_writes_state(Elab *e, const Slot *slot);

#endif
