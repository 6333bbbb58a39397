/* support: what tests in C share: scratch folders, files, and a skip that says why. Needs POSIX;
 * include cmocka.h before it where skip_because is used. */
#ifndef MDLC_TESTS_SUPPORT_H
#define MDLC_TESTS_SUPPORT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SANITIZED: built with the address sanitizer, which reserves terabytes. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

enum { SCRATCH_PATH = 64 };

/* Makes an empty folder, in TMPDIR where its path is short enough. */
static inline bool scratch_make(char folder[SCRATCH_PATH], const char *name) {
    const char *tmp = getenv("TMPDIR");
    if (tmp == NULL || strlen(tmp) + strlen(name) + sizeof "/mdlc-.123456" > SCRATCH_PATH) {
        tmp = "/tmp";
    }
    int length = snprintf(folder, SCRATCH_PATH, "%s/mdlc-%s.", tmp, name);
    if (length < 0 || length + 7 > SCRATCH_PATH) {
        return false;
    }
    memset(folder + length, 'X', 6);
    folder[length + 6] = '\0';
    return mkdtemp(folder) != NULL;
}

/* Removes it with all that is in it. */
static inline bool scratch_remove(const char *folder) {
    char command[SCRATCH_PATH + 32];
    snprintf(command, sizeof command, "cd / && rm -rf '%s'", folder);
    return system(command) == 0;
}

static inline bool file_write(const char *path, const void *data, size_t bytes) {
    FILE *out = fopen(path, "wb");
    bool ok = out != NULL && fwrite(data, 1, bytes, out) == bytes;
    return out != NULL && fclose(out) == 0 && ok;
}

/* The larger gap; one that is a NaN stays. */
static inline double worse_gap(double a, double b) {
    return a >= b || a != a ? a : b;
}

/* Ends the test; tests/run.sh shows the line, and counts a skip without one as a failure. */
#define skip_because(reason)                                                                       \
    do {                                                                                           \
        printf("\nskip %s: %s\n", __func__, reason);                                               \
        fflush(stdout);                                                                            \
        skip();                                                                                    \
    } while (0)
/* What a test expects holds with the usual sizes of blocks and thresholds alone (TUNED). */
#define needs_usual_sizes()                                                                        \
    do {                                                                                           \
        if (ODD_SIZES) {                                                                           \
            skip_because("small odd sizes cut this another way");                                  \
        }                                                                                          \
    } while (0)

#endif
