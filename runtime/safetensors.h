/* SPDX-License-Identifier: 0BSD */
/* safetensors: the file format of that name (8 bytes of header length, a JSON header, raw
 * little-endian data), as the Python package of that name has it, and how it is written; load.h
 * reads it. Streams through a callback and needs no memory but a few kilobytes of stack.
 * Needs slices.h, gives md_save_tensors, allocates nothing. */
#ifndef MD_SAFETENSORS_H
#define MD_SAFETENSORS_H

#include "runtime/half.h"
#include "runtime/slices.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights files are little-endian, and so must be the machine"
#endif

enum {
    MD_NAME_BYTES = 512,
    MD_HEADER_MAX = 100000000,
    MD_PIECE_BYTES = 2048, /* of data that go through a buffer */
    MD_NOTE_BYTES = 256    /* what a checkpoint says beside its tensors */
};

typedef struct md_dtype_info {
    md_dtype dtype;
    const char *name; /* in safetensors files */
    size_t bytes;
} md_dtype_info;

/* Of a type; of MD_BOOL the first of all, behind the last of which stands one without a name. */
MD_COLD const md_dtype_info *md_dtype_get(md_dtype dtype) {
    static const md_dtype_info table[] = {
        {MD_BOOL, "BOOL", 1}, {MD_I8, "I8", 1},       {MD_I16, "I16", 2},   {MD_I32, "I32", 4},
        {MD_I64, "I64", 8},   {MD_U8, "U8", 1},       {MD_U16, "U16", 2},   {MD_U32, "U32", 4},
        {MD_U64, "U64", 8},   {MD_F16, "F16", 2},     {MD_BF16, "BF16", 2}, {MD_F32, "F32", 4},
        {MD_F64, "F64", 8},   {(md_dtype)0, NULL, 1},
    };
    return &table[dtype - MD_BOOL];
}

MD_FN int md_is_float(md_dtype t) {
    return t == MD_F16 || t == MD_BF16 || t == MD_F32 || t == MD_F64;
}

/* An element at any address: a float, */
MD_FN double md_get_float(const void *from, md_dtype type) {
    uint16_t half;
    float single;
    double real;
    switch (type) {
    case MD_F64: memcpy(&real, from, sizeof real); return real;
    case MD_F32: memcpy(&single, from, sizeof single); return (double)single;
    default: memcpy(&half, from, sizeof half);
    }
    return (double)(type == MD_F16 ? md_from_f16(half) : md_from_bf16(half));
}

/* the nearest of `type`, which may be infinite where `x` is not: then 0, else 1; */
MD_FN int md_put_float(void *to, md_dtype type, double x) {
    float f = (float)x;
    /* if: halves */
    if (type != MD_F32 && type != MD_F64) {
        const uint16_t h = type == MD_F16 ? md_to_f16(f) : md_to_bf16(f);
        f = type == MD_F16 ? md_from_f16(h) : md_from_bf16(h);
        memcpy(to, &h, sizeof h);
        return isfinite(f) || !isfinite(x);
    }
    /* end: halves */
    memcpy(to, type == MD_F64 ? (const void *)&x : (const void *)&f, md_dtype_get(type)->bytes);
    return type == MD_F64 || isfinite(f) || !isfinite(x);
}

/* and an integer; of a U64 its bits. */
MD_FN int64_t md_get_integer(const void *from, md_dtype type) {
    size_t width = md_dtype_get(type)->bytes;
    uint64_t bits = 0, sign = (uint64_t)1 << (8 * width - 1);
    memcpy(&bits, from, width);
    return (int64_t)(type < MD_U8 && type != MD_BOOL ? (bits ^ sign) - sign : bits);
}

/* if: copies */
/* Between a parameter and its second set, which may be kept in other floats: the nearest ones. */
MD_COLD void md_copy_elements(char *to, md_dtype to_type, const char *from, md_dtype from_type,
                              size_t count) {
    const size_t to_width = md_dtype_get(to_type)->bytes;
    const size_t from_width = md_dtype_get(from_type)->bytes;
    if (to_type == from_type) {
        memcpy(to, from, count * to_width);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        (void)md_put_float(to + i * to_width, to_type,
                           md_get_float(from + i * from_width, from_type));
    }
}
/* end: copies */

MD_COLD int md_kind_in(const md_tensor *t, unsigned what) {
    return (what >> (unsigned)t->kind & 1u) != 0;
}

/* A checksum of data in order of the file; pieces but the last of a tensor are whole words. */
MD_FN uint64_t md_sum(uint64_t sum, const char *data, size_t bytes) {
    while (bytes > 0) {
        uint64_t word = 0;
        size_t n = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, data, n);
        sum = (sum ^ word ^ (uint64_t)n << 56) * UINT64_C(0x9E3779B97F4A7C15);
        sum ^= sum >> 32;
        data += n;
        bytes -= n;
    }
    return sum;
}

/* With a note, or NULL. */
MD_COLD uint64_t md_sum_note(uint64_t sum, const char *note) {
    for (; note != NULL && *note != 0; note++) {
        sum = md_sum(sum, note, 1);
    }
    return sum;
}

/* The last `digits` digits of a number to base 16. */
MD_COLD void md_hex(char *to, uint64_t value, int digits) {
    for (to[digits] = 0; digits > 0; value >>= 4) {
        to[--digits] = "0123456789abcdef"[value & 15];
    }
}

/* ---- which tensors -------------------------------------------------------------------------- */

/* if: main */
/* Is `name` one of the paths of `only`, or below one? */
MD_COLD int md_load_under(const char *only, const char *name) {
    size_t n = 0;
    for (; *only != 0; only += n + (only[n] == ',')) {
        n = strcspn(only, ",");
        if (n > 0 && strncmp(only, name, n) == 0 && (name[n] == 0 || name[n] == '.')) {
            return 1;
        }
    }
    return 0;
}

MD_COLD void md_slice_name(char *name, const md_tensor *t, size_t slice) {
    md_text text = md_text_make(name, MD_NAME_BYTES);
    const char *at = t->name;
    /* if: split */
    for (int axis = 0; axis < t->split && *at != 0;) {
        uint64_t first;
        const size_t hole = md_slice_hole(at, &first);
        if (hole > 0) {
            md_text_u64(&text, first + md_slice_place(t, slice, axis++));
        } else {
            md_text_bytes(&text, at, 1);
        }
        at += hole > 0 ? hole : 1;
    }
    /* end: split */
    md_text_add(&text, at);
    (void)slice;
}

/* Does `only`, or NULL, ask for a slice? */
MD_COLD int md_slice_wanted(const char *only, const md_tensor *t, size_t slice) {
    char name[MD_NAME_BYTES];
    if (only == NULL) {
        return 1;
    }
    md_slice_name(name, t, slice);
    return md_load_under(only, name);
}

/* Or for any? */
MD_COLD int md_slice_any(const char *only, const md_tensor *t) {
    size_t slices = md_slice_count(t), i = 0;
    while (i < slices && !md_slice_wanted(only, t, i)) {
        i++;
    }
    return i < slices;
}
/* end: main */

/* ---- saving --------------------------------------------------------------------------------- */

/* if: spans */
/* Bytes of a tensor that is not in memory, as they stand in files, from byte `at` of the tensor on:
 * gives 1, or 0 where it is in memory, or -1 where they cannot be had. */
typedef int (*md_fetch_fn)(const void *store, const md_tensor *t, size_t at, void *to,
                           size_t bytes);
/* end: spans */

typedef struct md_save {
    const md_tensor *tensors;
    size_t count;
    const md_memory *memory;
    unsigned what;    /* kinds */
    const char *only; /* paths with commas between them; NULL: everything */
    const char *note;
    md_write_fn write; /* NULL: only count */
    void *user;
    uint64_t used;  /* bytes so far */
    size_t slice;   /* the one at hand, of its tensor, */
    uint64_t begin; /* and where its data begin */
    int rc;
    /* if: spans */
    md_fetch_fn fetch; /* NULL: all is in memory */
    const void *store;
    /* end: spans */
} md_save;

MD_COLD void md_save_bytes(md_save *s, const void *bytes, size_t count) {
    s->used += count;
    if (s->write != NULL && s->rc == 0 && count > 0) {
        s->rc = s->write(s->user, bytes, count);
    }
}

MD_COLD void md_save_text(md_save *s, const char *text) {
    const char *end = text;
    while (*end != 0) {
        end++;
    }
    md_save_bytes(s, text, (size_t)(end - text));
}

/* As it stands in a JSON string, up to `end` or (NULL) its own end; names are ours, yet nothing
 * is taken on trust. */
MD_COLD void md_save_string(md_save *s, const char *text, const char *end) {
    for (; *text != 0 && text != end; text++) {
        /* if: escapes */
        char escape[8] = "\\u00";
        unsigned char c = (unsigned char)*text;
        md_save_text(s, c == '"' || c == '\\' ? "\\" : "");
        if (c < 0x20) {
            md_hex(escape + 4, c, 2);
            md_save_text(s, escape);
            continue;
        }
        /* end: escapes */
        md_save_bytes(s, text, 1);
    }
}

/* [1,2,3] */
MD_COLD void md_save_list(md_save *s, const uint64_t *value, int count) {
    char digits[MD_DIGITS];
    md_save_text(s, "[");
    for (int i = 0; i < count; i++) {
        md_save_text(s, i > 0 ? "," : "");
        md_save_text(s, md_digits(digits, value[i]));
    }
    md_save_text(s, "]");
}

/* if: split */
/* The name of a slice up to behind its last number; gives what follows. */
MD_COLD const char *md_save_split(md_save *s, const md_tensor *t) {
    const char *text = t->name, *end = text;
    for (int axis = 0; axis < t->split && *end != 0;) {
        uint64_t first;
        const size_t hole = md_slice_hole(end, &first);
        if (hole > 0) {
            char digits[MD_DIGITS];
            md_save_string(s, text, end);
            md_save_text(s, md_digits(digits, first + md_slice_place(t, s->slice, axis++)));
            text = end + hole;
        }
        end += hole > 0 ? hole : 1;
    }
    return text;
}
/* end: split */

/* What the header says of the slice at hand. */
MD_COLD void md_save_head(md_save *s, const md_tensor *t) {
    uint64_t shape[MD_MAX_RANK], offsets[2] = {s->begin, s->begin + md_slice_bytes(t)};
    const char *name = t->name;
    md_save_text(s, ",\"");
    /* if: split */
    name = md_save_split(s, t);
    /* end: split */
    md_save_string(s, name, NULL);
    md_save_text(s, "\":{\"dtype\":\"");
    md_save_text(s, md_dtype_get(t->dtype)->name);
    md_save_text(s, "\",\"shape\":");
    md_save_list(s, shape, md_slice_shape(t, shape));
    md_save_text(s, ",\"data_offsets\":");
    md_save_list(s, offsets, 2);
    md_save_text(s, "}");
}

/* if: spans */
/* A slice that is not in memory, piece by piece; 0: it is. */
MD_COLD int md_save_away(md_save *s, const md_tensor *t) {
    const size_t bytes = md_slice_bytes(t);
    char buffer[MD_PIECE_BYTES];
    for (size_t at = 0, n = 0; s->fetch != NULL && at < bytes; at += n) {
        n = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        int got = s->fetch(s->store, t, s->slice * bytes + at, buffer, n);
        if (got == 0) {
            return 0;
        }
        s->rc = got < 0 && s->rc == 0 ? 1 : s->rc;
        md_save_bytes(s, buffer, n);
    }
    return s->fetch != NULL;
}
/* end: spans */

/* if: turned */
/* A slice that files have the other way round, through a buffer. */
MD_COLD void md_save_turned(md_save *s, const md_tensor *t) {
    const char *data = md_slice_data(t, s->slice, s->memory);
    size_t width = md_dtype_get(t->dtype)->bytes, count = md_slice_bytes(t) / width;
    for (size_t i = 0; i < count;) {
        char buffer[MD_PIECE_BYTES];
        size_t n = 0;
        for (; n < sizeof buffer && i < count; n += width) {
            memcpy(buffer + n, data + width * md_slice_turned(t, i++), width);
        }
        md_save_bytes(s, buffer, n);
    }
}
/* end: turned */

/* Heads or data of all slices in order of the file: wide elements first, so that every tensor is
 * aligned without the gaps that the format forbids; among equals the order of the table. */
MD_COLD void md_save_walk(md_save *s, int data) {
    s->begin = 0;
    for (size_t width = 8; width > 0; width /= 2) {
        for (size_t i = 0; i < s->count; i++) {
            const md_tensor *t = &s->tensors[i];
            int of = md_kind_in(t, s->what) && md_dtype_get(t->dtype)->bytes == width;
            for (s->slice = 0; of && s->slice < md_slice_count(t); s->slice++) {
                /* if: main */
                if (!md_slice_wanted(s->only, t, s->slice)) {
                    continue;
                }
                /* end: main */
                /* if: spans */
                if (data && md_save_away(s, t)) {
                    continue;
                }
                /* end: spans */
                if (!data) {
                    md_save_head(s, t);
                    /* if: turned */
                } else if (t->transposed) {
                    md_save_turned(s, t);
                    /* end: turned */
                } else {
                    md_save_bytes(s, md_slice_data(t, s->slice, s->memory), md_slice_bytes(t));
                }
                s->begin += md_slice_bytes(t);
            }
        }
    }
}

/* `sum`: of the data and the note, or empty: the file carries none. */
MD_COLD void md_save_header(md_save *s, const char *sum) {
    md_save_text(s, "{\"__metadata__\":{\"format\":\"pt\",\"producer\":\"mdlc\"");
    if (*sum != 0) {
        md_save_text(s, ",\"mdlc.checksum\":\"");
        md_save_text(s, sum);
        md_save_text(s, "\"");
    }
    /* if: main */
    if (s->note != NULL) {
        md_save_text(s, ",\"mdlc.note\":\"");
        md_save_string(s, s->note, NULL);
        md_save_text(s, "\"");
    }
    /* end: main */
    md_save_text(s, "}");
    md_save_walk(s, 0);
    md_save_text(s, "}");
}

/* An md_write_fn that writes nothing and sums up. */
MD_COLD int md_sum_write(void *user, const void *data, size_t bytes) {
    uint64_t *sum = (uint64_t *)user;
    *sum = md_sum(*sum, (const char *)data, bytes);
    return 0;
}

/* Writes what `s` says, zeros behind its note. Gives MD_OK or MD_ERR_WRITE. */
MD_COLD int md_save_run(md_save *s, md_write_fn write, void *user) {
    char hex[17] = "";
    uint64_t sum = 0;
    if ((s->what >> MD_SLOT & 1u) != 0) { /* a checkpoint */
        s->write = md_sum_write;
        s->user = &sum;
        md_save_walk(s, 1);
        md_hex(hex, md_sum_note(sum, s->note), 16);
    }
    s->write = NULL;
    s->used = 0;
    md_save_header(s, hex);
    uint64_t length = (s->used + 7) / 8 * 8, padding = length - s->used;
    s->write = write;
    s->user = user;
    md_save_bytes(s, &length, sizeof length);
    md_save_header(s, hex);
    md_save_bytes(s, "        ", (size_t)padding);
    md_save_walk(s, 1);
    return s->rc == 0 ? MD_OK : MD_ERR_WRITE;
}

/* Writes the tensors whose kind is in `what` (MD_SAVE_PARAMS, MD_SAVE_ALL) and whose path, in a
 * program with a main, is in `only` or NULL, with a note or NULL. Gives MD_OK or MD_ERR_WRITE. */
MD_COLD int md_save_tensors(const md_tensor *tensors, size_t count, const md_memory *memory,
                            unsigned what, const char *only, const char *note, md_write_fn write,
                            void *user) {
    md_save s = {
        tensors, count, memory, what, only, note, NULL, NULL, 0, 0, 0, 0,
        /* if: spans */
        NULL, NULL,
        /* end: spans */
    };
    return md_save_run(&s, write, user);
}

#endif
