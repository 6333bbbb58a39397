/* version: what `mdlc --version` prints. */
#ifndef MDLC_COMPILER_DRIVER_VERSION_H
#define MDLC_COMPILER_DRIVER_VERSION_H

#include <stdio.h>

/* The first line is "mdlc 0.1.0" and stays so; the others say how this compiler was built and what
 * is in it. The same build gives the same text. */
void version_print(FILE *out);

#endif
