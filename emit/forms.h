/* forms: what of a product's plan its text has where the plan stands in another file. */
#ifndef MDLC_EMIT_FORMS_H
#define MDLC_EMIT_FORMS_H

#include "compiler/kernel.h"
#include "runtime/tile.h"

enum { FORM_FIELDS = sizeof(md_tile) / sizeof(int64_t) };

/* The plan that a product's text knows: its flags, rows of register tiles on each machine, where
 * MD_TILE_TILES says so, and which fields are read. */
typedef struct {
    bool known; /* else the text has all of the plan */
    int64_t is;
    int64_t big[TILE_MACHINES], little[TILE_MACHINES];
    uint64_t bodies[TILE_MACHINES]; /* that it may run, as in Tile */
    bool read[FORM_FIELDS];
} Form;

Form form_of(const Tile *tile, const md_tile *plan);
/* The field of plan `p`, as a number or as one that is read. `form`: NULL: all are numbers. */
const char *form_number(Arena *arena, const Form *form, const md_tile *p, const int64_t *field);
/* Its rows: the macro up to the first length. */
const char *form_rows(Arena *arena, const Form *form);
/* A line of the runtime as it is where plans may be forms: fields of plans may be read. */
const char *form_line(Arena *arena, const char *line);

#endif
