/* module: the emitted C file, the header for embedding, the dependency file. */
#ifndef MDLC_EMIT_MODULE_H
#define MDLC_EMIT_MODULE_H

#include "emit/printer.h"
#include "emit/write.h"

/* Need a checked Program with names (program_names); give text. */
void emit_module(Text *out, Compile *c, const Program *p, const Source *source);
void emit_module_with(Text *out, Compile *c, const Program *p, const Source *source,
                      const Printer *printer);
/* The same in several files: `unit[0]` to `unit[units - 1]` get kernels of it, `out` the rest. */
void emit_module_split(Text *out, Text *unit, int units, Compile *c, const Program *p,
                       const Source *source);
void emit_header(Text *out, Compile *c, const Program *p, const Source *source);
/* The files that a model is made of: its own, those of its modules, those of its data. */
Paths emit_inputs(Compile *c, const Module *module);
/* A make rule: the output depends on the model's texts. */
void emit_depend(Text *out, Compile *c, const Program *p);

#endif
