/* pipeline: what main calls. */
#ifndef MDLC_COMPILER_DRIVER_PIPELINE_H
#define MDLC_COMPILER_DRIVER_PIPELINE_H

#include "compiler/compile.h"

/* Does what c->opt.command says with the model file c->opt.input; messages go to c->diag, what is
 * printed to c->out. Returns an exit code. */
int pipeline_run(Compile *c);
/* The same with a text in place of what the file holds. The text is borrowed. */
int pipeline_text(Compile *c, const char *text, size_t length);

#endif
