/* SPDX-License-Identifier: 0BSD */
/* profiled: what a program that was compiled with --profile knows of its calls, and what it notes
 * of them. Needs nothing, gives declarations only. */
#ifndef MD_PROFILED_H
#define MD_PROFILED_H

#include <stdint.h>

/* What products multiply: floats, doubles, pairs of bfloat16. */
enum { MD_RATE_OF_F32, MD_RATE_OF_F64, MD_RATE_OF_BF16, MD_RATES };

/* A step of an entry, by its number; numbers are of one execution. */
typedef struct md_profiled_step {
    int kernel, layer; /* in the names of the program; kernel -1: a loop, which is not timed */
    int line;          /* of the source, 0: none */
    int as;            /* its products multiply so: MD_RATE_... */
    const char *part;  /* "forward", or "" */
    int64_t flops, products, bytes;
} md_profiled_step;

typedef struct md_profiled {
    const char *name, *kind; /* "fit", "train" */
    const md_profiled_step *steps;
    int count, first; /* of its notes among all: one a step, then one of whole calls */
    /* FLOPs that the products of a call need, by what they multiply; bytes that must move once */
    int64_t products[MD_RATES], bytes_once;
} md_profiled;

typedef struct md_profile_names {
    const char *const *kernels;
    int kernel_count;
    const char *const *layers;
    int layer_count;
} md_profile_names;

/* Executions, and nanoseconds. */
typedef struct md_profile_sum {
    int64_t times, took;
} md_profile_sum;

/* A row of a table that is printed. */
typedef struct md_profile_row {
    int64_t times, took;
    double flops, bytes, limit; /* of all executions; seconds */
    int of;                     /* number of the step, kernel or layer */
} md_profile_row;

typedef struct md_profile_event {
    int64_t start, took;
    int32_t entry, step; /* step -1: the whole call */
} md_profile_event;

typedef struct md_profile {
    md_profile_sum *all, *sums; /* of all entries; of the one under way, or NULL */
    md_profile_event *events;   /* the last ones, by turns */
    int64_t room, seen;
    int64_t begun, last; /* when the call and its step began */
    int entry;
} md_profile;

#endif
