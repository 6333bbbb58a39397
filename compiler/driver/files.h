/* files: what a command reads and writes. All give an exit code and say what is wrong. */
#ifndef MDLC_COMPILER_DRIVER_FILES_H
#define MDLC_COMPILER_DRIVER_FILES_H

#include "compiler/compile.h"
#include "compiler/program.h"

/* The model file, or as much of it as shows that it is too large. */
int files_read(Compile *c, Text *text);
/* Program -> C file, header, dependencies and reports, within the budget. */
int files_emit(Compile *c, const Program *p, uint32_t source);
/* Source text -> the same in canonical layout, also in place: what is written is complete. */
int files_format(Compile *c, uint32_t source);

#endif
