/* SPDX-License-Identifier: 0BSD */
/* options: the command line of an emitted program.
 *
 *     PROGRAM [ENTRY | eval [TRAIN] | predict [ENTRY] | info] [--option VALUE | --option=VALUE]...
 *
 * Options that name something (--set, --data, --in, --out) stay in argv and are looked up there.
 * Everything is checked before anything is opened. Needs model.h and host.h, gives md_options. */
#ifndef MD_OPTIONS_H
#define MD_OPTIONS_H

#include "runtime/host.h"
#include "runtime/load.h"

typedef enum md_command {
    MD_RUN_TRAIN,
    MD_RUN_EVAL,
    MD_RUN_ENTRY,
    MD_RUN_INFO,
    MD_RUN_HELP
} md_command;
typedef enum md_log_form { MD_LOG_TEXT, MD_LOG_JSON, MD_LOG_NONE } md_log_form;

typedef struct md_options {
    int argc;
    char **argv;
    md_command command;
    const md_entry *entry; /* NULL for info; of a run of phases the first */
    /* if: phases */
    int phases; /* the run is that of md_model.phases */
    /* end: phases */
    int64_t steps, epochs; /* of every train, -1: as the source says */
    uint64_t seed;
    int64_t save_every, eval_every, log_every; /* 0: not asked for */
    int64_t threads;                           /* 0: as the bound provides */
    int64_t patience;
    int64_t skip; /* updates in a row that may end without a number */
    const char *load, *save, *checkpoint, *resume, *table, *plot, *only, *best, *monitor, *part;
    const char *with, *save_only;
    /* if: copies */
    const char *weights;
    /* end: copies */
    /* if: profile */
    const char *trace;
    /* end: profile */
    md_log_form log;
} md_options;

/* With which commands an option makes sense. */
enum {
    MD_FITS = 1 << MD_RUN_TRAIN,
    MD_EVALS = 1 << MD_RUN_EVAL,
    MD_CALLS = 1 << MD_RUN_ENTRY,
    MD_RUNS = MD_FITS | MD_EVALS | MD_CALLS
};

typedef enum md_option_kind { MD_OPT_COUNT, MD_OPT_TEXT, MD_OPT_PAIR } md_option_kind;

typedef struct md_option {
    const char *name;
    md_option_kind kind;
    size_t field;
    unsigned where;
    const char *value; /* for the help text */
    const char *help;
} md_option;

/* What an option is, and where in md_options its value goes. */
#define MD_COUNT(field) MD_OPT_COUNT, offsetof(md_options, field)
#define MD_TEXT(field) MD_OPT_TEXT, offsetof(md_options, field)
#define MD_PAIR MD_OPT_PAIR, 0 /* is looked up in argv */

MD_COLD const md_option *md_option_table(void) {
    static const md_option table[] = {
        {"--steps", MD_COUNT(steps), MD_FITS, "[TRAIN=]N", "updates to make; 0: none, but save"},
        {"--epochs", MD_COUNT(epochs), MD_FITS, "[TRAIN=]N", "passes over the data to make"},
        {"--seed", MD_COUNT(seed), MD_RUNS, "S", "of weights, order and draws (0)"},
        {"--set", MD_PAIR, MD_RUNS, "NAME=VALUE", "a hyper-parameter or scalar input"},
        {"--data", MD_PAIR, MD_FITS | MD_EVALS, "NAME=PATH[,VALIDATION[,TEST]]",
         "other data files"},
        {"--part", MD_TEXT(part), MD_EVALS, "train|validation|test",
         "rows to evaluate (validation)"},
        {"--load", MD_TEXT(load), MD_RUNS, "FILE", "weights to start from (safetensors)"},
        {"--save", MD_TEXT(save), MD_FITS | MD_CALLS, "FILE", "where the weights go at the end"},
        {"--checkpoint", MD_TEXT(checkpoint), MD_FITS | MD_CALLS, "FILE",
         "where all that a resume needs goes; the one before stays as FILE.old"},
        {"--resume", MD_TEXT(resume), MD_RUNS, "FILE", "a checkpoint to go on from"},
        {"--save-every", MD_COUNT(save_every), MD_FITS, "N", "save every N steps too"},
        {"--eval-every", MD_COUNT(eval_every), MD_FITS, "N", "evaluate every N steps too"},
        {"--best", MD_TEXT(best), MD_FITS, "FILE", "where the weights of the best evaluation go"},
        {"--monitor", MD_TEXT(monitor), MD_FITS, "max:NAME|min:NAME",
         "what makes one the best (min:loss)"},
        {"--patience", MD_COUNT(patience), MD_FITS, "N",
         "end when N evaluations bring no better one"},
        {"--skip-nonfinite", MD_COUNT(skip), MD_FITS, "N",
         "leave out up to N batches in a row whose loss is no number"},
        {"--in", MD_PAIR, MD_FITS | MD_CALLS, "NAME=FILE.npy",
         "an input; integers must fit, floats are rounded"},
        {"--out", MD_PAIR, MD_CALLS, "[NAME=]FILE.npy", "where a result goes"},
        {"--log", MD_TEXT(table), MD_RUNS, "text|json|none",
         "what is printed (text); csv=FILE: a table of steps and evaluations too"},
        /* if: plot */
        {"--plot", MD_TEXT(plot), MD_FITS, "FILE.html",
         "a page with the curves of loss and metrics, at the end"},
        /* end: plot */
        /* if: profile */
        {"--profile-trace", MD_TEXT(trace), MD_RUNS, "FILE.json",
         "the last calls and their steps, for chrome://tracing and Perfetto"},
        /* end: profile */
        {"--log-every", MD_COUNT(log_every), MD_FITS, "N", "a line every N steps"},
        {"--threads", MD_COUNT(threads), MD_RUNS, "N", "threads to use at most"},
        {"--only", MD_TEXT(only), MD_RUNS, "PATH[,PATH]", "what --load takes; the rest is drawn"},
        {"--with", MD_TEXT(with), MD_RUNS, "FILE",
         "a second weights file, such as adapters: what it has replaces that of --load"},
        {"--save-only", MD_TEXT(save_only), MD_FITS | MD_CALLS, "PATH[,PATH]",
         "what --save and --best write"},
        /* if: copies */
        {"--weights", MD_TEXT(weights), MD_RUNS, "SET",
         "begin with those of a second set of the file, such as averages"},
        /* end: copies */
        {NULL, MD_PAIR, 0, NULL, NULL},
    };
    return table;
}

/* Splits "--name=value" or "--name value"; *i moves over what was taken. */
MD_COLD const md_option *md_option_at(const md_options *o, int *i, const char **value) {
    const char *arg = o->argv[*i];
    const char *equals = strchr(arg, '=');
    size_t n = equals == NULL ? strlen(arg) : (size_t)(equals - arg);
    const md_option *option = md_option_table();
    while (option->name != NULL && (strncmp(option->name, arg, n) != 0 || option->name[n] != 0)) {
        option++;
    }
    *value = NULL;
    if (option->name != NULL && equals != NULL) {
        *value = equals + 1;
    } else if (option->name != NULL && *i + 1 < o->argc) {
        *value = o->argv[++*i];
    }
    return option->name == NULL ? NULL : option;
}

/* The next NAME=VALUE of a repeated option after position *at (start with 0); NULL at the end. */
MD_COLD const char *md_option_pair(const md_options *o, const char *name, int *at) {
    for (int i = *at + 1; i < o->argc; i++) {
        const char *value = NULL;
        if (o->argv[i][0] != '-') {
            continue;
        }
        const md_option *option = md_option_at(o, &i, &value);
        if (option != NULL && strcmp(option->name, name) == 0) {
            *at = i;
            return value;
        }
    }
    return NULL;
}

/* Does NAME stand in front of the '=' of a pair? */
MD_COLD int md_pair_is(const char *pair, const char *name) {
    size_t n = strlen(name);
    return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

/* The value that a repeated option gives to `name`; the last one wins. NULL: none. */
MD_COLD const char *md_option_value(const md_options *o, const char *option, const char *name) {
    int at = 0;
    const char *pair, *found = NULL;
    while ((pair = md_option_pair(o, option, &at)) != NULL) {
        found = md_pair_is(pair, name) ? strchr(pair, '=') + 1 : found;
    }
    return found;
}

/* The same for OWNER.NAME, or else NAME alone, which means each owner that has it. */
MD_COLD const char *md_option_of(const md_options *o, const char *option, const char *owner,
                                 const char *name) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s.%s", owner, name);
    const char *value = md_option_value(o, option, whole);
    return value != NULL ? value : md_option_value(o, option, name);
}

/* NAME=N of --steps and --epochs; -1: not asked for. Its form was checked. */
MD_COLD int64_t md_option_number(const md_options *o, const char *option, const char *name) {
    const char *value = md_option_value(o, option, name);
    int64_t n = 0;
    return value != NULL && md_parse_integer(value, &n) ? n : -1;
}

/* The entries of the run, by number; NULL behind the last. */
MD_COLD const md_entry *md_option_entry(const md_options *o, const md_model *m, int i) {
    /* if: phases */
    if (o->phases) {
        return i < m->phase_count ? &m->entries[m->phases[i].entry] : NULL;
    }
    /* end: phases */
    return i == 0 && m->entry_count > 0 ? o->entry : NULL;
}

MD_COLD int md_option_count(md_options *o, const md_option *option, const char *value,
                            md_text *message) {
    int64_t n = 0;
    const int seed = strcmp(option->name, "--seed") == 0;
    const int least = option->value[0] == '[' || seed ? 0 : 1; /* --steps and --epochs */
    const char *named = option->value[0] == '[' ? strchr(value, '=') : NULL;
    value = named != NULL ? named + 1 : value; /* for one train, read again when it is planned */
    if (seed ? !md_parse_unsigned(value, &o->seed) : !md_parse_integer(value, &n) || n < least) {
        return md_fail(message, MD_EXIT_USAGE, "%s needs a whole number from %d %s, not '%s'",
                       option->name, least, seed ? "to 18446744073709551615" : "up", value);
    }
    if (named == NULL && !seed) {
        memcpy((char *)o + option->field, &n, sizeof n);
    }
    return MD_EXIT_OK;
}

/* As --part and the log name them. */
MD_FN const char *md_part_name(int part) {
    static const char *const names[MD_PARTS] = {"train", "validation", "test"};
    return names[part];
}

/* Which word of "text|json|none" a value is; -1: none of them. */
MD_COLD int md_option_word(const char *list, const char *value) {
    const size_t n = strlen(value);
    for (int i = 0; *list != 0; i++) {
        const size_t length = strcspn(list, "|");
        if (length == n && strncmp(list, value, n) == 0) {
            return i;
        }
        list += length + (list[length] == '|');
    }
    return -1;
}

MD_COLD int md_option_text(md_options *o, const md_option *option, const char *value,
                           md_text *message) {
    const int log = strcmp(option->name, "--log") == 0;
    const int word = md_option_word(option->value, value); /* of --log as in md_log_form */
    if (log && word >= 0) {
        o->log = (md_log_form)word;
    } else if (log ? strncmp(value, "csv=", 4) == 0 && value[4] != 0
                   : word >= 0 || strcmp(option->name, "--part") != 0) {
        value += log ? 4 : 0;
        memcpy((char *)o + option->field, &value, sizeof value);
    } else {
        return md_fail(message, MD_EXIT_USAGE, "%s takes %s%s, not '%s'", option->name,
                       option->value, log ? " or csv=FILE" : "", value);
    }
    return MD_EXIT_OK;
}

/* May a command mean this entry? */
MD_COLD int md_option_means(md_command command, const md_entry *e) {
    return command == MD_RUN_ENTRY  ? e->kind == MD_ENTRY
           : command == MD_RUN_EVAL ? e->kind == MD_TRAIN && e->eval != NULL
                                    : e->kind != MD_ENTRY;
}

/* Names the entries that a command may mean; of `info` all. */
MD_COLD void md_option_list(const md_model *m, md_command command, md_text *message) {
    for (int i = 0; i < m->entry_count; i++) {
        if (command == MD_RUN_INFO || md_option_means(command, &m->entries[i])) {
            md_text_format(message, " %s", m->entries[i].name);
        }
    }
}

/* The entry that is named; without a name the phases are meant, or the first train of the source,
 * otherwise the only candidate. */
MD_COLD int md_option_only(md_options *o, const md_model *m, const md_entry *named,
                           md_text *message) {
    int found = 0;
    /* if: phases */
    if (o->command == MD_RUN_TRAIN && m->phase_count > 0) {
        o->phases = 1;
        o->entry = md_option_entry(o, m, 0);
        return MD_EXIT_OK;
    }
    /* end: phases */
    for (int i = m->entry_count - 1; i >= 0; i--) {
        const md_entry *e = &m->entries[i];
        if (md_option_means(o->command, e) && (named == NULL || e == named)) {
            o->entry = e;
            found++;
        }
    }
    if (found == 1 || (found > 1 && o->command == MD_RUN_TRAIN)) {
        return MD_EXIT_OK;
    }
    if (found == 0) {
        return md_fail(message, MD_EXIT_USAGE, "'%s' has nothing to %s",
                       named != NULL ? named->name : m->name,
                       o->command == MD_RUN_ENTRY  ? "call"
                       : o->command == MD_RUN_EVAL ? "evaluate"
                                                   : "train");
    }
    md_text_add(message, "say which:");
    md_option_list(m, o->command, message);
    return MD_EXIT_USAGE;
}

/* The words in front of the options. An entry of the source wins over a command of that name. */
MD_COLD int md_option_words(md_options *o, const md_model *m, const char *const *words, int count,
                            md_text *message) {
    const char *name = count == 0 ? "" : words[count - 1];
    const md_entry *named = NULL;
    int trains = 0;
    for (int i = 0; i < m->entry_count; i++) {
        named = strcmp(m->entries[i].name, name) == 0 ? &m->entries[i] : named;
        trains += m->entries[i].kind != MD_ENTRY;
    }
    if (count == 0) {
        o->command = trains > 0 ? MD_RUN_TRAIN : MD_RUN_ENTRY;
        return md_option_only(o, m, NULL, message);
    }
    if (count == 1 && named != NULL) {
        o->entry = named;
        o->command = named->kind == MD_ENTRY ? MD_RUN_ENTRY : MD_RUN_TRAIN;
        return MD_EXIT_OK;
    }
    int eval = strcmp(words[0], "eval") == 0;
    if (count <= 2 && (eval || strcmp(words[0], "predict") == 0)) {
        o->command = eval ? MD_RUN_EVAL : MD_RUN_ENTRY;
        if (count == 1 || named != NULL) {
            return md_option_only(o, m, named, message);
        }
    } else if (count == 1 && strcmp(name, "info") == 0) {
        o->command = MD_RUN_INFO;
        return MD_EXIT_OK;
    }
    md_text_format(message, "'%s' cannot be run; there are:", name);
    md_option_list(m, MD_RUN_INFO, message);
    md_text_add(message, "; and the commands eval, predict, info");
    return MD_EXIT_USAGE;
}

MD_COLD int md_option_one(md_options *o, const md_option *option, const char *value,
                          md_text *message) {
    if ((option->where >> (unsigned)o->command & 1u) == 0) {
        return md_fail(message, MD_EXIT_USAGE, "%s makes no sense here; see --help", option->name);
    }
    if (value == NULL || value[0] == 0) {
        return md_fail(message, MD_EXIT_USAGE, "%s needs a value: %s", option->name, option->value);
    }
    if (option->kind == MD_OPT_COUNT) {
        return md_option_count(o, option, value, message);
    }
    if (option->kind == MD_OPT_TEXT) {
        return md_option_text(o, option, value, message);
    }
    if (strcmp(option->name, "--out") != 0 && strchr(value, '=') == NULL) {
        return md_fail(message, MD_EXIT_USAGE, "%s needs %s, not '%s'", option->name, option->value,
                       value);
    }
    return MD_EXIT_OK;
}

/* Does what stands in front of '=' equal NAME or OWNER.NAME? Adds NAME to the list. */
MD_COLD int md_pair_names(const char *pair, const char *owner, const char *name, md_text *list) {
    size_t front = strlen(owner);
    md_text_format(list, " %s", name);
    int owned = strncmp(pair, owner, front) == 0 && pair[front] == '.';
    return md_pair_is(pair, name) || (owned && md_pair_is(pair + front + 1, name));
}

/* Looks among the names that an option of this entry takes: is that of `pair` one of them? Lists
 * them, too. */
MD_COLD int md_pair_known(const md_model *m, const md_entry *e, const char *option,
                          const char *pair, md_text *list) {
    int known = 0;
    int in = strcmp(option, "--in") == 0, set = strcmp(option, "--set") == 0;
    /* if: hypers */
    for (int i = 0; i < e->hyper_count && set; i++) {
        known |= md_pair_names(pair, e->name, e->hypers[i].name, list);
    }
    /* end: hypers */
    for (int i = 0; i < e->input_count && (in || set); i++) {
        if ((in || e->inputs[i].rank == 0) && e->inputs[i].field == MD_FROM_OPTIONS) {
            known |= md_pair_names(pair, e->name, e->inputs[i].name, list);
        }
    }
    for (int i = 0; i < e->output_count && strcmp(option, "--out") == 0; i++) {
        known |= md_pair_names(pair, e->name, e->outputs[i].name, list);
    }
    if (strcmp(option, "--data") == 0 && e->dataset >= 0) {
        const md_dataset *data = &m->datasets[e->dataset];
        for (int i = 0; i < data->file_count; i++) {
            known |= data->files[i].paths[MD_PART_TRAIN] != NULL &&
                     md_pair_names(pair, data->name, data->files[i].name, list);
        }
        if (data->file_count == 1 && data->files[0].paths[MD_PART_TRAIN] != NULL) {
            known |= md_pair_names(pair, data->name, data->name, list);
        }
    }
    if (strcmp(option, "--steps") == 0 || strcmp(option, "--epochs") == 0) {
        known |= md_pair_names(pair, e->name, e->name, list);
    }
    return known;
}

/* if: phases */
/* Takes the words behind the first `from` bytes away where they stand before: entries share data
 * sets, and names of scalars. */
MD_COLD void md_list_once(md_text *list, size_t from) {
    const size_t n = list->used - from;
    const char *at = list->at;
    while (at < list->at + from && (memcmp(at, list->at + from, n) != 0 || at[n] != ' ')) {
        at++;
    }
    if (at < list->at + from) {
        list->used = from;
        list->at[from] = 0;
    }
}
/* end: phases */

/* Every name of --set, --data, --in, --out and of one train's --steps and --epochs must be one that
 * an entry of the run has. */
MD_COLD int md_options_names(const md_options *o, const md_model *m, md_text *message) {
    const char *name = o->entry->name;
    /* if: phases */
    name = o->phases ? m->name : name;
    /* end: phases */
    for (int i = 1; i < o->argc; i++) {
        const char *pair = NULL;
        const md_option *option = o->argv[i][0] == '-' ? md_option_at(o, &i, &pair) : NULL;
        if (option == NULL || (option->kind != MD_OPT_PAIR && option->value[0] != '[')) {
            continue;
        }
        int bare = strchr(pair, '=') == NULL; /* a number, or the place of the only result */
        int known = bare && (option->kind != MD_OPT_PAIR || o->entry->output_count == 1);
        char buffer[512];
        md_text names = md_text_make(buffer, sizeof buffer);
        const md_entry *e;
        for (int k = 0; (e = md_option_entry(o, m, k)) != NULL; k++) {
            /* if: phases */
            const size_t listed = names.used;
            /* end: phases */
            known |= md_pair_known(m, e, option->name, pair, &names);
            /* if: phases */
            md_list_once(&names, listed);
            /* end: phases */
        }
        if (!known) {
            const int scalar = names.used == 0 && strcmp(option->name, "--set") == 0;
            return md_fail(message, MD_EXIT_USAGE, "%s %s: '%s' has no such name%s%s", option->name,
                           pair, name, names.used > 0 ? "; there are:" : "",
                           scalar ? "; the source says which, as in 'train fit(lr: real = 1e-3)'"
                                  : buffer);
        }
    }
    return MD_EXIT_OK;
}

/* if: copies */
/* Is a tensor of the second set with this name? Their names in files are "mdlc.avg.fc.weight". */
MD_COLD int md_tensor_of_set(const md_tensor *t, const char *set) {
    size_t n = strlen(set);
    return t->copy_of > 0 && strncmp(t->name, "mdlc.", 5) == 0 &&
           strncmp(t->name + 5, set, n) == 0 && t->name[5 + n] == '.';
}

/* Does --weights name a second set of the model? Else lists those that there are. */
MD_COLD int md_options_set(const md_options *o, const md_model *m, md_text *list) {
    const char *last = "";
    for (size_t i = 0; i < m->tensor_count; i++) {
        const md_tensor *t = &m->tensors[i];
        if (md_tensor_of_set(t, o->weights)) {
            return 1;
        }
        size_t n = strcspn(t->copy_of > 0 ? t->name + 5 : "", ".");
        if (n > 0 && strncmp(last, t->name + 5, n + 1) != 0) {
            md_text_format(list, " %.*s", (int)n, t->name + 5);
            last = t->name + 5;
        }
    }
    return 0;
}
/* end: copies */

MD_COLD int md_options_parse(md_options *o, const md_model *m, int argc, char **argv,
                             md_text *message) {
    const char *words[3] = {NULL, NULL, NULL};
    int count = 0, seeded = 0;
    memset(o, 0, sizeof *o);
    o->steps = o->epochs = -1;
    o->argc = argc;
    o->argv = argv;
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            o->command = MD_RUN_HELP;
            return MD_EXIT_OK;
        }
        if (argv[i][0] != '-') {
            if (count == 3) {
                return md_fail(message, MD_EXIT_USAGE, "too many words: '%s'", argv[i]);
            }
            words[count++] = argv[i];
        } else if (md_option_at(o, &i, &value) == NULL) {
            return md_fail(message, MD_EXIT_USAGE, "unknown option '%s'; see --help", argv[i]);
        }
    }
    int rc = md_option_words(o, m, words, count, message);
    for (int i = 1; i < argc && rc == MD_EXIT_OK; i++) {
        const char *value;
        if (argv[i][0] == '-') {
            const md_option *option = md_option_at(o, &i, &value);
            rc = md_option_one(o, option, value, message);
        }
    }
    if (rc != MD_EXIT_OK || o->entry == NULL) {
        return rc;
    }
    const struct {
        int wrong;
        const char *why;
    } rule[] = {
        {o->steps >= 0 && o->epochs >= 0, "--steps and --epochs exclude each other"},
        {o->save_every > 0 && o->save == NULL && o->checkpoint == NULL,
         "--save-every needs --save FILE or --checkpoint FILE"},
        {(o->best != NULL || o->patience > 0) && o->eval_every == 0,
         "--best and --patience compare evaluations: --eval-every N"},
        {o->monitor != NULL && o->best == NULL && o->patience == 0,
         "--monitor says what --best FILE and --patience N compare"},
        {o->with != NULL && o->load == NULL,
         "--with is a second file beside --load: --load FILE --with FILE"},
        {o->save_only != NULL && o->save == NULL && o->best == NULL,
         "--save-only says what --save and --best write: --save FILE --save-only PATH"},
        {o->table != NULL && o->command != MD_RUN_TRAIN,
         "--log csv=FILE is a table of a training run"},
        {o->only != NULL && o->load == NULL,
         "--only says what --load takes: --load FILE --only PATH"},
        {o->resume != NULL && (o->load != NULL || md_option_pair(o, "--seed", &seeded) != NULL),
         "--resume goes on with the weights and the seed of its file; --load and --seed begin a "
         "new run"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        if (rule[i].wrong) {
            return md_fail(message, MD_EXIT_USAGE, "%s", rule[i].why);
        }
    }
    const char *option[] = {"--only", "--save-only"}, *paths[] = {o->only, o->save_only};
    for (int k = 0; k < 2; k++) {
        const char *at = paths[k] != NULL ? paths[k] : "";
        for (size_t n; *at != 0; at += n + (at[n] == ',')) {
            char path[MD_NAME_BYTES];
            int any = 0;
            n = strcspn(at, ",");
            snprintf(path, sizeof path, "%.*s", (int)n, at);
            for (size_t i = 0; i < m->tensor_count; i++) {
                any |= m->tensors[i].kind <= MD_LAYER_STATE && md_slice_any(path, &m->tensors[i]);
            }
            if (!any) {
                return md_fail(message, MD_EXIT_USAGE,
                               "%s: the model has no weights under '%s'; 'info' lists them",
                               option[k], path);
            }
        }
    }
    if (o->threads > m->threads) {
        return md_fail(message, MD_EXIT_USAGE,
                       "--threads %lld: the memory bound provides for %d (a choice of the "
                       "compiler: --threads=N)",
                       (long long)o->threads, m->threads);
    }
    if (o->command != MD_RUN_TRAIN && o->load == NULL && o->resume == NULL && m->params_bytes > 0) {
        return md_fail(message, MD_EXIT_USAGE, "'%s' needs weights: --load FILE", o->entry->name);
    }
    /* if: copies */
    if (o->weights != NULL) {
        char sets[256];
        md_text list = md_text_make(sets, sizeof sets);
        if (!md_options_set(o, m, &list)) {
            return md_fail(message, MD_EXIT_USAGE,
                           "--weights: the model has no second set '%s'%s%s", o->weights,
                           list.used > 0 ? "; there are:" : "", sets);
        }
        if (o->load == NULL && o->resume == NULL) {
            return md_fail(message, MD_EXIT_USAGE,
                           "--weights takes a second set of a checkpoint: --load FILE");
        }
    }
    /* end: copies */
    return md_options_names(o, m, message);
}

MD_COLD void md_options_help(const md_model *m, const char *program, md_text *t) {
    md_text_format(t, "usage: %s [COMMAND] [OPTION]...\ncommands:\n", program);
    /* if: several */
    for (int i = 0; i < m->phase_count; i++) {
        int turns = i > 0 && m->phases[i].phase == m->phases[i - 1].phase;
        md_text_format(t, "%s%s",
                       i == 0  ? "  without a word         "
                       : turns ? ", "
                               : " then ",
                       m->entries[m->phases[i].entry].name);
    }
    md_text_add(t, m->phase_count > 0 ? "\n" : "");
    /* end: several */
    int named = 0;
    for (int i = 0; i < m->entry_count; i++) {
        if (strcmp(m->entries[i].name, "predict") == 0) {
            named = 1;
        } else {
            md_text_format(t, "  %-22s %s\n", m->entries[i].name,
                           m->entries[i].kind == MD_TRAIN  ? "train"
                           : m->entries[i].kind == MD_PASS ? "go through its data"
                                                           : "call this entry");
        }
    }
    md_text_add(t, "  eval [TRAIN]           evaluate the weights of --load\n");
    md_text_format(t, "  predict [ENTRY]        call an entry%s\n",
                   named ? "; without a name the one called predict" : "");
    md_text_add(t, "  info                   memory, layers, tensors\noptions:\n");
    for (const md_option *o = md_option_table(); o->name != NULL; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", o->name, o->value);
        md_text_format(t, "  %-30s %s\n", left, o->help);
    }
}

#endif
