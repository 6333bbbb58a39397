/* base: arenas, strings, growing texts, hashes and the internal-fault exit.
 *
 * An arena is a list of zeroed chunks; the newest one serves requests until it is full. A large
 * block has a chunk of its own, which can go alone; nothing else is handed back before the whole
 * arena goes, so memory past the mark of a chunk is always zero and a block at the mark can grow
 * where it stands.
 * Needs nothing, gives memory that lives as long as its arena, changes no values. */
#include "compiler/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct ArenaChunk {
    ArenaChunk *next, *before;
    size_t size, used;
    max_align_t data[];
};

enum {
    CHUNK_DEFAULT = 64 * 1024,
    BLOCK_LARGE = CHUNK_DEFAULT,
    DISTANCE_LONGEST = 63,
    TEXT_LARGE = 1 << 20
};

/* In a build with -DMDLC_HOSTILE_ARENAS every block is a chunk of its own, so that a sanitizer sees
 * where it ends, and what is left behind or given back is overwritten. */
#ifdef MDLC_HOSTILE_ARENAS
enum { HOSTILE = 1 };
#else
enum { HOSTILE = 0 };
#endif

static size_t round_up(size_t bytes) {
    size_t unit = _Alignof(max_align_t);
    return (bytes + unit - 1) / unit * unit;
}

/* A fuzzer needs the stack of a fault, and a debugger the place. */
static MDLC_NORETURN void end(int code) {
#ifdef MDLC_FAULT_ABORTS
    (void)code;
    abort();
#else
    exit(code);
#endif
}

static void exit_out_of_memory(size_t bytes) {
    struct rusage used;
    long peak = getrusage(RUSAGE_SELF, &used) == 0 ? used.ru_maxrss / 1024 : 0;
    fprintf(stderr,
            "mdlc: error: out of memory: %zu bytes are wanted beside %ld MiB; the model is too "
            "large for the memory there is, or for its limit (ulimit -v)\n",
            bytes, peak);
    end(EXIT_SOURCE);
}

static ArenaChunk *chunk_new(size_t size) {
    ArenaChunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk)
        exit_out_of_memory(size);
    chunk->size = size;
    return chunk;
}

/* Behind `before`, or as the newest one. */
static void chunk_link(Arena *arena, ArenaChunk *before, ArenaChunk *chunk) {
    ArenaChunk **at = before ? &before->next : &arena->head;
    chunk->before = before;
    chunk->next = *at;
    if (*at)
        (*at)->before = chunk;
    *at = chunk;
}

static void chunk_free(ArenaChunk *chunk) {
    memset(chunk->data, 0xdd, HOSTILE ? chunk->size : 0);
    free(chunk);
}

void *arena_alloc(Arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4)
        exit_out_of_memory(bytes);
    size_t need = round_up(bytes ? bytes : 1);
    ArenaChunk *chunk = arena->head;
    if (HOSTILE || need >= BLOCK_LARGE) { /* the newest chunk goes on serving */
        chunk = chunk_new(need);
        chunk_link(arena, arena->head, chunk);
    } else if (!chunk || chunk->size - chunk->used < need) {
        size_t size = round_up(arena->chunk_bytes ? arena->chunk_bytes : CHUNK_DEFAULT);
        chunk = chunk_new(size < need ? need : size);
        chunk_link(arena, NULL, chunk);
    }
    void *block = (char *)chunk->data + chunk->used;
    chunk->used += need;
    arena->used_bytes += need;
    return block;
}

void arena_drop(Arena *arena, void *block, size_t bytes) {
    size_t need = round_up(bytes ? bytes : 1);
    if (!block || (!HOSTILE && need < BLOCK_LARGE))
        return;
    ArenaChunk *chunk = (ArenaChunk *)((char *)block - offsetof(ArenaChunk, data));
    *(chunk->before ? &chunk->before->next : &arena->head) = chunk->next;
    if (chunk->next)
        chunk->next->before = chunk->before;
    arena->used_bytes -= need;
    chunk_free(chunk);
}

void *arena_grow(Arena *arena, void *old, size_t old_bytes, size_t bytes) {
    if (old && bytes <= old_bytes)
        return old;
    ArenaChunk *chunk = arena->head;
    size_t old_need = round_up(old_bytes ? old_bytes : 1), need = round_up(bytes);
    bool last = old && chunk && (char *)old + old_need == (char *)chunk->data + chunk->used;
    if (last && need < BLOCK_LARGE && chunk->size - chunk->used >= need - old_need) {
        chunk->used += need - old_need;
        arena->used_bytes += need - old_need;
        return old;
    }
    void *block = arena_alloc(arena, bytes);
    if (old)
        memcpy(block, old, old_bytes);
    arena_drop(arena, old, old_bytes);
    return block;
}

void arena_free(Arena *arena) {
    while (arena->head) {
        ArenaChunk *chunk = arena->head;
        arena->head = chunk->next;
        chunk_free(chunk);
    }
    arena->used_bytes = 0;
}

void arena_adopt(Arena *arena, Arena *from) {
    while (from->head) { /* behind the newest chunk, which goes on serving */
        ArenaChunk *chunk = from->head;
        from->head = chunk->next;
        chunk_link(arena, arena->head, chunk);
    }
    arena->used_bytes += from->used_bytes;
    from->used_bytes = 0;
}

char *str_ndup(Arena *arena, const char *s, size_t n) {
    char *copy = arena_alloc(arena, n + 1);
    if (n)
        memcpy(copy, s, n);
    return copy;
}

char *str_dup(Arena *arena, const char *s) {
    return str_ndup(arena, s, strlen(s));
}

char *str_vprintf(Arena *arena, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        BUG("bad format '%s'", fmt);
    char *s = arena_alloc(arena, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *str_printf(Arena *arena, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *s = str_vprintf(arena, fmt, ap);
    va_end(ap);
    return s;
}

size_t utf8_length(const char *p, size_t left) {
    unsigned char c = (unsigned char)*p;
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (n == 0 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

bool str_eq(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int min_int(int a, int b) {
    return a < b ? a : b;
}

/* Three rows of the usual table are enough: a swap looks two rows back. */
int str_distance(const char *a, const char *b, int limit) {
    size_t la = strlen(a), lb = strlen(b);
    if (la > DISTANCE_LONGEST || lb > DISTANCE_LONGEST)
        return str_eq(a, b) ? 0 : limit + 1;
    int row[3][DISTANCE_LONGEST + 1];
    for (size_t j = 0; j <= lb; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = min_int(best, min_int(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = min_int(best, before[j - 2] + 1);
            now[j] = best;
        }
    }
    return min_int(row[la % 3][lb], limit + 1);
}

static void text_reserve(Text *text, size_t more) {
    size_t need = text->len + more + 1;
    if (need <= text->capacity)
        return;
    size_t capacity = text->capacity ? 2 * text->capacity : 128;
    if (capacity > TEXT_LARGE)
        capacity = need + need / 4;
    if (capacity < need)
        capacity = need;
    text->at = arena_grow(text->arena, text->at, text->capacity, capacity);
    text->capacity = capacity;
}

void text_addn(Text *text, const char *s, size_t n) {
    text_reserve(text, n);
    if (n)
        memcpy(text->at + text->len, s, n);
    text->len += n;
    text->at[text->len] = '\0';
}

void text_prepend(Text *text, const char *s, size_t n) {
    text_reserve(text, n);
    memmove(text->at + n, text->at, text->len + 1);
    memcpy(text->at, s, n);
    text->len += n;
}

void text_add(Text *text, const char *s) {
    text_addn(text, s, strlen(s));
}

void text_vprintf(Text *text, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        BUG("bad format '%s'", fmt);
    text_reserve(text, (size_t)n);
    vsnprintf(text->at + text->len, (size_t)n + 1, fmt, ap);
    text->len += (size_t)n;
}

void text_printf(Text *text, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(text, fmt, ap);
    va_end(ap);
}

uint64_t hash_bytes(uint64_t hash, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* The final NUL is hashed too, so that chained strings do not run together. */
uint64_t hash_str(uint64_t hash, const char *s) {
    return hash_bytes(hash, s, strlen(s) + 1);
}

void bug_at(const char *file, int line, const char *fmt, ...) {
    fflush(stdout);
    fprintf(stderr, "mdlc: internal fault at %s:%d: ", file, line);
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\nThis is a fault of mdlc, not of the model; please report it.\n", stderr);
    end(EXIT_BUG);
}
