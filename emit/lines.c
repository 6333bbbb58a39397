/* lines: #line directives of --line.
 *
 * A call of a kernel and the lines of the kernel belong to the line of the source that the step is
 * from; all else to the emitted file, whose own numbers are known only when all of it is there.
 * Needs texts by whole lines; gives directives, nothing else. */
#include "emit/lines.h"

#include <string.h>

static const char open_line[] = "#line @\n";

static void print_line(Text *out, int line, const char *name) {
    text_printf(out, "#line %d \"", line);
    for (; *name != 0; name++) {
        text_add(out, *name == '"' || *name == '\\' ? "\\" : "");
        text_addn(out, name, 1);
    }
    text_add(out, "\"\n");
}

/* The directive for a place; empty: it has none that a user could open. */
static Text directive(const Emit *e, Loc loc) {
    Text text = {.arena = e->arena};
    const char *name = loc_file(&e->c->diag, loc);
    int line = e->c->opt.line ? loc_line_of(e, loc) : 0;
    if (line > 0 && name[0] != '<') { /* a module of the library is part of the compiler */
        print_line(&text, line, name);
    }
    return text;
}

void lines_all(const Emit *e, Loc loc, const char *text, Text *out) {
    const Text line = directive(e, loc);
    bool whole = true; /* the line before does not go on in this one */
    for (const char *at = text; *at != 0;) {
        size_t n = strcspn(at, "\n");
        if (whole && n > 0 && at[0] != '#') {
            text_addn(out, line.at, line.len);
        }
        whole = n == 0 || at[n - 1] != '\\';
        text_addn(out, at, n + (at[n] != 0));
        at += n + (at[n] != 0);
    }
    text_add(out, line.len > 0 ? open_line : "");
}

bool lines_add(Text *out, const char *behind, const char *text) {
    const size_t mark = sizeof open_line - 1, cut = strlen(behind);
    size_t end = out->len;
    const bool marked = end > mark && memcmp(out->at + end - mark, open_line, mark) == 0;
    end -= marked ? mark : 0;
    if (end <= cut || memcmp(out->at + end - cut, behind, cut) != 0) {
        return false;
    }
    size_t begin = end -= cut;
    while (begin > 0 && out->at[begin - 1] != '\n') {
        begin--;
    }
    if (end - begin + strlen(text) > 100) {
        return false;
    }
    out->len = end;
    text_printf(out, "%s\n%s", text, marked ? open_line : "");
    return true;
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
