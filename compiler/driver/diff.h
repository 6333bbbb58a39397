/* diff: two JSON reports beside each other. See diff.c. */
#ifndef MDLC_COMPILER_DRIVER_DIFF_H
#define MDLC_COMPILER_DRIVER_DIFF_H

#include "compiler/compile.h"

/* Prints what differs between the reports Options.input and Options.other. EXIT_SOURCE: the bound
 * has grown by more than Options.growth allows; EXIT_FILE: one of them cannot be read. */
int diff_run(Compile *c);

#endif
