/* SPDX-License-Identifier: 0BSD */
/* json: a strict pull reader for the headers of safetensors files.
 *
 * Reads through a callback and a window of fixed size, so that a header of any length needs no
 * memory of its own. Takes RFC 8259 with these limits: nesting is bounded, strings by the caller's
 * buffer, numbers that are asked for are integers from 0 to 2^63 - 1. After the first fault every
 * function does nothing, and `why` says what was wrong at byte `at` of the file.
 * Needs md.h and tensor.h, gives values one by one. */
#ifndef MD_JSON_H
#define MD_JSON_H

#include "runtime/md.h"
#include "runtime/tensor.h"

enum { MD_JSON_DEPTH = 16, MD_JSON_WINDOW = 1024 };

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

/* The next byte without taking it; -1 at the end and after a fault. */
MD_COLD int md_json_peek(md_json *j) {
    size_t at = (size_t)((j->at - j->begin) % MD_JSON_WINDOW);
    if (j->at == j->have && j->at < j->end && j->why == NULL) {
        size_t room = MD_JSON_WINDOW - at;
        size_t want = j->end - j->at < room ? (size_t)(j->end - j->at) : room;
        if (j->read(j->user, j->at, j->window + at, want) != 0) {
            md_json_fault(j, "the header is cut short or cannot be read");
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

/* Takes the next byte if it is one of these. */
MD_COLD int md_json_any(md_json *j, const char *of) {
    int c = md_json_peek(j);
    while (*of != 0 && *of != c) {
        of++;
    }
    j->at += *of != 0;
    return *of != 0;
}

/* Skips white space and gives the byte behind it, not taken. */
MD_COLD int md_json_ahead(md_json *j) {
    while (md_json_any(j, " \t\n\r")) {
    }
    return md_json_peek(j);
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

/* What an escape stands for, in UTF-8; gives its length. */
MD_COLD size_t md_json_escape(md_json *j, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = md_json_next(j);
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

/* A string, unescaped and NUL-terminated in out[size]. Longer ones are a fault: nothing that a
 * model asks for is that long. With a NULL `out` it is read and forgotten. */
MD_COLD void md_json_string(md_json *j, char *out, size_t size) {
    size_t used = 0;
    int c = 0;
    md_json_expect(j, '"', "a string was expected");
    while ((c = md_json_next(j)) >= 0 && c != '"') {
        char piece[4] = {(char)c, 0, 0, 0};
        size_t n = c == '\\' ? md_json_escape(j, piece) : 1;
        if (c < 0x20) {
            md_json_fault(j, "a control character in a string");
        } else if (out != NULL && used + n >= size) {
            md_json_fault(j, "a string is too long");
        } else if (out != NULL) {
            memcpy(out + used, piece, n);
            used += n;
        }
    }
    if (c < 0) {
        md_json_fault(j, "a string does not end");
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

MD_COLD uint64_t md_json_integer(md_json *j) {
    uint64_t value = 0;
    int digits = 0, c = md_json_ahead(j), zero = c == '0';
    for (; c >= '0' && c <= '9'; digits++) {
        uint64_t digit = (uint64_t)(c - '0');
        if (value > ((uint64_t)INT64_MAX - digit) / 10) {
            md_json_fault(j, "a number is too large");
            return 0;
        }
        value = value * 10 + digit;
        j->at++;
        c = md_json_peek(j);
    }
    if (digits == 0 || (zero && digits > 1) || c == '.' || c == 'e' || c == 'E') {
        md_json_fault(j, "a whole number from 0 up was expected");
    }
    return value;
}

/* [1, 2, 3] into out[size]; gives the count. */
MD_COLD int md_json_integers(md_json *j, uint64_t *out, int size) {
    int n = 0;
    md_json_expect(j, '[', "a list was expected");
    if (md_json_take(j, ']')) {
        return 0;
    }
    do {
        uint64_t value = md_json_integer(j);
        if (n == size) {
            md_json_fault(j, "a list is too long");
            return n;
        }
        out[n++] = value;
    } while (md_json_more(j, ']', "a list does not end"));
    return n;
}

MD_COLD void md_json_digits(md_json *j) {
    int digits = 0;
    while (md_json_any(j, "0123456789")) {
        digits++;
    }
    if (digits == 0) {
        md_json_fault(j, "a value was expected");
    }
}

/* A word or a number of any form; its value is nobody's business. */
MD_COLD void md_json_plain(md_json *j) {
    int c = md_json_peek(j);
    const char *word = c == 't' ? "true" : c == 'f' ? "false" : c == 'n' ? "null" : NULL;
    for (; word != NULL && *word != 0; word++) {
        if (md_json_next(j) != *word) {
            md_json_fault(j, "an unknown word");
        }
    }
    if (word != NULL) {
        return;
    }
    (void)md_json_any(j, "-");
    if (!md_json_any(j, "0")) { /* behind which nothing but a point or an exponent may follow */
        md_json_digits(j);
    }
    if (md_json_any(j, ".")) {
        md_json_digits(j);
    }
    if (md_json_any(j, "eE")) {
        (void)md_json_any(j, "+-");
        md_json_digits(j);
    }
}

/* Skips one value of any kind, without recursion. */
MD_COLD void md_json_skip(md_json *j) {
    char close[MD_JSON_DEPTH];
    int depth = 0;
    do {
        int c = md_json_ahead(j);
        if (c == '"') {
            md_json_string(j, NULL, 0);
        } else if (c != '{' && c != '[') {
            md_json_plain(j);
        } else if (depth == MD_JSON_DEPTH) {
            md_json_fault(j, "nested too deeply");
        } else {
            j->at++;
            close[depth++] = c == '{' ? '}' : ']';
            if (!md_json_take(j, close[depth - 1])) {
                if (c == '{') {
                    md_json_key(j, NULL, 0);
                }
                continue;
            }
            depth--;
        }
        while (depth > 0 && !md_json_more(j, close[depth - 1], "',' was expected")) {
            depth--;
        }
        if (depth > 0 && close[depth - 1] == '}') {
            md_json_key(j, NULL, 0);
        }
    } while (depth > 0);
}

#endif
