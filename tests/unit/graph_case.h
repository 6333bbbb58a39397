/* graph_case: a module as built, with what its inputs hold: the unit that random tests make, check,
 * reduce, write to a file and read again.
 *
 * A case file is a dump (compiler/dump.c) with comment lines in front: `// precision f64`, perhaps
 * `// threads 1`, the finding that it shows, and `// input call0.x1: 0.5 -0.25` for each input.
 * Slots take what the init entry writes. */
#ifndef MDLC_TESTS_GRAPH_CASE_H
#define MDLC_TESTS_GRAPH_CASE_H

#include "compiler/eval.h"
#include "dumped.h"

#include <stdio.h>

typedef struct {
    Slot *slot;
    double *data;
} CaseInput;

/* What result `result` of entry `entry` must be in the first call, from elsewhere. */
typedef struct {
    int entry, result;
    double *data;
} CaseMeaning;

typedef struct {
    Arena arena;
    Module *module; /* at STAGE_BUILT; entries are INIT, then TRAIN and CALL */
    VEC(CaseInput) input;
    VEC(CaseMeaning) meaning;
    Dumped *text; /* of a case that was read: owns the module */
    bool lone;    /* lowered for one thread; else for four */
} GraphCase;

void graph_case_open(GraphCase *c, Elem float_type); /* a module with an empty init entry */
void graph_case_close(GraphCase *c);
Entry *graph_case_entry(GraphCase *c, EntryKind kind, const char *name);
/* A parameter or state that init sets to `start` (a node of init's region). */
Slot *graph_case_slot(GraphCase *c, SlotKind kind, StateRole role, const char *name, Node *start);
/* An input; the data is kept. Integers of a range lo < hi are promised to stay in it. */
Slot *graph_case_input(GraphCase *c, Entry *entry, Type type, double *data, int64_t lo, int64_t hi);
void graph_case_result(GraphCase *c, Entry *entry, OutRole role, Node *node);
void graph_case_write_slot(GraphCase *c, Entry *entry, Slot *slot, Node *node);
double *graph_case_data(const GraphCase *c, const Slot *slot); /* NULL: none */
/* Moves the data of inputs to the slots of the same names of another module. */
void graph_case_adopt(const GraphCase *from, GraphCase *to);

void graph_case_print_inputs(const GraphCase *c, FILE *out); /* those comment lines */
/* `head` stands in comment lines in front. */
bool graph_case_save(const GraphCase *c, const char *path, const char *head);
/* False and a message in `*message` (owned by the case) when the file cannot be read. */
bool graph_case_load(GraphCase *c, const char *path, const char **message);

#endif
