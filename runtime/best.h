/* SPDX-License-Identifier: 0BSD */
/* best: --best FILE, --monitor and --patience: the weights of the best evaluation over held-out
 * rows, and an end when it does not get better.
 *
 * The file is the only copy of those weights: no memory is taken for them. What was best so far
 * goes into checkpoints as a note, so that a resumed run decides as one that was not stopped.
 * Needs log.h and save.h; gives exit codes. */
#ifndef MD_BEST_H
#define MD_BEST_H

#include "runtime/log.h"

/* Which value of an evaluation --monitor names, perhaps as TRAIN.NAME; -1: none of this task. */
MD_COLD int md_best_column(const md_task *k, const char *name) {
    const md_entry *e = k->entry;
    size_t front = strlen(e->name);
    if (e->eval == NULL || k->held_rows == 0) {
        return -1;
    }
    if (strncmp(name, e->name, front) == 0 && name[front] == '.') {
        name += front + 1;
    }
    for (int i = 0; i < e->metric_count; i++) {
        if (strcmp(name, e->metrics[i]) == 0) {
            return 1 + i;
        }
    }
    return strcmp(name, "loss") == 0 ? 0 : -1;
}

/* Finds what is compared; before step 0. */
MD_COLD int md_best_setup(md_run *r) {
    const md_options *o = &r->options;
    md_best *b = &r->best;
    const char *name = o->monitor == NULL ? "min:loss" : o->monitor;
    int form = strncmp(name, "min:", 4) == 0 || strncmp(name, "max:", 4) == 0;
    /* if: blind */
    int evaluated = 0;
    for (int i = 0; i < r->task_count; i++) {
        const md_task *k = &r->tasks[i];
        evaluated |= k->entry->eval != NULL && k->held_rows > 0;
    }
    if (o->eval_every > 0 && !evaluated) {
        md_fail(&r->message, MD_EXIT_OK,
                "--eval-every: no train of this run has held-out rows; 'holdout every(k);' in its "
                "data set gives some");
        md_complain(r, "warning: ");
    }
    /* end: blind */
    if (o->best == NULL && o->patience == 0) {
        return MD_EXIT_OK;
    }
    b->sign = name[1] == 'a' && form ? 1 : -1;
    name += form ? 4 : 0;
    for (int i = 0; i < r->task_count; i++) {
        int column = md_best_column(&r->tasks[i], name);
        /* if: several */
        if (column >= 0 && b->task != NULL) {
            return md_fail(&r->message, MD_EXIT_USAGE, "--monitor: '%s' and '%s' both have '%s'",
                           b->task->entry->name, r->tasks[i].entry->name, name);
        }
        /* end: several */
        if (column >= 0) {
            b->task = &r->tasks[i];
            b->column = column;
        }
    }
    if (b->task == NULL) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "--monitor: no evaluation over held-out rows has '%s'", name);
    }
    if (b->column > 0 && !form) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "--monitor %s: say what is better, max:%s or min:%s", name, name, name);
    }
    /* if: several */
    if (o->patience > 0 && b->task->phase != r->tasks[r->task_count - 1].phase) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "--patience: '%s' is not of the last phase, and ends with it",
                       b->task->entry->name);
    }
    /* end: several */
    return md_out_probe(&r->out, o->best, &r->message);
}

MD_FN int md_best_over(const md_run *r) {
    return r->options.patience > 0 && r->best.waited >= r->options.patience;
}

/* Behind each evaluation of the task at hand. */
MD_COLD void md_best_seen(md_run *r) {
    md_best *b = &r->best;
    if (r->task != b->task) {
        return;
    }
    double value = r->task->eval_values[b->column];
    int better =
        !isnan(value) && (b->step == 0 || (b->sign > 0 ? value > b->value : value < b->value));
    if (better) {
        b->value = value;
        b->step = r->task->step;
        b->waited = 0;
    } else {
        b->waited++;
    }
    if (better && r->options.best != NULL &&
        md_save_file(&r->out, r->options.best, r->model, &r->regions, MD_SAVE_PARAMS,
                     r->options.save_only, NULL, &r->message) != MD_EXIT_OK) {
        md_complain(r, "warning: ");
    }
}

/* "+fit.acc ": what is compared, and that more of it is better. */
MD_COLD void md_best_name(const md_best *b, md_text *t) {
    const md_entry *e = b->task->entry;
    md_text_format(t, "%s%s.%s ", b->sign > 0 ? "+" : "-", e->name, md_value_name(e, b->column));
}

/* "+fit.acc VALUE STEP WAITED", where something is compared. */
MD_COLD void md_best_note(const md_run *r, md_text *note) {
    const md_best *b = &r->best;
    if (b->task != NULL) {
        md_best_name(b, note);
        md_text_format(note, "%.17g %lld %lld", b->value, (long long)b->step, (long long)b->waited);
    }
}

/* Takes up the note of a run that compared the same. */
MD_COLD void md_best_resume(md_run *r, const char *note) {
    md_best *b = &r->best;
    char name[MD_NOTE_BYTES];
    md_text t = md_text_make(name, sizeof name);
    double value;
    long long step, waited;
    if (b->task == NULL) {
        return;
    }
    md_best_name(b, &t);
    if (md_text_starts(note, name) &&
        sscanf(note + t.used, "%lf %lld %lld", &value, &step, &waited) == 3) {
        b->value = value;
        b->step = step;
        b->waited = waited;
    }
}

#endif
