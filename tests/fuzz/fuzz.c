/* fuzz: see the header. Also the mutators that libFuzzer and driver.c take instead of their own: of
 * tokens, unless the target brings others. */
#include "fuzz.h"

#include "dictionary.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MOST = 64, CHANGES_MOST = 4 };

void fuzz_finding(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("finding: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

static int files_open(void) {
    int count = 0;
    for (int fd = 0; fd < FILES_MOST; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

void fuzz_open(Fuzz *f, const uint8_t *data, size_t size) {
    memset(f, 0, sizeof *f);
    f->files = files_open();
    Compile *c = &f->c;
    diag_open(&c->diag, &c->arena, open_memstream(&f->messages, &f->nmessage));
    c->out = open_memstream(&f->printed, &f->nprinted);
    c->opt = (Options){.input = "fuzz.mdl", .output = "-", .float_type = TY_F32, .budget = -1};
    c->opt.threads = 8;
    c->opt.calls = 1;
    f->text = str_ndup(&c->arena, (const char *)data, size);
    f->length = size;
}

void fuzz_ended(Fuzz *f) {
    fclose(f->c.diag.out);
    fclose(f->c.out);
    f->c.diag.out = f->c.out = NULL;
}

void fuzz_close(Fuzz *f) {
    if (f->c.out)
        fuzz_ended(f);
    bool said = strstr(f->messages, "error: ") != NULL;
    if (said != (f->c.diag.errors > 0))
        fuzz_finding("%d errors, and the messages are:\n%s", f->c.diag.errors, f->messages);
    free(f->messages);
    free(f->printed);
    arena_free(&f->c.arena);
    if (files_open() != f->files)
        fuzz_finding("%d files were open, now %d", f->files, files_open());
}

/* ---- mutators ---- */

#pragma weak LLVMFuzzerCustomMutator
#pragma weak LLVMFuzzerCustomCrossOver
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t nother, uint8_t *out, size_t most, unsigned seed);

/* Made once in a process. */
static const Words *dictionary(void) {
    static Arena arena;
    static Words words;
    if (words.count == 0)
        words = dictionary_make(&arena);
    return &words;
}

/* The lexer's view of an input: as far as the first NUL byte. */
static Bytes view(Arena *arena, const uint8_t *data, size_t size) {
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    size_t n = nul ? (size_t)(nul - data) : size;
    return (Bytes){str_ndup(arena, (const char *)data, n), n};
}

static size_t give(Arena *arena, Bytes result, uint8_t *out, size_t most) {
    size_t n = result.len < most ? result.len : most;
    memcpy(out, result.at, n);
    arena_free(arena);
    return n;
}

/* One change in eight is of bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    Random r = random_start(seed);
    if (size == 0 || random_below(&r, 8) == 0)
        return LLVMFuzzerMutate(data, size, most);
    Arena arena = {0};
    int changes = 1 + (int)random_below(&r, CHANGES_MOST);
    Bytes text = view(&arena, data, size), none = {NULL, 0};
    return give(&arena, mutate(&arena, &r, text, none, dictionary(), changes), data, most);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t nother, uint8_t *out, size_t most, unsigned seed) {
    Random r = random_start(seed);
    Arena arena = {0};
    int changes = 1 + (int)random_below(&r, CHANGES_MOST);
    Bytes text = view(&arena, data, size), more = view(&arena, other, nother);
    return give(&arena, mutate(&arena, &r, text, more, dictionary(), changes), out, most);
}
