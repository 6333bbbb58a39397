/* unused: see the header. A macro falls away with the lines that it is continued on, an enumerator
 * of a list without a name when all have values, so that none shifts another. Needs lines of a file
 * of runtime/ as its program has them, changes nothing. */
#include "emit/unused.h"

#include <string.h>

static bool starts(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

static size_t word_length(const char *s) {
    size_t n = 0;
    while ((s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
           (s[n] >= '0' && s[n] <= '9') || s[n] == '_') {
        n++;
    }
    return n;
}

static void add(Arena *arena, PartList *parts, const char *name, size_t from, size_t end) {
    const Part part = {.name = name, .length = word_length(name), .from = from, .end = end};
    VEC_PUSH(arena, parts, part);
}

static bool is_continued(const char *line) {
    size_t n = strlen(line);
    return n > 0 && line[n - 1] == '\\';
}

/* Is this the line of one enumerator with a value? */
static bool is_enumerator(const char *line) {
    if (!starts(line, "    MD_") || !starts(line + 4 + word_length(line + 4), " = ")) {
        return false;
    }
    const char *stop = strstr(line, "/*");
    int depth = 0;
    for (const char *c = line; *c != 0 && c != stop; c++) {
        depth += (*c == '(') - (*c == ')');
        if (*c == ',' && depth == 0) {
            c += strspn(c + 1, " ");
            return c[1] == 0 || c + 1 == stop;
        }
    }
    return true;
}

static bool comment_open(const char *line, bool open) {
    const char *begin = open ? line : strstr(line, "/*");
    return begin != NULL && strstr(begin, "*/") == NULL;
}

/* The enumerators of the list that opens in line `from`; gives its last line. */
static size_t add_enumerators(Arena *arena, const Embed *file, size_t from, size_t end,
                              PartList *parts) {
    PartList found = {0};
    bool all = true, open = false;
    size_t i = from + 1;
    for (; i < end && file->lines[i][0] != '}'; i++) {
        const char *line = file->lines[i];
        if (!open && !starts(line + strspn(line, " "), "/*")) {
            all = all && is_enumerator(line);
            add(arena, &found, line + strspn(line, " "), i, i + 1);
        } else if (found.count > 0) {
            found.at[found.count - 1].end = i + 1;
        }
        open = comment_open(line, open);
    }
    for (int k = 0; all && k < found.count; k++) {
        VEC_PUSH(arena, parts, found.at[k]);
    }
    return i;
}

void unused_parts(Arena *arena, const Embed *file, size_t from, size_t end, PartList *parts) {
    for (size_t i = from; i < end; i++) {
        const char *line = file->lines[i];
        if (starts(line, "#define ") || starts(line, "#undef ")) {
            size_t last = i;
            while (last + 1 < end && is_continued(file->lines[last])) {
                last++;
            }
            add(arena, parts, strchr(line, ' ') + 1, i, last + 1);
            i = last;
        } else if (strcmp(line, "enum {") == 0) {
            i = add_enumerators(arena, file, i, end, parts);
        }
    }
}

/* --- conditions ------------------------------------------------------------------------------- */

typedef struct {
    size_t begin; /* the line of its #if */
    size_t empty; /* of its last branches nothing stands from this line on */
    bool any;     /* something stands in it */
} Condition;

enum { DEPTH = 16 };

static void close_condition(const Condition *c, size_t from, size_t end, bool *skip) {
    const size_t first = c->any ? c->empty : c->begin, last = c->any ? end : end + 1;
    for (size_t i = first; i < last; i++) {
        skip[i - from] = true;
    }
}

/* A list of which no enumerator stands falls away too. */
static void skip_empty_lists(const Embed *file, size_t from, size_t end, bool *skip) {
    for (size_t i = from; i < end; i++) {
        if (strcmp(file->lines[i], "enum {") == 0) {
            size_t last = i + 1;
            while (last < end && skip[last - from]) {
                last++;
            }
            if (last > i + 1 && last < end && strcmp(file->lines[last], "};") == 0) {
                skip[i - from] = skip[last - from] = true;
            }
        }
    }
}

bool *unused_lines(Arena *arena, const Embed *file, size_t from, size_t end,
                   const PartList *parts) {
    bool *skip = ARENA_ARRAY(arena, bool, end > from ? end - from : 1);
    for (int i = 0; i < parts->count; i++) {
        const Part *part = &parts->at[i];
        memset(skip + (part->from - from), !part->used, part->end - part->from);
    }
    skip_empty_lists(file, from, end, skip);
    Condition open[DEPTH];
    int depth = 0;
    bool comment = false;
    for (size_t i = from; i < end; i++) {
        const char *line = file->lines[i];
        if (starts(line, "#if")) {
            if (depth == DEPTH) {
                BUG("conditions of %s are nested too deeply", file->name);
            }
            open[depth++] = (Condition){.begin = i, .empty = i + 1};
        } else if (starts(line, "#endif")) {
            const Condition *c = &open[--depth];
            close_condition(c, from, i, skip);
            if (c->any && depth > 0) {
                open[depth - 1].any = true;
                open[depth - 1].empty = i + 1;
            }
        } else if (!starts(line, "#el") && depth > 0 && !skip[i - from] && !comment &&
                   !starts(line, "/*")) {
            open[depth - 1].any = true;
            open[depth - 1].empty = i + 1;
        }
        comment = comment_open(line, comment);
    }
    return skip;
}
