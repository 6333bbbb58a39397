/* scaler: the scale of the loss of a train that rounds to f16.
 *
 * f16 holds nothing below 2^-24, so gradients start from a scale in the place of 1 and are divided
 * by it before anything else sees them. Where one of them is not finite then, the update is left
 * out as a whole: parameters, slots of optimizers, averages and the counter stay what they are, and
 * the scale halves. After 2,000 updates in a row it doubles, where it stays finite. Its two states
 * are counters of the train, in checkpoints and in the bound like any other. */
#ifndef MDLC_LANG_SCALER_H
#define MDLC_LANG_SCALER_H

#include "lang/training.h"

/* Once the clauses have run; nothing unless the train rounds to f16. */
void scaler_open(Elab *e, Training *t, Entry *train);
/* What the derivative of the loss, or of what it is made of, starts from. */
Node *scaler_start(Elab *e, const Training *t, Elem elem);
/* Gradients that are those of the loss again. */
void scaler_close(Elab *e, Training *t);
/* Once t->norm is known. */
void scaler_judge(Elab *e, Training *t);
/* `next`, or `now` where the update is left out. */
Node *scaler_choose(Elab *e, const Training *t, Node *next, Node *now);
void scaler_outputs(Elab *e, Training *t);

#endif
