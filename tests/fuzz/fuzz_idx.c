/* IDX files, packed ones too: a second reader of the header decides what must be taken. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

#include <stdbool.h>

/* Bytes of the data by the header; -1 when the file must be refused. */
static int64_t expected(const uint8_t *p, size_t size) {
    static const size_t width[16] = {[8] = 1, [9] = 1, [11] = 2, [12] = 4, [13] = 4, [14] = 8};
    if (size < 4 || p[0] != 0 || p[1] != 0 || p[2] > 15 || width[p[2]] == 0 || p[3] == 0 ||
        p[3] > MD_MAX_RANK || size < 4 + 4 * (size_t)p[3]) {
        return -1;
    }
    uint64_t most = 1, left = size - 4 - 4 * (size_t)p[3];
    bool empty = false;
    for (int i = 0; i < p[3]; i++) {
        uint64_t n = reader_word(p + 4 + 4 * i, 4, 1);
        if (n > 0 && most > (UINT64_C(1) << 56) / n) {
            return -1;
        }
        most *= n > 0 ? n : 1;
        empty |= n == 0;
    }
    uint64_t bytes = empty ? 0 : most * width[p[2]];
    return bytes == left ? (int64_t)bytes : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    md_array a;
    md_text message = reader_message();
    int packed = size >= 2 && data[0] == 0x1F && data[1] == 0x8B;
    int rc = md_array_open(&a, reader_file(data, size), MD_FORMAT_IDX, UINT64_MAX, &reader_stream,
                           &message);
    reader_status(rc);
    const uint8_t *file = packed && rc == MD_EXIT_OK ? (const uint8_t *)a.map : data;
    size_t bytes = packed && rc == MD_EXIT_OK ? a.map_bytes : size;
    int64_t bytes_wanted = packed && rc != MD_EXIT_OK ? -1 : expected(file, bytes);
    if ((rc == MD_EXIT_OK) != (bytes_wanted >= 0)) {
        finding("status %d, expected %lld bytes", rc, (long long)bytes_wanted);
    }
    uint64_t want = bytes_wanted > 0 ? (uint64_t)bytes_wanted : 0;
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
