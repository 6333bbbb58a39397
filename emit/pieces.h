/* pieces: which texts of runtime/ an emitted file needs, and their printing. */
#ifndef MDLC_EMIT_PIECES_H
#define MDLC_EMIT_PIECES_H

#include "compiler/base.h"

typedef struct Pieces Pieces;

Pieces *pieces_new(Arena *arena);
void pieces_need(Pieces *pieces, const char *name); /* "runtime/tensor.h" and what it includes */
/* Every piece that defines a name (md_... or MD_...) that `text` uses. */
void pieces_scan(Pieces *pieces, const char *text, size_t length);
/* Text that stands before the register tiles of products, where they are needed. */
void pieces_before_tiles(Pieces *pieces, const char *text);
/* Prints what is needed and not printed yet, includes before includers. */
void pieces_print(Pieces *pieces, Text *out);

#endif
