/* variant: the files of runtime/ as one program has them. */
#ifndef MDLC_EMIT_VARIANT_H
#define MDLC_EMIT_VARIANT_H

#include "compiler/embed.h"
#include "compiler/names.h"

/* What stands between the lines
 *
 *     // if: NAME
 *     // end: NAME
 *
 * (each a C comment of its own, also inside macros) is for programs with the feature NAME alone.
 * `features` NULL: all of it. The lines themselves fall away. */
Embed variant_of(Arena *arena, const Embed *file, const NameList *features);

/* The same of the template of the tile, for elements of `bits` bits: MD_TN(name), MD_REAL and the
 * like become what they stand for, and conditions on MD_TILE_REAL are decided. */
Embed variant_tile(Arena *arena, const Embed *file, const NameList *features, int bits);

#endif
