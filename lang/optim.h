/* optim: optimizers, applied to each parameter tensor as written. */
#ifndef MDLC_LANG_OPTIM_H
#define MDLC_LANG_OPTIM_H

#include "lang/training.h"

/* Fills `next` and the states of every update; false after an error. */
bool optim_apply(Elab *e, Training *t);

#endif
