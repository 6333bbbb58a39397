/* SPDX-License-Identifier: 0BSD */
/* regions: the memory of a run, taken before the first step and measured.
 *
 * One mapping holds the four regions, with a page that cannot be touched on both sides. Everything
 * that a run will use is made resident first (the mapping, the program's own code and data, thread
 * stacks), so that the run itself adds no page. Measurements come from /proc and are 0 without it.
 * Needs host.h; gives md_regions and the measured numbers. */
#ifndef MD_REGIONS_H
#define MD_REGIONS_H

#include "runtime/host.h"

/* The list of loaded objects: glibc's and musl's; tcc does not read glibc's header. */
#if defined(__linux__) && !defined(__TINYC__)
#define MD_OBJECT_LIST 1
#include <link.h>
#include <sys/resource.h>
#else
#define MD_OBJECT_LIST 0
#endif

enum { MD_HUGE_PAGE = 2 << 20, MD_HUGE_FROM = 8 << 20, MD_STACK_MARGIN = 48 << 10 };

/* if: spans */
/* A file of weights that a run begins with. It stays open while some of them wait for their phase:
 * so it may get another name, and another one its name, but what is in it must stay. */
typedef struct md_opened {
    char path[MD_PATH_BYTES + 8];
    int open, fd;
    uint64_t bytes;
    struct timespec changed;
} md_opened;

/* What of the weights and states the run begins with at the moment: all, or the numbers alone; or
 * what is there from a phase on. */
enum { MD_BEGIN_ALL = -1, MD_BEGIN_NUMBERS = -2 };
/* end: spans */

typedef struct md_regions {
    md_memory memory;
    char *base;
    size_t mapped; /* without the guards */
    size_t bound;  /* of that the pages that the run has at most at one time */
    size_t total;  /* the declared bound: the bytes in them */
    /* if: spans */
    const md_model *model;
    int phased, phase; /* 1: memory goes by phases; the one at hand */
    int spill;         /* a file of what is not in memory and will be saved; 0: none */
    int beginning;     /* with what is there from this phase on, or one of MD_BEGIN_* */
    md_opened from[2]; /* --load or --resume, --with */
    /* end: spans */
} md_regions;

/* Offsets of the regions in the mapping; gives its size in whole pages. Those in huge pages come
 * first, where nothing asks for the usual order: behind others they would begin with a gap. */
MD_COLD size_t md_regions_layout(const size_t *bytes, size_t align, int in_order, size_t *offset) {
    size_t at = 0;
    for (int k = 0; k < 2 * MD_REGIONS; k++) {
        const int i = k % MD_REGIONS;
        int huge = 0;
        /* if: huge */
        huge = bytes[i] >= MD_HUGE_FROM;
        /* end: huge */
        if ((huge && !in_order) == (k < MD_REGIONS)) {
            at = offset[i] = md_round_up(at, huge ? (size_t)MD_HUGE_PAGE : align);
            at += bytes[i];
        }
    }
    return md_round_up(at + (at == 0), md_page());
}

MD_COLD int md_regions_map(md_regions *r, const md_model *model, md_text *message) {
    size_t bytes[MD_REGIONS] = {model->params_bytes, model->state_bytes, model->io_bytes,
                                model->arena_bytes};
    size_t offset[MD_REGIONS];
    size_t page = md_page();
    memset(r, 0, sizeof *r);
    int in_order = 0;
    /* if: spans */
    in_order = model->span_count > 0; /* pages of phases are gone through in it */
    /* end: spans */
    r->mapped = md_regions_layout(bytes, model->align, in_order, offset);
    r->bound = r->mapped;
    r->total = bytes[0] + bytes[1] + bytes[2] + bytes[3];
    /* Reserved first, opened in the middle: what stays closed on both sides are the guards. */
    size_t room = r->mapped + 2 * page;
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    char *start = (char *)mmap(NULL, room, PROT_NONE, kind, -1, 0);
    /* if: huge */
    int huge = 0;
    for (int i = 0; i < MD_REGIONS; i++) {
        huge |= bytes[i] >= MD_HUGE_FROM;
    }
    if (huge && (void *)start != MAP_FAILED) {
        /* Once more at a place that fits huge pages, below where there was room: nothing more is
         * ever reserved than is needed. Where the system has another idea that is fine too. */
        uintptr_t aligned = ((uintptr_t)start + page) / MD_HUGE_PAGE * MD_HUGE_PAGE;
        munmap(start, room);
        start = (char *)mmap((void *)(aligned - page), room, PROT_NONE, kind, -1, 0);
    }
    /* end: huge */
    if ((void *)start != MAP_FAILED) {
        r->base = start + page;
    }
    if (r->base == NULL || mprotect(r->base, r->mapped, PROT_READ | PROT_WRITE) != 0) {
        return md_fail(message, MD_EXIT_MEMORY, "no memory for %zu bytes: %s", r->mapped,
                       strerror(errno));
    }
/* if: huge */
#ifdef MADV_HUGEPAGE
    for (int i = 0; i < MD_REGIONS; i++) {
        if (bytes[i] >= MD_HUGE_FROM) {
            (void)madvise(r->base + offset[i], md_round_up(bytes[i], page), MADV_HUGEPAGE);
        }
    }
#endif
    /* end: huge */
    const md_memory memory = {r->base + offset[0], r->base + offset[1], r->base + offset[2],
                              r->base + offset[3], bytes[0],            bytes[1],
                              bytes[2],            bytes[3]};
    r->memory = memory;
    /* if: spans */
    r->model = model;
    /* end: spans */
    return MD_EXIT_OK;
}

/* ---- residency ------------------------------------------------------------------------------ */

#if MD_OBJECT_LIST
/* Touches every page of one loaded object: code by reading, its writable data by writing back what
 * is there. What the loader made read-only again is only read. */
MD_UNCHECKED static int md_resident_object(struct dl_phdr_info *info, size_t size, void *user) {
    uintptr_t page = md_page();
    uintptr_t fixed = 0, fixed_end = 0;
    (void)size;
    (void)user;
    for (int i = 0; i < (int)info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            fixed = (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) / page * page;
            fixed_end = md_round_up((uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
                                                info->dlpi_phdr[i].p_memsz),
                                    page);
        }
    }
    for (int i = 0; i < (int)info->dlpi_phnum; i++) {
        uintptr_t at = (uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        uintptr_t end = at + (uintptr_t)info->dlpi_phdr[i].p_memsz;
        unsigned flags = (unsigned)info->dlpi_phdr[i].p_flags;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || (flags & PF_R) == 0 ||
            end - at > ((uintptr_t)64 << 20)) {
            continue;
        }
        for (; at < end; at = (at / page + 1) * page) {
            volatile unsigned char *byte = (volatile unsigned char *)at;
            unsigned char value = *byte;
            if ((flags & PF_W) != 0 && !(at >= fixed && at < fixed_end)) {
                *byte = value;
            }
        }
    }
    return 0;
}
#endif

/* Uses `bytes` of stack, so that the pages are there. */
MD_UNCHECKED MD_NOINLINE int md_resident_stack(size_t bytes) {
    volatile char frame[2048];
    frame[0] = 1;
    frame[sizeof frame - 1] = 1;
    int below = bytes > sizeof frame ? md_resident_stack(bytes - sizeof frame) : 0;
    return below + frame[0]; /* the frame is needed after the call: no tail call */
}

/* The program as loaded, and the stack of this thread. */
MD_COLD void md_resident_program(size_t stack_bytes) {
#if MD_OBJECT_LIST
    (void)dl_iterate_phdr(md_resident_object, NULL);
#endif
    (void)md_resident_stack(stack_bytes + MD_STACK_MARGIN);
}

/* Starts the threads of the run and has their stacks resident. Gives how many there are. A team of
 * one is never asked for: OpenMP libraries take memory for each of those. */
MD_COLD int md_resident_threads(int wanted, size_t stack_bytes) {
    int threads = 1;
#ifdef MD_OPENMP
    omp_set_dynamic(0);
    omp_set_num_threads(wanted);
    md_threads_settle();
    /* Twice: behind the second region every thread has been through the waiting of the first. */
    for (int round = 0; round < 2 && wanted > 1; round++) {
        MD_OMP(parallel) {
            (void)md_resident_stack(stack_bytes + MD_STACK_MARGIN);
            MD_OMP(master) {
                threads = omp_get_num_threads();
            }
        }
    }
#endif
    if (threads == 1) {
        (void)wanted;
        (void)md_resident_stack(stack_bytes + MD_STACK_MARGIN);
    }
    return threads;
}

#if defined(MD_OPENMP) && defined(__linux__)
/* Of LLVM's OpenMP library; absent in GNU's. */
extern size_t kmp_get_stacksize_s(void) __attribute__((weak));

/* "64M", "4096", " 100 k ": units of B, K (also when there is none), M and G. 0: no size. */
MD_COLD size_t md_stack_size(const char *text) {
    static const char units[] = "bkmg";
    const char *p = text + strspn(text, " \t"), *end = p + strspn(p, "0123456789");
    const uint64_t size = end > p ? strtoull(p, NULL, 10) : 0;
    p = end + strspn(end, " \t");
    const char *unit = *p == 0 ? &units[1] : strchr(units, *p | 32);
    p += *p != 0 ? 1 + strspn(p + 1, " \t") : 0;
    const int shift = unit == NULL || *p != 0 ? 64 : 10 * (int)(unit - units);
    return shift == 64 || size > (uint64_t)1 << 46 >> shift ? 0 : (size_t)size << shift;
}

/* What the OpenMP library takes for the stack of a thread: what its own variables say, else what
 * the C library gives a thread. A size too small for a thread is ignored there, and so here. */
MD_COLD size_t md_thread_stack(void) {
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    struct rlimit stack;
    if (kmp_get_stacksize_s != NULL) {
        return kmp_get_stacksize_s();
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        size_t size = text == NULL ? 0 : md_stack_size(text);
        if (size >= (size_t)sysconf(_SC_THREAD_STACK_MIN)) {
            return size;
        }
    }
    if (getrlimit(RLIMIT_STACK, &stack) != 0) {
        return (size_t)8 << 20;
    }
    return stack.rlim_cur == RLIM_INFINITY ? (size_t)2 << 20 : (size_t)stack.rlim_cur;
}
#endif

/* Address space that the stacks of the other threads take, with a page that guards each. LLVM's
 * library keeps books of its own and waits for ever when it cannot have the room for them. */
MD_COLD size_t md_thread_space(int threads) {
#if defined(MD_OPENMP) && defined(__linux__)
    enum { BOOKS = 4 << 20, BOOKS_EACH = 256 << 10 };
    size_t each = md_round_up(md_thread_stack(), md_page()) + md_page();
    int llvm = kmp_get_stacksize_s != NULL;
    size_t books = llvm ? (size_t)BOOKS + (size_t)BOOKS_EACH * (size_t)threads : 0;
    return (threads > 1 ? each * (size_t)(threads - 1) : 0) + books;
#else
    (void)threads;
    return 0;
#endif
}

/* Thread stacks that cannot be had would end the program inside the thread library, without a
 * message of ours; so see first whether there is room. */
MD_COLD int md_threads_fit(int threads) {
    size_t bytes = md_thread_space(threads);
    void *p = bytes == 0 ? NULL : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return 0;
    }
    if (p != NULL) {
        munmap(p, bytes);
    }
    return 1;
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* A number in a file of /proc, or 0: behind `key` and so many words more. */
MD_COLD uint64_t md_proc_number(const char *path, const char *key, int words) {
    char text[8192];
    size_t have = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0 && have < sizeof text - 1;) {
        n = read(fd, text + have, sizeof text - 1 - have);
        have += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[have] = 0;
    const char *p = strstr(text, key);
    p = p == NULL ? "" : p + strlen(key);
    for (; words > 0; words--) {
        p += strcspn(p, " ");
        p += *p == ' ';
    }
    p += strspn(p, " \t");
    return *p >= '0' && *p <= '9' ? strtoull(p, NULL, 10) : 0;
}

/* A number of statm, in pages: 0 the address space, 1 what is resident by a running count. */
MD_COLD int64_t md_statm(int field) {
    return (int64_t)md_proc_number("/proc/self/statm", "", field);
}

/* Resident bytes, by a walk over all pages where the kernel offers one: exact. */
MD_COLD uint64_t md_resident_bytes(void) {
    uint64_t exact = md_proc_number("/proc/self/smaps_rollup", "Rss:", 0) * 1024;
    return exact > 0 ? exact : (uint64_t)md_statm(1) * md_page();
}

MD_COLD uint64_t md_peak_bytes(void) {
    uint64_t peak = md_proc_number("/proc/self/status", "VmHWM:", 0) * 1024;
    uint64_t now = md_resident_bytes();
    return peak > now ? peak : now;
}

#endif
