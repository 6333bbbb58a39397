/* SPDX-License-Identifier: 0BSD */
/* npy: arrays in NumPy's format 1.0 and 2.0, C order, little-endian (or one byte an element).
 *
 * Files up to a size are read into memory; of larger ones there is a window, which is read anew
 * with pread where a row lies outside of it, so that memory stays what it is and a file that
 * another process cuts short gives a message and no signal. Headers are Python literals; the reader
 * takes exactly the three keys that NumPy writes, in any order. Needs host.h and convert.h, gives
 * md_array. */
#ifndef MD_NPY_H
#define MD_NPY_H

#include "runtime/convert.h"
#include "runtime/host.h"

enum {
    MD_NPY_HEADER = 4096,
    MD_WINDOW_BYTES = 262144 /* of a file that is read as it is needed, at least */
};

/* The largest data file that is kept in memory. */
#ifndef MD_FILE_IN_MEMORY
#define MD_FILE_IN_MEMORY 268435456
#endif

/* An open file of numbers. */
typedef struct md_array {
    const char *path;
    md_dtype dtype;
    int swap; /* elements are big-endian */
    int flat; /* raw elements without a shape: a field says how many make a record */
    int rank;
    int64_t shape[MD_MAX_RANK];
    int64_t rows, width;       /* records along the first axis, elements of each */
    const unsigned char *data; /* all of it, not aligned to anything; NULL: by md_array_at */
    void *map;                 /* memory: all of it, or the window */
    size_t map_bytes;
    int file;              /* 1 + descriptor of a file that is read as it is needed; else 0 */
    uint64_t start, bytes; /* of the elements in that file */
    uint64_t at;           /* what the window holds: `have` bytes from here, from `start` on */
    size_t have;
} md_array;

MD_COLD void md_array_close(md_array *a) {
    md_unmap(a->map, a->map_bytes);
    if (a->file > 0) {
        close(a->file - 1);
    }
    memset(a, 0, sizeof *a);
}

/* An array that is read from a file, which is open afterwards. */
MD_COLD int md_array_begin(md_array *a, const char *path, int *fd, uint64_t *bytes,
                           md_text *message) {
    memset(a, 0, sizeof *a);
    a->path = path;
    return md_open(path, message, fd, bytes);
}

MD_COLD int md_array_memory(md_array *a, size_t bytes, md_text *message) {
    a->map_bytes = bytes;
    a->map = md_map_ready(bytes, a->path, message);
    return a->map == NULL ? MD_EXIT_MEMORY : MD_EXIT_OK;
}

/* Part of a file into memory; the file had these bytes when it was opened. */
MD_COLD int md_array_read(md_array *a, int fd, uint64_t from, void *to, size_t bytes,
                          md_text *message) {
    errno = 0;
    if (md_read_fd(&fd, from, to, bytes) == 0) {
        return MD_EXIT_OK;
    }
    return md_fail(message, MD_EXIT_DATA, "cannot read '%s' at byte %llu: %s", a->path,
                   (unsigned long long)from,
                   errno != 0 ? strerror(errno) : "it is shorter than it was when it was opened");
}

/* The elements, `bytes` of the file from `start` on: in memory, or if they are more than `most`, as
 * they are needed; then md_array_window gives the memory. */
MD_COLD int md_array_take(md_array *a, int fd, uint64_t start, uint64_t bytes, uint64_t most,
                          md_text *message) {
    a->start = start;
    a->bytes = bytes;
    if (bytes > most) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        a->file = copy + 1;
        return copy >= 0 ? MD_EXIT_OK
                         : md_fail(message, MD_EXIT_DATA, "cannot hold '%s' open: %s", a->path,
                                   strerror(errno));
    }
    int rc = bytes > PTRDIFF_MAX / 2 ? md_fail(message, MD_EXIT_MEMORY, "%s: too large", a->path)
                                     : md_array_memory(a, (size_t)bytes, message);
    if (rc == MD_EXIT_OK) {
        rc = md_array_read(a, fd, start, a->map, (size_t)bytes, message);
        a->data = (const unsigned char *)a->map;
    }
    return rc;
}

/* Memory for pieces of up to `record` bytes of a file that is read as it is needed. */
MD_FN int md_array_window(md_array *a, size_t record, md_text *message) {
    const size_t least = MD_WINDOW_BYTES;
    size_t bytes = record > least ? record : least;
    return a->file == 0 || a->map != NULL ? MD_EXIT_OK : md_array_memory(a, bytes, message);
}

/* Bytes of the elements, valid until the next call; NULL with a message when they cannot be read.
 * `ahead`: what follows will be wanted next. */
MD_FN const unsigned char *md_array_at(md_array *a, uint64_t at, size_t bytes, int ahead,
                                       md_text *message) {
    if (a->data != NULL) {
        return a->data + (size_t)at;
    }
    if (at < a->at || at + bytes > a->at + a->have) {
        uint64_t left = a->bytes - at;
        size_t want = !ahead ? bytes : left < a->map_bytes ? (size_t)left : a->map_bytes;
        a->have = 0;
        if (md_array_read(a, a->file - 1, a->start + at, a->map, want, message) != MD_EXIT_OK) {
            return NULL;
        }
        a->at = at;
        a->have = want;
    }
    return (const unsigned char *)a->map + (size_t)(at - a->at);
}

/* Fills rows and width from the shape, and the number of bytes. Gives 0 for an array that is larger
 * than any memory. */
MD_COLD int md_array_size(md_array *a, uint64_t *bytes) {
    uint64_t most = 1, width = 1; /* most: without the extents that are 0 */
    for (int i = 0; i < a->rank; i++) {
        uint64_t extent = (uint64_t)a->shape[i];
        if (extent > 0 && most > (UINT64_C(1) << 56) / extent) {
            return 0;
        }
        most *= extent > 0 ? extent : 1;
        width *= i > 0 ? extent : 1;
    }
    a->rows = a->rank > 0 ? a->shape[0] : 1;
    a->width = (int64_t)width;
    *bytes = (uint64_t)a->rows * width * md_dtype_bytes(a->dtype);
    return 1;
}

typedef struct md_npy_code {
    const char *code;
    md_dtype dtype;
} md_npy_code;

/* Codes as NumPy writes them; bf16 has none and travels as f32. */
MD_COLD const md_npy_code *md_npy_codes(void) {
    static const md_npy_code table[] = {
        {"|b1", MD_BOOL}, {"|i1", MD_I8},  {"<i2", MD_I16}, {"<i4", MD_I32}, {"<i8", MD_I64},
        {"|u1", MD_U8},   {"<u2", MD_U16}, {"<u4", MD_U32}, {"<u8", MD_U64}, {"<f2", MD_F16},
        {"<f4", MD_F32},  {"<f8", MD_F64}, {NULL, MD_BOOL},
    };
    return table;
}

/* Takes `c`, which is not 0, if it comes next behind blanks. */
MD_COLD int md_npy_take(const char **p, char c) {
    *p += strspn(*p, " \n");
    int is = **p == c;
    *p += is;
    return is;
}

/* Takes a word in quotes; 0: there is none, or it has `size` characters or more. */
MD_COLD int md_npy_word(const char **p, char *out, size_t size) {
    const char quote = md_npy_take(p, '\'') ? '\'' : md_npy_take(p, '"') ? '"' : (char)0;
    const char *end = quote != 0 ? strchr(*p, quote) : NULL;
    size_t n = end != NULL ? (size_t)(end - *p) : size;
    if (n >= size) {
        return 0;
    }
    memcpy(out, *p, n);
    out[n] = 0;
    *p = end + 1;
    return 1;
}

/* (3, 4), (3,) or (). */
MD_COLD int md_npy_shape(const char **p, md_array *a) {
    int more = md_npy_take(p, '(');
    for (a->rank = 0; more && !md_npy_take(p, ')'); a->rank++) {
        *p += strspn(*p, " \n");
        size_t digits = strspn(*p, "0123456789");
        if (digits == 0 || digits > 18 || a->rank == MD_MAX_RANK) {
            return 0;
        }
        a->shape[a->rank] = (int64_t)strtoull(*p, NULL, 10);
        *p += digits;
        if (!md_npy_take(p, ',')) {
            a->rank++;
            return md_npy_take(p, ')');
        }
    }
    return more;
}

/* The literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
MD_COLD int md_npy_parse(md_array *a, const char *p, md_text *message) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[32] = "", code[64] = "";
    int have = 0, fortran = 0, more = md_npy_take(&p, '{'), good = more;
    while (good && more && !md_npy_take(&p, '}')) {
        int is = 0;
        good = md_npy_word(&p, key, sizeof key) && md_npy_take(&p, ':');
        while (is < 3 && strcmp(key, keys[is]) != 0) {
            is++;
        }
        good = good && is < 3 && (have >> is & 1) == 0;
        have |= 1 << is;
        p += strspn(p, " \n");
        if (good && is == 0 && *p == '[') {
            return md_fail(message, MD_EXIT_DATA, "%s: records with named fields are not supported",
                           a->path);
        }
        if (good && is == 1) {
            fortran = strncmp(p, "True", 4) == 0;
            good = fortran || strncmp(p, "False", 5) == 0;
            p += !good ? 0 : fortran ? 4 : 5;
        } else if (good) {
            good = is == 0 ? md_npy_word(&p, code, sizeof code) : md_npy_shape(&p, a);
        }
        more = md_npy_take(&p, ',');
        good = good && (more || md_npy_take(&p, '}'));
    }
    if (!good || have != 7 || p[strspn(p, " \n")] != 0) {
        return md_fail(message, MD_EXIT_DATA, "%s: the header of this .npy file is damaged",
                       a->path);
    }
    const md_npy_code *known = md_npy_codes();
    while (known->code != NULL && strcmp(known->code, code) != 0 &&
           !(known->code[0] == '|' && code[0] == '<' && strcmp(known->code + 1, code + 1) == 0)) {
        known++;
    }
    if (known->code == NULL) {
        return md_fail(message, MD_EXIT_DATA, "%s: element type '%s' is not supported%s", a->path,
                       code,
                       code[0] == '>'                     ? "; convert to little-endian first"
                       : code[0] == '|' && code[1] == 'O' ? "; save numbers, not Python objects"
                                                          : "");
    }
    if (fortran && a->rank > 1) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: stored in Fortran order; save numpy.ascontiguousarray(x)", a->path);
    }
    a->dtype = known->dtype;
    return MD_EXIT_OK;
}

/* Reads the header from an open file; `start` is where the data begin. */
MD_COLD int md_npy_head(md_array *a, int fd, uint64_t *start, md_text *message) {
    unsigned char fixed[12];
    char text[MD_NPY_HEADER];
    if (md_read_fd(&fd, 0, fixed, 10) != 0 || memcmp(fixed, "\x93NUMPY", 6) != 0) {
        return md_fail(message, MD_EXIT_DATA, "%s: not a .npy file", a->path);
    }
    uint64_t length = (uint64_t)fixed[8] | (uint64_t)fixed[9] << 8;
    *start = 10;
    if (fixed[6] == 2) {
        if (md_read_fd(&fd, 10, fixed + 10, 2) != 0) {
            return md_fail(message, MD_EXIT_DATA, "%s: the header of this .npy file is cut short",
                           a->path);
        }
        length |= (uint64_t)fixed[10] << 16 | (uint64_t)fixed[11] << 24;
        *start = 12;
    } else if (fixed[6] != 1) {
        return md_fail(message, MD_EXIT_DATA, "%s: version %d.%d of .npy is not supported", a->path,
                       fixed[6], fixed[7]);
    }
    if (length >= sizeof text || md_read_fd(&fd, *start, text, (size_t)length) != 0) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: the header of this .npy file is cut short or too long", a->path);
    }
    text[length] = 0;
    *start += length;
    if (strlen(text) != length) {
        return md_fail(message, MD_EXIT_DATA, "%s: the header of this .npy file is damaged",
                       a->path);
    }
    return md_npy_parse(a, text, message);
}

/* The header of an open file of `bytes` bytes, and what is behind it. */
MD_COLD int md_npy_read(md_array *a, int fd, uint64_t bytes, uint64_t most, md_text *message) {
    uint64_t start = 0, need = 0;
    char shape[MD_SHAPE_TEXT];
    int rc = md_npy_head(a, fd, &start, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    if (!md_array_size(a, &need)) {
        return md_fail(message, MD_EXIT_DATA, "%s: the array is too large: shape %s", a->path,
                       md_shape_text(shape, a->shape, a->rank));
    }
    if (bytes - start != need) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: %s: %llu bytes of data were expected, found %llu", a->path,
                       bytes - start < need ? "cut short" : "too long", (unsigned long long)need,
                       (unsigned long long)(bytes - start));
    }
    return md_array_take(a, fd, start, need, most, message);
}

MD_COLD int md_npy_open(md_array *a, const char *path, uint64_t most, md_text *message) {
    int fd;
    uint64_t bytes;
    int rc = md_array_begin(a, path, &fd, &bytes, message);
    if (rc == MD_EXIT_OK) {
        rc = md_npy_read(a, fd, bytes, most, message);
        close(fd);
    }
    return rc;
}

/* Header of an array about to be written, a multiple of 64 bytes. */
MD_COLD void md_npy_header(md_text *t, md_dtype dtype, int rank, const int64_t *shape) {
    const md_npy_code *known = md_npy_codes();
    while (known->code != NULL && known->dtype != dtype) {
        known++;
    }
    md_text_bytes(t, "\x93NUMPY\x01\x00\x00\x00", 10);
    md_text_add(t, "{'descr': '");
    md_text_add(t, known->code == NULL ? "<f4" : known->code);
    md_text_add(t, "', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++) {
        md_text_i64(t, shape[i]);
        md_text_add(t, i + 1 < rank ? ", " : rank == 1 ? "," : "");
    }
    md_text_add(t, "), }");
    while (t->used % 64 != 63) {
        md_text_add(t, " ");
    }
    md_text_add(t, "\n");
    t->at[8] = (char)(unsigned char)((t->used - 10) & 0xFF);
    t->at[9] = (char)(unsigned char)((t->used - 10) >> 8);
}

#endif
