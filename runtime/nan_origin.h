/* SPDX-License-Identifier: 0BSD */
/* nan_origin: where a value that is no number came from. Shared with whoever embeds a model built
 * with --checks=nan. Needs nothing, gives declarations only. */
#ifndef MD_NAN_ORIGIN_H
#define MD_NAN_ORIGIN_H

#include <stdint.h>

/* A step of a train, or what it reads. */
typedef struct md_place {
    const char *where; /* "net.mdl:14"; "" where the source has no line for it */
    const char *what;  /* "log(x * w)"; "parameter net.fc.weight"; NULL: it is not looked at */
    int given;         /* 1: a parameter, state or input, not computed in this call */
} md_place;

/* if: again */
/* Numbers in a region (md_region) that a place gives; `form` as md_trace_rows takes it. */
typedef struct md_look {
    int place, region;
    int64_t offset;
    int form;
    int64_t count;
} md_look;

/* end: again */
/* The places of one train. What place i is computed from are the places from[first[i]] ..
 * from[first[i + 1] - 1]. */
typedef struct md_traced {
    const char *entry;
    const md_place *places;
    int count;
    const int *first;
    const int *from;
    /* if: again */
    const md_look *looks;
    int look_count;
    /* end: again */
} md_traced;

#endif
