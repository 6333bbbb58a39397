/* SPDX-License-Identifier: 0BSD */
/* slices: persistent tensors as files hold them.
 *
 * Most rows of the table are one tensor of a file. One whose name holds `{}` is many: its first
 * `split` axes (of `repeat`) are spread over the file, a tensor for each place, with its number in
 * the name; "h.{}.fc.weight" of shape [2, 4, 3] is h.0.fc.weight and h.1.fc.weight, both [4, 3]. A
 * slice is one such tensor; the others are a slice of themselves. A `transposed` one has its two
 * axes the other way round in files, and is turned over on its way through a buffer of fixed size.
 * Needs tensor.h and text.h, gives md_slice_*, allocates nothing. */
#ifndef MD_SLICES_H
#define MD_SLICES_H

#include "runtime/tensor.h"
#include "runtime/text.h"

enum { MD_TURN_BYTES = 2048 };

/* How many tensors of a file a row of the table is. */
MD_FN size_t md_slice_count(const md_tensor *t) {
    size_t n = 1;
    for (int i = 0; i < t->split; i++) {
        n *= (size_t)t->shape[i];
    }
    return n;
}

/* And all rows together. */
MD_FN size_t md_slice_total(const md_tensor *tensors, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        n += md_slice_count(&tensors[i]);
    }
    return n;
}

MD_FN size_t md_slice_bytes(const md_tensor *t) {
    return t->split > 0 ? t->bytes / md_slice_count(t) : t->bytes;
}

MD_FN char *md_slice_data(const md_tensor *t, size_t slice, const md_memory *memory) {
    return (char *)(t->region == MD_PARAMS ? memory->params : memory->state) + t->offset +
           slice * md_slice_bytes(t);
}

/* The shape in files; gives the rank. */
MD_FN int md_slice_shape(const md_tensor *t, int64_t *shape) {
    int rank = t->rank - t->split;
    for (int i = 0; i < rank; i++) {
        shape[i] = t->shape[t->split + (t->transposed ? rank - 1 - i : i)];
    }
    return rank;
}

/* The number that stands for `{}` number `axis` in the name of a slice. */
MD_FN uint64_t md_slice_place(const md_tensor *t, size_t slice, int axis) {
    for (int i = t->split - 1; i > axis; i--) {
        slice /= (size_t)t->shape[i];
    }
    return (uint64_t)slice % (uint64_t)t->shape[axis];
}

MD_FN int md_slice_open(const md_tensor *t, const char *at, int axis) {
    return axis < t->split && at[0] == '{' && at[1] == '}';
}

MD_FN void md_slice_name(md_text *text, const md_tensor *t, size_t slice) {
    int axis = 0;
    for (const char *at = t->name; *at != 0;) {
        if (md_slice_open(t, at, axis)) {
            md_text_u64(text, md_slice_place(t, slice, axis++));
            at += 2;
        } else {
            md_text_bytes(text, at++, 1);
        }
    }
}

/* Is `name` one of the names of `t`? Then *slice is whose. Numbers have no zeros in front. */
MD_FN int md_slice_match(const md_tensor *t, const char *name, size_t *slice) {
    size_t found = 0;
    int axis = 0;
    for (const char *at = t->name; *at != 0;) {
        if (!md_slice_open(t, at, axis)) {
            if (*at++ != *name++) {
                return 0;
            }
            continue;
        }
        uint64_t place = 0;
        if (*name < '0' || *name > '9' || (*name == '0' && name[1] >= '0' && name[1] <= '9')) {
            return 0;
        }
        for (; *name >= '0' && *name <= '9'; name++) {
            place = place * 10 + (uint64_t)(*name - '0');
            if (place >= (uint64_t)t->shape[axis]) {
                return 0;
            }
        }
        found = found * (size_t)t->shape[axis++] + (size_t)place;
        at += 2;
    }
    *slice = found;
    return *name == 0;
}

/* Bytes `at` to `at + n` - 1 of a transposed slice as the file has them, from memory or (`load`)
 * into it. Whole elements. */
MD_FN void md_slice_turn(const md_tensor *t, char *data, size_t width, uint64_t at, char *file,
                         size_t n, int load) {
    size_t rows = (size_t)t->shape[t->split], cols = (size_t)t->shape[t->split + 1];
    size_t element = (size_t)(at / width);
    size_t row = element % rows, col = element / rows; /* a column of memory is a row of the file */
    for (size_t i = 0; i < n; i += width) {
        char *here = data + (row * cols + col) * width;
        if (load) {
            memcpy(here, file + i, width);
        } else {
            memcpy(file + i, here, width);
        }
        if (++row == rows) {
            row = 0;
            col++;
        }
    }
}

/* The first of `count` integers of `width` bytes that is not in lo..hi (hi exclusive); -1: none.
 */
MD_FN int64_t md_integers_outside(const unsigned char *from, md_dtype type, size_t width,
                                  size_t count, int64_t lo, int64_t hi) {
    int is_signed = type == MD_I8 || type == MD_I16 || type == MD_I32 || type == MD_I64;
    for (size_t i = 0; i < count; i++) {
        uint64_t u = 0;
        for (size_t k = 0; k < width; k++) {
            u |= (uint64_t)from[i * width + k] << 8 * k;
        }
        uint64_t sign = (uint64_t)1 << (8 * width - 1);
        int64_t value = (int64_t)(is_signed ? (u ^ sign) - sign : u);
        if (value < lo || value >= hi) {
            return (int64_t)i;
        }
    }
    return -1;
}

/* The data of a slice in order of the file: one piece, or, transposed, pieces of MD_TURN_BYTES. */
MD_FN int md_slice_write(const md_tensor *t, char *data, size_t width, md_write_fn write,
                         void *user) {
    char buffer[MD_TURN_BYTES];
    size_t bytes = md_slice_bytes(t);
    int rc = 0;
    if (!t->transposed) {
        return bytes > 0 ? write(user, data, bytes) : 0;
    }
    for (size_t at = 0; at < bytes && rc == 0; at += sizeof buffer) {
        size_t n = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        md_slice_turn(t, data, width, at, buffer, n, 0);
        rc = write(user, buffer, n);
    }
    return rc;
}

/* The reverse, from offset `begin` of a file; 0 when all of it came. */
MD_FN int md_slice_read(const md_tensor *t, char *data, size_t width, md_read_fn read, void *user,
                        uint64_t begin) {
    char buffer[MD_TURN_BYTES];
    size_t bytes = md_slice_bytes(t);
    int rc = 0;
    if (!t->transposed) {
        return bytes > 0 ? read(user, begin, data, bytes) : 0;
    }
    for (size_t at = 0; at < bytes && rc == 0; at += sizeof buffer) {
        size_t n = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        rc = read(user, begin + at, buffer, n);
        if (rc == 0) {
            md_slice_turn(t, data, width, at, buffer, n, 1);
        }
    }
    return rc;
}

#endif
