/* SPDX-License-Identifier: 0BSD */
/* apart: the files that a run writes are apart from each other and from what it reads, whatever
 * paths and links name them: the last one written would take the place of the others.
 * Needs log.h; gives exit codes; opens nothing. */
#ifndef MD_APART_H
#define MD_APART_H

#include "runtime/log.h"

/* The path that --out gives for a result; NULL: none. */
MD_COLD const char *md_out_path(const md_run *r, const md_port *port) {
    const char *path = md_option_of(&r->options, "--out", r->task->entry->name, port->name);
    int at = 0;
    const char *pair;
    while (path == NULL && (pair = md_option_pair(&r->options, "--out", &at)) != NULL) {
        if (r->task->entry->output_count == 1 &&
            !md_pair_known(r->model, r->task->entry, "--out", pair, NULL)) {
            path = pair;
        }
    }
    return path;
}

/* One file that the run reads or writes. */
typedef struct md_named {
    const char *option;
    const char *path; /* NULL: not asked for */
} md_named;

enum {
    MD_NAMED_SAVE,
    MD_NAMED_BEST,
    MD_NAMED_CHECKPOINT,
    MD_NAMED_TABLE,
    /* if: profile */
    MD_NAMED_TRACE,
    /* end: profile */
    MD_NAMED_PLOT,
    MD_NAMED_OUT
};

/* Output number `i`; 0: there are no more. */
MD_COLD int md_apart_output(const md_run *r, int i, md_named *output) {
    const md_named fixed[] = {{"--save", r->options.save},
                              {"--best", r->options.best},
                              {"--checkpoint", r->options.checkpoint},
                              {"--log csv", r->options.table},
                              /* if: profile */
                              {"--profile-trace", r->options.trace},
                              /* end: profile */
                              {"--plot", r->options.plot}};
    int results = r->options.command == MD_RUN_ENTRY ? r->task->entry->output_count : 0;
    if (i >= MD_NAMED_OUT + results) {
        return 0;
    }
    if (i < MD_NAMED_OUT) {
        *output = fixed[i];
    } else {
        output->option = "--out";
        output->path = md_out_path(r, &r->task->entry->outputs[i - MD_NAMED_OUT]);
    }
    return 1;
}

MD_COLD int md_apart_from(md_run *r, md_named a, md_named b) {
    if (a.path == NULL || b.path == NULL || !md_out_same(a.path, b.path)) {
        return MD_EXIT_OK;
    }
    return md_fail(&r->message, MD_EXIT_USAGE, "%s %s and %s %s are one file", a.option, a.path,
                   b.option, b.path);
}

/* From what the run begins with. Weights and checkpoints may replace weights, and a checkpoint the
 * one before it; weights alone no checkpoint that the run goes on from. */
MD_COLD int md_apart_start(md_run *r, int i, md_named output) {
    const md_named load = {"--load", r->options.load}, resume = {"--resume", r->options.resume};
    int rc = i == MD_NAMED_CHECKPOINT ? MD_EXIT_OK : md_apart_from(r, output, resume);
    return rc != MD_EXIT_OK || i <= MD_NAMED_CHECKPOINT ? rc : md_apart_from(r, output, load);
}

/* From the rows and arrays that it reads. */
MD_COLD int md_apart_data(md_run *r, md_named output) {
    int rc = MD_EXIT_OK, at = 0;
    const char *pair;
    while (rc == MD_EXIT_OK && (pair = md_option_pair(&r->options, "--in", &at)) != NULL) {
        const md_named in = {"--in", strchr(pair, '=') + 1};
        rc = md_apart_from(r, output, in);
    }
    for (int i = 0; i < r->set_count; i++) {
        const md_data *d = &r->sets[i];
        for (int part = 0; part < MD_PARTS; part++) {
            for (int k = 0; k < d->set->field_count && rc == MD_EXIT_OK; k++) {
                int made = d->set->fields[k].source == MD_MADE;
                const md_named file = {"the data", made ? NULL : d->columns[part][k].path};
                rc = md_apart_from(r, output, file);
            }
        }
    }
    return rc;
}

/* All of it, when the data is open and nothing is written. */
MD_COLD int md_apart(md_run *r) {
    md_named output, other;
    char old[MD_PATH_BYTES + 8];
    int rc = MD_EXIT_OK;
    const char *checkpoint = r->options.checkpoint;
    if (checkpoint != NULL && strlen(checkpoint) < MD_PATH_BYTES) {
        snprintf(old, sizeof old, "%s.old", checkpoint);
    }
    for (int i = 0; rc == MD_EXIT_OK && md_apart_output(r, i, &output); i++) {
        if (output.path == NULL) {
            continue;
        }
        for (int k = 0; k < i && rc == MD_EXIT_OK; k++) {
            (void)md_apart_output(r, k, &other);
            rc = md_apart_from(r, other, output);
        }
        if (rc == MD_EXIT_OK && checkpoint != NULL && strlen(checkpoint) < MD_PATH_BYTES) {
            const md_named kept = {"the file that --checkpoint keeps,", old};
            rc = md_apart_from(r, output, kept);
        }
        rc = rc == MD_EXIT_OK ? md_apart_start(r, i, output) : rc;
        rc = rc == MD_EXIT_OK ? md_apart_data(r, output) : rc;
    }
    return rc;
}

#endif
