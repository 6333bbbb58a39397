/* order: the order of the steps of an entry, for the least memory. */
#ifndef MDLC_PASSES_PLAN_ORDER_H
#define MDLC_PASSES_PLAN_ORDER_H

#include "compiler/program.h"

/* Needs a lowered entry (any legal order); gives an order, STEP_CHECK in trains, step numbers and
 * the name of the order that won. Changes no values. */
void pass_order(Program *p, ProgramEntry *e);

#endif
