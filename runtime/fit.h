/* SPDX-License-Identifier: 0BSD */
/* fit: the training loop and the evaluation.
 *
 * All memory stands before the loop begins; a step stages rows, calls the model and, when due,
 * logs, evaluates and saves. A signal ends the loop behind the step that it met.
 * Needs stage.h; gives an exit code. */
#ifndef MD_FIT_H
#define MD_FIT_H

#include <signal.h>

#include "runtime/begin.h"
#include "runtime/plot.h"
#include "runtime/progress.h"
#include "runtime/spans.h"
#include "runtime/stage.h"
#include "runtime/table.h"
#include "runtime/trace.h"

/* No exit code: a step changed nothing, and the next batch takes its place. */
enum { MD_LEFT_OUT = -1 };

static volatile sig_atomic_t md_signal; /* the first SIGINT or SIGTERM */

MD_FN void md_on_signal(int number) {
    md_signal = number;
}

/* The second signal of a kind ends the program at once; a file that grows too large gives an error
 * from write, not a signal. */
MD_COLD void md_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = md_on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_IGN);
#endif
}

/* What a call of the task at hand is given and stores. */
MD_FN md_call md_call_make(const md_run *r, double *values, int64_t rows) {
    const md_call call = {r->task->in, r->task->results, values, rows};
    return call;
}
/* ---- evaluation ----------------------------------------------------------------------------- */

/* Which rows `eval` looks at: those of --part, else the held-out ones, else the test rows, else all
 * that there are. */
MD_COLD int md_eval_part(md_run *r) {
    static const int order[MD_PARTS] = {MD_PART_HELD, MD_PART_TEST, MD_PART_TRAIN};
    const char *name = r->options.part;
    for (int i = 0; i < MD_PARTS; i++) {
        int wanted = name == NULL || strcmp(name, md_part_name(order[i])) == 0;
        if (wanted && md_data_rows(r->task->data, order[i]) > 0) {
            r->part = order[i];
            return MD_EXIT_OK;
        }
    }
    return md_fail(&r->message, MD_EXIT_USAGE, "--part %s: data set '%s' has no such rows",
                   name == NULL ? "?" : name, r->task->data->set->name);
}

/* Loss and metrics over one part. */
MD_COLD int md_evaluate(md_run *r) {
    const md_entry *e = r->task->entry;
    if (r->options.command != MD_RUN_EVAL) {
        r->part = r->task->held_rows > 0 ? MD_PART_HELD : MD_PART_TRAIN;
    }
    int part = r->part;
    int64_t total = md_data_rows(r->task->data, part);
    double *sums = (double *)(void *)(r->task->batches + 1);
    memset(r->task->batches, 0, sizeof *sums * (size_t)(1 + e->eval_sums));
    /* What no data set feeds stays that of the last update. */
    int64_t taken = md_batches(r->task);
    int staged = md_stage_arrays(r, taken > 0 ? taken - 1 : 0);
    if (staged != MD_EXIT_OK) {
        return staged;
    }
    for (int64_t first = 0; first < total; first += e->eval_rows) {
        const int64_t rows = md_min64(e->eval_rows, total - first);
        const md_call call = md_call_make(r, r->task->part_sums, rows);
        int rc = md_stage_eval(r, part, first, rows);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        int code = e->eval(r->model->net, &call);
        if (code != MD_OK) {
            return md_model_failed(r, code, "evaluation of '%s' at step %lld", e->name,
                                   (long long)r->task->step);
        }
        for (int i = 0; i < e->eval_sums; i++) {
            sums[i] += r->task->part_sums[i];
        }
        ++*r->task->batches;
    }
    e->eval_end(r->model->net, r->task->batches, r->task->eval_values);
    r->task->evaluated = 1;
    md_log_eval(r, total);
    md_table_row(r, "eval", r->task->eval_values, 0);
    if (!isfinite(r->task->eval_values[0])) {
        return md_fail(&r->message, MD_EXIT_NUMBER, "the loss of '%s' evaluated at step %lld is %s",
                       e->name, (long long)r->task->step,
                       isnan(r->task->eval_values[0]) ? "NaN" : "infinite");
    }
    return MD_EXIT_OK;
}

/* ---- training ------------------------------------------------------------------------------- */

/* How often a line is logged: 1, 2 or 5 times a power of ten, for about fifty lines at most. */
MD_COLD int64_t md_log_interval(int64_t steps) {
    int64_t every = 1;
    for (int i = 0; every < steps / 50 + (steps % 50 > 0); i++) {
        every = i % 3 == 1 ? every / 2 * 5 : every * 2;
    }
    return every;
}

MD_COLD void md_write_scalar(md_run *r, const md_scalar *s, int64_t value) {
    const md_number n = {1, value, (double)value};
    if (s != NULL) {
        (void)md_put_number((char *)r->regions.memory.state + s->offset, s->dtype, n);
    }
}

/* A step that ended without a change is made once more, and noted. */
MD_COLD void md_run_again(md_run *r) {
    if (r->model->trace != NULL) {
        const md_call call = md_call_make(r, r->task->values, 0);
        /* if: again */
        const md_tracing t = {r->task->entry->traced, r->model->notes, &r->regions.memory};
        md_trace_begin(&t);
        *r->model->trace = &t;
        /* end: again */
        (void)r->task->entry->call(r->model->net, &call);
        *r->model->trace = NULL;
    }
}

/* "; " and that it held `what` `when`, or `made` and what made it. */
MD_COLD void md_say_place(md_run *r, const md_place *p, const char *what, const char *when,
                          const char *made) {
    if (p->given) {
        md_text_format(&r->message, "; %s held %s%s", p->what, what, when);
    } else {
        md_text_format(&r->message, "; %s from %s%s%s", made, p->where,
                       p->where[0] != 0 ? ": " : "", p->what);
    }
}

/* Where the NaN, or the infinity, of the step came from. */
MD_COLD void md_say_origin(md_run *r) {
    const md_traced *t = r->task->entry->traced;
    int infinite = -1;
    int origin = t != NULL ? md_trace_origin(t, r->model->notes, &infinite) : -1;
    if (origin < 0) {
        return;
    }
    const int nan = r->model->notes[1 + 2 * origin] != 0;
    md_say_place(r, &t->places[origin], nan ? "a NaN" : "an infinity", " before the step",
                 nan ? "the first NaN came" : "the first infinity came");
    if (nan && infinite >= 0) {
        md_say_place(r, &t->places[infinite], "an infinity", "", "an infinity came before it,");
    }
}

/* The warning of a batch that is left out; of several in a row the first is enough. */
MD_COLD int md_leave_out(md_run *r, const char *what, double value) {
    md_task *k = r->task;
    k->left.all++;
    if (++k->in_row == 1) {
        md_run_again(r);
        md_text_format(&r->message, "%s of '%s' became %s in step %lld, whose batch is left out",
                       what, k->entry->name, isnan(value) ? "NaN" : "infinite",
                       (long long)k->step + 1);
        md_say_origin(r);
        md_complain(r, "warning: ");
    }
    return MD_LEFT_OUT;
}

/* if: scaled */
/* Did the gradients of a step overflow? The scale of the loss is less then, and nothing else has
 * changed. A debugging build says from where the first infinity came. */
MD_COLD int md_overflowed(md_run *r) {
    md_task *k = r->task;
    const md_entry *e = k->entry;
    const int at = 1 + e->metric_count + e->scaled - 1;
    if (e->scaled == 0 || !isfinite(k->values[0]) || isfinite(k->values[at])) {
        return 0;
    }
    k->left.all++;
    k->left.overflowed++;
    if (r->model->trace == NULL && r->model->notes != NULL) {
        md_text_format(&r->message,
                       "the gradients of '%s' overflowed in step %lld, which is left out", e->name,
                       (long long)k->step + 1);
        md_say_origin(r);
        md_complain(r, "warning: ");
    }
    return 1;
}
/* end: scaled */

/* The values of a step that must be finite: the loss, and a gradient norm where there is one. A
 * step without them has changed nothing. */
MD_COLD int md_check_values(md_run *r, int code) {
    const md_entry *e = r->task->entry;
    const double *values = r->task->values, *extras = values + 1 + e->metric_count;
    const char *what = isfinite(values[0]) ? NULL : "the loss";
    /* if: scaled */
    if (code == MD_OK && md_overflowed(r)) {
        return MD_LEFT_OUT;
    }
    /* end: scaled */
    double value = values[0];
    for (int i = 0; i < e->extra_count && what == NULL; i++) {
        if (strcmp(e->extras[i], "grad_norm") == 0 && !isfinite(extras[i])) {
            value = extras[i];
            what = "the gradient norm";
        }
    }
    if (code == MD_OK && what == NULL) {
        return MD_EXIT_OK;
    }
    if (code != MD_OK && code != MD_ERR_NONFINITE) {
        return md_model_failed(r, code, "step %lld of '%s'", (long long)r->task->step + 1, e->name);
    }
    if (what != NULL && r->task->in_row < r->options.skip) {
        return md_leave_out(r, what, value);
    }
    md_run_again(r);
    md_text_format(&r->message, "%s of '%s' became %s in step %lld",
                   what == NULL ? "a value" : what, e->name,
                   what == NULL   ? "NaN or infinite"
                   : isnan(value) ? "NaN"
                                  : "infinite",
                   (long long)r->task->step + 1);
    if (r->task->in_row > 0) {
        md_text_format(&r->message, ", behind %lld batches that were left out",
                       (long long)r->task->in_row);
    }
    if (r->saved_step > 0) {
        md_text_format(&r->message, "; '%s' holds the weights of step %lld", r->options.save,
                       (long long)r->saved_step);
        /* if: several */
        if (r->task_count > 1) {
            md_text_format(&r->message, " of '%s'", r->saved_task->entry->name);
        }
        /* end: several */
    } else {
        md_text_add(&r->message, "; nothing was saved");
    }
    md_say_origin(r);
    return MD_EXIT_NUMBER;
}

MD_COLD int md_save_weights(md_run *r) {
    int rc = md_save_file(&r->out, r->options.save, r->model, &r->regions, MD_SAVE_PARAMS,
                          r->options.save_only, NULL, &r->message);
    if (rc == MD_EXIT_OK) {
        r->saved_step = r->task->step;
        /* if: several */
        r->saved_task = r->task;
        /* end: several */
    }
    return rc;
}

MD_COLD int md_save_all(md_run *r) {
    int rc = r->options.save != NULL ? md_save_weights(r) : MD_EXIT_OK;
    if (rc == MD_EXIT_OK && r->options.checkpoint != NULL) {
        rc = md_checkpoint_save(r);
    }
    return rc;
}

/* What is due behind an update of each train of the phase. */
MD_COLD int md_after_round(md_run *r, int first, int end) {
    const md_options *o = &r->options;
    int64_t step = r->tasks[first].step;
    int over = step == r->tasks[first].steps, last = over || md_signal != 0;
    int due = last || step % r->log_every == 0;
    /* if: plot */
    for (int i = first; i < end && r->plot.size > 0; i++) {
        md_select(r, i);
        md_plot_add(r, 0);
    }
    /* end: plot */
    for (int i = first; i < end && due; i++) {
        md_select(r, i);
        md_table_row(r, "step", r->task->values, 1);
        int said = md_has_values(r->task->entry) && (!r->terminal || last);
        if (o->log == MD_LOG_JSON || (o->log == MD_LOG_TEXT && said)) {
            md_log_step(r);
        }
    }
    if (o->log == MD_LOG_TEXT && r->terminal && !last) {
        md_log_progress(r, first, end); /* whenever enough time has gone by */
    }
    for (int i = first; i < end && (over || (o->eval_every > 0 && step % o->eval_every == 0));
         i++) {
        md_select(r, i);
        if (r->task->entry->eval != NULL && r->task->held_rows > 0) {
            int rc = md_evaluate(r);
            if (rc != MD_EXIT_OK) {
                return rc;
            }
            /* if: plot */
            md_plot_add(r, 1);
            /* end: plot */
            md_best_seen(r);
        }
    }
    int save = o->save_every > 0 && step % o->save_every == 0 && !last;
    /* if: several */
    /* The end of the run has its own place; that of a phase is worth a copy. */
    save |= over && md_signal == 0 && end < r->task_count;
    /* end: several */
    if (save && md_save_all(r) != MD_EXIT_OK) {
        md_complain(r, "warning: "); /* the run is worth more than one copy of it */
    }
    return MD_EXIT_OK;
}

/* if: rings */
/* A call in place of the one that needs more rows of a ring: it makes the pushes alone. The batch
 * has given no update then, as one that is left out. `most`: so many calls may be needed. */
MD_COLD int md_fill(md_run *r, const md_call *call) {
    md_task *k = r->task;
    int64_t before = 0, after = 0;
    const md_need *need = md_short_ring(r, &before);
    int code = k->entry->fill(r->model->net, call);
    const md_need *now = md_short_ring(r, &after);
    if (code == MD_OK && now == need && after == before) { /* another entry pushes to that one */
        code = MD_ERR_STATE;
    }
    if (code != MD_OK) {
        return md_model_failed(r, code, "step %lld of '%s'", (long long)k->step + 1,
                               k->entry->name);
    }
    k->left.all++;
    k->left.filled++;
    return MD_LEFT_OUT;
}
/* end: rings */

/* if: passes */
/* One call of an entry of the phases. */
MD_FN int md_pass(md_run *r) {
    md_task *k = r->task;
    int rc = k->data != NULL ? md_stage_pass(r, k->step) : MD_EXIT_OK;
    rc = rc == MD_EXIT_OK ? md_stage_arrays(r, k->step) : rc;
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    const md_call call = md_call_make(r, NULL, 0);
    int code = k->entry->call(r->model->net, &call);
    if (code != MD_OK) {
        return md_model_failed(r, code, "call %lld of '%s'", (long long)k->step + 1,
                               k->entry->name);
    }
    k->step++;
    return MD_EXIT_OK;
}
/* end: passes */

/* One update of the task at hand, from the first of the next batches that gives one. */
MD_FN int md_update(md_run *r) {
    md_task *k = r->task;
    const md_call call = md_call_make(r, k->values, 0);
    int rc = MD_LEFT_OUT;
    /* if: passes */
    if (k->entry->kind == MD_PASS) {
        return md_pass(r);
    }
    /* end: passes */
    while (rc == MD_LEFT_OUT) {
        rc = k->data != NULL ? md_stage_batch(r, md_batches(k)) : MD_EXIT_OK;
        rc = rc == MD_EXIT_OK ? md_stage_arrays(r, md_batches(k)) : rc;
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        md_write_scalar(r, k->entry->epoch, md_epoch(r));
        int code = k->entry->call(r->model->net, &call);
        /* if: rings */
        if (code == MD_ERR_STATE && k->entry->fill != NULL) {
            rc = md_fill(r, &call);
            continue;
        }
        /* end: rings */
        rc = md_check_values(r, code);
    }
    if (rc == MD_EXIT_OK) {
        k->step++;
        k->in_row = 0;
    }
    return rc;
}

/* One update of each of its trains in the order written, until all are made. */
MD_COLD int md_fit_phase(md_run *r, int first, int end) {
    const md_task *lead = &r->tasks[first];
    int rc = MD_EXIT_OK;
    r->start = md_seconds();
    r->made = 0;
    r->log_every = r->options.log_every > 0 ? r->options.log_every : md_log_interval(lead->steps);
    while (lead->step < lead->steps && md_signal == 0 && rc == MD_EXIT_OK && !md_best_over(r)) {
        for (int i = first; i < end && rc == MD_EXIT_OK; i++) {
            md_select(r, i);
            rc = md_update(r);
        }
        r->made++;
        rc = rc == MD_EXIT_OK ? md_after_round(r, first, end) : rc;
        if (r->made == 2) {
            r->pages_early = md_statm(1);
        }
    }
    r->pages_late = md_statm(1);
    return rc;
}

MD_COLD int md_fit(md_run *r) {
    int rc = MD_EXIT_OK, end = 0, begun = 0;
    for (int i = 0; i < r->task_count; i++) {
        begun |= r->tasks[i].step > 0;
    }
    for (int first = 0; first < r->task_count && md_signal == 0; first = end) {
        end = md_phase_end(r, first);
        /* if: several */
        if (end < r->task_count && r->tasks[first].step >= r->tasks[first].steps) {
            continue; /* of a run that goes on */
        }
        /* end: several */
        /* if: spans */
        rc = r->regions.phased ? md_phase_begin(r, r->tasks[first].phase) : MD_EXIT_OK;
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        /* end: spans */
        /* if: passes */
        rc = md_plan(r, 1); /* by the rows that rings hold now */
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        /* end: passes */
        for (int i = 0; i < r->task_count; i++) {
            md_write_scalar(r, r->tasks[i].entry->plan, r->tasks[i].steps);
        }
        rc = md_fit_phase(r, first, end);
        begun |= r->made > 0;
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        int over = md_signal != 0 || end == r->task_count;
        rc = over && (begun || md_signal == 0) ? md_save_all(r) : MD_EXIT_OK;
        /* if: plot */
        rc = rc == MD_EXIT_OK && over ? md_plot_write(r) : rc;
        /* end: plot */
        for (int i = first; i < end; i++) {
            md_select(r, i);
            md_log_end(r, i + 1 == end);
        }
    }
    return rc != MD_EXIT_OK ? rc : md_signal != 0 ? 128 + (int)md_signal : MD_EXIT_OK;
}

#endif
