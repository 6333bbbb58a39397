/* hostile_arrays: NumPy arrays, as data and as inputs of an entry, and text. Included in hostile.c,
 * once. */
#ifndef MDLC_TESTS_HOSTILE_ARRAYS_H
#define MDLC_TESTS_HOSTILE_ARRAYS_H

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
        {"(0, 4)", "too long: 0 bytes of data were expected, found 64"},
        {"(4, 0)", "too long"},
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

#endif
