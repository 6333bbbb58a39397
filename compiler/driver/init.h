/* init: `mdlc init`, a new model from a template. */
#ifndef MDLC_COMPILER_DRIVER_INIT_H
#define MDLC_COMPILER_DRIVER_INIT_H

#include "compiler/compile.h"

/* Writes a model file, or lists the templates; says what is wrong; gives an exit code. */
int init_run(Compile *c);

#endif
