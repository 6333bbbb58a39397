/* SPDX-License-Identifier: 0BSD */
/* team: how many threads a loop gets, and whether they pay.
 *
 * OpenMP's threads spin while they wait for one another. Where another program wants a processor
 * too, one of them does not run at times, all others wait for it through whole slices of the
 * scheduler, and a step takes ten times what it takes on one thread. So loops on several threads
 * are measured, what their parts took against what the loop took: of short ones some, and all
 * behind a gap that may have been a wait. Where loops have lost MD_TEAM_LOSS, the caller goes on
 * alone for a while, and twice as long whenever a new try loses again. A thread that was stopped is
 * known by a time far above that of another. The bits do not depend on the number of threads, so it
 * may change from loop to loop. Needs md.h and tensor.h; the measurements lie in the instance. */
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
#define MD_TEAM_GAP 3e-4   /* between the starts of two loops: the next ones are measured, */
enum {
    MD_TEAM_WATCH = 64, /* so many, */
    MD_TEAM_EACH = 7,   /* and of others one of so many, which counts for all of them */
    MD_TEAM_REST = 16   /* a rest is so many times what was lost, at least */
};

MD_FN double md_clock(void) {
#ifdef MD_OPENMP
    return omp_get_wtime();
#else
    return 0;
#endif
}

/* if: calls */
/* Threads whose cores share no cache fetch from each other what the loop before wrote, inside of
 * their parts, where the measurements above take it for work. So calls that are over soon are tried
 * the other way now and then, and the faster way is kept. */
enum {
    MD_CALLS_TIMED = 6,   /* each way, of which */
    MD_CALLS_FIRST = 2,   /* come first and do not count: caches, threads that wake */
    MD_CALLS_MOST = 2000, /* from one trial to the next */
    MD_CALLS_OFTEN = 32   /* and the least; each trial that changes nothing doubles it */
};
#ifndef MD_CALLS_LONG
#define MD_CALLS_LONG 5e-3 /* seconds; longer calls do not wait for cores */
#endif

/* Around a call that begins, or ends, at `now`. */
MD_FN void md_calls_begin(md_pace *pace, md_calls *c, double now) {
    const int other = c->at >= c->every + MD_CALLS_TIMED;
    pace->alone = c->alone ^ other;
    c->begun = c->at < c->every ? 0 : now;
}

MD_FN void md_calls_end(md_pace *pace, md_calls *c, double now) {
    const int timed = c->at - c->every, way = pace->alone;
    pace->alone = 0;
    c->at++;
    if (c->begun > 0 && timed % MD_CALLS_TIMED >= MD_CALLS_FIRST) {
        const double took = now - c->begun;
        const int first = timed % MD_CALLS_TIMED == MD_CALLS_FIRST;
        c->least[way] = first || took < c->least[way] ? took : c->least[way];
    }
    const int lasts = timed == MD_CALLS_TIMED - 1 && c->least[way] > MD_CALLS_LONG;
    if (!lasts && timed < 2 * MD_CALLS_TIMED - 1) {
        return;
    }
    const int change = !lasts && c->least[!c->alone] < 0.95 * c->least[c->alone];
    c->alone = lasts ? 0 : c->alone ^ change;
    c->every = change ? MD_CALLS_OFTEN : 2 * c->every + MD_CALLS_OFTEN;
    c->every = c->every < MD_CALLS_MOST ? c->every : MD_CALLS_MOST;
    c->at = 0;
}
/* end: calls */

/* Whether a loop that begins at `now` may have threads, and whether it is measured. */
MD_FN int md_team_pays(md_pace *pace, double now) {
    if (now < pace->until) {
        return 0;
    }
    if (now - pace->fork > MD_TEAM_GAP) {
        pace->watch = MD_TEAM_WATCH;
    }
    pace->count = pace->count == 0 ? MD_TEAM_EACH - 1 : pace->count - 1;
    pace->weight = pace->watch > 0 ? 1 : pace->count == 0 ? MD_TEAM_EACH : 0;
    pace->watch -= pace->watch > 0;
    pace->fork = now;
    return 1;
}

/* md_threads for the loops of an instance: 1 while its threads do not pay. */
MD_FN int md_team(md_pace *pace, int limit) {
    const int n = md_threads(limit);
    if (n == 1 || pace == NULL || pace->alone) {
        return pace == NULL ? n : 1;
    }
    if (pace->fork <= 0) {
        md_threads_settle();
    }
    return md_team_pays(pace, md_clock()) ? n : 1;
}

/* Around a part of such a loop, on the thread that does it. The first part begins with the loop. */
MD_FN double md_part_begin(const md_pace *pace, int part) {
    return pace == NULL || pace->weight == 0 ? 0 : part == 0 ? pace->fork : md_clock();
}

MD_FN void md_part_end(md_pace *pace, int part, int parts, double begun) {
    if (begun > 0 && part == 0) {
        pace->first = md_clock() - begun;
    } else if (begun > 0 && part == parts - 1) {
        pace->last = md_clock() - begun;
    }
}

/* What a loop that ended at `now` says of its threads. */
MD_FN void md_team_weigh(md_pace *pace, int parts, double now) {
    const double least = pace->first < pace->last ? pace->first : pace->last;
    const double most = 4 * least + MD_TEAM_NOISE;
    const double first = pace->first < most ? pace->first : most;
    const double last = pace->last < most ? pace->last : most;
    double saved = 0.5 * parts * (first + last) - (now - pace->fork);
    saved *= saved < -MD_TEAM_NOISE ? 1 : pace->weight; /* a wait is no habit */
    pace->fork = now;                                   /* another loop may follow at once */
    pace->saved += saved;
    pace->debt = saved < pace->debt ? pace->debt - saved : 0;
    if (pace->debt <= MD_TEAM_LOSS) {
        return;
    }
    /* Threads that have paid on the whole are asked again soon. */
    double rest = 2 * pace->debt;
    if (pace->saved < 0) {
        rest = (double)MD_TEAM_REST * pace->debt;
        rest = rest > 2 * pace->rest ? rest : 2 * pace->rest;
    }
    pace->rest = rest < MD_TEAM_LONG ? rest : MD_TEAM_LONG;
    pace->until = now + pace->rest;
    pace->saved = 0;
    pace->debt = 0;
}

/* Behind the loop. */
MD_FN void md_team_join(md_pace *pace, int parts) {
    if (pace != NULL && pace->weight > 0) {
        md_team_weigh(pace, parts, md_clock());
    }
}

/* Part `part` of `parts` of a loop; `args`: what it reads and writes. */
typedef void (*md_loop_fn)(const void *args, int part, int parts);

/* A loop of at most `most` parts on a team of up to `threads`, of which some may find nothing to
 * do. A team of one is none. */
MD_NOINLINE void md_team_run(md_pace *pace, int threads, int most, md_loop_fn fn,
                             const void *args) {
    const int team = md_team(pace, threads), parts = team < most ? team : most;
    if (parts == 1) {
        fn(args, 0, 1);
        return;
    }
    MD_OMP(parallel for schedule(static, 1) num_threads(team))
    for (int part = 0; part < parts; part++) {
        const double begun = md_part_begin(pace, part);
        fn(args, part, parts);
        md_part_end(pace, part, parts, begun);
    }
    md_team_join(pace, parts);
}

/* if: HELPED */
/* A loop whose shares are begun unit by unit: each worker begins those of its own in order, and who
 * is done begins those of others from their last one on. So all end together though one was stopped
 * or is slower, and mostly each touches what it touched before. Who did what changes no bit. */
enum { MD_HELP_TEAM = 64, MD_HELP_UNITS = 128 }; /* workers, most; units of each, most */
typedef struct md_help {
    uint32_t begun[MD_HELP_TEAM]; /* of whose units: by itself, and by others, times 65536 */
    int did[MD_HELP_TEAM];        /* by whom */
    int parts, units;
} md_help;

/* NULL: a team so large that each does its own share. */
MD_FN md_help *md_help_open(md_help *h, int parts, double units) {
    h->parts = parts;
    h->units = units < MD_HELP_UNITS ? (int)units : MD_HELP_UNITS;
    for (int i = 0; i < parts && i < MD_HELP_TEAM; i++) {
        h->begun[i] = 0;
        h->did[i] = 0;
    }
    return parts > MD_HELP_TEAM ? NULL : h;
}

/* The unit that worker `part` does next, of the share of *of, which begins as its own; -1: all are
 * begun. Nobody goes back to a share that had none left. */
MD_FN int md_help_next(md_help *h, int part, int *of) {
    do {
        const uint32_t one = *of == part ? 1 : 65536;
        uint32_t was;
        MD_OMP(atomic capture) {
            was = h->begun[*of];
            h->begun[*of] += one;
        }
        const int front = (int)(was % 65536), back = (int)(was / 65536);
        if (front + back < h->units) {
            h->did[part]++;
            return one == 1 ? front : h->units - 1 - back;
        }
        *of = (*of + 1) % h->parts;
    } while (*of != part);
    return -1;
}

/* In front of md_team_join: what the first and the last share would have taken their workers. */
MD_FN void md_help_close(const md_help *h, md_pace *pace) {
    if (h == NULL || pace == NULL || pace->weight == 0) {
        return;
    }
    const int first = h->did[0], last = h->did[h->parts - 1];
    pace->first *= first > 0 ? (double)h->units / first : 1;
    pace->last *= last > 0 ? (double)h->units / last : 1;
    pace->first = first > 0 ? pace->first : pace->last; /* it came when all was begun */
    pace->last = last > 0 ? pace->last : pace->first;
}
/* end: HELPED */

#endif
