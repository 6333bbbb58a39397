/* pieces: selects runtime texts by the names that the rest of the file uses.
 *
 * A piece defines the names that its lines at column 0 introduce, and its enumerators; it needs the
 * pieces whose #include lines it has. So the runtime is its own manifest. The #include
 * "runtime/..." lines fall away in print, all else stays as it is. One piece is a template, printed
 * once for each element type that is used: its functions are the names of the tile that no other
 * piece defines. Needs the embedded texts; gives text. */
#include "emit/pieces.h"

#include "compiler/embed.h"

#include <string.h>

typedef struct {
    const char *name; /* not terminated */
    size_t length;
    int piece;
} Definition;

static const char template_name[] = "runtime/tile_kernel.h";
enum { TEMPLATE_F32, TEMPLATE_F64, TEMPLATES };

struct Pieces {
    Arena *arena;
    bool *needed, *printed;
    bool as[TEMPLATES];
    const char *before_tiles;
    Definition *slot; /* hash table; the first definer of a name keeps it */
    int size, used;
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_ours(const char *s, size_t n) {
    return n > 3 && (memcmp(s, "md_", 3) == 0 || memcmp(s, "MD_", 3) == 0);
}

/* The next word that is ours in [at, end); its length in *n. NULL: none. */
static const char *next_name(const char *at, const char *end, size_t *n) {
    while (at < end) {
        if (!is_word(*at)) {
            at++;
            continue;
        }
        const char *start = at;
        while (at < end && is_word(*at)) {
            at++;
        }
        *n = (size_t)(at - start);
        if (is_ours(start, *n)) {
            return start;
        }
    }
    return NULL;
}

static Definition *find(const Pieces *p, const char *name, size_t n) {
    int at = (int)(hash_bytes(HASH_TABLE, name, n) & (uint64_t)(p->size - 1));
    while (p->slot[at].name != NULL &&
           (p->slot[at].length != n || memcmp(p->slot[at].name, name, n) != 0)) {
        at = (at + 1) & (p->size - 1);
    }
    return &p->slot[at];
}

static void define(Pieces *p, const char *name, size_t n, int piece) {
    if (2 * p->used >= p->size) {
        Pieces grown = *p;
        grown.size = 2 * p->size;
        grown.slot = ARENA_ARRAY(p->arena, Definition, grown.size);
        for (int i = 0; i < p->size; i++) {
            if (p->slot[i].name != NULL) {
                *find(&grown, p->slot[i].name, p->slot[i].length) = p->slot[i];
            }
        }
        *p = grown;
    }
    Definition *d = find(p, name, n);
    if (d->name == NULL) {
        *d = (Definition){name, n, piece};
        p->used++;
    }
}

static const char *include_of(const char *line) {
    static const char start[] = "#include \"";
    return strncmp(line, start, sizeof start - 1) == 0 ? line + sizeof start - 1 : NULL;
}

/* What a line at column 0 defines: a macro; the function, or pointer to function, whose parameters
 * begin in it; else the tag of a type that opens, or the last name before its value or end. */
static void define_line(Pieces *p, int piece, const char *line) {
    const char *end = line + strlen(line), *name, *last = NULL;
    size_t n, last_n = 0;
    if (line[0] == '#') {
        name = strncmp(line, "#define ", 8) == 0 ? next_name(line, end, &n) : NULL;
        if (name == line + 8) {
            define(p, name, n, piece);
        }
        return;
    }
    const char *stop = line + strcspn(line, "=;[{");
    for (name = line; (name = next_name(name, stop, &n)) != NULL; name += n) {
        bool pointer = name - line > 1 && name[-1] == '*' && name[-2] == '(';
        if (name[0] == 'm' && (name[n] == '(' || pointer)) {
            define(p, name, n, piece);
            return;
        }
        last = name;
        last_n = n;
    }
    if (last != NULL && last[0] == 'm') {
        define(p, last, last_n, piece);
    }
}

static void define_piece(Pieces *p, int piece) {
    const Embed *embed = &embeds[piece];
    bool comment = false, list = false;
    for (size_t i = 0; i < embed->count; i++) {
        const char *line = embed->lines[i];
        bool was_comment = comment;
        const char *open = strstr(line, "/*");
        if (comment || open != NULL) {
            comment = strstr(comment ? line : open, "*/") == NULL;
        }
        if (was_comment || open == line) {
            continue;
        }
        bool top = line[0] != ' ' && line[0] != '\t' && line[0] != 0;
        if (top) {
            define_line(p, piece, line);
            list = strstr(line, "enum") != NULL;
        }
        const char *from = top ? line + strcspn(line, "{") : line;
        const char *end = open != NULL ? open : line + strlen(line), *name;
        size_t n;
        /* Enumerators; the names in the value of one come from elsewhere. */
        while (list && (name = next_name(from, end, &n)) != NULL) {
            if (name[0] == 'M') {
                define(p, name, n, piece);
            }
            from = name + n;
            from += strcspn(from, ",");
            from = from < end ? from : end;
        }
        list = list && strchr(line, '}') == NULL;
    }
}

static bool is_piece(const char *name) {
    size_t n = strlen(name);
    return strncmp(name, "runtime/", 8) == 0 && n > 2 && strcmp(name + n - 2, ".h") == 0;
}

Pieces *pieces_new(Arena *arena) {
    Pieces *p = ARENA_NEW(arena, Pieces);
    p->arena = arena;
    p->needed = ARENA_ARRAY(arena, bool, nembeds + 1);
    p->printed = ARENA_ARRAY(arena, bool, nembeds + 1);
    p->size = 1024;
    p->slot = ARENA_ARRAY(arena, Definition, p->size);
    for (size_t i = 0; i < nembeds; i++) {
        if (is_piece(embeds[i].name)) {
            define_piece(p, (int)i);
        }
    }
    return p;
}

static void need(Pieces *p, int piece) {
    if (p->needed[piece]) {
        return;
    }
    p->needed[piece] = true;
    for (size_t i = 0; i < embeds[piece].count; i++) {
        const char *include = include_of(embeds[piece].lines[i]);
        if (include != NULL) {
            size_t n = strcspn(include, "\"");
            pieces_need(p, str_ndup(p->arena, include, n));
        }
    }
}

void pieces_need(Pieces *p, const char *name) {
    for (size_t i = 0; i < nembeds; i++) {
        if (strcmp(embeds[i].name, name) == 0) {
            need(p, (int)i);
            return;
        }
    }
    BUG("the runtime has no piece %s", name);
}

void pieces_scan(Pieces *p, const char *text, size_t length) {
    size_t n;
    const char *end = length > 0 ? text + length : text; /* a Text without anything has no place */
    for (const char *name = text; (name = next_name(name, end, &n)) != NULL; name += n) {
        const Definition *d = find(p, name, n);
        if (d->name != NULL) {
            need(p, d->piece);
        } else if (n > 12 && strncmp(name, "md_tile_", 8) == 0) {
            bool f64 = memcmp(name + n - 4, "_f64", 4) == 0;
            if (f64 || memcmp(name + n - 4, "_f32", 4) == 0) {
                p->as[f64 ? TEMPLATE_F64 : TEMPLATE_F32] = true;
                pieces_need(p, template_name);
            }
        }
    }
}

static void print(Pieces *p, Text *out, int piece) {
    if (p->printed[piece]) {
        return;
    }
    p->printed[piece] = true;
    const Embed *embed = &embeds[piece];
    for (size_t i = 0; i < embed->count; i++) {
        const char *include = include_of(embed->lines[i]);
        for (size_t k = 0; include != NULL && k < nembeds; k++) {
            size_t n = strlen(embeds[k].name);
            if (strncmp(include, embeds[k].name, n) == 0 && include[n] == '"') {
                print(p, out, (int)k);
            }
        }
    }
    bool templated = strcmp(embed->name, template_name) == 0;
    if (templated && p->before_tiles != NULL) {
        text_add(out, p->before_tiles);
    }
    for (int t = 0; t < (templated ? TEMPLATES : 1); t++) {
        if (templated && !p->as[t]) {
            continue;
        }
        text_printf(out, "/* begin %s */\n%s", embed->name,
                    templated && t == TEMPLATE_F64 ? "#define MD_TILE_REAL 64\n" : "");
        for (size_t i = 0; i < embed->count; i++) {
            if (include_of(embed->lines[i]) == NULL) {
                text_add(out, embed->lines[i]);
                text_add(out, "\n");
            }
        }
        text_printf(out, "/* end %s */\n\n", embed->name);
    }
}

void pieces_before_tiles(Pieces *p, const char *text) {
    p->before_tiles = text;
}

void pieces_print(Pieces *p, Text *out) {
    for (size_t i = 0; i < nembeds; i++) {
        if (p->needed[i]) {
            print(p, out, (int)i);
        }
    }
}
