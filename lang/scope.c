/* scope: lookup of names, and the nearest one when there is none. */
#include "lang/scope.h"

#include <ctype.h>
#include <string.h>

Scope *scope_new(Arena *arena, Scope *up, File *file) {
    Scope *scope = ARENA_NEW(arena, Scope);
    scope->up = up;
    scope->file = file;
    return scope;
}

ScopeName *scope_add(Arena *arena, Scope *scope, const char *name, Loc loc, BindKind kind,
                     const Value *value) {
    ScopeName *n = ARENA_NEW(arena, ScopeName);
    n->name = name;
    n->loc = loc;
    n->kind = kind;
    n->value = value;
    VEC_PUSH(arena, &scope->name, n);
    names_push(arena, &scope->names, name);
    return n;
}

ScopeName *scope_find_here(const Scope *scope, const char *name) {
    int i = name ? names_at(&scope->names, name) : -1;
    return i >= 0 ? scope->name.at[i] : NULL;
}

ScopeName *scope_find(const Scope *scope, const char *name) {
    for (; scope; scope = scope->up) {
        ScopeName *n = scope_find_here(scope, name);
        if (n) {
            return n;
        }
    }
    return NULL;
}

Item *file_find_own(const File *file, const char *name) {
    int i = name ? names_at(&file->names, name) : -1;
    return i >= 0 ? file->item.at[i] : NULL;
}

Item *file_find(const File *file, const char *name) {
    Item *item = file_find_own(file, name);
    for (int library = 0; library < 2; library++) { /* which gives way to other modules */
        for (int i = 0; !item && i < file->use.count; i++) {
            bool now = file->use.at[i]->library == (library == 1);
            item = now ? file_find_own(file->use.at[i], name) : NULL;
        }
    }
    return item;
}

const char *item_text(Arena *arena, const Item *item) {
    const char *kind = ast_kind_name(item->kind);
    return str_printf(arena, "%s %s", strchr("aeiou", kind[0]) ? "an" : "a", kind);
}

Nearest nearest_start(const char *name) {
    size_t length = strlen(name);
    /* A short name has many neighbours: only close ones are worth a word. */
    int limit = length <= 2 ? 0 : length <= 4 ? 1 : length <= 8 ? 2 : 3;
    return (Nearest){name, NULL, limit + 1, limit};
}

static bool same_but_case(const char *a, const char *b) {
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* weight_decay for decay, lrate for lr */
static bool part_of(const char *part, const char *whole) {
    enum { SHORTEST_START = 2, SHORTEST_PART = 4 };
    const char *at = strstr(whole, part);
    size_t length = strlen(part);
    return at && (at == whole ? length >= SHORTEST_START : length >= SHORTEST_PART);
}

void nearest_add(Nearest *n, const char *candidate) {
    if (n->distance == 0 || str_eq(n->name, candidate)) {
        return;
    }
    int d = str_distance(n->name, candidate, n->distance - 1);
    if (same_but_case(n->name, candidate)) {
        d = 0;
    } else if (d > n->limit && n->limit > 0 &&
               (part_of(n->name, candidate) || part_of(candidate, n->name))) {
        d = n->limit; /* anything nearer is better */
    }
    if (d < n->distance) {
        n->distance = d;
        n->best = candidate;
    }
}

void nearest_scope(Nearest *n, const Scope *scope) {
    for (; scope; scope = scope->up) {
        for (int i = 0; i < scope->name.count; i++) {
            nearest_add(n, scope->name.at[i]->name);
        }
    }
}

void nearest_file(Nearest *n, const File *file) {
    for (int i = 0; i < file->item.count; i++) {
        nearest_add(n, file->item.at[i]->name);
    }
    for (int u = 0; u < file->use.count; u++) {
        for (int i = 0; i < file->use.at[u]->item.count; i++) {
            nearest_add(n, file->use.at[u]->item.at[i]->name);
        }
    }
}
