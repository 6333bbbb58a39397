/* dumped: texts become modules, and modules texts that are read again. */
#ifndef MDLC_TESTS_DUMPED_H
#define MDLC_TESTS_DUMPED_H

#include "compiler/compile.h"
#include "compiler/graph.h"

typedef struct {
    Compile c;
    uint32_t source;
    Module *module; /* NULL after errors */
    char *messages;
} Dumped;

enum { DUMPED_PASSES = 14 };

/* Parses and elaborates. `m` stays where it is: its parts point into it. */
void dumped_make(Dumped *m, const char *path, const char *text, size_t length, Elem float_type);
/* The same under any options; `input` names the text. */
void dumped_make_with(Dumped *m, Options options, const char *text, size_t length);
void dumped_done(Dumped *m);
/* The first entry of this kind and, unless NULL, of this name; NULL if there is none. */
Entry *module_entry(const Module *module, EntryKind kind, const char *name);
int region_count(const Region *region, OpCode op); /* nodes, those in bodies too */
/* Bytes of a file, in `arena`; NULL if it is not there. */
char *dumped_file(Arena *arena, const char *path, size_t *length);
char *dumped_text(Arena *arena, const Module *module, size_t *length);
/* Dump, read, compare, dump again: NULL, or what is wrong, in `arena`. */
const char *dumped_fault(Arena *arena, const Module *module, const char *stage);
/* Graph pass 0.. of the pipeline, on every entry. */
void dumped_pass(Module *module, int pass);
/* The same as built and after each pass. */
const char *dumped_stages_fault(Arena *arena, Module *module);

#endif
