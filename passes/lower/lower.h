/* lower: Graph -> Program. */
#ifndef MDLC_PASSES_LOWER_LOWER_H
#define MDLC_PASSES_LOWER_LOWER_H

#include "compiler/compile.h"
#include "compiler/kernel.h"

/* lower: needs a module without marks whose entries are verified; gives a Program of bufs, steps
 * and kernels for every entry but tests, steps in one legal order, Buf.final and every Access set;
 * offsets and names of functions are left to order, in-place, plan and program_names. Changes no
 * values. */
Program *pass_lower(Compile *c, Arena *arena, Module *module);

#endif
