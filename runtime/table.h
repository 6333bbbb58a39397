/* SPDX-License-Identifier: 0BSD */
/* table: `--log csv=FILE`, a table of the run for spreadsheets and plots.
 *
 * One header line, then a row for each logged step and each evaluation:
 * event,step,epoch,loss, the further values of a step (empty for an evaluation), the metrics. A row
 * is one write, so that a run that is killed leaves whole rows. A resumed run appends to the file.
 * Needs log.h; gives exit codes. */
#ifndef MD_TABLE_H
#define MD_TABLE_H

#include "runtime/log.h"

MD_COLD void md_table_write(md_run *r) {
    int error = r->table > 0 ? md_write_fd(r->table, r->line.at, r->line.used) : 0;
    r->table_lost = r->table_lost == 0 ? error : r->table_lost;
}

/* Opens the file before step 0. */
MD_COLD int md_table_open(md_run *r) {
    const md_entry *e = r->entry;
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
    md_text_add(t, "event,step,epoch,loss");
    for (int i = 0; i < e->extra_count; i++) {
        md_text_format(t, ",%s", e->extras[i]);
    }
    for (int i = 0; i < e->metric_count; i++) {
        md_text_format(t, ",%s", e->metrics[i]);
    }
    md_text_add(t, "\n");
    md_table_write(r);
    return MD_EXIT_OK;
}

MD_COLD void md_table_value(md_text *t, double value) {
    md_text_add(t, ",");
    if (isnan(value)) {
        md_text_add(t, "nan");
    } else if (isinf(value)) {
        md_text_add(t, value > 0 ? "inf" : "-inf");
    } else {
        md_text_number(t, value);
    }
}

/* values: loss, metrics, extras of a step; loss and metrics of an evaluation. */
MD_COLD void md_table_row(md_run *r, const char *event, const double *values, int extras) {
    const md_entry *e = r->entry;
    if (r->table <= 0) {
        return;
    }
    md_text *t = md_line(r);
    md_text_format(t, "%s,%lld,%lld", event, (long long)r->step, (long long)md_epoch(r, r->step));
    md_table_value(t, values[0]);
    for (int i = 0; i < e->extra_count; i++) {
        if (extras) {
            md_table_value(t, values[1 + e->metric_count + i]);
        } else {
            md_text_add(t, ",");
        }
    }
    for (int i = 0; i < e->metric_count; i++) {
        md_table_value(t, values[1 + i]);
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
