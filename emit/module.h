/* module: the emitted C file, the header for embedding, the dependency file. */
#ifndef MDLC_EMIT_MODULE_H
#define MDLC_EMIT_MODULE_H

#include "emit/printer.h"
#include "emit/write.h"

/* Need a checked Program with names (program_names); give text. */
void emit_module(Text *out, Compile *c, const Program *p, const Source *source);
void emit_module_with(Text *out, Compile *c, const Program *p, const Source *source,
                      const Printer *printer);
void emit_header(Text *out, Compile *c, const Program *p, const Source *source);
/* The files that a model is made of: its own, those of its modules, those of its data. */
Paths emit_inputs(Compile *c, const Module *module);
/* A make rule: the output depends on the model's texts. */
void emit_depend(Text *out, Compile *c, const Program *p);
/* The prefix of emitted names from --prefix or the file stem. A stem that is no C identifier or
 * means something in C is altered; NULL and a message for a --prefix of that kind. */
const char *emit_prefix(Compile *c);

#endif
