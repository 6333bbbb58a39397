/* explain: the page of a message, by its code.
 *
 * The build embeds docs/errors as it does the library, one page a code: "docs/errors/E0214.md", or
 * W for what is a warning. A page begins with "# CODE: title". A code is looked up by its number:
 * a warning that -Werror turned into an error is the same page. Contract: needs the embedded texts,
 * gives them on standard output, changes nothing. */
#include "compiler/driver/explain.h"

#include "compiler/base.h"
#include "compiler/embed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char folder[] = "docs/errors/";
enum { FOLDER = sizeof folder - 1, DIGITS = 4 };

static bool is_page(const Embed *embed) {
    return strncmp(embed->name, folder, FOLDER) == 0;
}

/* "E0214", "w262", "214" -> the number; -1 for anything else. `end` stands behind it. */
static int code_number(const char *code, const char *end) {
    code += *code && strchr("EeWw", *code) ? 1 : 0;
    size_t digits = strspn(code, "0123456789");
    bool is = digits > 0 && digits <= DIGITS && strcmp(code + digits, end) == 0;
    return is ? (int)strtol(code, NULL, 10) : -1;
}

static void list_print(void) {
    for (size_t i = 0; i < nembeds; i++) {
        if (is_page(&embeds[i]) && embeds[i].count > 0) {
            const char *title = embeds[i].lines[0];
            puts(title + strspn(title, "# "));
        }
    }
}

/* Markdown as plain text: examples are set off instead of fenced, the title loses its mark. */
static void page_print(const Embed *page) {
    bool inside = false;
    for (size_t i = 0; i < page->count; i++) {
        const char *line = page->lines[i];
        if (strncmp(line, "```", 3) == 0) {
            inside = !inside;
        } else {
            printf("%s%s\n", inside && line[0] ? "    " : "", i ? line : line + strspn(line, "# "));
        }
    }
}

static const Embed *page_find(const char *code) {
    int number = code_number(code, "");
    for (size_t i = 0; number >= 0 && i < nembeds; i++) {
        if (is_page(&embeds[i]) && code_number(embeds[i].name + FOLDER, ".md") == number) {
            return &embeds[i];
        }
    }
    return NULL;
}

int explain_print(const char *code) {
    const Embed *page = code ? page_find(code) : NULL;
    if (code && !page) {
        fprintf(stderr, "mdlc: there is no message with the code '%s'\n", code);
        fprintf(stderr, "'mdlc explain' lists the codes\n");
        return EXIT_USAGE;
    }
    if (page) {
        page_print(page);
    } else {
        list_print();
    }
    return EXIT_OK;
}
