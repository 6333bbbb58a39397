/* SPDX-License-Identifier: 0BSD */
/* team: how many threads a loop gets, and whether they pay.
 *
 * OpenMP's threads spin while they wait for one another. Where another program wants a processor
 * too, one of them does not run at times, all others wait for it through whole slices of the
 * scheduler, and a step takes ten times what it takes on one thread. So each loop on several
 * threads is measured: what its parts took against what the loop took. Where loops have lost
 * MD_TEAM_LOSS, the caller goes on alone for a while, and twice as long whenever a new try loses
 * again. A thread that was stopped is known by a time far above that of another. The bits do not
 * depend on the number of threads, so it may change from loop to loop. Needs md.h and tensor.h; the
 * measurements lie in the instance. */
#ifndef MD_TEAM_H
#define MD_TEAM_H

#include "runtime/md.h"
#include "runtime/tensor.h"

/* Seconds; tests build with other numbers. */
#ifndef MD_TEAM_LOSS
#define MD_TEAM_LOSS 1e-3 /* what a wait of one slice costs at least */
#define MD_TEAM_LONG 2.0  /* the longest rest */
#endif
#define MD_TEAM_NOISE 5e-5 /* a part that takes so much longer than another was stopped */
#define MD_TEAM_REST 8.0   /* a rest is so many times what was lost, at least */

MD_FN double md_clock(void) {
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return 0;
#endif
}

/* The same for the loops of an instance: 1 while its threads do not pay. */
MD_FN int md_team(md_pace *pace, int limit) {
    int n = md_threads(limit);
    if (n > 1 && pace != NULL) {
        pace->fork = md_clock();
        n = pace->fork < pace->until ? 1 : n;
    }
    return n;
}

/* Around a part of such a loop, on the thread that does it. The first part begins with the loop. */
MD_FN double md_part_begin(const md_pace *pace, int part) {
    return pace == NULL ? 0 : part == 0 ? pace->fork : md_clock();
}

MD_FN void md_part_end(md_pace *pace, int part, int parts, double begun) {
    if (pace != NULL && part == 0) {
        pace->first = md_clock() - begun;
    } else if (pace != NULL && part == parts - 1) {
        pace->last = md_clock() - begun;
    }
}

/* The other threads stop spinning until they are called upon: LLVM's would go on for 200 ms. GNU's
 * sleep after some 10 ms, and this call would end them. */
MD_FN void md_team_sleep(void) {
#if defined(_OPENMP) && _OPENMP >= 201811 && defined(__clang__)
    (void)omp_pause_resource_all(omp_pause_soft);
#endif
}

/* What a loop that ended at `now` says of its threads; gives whether they are to rest. */
MD_FN int md_team_weigh(md_pace *pace, int parts, double now) {
    const double least = pace->first < pace->last ? pace->first : pace->last;
    const double most = 4 * least + MD_TEAM_NOISE;
    const double first = pace->first < most ? pace->first : most;
    const double last = pace->last < most ? pace->last : most;
    const double saved = 0.5 * parts * (first + last) - (now - pace->fork);
    pace->fork = now; /* another loop may follow at once */
    pace->saved += saved;
    pace->debt = saved < pace->debt ? pace->debt - saved : 0;
    if (MD_LIKELY(pace->debt <= MD_TEAM_LOSS)) {
        return 0;
    }
    const double twice = pace->saved < 0 ? 2 * pace->rest : 0;
    const double rest = twice > MD_TEAM_REST * pace->debt ? twice : MD_TEAM_REST * pace->debt;
    pace->rest = rest < MD_TEAM_LONG ? rest : MD_TEAM_LONG;
    pace->until = now + pace->rest;
    pace->saved = 0;
    pace->debt = 0;
    return 1;
}

/* Behind the loop. */
MD_FN void md_team_join(md_pace *pace, int parts) {
    if (pace != NULL && md_team_weigh(pace, parts, md_clock())) {
        md_team_sleep();
    }
}

#endif
