/* SPDX-License-Identifier: 0BSD */
/* stage: brings what a call takes into the io region: rows of a data set, arrays from --in,
 * scalars from --set. Nothing is allocated; order is a keyed permutation that stores nothing.
 * Needs log.h and rng.h, gives the input pointers of the next call. */
#ifndef MD_STAGE_H
#define MD_STAGE_H

#include "runtime/log.h"
#include "runtime/rng.h"

MD_COLD char *md_staging(md_run *r, const md_port *port) {
    return (char *)r->regions.memory.io + port->io_offset;
}

/* How many calls an array holds for an input: its shape is that of the input, or has one more axis
 * in front, or a longer first axis. 0: it does not fit. */
MD_COLD int64_t md_slices_of(const md_port *port, const md_array *a) {
    int lead = a->rank - port->rank;
    int same = lead == 0 || lead == 1;
    int several = lead == 0 && port->rank > 0 && port->shape[0] > 0; /* along the first axis */
    for (int i = same ? lead : 0; i < a->rank && same; i++) {
        int first = several && i == 0;
        same = first ? a->shape[0] % port->shape[0] == 0 : a->shape[i] == port->shape[i - lead];
    }
    if (!same) {
        return 0;
    }
    return lead == 1 ? a->shape[0] : several ? a->shape[0] / port->shape[0] : 1;
}

/* Slice `s` of the array of one input, into its place. */
MD_FN int md_stage_slice(md_run *r, int index, int64_t s) {
    const md_port *port = &r->task->entry->inputs[index];
    md_array *a = &r->task->arrays[index];
    int64_t per_call = (int64_t)(port->bytes / md_dtype_bytes(port->dtype));
    size_t width = md_dtype_bytes(a->dtype);
    char *to = md_staging(r, port);
    const unsigned char *from =
        md_array_at(a, (uint64_t)(s * per_call) * width, (size_t)per_call * width, 0, &r->message);
    if (from == NULL) {
        return MD_EXIT_DATA;
    }
    int64_t bad = md_convert(to, port->dtype, from, a->dtype, a->swap, per_call);
    if (bad < 0 && port->lo < port->hi) {
        bad = md_out_of_range(to, port->dtype, 0, per_call, port->lo, port->hi);
    }
    if (bad < 0) {
        return MD_EXIT_OK;
    }
    md_number n = md_get_number(from + (size_t)bad * width, a->dtype, a->swap);
    char shown[MD_NUMBER_TEXT];
    md_text_format(&r->message, "%s: element %lld is %s, which input '%s' (%s", a->path,
                   (long long)(s * per_call + bad), md_number_text(shown, n), port->name,
                   md_dtype_get(port->dtype)->name);
    if (port->lo < port->hi) {
        md_text_format(&r->message, " in %lld..%lld", (long long)port->lo, (long long)port->hi);
    }
    md_text_add(&r->message, ") cannot take");
    return MD_EXIT_DATA;
}

/* Opens and checks the array of one input. */
MD_COLD int md_stage_open(md_run *r, int index, const char *path) {
    const md_port *port = &r->task->entry->inputs[index];
    md_array *a = &r->task->arrays[index];
    int64_t per_call = (int64_t)(port->bytes / md_dtype_bytes(port->dtype));
    int rc = md_npy_open(a, path, MD_FILE_IN_MEMORY, &r->message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    r->task->slices[index] = md_slices_of(port, a);
    if (r->task->slices[index] == 0) {
        char have[MD_SHAPE_TEXT], want[MD_SHAPE_TEXT];
        return md_fail(&r->message, MD_EXIT_DATA, "%s: shape %s; input '%s' of '%s' takes %s", path,
                       md_shape_text(have, a->shape, a->rank), port->name, r->task->entry->name,
                       md_shape_text(want, port->shape, port->rank));
    }
    size_t width = md_dtype_bytes(a->dtype);
    rc = md_array_window(a, (size_t)per_call * width, &r->message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    r->array_bytes += md_round_up(a->map_bytes, md_page());
    r->array_files += a->file > 0 ? a->bytes : 0;
    for (int64_t s = 0; s < r->task->slices[index] && rc == MD_EXIT_OK; s++) {
        rc = md_stage_slice(r, index, s);
    }
    return rc;
}

/* if: settable */
/* A value of --set that is none. The language writes its types small. */
MD_COLD int md_stage_refused(md_run *r, const char *name, const char *value, md_dtype type) {
    char word[8] = "";
    for (int i = 0; i < 7 && md_dtype_get(type)->name[i] != 0; i++) {
        word[i] = (char)(md_dtype_get(type)->name[i] | ' '); /* digits have that bit */
    }
    return md_fail(&r->message, MD_EXIT_USAGE, "--set %s=%s: not a value of %s%s", name, value,
                   word, md_is_float(type) ? "; a finite number is" : "");
}
/* end: settable */

/* if: scalars */
/* A scalar input from --set. */
MD_COLD int md_stage_scalar(md_run *r, int index, const char *text) {
    const md_port *port = &r->task->entry->inputs[index];
    md_number n;
    int ok = md_parse_value(text, &n) && md_put_number(md_staging(r, port), port->dtype, n);
    memcpy(&r->task->scalars[index], md_staging(r, port), port->bytes);
    if (ok && port->lo < port->hi &&
        md_out_of_range(md_staging(r, port), port->dtype, 0, 1, port->lo, port->hi) >= 0) {
        return md_fail(&r->message, MD_EXIT_USAGE, "--set %s=%s: outside %lld..%lld", port->name,
                       text, (long long)port->lo, (long long)port->hi);
    }
    if (!ok) {
        return md_stage_refused(r, port->name, text, port->dtype);
    }
    return MD_EXIT_OK;
}

/* A scalar input that nothing gives: what the source says. The compiler knows that it fits. */
MD_COLD void md_stage_default(md_run *r, int index) {
    const md_port *port = &r->task->entry->inputs[index];
    const md_number n = {0, 0, port->initial};
    (void)md_put_number(md_staging(r, port), port->dtype, n);
    memcpy(&r->task->scalars[index], md_staging(r, port), port->bytes);
}
/* end: scalars */

/* Every input that no data set feeds, before the first step. Staging also proves the region. */
MD_COLD int md_stage_setup(md_run *r) {
    const md_entry *e = r->task->entry;
    for (int i = 0; i < e->input_count; i++) {
        const md_port *port = &e->inputs[i];
        r->task->in[i] = md_staging(r, port);
        if (port->field != MD_FROM_OPTIONS) {
            continue;
        }
        const char *path = md_option_of(&r->options, "--in", e->name, port->name);
        int rc;
        /* if: scalars */
        const char *text =
            port->rank == 0 ? md_option_of(&r->options, "--set", e->name, port->name) : NULL;
        if (path == NULL && text != NULL) {
            rc = md_stage_scalar(r, i, text);
            if (rc != MD_EXIT_OK) {
                return rc;
            }
            continue;
        }
        if (path == NULL && port->optional) {
            md_stage_default(r, i);
            continue;
        }
        /* end: scalars */
        if (path != NULL) {
            rc = md_stage_open(r, i, path);
        } else {
            char shape[MD_SHAPE_TEXT];
            rc = md_fail(&r->message, MD_EXIT_USAGE,
                         "'%s' needs input '%s', %s%s: --in %s=FILE.npy%s", e->name, port->name,
                         md_dtype_get(port->dtype)->name,
                         port->rank > 0 ? md_shape_text(shape, port->shape, port->rank) : "",
                         port->name, port->rank == 0 ? " or --set NAME=VALUE" : "");
        }
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    return MD_EXIT_OK;
}

/* What no data set feeds, for call number `call`: scalars, and arrays of --in, which start again
 * when they end. Another entry may have staged its own in the same place. */
MD_FN int md_stage_arrays(md_run *r, int64_t call) {
    const md_entry *e = r->task->entry;
    int rc = MD_EXIT_OK;
    for (int i = 0; i < e->input_count && rc == MD_EXIT_OK; i++) {
        const md_port *port = &e->inputs[i];
        if (port->field != MD_FROM_OPTIONS) {
            continue;
        }
        /* if: scalars */
        if (r->task->slices[i] == 0) {
            memcpy(md_staging(r, port), &r->task->scalars[i], port->bytes);
            continue;
        }
        /* end: scalars */
        rc = md_stage_slice(r, i, call % r->task->slices[i]);
    }
    return rc;
}

MD_FN uint64_t md_order_key(const md_run *r, int64_t epoch) {
    uint64_t key = UINT64_C(0xCBF29CE484222325);
    for (const char *p = r->task->data->set->name; *p != 0;
         p++) { /* FNV-1a: by name, not by position */
        key = (key ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
    }
    key = md_mix64(key ^ md_mix64(r->options.seed));
    return md_mix64(key + (uint64_t)epoch);
}

MD_FN int md_stage_rows(md_run *r, int part, int64_t count, int consecutive) {
    const md_entry *e = r->task->entry;
    int rc = MD_EXIT_OK;
    for (int i = 0; i < e->input_count && rc == MD_EXIT_OK; i++) {
        if (e->inputs[i].field >= 0) {
            rc = md_data_gather(r->task->data, e->inputs[i].field, part, r->task->rows, count,
                                consecutive, md_staging(r, &e->inputs[i]), &r->message);
        }
    }
    return rc;
}

/* Place `i` of an epoch among the rows to train on: in a fresh order, or as the data set says. */
MD_FN int64_t md_order_place(const md_run *r, uint64_t key, int64_t i) {
    /* if: ordered */
    md_order order = r->task->data->set->order;
    /* if: windows */
    if (order == MD_STREAMS) { /* each row of a batch has a part of the file to itself */
        int64_t batch = r->task->entry->eval_rows;
        int64_t batches = r->task->per_epoch * (r->task->entry->rows / batch);
        return i % batch * batches + i / batch;
    }
    /* end: windows */
    if (order != MD_SHUFFLED) {
        return i;
    }
    /* end: ordered */
    return (int64_t)md_permute(key, (uint64_t)r->task->train_rows, (uint64_t)i);
}

/* The rows of an update; `update` counts from 0. */
MD_FN int md_stage_batch(md_run *r, int64_t update) {
    int64_t count = r->task->entry->rows;
    int64_t first = update % r->task->per_epoch * count;
    int consecutive = 0;
    /* if: ordered */
    md_order order = r->task->data->set->order;
    if (order != MD_SHUFFLED && r->task->staged == first) {
        return MD_EXIT_OK; /* the same rows lie there already */
    }
    r->task->staged = order == MD_SHUFFLED ? -1 : first;
    /* end: ordered */
    uint64_t key = md_order_key(r, update / r->task->per_epoch);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = md_order_place(r, key, first + i);
        r->task->rows[i] = md_data_index(r->task->data, MD_PART_TRAIN, j);
    }
    /* if: ordered */
    consecutive =
        order == MD_AS_FILED && r->task->rows[count - 1] - r->task->rows[0] == count - 1;
    /* end: ordered */
    return md_stage_rows(r, MD_PART_TRAIN, count, consecutive);
}

/* `used` rows from `first` on of a part, in their order; the rest of the batch repeats row 0. */
MD_FN int md_stage_eval(md_run *r, int part, int64_t first, int64_t used) {
    int64_t count = r->task->entry->eval_rows;
    for (int64_t i = 0; i < count; i++) {
        r->task->rows[i] = md_data_index(r->task->data, part, first + (i < used ? i : 0));
    }
    /* if: ordered */
    r->task->staged = -1;
    /* end: ordered */
    return md_stage_rows(r, part, count,
                         used == count && r->task->rows[count - 1] - r->task->rows[0] == count - 1);
}

/* if: passes */
/* The rows of call number `call` of a pass: all rows to train on, in their order, the last batch
 * with as many as are left. */
MD_FN int md_stage_pass(md_run *r, int64_t call) {
    const md_entry *e = r->task->entry;
    int64_t first = call % r->task->per_epoch * e->rows;
    int64_t left = r->task->train_rows - first;
    int32_t used = (int32_t)(left < e->rows ? left : e->rows);
    for (int i = 0; i < e->input_count; i++) {
        if (e->inputs[i].field == MD_ROWS_IN_USE) {
            memcpy(md_staging(r, &e->inputs[i]), &used, sizeof used);
        }
    }
    return md_stage_eval(r, MD_PART_TRAIN, first, used);
}
/* end: passes */

#endif
