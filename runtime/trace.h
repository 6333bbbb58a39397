/* SPDX-License-Identifier: 0BSD */
/* trace: which step made the first NaN or infinity of a call.
 *
 * While a train is traced, each step looks at what it wrote and notes when it first saw a NaN and
 * when an infinity. From the value that must not hold one the way goes back over the steps that it
 * was computed from, as far as they hold some too; the earliest on it is the origin. A NaN that a
 * `select` left out is not on that way.
 *
 * The notes are numbers of the caller: [0] is a clock, then a NaN's and an infinity's time for each
 * place, 0 for never. Needs nan_origin.h and md.h; allocates nothing. */
#ifndef MD_TRACE_H
#define MD_TRACE_H

#include <math.h>
#include <stdint.h>

#include "runtime/md.h"
#include "runtime/nan_origin.h"
#include "runtime/tensor.h"

/* Behind step `place` of a train that notes what it wrote when asked to; and what is a slice, or
 * rows with gaps between them. */
#define MD_TRACE(tracing, place) ((tracing) != NULL ? md_trace_step(tracing, place) : (void)0)
#define MD_TRACE_SLICE(tracing, ...)                                                               \
    ((tracing) != NULL ? md_trace_slice(tracing, __VA_ARGS__) : (void)0)

/* Of so many 32-bit numbers, for `count` places. */
#define MD_TRACE_NOTES(count) (1 + 2 * (count))

MD_COLD void md_trace_clear(uint32_t *notes, int count) {
    memset(notes, 0, sizeof *notes * (size_t)MD_TRACE_NOTES(count));
}

/* Looks at rows of `length` numbers, `stride` apart. `form`: 4 of floats, 8 of doubles, of floats
 * of 16 bits the bits of their exponent. What a place held first is noted by its time. */
MD_COLD void md_trace_rows(uint32_t *notes, int place, const void *x, int form, int64_t rows,
                           int64_t length, int64_t stride) {
    int nan = 0, inf = 0;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = r * stride; i < r * stride + length; i++) {
            /* if: halves */
            if (form > 8) {
                const int size = ((const uint16_t *)x)[i] & 0x7FFF;
                nan |= size > form;
                inf |= size == form;
                continue;
            }
            /* end: halves */
            double value = form == 8 ? ((const double *)x)[i] : (double)((const float *)x)[i];
            nan |= isnan(value) != 0;
            inf |= isinf(value) != 0;
        }
    }
    uint32_t *at = notes + 1 + 2 * place;
    notes[0]++;
    at[0] = nan && at[0] == 0 ? notes[0] : at[0];
    at[1] = inf && at[1] == 0 ? notes[0] : at[1];
}

/* if: again */
/* A step that is made again, to see more of it. */
typedef struct md_tracing {
    const md_traced *traced;
    uint32_t *notes;
    const md_memory *memory;
} md_tracing;

MD_COLD void md_trace_step(const void *tracing, int place) {
    const md_tracing *t = (const md_tracing *)tracing;
    const md_memory *m = t->memory;
    const void *const region[] = {m->params, m->state, m->io, m->arena};
    for (int i = 0; i < t->traced->look_count; i++) {
        const md_look *look = &t->traced->looks[i];
        if (look->place == place) {
            md_trace_rows(t->notes, place, (const char *)region[look->region] + look->offset,
                          look->form, 1, look->count, look->count);
        }
    }
}

MD_COLD void md_trace_slice(const void *tracing, int place, const void *x, int form, int64_t rows,
                            int64_t length, int64_t stride) {
    md_trace_rows(((const md_tracing *)tracing)->notes, place, x, form, rows, length, stride);
}

/* if: near */
/* Of matrices of `n` rows, those behind one another, of what is written of them: where column less
 * row is less than `edge`. */
#define MD_TRACE_NEAR(tracing, ...)                                                                \
    ((tracing) != NULL ? md_trace_near(tracing, __VA_ARGS__) : (void)0)
MD_COLD void md_trace_near(const void *tracing, int place, const void *x, int form, int64_t rows,
                           int64_t length, int64_t n, int64_t edge) {
    const int64_t row = length * (form == 8 ? 8 : form == 4 ? 4 : 2);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t end = r % n + edge < length ? r % n + edge : length;
        md_trace_slice(tracing, place, (const char *)x + r * row, form, 1, end > 0 ? end : 0, end);
    }
}
/* end: near */

/* In front of the step: what it is given. */
MD_COLD void md_trace_begin(const md_tracing *t) {
    md_trace_clear(t->notes, t->traced->count);
    for (int i = 0; i < t->traced->count; i++) {
        if (t->traced->places[i].given) {
            md_trace_step(t, i);
        }
    }
}

/* end: again */
/* The earliest place that place `start` was computed from and that holds a NaN (kind 0) or an
 * infinity (kind 1); -1: none. Leaves its way in the top bits of the notes. */
MD_COLD int md_trace_back(const md_traced *t, uint32_t *notes, int start, int kind) {
    const uint32_t reached = UINT32_C(1) << 31;
    int origin = -1, more = 1;
    uint32_t *at = notes + 1 + kind;
    uint32_t earliest = 0;
    for (int i = 0; i < t->count; i++) {
        at[2 * i] &= ~reached;
    }
    at[2 * start] |= reached;
    while (more) { /* places are few, and this happens once in a run */
        more = 0;
        for (int i = t->count - 1; i >= 0; i--) {
            if ((at[2 * i] & reached) == 0) {
                continue;
            }
            for (int k = t->first[i]; k < t->first[i + 1]; k++) {
                uint32_t *from = &at[2 * t->from[k]];
                /* A place that is not looked at, a move of bytes, is passed by. */
                if ((*from & reached) == 0 && (*from != 0 || t->places[t->from[k]].what == NULL)) {
                    *from |= reached;
                    more = 1;
                }
            }
        }
    }
    for (int i = 0; i < t->count; i++) {
        uint32_t time = at[2 * i] & ~reached;
        if ((at[2 * i] & reached) != 0 && time != 0 && (origin < 0 || time < earliest)) {
            origin = i;
            earliest = time;
        }
    }
    return origin;
}

/* The origin of what must be finite and is not, the loss before the rest: of a NaN if there is one.
 * *infinite: where an infinity came from that the NaN was made of, or -1. -1: nothing was seen. */
MD_COLD int md_trace_origin(const md_traced *t, uint32_t *notes, int *infinite) {
    int origin = -1;
    *infinite = -1;
    for (int start = t->count - 2; start < t->count && origin < 0; start++) {
        origin = md_trace_back(t, notes, start, 0);
        if (origin >= 0) {
            *infinite = md_trace_back(t, notes, origin, 1);
            *infinite = *infinite == origin ? -1 : *infinite;
        } else {
            origin = md_trace_back(t, notes, start, 1);
        }
    }
    return origin;
}

MD_COLD int md_trace_found(const md_traced *t, uint32_t *notes) {
    int infinite = -1;
    return md_trace_origin(t, notes, &infinite) >= 0;
}

#endif
