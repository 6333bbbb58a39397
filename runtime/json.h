/* SPDX-License-Identifier: 0BSD */
/* json: a strict pull reader for the headers of safetensors files.
 *
 * Reads through a callback and a window of fixed size, so that a header of any length needs no
 * memory of its own. Takes what these headers hold of RFC 8259: objects, strings as long as the
 * caller's buffer, lists of integers from 0 to 2^63 - 1. After the first fault every function does
 * nothing, and `why` says what was wrong at byte `at` of the file.
 * Needs md.h and tensor.h, gives values one by one. */
#ifndef MD_JSON_H
#define MD_JSON_H

#include "runtime/md.h"
#include "runtime/tensor.h"

enum { MD_JSON_WINDOW = 1024 };

typedef struct md_json {
    md_read_fn read;
    void *user;
    uint64_t begin, end; /* of the text in the file */
    uint64_t at, have;   /* the next byte, and what is behind the window */
    const char *why;     /* NULL: no fault so far */
    unsigned char window[MD_JSON_WINDOW];
} md_json;

MD_COLD void md_json_start(md_json *j, md_read_fn read, void *user, uint64_t begin, uint64_t end) {
    j->read = read;
    j->user = user;
    j->begin = j->at = j->have = begin;
    j->end = end;
    j->why = NULL;
}

MD_COLD void md_json_fault(md_json *j, const char *why) {
    j->why = j->why == NULL ? why : j->why;
}

static const char md_json_unread[] = "the header is cut short or cannot be read";

/* The next byte without taking it; -1 at the end and after a fault. */
MD_COLD int md_json_peek(md_json *j) {
    size_t at = (size_t)((j->at - j->begin) % MD_JSON_WINDOW);
    if (j->at == j->have && j->at < j->end && j->why == NULL) {
        size_t room = MD_JSON_WINDOW - at;
        size_t want = j->end - j->at < room ? (size_t)(j->end - j->at) : room;
        if (j->read(j->user, j->at, j->window + at, want) != 0) {
            md_json_fault(j, md_json_unread);
        }
        j->have += want;
    }
    return j->at < j->end && j->why == NULL ? j->window[at] : -1;
}

MD_COLD int md_json_next(md_json *j) {
    int c = md_json_peek(j);
    j->at += c >= 0;
    return c;
}

/* Skips white space and gives the byte behind it, not taken. */
MD_COLD int md_json_ahead(md_json *j) {
    int c = md_json_peek(j);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        j->at++;
        c = md_json_peek(j);
    }
    return c;
}

/* Takes `c` if it comes next. */
MD_COLD int md_json_take(md_json *j, int c) {
    int is = md_json_ahead(j) == c;
    j->at += is != 0;
    return is;
}

MD_COLD void md_json_expect(md_json *j, int c, const char *why) {
    if (!md_json_take(j, c)) {
        md_json_fault(j, why);
    }
}

/* Behind a member: does another one follow? Else `close` must. */
MD_COLD int md_json_more(md_json *j, int close, const char *why) {
    int more = md_json_take(j, ',');
    if (!more) {
        md_json_expect(j, close, why);
    }
    return more;
}

/* if: escapes */
MD_COLD uint32_t md_json_hex(md_json *j) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = md_json_next(j), letter = (c | 32) - 'a';
        int digit = c >= '0' && c <= '9' ? c - '0' : letter >= 0 && letter < 6 ? letter + 10 : -1;
        if (digit < 0) {
            md_json_fault(j, "an escape \\u needs four hexadecimal digits");
            return 0;
        }
        value = value << 4 | (uint32_t)digit;
    }
    return value;
}

/* What the escape with character `c` stands for, in UTF-8; gives its length. */
MD_COLD size_t md_json_escape(md_json *j, int c, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    for (size_t i = 0; i + 1 < sizeof from; i++) {
        if (from[i] == c) {
            out[0] = to[i];
            return 1;
        }
    }
    if (c != 'u') {
        md_json_fault(j, "an unknown escape in a string");
    }
    uint32_t point = md_json_hex(j), low = 0xDC00;
    int pair = point >= 0xD800 && point < 0xDC00;
    if (pair) {
        low = md_json_next(j) == '\\' && md_json_next(j) == 'u' ? md_json_hex(j) : 0;
    }
    if (low < 0xDC00 || low >= 0xE000 || (point >= 0xDC00 && point < 0xE000)) {
        md_json_fault(j, "half of a surrogate pair");
    } else if (point == 0) {
        md_json_fault(j, "a NUL in a string");
    }
    point = pair ? 0x10000 + ((point - 0xD800) << 10) + ((low - 0xDC00) & 0x3FF) : point;
    size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    out[0] = (char)((n > 1 ? 0xF00u >> n & 0xF0 : 0) | point);
    return n;
}

/* end: escapes */

/* A string, unescaped and NUL-terminated in out[size]. Longer ones are a fault: nothing that a
 * model asks for is that long. With a NULL `out` it is read and forgotten. */
MD_COLD void md_json_string(md_json *j, char *out, size_t size) {
    size_t used = 0;
    int c = 0;
    md_json_expect(j, '"', "a string was expected");
    while ((c = md_json_next(j)) >= 0x20 && c != '"') {
        char piece[4] = {(char)c, 0, 0, 0};
        size_t n = 1;
        if (c == '\\') { /* without names that have one it stays as it stands */
            piece[n++] = (char)md_json_next(j);
            /* if: escapes */
            n = md_json_escape(j, piece[1], piece);
            /* end: escapes */
        }
        if (out != NULL && used + n >= size) {
            md_json_fault(j, "a string is too long");
        } else if (out != NULL) {
            memcpy(out + used, piece, n);
            used += n;
        }
    }
    if (c != '"') {
        md_json_fault(j, c < 0 ? "a string does not end" : "a control character in a string");
    }
    if (out != NULL) {
        out[used] = 0;
    }
}

/* What stands before the value of a member. */
MD_COLD void md_json_key(md_json *j, char *out, size_t size) {
    md_json_string(j, out, size);
    md_json_expect(j, ':', "':' was expected");
}

/* [1, 2, 3] into out[size]; gives the count. */
MD_COLD int md_json_integers(md_json *j, uint64_t *out, int size) {
    int n = 0;
    md_json_expect(j, '[', "a list was expected");
    if (md_json_take(j, ']')) {
        return 0;
    }
    do {
        uint64_t value = 0, digits = 0;
        int c = md_json_ahead(j);
        const int zero = c == '0'; /* behind which no digit follows */
        for (; c >= '0' && c <= '9'; digits++) {
            const uint64_t digit = (uint64_t)(c - '0');
            if (value > ((uint64_t)INT64_MAX - digit) / 10) {
                md_json_fault(j, "a number is too large");
                return n;
            }
            value = value * 10 + digit;
            j->at++;
            c = md_json_peek(j);
        }
        if (digits == 0 || (zero && digits > 1)) {
            md_json_fault(j, "a whole number from 0 up was expected");
        } else if (n == size) {
            md_json_fault(j, "a list is too long");
        } else {
            out[n++] = value;
        }
    } while (md_json_more(j, ']', "a list of whole numbers does not end"));
    return n;
}

#endif
