/* pieces: which texts of runtime/ an emitted file needs, and their printing. */
#ifndef MDLC_EMIT_PIECES_H
#define MDLC_EMIT_PIECES_H

#include "compiler/names.h"

typedef struct Pieces Pieces;

/* `features`: what the program has (variant.h), among them F32 and F64, the element types of its
 * products. NULL: pieces with their guards and all that they include, not what is used of them. */
Pieces *pieces_new(Arena *arena, const NameList *features);
/* Of a program for a graphics processor: runtime/cuda.h defines what it may in place of others. */
Pieces *pieces_of_device(Arena *arena, const NameList *features);
/* Of a program in several files: what the runtime has once for all callers is defined in one of
 * them, and its names begin with `prefix`, since other programs have such functions too. `defines`:
 * those that this file defines for others. NULL: it only declares those that it uses. */
void pieces_share(Pieces *pieces, const char *prefix, const NameList *defines);
/* Adds the names of those that are only declared: what kernels call, and what runs seldom. */
void pieces_shared(const Pieces *pieces, NameList *often, NameList *seldom);
/* "runtime/tensor.h", whole. */
void pieces_need(Pieces *pieces, const char *name);
/* What defines a name (md_... or MD_...) that `text` uses. */
void pieces_scan(Pieces *pieces, const char *text, size_t length);
/* The same for a text that stands in front of it: types and macros come before that, and
 * prototypes. Not where pieces are whole. */
void pieces_scan_front(Pieces *pieces, const char *text, size_t length);
/* Text that stands before the register tiles of products, where they are needed. */
void pieces_before_tiles(Pieces *pieces, const char *text);
/* Includes before includers: what pieces_scan_front has found, */
void pieces_print_front(Pieces *pieces, Text *out);
/* and the rest. */
void pieces_print(Pieces *pieces, Text *out);

#endif
