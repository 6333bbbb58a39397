/* SPDX-License-Identifier: 0BSD */
/* checkpoint: everything that an exact resume needs, in two files by turns.
 *
 * A new checkpoint is complete and synced before the one at its path gets the name PATH.old and it
 * the name PATH; so whatever happens when, one of the two is whole. Both carry a checksum. A resume
 * takes PATH, or PATH.old where PATH is missing or damaged, and says so; what is damaged does not
 * become PATH.old.
 * Needs plan.h; gives exit codes; allocates nothing. */
#ifndef MD_CHECKPOINT_H
#define MD_CHECKPOINT_H

#include "runtime/best.h"
#include "runtime/plan.h"
#include "runtime/spans.h"

enum { MD_CHECKPOINT = MD_SAVE_ALL | MD_SAVE_RINGS };

/* How many batches a note says that a train has left out, how many of them filled a ring, and how
 * many had gradients that overflowed. */
MD_COLD void md_checkpoint_left(const md_entry *e, const char *note, md_left_out *left) {
    size_t n = strlen(e->name);
    memset(left, 0, sizeof *left);
    for (const char *p = strchr(note, ';'); p != NULL; p = strchr(p + 1, ';')) {
        long long all = 0, of = 0, too = 0;
        if (left->all == 0 && strncmp(p + 1, e->name, n) == 0 && p[1 + n] == ' ' &&
            sscanf(p + 1 + n, " %lld %lld %lld", &all, &of, &too) >= 1 && all > 0) {
            left->all = all;
            /* if: partial */
            left->filled = of < 0 ? 0 : md_min64(of, all);
            left->overflowed = too < 0 ? 0 : md_min64(too, all - left->filled);
            /* end: partial */
        }
    }
}

/* Beside the tensors: what was best, and ";fit 3" for each train that has left out batches, or
 * ";fit 3 2" where two of them filled a ring, ";fit 3 0 1" where of one the gradients overflowed.
 * What is not of this run is as the checkpoint says that it goes on from. */
MD_COLD void md_checkpoint_note(const md_run *r, md_text *note) {
    if (r->best.task != NULL) {
        md_best_note(r, note);
    } else {
        md_text_bytes(note, r->note, strcspn(r->note, ";"));
    }
    for (int i = 0; i < r->model->entry_count; i++) {
        const md_entry *e = &r->model->entries[i];
        md_left_out left;
        md_checkpoint_left(e, r->note, &left);
        for (int k = 0; k < r->task_count; k++) {
            left = r->tasks[k].entry == e ? r->tasks[k].left : left;
        }
        if (left.all > 0) {
            md_text_format(note, ";%s %lld", e->name, (long long)left.all);
        }
        /* if: partial */
        if (left.filled > 0 || left.overflowed > 0) {
            md_text_format(note, " %lld", (long long)left.filled);
        }
        if (left.overflowed > 0) {
            md_text_format(note, " %lld", (long long)left.overflowed);
        }
        /* end: partial */
    }
}

MD_COLD int md_checkpoint_save(md_run *r) {
    char bytes[MD_NOTE_BYTES];
    md_text note = md_text_make(bytes, sizeof bytes);
    md_checkpoint_note(r, &note);
    if (note.used + 1 >= note.size) {
        return md_fail(&r->message, MD_EXIT_DATA, "%s: too many trains have left out batches",
                       r->options.checkpoint);
    }
    if (r->damaged == NULL || strcmp(r->damaged, r->options.checkpoint) != 0) {
        snprintf(r->out.keep, sizeof r->out.keep, "%s.old", r->options.checkpoint);
    }
    int rc = md_save_file(&r->out, r->options.checkpoint, r->model, &r->regions, MD_CHECKPOINT,
                          NULL, note.used > 0 ? bytes : NULL, &r->message);
    r->out.keep[0] = 0;
    r->damaged = rc == MD_EXIT_OK ? NULL : r->damaged;
    return rc;
}

/* A scalar i64 of the state by its name in files; 0: there is none, or the file had none. */
MD_COLD int md_checkpoint_number(const md_run *r, const char *name, int64_t *value) {
    size_t number = 0; /* of the row's first slice */
    for (size_t i = 0; i < r->model->tensor_count; i++) {
        const md_tensor *t = &r->model->tensors[i];
        size_t first = number;
        number += md_slice_count(t);
        if (r->seen[first] && t->dtype == MD_I64 && t->rank == 0 && strcmp(t->name, name) == 0) {
            memcpy(value, md_slice_data(t, 0, &r->regions.memory), sizeof *value);
            return 1;
        }
    }
    return 0;
}

MD_COLD int md_checkpoint_load(md_run *r, const char *path) {
    char name[512];
    int64_t seed = 0;
    int rc = md_load_file(path, r->model, &r->regions, MD_CHECKPOINT | MD_LOAD_EXACT, NULL, r->seen,
                          r->note, &r->message);
    int whole = rc != MD_EXIT_OK || md_checkpoint_number(r, "mdlc.seed", &seed);
    for (int i = 0; i < r->task_count && rc == MD_EXIT_OK; i++) {
        md_task *k = &r->tasks[i];
        md_checkpoint_left(k->entry, r->note, &k->left);
        if (k->entry->kind != MD_ENTRY) {
            snprintf(name, sizeof name, "mdlc.%s.step", k->entry->name);
            whole = whole && md_checkpoint_number(r, name, &k->step);
        }
    }
    if (!whole) {
        return md_fail(&r->message, MD_EXIT_DATA,
                       "%s: a file of weights, not a checkpoint of '%s'; --load FILE starts a new "
                       "run from it",
                       path, r->tasks[0].entry->name);
    }
    if (rc == MD_EXIT_OK) {
        r->options.seed = (uint64_t)seed;
        md_best_resume(r, r->note);
        /* if: passes */
        if (r->options.command == MD_RUN_TRAIN) { /* rings have rows now */
            rc = md_plan(r, 1);
        }
        /* end: passes */
    }
    return rc;
}

/* Where the phases of a run go on: trains that take turns have made as many updates, and a phase in
 * front of one that has begun is over. What a train made alone fits only there. */
MD_COLD int md_checkpoint_place(md_run *r) {
    md_select(r, 0);
    /* if: several */
    for (int i = 1; i < r->task_count; i++) {
        const md_task *a = &r->tasks[i - 1], *b = &r->tasks[i];
        if (a->phase == b->phase && a->step != b->step) {
            return md_fail(&r->message, MD_EXIT_DATA,
                           "%s: '%s' has made %lld updates and '%s' %lld, but they take turns",
                           r->options.resume, a->entry->name, (long long)a->step, b->entry->name,
                           (long long)b->step);
        }
        if (a->phase != b->phase && b->step > 0 && a->step < a->steps) {
            return md_fail(&r->message, MD_EXIT_USAGE,
                           "%s: '%s' has made %lld of %lld updates, but '%s' behind it has begun; "
                           "--steps %s=N says how many it was to make",
                           r->options.resume, a->entry->name, (long long)a->step,
                           (long long)a->steps, b->entry->name, a->entry->name);
        }
        if (b->step > 0) {
            md_select(r, i);
        }
    }
    /* end: several */
    return MD_EXIT_OK;
}

/* Goes on from --resume FILE: weights, slots, counters, seed, rings, and the place in the data. */
MD_COLD int md_checkpoint_resume(md_run *r) {
    char first[MD_MESSAGE_BYTES], old[MD_PATH_BYTES + 8];
    const char *path = r->options.resume;
    int rc = md_checkpoint_load(r, path);
    if (rc == MD_EXIT_OK) {
        return md_checkpoint_place(r);
    }
    /* if: spans */
    md_opened_close(&r->regions.from[0]);
    /* end: spans */
    snprintf(first, sizeof first, "%s", r->message.at);
    snprintf(old, sizeof old, "%s.old", path);
    if (strlen(path) >= MD_PATH_BYTES || access(old, F_OK) != 0) {
        return rc;
    }
    r->message = md_text_make(r->message_bytes, sizeof r->message_bytes);
    if (md_checkpoint_load(r, old) == MD_EXIT_OK) {
        rc = md_checkpoint_place(r);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        r->damaged = path;
        md_text_format(&r->message, "%.200s; going on from '%s'", first, old);
        if (r->task->entry->kind != MD_ENTRY) {
            md_text_format(&r->message, ", step %lld", (long long)r->task->step);
        }
        md_complain(r, "warning: ");
        return MD_EXIT_OK;
    }
    r->message = md_text_make(r->message_bytes, sizeof r->message_bytes);
    return md_fail(&r->message, rc, "%.300s; '%s' does not help either", first, old);
}

#endif
