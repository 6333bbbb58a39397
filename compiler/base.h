/* base: arenas, strings, vectors and the internal-fault macro. Everything else builds on these.
 *
 * Ownership: an Arena owns all that is allocated from it; nothing in lang, passes or emit is freed
 * one by one but large tables that have grown. A stage result lives in the arena that the caller
 * named; scratch memory of a pass lives in an arena that the pass opens and closes. */
#ifndef MDLC_COMPILER_BASE_H
#define MDLC_COMPILER_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MDLC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MDLC_NORETURN __attribute__((noreturn))
#else
#define MDLC_PRINTF(fmt, args)
#define MDLC_NORETURN
#endif

typedef struct ArenaChunk ArenaChunk;
typedef struct {
    ArenaChunk *head;
    size_t chunk_bytes; /* size of a fresh chunk; 0 means the default */
    size_t used_bytes;  /* sum of what was handed out, for --stats */
} Arena;

/* Memory is zeroed and aligned for any type. Exits with a message when the system has none. */
void *arena_alloc(Arena *arena, size_t bytes);
/* Grows the block `old` of `old_bytes` to `bytes`, in place when it is the last one handed out;
 * else `old` is dropped. */
void *arena_grow(Arena *arena, void *old, size_t old_bytes, size_t bytes);
/* Nobody needs this block (or NULL) of the arena any more: a large one is given back at once. */
void arena_drop(Arena *arena, void *block, size_t bytes);
void arena_free(Arena *arena); /* gives everything back; the arena may be used again */
/* All that `from` holds belongs to `arena` from now on; `from` is empty. */
void arena_adopt(Arena *arena, Arena *from);

#define ARENA_NEW(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define ARENA_ARRAY(arena, T, n) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(n)))

/* Strings: NUL-terminated, arena-owned, compared with strcmp. */
char *str_dup(Arena *arena, const char *s);
char *str_ndup(Arena *arena, const char *s, size_t n);
char *str_printf(Arena *arena, const char *fmt, ...) MDLC_PRINTF(2, 3);
char *str_vprintf(Arena *arena, const char *fmt, va_list ap) MDLC_PRINTF(2, 0);
bool str_eq(const char *a, const char *b);
/* Damerau-Levenshtein distance, cut off at `limit` + 1. */
int str_distance(const char *a, const char *b, int limit);

/* Bytes of the UTF-8 character at p, 0 if there is none. */
size_t utf8_length(const char *p, size_t left);

/* A growing array in an arena: struct { T *at; int count, capacity; } */
#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        int count, capacity;                                                                       \
    }
#define VEC_PUSH(arena, vec, item) VEC_PUSH_FROM(arena, vec, item, 8)
/* With room for `first` items at first: of large items, few, one after the other. */
#define VEC_PUSH_FROM(arena, vec, item, first)                                                     \
    do {                                                                                           \
        if ((vec)->count == (vec)->capacity) {                                                     \
            int vec_cap_ = (vec)->capacity ? 2 * (vec)->capacity : (first);                        \
            (vec)->at =                                                                            \
                arena_grow((arena), (vec)->at, sizeof *(vec)->at * (size_t)(vec)->capacity,        \
                           sizeof *(vec)->at * (size_t)vec_cap_);                                  \
            (vec)->capacity = vec_cap_;                                                            \
        }                                                                                          \
        (vec)->at[(vec)->count++] = (item);                                                        \
    } while (0)

/* A growing text in an arena. */
typedef struct {
    Arena *arena;
    char *at; /* always NUL-terminated once something was added */
    size_t len, capacity;
} Text;
void text_add(Text *text, const char *s);
void text_addn(Text *text, const char *s, size_t n);
void text_prepend(Text *text, const char *s, size_t n);
void text_printf(Text *text, const char *fmt, ...) MDLC_PRINTF(2, 3);
void text_vprintf(Text *text, const char *fmt, va_list ap) MDLC_PRINTF(2, 0);

/* FNV-1a, 64 bits; `hash` chains calls, start with HASH_START. Tables start with HASH_TABLE: what
 * they are asked must not depend on it. */
#define HASH_START 0xcbf29ce484222325u
#ifndef HASH_TABLE
#define HASH_TABLE HASH_START
#endif
uint64_t hash_bytes(uint64_t hash, const void *data, size_t n);
uint64_t hash_str(uint64_t hash, const char *s);
/* Another hash, of one number and faster: for tables. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Sizes that decide how something is computed, never what: thresholds, blocks, chunks. A build with
 * -DMDLC_ODD_SIZES takes small odd ones, so that small tensors reach each path and each edge. */
#ifdef MDLC_ODD_SIZES
enum { ODD_SIZES = 1 };
#else
enum { ODD_SIZES = 0 };
#endif
#define TUNED(usual, odd) (ODD_SIZES ? (odd) : (usual))

/* Most terms of a sum of floats that are added one to another; docs/decisions/0013-sums.md. */
enum { SUM_CHAIN = TUNED(1024, 5) };

/* A fault of the compiler itself: prints where and exits 70. Never for what a user wrote. */
void bug_at(const char *file, int line, const char *fmt, ...) MDLC_PRINTF(3, 4) MDLC_NORETURN;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

#define EXIT_OK 0
#define EXIT_SOURCE 1 /* error in the model text */
#define EXIT_USAGE 2  /* wrong command line */
#define EXIT_BUDGET 3 /* the budget cannot be met */
#define EXIT_FILE 4   /* a file could not be read or written */
#define EXIT_BUG 70   /* fault of the compiler */

#endif
