/* SPDX-License-Identifier: 0BSD */
/* load: reads a safetensors file into the regions of a model.
 *
 * Streams through a callback and needs no memory but a few kilobytes of stack. The first walks over
 * the header check every name, type, shape, offset, checksum and range, the last one reads the data
 * straight into the regions; so a file that does not fit changes nothing.
 * Needs json.h, safetensors.h and rng.h (to hash), gives md_load_tensors, allocates nothing. */
#ifndef MD_LOAD_H
#define MD_LOAD_H

#include <stdarg.h>

#include "runtime/json.h"
#include "runtime/rng.h"
#include "runtime/safetensors.h"

enum { MD_FAULTS_SHOWN = 10, MD_FAULTS_TAIL = 32 };

/* One member of a header. */
typedef struct md_head {
    char name[MD_NAME_BYTES];
    char dtype[16];
    const md_dtype_info *type; /* NULL: of metadata; one without a name: none that we know */
    int rank;
    uint64_t shape[MD_MAX_RANK];
    uint64_t begin, end; /* from the start of the data */
} md_head;

/* if: spans */
/* Is the tensor one that is read now? */
typedef int (*md_takes_fn)(const void *taker, const md_tensor *t);
/* end: spans */

/* The walks over the tensors of a file. */
enum { MD_LOAD_CHECK, MD_LOAD_SUM, MD_LOAD_VALUES, MD_LOAD_DATA, MD_LOAD_WALKS };

typedef struct md_load {
    const md_tensor *tensors;
    size_t count;
    const md_memory *memory;
    unsigned what;       /* kinds, perhaps MD_LOAD_EXACT, MD_LOAD_SOME */
    unsigned char *seen; /* one byte a slice */
    md_read_fn read;
    void *user;
    int walk, code;
    md_json json;
    uint64_t header;   /* length of the JSON text */
    uint64_t data;     /* length of the data, by the offsets */
    uint64_t ends;     /* hashes of all begins less those of all ends */
    uint64_t sum;      /* of the data */
    char sum_text[20]; /* as written; empty: none */
    char note[MD_NOTE_BYTES];
    unsigned kinds;       /* of which the file has any */
    int members;          /* of the header, so far */
    md_head head;         /* the one at hand */
    const md_tensor *t;   /* what it is in the table; NULL: nothing */
    size_t slice, number; /* of t, and its place among those of all rows */
    size_t hint, passed;  /* where the next most likely stands; slices before it */
    /* if: main */
    const char *only; /* paths with commas between them; NULL: everything */
    int faults;
    md_text *message; /* or NULL; empty at first, MD_FAULTS_TAIL bytes lie behind its size */
    /* end: main */
    /* if: spans */
    md_takes_fn takes; /* which tensors' data are read now; NULL: all that are asked for */
    const void *taker;
    /* end: spans */
} md_load;

/* ---- what is wrong -------------------------------------------------------------------------- */

/* if: main */
/* Adds a text: %s stands for a string, %u for a uint64_t, %d for an int64_t, %h for a shape and its
 * rank. */
MD_COLD void md_load_say(md_text *t, const char *format, va_list list) {
    for (; *format != 0; format++) {
        if (*format != '%') {
            md_text_bytes(t, format, 1);
        } else if (*++format == 's') {
            md_text_add(t, va_arg(list, const char *));
        } else if (*format == 'u') {
            md_text_u64(t, va_arg(list, uint64_t));
        } else if (*format == 'd') {
            md_text_i64(t, va_arg(list, int64_t));
        } else {
            const int64_t *shape = (const int64_t *)va_arg(list, const uint64_t *);
            md_text_shape(t, shape, va_arg(list, int));
        }
    }
}
/* end: main */

MD_COLD void md_load_fault(md_load *l, int code, const char *format, ...) {
    l->code = l->code == MD_OK ? code : l->code;
    /* if: main */
    if (l->faults++ < MD_FAULTS_SHOWN) {
        va_list list;
        va_start(list, format);
        md_text_add(l->message, l->faults > 1 ? "; " : "");
        md_load_say(l->message, format, list);
        va_end(list);
    }
    /* end: main */
    (void)format;
}

/* ---- the header ----------------------------------------------------------------------------- */

/* A field of the head at hand, whose name is `key`; gives its bit. */
MD_COLD int md_load_field(md_load *l, const char *key) {
    md_json *j = &l->json;
    md_head *h = &l->head;
    uint64_t offsets[2] = {0, 0};
    if (md_text_same(key, "dtype")) {
        md_json_string(j, h->dtype, sizeof h->dtype);
        return 1;
    }
    if (md_text_same(key, "shape")) {
        h->rank = md_json_integers(j, h->shape, MD_MAX_RANK);
        return 2;
    }
    if (!md_text_same(key, "data_offsets") || md_json_integers(j, offsets, 2) != 2) {
        md_json_fault(j, "a tensor has dtype, shape and two data_offsets");
    }
    h->begin = offsets[0];
    h->end = offsets[1];
    return 4;
}

/* Reads the next member of the header: a tensor into l->head, or metadata, of which only our
 * checksum and note are kept; then the head has no type. 0 at the end and after a fault. */
MD_COLD int md_load_head(md_load *l) {
    md_json *j = &l->json;
    md_head *h = &l->head;
    char key[MD_NAME_BYTES];
    int have = 0;
    if (l->members++ > 0 ? !md_json_more(j, '}', "',' was expected") : md_json_take(j, '}')) {
        if (md_json_ahead(j) >= 0) {
            md_json_fault(j, "text behind the header's end");
        }
        return 0;
    }
    md_json_key(j, h->name, sizeof h->name);
    const int metadata = md_text_same(h->name, "__metadata__");
    md_json_expect(j, '{', "an object was expected");
    for (int more = !md_json_take(j, '}'); more; more = md_json_more(j, '}', "',' was expected")) {
        md_json_key(j, key, sizeof key);
        const int sum = md_text_same(key, "mdlc.checksum"), note = md_text_same(key, "mdlc.note");
        if (metadata) {
            md_json_string(j,
                           sum    ? l->sum_text
                           : note ? l->note
                                  : NULL,
                           sum ? sizeof l->sum_text : sizeof l->note);
            continue;
        }
        const int field = md_load_field(l, key);
        if ((have & field) != 0) {
            md_json_fault(j, "a key stands twice");
        }
        have |= field;
    }
    if (!metadata && have != 7) {
        md_json_fault(j, "a tensor needs dtype, shape and data_offsets");
    }
    h->type = metadata ? NULL : md_dtype_get(MD_BOOL);
    while (!metadata && h->type->name != NULL && !md_text_same(h->type->name, h->dtype)) {
        h->type++;
    }
    return j->why == NULL;
}

/* The slice with the name at hand; 0: there is none. Files mostly have the order of the table, so
 * the search goes around it from where the last one ended. */
MD_COLD int md_load_find(md_load *l) {
    for (size_t k = 0; k < l->count; k++) {
        l->t = &l->tensors[l->hint];
        int found = md_slice_match(l->t, l->head.name, &l->slice);
        l->number = l->passed + l->slice;
        l->passed += md_slice_count(l->t);
        if (++l->hint == l->count) {
            l->hint = l->passed = 0;
        }
        if (found) {
            return 1;
        }
    }
    l->t = NULL;
    return 0;
}

/* ---- which tensors -------------------------------------------------------------------------- */

/* Names that may stand in a file that is loaded without them: slots of a checkpoint of which only
 * the weights are wanted, and PyTorch's batch counters. */
MD_COLD int md_load_ignored(const char *name) {
    const char *last = name; /* behind the last dot */
    for (const char *c = name; *c != 0; c++) {
        last = *c == '.' ? c + 1 : last;
    }
    return md_text_starts(name, "mdlc.") || md_text_same(last, "num_batches_tracked");
}

/* if: copies */
/* The tensor of the first set that one of a second set is of; else itself. */
MD_COLD const md_tensor *md_load_original(const md_load *l, const md_tensor *t) {
    return t->copy_of > 0 ? &l->tensors[t->copy_of - 1] : t;
}
/* end: copies */

/* Second sets go with the weights, where the file has them. */
MD_COLD int md_load_takes(const md_load *l, const md_tensor *t) {
    return md_kind_in(t, l->what) || (t->copy_of > 0 && (l->what >> MD_PARAM & 1u) != 0);
}

/* if: spans */
/* Is its place in memory there? */
MD_COLD int md_load_now(const md_load *l, const md_tensor *t) {
    return l->takes == NULL || l->takes(l->taker, t);
}
/* end: spans */

/* Are the elements of the file those of the model, or can they become these? Floats of weights,
 * statistics and second sets become the nearest; slots and rings stay as they are. */
MD_COLD int md_load_converts(const md_load *l) {
    const md_tensor *t = l->t;
    int weights = t->kind == MD_PARAM || t->kind == MD_LAYER_STATE || t->copy_of > 0;
    return l->head.type->dtype == t->dtype ||
           (weights && (l->what & MD_LOAD_EXACT) == 0 && md_is_float(l->head.type->dtype) &&
            md_is_float(t->dtype));
}

/* ---- the first walk ------------------------------------------------------------------------- */

/* The head against the table. */
MD_COLD void md_load_compare(md_load *l) {
    const md_head *h = &l->head;
    uint64_t shape[MD_MAX_RANK];
    int known = md_load_find(l);
    /* if: main */
    int asked = l->only == NULL || md_load_under(l->only, h->name);
    /* if: copies */
    if (l->only != NULL && known && l->t->copy_of > 0) { /* what of the first set is */
        asked = md_slice_any(l->only, md_load_original(l, l->t));
    }
    /* end: copies */
    if (!asked) {
        return;
    }
    /* end: main */
    if (!known) {
        if (!md_load_ignored(h->name)) {
            md_load_fault(l, MD_ERR_NAME, "unknown tensor '%s'", h->name);
        }
        return;
    }
    if (l->seen[l->number]) {
        md_load_fault(l, MD_ERR_FORMAT, "tensor '%s' stands twice", h->name);
        return;
    }
    l->seen[l->number] = 1;
    l->kinds |= 1u << (unsigned)l->t->kind;
    int rank = md_slice_shape(l->t, shape), converts = md_load_converts(l);
    int fits = converts && h->rank == rank;
    for (int k = 0; k < rank && fits; k++) {
        fits = h->shape[k] == shape[k];
    }
    if (!fits && md_load_takes(l, l->t)) {
        const char *type = md_dtype_get(l->t->dtype)->name, *more = "";
        /* if: main */
        if (!converts && h->type->name != NULL && md_is_float(h->type->dtype) &&
            md_is_float(l->t->dtype) && l->faults == 0) {
            more = " (a run goes on in its own precision; weights alone convert)";
        }
        /* end: main */
        md_load_fault(l, MD_ERR_SHAPE, "tensor '%s' is %s%h in the file and %s%h in the model%s",
                      h->name, h->dtype, h->shape, h->rank, type, shape, rank, more);
    }
}

/* The head against itself: known type, shape that fits the offsets. */
MD_COLD void md_load_sane(md_load *l) {
    const md_head *h = &l->head;
    int known = h->type->name != NULL;
    uint64_t bytes = h->type->bytes;
    for (int i = 0; i < h->rank; i++) {
        uint64_t n = h->shape[i];
        bytes = n > 0 && bytes > UINT64_MAX / n ? UINT64_MAX : bytes * n;
    }
    /* A type that we do not know may be that of a tensor that nobody asks for. */
    if (h->end < h->begin || (known ? h->end - h->begin != bytes : !md_load_ignored(h->name))) {
        md_load_fault(l, MD_ERR_FORMAT, "tensor '%s' has %s %s%h", h->name,
                      known ? "offsets that do not fit" : "the unknown type", h->dtype, h->shape,
                      h->rank);
    } else if (h->end > h->begin) {
        l->data = h->end > l->data ? h->end : l->data;
        l->ends += md_mix64(h->begin) - md_mix64(h->end);
    }
}

/* Is everything there? Of statistics nothing must be, of slots and of rings all or none. */
MD_COLD void md_load_complete(md_load *l) {
    unsigned must = (1u << MD_PARAM | l->kinds) & l->what & ~(1u << MD_LAYER_STATE);
    const unsigned char *seen = l->seen;
    for (size_t i = 0; i < l->count; i++) {
        const md_tensor *t = &l->tensors[i];
        for (size_t k = 0; k < md_slice_count(t); k++) {
            if (*seen++ || !md_kind_in(t, must) || (l->what & MD_LOAD_SOME) != 0) {
                continue;
            }
            /* if: main */
            if (!md_slice_wanted(l->only, t, k)) {
                continue;
            }
            md_slice_name(l->head.name, t, k);
            /* end: main */
            md_load_fault(l, MD_ERR_NAME, "tensor '%s' is missing", l->head.name);
        }
    }
}

/* Tensors tile the data, in any order, exactly when each offset but the first and the last is as
 * often an end as a begin. Offsets are counted by the sum of their hashes: one walk, one number. */
MD_COLD void md_load_whole(md_load *l) {
    unsigned char byte;
    uint64_t end = 8 + l->header + l->data;
    md_load_complete(l);
    if (l->code != MD_OK) {
        return;
    }
    if (l->ends != md_mix64(0) - md_mix64(l->data)) {
        md_load_fault(l, MD_ERR_FORMAT, "the data of its tensors overlap or leave gaps");
    } else if (l->data > 0 && l->read(l->user, end - 1, &byte, 1) != 0) {
        md_load_fault(l, MD_ERR_READ, "the file is cut short: its header promises %u bytes", end);
    } else if (l->read(l->user, end, &byte, 1) == 0) {
        md_load_fault(l, MD_ERR_FORMAT, "the file goes on behind its data, which end at byte %u",
                      end);
    }
}

/* ---- the data ------------------------------------------------------------------------------- */

/* Element `i` of the tensor at hand: looks whether the model can take it, or takes it. Counters and
 * fields of rings become places in memory and have a range; a float becomes no infinity. */
MD_COLD void md_load_element(md_load *l, size_t i, const unsigned char *from, char *to) {
    const md_tensor *t = l->t;
    const md_dtype type = l->head.type->dtype;
    const size_t width = md_dtype_get(t->dtype)->bytes;
    const int ranged = t->lo != t->hi;
    const int64_t whole = ranged ? md_get_integer(from, type) : 0;
    const double real = md_is_float(type) ? md_get_float(from, type) : 0;
    double near; /* room for any */
    if (l->walk == MD_LOAD_VALUES) {
        if (ranged && (whole < t->lo || whole >= t->hi)) {
            const char *format = "tensor '%s': element %u is outside of %d..%d";
            format = t->hi < INT64_MAX ? format : "tensor '%s': element %u is outside of %d and up";
            md_load_fault(l, MD_ERR_RANGE, format, l->head.name, (uint64_t)i, t->lo, t->hi);
        } else if (!ranged && !md_put_float(&near, t->dtype, real)) {
            md_load_fault(l, MD_ERR_RANGE, "tensor '%s': element %u is beyond what %s holds",
                          l->head.name, (uint64_t)i, md_dtype_get(t->dtype)->name);
        }
        return;
    }
    /* if: turned */
    i = t->transposed ? md_slice_turned(t, i) : i;
    /* end: turned */
    to += i * width;
    if (type == t->dtype) {
        memcpy(to, from, width);
        *to = (char)(type == MD_BOOL ? *to != 0 : *to);
    } else {
        (void)md_put_float(to, t->dtype, real);
    }
}

/* Bytes `at` to `end` of the data, straight to memory or through a buffer: sums them up, looks at
 * them or takes them. */
MD_COLD void md_load_bytes(md_load *l, uint64_t at, uint64_t end, char *to) {
    const md_tensor *t = l->t;
    const md_head *h = &l->head;
    size_t width = h->type->bytes;
    unsigned char buffer[MD_PIECE_BYTES];
    int straight = l->walk == MD_LOAD_DATA && h->type->dtype == t->dtype && !t->transposed &&
                   t->dtype != MD_BOOL;
    while (at < end && l->code == MD_OK) {
        size_t n = straight || end - at < sizeof buffer ? (size_t)(end - at) : sizeof buffer;
        void *place = straight ? (void *)(to + (size_t)(at - h->begin)) : (void *)buffer;
        if (l->read(l->user, 8 + l->header + at, place, n) != 0) {
            md_load_fault(l, MD_ERR_READ, "%stensor '%s' could not be read",
                          l->walk == MD_LOAD_DATA ? "" : "the data of ", h->name);
        } else if (l->walk == MD_LOAD_SUM) {
            l->sum = md_sum(l->sum, (const char *)buffer, n);
        }
        for (size_t i = 0; l->walk != MD_LOAD_SUM && !straight && i < n && l->code == MD_OK;
             i += width) {
            md_load_element(l, (size_t)(at - h->begin + i) / width, buffer + i, to);
        }
        at += n;
    }
}

/* The tensor at hand. The file may have changed meanwhile, so only what still fits is read. */
MD_COLD void md_load_tensor(md_load *l) {
    const md_tensor *t = l->t;
    const md_head *h = &l->head;
    char *to = md_slice_data(t, l->slice, l->memory);
    size_t width = h->type->bytes;
    size_t count = md_slice_bytes(t) / md_dtype_get(t->dtype)->bytes;
    /* if: spans */
    if (l->walk == MD_LOAD_DATA && !md_load_now(l, t)) {
        return;
    }
    /* end: spans */
    if (!md_load_converts(l) || h->end - h->begin != count * width) {
        md_load_fault(l, MD_ERR_READ, "tensor '%s' could not be read", h->name);
        return;
    }
    const int same = h->type->dtype == t->dtype || !md_is_float(t->dtype);
    if (l->walk == MD_LOAD_VALUES && t->lo == t->hi && same) {
        return;
    }
    /* if: main */
    /* if: copies */
    if (l->walk == MD_LOAD_DATA && l->only != NULL && t->copy_of > 0) { /* what of the first is */
        const md_tensor *from = md_load_original(l, t);
        size_t slices = md_slice_count(from), bytes = count * width / slices;
        for (size_t k = 0; k < slices; k++) {
            if (md_slice_wanted(l->only, from, k)) {
                md_load_bytes(l, h->begin + k * bytes, h->begin + (k + 1) * bytes, to);
            }
        }
        return;
    }
    /* end: copies */
    /* end: main */
    md_load_bytes(l, h->begin, h->end, to);
}

/* if: copies */
/* Second sets of parameters that did not come with the file begin as the first; where it may have
 * some alone, as far as these came. */
MD_COLD void md_load_copies(const md_load *l) {
    const unsigned char *seen = l->seen;
    for (size_t i = 0; i < l->count; i++) {
        const md_tensor *t = &l->tensors[i], *from = md_load_original(l, t);
        size_t bytes = md_slice_bytes(from);
        int has = *seen && md_load_takes(l, t);
        /* if: spans */
        has = has || !md_load_now(l, t);
        /* end: spans */
        seen += md_slice_count(t); /* of a copy: one */
        for (size_t k = 0; from != t && !has && k < md_slice_count(from); k++) {
            size_t first = md_slice_total(l->tensors, (size_t)(from - l->tensors));
            int wanted = (l->what & MD_LOAD_SOME) == 0 || l->seen[first + k];
            /* if: main */
            wanted = wanted && md_slice_wanted(l->only, from, k);
            /* end: main */
            if (wanted) {
                const size_t count = bytes / md_dtype_get(from->dtype)->bytes;
                char *to = md_slice_data(t, 0, l->memory);
                md_copy_elements(to + k * count * md_dtype_get(t->dtype)->bytes, t->dtype,
                                 md_slice_data(from, k, l->memory), from->dtype, count);
            }
        }
    }
}
/* end: copies */

/* ---- all walks ------------------------------------------------------------------------------ */

MD_COLD void md_load_walk(md_load *l) {
    md_json_start(&l->json, l->read, l->user, 8, 8 + l->header);
    md_json_expect(&l->json, '{', "the header must be a JSON object");
    l->hint = l->passed = 0;
    l->members = 0;
    while ((l->walk == MD_LOAD_CHECK || l->code == MD_OK) && md_load_head(l)) {
        if (l->head.type == NULL) {
            continue;
        }
        if (l->walk == MD_LOAD_CHECK) {
            md_load_compare(l);
            md_load_sane(l);
        } else if (l->walk == MD_LOAD_SUM) {
            md_load_bytes(l, l->head.begin, l->head.end, NULL);
        } else if (md_load_find(l) && md_load_takes(l, l->t) && l->seen[l->number]) {
            md_load_tensor(l);
        }
    }
}

/* Behind a walk. */
MD_COLD void md_load_walked(md_load *l) {
    char sum[17];
    if (l->walk == MD_LOAD_CHECK) {
        md_load_whole(l);
        l->walk += l->sum_text[0] == 0; /* nothing to compare with */
    } else if (l->walk == MD_LOAD_SUM && l->code == MD_OK) {
        md_hex(sum, md_sum_note(l->sum, l->note), 16);
        if (!md_text_same(sum, l->sum_text)) {
            md_load_fault(l, MD_ERR_FORMAT, "damaged: its checksum is another one");
        }
    }
    /* if: copies */
    if (l->walk == MD_LOAD_DATA && l->code == MD_OK) {
        md_load_copies(l);
    }
    /* end: copies */
}

/* Loads the tensors whose kind is in `what`, and with parameters the second sets that the file has.
 * A file must have every parameter; statistics of layers stay as they are where it has none; of
 * slots, and of rings, it has all or none; second sets that it lacks become what they copy. With
 * MD_LOAD_SOME what it lacks stays as it is. Floats of other types become the nearest value, but
 * with MD_LOAD_EXACT, and those of slots and rings. Names, types, shapes and offsets are checked
 * before a byte of the regions changes. `l` is scratch, zeros at first; `seen` has md_slice_total
 * bytes and tells afterwards which tensors the file has. Gives MD_OK or a status code. */
MD_COLD int md_load_tensors(md_load *l, const md_tensor *tensors, size_t count,
                            const md_memory *memory, unsigned what, unsigned char *seen,
                            md_read_fn read, void *user) {
    l->tensors = tensors;
    l->count = count;
    l->memory = memory;
    l->what = what;
    l->seen = seen;
    l->read = read;
    l->user = user;
    memset(l->seen, 0, md_slice_total(l->tensors, l->count));
    if (l->read(l->user, 0, &l->header, sizeof l->header) != 0) {
        md_load_fault(l, MD_ERR_READ, "shorter than the 8 bytes of its header length");
    } else if (l->header > MD_HEADER_MAX) {
        md_load_fault(l, MD_ERR_FORMAT, "not a safetensors file: its header length is absurd");
    }
    for (; l->walk < MD_LOAD_WALKS && l->code == MD_OK && l->json.why == NULL; l->walk++) {
        md_load_walk(l);
        if (l->json.why == NULL) {
            md_load_walked(l);
        }
    }
    if (l->json.why != NULL) { /* which makes everything else that was said a guess */
        l->code = MD_OK;
        /* if: main */
        l->faults = 0;
        if (l->message != NULL) {
            l->message->used = 0;
        }
        /* end: main */
        md_load_fault(l, l->json.why == md_json_unread ? MD_ERR_READ : MD_ERR_FORMAT,
                      "not a safetensors file: %s at byte %u", l->json.why, l->json.at);
    }
    /* if: main */
    if (l->faults > MD_FAULTS_SHOWN && l->message != NULL) {
        md_text tail = *l->message; /* however long names are, the count has its place */
        tail.size += MD_FAULTS_TAIL;
        md_text_add(&tail, "; and ");
        md_text_u64(&tail, (uint64_t)(l->faults - MD_FAULTS_SHOWN));
        md_text_add(&tail, " more");
        l->message->used = tail.used;
    }
    /* end: main */
    return l->code;
}

/* The same of all that is there, with a message, empty at first, and the file's note to `note`, of
 * MD_NOTE_BYTES or NULL. */
MD_COLD int md_load_noted(const md_tensor *tensors, size_t count, const md_memory *memory,
                          unsigned what, const char *only, unsigned char *seen, char *note,
                          md_read_fn read, void *user, md_text *message) {
    md_load l;
    memset(&l, 0, sizeof l);
    l.only = only;
    l.message = message;
    message->size -= MD_FAULTS_TAIL;
    (void)md_load_tensors(&l, tensors, count, memory, what, seen, read, user);
    message->size += MD_FAULTS_TAIL;
    if (note != NULL) {
        memcpy(note, l.note, sizeof l.note);
    }
    return l.code;
}

#endif
