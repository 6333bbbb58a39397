/* modules: `use nn;`: the embedded library, or a file beside the source. */
#ifndef MDLC_LANG_MODULES_H
#define MDLC_LANG_MODULES_H

#include "lang/context.h"

/* Registers the items of a parsed file and loads what it uses. `path` is NULL for the library. */
File *modules_root(Elab *e, const Ast *ast, const char *path);

/* The library module that declares an op, layer or optimizer of this name, or NULL. */
const char *modules_with(Elab *e, const char *name);

#endif
