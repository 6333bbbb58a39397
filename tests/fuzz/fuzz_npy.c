/* NumPy arrays: what is taken has the shape that its text says and the bytes that follow it, is
 * read again after it was written, and its elements convert as C does it where nothing is lost. */
#define _GNU_SOURCE
#include "tests/fuzz/readers.h"

/* The extents behind 'shape', read without regard to what else stands there. */
static int text_shape(const uint8_t *data, size_t size, int64_t *shape) {
    char text[MD_NPY_HEADER + 16];
    size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
    int rank = 0;
    for (size_t i = 0; i < n; i++) {
        text[i] = data[i] == 0 ? '\1' : (char)data[i];
    }
    text[n] = 0;
    char *p = strstr(text + 10, "shape");
    p = p == NULL ? NULL : strchr(p, '(');
    for (; p != NULL && *p != ')' && *p != 0; p++) {
        if (*p >= '0' && *p <= '9' && rank < MD_MAX_RANK) {
            shape[rank++] = strtoll(p, &p, 10);
            p--;
        }
    }
    return rank;
}

static void same_header(const md_array *a) {
    char buffer[1024];
    md_array again;
    md_text t = md_text_make(buffer, sizeof buffer);
    md_npy_header(&t, a->dtype, a->rank, a->shape);
    size_t bytes = (size_t)(a->rows * a->width) * md_dtype_bytes(a->dtype);
    uint8_t *file = malloc(t.used + bytes);
    if (file == NULL) {
        exit(2);
    }
    memcpy(file, buffer, t.used);
    memcpy(file + t.used, a->data, bytes);
    md_text message = reader_message();
    int rc = md_npy_open(&again, reader_file(file, t.used + bytes), UINT64_MAX, &message);
    if (rc != MD_EXIT_OK || again.rank != a->rank || again.dtype != a->dtype ||
        memcmp(again.shape, a->shape, sizeof a->shape[0] * (size_t)a->rank) != 0 ||
        memcmp(again.data, file + t.used, bytes) != 0) {
        finding("what was read is not read again after it was written");
    }
    md_array_close(&again);
    free(file);
}

/* One element the plain way: as a 64-bit integer with its sign, or as a double. */
typedef struct {
    int is_float, negative;
    uint64_t magnitude;
    double value;
} Element;

static Element element(const uint8_t *at, md_dtype type) {
    Element e = {0, 0, 0, 0};
    uint64_t w = reader_word(at, md_dtype_bytes(type), 0);
    uint32_t w32 = (uint32_t)w;
    float f;
    switch (type) {
    case MD_I8: w = (uint64_t)(int64_t)(int8_t)w; break;
    case MD_I16: w = (uint64_t)(int64_t)(int16_t)w; break;
    case MD_I32: w = (uint64_t)(int64_t)(int32_t)w; break;
    case MD_BOOL: w = w != 0; break;
    case MD_F64:
        e.is_float = 1;
        memcpy(&e.value, &w, sizeof e.value);
        return e;
    case MD_F32:
        e.is_float = 1;
        memcpy(&f, &w32, sizeof f);
        e.value = (double)f;
        return e;
    case MD_F16:
        e.is_float = 1;
        e.value = (w & 0x7C00) == 0x7C00 ? ((w & 0x3FF) != 0 ? NAN : INFINITY)
                  : (w & 0x7C00) == 0
                      ? ldexp((double)(w & 0x3FF), -24)
                      : ldexp((double)((w & 0x3FF) | 0x400), (int)(w >> 10 & 31) - 25);
        e.value = (w & 0x8000) != 0 ? -e.value : e.value;
        return e;
    default: break;
    }
    e.negative = type != MD_U64 && (int64_t)w < 0;
    e.magnitude = e.negative ? 0 - w : w;
    e.value = e.negative ? -(double)e.magnitude : (double)e.magnitude;
    return e;
}

static const struct {
    md_dtype type;
    uint64_t below, above; /* magnitudes of the least and the largest */
} targets[] = {
    {MD_BOOL, 0, 1},         {MD_I8, 128, 127},
    {MD_U8, 0, 255},         {MD_I16, 32768, 32767},
    {MD_U16, 0, 65535},      {MD_I32, UINT64_C(1) << 31, (UINT64_C(1) << 31) - 1},
    {MD_U32, 0, UINT32_MAX}, {MD_I64, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1},
    {MD_F32, 0, 0},          {MD_F64, 0, 0},
};

static void conversions(const md_array *a) {
    int64_t count = a->rows * a->width;
    size_t width = md_dtype_bytes(a->dtype);
    for (int64_t i = 0; i < count && i < 64; i++) {
        const uint8_t *at = a->data + (size_t)i * width;
        Element e = element(at, a->dtype);
        for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
            md_dtype type = targets[k].type;
            uint64_t out[1] = {0};
            int64_t bad = md_convert(out, type, at, a->dtype, 0, 1);
            int takes;
            if (md_is_float(type)) {
                double got = 0;
                float narrow;
                memcpy(&narrow, out, sizeof narrow);
                memcpy(&got, out, sizeof got);
                got = type == MD_F32 ? (double)narrow : got;
                double want = type == MD_F32 ? (double)(float)e.value : e.value;
                takes = isfinite(want) || !isfinite(e.value);
                if (takes && memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want))) {
                    finding("%.17g became %.17g", e.value, got);
                }
            } else {
                if (e.is_float) {
                    takes = fabs(e.value) <= 9007199254740992.0 && e.value == floor(e.value);
                    e.negative = e.value < 0;
                    e.magnitude = takes ? (uint64_t)fabs(e.value) : 0;
                } else {
                    takes = 1;
                }
                takes = takes && e.magnitude <= (e.negative ? targets[k].below : targets[k].above);
                uint64_t mask = ~UINT64_C(0) >> (64 - 8 * md_dtype_bytes(type));
                uint64_t want = (e.negative ? 0 - e.magnitude : e.magnitude) & mask;
                if (takes && out[0] != want) {
                    finding("%.17g became %llx", e.value, (unsigned long long)out[0]);
                }
            }
            if (takes != (bad < 0)) {
                finding("%.17g as %s: %s", e.value, md_dtype_get(type)->name,
                        bad < 0 ? "taken" : "refused");
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    md_array a;
    md_text message = reader_message();
    int rc = md_npy_open(&a, reader_file(data, size), UINT64_MAX, &message);
    reader_status(rc);
    if (rc == MD_EXIT_OK) {
        int64_t shape[MD_MAX_RANK];
        uint64_t bytes = md_dtype_bytes(a.dtype);
        for (int i = 0; i < a.rank; i++) {
            bytes *= (uint64_t)a.shape[i];
        }
        if (a.map_bytes != bytes || bytes > size ||
            a.rows * a.width * (int64_t)md_dtype_bytes(a.dtype) != (int64_t)bytes ||
            memcmp(a.data, data + (size - bytes), bytes) != 0) {
            finding("other bytes than those of the file");
        }
        if (text_shape(data, size, shape) != a.rank ||
            memcmp(shape, a.shape, sizeof *shape * (size_t)a.rank) != 0) {
            finding("another shape than the text says");
        }
        conversions(&a);
        same_header(&a);
    }
    md_array_close(&a);
    return 0;
}
