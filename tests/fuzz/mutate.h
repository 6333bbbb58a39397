/* mutate: damaged copies of model texts, token by token. */
#ifndef MDLC_TESTS_MUTATE_H
#define MDLC_TESTS_MUTATE_H

#include "compiler/base.h"

/* xorshift64*; the state is not 0. */
typedef struct {
    uint64_t state;
} Random;
Random random_start(uint64_t seed);
uint64_t random_below(Random *r, uint64_t n);

typedef struct {
    const char *at;
    size_t len;
} Bytes;
typedef VEC(Bytes) Words;

/* Applies `changes` to `text`: tokens are lost, doubled, exchanged, moved, replaced by others of
 * the text, of `other` (at == NULL: none) or of `words` (may be NULL); numbers become extreme ones;
 * single bytes change. Neither text holds NUL bytes. The result is in `arena`. */
Bytes mutate(Arena *arena, Random *r, Bytes text, Bytes other, const Words *words, int changes);

#endif
