/* split: which kernels stand together, and in which of several files.
 *
 * A chunk is the text of a kernel: the function that steps call, what that alone uses, and what
 * later kernels use too (blocks and epilogues of products, plans); or a function of calls. It
 * defines the names that its lines at column 0 introduce. Functions that are never inlined may be
 * called from another file, and so may any function from what is no chunk, or is one of calls; what
 * else one chunk uses of another one joins the two. A chunk stays in the model where it uses a name
 * of the model that no chunk defines, or where the model uses more of it than functions. Groups are
 * dealt out by their weight, the largest first, which is told by lines and products, not by
 * numbers: with other numbers in the same kernels each stays in its file. Needs texts as
 * emit/target_c.c and emit/sections.c print them. */
#include "emit/split.h"

#include "compiler/names.h"

#include <stdlib.h>
#include <string.h>

typedef enum {
    USE_JOINS,  /* a type, a table, or what a macro makes */
    USE_INLINE, /* a function that may be inlined: called from the model and from calls alone */
    USE_CALL    /* one that is not */
} Use;

enum { MODEL = -1 }; /* no chunk, and the file of what stays */

typedef struct {
    int chunk;
    Use use;
    size_t head, length; /* of a function: where in the text of the model, up to its body */
    bool shared;
} Named;

typedef struct {
    Arena *arena;
    const char *prefix;
    Text *model;
    const Chunks *chunks;
    NameList names;
    VEC(Named) named; /* by the place of the name */
    int *group;       /* of each chunk: another one of its group, or itself */
    bool *stays;      /* of the group's first */
} Split;

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool starts(const char *at, const char *with) {
    return strncmp(at, with, strlen(with)) == 0;
}

/* The next word in [*at, end) that begins with the prefix, or is it, in large letters too, behind
 * comments and texts; false: none. */
static bool next_name(const Split *s, const char **at, const char *end, size_t *length) {
    const size_t n = strlen(s->prefix);
    const char *p = *at;
    while (p < end) {
        if (starts(p, "/*")) {
            const char *close = strstr(p + 2, "*/");
            p = close != NULL ? close + 2 : end;
        } else if (*p == '"') {
            for (p++; p < end && *p != '"'; p++) {
                p += *p == '\\';
            }
            p++;
        } else if (is_word(*p)) {
            const char *start = p;
            bool same = true;
            while (p < end && is_word(*p)) {
                size_t i = (size_t)(p - start);
                bool small = s->prefix[i < n ? i : n] >= 'a' && s->prefix[i < n ? i : n] <= 'z';
                same = same && (i >= n || *p == s->prefix[i] || (small && *p == s->prefix[i] - 32));
                p++;
            }
            *length = (size_t)(p - start);
            if (same && *length >= n && (*length == n || start[n] == '_')) {
                *at = start;
                return true;
            }
        } else {
            p++;
        }
    }
    return false;
}

/* ---- what chunks define ---------------------------------------------------------------------- */

static void define(Split *s, const char *name, size_t n, const char *behind, Named named) {
    const char *word = str_printf(s->arena, "%.*s%s", (int)n, name, behind);
    if (names_at(&s->names, word) < 0) {
        names_push(s->arena, &s->names, word);
        VEC_PUSH(s->arena, &s->named, named);
    }
}

/* Up to the brace of its body; 0: no body follows. */
static size_t head_length(const char *line, const char *end) {
    const char *at = line;
    while (at < end && *at != '{' && *at != ';') {
        at++;
    }
    if (at == end || *at == ';') {
        return 0;
    }
    while (at > line && (at[-1] == ' ' || at[-1] == '\n')) {
        at--;
    }
    return (size_t)(at - line);
}

/* What a line at column 0 introduces. A macro makes functions of its first argument, which stands
 * for them with '_' behind it. */
static void define_line(Split *s, int chunk, const char *line, const char *end) {
    const bool macro = starts(line, "MD_") && line[strcspn(line, " (\n")] == '(';
    const char *stop = macro ? line + strcspn(line, ",\n") : line + strcspn(line, "=({;\n");
    Named named = {.chunk = chunk, .use = USE_JOINS};
    const char *at = line, *last = NULL;
    size_t n, length = 0;
    for (; next_name(s, &at, stop, &n); at += n) {
        last = at;
        length = n;
    }
    if (last == NULL) {
        return;
    }
    if (!macro && *stop == '(' && last + length == stop) {
        named.length = head_length(line, end);
        named.head = (size_t)(line - s->model->at);
        named.use = starts(line, "MD_NOINLINE ")                                 ? USE_CALL
                    : starts(line, "static ") && !starts(line, "static inline ") ? USE_INLINE
                                                                                 : USE_JOINS;
        named.use = named.length > 0 ? named.use : USE_JOINS;
    }
    define(s, last, length, macro ? "_" : "", named);
}

/* All lines of a text of a chunk, or of the model. */
static void define_text(Split *s, int chunk, size_t from, size_t to) {
    const char *line = s->model->at + from, *end = s->model->at + to;
    bool comment = false;
    while (line < end) {
        const bool inside = comment;
        const size_t n = strcspn(line, "\n");
        if (inside || starts(line, "/*")) {
            const char *close = strstr(line, "*/");
            comment = close == NULL || close >= line + n;
        } else if (*line != ' ' && *line != '#' && *line != '\n') {
            define_line(s, chunk, line, end);
        }
        line += n + 1;
    }
}

static void define_model(Split *s, const int *file, size_t from, size_t to) {
    (void)file;
    define_text(s, MODEL, from, to);
}

/* What lies in front of, between and behind the chunks; `file`: of each chunk, handed on. */
static void each_between(Split *s, const int *file,
                         void (*visit)(Split *s, const int *file, size_t from, size_t to)) {
    size_t at = 0;
    for (int i = 0; i < s->chunks->count; i++) {
        visit(s, file, at, s->chunks->at[i].from);
        at = s->chunks->at[i].end;
    }
    visit(s, file, at, s->model->len);
}

/* ---- who uses what --------------------------------------------------------------------------- */

static int first_of(Split *s, int chunk) {
    while (s->group[chunk] != chunk) {
        s->group[chunk] = s->group[s->group[chunk]];
        chunk = s->group[chunk];
    }
    return chunk;
}

static void join(Split *s, int one, int other) {
    one = first_of(s, one);
    other = first_of(s, other);
    const int first = one < other ? one : other, second = one < other ? other : one;
    s->group[second] = first;
    s->stays[first] = s->stays[first] || s->stays[second];
}

/* The place of a name, or of the macro that makes it, NAME_part or NAME_block, of the name in front
 * of its last word. -1: it is none of a chunk. */
static int place_of(const Split *s, const char *name, size_t n) {
    const int place = names_at(&s->names, str_ndup(s->arena, name, n));
    while (place < 0 && n > 0 && name[n - 1] != '_') {
        n--;
    }
    return place >= 0 ? place : names_at(&s->names, str_ndup(s->arena, name, n));
}

static void use_chunk(Split *s, int chunk) {
    const char *at = s->model->at + s->chunks->at[chunk].from;
    const char *end = s->model->at + s->chunks->at[chunk].end, *line = at;
    size_t n;
    bool macro = false;
    for (; next_name(s, &at, end, &n); at += n) {
        for (const char *next; (next = strchr(line, '\n')) != NULL && next < at;) {
            line = next + 1;
            macro = *line == ' ' ? macro : starts(line, "MD_TILE_");
        }
        const int place = place_of(s, at, n);
        const Named *named = place >= 0 ? &s->named.at[place] : NULL;
        if (named == NULL || named->chunk == chunk) {
            continue;
        }
        if (named->chunk == MODEL) {
            s->stays[first_of(s, chunk)] = true;
        } else if (named->use == USE_JOINS || macro ||
                   (named->use == USE_INLINE && !s->chunks->at[chunk].calls)) {
            join(s, chunk, named->chunk);
        }
    }
}

static void use_model(Split *s, const int *file, size_t from, size_t to) {
    const char *at = s->model->at + from, *end = s->model->at + to;
    size_t n;
    (void)file;
    for (; next_name(s, &at, end, &n); at += n) {
        const int place = place_of(s, at, n);
        if (place >= 0 && s->named.at[place].chunk != MODEL &&
            s->named.at[place].use == USE_JOINS) {
            s->stays[first_of(s, s->named.at[place].chunk)] = true;
        }
    }
}

/* ---- where they stand ------------------------------------------------------------------------ */

/* What is dealt out apart, as far as there are files. */
typedef enum { KIND_CALLS, KIND_LOOPS, KIND_PRODUCTS, KINDS } Kind;

typedef struct {
    int chunk, weight;
    Kind kind; /* the last one that some of it is */
} Group;

/* Of the weights of some files: the first of them, and how many there are. */
typedef struct {
    int first, count;
} Range;

static int heavier(const void *a, const void *b) {
    const Group *x = a, *y = b;
    return x->weight != y->weight ? (x->weight < y->weight) - (x->weight > y->weight)
                                  : (x->chunk > y->chunk) - (x->chunk < y->chunk);
}

/* What a C compiler will need for it, in lines: a product's block is as much as many. */
static int weight_of(const Split *s, int chunk, Kind *kind) {
    enum { PRODUCT = 50 };
    const char *at = s->model->at + s->chunks->at[chunk].from;
    const char *end = s->model->at + s->chunks->at[chunk].end;
    Kind own = s->chunks->at[chunk].calls ? KIND_CALLS : KIND_LOOPS;
    int weight = 0;
    for (; at < end; at += strcspn(at, "\n") + 1) {
        const bool block = starts(at, "MD_TILE_");
        weight += block ? PRODUCT : 1;
        own = block ? KIND_PRODUCTS : own;
    }
    *kind = own > *kind ? own : *kind;
    return weight;
}

/* Which files have which kind. A size may change the text of calls where it changes no kernel: of
 * three files they have the first. Products and loops have as many as their weights are. */
static void share_files(const Split *s, const Group *group, int units, Range range[KINDS]) {
    int64_t weight[KINDS] = {0};
    for (int i = 0; i < s->chunks->count; i++) {
        weight[group[i].kind] += s->stays[group[i].chunk] ? 0 : group[i].weight;
    }
    const int calls = weight[KIND_CALLS] > 0 && units > 2 ? 1 : 0, kernels = units - calls;
    const int64_t all = weight[KIND_LOOPS] + weight[KIND_PRODUCTS];
    int products = all > 0 ? (int)((weight[KIND_PRODUCTS] * kernels + all / 2) / all) : 0;
    products = weight[KIND_PRODUCTS] > 0 && products == 0 ? 1 : products;
    products = weight[KIND_LOOPS] > 0 && products == kernels ? kernels - 1 : products;
    range[KIND_CALLS] = (Range){0, calls};
    range[KIND_LOOPS] = (Range){calls, kernels - products};
    range[KIND_PRODUCTS] = (Range){units - products, products};
    for (Kind kind = 0; kind < KINDS; kind++) { /* one file has all */
        range[kind] = range[kind].count > 0 ? range[kind] : (Range){0, units};
    }
}

/* The file of each chunk. */
static int *deal(Split *s, int units) {
    const int count = s->chunks->count;
    int *file = ARENA_ARRAY(s->arena, int, count + 1);
    Group *group = ARENA_ARRAY(s->arena, Group, count + 1);
    int *weight = ARENA_ARRAY(s->arena, int, units);
    for (int i = 0; i < count; i++) {
        group[i].chunk = i;
        Group *own = &group[first_of(s, i)];
        own->weight += weight_of(s, i, &own->kind);
    }
    Range range[KINDS];
    share_files(s, group, units, range);
    qsort(group, (size_t)count, sizeof *group, heavier);
    for (int i = 0; i < count; i++) {
        const Range files = range[group[i].kind];
        int least = files.first;
        for (int k = files.first; k < files.first + files.count; k++) {
            least = weight[k] < weight[least] ? k : least;
        }
        if (group[i].weight > 0) {
            file[group[i].chunk] = s->stays[group[i].chunk] ? MODEL : least;
            weight[least] += s->stays[group[i].chunk] ? 0 : group[i].weight;
        }
    }
    for (int i = 0; i < count; i++) {
        file[i] = file[first_of(s, i)];
    }
    return file;
}

/* Which functions a text of file `own` calls that stand in another one. */
static void share(Split *s, const int *file, int own, size_t from, size_t to) {
    const char *at = s->model->at + from, *end = s->model->at + to;
    size_t n;
    for (; next_name(s, &at, end, &n); at += n) {
        const int place = place_of(s, at, n);
        Named *named = place >= 0 ? &s->named.at[place] : NULL;
        if (named != NULL && named->chunk != MODEL && named->use != USE_JOINS &&
            file[named->chunk] != own) {
            named->shared = true;
        }
    }
}

static void share_model(Split *s, const int *file, size_t from, size_t to) {
    share(s, file, MODEL, from, to);
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Its words in front: those of one file become those of several. Gives how much they take. */
static size_t print_marker(Text *out, const char *head) {
    const bool apart = starts(head, "MD_NOINLINE ");
    text_add(out, apart ? "MD_SHARED_NOINLINE " : "MD_SHARED ");
    return strlen(apart ? "MD_NOINLINE " : "static ");
}

static void print_prototype(const Split *s, Text *out, const Named *named) {
    const char *head = s->model->at + named->head;
    const size_t skip = print_marker(out, head);
    text_addn(out, head + skip, named->length - skip);
    text_add(out, ";\n");
}

static void mark(const Split *s, bool *used, size_t from, size_t to) {
    const char *at = s->model->at + from, *end = s->model->at + to;
    size_t n;
    for (; next_name(s, &at, end, &n); at += n) {
        const int place = place_of(s, at, n);
        if (place >= 0) {
            used[place] = true;
        }
    }
}

/* Those that a file calls or defines. */
static void print_prototypes(const Split *s, const int *file, int own, Text *out) {
    bool *used = ARENA_ARRAY(s->arena, bool, s->named.count + 1), any = false;
    size_t at = 0;
    for (int i = 0; i < s->chunks->count; i++) {
        const Chunk *chunk = &s->chunks->at[i];
        mark(s, used, own == MODEL ? at : chunk->from, chunk->from);
        mark(s, used, chunk->from, file[i] == own ? chunk->end : chunk->from);
        at = chunk->end;
    }
    mark(s, used, own == MODEL ? at : s->model->len, s->model->len);
    for (int i = 0; i < s->named.count; i++) {
        if (used[i] && s->named.at[i].shared) {
            print_prototype(s, out, &s->named.at[i]);
            any = true;
        }
    }
    text_add(out, any ? "\n" : "");
}

static void print_chunk(const Split *s, Text *out, int chunk) {
    size_t at = s->chunks->at[chunk].from;
    for (int i = 0; i < s->named.count; i++) {
        const Named *named = &s->named.at[i];
        if (named->chunk == chunk && named->shared) {
            text_addn(out, s->model->at + at, named->head - at);
            at = named->head + print_marker(out, s->model->at + named->head);
        }
    }
    text_addn(out, s->model->at + at, s->chunks->at[chunk].end - at);
}

void split_chunks(Arena *arena, const Chunks *chunks, const char *prefix, Text *model, int units,
                  Text *unit) {
    Split s = {.arena = arena, .prefix = prefix, .model = model, .chunks = chunks};
    if (chunks->count == 0) {
        return;
    }
    s.group = ARENA_ARRAY(arena, int, chunks->count);
    s.stays = ARENA_ARRAY(arena, bool, chunks->count);
    for (int i = 0; i < chunks->count; i++) {
        s.group[i] = i;
        define_text(&s, i, chunks->at[i].from, chunks->at[i].end);
    }
    each_between(&s, NULL, define_model);
    for (int i = 0; i < chunks->count; i++) {
        use_chunk(&s, i);
    }
    each_between(&s, NULL, use_model);
    const int *file = deal(&s, units);
    for (int i = 0; i < chunks->count; i++) {
        share(&s, file, file[i], chunks->at[i].from, chunks->at[i].end);
    }
    each_between(&s, file, share_model);
    Text rest = {.arena = arena};
    size_t at = 0;
    for (int i = 0; i < chunks->count; i++) {
        text_addn(&rest, model->at + at, chunks->at[i].from - at);
        at = chunks->at[i].end;
        if (i == 0) {
            print_prototypes(&s, file, MODEL, &rest);
        }
        if (file[i] == MODEL) {
            print_chunk(&s, &rest, i);
        }
    }
    text_addn(&rest, model->at + at, model->len - at);
    for (int k = 0; k < units; k++) {
        print_prototypes(&s, file, k, &unit[k]);
        for (int i = 0; i < chunks->count; i++) {
            if (file[i] == k) {
                print_chunk(&s, &unit[k], i);
            }
        }
    }
    *model = rest;
}
