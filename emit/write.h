/* write: small things that all emitted text is made of. */
#ifndef MDLC_EMIT_WRITE_H
#define MDLC_EMIT_WRITE_H

#include "compiler/compile.h"
#include "compiler/names.h"
#include "compiler/program.h"

/* Numbers of a text that stand in a table of another file (numbers.h). */
typedef struct {
    Text list;
    int count, column;
} NumberTable;

/* Entries whose calls are timed on several threads and on one (api.h), once they are asked for. */
typedef struct {
    bool known;
    VEC(const ProgramEntry *) entry;
} TimedCalls;

/* What the parts of one emitted file share. */
typedef struct {
    Compile *c;
    const Program *p;
    const Source *source;
    Arena *arena;
    const char *prefix, *upper; /* net, NET */
    NameList *features;         /* of the program, once they are asked for (features.h) */
    TimedCalls *timed;
    bool sections;              /* long lists of steps are functions of their own (locals.h) */
    NumberTable *table;         /* of the section at hand; NULL: numbers are written out */
} Emit;

Emit emit_open(Compile *c, const Program *p, const Source *source);

const char *path_base(const char *path);               /* behind the last slash */
const char *path_stem(Arena *arena, const char *path); /* of that, up to its last dot */
const char *path_numbered(Arena *arena, const char *path, int number); /* net.c -> net.1.c */
/* A statement in lines of at most 100 columns, if it can be broken behind commas and `||`. */
void text_wrapped(Text *out, const char *indent, const char *s);
/* For a comment: no end and no start of a comment inside, no trigraph and no control character. */
void text_comment(Text *out, const char *s);
/* Doc comment in front of a declaration, or nothing. */
void text_doc(Text *out, const char *indent, const char *doc);
void text_literal(Text *out, const char *s); /* with quotes; NULL prints NULL */
void text_double(Text *out, double value);   /* a C constant that gives these bits back */
void text_constant(Text *out, Elem elem, double value); /* of an element's C type */
void text_shape(Text *out, Type type);                  /* [128, 64] */
int loc_line_of(const Emit *e, Loc loc);                /* 0: none */

/* A field of *_in or *_out: the name of the source unless C has it. */
const char *field_name(const Emit *e, const char *name);
const ProgramEntry *entry_of(const Program *p, const Entry *entry);
const ProgramEntry *entry_eval(const Program *p, const Entry *train, EntryKind kind);
/* Declared inputs of an entry: without the rows in use of an evaluation. */
bool is_rows(const ProgramEntry *e, const Slot *slot);
Buf *input_buf(const ProgramEntry *e, const Slot *slot); /* NULL: nothing reads it */
Buf *result_buf(const ProgramEntry *e, int out);

#endif
