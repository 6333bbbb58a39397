/* recompute: what the loops of a train keep for its derivative, chosen for a budget. */
#ifndef MDLC_COMPILER_DRIVER_RECOMPUTE_H
#define MDLC_COMPILER_DRIVER_RECOMPUTE_H

#include "compiler/compile.h"
#include "compiler/graph.h"

/* Needs a module whose entries have seen the stages up to `stage`, the first that differentiates;
 * sets Entry.keep of trains that need more than is left of `budget` bytes for all regions (-1: any
 * number) as long as loops keep what is quickest. Changes no values. */
void choose_kept(Compile *c, Module *module, int stage, int64_t budget);

#endif
