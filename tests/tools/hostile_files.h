/* hostile_files: builds the files that hostile.c gives to a program, and the tables among them.
 * Included there once, behind taken, refused, either and line. */
#ifndef MDLC_TESTS_HOSTILE_FILES_H
#define MDLC_TESTS_HOSTILE_FILES_H

#define TEXT_OF(s) (s), sizeof(s) - 1

/* A file that is built piece by piece. */
typedef struct {
    uint8_t *at;
    size_t size, room;
} File;

static void add(File *f, const void *bytes, size_t size) {
    if (f->size + size > f->room) {
        f->room = 2 * (f->size + size) + 256;
        f->at = realloc(f->at, f->room);
        if (f->at == NULL) {
            exit(2);
        }
    }
    memcpy(f->at + f->size, bytes, size);
    f->size += size;
}

static void add_text(File *f, const char *text) {
    add(f, text, strlen(text));
}

static void add_word(File *f, uint64_t word, size_t width, int big_endian) {
    for (size_t i = 0; i < width; i++) {
        uint8_t byte = (uint8_t)(word >> 8 * (big_endian ? width - 1 - i : i));
        add(f, &byte, 1);
    }
}

static void add_number(File *f, double value, md_dtype type, int big_endian) {
    uint8_t bytes[8];
    md_number n = {value == floor(value), value == floor(value) ? (int64_t)value : 0, value};
    if (!md_put_number(bytes, type, n)) {
        fprintf(stderr, "hostile: %g does not fit\n", value);
        exit(2);
    }
    add_word(f, reader_word(bytes, md_dtype_bytes(type), 0), md_dtype_bytes(type), big_endian);
}

static void drop(File *f) {
    free(f->at);
    memset(f, 0, sizeof *f);
}

/* ---- tables --------------------------------------------------------------------------------- */

static const char table[] = "a,b,class,n\n1,2,0,1\n3.5,4,1,2\n5,\"6\",2,3\n7,8e0,0,4\n";

/* The second reader says what must happen; `text` is wanted in the message. */
static void csv(const char *kind, const void *bytes, size_t size, const char *text) {
    static Row rows[CELLS];
    int64_t n = table_rows(bytes, size, rows, CELLS);
    double s = 0;
    for (int64_t i = 0; i < 4 && n >= 4; i++) {
        s += (double)rows[i].x[0] + (double)rows[i].x[1] + 10 * rows[i].k + 100 * (double)rows[i].n;
    }
    if (n >= 4) {
        taken(kind, CSV, bytes, size, s);
    } else if (n >= 0) {
        refused(kind, CSV, bytes, size, "rows to train on");
    } else {
        refused(kind, CSV, bytes, size, text);
    }
}

/* The table with another text for one of its lines. */
static void csv_line(const char *kind, const char *cells, const char *text) {
    File f = {0};
    add_text(&f, "1,2,0,1\n3,4,1,2\n");
    add_text(&f, cells);
    add_text(&f, "\n7,8,0,4\n9,10,3,5\n");
    csv(kind, f.at, f.size, text);
    drop(&f);
}

static void csv_cells(void) {
    static const char *const numbers[] = {"nan",
                                          "NaN",
                                          "-nan",
                                          "inf",
                                          "-Infinity",
                                          "1e999",
                                          "-1e999",
                                          "0x10",
                                          "1e",
                                          "1e+",
                                          ".",
                                          "-",
                                          "+",
                                          "--1",
                                          "+-1",
                                          "1 2",
                                          "1_000",
                                          "1.0f",
                                          "TRUE",
                                          "NA",
                                          "null",
                                          "1.2.3",
                                          "1;2",
                                          "\xEF\xBC\x91",
                                          "\xD9\xA1",
                                          "\xC2\xA0"
                                          "1",
                                          "1'000",
                                          "$1",
                                          "1%",
                                          "1e1e1",
                                          "\x1B[2J",
                                          "#1",
                                          "1\v",
                                          "\"1\n2\"",
                                          "\"a\nb\"",
                                          "1.5\x7F",
                                          "\"\"",
                                          "",
                                          " ",
                                          "\t",
                                          "1E400",
                                          "0b1",
                                          "(1)"};
    static const struct {
        const char *row, *text;
    } rows[] = {
        {"1e300,6,2,3", ":3:1: 1e+300 does not fit F32"},
        {"5,-1e39,2,3", ":3:2: -1e+39 does not fit F32"},
        {"5,6,300,3", ":3:3: 300 does not fit U8"},
        {"5,6,10,3", ":3:3: 10 is outside 0..10"},
        {"5,6,-1,3", ":3:3: -1 does not fit U8"},
        {"5,6,2.5,3", ":3:3: 2.5 does not fit U8"},
        {"5,6,1e30,3", ":3:3: 1e+30 does not fit U8"},
        {"5,6,2,9223372036854775808", ":3:4: "},
        {"5,6,2,1e19", ":3:4: 1e+19 does not fit I64"},
        {"5,6,2,0.5", ":3:4: 0.5 does not fit I64"},
        {"5,6,2,9007199254740993.0", ":3:4: "},
        {"5,6,2,9223372036854775807", ""},
        {"5,6,2,-9223372036854775808", ""},
        {"5,6,2,16777217", ""},
        {"1e-400,-0,2.0e0,3", ""},
        {" 5 ,\t6\t, \"2\" ,+3", ""},
        {"5,6,2", ":3: 3 columns, but the first row has 4"},
        {"5,6,2,3,4", ":3: 5 columns, but the first row has 4"},
        {"5,6,2,3,", ":3: 5 columns"},
        {",,,", ":3:1: the cell is empty"},
        {"5;6;2;3", ":3: 1 columns"},
        {"\"5,6,2,3", ":3:1: a quoted cell does not end as it should"},
        {"\"5\"6,2,3,4", ":3:1: a quoted cell does not end as it should"},
        {"5\"6,2,3,4", ":3:1: '5\"6' is not a finite number"},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char row[64];
        snprintf(row, sizeof row, "5,%s,2,3", numbers[i]);
        csv_line("csv-cell", row, ":3:");
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        csv_line("csv-row", rows[i].row, rows[i].text);
    }
}

static void csv_forms(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } forms[] = {
        {TEXT_OF(""), "no rows"},
        {TEXT_OF("\n"), "no rows"},
        {TEXT_OF("\n\r\n\r"), "no rows"},
        {TEXT_OF("a,b,c,d\n"), "no rows"},
        {TEXT_OF("\xEF\xBB\xBF"), "no rows"},
        {TEXT_OF("a,b,c,d"), "no rows"},
        {TEXT_OF("1,2,0,1\r\n3,4,1,2\r\n5,6,2,3\r\n7,8,0,4\r\n"), ""},
        {TEXT_OF("1,2,0,1\r3,4,1,2\r5,6,2,3\r7,8,0,4"), ""},
        {TEXT_OF("\xEF\xBB\xBF"
                 "1,2,0,1\n3,4,1,2\n\n\n5,6,2,3\n7,8,0,4\n\n"),
         ""},
        {TEXT_OF("1,2,0,1,\"a\n\"\"b\"\"\"\n3,4,1,2,c\n5,6,2,3,\n7,8,0,4,\"\"\n"), ""},
        {TEXT_OF("\"a,b\",b,c,d\n1,2,0,1\n3,4,1,2\n5,6,2,3\n7,8,0,4\n"), ""},
        {TEXT_OF("\xFF\xFE"
                 "1\0,\0"
                 "2\0,\0"),
         "UTF-16"},
        {TEXT_OF("\xFE\xFF\0"
                 "1\0,\0"
                 "2"),
         "UTF-16"},
        {TEXT_OF("1\0,\0"
                 "2\0,\0"
                 "3\0,\0"
                 "4\0\n\0"),
         ":1:1: a NUL byte"},
        {TEXT_OF("1,2,0,1\n3,4\0,1,2\n5,6,2,3\n7,8,0,4\n"), ":2:2: a NUL byte"},
        {TEXT_OF("1;2;0;1\n3;4;1;2\n5;6;2;3\n7;8;0;4\n"),
         "needs at least 2 columns, the file has 1 (commas"},
        {TEXT_OF("1\t2\t0\t1\n3\t4\t1\t2\n"), "the file has 1"},
        {TEXT_OF("1 2 0 1\n3 4 1 2\n"), "the file has 1"},
        {TEXT_OF("a,b,c,d\ne,f,g,h\n1,2,3,4\n"), ":2:1: 'e' is not a finite number"},
        {TEXT_OF("\x89PNG\r\n\x1A\n\0\0\0\rIHDR"), ""},
        {TEXT_OF("\x1F\x8B\x08\0\0\0\0\0\0\3"), ""},
        {TEXT_OF("\x93NUMPY\1\0\x10\0{}"), ""},
        {TEXT_OF("<html>\n<body>404</body>\n"), "the file has 1"},
        {TEXT_OF("\"1,2,0,1\n3,4,1,2\n"), ":1:1: a quoted cell"},
        {TEXT_OF("1,2,0,1\n \n3,4,1,2\n"), ":2: 1 columns"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        csv("csv-form", forms[i].bytes, forms[i].size, forms[i].text);
    }
}

static void csv_long(void) {
    enum { MILLION = 1000000 };
    char *million = malloc(MILLION + 1);
    if (million == NULL) {
        exit(2);
    }
    memset(million, '1', MILLION);
    million[MILLION] = 0;
    File f = {0};
    for (int i = 0; i < 4; i++) { /* a cell that nobody uses */
        add_text(&f, "1,2,0,1,");
        add_text(&f, i == 2 ? million : "x");
        add_text(&f, "\n");
    }
    csv("csv-long", f.at, f.size, "");
    f.size = 0;
    add_text(&f, "1,2,0,1\n3,");
    add_text(&f, million);
    add_text(&f, ",0,1\n");
    csv("csv-long", f.at, f.size, ":2:2: a number has more than 127 characters");
    f.size = 0;
    add_text(&f, "1,2,0,1\n3,\"");
    add_text(&f, million);
    csv("csv-long", f.at, f.size, ":2:2: a quoted cell");
    f.size = 0;
    for (int i = 0; i < MILLION; i++) {
        add_text(&f, i % 2 == 0 ? "\n" : "\r");
    }
    add_text(&f, table);
    csv("csv-long", f.at, f.size, "");
    f.size = 0;
    memset(million, ',', MILLION);
    add_text(&f, million); /* a million columns, in one row more than in the other */
    add_text(&f, "\n");
    add_text(&f, million + 1);
    csv("csv-long", f.at, f.size, ":2: 1000000 columns, but the first row has 1000001");
    drop(&f);
    free(million);
}

static void csv_files(void) {
    size_t n = sizeof table - 1;
    csv_forms();
    csv_cells();
    csv_long();
    for (size_t cut = 0; cut <= n; cut += 1 + cut / 24) {
        csv("csv-cut", table, cut, "");
    }
    for (int i = 0; i < 40; i++) {
        char flipped[sizeof table];
        memcpy(flipped, table, sizeof table);
        flipped[below(n)] ^= (char)(1u << below(8));
        csv("csv-flip", flipped, n, "");
    }
}

#endif
