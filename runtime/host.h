/* SPDX-License-Identifier: 0BSD */
/* host: what all parts of an emitted `main` share: exit codes, messages, numbers as text, memory
 * mappings, buffered reading.
 *
 * Nothing here calls malloc or uses a FILE: memory comes from mmap before the first step, output
 * goes through write(2) from fixed buffers, so that a run takes no memory after it has started.
 * Functions that can fail give an exit code and leave one message in an md_text.
 * Needs POSIX 2008 with MAP_ANONYMOUS (_GNU_SOURCE before the first include). */
#ifndef MD_HOST_H
#define MD_HOST_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/model.h"
#include "runtime/text.h"

#ifndef MAP_ANONYMOUS
#error "define _GNU_SOURCE before the first #include"
#endif

#if defined(__GNUC__)
#define MD_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define MD_PRINTF(f, a)
#endif

/* Exit codes of the program. */
enum {
    MD_EXIT_OK = 0,
    MD_EXIT_DATA = 1,   /* a file or the data in it */
    MD_EXIT_USAGE = 2,  /* the command line */
    MD_EXIT_NUMBER = 4, /* a loss or a norm became NaN or infinite, a loop met its maximum */
    MD_EXIT_MEMORY = 5, /* the memory could not be had */
    MD_EXIT_FAULT = 70  /* of this program: with --checks=canary a guard band was overwritten */
};

enum { MD_MESSAGE_BYTES = 2048, MD_PATH_BYTES = 4096, MD_STREAM_BYTES = 16384 };

/* A line of the log. A program with many names to report defines more. */
#ifndef MD_LINE_BYTES
#define MD_LINE_BYTES 4096
#endif

MD_COLD void md_text_list(md_text *t, const char *format, va_list list) {
    char piece[MD_MESSAGE_BYTES];
    int n = vsnprintf(piece, sizeof piece, format, list);
    if (n > 0) {
        md_text_bytes(t, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
    }
}

MD_PRINTF(2, 3) MD_COLD void md_text_format(md_text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    md_text_list(t, format, list);
    va_end(list);
}

/* Leaves a message and gives `code`, so that a caller can `return md_fail(...)`. The first message
 * stays: what fails later is a consequence. */
MD_PRINTF(3, 4) MD_COLD int md_fail(md_text *t, int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (t->used == 0) {
        md_text_list(t, format, list);
    }
    va_end(list);
    return code;
}

/* All of the bytes; 0 or an errno. */
MD_COLD int md_write_fd(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t n = write(fd, bytes, count);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        bytes += n;
        count -= (size_t)n;
    }
    return 0;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* A number as it is shown: which zero it is says nothing to a reader. */
MD_COLD double md_shown(double value) {
    return value == 0 ? 0 : value;
}

/* The shortest text that reads back as the same number, 0 for either zero; most values here began
 * as a float. Whole numbers of everyday size have no exponent. */
MD_COLD void md_text_number(md_text *t, double value) {
    char piece[320]; /* more than any "%.17g" has: not every compiler sees its bound */
    int is_float = (double)(float)value == value;
    int digits = 1;
    if (value == floor(value) && fabs(value) < 1e9) {
        md_text_format(t, "%.0f", md_shown(value));
        return;
    }
    do {
        snprintf(piece, sizeof piece, "%.*g", digits++, value);
    } while (digits <= 17 && isfinite(value) &&
             (is_float ? strtof(piece, NULL) != (float)value : strtod(piece, NULL) != value));
    md_text_add(t, piece);
}

/* 1,234,567 */
MD_COLD void md_text_grouped(md_text *t, uint64_t value) {
    char piece[32];
    int n = snprintf(piece, sizeof piece, "%llu", (unsigned long long)value);
    for (int i = 0; i < n; i++) {
        md_text_bytes(t, &piece[i], 1);
        if ((n - i) % 3 == 1 && i + 1 < n) {
            md_text_add(t, ",");
        }
    }
}

/* A number in the C form, nothing around it but blanks. Gives 0 when the text is none; words like
 * nan and inf and hexadecimal forms are none. */
MD_FN int md_parse_number(const char *s, double *value) {
    const char *first = s + strspn(s, " \t");
    const char *end = first + strspn(first, "+-.0123456789eE");
    char *stop = NULL;
    *value = strtod(first, &stop);
    return stop == end && end > first && end[strspn(end, " \t")] == 0;
}

/* A whole number in decimal with a sign or none: its size, at most 2^64 - 1, and whether it is
 * below zero. */
MD_FN int md_parse_digits(const char *s, uint64_t *size, int *minus) {
    s += strspn(s, " \t");
    *minus = *s == '-';
    s += *s == '-' || *s == '+';
    const char *end = s + strspn(s, "0123456789");
    errno = 0;
    *size = strtoull(s, NULL, 10);
    *minus = *minus && *size > 0;
    return end > s && errno == 0 && end[strspn(end, " \t")] == 0;
}

/* One of int64, exactly. */
MD_COLD int md_parse_integer(const char *s, int64_t *value) {
    uint64_t n;
    int minus;
    if (!md_parse_digits(s, &n, &minus) || n > (uint64_t)INT64_MAX + (uint64_t)minus) {
        return 0;
    }
    *value = minus ? -(int64_t)(n - 1) - 1 : (int64_t)n;
    return 1;
}

/* One of uint64, exactly. */
MD_COLD int md_parse_unsigned(const char *s, uint64_t *value) {
    int minus;
    return md_parse_digits(s, value, &minus) && !minus;
}

MD_COLD double md_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- mappings ------------------------------------------------------------------------------- */

MD_COLD size_t md_page(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

MD_FN size_t md_round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* Zeroed memory, or NULL. A size of 0 gives a page, so that NULL always means failure. */
MD_COLD void *md_map(size_t bytes) {
    if (bytes > (size_t)PTRDIFF_MAX - md_page()) {
        return NULL;
    }
    void *p = mmap(NULL, md_round_up(bytes + (bytes == 0), md_page()), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

MD_COLD void md_unmap(void *p, size_t bytes) {
    if (p != NULL) {
        munmap(p, md_round_up(bytes + (bytes == 0), md_page()));
    }
}

/* Reads a byte of every page, so that a file lies in memory before the first step. */
MD_COLD void md_touch_read(const void *p, size_t bytes) {
    const volatile unsigned char *byte = (const volatile unsigned char *)p;
    for (size_t i = 0; i < bytes; i += 4096) {
        (void)byte[i];
    }
}

/* Writes a byte of every page of zeroed memory. */
MD_COLD void md_touch_write(void *p, size_t bytes) {
    volatile unsigned char *byte = (volatile unsigned char *)p;
    for (size_t i = 0; i < bytes; i += 4096) {
        byte[i] = 0;
    }
}

/* The same, resident; or NULL with a message. */
MD_COLD void *md_map_ready(size_t bytes, const char *what, md_text *message) {
    void *p = md_map(bytes);
    if (p == NULL) {
        (void)md_fail(message, MD_EXIT_MEMORY, "no memory for %zu bytes of %s", bytes, what);
    } else {
        md_touch_write(p, bytes);
    }
    return p;
}

/* One mapping that is cut into pieces while the program sets itself up. Without one, pieces are
 * only counted. */
typedef struct md_block_mem {
    char *at;
    size_t used, size;
} md_block_mem;

/* A zeroed piece, aligned for any vector, or NULL when the block has no room for it. */
MD_COLD void *md_take(md_block_mem *b, size_t bytes) {
    size_t at = b->used;
    b->used += md_round_up(bytes, 64);
    return b->at == NULL || b->used > b->size ? NULL : b->at + at;
}

/* Memory for the pieces that were counted. */
MD_COLD int md_block_map(md_block_mem *b, const char *what, md_text *message) {
    b->size = b->used;
    b->used = 0;
    b->at = (char *)md_map_ready(b->size, what, message);
    return b->at == NULL ? MD_EXIT_MEMORY : MD_EXIT_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* A file that is read once from front to back through a small buffer. */
typedef struct md_stream {
    int fd;
    const char *path;
    int error; /* errno of a failed read */
    size_t pos, have;
    unsigned char buffer[MD_STREAM_BYTES];
} md_stream;

/* Opens for reading; a folder is an error here already, and so is a pipe, without a wait for its
 * writer. */
MD_COLD int md_open(const char *path, md_text *message, int *fd, uint64_t *bytes) {
    struct stat info;
    *bytes = 0;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) {
        return md_fail(message, MD_EXIT_DATA, "cannot open '%s': %s", path, strerror(errno));
    }
    if (fstat(*fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(*fd);
        *fd = -1;
        return md_fail(message, MD_EXIT_DATA, "cannot read '%s': not a regular file", path);
    }
    *bytes = (uint64_t)info.st_size;
    return MD_EXIT_OK;
}

MD_COLD int md_stream_open(md_stream *s, const char *path, md_text *message) {
    uint64_t bytes;
    s->path = path;
    s->error = 0;
    s->pos = s->have = 0;
    return md_open(path, message, &s->fd, &bytes);
}

/* The next byte; -1 at the end and after an error. */
MD_FN int md_stream_next(md_stream *s) {
    if (s->pos == s->have) {
        ssize_t n;
        do {
            n = read(s->fd, s->buffer, sizeof s->buffer);
        } while (n < 0 && errno == EINTR);
        if (n <= 0) {
            s->error = n < 0 ? errno : 0;
            return -1;
        }
        s->pos = 0;
        s->have = (size_t)n;
    }
    return s->buffer[s->pos++];
}

/* Closes; an error while reading becomes the message. */
MD_COLD int md_stream_close(md_stream *s, md_text *message) {
    close(s->fd);
    if (s->error != 0) {
        return md_fail(message, MD_EXIT_DATA, "cannot read '%s': %s", s->path, strerror(s->error));
    }
    return MD_EXIT_OK;
}

/* Bytes at an offset; 0 when all of them came. An md_read_fn over a descriptor. */
MD_COLD int md_read_fd(void *user, uint64_t offset, void *data, size_t bytes) {
    int fd = *(const int *)user;
    char *to = (char *)data;
    while (bytes > 0) {
        ssize_t n = pread(fd, to, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return 1;
        }
        to += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

#endif
