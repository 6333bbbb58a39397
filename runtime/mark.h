/* SPDX-License-Identifier: 0BSD */
/* mark: notes how long the steps of a call take, in a program that was compiled with --profile.
 *
 * Behind each step the clock is read once: what has gone by since the step before belongs to it, so
 * that the steps of a call leave no gap, and a step's time holds one reading of the clock. All on
 * the thread that calls. Memory stands in front (profile.h); a NULL notes nothing. */
#ifndef MD_MARK_H
#define MD_MARK_H

#include "runtime/profiled.h"
#include "runtime/rates.h"

MD_FN void md_profile_note(md_profile *p, md_profile_sum *sum, int step, int64_t start,
                           int64_t now) {
    sum->times++;
    sum->took += now - start;
    if (p->room > 0) {
        md_profile_event *event = &p->events[p->seen++ % p->room];
        event->start = start;
        event->took = now - start;
        event->entry = p->entry;
        event->step = step;
    }
}

/* In front of a call of entry number `entry`, whose notes begin at `first`. */
MD_FN void md_profile_open(md_profile *p, int entry, int first) {
    if (p != NULL) {
        p->entry = entry;
        p->sums = p->all + first;
        p->begun = p->last = md_nanoseconds();
    }
}

/* Behind step number `step` of it. */
MD_FN void md_profile_mark(md_profile *p, int step) {
    if (p != NULL && p->sums != NULL) {
        int64_t now = md_nanoseconds();
        md_profile_note(p, &p->sums[step], step, p->last, now);
        p->last = now;
    }
}

/* Behind the call, of an entry of `count` steps. */
MD_FN void md_profile_close(md_profile *p, int count) {
    if (p != NULL && p->sums != NULL) {
        md_profile_note(p, &p->sums[count], -1, p->begun, md_nanoseconds());
        p->sums = NULL;
    }
}

#endif
