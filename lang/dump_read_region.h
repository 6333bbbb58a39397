/* dump_read_region: the lines of a dumped region. */
#ifndef MDLC_LANG_DUMP_READ_REGION_H
#define MDLC_LANG_DUMP_READ_REGION_H

#include "lang/dump_read_args.h"

typedef struct {
    const char *name; /* NULL: free */
    Node *node;
} RawName;

/* The names of one region; bodies see none from outside. */
typedef struct {
    RawName *at;
    int size, used;
    const Ast *result; /* the RETURN at its end, or NULL */
} DumpNames;

/* Reads the block of an entry into its region, which is entered for that. False after an error. */
bool dump_region(DumpRead *r, Entry *entry, const Ast *block, DumpNames *names);
/* The node of a name; NULL after an error. */
Node *dump_value(DumpRead *r, const DumpNames *names, const Ast *expr);
/* A slot: the name of an input of the entry, or a string; NULL after an error. */
Slot *dump_slot(DumpRead *r, const Ast *expr);

#endif
