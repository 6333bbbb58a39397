/* Command lines: the input is the arguments, one a line. Whatever they are, the parser ends with a
 * status and, unless that is 0, a message; what it takes is what the fields say. */
#define _GNU_SOURCE
#define FAKE_WITHOUT_MAIN
#include "tests/runtime/fake_model.c"

#include "tests/fuzz/readers.h"

enum { ARGUMENTS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static md_options o;
    char *argv[ARGUMENTS + 2], name[] = "fake";
    int argc = 0;
    char *text = malloc(size + 1);
    if (text == NULL) {
        exit(2);
    }
    memcpy(text, data, size);
    text[size] = 0;
    argv[argc++] = name;
    for (char *p = text, *line; (line = strsep(&p, "\n")) != NULL && argc <= ARGUMENTS;) {
        argv[argc++] = line;
    }
    argv[argc] = NULL;
    md_text message = reader_message();
    int rc = md_options_parse(&o, &fake_descriptor, argc, argv, &message);
    reader_status(rc);
    if (rc != MD_EXIT_OK && rc != MD_EXIT_USAGE) {
        finding("status %d", rc);
    }
    if (rc == MD_EXIT_OK && o.command != MD_RUN_HELP && o.command != MD_RUN_INFO) {
        const md_entry *e = o.entry;
        if (e == NULL || o.steps < -1 || o.epochs < -1 || o.threads < 0 ||
            o.threads > fake_descriptor.threads || (o.steps >= 0 && o.epochs >= 0)) {
            finding("taken with fields that make no sense");
        }
        for (int i = 0; i < e->input_count; i++) {
            const char *value = md_option_value(&o, "--in", e->inputs[i].name);
            if (value != NULL && (value < text || value > text + size)) {
                finding("a value that stands in no argument");
            }
        }
    }
    free(text);
    return 0;
}
