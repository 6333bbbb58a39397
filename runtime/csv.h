/* SPDX-License-Identifier: 0BSD */
/* csv: tables of numbers in text.
 *
 * The file is read twice through a small buffer, once to count and once to fill, so that it needs
 * no memory besides the table. Cells may be quoted, a header is recognised
 * by a used cell that starts like a word. Every row has as many cells as the first one; only the
 * columns that a field uses must be numbers. Messages say file:line:column, counted from 1.
 * Needs host.h and convert.h, gives rows in the types of the fields. */
#ifndef MD_CSV_H
#define MD_CSV_H

#include "runtime/convert.h"
#include "runtime/host.h"

enum { MD_CELL_BYTES = 128 };

typedef struct md_csv {
    md_stream *stream;
    const md_dataset *set;
    int file; /* index in set->files */
    int ahead;
    int64_t line;   /* of the record that is read */
    int64_t column; /* of the cell that was read last, from 0 */
    int64_t lines;  /* line ends so far */
    char cell[MD_CELL_BYTES];
    int long_cell; /* the cell did not fit */
    /* What the first pass finds. */
    int64_t rows, columns;
    int header;
} md_csv;

/* A line ends in LF, CR LF or CR. */
MD_FN void md_csv_next(md_csv *c) {
    int before = c->ahead;
    c->ahead = md_stream_next(c->stream);
    c->lines += before == '\n' || (before == '\r' && c->ahead != '\n');
}

MD_FN int md_csv_at_end(const md_csv *c) {
    return c->ahead == '\n' || c->ahead == '\r' || c->ahead < 0;
}

MD_FN int md_csv_open(md_csv *c, const char *path, md_text *message) {
    int rc = md_stream_open(c->stream, path, message);
    if (rc == MD_EXIT_OK) {
        c->lines = 0;
        c->ahead = 0;
        md_csv_next(c);
        if (c->ahead == 0xEF) { /* the mark that some editors put first: EF BB BF */
            md_csv_next(c);
            md_csv_next(c);
            md_csv_next(c);
        }
    }
    return rc;
}

/* Goes to the next record that is not blank; 0 at the end of the file. */
MD_FN int md_csv_record(md_csv *c) {
    while (c->ahead == '\n' || c->ahead == '\r') {
        md_csv_next(c);
    }
    c->line = c->lines + 1;
    c->column = -1;
    return c->ahead >= 0;
}

MD_FN void md_csv_keep(md_csv *c, size_t *used) {
    if (*used + 1 < sizeof c->cell) {
        c->cell[(*used)++] = (char)c->ahead;
    } else {
        c->long_cell = 1;
    }
    md_csv_next(c);
}

/* Reads one cell into c->cell. Gives 1 when another one follows in the record, 0 after the last
 * one, -1 when quotes are not in order. */
MD_FN int md_csv_cell(md_csv *c) {
    size_t used = 0;
    int ok = 1;
    c->column++;
    c->long_cell = 0;
    while (c->ahead == ' ' || c->ahead == '\t') {
        md_csv_next(c);
    }
    if (c->ahead == '"') {
        md_csv_next(c);
        for (;;) {
            if (c->ahead < 0) {
                return -1;
            }
            if (c->ahead == '"') {
                md_csv_next(c);
                if (c->ahead != '"') {
                    break;
                }
            }
            md_csv_keep(c, &used);
        }
        while (c->ahead == ' ' || c->ahead == '\t') {
            md_csv_next(c);
        }
        ok = c->ahead == ',' || md_csv_at_end(c);
    } else {
        while (c->ahead != ',' && !md_csv_at_end(c)) {
            md_csv_keep(c, &used);
        }
    }
    c->cell[used] = 0;
    while (used > 0 && (c->cell[used - 1] == ' ' || c->cell[used - 1] == '\t')) {
        c->cell[--used] = 0;
    }
    if (!ok) {
        return -1;
    }
    int more = c->ahead == ',';
    int cr = c->ahead == '\r';
    if (c->ahead >= 0) {
        md_csv_next(c);
    }
    if (cr && c->ahead == '\n') {
        md_csv_next(c);
    }
    return more;
}

/* The first field that reads a column, or NULL. */
MD_FN const md_field *md_csv_user(const md_csv *c, int64_t column) {
    for (int i = 0; i < c->set->field_count; i++) {
        const md_field *f = &c->set->fields[i];
        if (f->file == c->file && column >= f->first && column < f->first + f->count) {
            return f;
        }
    }
    return NULL;
}

/* A cell that can only be the name of a column: it starts like a word and is none of the words
 * that stand for a missing or infinite number. */
MD_FN int md_csv_is_name(const char *cell) {
    static const char *const numbers[] = {"nan", "inf", "infinity", "na", "null", "none"};
    char lower[16];
    size_t n = strlen(cell);
    int c = (unsigned char)cell[0];
    if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof lower; i++) {
        char x = i < n ? cell[i] : (char)0;
        lower[i] = x >= 'A' && x <= 'Z' ? (char)(x - 'A' + 'a') : x;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (n < sizeof lower && strcmp(lower, numbers[i]) == 0) {
            return 0;
        }
    }
    return 1;
}

MD_FN int md_csv_quote_fault(const md_csv *c, md_text *message) {
    return md_fail(message, MD_EXIT_DATA, "%s:%lld:%lld: a quoted cell does not end as it should",
                   c->stream->path, (long long)c->line, (long long)c->column + 1);
}

/* First pass: rows, columns, header. */
MD_FN int md_csv_count(md_csv *c, const char *path, md_text *message) {
    int rc = md_csv_open(c, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    c->rows = 0;
    c->columns = 0;
    c->header = 0;
    while (rc == MD_EXIT_OK && md_csv_record(c)) {
        int more;
        do {
            more = md_csv_cell(c);
            if (c->rows == 0 && md_csv_user(c, c->column) != NULL && md_csv_is_name(c->cell)) {
                c->header = 1;
            }
        } while (more > 0);
        c->columns = c->rows == 0 ? c->column + 1 : c->columns;
        c->rows++;
        if (more < 0) {
            rc = md_csv_quote_fault(c, message);
        } else if (c->column + 1 != c->columns) {
            rc = md_fail(message, MD_EXIT_DATA, "%s:%lld: %lld columns, but the first row has %lld",
                         path, (long long)c->line, (long long)c->column + 1, (long long)c->columns);
        }
    }
    c->rows -= c->header;
    int closed = md_stream_close(c->stream, message);
    return rc == MD_EXIT_OK ? closed : rc;
}

MD_FN int md_csv_number(const md_csv *c, const md_field *f, md_number *n, md_text *message) {
    if (c->long_cell || !md_parse_value(c->cell, n)) {
        return md_fail(message, MD_EXIT_DATA, "%s:%lld:%lld: %s%s%s (field '%s' of data set '%s')",
                       c->stream->path, (long long)c->line, (long long)c->column + 1,
                       c->cell[0] == 0 ? "the cell is empty" : "'", c->cell,
                       c->cell[0] == 0 ? "" : "' is not a finite number", f->name, c->set->name);
    }
    return MD_EXIT_OK;
}

/* One row of one field from the numbers of a record; `raw` is scratch for the raw row. */
MD_FN int md_csv_field(const md_csv *c, const md_field *f, const md_number *numbers, void *raw,
                       unsigned char *out, md_text *message) {
    size_t width = md_dtype_bytes(f->raw);
    for (int64_t i = 0; i < f->count; i++) {
        md_number n = numbers[f->first + i];
        if (!md_put_number((unsigned char *)raw + (size_t)i * width, f->raw, n)) {
            return md_fail(message, MD_EXIT_DATA,
                           "%s:%lld:%lld: %.17g does not fit %s (field '%s' of data set '%s')",
                           c->stream->path, (long long)c->line, (long long)(f->first + i + 1), n.f,
                           md_dtype_get(f->raw)->name, f->name, c->set->name);
        }
    }
    int64_t elements = (int64_t)(f->row_bytes / md_dtype_bytes(f->dtype));
    if (f->load != NULL) {
        f->load(raw, out);
    } else {
        md_convert(out, f->dtype, raw, f->raw, 0, elements);
    }
    int64_t bad = f->lo < f->hi ? md_out_of_range(out, f->dtype, 0, elements, f->lo, f->hi) : -1;
    if (bad >= 0) {
        md_number n = md_get_number(out + (size_t)bad * md_dtype_bytes(f->dtype), f->dtype, 0);
        return md_fail(message, MD_EXIT_DATA,
                       "%s:%lld:%lld: %.17g is outside %lld..%lld (field '%s' of data set '%s')",
                       c->stream->path, (long long)c->line,
                       (long long)(f->first + 1 + (f->load == NULL ? bad : 0)), n.f,
                       (long long)f->lo, (long long)f->hi, f->name, c->set->name);
    }
    return MD_EXIT_OK;
}

/* Second pass: fills out[field], one array of rows for each field of this file. `numbers` is
 * scratch for one record, `raw` for one raw row. */
MD_FN int md_csv_fill(md_csv *c, const char *path, md_number *numbers, void *raw,
                      unsigned char *const *out, md_text *message) {
    int rc = md_csv_open(c, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    int64_t row = -c->header;
    for (; rc == MD_EXIT_OK && row < c->rows && md_csv_record(c); row++) {
        int more;
        do {
            more = md_csv_cell(c);
            const md_field *f = row >= 0 ? md_csv_user(c, c->column) : NULL;
            if (f != NULL && c->column < c->columns) {
                rc = md_csv_number(c, f, &numbers[c->column], message);
            }
        } while (more > 0 && rc == MD_EXIT_OK);
        for (int i = 0; i < c->set->field_count && row >= 0 && rc == MD_EXIT_OK; i++) {
            const md_field *f = &c->set->fields[i];
            if (f->file == c->file) {
                rc = md_csv_field(c, f, numbers, raw, out[i] + (size_t)row * f->row_bytes, message);
            }
        }
    }
    if (rc == MD_EXIT_OK && row != c->rows) {
        rc = md_fail(message, MD_EXIT_DATA, "%s: the file changed while it was read", path);
    }
    int closed = md_stream_close(c->stream, message);
    return rc == MD_EXIT_OK ? closed : rc;
}

#endif
