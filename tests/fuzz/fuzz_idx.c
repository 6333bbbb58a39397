/* IDX files, packed ones too: a second reader of the header decides what must be taken. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

/* Bytes of the data by the header; 0 when the file must be refused. */
static uint64_t expected(const uint8_t *p, size_t size) {
    static const size_t width[16] = {[8] = 1, [9] = 1, [11] = 2, [12] = 4, [13] = 4, [14] = 8};
    if (size < 4 || p[0] != 0 || p[1] != 0 || p[2] > 15 || width[p[2]] == 0 || p[3] == 0 ||
        p[3] > MD_MAX_RANK || size < 4 + 4 * (size_t)p[3]) {
        return 0;
    }
    uint64_t bytes = width[p[2]], left = size - 4 - 4 * (size_t)p[3];
    for (int i = 0; i < p[3]; i++) {
        uint64_t n = reader_word(p + 4 + 4 * i, 4, 1);
        if (n == 0 || bytes * n > left) {
            return 0;
        }
        bytes *= n;
    }
    return bytes == left ? bytes : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    md_array a;
    md_text message = reader_message();
    int packed = size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
    int rc = md_idx_open(&a, reader_file(data, size), UINT64_MAX, &reader_stream, &message);
    reader_status(rc);
    const uint8_t *file = packed && rc == MD_EXIT_OK ? (const uint8_t *)a.map : data;
    size_t bytes = packed && rc == MD_EXIT_OK ? a.map_bytes : size;
    uint64_t want = packed && rc != MD_EXIT_OK ? 0 : expected(file, bytes);
    if ((rc == MD_EXIT_OK) != (want > 0)) {
        finding("status %d, expected %llu bytes", rc, (unsigned long long)want);
    }
    size_t width = rc == MD_EXIT_OK ? md_dtype_bytes(a.dtype) : 1;
    for (uint64_t at = 0; at < want && at < 256; at += width) {
        const uint8_t *p = file + (bytes - want) + at;
        uint64_t word = reader_word(p, width, 1);
        md_number n = md_get_number(a.data + at, a.dtype, a.swap);
        uint64_t got = (uint64_t)n.i;
        if (a.dtype == MD_F64) {
            memcpy(&got, &n.f, sizeof got);
        } else if (a.dtype == MD_F32) {
            float f = (float)n.f;
            uint32_t bits;
            memcpy(&bits, &f, sizeof bits);
            got = bits;
        }
        uint64_t mask = ~UINT64_C(0) >> (64 - 8 * width);
        if (((got ^ word) & mask) != 0 && !(md_is_float(a.dtype) && isnan(n.f))) {
            finding("element at %llu is %llx", (unsigned long long)at, (unsigned long long)got);
        }
    }
    md_array_close(&a);
    return 0;
}
