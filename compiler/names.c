/* names: open hash tables of (scope, name). The numbers of a name go on where they ended, so that n
 * equal names cost n steps. Needs names that live as long as the set, gives answers, changes no
 * values. */
#include "compiler/names.h"

#include <string.h>

enum { SIZE_FIRST = 64, LIST_LONG = 12 };

/* Its slot, or the empty one for it. */
static NameKey *find(const NameTable *table, const void *scope, const char *name) {
    uint64_t hash = hash_str(HASH_TABLE, name);
    hash = hash_bytes(hash, &scope, sizeof scope);
    int at = (int)(hash & (uint64_t)(table->size - 1));
    while (table->slot[at].name != NULL &&
           (table->slot[at].scope != scope || strcmp(table->slot[at].name, name) != 0)) {
        at = (at + 1) & (table->size - 1);
    }
    return &table->slot[at];
}

/* The key of the name, which is added if it is not there. */
static NameKey *key_of(Arena *arena, NameTable *table, const void *scope, const char *name) {
    if (2 * table->used >= table->size) {
        NameTable grown = {.size = table->size > 0 ? 2 * table->size : SIZE_FIRST};
        grown.slot = ARENA_ARRAY(arena, NameKey, grown.size);
        grown.used = table->used;
        for (int i = 0; i < table->size; i++) {
            if (table->slot[i].name != NULL) {
                *find(&grown, table->slot[i].scope, table->slot[i].name) = table->slot[i];
            }
        }
        arena_drop(arena, table->slot, sizeof *table->slot * (size_t)table->size);
        *table = grown;
    }
    NameKey *key = find(table, scope, name);
    if (key->name == NULL) {
        *key = (NameKey){scope, name, 1};
        table->used++;
    }
    return key;
}

bool names_has(const NameSet *set, const void *scope, const char *name) {
    return set->taken.size > 0 && find(&set->taken, scope, name)->name != NULL;
}

void names_add(Arena *arena, NameSet *set, const void *scope, const char *name) {
    key_of(arena, &set->taken, scope, name);
}

int names_number(Arena *arena, NameSet *set, const void *scope, const char *name) {
    return ++key_of(arena, &set->numbered, scope, name)->number;
}

void names_push(Arena *arena, NameList *list, const char *name) {
    VEC_PUSH(arena, &list->name, name);
    int from = list->table.size > 0 ? list->name.count - 1 : 0;
    bool table = list->table.size > 0 || list->name.count > LIST_LONG;
    for (int i = from; table && i < list->name.count; i++) {
        key_of(arena, &list->table, NULL, list->name.at[i])->number = i + 1;
    }
}

int names_at(const NameList *list, const char *name) {
    if (list->table.size > 0) {
        const NameKey *key = find(&list->table, NULL, name);
        int at = key->name != NULL ? key->number - 1 : -1;
        /* What was cut off is still in the table. */
        return at < list->name.count && (at < 0 || strcmp(list->name.at[at], name) == 0) ? at : -1;
    }
    int i = list->name.count - 1;
    while (i >= 0 && strcmp(list->name.at[i], name) != 0) {
        i--;
    }
    return i;
}

void names_cut(NameList *list, int count) {
    list->name.count = count;
}
