/* SPDX-License-Identifier: 0BSD */
/* progress: the line that a terminal shows of a run, drawn over itself.
 *
 *     45% [#########           ]  300/660  epoch 27  loss 0.4133  0:12<0:15  24.6 steps/s
 *
 * It never fills the last column, so that no terminal wraps it: what does not fit is left out, the
 * least telling first. Whatever else is printed takes it away or begins behind it (log.h).
 * Needs log.h; writes to the terminal alone. */
#ifndef MD_PROGRESS_H
#define MD_PROGRESS_H

#include "runtime/log.h"

#if defined(__linux__) || defined(__APPLE__) || defined(__FreeBSD__)
#include <sys/ioctl.h>
#endif

enum { MD_BAR_COLUMNS = 80, MD_BAR_MOST = 512 }; /* of a terminal that does not say; of any */

/* Does the standard output understand "\r" and "erase to the end of the line"? */
MD_COLD int md_is_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term != NULL && term[0] != 0 && strcmp(term, "dumb") != 0;
}

/* Columns of the terminal as it is now, or what COLUMNS says. */
MD_COLD int64_t md_columns(void) {
    const char *said = getenv("COLUMNS");
    int64_t columns = 0;
#ifdef TIOCGWINSZ
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        columns = size.ws_col;
    }
#endif
    if (columns <= 0 && (said == NULL || !md_parse_integer(said, &columns) || columns <= 0)) {
        columns = MD_BAR_COLUMNS;
    }
    return columns;
}

/* 0:07, 12:34, 1:02:03 */
MD_COLD void md_text_time(md_text *t, double seconds) {
    if (!(seconds < 1e7)) {
        md_text_add(t, "?");
        return;
    }
    long long s = (long long)(seconds > 0 ? seconds : 0);
    if (s >= 3600) {
        md_text_format(t, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    } else {
        md_text_format(t, "%lld:%02lld", s / 60, s % 60);
    }
}

/* 24.6 steps/s, 3.21k steps/s; of slow ones 2.5 s/step. */
MD_COLD void md_text_rate(md_text *t, double rate) {
    int slow = rate > 0 && rate < 1;
    double shown = slow ? 1 / rate : rate;
    const char *unit = shown >= 1e6 ? "M" : shown >= 1e3 ? "k" : "";
    shown = shown >= 1e6 ? shown / 1e6 : shown >= 1e3 ? shown / 1e3 : shown;
    int places = (shown < 10) + (shown < 100);
    md_text_format(t, "%.*f%s %s", places, shown, unit, slow ? "s/step" : "steps/s");
}

/* What the line is made of, in the order in which it is given room. */
enum { MD_BAR_COUNT, MD_BAR_PART, MD_BAR_LOSS, MD_BAR_TIME, MD_BAR_RATE, MD_BAR_EPOCH, MD_BARS };

/* Adds a value of the task at hand. */
MD_COLD void md_bar_value(const md_run *r, md_text *t, int i, int several) {
    const md_entry *e = r->task->entry;
    md_text_format(t, "%s%s%s %#.4g", several ? e->name : "", several ? "." : "",
                   md_value_name(e, i), md_shown(r->task->values[i]));
}

/* Adds values for which there is room: the other losses, then the rest. */
MD_COLD void md_bar_values(md_run *r, md_text *t, int first, int end, int64_t room) {
    for (int turn = 0; turn < 2 * (end - first); turn++) {
        md_select(r, first + turn % (end - first));
        const md_entry *e = r->task->entry;
        int rest = turn >= end - first;
        if (!md_has_values(e)) {
            continue;
        }
        for (int i = turn == 0 || rest; i < (rest ? 1 + e->metric_count + e->extra_count : 1);
             i++) {
            char piece[160];
            md_text one = md_text_make(piece, sizeof piece);
            md_bar_value(r, &one, i, end - first > 1);
            if ((int64_t)one.used + 2 <= room) {
                md_text_format(t, "  %s", piece);
                room -= (int64_t)one.used + 2;
            }
        }
    }
}

/* Whole hundredths of `steps` that are done: multiplied before it is divided, which a double does
 * without an error as long as the product fits (100 * (87 / 300) is 28.999...). */
MD_COLD int md_percent(int64_t step, int64_t steps) {
    return (int)(100.0 * (double)step / (double)steps);
}

/* The parts of fixed form, each in its text. */
MD_COLD void md_bar_parts(md_run *r, md_text *part, int first, int several, double seconds) {
    md_select(r, first);
    const md_task *k = r->task;
    double rate = seconds > 0 ? (double)r->made / seconds : 0;
    /* if: several */
    if (!several) {
        md_text_task(r, &part[MD_BAR_COUNT]);
    }
    /* end: several */
    char total[32];
    int digits = snprintf(total, sizeof total, "%lld", (long long)k->steps);
    md_text_format(&part[MD_BAR_COUNT], "%*lld/%s", digits, (long long)k->step, total);
    md_text_format(&part[MD_BAR_PART], "%3d%%", md_percent(k->step, k->steps));
    if (md_has_values(k->entry)) {
        md_bar_value(r, &part[MD_BAR_LOSS], 0, several);
    }
    md_text_time(&part[MD_BAR_TIME], seconds);
    md_text_add(&part[MD_BAR_TIME], "<");
    md_text_time(&part[MD_BAR_TIME], (double)(k->steps - k->step) / rate);
    md_text_rate(&part[MD_BAR_RATE], rate);
    if (k->per_epoch > 0) {
        md_text_format(&part[MD_BAR_EPOCH], "epoch %lld", (long long)md_epoch(r));
    }
}

/* "[#####     ]" of so many columns. */
MD_COLD void md_bar_draw(const md_task *k, md_text *t, int64_t columns) {
    int64_t full = (int64_t)((double)(columns - 2) * (double)k->step / (double)k->steps);
    md_text_add(t, "[");
    for (int64_t i = 0; i < columns - 2; i++) {
        md_text_add(t, i < full ? "#" : " ");
    }
    md_text_add(t, "]");
}

MD_COLD void md_bar_line(md_run *r, md_text *t, int first, int end, int64_t room) {
    char text[MD_BARS][160], more[MD_BAR_MOST];
    md_text part[MD_BARS], values = md_text_make(more, sizeof more);
    for (int i = 0; i < MD_BARS; i++) {
        part[i] = md_text_make(text[i], sizeof text[i]);
    }
    md_bar_parts(r, part, first, end - first > 1, md_seconds() - r->start);
    int64_t bar = 0, want = room < 90 ? 10 : room < 130 ? 20 : 30;
    for (int i = 0; i < MD_BARS; i++) {
        int64_t takes = part[i].used > 0 ? (int64_t)part[i].used + 2 * (i > 0) : 0;
        part[i].used = takes <= room ? part[i].used : 0;
        room -= takes <= room ? takes : 0;
        if (i == MD_BAR_RATE && room >= want + 1) { /* one blank in front of it */
            bar = want;
            room -= bar + 1;
        }
    }
    md_bar_values(r, &values, first, end, room);
    md_select(r, first);
    static const int order[] = {MD_BAR_PART, MD_BAR_COUNT, MD_BAR_EPOCH, MD_BAR_LOSS,
                                MD_BARS,     MD_BAR_TIME,  MD_BAR_RATE};
    size_t begin = t->used;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        int at = order[i];
        if (at == MD_BAR_COUNT && bar > 0) {
            md_text_add(t, t->used > begin ? " " : "");
            md_bar_draw(r->task, t, bar);
        }
        if (at == MD_BARS) {
            md_text_add(t, more);
        } else if (part[at].used > 0) {
            md_text_format(t, "%s%s", t->used > begin ? "  " : "", text[at]);
        }
    }
}

/* Drawn at most ten times a second. */
MD_COLD void md_log_progress(md_run *r, int first, int end) {
    double now = md_seconds();
    if (now - r->shown < 0.1) {
        return;
    }
    md_text *t = md_line(r);
    r->shown = now;
    md_text_add(t, "\r");
    md_bar_line(r, t, first, end, md_min64(md_columns(), MD_BAR_MOST) - 1);
    md_text_add(t, "\033[K");
    (void)md_write_fd(STDOUT_FILENO, t->at, t->used);
    r->drawn = 1;
}

#endif
