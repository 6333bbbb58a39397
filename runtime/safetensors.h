/* SPDX-License-Identifier: 0BSD */
/* safetensors: writes and reads the file format of that name (8 bytes of header length, a JSON
 * header, raw little-endian data), as the Python package of that name does.
 *
 * Both stream through callbacks and need no memory but a few kilobytes of stack. A load walks the
 * header twice: the first walk checks every name, type, shape and offset, the second one reads the
 * data straight into the regions; so a file that does not fit changes nothing.
 * Needs slices.h, json.h and rng.h (to hash), gives md_save_tensors and md_load_tensors, allocates
 * nothing. */
#ifndef MD_SAFETENSORS_H
#define MD_SAFETENSORS_H

#include "runtime/json.h"
#include "runtime/rng.h"
#include "runtime/slices.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights files are little-endian, and so must be the machine"
#endif

enum {
    MD_NAME_BYTES = 512,
    MD_HEADER_MAX = 100000000,
    MD_FAULTS_SHOWN = 10,
    MD_FAULTS_TAIL = 32,
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

/* ---- loading -------------------------------------------------------------------------------- */

/* One member of a header. */
typedef struct md_entry_head {
    char name[MD_NAME_BYTES];
    char dtype[16];
    int rank;
    uint64_t shape[MD_MAX_RANK];
    uint64_t begin, end; /* from the start of the data */
} md_entry_head;

typedef struct md_load {
    const md_tensor *tensors;
    size_t count;
    unsigned what;
    const char *only;    /* paths with commas between them; NULL: everything */
    unsigned char *seen; /* one byte a slice */
    md_json json;
    md_entry_head head;
    md_read_fn read;
    void *user;
    uint64_t header; /* length of the JSON text */
    uint64_t data;   /* length of the data, by the offsets */
    char sum[20];    /* the checksum as written; empty: none */
    char note[MD_NOTE_BYTES];
    uint64_t ends; /* hashes of all begins less those of all ends */
    size_t hint;   /* where the next name most likely stands in the table */
    size_t passed; /* slices of the rows before it */
    int faults;
    int code;
    md_text *message;
} md_load;

/* Is `name` one of the paths of `only`, or below one? */
MD_COLD int md_load_under(const char *only, const char *name) {
    while (only != NULL && *only != 0) {
        size_t n = 0;
        while (only[n] != 0 && only[n] != ',' && only[n] == name[n]) {
            n++;
        }
        if ((only[n] == 0 || only[n] == ',') && n > 0 && (name[n] == 0 || name[n] == '.')) {
            return 1;
        }
        while (only[n] != 0 && only[n] != ',') {
            n++;
        }
        only += n + (only[n] == ',');
    }
    return 0;
}

MD_COLD int md_load_wanted(const md_load *l, const char *name) {
    return l->only == NULL || md_load_under(l->only, name);
}

/* Where to say what is wrong; NULL when enough was said. */
MD_COLD md_text *md_load_fault(md_load *l, int code) {
    l->code = l->code == MD_OK ? code : l->code;
    if (l->faults++ >= MD_FAULTS_SHOWN) {
        return NULL;
    }
    md_text_add(l->message, l->faults > 1 ? "; " : "");
    return l->message;
}

MD_COLD void md_load_head_field(md_load *l, unsigned *have) {
    md_json *j = &l->json;
    md_entry_head *h = &l->head;
    char key[32];
    uint64_t offsets[2] = {0, 0};
    unsigned bit = 0;
    md_json_string(j, key, sizeof key);
    md_json_expect(j, ':', "':' was expected");
    if (md_text_same(key, "dtype")) {
        bit = 1;
        md_json_string(j, h->dtype, sizeof h->dtype);
    } else if (md_text_same(key, "shape")) {
        bit = 2;
        h->rank = md_json_integers(j, h->shape, MD_MAX_RANK);
    } else if (md_text_same(key, "data_offsets")) {
        bit = 4;
        if (md_json_integers(j, offsets, 2) != 2) {
            md_json_fault(j, "data_offsets needs two numbers");
        }
        h->begin = offsets[0];
        h->end = offsets[1];
    } else {
        md_json_skip(j);
    }
    if ((*have & bit) != 0) {
        md_json_fault(j, "a key stands twice");
    }
    *have |= bit;
}

/* Takes our checksum and note out of what else stands there. */
MD_COLD void md_load_metadata(md_load *l) {
    md_json *j = &l->json;
    char key[32];
    if (!md_json_take(j, '{')) {
        md_json_skip(j);
        return;
    }
    for (int members = 0; j->why == NULL && !md_json_take(j, '}'); members++) {
        if (members > 0) {
            md_json_expect(j, ',', "',' was expected");
        }
        md_json_string(j, key, sizeof key);
        md_json_expect(j, ':', "':' was expected");
        if (md_text_same(key, "mdlc.checksum")) {
            md_json_string(j, l->sum, sizeof l->sum);
        } else if (md_text_same(key, "mdlc.note")) {
            md_json_string(j, l->note, sizeof l->note);
        } else {
            md_json_skip(j);
        }
    }
}

/* Reads the next tensor of the header into l->head. Gives 0 at its end and after a fault;
 * *members counts the members so far, *metadata the "__metadata__" among them. */
MD_COLD int md_load_head(md_load *l, uint64_t *members, int *metadata) {
    md_json *j = &l->json;
    md_entry_head *h = &l->head;
    for (;;) {
        if (md_json_take(j, '}')) {
            if (md_json_ahead(j) >= 0) {
                md_json_fault(j, "text behind the header's end");
            }
            return 0;
        }
        if (*members > 0) {
            md_json_expect(j, ',', "',' was expected");
        }
        (*members)++;
        md_json_string(j, h->name, sizeof h->name);
        md_json_expect(j, ':', "':' was expected");
        if (j->why != NULL) {
            return 0;
        }
        if (!md_text_same(h->name, "__metadata__")) {
            break;
        }
        if ((*metadata)++ > 0) {
            md_json_fault(j, "__metadata__ stands twice");
        }
        md_load_metadata(l);
    }
    unsigned have = 0;
    md_json_expect(j, '{', "a tensor's description was expected");
    do {
        md_load_head_field(l, &have);
    } while (md_json_take(j, ','));
    md_json_expect(j, '}', "a tensor's description does not end");
    if (have != 7) {
        md_json_fault(j, "a tensor needs dtype, shape and data_offsets");
    }
    return j->why == NULL;
}

MD_COLD void md_load_rewind(md_load *l) {
    md_json_start(&l->json, l->read, l->user, 8, 8 + l->header);
    md_json_expect(&l->json, '{', "the header must be a JSON object");
    l->hint = 0;
    l->passed = 0;
}

/* A slice, and its place among those of all rows. */
typedef struct md_found {
    const md_tensor *t;
    size_t slice, number;
} md_found;

/* The slice with this name; 0: there is none. The hint goes around the table. */
MD_COLD int md_load_find(md_load *l, const char *name, md_found *place) {
    for (size_t k = 0; k < l->count; k++) {
        const md_tensor *t = &l->tensors[l->hint];
        int found = md_slice_match(t, name, &place->slice);
        place->t = t;
        place->number = l->passed + place->slice;
        l->passed += md_slice_count(t);
        if (++l->hint == l->count) {
            l->hint = 0;
            l->passed = 0;
        }
        if (found) {
            return 1;
        }
    }
    return 0;
}

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

/* The head against itself: known type, shape that fits the offsets. */
MD_COLD int md_load_sane(md_load *l) {
    const md_entry_head *h = &l->head;
    const md_dtype_info *info = md_dtype_table();
    while (info->name != NULL && !md_text_same(info->name, h->dtype)) {
        info++;
    }
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

/* The head against the table. */
MD_COLD void md_load_compare(md_load *l) {
    const md_entry_head *h = &l->head;
    int64_t shape[MD_MAX_RANK];
    md_found place = {NULL, 0, 0};
    int known = md_load_find(l, h->name, &place);
    if (!md_load_wanted(l, h->name)) {
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
    int other_type = !md_text_same(type, h->dtype);
    int rank = md_slice_shape(want, shape);
    int other = other_type || h->rank != rank;
    for (int k = 0; k < rank && !other; k++) {
        other = h->shape[k] != (uint64_t)shape[k];
    }
    if (other && md_kind_in(want, l->what)) {
        md_text *t = md_load_fault(l, MD_ERR_SHAPE);
        md_text_add(t, "tensor '");
        md_text_add(t, h->name);
        md_text_add(t, "' is ");
        md_load_text_head(t, h);
        md_text_add(t, " in the file and ");
        md_text_add(t, type);
        md_text_shape(t, shape, rank);
        md_text_add(t, " in the model");
        if (other_type && type[0] == 'F' && h->dtype[0] == 'F') {
            md_text_add(t, " (the precision is fixed when the model is compiled)");
        }
    }
}

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
            if (l->read(l->user, 8 + l->header + at, buffer, n) != 0) {
                md_text_add(md_load_fault(l, MD_ERR_READ), "its data could not be read");
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
        if (md_load_find(l, l->head.name, place) && md_kind_in(place->t, l->what) &&
            l->seen[place->number]) {
            return 1;
        }
    }
    return 0;
}

/* The integers that have a range, before any of the data is taken: counters and fields of rings
 * become places in memory. */
MD_COLD void md_load_ranges(md_load *l) {
    unsigned char buffer[2048];
    uint64_t members = 0;
    int metadata = 0;
    md_found place = {NULL, 0, 0};
    md_load_rewind(l);
    while (md_load_next(l, &members, &metadata, &place)) {
        const md_tensor *t = place.t;
        size_t width = md_dtype_get(t->dtype)->bytes;
        uint64_t end = t->lo == t->hi ? l->head.begin : l->head.end; /* without a range: nothing */
        for (uint64_t at = l->head.begin; at < end && l->code == MD_OK;) {
            uint64_t left = end - at;
            size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
            if (l->read(l->user, 8 + l->header + at, buffer, n) != 0) {
                md_text_add(md_load_fault(l, MD_ERR_READ), "its data could not be read");
                return;
            }
            int64_t bad = md_integers_outside(buffer, t->dtype, width, n / width, t->lo, t->hi);
            if (bad >= 0) {
                md_text *m = md_load_fault(l, MD_ERR_RANGE);
                md_text_add(m, "tensor '");
                md_text_add(m, l->head.name);
                md_text_add(m, "': element ");
                md_text_u64(m, (at - l->head.begin) / width + (uint64_t)bad);
                md_text_add(m, " is outside of ");
                md_text_i64(m, t->lo);
                if (t->hi < INT64_MAX) {
                    md_text_add(m, "..");
                    md_text_i64(m, t->hi);
                } else {
                    md_text_add(m, " and up");
                }
            }
            at += n;
        }
    }
}

/* Second walk: data into the regions. The file may have changed meanwhile, so only what still
 * fits is read. */
MD_COLD void md_load_data(md_load *l, const md_memory *memory) {
    uint64_t members = 0;
    int metadata = 0;
    md_found place = {NULL, 0, 0};
    md_load_rewind(l);
    while (md_load_next(l, &members, &metadata, &place)) {
        const md_tensor *t = place.t;
        size_t bytes = md_slice_bytes(t);
        char *at = md_slice_data(t, place.slice, memory);
        if (l->head.end - l->head.begin != bytes ||
            md_slice_read(t, at, md_dtype_get(t->dtype)->bytes, l->read, l->user,
                          8 + l->header + l->head.begin) != 0) {
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
        const md_tensor *from = t->copy_of > 0 ? &l->tensors[t->copy_of - 1] : t;
        int has = l->seen[number] && md_kind_in(t, l->what);
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
        md_load_ranges(l);
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

/* Loads the tensors whose kind is in `what`. A file must have every parameter; statistics of layers
 * stay as they are where it has none; of slots, and of rings, it has all or none; copies that it
 * lacks become what they copy. All names, types, shapes and offsets are checked before a byte of
 * the regions changes. `seen` is scratch of md_slice_total bytes and tells afterwards which
 * tensors the file has. Gives MD_OK or a status code, and then what was wrong, as far as ten lines
 * of it go, in `message` (which may be NULL). With `only`, paths with commas between them, the rest
 * of the file and of the model does not count: it may be missing, unknown or of another shape. The
 * file's note goes to `note`, of MD_NOTE_BYTES or NULL; it is empty where there is none. */
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
