/* SPDX-License-Identifier: 0BSD */
/* rng: random numbers without a state, Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011).
 *
 * A draw is a function of (key, element index); a key is made of (seed, site, counter) and may be
 * folded with loop indices. Bits and uniform f32: element i is word i mod 4 of block i / 4; 53 bits
 * and normals use words of block i. So loops over elements vectorise and any part of a tensor can
 * be drawn again. Needs md.h and math.h, gives pure functions. */
#ifndef MD_RNG_H
#define MD_RNG_H

#include "runtime/math.h"
#include "runtime/md.h"

typedef struct {
    uint32_t w[4];
} md_block;

/* The two key words of Philox and the upper half of its counter; the lower half is the element. */
typedef struct {
    uint32_t k0, k1, c2, c3;
} md_key;

/* Ten rounds on one block. Straight-line, 32 x 32 -> 64 products only. */
MD_INLINE md_block md_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                             uint32_t k1) {
    const uint64_t low = UINT32_C(0xFFFFFFFF);
    uint64_t x0 = c0, x1 = c1, x2 = c2, x3 = c3;
#define MD_PHILOX_ROUND                                                                            \
    {                                                                                              \
        uint64_t p0 = x0 * UINT32_C(0xD2511F53);                                                   \
        uint64_t p1 = x2 * UINT32_C(0xCD9E8D57);                                                   \
        x0 = (p1 >> 32) ^ x1 ^ k0;                                                                 \
        x2 = (p0 >> 32) ^ x3 ^ k1;                                                                 \
        x1 = p1 & low;                                                                             \
        x3 = p0 & low;                                                                             \
        k0 += UINT32_C(0x9E3779B9);                                                                \
        k1 += UINT32_C(0xBB67AE85);                                                                \
    }
    /* clang-format off */
    MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND
    MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND MD_PHILOX_ROUND
    /* clang-format on */
#undef MD_PHILOX_ROUND
    const md_block b = {{(uint32_t)x0, (uint32_t)x1, (uint32_t)x2, (uint32_t)x3}};
    return b;
}

/* A bijective 64-bit mix (the finaliser of splitmix64): every input bit reaches every output
 * bit. */
MD_FN uint64_t md_mix64(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The key of one draw: `seed` of the run, `site` of the draw in the program, `counter` of the step.
 * The three pass through Philox itself, so that nearby values give unrelated keys. */
MD_FN md_key md_key_make(uint64_t seed, uint64_t site, uint64_t counter) {
    uint64_t s = md_mix64(seed + UINT64_C(0x9E3779B97F4A7C15));
    md_block b = md_philox((uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)site,
                           (uint32_t)(site >> 32), (uint32_t)s, (uint32_t)(s >> 32));
    const md_key k = {b.w[0], b.w[1], b.w[2], b.w[3]};
    return k;
}

/* The key of iteration `index` (a loop index, a micro-batch, a layer); folding is ordered. */
MD_FN md_key md_key_fold(md_key key, uint64_t index) {
    md_block b = md_philox((uint32_t)index, (uint32_t)(index >> 32), key.c2,
                           key.c3 ^ UINT32_C(0x80000000), key.k0, key.k1);
    const md_key k = {b.w[0], b.w[1], b.w[2], b.w[3]};
    return k;
}

MD_INLINE md_block md_rand_block(md_key key, uint64_t i) {
    return md_philox((uint32_t)i, (uint32_t)(i >> 32), key.c2, key.c3, key.k0, key.k1);
}

/* 32 random bits: a block serves four elements in a row. */
MD_INLINE uint32_t md_rand_bits(md_key key, uint64_t i) {
    return md_rand_block(key, i >> 2).w[i & 3];
}

/* 24 bits in [0, 1); the conversion goes through int32, which every vector unit has. */
MD_INLINE float md_rand_unit_f32(uint32_t bits) {
    return (float)(int32_t)(bits >> 8) * (1.0f / 16777216.0f);
}

MD_INLINE float md_rand_uniform_f32(md_key key, uint64_t i) {
    return md_rand_unit_f32(md_rand_bits(key, i));
}

/* out[k] = md_rand_uniform_f32(key, first + k), k < n: each block is computed once. */
MD_FN void md_rand_fill_f32(md_key key, uint64_t first, int64_t n, float *MD_RESTRICT out) {
    int64_t k = 0;
    for (; k < n && ((first + (uint64_t)k) & 3) != 0; k++) {
        out[k] = md_rand_uniform_f32(key, first + (uint64_t)k);
    }
    const int64_t blocks = (n - k) / 4;
    const uint64_t block = (first + (uint64_t)k) >> 2;
    float *MD_RESTRICT four = out + k;
    for (int64_t b = 0; b < blocks; b++) {
        const md_block w = md_rand_block(key, block + (uint64_t)b);
        four[4 * b + 0] = md_rand_unit_f32(w.w[0]);
        four[4 * b + 1] = md_rand_unit_f32(w.w[1]);
        four[4 * b + 2] = md_rand_unit_f32(w.w[2]);
        four[4 * b + 3] = md_rand_unit_f32(w.w[3]);
    }
    for (k += 4 * blocks; k < n; k++) {
        out[k] = md_rand_uniform_f32(key, first + (uint64_t)k);
    }
}

/* 53 bits in [0, 1). */
MD_INLINE double md_rand_uniform_f64(md_key key, uint64_t i) {
    md_block b = md_rand_block(key, i);
    double high = (double)(int32_t)(b.w[0] >> 5); /* 27 bits */
    double low = (double)(int32_t)(b.w[1] >> 6);  /* 26 bits */
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

/* Standard normal by Box-Muller, the cosine branch: words 0 and 1. The radius uses (0, 1], so the
 * value is never infinite; the largest is sqrt(48 ln 2) = 5.77. */
MD_INLINE float md_rand_normal_f32(md_key key, uint64_t i) {
    md_block b = md_rand_block(key, i);
    float u = (float)((int32_t)(b.w[0] >> 8) + 1) * (1.0f / 16777216.0f);
    float v = (float)(int32_t)(b.w[1] >> 8) * (1.0f / 16777216.0f);
    return sqrtf(-2.0f * md_logf(u)) * md_cos_turnf(v);
}

/* The same with 53 bits each: words 0, 1 and 2, 3; the largest value is 8.57. */
MD_INLINE double md_rand_normal_f64(md_key key, uint64_t i) {
    md_block b = md_rand_block(key, i);
    double u = (double)(int32_t)(b.w[0] >> 5) * 67108864.0 + (double)(int32_t)(b.w[1] >> 6) + 1.0;
    double v = (double)(int32_t)(b.w[2] >> 5) * 67108864.0 + (double)(int32_t)(b.w[3] >> 6);
    return sqrt(-2.0 * log(u * (1.0 / 9007199254740992.0))) *
           cos(v * (6.283185307179586477 / 9007199254740992.0));
}

/* Position i of a keyed permutation of 0 .. n-1 that is stored nowhere: a Feistel network over the
 * bits of n - 1, walked again while it lands outside (fewer than two rounds of it on average).
 * Needs i < n; a bijection in i for every key. */
MD_FN uint64_t md_permute(uint64_t key, uint64_t n, uint64_t i) {
    unsigned bits = 0;
    while (bits < 64 && (n - 1) >> bits != 0) {
        bits++;
    }
    unsigned half = bits / 2;
    uint64_t low_mask = (UINT64_C(1) << (bits - half)) - 1; /* bits - half <= 32 */
    uint64_t high_mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t low = i & low_mask;
        uint64_t high = i >> (bits - half);
        for (uint64_t round = 0; round < 8; round += 2) {
            high ^= md_mix64(md_mix64(key + round) ^ low) & high_mask;
            low ^= md_mix64(md_mix64(key + round + 1) ^ high) & low_mask;
        }
        i = high << (bits - half) | low;
    } while (i >= n);
    return i;
}

#endif
