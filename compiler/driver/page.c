/* page: the report as HTML.
 *
 * The page is share/report.html, which the build embeds: it needs no other file and no network. It
 * holds the JSON as it is printed and draws from that, so its figures are those. Contract: needs
 * complete JSON texts, gives the page, changes nothing. */
#include "compiler/driver/page.h"

#include "compiler/embed.h"

#include <string.h>

/* In a script '<' could end it; in JSON it stands in strings alone, where an escape is the same. */
static void add_json(Text *out, const Text *json) {
    for (size_t i = 0; i < json->len;) {
        size_t plain = i;
        while (plain < json->len && json->at[plain] != '<') {
            plain++;
        }
        text_addn(out, json->at + i, plain - i);
        text_add(out, plain < json->len ? "\\u003c" : "");
        i = plain + 1;
    }
}

void page_print(const Text *report, const Text *plans, Text *out) {
    const Embed *page = NULL;
    for (size_t i = 0; i < nembeds && !page; i++) {
        page = str_eq(embeds[i].name, "share/report.html") ? &embeds[i] : NULL;
    }
    if (!page) {
        BUG("the page of the report is not embedded");
    }
    for (size_t k = 0; k < page->count; k++) {
        const char *line = page->lines[k];
        if (str_eq(line, "@REPORT@")) {
            add_json(out, report);
        } else if (str_eq(line, "@PLANS@")) {
            add_json(out, plans);
        } else {
            text_add(out, line);
        }
        text_add(out, "\n");
    }
}
