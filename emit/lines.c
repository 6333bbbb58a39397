/* lines: #line directives of --line.
 *
 * A call of a kernel and the lines of the kernel belong to the line of the source that the step is
 * from; all else to the emitted file, whose own numbers are known only when all of it is there.
 * Needs texts by whole lines; gives directives, nothing else. */
#include "emit/lines.h"

#include <string.h>

static const char open_line[] = "#line @\n";

/* The name of its source; NULL: it has none that a user could open. */
static const char *source_name(const Emit *e, Loc loc) {
    if (!e->c->opt.line || loc.source >= (uint32_t)e->c->diag.sources.count ||
        loc_line_of(e, loc) == 0) {
        return NULL;
    }
    const char *name = e->c->diag.sources.at[loc.source].name;
    return name[0] == '<' ? NULL : name; /* a module of the library is part of the compiler */
}

static void print_line(Text *out, int line, const char *name) {
    text_printf(out, "#line %d \"", line);
    for (; *name != 0; name++) {
        text_add(out, *name == '"' || *name == '\\' ? "\\" : "");
        text_addn(out, name, 1);
    }
    text_add(out, "\"\n");
}

void lines_at(const Emit *e, Loc loc, Text *out) {
    const char *name = source_name(e, loc);
    if (name != NULL) {
        print_line(out, loc_line_of(e, loc), name);
    }
}

void lines_back(const Emit *e, Loc loc, Text *out) {
    if (source_name(e, loc) != NULL) {
        text_add(out, open_line);
    }
}

void lines_all(const Emit *e, Loc loc, const char *function, Text *out) {
    bool whole = true; /* the line before does not go on in this one */
    for (const char *at = function; *at != 0;) {
        size_t n = strcspn(at, "\n");
        if (whole && n > 0 && at[0] != '#') {
            lines_at(e, loc, out);
        }
        whole = n == 0 || at[n - 1] != '\\';
        text_addn(out, at, n + (at[n] != 0));
        at += n + (at[n] != 0);
    }
    lines_back(e, loc, out);
}

void lines_finish(const Emit *e, Text *out) {
    if (!e->c->opt.line) {
        return;
    }
    const char *name = e->c->opt.output;
    name = name != NULL && strcmp(name, "-") != 0 ? name : str_printf(e->arena, "%s.c", e->prefix);
    Arena arena = {0};
    Text old = {.arena = &arena};
    text_addn(&old, out->at, out->len);
    out->len = 0;
    int line = 1;
    for (const char *at = old.at; *at != 0; line++) {
        size_t n = strcspn(at, "\n");
        n += at[n] != 0;
        if (n == sizeof open_line - 1 && memcmp(at, open_line, n) == 0) {
            print_line(out, line + 1, name);
        } else {
            text_addn(out, at, n);
        }
        at += n;
    }
    arena_free(&arena);
}
