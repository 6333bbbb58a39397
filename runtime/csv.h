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

#include <strings.h>

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
    int long_cell;   /* the cell did not fit */
    const char *why; /* what was wrong with the cell */
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
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    c->lines = 0;
    c->ahead = 0;
    md_csv_next(c);
    const unsigned char *first = c->stream->buffer; /* at least three bytes, if the file has them */
    size_t have = c->stream->have;
    if (have >= 3 && memcmp(first, "\xEF\xBB\xBF", 3) == 0) { /* the mark of some editors */
        for (int i = 0; i < 3; i++) {
            md_csv_next(c);
        }
    } else if (have >= 2 &&
               (memcmp(first, "\xFF\xFE", 2) == 0 || memcmp(first, "\xFE\xFF", 2) == 0)) {
        (void)md_stream_close(c->stream, message);
        return md_fail(message, MD_EXIT_DATA, "%s: text in UTF-16; save it as UTF-8", path);
    }
    return MD_EXIT_OK;
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
    if (c->ahead == 0) {
        c->why = "a NUL byte; this is no text in UTF-8";
    }
    if (*used + 1 < sizeof c->cell) {
        c->cell[(*used)++] = (char)c->ahead;
    } else {
        c->long_cell = 1;
    }
    md_csv_next(c);
}

/* Reads one cell into c->cell. Gives 1 when another one follows in the record, 0 after the last
 * one, -1 and c->why when it is damaged. */
MD_FN int md_csv_cell(md_csv *c) {
    static const char quotes[] = "a quoted cell does not end as it should";
    size_t used = 0;
    c->column++;
    c->long_cell = 0;
    c->why = NULL;
    while (c->ahead == ' ' || c->ahead == '\t') {
        md_csv_next(c);
    }
    if (c->ahead == '"') {
        md_csv_next(c);
        for (;;) {
            if (c->ahead < 0) {
                c->why = quotes;
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
        if (c->ahead != ',' && !md_csv_at_end(c)) {
            c->why = quotes;
        }
    } else {
        while (c->ahead != ',' && !md_csv_at_end(c)) {
            md_csv_keep(c, &used);
        }
    }
    c->cell[used] = 0;
    while (used > 0 && (c->cell[used - 1] == ' ' || c->cell[used - 1] == '\t')) {
        c->cell[--used] = 0;
    }
    if (c->why != NULL) {
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
    int c = (unsigned char)cell[0];
    if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcasecmp(cell, numbers[i]) == 0) {
            return 0;
        }
    }
    return 1;
}

/* Leaves "PATH:3:4: WHAT (field 'x' of data set 'd')" for a column, counted from 1 there. */
MD_PRINTF(5, 6)
MD_COLD int md_csv_fault(const md_csv *c, int64_t column, const md_field *f, md_text *message,
                         const char *format, ...) {
    char what[MD_CELL_BYTES + 64];
    md_text t = md_text_make(what, sizeof what);
    va_list list;
    va_start(list, format);
    md_text_list(&t, format, list);
    va_end(list);
    return md_fail(message, MD_EXIT_DATA, "%s:%lld:%lld: %s (field '%s' of data set '%s')",
                   c->stream->path, (long long)c->line, (long long)column + 1, what, f->name,
                   c->set->name);
}

MD_FN int md_csv_number(const md_csv *c, const md_field *f, md_number *n, md_text *message) {
    if (c->long_cell) {
        return md_csv_fault(c, c->column, f, message, "a number has more than %d characters",
                            MD_CELL_BYTES - 1);
    }
    if (c->cell[0] == 0) {
        return md_csv_fault(c, c->column, f, message, "the cell is empty");
    }
    return md_parse_value(c->cell, n)
               ? MD_EXIT_OK
               : md_csv_fault(c, c->column, f, message, "'%s' is not a finite number", c->cell);
}

/* The first element of a finished row that is out of the declared range, or not finite; -1: none.
 * `n` is what it is, `what` what is wrong with it. */
MD_FN int64_t md_row_bad(const md_field *f, const unsigned char *row, md_number *n, char *what,
                         size_t size) {
    const size_t width = md_dtype_bytes(f->dtype);
    const int64_t elements = (int64_t)(f->row_bytes / width);
    const int ranged = f->lo < f->hi;
    const int64_t bad = ranged ? md_out_of_range(row, f->dtype, 0, elements, f->lo, f->hi)
                               : md_find_nonfinite(row, f->dtype, 0, elements);
    if (bad >= 0) {
        *n = md_get_number(row + (size_t)bad * width, f->dtype, 0);
        snprintf(what, size, "outside %lld..%lld", (long long)f->lo, (long long)f->hi);
        snprintf(what, ranged ? 0 : size, "not finite");
    }
    return bad;
}

/* One row of one field from the numbers of a record; `raw` is scratch for a row that `load`
 * finishes. Without `load` the numbers go straight into the type of the field. */
MD_FN int md_csv_field(const md_csv *c, const md_field *f, const md_number *numbers, void *raw,
                       unsigned char *out, md_text *message) {
    md_dtype type = f->load == NULL ? f->dtype : f->raw;
    unsigned char *to = f->load == NULL ? out : (unsigned char *)raw;
    char shown[MD_NUMBER_TEXT], what[64];
    md_number n;
    for (int64_t i = 0; i < f->count; i++) {
        n = numbers[f->first + i];
        if (!md_put_number(to + (size_t)i * md_dtype_bytes(type), type, n)) {
            return md_csv_fault(c, f->first + i, f, message, "%s does not fit %s",
                                md_number_text(shown, n), md_dtype_get(type)->name);
        }
    }
    if (f->load != NULL) {
        f->load(raw, out);
    }
    const int64_t bad = md_row_bad(f, out, &n, what, sizeof what);
    return bad < 0 ? MD_EXIT_OK
                   : md_csv_fault(c, f->first + (f->load == NULL ? bad : 0), f, message, "%s is %s",
                                  md_number_text(shown, n), what);
}

/* One pass. The first one, without `out`, finds rows, columns and header. The second fills
 * out[field], one array of rows for each field of this file; `numbers` is scratch for one record,
 * `raw` for one raw row. */
MD_FN int md_csv_read(md_csv *c, const char *path, md_number *numbers, void *raw,
                      unsigned char *const *out, md_text *message) {
    int first = out == NULL;
    int rc = md_csv_open(c, path, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    int64_t row = first ? 0 : -c->header;
    for (; rc == MD_EXIT_OK && (first || row < c->rows) && md_csv_record(c); row++) {
        int more;
        do {
            more = md_csv_cell(c);
            int used = first ? row == 0 : row >= 0 && c->column < c->columns;
            const md_field *f = used ? md_csv_user(c, c->column) : NULL;
            if (f != NULL && first) {
                c->header |= md_csv_is_name(c->cell);
            } else if (f != NULL) {
                rc = md_csv_number(c, f, &numbers[c->column], message);
            }
        } while (more > 0 && rc == MD_EXIT_OK);
        c->columns = first && row == 0 ? c->column + 1 : c->columns;
        int other = c->column + 1 != c->columns;
        if (first && more < 0) {
            rc = md_fail(message, MD_EXIT_DATA, "%s:%lld:%lld: %s", path, (long long)c->line,
                         (long long)c->column + 1, c->why);
        } else if (first && other) {
            rc = md_fail(message, MD_EXIT_DATA, "%s:%lld: %lld columns, but the first row has %lld",
                         path, (long long)c->line, (long long)c->column + 1, (long long)c->columns);
        } else if (rc == MD_EXIT_OK && (more < 0 || other)) {
            break; /* not what the first pass saw */
        }
        for (int i = 0; i < c->set->field_count && !first && row >= 0 && rc == MD_EXIT_OK; i++) {
            const md_field *f = &c->set->fields[i];
            if (f->file == c->file) {
                rc = md_csv_field(c, f, numbers, raw, out[i] + (size_t)row * f->row_bytes, message);
            }
        }
    }
    c->rows = first ? row - c->header : c->rows;
    if (rc == MD_EXIT_OK && row != c->rows + (first ? c->header : 0)) {
        rc = md_fail(message, MD_EXIT_DATA, "%s: the file changed while it was read", path);
    }
    int closed = md_stream_close(c->stream, message);
    return rc == MD_EXIT_OK ? closed : rc;
}

#endif
