/* SPDX-License-Identifier: 0BSD */
/* shared: what files of one program have in common beside what md.h has for it. */
#ifndef MD_SHARED_H
#define MD_SHARED_H

#include "runtime/md.h"

/* In the place of MD_COLD: defined in one file, called from others. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define MD_SHARED_COLD MD_SHARED __attribute__((cold, noinline, optimize("Og")))
#elif defined(__GNUC__)
#define MD_SHARED_COLD MD_SHARED __attribute__((cold))
#else
#define MD_SHARED_COLD MD_SHARED
#endif

#endif
