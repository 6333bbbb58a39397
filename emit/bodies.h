/* bodies: which register tiles, and what else of the tile, the products of a program use. */
#ifndef MDLC_EMIT_BODIES_H
#define MDLC_EMIT_BODIES_H

#include "compiler/kernel.h"
#include "compiler/names.h"
#include "emit/write.h"

/* What products have a use for: each register tile, and all else, takes a compiler time. */
typedef struct {
    Arena *arena;
    bool apart; /* plans stand in another file */
    uint64_t bodies[TILE_MACHINES];
    NameList features;
} Tiles;

/* Of all entries of the program. */
Tiles tiles_of(const Emit *e);

/* The macros that name them, which stand in front of the tile. */
const char *tile_bodies(const Emit *e, const Tiles *tiles);

#endif
