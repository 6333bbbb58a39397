/* SPDX-License-Identifier: 0BSD */
/* order: the places of the elements of lines in ascending or descending order.
 *
 * An element becomes a key, an unsigned integer that is less where the element comes first; NaN is
 * the last key either way round, -0 has the key of 0. Equal keys keep the order in which they
 * stand, so there is one order, whatever finds it:
 *   - short lines: the place of an element is the number of those in front of it, all compared;
 *   - other ones: digit by digit from the last one (LSD radix sort), a digit that is the same
 *     everywhere left out. Keys go with their places as pairs;
 *   - a line by several threads: each counts the digits of its stretch, and puts its pairs behind
 *     those with less digits and those with that digit of the stretches in front of it;
 *   - the first few: blocks of the line in which some key is below the last of the best ones so
 *     far are looked at; a few best ones are kept in order, more in a list that is cut down, by
 *     digits from the first one, whenever it is full.
 * A key of up to 32 bits and its place are one word, of 64 bits two: `wide`, a constant in each of
 * these functions. Nothing is allocated: work is that of md_sort_*_bytes (sort_plan.h).
 * Needs md.h, team.h, sort_plan.h; holds no state. */
#ifndef MD_SORT_H
#define MD_SORT_H

#include "runtime/md.h"
#include "runtime/sort_plan.h"
#include "runtime/team.h"

/* --- keys ------------------------------------------------------------------------------------- */

/* At the end of a turn: so short a loop becomes no vectors. */
#if defined(__GNUC__)
#define MD_SORT_SCALAR __asm__ volatile("");
#else
#define MD_SORT_SCALAR
#endif

/* The keys of `n` elements, as words of 32 or 64 bits. */
typedef void (*md_sort_keys_fn)(void *keys, const void *x, int64_t n, int descending);

/* `type` elements, read as `word`s x of them, to keys; `last`: whether x comes last either way. */
#define MD_SORT_KEYS(name, type, word, made, last)                                                 \
    MD_NOINLINE void name(void *keys, const void *from, int64_t n, int descending) {               \
        word *MD_RESTRICT to = (word *)keys;                                                       \
        const type *MD_RESTRICT of = (const type *)from;                                           \
        const word turn = descending ? (word)-1 : 0;                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type x = of[i];                                                                  \
            to[i] = (last) ? (word)-1 : (word)((made) ^ turn);                                     \
        }                                                                                          \
    }

/* Of a number's bits: those of negative ones are turned, -0 is 0. */
MD_INLINE uint32_t md_sort_key_f32(float x) {
    uint32_t bits;
    x = x == 0 ? 0.0f : x;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint32_t) - (int32_t)(bits >> 31) | UINT32_C(0x80000000));
}

MD_INLINE uint64_t md_sort_key_f64(double x) {
    uint64_t bits;
    x = x == 0 ? 0.0 : x;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((uint64_t) - (int64_t)(bits >> 63) | UINT64_C(0x8000000000000000));
}

MD_SORT_KEYS(md_sort_keys_f32, float, uint32_t, md_sort_key_f32(x), x != x)

MD_SORT_KEYS(md_sort_keys_f64, double, uint64_t, md_sort_key_f64(x), x != x)

MD_SORT_KEYS(md_sort_keys_i8, int8_t, uint32_t, (uint32_t)(x + 128), 0)

MD_SORT_KEYS(md_sort_keys_i16, int16_t, uint32_t, (uint32_t)(x + 32768), 0)

MD_SORT_KEYS(md_sort_keys_i32, int32_t, uint32_t, (uint32_t)x ^ UINT32_C(0x80000000), 0)

MD_SORT_KEYS(md_sort_keys_i64, int64_t, uint64_t, (uint64_t)x ^ UINT64_C(0x8000000000000000), 0)

MD_SORT_KEYS(md_sort_keys_u8, uint8_t, uint32_t, x, 0)

MD_SORT_KEYS(md_sort_keys_u16, uint16_t, uint32_t, x, 0)

MD_SORT_KEYS(md_sort_keys_u32, uint32_t, uint32_t, x, 0)

/* --- keys and pairs --------------------------------------------------------------------------- */

MD_INLINE uint64_t md_sort_key(const void *keys, int64_t i, int wide) {
    return wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

MD_INLINE const void *md_sort_key_at(const void *keys, int64_t i, int wide) {
    return (const char *)keys + i * (wide ? 8 : 4);
}

MD_INLINE uint64_t md_sort_pair_key(const uint64_t *pair, int64_t i, int wide) {
    return wide ? pair[2 * i] : pair[i] >> 32;
}

MD_INLINE int32_t md_sort_pair_at(const uint64_t *pair, int64_t i, int wide) {
    return (int32_t)(wide ? pair[2 * i + 1] : pair[i] & UINT32_C(0xffffffff));
}

MD_INLINE void md_sort_put(uint64_t *pair, int64_t i, uint64_t key, int64_t at, int wide) {
    if (wide) {
        pair[2 * i] = key;
        pair[2 * i + 1] = (uint64_t)at;
    } else {
        pair[i] = key << 32 | (uint64_t)at;
    }
}

MD_INLINE void md_sort_move(uint64_t *to, int64_t k, const uint64_t *from, int64_t i, int wide) {
    if (wide) {
        to[2 * k] = from[2 * i];
        to[2 * k + 1] = from[2 * i + 1];
    } else {
        to[k] = from[i];
    }
}

/* --- short lines ------------------------------------------------------------------------------ */

/* The places by counts of those that go before; `rank` has room for n. Of a few elements each pair
 * is met once, else all elements count at once, of each other one. */
MD_INLINE void md_sort_ranked(int32_t *MD_RESTRICT out, const void *MD_RESTRICT keys,
                              int32_t *MD_RESTRICT rank, int64_t n, int64_t most, int wide) {
    if (n <= MD_SORT_PAIRS) {
        for (int64_t k = 0; k < n; k++) {
            const uint64_t key = md_sort_key(keys, k, wide);
            int32_t before = 0;
            for (int64_t i = 0; i < k; i++) {
                const int32_t first = md_sort_key(keys, i, wide) <= key;
                before += first;
                rank[i] += 1 - first;
                MD_SORT_SCALAR
            }
            rank[k] = before;
        }
    } else {
        memset(rank, 0, (size_t)n * sizeof *rank);
        for (int64_t k = 0; k < n; k++) {
            const uint64_t key = md_sort_key(keys, k, wide);
            const uint32_t low = (uint32_t)key;
            for (int64_t i = 0; i < k; i++) {
                rank[i] +=
                    wide ? key < ((const uint64_t *)keys)[i] : low < ((const uint32_t *)keys)[i];
            }
            for (int64_t i = k + 1; i < n; i++) {
                rank[i] +=
                    wide ? key <= ((const uint64_t *)keys)[i] : low <= ((const uint32_t *)keys)[i];
            }
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (rank[i] < most) {
            out[rank[i]] = (int32_t)i;
        }
    }
}

/* --- digits ----------------------------------------------------------------------------------- */

enum { MD_SORT_RADIX = 256 };

typedef uint32_t md_sort_counts[MD_SORT_RADIX];

/* Digits of a key. */
#define MD_SORT_DIGITS(wide) ((wide) ? 8 : 4)

MD_INLINE int64_t md_sort_digit(uint64_t key, int digit) {
    return (int64_t)(key >> 8 * digit & (MD_SORT_RADIX - 1));
}

/* Counts of all digits of keys (`from` is NULL) or pairs. */
MD_INLINE void md_sort_count(md_sort_counts *count, const void *keys, const uint64_t *from,
                             int64_t n, int wide) {
    memset(count, 0, MD_SORT_DIGITS(wide) * sizeof *count);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = from ? md_sort_pair_key(from, i, wide) : md_sort_key(keys, i, wide);
        for (int d = 0; d < MD_SORT_DIGITS(wide); d++) {
            count[d][md_sort_digit(key, d)]++;
        }
    }
}

/* From counts of one digit to where each begins. */
MD_INLINE void md_sort_begin(uint32_t *count) {
    uint32_t sum = 0;
    for (int k = 0; k < MD_SORT_RADIX; k++) {
        const uint32_t here = count[k];
        count[k] = sum;
        sum += here;
    }
}

/* Elements begin..end of keys (`from` is NULL) or pairs go to their places by a digit: as pairs to
 * `to`, or, where that is NULL, their places to `out`, the first `most` of them. */
MD_INLINE void md_sort_pass(uint32_t *MD_RESTRICT next, int digit, const void *keys,
                            const uint64_t *from, int64_t begin, int64_t end, uint64_t *to,
                            int32_t *out, int64_t most, int wide) {
    for (int64_t i = begin; i < end; i++) {
        const uint64_t key = from ? md_sort_pair_key(from, i, wide) : md_sort_key(keys, i, wide);
        const int64_t place = next[md_sort_digit(key, digit)]++;
        if (!to) {
            if (place < most) {
                out[place] = from ? md_sort_pair_at(from, i, wide) : (int32_t)i;
            }
        } else if (from) {
            md_sort_move(to, place, from, i, wide);
        } else {
            md_sort_put(to, place, key, i, wide);
        }
    }
}

/* The same with what is NULL known: four loops. */
MD_INLINE void md_sort_pass_of(uint32_t *next, int digit, const void *keys, const uint64_t *from,
                               int64_t begin, int64_t end, uint64_t *to, int32_t *out, int64_t most,
                               int wide) {
    if (from != NULL && to != NULL) {
        md_sort_pass(next, digit, NULL, from, begin, end, to, NULL, 0, wide);
    } else if (from != NULL) {
        md_sort_pass(next, digit, NULL, from, begin, end, NULL, out, most, wide);
    } else if (to != NULL) {
        md_sort_pass(next, digit, keys, NULL, begin, end, to, NULL, 0, wide);
    } else {
        md_sort_pass(next, digit, keys, NULL, begin, end, NULL, out, most, wide);
    }
}

MD_FN void md_sort_same(int32_t *out, int64_t most) {
    for (int64_t i = 0; i < most; i++) {
        out[i] = (int32_t)i;
    }
}

/* Which digits differ anywhere: their numbers to `digit`, how many. */
MD_FN int md_sort_digits(int *digit, md_sort_counts *count, int digits, int64_t n) {
    int some = 0;
    for (int d = 0; d < digits; d++) {
        int same = 0;
        for (int k = 0; k < MD_SORT_RADIX; k++) {
            same |= count[d][k] == n;
        }
        digit[some] = d;
        some += !same;
    }
    return some;
}

/* `n` keys (`from` is NULL) or pairs digit by digit, with pairs in `to` and `other` in turns; the
 * first `most` of their places go to `out`. */
MD_INLINE void md_sort_radix(int32_t *out, const void *keys, const uint64_t *from, uint64_t *to,
                             uint64_t *other, int64_t n, int64_t most, int wide) {
    md_sort_counts count[8];
    int digit[8];
    md_sort_count(count, keys, from, n, wide);
    const int digits = md_sort_digits(digit, count, MD_SORT_DIGITS(wide), n);
    for (int k = 0; k < digits; k++) {
        md_sort_begin(count[digit[k]]);
        uint64_t *here = k + 1 < digits ? to : NULL;
        md_sort_pass_of(count[digit[k]], digit[k], keys, from, 0, n, here, out, most, wide);
        uint64_t *const done = to;
        from = done;
        to = other;
        other = done;
    }
    for (int64_t i = 0; digits == 0 && i < most; i++) {
        out[i] = from ? md_sort_pair_at(from, i, wide) : (int32_t)i;
    }
}

/* --- the first few ---------------------------------------------------------------------------- */

/* Is any of `n` keys less? */
MD_INLINE int md_sort_any(const void *keys, int64_t n, uint64_t limit, int wide) {
    int any = 0;
    if (wide) {
        const uint64_t *key = (const uint64_t *)keys;
        for (int64_t i = 0; i < n; i++) {
            any |= key[i] < limit;
        }
    } else {
        const uint32_t *key = (const uint32_t *)keys, low = (uint32_t)limit;
        for (int64_t i = 0; i < n; i++) {
            any |= key[i] < low;
        }
    }
    return any;
}

/* The best ones so far, in order; those that are asked for, or fewer. */
MD_INLINE void md_sort_insert(uint64_t *best, int64_t count, uint64_t key, int64_t at, int wide) {
    int64_t k = count;
    while (k > 0 && md_sort_pair_key(best, k - 1, wide) > key) {
        md_sort_move(best, k, best, k - 1, wide);
        k--;
    }
    md_sort_put(best, k, key, at, wide);
}

/* `best` has the first `most` of what stood in front of element `begin` of the line, whose `n`
 * elements from there on are looked at; how many it has now. */
MD_INLINE int64_t md_sort_few(uint64_t *best, int64_t count, int64_t most, const void *keys,
                              int64_t begin, int64_t n, int wide) {
    int64_t i = 0;
    for (; i < n && count < most; i++) {
        md_sort_insert(best, count++, md_sort_key(keys, i, wide), begin + i, wide);
    }
    for (int64_t step = i; step < n; step += MD_SORT_STEP) {
        const int64_t end = step + MD_SORT_STEP < n ? step + MD_SORT_STEP : n;
        const void *here = md_sort_key_at(keys, step, wide);
        uint64_t limit = md_sort_pair_key(best, most - 1, wide);
        if (!md_sort_any(here, end - step, limit, wide)) {
            continue;
        }
        for (i = step; i < end; i++) {
            const uint64_t key = md_sort_key(keys, i, wide);
            if (key < limit) {
                md_sort_insert(best, most - 1, key, begin + i, wide);
                limit = md_sort_pair_key(best, most - 1, wide);
            }
        }
    }
    return count;
}

/* Leaves of a list of `count` pairs the first `most`, in the order in which they stand, and gives
 * the last one's key. The digits from the first on say which: of those with the digit at which
 * `most` is reached, copied to `some`, the next digit does. */
MD_INLINE uint64_t md_sort_cut(uint64_t *list, uint64_t *some, int64_t count, int64_t most,
                               int wide) {
    uint64_t limit = 0;
    int64_t left = most, n = count;
    const uint64_t *of = list;
    for (int d = wide ? 7 : 3; d >= 0; d--) {
        md_sort_counts hist = {0};
        for (int64_t i = 0; i < n; i++) {
            hist[md_sort_digit(md_sort_pair_key(of, i, wide), d)]++;
        }
        int64_t k = 0;
        while (left > hist[k]) {
            left -= hist[k++];
        }
        limit |= (uint64_t)k << 8 * d;
        if (n > 1 && hist[k] < n) {
            int64_t kept = 0;
            for (int64_t i = 0; i < n; i++) {
                md_sort_move(some, kept, of, i, wide);
                kept += md_sort_digit(md_sort_pair_key(of, i, wide), d) == k;
            }
            of = some;
            n = kept;
        }
    }
    /* All below the limit, and the first `left` of those at it. */
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t key = md_sort_pair_key(list, i, wide);
        const int at = key == limit && left > 0;
        left -= at;
        md_sort_move(list, kept, list, i, wide);
        kept += key < limit || at;
        if (kept == most) {
            break;
        }
    }
    return limit;
}

/* Pairs in the order of their keys; both lists have room for them. The places go to `out`. */
MD_INLINE void md_sort_sorted(int32_t *out, uint64_t *list, uint64_t *other, int64_t n, int wide) {
    if (n <= MD_SORT_SHORT) {
        for (int64_t i = 0; i < n; i++) {
            const uint64_t key = md_sort_pair_key(list, i, wide);
            if (wide) {
                other[i] = key;
            } else {
                ((uint32_t *)other)[i] = (uint32_t)key;
            }
        }
        int32_t *rank = (int32_t *)(void *)((char *)other + n * (wide ? 8 : 4));
        md_sort_ranked(out, other, rank, n, n, wide);
        for (int64_t i = 0; i < n; i++) {
            out[i] = md_sort_pair_at(list, out[i], wide);
        }
        return;
    }
    md_sort_radix(out, NULL, list, other, list, n, n, wide);
}

/* Pairs of the first `most` of the `size` elements of a line, behind the room for a block of keys;
 * not in order where they are more than a few. */
MD_INLINE void md_sort_some(md_sort_keys_fn make, const char *x, int64_t bytes, int64_t size,
                            int64_t most, int descending, char *work, int wide) {
    const int64_t room = md_sort_room(size, most);
    uint64_t *keys = (uint64_t *)(void *)work;
    uint64_t *list = (uint64_t *)(void *)(work + md_sort_keys(MD_SORT_BLOCK, wide ? 64 : 32));
    uint64_t *other = list + md_sort_pairs(room, wide ? 64 : 32) / 8;
    int64_t count = 0, known = 0;
    uint64_t limit = 0;
    for (int64_t at = 0; at < size; at += MD_SORT_BLOCK) {
        const int64_t block = MD_SORT_BLOCK, n = size - at < block ? size - at : block;
        int64_t i = 0;
        make(keys, x + at * bytes, n, descending);
        if (most <= MD_SORT_FEW) {
            count = md_sort_few(list, count, most, keys, at, n, wide);
            continue;
        }
        if (known && !md_sort_any(keys, n, limit, wide)) {
            continue;
        }
        while (i < n) {
            if (count == room) {
                limit = md_sort_cut(list, other, count, most, wide);
                count = most;
                known = 1;
            }
            int64_t end = known && n - i > MD_SORT_STEP ? i + MD_SORT_STEP : n;
            end = end - i < room - count ? end : i + room - count;
            if (!known) {
                for (; i < end; i++) {
                    md_sort_put(list, count++, md_sort_key(keys, i, wide), at + i, wide);
                }
            } else if (!md_sort_any(md_sort_key_at(keys, i, wide), end - i, limit, wide)) {
                i = end;
            }
            for (; i < end; i++) {
                const uint64_t key = md_sort_key(keys, i, wide);
                md_sort_put(list, count, key, at + i, wide);
                count += key < limit;
            }
        }
    }
    if (count > most) {
        md_sort_cut(list, other, count, most, wide);
    }
}

/* --- threads ---------------------------------------------------------------------------------- */

/* What is asked for: the first `most` places of each of `rows` lines of `n` elements of `bytes`
 * bytes. */
typedef struct {
    int64_t rows, n, most, bytes;
    int descending;
} md_sort_lines;

/* `rows` lines by comparing all elements. Keys are made of several at once. */
MD_INLINE void md_sort_shorts(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                              const char *x, char *work, int64_t rows, int wide) {
    const int64_t block = MD_SORT_BLOCK / p->n, size = md_sort_keys(MD_SORT_BLOCK, wide ? 64 : 32);
    int32_t *rank = (int32_t *)(void *)(work + size);
    for (int64_t row = 0; row < rows; row += block) {
        const int64_t some = rows - row < block ? rows - row : block;
        make(work, x + row * p->n * p->bytes, some * p->n, p->descending);
        for (int64_t i = 0; i < some; i++) {
            const void *keys = md_sort_key_at(work, i * p->n, wide);
            md_sort_ranked(out + (row + i) * p->most, keys, rank, p->n, p->most, wide);
        }
    }
}

/* `rows` lines, whichever their way; the workspace is that of md_sort_line_bytes. */
MD_INLINE void md_sort_line(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                            const char *x, char *work, int64_t rows, int wide) {
    if (p->n <= MD_SORT_SHORT) {
        md_sort_shorts(p, make, out, x, work, rows, wide);
        return;
    }
    uint64_t *first = (uint64_t *)(void *)work;
    uint64_t *second = first + md_sort_pairs(p->n, wide ? 64 : 32) / 8;
    for (int64_t row = 0; row < rows; row++) {
        make(second, x + row * p->n * p->bytes, p->n, p->descending);
        md_sort_radix(out + row * p->most, second, NULL, first, second, p->n, p->most, wide);
    }
}

/* The first few of each; the workspace is that of md_sort_first_bytes. */
MD_INLINE void md_sort_first(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                             const char *x, char *work, int64_t rows, int wide) {
    const int bits = wide ? 64 : 32;
    uint64_t *list = (uint64_t *)(void *)(work + md_sort_keys(MD_SORT_BLOCK, bits));
    uint64_t *other = list + md_sort_pairs(md_sort_room(p->n, p->most), bits) / 8;
    const int64_t block = p->n < MD_SORT_BLOCK ? MD_SORT_BLOCK / p->n : 1;
    const int few = p->most <= MD_SORT_FEW;
    for (int64_t row = 0; row < rows; row++) {
        const char *line = x + row * p->n * p->bytes;
        if (few && block > 1) { /* keys of several lines */
            const int64_t i = row % block, some = rows - row < block ? rows - row : block;
            if (i == 0) {
                make(work, line, some * p->n, p->descending);
            }
            (void)md_sort_few(list, 0, p->most, md_sort_key_at(work, i * p->n, wide), 0, p->n,
                              wide);
        } else {
            md_sort_some(make, line, p->bytes, p->n, p->most, p->descending, work, wide);
        }
        int32_t *to = out + row * p->most;
        if (!few) {
            md_sort_sorted(to, list, other, p->most, wide);
        }
        for (int64_t i = 0; few && i < p->most; i++) {
            to[i] = md_sort_pair_at(list, i, wide);
        }
    }
}

/* What is done to `rows` lines by one thread. */
typedef void (*md_sort_fn)(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                           const char *x, char *work, int64_t rows);

MD_NOINLINE void md_sort_line_32(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                                 const char *x, char *work, int64_t rows) {
    md_sort_line(p, make, out, x, work, rows, 0);
}

MD_NOINLINE void md_sort_line_64(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                                 const char *x, char *work, int64_t rows) {
    md_sort_line(p, make, out, x, work, rows, 1);
}

MD_NOINLINE void md_sort_first_32(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                                  const char *x, char *work, int64_t rows) {
    md_sort_first(p, make, out, x, work, rows, 0);
}

MD_NOINLINE void md_sort_first_64(const md_sort_lines *p, md_sort_keys_fn make, int32_t *out,
                                  const char *x, char *work, int64_t rows) {
    md_sort_first(p, make, out, x, work, rows, 1);
}

/* Each line by one of up to `threads` threads, with workspace of `slice` bytes for each. */
MD_NOINLINE void md_sort_run(const md_sort_lines *p, md_sort_fn fn, md_sort_keys_fn make,
                             int32_t *out, const void *x, void *work, int64_t slice, md_pace *pace,
                             int threads) {
    const int team = threads > 1 ? md_team(pace, threads) : 1;
    const int parts = team < p->rows ? team : (int)p->rows;
    if (parts > 1) {
        MD_OMP(parallel for schedule(static, 1) num_threads(team))
        for (int part = 0; part < parts; part++) {
            const double begun = md_part_begin(pace, part);
            const int64_t row = md_split(p->rows, part, parts);
            const int64_t rows = md_split(p->rows, part + 1, parts) - row;
            fn(p, make, out + row * p->most, (const char *)x + row * p->n * p->bytes,
               (char *)work + part * slice, rows);
            md_part_end(pace, part, parts, begun);
        }
        md_team_join(pace, parts);
        return;
    }
    fn(p, make, out, (const char *)x, (char *)work, p->rows);
}

/* --- a line by several threads ---------------------------------------------------------------- */

typedef struct md_sort_long md_sort_long;

/* A step of one stretch. */
typedef void (*md_sort_stretch_fn)(const md_sort_long *l, int step, int part);

/* A line under way. Stretch s counts all digits once, at first, at count[digits * s], and then each
 * digit that is next, at the same place. */
struct md_sort_long {
    const md_sort_lines *of;
    md_sort_keys_fn make;
    md_sort_stretch_fn stretch;
    const char *x;
    int32_t *out;
    void *keys;
    const uint64_t *from; /* NULL: keys */
    uint64_t *to;         /* NULL: out */
    md_sort_counts *count;
    int parts, digit;
};

enum { MD_SORT_MAKE, MD_SORT_COUNT, MD_SORT_MOVE };

MD_INLINE void md_sort_stretch(const md_sort_long *l, int step, int part, int wide) {
    const int64_t begin = md_split(l->of->n, part, l->parts);
    const int64_t end = md_split(l->of->n, part + 1, l->parts);
    md_sort_counts *count = l->count + part * MD_SORT_DIGITS(wide);
    if (step == MD_SORT_MAKE) {
        char *keys = (char *)l->keys + begin * (wide ? 8 : 4);
        l->make(keys, l->x + begin * l->of->bytes, end - begin, l->of->descending);
        md_sort_count(count, keys, NULL, end - begin, wide);
    } else if (step == MD_SORT_COUNT) {
        memset(count[l->digit], 0, sizeof *count);
        for (int64_t i = begin; i < end; i++) {
            count[l->digit][md_sort_digit(md_sort_pair_key(l->from, i, wide), l->digit)]++;
        }
    } else {
        md_sort_pass_of(count[l->digit], l->digit, l->keys, l->from, begin, end, l->to, l->out,
                        l->of->most, wide);
    }
}

MD_NOINLINE void md_sort_stretch_32(const md_sort_long *l, int step, int part) {
    md_sort_stretch(l, step, part, 0);
}

MD_NOINLINE void md_sort_stretch_64(const md_sort_long *l, int step, int part) {
    md_sort_stretch(l, step, part, 1);
}

/* Where the elements of each stretch with each digit begin; 0: all elements have the same digit. */
MD_FN int md_sort_long_begin(const md_sort_long *l, int digits) {
    uint32_t sum = 0;
    int same = 0;
    for (int k = 0; k < MD_SORT_RADIX; k++) {
        const uint32_t before = sum;
        for (int s = 0; s < l->parts; s++) {
            uint32_t *count = l->count[s * digits + l->digit];
            const uint32_t here = count[k];
            count[k] = sum;
            sum += here;
        }
        same |= sum - before == l->of->n;
    }
    return !same;
}

/* One step of all stretches. */
MD_FN void md_sort_long_step(const md_sort_long *l, int step, md_pace *pace) {
    MD_OMP(parallel for schedule(static, 1) num_threads(l->parts))
    for (int part = 0; part < l->parts; part++) {
        const double begun = md_part_begin(pace, part);
        l->stretch(l, step, part);
        md_part_end(pace, part, l->parts, begun);
    }
    md_team_join(pace, l->parts);
}

/* A line by all of a team. Keys lie in the room for the second list of pairs. */
MD_FN void md_sort_long_line(md_sort_long *l, char *work, md_pace *pace) {
    const int bits = l->of->bytes == 8 ? 64 : 32, digits = bits / 8;
    uint64_t *first = (uint64_t *)(void *)work;
    uint64_t *second = first + md_sort_pairs(l->of->n, bits) / 8;
    int some = 0, digit[8];
    l->count = (md_sort_counts *)(void *)(work + md_sort_line_bytes(l->of->n, bits));
    l->keys = second;
    md_sort_long_step(l, MD_SORT_MAKE, pace);
    for (l->digit = 0; l->digit < digits; l->digit++) {
        digit[some] = l->digit;
        some += md_sort_long_begin(l, digits);
    }
    l->from = NULL;
    l->to = first;
    for (int k = 0; k < some; k++) {
        uint64_t *to = l->to;
        l->digit = digit[k];
        if (k > 0) {
            md_sort_long_step(l, MD_SORT_COUNT, pace);
            (void)md_sort_long_begin(l, digits);
        }
        l->to = k + 1 < some ? to : NULL;
        md_sort_long_step(l, MD_SORT_MOVE, pace);
        l->from = to;
        l->to = to == first ? second : first;
    }
    if (some == 0) {
        md_sort_same(l->out, l->of->most);
    }
}

/* Lines one behind the other, each by up to `threads` threads, with the bits of one thread. */
MD_NOINLINE void md_sort_run_long(const md_sort_lines *p, md_sort_fn fn, md_sort_stretch_fn stretch,
                                  md_sort_keys_fn make, int32_t *out, const void *x, void *work,
                                  md_pace *pace, int threads) {
    const int team = threads > 1 ? md_team(pace, threads) : 1;
    md_sort_long l = {p, make, stretch, (const char *)x, out, NULL, NULL, NULL, NULL, team, 0};
    for (int64_t row = 0; row < p->rows; row++) {
        if (team > 1) {
            md_sort_long_line(&l, (char *)work, pace);
        } else {
            fn(p, make, l.out, l.x, (char *)work, 1);
        }
        l.x += p->n * p->bytes;
        l.out += p->most;
    }
}

#endif
