/* check_value: byte maps, places and values of the abstract execution (check.c): which token each
 * byte of a region holds, and what reads and writes of a step make of that.
 *
 * Needs a planned Program, changes nothing of it; faults go to Check. */
#include "passes/check_value.h"

#include <string.h>

bool check_fail(Check *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = str_vprintf(c->arena, fmt, ap);
    va_end(ap);
    c->fault = c->e != NULL ? str_printf(c->arena, "entry %s: %s", c->e->entry->name, text) : text;
    return false;
}

/* ---- byte maps ------------------------------------------------------------------------------ */

/* The first span that ends above `at`. */
static int span_at(const SpanMap *map, int64_t at) {
    int lo = 0, hi = map->count;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (map->at[mid].hi <= at) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

void check_mark(Arena *arena, SpanMap *map, int64_t lo, int64_t hi, int64_t token) {
    if (lo >= hi) {
        return;
    }
    int first = span_at(map, lo), last = first;
    while (last < map->count && map->at[last].lo < hi) {
        last++;
    }
    Span put[3];
    int n = 0;
    if (first < last && map->at[first].lo < lo) {
        put[n++] = (Span){map->at[first].lo, lo, map->at[first].token};
    }
    put[n++] = (Span){lo, hi, token};
    if (first < last && map->at[last - 1].hi > hi) {
        put[n++] = (Span){hi, map->at[last - 1].hi, map->at[last - 1].token};
    }
    int grow = n - (last - first);
    for (int i = 0; i < grow; i++) {
        VEC_PUSH(arena, map, (Span){0});
    }
    int tail = map->count - (grow > 0 ? grow : 0) - last;
    memmove(map->at + first + n, map->at + last, sizeof(Span) * (size_t)tail);
    memcpy(map->at + first, put, sizeof(Span) * (size_t)n);
    map->count += grow < 0 ? grow : 0;
}

int64_t check_other(const SpanMap *map, int64_t lo, int64_t hi, int64_t token) {
    for (int i = span_at(map, lo); lo < hi; i++) {
        if (i == map->count || map->at[i].lo > lo) {
            return 0;
        }
        if (map->at[i].token != token) {
            return map->at[i].token;
        }
        lo = map->at[i].hi;
    }
    return token;
}

/* ---- where a Buf is ------------------------------------------------------------------------- */

const Buf *check_root(const Buf *buf) {
    int steps = 0;
    while (buf->storage != buf && steps++ < 1000000) {
        buf = buf->storage;
    }
    return buf;
}

int check_region(const Buf *buf) {
    switch (check_root(buf)->kind) {
    case BUF_PARAM: return PARAMS;
    case BUF_STATE: return STATE;
    case BUF_INPUT: return buf->offset >= 0 ? IO : -1;
    case BUF_RESULT: return IO;
    case BUF_CONST: return -1;
    case BUF_TEMP:
    case BUF_WORK: break;
    }
    return ARENA;
}

/* Bytes from the first to the last element, from the type alone. */
static int64_t needed_bytes(const Buf *buf) {
    int64_t last = 0;
    for (int i = 0; i < buf->type->rank; i++) {
        if (buf->type->dim[i] == 0) {
            return 0;
        }
        last += (buf->type->dim[i] - 1) * buf->stride[i];
    }
    return (last + 1) * (int64_t)elem_bytes(buf->type->elem);
}

bool check_place(Check *c, const Buf *buf, int64_t limit) {
    const Buf *root = check_root(buf);
    if (buf->bytes < needed_bytes(buf)) {
        return check_fail(c, "%s has %lld bytes and needs %lld", buf->name, (long long)buf->bytes,
                          (long long)needed_bytes(buf));
    }
    if (root->storage != root) {
        return check_fail(c, "%s has no root", buf->name);
    }
    if (root != buf && (buf->kind != BUF_TEMP || root->kind == BUF_INPUT ||
                        root->kind == BUF_CONST || root->kind == BUF_WORK)) {
        return check_fail(c, "%s must not lie in %s", buf->name, root->name);
    }
    if (root != buf && (buf->offset != root->offset || buf->bytes > root->bytes)) {
        return check_fail(c, "%s does not lie in the bytes of %s", buf->name, root->name);
    }
    if (check_region(buf) < 0) {
        return true;
    }
    if (buf->offset < 0 || buf->offset % 64 != 0) {
        return check_fail(c, "%s is not aligned: offset %lld", buf->name, (long long)buf->offset);
    }
    if (buf->offset + buf->bytes > limit) {
        return check_fail(c, "%s ends at %lld, past the bound %lld of its region", buf->name,
                          (long long)(buf->offset + buf->bytes), (long long)limit);
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

int64_t check_token(Check *c, const Buf *buf, int step) {
    VEC_PUSH(c->arena, &c->origin, ((Origin){buf, step, c->origin.count + 1}));
    return c->origin.count; /* from 1 on */
}

const Turn *check_turn(const Check *c, const Step *loop) {
    for (int i = 0; i < c->depth; i++) {
        if (c->turn[i].loop == loop) {
            return &c->turn[i];
        }
    }
    return NULL;
}

int64_t check_position(const Turn *turn, int64_t at) {
    return turn->loop->reverse ? turn->loop->trip - 1 - at : at;
}

bool check_is_around(const Step *loop, const Step *step) {
    while (step != NULL && step != loop) {
        step = step->up;
    }
    return step != NULL;
}

bool check_declared_in(const Buf *buf, const Step *loop) {
    return (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && check_is_around(loop, buf->loop);
}

bool check_picks(const Step *loop, const Access *access) {
    bool picks = false;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        picks = picks || access->slice[k] == loop;
    }
    return picks;
}

bool check_written_inside(const Check *c, const Buf *buf, const Step *loop) {
    const Value *v = &c->value[buf->id];
    for (int i = 0; i < v->writer.count; i++) {
        if (check_is_around(loop, v->writer.at[i].step)) {
            return true;
        }
    }
    return false;
}

bool check_block(Check *c, const Step *step, const Access *access, int64_t *lo, int64_t *hi) {
    const Buf *buf = access->buf;
    *lo = buf->offset;
    *hi = buf->offset + buf->bytes;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        const Turn *turn = check_turn(c, access->slice[k]);
        if (turn == NULL || buf->type->dim[k] != turn->loop->trip) { /* 0 past the rank */
            return check_fail(c, "step %d slices axis %d of %s by a loop that does not match it",
                              step->id, k, buf->name);
        }
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type->elem);
        *lo += check_position(turn, turn->turn) * pitch;
        *hi = *lo + pitch < *hi ? *lo + pitch : *hi;
    }
    return true;
}

static bool demand(Check *c, const Step *step, const Buf *buf, int64_t lo, int64_t hi) {
    int64_t token = c->value[buf->id].token;
    int64_t other = check_other(&c->map[check_region(buf)], lo, hi, token);
    if (other == token) {
        return true;
    }
    if (other == 0) {
        return check_fail(c, "step %d (%s) reads bytes of %s that nothing has written", step->id,
                          step->name != NULL ? step->name : "-", buf->name);
    }
    const Origin *origin = &c->origin.at[other - 1];
    return check_fail(c, "step %d (%s) reads %s, but step %d has written %s there", step->id,
                      step->name != NULL ? step->name : "-", buf->name, origin->step,
                      origin->buf->name);
}

bool check_complete(const Value *v) {
    for (int i = 0; i < v->writer.count; i++) {
        if (v->writer.at[i].part && !v->writer.at[i].seen) {
            return false;
        }
    }
    return true;
}

bool check_read(Check *c, const Step *step, const Access *access) {
    const Buf *buf = access->buf;
    const Value *v = &c->value[buf->id];
    if (check_region(buf) < 0) {
        return true;
    }
    if (v->token == 0) {
        return check_fail(c, "step %d reads %s before it is written", step->id, buf->name);
    }
    if (access->slice[0] == NULL && buf->kind == BUF_TEMP && !check_complete(v)) {
        return check_fail(c, "step %d reads %s before all its parts are written", step->id,
                          buf->name);
    }
    int64_t lo, hi;
    if (!check_block(c, step, access, &lo, &hi)) {
        return false;
    }
    /* The positions still to come must be intact too, unless this loop is what writes them. */
    int64_t base = buf->offset;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        const Turn *turn = check_turn(c, access->slice[k]);
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type->elem);
        int64_t at = check_position(turn, turn->turn);
        if (!check_written_inside(c, buf, turn->loop)) {
            int64_t from = turn->loop->reverse ? 0 : at + 1;
            int64_t to = turn->loop->reverse ? at : turn->loop->trip;
            if (!demand(c, step, buf, base + from * pitch, base + to * pitch)) {
                return false;
            }
        }
        base += at * pitch;
    }
    return demand(c, step, buf, lo, hi);
}

bool check_write(Check *c, const Step *step, const Access *access, int64_t token) {
    const Buf *buf = access->buf;
    Value *v = &c->value[buf->id];
    if (check_region(buf) < 0 || buf->kind == BUF_INPUT) {
        return check_fail(c, "step %d writes %s, which is read only", step->id, buf->name);
    }
    int64_t lo, hi;
    if (!check_block(c, step, access, &lo, &hi)) {
        return false;
    }
    bool sliced = access->slice[0] != NULL;
    bool part = sliced || (access->mode & ACCESS_PART) != 0;
    if (token == 0) {
        token = part && v->token != 0 ? v->token : check_token(c, buf, step->id);
    }
    if (part && v->token == token && v->block == lo && !demand(c, step, buf, lo, hi)) {
        return false; /* what other steps have written into it must still be there */
    }
    if (v->token != token) {
        v->counts = NULL;
        memset(v->part, 0, sizeof v->part);
    }
    v->token = token;
    v->block = lo;
    for (int i = 0; i < v->writer.count; i++) {
        v->writer.at[i].seen |= v->writer.at[i].step == step;
    }
    check_mark(c->arena, &c->map[check_region(buf)], lo, hi, token);
    return true;
}
