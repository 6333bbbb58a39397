/* names: which names are taken, each in its scope, and numbers for fresh ones. */
#ifndef MDLC_COMPILER_NAMES_H
#define MDLC_COMPILER_NAMES_H

#include "compiler/base.h"

typedef struct {
    const void *scope; /* any address that stands for it */
    const char *name;
    int number; /* given out last for this name */
} NameKey;

/* Empty when zeroed; memory comes from the arena that each call names, always the same one. */
typedef struct {
    NameKey *slot;
    int size, used;
} NameTable;
typedef struct {
    NameTable taken, numbered;
} NameSet;

bool names_has(const NameSet *set, const void *scope, const char *name);
void names_add(Arena *arena, NameSet *set, const void *scope, const char *name);
/* 2, then 3, ... at each call with this scope and name: what to tell equal names apart by. */
int names_number(Arena *arena, NameSet *set, const void *scope, const char *name);

/* Names by position: what is looked up in a list that may be long. Empty when zeroed. */
typedef struct {
    VEC(const char *) name;
    NameTable table; /* of position + 1, once the list is long */
} NameList;

void names_push(Arena *arena, NameList *list, const char *name);
int names_at(const NameList *list, const char *name); /* the last of that name; -1: none */
/* Forgets all from position `count` on; the names of the list are different ones. */
void names_cut(NameList *list, int count);

#endif
