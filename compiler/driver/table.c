/* table: see the header. Cells come from the reader of emitted programs (runtime/csv.h), so that
 * what is a number, a header or a damaged row here is the same there. One pass; what is kept of a
 * column has a fixed size, and the first row is kept until it is known whether it is a header. */
#define _GNU_SOURCE
#include "compiler/driver/table.h"

#include "runtime/csv.h"

#include <float.h>

enum { SHOWN = 40 }; /* bytes of a cell in a message */

/* A column while rows come: all but the first row, which may be names. */
typedef struct {
    TableColumn rest;
    const char *first;
    md_number number; /* what the first cell is as a number, where `wrong` is NULL */
    const char *wrong;
    int64_t count; /* numbers of `rest` */
} Survey;

typedef struct {
    Arena *arena;
    Table *t;
    const char *target;
    md_csv csv;
    VEC(Survey) column;
    int64_t records, first_line;
    bool by_name, lost; /* the target: given by its name; not there, or there twice */
} Reader;

const char *table_shown(Arena *arena, const char *text) {
    Text out = {.arena = arena};
    size_t length = strlen(text);
    text_add(&out, "'");
    for (size_t i = 0; i < length;) {
        size_t n = utf8_length(text + i, length - i);
        unsigned char c = (unsigned char)text[i];
        if (i + n > SHOWN) {
            text_add(&out, "...");
            break;
        }
        if (n && c >= 0x20 && c != 0x7f) {
            text_addn(&out, text + i, n);
        } else {
            text_add(&out, "?");
        }
        i += n ? n : 1;
    }
    text_add(&out, "'");
    return out.at;
}

const char *table_column_name(Arena *arena, const Table *t, int column) {
    const char *name = t->column[column].name;
    return name ? str_printf(arena, "column %d %s", column + 1, table_shown(arena, name))
                : str_printf(arena, "column %d", column + 1);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* A number that f32 holds, with room for its distance to another one. */
static bool cell_number(const md_csv *csv, md_number *n) {
    return !csv->long_cell && md_parse_value(csv->cell, n) && fabs(n->f) < 1e38;
}

static bool number_whole(md_number n) {
    return n.is_int == 1 || (n.is_int == 0 && fabs(n.f) < 9e15 && floor(n.f) == n.f);
}

static void label_see(bool *seen, md_number n) {
    if (number_whole(n) && n.f >= 0 && n.f <= TABLE_CLASSES) {
        seen[(int)n.f] = true;
    }
}

static void column_take(TableColumn *column, int64_t count, md_number n) {
    float value = (float)n.f;
    column->low = count == 0 || value < column->low ? value : column->low;
    column->high = count == 0 || value > column->high ? value : column->high;
    column->whole = (count == 0 || column->whole) && number_whole(n);
}

static void column_refuse(Arena *arena, TableColumn *column, const char *cell, int64_t line) {
    if (!column->wrong) {
        column->wrong = str_dup(arena, cell);
        column->wrong_line = line;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *first_row(Reader *r) {
    int more;
    r->first_line = r->csv.line;
    do {
        more = md_csv_cell(&r->csv);
        if (more < 0) {
            return NULL;
        }
        if (r->column.count == TABLE_COLUMNS) {
            return str_printf(r->arena, "%s:%lld: more than %d columns; no model of rows is made",
                              r->t->path, (long long)r->csv.line, TABLE_COLUMNS);
        }
        Survey column = {.first = str_dup(r->arena, r->csv.cell)};
        column.wrong = cell_number(&r->csv, &column.number) ? NULL : column.first;
        VEC_PUSH(r->arena, &r->column, column);
    } while (more > 0);
    return NULL;
}

static const char *other_row(Reader *r) {
    int more;
    md_number n;
    do {
        more = md_csv_cell(&r->csv);
        if (more < 0) {
            return NULL;
        }
        if (r->csv.column >= r->column.count) {
            continue; /* counted, and refused below */
        }
        Survey *column = &r->column.at[r->csv.column];
        if (cell_number(&r->csv, &n)) {
            column_take(&column->rest, column->count++, n);
            if (r->csv.column == r->t->target) {
                label_see(r->t->seen, n);
            }
        } else {
            column_refuse(r->arena, &column->rest, r->csv.cell, r->csv.line);
        }
    } while (more > 0);
    if (r->csv.column + 1 != r->column.count) {
        return str_printf(r->arena, "%s:%lld: %lld columns, but the first row has %d", r->t->path,
                          (long long)r->csv.line, (long long)r->csv.column + 1, r->column.count);
    }
    return NULL;
}

/* ---- the target ------------------------------------------------------------------------------ */

static const char *no_target(Reader *r, const char *what) {
    Text out = {.arena = r->arena};
    text_printf(&out, "%s: %s %s; the columns are", r->t->path, what,
                table_shown(r->arena, r->target));
    for (int i = 0; i < r->column.count && i < 12; i++) {
        bool name = md_csv_is_name(r->column.at[i].first) != 0;
        text_printf(&out, "%s %d%s%s", i ? "," : "", i + 1, name ? " " : "",
                    name ? table_shown(r->arena, r->column.at[i].first) : "");
    }
    text_add(&out, r->column.count > 12 ? " and so on" : "");
    return out.at;
}

/* By a name of the first row, else by a number. */
static const char *find_target(Reader *r) {
    int count = r->column.count;
    r->t->target = count - 1;
    if (!r->target) {
        return NULL;
    }
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (md_csv_is_name(r->column.at[i].first) && str_eq(r->column.at[i].first, r->target)) {
            if (found >= 0) {
                r->lost = true;
                return str_printf(r->arena,
                                  "%s: columns %d and %d are both named %s; give --target "
                                  "the number of one",
                                  r->t->path, found + 1, i + 1, table_shown(r->arena, r->target));
            }
            found = i;
        }
    }
    r->by_name = found >= 0;
    int64_t number;
    if (found < 0 && md_parse_integer(r->target, &number) && number >= 1 && number <= count) {
        found = (int)number - 1;
    }
    r->t->target = found;
    r->lost = found < 0;
    return r->lost ? no_target(r, "there is no column") : NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The first row is one of names if one stands above numbers, or where there are only names. */
static bool has_header(const Reader *r) {
    bool all = true, above = false;
    for (int i = 0; i < r->column.count; i++) {
        const Survey *column = &r->column.at[i];
        bool name = md_csv_is_name(column->first) != 0;
        all = all && (name || column->first[0] == 0);
        above = above || (name && !column->rest.wrong);
    }
    return above || (all && r->column.at[0].first[0] != 0);
}

static bool has_odd_header(const Reader *r) {
    bool none = r->records > 1, numbers = false;
    for (int i = 0; i < r->column.count; i++) {
        none = none && r->column.at[i].wrong && r->column.at[i].wrong[0];
        numbers = numbers || !r->column.at[i].rest.wrong;
    }
    return none && numbers;
}

static void finish(Reader *r) {
    Table *t = r->t;
    t->header = has_header(r);
    t->odd_header = !t->header && has_odd_header(r);
    t->rows = r->records - t->header;
    t->columns = r->column.count;
    t->column = ARENA_ARRAY(r->arena, TableColumn, t->columns);
    for (int i = 0; i < t->columns; i++) {
        Survey *from = &r->column.at[i];
        t->column[i] = from->rest;
        if (t->header) {
            t->column[i].name = from->first[0] ? from->first : NULL;
        } else if (from->wrong) {
            t->column[i].wrong = from->wrong;
            t->column[i].wrong_line = r->first_line;
        } else {
            column_take(&t->column[i], from->count, from->number);
            if (i == t->target) {
                label_see(t->seen, from->number);
            }
        }
    }
}

static const char *read_rows(Reader *r) {
    const char *wrong = NULL;
    while (!wrong && md_csv_record(&r->csv)) {
        bool first = r->records++ == 0;
        wrong = first ? first_row(r) : other_row(r);
        if (!wrong && r->csv.why) {
            wrong = str_printf(r->arena, "%s:%lld:%lld: %s", r->t->path, (long long)r->csv.line,
                               (long long)r->csv.column + 1, r->csv.why);
        }
        wrong = !wrong && first ? find_target(r) : wrong;
    }
    return wrong;
}

const char *table_read(Arena *arena, Table *t, const char *target, int *code) {
    char why[MD_MESSAGE_BYTES];
    md_text message = md_text_make(why, sizeof why);
    md_stream *stream = ARENA_NEW(arena, md_stream);
    Reader r = {.arena = arena, .t = t, .target = target, .csv = {.stream = stream}};
    *code = EXIT_FILE;
    int rc = md_csv_open(&r.csv, t->path, &message);
    if (rc != MD_EXIT_OK) {
        *code = stream->fd < 0 ? EXIT_FILE : EXIT_SOURCE; /* UTF-16 */
        return str_dup(arena, why);
    }
    const char *wrong = read_rows(&r);
    if (md_stream_close(stream, &message) != MD_EXIT_OK) {
        return str_dup(arena, why);
    }
    *code = r.lost ? EXIT_USAGE : EXIT_SOURCE;
    if (wrong) {
        return wrong;
    }
    if (r.records == 0) {
        return str_printf(arena, "%s: the file is empty", t->path);
    }
    finish(&r);
    if (r.by_name && !t->header) {
        *code = EXIT_USAGE;
        return no_target(&r, "the first row holds no names, so there is no column");
    }
    return NULL;
}
