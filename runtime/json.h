/* SPDX-License-Identifier: 0BSD */
/* json: a strict pull reader for the headers of safetensors files.
 *
 * Reads through a callback and a window of fixed size, so that a header of any length needs no
 * memory of its own. Takes RFC 8259 with these limits: nesting is bounded, strings by the caller's
 * buffer, numbers that are asked for are integers from 0 to 2^63 - 1. After the first fault every
 * function does nothing, and `why` says what was wrong at byte `where` of the file.
 * Needs md.h and tensor.h, gives values one by one. */
#ifndef MD_JSON_H
#define MD_JSON_H

#include "runtime/tensor.h"
#include "runtime/text.h"

enum { MD_JSON_DEPTH = 16, MD_JSON_WINDOW = 1024 };

typedef struct md_json {
    md_read_fn read;
    void *user;
    uint64_t next, end; /* file offsets: what the window gets next, end of the text */
    size_t have, pos;   /* bytes in the window, read position in it */
    const char *why;    /* NULL: no fault so far */
    uint64_t where;
    unsigned char window[MD_JSON_WINDOW];
} md_json;

MD_COLD void md_json_start(md_json *j, md_read_fn read, void *user, uint64_t begin, uint64_t end) {
    j->read = read;
    j->user = user;
    j->next = begin;
    j->end = end;
    j->have = 0;
    j->pos = 0;
    j->why = NULL;
    j->where = 0;
}

MD_COLD void md_json_fault(md_json *j, const char *why) {
    if (j->why == NULL) {
        j->why = why;
        j->where = j->next - j->have + j->pos;
    }
}

/* The next byte without taking it; -1 at the end and after a fault. */
MD_COLD int md_json_peek(md_json *j) {
    if (j->why != NULL) {
        return -1;
    }
    if (j->pos == j->have) {
        uint64_t left = j->end - j->next;
        size_t want = left < sizeof j->window ? (size_t)left : sizeof j->window;
        if (want == 0) {
            return -1;
        }
        if (j->read(j->user, j->next, j->window, want) != 0) {
            md_json_fault(j, "the header is cut short or cannot be read");
            return -1;
        }
        j->next += want;
        j->have = want;
        j->pos = 0;
    }
    return j->window[j->pos];
}

MD_COLD int md_json_next(md_json *j) {
    int c = md_json_peek(j);
    if (c >= 0) {
        j->pos++;
    }
    return c;
}

/* Skips white space and gives the byte behind it, not taken. */
MD_COLD int md_json_ahead(md_json *j) {
    int c = md_json_peek(j);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        j->pos++;
        c = md_json_peek(j);
    }
    return c;
}

/* Takes `c` if it comes next. */
MD_COLD int md_json_take(md_json *j, int c) {
    if (md_json_ahead(j) != c) {
        return 0;
    }
    j->pos++;
    return 1;
}

MD_COLD void md_json_expect(md_json *j, int c, const char *why) {
    if (!md_json_take(j, c)) {
        md_json_fault(j, why);
    }
}

MD_COLD uint32_t md_json_hex(md_json *j) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = md_json_next(j);
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0) {
            md_json_fault(j, "an escape \\u needs four hexadecimal digits");
            return 0;
        }
        value = value << 4 | (uint32_t)d;
    }
    return value;
}

/* The code point of an escape \u, surrogate pairs joined. */
MD_COLD uint32_t md_json_escape(md_json *j) {
    uint32_t point = md_json_hex(j);
    if (point >= 0xDC00 && point < 0xE000) {
        md_json_fault(j, "half of a surrogate pair");
    } else if (point >= 0xD800 && point < 0xDC00) {
        int slash = md_json_next(j);
        int u = slash == '\\' ? md_json_next(j) : -1;
        uint32_t low = u == 'u' ? md_json_hex(j) : 0;
        if (low < 0xDC00 || low >= 0xE000) {
            md_json_fault(j, "half of a surrogate pair");
        }
        point = 0x10000 + ((point - 0xD800) << 10) + ((low - 0xDC00) & 0x3FF);
    }
    return point;
}

MD_COLD size_t md_json_utf8(uint32_t point, char *out) {
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | point);
    return n;
}

/* A string, unescaped and NUL-terminated in out[size]. Longer ones are a fault: nothing that a
 * model asks for is that long. With a NULL `out` it is read and forgotten. */
MD_COLD void md_json_string(md_json *j, char *out, size_t size) {
    size_t used = 0;
    int c = 0;
    md_json_expect(j, '"', "a string was expected");
    while ((c = md_json_next(j)) >= 0 && c != '"') {
        char piece[4];
        size_t n = 1;
        piece[0] = (char)c;
        if (c < 0x20) {
            md_json_fault(j, "a control character in a string");
        } else if (c == '\\') {
            static const char from[] = "\"\\/bfnrt";
            static const char to[] = "\"\\/\b\f\n\r\t";
            int e = md_json_next(j);
            const char *known = from;
            while (*known != 0 && *known != e) {
                known++;
            }
            known = *known == 0 ? NULL : known;
            if (e == 'u') {
                uint32_t point = md_json_escape(j);
                if (point == 0) {
                    md_json_fault(j, "a NUL in a string");
                }
                n = md_json_utf8(point, piece);
            } else if (known != NULL) {
                piece[0] = to[known - from];
            } else {
                md_json_fault(j, "an unknown escape in a string");
            }
        }
        if (out != NULL && used + n >= size) {
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

MD_COLD uint64_t md_json_integer(md_json *j) {
    uint64_t value = 0;
    int digits = 0;
    int c = md_json_ahead(j);
    int zero = c == '0';
    while (c >= '0' && c <= '9') {
        if (value > (UINT64_C(0x7FFFFFFFFFFFFFFF) - (uint64_t)(c - '0')) / 10) {
            md_json_fault(j, "a number is too large");
            return 0;
        }
        value = value * 10 + (uint64_t)(c - '0');
        digits++;
        j->pos++;
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
            break;
        }
        out[n++] = value;
    } while (md_json_take(j, ','));
    md_json_expect(j, ']', "a list does not end");
    return n;
}

MD_COLD void md_json_word(md_json *j, const char *word) {
    for (; *word != 0; word++) {
        if (md_json_next(j) != (unsigned char)*word) {
            md_json_fault(j, "an unknown word");
            return;
        }
    }
}

/* Digits, at least one; gives the byte behind them, not taken. */
MD_COLD int md_json_digits(md_json *j) {
    int digits = 0;
    int c = md_json_peek(j);
    for (; c >= '0' && c <= '9'; digits++) {
        j->pos++;
        c = md_json_peek(j);
    }
    if (digits == 0) {
        md_json_fault(j, "a value was expected");
    }
    return c;
}

/* A number of any form; its value is nobody's business. */
MD_COLD void md_json_number(md_json *j) {
    int c = md_json_peek(j);
    if (c == '-') {
        j->pos++;
        c = md_json_peek(j);
    }
    if (c == '0') { /* nothing but a point or an exponent may follow */
        j->pos++;
        c = md_json_peek(j);
    } else {
        c = md_json_digits(j);
    }
    if (c == '.') {
        j->pos++;
        c = md_json_digits(j);
    }
    if (c == 'e' || c == 'E') {
        j->pos++;
        c = md_json_peek(j);
        j->pos += c == '+' || c == '-';
        (void)md_json_digits(j);
    }
}

/* Skips one value of any kind, without recursion. */
MD_COLD void md_json_skip(md_json *j) {
    char open[MD_JSON_DEPTH];
    int depth = 0;
    do {
        int c = md_json_ahead(j);
        if (c == '{' || c == '[') {
            if (depth == MD_JSON_DEPTH) {
                md_json_fault(j, "nested too deeply");
                return;
            }
            j->pos++;
            open[depth++] = (char)c;
            if (md_json_ahead(j) == (c == '{' ? '}' : ']')) {
                j->pos++;
                depth--;
            } else if (c == '{') {
                md_json_string(j, NULL, 0);
                md_json_expect(j, ':', "':' was expected");
                continue;
            } else {
                continue;
            }
        } else if (c == '"') {
            md_json_string(j, NULL, 0);
        } else if (c == 't' || c == 'f' || c == 'n') {
            md_json_word(j, c == 't' ? "true" : c == 'f' ? "false" : "null");
        } else {
            md_json_number(j);
        }
        /* Behind a value: close what ends here, or go on with the next member. */
        while (depth > 0 && j->why == NULL) {
            int object = open[depth - 1] == '{';
            if (md_json_take(j, object ? '}' : ']')) {
                depth--;
                continue;
            }
            md_json_expect(j, ',', "',' was expected");
            if (object) {
                md_json_string(j, NULL, 0);
                md_json_expect(j, ':', "':' was expected");
            }
            break;
        }
    } while (depth > 0 && j->why == NULL);
}

#endif
