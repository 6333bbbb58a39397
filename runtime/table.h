/* SPDX-License-Identifier: 0BSD */
/* table: `--log csv=FILE`, a table of the run for spreadsheets and plots.
 *
 * One header line, then a row for each logged step and each evaluation:
 * event,step,epoch,loss, the further values of a step (empty for an evaluation), the metrics. Runs
 * of several trains say which in a second column, and have a column for each name that any has. A
 * row is one write, so that a run that is killed leaves whole rows. A resumed run appends to the
 * file.
 * Needs log.h; gives exit codes. */
#ifndef MD_TABLE_H
#define MD_TABLE_H

#include "runtime/log.h"

MD_COLD void md_table_write(md_run *r) {
    int error = r->table > 0 ? md_write_fd(r->table, r->line.at, r->line.used) : 0;
    r->table_lost = r->table_lost == 0 ? error : r->table_lost;
}

/* The columns of an entry behind `loss`: further values of a step, then metrics. */
MD_COLD const char *md_table_name(const md_entry *e, int column) {
    return column < e->extra_count ? e->extras[column] : e->metrics[column - e->extra_count];
}

/* if: several */
/* Which column of an entry has this name; -1: none. */
MD_COLD int md_table_find(const md_entry *e, const char *name) {
    for (int i = 0; i < e->extra_count + e->metric_count; i++) {
        if (strcmp(md_table_name(e, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Has a task before this one a column of that name? */
MD_COLD int md_table_has(const md_run *r, int task, const char *name) {
    while (task > 0 && md_table_find(r->tasks[task - 1].entry, name) < 0) {
        task--;
    }
    return task > 0;
}
/* end: several */

/* Opens the file before step 0. */
MD_COLD int md_table_open(md_run *r) {
    const char *path = r->options.table;
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (r->options.resume != NULL ? O_APPEND : O_TRUNC);
    struct stat info;
    if (path == NULL) {
        return MD_EXIT_OK;
    }
    r->table = open(path, flags, 0666);
    if (r->table < 0 || fstat(r->table, &info) != 0) {
        return md_fail(&r->message, MD_EXIT_DATA, "cannot write '%s': %s", path, strerror(errno));
    }
    if (r->options.resume != NULL && info.st_size > 0) {
        return MD_EXIT_OK;
    }
    md_text *t = md_line(r);
    md_text_format(t, "event,%sstep,epoch,loss", r->task_count > 1 ? "entry," : "");
    for (int i = 0; i < r->task_count; i++) {
        const md_entry *e = r->tasks[i].entry;
        for (int k = 0; k < e->extra_count + e->metric_count; k++) {
            /* if: several */
            if (md_table_has(r, i, md_table_name(e, k))) {
                continue;
            }
            /* end: several */
            md_text_format(t, ",%s", md_table_name(e, k));
        }
    }
    md_text_add(t, "\n");
    md_table_write(r);
    return MD_EXIT_OK;
}

MD_COLD void md_table_value(md_text *t, double value) {
    md_text_number(t, isnan(value) ? (double)NAN : value); /* which has no sign */
}

/* values: loss, metrics, extras of a step; loss and metrics of an evaluation. */
MD_COLD void md_table_row(md_run *r, const char *event, const double *values, int extras) {
    const md_entry *e = r->task->entry;
    if (r->table <= 0 || !md_has_values(e)) {
        return;
    }
    md_text *t = md_line(r);
    md_text_format(t, "%s,%s%s%lld,%lld,", event, r->task_count > 1 ? e->name : "",
                   r->task_count > 1 ? "," : "", (long long)r->task->step,
                   (long long)md_epoch(r));
    md_table_value(t, values[0]);
    for (int i = 0; i < r->task_count; i++) {
        const md_entry *all = r->tasks[i].entry;
        for (int k = 0; k < all->extra_count + all->metric_count; k++) {
            int column = k;
            /* if: several */
            const char *name = md_table_name(all, k);
            if (md_table_has(r, i, name)) {
                continue;
            }
            column = md_table_find(e, name);
            /* end: several */
            md_text_add(t, ",");
            if (column >= e->extra_count) {
                md_table_value(t, values[1 + column - e->extra_count]);
            } else if (column >= 0 && extras) {
                md_table_value(t, values[1 + e->metric_count + column]);
            }
        }
    }
    md_text_add(t, "\n");
    md_table_write(r);
}

/* Ends the file; 1 when it lacks rows, with the reason in the message. */
MD_COLD int md_table_close(md_run *r) {
    if (r->table <= 0) {
        return MD_EXIT_OK;
    }
    int error = close(r->table) != 0 && r->table_lost == 0 ? errno : r->table_lost;
    r->table = 0;
    if (error != 0) {
        return md_fail(&r->message, MD_EXIT_DATA, "cannot write '%s': %s", r->options.table,
                       strerror(error));
    }
    return MD_EXIT_OK;
}

#endif
