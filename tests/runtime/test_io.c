/* test_io: readers of data files and the rows of a data set: csv, .npy, IDX, gzip, raw elements. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

/* The tests run twice: with files in memory, and with files that are read as they are needed. */
static uint64_t in_memory = UINT64_MAX;
#define MD_FILE_IN_MEMORY in_memory
#include "runtime/data.h"
#include "tests/support.h"

static char folder[SCRATCH_PATH];
static char text[2048];
static md_stream stream;

static int setup(void **state) {
    (void)state;
    return !scratch_make(folder, "io");
}

static int teardown(void **state) {
    (void)state;
    return !scratch_remove(folder);
}

/* Writes a file into the scratch folder and gives its path. */
static const char *put(const char *name, const void *bytes, size_t count) {
    static char path[16][160];
    static int turn;
    char *p = path[turn++ % 16];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    assert_true(file_write(p, bytes, count));
    return p;
}

/* ---- data sets ------------------------------------------------------------------------------ */

static void half(const void *raw, void *out) {
    const float *f = raw;
    float *to = out;
    for (int i = 0; i < 2; i++) {
        to[i] = f[i] / 2;
    }
}

static const md_file one_file[] = {{"f", {"unused", NULL, NULL}, 0, 0}};
static const md_field csv_fields[] = {
    {"x", 0, MD_COLUMNS, 0, 2, 0, MD_F32, MD_F32, 1, {2}, 8, 0, 0, half, MD_NORM_NONE, 0, 0, 0},
    {"y", 0, MD_COLUMNS, 2, 1, 0, MD_U8, MD_U8, 0, {0}, 1, 0, 10, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset csv_set = {"rows", one_file, 1, csv_fields, 2,
                                   {0, 3, 0}, MD_SHUFFLED, 0, 0};

typedef struct {
    const char *path[2][MD_PARTS]; /* by file and part */
} Paths;

static const char *path_of(void *user, const md_dataset *set, int file, int part) {
    (void)set;
    return ((Paths *)user)->path[file][part];
}

static int open_set(md_data *d, const md_dataset *set, const char *first, const char *second) {
    Paths paths = {{{first, NULL, NULL}, {second, NULL, NULL}}};
    md_text message = md_text_make(text, sizeof text);
    return md_data_open(d, set, path_of, &paths, &stream, &message);
}

static void gather(const md_data *d, int field, const int64_t *rows, int64_t count, int consecutive,
                   void *to) {
    md_text message = md_text_make(text, sizeof text);
    if (md_data_gather(d, field, 0, rows, count, consecutive, to, &message) != 0) {
        fail_msg("%s", text);
    }
}

static void test_csv(void **state) {
    (void)state;
    static const char *const forms[] = {
        "a,b,c,name\n1,2,3,x\n4,5e0,6,\"y,\"\"z\"\"\"\n-7.5,+8,9,\n",
        "\"1\", 2 ,3,x\r\n4,5,6.0,y\r\n\r\n-7.5,8,9,z",
        "\xEF\xBB\277a,b,c,d\r1,2,3,4\r4,5,6,4\r-7.5,8,9,4\r",
        "1,2,3,nan\n4,5,6,\n-75e-1,8,9,x\n\n\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        md_data d;
        const char *path = put("good.csv", forms[i], strlen(forms[i]));
        int rc = open_set(&d, &csv_set, path, NULL);
        if (rc != 0) {
            fail_msg("form %zu: %s", i, text);
        }
        assert_int_equal(d.rows[0], 3);
        assert_int_equal(md_data_rows(&d, MD_PART_TRAIN), 2);
        assert_int_equal(md_data_rows(&d, MD_PART_HELD), 1);
        float x[6];
        unsigned char y[3];
        int64_t rows[] = {2, 0, 1};
        gather(&d, 0, rows, 3, 0, x);
        gather(&d, 1, rows, 3, 0, y);
        assert_true(x[0] == -3.75f && x[1] == 4 && x[2] == 0.5f && x[5] == 2.5f);
        assert_true(y[0] == 9 && y[1] == 3 && y[2] == 6);
        md_data_close(&d);
    }
}

/* Rules and files in all mixes: the parts share the rows of the training files without a rest,
 * each in rising order; test rows do not depend on the other rule. */
static void test_parts(void **state) {
    (void)state;
    for (int64_t mix = 0; mix < 4 * 4 * 4; mix++) {
        int64_t held = mix % 4 == 1 ? 0 : mix % 4 + 2,
                test = mix / 4 % 4 == 1 ? 0 : mix / 4 % 4 + 2;
        int own = (int)(mix / 16);
        md_dataset set = {"rows", one_file, 1, csv_fields, 2, {0, held, test}, MD_SHUFFLED, 0, 0};
        for (int64_t n = 30; n < 61; n++) {
            md_data d;
            int part_of[64], all = 0;
            memset(&d, 0, sizeof d);
            d.set = &set;
            d.own[MD_PART_TRAIN] = 1;
            d.own[MD_PART_HELD] = own & 1;
            d.own[MD_PART_TEST] = own >> 1;
            d.rows[MD_PART_TRAIN] = n;
            d.rows[MD_PART_HELD] = d.rows[MD_PART_TEST] = 7;
            memset(part_of, -1, sizeof part_of);
            for (int part = 0; part < MD_PARTS; part++) {
                int64_t rows = md_data_rows(&d, part), last = -1;
                if (part != MD_PART_TRAIN && d.own[part]) {
                    assert_int_equal(rows, 7);
                    assert_int_equal(md_data_index(&d, part, 6), 6);
                    continue;
                }
                for (int64_t j = 0; j < rows; j++, all++) {
                    int64_t row = md_data_index(&d, part, j);
                    assert_true(row > last && row < n && part_of[row] < 0);
                    part_of[row] = part;
                    last = row;
                }
            }
            assert_int_equal(all, n);
            for (int64_t row = 0; test > 0 && !(own >> 1) && row < n; row++) {
                assert_int_equal(part_of[row] == MD_PART_TEST, row % test == test - 1);
            }
        }
    }
}

/* Rows of a large file are checked again as they are staged: it may be cut or changed meanwhile.
 * Rows in memory stay what they were. */
static void test_changed(void **state) {
    (void)state;
    static const md_field fields[] = {
        {"x", 0, MD_RECORD, 0, 4, 0, MD_U8, MD_U8, 1, {4}, 4, 0, 10, NULL, MD_NORM_NONE, 0, 0, 0}};
    static const md_dataset set = {"rows", one_file, 1, fields, 1, {0, 0, 0}, MD_AS_FILED, 0, 0};
    static unsigned char bytes[MD_WINDOW_BYTES + 8];
    unsigned char x[8];
    const int64_t last = (int64_t)sizeof bytes / 4 - 1, rows[] = {last, 0};
    md_data d;
    md_text message = md_text_make(text, sizeof text);
    const char *path = put("rows.u8", (const char *)bytes, sizeof bytes);
    assert_int_equal(open_set(&d, &set, path, NULL), 0);
    assert_true(d.files == (in_memory == 0 ? sizeof bytes : 0));
    gather(&d, 0, rows, 2, 0, x);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fputs("\1\2\12\3", file);
    fclose(file);
    int rc = md_data_gather(&d, 0, 0, rows, 2, 0, x, &message);
    assert_int_equal(rc, in_memory == 0 ? MD_EXIT_DATA : 0);
    assert_true(in_memory > 0 || strstr(text, "rows.u8: row 0, element 2 is 10, outside 0..10"));
    message = md_text_make(text, sizeof text);
    assert_int_equal(truncate(path, sizeof bytes - 5), 0);
    rc = md_data_gather(&d, 0, 0, rows, 1, 0, x, &message);
    assert_int_equal(rc, in_memory == 0 ? MD_EXIT_DATA : 0);
    assert_true(in_memory > 0 || strstr(text, "it is shorter than it was when it was opened"));
    md_data_close(&d);
}

static void test_csv_refusals(void **state) {
    (void)state;
    static const struct {
        const char *csv, *text;
    } cases[] = {
        {"1,2,3,a\n4,5\n", "bad.csv:2: 2 columns, but the first row has 4"},
        {"1,2,3\n4,5,6,7\n", "bad.csv:2: 4 columns, but the first row has 3"},
        {"1,2,3\n4,5x,6\n",
         "bad.csv:2:2: '5x' is not a finite number (field 'x' of data set 'rows')"},
        {"1,2,3\n4,,6\n", "bad.csv:2:2: the cell is empty"},
        {"1,nan,3\n4,5,6\n", "bad.csv:1:2: 'nan' is not a finite number"},
        {"1,0x10,3\n", "bad.csv:1:2: '0x10' is not"},
        {"1,1e999,3\n", "bad.csv:1:2: '1e999' is not"},
        {"a,b,c\n1,2,3\n4,5,10\n", "bad.csv:3:3: 10 is outside 0..10 (field 'y'"},
        {"1,2,3\n4,5,6.5\n", "bad.csv:2:3: 6.5 does not fit U8"},
        {"1,2,300\n", "bad.csv:1:3: 300 does not fit U8"},
        {"1,2,1e30\n", "bad.csv:1:3: 1e+30 does not fit U8"},
        {"1,1e39,3\n", "bad.csv:1:2: 1e+39 does not fit F32"},
        {"\xFF\xFE"
         "1,2,3\n",
         "text in UTF-16"},
        {"1;2;3\n", "the file has 1 (commas separate them)"},
        {"1,2\n3,4\n", "needs at least 3 columns, the file has 2"},
        {"", "no rows"},
        {"a,b,c\n", "no rows"},
        {"1,2,3\n4,\"5,6\n", "bad.csv:2:2: a quoted cell does not end as it should"},
        {"1,2,3\n4,\"5\"x,6\n", "bad.csv:2:2: a quoted cell does not end as it should"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        md_data d;
        const char *path = put("bad.csv", cases[i].csv, strlen(cases[i].csv));
        int rc = open_set(&d, &csv_set, path, NULL);
        if (rc != MD_EXIT_DATA || strstr(text, cases[i].text) == NULL) {
            fail_msg("case %zu: rc %d, '%s'", i, rc, text);
        }
        md_data_close(&d);
    }
    md_data d;
    static const char wide[] = "1\0,\0002\0\n\0";
    assert_int_equal(open_set(&d, &csv_set, put("wide.csv", wide, sizeof wide - 1), NULL),
                     MD_EXIT_DATA);
    assert_non_null(strstr(text, "wide.csv:1:1: a NUL byte"));
    md_data_close(&d);
    char pipe_path[128];
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(open_set(&d, &csv_set, pipe_path, NULL), MD_EXIT_DATA); /* no wait */
    assert_non_null(strstr(text, "not a regular file"));
    md_data_close(&d);
    assert_int_equal(open_set(&d, &csv_set, "/nowhere.csv", NULL), MD_EXIT_DATA);
    assert_string_equal(text, "cannot open '/nowhere.csv': No such file or directory");
    md_data_close(&d);
    assert_int_equal(open_set(&d, &csv_set, "/tmp", NULL), MD_EXIT_DATA);
    assert_string_equal(text, "cannot read '/tmp': not a regular file");
    md_data_close(&d);
}

/* The compiler gives a field without arithmetic the raw type f32 all the same: its integers must
 * not pass through it. */
static const md_field whole_fields[] = {
    {"y", 0, MD_COLUMNS, 0, 1, 0, MD_F32, MD_U8, 0, {0}, 1, 0, 10, NULL, MD_NORM_NONE, 0, 0, 0},
    {"n", 0, MD_COLUMNS, 1, 1, 0, MD_F32, MD_I64, 0, {0}, 8, 0, 0, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset whole_set = {"whole", one_file, 1, whole_fields, 2,
                                     {0, 0, 0}, MD_AS_FILED, 0, 0};

static void test_csv_whole(void **state) {
    (void)state;
    static const struct {
        const char *csv, *text; /* NULL: taken */
        int64_t n;
    } cases[] = {
        {"3,16777217\n", NULL, 16777217},
        {"3,-9223372036854775808\n", NULL, INT64_MIN},
        {"300,1\n", "bad.csv:1:1: 300 does not fit U8", 0},
        {"2.5,1\n", "bad.csv:1:1: 2.5 does not fit U8", 0},
        {"-1,1\n", "bad.csv:1:1: -1 does not fit U8", 0},
        {"10,1\n", "bad.csv:1:1: 10 is outside 0..10", 0},
        {"3,9223372036854775808\n", "bad.csv:1:2: ", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        md_data d;
        const char *path = put("bad.csv", cases[i].csv, strlen(cases[i].csv));
        int rc = open_set(&d, &whole_set, path, NULL);
        int64_t row = 0, n = 0;
        if (rc == 0) {
            gather(&d, 1, &row, 1, 1, &n);
        }
        if (cases[i].text == NULL ? rc != 0 || n != cases[i].n
                                  : rc == 0 || strstr(text, cases[i].text) == NULL) {
            fail_msg("case %zu: rc %d, %lld, '%s'", i, rc, (long long)n, text);
        }
        md_data_close(&d);
    }
    /* The same of an array: what does not fit is not taken because the field has no range. */
    unsigned char file[1024];
    int64_t pair[2] = {3, 4294967296};
    static const md_field narrow_fields[] = {{"y",
                                              0,
                                              MD_COLUMNS,
                                              0,
                                              2,
                                              0,
                                              MD_F32,
                                              MD_I32,
                                              1,
                                              {2},
                                              8,
                                              0,
                                              0,
                                              NULL,
                                              MD_NORM_NONE,
                                              0,
                                              0,
                                              0}};
    static const md_dataset narrow_set = {"narrow", one_file, 1, narrow_fields, 1,
                                          {0, 0, 0}, MD_AS_FILED, 0, 0};
    static const int64_t shape[] = {1, 2};
    md_data d;
    md_text t = md_text_make((char *)file, sizeof file);
    md_npy_header(&t, MD_I64, 2, shape);
    memcpy(file + t.used, pair, sizeof pair);
    assert_int_equal(open_set(&d, &narrow_set, put("n.npy", file, t.used + sizeof pair), NULL),
                     MD_EXIT_DATA);
    assert_non_null(strstr(text, "row 0, element 1 is 4294967296, which does not fit I32"));
    md_data_close(&d);
}

/* A cell and a record that cross the end of the read buffer. */
static void test_csv_long(void **state) {
    (void)state;
    size_t rows = 5000, used = 0;
    char *csv = malloc(rows * 64);
    assert_non_null(csv);
    for (size_t i = 0; i < rows; i++) {
        used += (size_t)snprintf(csv + used, 64, "%zu,%zu.25,%zu,\"some text\"\n", i, i, i % 10);
    }
    md_data d;
    assert_int_equal(open_set(&d, &csv_set, put("long.csv", csv, used), NULL), 0);
    assert_int_equal(d.rows[0], rows);
    for (int64_t i = 0; i < (int64_t)rows; i++) {
        float x[2];
        unsigned char y;
        gather(&d, 0, &i, 1, 0, x);
        gather(&d, 1, &i, 1, 0, &y);
        assert_true(x[0] == (float)i / 2 && x[1] == ((float)i + 0.25f) / 2 && y == i % 10);
    }
    md_data_close(&d);
    free(csv);
}

/* ---- windows -------------------------------------------------------------------------------- */

static const md_field window_fields[] = {
    {"tok", 0, MD_WINDOW, 0, 4, 3, MD_U8, MD_I32, 1, {4}, 16, 0, 128, NULL, MD_NORM_NONE, 0, 0, 0},
    {"tgt", 0, MD_WINDOW, 1, 4, 3, MD_U8, MD_U8, 1, {4}, 4, 0, 128, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset window_set = {"text", one_file, 1, window_fields, 2,
                                      {0, 0, 0}, MD_AS_FILED, 0, 0};

static void test_window(void **state) {
    (void)state;
    md_data d;
    assert_int_equal(open_set(&d, &window_set, put("t.txt", "abcdefghijk", 11), NULL), 0);
    assert_int_equal(d.rows[0], 3); /* 0..4, 3..7, 6..10 */
    int64_t rows[] = {0, 2};
    int32_t tok[8];
    char tgt[8];
    gather(&d, 0, rows, 2, 0, tok);
    gather(&d, 1, rows, 2, 0, tgt);
    assert_memory_equal(tgt, "bcdehijk", 8);
    assert_true(tok[0] == 'a' && tok[3] == 'd' && tok[4] == 'g' && tok[7] == 'j');
    md_data_close(&d);
    assert_int_equal(open_set(&d, &window_set, put("t.txt", "abcd", 4), NULL), MD_EXIT_DATA);
    assert_non_null(
        strstr(text, "4 elements, but one row of field 'tgt' of data set 'text' needs 5"));
    md_data_close(&d);
    assert_int_equal(open_set(&d, &window_set,
                              put("t.txt",
                                  "abcdefg\xff"
                                  "ijk",
                                  11),
                              NULL),
                     MD_EXIT_DATA);
    assert_non_null(strstr(text, "255"));
    assert_non_null(strstr(text, "outside 0..128"));
    md_data_close(&d);
}

/* ---- arrays --------------------------------------------------------------------------------- */

static int open_npy(md_array *a, const char *header, int version, const void *data, size_t bytes) {
    unsigned char file[1024];
    size_t n = strlen(header), at = version == 1 ? 10 : 12;
    memset(file, 0, sizeof file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)(n & 255);
    file[9] = (unsigned char)(n >> 8);
    memcpy(file + at, header, n);
    memcpy(file + at + n, data, bytes);
    md_text message = md_text_make(text, sizeof text);
    return md_npy_open(a, put("a.npy", file, at + n + bytes), UINT64_MAX, &message);
}

static void test_npy(void **state) {
    (void)state;
    md_array a;
    float data[6] = {1, 2, 3, 4, 5, 6};
    for (int version = 1; version <= 2; version++) {
        assert_int_equal(open_npy(&a,
                                  "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n",
                                  version, data, 24),
                         0);
        assert_true(a.rank == 2 && a.shape[0] == 2 && a.shape[1] == 3 && a.rows == 2 &&
                    a.width == 3);
        assert_true(a.dtype == MD_F32 && memcmp(a.data, data, 24) == 0);
        md_array_close(&a);
    }
    assert_int_equal(
        open_npy(&a, "{\"shape\":(), \"fortran_order\":False,\"descr\":\"|u1\"}", 1, data, 1), 0);
    assert_true(a.rank == 0 && a.rows == 1 && a.width == 1);
    md_array_close(&a);
    assert_int_equal(open_npy(&a, "{'descr':'<i2','fortran_order':True,'shape':(3,)}", 1, data, 6),
                     0);
    md_array_close(&a);
    static const struct {
        const char *shape;
        int64_t rows, width;
    } empty[] = {{"(0, 3)", 0, 3}, {"(3, 0)", 3, 0}, {"(0,)", 0, 1}, {"(2, 0, 9999999999)", 2, 0}};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        char head[128];
        snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                 empty[i].shape);
        assert_int_equal(open_npy(&a, head, 1, data, 0), 0);
        assert_true(a.rows == empty[i].rows && a.width == empty[i].width && a.data != NULL);
        md_array_close(&a);
    }
    static const struct {
        const char *header, *text;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }",
         "'>f4' is not supported; convert"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "not Python objects"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", "'<c8' is not supported"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "named fields"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }",
         "cut short: 32 bytes of data"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }",
         "too long: 16 bytes of data"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }",
         "too long: 0 bytes of data were expected, found 24"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2), }",
         "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }",
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 0, 9999999999), }",
         "too large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "damaged"},
        {"{'descr': '<f4', 'shape': (2, 3), }", "damaged"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': Fals, 'shape': (2, 3), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x", "damaged"},
        {"", "damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rc = open_npy(&a, cases[i].header, 1, data, 24);
        if (rc != MD_EXIT_DATA || strstr(text, cases[i].text) == NULL) {
            fail_msg("case %zu: rc %d, '%s'", i, rc, text);
        }
        md_array_close(&a);
    }
}

static void test_npy_header(void **state) {
    (void)state;
    static const int64_t shape[] = {5, 7};
    for (int rank = 0; rank <= 2; rank++) {
        char buffer[512];
        md_array a;
        md_text t = md_text_make(buffer, sizeof buffer);
        md_text message = md_text_make(text, sizeof text);
        md_npy_header(&t, MD_I64, rank, shape);
        assert_int_equal(t.used % 64, 0);
        size_t bytes = rank == 0 ? 8 : rank == 1 ? 40 : 280;
        memset(buffer + t.used, 3, bytes);
        assert_int_equal(
            md_npy_open(&a, put("w.npy", buffer, t.used + bytes), UINT64_MAX, &message), 0);
        assert_true(a.rank == rank && a.dtype == MD_I64);
        md_array_close(&a);
    }
}

static const unsigned char idx3[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,
                                     0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 255};
static const unsigned char idx1[] = {0, 0, 11, 1, 0, 0, 0, 2, 1, 2, 255, 254};

static void scale(const void *raw, void *out) {
    const float *f = raw;
    float *to = out;
    for (int i = 0; i < 4; i++) {
        to[i] = f[i] / 255;
    }
}

static const md_file image_files[] = {{"img", {"i", NULL, NULL}, 0, 0},
                                      {"lab", {"l", NULL, NULL}, 0, 0}};
static const md_field image_fields[] = {
    {"x", 0, MD_RECORD, 0, 4, 0, MD_F32, MD_F32, 2, {2, 2}, 16, 0, 0, scale, MD_NORM_NONE, 0, 0, 0},
    {"y", 1, MD_RECORD, 0, 1, 0, MD_I64, MD_I64, 0, {0}, 8, -10, 300, NULL, MD_NORM_NONE, 0, 0, 0},
};
static const md_dataset image_set = {"images", image_files, 2, image_fields, 2,
                                     {0, 0, 0}, MD_SHUFFLED, 0, 0};

static void check_images(const char *images, const char *labels) {
    md_data d;
    float x[8];
    int64_t y[2], rows[] = {1, 0};
    if (open_set(&d, &image_set, images, labels) != 0) {
        fail_msg("%s", text);
    }
    assert_int_equal(md_data_rows(&d, MD_PART_TRAIN), 2);
    gather(&d, 0, rows, 2, 0, x);
    gather(&d, 1, rows, 2, 0, y);
    assert_true(x[3] == 1.0f && x[4] == 1.0f / 255 && y[0] == -2 && y[1] == 258);
    md_data_close(&d);
}

static void test_idx(void **state) {
    (void)state;
    md_data d;
    const char *images = put("x-idx3-ubyte", idx3, sizeof idx3);
    const char *labels = put("y-idx1-ubyte", idx1, sizeof idx1);
    check_images(images, labels);
    /* another number of labels */
    unsigned char three[14] = {0, 0, 11, 1, 0, 0, 0, 3, 0, 1, 0, 1, 0, 1};
    assert_int_equal(open_set(&d, &image_set, images, put("z", three, sizeof three)), MD_EXIT_DATA);
    assert_non_null(strstr(text, "has 3 rows, but"));
    md_data_close(&d);
    /* cut short, too long, no IDX, out of range, wrong record */
    assert_int_equal(open_set(&d, &image_set, put("s.idx", idx3, sizeof idx3 - 1), labels),
                     MD_EXIT_DATA);
    assert_non_null(strstr(text, "promises 8 bytes of data, found 7"));
    md_data_close(&d);
    assert_int_equal(open_set(&d, &image_set, put("s.idx", idx3, 10), labels), MD_EXIT_DATA);
    assert_non_null(strstr(text, "not an IDX file"));
    md_data_close(&d);
    unsigned char wrong[sizeof idx1];
    memcpy(wrong, idx1, sizeof wrong);
    wrong[8] = 5;
    assert_int_equal(open_set(&d, &image_set, images, put("z", wrong, sizeof wrong)), MD_EXIT_DATA);
    assert_non_null(strstr(
        text, "row 0, element 0 is 1282, outside -10..300 (field 'y' of data set 'images')"));
    md_data_close(&d);
    assert_int_equal(open_set(&d, &image_set, labels, labels), MD_EXIT_DATA);
    assert_non_null(strstr(text, "field 'x'"));
    md_data_close(&d);
}

static void test_raw(void **state) {
    (void)state;
    md_array a;
    md_text message = md_text_make(text, sizeof text);
    assert_int_equal(md_array_open(&a, put("a.u16", "\1\0\2\1", 4), md_format_of("a.u16"),
                                   UINT64_MAX, &stream, &message),
                     0);
    assert_true(a.rows == 2 && a.dtype == MD_U16 && md_get_number(a.data + 2, a.dtype, 0).i == 258);
    md_array_close(&a);
    assert_int_equal(md_array_open(&a, put("a.i32", "\1\0\2", 3), md_format_of("a.i32"), UINT64_MAX,
                                   &stream, &message),
                     MD_EXIT_DATA);
    assert_non_null(strstr(text, "3 bytes are no whole number of elements of 4 bytes"));
    md_array_close(&a);
}

/* ---- conversions ---------------------------------------------------------------------------- */

static void test_convert(void **state) {
    (void)state;
    int64_t big = INT64_C(9007199254740993), back = 0;
    assert_int_equal(md_convert(&back, MD_I64, &big, MD_I64, 0, 1), -1);
    assert_int_equal(back, big);
    float f[4] = {1, -2, 255, 256};
    unsigned char u[4];
    assert_int_equal(md_convert(u, MD_U8, f, MD_F32, 0, 4), 1);
    assert_int_equal(md_convert(u, MD_U8, f + 2, MD_F32, 0, 2), 1);
    float half_ = 0.5f, nan_ = NAN;
    assert_int_equal(md_convert(u, MD_U8, &half_, MD_F32, 0, 1), 0);
    assert_int_equal(md_convert(u, MD_U8, &nan_, MD_F32, 0, 1), 0);
    double huge_ = 1e39, infinite = INFINITY;
    float narrow;
    assert_int_equal(md_convert(&narrow, MD_F32, &huge_, MD_F64, 0, 1), 0);
    assert_int_equal(md_convert(&narrow, MD_F32, &infinite, MD_F64, 0, 1), -1);
    unsigned char two = 2;
    assert_int_equal(md_convert(u, MD_BOOL, &two, MD_BOOL, 0, 1), -1);
    assert_int_equal(u[0], 1);
    uint64_t top = UINT64_MAX;
    assert_int_equal(md_convert(&back, MD_I64, &top, MD_U64, 0, 1), 0);
    /* every f16 and bf16 survives the way to f32 and back */
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i, again;
        float x = md_from_f16(h);
        again = md_to_f16(x);
        assert_true(again == h ||
                    (x != x && (again & 0x7C00u) == 0x7C00u && (again & 0x3FFu) != 0));
        x = md_from_bf16(h);
        again = md_to_bf16(x);
        assert_true(again == h || (x != x && (again & 0x7F80u) == 0x7F80u && (again & 0x7Fu) != 0));
    }
    assert_int_equal(md_to_f16(65519.0f), 0x7BFF);
    assert_int_equal(md_to_f16(65520.0f), 0x7C00);
    assert_int_equal(md_to_f16(6.1035156e-5f - 1e-8f), 0x0400);
    assert_int_equal(md_to_f16(1.0f + 1.0f / 2048), 0x3C00); /* tie to even */
    assert_int_equal(md_to_bf16(1.0f + 1.0f / 256), 0x3F80);
}

static void test_numbers(void **state) {
    (void)state;
    static const char *const good[] = {"0",   "-1",   "+2.5", ".5",   "5.",
                                       "1e5", "1E-5", " 7 ",  "-0.0", "1e-400"};
    static const char *const bad[] = {"",    " ",   "-",   ".",   "e5",  "1e", "1e+",
                                      "0x1", "1 2", "nan", "inf", "1,2", "--1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        md_number n;
        assert_true(md_parse_value(good[i], &n));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        md_number n;
        if (md_parse_value(bad[i], &n)) {
            fail_msg("'%s' was taken", bad[i]);
        }
    }
    md_number n;
    assert_true(md_parse_value("-9223372036854775808", &n) && n.is_int && n.i == INT64_MIN);
    assert_true(md_parse_value("-9223372036854775809", &n) && !n.is_int);
    assert_true(md_parse_value("-0", &n) && signbit(n.f));
    assert_true(md_parse_value("-0.0", &n) && n.is_int == 1 && signbit(n.f));
    int64_t to;
    assert_true(md_parse_value("9007199254740993.00", &n) && md_put_number(&to, MD_I64, n));
    assert_true(to == 9007199254740993);
    static const struct {
        const char *text;
        int is_int;
        int64_t value;
    } whole[] = {{"2.5e1", 1, 25},
                 {"9007199254740993e0", 1, 9007199254740993},
                 {"90071992547409930e-1", 1, 9007199254740993},
                 {"-922337203685477580800.00e-2", 1, INT64_MIN},
                 {"9223372036854775807.000000000000000000000000000000000", 1, INT64_MAX},
                 {"9223372036854775808", 0, 0},
                 {"-9.223372036854775809e18", 0, 0},
                 {"1e18", 1, 1000000000000000000},
                 {"1e19", 0, 0},
                 {"0e999999999999999999999", 1, 0},
                 {"1e-999999999999999999999", -1, 0},
                 {" +00120.0e-1 ", 1, 12},
                 {"5.00000000000000000001", -1, 0},
                 {"2.55e1", -1, 0}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        assert_true(md_parse_value(whole[i].text, &n));
        if (n.is_int != whole[i].is_int || n.i != whole[i].value) {
            fail_msg("%s: %d %lld", whole[i].text, n.is_int, (long long)n.i);
        }
    }
    float single; /* 2^54 + 2^30 + 1 is nearer to the float above, which a double does not show */
    assert_true(md_parse_value("18014399583223809", &n) && md_put_number(&single, MD_F32, n));
    assert_true(single == 18014400656965632.0f);
    n = (md_number){0, 0, 0x1p62};
    assert_true(md_put_number(&to, MD_I64, n) && to == (int64_t)1 << 62);
    n.f = 0x1p63;
    assert_false(md_put_number(&to, MD_I64, n));
    assert_true(md_parse_value("0.99999999999999999999", &n) && n.f == 1);
    assert_false(md_put_number(&to, MD_U32, n)); /* a fraction, whatever a double says */
    static const struct {
        double value;
        const char *text;
    } shown[] = {{1.873, "1.873"},
                 {0.1, "0.1"},
                 {3e-3, "0.003"},
                 {1e10, "1e+10"},
                 {300, "300"},
                 {-0.0, "0"},
                 {2859.69634758675, "2859.69634758675"}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char buffer[64];
        md_text t = md_text_make(buffer, sizeof buffer);
        md_text_number(&t, shown[i].value);
        assert_string_equal(buffer, shown[i].text);
        t = md_text_make(buffer, sizeof buffer);
        md_text_number(&t, (double)0.1f);
        assert_string_equal(buffer, "0.1");
    }
}

/* ---- gzip ----------------------------------------------------------------------------------- */

#ifdef HAVE_ZLIB
static size_t deflate_all(unsigned char *out, size_t size, const unsigned char *in, size_t count,
                          int level, int strategy) {
    z_stream z;
    memset(&z, 0, sizeof z);
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, strategy), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)in;
    z.avail_in = (uInt)count;
    z.next_out = out;
    z.avail_out = (uInt)size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t used = size - z.avail_out;
    deflateEnd(&z);
    return used;
}

static const char *gunzip(const unsigned char *packed, size_t bytes, unsigned char *out,
                          size_t size) {
    md_text message = md_text_make(text, sizeof text);
    assert_int_equal(md_stream_open(&stream, put("p.gz", packed, bytes), &message), 0);
    const char *why = md_gunzip(&stream, out, size);
    close(stream.fd);
    return why;
}

static void test_gzip(void **state) {
    (void)state;
    enum { SIZE = 150000 };
    static const int levels[] = {0, 1, 6, 9};
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_FIXED, Z_RLE};
    unsigned char *in = malloc(SIZE), *packed = malloc(2 * SIZE), *out = malloc(SIZE);
    assert_true(in != NULL && packed != NULL && out != NULL);
    uint32_t random = 7;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < SIZE; i++) {
            random = random * 1664525u + 1013904223u;
            in[i] = (unsigned char)(kind == 0   ? random >> 24
                                    : kind == 1 ? (random >> 28) * (random >> 30)
                                                : (uint32_t)(i + i / 977) % 20 + 97);
        }
        for (size_t k = 0; k < 16; k++) {
            size_t n = deflate_all(packed, 2 * SIZE, in, SIZE, levels[k % 4], strategies[k / 4]);
            memset(out, 0, SIZE);
            const char *why = gunzip(packed, n, out, SIZE);
            if (why != NULL) {
                fail_msg("kind %d, %zu: %s", kind, k, why);
            }
            assert_memory_equal(in, out, SIZE);
            assert_non_null(gunzip(packed, n - 1, out, SIZE));
            assert_non_null(gunzip(packed, n / 2, out, SIZE));
            assert_non_null(gunzip(packed, n, out, SIZE - 1));
            packed[n - 6] ^= 1; /* the checksum */
            assert_non_null(gunzip(packed, n, out, SIZE));
        }
    }
    /* the checksum of a header */
    unsigned char head[] = {0x1F, 0x8B, 8, 2, 0, 0, 0, 0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t crc = md_crc32(head, 10);
    head[10] = (unsigned char)crc;
    head[11] = (unsigned char)(crc >> 8);
    assert_null(gunzip(head, sizeof head, out, 0));
    head[11] ^= 1;
    assert_string_equal(gunzip(head, sizeof head, out, 0), "the checksum of its header is wrong");
    /* damage: any answer but a crash */
    size_t n = deflate_all(packed, 2 * SIZE, in, 3000, 9, Z_DEFAULT_STRATEGY);
    for (size_t i = 0; i < 1500; i++) {
        random = random * 1664525u + 1013904223u;
        unsigned char keep = packed[(random >> 8) % n];
        size_t at = (random >> 8) % n;
        packed[at] = (unsigned char)(random >> 3);
        (void)gunzip(packed, n, out, 3000);
        packed[at] = keep;
    }
    /* the reader of data sets sees through it */
    n = deflate_all(packed, 2 * SIZE, idx3, sizeof idx3, 9, Z_DEFAULT_STRATEGY);
    const char *images = put("x-idx3-ubyte.gz", packed, n);
    check_images(images, put("y", idx1, sizeof idx1));
    free(in);
    free(packed);
    free(out);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_changed),    cmocka_unit_test(test_csv_refusals),
        cmocka_unit_test(test_csv_long),   cmocka_unit_test(test_window),
        cmocka_unit_test(test_csv_whole),  cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npy_header), cmocka_unit_test(test_idx),
        cmocka_unit_test(test_raw),        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_numbers),
#ifdef HAVE_ZLIB
        cmocka_unit_test(test_gzip),
#endif
    };
    int failed = cmocka_run_group_tests_name("in memory", tests, setup, teardown);
    in_memory = 0;
    return failed + cmocka_run_group_tests_name("as needed", tests, setup, teardown);
}
