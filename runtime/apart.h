/* SPDX-License-Identifier: 0BSD */
/* apart: the files that a run writes are apart from each other and from what it reads, whatever
 * paths and links name them: the last one written would take the place of the others.
 * Needs log.h; gives exit codes; opens nothing. */
#ifndef MD_APART_H
#define MD_APART_H

#include "runtime/log.h"

/* The paths that --out gives for the results, looked up once: there may be many of both. What names
 * no result was found to be the path of the only one. */
MD_COLD void md_out_paths(md_run *r) {
    const md_entry *e = r->task->entry;
    int at = 0;
    for (int i = 0; i < e->output_count; i++) {
        const char *path = md_option_of(&r->options, "--out", e->name, e->outputs[i].name);
        const int only = path == NULL && e->output_count == 1;
        r->task->paths[i] = only ? md_option_pair(&r->options, "--out", &at) : path;
    }
}

/* One file that the run reads or writes. */
typedef struct md_named {
    const char *option;
    const char *path; /* NULL: not asked for */
} md_named;

enum { MD_NAMED_CHECKPOINT = 2, MD_NAMED_OUT = 6 };

/* Output number `i`: by its option, or behind those the results of a call. */
MD_COLD md_named md_apart_output(const md_run *r, int i) {
    const md_options *o = &r->options;
    const md_named fixed[MD_NAMED_OUT] = {{"--save", o->save},
                                          {"--best", o->best},
                                          {"--checkpoint", o->checkpoint},
                                          {"--log csv", o->table},
                                          /* if: profile */
                                          {"--profile-trace", o->trace},
                                          /* end: profile */
                                          {"--plot", o->plot}};
    const md_named result = {"--out", i < MD_NAMED_OUT ? NULL : r->task->paths[i - MD_NAMED_OUT]};
    return i < MD_NAMED_OUT ? fixed[i] : result;
}

MD_COLD void md_apart_from(md_run *r, md_named a, md_named b) {
    if (a.path != NULL && b.path != NULL && md_out_same(a.path, b.path)) {
        (void)md_fail(&r->message, MD_EXIT_USAGE, "%s %s and %s %s are one file", a.option, a.path,
                      b.option, b.path);
    }
}

/* From the rows and arrays that it reads. */
MD_COLD void md_apart_data(md_run *r, md_named output) {
    int at = 0;
    const char *pair;
    while ((pair = md_option_pair(&r->options, "--in", &at)) != NULL) {
        const md_named in = {"--in", strchr(pair, '=') + 1};
        md_apart_from(r, output, in);
    }
    for (int i = 0; i < r->set_count; i++) {
        const md_data *d = &r->sets[i];
        for (int k = 0; k < MD_PARTS * d->set->field_count; k++) {
            const int field = k % d->set->field_count;
            md_named file = {"the data", d->columns[k / d->set->field_count][field].path};
            /* if: made */
            file.path = d->set->fields[field].source == MD_MADE ? NULL : file.path;
            /* end: made */
            md_apart_from(r, output, file);
        }
    }
}

/* All of it, when the data is open and nothing is written. Weights and checkpoints may replace the
 * weights that the run begins with, and a checkpoint the one before it; weights alone no checkpoint
 * that the run goes on from. */
MD_COLD int md_apart(md_run *r) {
    const md_named load = {"--load", r->options.load}, resume = {"--resume", r->options.resume};
    const int results = r->options.command == MD_RUN_ENTRY ? r->task->entry->output_count : 0;
    md_named kept = {"the file that --checkpoint keeps,", NULL};
    char old[MD_PATH_BYTES + 8];
    if (r->options.checkpoint != NULL && strlen(r->options.checkpoint) < MD_PATH_BYTES) {
        snprintf(old, sizeof old, "%s.old", r->options.checkpoint);
        kept.path = old;
    }
    md_out_paths(r);
    for (int i = 0; i < MD_NAMED_OUT + results; i++) {
        const md_named output = md_apart_output(r, i);
        for (int k = 0; k < i && output.path != NULL; k++) {
            md_apart_from(r, md_apart_output(r, k), output);
        }
        md_apart_from(r, output, kept);
        if (i != MD_NAMED_CHECKPOINT) {
            md_apart_from(r, output, resume);
        }
        if (i > MD_NAMED_CHECKPOINT) {
            md_apart_from(r, output, load);
        }
        md_apart_data(r, output);
    }
    return r->message.used > 0 ? MD_EXIT_USAGE : MD_EXIT_OK;
}

#endif
