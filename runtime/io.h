/* SPDX-License-Identifier: 0BSD */
/* io: opens a data file of records as an array: .npy, IDX (also gzip), text and raw elements.
 *
 * Packed files are unpacked into memory, whatever their size. The format
 * follows from the ending, or from the first bytes where that says nothing. A program has the
 * readers of the formats that its model names (emit/features.c), beside others than tables that of
 * .npy, and refuses others.
 * Needs format.h, npy.h and inflate.h, gives md_array; csv has csv.h. */
#ifndef MD_IO_H
#define MD_IO_H

#include "runtime/format.h"
#include "runtime/inflate.h"
#include "runtime/npy.h"

/* The format by the first bytes; what looks like nothing else is bytes. */
MD_COLD md_format md_format_sniff(int fd) {
    unsigned char head[8];
    if (md_read_fd(&fd, 0, head, sizeof head) != 0) {
        return MD_FORMAT_U8;
    }
    if (memcmp(head, "\x93NUMPY", 6) == 0) {
        return MD_FORMAT_NPY;
    }
    /* if: guessed */
    int idx = head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14 && head[3] > 0;
    if (idx || (head[0] == 0x1F && head[1] == 0x8B)) {
        return MD_FORMAT_IDX;
    }
    /* end: guessed */
    return MD_FORMAT_U8;
}

/* Raw elements: one record each. */
MD_COLD int md_raw_read(md_array *a, int fd, md_dtype dtype, uint64_t bytes, uint64_t most,
                        md_text *message) {
    uint64_t width = md_dtype_bytes(dtype), size;
    a->flat = 1;
    a->dtype = dtype;
    a->rank = 1;
    a->shape[0] = (int64_t)(bytes / width);
    (void)md_array_size(a, &size);
    if (bytes % width != 0) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: %llu bytes are no whole number of elements of %llu bytes", a->path,
                       (unsigned long long)bytes, (unsigned long long)width);
    }
    return md_array_take(a, fd, 0, bytes, most, message);
}

enum { MD_IDX_HEADER = 4 + 4 * MD_MAX_RANK };

/* The header of IDX content of `bytes` bytes, of which `p` are the first: 0 0 type rank, then
 * sizes, all big-endian. `start`: where the elements begin. */
MD_COLD int md_idx_parse(md_array *a, const unsigned char *p, uint64_t bytes, size_t *start,
                         md_text *message) {
    static const unsigned char codes[] = {0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E};
    static const md_dtype types[] = {MD_U8, MD_I8, MD_I16, MD_I32, MD_F32, MD_F64};
    int type = -1;
    for (int i = 0; i < 6 && bytes >= 4; i++) {
        type = p[0] == 0 && p[1] == 0 && p[2] == codes[i] ? i : type;
    }
    if (type < 0 || p[3] == 0 || p[3] > MD_MAX_RANK || bytes < 4 + 4 * (uint64_t)p[3]) {
        return md_fail(message, MD_EXIT_DATA, "%s: not an IDX file", a->path);
    }
    a->dtype = types[type];
    a->swap = 1;
    a->rank = p[3];
    for (int i = 0; i < a->rank; i++) {
        const unsigned char *b = p + 4 + 4 * i;
        a->shape[i] =
            (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | (int64_t)b[3];
    }
    *start = 4 + 4 * (size_t)a->rank;
    uint64_t need = 0;
    int possible = md_array_size(a, &need);
    if (!possible || bytes - *start != need) {
        return md_fail(message, MD_EXIT_DATA,
                       "%s: %s: its header promises %llu bytes of data, found %llu", a->path,
                       !possible || bytes - *start < need ? "cut short" : "too long",
                       (unsigned long long)need, (unsigned long long)(bytes - *start));
    }
    return MD_EXIT_OK;
}

/* Unpacks into memory whose size stands in the last four bytes of the file. */
MD_COLD int md_gzip_map(md_array *a, int fd, uint64_t bytes, md_stream *stream, md_text *message) {
    const char *path = a->path;
    unsigned char tail[4] = {0, 0, 0, 0};
    if (bytes < 18 || md_read_fd(&fd, bytes - 4, tail, 4) != 0) {
        return md_fail(message, MD_EXIT_DATA, "%s: cannot unpack: it is cut short", path);
    }
    size_t size =
        (size_t)tail[0] | (size_t)tail[1] << 8 | (size_t)tail[2] << 16 | (size_t)tail[3] << 24;
    if (size > 1100 * bytes) { /* deflate reaches 1032 to 1 */
        return md_fail(
            message, MD_EXIT_DATA,
            "%s: cannot unpack: its last four bytes, the length, make no sense; it is cut "
            "short, damaged, or goes on behind its end",
            path);
    }
    int rc = md_array_memory(a, size, message);
    rc = rc == MD_EXIT_OK ? md_stream_open(stream, path, message) : rc;
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    const char *why = md_gunzip(stream, (unsigned char *)a->map, size);
    rc = md_stream_close(stream, message);
    if (rc == MD_EXIT_OK && why != NULL) {
        rc = md_fail(message, MD_EXIT_DATA, "%s: cannot unpack: %s", path, why);
    }
    return rc;
}

MD_COLD int md_idx_read(md_array *a, int fd, uint64_t bytes, uint64_t most, md_stream *stream,
                        md_text *message) {
    size_t start = 0;
    unsigned char head[MD_IDX_HEADER] = {0};
    size_t some = bytes < sizeof head ? (size_t)bytes : sizeof head;
    int rc = md_array_read(a, fd, 0, head, some, message);
    if (rc == MD_EXIT_OK && head[0] == 0x1F && head[1] == 0x8B) {
        rc = md_gzip_map(a, fd, bytes, stream, message);
        const unsigned char *unpacked = (const unsigned char *)a->map;
        rc = rc == MD_EXIT_OK ? md_idx_parse(a, unpacked, a->map_bytes, &start, message) : rc;
        a->data = rc == MD_EXIT_OK ? unpacked + start : NULL;
    } else if (rc == MD_EXIT_OK) {
        rc = md_idx_parse(a, head, bytes, &start, message);
        rc = rc == MD_EXIT_OK ? md_array_take(a, fd, start, bytes - start, most, message) : rc;
    }
    return rc;
}

/* Of a format that no path of the model has. */
MD_COLD int md_format_refused(const char *path, md_text *message) {
    return md_fail(message, MD_EXIT_DATA,
                   "%s: this program reads"
                   /* if: arrays */
                   " .npy"
                   /* if: csv */
                   ","
                   /* end: csv */
                   /* end: arrays */
                   /* if: csv */
                   " .csv"
                   /* end: csv */
                   /* if: idx */
                   ", IDX (-ubyte, .idx, .gz)"
                   /* end: idx */
                   /* if: raw */
                   ", text and raw elements (.txt, .md, .bin, .u8, .u16, .i32)"
                   /* end: raw */
                   "; convert the file, or give the data in the model a path with its ending",
                   path);
}

/* Opens any format but csv; MD_FORMAT_AUTO is what the first bytes look like. */
MD_COLD int md_array_open(md_array *a, const char *path, md_format format, uint64_t most,
                          md_stream *stream, md_text *message) {
    int fd;
    uint64_t bytes;
    int rc = md_array_begin(a, path, &fd, &bytes, message);
    if (rc != MD_EXIT_OK) {
        return rc;
    }
    (void)stream;
    format = format == MD_FORMAT_AUTO ? md_format_sniff(fd) : format;
    if (format == MD_FORMAT_NPY) {
        rc = md_npy_read(a, fd, bytes, most, message);
    } else if (bytes == 0) {
        rc = md_fail(message, MD_EXIT_DATA, "%s: the file is empty", path);
        /* if: idx */
    } else if (format == MD_FORMAT_IDX) {
        rc = md_idx_read(a, fd, bytes, most, stream, message);
        /* end: idx */
        /* if: raw */
    } else if (format >= MD_FORMAT_U8) {
        md_dtype type = format == MD_FORMAT_U16 ? MD_U16 : format == MD_FORMAT_I32 ? MD_I32 : MD_U8;
        rc = md_raw_read(a, fd, type, bytes, most, message);
        /* end: raw */
    } else {
        rc = md_format_refused(path, message);
    }
    close(fd);
    return rc;
}

#endif
