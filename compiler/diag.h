/* diag: source files, byte spans and the messages a user reads.
 *
 * A Loc is a byte span in one of the sources of a Compile; lines and columns exist only when a
 * message is printed. Format: `file:line:col: error: message [E0214]`, the source line, a caret
 * run, then notes (with or without a place) and at most one hint. */
#ifndef MDLC_COMPILER_DIAG_H
#define MDLC_COMPILER_DIAG_H

#include "compiler/base.h"

#include <stdio.h>

typedef struct {
    uint32_t source; /* index into Diag.sources */
    uint32_t at, len;
    uint32_t owner; /* of nodes: 1 + the place of what they belong to in Module.owner; 0: none */
} Loc;
#define LOC_NONE ((Loc){UINT32_MAX, 0, 0, 0})
/* The same construct, of the same owner? */
static inline bool loc_equal(Loc a, Loc b) {
    return a.source == b.source && a.at == b.at && a.len == b.len && a.owner == b.owner;
}

typedef struct {
    const char *name; /* as shown in messages: path as given, or <nn> for a module of the library */
    const char *text; /* NUL-terminated; text[length] is the end (the text may hold NUL bytes) */
    size_t length;
    uint32_t *line; /* byte offset of each line start, made on first use */
    uint32_t nline;
} Source;

typedef struct {
    Arena *arena;
    VEC(Source) sources;
    FILE *out; /* stderr, or a memory stream in tests and fuzzers */
    int errors, warnings;
    int limit; /* after this many errors the rest is counted, not printed (20) */
    bool color, warnings_are_errors;
    bool muted; /* the last error was past the limit: its notes are not printed either */
} Diag;

void diag_open(Diag *diag, Arena *arena, FILE *out);
/* Adds a text; returns its index for Loc.source. The text is borrowed. */
uint32_t diag_add_source(Diag *diag, const char *name, const char *text, size_t length);
Loc loc_span(Loc first, Loc last); /* from the start of `first` to the end of `last` */
/* 1-based line and column (in bytes) of the start of loc. */
void loc_line(Diag *diag, Loc loc, int *line, int *col);
const char *loc_file(const Diag *diag, Loc loc);

/* `id` is the number of the message class: 214 prints [E0214]; each call site has its own id
 * range per module: parser 1xx, names and scope 2xx, types, dims and index notation 3xx-4xx,
 * training blocks and data 5xx, plan and budget 6xx, files and options 7xx. */
void diag_error(Diag *diag, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);
void diag_warn(Diag *diag, Loc loc, int id, const char *fmt, ...) MDLC_PRINTF(4, 5);
/* Belong to the message before them. A note with LOC_NONE has no source line. */
void diag_note(Diag *diag, Loc loc, const char *fmt, ...) MDLC_PRINTF(3, 4);
void diag_hint(Diag *diag, const char *fmt, ...) MDLC_PRINTF(2, 3);
/* Prints "N more errors" when the limit was passed. */
void diag_close(Diag *diag);

#endif
