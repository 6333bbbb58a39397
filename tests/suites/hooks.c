/* hooks: watches an emitted program from the inside. Linked into it by memory.sh and bounds.sh with
 * --wrap=main,mmap,munmap,mprotect; the allocator of the C library is replaced by one that counts,
 * so that calls made by other libraries count too. Orders come from the environment:
 *
 *     HOOK_LIMIT=N    from main on the address space is what it is then, and N bytes
 *     HOOK_FILL=B     the regions are filled with byte B when they are mapped
 *     HOOK_DUMP=FILE  what the regions hold when they are given back
 *     HOOK_OUT=FILE   "name value" lines about the run, written when the regions are given back
 *
 * The regions are what the program reserves first without access and then opens in the middle. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __real_mprotect(void *at, size_t bytes, int prot);
int __wrap_mprotect(void *at, size_t bytes, int prot);

static long calls;             /* of the allocator and of mmap */
static unsigned char *regions; /* what the program may touch */
static size_t region_bytes;

/* ---- counting ------------------------------------------------------------------------------- */

#ifdef __GLIBC__
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

void *malloc(size_t bytes) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}

void *realloc(void *p, size_t bytes) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **p, size_t align, size_t bytes) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    *p = __libc_memalign(align, bytes);
    return *p == NULL;
}

void free(void *p) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    __libc_free(p);
}
#endif

/* ---- the process ---------------------------------------------------------------------------- */

/* Calls `each` with the ends and the permissions of every mapping; gives how many there are. */
static long mappings(void (*each)(size_t from, size_t to, const char *mode)) {
    static char text[1 << 16];
    size_t have = 0;
    long count = 0;
    int fd = open("/proc/self/maps", O_RDONLY);
    for (ssize_t n = 1; n > 0; have += n > 0 ? (size_t)n : 0) {
        n = read(fd, text + have, sizeof text - 1 - have);
    }
    close(fd);
    text[have] = 0;
    for (char *line = text; *line != 0; line = strchr(line, '\n') + 1) {
        char *rest;
        size_t from = strtoull(line, &rest, 16);
        size_t to = strtoull(rest + 1, &rest, 16);
        if (each != NULL) {
            each(from, to, rest + 1);
        }
        count++;
    }
    return count;
}

static int before_closed, after_closed, inside_open;

/* Neighbours with the same permissions show as one mapping: what counts is where these change. */
static void look(size_t from, size_t to, const char *mode) {
    size_t start = (size_t)regions, end = start + region_bytes,
           page = (size_t)sysconf(_SC_PAGESIZE);
    int closed = strncmp(mode, "---p", 4) == 0;
    before_closed |= closed && from <= start - page && to == start;
    after_closed |= closed && from == end && to >= end + page;
    inside_open |= strncmp(mode, "rw-p", 4) == 0 && from == start && to == end;
}

/* Does a write to this byte end a process? */
static int faults(volatile unsigned char *at) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        *at = 1;
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

static void report(void) {
    long counted = calls, maps = mappings(look);
    const char *path = getenv("HOOK_OUT");
    FILE *out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fprintf(out, "calls %ld\nmaps %ld\nmapped %zu\n", counted, maps, region_bytes);
        fprintf(out, "guards %d\n", before_closed && after_closed && inside_open);
        fprintf(out, "before %d\nfirst %d\nlast %d\nafter %d\n", faults(regions - 1),
                faults(regions), faults(regions + region_bytes - 1),
                faults(regions + region_bytes));
        fclose(out);
    }
    path = getenv("HOOK_DUMP");
    out = path != NULL ? fopen(path, "w") : NULL;
    if (out != NULL) {
        fwrite(regions, 1, region_bytes, out);
        fclose(out);
    }
}

/* ---- what the program calls ----------------------------------------------------------------- */

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __real_mmap(at, bytes, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t bytes) {
    unsigned char *from = (unsigned char *)at;
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (regions != NULL && from <= regions && regions + region_bytes <= from + bytes) {
        report();
        regions = NULL;
    }
    return __real_munmap(at, bytes);
}

int __wrap_mprotect(void *at, size_t bytes, int prot) {
    const char *fill = getenv("HOOK_FILL");
    int code = __real_mprotect(at, bytes, prot);
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (code == 0 && regions == NULL) {
        regions = (unsigned char *)at;
        region_bytes = bytes;
        if (fill != NULL) {
            memset(at, atoi(fill), bytes);
        }
    }
    return code;
}

int __wrap_main(int argc, char **argv) {
    const char *limit = getenv("HOOK_LIMIT");
    if (limit != NULL) {
        char text[64];
        int fd = open("/proc/self/statm", O_RDONLY);
        ssize_t n = read(fd, text, sizeof text - 1);
        struct rlimit space;
        close(fd);
        text[n > 0 ? n : 0] = 0;
        space.rlim_cur =
            strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) + strtoull(limit, NULL, 10);
        space.rlim_max = space.rlim_cur;
        if (n <= 0 || setrlimit(RLIMIT_AS, &space) != 0) {
            return 99;
        }
    }
    return __real_main(argc, argv);
}
