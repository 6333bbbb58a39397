/* SPDX-License-Identifier: 0BSD */
/* sort_plan: what the ways of sort.h need of workspace, in bytes, multiples of a cache line.
 * The compiler plans with it, emitted programs run with it. Needs nothing of the runtime; pure
 * functions. */
#ifndef MD_SORT_PLAN_H
#define MD_SORT_PLAN_H

#include "runtime/md.h"

enum {
    MD_SORT_SHORT = 128, /* lines of so many elements are ordered by comparing all */
    MD_SORT_PAIRS = 24,  /* of so many each pair is met once */
    MD_SORT_FEW = 16,    /* so many best ones are kept in order */
    MD_SORT_STEP = 32,   /* keys that are looked at one by one where any of them is less */
    MD_SORT_BLOCK = 256, /* keys that are made and compared at once */
    MD_SORT_SPARE = 128, /* room of a list of candidates beside twice what is asked for, */
    MD_SORT_LINE = 64    /* bytes of a cache line */
};

MD_FN int64_t md_sort_round(int64_t bytes) {
    return (bytes + MD_SORT_LINE - 1) / MD_SORT_LINE * MD_SORT_LINE;
}

/* Pairs, or keys, of n elements whose keys have `bits` bits. */
MD_FN int64_t md_sort_pairs(int64_t n, int bits) {
    return md_sort_round(n * (bits == 64 ? 16 : 8));
}

MD_FN int64_t md_sort_keys(int64_t n, int bits) {
    return md_sort_round(n * (bits == 64 ? 8 : 4));
}

/* Of one line of n elements. */
MD_FN int64_t md_sort_line_bytes(int64_t n, int bits) {
    return n <= MD_SORT_SHORT ? md_sort_keys(MD_SORT_BLOCK, bits) + md_sort_round(n * 4)
                              : 2 * md_sort_pairs(n, bits);
}

/* Of a line by several threads, which count its digits. */
MD_FN int64_t md_sort_long_bytes(int64_t n, int bits, int threads) {
    return md_sort_line_bytes(n, bits) + (int64_t)threads * (bits / 8) * 256 * 4;
}

/* Candidates that a line's list of the first `most` of n has room for. */
MD_FN int64_t md_sort_room(int64_t n, int64_t most) {
    const int64_t room = 2 * most + MD_SORT_SPARE;
    return most <= MD_SORT_FEW ? most : n < room ? n : room;
}

/* Of one line, or one stretch of it, of which the first `most` are asked for. */
MD_FN int64_t md_sort_first_bytes(int64_t n, int64_t most, int bits) {
    const int64_t room = md_sort_room(n, most);
    const int64_t list = md_sort_pairs(room, bits), block = md_sort_keys(MD_SORT_BLOCK, bits);
    return most <= MD_SORT_FEW ? block + list : block + 2 * list;
}

#endif
