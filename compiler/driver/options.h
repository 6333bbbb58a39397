/* options: the command line. */
#ifndef MDLC_COMPILER_DRIVER_OPTIONS_H
#define MDLC_COMPILER_DRIVER_OPTIONS_H

#include "compiler/compile.h"

extern const char options_usage[]; /* what --help prints */
/* What --blas and --target take, the usual first; NULL ends them. */
extern const char *const options_blas[];
extern const char *const options_targets[];
/* argv -> Compile.opt, overrides and bindings. Says what is wrong; gives an exit code. */
int options_parse(Compile *c, int argc, char **argv);

#endif
