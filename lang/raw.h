/* raw: a dumped graph becomes a module again, without elaboration. */
#ifndef MDLC_LANG_RAW_H
#define MDLC_LANG_RAW_H

#include "compiler/graph.h"
#include "lang/ast.h"

/* Is it the text of a dump? It says `use core;`. */
bool raw_is(const Ast *file);
/* Fills `module`, whose arena and graph are made; after an error it is not to be used. */
void raw_module(Compile *c, Module *module, const Ast *file);

#endif
