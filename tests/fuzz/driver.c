/* driver: runs a fuzz target without libFuzzer, with any C compiler. Options are spelled as
 * libFuzzer spells them:
 *
 *   fuzz_x FILE...                run these inputs, as they are; a fault ends the process
 *   fuzz_x [OPTION...] FOLDER...  run mutants of the files in these folders
 *     -seed=N -runs=N -max_total_time=SECONDS   where to begin, when to stop
 *     -timeout=SECONDS -rss_limit_mb=N          what one input may take, in processor time
 *     -max_len=N -artifact_prefix=PATH          longest input; where findings are saved
 *
 * Mutants are run in a child, which puts each into shared memory first: when the child ends, the
 * parent saves the input and starts another child behind it. Input i follows from the seed, i and
 * the files alone. Coverage is not measured. Ends with status 1 after findings. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "mutate.h"
#include "tests/support.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FINDINGS_MOST = 50, TICKS = 5, LEAK_CHECK_EVERY = 64, STATUS_LEAK = 23 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* What a target, or a sanitizer, may have. */
#pragma weak LLVMFuzzerInitialize
#pragma weak LLVMFuzzerCustomMutator
#pragma weak LLVMFuzzerCustomCrossOver
#pragma weak __lsan_do_recoverable_leak_check
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t nother, uint8_t *out, size_t most, unsigned seed);
int __lsan_do_recoverable_leak_check(void);
const char *__asan_default_options(void);

/* Sanitizers print their stack on abort too; little is kept of freed memory, so that what a
 * process holds says something about the last input. */
const char *__asan_default_options(void) {
    return "handle_abort=1:quarantine_size_mb=8:allocator_may_return_null=1";
}

typedef enum { WHY_CRASH, WHY_TIMEOUT, WHY_MEMORY, WHY_LEAK } Why;
static const char *const why_words[] = {"crash", "timeout", "oom", "leak"};

/* Seen by both processes. */
typedef struct {
    uint64_t index; /* of the input that runs */
    int ticks;      /* of the processor clock, in this input */
    Why why;
    size_t size;
    uint8_t data[];
} Shared;

typedef struct {
    uint64_t seed, runs;
    uint64_t seconds, timeout, memory, longest;
    uint64_t leak_every; /* so many inputs are run between looks for lost memory */
    const char *prefix;
    VEC(Bytes) corpus;
    Arena arena;
    Random random;
    Shared *shared;
    volatile sig_atomic_t child, stopped;
} Driver;

/* The signal handlers and the mutator of bytes have no argument of ours. */
static Driver driver;

/* ---- files ---- */

static bool file_read(Driver *d, const char *path, Bytes *bytes) {
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return false;
    }
    Text text = {.arena = &d->arena};
    char block[4096];
    text_add(&text, "");
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;) {
        text_addn(&text, block, n);
    }
    bool ok = !ferror(in);
    fclose(in);
    *bytes = (Bytes){text.at, text.len};
    return ok;
}

static int visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* In the order of their names, whatever the file system says. */
static void folder_read(Driver *d, const char *folder) {
    struct dirent **entry;
    int n = scandir(folder, &entry, visible, alphasort);
    for (int i = 0; i < n; i++) {
        const char *path = str_printf(&d->arena, "%s/%s", folder, entry[i]->d_name);
        Bytes bytes;
        if (!is_folder(path) && file_read(d, path, &bytes) && bytes.len <= d->longest) {
            VEC_PUSH(&d->arena, &d->corpus, bytes);
        }
        free(entry[i]);
    }
    if (n >= 0) {
        free(entry);
    }
}

/* The name says what the bytes are, so that the same input is kept once. */
static void save(const Driver *d) {
    const Shared *s = d->shared;
    char path[4096];
    snprintf(path, sizeof path, "%s%s-%016" PRIx64, d->prefix, why_words[s->why],
             hash_bytes(HASH_START, s->data, s->size));
    FILE *out = fopen(path, "wb");
    bool ok = out && fwrite(s->data, 1, s->size, out) == s->size;
    if (!out || (fclose(out) | !ok)) {
        perror(path);
    }
    fprintf(stderr, "driver: %s with input %" PRIu64 " of seed %" PRIu64 ", saved as %s\n",
            why_words[s->why], s->index, d->seed, path);
}

/* ---- inputs ---- */

/* Bytes, for targets without a mutator of their own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) {
    Random *r = &driver.random;
    if (size > most) {
        size = most;
    }
    uint64_t kind = random_below(r, size > 0 ? 6 : 1);
    size_t at = size > 0 ? random_below(r, size) : 0, n = 1 + random_below(r, 8);
    static const uint8_t edge[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '"', '-', '0', '9', ','};
    switch (kind) {
    case 0: /* put in */
        n = size + n > most ? most - size : n;
        memmove(data + at + n, data + at, size - at);
        for (size_t i = 0; i < n; i++) {
            data[at + i] = (uint8_t)random_below(r, 256);
        }
        return size + n;
    case 1: /* lost */
        n = at + n > size ? size - at : n;
        memmove(data + at, data + at + n, size - at - n);
        return size - n;
    case 2: data[at] ^= (uint8_t)(1u << random_below(r, 8)); break;
    case 3: data[at] = edge[random_below(r, sizeof edge)]; break;
    case 4: { /* copied to another place */
        size_t from = random_below(r, size);
        n = at + n > size ? size - at : n;
        n = from + n > size ? size - from : n;
        memmove(data + at, data + from, n);
        break;
    }
    default: data[at] = (uint8_t)(data[at] + random_below(r, 17) - 8); break;
    }
    return size;
}

static size_t cross(const Driver *d, Bytes a, Bytes b, uint8_t *out, unsigned seed) {
    const uint8_t *x = (const uint8_t *)a.at, *y = (const uint8_t *)b.at;
    if (LLVMFuzzerCustomCrossOver) {
        return LLVMFuzzerCustomCrossOver(x, a.len, y, b.len, out, d->longest, seed);
    }
    Random *r = &driver.random;
    size_t head = random_below(r, a.len + 1), tail = random_below(r, b.len + 1);
    tail = head + tail > d->longest ? d->longest - head : tail;
    memcpy(out, x, head);
    memcpy(out + head, y + b.len - tail, tail);
    return head + tail;
}

/* Input `index` of the seed, into shared memory. */
static void input_make(Driver *d, uint64_t index) {
    Shared *s = d->shared;
    d->random = random_start(d->seed ^ hash_bytes(HASH_START, &index, sizeof index));
    Random *r = &d->random;
    Bytes text = d->corpus.at[random_below(r, (uint64_t)d->corpus.count)];
    memcpy(s->data, text.at, text.len);
    s->size = text.len;
    if (random_below(r, 4) == 0) {
        Bytes other = d->corpus.at[random_below(r, (uint64_t)d->corpus.count)];
        s->size = cross(d, text, other, s->data, (unsigned)random_below(r, 1u << 31));
    }
    for (uint64_t n = random_below(r, 4); n > 0; n--) {
        unsigned seed = (unsigned)random_below(r, 1u << 31);
        s->size = LLVMFuzzerCustomMutator
                      ? LLVMFuzzerCustomMutator(s->data, s->size, d->longest, seed)
                      : LLVMFuzzerMutate(s->data, s->size, d->longest);
    }
}

/* ---- the child ---- */

static uint64_t megabytes_held(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss / 1024;
}

static void check_memory(void) {
    if (megabytes_held() > driver.memory) {
        driver.shared->why = WHY_MEMORY;
        abort();
    }
}

static void tick(int signal) {
    (void)signal;
    check_memory();
    if (++driver.shared->ticks > (int)driver.timeout * TICKS) {
        driver.shared->why = WHY_TIMEOUT;
        abort();
    }
}

static void limits_set(const Driver *d) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    struct sigaction act = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &act, NULL);
    struct itimerval every = {.it_interval = {0, 1000000 / TICKS},
                              .it_value = {0, 1000000 / TICKS}};
    setitimer(ITIMER_PROF, &every, NULL);
    struct rlimit core = {0, 0};
    setrlimit(RLIMIT_CORE, &core);
#ifndef SANITIZED
    struct rlimit memory = {d->memory << 21, d->memory << 21}; /* twice: addresses, not pages */
    setrlimit(RLIMIT_AS, &memory);
#endif
    (void)d;
}

static void run_one(Driver *d) {
    Shared *s = d->shared;
    s->ticks = 0;
    s->why = WHY_CRASH;
    /* A copy of its own size: reading past the end is seen. */
    uint8_t *data = malloc(s->size ? s->size : 1);
    memcpy(data, s->data, s->size);
    LLVMFuzzerTestOneInput(data, s->size);
    free(data);
    check_memory();
}

static bool leaks(void) {
    return __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check();
}

/* Runs inputs from `first` on; does not come back. */
static void child(Driver *d, uint64_t first, time_t end) {
    limits_set(d);
    Shared *s = d->shared;
    for (s->index = first; s->index < d->runs && (end == 0 || time(NULL) < end); s->index++) {
        input_make(d, s->index);
        run_one(d);
        s->why = WHY_LEAK;
        if (s->index % d->leak_every == d->leak_every - 1 && leaks()) {
            _exit(STATUS_LEAK);
        }
    }
    _exit(leaks() ? STATUS_LEAK : 0);
}

/* ---- the parent ---- */

/* Asked to end: the child goes, and the counts are printed. */
static void stop(int signal) {
    (void)signal;
    driver.stopped = 1;
    if (driver.child > 0) {
        kill((pid_t)driver.child, SIGKILL);
    }
}

static int fuzz(Driver *d) {
    struct sigaction act = {.sa_handler = stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    time_t start = time(NULL), end = d->seconds ? start + (time_t)d->seconds : 0;
    uint64_t next = 0;
    int findings = 0;
    for (bool over = false; !over && findings < FINDINGS_MOST;) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            child(d, next, end);
        }
        d->child = (sig_atomic_t)pid;
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) < 0) {
            perror("driver");
            return 2;
        }
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code == STATUS_LEAK && d->leak_every > 1) {
            /* One of the last inputs: they are run again, with a look after each. */
            uint64_t back = d->shared->index % d->leak_every;
            next = d->shared->index - back > next ? d->shared->index - back : next;
            d->leak_every = 1;
            continue;
        }
        over = code == 0 || d->stopped;
        next = d->shared->index + !over;
        if (!over) {
            findings++;
            save(d);
        }
    }
    printf("driver: seed %" PRIu64 " executions %" PRIu64 " seconds %ld findings %d\n", d->seed,
           next, (long)(time(NULL) - start), findings);
    return findings > 0;
}

/* Inputs as they are, in this process. */
static int reproduce(Driver *d, char **path, int n) {
    limits_set(d);
    for (int i = 0; i < n; i++) {
        Bytes bytes;
        if (!file_read(d, path[i], &bytes)) {
            return 2;
        }
        if (bytes.len > d->longest) {
            fprintf(stderr, "driver: %s is longer than -max_len\n", path[i]);
            return 2;
        }
        fprintf(stderr, "driver: %s, %zu bytes\n", path[i], bytes.len);
        memcpy(d->shared->data, bytes.at, bytes.len);
        d->shared->size = bytes.len;
        run_one(d);
    }
    fprintf(stderr, "driver: %d inputs, no fault\n", n);
    arena_free(&d->arena);
    return 0;
}

static bool option(Driver *d, const char *text) {
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {{"-seed=", &d->seed},       {"-runs=", &d->runs},
                   {"-timeout=", &d->timeout}, {"-rss_limit_mb=", &d->memory},
                   {"-max_len=", &d->longest}, {"-max_total_time=", &d->seconds}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        size_t n = strlen(numbers[i].name);
        if (strncmp(text, numbers[i].name, n) == 0) {
            char *end;
            *numbers[i].value = strtoull(text + n, &end, 10);
            return end != text + n && *end == '\0';
        }
    }
    static const char prefix[] = "-artifact_prefix=";
    if (strncmp(text, prefix, sizeof prefix - 1) == 0) {
        d->prefix = text + sizeof prefix - 1;
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    Driver *d = &driver;
    *d = (Driver){.seed = 1, .runs = UINT64_MAX, .timeout = 20, .memory = 2048};
    d->longest = 65536;
    d->leak_every = LEAK_CHECK_EVERY;
    d->prefix = "./";
    int npath = 0, nfolder = 0;
    if (LLVMFuzzerInitialize) {
        LLVMFuzzerInitialize(&argc, &argv);
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            argv[npath++] = argv[i];
        } else if (!option(d, argv[i])) {
            fprintf(stderr, "driver: unknown option '%s'\n", argv[i]);
            return 2;
        }
    }
    for (int i = 0; i < npath; i++) {
        if (is_folder(argv[i])) {
            folder_read(d, argv[i]);
            nfolder++;
        }
    }
    d->shared = mmap(NULL, sizeof *d->shared + d->longest, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (d->shared == MAP_FAILED) {
        perror("driver");
        return 2;
    }
    if (nfolder == 0) {
        return reproduce(d, argv, npath);
    }
    if (d->corpus.count == 0 || nfolder < npath) {
        fputs("driver: give files, or folders with files to begin with\n", stderr);
        return 2;
    }
    int code = fuzz(d);
    arena_free(&d->arena);
    return code;
}
