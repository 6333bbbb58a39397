/* Counts the calls of the allocator and of mmap that an emitted program makes; linked into it with
 * --wrap by memory.sh. The counts are written to the file named by WRAP_OUT when the program ends. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t n);

static long calls;

static void report(void) {
    const char *path = getenv("WRAP_OUT");
    FILE *out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fprintf(out, "%ld\n", calls);
        fclose(out);
    }
}

static void count(void) {
    static int registered;
    if (!registered) {
        registered = 1;
        atexit(report);
    }
    calls++;
}

void *__wrap_malloc(size_t n) {
    count();
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
    count();
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
    count();
    return __real_realloc(p, n);
}

void __wrap_free(void *p) {
    count();
    __real_free(p);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    count();
    return __real_mmap(at, n, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t n) {
    count();
    return __real_munmap(at, n);
}
