/* SPDX-License-Identifier: 0BSD */
/* log: what a run prints: the memory table, progress, evaluations, the end; as text or as JSON.
 *
 * md_run, all that a run knows, and md_task, what it knows of one entry, are defined here. Lines
 * are built in a fixed buffer and written with one write(2) each. Needs the other parts of the
 * host; changes nothing but the terminal. */
#ifndef MD_LOG_H
#define MD_LOG_H

#include "runtime/data.h"
#include "runtime/options.h"
#include "runtime/regions.h"
#include "runtime/save.h"

/* if: plot */
/* At most so many points of at most so many values of a train are kept for its plot. */
enum { MD_PLOT_ROWS = 512, MD_PLOT_VALUES = 32 };

/* What is plotted of the steps of a train, or of its evaluations. */
typedef struct md_curves {
    double *at;          /* rows: the step, then its values; NULL: none are kept */
    int values, last;    /* 1: one more row stands behind the rows, of what came last */
    int64_t count, seen; /* rows; what came in */
    int64_t every;       /* of what comes in one is kept */
} md_curves;
/* end: plot */

/* Batches that a train has left out. */
typedef struct md_left_out {
    int64_t all;
    /* if: partial */
    int64_t filled;     /* of these: they filled a ring; */
    int64_t overflowed; /* gradients too large for the scale of the loss */
    /* end: partial */
} md_left_out;

/* One entry of a run: its inputs, its data, and how far it is. A run of phases has several. */
typedef struct md_task {
    const md_entry *entry;
    /* if: phases */
    int phase; /* tasks of one phase take turns */
    /* end: phases */
    md_data *data;     /* NULL: none; tasks of one data set share it */
    md_array *arrays;  /* --in, one an input */
    int64_t *slices;   /* calls that each --in file holds, 0: none given */
    uint64_t *scalars; /* the bytes of --set, one an input */
    const void **in, **results;
    const char **paths; /* of --out, one a result */
    int64_t *rows; /* numbers of the staged rows */
    double *values, *eval_values, *part_sums;
    int64_t *batches;               /* and doubles behind it: NAME_eval_sums */
    int64_t steps, per_epoch, step; /* step: finished updates */
    md_left_out left;
    int64_t in_row; /* batches left out since the last update */
    int64_t train_rows, held_rows;
    /* if: ordered */
    int64_t staged; /* first staged row when the order is fixed; -1: none */
    /* end: ordered */
    int evaluated; /* eval_values are set */
    /* if: plot */
    md_curves curves[2]; /* of steps, of evaluations */
    /* end: plot */
} md_task;

/* The best evaluation so far. */
typedef struct md_best {
    const md_task *task; /* whose; NULL: nothing is compared */
    int column, sign;    /* of its eval_values; 1: more is better, -1: less */
    double value;
    int64_t step, waited; /* 0: none so far; evaluations since then */
} md_best;

/* if: spans */
/* Bytes of the regions in the fullest phase of a run. */
typedef struct md_room {
    size_t params, state, arena, total;
} md_room;
/* end: spans */

typedef struct md_run {
    const md_model *model;
    md_task *tasks, *task; /* all of them in their order, and the one at hand */
    int task_count;
    md_options options;
    md_text message, line;
    char message_bytes[MD_MESSAGE_BYTES];
    char line_bytes[MD_LINE_BYTES];
    int lost;              /* errno of output that could not be written */
    int terminal;          /* stdout is one, and can draw over a line */
    int table, table_lost; /* --log csv=FILE: its file, 0: none; errno of a row that is lost */
    int drawn;             /* a progress line stands on the terminal */
    md_stream stream;
    md_out out;
    /* memory */
    md_regions regions;
    /* if: spans */
    md_room room;
    /* end: spans */
    md_data *sets; /* open data sets */
    int set_count;
    md_block_mem block; /* tasks, sets and their arrays */
    md_block_mem plot;  /* points of --plot */
    /* if: profile */
    md_block_mem marks; /* what is noted of calls, and memory to measure the machine with */
    md_profile profile;
    md_profile_row *profile_rows;
    double rate_bytes, rate_flops[MD_RATES]; /* of the machine, a second */
    double rate_clock;                /* nanoseconds of a reading */
    int64_t profile_start;            /* when it began; 0: not yet */
    /* end: profile */
    size_t array_bytes;   /* memory of --in files */
    uint64_t array_files; /* of --in files that are read as they are needed */
    int threads;
    uint64_t process, libraries; /* measured */
    size_t opened;               /* address space that the thread library took before its threads */
    unsigned char *seen;         /* one byte a slice of the table, for load */
    char note[MD_NOTE_BYTES];    /* of the checkpoint that the run goes on from */
    const char *damaged;         /* its path, where the run goes on from PATH.old; or NULL */
    md_best best;
    /* progress */
    int part;     /* that is evaluated */
    int64_t made; /* updates, or rounds of them, that this run made in the phase */
    int64_t log_every, saved_step;
    /* if: several */
    const md_task *saved_task; /* whose update saved_step is */
    /* end: several */
    double start, shown;
    int64_t pages_early;
    int64_t pages_late;
} md_run;

/* The entries of a run: those of the phases, or the one that the command line names. */
MD_COLD void md_select(md_run *r, int task) {
    /* if: ordered */
    if (r->task != &r->tasks[task]) {
        r->tasks[task].staged = -1; /* all stage in the same place */
    }
    /* end: ordered */
    r->task = &r->tasks[task];
}

MD_COLD md_text *md_line(md_run *r) {
    r->line = md_text_make(r->line_bytes, sizeof r->line_bytes);
    return &r->line;
}

MD_COLD void md_print(md_run *r) {
    if (r->drawn && r->line.used > 0) {
        (void)md_write_fd(STDOUT_FILENO, "\r\033[K", 4);
        r->drawn = 0;
    }
    int error = md_write_fd(STDOUT_FILENO, r->line.at, r->line.used);
    r->lost = r->lost == 0 ? error : r->lost;
}

/* Prints a line, or part of one. */
#define MD_SAY(r, ...) (md_text_format(md_line(r), __VA_ARGS__), md_print(r))

/* "digits: message" on stderr, one line: names and cells of files may hold anything. */
MD_COLD void md_complain(md_run *r, const char *kind) {
    md_text *t = md_line(r);
    for (size_t i = 0; i < r->message.used; i++) {
        unsigned char c = (unsigned char)r->message.at[i];
        r->message.at[i] = c < 0x20 || c == 0x7F ? '?' : r->message.at[i];
    }
    if (r->drawn) {
        (void)md_write_fd(STDOUT_FILENO, "\n", 1);
        r->drawn = 0;
    }
    md_text_format(t, "%s: %s%s\n", r->model->name, kind, r->message.at);
    (void)md_write_fd(STDERR_FILENO, t->at, t->used);
    r->message = md_text_make(r->message_bytes, sizeof r->message_bytes);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

MD_COLD void md_json_count(md_text *t, const char *key, uint64_t value) {
    md_text_format(t, ",\"%s\":%llu", key, (unsigned long long)value);
}

/* With a comma, but for the first one. */
MD_COLD void md_json_value(md_text *t, const char *key, double value) {
    md_text_format(t, "%s\"%s\":", t->at[t->used - 1] == '{' ? "" : ",", key);
    if (isfinite(value)) {
        md_text_number(t, value);
    } else {
        md_text_add(t, "null");
    }
}

MD_COLD void md_json_metrics(md_text *t, const md_entry *e, const double *values) {
    md_text_add(t, ",\"metrics\":{");
    for (int i = 0; i < e->metric_count; i++) {
        md_json_value(t, e->metrics[i], values[1 + i]);
    }
    md_text_add(t, "}");
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Memory for data and for what is kept of the run, whole pages; `files` is what is read as it is
 * needed. */
MD_COLD size_t md_data_bytes(const md_run *r, uint64_t *files) {
    size_t bytes = r->array_bytes + md_round_up(r->block.size, md_page());
    *files = r->array_files;
    for (int i = 0; i < r->set_count; i++) {
        bytes += r->sets[i].resident;
        /* if: arrays */
        *files += r->sets[i].files;
        /* end: arrays */
    }
    return bytes;
}

/* A line of the memory table; in text the name ends in front of '_'. */
typedef struct md_memory_row {
    const char *name;
    uint64_t bytes;
    int json, text; /* does it stand there? */
    const char *what;
} md_memory_row;

MD_COLD void md_log_memory(md_run *r) {
    const size_t closed = r->regions.mapped - r->regions.bound;
    uint64_t files;
    const uint64_t data = md_data_bytes(r, &files), plot = md_round_up(r->plot.size, md_page());
    const char *scratch = "scratch of the largest entry", *when = "all of it taken before step 0";
    size_t params = r->model->params_bytes, state = r->model->state_bytes;
    size_t arena = r->model->arena_bytes;
    char each[64];
    snprintf(each, sizeof each, "per thread; threads: %d", r->threads);
    /* if: spans */
    params = r->room.params;
    state = r->room.state;
    arena = r->room.arena;
    scratch = r->regions.phased ? "scratch; all of this in the largest phase" : scratch;
    when = r->regions.phased ? "of each phase taken before its first step" : when;
    /* end: spans */
    const md_memory_row rows[] = {
        {"params", params, 1, 1, "weights"},
        {"state", state, 1, 1, "optimizer slots, counters, statistics"},
        {"io", r->model->io_bytes, 1, 1, "batch and results"},
        {"arena", arena, 1, 1, scratch},
        {"total", r->regions.total, 1, 1, "the declared bound"},
        {"pad", r->regions.bound - r->regions.total, 1, 1, "up to whole pages"},
        {"stack_per_thread", r->model->stack_bytes, 1, 1, each},
        {"threads", (uint64_t)r->threads, 1, 0, ""},
        {"libraries", r->libraries, 1, 1, "threads and their stacks, measured"},
        {"data", data, 1, 1, "rows in memory, windows of files, bookkeeping"},
        {"files", files, 1, files > 0, "read as they are needed, not in memory"},
        {"plot", plot, plot > 0, plot > 0, "points of --plot"},
        /* if: profile */
        {"profile", md_round_up(r->marks.size, md_page()), r->marks.size > 0, r->marks.size > 0,
         "notes of calls, memory to measure the machine with"},
        /* end: profile */
        {"reserved", 2 * md_page() + r->opened + md_thread_space(r->threads) + closed, 1, 1,
         "address space alone: guard pages, stacks as the system cuts them"},
        {"process", r->process, 1, 1, "program and C library, measured at the start"},
    };
    const int json = r->options.log == MD_LOG_JSON;
    md_text *t = md_line(r);
    if (json) {
        md_text_add(t, "{\"event\":\"memory\"");
    } else {
        md_text_format(t, "memory of '%s' in bytes, %s\n", r->model->name, when);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const md_memory_row *row = &rows[i];
        char number[40];
        md_text digits = md_text_make(number, sizeof number);
        md_text_grouped(&digits, row->bytes);
        if (json && row->json) {
            md_json_count(t, row->name, row->bytes);
        } else if (!json && row->text) {
            md_text_format(t, "  %-10.*s %16s  %s\n", (int)strcspn(row->name, "_"), row->name,
                           number, row->what);
        }
    }
    md_text_add(t, json ? "}\n" : "");
    if (r->options.log != MD_LOG_NONE) {
        md_print(r);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* What value `i` of a step is called: the loss, metrics, then further ones. */
MD_COLD const char *md_value_name(const md_entry *e, int i) {
    return i == 0                 ? "loss"
           : i <= e->metric_count ? e->metrics[i - 1]
                                  : e->extras[i - 1 - e->metric_count];
}

/* Has a call of the entry values to report? */
MD_COLD int md_has_values(const md_entry *e) {
    return e->kind != MD_PASS;
}

MD_COLD void md_text_values(md_text *t, const md_entry *e, const double *values, int extras) {
    for (int i = 0; md_has_values(e) && i < 1 + e->metric_count + extras; i++) {
        md_text_format(t, "  %s %.5g", md_value_name(e, i), md_shown(values[i]));
    }
}

/* Batches that the task has taken: those of its updates and those left out. */
MD_COLD int64_t md_batches(const md_task *k) {
    return k->step + k->left.all;
}

MD_COLD int64_t md_epoch(const md_run *r) {
    return r->task->per_epoch > 0 ? md_batches(r->task) / r->task->per_epoch : 0;
}

/* if: several */
/* Which of several entries a line is about. */
MD_COLD void md_text_task(const md_run *r, md_text *t) {
    if (r->task_count > 1) {
        md_text_format(t, "%s: ", r->task->entry->name);
    }
}
/* end: several */

MD_COLD void md_log_step(md_run *r) {
    const md_entry *e = r->task->entry;
    md_text *t = md_line(r);
    if (r->options.log == MD_LOG_JSON) {
        md_text_format(t, "{\"event\":\"step\",\"entry\":\"%s\",\"step\":%lld,\"epoch\":%lld",
                       e->name, (long long)r->task->step, (long long)md_epoch(r));
        if (md_has_values(e)) {
            md_json_value(t, "loss", r->task->values[0]);
            for (int i = 0; i < e->extra_count; i++) {
                md_json_value(t, e->extras[i], r->task->values[1 + e->metric_count + i]);
            }
            md_json_metrics(t, e, r->task->values);
        }
        md_text_add(t, "}\n");
    } else {
        /* if: several */
        md_text_task(r, t);
        /* end: several */
        md_text_format(t, "step %lld", (long long)r->task->step);
        if (r->task->per_epoch > 0) {
            md_text_format(t, "  epoch %lld", (long long)md_epoch(r));
        }
        md_text_values(t, e, r->task->values, e->extra_count);
        md_text_add(t, "\n");
    }
    md_print(r);
}

MD_COLD void md_log_eval(md_run *r, int64_t rows) {
    const md_entry *e = r->task->entry;
    const char *set = r->model->datasets[e->dataset].name;
    md_text *t = md_line(r);
    if (r->options.log == MD_LOG_JSON) {
        md_text_format(t,
                       "{\"event\":\"eval\",\"entry\":\"%s\",\"step\":%lld,\"data\":\"%s\","
                       "\"part\":\"%s\",\"rows\":%lld",
                       e->name, (long long)r->task->step, set, md_part_name(r->part),
                       (long long)rows);
        md_json_value(t, "loss", r->task->eval_values[0]);
        md_json_metrics(t, e, r->task->eval_values);
        md_text_add(t, "}\n");
    } else if (r->options.log == MD_LOG_TEXT) {
        /* if: several */
        md_text_task(r, t);
        /* end: several */
        md_text_format(t, "eval at step %lld: %s, %lld %s rows:", (long long)r->task->step, set,
                       (long long)rows, md_part_name(r->part));
        md_text_values(t, e, r->task->eval_values, 0);
        md_text_add(t, "\n");
    }
    md_print(r);
}

/* if: spans */
/* Weights and slots that went back to the system and that were taken from it where a phase began,
 * and what is resident now. */
MD_COLD void md_log_phase(md_run *r, size_t given, size_t taken) {
    md_text *t = md_line(r);
    long long resident = (long long)md_statm(1) * (long long)md_page();
    if (r->options.log == MD_LOG_JSON) {
        md_text_format(t,
                       "{\"event\":\"released\",\"phase\":%d,\"bytes\":%zu,\"taken\":%zu,"
                       "\"resident_bytes\":%lld}\n",
                       r->regions.phase + 1, given, taken, resident);
        md_print(r);
    } else if (r->options.log == MD_LOG_TEXT) {
        md_text_format(t, "phase %d: released %zu bytes of weights and slots, took %zu\n",
                       r->regions.phase + 1, given, taken);
        md_print(r);
    }
}
/* end: spans */

/* The end of one entry; `last`: of those that end together. */
MD_COLD void md_log_end(md_run *r, int last) {
    const md_entry *e = r->task->entry;
    md_text *t = md_line(r);
    double seconds = md_seconds() - r->start;
    uint64_t files, peak = md_peak_bytes();
    uint64_t other = r->process + r->libraries + md_data_bytes(r, &files);
    other += md_round_up(r->plot.size, md_page());
    /* if: profile */
    other += md_round_up(r->marks.size, md_page());
    /* end: profile */
    uint64_t over = peak > other ? peak - other : 0;
    int64_t growth = r->made > 2 ? r->pages_late - r->pages_early : 0;
    if (r->options.log == MD_LOG_JSON) {
        md_text_format(t, "{\"event\":\"end\",\"entry\":\"%s\",\"steps\":%lld", e->name,
                       (long long)r->task->step);
        md_json_value(t, "seconds", (double)(float)seconds);
        if (md_has_values(e)) {
            md_json_value(t, "loss", r->task->values[0]);
        }
        if (r->task->left.all > 0) {
            md_json_count(t, "skipped", (uint64_t)r->task->left.all);
        }
        /* if: rings */
        if (r->task->left.filled > 0) { /* of the skipped ones */
            md_json_count(t, "filled", (uint64_t)r->task->left.filled);
        }
        /* end: rings */
        /* if: scaled */
        if (r->task->left.overflowed > 0) {
            md_json_count(t, "overflowed", (uint64_t)r->task->left.overflowed);
        }
        /* end: scaled */
        if (r->best.task == r->task && r->best.step > 0) {
            md_json_count(t, "best_step", (uint64_t)r->best.step);
            md_json_value(t, "best", r->best.value);
        }
        if (md_has_values(e)) {
            md_json_metrics(t, e, r->task->evaluated ? r->task->eval_values : r->task->values);
        }
        md_json_count(t, "bound_bytes", r->regions.bound);
        md_json_count(t, "peak_over_process_bytes", over);
        md_json_count(t, "peak_rss_bytes", peak);
        md_text_format(t, ",\"resident_growth_pages\":%lld}\n", (long long)growth);
    } else if (r->options.log == MD_LOG_TEXT) {
        /* if: several */
        md_text_task(r, t);
        /* end: several */
        const char *what = md_has_values(e) ? "steps" : "calls";
        md_text_format(t, "%lld %s in %.2f s (%.4g %s/s)\n", (long long)r->task->step, what,
                       seconds, seconds > 0 ? (double)r->made / seconds : 0.0, what);
        int64_t lost = r->task->left.all;
        /* if: partial */
        lost -= r->task->left.filled + r->task->left.overflowed;
        /* end: partial */
        /* if: rings */
        if (r->task->left.filled > 0) {
            md_text_format(t, "left out: %lld batches that filled a ring\n",
                           (long long)r->task->left.filled);
        }
        /* end: rings */
        /* if: scaled */
        if (r->task->left.overflowed > 0) {
            md_text_format(t, "left out: %lld updates whose scaled gradients overflowed\n",
                           (long long)r->task->left.overflowed);
        }
        /* end: scaled */
        if (lost > 0) {
            md_text_format(t, "left out: %lld batches whose loss or gradient norm is no number\n",
                           (long long)lost);
        }
        if (r->best.task == r->task && r->best.step > 0) {
            md_text_format(t, "best: %s %.5g at step %lld", md_value_name(e, r->best.column),
                           md_shown(r->best.value), (long long)r->best.step);
            if (r->options.best != NULL) {
                md_text_format(t, ", in '%s'", r->options.best);
            }
            if (r->options.patience > 0 && r->best.waited >= r->options.patience) {
                md_text_format(t, "; %lld evaluations were not better", (long long)r->best.waited);
            }
            md_text_add(t, "\n");
        }
        if (last) {
            md_text_add(t, "memory: bound with pad ");
            md_text_grouped(t, r->regions.bound);
            md_text_add(t, " bytes, measured peak ");
            md_text_grouped(t, over);
            md_text_format(t, " over process, libraries and data; pages added since step 2: %lld\n",
                           (long long)growth);
        }
    }
    md_print(r);
}

#endif
