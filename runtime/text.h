/* SPDX-License-Identifier: 0BSD */
/* text: builds short texts in a buffer of the caller, without stdio and without allocation.
 *
 * What does not fit is cut and marked with "..." at the end; a NULL text swallows everything, so
 * that callers who want no message pass none. Needs md.h, gives NUL-terminated text. */
#ifndef MD_TEXT_H
#define MD_TEXT_H

#include "runtime/md.h"

typedef struct md_text {
    char *at;
    size_t size, used; /* used < size, at[used] == 0 */
} md_text;

MD_COLD md_text md_text_make(char *buffer, size_t size) {
    md_text t;
    t.at = buffer;
    t.size = size;
    t.used = 0;
    buffer[0] = 0;
    return t;
}

MD_FN void md_text_bytes(md_text *t, const char *bytes, size_t count) {
    if (t == NULL) {
        return;
    }
    size_t room = t->size - 1 - t->used;
    size_t take = count < room ? count : room;
    memcpy(t->at + t->used, bytes, take);
    t->used += take;
    t->at[t->used] = 0;
    if (take < count && t->used >= 3) {
        memcpy(t->at + t->used - 3, "...", 3);
    }
}

/* The model part calls nothing of <string.h> but mem*: it must link without a C library. */
MD_COLD int md_text_same(const char *a, const char *b) {
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

MD_COLD int md_text_starts(const char *s, const char *prefix) {
    while (*prefix != 0 && *s == *prefix) {
        s++;
        prefix++;
    }
    return *prefix == 0;
}

MD_COLD void md_text_add(md_text *t, const char *s) {
    for (; *s != 0; s++) {
        md_text_bytes(t, s, 1);
    }
}

/* A number in the end of a buffer. */
enum { MD_DIGITS = 21 };
MD_COLD const char *md_digits(char *buffer, uint64_t value) {
    char *at = buffer + MD_DIGITS - 1;
    *at = 0;
    do {
        *--at = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    return at;
}

MD_COLD void md_text_u64(md_text *t, uint64_t value) {
    char digits[MD_DIGITS];
    md_text_add(t, md_digits(digits, value));
}

MD_COLD void md_text_i64(md_text *t, int64_t value) {
    if (value < 0) {
        md_text_add(t, "-");
        md_text_u64(t, (uint64_t)0 - (uint64_t)value);
    } else {
        md_text_u64(t, (uint64_t)value);
    }
}

/* "[128, 64]" */
MD_COLD void md_text_shape(md_text *t, const int64_t *shape, int rank) {
    md_text_add(t, "[");
    for (int i = 0; i < rank; i++) {
        md_text_add(t, i > 0 ? ", " : "");
        md_text_i64(t, shape[i]);
    }
    md_text_add(t, "]");
}

#endif
