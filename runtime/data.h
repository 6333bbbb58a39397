/* SPDX-License-Identifier: 0BSD */
/* data: a data set in memory: its files opened and checked, its rows by number.
 *
 * csv becomes one array of finished rows for each field; other files stay as they are, and rows are
 * converted when they are staged: from memory, from a large file as it is needed, or by a function
 * of the row where there is no file. All checks (missing, short, out of range, not finite) happen
 * here, before the first step, and again for rows that do not lie in memory. Held-out and test rows
 * are a rule (every k-th row) or files of their own. Needs io.h and csv.h, gives md_data. */
#ifndef MD_DATA_H
#define MD_DATA_H

#include "runtime/csv.h"
#include "runtime/io.h"

/* One field of one file: row i lies at data + i * pitch, or at those bytes of the array. */
typedef struct md_column {
    const unsigned char *data; /* NULL: not in memory */
    const char *path; /* for messages */
    size_t pitch;
    int64_t rows; /* of this field, windows that fit */
    /* if: made */
    int64_t seed; /* MD_MADE: of the file */
    /* end: made */
    /* if: arrays */
    md_array *array;  /* NULL: csv, or made */
    uint64_t offset; /* of row 0 in the array */
    md_dtype type;   /* of what is stored */
    int swap;
    int finished; /* rows are rows of the field: nothing to convert */
    /* end: arrays */
} md_column;

typedef struct md_data {
    const md_dataset *set;
    const char *path;             /* of the first file, for messages */
    int own[MD_PARTS];            /* the part has files of its own */
    int64_t rows[MD_PARTS];       /* of the files of each part */
    md_column *columns[MD_PARTS]; /* one a field */
    md_array *arrays[MD_PARTS];   /* one a file; of a csv file only the mapping is used */
    unsigned char *raw, *row;     /* scratch: a raw row, a finished row */
    /* if: norm */
    double *sums; /* scratch: two numbers for each element of a row, for constants */
    /* end: norm */
    void *block;
    size_t block_bytes;
    size_t resident; /* bytes of all mappings, whole pages */
    /* if: arrays */
    uint64_t files; /* bytes of files that are read as they are needed */
    /* end: arrays */
} md_data;

/* Which path a file of the data set is read from. */
typedef const char *(*md_path_fn)(void *user, const md_dataset *set, int file, int part);

MD_COLD void md_data_close(md_data *d) {
    for (int p = 0; p < MD_PARTS; p++) {
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
    /* if: norm */
    size_t sums = 0;
    /* end: norm */
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        size_t bytes = (size_t)f->count * md_dtype_bytes(f->raw);
        raw = bytes > raw ? bytes : raw;
        row = f->row_bytes > row ? f->row_bytes : row;
        /* if: norm */
        bytes = 2 * sizeof(double) * (f->row_bytes / md_dtype_bytes(f->dtype));
        sums = f->norm != MD_NORM_NONE && bytes > sums ? bytes : sums;
        /* end: norm */
    }
    md_block_mem b = {NULL, 0, 0};
    for (int mapped = 0; mapped < 2; mapped++) {
        if (mapped && md_block_map(&b, set->name, message) != MD_EXIT_OK) {
            return MD_EXIT_MEMORY;
        }
        for (int p = 0; p < MD_PARTS; p++) {
            d->columns[p] = (md_column *)md_take(&b, sizeof(md_column) * (size_t)set->field_count);
            d->arrays[p] = (md_array *)md_take(&b, sizeof(md_array) * (size_t)set->file_count);
        }
        d->raw = (unsigned char *)md_take(&b, raw);
        d->row = (unsigned char *)md_take(&b, row);
        /* if: norm */
        d->sums = (double *)md_take(&b, sums);
        /* end: norm */
    }
    d->block = b.at;
    d->block_bytes = b.size;
    d->resident += md_round_up(b.size, md_page());
    return MD_EXIT_OK;
}

/* A csv file: all its fields become arrays of finished rows in one mapping. */
MD_COLD int md_data_csv(md_data *d, int part, int file, const char *path, md_stream *stream,
                        md_text *message) {
    const md_dataset *set = d->set;
    md_csv c;
    memset(&c, 0, sizeof c);
    c.stream = stream;
    c.set = set;
    c.file = file;
    int rc = md_csv_read(&c, path, NULL, NULL, NULL, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    if (c.rows < 1) {
        return md_fail(message, MD_EXIT_DATA, "%s: no rows", path);
    }
    size_t row_bytes = 0;
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        if (f->file != file) {
            continue;
        }
        /* if: windows */
        if (f->source == MD_WINDOW) {
            return md_fail(
                message, MD_EXIT_DATA,
                "%s: a table, but field '%s' of data set '%s' takes windows of a text or "
                "of tokens",
                path, f->name, set->name);
        }
        /* end: windows */
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
    md_block_mem b = {NULL, row_bytes * (size_t)c.rows + slack, 0};
    if (md_block_map(&b, path, message) != MD_EXIT_OK) {
        return MD_EXIT_MEMORY;
    }
    d->arrays[part][file].map = b.at;
    d->arrays[part][file].map_bytes = b.size;
    unsigned char **out = (unsigned char **)md_take(&b, pointers);
    md_number *scratch = (md_number *)md_take(&b, numbers);
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        if (f->file == file) {
            md_column *column = &d->columns[part][i];
            out[i] = (unsigned char *)md_take(&b, f->row_bytes * (size_t)c.rows);
            column->data = out[i];
            column->path = path;
            column->pitch = f->row_bytes;
            column->rows = c.rows;
            /* if: arrays */
            column->type = f->dtype;
            column->finished = 1;
            /* end: arrays */
        }
    }
    return md_csv_read(&c, path, scratch, d->raw, out, message);
}

/* if: arrays */
/* Is one the shape of the other, axes of 1 aside, or has one of them no more than one axis? */
MD_COLD int md_shapes_agree(const int64_t *a, int na, const int64_t *b, int nb) {
    int axes[2] = {0, 0}, same = 1, j = 0;
    for (int i = 0; i < na; i++) {
        axes[0] += a[i] != 1;
        for (; a[i] != 1 && j < nb && b[j] == 1; j++) {
        }
        same = same && (a[i] == 1 || (j < nb && b[j++] == a[i]));
    }
    for (int i = 0; i < nb; i++) {
        axes[1] += b[i] != 1;
    }
    return same || axes[0] < 2 || axes[1] < 2;
}

/* Where the rows of a field lie in an array, and how many there are. */
MD_COLD int md_data_locate(md_array *a, const md_dataset *set, const md_field *f, md_column *column,
                           md_text *message) {
    size_t width = md_dtype_bytes(a->dtype);
    int64_t elements = a->rows * a->width;
    column->array = a;
    column->path = a->path;
    column->type = a->dtype;
    column->swap = a->swap;
    column->offset = (uint64_t)f->first * width;
    column->data = a->data == NULL ? NULL : a->data + (size_t)column->offset;
    column->finished = f->load == NULL && a->dtype == f->dtype && !(a->swap && width > 1) &&
                       a->dtype != MD_BOOL; /* a byte that is neither 0 nor 1 becomes 1 */
    /* if: windows */
    if (f->source == MD_WINDOW) {
        if (elements < f->first + f->count) {
            return md_fail(
                message, MD_EXIT_DATA,
                "%s: %lld elements, but one row of field '%s' of data set '%s' needs %lld", a->path,
                (long long)elements, f->name, set->name, (long long)(f->first + f->count));
        }
        column->rows = (elements - f->first - f->count) / f->stride + 1;
        column->pitch = (size_t)f->stride * width;
        return MD_EXIT_OK;
    }
    /* end: windows */
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
    if (f->source == MD_RECORD && !a->flat &&
        !md_shapes_agree(a->shape + 1, a->rank - 1, f->shape, f->rank)) {
        char is[MD_SHAPE_TEXT], takes[MD_SHAPE_TEXT];
        return md_fail(message, MD_EXIT_DATA,
                       "%s: records of shape %s; field '%s' of data set '%s' takes %s", a->path,
                       md_shape_text(is, a->shape + 1, a->rank - 1), f->name, set->name,
                       md_shape_text(takes, f->shape, f->rank));
    }
    column->rows = elements / record;
    column->pitch = (size_t)record * width;
    return MD_EXIT_OK;
}
/* end: arrays */

enum { MD_ROW_FITS = -1, MD_ROW_LOST = -2 };

/* The bytes of a row as they are stored; NULL with a message when they cannot be read. */
MD_FN const unsigned char *md_column_at(const md_column *column, const md_field *f, int64_t row,
                                        int ahead, md_text *message) {
    /* if: made */
    if (f->source == MD_MADE) { /* of whole numbers that nobody looks at */
        return (const unsigned char *)&column->seed;
    }
    /* end: made */
    /* if: arrays */
    if (column->data == NULL) {
        uint64_t at = column->offset + (uint64_t)row * column->pitch;
        return md_array_at(column->array, at, (size_t)f->count * md_dtype_bytes(column->type),
                           ahead, message);
    }
    /* end: arrays */
    (void)f, (void)ahead, (void)message;
    return column->data + (size_t)row * column->pitch;
}

/* One row, converted and finished, into `to`. Gives MD_ROW_FITS, the raw element that does not fit,
 * or MD_ROW_LOST with a message. */
MD_FN int64_t md_data_row(const md_field *f, const md_column *column, int64_t row, int ahead,
                          unsigned char *raw, unsigned char *to, md_text *message) {
    /* if: made */
    if (f->source == MD_MADE) {
        const int64_t numbers[2] = {column->seed, row};
        memcpy(raw, numbers, sizeof numbers);
        f->load(raw, to);
        return MD_ROW_FITS;
    }
    /* end: made */
    const unsigned char *from = md_column_at(column, f, row, ahead, message);
    (void)raw;
    /* if: arrays */
    if (from == NULL) {
        return MD_ROW_LOST;
    }
    if (!column->finished && f->load == NULL) {
        return md_convert(to, f->dtype, from, column->type, column->swap, f->count);
    }
    if (!column->finished) {
        const int as_it_is = column->type == f->raw && !column->swap &&
                             (uintptr_t)from % md_dtype_bytes(f->raw) == 0;
        int64_t bad = MD_ROW_FITS;
        if (!as_it_is) {
            bad = md_convert(raw, f->raw, from, column->type, column->swap, f->count);
        }
        if (bad < 0) {
            f->load(as_it_is ? from : raw, to);
        }
        return bad;
    }
    /* end: arrays */
    memcpy(to, from, f->row_bytes);
    return MD_ROW_FITS;
}

/* if: arrays */
/* Leaves "PATH: row 3, element 2 is 300, WHAT (field 'x' of data set 'd')", counted from 0. */
MD_COLD int md_data_fault(const md_data *d, const md_field *f, const char *path, int64_t row,
                          int64_t element, md_number n, const char *what, md_text *message) {
    char shown[MD_NUMBER_TEXT];
    return md_fail(message, MD_EXIT_DATA,
                   "%s: row %lld, element %lld is %s, %s (field '%s' of data set '%s')", path,
                   (long long)row, (long long)element, md_number_text(shown, n), what, f->name,
                   d->set->name);
}

/* A row of the file, finished into `to` and checked: all numbers finite, conversions that lose
 * nothing, the declared range. */
MD_FN int md_data_checked(const md_data *d, const md_field *f, const md_column *column, int64_t row,
                          int ahead, unsigned char *to, md_text *message) {
    md_dtype target = f->load == NULL ? f->dtype : f->raw;
    size_t width = md_dtype_bytes(column->type);
    char what[96] = "but rows hold finite numbers";
    md_number n;
    const unsigned char *from = md_column_at(column, f, row, ahead, message);
    if (from == NULL) {
        return MD_EXIT_DATA;
    }
    int64_t bad = md_find_nonfinite(from, column->type, column->swap, f->count);
    if (bad < 0) {
        bad = md_data_row(f, column, row, ahead, d->raw, to, message);
        snprintf(what, sizeof what, "which does not fit %s", md_dtype_get(target)->name);
    }
    if (bad >= 0) {
        from = md_column_at(column, f, row, ahead, message);
        n = md_get_number(from + (size_t)bad * width, column->type, column->swap);
        return md_data_fault(d, f, column->path, row, f->first + bad, n, what, message);
    }
    if (bad == MD_ROW_LOST) {
        return MD_EXIT_DATA;
    }
    bad = md_row_bad(f, to, &n, what, sizeof what);
    return bad < 0 ? MD_EXIT_OK : md_data_fault(d, f, column->path, row, bad, n, what, message);
}

/* if: windows */
/* The elements under overlapping windows, each looked at once. */
MD_COLD int md_data_check_windows(md_data *d, int part, const md_field *f, const md_column *column,
                                  md_text *message) {
    size_t width = md_dtype_bytes(f->dtype);
    int64_t all = (d->rows[part] - 1) * f->stride + f->count;
    int64_t chunk = column->data != NULL ? all : (int64_t)(MD_WINDOW_BYTES / width);
    for (int64_t i = 0; i < all; i += chunk) {
        int64_t count = md_min64(chunk, all - i);
        const unsigned char *from =
            column->data != NULL ? column->data
                                 : md_array_at(column->array, column->offset + (uint64_t)i * width,
                                               (size_t)count * width, 1, message);
        if (from == NULL) {
            return MD_EXIT_DATA;
        }
        int64_t bad = md_out_of_range(from, f->dtype, 0, count, f->lo, f->hi);
        if (bad >= 0) {
            md_number n = md_get_number(from + (size_t)bad * width, f->dtype, 0);
            return md_fail(message, MD_EXIT_DATA,
                           "%s: element %lld is %lld, outside %lld..%lld (field '%s' of data set "
                           "'%s')",
                           column->path, (long long)(i + bad + f->first), (long long)n.i,
                           (long long)f->lo, (long long)f->hi, f->name, d->set->name);
        }
    }
    return MD_EXIT_OK;
}
/* end: windows */

/* Checks every row of a file that is not csv. */
MD_COLD int md_data_check(md_data *d, int part, const md_field *f, md_text *message) {
    const md_column *column = &d->columns[part][f - d->set->fields];
    md_dtype target = f->load == NULL ? f->dtype : f->raw;
    int ranged = f->lo < f->hi;
    int lossy = column->type != target && target != MD_F32 && target != MD_F64;
    if (!ranged && !lossy && !md_is_float(column->type) &&
        !(f->load != NULL && md_is_float(f->dtype))) {
        return MD_EXIT_OK;
    }
    /* if: windows */
    if (f->source == MD_WINDOW && f->stride <= f->count && column->finished &&
        !md_is_float(f->dtype)) { /* nothing between them that no row has */
        return md_data_check_windows(d, part, f, column, message);
    }
    /* end: windows */
    int rc = MD_EXIT_OK;
    for (int64_t row = 0; row < d->rows[part] && rc == MD_EXIT_OK; row++) {
        rc = md_data_checked(d, f, column, row, 1, d->row, message);
    }
    return rc;
}
/* end: arrays */

/* if: made */
/* Rows without a file: each field makes its own. */
MD_COLD void md_data_made(md_data *d, int file) {
    for (int i = 0; i < d->set->field_count; i++) {
        md_column *column = &d->columns[MD_PART_TRAIN][i];
        if (d->set->fields[i].file == file) {
            column->path = d->path;
            column->seed = d->set->files[file].seed;
            /* if: arrays */
            column->type = d->set->fields[i].raw;
            /* end: arrays */
        }
    }
}
/* end: made */

/* One file: where each of its fields lies, and how many rows it has of it. */
MD_COLD int md_data_file(md_data *d, int part, int file, const char *path, md_stream *stream,
                         md_text *message) {
    (void)d, (void)part, (void)file, (void)stream;
    /* if: csv */
    if (md_format_of(path) == MD_FORMAT_CSV) {
        return md_data_csv(d, part, file, path, stream, message);
    }
    /* end: csv */
    /* if: arrays */
    md_array *a = &d->arrays[part][file];
    int rc = md_array_open(a, path, md_format_of(path), MD_FILE_IN_MEMORY, stream, message);
    if (rc == MD_EXIT_OK && a->rows < 1) {
        rc = md_fail(message, MD_EXIT_DATA, "%s: no rows", path);
    }
    for (int i = 0; i < d->set->field_count && rc == MD_EXIT_OK; i++) {
        if (d->set->fields[i].file == file) {
            rc = md_data_locate(a, d->set, &d->set->fields[i], &d->columns[part][i], message);
        }
    }
    return rc;
    /* end: arrays */
    /* if: tables */
    return md_format_refused(path, message);
    /* end: tables */
}

/* All files of one part. Files of records must agree in their rows; windows give as many rows as
 * fit into all of them. */
MD_COLD int md_data_part(md_data *d, int part, md_path_fn path_of, void *user, md_stream *stream,
                         md_text *message) {
    const md_dataset *set = d->set;
    int64_t least = INT64_MAX;
    /* if: files */
    int64_t records = -1;
    const char *first = NULL;
    /* end: files */
    for (int file = 0; file < set->file_count; file++) {
        const char *path = path_of(user, set, file, part);
        /* if: made */
        if (set->files[file].rows > 0) {
            md_data_made(d, file);
            least = set->files[file].rows;
            continue;
        }
        /* end: made */
        md_array *a = &d->arrays[part][file];
        int rc = md_data_file(d, part, file, path, stream, message);
        /* if: arrays */
        size_t record = 0;
        /* end: arrays */
        for (int i = 0; i < set->field_count && rc == MD_EXIT_OK; i++) {
            const md_field *f = &set->fields[i];
            const int64_t rows = d->columns[part][i].rows;
            if (f->file != file) {
                continue;
            }
            /* if: arrays */
            size_t bytes = a->file > 0 ? (size_t)f->count * md_dtype_bytes(a->dtype) : 0;
            record = bytes > record ? bytes : record;
            /* end: arrays */
            least = md_min64(least, rows);
            /* if: files */
            /* if: windows */
            if (f->source == MD_WINDOW) {
                continue;
            }
            /* end: windows */
            if (records >= 0 && records != rows) {
                rc = md_fail(message, MD_EXIT_DATA, "%s has %lld rows, but %s has %lld", path,
                             (long long)rows, first, (long long)records);
            }
            records = rows;
            first = path;
            /* end: files */
        }
        /* if: arrays */
        rc = rc == MD_EXIT_OK ? md_array_window(a, record, message) : rc;
        /* end: arrays */
        if (rc != MD_EXIT_OK) {
            return rc;
        }
        d->resident += a->map == NULL ? 0 : md_round_up(a->map_bytes, md_page());
        /* if: arrays */
        d->files += a->file > 0 ? a->bytes : 0;
        /* end: arrays */
    }
    d->rows[part] = least == INT64_MAX ? 0 : least;
    /* if: arrays */
    for (int i = 0; i < set->field_count; i++) {
        const md_field *f = &set->fields[i];
        int rc = d->columns[part][i].array == NULL /* csv, cell by cell; or made */
                     ? MD_EXIT_OK
                     : md_data_check(d, part, f, message);
        if (rc != MD_EXIT_OK) {
            return rc;
        }
    }
    /* end: arrays */
    return MD_EXIT_OK;
}

/* The rule of a part that has no file: every k-th row, or 0. */
MD_COLD int64_t md_data_every(const md_data *d, int part) {
    return part == MD_PART_TRAIN || d->own[part] ? 0 : d->set->every[part];
}

/* How many rows a part has. */
MD_FN int64_t md_data_rows(const md_data *d, int part) {
    int64_t left = d->rows[MD_PART_TRAIN];
    if (d->own[part] && part != MD_PART_TRAIN) {
        return d->rows[part];
    }
    for (int p = MD_PART_TEST; p > MD_PART_TRAIN; p--) { /* test rows go first */
        int64_t k = md_data_every(d, p);
        int64_t taken = k > 0 ? left / k : 0;
        if (p == part) {
            return taken;
        }
        left -= taken;
    }
    return left;
}

/* Row number in its file of the j-th row of a part. Every k-th row is a test row; the others,
 * numbered anew, give every k-th to the held-out rows. */
MD_FN int64_t md_data_index(const md_data *d, int part, int64_t j) {
    if (d->own[part] && part != MD_PART_TRAIN) {
        return j;
    }
    for (int p = MD_PART_HELD; p < MD_PARTS; p++) {
        int64_t k = md_data_every(d, p);
        if (k > 0 && p == part) {
            j = j * k + k - 1;
        } else if (k > 1 && p > part) {
            j = j / (k - 1) * k + j % (k - 1);
        }
    }
    return j;
}

/* Opens and checks a data set. `path_of` gives NULL for a file that does not exist. */
MD_COLD int md_data_open(md_data *d, const md_dataset *set, md_path_fn path_of, void *user,
                         md_stream *stream, md_text *message) {
    memset(d, 0, sizeof *d);
    d->set = set;
    d->path = path_of(user, set, 0, MD_PART_TRAIN);
    /* if: made */
    d->path = d->path == NULL ? "rows without a file" : d->path;
    /* end: made */
    for (int part = 0; part < MD_PARTS; part++) {
        d->own[part] = set->file_count > 0;
        for (int file = 0; file < set->file_count; file++) {
            d->own[part] &= path_of(user, set, file, part) != NULL;
        }
    }
    int rc = md_data_block(d, message);
    for (int part = 0; part < MD_PARTS && rc == MD_EXIT_OK; part++) {
        if (part == MD_PART_TRAIN || d->own[part]) {
            rc = md_data_part(d, part, path_of, user, stream, message);
        }
    }
    for (int part = MD_PART_TEST; part > MD_PART_TRAIN && rc == MD_EXIT_OK; part--) {
        int64_t k = md_data_every(d, part);
        if (k > 0 && md_data_rows(d, part) == 0) {
            rc = md_fail(
                message, MD_EXIT_DATA,
                "%s: %lld rows; 'holdout %severy(%lld)' of data set '%s' holds none of them out",
                d->path, (long long)d->rows[0], part == MD_PART_TEST ? "test = " : "", (long long)k,
                set->name);
        }
    }
    return rc;
}

/* if: norm */
/* The constants of a normalised field, over its rows to train on in the order of the file: the same
 * bits for every seed and any number of threads. `centre` and `spread` have the field's type. Mean
 * and squares by Welford's updates in double. */
MD_COLD int md_data_constants(md_data *d, const md_field *f, void *centre, void *spread,
                              md_text *message) {
    const md_column *column = &d->columns[MD_PART_TRAIN][f - d->set->fields];
    size_t width = md_dtype_bytes(f->dtype), count = f->row_bytes / width;
    int64_t rows = md_data_rows(d, MD_PART_TRAIN);
    double *first = d->sums, *second = d->sums + count;
    for (int64_t j = 0; j < rows; j++) {
        int64_t row = md_data_index(d, MD_PART_TRAIN, j);
        if (md_data_row(f, column, row, 1, d->raw, d->row, message) == MD_ROW_LOST) {
            return MD_EXIT_DATA;
        }
        double share = 1 / (double)(j + 1);
        for (size_t i = 0; i < count; i++) {
            double x = md_get_number(d->row + i * width, f->dtype, 0).f;
            if (f->norm == MD_NORM_STANDARDIZE) {
                double step = j == 0 ? x : x - first[i];
                first[i] = j == 0 ? x : first[i] + step * share;
                second[i] = j == 0 ? 0 : second[i] + step * (x - first[i]);
            } else {
                first[i] = j == 0 || x < first[i] ? x : first[i];
                second[i] = j == 0 || x > second[i] ? x : second[i];
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        double s =
            f->norm == MD_NORM_STANDARDIZE ? sqrt(second[i] / (double)rows) : second[i] - first[i];
        const md_number c = {0, 0, first[i]}, w = {0, 0, s > 0 ? s : 1};
        (void)md_put_number((unsigned char *)centre + i * width, f->dtype, c);
        (void)md_put_number((unsigned char *)spread + i * width, f->dtype, w);
    }
    return MD_EXIT_OK;
}
/* end: norm */

/* Stages `count` rows of one field, one behind the other. `rows` are numbers in the file;
 * `consecutive` says that they rise by one. What does not lie in memory is checked again: the file
 * may have changed, and kernels trust ranges. */
MD_FN int md_data_gather(const md_data *d, int field, int part, const int64_t *rows, int64_t count,
                         int consecutive, void *to, md_text *message) {
    const md_field *f = &d->set->fields[field];
    const md_column *column = &d->columns[d->own[part] ? part : 0][field];
    unsigned char *out = (unsigned char *)to;
    size_t bytes = f->row_bytes;
    int whole = consecutive && column->data != NULL;
    (void)message;
    /* if: arrays */
    whole = whole && column->finished && column->pitch == bytes;
    /* end: arrays */
    if (whole) {
        memcpy(out, column->data + (size_t)rows[0] * bytes, bytes * (size_t)count);
        return MD_EXIT_OK;
    }
    int rc = MD_EXIT_OK;
    for (int64_t i = 0; i < count && rc == MD_EXIT_OK; i++) {
        unsigned char *row = out + (size_t)i * bytes;
        /* if: arrays */
        if (column->data == NULL) {
            rc = md_data_checked(d, f, column, rows[i], consecutive, row, message);
            continue;
        }
        /* end: arrays */
        /* if: rows */
        if (md_data_row(f, column, rows[i], 0, d->raw, row, message) != MD_ROW_LOST) {
            continue;
        }
        /* end: rows */
        memcpy(row, column->data + (size_t)rows[i] * column->pitch, bytes);
    }
    return rc;
}

#endif
