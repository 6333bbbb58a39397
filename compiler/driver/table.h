/* table: what stands in a csv file, column by column, for `mdlc init`. */
#ifndef MDLC_COMPILER_DRIVER_TABLE_H
#define MDLC_COMPILER_DRIVER_TABLE_H

#include "compiler/base.h"

enum {
    TABLE_COLUMNS = 65536, /* the most that are looked at */
    TABLE_CLASSES = 256    /* the most labels, 0 .. 255 or 1 .. 256 */
};

typedef struct {
    const char *name;   /* of the header, as far as it was kept; NULL: there is none */
    const char *wrong;  /* the first cell that is no number; NULL: all are, "": it is empty */
    int64_t wrong_line; /* its line */
    float low, high;    /* of the numbers */
    bool whole;         /* all of them are integers */
} TableColumn;

typedef struct {
    const char *path;
    bool header;
    bool odd_header; /* no names, and no row: other rows are numbers below it */
    int64_t rows;    /* without the header */
    int columns;
    TableColumn *column;
    int target;                   /* the column that is asked for, from 0 */
    bool seen[TABLE_CLASSES + 1]; /* integers that stand in it */
} Table;

/* Reads the file of t->path as emitted programs read it. `target` is the name or the number, from
 * 1, of a column; NULL: the last one. NULL, or a message that names file, line and column; the code
 * is EXIT_SOURCE for what stands in the file, EXIT_FILE where it cannot be read, EXIT_USAGE for a
 * target that is not there. */
const char *table_read(Arena *arena, Table *t, const char *target, int *code);

/* A cell or a name for a message or a comment: one line in quotes, cut where it is long. */
const char *table_shown(Arena *arena, const char *text);
/* "column 3 'age'" */
const char *table_column_name(Arena *arena, const Table *t, int column);

#endif
