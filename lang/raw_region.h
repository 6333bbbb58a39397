/* raw_region: the lines of a dumped region. */
#ifndef MDLC_LANG_RAW_REGION_H
#define MDLC_LANG_RAW_REGION_H

#include "lang/raw_args.h"

typedef struct {
    const char *name; /* NULL: free */
    Node *node;
} RawName;

/* The names of one region; bodies see none from outside. */
typedef struct {
    RawName *at;
    int size, used;
    const Ast *result; /* the RETURN at its end, or NULL */
} RawNames;

/* Reads the block of an entry into its region, which is entered for that. False after an error. */
bool raw_region(Raw *r, Entry *entry, const Ast *block, RawNames *names);
/* The node of a name; NULL after an error. */
Node *raw_value(Raw *r, const RawNames *names, const Ast *expr);
/* A slot: the name of an input of the entry, or a string; NULL after an error. */
Slot *raw_slot(Raw *r, const Ast *expr);

#endif
