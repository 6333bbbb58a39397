/* pieces: selects runtime texts by the names that the rest of the file uses.
 *
 * A piece is cut into items: a function, or what else stands between two empty lines, with the
 * comment in front of it. An item defines the names that its lines at column 0 introduce, and its
 * enumerators; it needs the items that define the names in it. So the runtime is its own manifest.
 * What defines nothing (system headers, pragmas) goes with its piece. A piece may also be printed
 * as a whole, with its guard and all that it includes. The #include "runtime/..." lines fall away.
 * One piece is a template, printed once for each element type that is used: its functions are the
 * names of the tile that no other piece defines. Needs the embedded texts; gives text. */
#include "emit/pieces.h"

#include "compiler/embed.h"
#include "compiler/names.h"

#include <string.h>

typedef struct {
    const char *name; /* not terminated */
    size_t length;
    int item;
    VEC(int) more; /* other items of the same piece that define it too */
} Definition;

typedef struct {
    int piece;
    size_t begin, code, end; /* lines; what is in front of `code` is a comment */
    bool function, defines;
    bool needed;
    bool front;    /* stands in front of the model, */
    bool declared; /* or its prototype does */
} Item;

static const char template_name[] = "runtime/tile_kernel.h";
enum { TEMPLATE_F32, TEMPLATE_F64, TEMPLATES };

struct Pieces {
    Arena *arena;
    VEC(Item) item;
    int *first; /* item of each piece, and one more */
    bool *needed, *printed;
    bool as[TEMPLATES];
    bool whole, device;
    NameList system; /* headers of the system that are included already */
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
    } else if (d->item != item && p->item.at[d->item].piece == p->item.at[item].piece) {
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
        last = name;
        last_n = n;
    }
    if (last != NULL && last[0] == 'm') {
        define(p, last, last_n, item);
    }
}

static void define_item(Pieces *p, int item) {
    const Item *it = &p->item.at[item];
    const Embed *embed = &embeds[it->piece];
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

static bool is_template(int piece) {
    return strcmp(embeds[piece].name, template_name) == 0;
}

static void cut(Pieces *p, int piece) {
    const Embed *embed = &embeds[piece];
    size_t i, end;
    if (is_template(piece)) {
        Item all = {.piece = piece, .end = embed->count};
        VEC_PUSH(p->arena, &p->item, all);
        define_item(p, p->item.count - 1);
        return;
    }
    inside_guard(embed, &i, &end);
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
        item.end = i;
        if (item.code < item.end) {
            item.function = item.function && embed->lines[i - 1][0] == '}';
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

static Pieces *pieces_open(Arena *arena, bool whole, bool device) {
    Pieces *p = ARENA_NEW(arena, Pieces);
    p->arena = arena;
    p->whole = whole;
    p->device = device;
    p->needed = ARENA_ARRAY(arena, bool, nembeds + 1);
    p->printed = ARENA_ARRAY(arena, bool, nembeds + 1);
    p->size = 1024;
    p->slot = ARENA_ARRAY(arena, Definition, p->size);
    p->first = ARENA_ARRAY(p->arena, int, nembeds + 1);
    for (size_t i = 0; i < nembeds; i++) {
        p->first[i] = p->item.count;
        if (is_piece(embeds[i].name) && (device || strcmp(embeds[i].name, device_name) != 0)) {
            cut(p, (int)i);
        }
    }
    p->first[nembeds] = p->item.count;
    return p;
}

Pieces *pieces_new(Arena *arena, bool whole) {
    return pieces_open(arena, whole, false);
}

Pieces *pieces_of_device(Arena *arena) {
    return pieces_open(arena, false, true);
}

/* --- whole pieces ----------------------------------------------------------------------------- */

static void need_piece(Pieces *p, int piece) {
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

/* Of a template's function, as that of an element type; `type` -1: of another one. */
static void print_as(Text *out, const char *line, size_t length, int type) {
    const char *const real[TEMPLATES] = {"float", "double"};
    const char *const tail[TEMPLATES] = {"_f32", "_f64"};
    for (const char *at = line, *end = line + length; at < end; at++) {
        if (type >= 0 && starts(at, "MD_TN(")) {
            size_t n = strcspn(at, ")");
            text_add(out, "md_tile_");
            text_addn(out, at + 6, n - 6);
            text_add(out, tail[type]);
            at += n;
        } else if (type >= 0 && starts(at, "MD_REAL")) {
            text_add(out, real[type]);
            at += 6;
        } else {
            text_addn(out, at, 1);
        }
    }
}

/* What is done with each item that defines a name of a text. */
typedef void (*Visit)(Pieces *p, int item);

static void each_name(Pieces *p, const char *text, size_t length, Visit visit) {
    size_t n;
    const char *end = length > 0 ? text + length : text; /* a Text without anything has no place */
    for (const char *name = text; (name = next_name(name, end, &n)) != NULL; name += n) {
        const Definition *d = find(p, name, n);
        int type = tile_type(name, n);
        if (d->name != NULL) {
            const Definition known = *d;
            visit(p, known.item);
            for (int i = 0; i < known.more.count; i++) {
                visit(p, known.more.at[i]);
            }
        } else if (type >= 0) {
            p->as[type] = true;
            visit(p, p->first[piece_named(template_name)]);
        }
    }
}

static void each_line(Pieces *p, int item, size_t end, Visit visit) {
    const Item it = p->item.at[item];
    for (size_t i = it.code; i < end; i++) {
        const char *line = embeds[it.piece].lines[i];
        each_name(p, line, strlen(line), visit);
    }
}

static void need_whole(Pieces *p, int item) {
    need_piece(p, p->item.at[item].piece);
}

static void need_item(Pieces *p, int item) {
    Item *it = &p->item.at[item];
    if (it->needed) {
        return;
    }
    it->needed = true;
    for (int i = p->first[it->piece]; !p->needed[it->piece] && i < p->first[it->piece + 1]; i++) {
        if (!p->item.at[i].defines) {
            need_item(p, i);
        }
    }
    p->needed[it->piece] = true;
    each_line(p, item, it->end, need_item);
}

/* The line behind the head of a function. */
static size_t head_end(const Item *it) {
    size_t i = it->code;
    while (i < it->end && !opens_body(embeds[it->piece].lines[i])) {
        i++;
    }
    return i + 1;
}

static void put_in_front(Pieces *p, int item) {
    Item *it = &p->item.at[item];
    bool *done = it->function || is_template(it->piece) ? &it->declared : &it->front;
    if (*done) {
        return;
    }
    *done = true;
    if (!is_template(it->piece)) {
        each_line(p, item, it->function ? head_end(it) : it->end, put_in_front);
    }
}

/* A template uses names of its element types. */
static void need_of_template(Pieces *p) {
    int piece = piece_named(template_name);
    for (int type = 0; type < TEMPLATES; type++) {
        for (size_t i = 0; p->as[type] && i < embeds[piece].count; i++) {
            Text line = {.arena = p->arena};
            print_as(&line, embeds[piece].lines[i], strlen(embeds[piece].lines[i]), type);
            each_name(p, line.at, line.len, need_item);
        }
    }
}

void pieces_scan(Pieces *p, const char *text, size_t length) {
    each_name(p, text, length, p->whole ? need_whole : need_item);
}

static void need_in_front(Pieces *p, int item) {
    need_item(p, item);
    put_in_front(p, item);
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

static void print_lines(Pieces *p, Text *out, const Embed *embed, size_t from, size_t end) {
    int depth = 0;
    for (size_t i = from; i < end; i++) {
        const char *line = embed->lines[i];
        depth += starts(line, "#if");
        depth -= starts(line, "#endif");
        if (include_of(line) == NULL && (depth > 0 || !is_included(p, line))) {
            text_add(out, line);
            text_add(out, "\n");
        }
    }
}

/* What begins at line `from`, up to its body. */
static void print_head(Text *out, const Embed *embed, size_t from, int type) {
    for (size_t i = from; i < embed->count; i++) {
        const char *line = embed->lines[i];
        size_t n = strcspn(line, "{;");
        bool last = line[n] != 0;
        print_as(out, line, last && line[n] == '{' && n > 0 ? n - 1 : n, type);
        text_add(out, last ? ";\n" : "\n");
        if (last) {
            return;
        }
    }
}

/* What callers of the tile use of its template. */
static const char *const template_heads[] = {"MD_TN(epi))(", "MD_TN(none)(", "MD_TN(part)("};

static bool is_template_head(const char *line) {
    bool is = false;
    for (size_t k = 0; k < sizeof template_heads / sizeof *template_heads; k++) {
        is = is || (line[0] != ' ' && strstr(line, template_heads[k]) != NULL);
    }
    return is;
}

static void print_item_front(Pieces *p, Text *out, const Item *it) {
    const Embed *embed = &embeds[it->piece];
    if (is_template(it->piece)) {
        for (int type = 0; it->declared && type < TEMPLATES; type++) {
            for (size_t i = 0; p->as[type] && i < embed->count; i++) {
                if (is_template_head(embed->lines[i])) {
                    print_head(out, embed, i, type);
                }
            }
        }
    } else if (it->front) {
        size_t before = out->len;
        print_lines(p, out, embed, it->begin, it->end);
        text_add(out, out->len > before ? "\n" : "");
    } else if (it->declared) {
        print_head(out, embed, it->code, -1);
    }
}

static void print_whole(Pieces *p, Text *out, int piece) {
    const Embed *embed = &embeds[piece];
    bool templated = is_template(piece);
    if (templated && p->before_tiles != NULL) {
        text_add(out, p->before_tiles);
    }
    for (int t = 0; t < (templated ? TEMPLATES : 1); t++) {
        if (templated && !p->as[t]) {
            continue;
        }
        text_printf(out, "/* begin %s */\n%s", embed->name,
                    templated && t == TEMPLATE_F64 ? "#define MD_TILE_REAL 64\n" : "");
        print_lines(p, out, embed, 0, embed->count);
        text_printf(out, "/* end %s */\n\n", embed->name);
    }
}

static void print_used(Pieces *p, Text *out, int piece) {
    bool begun = false;
    for (int i = p->first[piece]; i < p->first[piece + 1]; i++) {
        const Item *it = &p->item.at[i];
        if (it->needed && !it->front) {
            text_printf(out, begun ? "\n" : "/* begin %s */\n", embeds[piece].name);
            print_lines(p, out, &embeds[piece], it->begin, it->end);
            begun = true;
        }
    }
    if (begun) {
        text_printf(out, "/* end %s */\n\n", embeds[piece].name);
    }
}

typedef enum { PRINT_FRONT, PRINT_REST } Print;

static void print(Pieces *p, Text *out, int piece, Print what) {
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
                print(p, out, (int)k, what);
            }
        }
    }
    if (what == PRINT_FRONT) {
        for (int i = p->first[piece]; i < p->first[piece + 1]; i++) {
            print_item_front(p, out, &p->item.at[i]);
        }
    } else if (p->needed[piece] && (p->whole || is_template(piece))) {
        print_whole(p, out, piece);
    } else if (!p->whole) {
        print_used(p, out, piece);
    }
}

static void print_all(Pieces *p, Text *out, Print what) {
    memset(p->printed, 0, sizeof *p->printed * nembeds);
    if (p->device) { /* in the place of what others include */
        print(p, out, piece_named(device_name), what);
    }
    for (size_t i = 0; i < nembeds; i++) {
        print(p, out, (int)i, what);
    }
}

void pieces_before_tiles(Pieces *p, const char *text) {
    p->before_tiles = text;
}

void pieces_print_front(Pieces *p, Text *out) {
    need_of_template(p);
    int template = piece_named(template_name);
    for (size_t i = 0; p->needed[template] && i < embeds[template].count; i++) {
        const char *line = embeds[template].lines[i];
        for (size_t k = i; is_template_head(line) && k < i + 3; k++) {
            each_name(p, embeds[template].lines[k], strcspn(embeds[template].lines[k], "{"),
                      put_in_front);
        }
    }
    for (int i = 0; i < p->item.count; i++) { /* system headers and pragmas */
        if (p->item.at[i].needed && !p->item.at[i].defines) {
            put_in_front(p, i);
        }
    }
    text_add(out, "/* begin runtime/, what the model uses of it */\n");
    print_all(p, out, PRINT_FRONT);
    text_add(out, "/* end runtime/ */\n\n");
}

void pieces_print(Pieces *p, Text *out) {
    print_all(p, out, PRINT_REST);
}
