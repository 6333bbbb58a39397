/* SPDX-License-Identifier: 0BSD */
/* plan: which calls a run will make: of each train how many updates, of an entry of the phases how
 * many batches, by the command line, the clauses of the source and the rows that there are. Rows of
 * a ring are those that it holds and those that will be pushed before they are wanted, so what does
 * not fit is said before step 0.
 * Needs log.h; gives md_task.steps and per_epoch. */
#ifndef MD_PLAN_H
#define MD_PLAN_H

#include "runtime/log.h"

/* The updates of a train that the command line asks for, or else (`clause`) the source; -1: it does
 * not say. A value of its own, --steps fit=100, goes before one for all. A train without data has
 * no epochs, but where a train of its phase is fed it follows that one. A pass goes along with the
 * `trains` of its phase. */
MD_COLD int md_plan_updates(md_run *r, int clause, int fed, int trains, int64_t *updates) {
    (void)trains;
    const md_task *k = r->task;
    const md_entry *e = k->entry;
    int64_t own_steps = md_option_number(&r->options, "--steps", e->name);
    int64_t own_epochs = md_option_number(&r->options, "--epochs", e->name);
    int own = own_steps >= 0 || own_epochs >= 0;
    int64_t steps = own ? own_steps : r->options.steps;
    int64_t epochs = own ? own_epochs : r->options.epochs;
    if (clause) {
        steps = e->steps > 0 ? e->steps : -1;
        epochs = e->epochs > 0 ? e->epochs : -1;
    }
    /* if: passes */
    if (e->kind == MD_PASS) { /* once through its data, if no train of the phase says more */
        int alone = !r->options.phases || r->options.steps == 0;
        steps = own || !alone ? own_steps : r->options.steps;
        epochs = own || !alone ? own_epochs : r->options.epochs;
        if (clause) {
            steps = trains ? -1 : k->data == NULL ? 1 : k->per_epoch;
        }
    }
    /* end: passes */
    *updates = steps;
    if (own_steps >= 0 && own_epochs >= 0) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "--steps and --epochs of '%s' exclude each other", e->name);
    }
    if (epochs < 0) {
        return MD_EXIT_OK;
    }
    if (k->data == NULL) {
        return fed && !own ? MD_EXIT_OK
                           : md_fail(&r->message, MD_EXIT_USAGE,
                                     "'%s' has no data set, so no epochs: --steps N", e->name);
    }
    if (epochs > INT64_MAX / k->per_epoch) {
        return md_fail(&r->message, MD_EXIT_USAGE, "--epochs is too large");
    }
    *updates = epochs * k->per_epoch;
    return MD_EXIT_OK;
}

/* Updates of one phase: all its trains make as many, and those that say how many agree. */
MD_COLD int md_plan_phase(md_run *r, int first, int end) {
    const md_task *said = NULL;
    int fed = 0, trains = 0;
    for (int i = first; i < end; i++) {
        fed |= r->tasks[i].data != NULL;
        trains |= r->tasks[i].entry->kind == MD_TRAIN;
    }
    for (int clause = 0; clause < 2 && said == NULL; clause++) {
        for (int i = first; i < end; i++) {
            md_select(r, i);
            int64_t *updates = &r->task->steps;
            int rc = md_plan_updates(r, clause, fed, trains, updates);
            if (rc != MD_EXIT_OK) {
                return rc;
            }
            /* if: several */
            if (said != NULL && *updates >= 0 && *updates != said->steps) {
                return md_fail(&r->message, MD_EXIT_USAGE,
                               "'%s' and '%s' take turns, but one is to make %lld updates and the "
                               "other %lld: --steps N",
                               said->entry->name, r->task->entry->name, (long long)said->steps,
                               (long long)*updates);
            }
            /* end: several */
            said = *updates >= 0 ? r->task : said;
        }
    }
    if (said == NULL) {
        return md_fail(&r->message, MD_EXIT_USAGE,
                       "'%s' does not say how long it trains: --steps N%s",
                       r->tasks[first].entry->name, fed ? " or --epochs N" : "");
    }
    /* if: several */
    for (int i = first; i < end; i++) {
        r->tasks[i].steps = said->steps;
    }
    /* end: several */
    return MD_EXIT_OK;
}

/* The task behind the last one of the phase that begins with this one. */
MD_COLD int md_phase_end(const md_run *r, int first) {
    int end = first < r->task_count ? first + 1 : first;
    /* if: several */
    while (end < r->task_count && r->tasks[end].phase == r->tasks[first].phase) {
        end++;
    }
    /* end: several */
    return end;
}

/* if: passes */
/* Rows of the batches that a pass gives in its first calls. */
MD_COLD int64_t md_rows_given(const md_task *k, int64_t calls) {
    if (k->per_epoch == 0) {
        return 0;
    }
    return calls / k->per_epoch * k->train_rows +
           md_min64(calls % k->per_epoch * k->entry->rows, k->train_rows);
}

/* if: made */
/* How many rows a ring will hold when the task begins: those that are there, and what the phases in
 * front of it have still to push. */
MD_COLD int64_t md_ring_rows(const md_run *r, const md_task *k) {
    const md_dataset *set = k->data->set;
    int64_t rows;
    memcpy(&rows, (const char *)r->regions.memory.state + set->counter, sizeof rows);
    for (const md_task *t = r->tasks; t < k && t->phase < k->phase; t++) {
        for (int i = 0; i < t->entry->push_count && t->step < t->steps; i++) {
            const md_push *p = &t->entry->pushes[i];
            int64_t more = p->rows > 0 ? p->rows * (t->steps - t->step)
                                       : md_rows_given(t, t->steps) - md_rows_given(t, t->step);
            rows += p->counter == set->counter ? more : 0;
        }
    }
    return md_min64(rows, set->files[0].rows);
}
/* end: made */
/* end: passes */

/* How many calls go through the data of the task once. `known`: what a checkpoint holds has been
 * read, if the run goes on from one. */
MD_COLD int md_plan_rows(md_run *r, md_task *k, int known) {
    int64_t rows = k->entry->rows, least = rows;
    if (k->data == NULL) {
        return MD_EXIT_OK;
    }
    (void)known;
    /* if: passes */
    least = k->entry->kind == MD_PASS ? 1 : rows;
    /* if: made */
    int in_ring = k->data->set->in_ring;
    if (in_ring) {
        k->train_rows = md_ring_rows(r, k);
        if (r->options.steps == 0 || (r->options.resume != NULL && !known)) {
            k->train_rows = k->data->set->files[0].rows; /* no call is made, or not yet */
        }
    }
    if (in_ring && k->train_rows < least) {
        return md_fail(&r->message, MD_EXIT_DATA,
                       "ring '%s' holds %lld rows when '%s' begins, which takes %lld at once",
                       k->data->set->name, (long long)k->train_rows, k->entry->name,
                       (long long)rows);
    }
    /* end: made */
    /* end: passes */
    if (rows == 0 || k->train_rows < least) {
        return md_fail(&r->message, MD_EXIT_DATA,
                       "%s: data set '%s' has %lld rows to train on; one update of '%s' takes "
                       "%lld",
                       k->data->path, k->data->set->name, (long long)k->train_rows, k->entry->name,
                       (long long)rows);
    }
    k->per_epoch = (k->train_rows + rows - least) / rows;
    return MD_EXIT_OK;
}

/* Which updates will be made: rows, epochs and steps agree from here on. */
MD_COLD int md_plan(md_run *r, int known) {
    int rc = MD_EXIT_OK;
    for (int first = 0; first < r->task_count && rc == MD_EXIT_OK; first = md_phase_end(r, first)) {
        int end = md_phase_end(r, first);
        for (int i = first; i < end && rc == MD_EXIT_OK; i++) {
            rc = md_plan_rows(r, &r->tasks[i], known);
        }
        rc = rc == MD_EXIT_OK ? md_plan_phase(r, first, end) : rc;
    }
    return rc;
}

#endif
