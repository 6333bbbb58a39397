/* SPDX-License-Identifier: 0BSD */
/* slices: persistent tensors as files hold them.
 *
 * Most rows of the table are one tensor of a file. One whose name holds `{}` is many: its first
 * `split` axes (of `repeat`) are spread over the file, a tensor for each place, with its number in
 * the name; "h.{}.fc.weight" of shape [2, 4, 3] is h.0.fc.weight and h.1.fc.weight, both [4, 3];
 * "h.{5}.fc.weight" counts from 5. A
 * slice is one such tensor; the others are a slice of themselves. A `transposed` one has its two
 * axes the other way round in files.
 * Needs tensor.h and text.h, gives md_slice_*, allocates nothing. */
#ifndef MD_SLICES_H
#define MD_SLICES_H

#include "runtime/tensor.h"
#include "runtime/text.h"

/* How many tensors of a file a row of the table is. */
MD_FN size_t md_slice_count(const md_tensor *t) {
    size_t n = 1;
    for (int i = 0; i < t->split; i++) {
        n *= (size_t)t->shape[i];
    }
    return n;
}

/* And all rows together. */
MD_COLD size_t md_slice_total(const md_tensor *tensors, size_t count) {
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
MD_COLD int md_slice_shape(const md_tensor *t, uint64_t *shape) {
    int rank = t->rank - t->split;
    for (int i = 0; i < rank; i++) {
        shape[i] = (uint64_t)t->shape[t->split + (t->transposed ? rank - 1 - i : i)];
    }
    return rank;
}

/* The number that stands for `{}` number `axis` in the name of a slice. */
MD_COLD uint64_t md_slice_place(const md_tensor *t, size_t slice, int axis) {
    for (int i = t->split - 1; i > axis; i--) {
        slice /= (size_t)t->shape[i];
    }
    return (uint64_t)slice % (uint64_t)t->shape[axis];
}

/* if: split */
/* The length of the `{}` or `{first}` that `at` begins with, and where it counts from; 0: none. */
MD_COLD size_t md_slice_hole(const char *at, uint64_t *first) {
    size_t n = at[0] == '{';
    for (*first = 0; n > 0 && at[n] >= '0' && at[n] <= '9'; n++) {
        *first = *first * 10 + (uint64_t)(at[n] - '0');
    }
    return n > 0 && at[n] == '}' ? n + 1 : 0;
}
/* end: split */

/* Is `name` one of the names of `t`? Then *slice is whose. Numbers have no zeros in front. */
MD_COLD int md_slice_match(const md_tensor *t, const char *name, size_t *slice) {
    const char *at = t->name;
    *slice = 0;
    /* if: split */
    for (int axis = 0; axis < t->split; axis++) {
        size_t hole;
        uint64_t place = 0, first, most = (uint64_t)t->shape[axis];
        for (; (hole = md_slice_hole(at, &first)) == 0; at++) {
            if (*at == 0 || *at != *name++) {
                return 0;
            }
        }
        const char *digits = name;
        for (; *name >= '0' && *name <= '9' && place < first + most; name++) {
            place = place * 10 + (uint64_t)(*name - '0');
        }
        if (name == digits || place < first || place >= first + most ||
            (*digits == '0' && name > digits + 1)) {
            return 0;
        }
        *slice = *slice * (size_t)most + (size_t)(place - first);
        at += hole;
    }
    /* end: split */
    return md_text_same(at, name);
}

/* Which element of a transposed slice in memory is number `i` in the file. */
MD_FN size_t md_slice_turned(const md_tensor *t, size_t i) {
    size_t rows = (size_t)t->shape[t->split], cols = (size_t)t->shape[t->split + 1];
    return i % rows * cols + i / rows; /* a column of memory is a row of the file */
}

#endif
