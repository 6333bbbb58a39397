/* options: see the header. A table of flags, a table of options with a value; what does not go
 * together is looked at when all are there. */
#include "compiler/driver/options.h"

#include "compiler/flags.h"
#include "passes/schedule/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char options_usage[] =
    "usage: mdlc [COMMAND] [OPTIONS] FILE.mdl\n"
    "\n"
    "commands:\n"
    "  compile            write the C file (the default)\n"
    "  check              report errors only\n"
    "  report             memory of every entry, --format=text|json|html; --what-if: also what\n"
    "                     other batches, clauses and budgets would do to it\n"
    "  test               run the test blocks in the reference evaluator\n"
    "  run                evaluate an entry: --entry NAME --in NAME=FILE.npy --seed S --calls N\n"
    "  fmt                print the file in canonical layout\n"
    "  explain [CODE]     what a message such as E0205 means; without a code, all of them\n"
    "  flags              the options for a C compiler, in one line: --for=MACHINE --cc=COMPILER,\n"
    "                     with --libs those behind the file's name\n"
    "  init [TEMPLATE]    write a new model: --data FILE.csv for a table, --target COLUMN of it,\n"
    "                     -o FILE.mdl, --force to replace it; --list names the templates\n"
    "  diff A.json B.json what two reports differ in, --format=text|json; the exit status is 1\n"
    "                     where the total grew by more than --max-growth=SIZE (0), or 5% of it\n"
    "\n"
    "options:\n"
    "  -o FILE            output; '-' is stdout\n"
    "  -H FILE            header for embedding\n"
    "  -D NAME=VALUE      override a top-level dim or scalar const\n"
    "  --budget=SIZE      most bytes for all regions, e.g. '160 MiB', with the same bits as\n"
    "                     without; '160 MiB, rounding': sums may be made in another order\n"
    "  --precision=TYPE   f32, f64, bf16 or f16, whatever the source says (f32 if it says "
    "nothing);\n"
    "                     'bf16, always': also for products that it makes slower;\n"
    "                     'bf16(master=false)': parameters are kept in 16 bits, too\n"
    "  --for=MACHINE      that 16 bits shall pay on: generic (default), native, znver4 and what\n"
    "                     else 'mdlc flags' takes; flags: whose options to print (native)\n"
    "  --blas=LIBRARY     builtin (default) or openblas\n"
    "  --runtime=PART     used (default): the functions that are used, behind the model; whole:\n"
    "                     all, in front of it, so that one C file may include several models\n"
    "  --profile          a program that says where its time went, beside the machine's limit\n"
    "  --checks=LIST      none (default); nan: where a NaN came from; canary: guard bands\n"
    "  --threads=N        the most threads that the bound provides for (8)\n"
    "  --no-main          the model part only\n"
    "  --split=N          kernels and runtime in N more files, FILE.1.c to FILE.N.c\n"
    "  --target=NAME      c (default); cuda: CUDA C++ for nvcc, with --no-main alone\n"
    "  --line             #line directives: a debugger shows the source\n"
    "  --prefix=NAME      of emitted names (file stem)\n"
    "  -MD, -MF FILE      write a make dependency file\n"
    "  -MP                an empty rule in it for each module: one that is gone is no error\n"
    "  --report[=FORMAT]  print the memory report beside a compile\n"
    "  --dump=STAGE       print the program after STAGE: ast, build, grad, simplify, lower, plan\n"
    "  --stats            print counts of kernels, loops, buffers, bytes and FLOPs\n"
    "  -Werror            warnings are errors\n"
    "  --color=WHEN       auto (default), always, never\n"
    "  --version, --help\n"
    "exit: 0 ok, 1 error in the source, 2 usage, 3 budget, 4 file, 70 fault of the compiler\n";

static int usage_error(const char *message, const char *what) {
    fprintf(stderr, "mdlc: %s%s%s%s\n", message, what ? " '" : "", what ? what : "",
            what ? "'" : "");
    fprintf(stderr, "try 'mdlc --help'\n");
    return EXIT_USAGE;
}

/* The options that take a value, `--name=VALUE` or `--name VALUE`, or `-xVALUE` or `-x VALUE`. */
typedef enum {
    O_OUT,
    O_HEADER,
    O_DEFINE,
    O_MF,
    O_BUDGET,
    O_PRECISION,
    O_BLAS,
    O_THREADS,
    O_PREFIX,
    O_DUMP,
    O_FORMAT,
    O_COLOR,
    O_ENTRY,
    O_IN,
    O_SEED,
    O_CALLS,
    O_TARGET,
    O_CHECKS,
    O_RUNTIME,
    O_FOR,
    O_CC,
    O_DATA,
    O_GROWTH,
    O_SPLIT
} ValueOption;
static const struct {
    const char *name;
    ValueOption id;
} value_options[] = {
    {"-o", O_OUT},
    {"-H", O_HEADER},
    {"-D", O_DEFINE},
    {"-MF", O_MF},
    {"--budget", O_BUDGET},
    {"--precision", O_PRECISION},
    {"--runtime", O_RUNTIME},
    {"--blas", O_BLAS},
    {"--threads", O_THREADS},
    {"--prefix", O_PREFIX},
    {"--dump", O_DUMP},
    {"--format", O_FORMAT},
    {"--color", O_COLOR},
    {"--entry", O_ENTRY},
    {"--in", O_IN},
    {"--seed", O_SEED},
    {"--calls", O_CALLS},
    {"--target", O_TARGET},
    {"--checks", O_CHECKS},
    {"--for", O_FOR},
    {"--cc", O_CC},
    {"--data", O_DATA},
    {"--max-growth", O_GROWTH},
    {"--split", O_SPLIT},
};
static const char *const flag_options[] = {
    "--no-main", "--line", "--profile", "-MD",    "-MP",       "--report", "--stats",
    "-Werror",   "--libs", "--force",   "--list", "--what-if", "--help",   "--version"};
static const struct {
    const char *name;
    Command command;
} commands[] = {{"compile", COMMAND_COMPILE}, {"check", COMMAND_CHECK}, {"report", COMMAND_REPORT},
                {"test", COMMAND_TEST},       {"run", COMMAND_RUN},     {"fmt", COMMAND_FMT},
                {"explain", COMMAND_EXPLAIN}, {"flags", COMMAND_FLAGS}, {"init", COMMAND_INIT},
                {"diff", COMMAND_DIFF}};

/* Options that mean something to some commands only. */
enum {
    RUNS = 1u << COMMAND_RUN,
    COMPILES = 1u << COMMAND_COMPILE,
    REPORTS = 1u << COMMAND_REPORT,
    FLAGS = 1u << COMMAND_FLAGS,
    INIT = 1u << COMMAND_INIT,
    DIFF = 1u << COMMAND_DIFF,
    OF_MODEL = FLAGS - 1 /* the commands before it: they are about a model file, or a message */
};
static const struct {
    const char *name;
    unsigned commands;
} narrow_options[] = {
    {"--entry", RUNS},
    {"--in", RUNS},
    {"--calls", RUNS},
    {"--seed", RUNS | 1u << COMMAND_TEST},
    {"--for", (OF_MODEL & ~(1u << COMMAND_FMT | 1u << COMMAND_EXPLAIN)) | FLAGS},
    {"--cc", FLAGS},
    {"--libs", FLAGS},
    {"--data", INIT},
    {"--force", INIT},
    {"--list", INIT},
    {"--format", REPORTS | DIFF},
    {"--what-if", REPORTS},
    {"--max-growth", DIFF},
    {"--report", COMPILES | REPORTS},
    {"--stats", COMPILES | REPORTS},
    {"--target", COMPILES | REPORTS | INIT},
    {"--dump", OF_MODEL & ~(1u << COMMAND_FMT | 1u << COMMAND_EXPLAIN)},
    {"--blas", OF_MODEL | FLAGS},
    {"-D", OF_MODEL},
    {"--budget", OF_MODEL},
    {"--precision", OF_MODEL},
    {"--runtime", OF_MODEL},
    {"--threads", OF_MODEL},
    {"--checks", OF_MODEL},
    {"--no-main", OF_MODEL},
    {"--line", OF_MODEL},
    {"--profile", COMPILES},
    {"--split", COMPILES},
    {"--prefix", OF_MODEL},
    {"-Werror", OF_MODEL},
};

/* Options that mean something to programs of the host only. */
enum { HOST_OPTION = 40 }; /* bit of the first in Options.given */
static const char *const host_options[] = {"--for", "--threads", "--blas", "--runtime",
                                           "--split"};

static const char *command_name(Command command) {
    size_t k = 0;
    while (commands[k].command != command) {
        k++;
    }
    return commands[k].name;
}

/* A word without a dot or a slash where a command may stand. */
static bool looks_like_command(const char *word) {
    return strpbrk(word, "./") == NULL;
}

/* Says which command was meant, if that can be guessed. */
static bool explain_command(const char *word) {
    static const char *const of_program[] = {"train", "fit", "eval", "predict", "info"};
    for (size_t i = 0; i < sizeof of_program / sizeof *of_program; i++) {
        if (str_distance(word, of_program[i], 1) <= 1) {
            fprintf(stderr,
                    "mdlc: there is no command '%s': the program that mdlc writes does that\n"
                    "'mdlc FILE.mdl -o train.c' writes it; its first lines say how to build it\n",
                    word);
            return true;
        }
    }
    const char *best = NULL;
    int least = 3;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int d = str_distance(word, commands[i].name, 2);
        if (d < least) {
            least = d;
            best = commands[i].name;
        }
    }
    if (best) {
        fprintf(stderr, "mdlc: there is no command '%s'; did you mean '%s'?\n", word, best);
    }
    return best != NULL;
}

static bool parse_integer(const char *text, int64_t lo, int64_t hi, int64_t *value) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    return end != text && *end == 0 && errno == 0 && v >= lo && v <= hi;
}

static bool parse_seed(const char *text, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return strspn(text, "0123456789") == strlen(text) && end != text && errno == 0;
}

/* "160 MiB", "900kB", "4096". */
static bool parse_size(const char *text, int64_t *bytes) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},     {"B", 1},      {"kB", 1e3},      {"KB", 1e3},          {"MB", 1e6},
                 {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824.0}};
    char *end;
    double v = strtod(text, &end);
    while (*end == ' ') {
        end++;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (end != text && str_eq(end, units[i].name) && v >= 0 && v * units[i].factor < 9e18) {
            *bytes = (int64_t)(v * units[i].factor);
            return true;
        }
    }
    return false;
}

/* `2 GiB` or `2 GiB, rounding` */
static int set_budget(Compile *c, const char *value) {
    const char *comma = strchr(value, ','), *word = comma ? comma + 1 : "";
    const char *size = comma ? str_printf(&c->arena, "%.*s", (int)(comma - value), value) : value;
    while (*word == ' ') {
        word++;
    }
    c->opt.rounding = str_eq(word, "rounding");
    if (!parse_size(size, &c->opt.budget) || (comma && !c->opt.rounding)) {
        return usage_error("--budget wants a size such as '160 MiB' or '160 MiB, rounding', got",
                           value);
    }
    return EXIT_OK;
}

/* Takes blanks away. */
static const char *squeezed(Arena *arena, const char *text) {
    Text out = {.arena = arena};
    text_add(&out, "");
    for (; *text; text++) {
        text_printf(&out, *text == ' ' ? "%.0s" : "%.1s", text);
    }
    return out.at;
}

/* `f64`, `bf16`, `bf16, always`, `bf16(master = false)` */
static int set_precision(Compile *c, const char *value) {
    static const struct {
        const char *word;
        Elem float_type, half;
        bool always, no_master;
    } types[] = {{"f32", TY_F32, TY_ERROR, false, false},
                 {"f64", TY_F64, TY_ERROR, false, false},
                 {"f16", TY_F32, TY_F16, false, false},
                 {"f16,always", TY_F32, TY_F16, true, false},
                 {"bf16", TY_F32, TY_BF16, false, false},
                 {"bf16,always", TY_F32, TY_BF16, true, false},
                 {"bf16(master=false)", TY_F32, TY_BF16, false, true},
                 {"bf16(master=false),always", TY_F32, TY_BF16, true, true}};
    const char *text = squeezed(&c->arena, value);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (str_eq(types[i].word, text)) {
            c->opt.float_type = types[i].float_type;
            c->opt.half = types[i].half;
            c->opt.always = types[i].always;
            c->opt.no_master = types[i].no_master;
            return EXIT_OK; /* the last one counts */
        }
    }
    return usage_error("--precision wants f32, f64, f16, bf16 or 'bf16(master=false)', behind the "
                       "last three perhaps ', always', got",
                       value);
}

/* `64 KiB` or `2.5%` */
static int set_growth(Options *opt, const char *value) {
    char *end;
    double share = strtod(value, &end);
    opt->growth = 0;
    opt->growth_share = -1;
    if (end != value && str_eq(end, "%") && share >= 0 && share < 1e9) {
        opt->growth_share = share;
    } else if (!parse_size(value, &opt->growth)) {
        return usage_error("--max-growth wants a size such as '64 KiB' or a share such as '5%', "
                           "got",
                           value);
    }
    return EXIT_OK;
}

static int add_override(Compile *c, const char *value) {
    const char *eq = strchr(value, '=');
    if (!eq || eq == value || eq[1] == 0) {
        return usage_error("-D wants NAME=VALUE, got", value);
    }
    Options *opt = &c->opt;
    opt->override = arena_grow(&c->arena, opt->override, sizeof(Override) * (size_t)opt->noverride,
                               sizeof(Override) * (size_t)(opt->noverride + 1));
    opt->override[opt->noverride].name = str_ndup(&c->arena, value, (size_t)(eq - value));
    opt->override[opt->noverride++].value = eq + 1;
    return EXIT_OK;
}

static int add_binding(Compile *c, const char *value) {
    const char *eq = strchr(value, '=');
    if (!eq || eq == value || eq[1] == 0) {
        return usage_error("--in wants NAME=FILE.npy, got", value);
    }
    Options *opt = &c->opt;
    opt->binding = arena_grow(&c->arena, opt->binding, sizeof(Binding) * (size_t)opt->nbinding,
                              sizeof(Binding) * (size_t)(opt->nbinding + 1));
    opt->binding[opt->nbinding].name = str_ndup(&c->arena, value, (size_t)(eq - value));
    opt->binding[opt->nbinding++].path = eq + 1;
    return EXIT_OK;
}

static int set_report(Options *opt, const char *value) {
    if (str_eq(value, "text")) {
        opt->report = REPORT_TEXT;
    } else if (str_eq(value, "json")) {
        opt->report = REPORT_JSON;
    } else if (str_eq(value, "html")) {
        opt->report = REPORT_HTML;
    } else {
        return usage_error("unknown report format", value);
    }
    return EXIT_OK;
}

/* A list: "nan,canary" is both. */
static int set_checks(Options *opt, const char *value) {
    opt->canary = opt->nan = false;
    for (const char *at = value;; at++) {
        size_t n = strcspn(at, ",");
        if (n == 6 && strncmp(at, "canary", n) == 0) {
            opt->canary = true;
        } else if (n == 3 && strncmp(at, "nan", n) == 0) {
            opt->nan = true;
        } else if (!str_eq(value, "none")) {
            return usage_error("--checks is none, or a list of nan and canary, got", value);
        }
        at += n;
        if (*at == 0) {
            return EXIT_OK;
        }
    }
}

const char *const options_blas[] = {"builtin", "openblas", NULL};
const char *const options_targets[] = {"c", "cuda", NULL};

/* The place of a name in a list that ends in NULL; -1: it is none of them. */
static int name_index(const char *const *names, const char *name) {
    for (int i = 0; names[i]; i++) {
        if (str_eq(names[i], name)) {
            return i;
        }
    }
    return -1;
}

static int set_machine(Compile *c, const char *name) {
    c->opt.machine = flags_machine(name);
    if (c->opt.machine) {
        return EXIT_OK;
    }
    Text names = {.arena = &c->arena};
    flags_machine_names(&names);
    return usage_error(
        str_printf(&c->arena, "--for knows no machine '%s'; it knows %s", name, names.at), NULL);
}

enum { SPLIT_MOST = 64 }; /* files */

static int set_value(Compile *c, ValueOption id, const char *value) {
    Options *opt = &c->opt;
    int64_t n;
    switch (id) {
    case O_OUT: opt->output = value; break;
    case O_HEADER: opt->header = value; break;
    case O_DEFINE: return add_override(c, value);
    case O_MF:
        opt->depfile = value;
        opt->depend = true;
        break;
    case O_BUDGET: return set_budget(c, value);
    case O_PRECISION: return set_precision(c, value);
    case O_BLAS:
        if (name_index(options_blas, value) < 0) {
            return usage_error("--blas is builtin or openblas, got", value);
        }
        opt->openblas = name_index(options_blas, value) > 0;
        break;
    case O_THREADS:
        if (!parse_integer(value, 1, 1024, &n)) {
            return usage_error("--threads wants a number from 1 to 1024, got", value);
        }
        opt->threads = (int)n;
        break;
    case O_SPLIT:
        if (!parse_integer(value, 1, SPLIT_MOST, &n)) {
            return usage_error("--split wants a number of files from 1 to 64, got", value);
        }
        opt->split = (int)n;
        break;
    case O_PREFIX: opt->prefix = value; break;
    case O_DUMP: opt->dump = value; break;
    case O_FORMAT: return set_report(opt, value);
    case O_COLOR:
        if (!str_eq(value, "auto") && !str_eq(value, "always") && !str_eq(value, "never")) {
            return usage_error("--color is auto, always or never, got", value);
        }
        if (!str_eq(value, "auto")) {
            c->diag.color = str_eq(value, "always");
        }
        break;
    case O_ENTRY: opt->entry = value; break;
    case O_IN: return add_binding(c, value);
    case O_SEED:
        if (!parse_seed(value, &opt->seed)) {
            return usage_error("--seed wants a number from 0 to 18446744073709551615, got", value);
        }
        break;
    case O_CALLS:
        if (!parse_integer(value, 1, INT64_MAX, &opt->calls)) {
            return usage_error("--calls wants a positive number, got", value);
        }
        break;
    case O_TARGET: opt->column = value; break; /* the command may stand behind it: check_target */
    case O_RUNTIME:
        if (!str_eq(value, "used") && !str_eq(value, "whole")) {
            return usage_error("--runtime is used or whole, got", value);
        }
        opt->whole_runtime = str_eq(value, "whole");
        break;
    case O_CHECKS: return set_checks(opt, value);
    case O_FOR: return set_machine(c, value);
    case O_CC: opt->compiler = value; break;
    case O_DATA: opt->data = value; break;
    case O_GROWTH: return set_growth(opt, value);
    }
    return EXIT_OK;
}

static int set_flag(Compile *c, const char *name) {
    if (str_eq(name, "--no-main")) {
        c->opt.no_main = true;
    } else if (str_eq(name, "--profile")) {
        c->opt.profile = true;
    } else if (str_eq(name, "--line")) {
        c->opt.line = true;
    } else if (str_eq(name, "-MD")) {
        c->opt.depend = true;
    } else if (str_eq(name, "-MP")) {
        c->opt.depend_rules = true;
    } else if (str_eq(name, "--report")) {
        c->opt.report = REPORT_TEXT;
    } else if (str_eq(name, "--stats")) {
        c->opt.stats = true;
    } else if (str_eq(name, "--what-if")) {
        c->opt.what_if = true;
    } else if (str_eq(name, "--libs")) {
        c->opt.libraries = true;
    } else if (str_eq(name, "--force")) {
        c->opt.force = true;
    } else if (str_eq(name, "--list")) {
        c->opt.templates = true;
    } else {
        c->diag.warnings_are_errors = true;
    }
    return EXIT_OK;
}

static int unknown_option(const char *name, size_t length) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), name);
    const char *best = NULL;
    int least = 3;
    for (size_t i = 0; i < sizeof value_options / sizeof *value_options; i++) {
        int d = str_distance(word, value_options[i].name, 2);
        if (d < least) {
            least = d;
            best = value_options[i].name;
        }
    }
    for (size_t i = 0; i < sizeof flag_options / sizeof *flag_options; i++) {
        int d = str_distance(word, flag_options[i], 2);
        if (d < least) {
            least = d;
            best = flag_options[i];
        }
    }
    if (best && word[1] == '-') {
        fprintf(stderr, "mdlc: unknown option '%s'; did you mean '%s'?\n", word, best);
        return EXIT_USAGE;
    }
    return usage_error("unknown option", word);
}

/* Handles argv[*i], which starts with '-'; moves *i past a value taken from the next word. */
static int parse_option(Compile *c, int argc, char **argv, int *i) {
    const char *word = argv[*i];
    size_t length = strcspn(word, "=");
    for (size_t k = 0; k < sizeof flag_options / sizeof *flag_options; k++) {
        if (str_eq(word, flag_options[k])) {
            return set_flag(c, word);
        }
    }
    if (strncmp(word, "--report=", 9) == 0) {
        return set_report(&c->opt, word + 9);
    }
    for (size_t k = 0; k < sizeof value_options / sizeof *value_options; k++) {
        const char *name = value_options[k].name;
        size_t n = strlen(name);
        if (name[1] == '-') {
            if (n == length && strncmp(word, name, n) == 0 && word[n] == '=') {
                return set_value(c, value_options[k].id, word + n + 1);
            }
        } else if (strlen(name) == 2 && strncmp(word, name, 2) == 0 && word[2]) {
            return set_value(c, value_options[k].id, word + 2);
        }
        if (str_eq(word, name)) {
            if (*i + 1 >= argc) {
                return usage_error("a value is missing after", word);
            }
            return set_value(c, value_options[k].id, argv[++*i]);
        }
    }
    return unknown_option(word, length);
}

/* --budget and --budget=1 GiB are --budget, -D and -DN=1 are -D. */
static bool is_option(const char *word, const char *name) {
    size_t length = word[1] == '-' ? strcspn(word, "=") : strlen(name);
    return strlen(name) == length && strncmp(name, word, length) == 0;
}

/* A file that is asked for and that the command would not write is a mistake. */
static int check_files(const Options *opt) {
    bool compiles = opt->command == COMMAND_COMPILE && !opt->dump;
    bool prints = (opt->command != COMMAND_FMT && opt->command != COMMAND_INIT) || opt->dump;
    if (opt->depend_rules && !opt->depend) {
        return usage_error("-MP adds to a dependency file: give -MD or -MF too", NULL);
    }
    const char *file = opt->header             ? "-H"
                       : opt->depfile          ? "-MF"
                       : opt->depend           ? "-MD"
                       : opt->output && prints ? "-o"
                                               : NULL;
    if (compiles || !file) {
        return EXIT_OK;
    }
    fprintf(stderr, "mdlc: '%s' does not go with '%s', which writes no such file%s\n", file,
            opt->dump ? "--dump" : command_name(opt->command),
            prints ? ": it prints to standard output" : "");
    return EXIT_USAGE;
}

static void note_option(Options *opt, const char *word) {
    for (size_t k = 0; k < sizeof narrow_options / sizeof *narrow_options; k++) {
        opt->given |= is_option(word, narrow_options[k].name) ? UINT64_C(1) << k : 0;
    }
    for (size_t k = 0; k < sizeof host_options / sizeof *host_options; k++) {
        opt->given |= is_option(word, host_options[k]) ? UINT64_C(1) << (HOST_OPTION + k) : 0;
    }
}

/* What a program for a graphics processor does not have, or not yet. */
static int check_device(const Options *opt) {
    const char *other = opt->header   ? "-H"
                        : opt->canary ? "--checks=canary"
                        : opt->nan    ? "--checks=nan"
                                      : NULL;
    for (size_t k = 0; k < sizeof host_options / sizeof *host_options; k++) {
        other = opt->given >> (HOST_OPTION + k) & 1 ? host_options[k] : other;
    }
    if (other) {
        fprintf(stderr, "mdlc: '%s' does not go with '--target=cuda': leave one of them out\n",
                other);
        return EXIT_USAGE;
    }
    if (opt->command == COMMAND_COMPILE && !opt->dump && !opt->no_main) {
        return usage_error("--target=cuda writes no main: add --no-main, and call the functions of "
                           "the file from a program of your own",
                           NULL);
    }
    return EXIT_OK;
}

/* --target is a column of a table to `init`, and what programs are for to all others. */
static int check_target(Options *opt) {
    if (!opt->column || opt->command == COMMAND_INIT) {
        return EXIT_OK;
    }
    int index = name_index(options_targets, opt->column);
    if (index < 0) {
        return usage_error("unknown target", opt->column);
    }
    opt->target = index > 0 ? &target_cuda : &target_cpu;
    return opt->target == &target_cuda ? check_device(opt) : EXIT_OK;
}

/* Several files have names, and each is compiled alone. */
static int check_split(const Options *opt) {
    if (opt->split == 0) {
        return EXIT_OK;
    }
    if (!opt->output || str_eq(opt->output, "-")) {
        return usage_error("--split names its files by the one that -o names: give -o FILE.c",
                           NULL);
    }
    const char *other = opt->whole_runtime ? "--runtime=whole" : opt->line ? "--line" : NULL;
    if (other) {
        fprintf(stderr, "mdlc: '%s' does not go with '--split': leave one of them out\n", other);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* An option that would have no effect is a mistake too. */
static int check_options(Options *opt) {
    for (size_t k = 0; k < sizeof narrow_options / sizeof *narrow_options; k++) {
        if ((opt->given >> k & 1) && !(narrow_options[k].commands >> opt->command & 1)) {
            fprintf(stderr, "mdlc: '%s' means nothing to '%s'\n", narrow_options[k].name,
                    command_name(opt->command));
            fprintf(stderr, "try 'mdlc --help'\n");
            return EXIT_USAGE;
        }
    }
    if (opt->profile && opt->no_main) {
        return usage_error("--profile is about the main of a program, and --no-main leaves it out: "
                           "leave one of them out",
                           NULL);
    }
    if (opt->report == REPORT_HTML && opt->command != COMMAND_REPORT) {
        return usage_error("a report as HTML is a page of its own: mdlc report --format=html, not "
                           "beside",
                           command_name(opt->command));
    }
    int code = check_split(opt);
    code = code == EXIT_OK ? check_target(opt) : code;
    return code == EXIT_OK ? check_files(opt) : code;
}

int options_parse(Compile *c, int argc, char **argv) {
    bool options = true, have_command = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && str_eq(word, "--")) {
            options = false;
        } else if (options && word[0] == '-' && word[1]) {
            note_option(&c->opt, word);
            int code = parse_option(c, argc, argv, &i);
            if (code != EXIT_OK) {
                return code;
            }
        } else {
            bool command = false;
            for (size_t k = 0;
                 !have_command && !c->opt.input && k < sizeof commands / sizeof *commands; k++) {
                if (str_eq(word, commands[k].name)) {
                    c->opt.command = commands[k].command;
                    have_command = command = true;
                }
            }
            if (!command && c->opt.input && !have_command && looks_like_command(c->opt.input)) {
                return explain_command(c->opt.input)
                           ? EXIT_USAGE
                           : usage_error("there is no command", c->opt.input);
            }
            if (!command && c->opt.command == COMMAND_FLAGS) {
                return usage_error("'flags' takes options alone, got", word);
            }
            if (!command && c->opt.input && c->opt.command == COMMAND_INIT) {
                return usage_error("one template at a time; a second one is", word);
            }
            if (!command && c->opt.input && c->opt.command == COMMAND_DIFF) {
                if (c->opt.other) {
                    return usage_error("'diff' takes two reports; a third one is", word);
                }
                c->opt.other = word;
                continue;
            }
            if (!command && c->opt.input) {
                return usage_error("one model file at a time; a second one is", word);
            }
            if (!command) {
                c->opt.input = word;
            }
        }
    }
    if (!c->opt.input && (OF_MODEL >> c->opt.command & 1) && c->opt.command != COMMAND_EXPLAIN) {
        return usage_error("no model file given", NULL);
    }
    if (c->opt.command == COMMAND_DIFF && !c->opt.other) {
        return usage_error("'diff' wants two reports: mdlc diff BEFORE.json AFTER.json", NULL);
    }
    int code = check_options(&c->opt);
    if (code != EXIT_OK) {
        return code;
    }
    const char *const file[] = {c->opt.output, c->opt.header,
                                c->opt.depfile  ? c->opt.depfile
                                : c->opt.depend ? c->opt.output
                                                : NULL};
    int printed = 0;
    for (size_t k = 0; k < sizeof file / sizeof *file; k++) {
        printed += file[k] && str_eq(file[k], "-");
    }
    if (printed > 1) {
        return usage_error("more than one of -o, -H and -MF would go to standard output", NULL);
    }
    if (!have_command && looks_like_command(c->opt.input) && access(c->opt.input, F_OK) != 0 &&
        explain_command(c->opt.input)) {
        return EXIT_USAGE;
    }
    return EXIT_OK;
}
