/* init: see the header. Options are looked at, the data is read (init_table.c for tables), the
 * template is filled, compiled once for its budget, and written. */
#define _GNU_SOURCE
#include "compiler/driver/init.h"

#include "compiler/driver/init_table.h"
#include "compiler/driver/output.h"
#include "emit/write.h"
#include "runtime/io.h"

static int refuse(Compile *c, int code, const char *message) {
    fprintf(c->diag.out, "mdlc: %s\n", message);
    if (code == EXIT_USAGE) {
        fprintf(c->diag.out, "try 'mdlc --help'\n");
    }
    return code;
}

void init_fill(Compile *c, Fills *fills, const char *name, const char *value) {
    const Fill fill = {name, value};
    VEC_PUSH(&c->arena, fills, fill);
}

void init_fill_int(Compile *c, Fills *fills, const char *name, int64_t value) {
    init_fill(c, fills, name, str_printf(&c->arena, "%lld", (long long)value));
}

/* A path as a string of the language: it parses back to the same bytes. */
static const char *quoted(Arena *arena, const char *path) {
    Text out = {.arena = arena};
    text_add(&out, "\"");
    for (; *path; path++) {
        const char *escape = *path == '"'    ? "\\\""
                             : *path == '\\' ? "\\\\"
                             : *path == '\n' ? "\\n"
                             : *path == '\t' ? "\\t"
                                             : NULL;
        if (escape) {
            text_add(&out, escape);
        } else {
            text_addn(&out, path, 1);
        }
    }
    text_add(&out, "\"");
    return out.at;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { WINDOW = 64, HELD_WINDOWS = 10 }; /* of share/templates/text.mdl */

static void fill_text(Compile *c, Fills *fills, int64_t windows) {
    bool held = windows >= 2 * HELD_WINDOWS;
    int64_t train = held ? windows - windows / HELD_WINDOWS : windows, batch = 16;
    while (batch > train) {
        batch /= 2;
    }
    int64_t epochs = 600 / (train / batch);
    init_fill_int(c, fills, "batch", batch);
    init_fill_int(c, fills, "epochs", epochs < 3 ? 3 : epochs > 100 ? 100 : epochs);
    init_fill(c, fills, "holdout",
              held ? "// Each tenth window is held out: the net is judged by text that it has not "
                     "seen.\nholdout every(10);"
                   : "// Too short to hold some of it out: reports are of text that it has seen.");
}

static int read_text(Compile *c, Fills *fills) {
    const char *path = c->opt.data;
    char why[MD_MESSAGE_BYTES];
    md_text message = md_text_make(why, sizeof why);
    int fd;
    uint64_t bytes;
    md_format format = md_format_of(path);
    if (md_open(path, &message, &fd, &bytes) != MD_EXIT_OK) {
        return refuse(c, EXIT_FILE, why);
    }
    format = format == MD_FORMAT_AUTO ? md_format_sniff(fd) : format;
    close(fd);
    if (format != MD_FORMAT_U8) {
        return refuse(c, EXIT_USAGE,
                      str_printf(&c->arena,
                                 "%s: template 'text' reads characters; the name or the first "
                                 "bytes of this file say that it holds something else",
                                 path));
    }
    if (bytes < 2 * WINDOW + 1) {
        return refuse(c, EXIT_SOURCE,
                      str_printf(&c->arena, "%s: %llu bytes; the template needs at least %d", path,
                                 (unsigned long long)bytes, 2 * WINDOW + 1));
    }
    fill_text(c, fills, (int64_t)((bytes - 1) / WINDOW));
    init_fill(c, fills, "about",
              str_printf(&c->arena, "// Made for %s: %llu bytes.",
                         table_shown(&c->arena, path_base(path)), (unsigned long long)bytes));
    return EXIT_OK;
}

/* ---- templates without data ------------------------------------------------------------------ */

static void fill_examples(Compile *c, const Embed *template, Fills *fills) {
    bool text = template == template_find("text"), images = template == template_find("images");
    init_fill(c, fills, "about",
              images ? "// The paths and sizes are those of MNIST; change them to yours."
              : text
                  ? "// The path is an example; `mdlc init text --data FILE.txt` writes yours."
                  : "// Path, columns and sizes are examples; `mdlc init --data FILE.csv` writes "
                    "those of a table.");
    if (text) {
        fill_text(c, fills, 1000);
        init_fill(c, fills, "path", "\"input.txt\"");
        init_fill(c, fills, "path_note", "  // the path of your text");
    } else if (!images) {
        init_table_examples(c, fills);
        init_fill(c, fills, "path", "\"table.csv\"");
        init_fill(c, fills, "path_note", "  // the path of your table");
    }
}

/* ---- options --------------------------------------------------------------------------------- */

static int unknown_template(Compile *c, const char *what, const char *name) {
    Text names = {.arena = &c->arena};
    template_names(&names);
    return refuse(c, EXIT_USAGE,
                  str_printf(&c->arena, "%s%s; templates: %s", what, name, names.at));
}

static bool is_table(const Options *opt) {
    return opt->data && md_format_of(opt->data) == MD_FORMAT_CSV;
}

/* What --data is: by the ending of its name, as for data sets. */
static int check_data(Compile *c) {
    const Options *opt = &c->opt;
    const char *input = opt->input ? opt->input : is_table(opt) ? "" : "text";
    if (str_eq(input, "images")) {
        return refuse(c, EXIT_USAGE,
                      "template 'images' reads two files: write it without '--data' and put their "
                      "paths in");
    }
    if (str_eq(input, "text")) {
        if (!opt->input && md_format_of(opt->data) != MD_FORMAT_U8) {
            return refuse(c, EXIT_USAGE,
                          str_printf(&c->arena,
                                     "%s: a table has a name that ends in .csv, a text one in "
                                     ".txt, .md or .bin",
                                     opt->data));
        }
        return opt->column ? refuse(c, EXIT_USAGE, "'--target' means nothing to a text") : EXIT_OK;
    }
    return is_table(opt)
               ? EXIT_OK
               : refuse(c, EXIT_USAGE,
                        str_printf(&c->arena,
                                   "%s: template '%s' reads a table, whose name ends in .csv",
                                   opt->data, input));
}

static int check_init(Compile *c) {
    const Options *opt = &c->opt;
    if (opt->templates) {
        bool alone = !opt->input && !opt->data && !opt->column && !opt->output && !opt->force;
        return alone ? EXIT_OK : refuse(c, EXIT_USAGE, "'--list' takes nothing beside it");
    }
    if (opt->input && !template_find(opt->input)) {
        return unknown_template(c, "there is no template ", table_shown(&c->arena, opt->input));
    }
    if (opt->data) {
        return check_data(c);
    }
    if (opt->column) {
        return refuse(c, EXIT_USAGE, "'--target' names a column of '--data FILE.csv'");
    }
    return opt->input ? EXIT_OK : unknown_template(c, "name a template, or '--data FILE.csv'", "");
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Where the model goes without -o: here, under the name of its data or template. */
static const char *usual_output(Compile *c) {
    const char *base = c->opt.data ? path_base(c->opt.data) : c->opt.input;
    const char *dot = strrchr(base, '.');
    int length = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
    return str_printf(&c->arena, "%.*s.mdl", length, base);
}

/* Is it a file of its own, and not there yet? */
static int check_output(Compile *c, const char *path) {
    struct stat info;
    Paths inputs = {NULL, 0, 0};
    const Output output = {"-o", path};
    if (c->opt.data) {
        VEC_PUSH(&c->arena, &inputs, c->opt.data);
    }
    if (!output_apart(c, &output, 1, &inputs)) {
        return EXIT_USAGE;
    }
    bool taken = !str_eq(path, "-") && stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return taken && !c->opt.force
               ? refuse(c, EXIT_FILE,
                        str_printf(&c->arena,
                                   "'%s' is there already: '-o FILE' gives the model another "
                                   "name, '--force' replaces the file",
                                   path))
               : EXIT_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The next power of two that leaves some room, as the language writes it. */
static const char *budget_text(Arena *arena, int64_t bytes) {
    static const char *const unit[] = {"KiB", "MiB", "GiB"};
    int64_t size = 4;
    int k = 0;
    while (size * 1024 < bytes + bytes / 8) {
        size *= 2;
    }
    for (; size >= 1024 && k < 2; k++) {
        size /= 1024;
    }
    return str_printf(arena, "budget %lld %s;", (long long)size, unit[k]);
}

/* The model as text: compiled without a budget first, for the bytes that it needs. */
static const char *make_model(Compile *c, const Embed *template, Fills *fills) {
    init_fill(c, fills, "budget", "");
    const char *text = template_fill(&c->arena, template, fills);
    fills->at[fills->count - 1].value = budget_text(&c->arena, template_bytes(text));
    text = template_fill(&c->arena, template, fills);
    (void)template_bytes(text);
    return text;
}

int init_run(Compile *c) {
    const Options *opt = &c->opt;
    Fills fills = {NULL, 0, 0};
    int code = check_init(c);
    if (code != EXIT_OK) {
        return code;
    }
    if (opt->templates) {
        template_list(c->out);
        return EXIT_OK;
    }
    /* Without a name the data says which: a table decides when it is read. */
    const char *name = opt->input ? opt->input : is_table(opt) ? NULL : "text";
    const Embed *template = name ? template_find(name) : NULL;
    bool table = is_table(opt) && !(name && str_eq(name, "text"));
    const char *path = opt->output ? opt->output : usual_output(c);
    code = check_output(c, path);
    if (code != EXIT_OK) {
        return code;
    }
    if (table) {
        code = init_table(c, &template, &fills);
    } else if (opt->data) {
        code = read_text(c, &fills);
    } else {
        fill_examples(c, template, &fills);
    }
    if (code != EXIT_OK) {
        return code;
    }
    if (opt->data) {
        init_fill(c, &fills, "path", quoted(&c->arena, opt->data));
        init_fill(c, &fills, "path_note", "");
    }
    Text model = {.arena = &c->arena};
    Outputs files = {.c = c};
    text_add(&model, make_model(c, template, &fills));
    code = outputs_add(&files, path, &model);
    code = code == EXIT_OK ? outputs_place(&files) : code;
    if (code == EXIT_OK && !str_eq(path, "-")) {
        fprintf(c->diag.out, "mdlc: wrote '%s'\n", path);
    }
    return code;
}
