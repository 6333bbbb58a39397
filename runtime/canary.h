/* SPDX-License-Identifier: 0BSD */
/* canary: guard bands around every buffer of the arena, for programs built with --checks=canary.
 *
 * The plan leaves MD_BAND_BYTES free on both sides of a buffer for as long as the buffer lives.
 * When a buffer comes to life, its bands and its bytes get a pattern of its own, a signalling NaN
 * in its element type, so that what reads unwritten bytes shows; behind each step the bands of all
 * that live must still hold it. Where the address sanitizer is on, it is told that only living
 * buffers may be touched, and stops the very access. The caller's bytes are left open to everyone
 * between calls. Needs canary_report.h and md.h; allocates nothing. */
#ifndef MD_CANARY_H
#define MD_CANARY_H

#include "runtime/canary_report.h"
#include "runtime/md.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MD_CANARY_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(MD_CANARY_ASAN)
#include <sanitizer/asan_interface.h>
#define MD_CANARY_SHUT(at, bytes) __asan_poison_memory_region(at, bytes)
#define MD_CANARY_OPEN(at, bytes) __asan_unpoison_memory_region(at, bytes)
#else
#define MD_CANARY_SHUT(at, bytes) ((void)(at), (void)(bytes))
#define MD_CANARY_OPEN(at, bytes) ((void)(at), (void)(bytes))
#endif

enum { MD_BAND_BYTES = 64 };

/* A buffer of the arena: alive in steps first .. last - 1. */
typedef struct md_band {
    const char *name;
    size_t offset, bytes;
    int first, last;
    int wide; /* its elements have 8 bytes */
} md_band;

/* One call of one function. */
typedef struct md_bands {
    const char *entry;
    unsigned char *arena;
    size_t bytes; /* of the arena that this function uses */
    const md_band *at;
    int count;
    md_damage *damage;
} md_bands;

/* Eight bytes for buffer `index`: two signalling NaNs of 4 bytes, or one of 8. */
MD_FN void md_canary_pattern(unsigned char *pattern, int index, int wide) {
    const uint64_t mark = (uint64_t)(index + 1) & 0xFFFF;
    const uint64_t narrow = UINT64_C(0x7FA50000) | mark;
    const uint64_t word = wide ? UINT64_C(0x7FF4A5A5A5A50000) | mark : narrow << 32 | narrow;
    memcpy(pattern, &word, sizeof word);
}

MD_FN void md_canary_fill(unsigned char *at, size_t bytes, const unsigned char *pattern) {
    size_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        memcpy(at + i, pattern, 8);
    }
    memcpy(at + i, pattern, bytes - i);
}

/* The first byte that does not hold the pattern; `bytes` when all do. `phase`: of the first one. */
MD_UNCHECKED MD_NOINLINE size_t md_canary_seek(const unsigned char *at, size_t bytes,
                                               const unsigned char *pattern, size_t phase) {
    size_t i = 0;
    while (i < bytes && at[i] == pattern[(phase + i) & 7]) {
        i++;
    }
    return i;
}

/* The band behind a buffer begins at its last byte and fills the last 64 up. */
MD_FN size_t md_canary_behind(const md_band *b) {
    return (b->bytes + MD_BAND_BYTES - 1) / MD_BAND_BYTES * MD_BAND_BYTES + MD_BAND_BYTES -
           b->bytes;
}

/* At the start of the call: nothing lives. */
MD_FN void md_canary_open(const md_bands *g) {
    unsigned char pattern[8];
    md_canary_pattern(pattern, -1, 0);
    MD_CANARY_OPEN(g->arena, g->bytes);
    md_canary_fill(g->arena, g->bytes, pattern);
    MD_CANARY_SHUT(g->arena, g->bytes);
}

/* Wherever the call ends. */
MD_FN void md_canary_close(const md_bands *g) {
    MD_CANARY_OPEN(g->arena, g->bytes);
}

/* In front of a step: what it is the first to touch comes to life. */
MD_FN void md_canary_before(const md_bands *g, int step) {
    for (int i = 0; i < g->count; i++) {
        const md_band *b = &g->at[i];
        if (b->first != step) {
            continue;
        }
        unsigned char pattern[8];
        unsigned char *at = g->arena + b->offset;
        const size_t behind = md_canary_behind(b);
        md_canary_pattern(pattern, i, b->wide);
        MD_CANARY_OPEN(at - MD_BAND_BYTES, MD_BAND_BYTES + b->bytes + behind);
        md_canary_fill(at - MD_BAND_BYTES, MD_BAND_BYTES + b->bytes + behind, pattern);
        MD_CANARY_SHUT(at - MD_BAND_BYTES, (size_t)MD_BAND_BYTES);
        MD_CANARY_SHUT(at + b->bytes, behind);
    }
}

/* Behind a step that goes from number `begun` to `step`: MD_OK, or MD_ERR_CANARY and the damage.
 * What comes to life inside of it, in a loop, was looked at there, or the loop has not run. What
 * the step is the last to touch dies, unless the next iteration of the loop around it, step number
 * `loop`, needs it again. */
MD_FN int md_canary_after(const md_bands *g, int begun, int step, int loop) {
    for (int side = 1; side >= 0; side--) { /* a write behind one may reach the front of another */
        for (int i = 0; i < g->count; i++) {
            const md_band *b = &g->at[i];
            if (b->first > begun || b->last <= step) {
                continue;
            }
            unsigned char pattern[8];
            const unsigned char *at = g->arena + b->offset;
            const size_t bytes = side ? md_canary_behind(b) : (size_t)MD_BAND_BYTES;
            md_canary_pattern(pattern, i, b->wide);
            const size_t bad = md_canary_seek(side ? at + b->bytes : at - MD_BAND_BYTES, bytes,
                                              pattern, side ? b->bytes : 0);
            if (bad < bytes) {
                g->damage->entry = g->entry;
                g->damage->buffer = b->name;
                g->damage->step = step;
                g->damage->behind = side;
                g->damage->byte = bad;
                md_canary_close(g);
                return MD_ERR_CANARY;
            }
        }
    }
    for (int i = 0; i < g->count; i++) {
        const md_band *b = &g->at[i];
        if (b->last == step + 1 && b->first > loop) {
            MD_CANARY_SHUT(g->arena + b->offset, b->bytes);
        }
    }
    return MD_OK;
}

#endif
