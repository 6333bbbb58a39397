/* dump_read: a dumped graph becomes a module again, without elaboration. */
#ifndef MDLC_LANG_DUMP_READ_H
#define MDLC_LANG_DUMP_READ_H

#include "compiler/graph.h"
#include "lang/ast.h"

/* The `use core;` of a dump; NULL: the file is none. */
const Ast *dump_core(const Ast *file);
/* Fills `module`, whose arena and graph are made; after an error it is not to be used. `core` is
 * what dump_core gave. */
void dump_module(Compile *c, Module *module, const Ast *file, const Ast *core);

#endif
