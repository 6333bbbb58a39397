/* SPDX-License-Identifier: 0BSD */
/* fit: the training loop and the evaluation.
 *
 * All memory stands before the loop begins; a step stages rows, calls the model and, when due,
 * logs, evaluates and saves. A signal ends the loop behind the step that it met.
 * Needs stage.h; gives an exit code. */
#ifndef MD_FIT_H
#define MD_FIT_H

#include <signal.h>

#include "runtime/checkpoint.h"
#include "runtime/table.h"
#include "runtime/stage.h"
#include "runtime/trace.h"

static volatile sig_atomic_t md_signal; /* the first SIGINT or SIGTERM */

MD_FN void md_on_signal(int number) {
    md_signal = number;
}

/* The second signal of a kind ends the program at once; a file that grows too large gives an error
 * from write, not a signal. */
MD_FN void md_signals(void) {
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

/* A status code of the model as an exit code and a message. */
MD_FN int md_model_failed(md_run *r, int code, const char *during) {
    if (code == MD_ERR_NONFINITE) {
        return md_fail(&r->message, MD_EXIT_NUMBER, "%s: %s", during, r->model->error(code));
    }
    if (code == MD_ERR_CANARY && r->model->damage != NULL) {
        const md_damage *d = r->model->damage;
        return md_fail(
            &r->message, MD_EXIT_FAULT,
            "%s: step %d of function '%s' wrote %s buffer '%s' of the arena: byte %zu of "
            "its guard band is not what it was",
            during, d->step, d->entry, d->behind ? "behind" : "in front of", d->buffer, d->byte);
    }
    return md_fail(&r->message, MD_EXIT_DATA, "%s: %s", during, r->model->error(code));
}

/* ---- evaluation ----------------------------------------------------------------------------- */

/* Loss and metrics over the held-out rows, or over all rows if none are held out. */
MD_FN int md_evaluate(md_run *r) {
    const md_entry *e = r->entry;
    int part = r->held_rows > 0 ? MD_PART_HELD : MD_PART_TRAIN;
    int64_t total = part == MD_PART_HELD ? r->held_rows : r->train_rows;
    for (int i = 0; i < e->eval_sums; i++) {
        r->sums[i] = 0;
    }
    for (int64_t first = 0; first < total; first += e->eval_rows) {
        md_call call;
        call.in = r->in;
        call.out = NULL;
        call.values = r->part_sums;
        call.rows = md_min64(e->eval_rows, total - first);
        md_stage_eval(r, part, first, call.rows);
        int code = e->eval(r->model->net, &call);
        if (code != MD_OK) {
            char where[128];
            snprintf(where, sizeof where, "evaluation of '%s' at step %lld", e->name,
                     (long long)r->step);
            return md_model_failed(r, code, where);
        }
        for (int i = 0; i < e->eval_sums; i++) {
            r->sums[i] += r->part_sums[i];
        }
    }
    e->eval_end(r->model->net, r->sums, r->eval_values);
    r->evaluated = 1;
    md_log_eval(r, total);
    md_table_row(r, "eval", r->eval_values, 0);
    if (!isfinite(r->eval_values[0])) {
        return md_fail(&r->message, MD_EXIT_NUMBER, "the loss of '%s' evaluated at step %lld is %s",
                       e->name, (long long)r->step, isnan(r->eval_values[0]) ? "NaN" : "infinite");
    }
    return MD_EXIT_OK;
}

/* ---- training ------------------------------------------------------------------------------- */

/* How often a line is logged: 1, 2 or 5 times a power of ten, for about fifty lines at most. */
MD_FN int64_t md_log_interval(int64_t steps) {
    static const int64_t factors[] = {1, 2, 5};
    for (int64_t ten = 1;; ten *= 10) {
        for (int i = 0; i < 3; i++) {
            if (factors[i] * ten * 50 >= steps || ten > INT64_MAX / 1000) {
                return factors[i] * ten;
            }
        }
    }
}

/* Which updates will be made: rows, epochs and steps agree from here on. */
MD_FN int md_plan(md_run *r) {
    const md_entry *e = r->entry;
    const md_options *o = &r->options;
    if (r->has_data) {
        r->per_epoch = e->rows > 0 ? r->train_rows / e->rows : 0;
        if (r->per_epoch == 0) {
            return md_fail(&r->message, MD_EXIT_DATA,
                           "%s: data set '%s' has %lld rows to train on; one update of '%s' takes "
                           "%lld",
                           r->data.path, r->data.set->name, (long long)r->train_rows, e->name,
                           (long long)e->rows);
        }
    }
    int64_t epochs = o->epochs > 0 ? o->epochs : o->steps > 0 ? 0 : e->epochs;
    r->steps = o->steps > 0 ? o->steps : e->steps;
    if (epochs > 0) {
        if (!r->has_data) {
            return md_fail(&r->message, MD_EXIT_USAGE,
                           "'%s' has no data set, so no epochs: --steps N", e->name);
        }
        if (epochs > INT64_MAX / r->per_epoch) {
            return md_fail(&r->message, MD_EXIT_USAGE, "--epochs is too large");
        }
        r->steps = epochs * r->per_epoch;
    }
    if (r->steps <= 0) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "'%s' does not say how long it trains: --steps N%s", e->name,
                       r->has_data ? " or --epochs N" : "");
    }
    r->log_every = o->log_every > 0 ? o->log_every : md_log_interval(r->steps);
    return MD_EXIT_OK;
}

MD_FN void md_write_scalar(md_run *r, const md_scalar *s, int64_t value) {
    md_number n;
    n.is_int = 1;
    n.i = value;
    n.f = (double)value;
    if (s != NULL) {
        (void)md_put_number((char *)r->regions.memory.state + s->offset, s->dtype, n);
    }
}

/* A step that ended without a change is made once more, and noted. */
MD_COLD void md_run_again(md_run *r) {
    if (r->model->trace != NULL) {
        md_call call;
        call.in = r->in;
        call.out = NULL;
        call.values = r->values;
        call.rows = 0;
        *r->model->trace = r->model->notes;
        (void)r->entry->call(r->model->net, &call);
        *r->model->trace = NULL;
    }
}

MD_COLD void md_say_place(md_run *r, const md_place *p, const char *given, const char *made) {
    if (p->given) {
        md_text_format(&r->message, given, p->what);
    } else {
        md_text_format(&r->message, made, p->where, p->where[0] != 0 ? ": " : "", p->what);
    }
}

/* Where the NaN, or the infinity, of the step came from. */
MD_COLD void md_say_origin(md_run *r) {
    const md_traced *t = r->entry->traced;
    int infinite = -1;
    int origin = t != NULL ? md_trace_origin(t, r->model->notes, &infinite) : -1;
    if (origin < 0) {
        return;
    }
    if (r->model->notes[1 + 2 * origin] != 0) {
        md_say_place(r, &t->places[origin], "; %s held a NaN before the step",
                     "; the first NaN came from %s%s%s");
        if (infinite >= 0) {
            md_say_place(r, &t->places[infinite], "; %s held an infinity",
                         "; an infinity came before it, from %s%s%s");
        }
    } else {
        md_say_place(r, &t->places[origin], "; %s held an infinity before the step",
                     "; the first infinity came from %s%s%s");
    }
}

/* The values of a step that must be finite: the loss, and a gradient norm where there is one. */
MD_FN int md_check_values(md_run *r, int code) {
    const md_entry *e = r->entry;
    const char *what = isfinite(r->values[0]) ? NULL : "the loss";
    double value = r->values[0];
    for (int i = 0; i < e->extra_count && what == NULL; i++) {
        if (strcmp(e->extras[i], "grad_norm") == 0 &&
            !isfinite(r->values[1 + e->metric_count + i])) {
            value = r->values[1 + e->metric_count + i];
            what = "the gradient norm";
        }
    }
    if (code == MD_OK && what == NULL) {
        return MD_EXIT_OK;
    }
    if (code != MD_OK && code != MD_ERR_NONFINITE) {
        char where[128];
        snprintf(where, sizeof where, "step %lld of '%s'", (long long)r->step + 1, e->name);
        return md_model_failed(r, code, where);
    }
    md_run_again(r);
    md_text_format(&r->message, "%s of '%s' became %s in step %lld",
                   what == NULL ? "a value" : what, e->name,
                   what == NULL   ? "NaN or infinite"
                   : isnan(value) ? "NaN"
                                  : "infinite",
                   (long long)r->step + 1);
    if (r->saved_step > 0) {
        md_text_format(&r->message, "; '%s' holds the weights of step %lld", r->options.save,
                       (long long)r->saved_step);
    } else {
        md_text_add(&r->message, "; nothing was saved");
    }
    md_say_origin(r);
    return MD_EXIT_NUMBER;
}

MD_FN int md_save_weights(md_run *r) {
    int rc = md_save_file(&r->out, r->options.save, r->model, &r->regions.memory, MD_SAVE_PARAMS,
                          &r->message);
    if (rc == MD_EXIT_OK) {
        r->saved_step = r->step;
    }
    return rc;
}

MD_FN int md_save_all(md_run *r) {
    int rc = r->options.save != NULL ? md_save_weights(r) : MD_EXIT_OK;
    if (rc == MD_EXIT_OK && r->options.checkpoint != NULL) {
        rc = md_checkpoint_save(r);
    }
    return rc;
}

/* What is due behind a step; the last step has its own place. */
MD_FN int md_after_step(md_run *r) {
    const md_options *o = &r->options;
    int last = r->step == r->steps || md_signal != 0;
    int due = last || r->step % r->log_every == 0;
    if (due) {
        md_table_row(r, "step", r->values, 1);
    }
    if (o->log != MD_LOG_NONE && due) {
        if (o->log == MD_LOG_JSON || !r->terminal || last) {
            md_log_step(r);
        }
    }
    if (o->log == MD_LOG_TEXT && r->terminal && !last) {
        md_log_progress(r);
    }
    int evaluates = r->entry->eval != NULL && r->held_rows > 0;
    if (evaluates && (r->step == r->steps || (o->eval_every > 0 && r->step % o->eval_every == 0))) {
        int rc = md_evaluate(r);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    if (o->save_every > 0 && r->step % o->save_every == 0 && !last) {
        if (md_save_all(r) != MD_EXIT_OK) {
            md_complain(r, "warning: "); /* the run is worth more than one copy of it */
        }
    }
    return MD_EXIT_OK;
}

MD_FN int md_fit(md_run *r) {
    const md_entry *e = r->entry;
    int rc = MD_EXIT_OK;
    md_call call;
    call.in = r->in;
    call.out = NULL;
    call.values = r->values;
    call.rows = 0;
    r->start = md_seconds();
    r->staged = -1;
    md_write_scalar(r, e->plan, r->steps);
    while (r->step < r->steps && md_signal == 0 && rc == MD_EXIT_OK) {
        if (r->has_data) {
            md_stage_batch(r, r->step);
        }
        md_stage_arrays(r, r->step);
        md_write_scalar(r, e->epoch, md_epoch(r, r->step));
        int code = e->call(r->model->net, &call);
        rc = md_check_values(r, code);
        if (rc == MD_EXIT_OK) {
            r->step++;
            rc = md_after_step(r);
        }
        r->made++;
        if (r->made == 2) {
            r->pages_early = md_statm_pages();
        }
    }
    r->pages_late = md_statm_pages();
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    if (r->step > 0) {
        rc = md_save_all(r);
    }
    md_log_end(r);
    return rc != MD_EXIT_OK ? rc : md_signal != 0 ? 128 + (int)md_signal : MD_EXIT_OK;
}

#endif
