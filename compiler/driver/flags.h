/* flags: `mdlc flags`, the options for a C compiler. */
#ifndef MDLC_COMPILER_DRIVER_FLAGS_H
#define MDLC_COMPILER_DRIVER_FLAGS_H

#include "compiler/compile.h"

/* One line on Compile.out; says what is wrong; gives an exit code. */
int flags_print(Compile *c);

#endif
