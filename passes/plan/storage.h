/* storage: which Bufs share their bytes, and how destinations get their values. */
#ifndef MDLC_PASSES_PLAN_STORAGE_H
#define MDLC_PASSES_PLAN_STORAGE_H

#include "compiler/program.h"

/* Needs an ordered entry; gives Buf.root, the copies that remain necessary, new step numbers and
 * lifetimes. */
void pass_inplace(Program *p, ProgramEntry *e);

#endif
