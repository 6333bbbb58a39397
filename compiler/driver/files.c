/* files: see the header. Outputs are made one by one and put in place together. */
#include "compiler/driver/files.h"

#include "compiler/driver/output.h"
#include "emit/module.h"
#include "emit/report.h"
#include "lang/ast.h"
#include "lang/fmt.h"

#include <errno.h>
#include <string.h>

static int file_error(Compile *c, const char *what, const char *path) {
    const char *quote = str_eq(path, "-") ? "" : "'", *name = *quote ? path : "standard output";
    fprintf(c->diag.out, "mdlc: cannot %s %s%s%s: %s\n", what, quote, name, quote, strerror(errno));
    return EXIT_FILE;
}

/* Reads the model file, or as much of it as shows that it is too large. */
int files_read(Compile *c, Text *text) {
    FILE *in = fopen(c->opt.input, "rb");
    if (!in && str_eq(c->opt.input, "-")) {
        fprintf(c->diag.out, "mdlc: a model is read from a file; '/dev/stdin' is standard input\n");
        return EXIT_FILE;
    }
    if (!in) {
        return file_error(c, "open", c->opt.input);
    }
    char block[65536];
    size_t n;
    text_add(text, "");
    while (text->len <= SOURCE_LARGEST && (n = fread(block, 1, sizeof block, in)) > 0) {
        text_addn(text, block, n);
    }
    bool bad = ferror(in) != 0;
    int code = bad ? file_error(c, "read", c->opt.input) : EXIT_OK;
    fclose(in);
    return code;
}

enum { OUTPUTS = 3 }; /* and what --split adds */

/* The files that a compile writes, those of --split first; gives how many. */
static int compile_outputs(Compile *c, Output *output) {
    int n = 0;
    while (n < c->opt.split) {
        output[n] = (Output){"--split", path_numbered(&c->arena, c->opt.output, n + 1)};
        n++;
    }
    if (c->opt.output) {
        output[n++] = (Output){"-o", c->opt.output};
    }
    if (c->opt.header) {
        output[n++] = (Output){"-H", c->opt.header};
    }
    if (c->opt.depfile) {
        output[n++] = (Output){"-MF", c->opt.depfile};
    } else if (c->opt.depend) {
        output[n++] =
            (Output){"-MD", c->opt.output ? str_printf(&c->arena, "%s.d", c->opt.output) : "-"};
    }
    return n;
}

/* May they be written? Data files are looked for beside the program too, and so beside its text. */
static bool outputs_apart(Compile *c, const Program *p, const Output *output, int count) {
    Paths inputs = emit_inputs(c, p->module), all = {NULL, 0, 0};
    const char *slash = c->opt.output ? strrchr(c->opt.output, '/') : NULL;
    for (int i = 0; i < inputs.count; i++) {
        VEC_PUSH(&c->arena, &all, inputs.at[i]);
        if (slash && inputs.at[i][0] != '/') {
            const char *beside = str_printf(&c->arena, "%.*s%s", (int)(slash - c->opt.output + 1),
                                            c->opt.output, inputs.at[i]);
            VEC_PUSH(&c->arena, &all, beside);
        }
    }
    return output_apart(c, output, count, &all);
}

/* Does a file hold this text already? Then it is left as it is, and what is made of it need not be
 * made again. */
static bool is_written(const char *path, const Text *text) {
    FILE *in = fopen(path, "rb");
    if (!in) {
        return false;
    }
    char block[65536];
    size_t at = 0, n;
    bool same = true;
    while (same && (n = fread(block, 1, sizeof block, in)) > 0) {
        same = n <= text->len - at && memcmp(block, text->at + at, n) == 0;
        at += n;
    }
    same = same && ferror(in) == 0 && at == text->len;
    fclose(in);
    return same;
}

/* Program -> text. */
int files_emit(Compile *c, const Program *p, uint32_t source) {
    const Source *text = &c->diag.sources.at[source];
    bool report_alone = c->opt.command == COMMAND_REPORT;
    const int units = report_alone ? 0 : c->opt.split;
    Output *output = ARENA_ARRAY(&c->arena, Output, OUTPUTS + units);
    int count = report_alone ? 0 : compile_outputs(c, output);
    if (!outputs_apart(c, p, output, count)) {
        return EXIT_USAGE;
    }
    Outputs files = {.c = c};
    if (c->opt.stats) {
        emit_stats(c->out, p);
    }
    if (c->opt.report != REPORT_NONE || report_alone) {
        Text report = {.arena = &c->arena};
        emit_report(&report, c, p, text, c->opt.report == REPORT_JSON);
        int code = outputs_add(&files, "-", &report);
        if (code != EXIT_OK) {
            return code;
        }
    }
    int code = budget_check(c, p);
    Text *unit = ARENA_ARRAY(&c->arena, Text, units + 1), whole = {.arena = &c->arena};
    for (int i = 0; i < units; i++) {
        unit[i].arena = &c->arena;
    }
    if (units > 0 && code == EXIT_OK) {
        emit_module_split(&whole, unit, units, c, p, text);
    }
    for (int i = 0; i < units && code == EXIT_OK; i++) {
        code = is_written(output[i].path, &unit[i]) ? EXIT_OK
                                                    : outputs_add(&files, output[i].path, &unit[i]);
    }
    for (int i = units; i < count && code == EXIT_OK; i++) {
        Arena arena = {0};
        Text out = {.arena = &arena};
        if (str_eq(output[i].option, "-o")) {
            if (units > 0) {
                text_addn(&out, whole.at, whole.len);
            } else {
                emit_module(&out, c, p, text);
            }
        } else if (str_eq(output[i].option, "-H")) {
            emit_header(&out, c, p, text);
        } else {
            emit_depend(&out, c, p);
        }
        code = outputs_add(&files, output[i].path, &out);
        arena_free(&arena);
    }
    return code == EXIT_OK ? outputs_place(&files) : code;
}

/* Source text -> the same in canonical layout, also in place: what is written is complete. */
int files_format(Compile *c, uint32_t source) {
    const Paths inputs = {NULL, 0, 0};
    const Output output = {"-o", c->opt.output ? c->opt.output : "-"};
    Outputs files = {.c = c};
    Text out = {.arena = &c->arena};
    const char *text = fmt_source(c, &c->arena, source);
    text_add(&out, text ? text : "");
    if (c->diag.errors) {
        return EXIT_SOURCE;
    }
    if (!output_apart(c, &output, 1, &inputs)) {
        return EXIT_USAGE;
    }
    int code = outputs_add(&files, output.path, &out);
    return code == EXIT_OK ? outputs_place(&files) : code;
}
