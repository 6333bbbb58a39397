/* hostile_files: the files that hostile.c gives to a program, by kind. Included there once, behind
 * taken, refused, either and line. */
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

/* ---- arrays --------------------------------------------------------------------------------- */

static void npy_text(File *f, int version, const char *text, size_t length) {
    f->size = 0;
    add(f, "\x93NUMPY", 6);
    add_word(f, (uint64_t)version, 1, 0);
    add_word(f, 0, 1, 0);
    add_word(f, length, version == 1 ? 2 : 4, 0);
    add_text(f, text);
}

static void npy_head(File *f, int version, const char *descr, const char *fortran,
                     const char *shape) {
    char text[512];
    snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': %s, 'shape': %s, }\n", descr,
             fortran, shape);
    npy_text(f, version, text, strlen(text));
}

static const double sixteen[16] = {1, 2, 0, 1, 3, 4, 1, 2, 5, 6, 2, 3, 7, 8, 0, 4};
enum { SIXTEEN_S = 36 + 30 + 1000 };

static void add_sixteen(File *f, md_dtype type) {
    for (int i = 0; i < 16; i++) {
        add_number(f, sixteen[i], type, 0);
    }
}

static void npy_types(void) {
    File f = {0};
    for (const md_npy_code *c = md_npy_codes(); c->code != NULL; c++) {
        char descr[16];
        snprintf(descr, sizeof descr, "'%s'", c->code);
        if (c->dtype == MD_BOOL) {
            continue;
        }
        for (int version = 1; version <= 2; version++) {
            npy_head(&f, version, descr, "False", "(4, 4)");
            add_sixteen(&f, c->dtype);
            taken("npy-type", NPY, f.at, f.size, SIXTEEN_S);
        }
    }
    static const char *const other[] = {"'>f4'", "'>i8'", "'|O'",      "'O'",    "'<U5'",
                                        "'|S8'", "'<c8'", "'<M8[ns]'", "'<f16'", "'<V4'",
                                        "''",    "'f4'",  "'=f4'",     "'<f3'",  "[('a', '<f4')]",
                                        "None",  "'<f4",  "4"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        npy_head(&f, 1, other[i], "False", "(4, 4)");
        add_sixteen(&f, MD_F32);
        refused("npy-descr", NPY, f.at, f.size, i < 13 ? "not supported" : "");
    }
    drop(&f);
}

static void npy_shapes(void) {
    static const struct {
        const char *shape, *text;
    } bad[] = {
        {"(9223372036854775808, 4)", "damaged"},
        {"(9223372036854775807, 4)", ""},
        {"(2147483648, 2147483648)", "too large"},
        {"(4294967296, 4294967296)", "too large"},
        {"(4611686018427387904, 4)", ""},
        {"(-4, 4)", "damaged"},
        {"(4, -4)", "damaged"},
        {"(4,)", "too long: 16 bytes of data were expected, found 64"},
        {"()", "too long"},
        {"(0, 4)", "empty"},
        {"(4, 0)", "empty"},
        {"(4, 5)", "cut short: 80 bytes of data were expected, found 64"},
        {"(4, 4.0)", "damaged"},
        {"(4 4)", "damaged"},
        {"(4, 4", "damaged"},
        {"[4, 4]", "damaged"},
        {"(4L, 4L)", "damaged"},
        {"(1,1,1,1,1,1,1,1,1,1,4,4)", ""},
        {"(99999999999999999999999, 1)", "damaged"},
        {"(2, 8)", "one update"},
        {"(16, 1)", "field 'x' of data set 'array' takes 2"},
        {"(0x4, 4)", "damaged"},
        {"(4, , 4)", "damaged"},
        {"4", "damaged"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        npy_head(&f, 1, "'<f4'", "False", bad[i].shape);
        add_sixteen(&f, MD_F32);
        refused("npy-shape", NPY, f.at, f.size, bad[i].text);
    }
    npy_head(&f, 1, "'<f4'", "False", "(16, 16)"); /* extents of two digits */
    for (int i = 0; i < 16; i++) {
        add_sixteen(&f, MD_F32);
    }
    taken("npy-shape", NPY, f.at, f.size, 4 * (1 + 2 + 10 * 0 + 100 * 1));
    static const char *const good[] = {"(4,4)", "( 4 , 4 , )", "(4, 4,)", "(4,\n4)", "(4, 2, 2)"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        npy_head(&f, 1, "\"<f4\"", "False", good[i]);
        add_sixteen(&f, MD_F32);
        taken("npy-shape", NPY, f.at, f.size, SIXTEEN_S);
    }
    drop(&f);
}

static void npy_heads(void) {
    static const struct {
        const char *text, *why;
        int length; /* -1: right */
    } heads[] = {
        {"", "damaged", -1},
        {"{}", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)} x", "damaged", -1},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (4, 4)}", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': False}", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (4, 4)}", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (4, 4)}", "Fortran order", -1},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), 'x': 1}", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)", "damaged", -1},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}", "cut short", 60000},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}", "damaged", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}", "damaged", 20},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        npy_text(&f, 1, heads[i].text,
                 heads[i].length < 0 ? strlen(heads[i].text) : (size_t)heads[i].length);
        add_sixteen(&f, MD_F32);
        refused("npy-head", NPY, f.at, f.size, heads[i].why);
    }
    npy_text(&f, 2, "{}", 4000000000u);
    refused("npy-head", NPY, f.at, f.size, "cut short or too long");
    npy_text(&f, 1, "{'shape':(4,4),'descr':'<f4','fortran_order':False}", 51);
    add_sixteen(&f, MD_F32); /* neither blanks nor a line end, nor aligned */
    taken("npy-head", NPY, f.at, f.size, SIXTEEN_S);
    npy_head(&f, 3, "'<f4'", "False", "(4, 4)");
    refused("npy-head", NPY, f.at, f.size, "version 3.0");
    npy_head(&f, 1, "'<f4'", "False", "(4, 4)");
    add_sixteen(&f, MD_F32);
    size_t n = f.size;
    for (size_t cut = 0; cut < n; cut += 1 + cut / 12) {
        refused("npy-cut", NPY, f.at, cut, "");
    }
    add_text(&f, "x");
    refused("npy-cut", NPY, f.at, f.size, "too long");
    for (int i = 0; i < 40; i++) {
        uint8_t copy[256];
        memcpy(copy, f.at, n);
        copy[below(i < 30 ? n - 64 : n)] ^= (uint8_t)(1u << below(8));
        either("npy-flip", NPY, copy, n);
    }
    drop(&f);
}

/* Numbers that the fields cannot take. */
static void npy_values(void) {
    static const struct {
        int at;
        double value;
        const char *text;
    } bad[] = {
        {4, NAN, "row 1, element 0 is nan, but rows hold finite numbers (field 'x'"},
        {5, INFINITY, "row 1, element 1 is inf"},
        {5, -INFINITY, "row 1, element 1 is -inf"},
        {0, 1e300, "row 0, element 0 is 1e+300, which does not fit F32"},
        {2, 2.5, "row 0, element 2 is 2.5, which does not fit U8 (field 'k' of data set 'array')"},
        {6, 300, "row 1, element 2 is 300, which does not fit U8"},
        {6, -1, "row 1, element 2 is -1"},
        {6, NAN, "row 1, element 2 is nan"},
        {10, 10, "row 2, element 0 is 10, outside 0..10"},
        {15, 1e19, "row 3, element 3 is 1e+19, which does not fit I64"},
        {15, 0.5, "row 3, element 3 is 0.5, which does not fit I64"},
        {15, NAN, "row 3, element 3 is nan"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        npy_head(&f, 1, "'<f8'", "False", "(4, 4)");
        for (int k = 0; k < 16; k++) {
            add_number(&f, k == bad[i].at ? bad[i].value : sixteen[k], MD_F64, 0);
        }
        refused("npy-value", NPY, f.at, f.size, bad[i].text);
    }
    npy_head(&f, 1, "'<u8'", "False", "(4, 4)");
    add_sixteen(&f, MD_U64);
    memset(f.at + f.size - 8, 0xFF, 8);
    refused("npy-value", NPY, f.at, f.size,
            "row 3, element 3 is 1.8446744e+19, which does not fit I64");
    drop(&f);
}

static void npy_files(void) {
    npy_types();
    npy_shapes();
    npy_heads();
    npy_values();
}

/* ---- images and labels, packed and not ------------------------------------------------------ */

static void idx_head(File *f, int type, int rank, const uint64_t *extent) {
    f->size = 0;
    add_word(f, (uint64_t)(type << 8 | rank), 4, 1);
    for (int i = 0; i < rank; i++) {
        add_word(f, extent[i], 4, 1);
    }
}

static const uint64_t four_two[] = {4, 2}, four[] = {4};
enum { IMAGE_S = 36 + 60 }; /* 1..8 and the labels 0 1 2 3 */

static void idx_good(File *f, int type, md_dtype dtype, int labels) {
    idx_head(f, type, labels ? 1 : 2, labels ? four : four_two);
    for (int i = 0; i < (labels ? 4 : 8); i++) {
        add_number(f, labels ? i : i + 1, dtype, 1);
    }
}

static void idx_files(void) {
    static const struct {
        int type;
        md_dtype dtype;
    } types[] = {{8, MD_U8}, {9, MD_I8}, {11, MD_I16}, {12, MD_I32}, {13, MD_F32}, {14, MD_F64}};
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } bad[] = {
        {TEXT_OF(""), "empty"},
        {TEXT_OF("\0\0\x08"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\1"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\0"), "not an IDX file"},
        {TEXT_OF("\0\0\x0A\1\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\0\1\x08\1\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\xFF\0\0\0\4abcd"), "not an IDX file"},
        {TEXT_OF("\4\0\0\0\x08\0\0\0abcd"), "not an IDX file"},
        {TEXT_OF("\0\0\x08\1\0\0\0\0"), "too long or empty"},
        {TEXT_OF("\0\0\x08\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), ""},
        {TEXT_OF("\0\0\x0E\3\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                 "ab"),
         ""},
        {TEXT_OF("\0\0\x08\2\x80\0\0\0\x80\0\0\0"), "promises"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\3abcdefghijkl"),
         "field 'x' of data set 'image' takes 2"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\2abcdefg"), "promises 8 bytes of data, found 7"},
        {TEXT_OF("\0\0\x08\2\0\0\0\4\0\0\0\2abcdefghi"), "promises 8 bytes of data, found 9"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        idx_good(&f, types[i].type, types[i].dtype, 0);
        taken("idx", IMAGE, f.at, f.size, IMAGE_S);
        idx_good(&f, types[i].type, types[i].dtype, 1);
        taken("idx-label", LABEL, f.at, f.size, IMAGE_S);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refused("idx", IMAGE, bad[i].bytes, bad[i].size, bad[i].text);
    }
    idx_good(&f, 8, MD_U8, 1);
    f.at[f.size - 1] = 10;
    refused("idx-label", LABEL, f.at, f.size, "row 3, element 0 is 10, outside 0..10");
    idx_good(&f, 12, MD_I32, 1);
    f.at[f.size - 3] = 1;
    refused("idx-label", LABEL, f.at, f.size, "row 3, element 0 is 65539, which does not fit U8");
    idx_good(&f, 13, MD_F32, 0);
    memcpy(f.at + 12, "\x7F\xC0\0\0", 4);
    refused("idx", IMAGE, f.at, f.size, "row 0, element 0 is nan");
    uint64_t three[] = {3};
    idx_head(&f, 8, 1, three);
    add(&f, "\0\1\2", 3);
    refused("idx-label", LABEL, f.at, f.size, "has 3 rows, but");
    drop(&f);
}

/* Bits, lowest first. */
typedef struct {
    File *f;
    uint32_t bits;
    int count;
} Bits;

static void put_bits(Bits *b, uint32_t value, int count) {
    for (int i = 0; i < count; i++) {
        b->bits |= (value >> i & 1u) << b->count;
        if (++b->count == 8) {
            add_word(b->f, b->bits, 1, 0);
            b->bits = 0;
            b->count = 0;
        }
    }
}

/* A Huffman code goes out highest bit first. */
static void put_code(Bits *b, uint32_t code, int count) {
    for (int i = count - 1; i >= 0; i--) {
        put_bits(b, code >> i, 1);
    }
}

typedef enum { STORED, FIXED, DYNAMIC } Block;

/* One block of literals. The dynamic code has 8 bits for all literals but the last, and 9 for that
 * and the end. */
static void put_block(Bits *b, Block kind, const uint8_t *data, size_t size) {
    put_bits(b, 1, 1);
    put_bits(b, (uint32_t)kind, 2);
    if (kind == STORED) {
        put_bits(b, 0, b->count > 0 ? 8 - b->count : 0);
        put_bits(b, (uint32_t)size, 16);
        put_bits(b, (uint32_t)size ^ 0xFFFFu, 16);
    } else if (kind == DYNAMIC) {
        static const int order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
        put_bits(b, 0, 5);  /* 257 literals */
        put_bits(b, 0, 5);  /* one distance */
        put_bits(b, 15, 4); /* all lengths of lengths: 8 and 9 take two bits, so do 0 and 1 */
        for (int i = 0; i < 19; i++) {
            put_bits(b, order[i] == 0 || order[i] == 1 || order[i] == 8 || order[i] == 9 ? 2 : 0,
                     3);
        }
        for (int i = 0; i < 257; i++) {
            put_code(b, i < 255 ? 2 : 3, 2);
        }
        put_code(b, 0, 2); /* the distance is never used */
    }
    for (size_t i = 0; i < size; i++) {
        uint32_t c = data[i];
        if (kind == STORED) {
            put_bits(b, c, 8);
        } else if (kind == FIXED) {
            put_code(b, c < 144 ? 0x30 + c : 0x190 + c - 144, c < 144 ? 8 : 9);
        } else {
            put_code(b, c < 255 ? c : 0x1FE, c < 255 ? 8 : 9);
        }
    }
    if (kind == FIXED) {
        put_code(b, 0, 7);
    } else if (kind == DYNAMIC) {
        put_code(b, 0x1FF, 9);
    }
}

/* A dynamic block with nothing in it but its end, whose code has `length` bits: 1 or 2. Alone it
 * may have one bit, as zlib allows; with two the code is not complete. */
static void put_lone(Bits *b, int length) {
    put_bits(b, 5, 3);  /* last, dynamic */
    put_bits(b, 0, 10); /* 257 literals, one distance */
    put_bits(b, 15, 4);
    for (int i = 0; i < 19; i++) { /* symbol 18 at place 2, 0 at 3, 2 at 15, 1 at 17 */
        put_bits(b, i == 2 ? 1 : i == 3 || i == (length == 1 ? 17 : 15) ? 2 : 0, 3);
    }
    put_code(b, 0, 1); /* 138 lengths of 0, then 118 */
    put_bits(b, 127, 7);
    put_code(b, 0, 1);
    put_bits(b, 107, 7);
    put_code(b, 3, 2); /* the end */
    put_code(b, 2, 2); /* the distance */
    put_code(b, 0, length);
}

/* A member around one block; `flags` brings the optional parts of the header. */
static void gzip_of(File *f, Block kind, int flags, const uint8_t *data, size_t size) {
    uint8_t head[10] = {0x1F, 0x8B, 8, (uint8_t)flags, 1, 2, 3, 4, 0, 3};
    f->size = 0;
    add(f, head, sizeof head);
    if ((flags & 4) != 0) {
        add(f, "\5\0extra", 7);
    }
    if ((flags & 8) != 0) {
        add(f, "a name", 7);
    }
    if ((flags & 16) != 0) {
        add(f, "a comment", 10);
    }
    if ((flags & 2) != 0) {
        add_word(f, md_crc32(f->at, f->size) & 0xFFFFu, 2, 0);
    }
    Bits b = {f, 0, 0};
    put_block(&b, kind, data, size);
    put_bits(&b, 0, b.count > 0 ? 8 - b.count : 0);
    add_word(f, md_crc32(data, size), 4, 0);
    add_word(f, size, 4, 0);
}

static void gzip_bytes(const char *kind, const File *f, const char *text) {
    give_bytes(kind, "-idx2-ubyte.gz", IMAGE, f->at, f->size, text == NULL ? TAKEN : REFUSED,
               IMAGE_S, text == NULL ? "" : text);
}

static void gzip_files(void) {
    File idx = {0}, f = {0}, g = {0};
    idx_good(&idx, 8, MD_U8, 0);
    for (int kind = 0; kind < 3; kind++) {
        for (int flags = 0; flags < 32; flags += 2) {
            gzip_of(&f, (Block)kind, flags | (flags >> 3 & 1), idx.at, idx.size);
            gzip_bytes("gz", &f, NULL);
        }
    }
    gzip_of(&f, FIXED, 2, idx.at, idx.size);
    f.at[10] ^= 1;
    gzip_bytes("gz-head", &f, "the checksum of its header is wrong");
    gzip_of(&f, FIXED, 0, idx.at, idx.size);
    size_t n = f.size;
    static const struct {
        int at;       /* from the end if negative */
        uint8_t with; /* exclusive or */
        const char *text;
    } flips[] = {
        {2, 1, "no gzip file"},
        {3, 0x20, "no gzip file"},
        {3, 0x80, "no gzip file"},
        {10, 4, ""},
        {-8, 1, "checksum"},
        {-5, 0x80, "checksum"},
        {-4, 1, ""},
        {-3, 1, ""},
        {-1, 0x80, "make no sense"},
        {-1, 1, "make no sense"},
        {10, 6, ""},
        {15, 0xFF, ""},
    };
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        gzip_of(&f, FIXED, 0, idx.at, idx.size);
        f.at[flips[i].at < 0 ? (int)n + flips[i].at : flips[i].at] ^= flips[i].with;
        gzip_bytes("gz-flip", &f, flips[i].text);
    }
    gzip_of(&f, DYNAMIC, 0, idx.at, idx.size);
    n = f.size;
    for (int i = 0; i < 40; i++) { /* behind time, level and system every bit counts */
        size_t at = 10 + below(n - 10);
        uint8_t bit = (uint8_t)(1u << below(8));
        f.at[at] ^= bit;
        either("gz-flip", IMAGE, f.at, n);
        f.at[at] ^= bit;
    }
    for (f.size = 2; f.size < n; f.size += 1 + f.size / 10) {
        gzip_bytes("gz-cut", &f, "it is cut short");
        if (f.size == 2) {
            f.size = 16;
        }
    }
    f.size = n;
    add_text(&f, "x");
    gzip_bytes("gz-tail", &f, "goes on behind its end");
    f.size = n;
    add(&f, "\0\0\0\0\x14\0\0\0", 8);
    gzip_bytes("gz-tail", &f, "something follows");
    gzip_of(&f, STORED, 0, idx.at, idx.size);
    gzip_of(&g, STORED, 0, idx.at, idx.size);
    add(&f, g.at, g.size);
    gzip_bytes("gz-members", &f, "one member only");
    gzip_of(&f, STORED, 0, idx.at, 10);
    gzip_of(&g, STORED, 0, idx.at + 10, idx.size - 10);
    add(&f, g.at, g.size);
    gzip_bytes("gz-members", &f, "");
    gzip_of(&f, FIXED, 0, idx.at, idx.size);
    gzip_of(&g, FIXED, 0, f.at, f.size);
    gzip_bytes("gz-twice", &g, "not an IDX file");
    gzip_of(&f, FIXED, 0, idx.at, 0);
    gzip_bytes("gz-empty", &f, "not an IDX file");
    for (int length = 1; length <= 2; length++) {
        gzip_of(&f, STORED, 0, idx.at, 0);
        f.size = 10;
        Bits b = {&f, 0, 0};
        put_lone(&b, length);
        put_bits(&b, 0, b.count > 0 ? 8 - b.count : 0);
        add(&f, "\0\0\0\0\0\0\0\0", 8);
        gzip_bytes("gz-lone", &f, length == 1 ? "not an IDX file" : "a code table is invalid");
    }
    gzip_of(&f, FIXED, 0, idx.at, idx.size - 1);
    gzip_bytes("gz-idx", &f, "promises 8 bytes of data, found 7");
    drop(&idx);
    drop(&f);
    drop(&g);
}

/* ---- text and raw elements ------------------------------------------------------------------ */

static void text_files(void) {
    static const struct {
        const char *tail, *bytes;
        size_t size;
        const char *text; /* NULL: taken */
        double s;
    } cases[] = {
        {".txt", TEXT_OF("abcdefgh"), NULL, 'a' * 8 + 28},
        {".txt", TEXT_OF("\0\1\2\3\4\5\6\7"), NULL, 28},
        {".txt", TEXT_OF("abcdefghi"), NULL, 'a' * 8 + 28},
        {".bin", TEXT_OF("abcdefgh"), NULL, 'a' * 8 + 28},
        {".txt", TEXT_OF(""), "the file is empty", 0},
        {".txt", TEXT_OF("a"), "1 elements, but one row of field 'k' of data set 'text' needs 2",
         0},
        {".txt",
         TEXT_OF("abc\x80"
                 "efgh"),
         "element 3 is 128, outside 0..128", 0},
        {".txt",
         TEXT_OF("\xFF\xFE"
                 "a\0b\0c\0"),
         "element 0 is 255", 0},
        {".u16", TEXT_OF("\1\0\2\0\3\0\4\0\5\0\6\0\7\0\x08\0"), NULL, 36},
        {".u16", TEXT_OF("\1\0\2\0\3\0\4\0\5\0\6\0\7\0\x08"),
         "15 bytes are no whole number of elements of 2 bytes", 0},
        {".u16", TEXT_OF("\1\0\2\1\3\0\4\0\5\0\6\0\7\0\x08\0"), "row 0, element 1 is 258", 0},
        {".i32", TEXT_OF("\1\0\0\0\2\0\0\0"),
         "1 rows to train on; one update of 'fit_text' takes 4", 0},
        {".i32",
         TEXT_OF("\1\0\0\0\xFF\xFF\xFF\xFF\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0"),
         "row 0, element 1 is -1, which does not fit U8", 0},
        {".i32", TEXT_OF("\1\0\0"), "3 bytes are no whole number", 0},
        {".npy", TEXT_OF("abcdefgh"), "not a .npy file", 0},
        {".dat", TEXT_OF("abcdefgh"), NULL, 'a' * 8 + 28},
        {".dat", TEXT_OF("a"), "1 elements", 0},
        {".csv", TEXT_OF("1,2\n3,4\n"), "field 'k'", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        give_bytes("text", cases[i].tail, TEXT, cases[i].bytes, cases[i].size,
                   cases[i].text == NULL ? TAKEN : REFUSED, cases[i].s,
                   cases[i].text == NULL ? "" : cases[i].text);
    }
}

/* ---- inputs of an entry --------------------------------------------------------------------- */

static void in_array(const char *kind, Way way, const char *descr, md_dtype type, const char *shape,
                     const double *values, int count, const char *text, double s) {
    File f = {0};
    npy_head(&f, 1, descr, "False", shape);
    for (int i = 0; i < count; i++) {
        add_number(&f, values[i], type, 0);
    }
    if (text == NULL) {
        taken(kind, way, f.at, f.size, s);
    } else {
        refused(kind, way, f.at, f.size, text);
    }
    drop(&f);
}

enum { ECHO_S = 36 + 60 + 6000 }; /* x 1..8, k 0..3, m true; weights 1 2 and 1 1 1 */

static void in_files(void) {
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, k[4] = {0, 1, 2, 3}, m[4] = {1, 1, 1, 1};
    in_array("in-x", IN_X, "'<f4'", MD_F32, "(4, 2)", x, 8, NULL, ECHO_S);
    in_array("in-x", IN_X, "'<f8'", MD_F64, "(4, 2)", x, 8, NULL, ECHO_S);
    in_array("in-x", IN_X, "'|u1'", MD_U8, "(1, 4, 2)", x, 8, NULL, ECHO_S);
    in_array("in-x", IN_X, "'<f4'", MD_F32, "(2, 4)", x, 8,
             "shape [2, 4]; input 'x' of 'echo' takes [4, 2]", 0);
    in_array("in-x", IN_X, "'<f4'", MD_F32, "(8,)", x, 8, "shape [8]", 0);
    in_array("in-x", IN_X, "'<f4'", MD_F32, "(3, 2)", x, 6, "shape [3, 2]", 0);
    x[3] = NAN; /* an input may hold anything that its type can */
    in_array("in-x", IN_X, "'<f4'", MD_F32, "(4, 2)", x, 8, NULL, (double)NAN);
    x[3] = 1e300;
    in_array("in-x", IN_X, "'<f8'", MD_F64, "(4, 2)", x, 8,
             "element 3 is 1e+300, which input 'x' (F32) cannot take", 0);
    static const double wrong[] = {4294967297.0, -1, 10, 2147483648.0, 9007199254740991.0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[96];
        k[2] = wrong[i];
        snprintf(text, sizeof text, "element 2 is %.17g, which input 'k' (I32 in 0..10)", wrong[i]);
        in_array("in-k", IN_K, "'<i8'", MD_I64, "(4,)", k, 4, text, 0);
        in_array("in-k", IN_K, "'<f8'", MD_F64, "(4,)", k, 4, "element 2 is", 0);
    }
    k[2] = 0.5;
    in_array("in-k", IN_K, "'<f4'", MD_F32, "(4,)", k, 4, "element 2 is 0.5", 0);
    k[2] = NAN;
    in_array("in-k", IN_K, "'<f4'", MD_F32, "(4,)", k, 4, "element 2 is nan", 0);
    k[2] = 2;
    in_array("in-k", IN_K, "'<i8'", MD_I64, "(4,)", k, 4, NULL, ECHO_S);
    in_array("in-m", IN_M, "'|b1'", MD_BOOL, "(4,)", m, 4, NULL, ECHO_S);
    m[1] = 2;
    in_array("in-m", IN_M, "'|u1'", MD_U8, "(4,)", m, 4,
             "element 1 is 2, which input 'm' (BOOL) cannot take", 0);
    in_array("in-m", IN_M, "'|b1'", MD_U8, "(4,)", m, 4, NULL, ECHO_S); /* true is what is not 0 */
    m[1] = 0;
    in_array("in-m", IN_M, "'<f4'", MD_F32, "(4,)", m, 4, NULL, ECHO_S - 7);
}

/* ---- weights -------------------------------------------------------------------------------- */

#define W "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define BIAS "\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}"

/* A file of weights: w 1 2, b 1 1 1, then zeros. `length` < 0: that of the header. */
static void weights(File *f, const char *header, int64_t length, size_t data) {
    static const float values[5] = {1, 2, 1, 1, 1};
    f->size = 0;
    add_word(f, length < 0 ? strlen(header) : (uint64_t)length, 8, 0);
    add_text(f, header);
    add(f, values, data < sizeof values ? data : sizeof values);
    for (size_t i = sizeof values; i < data; i++) {
        add_word(f, 0, 1, 0);
    }
}

static void weight_headers(void) {
    static const struct {
        const char *header;
        size_t data;
        const char *text; /* NULL: taken */
    } cases[] = {
        {"{" W "," BIAS "}", 20, NULL},
        {"{" BIAS "," W "}          ", 20, NULL},
        {"{\"__metadata__\":{\"a\":\"b\"}," W "," BIAS "}", 20, NULL},
        {"{" W "," BIAS
         ",\"mdlc.fit.lr\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]}}",
         24, NULL},
        {"{" W "," BIAS
         ",\"a.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]}}",
         28, NULL},
        {"{\"net.w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," BIAS "}", 20,
         "unknown tensor 'net.w'; tensor 'w' is missing"},
        {"{" W "}", 8, "tensor 'b' is missing"},
        {"{}", 0, "tensor 'w' is missing; tensor 'b' is missing"},
        {"{" W "," W "," BIAS "}", 20, "tensor 'w' stands twice"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}", 16,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 12,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}", 24,
         "overlap or leave gaps"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[20,8]}}", 20,
         "offsets that do not fit F32[3]"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,24]}}", 24,
         "offsets that do not fit"},
        {"{" W ",\"b\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[8,32]}}", 32,
         "tensor 'b' is F64[3] in the file and F32[3] in the model (the precision"},
        {"{" W ",\"b\":{\"dtype\":\"I32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "tensor 'b' is I32[3] in the file"},
        {"{" W ",\"b\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[8,11]}}", 11,
         "unknown type"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[8,20]}}", 20,
         "F32[1, 3] in the file"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[2147483648,2147483648,4],\"data_offsets\":[8,20]}}",
         20, "F32[2147483648, 2147483648, 4]"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[8,20]}}",
         20, "in the model"},
        {"{" W
         ",\"b\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[8,20]}}",
         20, "a number is too large at byte"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,9223372036854775807]}}",
         20, "offsets that do not fit"},
        {"{" W ",\"mdlc.x\":{\"dtype\":\"U8\",\"shape\":[9223372036854775787],\"data_offsets\":[20,"
         "9223372036854775807]}," BIAS "}",
         20, "cut short"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[-3],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3.0],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":[3e0],\"data_offsets\":[8,20]}}", 20,
         "whole number"},
        {"{" W ",\"b\":{\"dtype\":\"F32\",\"shape\":3,\"data_offsets\":[8,20]}}", 20,
         "a list was expected"},
        {"{" W ",\"b\":{\"shape\":[3],\"data_offsets\":[8,20]}}", 20, "needs dtype, shape"},
        {"{" W ",\"b\":null}", 20, "a tensor's description was expected"},
        {"{" W ",\"\\u0062\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20, NULL},
        {"{" W ",\"b\\n\\u001b[2J\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "unknown tensor 'b??[2J'"},
        {"{" W ",\"b\\u0000\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "a NUL"},
        {"{" W ",\"b\\ud800\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}", 20,
         "surrogate"},
        {"{" W "," BIAS "}", 19, "cut short: its header promises"},
        {"{" W "," BIAS "}", 21, "goes on behind its data"},
        {"{" W "," BIAS "},{}", 20, "text behind the header's end"},
        {"{" W "," BIAS ",}", 20, "a string was expected"},
        {"{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]," W "," BIAS "}", 20,
         "nested too deeply"},
        {"{\"__metadata__\":{\"a\":1-2}," W "," BIAS "}", 20, "',' was expected"},
        {"{\"__metadata__\":{\"a\":01}," W "," BIAS "}", 20, "',' was expected"},
        {"", 0, "must be a JSON object"},
        {"[]", 0, "must be a JSON object"},
        {"PK\3\4 a zip file of PyTorch", 100, "must be a JSON object"},
        {"{'w': 1}", 0, "a string was expected"},
    };
    File f = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weights(&f, cases[i].header, -1, cases[i].data);
        if (cases[i].text == NULL) {
            taken("weights", LOAD, f.at, f.size, ECHO_S);
        } else {
            refused("weights", LOAD, f.at, f.size, cases[i].text);
        }
    }
    static const int64_t lengths[] = {0, 1, 7, 99, 103, 110, 5000, 99999999, 100000001, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        weights(&f, "{" W "," BIAS "}", lengths[i], 20);
        refused("weights-length", LOAD, f.at, f.size,
                lengths[i] > 100000000 ? "header length is absurd" : "");
    }
    memset(f.at, 0xFF, 8);
    refused("weights-length", LOAD, f.at, f.size, "header length is absurd");
    drop(&f);
}

/* Many wrong tensors: ten are named. Long names do not hide the count. */
static void weight_lists(void) {
    for (int length = 8; length <= 500; length += 492) {
        File header = {0}, f = {0};
        add_text(&header, "{" W "," BIAS);
        for (int i = 0; i < 40; i++) {
            char name[640];
            memset(name, 'a' + i % 26, (size_t)length);
            snprintf(name + length, sizeof name - (size_t)length,
                     "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", 20 + i,
                     21 + i);
            add_text(&header, ",\"");
            add_text(&header, name);
        }
        add(&header, "}", 2);
        weights(&f, (const char *)header.at, -1, 60);
        refused("weights-list", LOAD, f.at, f.size, "; and 30 more");
        drop(&header);
        drop(&f);
    }
    /* A hundred thousand tensors that nobody asks for, in the wrong order. */
    File header = {0}, f = {0};
    add_text(&header, "{" W "," BIAS);
    for (int i = 99999; i >= 0; i--) {
        char text[128];
        snprintf(text, sizeof text,
                 ",\"mdlc.%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i,
                 20 + i, 21 + i);
        add_text(&header, text);
    }
    add(&header, "}", 2);
    weights(&f, (const char *)header.at, -1, 20 + 100000);
    taken("weights-many", LOAD, f.at, f.size, ECHO_S);
    drop(&header);
    drop(&f);
}

static void weight_files(void) {
    File f = {0};
    weight_headers();
    weight_lists();
    weights(&f, "{" W "," BIAS "}", -1, 20);
    for (size_t cut = 0; cut < f.size; cut += 3) {
        refused("weights-cut", LOAD, f.at, cut, "");
    }
    for (int i = 0; i < 60; i++) {
        size_t at = below(f.size - 20);
        uint8_t bit = (uint8_t)(1u << below(8));
        f.at[at] ^= bit;
        either("weights-flip", LOAD, f.at, f.size);
        f.at[at] ^= bit;
    }
    memset(f.at + f.size - 20, 0xFF, 4); /* weights may hold anything */
    taken("weights-nan", LOAD, f.at, f.size, (double)NAN);
    drop(&f);
}

/* ---- what is no file, options, outputs ------------------------------------------------------ */

static void good_files(void) {
    File f = {0};
    weights(&f, "{" W "," BIAS "}", -1, 20);
    write_file(in_folder("good.st"), f.at, f.size);
    write_file(h.keep, f.at, f.size);
    h.kept = read_file(h.keep, &h.kept_size);
    idx_good(&f, 8, MD_U8, 0);
    write_file(in_folder("good-idx2-ubyte"), f.at, f.size);
    idx_good(&f, 8, MD_U8, 1);
    write_file(in_folder("good-idx1-ubyte"), f.at, f.size);
    write_file(in_folder("good.csv"), table, sizeof table - 1);
    static const struct {
        const char *name, *shape;
        int from, count;
    } arrays[] = {{"x.npy", "(4, 2)", 1, 8}, {"k.npy", "(4,)", 0, 4}};
    for (int i = 0; i < 2; i++) {
        npy_head(&f, 1, "'|u1'", "False", arrays[i].shape);
        for (int j = 0; j < arrays[i].count; j++) {
            add_number(&f, arrays[i].from + j, MD_U8, 0);
        }
        write_file(in_folder(arrays[i].name), f.at, f.size);
    }
    npy_head(&f, 1, "'|b1'", "False", "(4,)");
    add(&f, "\1\1\1\1", 4);
    write_file(in_folder("m.npy"), f.at, f.size);
    drop(&f);
}

static void special_files(void) {
    mkdir(in_folder("folder"), 0777);
    int pipes = mkfifo(in_folder("pipe"), 0666) == 0;
    int loops = symlink("loop", in_folder("loop")) == 0;
    write_file(in_folder("closed"), table, sizeof table - 1);
    chmod(in_folder("closed"), 0);
    int closed = access(in_folder("closed"), R_OK) != 0;
    for (int way = 0; way < WAYS; way++) {
        give("folder", (Way)way, "@folder", REFUSED, 0, "not a regular file");
        give("missing", (Way)way, "@missing", REFUSED, 0, "No such file");
        give("device", (Way)way, "/dev/zero", REFUSED, 0, "not a regular file");
        give("behind a file", (Way)way, "@good.st/x", REFUSED, 0, "Not a directory");
        if (pipes) {
            give("pipe without a writer", (Way)way, "@pipe", REFUSED, 0, "not a regular file");
        }
        if (loops) {
            give("symlink loop", (Way)way, "@loop", REFUSED, 0, "symbolic links");
        }
        if (closed) {
            give("unreadable", (Way)way, "@closed", REFUSED, 0, "Permission denied");
        }
    }
    if (!pipes || !loops) {
        skipped("pipes and links", "they cannot be made here");
    }
    if (!closed) {
        skipped("unreadable files", "root reads them all");
    }
}

static void options(void) {
    static const char *const values[] = {"nan",  "inf", "-inf", "1e999", "1e39", "",      "1,5",
                                         "0x10", "1e",  "abc",  "1..2",  "--1",  "1_000", "0b1"};
    char words[256];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(words, sizeof words, "fit --data table=@good.csv --save @keep.st --set lr=%s",
                 values[i]);
        line("set", words, 2, "not a value of F32");
    }
    static const struct {
        const char *words;
        const char *text;
    } usage[] = {
        {"fit --steps 9223372036854775808", "--steps needs a whole number"},
        {"fit --steps -1", "--steps needs a whole number"},
        {"fit --steps 1.5", "--steps needs a whole number"},
        {"fit --seed nan", "--seed needs a whole number"},
        {"fit --threads 0", "--threads needs a whole number"},
        {"fit --load=", "--load needs a value"},
        {"echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=nan",
         "not a value of F32"},
        {"echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1 --out "
         "s=@s.npy --save @s.npy",
         "two results"},
    };
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++) {
        line("option", usage[i].words, 2, usage[i].text);
    }
    line("option",
         "fit --data table=@good.csv --set lr=0 --log json --epochs 9223372036854775807 --steps 1",
         2, "exclude each other");
    line("option", "fit --data table=@good.csv --set lr=+1e-3 --log json", 0, "");
}

static void outputs(void) {
#define FIT "fit --data table=@good.csv --log json"
#define ECHO "echo --load @good.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set gain=1"
    static const struct {
        const char *words, *text;
    } bad[] = {
        {FIT " --save @folder", "Is a directory"},
        {FIT " --save @nowhere/w.st", "No such file or directory"},
        {FIT " --save @good.st/w.st", "Not a directory"},
        {FIT " --save @loop", "symbolic links"},
        {ECHO " --out @folder", "Is a directory"},
        {ECHO " --out @nowhere/s.npy", "No such file or directory"},
        {ECHO " --out @loop", "symbolic links"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        line("output", bad[i].words, 1, bad[i].text);
    }
    if (access("/dev/full", W_OK) == 0) {
        line("full disk", FIT " --save /dev/full", 1, "cannot write '/dev/full': No space left");
        line("full disk", ECHO " --out /dev/full", 1, "cannot write '/dev/full': No space left");
    } else {
        skipped("full disk", "no /dev/full");
    }
    /* A standard stream that is closed is not the next file that is opened. */
    for (int fd = 0; fd < 3 && mine(); fd++) {
        int rc = run_line("fit --data table=@good.csv --log none --save @closed.st", fd);
        const char *why = rc == 0 ? "" : h.err;
        size_t size = 0;
        uint8_t *now = read_file(in_folder("closed.st"), &size);
        judge("closed stream: saved", rc, TAKEN, 0, found_s(), "", why);
        judge("closed stream: loaded",
              run_line("echo --load @closed.st --in x=@x.npy --in k=@k.npy --in m=@m.npy --set "
                       "gain=1 --log none",
                       -1),
              TAKEN, 0, found_s(), "", "");
        free(now);
        unlink(in_folder("closed.st"));
    }
    line("output", ECHO " --out @s.npy --log json", 0, "");
#undef FIT
#undef ECHO
}

#endif
