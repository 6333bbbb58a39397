/* raw: a dumped graph becomes a module again, without elaboration. */
#ifndef MDLC_LANG_RAW_H
#define MDLC_LANG_RAW_H

#include "compiler/graph.h"
#include "lang/ast.h"

/* The `use core;` of a dump; NULL: the file is none. */
const Ast *raw_core(const Ast *file);
/* Fills `module`, whose arena and graph are made; after an error it is not to be used. `core` is
 * what raw_core gave. */
void raw_module(Compile *c, Module *module, const Ast *file, const Ast *core);

#endif
