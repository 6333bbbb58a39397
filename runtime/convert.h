/* SPDX-License-Identifier: 0BSD */
/* convert: rows of numbers from one element type to another, as data files need it.
 *
 * An integer type gets exactly the number that was there, or the position of the one that it cannot
 * hold is reported: a float becomes an integer only if it is one. A float type gets the nearest
 * value; a finite number that would become infinite is reported too.
 * Needs host.h for numbers in text and tensor.h; gives values by value and rows in place. Source
 * data may be unaligned and big-endian. */
#ifndef MD_CONVERT_H
#define MD_CONVERT_H

#include "runtime/host.h"
#include "runtime/safetensors.h"

/* A number as it came: integers exact, the rest as a double. */
typedef struct md_number {
    int is_int; /* -1: text with a fraction, which `f` may not show */
    int64_t i;
    double f; /* always set */
} md_number;

/* A finite number from text; 0 when the text is none. 12.00 and 1.2e1 are whole ones. */
MD_FN int md_parse_value(const char *text, md_number *n) {
    const char *c = text + strspn(text, " \t");
    const int plus = *c != '-';
    int64_t whole = 0; /* 0 or below, as the least one has no positive */
    int zeros = 0, behind = -1, fits = 1;
    for (c += strspn(c, "+-"); (*c >= '0' && *c <= '9') || *c == '.'; c++) {
        behind += *c == '.' || behind >= 0; /* digits behind the point */
        zeros += *c != '.';
        for (; *c > '0' && zeros > 0; zeros--) { /* those in front of this digit, and its place */
            const int digit = zeros == 1 ? *c - '0' : 0;
            fits = fits && whole >= (INT64_MIN + digit) / 10;
            whole = fits ? whole * 10 - digit : -1;
        }
    }
    double shift = zeros - (behind > 0 ? behind : 0);
    shift += *c == 'e' || *c == 'E' ? strtod(c + 1, NULL) : 0;
    for (; whole < 0 && shift > 0 && fits; shift--) {
        fits = whole >= INT64_MIN / 10;
        whole = fits ? whole * 10 : -1;
    }
    n->is_int = whole < 0 && shift < 0 ? -1 : fits && (!plus || whole > INT64_MIN);
    n->i = n->is_int == 1 ? (plus ? -whole : whole) : 0;
    return md_parse_number(text, &n->f) && isfinite(n->f);
}

MD_FN size_t md_dtype_bytes(md_dtype t) {
    return md_dtype_get(t)->bytes;
}

/* Reads one element. A u64 beyond int64 is given as a double. */
MD_FN md_number md_get_number(const void *from, md_dtype type, int swap) {
    unsigned char b[8];
    size_t width = md_dtype_bytes(type);
    md_number n = {0, 0, 0};
    for (size_t k = 0; k < width; k++) {
        b[k] = ((const unsigned char *)from)[swap ? width - 1 - k : k];
    }
    if (md_is_float(type)) {
        n.f = md_get_float(b, type);
        return n;
    }
    n.i = md_get_integer(b, type);
    n.i = type == MD_BOOL ? n.i != 0 : n.i;
    n.is_int = type != MD_U64 || n.i >= 0;
    n.f = n.is_int ? (double)n.i : (double)(uint64_t)n.i;
    return n;
}

/* A number for a message: all digits of an integer, the shortest text of the rest. */
enum { MD_NUMBER_TEXT = 40 };
MD_COLD const char *md_number_text(char *buffer, md_number n) {
    md_text t = md_text_make(buffer, MD_NUMBER_TEXT);
    if (n.is_int == 1) {
        md_text_i64(&t, n.i);
    } else {
        md_text_number(&t, n.f);
        md_text_format(&t, n.is_int < 0 && n.f == floor(n.f) ? " and a fraction" : "");
    }
    return buffer;
}

enum { MD_SHAPE_TEXT = 256 };
MD_COLD const char *md_shape_text(char *buffer, const int64_t *shape, int rank) {
    md_text t = md_text_make(buffer, MD_SHAPE_TEXT);
    md_text_shape(&t, shape, rank);
    return buffer;
}

/* if: bulk */
/* Are all of these finite? A loop that vectorises: data files hold many. */
MD_FN int md_floats_finite(const unsigned char *at, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, at + 4 * i, sizeof bits);
        bits &= 0x7FFFFFFFu;
        most = bits > most ? bits : most;
    }
    return most < 0x7F800000u;
}
/* end: bulk */

/* The first element that is NaN or infinite, or -1. */
MD_FN int64_t md_find_nonfinite(const void *data, md_dtype type, int swap, int64_t count) {
    size_t width = md_dtype_bytes(type);
    /* if: bulk */
    if (type == MD_F32 && !swap && md_floats_finite((const unsigned char *)data, count)) {
        return -1;
    }
    /* end: bulk */
    for (int64_t i = 0; md_is_float(type) && i < count; i++) {
        md_number n = md_get_number((const unsigned char *)data + (size_t)i * width, type, swap);
        if (!isfinite(n.f)) {
            return i;
        }
    }
    return -1;
}

/* Stores one element; 0 when the type cannot hold the value. */
MD_FN int md_put_number(void *to, md_dtype type, md_number n) {
    if (md_is_float(type)) { /* a double between, which rounds too, only where no integer is */
        const int whole = n.is_int == 1 && n.i != 0 && type != MD_F64;
        return md_put_float(to, type, whole ? (float)n.i : n.f);
    }
    if (n.is_int != 1) {
        if (n.is_int < 0 || !(fabs(n.f) < 9223372036854775808.0) || n.f != floor(n.f)) {
            return 0;
        }
        n.i = (int64_t)n.f;
    }
    size_t width = md_dtype_bytes(type), spare = 64 - 8 * width; /* bits */
    int is_signed = type >= MD_I8 && type <= MD_I64;
    int64_t high = type == MD_BOOL ? 1 : INT64_MAX >> (is_signed || spare == 0 ? spare : spare - 1);
    int64_t low = is_signed ? -high - 1 : 0;
    if (n.i < low || n.i > high) {
        return 0;
    }
    /* Little-endian: the low bytes are the value in every width. */
    memcpy(to, &n.i, width);
    return 1;
}

/* if: bulk */
/* A loop that vectorises, over elements of a type that the other one holds all of. */
#define MD_WIDEN(from_type, to_type)                                                               \
    for (int64_t i = 0; i < count; i++) {                                                          \
        from_type one;                                                                             \
        memcpy(&one, source + (int64_t)sizeof one * i, sizeof one);                                \
        const to_type wide = (to_type)one;                                                         \
        memcpy(target + (int64_t)sizeof wide * i, &wide, sizeof wide);                             \
    }                                                                                              \
    return -1;
/* end: bulk */

/* Converts `count` elements. Gives -1, or the position of the first one that does not fit. */
MD_FN int64_t md_convert(void *to, md_dtype to_type, const void *from, md_dtype from_type, int swap,
                         int64_t count) {
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t from_width = md_dtype_bytes(from_type);
    size_t to_width = md_dtype_bytes(to_type);
    if (to_type == from_type && !(swap && from_width > 1) && to_type != MD_BOOL) {
        memcpy(target, source, from_width * (size_t)count);
        return -1;
    }
    /* if: bulk */
    if (from_type == MD_U8 && to_type == MD_F32) { /* images: worth a loop of their own */
        MD_WIDEN(uint8_t, float)
    }
    if (from_type == MD_U16 && to_type == MD_I32 && !swap) { /* tokens too */
        MD_WIDEN(uint16_t, int32_t)
    }
    /* end: bulk */
    for (int64_t i = 0; i < count; i++) {
        md_number n = md_get_number(source + (size_t)i * from_width, from_type, swap);
        if (!md_put_number(target + (size_t)i * to_width, to_type, n)) {
            return i;
        }
    }
    return -1;
}

/* if: bulk */
/* Are all of these inside? Tokens come in millions, so these are loops that vectorise. */
#define MD_INSIDE(name, type, smallest, largest)                                                   \
    MD_FN int name(const unsigned char *at, int64_t count, int64_t lo, int64_t hi) {               \
        type least = largest, most = smallest;                                                     \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type one;                                                                              \
            memcpy(&one, at + (int64_t)sizeof one * i, sizeof one);                                \
            least = one < least ? one : least;                                                     \
            most = one > most ? one : most;                                                        \
        }                                                                                          \
        return least >= lo && most < hi;                                                           \
    }
MD_INSIDE(md_u8_inside, uint8_t, 0, UINT8_MAX)
MD_INSIDE(md_u16_inside, uint16_t, 0, UINT16_MAX)
MD_INSIDE(md_i32_inside, int32_t, INT32_MIN, INT32_MAX)
#undef MD_INSIDE
/* end: bulk */

/* The first element that is outside lo..hi (hi excluded), or -1. */
MD_FN int64_t md_out_of_range(const void *data, md_dtype type, int swap, int64_t count, int64_t lo,
                              int64_t hi) {
    const unsigned char *at = (const unsigned char *)data;
    size_t width = md_dtype_bytes(type);
    /* if: bulk */
    if ((type == MD_U8 && md_u8_inside(at, count, lo, hi)) ||
        (type == MD_U16 && !swap && md_u16_inside(at, count, lo, hi)) ||
        (type == MD_I32 && !swap && md_i32_inside(at, count, lo, hi))) {
        return -1;
    }
    /* end: bulk */
    for (int64_t i = 0; i < count; i++) {
        md_number n = md_get_number(at + (size_t)i * width, type, swap);
        int inside = n.is_int ? n.i >= lo && n.i < hi : n.f >= (double)lo && n.f < (double)hi;
        if (!inside) {
            return i;
        }
    }
    return -1;
}

#endif
