/* SPDX-License-Identifier: 0BSD */
/* canary_report: what a program built with --checks=canary says about an overwritten guard band.
 * Shared with whoever embeds the model. Needs nothing, gives a declaration only. */
#ifndef MD_CANARY_REPORT_H
#define MD_CANARY_REPORT_H

#include <stddef.h>

typedef struct md_damage {
    const char *entry;  /* the function that was called; NULL: nothing was overwritten */
    const char *buffer; /* whose band it is, by its name in that function */
    int step;    /* of the function, as its comments number them: behind it the band was bad */
    int behind;  /* 1: the band behind the buffer, 0: the one in front of it */
    size_t byte; /* the first bad one, counted from the start of the band */
} md_damage;

#endif
