/* SPDX-License-Identifier: 0BSD */
/* format: what a data file holds, by the ending of its name.
 *
 * One table for the programs, for the compiler, which prints the readers of the files that a model
 * names alone, and for its templates. A program that reads neither bytes nor IDX knows arrays by
 * their first bytes. Needs nothing, gives md_format_of. */
#ifndef MD_FORMAT_H
#define MD_FORMAT_H

#include "runtime/md.h"

#include <string.h>

typedef enum md_format {
    MD_FORMAT_AUTO, /* the ending says nothing: by the first bytes */
    MD_FORMAT_CSV,
    MD_FORMAT_NPY,
    /* if: guessed */
    MD_FORMAT_IDX, /* also gzip */
    /* end: guessed */
    MD_FORMAT_U8, /* text and raw bytes; what nothing else is */
    /* if: guessed */
    MD_FORMAT_U16, /* raw little-endian elements */
    MD_FORMAT_I32
    /* end: guessed */
} md_format;

/* The format by the ending; MD_FORMAT_AUTO when it says nothing. */
MD_COLD md_format md_format_of(const char *path) {
    static const struct {
        const char *tail;
        md_format format;
    } table[] = {
        {".csv", MD_FORMAT_CSV},
        {".npy", MD_FORMAT_NPY},
        /* if: guessed */
        {".u8", MD_FORMAT_U8},
        {".txt", MD_FORMAT_U8},
        {".bin", MD_FORMAT_U8},
        {".md", MD_FORMAT_U8},
        {".u16", MD_FORMAT_U16},
        {".i32", MD_FORMAT_I32},
        {".idx", MD_FORMAT_IDX},
        {"-ubyte", MD_FORMAT_IDX},
        {".gz", MD_FORMAT_IDX},
        /* end: guessed */
    };
    for (size_t i = 0, n = strlen(path); i < sizeof table / sizeof *table; i++) {
        const size_t k = strlen(table[i].tail);
        if (n >= k && strcmp(path + n - k, table[i].tail) == 0) {
            return table[i].format;
        }
    }
    return MD_FORMAT_AUTO;
}

#endif
