/* memory_file: a file in memory, behind the calls that the runtime reads and writes files with. */
#ifndef MDLC_TESTS_MEMORY_FILE_H
#define MDLC_TESTS_MEMORY_FILE_H

#include <stdint.h>
#include <string.h>

typedef struct {
    const unsigned char *data;
    size_t size;
    unsigned char *room; /* of a file that is written: `data` again */
    size_t most;         /* writing past this fails */
} MemoryFile;

static inline int memory_read(void *user, uint64_t offset, void *to, size_t bytes) {
    const MemoryFile *m = user;
    if (offset > m->size || bytes > m->size - offset) {
        return 1;
    }
    memcpy(to, m->data + offset, bytes);
    return 0;
}

static inline int memory_write(void *user, const void *from, size_t bytes) {
    MemoryFile *m = user;
    if (bytes > m->most - m->size) {
        return 28; /* ENOSPC */
    }
    memcpy(m->room + m->size, from, bytes);
    m->size += bytes;
    return 0;
}

#endif
