/* pieces: selects runtime texts by the names that the rest of the file uses.
 *
 * A piece is cut into items: a function, or what else stands between two empty lines, with the
 * comment in front of it. An item defines the names that its lines at column 0 introduce, and its
 * enumerators; it needs the items that define the names in it. So the runtime is its own manifest.
 * Of several macros and enumerators of an item only those are printed that are used (unused.h).
 * What defines nothing (system headers, pragmas) goes with its piece. A piece may also be printed
 * as a whole, with its guard and all that it includes. The #include "runtime/..." lines fall away.
 * One piece is a template, of which each element type that the program's products have is a piece
 * (variant.h); as a whole it is printed once for each type whose functions are used. Needs the
 * embedded texts; gives text. */
#include "emit/pieces.h"

#include "emit/unused.h"
#include "emit/variant.h"

#include <string.h>

typedef struct {
    const char *name; /* not terminated */
    size_t length;
    int item;
    VEC(int) more; /* other items that define it too: of the same piece, or of another variant */
} Definition;

typedef struct {
    int piece;
    size_t begin, code, end; /* lines; what is in front of `code` is a comment */
    bool function, defines;
    bool needed;
    bool front;    /* stands in front of the model, */
    bool declared; /* or its prototype does */
    PartList part; /* that are used one by one */
} Item;

static const char template_name[] = "runtime/tile_kernel.h";
static const char *const element_names[] = {"F32", "F64"};
enum { TEMPLATE_F32, TEMPLATE_F64, TEMPLATES };

struct Pieces {
    Arena *arena;
    Embed *file; /* the embedded texts, then the variants of the template */
    size_t nfile;
    VEC(Item) item;
    int *first; /* item of each piece, and one more */
    bool *needed, *printed, *begun; /* begun: some of it stands in front */
    bool as[TEMPLATES];
    bool whole, device;
    NameList system; /* headers of the system that are included already */
    const char *before_tiles;
    const char *shared; /* prefix of what several files share; NULL: there is one file */
    const NameList *defines; /* those that this one defines */
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

static void define(Pieces *p, const char *name, size_t n, int item) {
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
        *d = (Definition){.name = name, .length = n, .item = item};
        p->used++;
    } else if (d->item != item && (p->item.at[d->item].piece == p->item.at[item].piece ||
                                   p->item.at[d->item].piece >= (int)nembeds)) {
        VEC_PUSH_FROM(p->arena, &d->more, item, 2);
    }
    p->item.at[item].defines = true;
}

static const char *include_of(const char *line) {
    static const char start[] = "#include \"";
    return strncmp(line, start, sizeof start - 1) == 0 ? line + sizeof start - 1 : NULL;
}

/* What a line at column 0 defines: a macro; the function, or pointer to function, whose parameters
 * begin in it; else the tag of a type that opens, or the last name before its value or end. */
static void define_line(Pieces *p, int item, const char *line) {
    const char *end = line + strlen(line), *name, *last = NULL;
    size_t n, last_n = 0;
    if (line[0] == '#') {
        name = strncmp(line, "#define ", 8) == 0 ? next_name(line, end, &n) : NULL;
        if (name == line + 8) {
            define(p, name, n, item);
        }
        return;
    }
    name = next_name(line, end, &n);
    if (name == line && name[0] == 'M' && name[n] == '(') { /* a macro makes it of its name */
        name = next_name(line + n, end, &n);
        if (name != NULL && name[0] == 'm') {
            define(p, name, n, item);
        }
        return;
    }
    const char *stop = line + strcspn(line, "=;[{");
    for (name = line; (name = next_name(name, stop, &n)) != NULL; name += n) {
        bool pointer = name - line > 1 && name[-1] == '*' && name[-2] == '(';
        if (name[0] == 'm' && (name[n] == '(' || pointer)) {
            define(p, name, n, item);
            return;
        }
        if (name[0] == 'm') {
            last = name;
            last_n = n;
        }
    }
    if (last != NULL) {
        define(p, last, last_n, item);
    }
}

static void define_item(Pieces *p, int item) {
    const Item *it = &p->item.at[item];
    const Embed *embed = &p->file[it->piece];
    bool comment = false, list = false;
    for (size_t i = it->code; i < it->end; i++) {
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
            define_line(p, item, line);
            list = strstr(line, "enum") != NULL;
        }
        const char *from = top ? line + strcspn(line, "{") : line;
        const char *end = open != NULL ? open : line + strlen(line), *name;
        size_t n;
        /* Enumerators; the names in the value of one come from elsewhere. */
        while (list && (name = next_name(from, end, &n)) != NULL) {
            if (name[0] == 'M') {
                define(p, name, n, item);
            }
            from = name + n;
            from += strcspn(from, ",");
            from = from < end ? from : end;
        }
        list = list && strchr(line, '}') == NULL;
    }
}

/* --- items ------------------------------------------------------------------------------------ */

static bool opens_body(const char *line) {
    const char *comment = strstr(line, " /*");
    size_t n = comment != NULL ? (size_t)(comment - line) : strlen(line);
    return n > 0 && line[n - 1] == '{';
}

static bool starts(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

/* The lines of the guard around a piece are in no item: [*begin, *end) is what lies inside. */
static void inside_guard(const Embed *embed, size_t *begin, size_t *end) {
    *begin = 0;
    *end = embed->count;
    while (*begin < *end && !starts(embed->lines[*begin], "#ifndef ")) {
        ++*begin;
    }
    *begin += 2;
    while (*end > *begin && !starts(embed->lines[*end - 1], "#endif")) {
        --*end;
    }
    --*end;
}

static bool is_template(const Pieces *p, int piece) {
    return strcmp(p->file[piece].name, template_name) == 0;
}

static void cut(Pieces *p, int piece) {
    const Embed *embed = &p->file[piece];
    size_t i, end;
    i = 0;
    end = embed->count;
    if (piece < (int)nembeds) {
        inside_guard(embed, &i, &end);
    }
    while (i < end) {
        Item item = {.piece = piece, .begin = i, .code = end};
        bool comment = false, body = false, done = false;
        for (int depth = 0; i < end && !done; i++) {
            const char *line = embed->lines[i];
            if (line[0] == 0 && depth == 0 && !body && !comment) {
                break;
            }
            if (body) {
                body = line[0] != '}';
                done = !body && depth == 0;
                continue;
            }
            bool was_comment = comment || starts(line, "/*");
            comment = was_comment && strstr(line, "*/") == NULL;
            if (was_comment || include_of(line) != NULL) {
                continue;
            }
            if (item.code == end) {
                item.code = i;
                item.function = line[0] != '#' && strchr(line, '(') != NULL;
            }
            depth += starts(line, "#if");
            depth -= starts(line, "#endif");
            body = opens_body(line);
        }
        item.function = item.function && i > 0 && embed->lines[i - 1][0] == '}';
        while (i < end && starts(embed->lines[i], "#undef ")) { /* goes with what it undefines */
            i++;
        }
        item.end = i;
        if (item.code < item.end) {
            if (!item.function && piece < (int)nembeds) { /* the template pastes names together */
                unused_parts(p->arena, embed, item.code, item.end, &item.part);
            }
            VEC_PUSH(p->arena, &p->item, item);
            define_item(p, p->item.count - 1);
        }
        while (i < end && embed->lines[i][0] == 0) {
            i++;
        }
    }
}

static const char device_name[] = "runtime/cuda.h";

static bool is_piece(const char *name) {
    size_t n = strlen(name);
    return strncmp(name, "runtime/", 8) == 0 && n > 2 && strcmp(name + n - 2, ".h") == 0;
}

static Pieces *pieces_open(Arena *arena, const NameList *features, bool device) {
    Pieces *p = ARENA_NEW(arena, Pieces);
    p->arena = arena;
    p->whole = features == NULL;
    p->device = device;
    p->file = ARENA_ARRAY(arena, Embed, nembeds + TEMPLATES);
    p->nfile = nembeds;
    p->needed = ARENA_ARRAY(arena, bool, nembeds + TEMPLATES);
    p->printed = ARENA_ARRAY(arena, bool, nembeds + TEMPLATES);
    p->begun = ARENA_ARRAY(arena, bool, nembeds + TEMPLATES);
    p->size = 1024;
    p->slot = ARENA_ARRAY(arena, Definition, p->size);
    p->first = ARENA_ARRAY(p->arena, int, nembeds + TEMPLATES + 1);
    for (size_t i = 0; i < nembeds; i++) {
        p->file[i] = embeds[i];
        if (is_piece(embeds[i].name)) {
            p->file[i] = variant_of(arena, &embeds[i], features);
        }
        for (int t = 0; is_template(p, (int)i) && !p->whole && t < TEMPLATES; t++) {
            if (names_at(features, element_names[t]) >= 0) {
                p->file[p->nfile++] = variant_tile(arena, &embeds[i], features, t ? 64 : 32);
            }
        }
    }
    for (size_t i = 0; i < p->nfile; i++) {
        p->first[i] = p->item.count;
        bool other = !device && strcmp(p->file[i].name, device_name) == 0;
        bool cuttable = is_piece(p->file[i].name) && !other;
        if (cuttable && (i >= nembeds || !is_template(p, (int)i))) {
            cut(p, (int)i);
        }
    }
    p->first[p->nfile] = p->item.count;
    return p;
}

Pieces *pieces_new(Arena *arena, const NameList *features) {
    return pieces_open(arena, features, false);
}

Pieces *pieces_of_device(Arena *arena, const NameList *features) {
    return pieces_open(arena, features, true);
}

/* --- whole pieces ----------------------------------------------------------------------------- */

static void need_piece(Pieces *p, int piece) {
    if (p->needed[piece]) {
        return;
    }
    p->needed[piece] = true;
    for (size_t i = 0; i < p->file[piece].count; i++) {
        const char *include = include_of(p->file[piece].lines[i]);
        if (include != NULL) {
            const char *name = str_ndup(p->arena, include, strcspn(include, "\""));
            if (str_eq(name, template_name)) { /* as it is, by products of 16 bits */
                p->as[TEMPLATE_F32] = true;
            }
            pieces_need(p, name);
        }
    }
}

static int piece_named(const char *name) {
    for (size_t i = 0; i < nembeds; i++) {
        if (strcmp(embeds[i].name, name) == 0) {
            return (int)i;
        }
    }
    BUG("the runtime has no piece %s", name);
}

void pieces_need(Pieces *p, const char *name) {
    need_piece(p, piece_named(name));
}

/* --- what is used ----------------------------------------------------------------------------- */

/* The element type that a name of the tile ends with; -1: it is no such name. */
static int tile_type(const char *name, size_t n) {
    if (n <= 12 || strncmp(name, "md_tile_", 8) != 0) {
        return -1;
    }
    return memcmp(name + n - 4, "_f32", 4) == 0   ? TEMPLATE_F32
           : memcmp(name + n - 4, "_f64", 4) == 0 ? TEMPLATE_F64
                                                  : -1;
}

/* What is done with each item that defines a name of a text; NULL: whatever it defines. */
typedef void (*Visit)(Pieces *p, int item, const char *name, size_t length);

static void each_name(Pieces *p, const char *text, size_t length, Visit visit) {
    size_t n;
    const char *end = length > 0 ? text + length : text; /* a Text without anything has no place */
    for (const char *name = text; (name = next_name(name, end, &n)) != NULL; name += n) {
        const Definition *d = find(p, name, n);
        int type = tile_type(name, n);
        if (d->name != NULL) {
            const Definition known = *d;
            visit(p, known.item, name, n);
            for (int i = 0; i < known.more.count; i++) {
                visit(p, known.more.at[i], name, n);
            }
        } else if (p->whole && type >= 0) {
            p->as[type] = true;
            pieces_need(p, template_name);
        }
    }
}

static void each_line(Pieces *p, int item, size_t from, size_t end, Visit visit) {
    const Embed *embed = &p->file[p->item.at[item].piece];
    for (size_t i = from; i < end; i++) {
        each_name(p, embed->lines[i], strlen(embed->lines[i]), visit);
    }
}

/* The lines of an item that stand whichever of its parts are used, then those of these. */
static void each_used_line(Pieces *p, int item, size_t end, Visit visit) {
    size_t at = p->item.at[item].code;
    for (int i = 0; i < p->item.at[item].part.count; i++) {
        const Part part = p->item.at[item].part.at[i];
        each_line(p, item, at, part.from, visit);
        if (part.used) {
            each_line(p, item, part.from, part.end, visit);
        }
        at = part.end;
    }
    each_line(p, item, at, end, visit);
}

static void need_whole(Pieces *p, int item, const char *name, size_t length) {
    (void)name, (void)length;
    need_piece(p, p->item.at[item].piece);
}

static void put_in_front(Pieces *p, int item, const char *name, size_t length);
static void need_in_front(Pieces *p, int item, const char *name, size_t length);

/* What functions begin with that are never inlined, and what where several files have one. */
static const struct {
    const char *own, *all;
} markers[] = {{"MD_NOINLINE ", "MD_SHARED_NOINLINE "}, {"MD_COLD ", "MD_SHARED_COLD "}};
enum { NO_MARKER = -1, MARKER_SELDOM = 1, MARKERS = sizeof markers / sizeof *markers };

static int marker_of(const char *line) {
    for (int i = 0; i < MARKERS; i++) {
        if (starts(line, markers[i].own)) {
            return i;
        }
    }
    return NO_MARKER;
}

/* The function that such an item defines. */
static const char *function_name(const Pieces *p, const Item *it) {
    size_t n;
    const char *line = p->file[it->piece].lines[it->code], *end = line + strlen(line);
    const char *name = next_name(line + strcspn(line, " "), end, &n);
    while (name != NULL && name[n] != '(') {
        name = next_name(name + n, end, &n);
    }
    return name != NULL ? str_ndup(p->arena, name, n) : "";
}

static bool is_shared(const Pieces *p, const Item *it) {
    return p->shared != NULL && it->function &&
           marker_of(p->file[it->piece].lines[it->code]) != NO_MARKER &&
           (p->defines == NULL || names_at(p->defines, function_name(p, it)) >= 0);
}

/* The line behind the head of a function. */
static size_t head_end(const Pieces *p, const Item *it) {
    size_t i = it->code;
    while (i < it->end && !opens_body(p->file[it->piece].lines[i])) {
        i++;
    }
    return i + 1;
}

static void need_item(Pieces *p, int item, const char *name, size_t length) {
    Item *it = &p->item.at[item];
    if (!it->needed) {
        it->needed = true;
        bool *piece = &p->needed[it->piece];
        for (int i = p->first[it->piece]; !*piece && i < p->first[it->piece + 1]; i++) {
            if (!p->item.at[i].defines) {
                need_item(p, i, NULL, 0);
            }
        }
        *piece = true;
        const bool shared = is_shared(p, it);
        if (shared) {
            const char *line = p->file[it->piece].lines[it->code];
            const char *all = markers[marker_of(line)].all;
            each_name(p, all, strlen(all), need_in_front);
        }
        each_used_line(p, item, shared && !p->defines ? head_end(p, it) : it->end, need_item);
    }
    for (int i = 0; i < it->part.count; i++) {
        Part *part = &it->part.at[i];
        if (!part->used && length == part->length && memcmp(part->name, name, length) == 0) {
            part->used = true;
            each_line(p, item, part->from, part->end, need_item);
            if (it->front) {
                each_line(p, item, part->from, part->end, put_in_front);
            }
        }
    }
}

static void put_in_front(Pieces *p, int item, const char *name, size_t length) {
    (void)name, (void)length;
    Item *it = &p->item.at[item];
    bool *done = it->function ? &it->declared : &it->front;
    if (!*done) {
        *done = true;
        each_used_line(p, item, it->function ? head_end(p, it) : it->end, put_in_front);
    }
}

void pieces_scan(Pieces *p, const char *text, size_t length) {
    each_name(p, text, length, p->whole ? need_whole : need_item);
}

static void need_in_front(Pieces *p, int item, const char *name, size_t length) {
    need_item(p, item, name, length);
    put_in_front(p, item, name, length);
}

void pieces_scan_front(Pieces *p, const char *text, size_t length) {
    each_name(p, text, length, need_in_front);
}

/* --- print ------------------------------------------------------------------------------------ */

/* A header of the system, whatever is defined, that is there already. */
static bool is_included(Pieces *p, const char *line) {
    bool is = !p->whole && starts(line, "#include <");
    bool known = is && names_at(&p->system, line) >= 0;
    if (is && !known) {
        names_push(p->arena, &p->system, line);
    }
    return known;
}

/* `skip`: which of the lines fall away, or NULL. */
static void print_lines(Pieces *p, Text *out, const Embed *embed, size_t from, size_t end,
                        const bool *skip) {
    int depth = 0;
    for (size_t i = from; i < end; i++) {
        const char *line = embed->lines[i];
        depth += starts(line, "#if");
        depth -= starts(line, "#endif");
        const bool unused = skip != NULL && skip[i - from];
        if (include_of(line) == NULL && !unused && (depth > 0 || !is_included(p, line))) {
            text_add(out, line);
            text_add(out, "\n");
        }
    }
}

/* The first line of a function that several files have; gives what follows of it. */
static const char *print_shared(Text *out, const char *line) {
    const int marker = marker_of(line);
    text_add(out, markers[marker].all);
    return line + strlen(markers[marker].own);
}

/* What begins at line `from`, up to its body. */
static void print_head(Text *out, const Embed *embed, size_t from, bool shared) {
    for (size_t i = from; i < embed->count; i++) {
        const char *line =
            shared && i == from ? print_shared(out, embed->lines[i]) : embed->lines[i];
        size_t n = strcspn(line, "{;");
        bool last = line[n] != 0;
        text_addn(out, line, last && line[n] == '{' && n > 0 ? n - 1 : n);
        text_add(out, last ? ";\n" : "\n");
        if (last) {
            return;
        }
    }
}

static void print_item(Pieces *p, Text *out, const Item *it) {
    const Embed *embed = &p->file[it->piece];
    if (is_shared(p, it)) {
        if (p->defines) {
            print_lines(p, out, embed, it->begin, it->code, NULL);
            text_printf(out, "%s\n", print_shared(out, embed->lines[it->code]));
            print_lines(p, out, embed, it->code + 1, it->end, NULL);
        } else if (!it->declared) {
            print_head(out, embed, it->code, true);
        }
        return;
    }
    print_lines(p, out, embed, it->begin, it->end,
                unused_lines(p->arena, embed, it->begin, it->end, &it->part));
}

static void print_item_front(Pieces *p, Text *out, const Item *it) {
    const Embed *embed = &p->file[it->piece];
    if (it->front) {
        size_t before = out->len;
        print_item(p, out, it);
        text_add(out, out->len > before ? "\n" : "");
    } else if (it->declared) {
        print_head(out, embed, it->code, is_shared(p, it));
    }
}

static void print_whole(Pieces *p, Text *out, int piece) {
    const Embed *embed = &p->file[piece];
    bool templated = is_template(p, piece);
    if (templated && p->before_tiles != NULL) {
        text_add(out, p->before_tiles);
    }
    for (int t = 0; t < (templated ? TEMPLATES : 1); t++) {
        if (templated && !p->as[t]) {
            continue;
        }
        text_printf(out, "/* begin %s */\n%s", embed->name,
                    templated && t == TEMPLATE_F64 ? "#define MD_TILE_REAL 64\n" : "");
        print_lines(p, out, embed, 0, embed->count, NULL);
        text_printf(out, "/* end %s */\n\n", embed->name);
    }
}

/* Does anything of the template write rows out, which ones says what stands before it? */
static bool writes_rows(const Pieces *p) {
    for (int i = p->first[nembeds]; i < p->item.count; i++) {
        const Item *it = &p->item.at[i];
        const Embed *embed = &p->file[it->piece];
        for (size_t k = it->begin; it->needed && k < it->end; k++) {
            if (strstr(embed->lines[k], "MD_TILE_BODIES") || strstr(embed->lines[k], "MD_ROWS")) {
                return true;
            }
        }
    }
    return false;
}

/* The variants have macros of the same names. */
static void print_before_variant(Pieces *p, Text *out, int piece) {
    if (piece == (int)nembeds) {
        const bool used = p->shared == NULL || writes_rows(p);
        text_add(out, used && p->before_tiles != NULL ? p->before_tiles : "");
        return;
    }
    const Embed *embed = &p->file[piece];
    for (size_t i = 0; i < embed->count; i++) {
        if (starts(embed->lines[i], "#define ")) {
            const char *name = embed->lines[i] + 8;
            text_printf(out, "#undef %.*s\n", (int)strcspn(name, " ("), name);
        }
    }
    text_add(out, "\n");
}

static void print_used(Pieces *p, Text *out, int piece) {
    bool begun = false;
    for (int i = p->first[piece]; i < p->first[piece + 1]; i++) {
        const Item *it = &p->item.at[i];
        if (it->needed && !it->front) {
            if (!begun && piece >= (int)nembeds) {
                print_before_variant(p, out, piece);
            }
            text_printf(out, begun ? "\n" : "/* begin %s */\n", p->file[piece].name);
            print_item(p, out, it);
            begun = true;
        }
    }
    text_add(out, begun ? "\n" : "");
}

typedef enum { PRINT_FRONT, PRINT_REST } Print;

static void print(Pieces *p, Text *out, int piece, Print what) {
    if (p->printed[piece]) {
        return;
    }
    p->printed[piece] = true;
    const Embed *embed = &p->file[piece];
    for (size_t i = 0; i < embed->count; i++) {
        const char *include = include_of(embed->lines[i]);
        for (size_t k = 0; include != NULL && k < p->nfile; k++) {
            size_t n = strlen(p->file[k].name);
            if (strncmp(include, p->file[k].name, n) == 0 && include[n] == '"') {
                print(p, out, (int)k, what);
            }
        }
    }
    if (what == PRINT_FRONT) {
        for (int i = p->first[piece]; i < p->first[piece + 1]; i++) {
            print_item_front(p, out, &p->item.at[i]);
        }
    } else if (p->needed[piece] && p->whole) {
        print_whole(p, out, piece);
    } else if (!p->whole) {
        print_used(p, out, piece);
    }
}

static void print_all(Pieces *p, Text *out, Print what) {
    memset(p->printed, 0, sizeof *p->printed * p->nfile);
    if (p->device) { /* in the place of what others include */
        print(p, out, piece_named(device_name), what);
    }
    if (p->shared != NULL) { /* what others begin with, and do not include */
        print(p, out, piece_named("runtime/shared.h"), what);
    }
    for (size_t i = 0; i < p->nfile; i++) {
        print(p, out, (int)i, what);
    }
}

void pieces_before_tiles(Pieces *p, const char *text) {
    p->before_tiles = text;
}

/* System headers and pragmas of a piece that has anything in front; those items may need more. */
static void front_headers(Pieces *p) {
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < p->item.count; i++) {
            const Item *it = &p->item.at[i];
            p->begun[it->piece] = p->begun[it->piece] || it->front || it->declared;
        }
        for (int i = 0; i < p->item.count; i++) {
            const Item *it = &p->item.at[i];
            if (p->begun[it->piece] && it->needed && !it->defines && !it->front) {
                put_in_front(p, i, NULL, 0);
                more = true;
            }
        }
    }
}

void pieces_share(Pieces *p, const char *prefix, const NameList *defines) {
    p->shared = prefix;
    p->defines = defines;
}

void pieces_shared(const Pieces *p, NameList *often, NameList *seldom) {
    for (int i = 0; i < p->item.count; i++) {
        const Item *it = &p->item.at[i];
        const char *name = it->needed && is_shared(p, it) ? function_name(p, it) : NULL;
        const int marker = name != NULL ? marker_of(p->file[it->piece].lines[it->code]) : NO_MARKER;
        NameList *names = marker == MARKER_SELDOM ? seldom : often;
        if (name != NULL && names_at(names, name) < 0) {
            names_push(p->arena, names, name);
        }
    }
}

void pieces_print_front(Pieces *p, Text *out) {
    front_headers(p);
    NameList shared = {0};
    pieces_shared(p, &shared, &shared);
    for (int i = 0; i < shared.name.count; i++) {
        const char *name = shared.name.at[i];
        text_printf(out, "#define %s %s_%s\n", name, p->shared, name);
    }
    text_add(out, "/* begin runtime/, what the model uses of it */\n");
    print_all(p, out, PRINT_FRONT);
    text_add(out, "/* end runtime/ */\n\n");
}

void pieces_print(Pieces *p, Text *out) {
    print_all(p, out, PRINT_REST);
}
