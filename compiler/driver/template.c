/* template: see the header. A place stands in double braces; whoever fills gives all of them. What
 * is filled is formatted and compiled here, so a file that `mdlc init` writes compiles. */
#include "compiler/driver/template.h"

#include "compiler/driver/pipeline.h"
#include "lang/fmt.h"

#include <stdlib.h>
#include <string.h>

static const char folder[] = "share/templates/";
enum { FOLDER = sizeof folder - 1, ENDING = sizeof ".mdl" - 1 };

/* The name of a template; NULL: the text is another one. */
static const char *template_name(const Embed *embed, int *length) {
    if (strncmp(embed->name, folder, FOLDER) != 0) {
        return NULL;
    }
    *length = (int)(strlen(embed->name) - FOLDER - ENDING);
    return embed->name + FOLDER;
}

const Embed *template_find(const char *name) {
    int length;
    for (size_t i = 0; i < nembeds; i++) {
        const char *known = template_name(&embeds[i], &length);
        if (known && (size_t)length == strlen(name) && strncmp(known, name, (size_t)length) == 0) {
            return &embeds[i];
        }
    }
    return NULL;
}

void template_names(Text *out) {
    int length;
    text_add(out, "");
    for (size_t i = 0; i < nembeds; i++) {
        const char *name = template_name(&embeds[i], &length);
        if (name) {
            text_printf(out, "%s%.*s", out->len ? ", " : "", length, name);
        }
    }
}

/* The first line of a template is "// Title: what it is." */
void template_list(FILE *out) {
    int length;
    for (size_t i = 0; i < nembeds; i++) {
        const char *name = template_name(&embeds[i], &length);
        if (name) {
            const char *colon = strchr(embeds[i].lines[0], ':');
            fprintf(out, "%-*.*s%s\n", 16, length, name, colon ? colon + 2 : "");
        }
    }
}

/* ---- filling --------------------------------------------------------------------------------- */

static const char *fill_value(const Fills *fills, const char *name, size_t length) {
    for (int i = 0; i < fills->count; i++) {
        const char *known = fills->at[i].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            return fills->at[i].value;
        }
    }
    BUG("a template has the place '%.*s', which nothing fills", (int)length, name);
}

static void fill_line(Text *out, const char *line, const Fills *fills) {
    size_t start = out->len;
    bool filled = false;
    for (const char *open; (open = strstr(line, "{{")) != NULL;) {
        const char *close = strstr(open, "}}");
        if (!close) {
            BUG("a place of a template has no end: %s", line);
        }
        text_addn(out, line, (size_t)(open - line));
        text_add(out, fill_value(fills, open + 2, (size_t)(close - open) - 2));
        line = close + 2;
        filled = true;
    }
    text_add(out, line);
    if (filled && out->at[start + strspn(out->at + start, " ")] == 0) {
        out->len = start; /* nothing was there but an empty place */
        out->at[start] = 0;
    } else {
        text_add(out, "\n");
    }
}

const char *template_fill(Arena *arena, const Embed *template, const Fills *fills) {
    Text text = {.arena = arena};
    text_add(&text, "");
    for (size_t i = 0; i < template->count; i++) {
        fill_line(&text, template->lines[i], fills);
    }
    Compile c = {0};
    diag_open(&c.diag, &c.arena, stderr);
    c.opt.command = COMMAND_FMT;
    uint32_t source = diag_add_source(&c.diag, template->name, text.at, text.len);
    const char *laid_out = fmt_source(&c, arena, source);
    if (!laid_out || c.diag.errors) {
        BUG("'%s' is no model once it is filled", template->name);
    }
    arena_free(&c.arena);
    return laid_out;
}

/* ---- compiling ------------------------------------------------------------------------------- */

int64_t template_bytes(const char *text) {
    Compile c = {0};
    diag_open(&c.diag, &c.arena, stderr);
    c.diag.warnings_are_errors = true;
    c.opt.input = "model.mdl";
    c.opt.threads = THREADS_USUAL;
    c.opt.budget = -1;
    if (pipeline_text(&c, text, strlen(text)) != EXIT_OK || c.total_bytes <= 0) {
        BUG("the model that was made from a template does not compile");
    }
    int64_t bytes = c.total_bytes;
    arena_free(&c.arena);
    return bytes;
}
