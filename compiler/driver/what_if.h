/* what_if: what changes of a model would do to its memory and work. See what_if.c. */
#ifndef MDLC_COMPILER_DRIVER_WHAT_IF_H
#define MDLC_COMPILER_DRIVER_WHAT_IF_H

#include "compiler/compile.h"

/* Prints the report of the model file c->opt.input with what changes would do: a table behind the
 * text, or `what_if` in the JSON. Exit codes as pipeline_run. */
int what_if_run(Compile *c);

#endif
