/* Tables: a second reader over the whole text decides what must be taken, and which numbers. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

#include <ctype.h>

enum { X = 2, COLUMNS_READ = 4, CELLS = 1 << 16 };

static void halve(const void *raw, void *out) {
    float *to = out;
    for (int i = 0; i < X; i++) {
        to[i] = ((const float *)raw)[i] / 2;
    }
}

static const md_file files[] = {{"f", {"unused", NULL, NULL}, 0, 0}};
static const md_field fields[] = {
    {"x", 0, MD_COLUMNS, 0, X, 0, MD_F32, MD_F32, 1, {X}, 8, 0, 0, halve, MD_NORM_NONE, 0, 0, 0},
    {"k", 0, MD_COLUMNS, 2, 1, 0, MD_F32, MD_U8, 0, {0}, 1, 0, 10, NULL, MD_NORM_NONE, 0, 0, 0},
    {"n", 0, MD_COLUMNS, 3, 1, 0, MD_F32, MD_I64, 0, {0}, 8, 0, 0, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset set = {"rows", files, 1, fields, 3, {0, 0, 0}, MD_AS_FILED, 0, 0};

typedef struct {
    const uint8_t *at, *end;
    char cell[4096]; /* of the last cell, cut */
    size_t length;
    int damaged, nul;
} Table;

/* One cell; 1 when another follows in the record. */
static int cell(Table *t) {
    int quoted = 0;
    t->length = 0;
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
        t->at++;
    if (t->at < t->end && *t->at == '"') {
        quoted = 1;
        t->at++;
    }
    for (;;) {
        if (t->at == t->end) {
            t->damaged |= quoted;
            break;
        }
        uint8_t c = *t->at;
        if (quoted && c == '"') {
            if (t->at + 1 < t->end && t->at[1] == '"') {
                t->at++;
            } else {
                t->at++;
                break;
            }
        } else if (!quoted && (c == ',' || c == '\n' || c == '\r')) {
            break;
        }
        t->nul |= c == 0;
        t->at++;
        if (t->length < sizeof t->cell - 1)
            t->cell[t->length] = (char)c;
        t->length++;
    }
    if (quoted) {
        while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
            t->at++;
        t->damaged |= t->at < t->end && *t->at != ',' && *t->at != '\n' && *t->at != '\r';
    }
    size_t kept = t->length < sizeof t->cell - 1 ? t->length : sizeof t->cell - 1;
    t->cell[kept] = 0;
    while (kept > 0 && (t->cell[kept - 1] == ' ' || t->cell[kept - 1] == '\t'))
        t->cell[--kept] = 0;
    int more = t->at < t->end && *t->at == ',';
    if (t->at < t->end) {
        uint8_t c = *t->at++;
        if (c == '\r' && t->at < t->end && *t->at == '\n')
            t->at++;
    }
    return more;
}

static int is_header(const char *s) {
    static const char *const words[] = {"nan", "inf", "infinity", "na", "null", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(s, words[i]) == 0)
            return 0;
    }
    return isalpha((unsigned char)*s) || *s == '_' || (unsigned char)*s >= 0x80;
}

/* A decimal number by strtod, which takes more than that. */
static int number(const char *s, double *value) {
    if (strspn(s, "0123456789+-.eE \t") != strlen(s))
        return 0;
    char *end;
    *value = strtod(s, &end);
    return end != s && strspn(end, " \t") == strlen(end) && isfinite(*value);
}

/* A number that is whole, written out: 1.20e3 as 1200. 1: it is one of int64, 0: beyond, -1: there
 * is a fraction, however a double rounds it. */
static int whole_of(const char *s, int64_t *value) {
    static char digits[2 * sizeof((Table *)0)->cell];
    size_t n = 0, zeros;
    const char *e = strpbrk(s, "eE"), *point = strchr(s, '.');
    const char *end = e ? e : s + strspn(s, "0123456789+-. \t");
    double places = e ? strtod(e + 1, NULL) : 0;
    digits[n++] = s[strspn(s, " \t")] == '-' ? '-' : '+';
    for (const char *c = s; c < end; c++) {
        if (isdigit((unsigned char)*c)) {
            digits[n++] = *c;
            places -= point && c > point;
        }
    }
    digits[n] = 0;
    zeros = strspn(digits + 1, "0");
    *value = 0;
    if (digits[1 + zeros] == 0)
        return 1;
    for (; places < 0; places++) {
        if (digits[--n] != '0')
            return -1;
        digits[n] = 0;
    }
    if ((double)(n - 1 - zeros) + places > 20)
        return 0;
    for (; places > 0; places--)
        digits[n++] = '0';
    digits[n] = 0;
    errno = 0;
    *value = strtoll(digits, NULL, 10);
    return errno != ERANGE;
}

typedef struct {
    float x[X];
    uint8_t k;
    int64_t n;
} Row;

/* The rows by the second reader; -1 when the table must be refused. */
static int64_t table_rows(const uint8_t *data, size_t size, Row *rows, int64_t most) {
    static Table t;
    t = (Table){.at = data, .end = data + size};
    int64_t count = -1, columns = 0; /* a first row may be a header */
    int header = 0;
    if (size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0) {
        t.at += 3;
    } else if (size >= 2 &&
               (reader_word(data, 2, 1) == 0xFFFE || reader_word(data, 2, 1) == 0xFEFF)) {
        return -1;
    }
    for (int64_t record = 0;; record++) {
        while (t.at < t.end && (*t.at == '\n' || *t.at == '\r'))
            t.at++;
        if (t.at == t.end)
            break;
        Row row = {{0}, 0, 0};
        int64_t column = 0;
        int bad = 0, more;
        do {
            double v = 0;
            more = cell(&t);
            if (t.damaged || t.nul)
                return -1;
            if (record == 0 && column < COLUMNS_READ)
                header |= is_header(t.cell);
            if (column < COLUMNS_READ) {
                int64_t whole = 0;
                bad |= t.length > MD_CELL_BYTES - 1 || !number(t.cell, &v);
                const int is = bad ? -1 : whole_of(t.cell, &whole);
                if (column < X) {
                    const float f = is == 1 && whole != 0 ? (float)whole : (float)v;
                    bad |= !isfinite(f);
                    row.x[column] = f / 2;
                } else if (column == 2) {
                    bad |= is != 1 || whole < 0 || whole >= 10;
                    row.k = bad ? 0 : (uint8_t)whole;
                } else {
                    bad |= is != 1;
                    row.n = whole;
                }
            }
            column++;
        } while (more);
        columns = record == 0 ? column : columns;
        if (column != columns || column < COLUMNS_READ || (bad && !(record == 0 && header)))
            return -1;
        count = record - header;
        if (count >= 0 && count < most)
            rows[count] = row;
    }
    return count < 0 ? -1 : count + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static Row rows[CELLS];
    md_data d;
    int64_t want = size < CELLS ? table_rows(data, size, rows, CELLS) : -2;
    int rc = reader_open(&d, &set, MD_FORMAT_CSV, data, size);
    if (want != -2 && (rc == MD_EXIT_OK) != (want >= 0)) {
        finding("status %d, but the second reader has %lld rows", rc, (long long)want);
    }
    if (rc == MD_EXIT_OK && want >= 0) {
        if (want != md_data_rows(&d, MD_PART_TRAIN)) {
            finding("%lld rows instead of %lld", (long long)d.rows[0], (long long)want);
        }
        for (int64_t i = 0; i < want; i++) {
            Row got;
            reader_gather(&d, 0, i, 1, got.x);
            reader_gather(&d, 1, i, 0, &got.k);
            reader_gather(&d, 2, i, 0, &got.n);
            if (memcmp(got.x, rows[i].x, sizeof got.x) != 0 || got.k != rows[i].k ||
                got.n != rows[i].n) {
                finding("row %lld: %g %g %d %lld instead of %g %g %d %lld", (long long)i,
                        (double)got.x[0], (double)got.x[1], got.k, (long long)got.n,
                        (double)rows[i].x[0], (double)rows[i].x[1], rows[i].k,
                        (long long)rows[i].n);
            }
        }
    }
    md_data_close(&d);
    return 0;
}
