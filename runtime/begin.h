/* SPDX-License-Identifier: 0BSD */
/* begin: what weights and states begin with: `init`, then the files of the command line.
 *
 * In a run by phases that is so where each phase begins, and with all that is there from then on.
 * Draws are functions of seed and place, and files stay as they are, so the bits are those of a run
 * that has everything from its start. Needs checkpoint.h, gives exit codes, allocates nothing. */
#ifndef MD_BEGIN_H
#define MD_BEGIN_H

#include "runtime/checkpoint.h"

/* if: rings */
/* The ring that keeps the entry at hand from being called, or NULL. */
MD_COLD const md_need *md_short_ring(const md_run *r, int64_t *held) {
    const md_entry *e = r->task->entry;
    for (int i = 0; i < e->need_count; i++) {
        memcpy(held, (const char *)r->regions.memory.state + e->needs[i].counter, sizeof *held);
        if (*held < e->needs[i].rows) {
            return &e->needs[i];
        }
    }
    return NULL;
}
/* end: rings */

/* A status code of the model as an exit code and a message that begins with what was done. */
MD_PRINTF(3, 4) MD_COLD int md_model_failed(md_run *r, int code, const char *format, ...) {
    char during[128];
    md_text t = md_text_make(during, sizeof during);
    va_list list;
    va_start(list, format);
    md_text_list(&t, format, list);
    va_end(list);
    /* if: limits */
    if (code == MD_ERR_LIMIT) {
        return md_fail(&r->message, MD_EXIT_NUMBER, "%s: %s (%s:%d)", during, r->model->error(code),
                       r->model->source, r->model->limit_lines[*r->model->limit]);
    }
    /* end: limits */
    if (code == MD_ERR_NONFINITE) {
        return md_fail(&r->message, MD_EXIT_NUMBER, "%s: %s", during, r->model->error(code));
    }
    /* if: canary */
    if (code == MD_ERR_CANARY && r->model->damage != NULL) {
        const md_damage *d = r->model->damage;
        return md_fail(
            &r->message, MD_EXIT_FAULT,
            "%s: step %d of function '%s' wrote %s buffer '%s' of the arena: byte %zu of "
            "its guard band is not what it was",
            during, d->step, d->entry, d->behind ? "behind" : "in front of", d->buffer, d->byte);
    }
    /* end: canary */
    /* if: rings */
    int64_t held = 0;
    const md_need *need = code == MD_ERR_STATE ? md_short_ring(r, &held) : NULL;
    if (need != NULL) {
        return md_fail(&r->message, MD_EXIT_DATA,
                       "%s: ring '%s' holds %lld rows, and %lld are sampled (%s:%d); push rows "
                       "first, or --resume a checkpoint that has them",
                       during, need->ring, (long long)held, (long long)need->rows, r->model->source,
                       need->line);
    }
    /* end: rings */
    return md_fail(&r->message, MD_EXIT_DATA, "%s: %s", during, r->model->error(code));
}

/* if: copies */
/* --weights SET: the model's weights and statistics become those of a second set of the file. */
MD_COLD int md_begin_weights(md_run *r) {
    const md_model *m = r->model;
    const char *path = r->options.load != NULL ? r->options.load : r->options.resume;
    size_t number = 0;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const md_tensor *t = &m->tensors[i];
        int seen = r->seen[number];
        number += md_slice_count(t);
        if (!md_tensor_of_set(t, r->options.weights)) {
            continue;
        }
        /* if: spans */
        if (!md_begins_now(&r->regions, t)) {
            continue;
        }
        /* end: spans */
        const md_tensor *to = &m->tensors[t->copy_of - 1];
        if (!seen && (r->options.only == NULL || md_slice_any(r->options.only, to))) {
            return md_fail(&r->message, MD_EXIT_DATA,
                           "%s: does not have the second set '%s': tensor '%s' is missing", path,
                           r->options.weights, t->name);
        }
        md_copy_elements(md_slice_data(to, 0, &r->regions.memory), to->dtype,
                         md_slice_data(t, 0, &r->regions.memory), t->dtype,
                         t->bytes / md_dtype_get(t->dtype)->bytes);
    }
    return MD_EXIT_OK;
}
/* end: copies */

/* All, or in a run by phases what is there from `beginning` on. */
MD_COLD int md_begin_values(md_run *r) {
    const md_model *m = r->model;
    int rc = MD_EXIT_OK, phase = 0, goes_on = r->options.resume != NULL;
    /* if: spans */
    phase = r->regions.beginning;
    /* end: spans */
    int code = phase <= 0 ? m->init(m->net, r->options.seed) : MD_OK;
    /* if: spans */
    const int end = phase < 0 ? m->arena_count : phase + 1;
    for (int k = phase < 1 ? 1 : phase; k < end && code == MD_OK; k++) {
        code = m->inits[k] != NULL ? m->inits[k](m->net, r->options.seed) : MD_OK;
    }
    /* end: spans */
    if (code != MD_OK) {
        return md_model_failed(r, code, "setting up");
    }
    /* if: spans */
    if (goes_on && phase != MD_BEGIN_ALL) { /* its numbers are known */
        rc = md_load_file(r->regions.from[0].path, m, &r->regions, MD_CHECKPOINT | MD_LOAD_EXACT,
                          NULL, r->seen, r->note, &r->message);
        goes_on = 0;
    }
    /* end: spans */
    if (goes_on) {
        rc = md_checkpoint_resume(r);
    } else if (r->options.load != NULL) {
        rc = md_load_file(r->options.load, m, &r->regions, MD_SAVE_PARAMS, r->options.only, r->seen,
                          NULL, &r->message);
    }
    /* if: copies */
    rc = rc == MD_EXIT_OK && r->options.weights != NULL ? md_begin_weights(r) : rc;
    /* end: copies */
    if (rc == MD_EXIT_OK && r->options.with != NULL) {
        rc = md_load_file(r->options.with, m, &r->regions, MD_SAVE_PARAMS | MD_LOAD_SOME, NULL,
                          r->seen, NULL, &r->message);
    }
    return rc;
}

/* if: spans */
MD_COLD int md_phase_make(md_run *r, int phase) {
    r->regions.beginning = phase;
    return md_begin_values(r);
}

/* Goes on to a phase. One that makes no update has its weights too. */
MD_COLD int md_phase_begin(md_run *r, int phase) {
    int rc = MD_EXIT_OK;
    while (r->regions.phase < phase && rc == MD_EXIT_OK) {
        rc = md_phase_enter(r);
        rc = rc == MD_EXIT_OK ? md_phase_make(r, r->regions.phase) : rc;
    }
    return rc;
}
/* end: spans */

#endif
