/* storage: see the header. A kernel reads before it writes where it names the pair; a loop where
 * both Bufs are addressed by slices of its index, for one iteration alone; a copy never. */
#include "passes/plan/storage.h"

#include <string.h>

bool layouts_agree(const Buf *a, const Buf *b) {
    return a->bytes == b->bytes && elem_bytes(a->type->elem) == elem_bytes(b->type->elem) &&
           type_count(*a->type) == type_count(*b->type) && buf_extent(a) == buf_extent(b) &&
           (type_same_shape(*a->type, *b->type)
                ? memcmp(a->stride, b->stride, sizeof a->stride) == 0
                : buf_extent(a) == type_bytes(*a->type)); /* b has the same, and no gap either */
}

/* Every access to the old or the new bytes inside `loop` is to the slice of its iteration. */
static bool sliced_by(const Bytes *bytes, const Step *top, const Step *loop, int64_t old,
                      const Buf *next, int level) {
    for (int i = 0; i < loop->body.count; i++) {
        const Step *step = loop->body.at[i];
        if (step->kind == STEP_LOOP) {
            if (!sliced_by(bytes, top, step, old, next, level)) {
                return false;
            }
            continue;
        }
        for (int k = 0; k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            if ((access->buf == next || bytes->of(bytes->ctx, access->buf) == old) &&
                access->slice[level] != top) {
                return false;
            }
        }
    }
    return true;
}

static bool reads_bytes(const Bytes *bytes, const Step *step, int64_t old, const Buf *next) {
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        if ((access->mode & ACCESS_READ) && access->buf != next &&
            bytes->of(bytes->ctx, access->buf) == old) {
            return true;
        }
    }
    return false;
}

/* In one turn of the loop: what reads the old bytes comes before the first step that writes `next`,
 * or is that step and yields them. */
static bool turn_yields(const Bytes *bytes, const Step *loop, int64_t old, const Buf *next,
                        int level) {
    const Access *access;
    int at = 0;
    while (at < loop->body.count && ((access = step_find(loop->body.at[at], next)) == NULL ||
                                     !(access->mode & ACCESS_WRITE))) {
        at++;
    }
    for (int i = at + 1; i < loop->body.count; i++) {
        if (reads_bytes(bytes, loop->body.at[i], old, next)) {
            return false;
        }
    }
    return at == loop->body.count || step_yields(bytes, loop->body.at[at], old, next, level);
}

bool step_yields(const Bytes *bytes, const Step *step, int64_t old, const Buf *next, int level) {
    if (!reads_bytes(bytes, step, old, next)) {
        return true;
    }
    if (step->kind == STEP_LOOP) {
        return level < ACCESS_SLICES && sliced_by(bytes, step, step, old, next, level) &&
               turn_yields(bytes, step, old, next, level + 1);
    }
    bool yields = step->kind == STEP_KERNEL;
    for (int k = 0; yields && k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        yields = !(access->mode & ACCESS_READ) || access->buf == next ||
                 bytes->of(bytes->ctx, access->buf) != old || step_pairs(step, access->buf, next);
    }
    return yields;
}
