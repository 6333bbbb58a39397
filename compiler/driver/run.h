/* run: `mdlc run` and `mdlc test`, in the reference evaluator. No C compiler is needed. */
#ifndef MDLC_COMPILER_DRIVER_RUN_H
#define MDLC_COMPILER_DRIVER_RUN_H

#include "compiler/compile.h"
#include "compiler/graph.h"

/* The entry's regions have their gradients expanded. Results go to `out`. Return an exit code. */
int run_entry(Compile *c, const Module *module, FILE *out);
int run_tests(Compile *c, const Module *module, FILE *out);

#endif
