/* Linked with --wrap: allocation number FAIL_AT, counted from 1 over malloc, calloc and realloc,
 * gives NULL, and so does every later one. Without FAIL_AT the file ALLOC_COUNT gets their number.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long count;

static void report(void) {
    const char *path = getenv("ALLOC_COUNT");
    FILE *out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fprintf(out, "%ld\n", count);
        fclose(out);
    }
}

static int fails(void) {
    const char *at = getenv("FAIL_AT");
    if (count++ == 0 && at == NULL) {
        atexit(report);
    }
    return at != NULL && count >= atol(at);
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return fails() ? NULL : __real_realloc(old, size);
}
