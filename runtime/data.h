/* SPDX-License-Identifier: 0BSD */
/* data: a data set in memory: its files opened and checked, its rows by number.
 *
 * csv becomes one array of finished rows for each field; other files stay as they are, mapped, and
 * rows are converted when they are staged. All checks (missing, short, out of range, not finite)
 * happen here, before the first step. Held-out rows are a rule (every k-th row) or files of
 * their own. Needs io.h and csv.h, gives md_data. */
#ifndef MD_DATA_H
#define MD_DATA_H

#include "runtime/csv.h"
#include "runtime/io.h"

/* One field of one file: row i lies at data + i * pitch. */
typedef struct md_column {
    const unsigned char *data;
    size_t pitch;
    md_dtype type; /* of what is stored */
    int swap;
    int finished; /* rows are rows of the field: nothing to convert */
} md_column;

enum { MD_PART_TRAIN, MD_PART_HELD, MD_PARTS };

typedef struct md_data {
    const md_dataset *set;
    const char *path;             /* of the first file, for messages */
    int parts;                    /* 2: files of their own for the held-out rows */
    int64_t rows[MD_PARTS];       /* of the files of each part */
    md_column *columns[MD_PARTS]; /* one a field */
    md_array *arrays[MD_PARTS];   /* one a file; of a csv file only the mapping is used */
    unsigned char *raw, *row;     /* scratch: a raw row, a finished row */
    void *block;
    size_t block_bytes;
    size_t resident; /* bytes of all mappings, whole pages */
} md_data;

/* Which path a file of the data set is read from. */
typedef const char *(*md_path_fn)(void *user, const md_dataset *set, int file, int part);

MD_FN void md_data_close(md_data *d) {
    for (int p = 0; p < d->parts; p++) {
        for (int i = 0; d->block != NULL && i < d->set->file_count; i++) {
            md_array_close(&d->arrays[p][i]);
        }
    }
    md_unmap(d->block, d->block_bytes);
    memset(d, 0, sizeof *d);
}

MD_FN int64_t md_min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Bookkeeping and scratch in one mapping. */
MD_FN int md_data_block(md_data *d, md_text *message) {
    const md_dataset *set = d->set;
    size_t raw = 0, row = 0;
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        size_t bytes = (size_t)f->count * md_dtype_bytes(f->raw);
        raw = bytes > raw ? bytes : raw;
        row = f->row_bytes > row ? f->row_bytes : row;
    }
    size_t columns = md_round_up(sizeof(md_column) * (size_t)set->field_count, 64);
    size_t arrays = md_round_up(sizeof(md_array) * (size_t)set->file_count, 64);
    md_block_mem b;
    b.used = 0;
    b.size = MD_PARTS * (columns + arrays) + md_round_up(raw, 64) + md_round_up(row, 64);
    b.at = (char *)md_map(b.size);
    if (b.at == NULL) {
        return md_fail(message, MD_EXIT_MEMORY, "no memory for data set '%s'", set->name);
    }
    md_touch_write(b.at, b.size);
    d->block = b.at;
    d->block_bytes = b.size;
    d->resident += md_round_up(b.size, md_page());
    for (int p = 0; p < MD_PARTS; p++) {
        d->columns[p] = (md_column *)md_take(&b, columns);
        d->arrays[p] = (md_array *)md_take(&b, arrays);
    }
    d->raw = (unsigned char *)md_take(&b, raw);
    d->row = (unsigned char *)md_take(&b, row);
    return MD_EXIT_OK;
}

/* A csv file: all its fields become arrays of finished rows in one mapping. */
MD_FN int md_data_csv(md_data *d, int part, int file, const char *path, md_stream *stream,
                      int64_t *rows, md_text *message) {
    const md_dataset *set = d->set;
    md_csv c;
    memset(&c, 0, sizeof c);
    c.stream = stream;
    c.set = set;
    c.file = file;
    int rc = md_csv_count(&c, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    *rows = c.rows;
    if (c.rows < 1) {
        return md_fail(message, MD_EXIT_DATA, "%s: no rows", path);
    }
    size_t row_bytes = 0;
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        if (f->file != file) {
            continue;
        }
        if (f->source == MD_WINDOW) {
            return md_fail(
                message, MD_EXIT_DATA,
                "%s: a table, but field '%s' of data set '%s' takes windows of a text or "
                "of tokens",
                path, f->name, set->name);
        }
        int whole = f->source != MD_RECORD || f->count == c.columns;
        if (!whole || f->first + f->count > c.columns) {
            return md_fail(
                message, MD_EXIT_DATA,
                "%s: field '%s' of data set '%s' needs %s %lld columns, the file has %lld%s", path,
                f->name, set->name, f->source == MD_RECORD ? "exactly" : "at least",
                (long long)(f->first + f->count), (long long)c.columns,
                c.columns == 1 ? " (commas separate them)" : "");
        }
        row_bytes += f->row_bytes;
    }
    /* The scratch of one record stays in the mapping: what is printed is all that is ever taken. */
    size_t pointers = sizeof(unsigned char *) * (size_t)set->field_count;
    size_t numbers = sizeof(md_number) * (size_t)c.columns;
    size_t slack =
        64 * (size_t)set->field_count + md_round_up(pointers, 64) + md_round_up(numbers, 64);
    if ((uint64_t)c.rows > ((uint64_t)PTRDIFF_MAX - slack) / (row_bytes + 1)) {
        return md_fail(message, MD_EXIT_MEMORY, "%s: too large", path);
    }
    md_block_mem b;
    b.used = 0;
    b.size = row_bytes * (size_t)c.rows + slack;
    b.at = (char *)md_map(b.size);
    if (b.at == NULL) {
        return md_fail(message, MD_EXIT_MEMORY, "no memory for %zu bytes of '%s'", b.size, path);
    }
    md_touch_write(b.at, b.size);
    d->arrays[part][file].map = b.at;
    d->arrays[part][file].map_bytes = b.size;
    unsigned char **out = (unsigned char **)md_take(&b, pointers);
    md_number *scratch = (md_number *)md_take(&b, numbers);
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        md_column *column = &d->columns[part][i];
        if (f->file == file) {
            out[i] = (unsigned char *)md_take(&b, f->row_bytes * (size_t)c.rows);
            column->data = out[i];
            column->pitch = f->row_bytes;
            column->type = f->dtype;
            column->finished = 1;
        }
    }
    return md_csv_fill(&c, path, scratch, d->raw, out, message);
}

/* Where the rows of a field lie in an array, and how many there are. */
MD_FN int md_data_locate(const md_array *a, const md_dataset *set, const md_field *f,
                         md_column *column, int64_t *rows, md_text *message) {
    size_t width = md_dtype_bytes(a->dtype);
    int64_t elements = a->rows * a->width;
    column->type = a->dtype;
    column->swap = a->swap;
    column->data = a->data + (size_t)f->first * width;
    column->finished = f->load == NULL && a->dtype == f->dtype && !(a->swap && width > 1) &&
                       a->dtype != MD_BOOL; /* a byte that is neither 0 nor 1 becomes 1 */
    if (f->source == MD_WINDOW) {
        if (elements < f->first + f->count) {
            return md_fail(
                message, MD_EXIT_DATA,
                "%s: %lld elements, but one row of field '%s' of data set '%s' needs %lld", a->path,
                (long long)elements, f->name, set->name, (long long)(f->first + f->count));
        }
        *rows = (elements - f->first - f->count) / f->stride + 1;
        column->pitch = (size_t)f->stride * width;
        return MD_EXIT_OK;
    }
    /* A flat file of elements is cut into records as long as the field wants them. */
    int64_t record = a->flat && f->source == MD_RECORD ? f->count : a->width;
    int fits = f->source == MD_RECORD ? record == f->count : f->first + f->count <= record;
    if (!fits || elements % record != 0) {
        return md_fail(
            message, MD_EXIT_DATA,
            "%s: records of %lld elements, %lld in all; field '%s' of data set '%s' takes %lld",
            a->path, (long long)a->width, (long long)elements, f->name, set->name,
            (long long)(f->first + f->count));
    }
    *rows = elements / record;
    column->pitch = (size_t)record * width;
    return MD_EXIT_OK;
}

/* One row, converted and finished, into `to`. Gives -1, or the raw element that does not fit. */
MD_FN int64_t md_data_row(const md_field *f, const md_column *column, int64_t row,
                          unsigned char *raw, unsigned char *to) {
    const unsigned char *from = column->data + (size_t)row * column->pitch;
    if (column->finished) {
        memcpy(to, from, f->row_bytes);
        return -1;
    }
    if (f->load == NULL) {
        return md_convert(to, f->dtype, from, column->type, column->swap, f->count);
    }
    if (column->type == f->raw && !column->swap && (uintptr_t)from % md_dtype_bytes(f->raw) == 0) {
        f->load(from, to);
        return -1;
    }
    int64_t bad = md_convert(raw, f->raw, from, column->type, column->swap, f->count);
    if (bad < 0) {
        f->load(raw, to);
    }
    return bad;
}

/* Leaves "PATH: row 3, element 2 is 300, WHAT (field 'x' of data set 'd')", counted from 0. */
MD_FN int md_data_fault(const md_data *d, const md_field *f, const char *path, int64_t row,
                        int64_t element, md_number n, const char *what, md_text *message) {
    char shown[MD_NUMBER_TEXT];
    return md_fail(message, MD_EXIT_DATA,
                   "%s: row %lld, element %lld is %s, %s (field '%s' of data set '%s')", path,
                   (long long)row, (long long)element, md_number_text(shown, n), what, f->name,
                   d->set->name);
}

/* Checks every row of a file that is not csv: all numbers finite, conversions that lose nothing,
 * the declared range. */
MD_FN int md_data_check(md_data *d, int part, const md_field *f, const char *path,
                        md_text *message) {
    const md_column *column = &d->columns[part][f - d->set->fields];
    int64_t elements = (int64_t)(f->row_bytes / md_dtype_bytes(f->dtype));
    size_t width = md_dtype_bytes(column->type);
    md_dtype target = f->load == NULL ? f->dtype : f->raw;
    int ranged = f->lo < f->hi;
    int lossy = column->type != target && target != MD_F32 && target != MD_F64;
    char what[96];
    if (!ranged && !lossy && !md_is_float(column->type) &&
        !(f->load != NULL && md_is_float(f->dtype))) {
        return MD_EXIT_OK;
    }
    snprintf(what, sizeof what, "outside %lld..%lld", (long long)f->lo, (long long)f->hi);
    if (f->source == MD_WINDOW && column->finished && !md_is_float(f->dtype)) {
        /* Windows overlap: look at each element once. */
        int64_t all = (d->rows[part] - 1) * f->stride + f->count;
        int64_t bad = md_out_of_range(column->data, f->dtype, 0, all, f->lo, f->hi);
        if (bad < 0) {
            return MD_EXIT_OK;
        }
        md_number n = md_get_number(column->data + (size_t)bad * width, f->dtype, 0);
        return md_fail(message, MD_EXIT_DATA,
                       "%s: element %lld is %lld, %s (field '%s' of data set '%s')", path,
                       (long long)(bad + f->first), (long long)n.i, what, f->name, d->set->name);
    }
    for (int64_t row = 0; row < d->rows[part]; row++) {
        const unsigned char *from = column->data + (size_t)row * column->pitch;
        int64_t bad = md_find_nonfinite(from, column->type, column->swap, f->count);
        const char *why = "but rows hold finite numbers";
        if (bad < 0) {
            bad = md_data_row(f, column, row, d->raw, d->row);
            snprintf(what, sizeof what, "which does not fit %s", md_dtype_get(target)->name);
            why = what;
        }
        if (bad >= 0) {
            md_number n = md_get_number(from + (size_t)bad * width, column->type, column->swap);
            return md_data_fault(d, f, path, row, f->first + bad, n, why, message);
        }
        bad = ranged ? md_out_of_range(d->row, f->dtype, 0, elements, f->lo, f->hi)
                     : md_find_nonfinite(d->row, f->dtype, 0, elements);
        if (bad >= 0) {
            md_number n =
                md_get_number(d->row + (size_t)bad * md_dtype_bytes(f->dtype), f->dtype, 0);
            snprintf(what, sizeof what, "outside %lld..%lld", (long long)f->lo, (long long)f->hi);
            return md_data_fault(d, f, path, row, bad, n, ranged ? what : "not finite", message);
        }
    }
    return MD_EXIT_OK;
}

/* All files of one part. Files of records must agree in their rows; windows give as many rows as
 * fit into all of them. */
MD_FN int md_data_part(md_data *d, int part, md_path_fn path_of, void *user, md_stream *stream,
                       md_text *message) {
    const md_dataset *set = d->set;
    int64_t least = INT64_MAX, records = -1;
    const char *first = NULL;
    for (int file = 0; file < set->file_count; file++) {
        const char *path = path_of(user, set, file, part);
        md_format format = md_format_of(path);
        format = format == MD_FORMAT_AUTO ? set->files[file].format : format;
        int rc = format == MD_FORMAT_AUTO ? md_format_sniff(path, &format, message) : MD_EXIT_OK;
        int64_t rows = 0;
        md_array *a = &d->arrays[part][file];
        if (rc == MD_EXIT_OK && format == MD_FORMAT_CSV) {
            rc = md_data_csv(d, part, file, path, stream, &rows, message);
        } else if (rc == MD_EXIT_OK) {
            rc = md_array_open(a, path, format, stream, message);
        }
        d->resident += a->map == NULL ? 0 : md_round_up(a->map_bytes, md_page());
        for (int i = 0; i < set->field_count && rc == MD_EXIT_OK; i++) {
            const md_field *f = &set->fields[i];
            if (f->file != file) {
                continue;
            }
            if (format != MD_FORMAT_CSV) {
                rc = md_data_locate(a, set, f, &d->columns[part][i], &rows, message);
            }
            if (rc == MD_EXIT_OK && f->source != MD_WINDOW) {
                if (records >= 0 && records != rows) {
                    rc = md_fail(message, MD_EXIT_DATA, "%s has %lld rows, but %s has %lld", path,
                                 (long long)rows, first, (long long)records);
                }
                records = rows;
                first = path;
            }
            least = md_min64(least, rows);
        }
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    d->rows[part] = least == INT64_MAX ? 0 : least;
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        int checked = d->columns[part][i].data == NULL || d->arrays[part][f->file].data == NULL;
        int rc = checked ? MD_EXIT_OK /* csv, cell by cell */
                         : md_data_check(d, part, f, path_of(user, set, f->file, part), message);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    return MD_EXIT_OK;
}

/* Opens and checks a data set. `path_of` gives NULL for a held-out file that does not exist. */
MD_FN int md_data_open(md_data *d, const md_dataset *set, md_path_fn path_of, void *user,
                       md_stream *stream, md_text *message) {
    memset(d, 0, sizeof *d);
    d->set = set;
    d->path = set->file_count > 0 ? path_of(user, set, 0, MD_PART_TRAIN) : "";
    d->parts = set->file_count > 0 ? 2 : 1;
    for (int file = 0; file < set->file_count; file++) {
        if (path_of(user, set, file, MD_PART_HELD) == NULL) {
            d->parts = 1;
        }
    }
    int rc = md_data_block(d, message);
    for (int part = 0; part < d->parts && rc == MD_EXIT_OK; part++) {
        rc = md_data_part(d, part, path_of, user, stream, message);
    }
    if (rc == MD_EXIT_OK && d->parts == 1 && d->rows[0] < set->holdout) {
        return md_fail(
            message, MD_EXIT_DATA,
            "%s: %lld rows; 'holdout every(%lld)' of data set '%s' holds none of them "
                       "out", d->path,
            (long long)d->rows[0], (long long)set->holdout, set->name);
    }
    return rc;
}

/* Rows to train on, or held-out rows. */
MD_FN int64_t md_data_rows(const md_data *d, int part) {
    int64_t k = d->set->holdout;
    if (d->parts == 2) {
        return d->rows[part];
    }
    int64_t held = k > 0 ? d->rows[0] / k : 0;
    return part == MD_PART_HELD ? held : d->rows[0] - held;
}

/* Row number in the file of the j-th row to train on, or of the j-th held-out row: every k-th row
 * is held out. */
MD_FN int64_t md_data_index(const md_data *d, int part, int64_t j) {
    int64_t k = d->set->holdout;
    if (d->parts == 2 || k <= 0) {
        return j;
    }
    return part == MD_PART_HELD ? j * k + k - 1 : k > 1 ? j / (k - 1) * k + j % (k - 1) : j;
}

/* Stages `count` rows of one field, one behind the other. `rows` are numbers in the file;
 * `consecutive` says that they rise by one. */
MD_FN void md_data_gather(const md_data *d, int field, int part, const int64_t *rows, int64_t count,
                          int consecutive, void *to) {
    const md_field *f = &d->set->fields[field];
    const md_column *column = &d->columns[d->parts == 2 ? part : 0][field];
    unsigned char *out = (unsigned char *)to;
    size_t bytes = f->row_bytes;
    if (consecutive && column->finished && column->pitch == bytes) {
        memcpy(out, column->data + (size_t)rows[0] * bytes, bytes * (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        (void)md_data_row(f, column, rows[i], d->raw, out + (size_t)i * bytes);
    }
}

#endif
