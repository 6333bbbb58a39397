/* Flat files of elements and their windows against plain indexing; numbers in text against the C
 * library; short texts in small buffers. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

enum { T = 4, STRIDE = 3 };

static const md_format formats[] = {MD_FORMAT_U8, MD_FORMAT_U16, MD_FORMAT_I32};
static const size_t widths[] = {1, 2, 4};

static int64_t at(const uint8_t *data, size_t width, int64_t i) {
    uint64_t w = reader_word(data + (size_t)i * width, width, 0);
    return width == 4 ? (int32_t)(uint32_t)w : (int64_t)w;
}

static void windows(const uint8_t *data, size_t size, int kind) {
    md_file file = {"f", {"unused", NULL, NULL}, 0, 0};
    static const md_field fields[] = {
        {"tok",
         0,
         MD_WINDOW,
         0,
         T,
         STRIDE,
         MD_U8,
         MD_I32,
         1,
         {T},
         4 * T,
         -100,
         128,
         NULL,
         MD_NORM_NONE,
         0,
         0,
         0},
        {"tgt",
         0,
         MD_WINDOW,
         1,
         T,
         STRIDE,
         MD_U8,
         MD_U8,
         1,
         {T},
         T,
         0,
         0,
         NULL,
         MD_NORM_NONE,
         0,
         0,
         0},
    };
    md_dataset set = {"text", &file, 1, fields, 2, {0, 0, 0}, MD_AS_FILED, 0, 0};
    md_data d;
    int64_t n = (int64_t)(size / widths[kind]);
    int takes = size > 0 && size % widths[kind] == 0 && n >= T + 1;
    int64_t rows = takes ? (n - T - 1) / STRIDE + 1 : 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t i = row * STRIDE; i < row * STRIDE + T; i++) {
            int64_t tok = at(data, widths[kind], i), tgt = at(data, widths[kind], i + 1);
            takes = takes && tok >= -100 && tok < 128 && tgt >= 0 && tgt < 256;
        }
    }
    int rc = reader_open(&d, &set, formats[kind], data, size);
    if ((rc == MD_EXIT_OK) != takes || (takes && d.rows[0] != rows)) {
        finding("kind %d: status %d, %lld rows", kind, rc, (long long)rows);
    }
    for (int64_t row = 0; rc == MD_EXIT_OK && row < rows; row++) {
        int32_t tok[T];
        uint8_t tgt[T];
        reader_gather(&d, 0, row, 1, tok);
        reader_gather(&d, 1, row, 0, tgt);
        for (int64_t i = 0; i < T; i++) {
            if (tok[i] != at(data, widths[kind], row * STRIDE + i) ||
                tgt[i] != at(data, widths[kind], row * STRIDE + i + 1)) {
                finding("kind %d: row %lld", kind, (long long)row);
            }
        }
    }
    md_data_close(&d);
}

static void numbers(const char *text) {
    double value = 0;
    int64_t whole = 0;
    char *end;
    int plain = strspn(text, "0123456789+-.eE \t") == strlen(text);
    double want = strtod(text, &end);
    int takes = plain && end != text && strspn(end, " \t") == strlen(end);
    if (md_parse_number(text, &value) != takes ||
        (takes && memcmp(&value, &want, sizeof want) != 0)) {
        finding("number '%s'", text);
    }
    errno = 0;
    long long exact = strtoll(text, &end, 10);
    takes = strspn(text, "0123456789+- \t") == strlen(text) && end != text &&
            strspn(end, " \t") == strlen(end) && errno == 0;
    if (md_parse_integer(text, &whole) != takes || (takes && whole != exact)) {
        finding("integer '%s'", text);
    }
    if (isfinite(want)) {
        char shown[MD_NUMBER_TEXT];
        md_number n = {0, 0, want};
        md_number_text(shown, n);
        double back =
            (double)(float)want == want ? (double)strtof(shown, NULL) : strtod(shown, NULL);
        if (back != want) {
            finding("%a became '%s'", want, shown);
        }
    }
}

static void texts(const char *text, size_t size) {
    char buffer[40];
    for (size_t room = 1; room <= sizeof buffer; room += 13) {
        memset(buffer, 7, sizeof buffer);
        md_text t = md_text_make(buffer, room);
        md_text_bytes(&t, text, size / 2);
        md_text_add(&t, text);
        md_text_i64(&t, (int64_t)size - 5);
        if (t.used >= room || buffer[t.used] != 0 || (room < sizeof buffer && buffer[room] != 7)) {
            finding("a text of %zu bytes in %zu", t.used, room);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int kind = 0; kind < 3; kind++) {
        windows(data, size, kind);
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        exit(2);
    }
    memcpy(text, data, size);
    text[size] = 0;
    numbers(text);
    texts(text, size);
    free(text);
    return 0;
}
