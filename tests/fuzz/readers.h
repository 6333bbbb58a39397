/* readers: what the fuzz targets of the file readers share. A target is one file fuzz_NAME.c with
 * the function that libFuzzer calls, over the runtime pieces as emitted programs include them; its
 * input is the file that is read, so that any file of the kind is a seed.
 *
 * Each target has a second reader of its own, written for memory and without regard to speed, and
 * aborts when the two disagree about what a file holds or whether it may be taken. Included once,
 * after the runtime pieces, with _GNU_SOURCE. */
#ifndef MDLC_TESTS_READERS_H
#define MDLC_TESTS_READERS_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Files of an odd number of bytes are read as they are needed. */
static uint64_t reader_limit = UINT64_MAX;
#ifndef MD_FILE_IN_MEMORY /* a target that opens no data set may have the pieces already */
#define MD_FILE_IN_MEMORY reader_limit
#endif
#include "runtime/format.h"
/* Inputs have no name with an ending: a data set is read as what its target says. */
static md_format reader_format = MD_FORMAT_AUTO;
#define md_format_of(path) ((void)(path), reader_format)
#include "runtime/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char reader_text[MD_MESSAGE_BYTES]; /* the message of the last call */
static md_stream reader_stream;

/* The input shows a fault. */
MD_PRINTF(1, 2) MD_FN void finding(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("finding: ", stderr);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\nmessage: %s\n", reader_text);
    va_end(list);
    abort();
}

MD_FN md_text reader_message(void) {
    return md_text_make(reader_text, sizeof reader_text);
}

/* The input as a file; the path is good until the next one. */
MD_FN const char *reader_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("input", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        md_write_fd(fd, (const char *)data, size) != 0) {
        perror("reader_file");
        exit(2);
    }
    return path;
}

/* What every call must keep: no message when all is well, else one that names what is wrong. */
MD_FN void reader_status(int rc) {
    size_t n = strlen(reader_text);
    if (rc == MD_EXIT_OK ? n != 0 : n < 10) {
        finding("status %d", rc);
    }
    if (rc != MD_EXIT_OK && rc != MD_EXIT_DATA && rc != MD_EXIT_USAGE && rc != MD_EXIT_MEMORY) {
        finding("unknown status %d", rc);
    }
}

/* An md_path_fn of data sets of one file. */
MD_FN const char *reader_path(void *user, const md_dataset *set, int file, int part) {
    (void)set;
    return file == 0 && part == MD_PART_TRAIN ? (const char *)user : NULL;
}

MD_FN int reader_open(md_data *d, const md_dataset *set, md_format format, const uint8_t *data,
                      size_t size) {
    reader_format = format;
    const char *path = reader_file(data, size);
    char copy[64];
    snprintf(copy, sizeof copy, "%s", path);
    md_text message = reader_message();
    reader_limit = size % 2 == 1 ? 0 : UINT64_MAX;
    int rc = md_data_open(d, set, reader_path, copy, &reader_stream, &message);
    reader_status(rc);
    return rc;
}

/* One row of a data set that was opened. */
MD_FN void reader_gather(const md_data *d, int field, int64_t row, int consecutive, void *to) {
    md_text message = reader_message();
    if (md_data_gather(d, field, MD_PART_TRAIN, &row, 1, consecutive, to, &message) != MD_EXIT_OK) {
        finding("a row of a checked file is refused: %s", message.at);
    }
}

/* Little-endian, or big-endian with `swap`. */
MD_FN uint64_t reader_word(const uint8_t *at, size_t width, int swap) {
    uint64_t word = 0;
    for (size_t i = 0; i < width; i++) {
        word = word << 8 | at[swap ? i : width - 1 - i];
    }
    return word;
}

#endif
