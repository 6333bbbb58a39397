/* fmt: a model text in canonical layout, for `mdlc fmt`. */
#ifndef MDLC_LANG_FMT_H
#define MDLC_LANG_FMT_H

#include "compiler/compile.h"

/* The text of a source, laid out anew; NULL if it does not parse (messages are in c->diag). */
char *fmt_source(Compile *c, Arena *arena, uint32_t source);

#endif
