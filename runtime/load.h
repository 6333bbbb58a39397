/* SPDX-License-Identifier: 0BSD */
/* load: reads a safetensors file into the regions of a model.
 *
 * Streams through a callback and needs no memory but a few kilobytes of stack. The first walks over
 * the header check every name, type, shape, offset and checksum, the last one reads the data
 * straight into the regions; so a file that does not fit changes nothing.
 * Needs load_head.h and rng.h (to hash), gives md_load_tensors, allocates nothing. */
#ifndef MD_LOAD_H
#define MD_LOAD_H

#include "runtime/half.h"
#include "runtime/load_head.h"
#include "runtime/rng.h"

/* Names that may stand in a file that is loaded without them: slots of a checkpoint of which only
 * the weights are wanted, and PyTorch's batch counters. */
MD_COLD int md_load_ignored(const char *name) {
    const char *last = name; /* behind the last dot */
    for (const char *c = name; *c != 0; c++) {
        last = *c == '.' ? c + 1 : last;
    }
    return md_text_starts(name, "mdlc.") || md_text_same(last, "num_batches_tracked");
}

MD_COLD void md_load_text_head(md_text *t, const md_entry_head *h) {
    int64_t shape[MD_MAX_RANK];
    for (int i = 0; i < h->rank; i++) {
        shape[i] = (int64_t)h->shape[i];
    }
    md_text_add(t, h->dtype);
    md_text_shape(t, shape, h->rank);
}

/* What the head says of the elements; one without a name: nothing that we know. */
MD_COLD const md_dtype_info *md_load_dtype(const md_load *l) {
    const md_dtype_info *info = md_dtype_table();
    while (info->name != NULL && !md_text_same(info->name, l->head.dtype)) {
        info++;
    }
    return info;
}

/* The head against itself: known type, shape that fits the offsets. */
MD_COLD int md_load_sane(md_load *l) {
    const md_entry_head *h = &l->head;
    const md_dtype_info *info = md_load_dtype(l);
    uint64_t bytes = info->bytes;
    int known = info->name != NULL;
    int empty = 0;
    for (int i = 0; i < h->rank; i++) {
        empty |= h->shape[i] == 0;
    }
    for (int i = 0; i < h->rank && !empty; i++) {
        known &= bytes <= (uint64_t)INT64_MAX / h->shape[i];
        bytes *= h->shape[i];
    }
    bytes = empty ? 0 : bytes;
    if (h->end < h->begin || (known && h->end - h->begin != bytes)) {
        known = 0;
    }
    if (info->name == NULL && h->end >= h->begin && md_load_ignored(h->name)) {
        known = 1; /* a type that we do not know, of a tensor that nobody asks for */
    }
    if (!known) {
        md_text *t = md_load_fault(l, MD_ERR_FORMAT);
        md_text_add(t, "tensor '");
        md_text_add(t, h->name);
        md_text_add(t, info->name == NULL ? "' has the unknown type "
                                          : "' has offsets that do not fit ");
        md_load_text_head(t, h);
    }
    return known;
}

/* ---- which tensors -------------------------------------------------------------------------- */

MD_COLD int md_slice_under(const char *only, const md_tensor *t, size_t slice) {
    char name[MD_NAME_BYTES];
    md_text text = md_text_make(name, sizeof name);
    md_slice_name(&text, t, slice);
    return md_load_under(only, name);
}

/* Does `only` ask for any of its slices? */
MD_COLD int md_slice_any(const char *only, const md_tensor *t) {
    size_t slices = md_slice_count(t);
    int any = 0;
    for (size_t i = 0; i < slices && !any; i++) {
        any = md_slice_under(only, t, i);
    }
    return any;
}

MD_COLD int md_slice_wanted(const md_load *l, const md_tensor *t, size_t slice) {
    return l->only == NULL || md_slice_under(l->only, t, slice);
}

/* The tensor of the first set that one of a second set is of; else itself. */
MD_COLD const md_tensor *md_load_original(const md_load *l, const md_tensor *t) {
    return t->copy_of > 0 ? &l->tensors[t->copy_of - 1] : t;
}

/* Second sets go with the weights, where the file has them. */
MD_COLD int md_load_takes(const md_load *l, const md_tensor *t) {
    return md_kind_in(t, l->what) || (t->copy_of > 0 && (l->what >> MD_PARAM & 1u) != 0);
}

/* Is the tensor of the file at hand, found or not, asked for? Of second sets what of the first
 * is. */
MD_COLD int md_load_asked(const md_load *l, const md_tensor *found) {
    if (l->only == NULL) {
        return 1;
    }
    return found != NULL && found->copy_of > 0 ? md_slice_any(l->only, md_load_original(l, found))
                                               : md_load_wanted(l, l->head.name);
}

/* May the elements of the file be others than those of the model? Floats of weights, of statistics
 * and of second sets become the nearest value; what an optimizer or a ring keeps stays as it is. */
MD_COLD int md_load_converts(const md_load *l, const md_tensor *t) {
    int weights = t->kind == MD_PARAM || t->kind == MD_LAYER_STATE || t->copy_of > 0;
    return weights && (l->what & MD_LOAD_EXACT) == 0 && md_load_dtype(l)->name != NULL &&
           md_is_float(md_load_dtype(l)->dtype) && (t->dtype == MD_F32 || t->dtype == MD_F64);
}

/* ---- the first walk ------------------------------------------------------------------------- */

/* The head against the table. */
MD_COLD void md_load_compare(md_load *l) {
    const md_entry_head *h = &l->head;
    int64_t shape[MD_MAX_RANK];
    md_found place = {NULL, 0, 0};
    int known = md_load_find(l, h->name, &place);
    if (!md_load_asked(l, known ? place.t : NULL)) {
        return;
    }
    if (!known) {
        if (!md_load_ignored(h->name)) {
            md_text *t = md_load_fault(l, MD_ERR_NAME);
            md_text_add(t, "unknown tensor '");
            md_text_add(t, h->name);
            md_text_add(t, "'");
        }
        return;
    }
    const md_tensor *want = place.t;
    if (l->seen[place.number]++ > 0) {
        l->seen[place.number] = 1;
        md_text *t = md_load_fault(l, MD_ERR_FORMAT);
        md_text_add(t, "tensor '");
        md_text_add(t, h->name);
        md_text_add(t, "' stands twice");
        return;
    }
    const char *type = md_dtype_get(want->dtype)->name;
    int other_type = !md_text_same(type, h->dtype) && !md_load_converts(l, want);
    int rank = md_slice_shape(want, shape);
    int other = other_type || h->rank != rank;
    for (int k = 0; k < rank && !other; k++) {
        other = h->shape[k] != (uint64_t)shape[k];
    }
    if (other && md_load_takes(l, want)) {
        md_text *t = md_load_fault(l, MD_ERR_SHAPE);
        md_text_add(t, "tensor '");
        md_text_add(t, h->name);
        md_text_add(t, "' is ");
        md_load_text_head(t, h);
        md_text_add(t, " in the file and ");
        md_text_add(t, type);
        md_text_shape(t, shape, rank);
        md_text_add(t, " in the model");
        if (other_type && type[0] == 'F' && h->dtype[0] == 'F' && l->faults == 1) {
            md_text_add(t, " (a run goes on in its own precision; weights alone convert)");
        }
    }
}

/* Is everything there? */
MD_COLD void md_load_complete(md_load *l) {
    unsigned kinds = 0;    /* that the file has any of */
    size_t number = 0, at; /* of the first slice of a row, and of one */
    for (size_t i = 0; i < l->count; i++) {
        for (size_t end = number + md_slice_count(&l->tensors[i]); number < end; number++) {
            kinds |= l->seen[number] ? 1u << (unsigned)l->tensors[i].kind : 0;
        }
    }
    number = 0;
    for (size_t i = 0; i < l->count; i++) {
        const md_tensor *t = &l->tensors[i];
        size_t slices = md_slice_count(t);
        int group = t->kind == MD_SLOT || t->kind == MD_RING; /* all or none */
        int optional = t->kind == MD_LAYER_STATE || (group && !md_kind_in(t, kinds));
        for (at = 0; at < slices && md_kind_in(t, l->what) && !optional; at++) {
            if (!l->seen[number + at] && md_slice_wanted(l, t, at)) {
                md_text *m = md_load_fault(l, MD_ERR_NAME);
                md_text_add(m, "tensor '");
                md_slice_name(m, t, at);
                md_text_add(m, "' is missing");
            }
        }
        number += slices;
    }
}

/* First walk: everything but the gaps. */
MD_COLD void md_load_check(md_load *l) {
    uint64_t members = 0;
    int metadata = 0;
    md_load_rewind(l);
    while (md_load_head(l, &members, &metadata)) {
        const md_entry_head *h = &l->head;
        md_load_compare(l);
        if (md_load_sane(l) && h->end > h->begin) {
            l->data = h->end > l->data ? h->end : l->data;
            l->ends += md_mix64(h->begin) - md_mix64(h->end);
        }
    }
    if (l->json.why == NULL) {
        md_load_complete(l);
    }
}

/* The format wants the tensors to tile the data, in any order. They do exactly when each offset but
 * the first and the last occurs as often as an end as it does as a begin: then all tensors lie on
 * one path from the first to the last. Offsets are counted by the sum of their hashes, so one walk
 * and one number are enough. */
MD_COLD void md_load_tiles(md_load *l) {
    if (l->ends != md_mix64(0) - md_mix64(l->data)) {
        md_text_add(md_load_fault(l, MD_ERR_FORMAT),
                    "the data of its tensors overlap or leave gaps");
    }
}

/* The file ends where the data end. */
MD_COLD void md_load_length(md_load *l) {
    unsigned char byte;
    uint64_t end = 8 + l->header + l->data;
    if (l->data > 0 && l->read(l->user, end - 1, &byte, 1) != 0) {
        md_text *t = md_load_fault(l, MD_ERR_READ);
        md_text_add(t, "the file is cut short: its header promises ");
        md_text_u64(t, end);
        md_text_add(t, " bytes");
    } else if (l->read(l->user, end, &byte, 1) == 0) {
        md_text *t = md_load_fault(l, MD_ERR_FORMAT);
        md_text_add(t, "the file goes on behind its data, which end at byte ");
        md_text_u64(t, end);
    }
}

/* Bytes of the data, from offset `at`; 0 and a fault that names the tensor at hand where they do
 * not come. */
MD_COLD int md_load_bytes(md_load *l, uint64_t at, void *to, size_t bytes) {
    if (l->read(l->user, 8 + l->header + at, to, bytes) == 0) {
        return 1;
    }
    md_text *m = md_load_fault(l, MD_ERR_READ);
    md_text_add(m, "the data of tensor '");
    md_text_add(m, l->head.name);
    md_text_add(m, "' could not be read");
    return 0;
}

/* The data against the checksum, before any of it is taken. */
MD_COLD void md_load_verify(md_load *l) {
    char buffer[2048], text[20];
    uint64_t members = 0, sum = 0;
    int metadata = 0;
    md_load_rewind(l);
    while (md_load_head(l, &members, &metadata) && l->code == MD_OK) {
        for (uint64_t at = l->head.begin; at < l->head.end;) {
            uint64_t left = l->head.end - at;
            size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
            if (!md_load_bytes(l, at, buffer, n)) {
                return;
            }
            sum = md_sum(sum, buffer, n);
            at += n;
        }
    }
    md_text want = md_text_make(text, sizeof text);
    md_sum_text(&want, md_sum_note(sum, l->note));
    if (!md_text_same(text, l->sum)) {
        md_text_add(md_load_fault(l, MD_ERR_FORMAT), "damaged: its checksum is another one");
    }
}

/* The next tensor of the file that is to be taken; 0 at its end. */
MD_COLD int md_load_next(md_load *l, uint64_t *members, int *metadata, md_found *place) {
    while (md_load_head(l, members, metadata) && l->code == MD_OK) {
        if (md_load_find(l, l->head.name, place) && md_load_takes(l, place->t) &&
            l->seen[place->number]) {
            return 1;
        }
    }
    return 0;
}

/* A float of a file, by its type. */
MD_COLD double md_load_float(const unsigned char *from, md_dtype type) {
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

/* The first element that the model cannot take; -1: none. Counters and fields of rings become
 * places in memory and have a range; a float becomes no infinity. */
MD_COLD int64_t md_load_outside(const md_tensor *t, md_dtype from, const unsigned char *data,
                                size_t count) {
    size_t width = md_dtype_get(from)->bytes;
    if (t->lo != t->hi) {
        return md_integers_outside(data, t->dtype, width, count, t->lo, t->hi);
    }
    for (size_t i = 0; i < count; i++) {
        double value = md_load_float(data + i * width, from);
        if (isfinite(value) && !isfinite((float)value)) {
            return (int64_t)i;
        }
    }
    return -1;
}

MD_COLD void md_load_refuse(md_load *l, const md_tensor *t, uint64_t element) {
    md_text *m = md_load_fault(l, MD_ERR_RANGE);
    md_text_add(m, "tensor '");
    md_text_add(m, l->head.name);
    md_text_add(m, "': element ");
    md_text_u64(m, element);
    if (t->lo == t->hi) {
        md_text_add(m, " is beyond what F32 holds");
        return;
    }
    md_text_add(m, " is outside of ");
    md_text_i64(m, t->lo);
    if (t->hi < INT64_MAX) {
        md_text_add(m, "..");
        md_text_i64(m, t->hi);
    } else {
        md_text_add(m, " and up");
    }
}

/* The values, before any of the data is taken. */
MD_COLD void md_load_values(md_load *l) {
    unsigned char buffer[2048];
    uint64_t members = 0;
    int metadata = 0;
    md_found place = {NULL, 0, 0};
    md_load_rewind(l);
    while (md_load_next(l, &members, &metadata, &place)) {
        const md_tensor *t = place.t;
        md_dtype from = md_load_dtype(l)->dtype;
        size_t width = md_dtype_get(from)->bytes;
        int looked_at = t->lo != t->hi || (from == MD_F64 && t->dtype == MD_F32);
        uint64_t end = looked_at ? l->head.end : l->head.begin;
        for (uint64_t at = l->head.begin; at < end && l->code == MD_OK;) {
            uint64_t left = end - at;
            size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
            if (!md_load_bytes(l, at, buffer, n)) {
                return;
            }
            int64_t bad = md_load_outside(t, from, buffer, n / width);
            if (bad >= 0) {
                md_load_refuse(l, t, (at - l->head.begin) / width + (uint64_t)bad);
            }
            at += n;
        }
    }
}

/* ---- the second walk ------------------------------------------------------------------------ */

/* An md_read_fn over the floats of the tensor at hand as if the file had those of the model. */
typedef struct md_load_floats {
    const md_load *load;
    md_dtype from, to;
} md_load_floats;

MD_COLD int md_load_read_floats(void *user, uint64_t offset, void *data, size_t bytes) {
    const md_load_floats *f = (const md_load_floats *)user;
    unsigned char buffer[MD_TURN_BYTES];
    size_t have = md_dtype_get(f->from)->bytes, want = md_dtype_get(f->to)->bytes;
    char *to = (char *)data;
    size_t count = bytes / want;
    uint64_t at = 8 + f->load->header + f->load->head.begin + offset / want * have;
    while (count > 0) {
        size_t n = count < sizeof buffer / have ? count : sizeof buffer / have;
        if (f->load->read(f->load->user, at, buffer, n * have) != 0) {
            return 1;
        }
        for (size_t i = 0; i < n; i++) {
            double real = md_load_float(buffer + i * have, f->from);
            float single = (float)real;
            memcpy(to + i * want, f->to == MD_F64 ? (const void *)&real : (const void *)&single,
                   want);
        }
        to += n * want;
        at += n * have;
        count -= n;
    }
    return 0;
}

/* Reads what `only` asks for of a tensor: of a second set, which is one tensor, slices of the
 * first. 0 when all of it came. */
MD_COLD int md_load_slices(const md_load *l, const md_found *place, char *at, md_read_fn read,
                           void *user, uint64_t begin) {
    const md_tensor *t = place->t, *from = md_load_original(l, t);
    size_t width = md_dtype_get(t->dtype)->bytes, bytes = md_slice_bytes(from);
    if (from == t || l->only == NULL) {
        return md_slice_read(t, at, width, read, user, begin);
    }
    for (size_t k = 0; k < md_slice_count(from); k++) {
        if (md_slice_wanted(l, from, k) && read(user, begin + k * bytes, at + k * bytes, bytes)) {
            return 1;
        }
    }
    return 0;
}

/* Data into the regions. The file may have changed meanwhile, so only what still fits is read. */
MD_COLD void md_load_data(md_load *l, const md_memory *memory) {
    uint64_t members = 0;
    int metadata = 0;
    md_found place = {NULL, 0, 0};
    md_load_rewind(l);
    while (md_load_next(l, &members, &metadata, &place)) {
        const md_tensor *t = place.t;
        const md_dtype_info *have = md_load_dtype(l), *want = md_dtype_get(t->dtype);
        md_load_floats floats = {l, have->dtype, t->dtype};
        size_t bytes = md_slice_bytes(t);
        char *at = md_slice_data(t, place.slice, memory);
        int same = have->dtype == t->dtype;
        int fits = (same || (have->name != NULL && md_load_converts(l, t))) &&
                   l->head.end - l->head.begin == bytes / want->bytes * have->bytes;
        if (!fits || md_load_slices(l, &place, at, same ? l->read : md_load_read_floats,
                                    same ? l->user : &floats,
                                    same ? 8 + l->header + l->head.begin : 0) != 0) {
            md_text *m = md_load_fault(l, MD_ERR_READ);
            md_text_add(m, "tensor '");
            md_text_add(m, l->head.name);
            md_text_add(m, "' could not be read");
        }
        for (size_t k = 0; t->dtype == MD_BOOL && k < bytes; k++) {
            at[k] = (char)(at[k] != 0);
        }
    }
}

/* Second sets of parameters that did not come with the file begin as the first. */
MD_COLD void md_load_copies(const md_load *l, const md_memory *memory) {
    size_t number = 0;
    for (size_t i = 0; i < l->count; i++) {
        const md_tensor *t = &l->tensors[i];
        const md_tensor *from = md_load_original(l, t);
        int has = l->seen[number] && md_load_takes(l, t);
        number += md_slice_count(t); /* of a copy: one */
        for (size_t k = 0; from != t && !has && k < md_slice_count(from); k++) {
            if (md_slice_wanted(l, from, k)) {
                char *to = md_tensor_data(t, memory) + k * md_slice_bytes(from);
                memcpy(to, md_slice_data(from, k, memory), md_slice_bytes(from));
            }
        }
    }
}

/* All steps; a fault in the text of the header makes everything else that was said a guess. */
MD_COLD void md_load_steps(md_load *l, const md_memory *memory) {
    size_t before = l->message == NULL ? 0 : l->message->used;
    unsigned char prefix[8];
    if (l->read(l->user, 0, prefix, sizeof prefix) != 0) {
        md_text_add(md_load_fault(l, MD_ERR_READ), "shorter than the 8 bytes of its header length");
        return;
    }
    for (int i = 0; i < 8; i++) {
        l->header |= (uint64_t)prefix[i] << 8 * i;
    }
    if (l->header > MD_HEADER_MAX) {
        md_text_add(md_load_fault(l, MD_ERR_FORMAT),
                    "not a safetensors file: its header length is absurd");
        return;
    }
    md_load_check(l);
    if (l->code == MD_OK && l->json.why == NULL) {
        md_load_tiles(l);
    }
    if (l->code == MD_OK && l->json.why == NULL) {
        md_load_length(l);
    }
    if (l->code == MD_OK && l->json.why == NULL && l->sum[0] != 0) {
        md_load_verify(l);
    }
    if (l->code == MD_OK && l->json.why == NULL) {
        md_load_values(l);
    }
    if (l->code == MD_OK && l->json.why == NULL) {
        md_load_data(l, memory);
    }
    if (l->code == MD_OK && l->json.why == NULL) {
        md_load_copies(l, memory);
    }
    if (l->json.why != NULL) {
        if (l->message != NULL) {
            l->message->used = before;
            l->message->at[before] = 0;
        }
        l->code = MD_OK;
        l->faults = 0;
        md_text *t = md_load_fault(l, MD_ERR_FORMAT);
        md_text_add(t, "not a safetensors file: ");
        md_text_add(t, l->json.why);
        md_text_add(t, " at byte ");
        md_text_u64(t, l->json.where);
    }
}

/* Loads the tensors whose kind is in `what`, and with parameters the second sets that the file
 * has. A file must have every parameter; statistics of layers stay as they are where it has none;
 * of slots, and of rings, it has all or none; second sets that it lacks become what they copy.
 * Floats of other types become the nearest value, but with MD_LOAD_EXACT, and those of slots and
 * rings. All names, types, shapes and offsets are checked before a byte of the regions changes.
 * `seen` is scratch of md_slice_total bytes and tells afterwards which tensors the file has. Gives
 * MD_OK or a status code, and then what was wrong, as far as ten lines of it go, in `message`
 * (which may be NULL). With `only`, paths with commas between them, the rest of the file and of
 * the model does not count: it may be missing, unknown or of another shape. The file's note goes
 * to `note`, of MD_NOTE_BYTES or NULL; it is empty where there is none. */
MD_COLD int md_load_noted(const md_tensor *tensors, size_t count, const md_memory *memory,
                          unsigned what, const char *only, unsigned char *seen, char *note,
                          md_read_fn read, void *user, md_text *message) {
    md_load l;
    memset(&l, 0, sizeof l);
    memset(seen, 0, md_slice_total(tensors, count));
    l.tensors = tensors;
    l.count = count;
    l.what = what;
    l.only = only;
    l.seen = seen;
    l.read = read;
    l.user = user;
    l.message = message;
    size_t tail = message != NULL && message->size > 2 * MD_FAULTS_TAIL ? MD_FAULTS_TAIL : 0;
    if (tail > 0) { /* however long names are, the count has its place */
        message->size -= tail;
    }
    md_load_steps(&l, memory);
    if (tail > 0) {
        message->size += tail;
    }
    if (l.faults > MD_FAULTS_SHOWN) {
        md_text_add(message, "; and ");
        md_text_u64(message, (uint64_t)(l.faults - MD_FAULTS_SHOWN));
        md_text_add(message, " more");
    }
    if (note != NULL) {
        memcpy(note, l.note, sizeof l.note);
    }
    return l.code;
}

MD_COLD int md_load_part(const md_tensor *tensors, size_t count, const md_memory *memory,
                         unsigned what, const char *only, unsigned char *seen, md_read_fn read,
                         void *user, md_text *message) {
    return md_load_noted(tensors, count, memory, what, only, seen, NULL, read, user, message);
}

MD_COLD int md_load_tensors(const md_tensor *tensors, size_t count, const md_memory *memory,
                            unsigned what, unsigned char *seen, md_read_fn read, void *user,
                            md_text *message) {
    return md_load_part(tensors, count, memory, what, NULL, seen, read, user, message);
}

#endif
