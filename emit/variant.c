/* variant: see the header.
 *
 * A file is read line by line with a stack of what is open: a region of a feature, or a condition
 * on the element type of the template; everything else passes through. So a region may hold any
 * lines, and #if and #endif of other conditions need not know of it. Needs an embedded text; gives
 * another one. */
#include "emit/variant.h"

#include "emit/forms.h"

#include <string.h>

enum { OPEN_MOST = 8 };

typedef struct {
    bool printed;
    bool condition; /* #if, not a region */
    int inner;      /* conditions open inside of it */
} Open;

typedef struct {
    const NameList *features; /* NULL: all */
    int bits;                 /* 0: no template */
    Open open[OPEN_MOST];
    int nopen;
} Reader;

static bool starts(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

/* The NAME of a line that opens or closes a region; NULL: it does not. */
static const char *marked(Arena *arena, const char *line, const char *word) {
    line += strspn(line, " ");
    const char *name = line + strlen(word);
    return starts(line, word) ? str_ndup(arena, name, strcspn(name, " ")) : NULL;
}

/* All is what one file may need: numbers of plans stand apart in several files alone. */
static bool is_wanted(const Reader *r, const char *feature) {
    return r->features == NULL ? strcmp(feature, "FORMS") != 0
                               : names_at(r->features, feature) >= 0;
}

static bool is_printed(const Reader *r) {
    return r->nopen == 0 || r->open[r->nopen - 1].printed;
}

static void open_one(Reader *r, bool printed, bool condition) {
    if (r->nopen == OPEN_MOST) {
        BUG("too many regions in one another");
    }
    r->open[r->nopen] = (Open){.printed = is_printed(r) && printed, .condition = condition};
    r->nopen++;
}

/* Does a line say what is printed, rather than be printed? */
static bool take(Reader *r, Arena *arena, const char *line) {
    const char *name = marked(arena, line, "/* if: ");
    if (name != NULL) {
        open_one(r, is_wanted(r, name), false);
        return true;
    }
    Open *last = r->nopen > 0 ? &r->open[r->nopen - 1] : NULL;
    if (marked(arena, line, "/* end: ") != NULL) {
        if (last == NULL || last->condition) {
            BUG("a region ends that has not begun: %s", line);
        }
        r->nopen--;
        return true;
    }
    if (r->bits != 0 && starts(line, "#if MD_TILE_REAL == 32")) {
        open_one(r, r->bits == 32, true);
        return true;
    }
    if (last == NULL || !last->condition) {
        return false;
    }
    if (starts(line, "#else") && last->inner == 0) {
        bool outer = r->nopen < 2 || r->open[r->nopen - 2].printed;
        last->printed = outer && !last->printed;
        return true;
    }
    if (starts(line, "#endif") && last->inner == 0) {
        r->nopen--;
        return true;
    }
    last->inner += starts(line, "#if") - starts(line, "#endif");
    return false;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* What the words of the template are for an element type; NULL: what they are for all. */
static const char *meaning(Arena *arena, const char *word, size_t n, int bits) {
    static const char *const words[][3] = {{"MD_REAL", "float", "double"},
                                           {"MD_ELEM", "4", "8"},
                                           {"MD_VEC", "md_vf32", "md_vf64"},
                                           {"MD_VEC_U", "md_vf32_u", "md_vf64_u"}};
    static const char *const macros[] = {"MD_LANES", "MD_LO", "MD_HI", "MD_HALVES"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i][0]) == n && memcmp(words[i][0], word, n) == 0) {
            return words[i][bits == 32 ? 1 : 2];
        }
    }
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++) {
        if (strlen(macros[i]) == n && memcmp(macros[i], word, n) == 0) {
            return str_printf(arena, "%s_F%d", macros[i], bits);
        }
    }
    return NULL;
}

/* A name that a macro pastes together gets its end by pasting too. */
static const char *instantiate(Arena *arena, const char *line, int bits) {
    Text out = {.arena = arena};
    while (*line != 0) {
        size_t n = 0;
        while (is_word(line[n])) {
            n++;
        }
        const char *other = meaning(arena, line, n, bits);
        if (other != NULL) {
            text_add(&out, other);
        } else if (starts(line, "MD_TN(")) {
            size_t length = strcspn(line, ")") - 6;
            const char *name = str_ndup(arena, line + 6, length);
            text_printf(&out, "md_tile_%s%s_f%d", name, strstr(name, "##") ? "##" : "", bits);
            n = length + 7;
        } else {
            n = n > 0 ? n : 1;
            text_addn(&out, line, n);
        }
        line += n;
    }
    size_t end = out.len;
    if (end > 0 && out.at[end - 1] == '\\') { /* to its column again */
        do {
            end--;
        } while (end > 0 && out.at[end - 1] == ' ');
        int room = end < 98 ? 99 - (int)end : 1;
        return str_printf(arena, "%.*s%*s\\", (int)end, out.at, room, "");
    }
    return out.len > 0 ? out.at : "";
}

/* The parentheses that a line opens and does not close; *first: where the first of them is. */
static int unclosed(const char *line, int *first) {
    int depth = 0;
    for (int i = 0; line[i] != 0; i++) {
        if (line[i] == '(') {
            *first = depth == 0 ? i : *first;
            depth++;
        }
        depth -= line[i] == ')';
    }
    return depth;
}

/* Arguments in lines of their own move with the parenthesis in front of them. */
typedef struct {
    int depth, by;
} Shift;

static const char *instance_line(Arena *arena, const char *line, int bits, Shift *shift) {
    int was = 0, is = 0;
    if (shift->depth > 0) {
        shift->depth += unclosed(line, &was);
        int blanks = (int)strspn(line, " "), indent = blanks + shift->by;
        return instantiate(
            arena, str_printf(arena, "%*s%s", indent > 0 ? indent : 0, "", line + blanks), bits);
    }
    const char *made = instantiate(arena, line, bits);
    shift->depth = unclosed(line, &was);
    unclosed(made, &is);
    shift->by = is - was;
    return made;
}

static Embed read_all(Arena *arena, const Embed *file, const NameList *features, int bits) {
    Reader r = {.features = features, .bits = bits};
    Shift shift = {0};
    const bool forms =
        starts(file->name, "runtime/tile") && features != NULL && is_wanted(&r, "FORMS");
    const char **lines = ARENA_ARRAY(arena, const char *, file->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < file->count; i++) {
        const char *line = file->lines[i];
        if (!take(&r, arena, line) && is_printed(&r)) {
            line = forms ? form_line(arena, line) : line;
            lines[count++] = bits != 0 ? instance_line(arena, line, bits, &shift) : line;
        }
    }
    if (r.nopen > 0) {
        BUG("a region of %s does not end", file->name);
    }
    return (Embed){.name = file->name, .lines = lines, .count = count};
}

Embed variant_of(Arena *arena, const Embed *file, const NameList *features) {
    return read_all(arena, file, features, 0);
}

Embed variant_tile(Arena *arena, const Embed *file, const NameList *features, int bits) {
    return read_all(arena, file, features, bits);
}
