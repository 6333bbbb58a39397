/* stagger: where large tensors of the state may begin. */
#ifndef MDLC_PASSES_PLAN_STAGGER_H
#define MDLC_PASSES_PLAN_STAGGER_H

#include "compiler/program.h"

typedef struct Stagger Stagger;

/* Which large params and state the kernels of a program touch together; what is allocated lies in
 * `scratch`. */
Stagger *plan_stagger(const Program *p, Arena *scratch);

/* Bytes, less than 4,096, to leave free in front of the state `slot`, which would begin at `at`;
 * those that are noted as placed lie at their offsets. */
int64_t plan_stagger_lead(const Stagger *a, const Buf *slot, int64_t at);
void plan_stagger_placed(Stagger *a, const Buf *slot);

#endif
