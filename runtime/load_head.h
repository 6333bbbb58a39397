/* SPDX-License-Identifier: 0BSD */
/* load_head: walks the header of a safetensors file, one tensor after the other, and finds each in
 * the table of the model.
 * Needs json.h and safetensors.h, gives md_load and its walk, allocates nothing. */
#ifndef MD_LOAD_HEAD_H
#define MD_LOAD_HEAD_H

#include "runtime/json.h"
#include "runtime/safetensors.h"

enum { MD_FAULTS_SHOWN = 10, MD_FAULTS_TAIL = 32 };

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
    unsigned what;       /* kinds, perhaps MD_LOAD_EXACT */
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

#endif
