/* SPDX-License-Identifier: 0BSD */
/* safetensors: the file format of that name (8 bytes of header length, a JSON header, raw
 * little-endian data), as the Python package of that name has it, and how it is written; load.h
 * reads it. Streams through a callback and needs no memory but a few kilobytes of stack.
 * Needs slices.h, gives md_save_tensors, allocates nothing. */
#ifndef MD_SAFETENSORS_H
#define MD_SAFETENSORS_H

#include "runtime/slices.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights files are little-endian, and so must be the machine"
#endif

enum {
    MD_NAME_BYTES = 512,
    MD_HEADER_MAX = 100000000,
    MD_NOTE_BYTES = 256 /* what a checkpoint says beside its tensors */
};

typedef struct md_dtype_info {
    md_dtype dtype;
    const char *name; /* in safetensors files */
    size_t bytes;
} md_dtype_info;

MD_COLD const md_dtype_info *md_dtype_table(void) {
    static const md_dtype_info table[] = {
        {MD_BOOL, "BOOL", 1}, {MD_I8, "I8", 1},   {MD_I16, "I16", 2},   {MD_I32, "I32", 4},
        {MD_I64, "I64", 8},   {MD_U8, "U8", 1},   {MD_U16, "U16", 2},   {MD_U32, "U32", 4},
        {MD_U64, "U64", 8},   {MD_F16, "F16", 2}, {MD_BF16, "BF16", 2}, {MD_F32, "F32", 4},
        {MD_F64, "F64", 8},   {MD_BOOL, NULL, 0},
    };
    return table;
}

MD_COLD const md_dtype_info *md_dtype_get(md_dtype dtype) {
    return md_dtype_table() + ((int)dtype - 1);
}

MD_FN int md_is_float(md_dtype t) {
    return t == MD_F16 || t == MD_BF16 || t == MD_F32 || t == MD_F64;
}

/* ---- saving --------------------------------------------------------------------------------- */

typedef struct md_save {
    md_write_fn write; /* NULL: only count */
    void *user;
    uint64_t count; /* header bytes so far */
    int rc;
} md_save;

MD_COLD void md_save_bytes(md_save *s, const char *bytes, size_t count) {
    s->count += count;
    if (s->write != NULL && s->rc == 0 && count > 0) {
        s->rc = s->write(s->user, bytes, count);
    }
}

/* One character of a JSON string. */
MD_COLD void md_save_char(md_save *s, const char *text) {
    static const char hex[] = "0123456789abcdef";
    unsigned char c = (unsigned char)*text;
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    if (c == '"' || c == '\\') {
        md_save_bytes(s, "\\", 1);
    }
    if (c < 0x20) {
        md_save_bytes(s, escape, sizeof escape);
    } else {
        md_save_bytes(s, text, 1);
    }
}

MD_COLD void md_save_string(md_save *s, const char *text) {
    md_save_bytes(s, "\"", 1);
    for (; *text != 0; text++) {
        md_save_char(s, text);
    }
    md_save_bytes(s, "\"", 1);
}

/* The name of a slice as a JSON string; names are ours, yet nothing is taken on trust. */
MD_COLD void md_save_name(md_save *s, const md_tensor *t, size_t slice) {
    int axis = 0;
    md_save_bytes(s, "\"", 1);
    for (const char *text = t->name; *text != 0; text++) {
        if (md_slice_open(t, text, axis)) {
            char digits[24];
            md_text number = md_text_make(digits, sizeof digits);
            md_text_u64(&number, md_slice_place(t, slice, axis++));
            md_save_bytes(s, digits, number.used);
            text++;
        } else {
            md_save_char(s, text);
        }
    }
    md_save_bytes(s, "\"", 1);
}

MD_COLD int md_kind_in(const md_tensor *t, unsigned what) {
    return (what >> (unsigned)t->kind & 1u) != 0;
}

/* Where a walk over the tensors of a file stands. */
typedef struct md_order {
    const md_tensor *tensors;
    size_t count;
    unsigned what;
    size_t width, index;
    const md_tensor *t; /* whose slice is at hand; NULL: none yet */
    size_t slice;
} md_order;

MD_COLD md_order md_order_start(const md_tensor *tensors, size_t count, unsigned what) {
    md_order o;
    o.tensors = tensors;
    o.count = count;
    o.what = what;
    o.width = 8;
    o.index = 0;
    o.t = NULL;
    o.slice = 0;
    return o;
}

/* The next slice in file order: wide elements first, so that every tensor is aligned without the
 * gaps that the format forbids; among equals the order of the table. 0 behind the last. */
MD_COLD int md_order_next(md_order *o) {
    if (o->t != NULL && ++o->slice < md_slice_count(o->t)) {
        return 1;
    }
    o->slice = 0;
    while (o->width > 0) {
        while (o->index < o->count) {
            o->t = &o->tensors[o->index++];
            if (md_kind_in(o->t, o->what) && md_dtype_get(o->t->dtype)->bytes == o->width) {
                return 1;
            }
        }
        o->width /= 2;
        o->index = 0;
    }
    return 0;
}

/* A checksum of data in order of the file; pieces but the last of a tensor are whole words. */
MD_NOINLINE uint64_t md_sum(uint64_t sum, const char *data, size_t bytes) {
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

/* With a note, which may be empty. */
MD_COLD uint64_t md_sum_note(uint64_t sum, const char *note) {
    for (; *note != 0; note++) {
        sum = md_sum(sum, note, 1);
    }
    return sum;
}

MD_COLD void md_sum_text(md_text *t, uint64_t sum) {
    static const char hex[] = "0123456789abcdef";
    for (int i = 60; i >= 0; i -= 4) {
        char digit[2] = {hex[sum >> i & 15], 0};
        md_text_add(t, digit);
    }
}

/* `sum`: of the data and the note, or NULL: the file carries none. */
MD_COLD void md_save_header(md_save *s, const md_tensor *tensors, size_t count, unsigned what,
                            const uint64_t *sum, const char *note) {
    char buffer[512];
    uint64_t at = 0;
    md_order order = md_order_start(tensors, count, what);
    static const char first[] = "{\"__metadata__\":{\"format\":\"pt\",\"producer\":\"mdlc\"";
    md_save_bytes(s, first, sizeof first - 1);
    if (sum != NULL) {
        md_text line = md_text_make(buffer, sizeof buffer);
        md_text_add(&line, ",\"mdlc.checksum\":\"");
        md_sum_text(&line, *sum);
        md_text_add(&line, "\"");
        md_save_bytes(s, line.at, line.used);
    }
    if (note != NULL) {
        static const char key[] = ",\"mdlc.note\":";
        md_save_bytes(s, key, sizeof key - 1);
        md_save_string(s, note);
    }
    md_save_bytes(s, "}", 1);
    while (md_order_next(&order)) {
        md_text line = md_text_make(buffer, sizeof buffer);
        int64_t shape[MD_MAX_RANK];
        int rank = md_slice_shape(order.t, shape);
        md_save_bytes(s, ",", 1);
        md_save_name(s, order.t, order.slice);
        md_text_add(&line, ":{\"dtype\":\"");
        md_text_add(&line, md_dtype_get(order.t->dtype)->name);
        md_text_add(&line, "\",\"shape\":[");
        for (int i = 0; i < rank; i++) {
            md_text_add(&line, i > 0 ? "," : "");
            md_text_i64(&line, shape[i]);
        }
        md_text_add(&line, "],\"data_offsets\":[");
        md_text_u64(&line, at);
        at += md_slice_bytes(order.t);
        md_text_add(&line, ",");
        md_text_u64(&line, at);
        md_text_add(&line, "]}");
        md_save_bytes(s, line.at, line.used);
    }
    md_save_bytes(s, "}", 1);
}

MD_COLD char *md_tensor_data(const md_tensor *t, const md_memory *memory) {
    return md_slice_data(t, 0, memory);
}

/* An md_write_fn that writes nothing and sums up. */
MD_COLD int md_sum_write(void *user, const void *data, size_t bytes) {
    uint64_t *sum = (uint64_t *)user;
    *sum = md_sum(*sum, (const char *)data, bytes);
    return 0;
}

/* The data of all tensors in order of the file. */
MD_COLD int md_save_data(md_order order, const md_memory *memory, md_write_fn write, void *user) {
    int rc = 0;
    while (rc == 0 && md_order_next(&order)) {
        rc = md_slice_write(order.t, md_slice_data(order.t, order.slice, memory),
                            md_dtype_get(order.t->dtype)->bytes, write, user);
    }
    return rc;
}

/* Writes the tensors whose kind is in `what` (MD_SAVE_PARAMS, MD_SAVE_ALL), with a note or NULL.
 * Gives MD_OK or MD_ERR_WRITE. */
MD_COLD int md_save_noted(const md_tensor *tensors, size_t count, const md_memory *memory,
                          unsigned what, const char *note, md_write_fn write, void *user) {
    md_save s;
    uint64_t sum = 0;
    md_order order = md_order_start(tensors, count, what);
    int sums = (what >> MD_SLOT & 1u) != 0; /* a checkpoint */
    if (sums) {
        (void)md_save_data(order, memory, md_sum_write, &sum);
    }
    sum = note != NULL ? md_sum_note(sum, note) : sum;
    memset(&s, 0, sizeof s);
    md_save_header(&s, tensors, count, what, sums ? &sum : NULL, note);
    uint64_t length = (s.count + 7) / 8 * 8;
    uint64_t padding = length - s.count;
    char prefix[8];
    for (int i = 0; i < 8; i++) {
        prefix[i] = (char)(unsigned char)(length >> 8 * i & 0xFF);
    }
    s.write = write;
    s.user = user;
    md_save_bytes(&s, prefix, sizeof prefix);
    md_save_header(&s, tensors, count, what, sums ? &sum : NULL, note);
    md_save_bytes(&s, "        ", (size_t)padding);
    if (s.rc == 0) {
        s.rc = md_save_data(order, memory, write, user);
    }
    return s.rc == 0 ? MD_OK : MD_ERR_WRITE;
}

MD_COLD int md_save_tensors(const md_tensor *tensors, size_t count, const md_memory *memory,
                            unsigned what, md_write_fn write, void *user) {
    return md_save_noted(tensors, count, memory, what, NULL, write, user);
}

#endif
