/* output: the files that mdlc writes. Each is replaced as a whole or not at all, and several of one
 * compile get their names when all of them are complete. */
#ifndef MDLC_COMPILER_DRIVER_OUTPUT_H
#define MDLC_COMPILER_DRIVER_OUTPUT_H

#include "compiler/compile.h"

typedef struct {
    const char *option; /* that names it: "-o" */
    const char *path;   /* "-": Compile.out */
} Output;

/* Before anything is written: do all outputs lie apart, from each other, from what `inputs` names,
 * and from a file that standard output goes to? Else says what falls on what and gives false. */
bool output_apart(Compile *c, const Output *output, int count, const Paths *inputs);

typedef struct OutputFile OutputFile;
typedef struct {
    Compile *c;
    VEC(OutputFile *) file; /* complete, and not yet in place */
} Outputs;

/* What goes to a file waits for outputs_place; the rest is written at once. Both give an exit code,
 * and after a failure nothing more is put in place. */
int outputs_add(Outputs *outputs, const char *path, const Text *text);
int outputs_place(Outputs *outputs);

#endif
