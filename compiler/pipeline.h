/* pipeline: what main calls. */
#ifndef MDLC_COMPILER_PIPELINE_H
#define MDLC_COMPILER_PIPELINE_H

#include "compiler/compile.h"

/* Does what c->opt.command says; messages go to c->diag. Returns an exit code. */
int pipeline_run(Compile *c);

#endif
