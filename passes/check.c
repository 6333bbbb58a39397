/* check: abstract execution of the finished Program. Shares nothing with order, in-place and plan.
 *
 * Every write makes a new token for the value of its Buf. For each region a map says which token
 * each byte holds. A step that reads a Buf must find the token of that Buf's last write in all
 * bytes that it may read; so a clobbered, moved, shrunk or too early read value shows. Copies move
 * tokens; at the end of a list every destination must hold the token of the value meant for it, and
 * every parameter and state that nothing was meant for must hold the token it began with.
 *
 * Loops: two iterations suffice. The first sees what came before the loop. Each later one starts
 * from what an iteration left behind; it addresses the same bytes, but for slices, where it
 * addresses the next position. So the map before iteration k >= 2, seen from what iteration k may
 * touch, is the map before iteration 1 with other token numbers, and the same steps give the same
 * verdict. What slices add is checked for all positions at once: a read demands its token in the
 * positions still to come; a stack that the loop writes shares no byte with another root that the
 * loop touches (check_tracks); and when a loop ends, the positions that the two iterations did not
 * write are filled.
 *
 * Which result of a kernel may lie in the bytes of which operand is read off the kernel's text
 * (check_kernel), and so is what it touches; what lowering says of both must agree.
 *
 * Needs a planned Program, changes nothing. */
#include "passes/check.h"

#include "passes/check_kernel.h"

#include <string.h>

typedef struct {
    int64_t lo, hi, token;
} Span;

typedef VEC(Span) SpanMap; /* sorted, disjoint, no gaps are kept */

typedef struct {
    const Buf *buf;
    int step; /* -1: before the entry */
} Origin;

typedef struct {
    const Step *step;
    bool part; /* one of several that write the Buf together */
    bool seen; /* it has run in this scope */
} Writer;

typedef struct {
    int64_t token; /* of the last write, 0: none in this scope */
    int64_t block; /* offset of the slice that was marked last */
    VEC(Writer) writer;
} Value;

typedef struct {
    const Step *loop;
    int64_t turn; /* 0 or 1 */
} Turn;

enum { PARAMS, STATE, IO, ARENA, REGIONS, MAX_TURNS = 64 };

typedef struct {
    Arena *arena;
    const Program *p;
    const ProgramEntry *e;
    SpanMap map[REGIONS];
    Value *value;              /* by Buf.id */
    const KernelSites **sites; /* by Kernel.id, NULL: not read yet */
    Arena text;                /* of the sites */
    int read;                  /* how many there are */
    bool *proved;              /* by Step.id: what it says agrees with its kernel's text */
    VEC(Origin) origin;
    Turn turn[MAX_TURNS];
    int depth, next_id;
    struct Progress *progress[MAX_TURNS + 1]; /* by nesting; by Buf.id; NULL: not needed yet */
    const char *fault;
} Check;

static bool fail(Check *c, const char *fmt, ...) MDLC_PRINTF(2, 3);
static bool fail(Check *c, const char *fmt, ...) {
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

static void span_set(Arena *arena, SpanMap *map, int64_t lo, int64_t hi, int64_t token) {
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

/* The token of the first byte in [lo, hi) that does not hold `token`; `token` when all do. */
static int64_t span_other(const SpanMap *map, int64_t lo, int64_t hi, int64_t token) {
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

static const Buf *root_of(const Buf *buf) {
    int steps = 0;
    while (buf->root != buf && steps++ < 1000000) {
        buf = buf->root;
    }
    return buf;
}

static int region_of(const Buf *buf) {
    switch (root_of(buf)->kind) {
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
    for (int i = 0; i < buf->type.rank; i++) {
        if (buf->type.dim[i] == 0) {
            return 0;
        }
        last += (buf->type.dim[i] - 1) * buf->stride[i];
    }
    return (last + 1) * (int64_t)elem_bytes(buf->type.elem);
}

static bool check_place(Check *c, const Buf *buf, int64_t limit) {
    const Buf *root = root_of(buf);
    if (buf->bytes < needed_bytes(buf)) {
        return fail(c, "%s has %lld bytes and needs %lld", buf->name, (long long)buf->bytes,
                    (long long)needed_bytes(buf));
    }
    if (root->root != root) {
        return fail(c, "%s has no root", buf->name);
    }
    if (root != buf && (buf->kind != BUF_TEMP || root->kind == BUF_INPUT ||
                        root->kind == BUF_CONST || root->kind == BUF_WORK)) {
        return fail(c, "%s must not lie in %s", buf->name, root->name);
    }
    if (root != buf && (buf->offset != root->offset || buf->bytes > root->bytes)) {
        return fail(c, "%s does not lie in the bytes of %s", buf->name, root->name);
    }
    if (region_of(buf) < 0) {
        return true;
    }
    if (buf->offset < 0 || buf->offset % 64 != 0) {
        return fail(c, "%s is not aligned: offset %lld", buf->name, (long long)buf->offset);
    }
    if (buf->offset + buf->bytes > limit) {
        return fail(c, "%s ends at %lld, past the bound %lld of its region", buf->name,
                    (long long)(buf->offset + buf->bytes), (long long)limit);
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

static int64_t new_token(Check *c, const Buf *buf, int step) {
    VEC_PUSH(c->arena, &c->origin, ((Origin){buf, step}));
    return c->origin.count; /* from 1 on */
}

static const Turn *turn_of(const Check *c, const Step *loop) {
    for (int i = 0; i < c->depth; i++) {
        if (c->turn[i].loop == loop) {
            return &c->turn[i];
        }
    }
    return NULL;
}

static int64_t position(const Turn *turn, int64_t at) {
    return turn->loop->reverse ? turn->loop->trip - 1 - at : at;
}

static bool inside(const Step *step, const Step *loop) {
    while (step != NULL && step != loop) {
        step = step->up;
    }
    return step != NULL;
}

static bool written_inside(const Check *c, const Buf *buf, const Step *loop) {
    const Value *v = &c->value[buf->id];
    for (int i = 0; i < v->writer.count; i++) {
        if (inside(v->writer.at[i].step, loop)) {
            return true;
        }
    }
    return false;
}

/* The bytes that an access touches now, relative to the region. */
static bool block_of(Check *c, const Step *step, const Access *access, int64_t *lo, int64_t *hi) {
    const Buf *buf = access->buf;
    *lo = buf->offset;
    *hi = buf->offset + buf->bytes;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        const Turn *turn = turn_of(c, access->slice[k]);
        if (turn == NULL || buf->type.dim[k] != turn->loop->trip) { /* 0 past the rank */
            return fail(c, "step %d slices axis %d of %s by a loop that does not match it",
                        step->id, k, buf->name);
        }
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type.elem);
        *lo += position(turn, turn->turn) * pitch;
        *hi = *lo + pitch < *hi ? *lo + pitch : *hi;
    }
    return true;
}

static bool demand(Check *c, const Step *step, const Buf *buf, int64_t lo, int64_t hi) {
    int64_t token = c->value[buf->id].token;
    int64_t other = span_other(&c->map[region_of(buf)], lo, hi, token);
    if (other == token) {
        return true;
    }
    if (other == 0) {
        return fail(c, "step %d (%s) reads bytes of %s that nothing has written", step->id,
                    step->name != NULL ? step->name : "-", buf->name);
    }
    const Origin *origin = &c->origin.at[other - 1];
    return fail(c, "step %d (%s) reads %s, but step %d has written %s there", step->id,
                step->name != NULL ? step->name : "-", buf->name, origin->step, origin->buf->name);
}

static bool complete(const Value *v) {
    for (int i = 0; i < v->writer.count; i++) {
        if (v->writer.at[i].part && !v->writer.at[i].seen) {
            return false;
        }
    }
    return true;
}

static bool read_value(Check *c, const Step *step, const Access *access) {
    const Buf *buf = access->buf;
    const Value *v = &c->value[buf->id];
    if (region_of(buf) < 0) {
        return true;
    }
    if (v->token == 0) {
        return fail(c, "step %d reads %s before it is written", step->id, buf->name);
    }
    if (access->slice[0] == NULL && buf->kind == BUF_TEMP && !complete(v)) {
        return fail(c, "step %d reads %s before all its parts are written", step->id, buf->name);
    }
    int64_t lo, hi;
    if (!block_of(c, step, access, &lo, &hi)) {
        return false;
    }
    /* The positions still to come must be intact too, unless this loop is what writes them. */
    int64_t base = buf->offset;
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL; k++) {
        const Turn *turn = turn_of(c, access->slice[k]);
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type.elem);
        int64_t at = position(turn, turn->turn);
        if (!written_inside(c, buf, turn->loop)) {
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

static bool write_value(Check *c, const Step *step, const Access *access, int64_t token) {
    const Buf *buf = access->buf;
    Value *v = &c->value[buf->id];
    if (region_of(buf) < 0 || buf->kind == BUF_INPUT) {
        return fail(c, "step %d writes %s, which is read only", step->id, buf->name);
    }
    int64_t lo, hi;
    if (!block_of(c, step, access, &lo, &hi)) {
        return false;
    }
    bool sliced = access->slice[0] != NULL;
    bool part = sliced || (access->mode & ACCESS_PART) != 0;
    if (token == 0) {
        token = part && v->token != 0 ? v->token : new_token(c, buf, step->id);
    }
    if (part && v->token == token && v->block == lo && !demand(c, step, buf, lo, hi)) {
        return false; /* what other steps have written into it must still be there */
    }
    v->token = token;
    v->block = lo;
    for (int i = 0; i < v->writer.count; i++) {
        v->writer.at[i].seen |= v->writer.at[i].step == step;
    }
    span_set(c->arena, &c->map[region_of(buf)], lo, hi, token);
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* The text of a kernel, read once. */
static const KernelSites *sites_of(Check *c, const Step *step) {
    const KernelSites **sites = &c->sites[step->kernel->id];
    if (*sites == NULL) {
        *sites = kernel_sites(&c->text, step->kernel);
        c->read++;
    }
    return *sites;
}

/* What lowering says of a kernel, held against its text: the Bufs that it touches, and the pairs
 * that may share storage, whether the plan uses them or not. */
static bool check_text(Check *c, const Step *step) {
    const char *name = step->name != NULL ? step->name : "-";
    if (step->kind != STEP_KERNEL) {
        return step->inplace.count == 0 ||
               fail(c, "step %d (%s) is no kernel and names pairs", step->id, name);
    }
    if (step->kernel == NULL) {
        return fail(c, "step %d (%s) has no text", step->id, name);
    }
    if (c->proved[step->id]) {
        return true; /* an earlier turn of the loop around it */
    }
    c->proved[step->id] = true;
    const KernelSites *sites = sites_of(c, step);
    const char *fault = kernel_access_fault(sites, step);
    if (fault != NULL) {
        return fail(c, "step %d (%s): %s", step->id, name, fault);
    }
    for (int i = 0; i < step->inplace.count; i++) {
        const InplacePair *pair = &step->inplace.at[i];
        fault = kernel_share_fault(sites, &step->call, pair->in, pair->out);
        if (fault != NULL) {
            return fail(c, "step %d (%s): the pair (%s over %s) is wrong: %s", step->id, name,
                        pair->out->name, pair->in->name, fault);
        }
    }
    return true;
}

/* Why result `x` of a step must not lie in the bytes of its operand `y`; NULL: it may. */
static const char *share_fault(Check *c, const Step *step, const Access *x, const Access *y) {
    if (step->kind != STEP_KERNEL) {
        return "it is no kernel";
    }
    if (y->mode & ACCESS_WRITE) {
        return "both are written";
    }
    if (x->buf->kind == BUF_WORK) {
        return "a workspace belongs to its step";
    }
    const KernelSites *sites = sites_of(c, step);
    const char *fault = kernel_share_fault(sites, &step->call, y->buf, x->buf);
    return fault != NULL ? fault : kernel_pair_fault(sites, &step->call, y->buf, x->buf);
}

/* Operands of one step may share bytes only where its text allows it. */
static bool check_operands(Check *c, const Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        const Access *x = &step->access.at[i];
        int64_t xlo, xhi;
        if (region_of(x->buf) < 0 || (!(x->mode & ACCESS_WRITE) && x->buf->kind != BUF_WORK)) {
            continue;
        }
        if (!block_of(c, step, x, &xlo, &xhi)) {
            return false;
        }
        for (int k = 0; k < step->access.count; k++) {
            const Access *y = &step->access.at[k];
            int64_t ylo, yhi;
            if (k == i || region_of(y->buf) != region_of(x->buf)) {
                continue;
            }
            if (!block_of(c, step, y, &ylo, &yhi)) {
                return false;
            }
            if (ylo >= xhi || xlo >= yhi) {
                continue;
            }
            bool same = xlo == ylo && xhi == yhi;
            const char *fault = same ? share_fault(c, step, x, y) : "at different places";
            if (fault != NULL) {
                return fail(c, "step %d (%s): %s and %s share bytes: %s", step->id,
                            step->name != NULL ? step->name : "-", x->buf->name, y->buf->name,
                            fault);
            }
        }
    }
    return true;
}

/* The recorded lifetime must hold the whole step of the declaring list. */
static bool check_lifetime(Check *c, const Step *step, const Buf *buf) {
    if (buf->kind != BUF_TEMP && buf->kind != BUF_WORK) {
        return true;
    }
    const Step *at = step;
    while (at != NULL && at->up != buf->loop) {
        at = at->up;
    }
    if (at == NULL) {
        return fail(c, "step %d touches %s outside the loop that declares it", step->id, buf->name);
    }
    int end = at->id + 1;
    for (const Step *last = at; last->body.count > 0; end = last->id + 1) {
        last = last->body.at[last->body.count - 1];
    }
    if (at->id < buf->first || end > buf->last) {
        return fail(c, "step %d touches %s, which lives in %d..%d", step->id, buf->name, buf->first,
                    buf->last);
    }
    return true;
}

static bool slots_intact(Check *c, const Step *check) {
    for (int i = 0; i < c->p->slot.count; i++) {
        const Buf *slot = c->p->slot.at[i];
        int64_t token = c->value[slot->id].token;
        int64_t lo = slot->offset, hi = lo + slot->bytes;
        if (c->origin.at[token - 1].step >= 0 ||
            span_other(&c->map[region_of(slot)], lo, hi, token) != token) {
            return fail(c, "%s is written before step %d checks the loss", slot->name, check->id);
        }
    }
    return true;
}

static bool run_step(Check *c, const Step *step) {
    for (int i = 0; i < step->access.count; i++) {
        if (!check_lifetime(c, step, step->access.at[i].buf)) {
            return false;
        }
    }
    if (!check_text(c, step) || !check_operands(c, step)) {
        return false;
    }
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if ((access->mode & ACCESS_READ) && access->buf->kind != BUF_WORK &&
            !read_value(c, step, access)) {
            return false;
        }
    }
    int64_t moved = 0;
    if (step->kind == STEP_COPY) {
        if (step->src->bytes != step->dst->bytes || step_find(step, step->src) == NULL ||
            step_find(step, step->dst) == NULL) {
            return fail(c, "step %d copies between unequal Bufs", step->id);
        }
        moved = c->value[step->src->id].token;
    }
    /* Workspaces first: a result that overlaps one would be overwritten by it. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < step->access.count; i++) {
            const Access *access = &step->access.at[i];
            if ((access->buf->kind == BUF_WORK) == (pass == 0) &&
                ((access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) &&
                !write_value(c, step, access, moved)) {
                return false;
            }
        }
    }
    return step->kind != STEP_CHECK || slots_intact(c, step);
}

/* At the end of a list the values that it makes for destinations are there. */
static bool check_dests(Check *c, const Step *loop) {
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i], *dest = buf->dest;
        if (dest == NULL || buf->loop != loop) {
            continue;
        }
        Value *v = &c->value[buf->id], *d = &c->value[dest->id];
        if (v->token == 0 || !complete(v)) {
            return fail(c, "%s, the next value of %s, is not written", buf->name, dest->name);
        }
        if (dest->bytes != buf->bytes ||
            span_other(&c->map[region_of(dest)], dest->offset, dest->offset + dest->bytes,
                       v->token) != v->token) {
            return fail(c, "%s does not arrive in %s", buf->name, dest->name);
        }
        d->token = v->token;
    }
    return true;
}

/* Where a slice that `loop` picks lies in each of its turns: `at` + position * pitch, so many
 * bytes; a Buf that it does not pick from lies still. */
typedef struct {
    int64_t at, pitch, bytes;
    bool moves;
} Track;

static Track track_of(const Check *c, const Access *access, const Step *loop) {
    const Buf *buf = access->buf;
    Track t = {.at = buf->offset, .bytes = buf->bytes};
    for (int k = 0; k < ACCESS_SLICES && access->slice[k] != NULL && !t.moves; k++) {
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type.elem);
        const Turn *turn = turn_of(c, access->slice[k]);
        if (access->slice[k] == loop) {
            t.pitch = t.bytes = pitch;
            t.moves = true;
        } else if (turn != NULL) {
            t.at += position(turn, turn->turn) * pitch;
            t.bytes = pitch;
        } else {
            break; /* a loop further inside: all its positions */
        }
    }
    return t;
}

/* Does the slice written in some turn reach bytes that a later one reads, or its own one later?
 * Both are of the tracks of one loop. */
static bool reaches_later(const Step *loop, const Track *write, const Track *read, bool before) {
    for (int64_t turn = 0; turn < loop->trip; turn++) {
        int64_t first = turn + (before ? 0 : 1), last = loop->trip - 1;
        if (first > last) {
            return false;
        }
        int64_t j = loop->reverse ? last - turn : turn;
        int64_t from = loop->reverse ? 0 : first, to = loop->reverse ? last - first : last;
        int64_t lo = write->at + j * write->pitch, hi = lo + write->bytes;
        if (lo < read->at + to * read->pitch + read->bytes && read->at + from * read->pitch < hi) {
            return true;
        }
    }
    return false;
}

typedef struct {
    const Step *step;
    const Access *access;
} Touch;
typedef VEC(Touch) TouchList;

static void collect_touches(Check *c, const StepList *list, TouchList *touch) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        collect_touches(c, &step->body, touch);
        for (int k = 0; step->kind != STEP_LOOP && k < step->access.count; k++) {
            if (region_of(step->access.at[k].buf) >= 0) {
                VEC_PUSH(c->arena, touch, ((Touch){step, &step->access.at[k]}));
            }
        }
    }
}

static bool whole_tracks_meet(const Step *loop, const Track *a, const Track *b) {
    int64_t a_end = a->at + (loop->trip - 1) * a->pitch + a->bytes;
    int64_t b_end = b->at + (loop->trip - 1) * b->pitch + b->bytes;
    return a->at < b_end && b->at < a_end;
}

/* While a loop runs, a stack that it writes shares bytes with nothing that the loop touches, but
 * for what has the same root: there a slice must leave alone what later turns read of values made
 * before the loop. The two turns see their own slices alone. */
static bool check_tracks(Check *c, const Step *loop) {
    TouchList touch = {0};
    collect_touches(c, &loop->body, &touch);
    for (int i = 0; i < touch.count; i++) {
        const Touch *w = &touch.at[i];
        const Buf *stack = w->access->buf;
        Track write = track_of(c, w->access, loop);
        for (int k = 0; k < touch.count && write.moves && (w->access->mode & ACCESS_WRITE); k++) {
            const Touch *t = &touch.at[k];
            const Buf *buf = t->access->buf;
            Track other = track_of(c, t->access, loop);
            if (buf == stack || region_of(buf) != region_of(stack)) {
                continue;
            }
            if (root_of(buf) != root_of(stack)) {
                if (whole_tracks_meet(loop, &write, &other)) {
                    return fail(
                        c, "step %d touches %s, which shares bytes with %s, a stack of loop %d",
                        t->step->id, buf->name, stack->name, loop->id);
                }
                continue;
            }
            /* In one step they share bytes as the first turn has shown, or not at all. */
            bool same =
                write.at == other.at && write.pitch == other.pitch && write.bytes == other.bytes;
            bool before = w->step->id < t->step->id || (w->step == t->step && !same);
            if ((t->access->mode & ACCESS_READ) && !written_inside(c, buf, loop) &&
                reaches_later(loop, &write, &other, before)) {
                return fail(c, "step %d writes %s over %s, which step %d reads in a later turn",
                            w->step->id, stack->name, buf->name, t->step->id);
            }
        }
    }
    return true;
}

/* Positions that two iterations did not reach are filled. */
static void fill_slices(Check *c, const Step *loop, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            fill_slices(c, loop, &step->body);
            continue;
        }
        for (int k = 0; k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            const Buf *buf = access->buf;
            int64_t base = buf->offset;
            int level = 0;
            while (level < ACCESS_SLICES && access->slice[level] != NULL &&
                   access->slice[level] != loop) {
                const Turn *turn = turn_of(c, access->slice[level]);
                int64_t pitch = buf->stride[level] * (int64_t)elem_bytes(buf->type.elem);
                base += turn != NULL ? position(turn, turn->turn) * pitch : 0;
                level++;
            }
            if (!(access->mode & ACCESS_WRITE) || level == ACCESS_SLICES ||
                access->slice[level] != loop) {
                continue;
            }
            int64_t pitch = buf->stride[level] * (int64_t)elem_bytes(buf->type.elem);
            int64_t lo = base + (loop->reverse ? 0 : 2) * pitch;
            int64_t hi = base + (loop->reverse ? loop->trip - 2 : loop->trip) * pitch;
            int64_t token = c->value[buf->id].token;
            span_set(c->arena, &c->map[region_of(buf)], lo, hi, token);
        }
    }
}

/* What many steps call is read once; of many kernels not all are kept. */
enum { TEXTS_KEPT = 512 };

static void forget_texts(Check *c) {
    arena_free(&c->text);
    memset(c->sites, 0, sizeof(const KernelSites *) * (size_t)c->p->kernel.count);
    c->read = 0;
}

static bool run_list(Check *c, const StepList *list, const Step *up);

static bool run_loop(Check *c, const Step *loop) {
    if (c->depth == MAX_TURNS) {
        return fail(c, "loops are nested deeper than %d", MAX_TURNS);
    }
    int first_id = c->next_id;
    Turn *turn = &c->turn[c->depth++];
    turn->loop = loop;
    for (int64_t k = 0; k < loop->trip && k < 2; k++) {
        turn->turn = k;
        c->next_id = first_id;
        for (int i = 0; i < c->e->buf.count; i++) {
            if (c->e->buf.at[i]->loop == loop) {
                Value *v = &c->value[c->e->buf.at[i]->id];
                v->token = 0;
                for (int w = 0; w < v->writer.count; w++) {
                    v->writer.at[w].seen = false;
                }
            }
        }
        if (!run_list(c, &loop->body, loop) || !check_dests(c, loop)) {
            return false;
        }
    }
    c->depth--;
    if (loop->trip > 2) {
        fill_slices(c, loop, &loop->body);
    }
    return check_tracks(c, loop);
}

/* How far the accesses to a Buf have come in one list, by positions as lowered. */
typedef struct Progress {
    int last_read, last_write; /* the largest so far */
    bool whole;                /* that write was not a part */
} Progress;

/* Nothing has been seen of what the list touches. */
static void open_progress(const StepList *list, Progress *progress) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        open_progress(&step->body, progress);
        for (int k = 0; k < step->access.count; k++) {
            progress[step->access.at[k].buf->id] = (Progress){-1, -1, false};
        }
    }
}

static bool check_access_order(Check *c, const Step *item, const Step *step, Progress *progress) {
    for (int i = 0; i < step->body.count; i++) {
        if (!check_access_order(c, item, step->body.at[i], progress)) {
            return false;
        }
    }
    for (int i = 0; step->kind != STEP_LOOP && i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        Progress *at = &progress[access->buf->id];
        bool write = (access->mode & ACCESS_WRITE) != 0;
        bool whole = write && !(access->mode & ACCESS_PART);
        if (((access->mode & ACCESS_READ) && at->last_write > item->lowered) ||
            (write && at->last_read > item->lowered) ||
            (write && (whole || at->whole) && at->last_write > item->lowered)) {
            return fail(c, "step %d (%s) touches %s later than it may", step->id,
                        step->name != NULL ? step->name : "-", access->buf->name);
        }
        if ((access->mode & ACCESS_READ) && item->lowered > at->last_read) {
            at->last_read = item->lowered;
        }
        if (write && item->lowered > at->last_write) {
            at->last_write = item->lowered;
            at->whole = whole;
        }
    }
    return true;
}

/* Steps that touch the same Buf, one of them writing, stand in the order in which they were
 * lowered; of a carry, the loop that makes its next values writes it. */
static bool check_order(Check *c, const StepList *list, int depth) {
    if (depth > MAX_TURNS) {
        return fail(c, "loops are nested deeper than %d", MAX_TURNS);
    }
    if (c->progress[depth] == NULL) {
        c->progress[depth] = ARENA_ARRAY(c->arena, Progress, c->p->nbuf + 1);
    }
    Progress *progress = c->progress[depth];
    open_progress(list, progress);
    for (int i = 0; i < c->e->buf.count; i++) { /* destinations of loops may be touched by none */
        if (c->e->buf.at[i]->dest != NULL) {
            progress[c->e->buf.at[i]->dest->id] = (Progress){-1, -1, false};
        }
    }
    for (int i = 0; i < list->count; i++) {
        const Step *item = list->at[i];
        if (!check_access_order(c, item, item, progress)) {
            return false;
        }
        for (int k = 0; item->kind == STEP_LOOP && k < c->e->buf.count; k++) {
            const Buf *buf = c->e->buf.at[k];
            if (buf->loop != item || buf->dest == NULL) {
                continue;
            }
            Progress *at = &progress[buf->dest->id];
            if (at->last_write > item->lowered || at->last_read > item->lowered) {
                return fail(c, "step %d moves %s on later than it may", item->id, buf->dest->name);
            }
            at->last_write = item->lowered;
            at->whole = true;
        }
        if (item->kind == STEP_LOOP && !check_order(c, &item->body, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool run_list(Check *c, const StepList *list, const Step *up) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->id != c->next_id++ || step->up != up) {
            return fail(c, "step %d is not numbered in order", step->id);
        }
        if (step->kind == STEP_LOOP ? !run_loop(c, step) : !run_step(c, step)) {
            return false;
        }
        if (up == NULL && c->read > TEXTS_KEPT) {
            forget_texts(c);
        }
    }
    return true;
}

/* ---- entries -------------------------------------------------------------------------------- */

static int count_steps(const StepList *list) {
    int count = list->count;
    for (int i = 0; i < list->count; i++) {
        count += count_steps(&list->at[i]->body);
    }
    return count;
}

static void collect_writers(Check *c, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        collect_writers(c, &step->body);
        for (int k = 0; step->kind != STEP_LOOP && k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            if (access->mode & ACCESS_WRITE) {
                Writer writer = {step, (access->mode & ACCESS_PART) != 0, false};
                VEC_PUSH(c->arena, &c->value[access->buf->id].writer, writer);
            }
        }
    }
}

/* A check of the list reads the value of this result. */
static bool has_check(const ProgramEntry *e, const Buf *result) {
    for (int i = 0; i < e->step.count; i++) {
        const Step *step = e->step.at[i];
        for (int k = 0; step->kind == STEP_CHECK && k < step->access.count; k++) {
            const Buf *buf = step->access.at[k].buf;
            if (buf == result || buf->dest == result) {
                return true;
            }
        }
    }
    return false;
}

static bool open_entry(Check *c) {
    const Program *p = c->p;
    const ProgramEntry *e = c->e;
    EntryKind kind = e->entry->kind;
    bool private_io = kind == ENTRY_LOAD || kind == ENTRY_EVAL_END;
    if (e->arena_bytes > p->arena_bytes || (!private_io && e->io_bytes > p->io_bytes)) {
        return fail(c, "it needs more than the regions have");
    }
    memset(c->map, 0, sizeof c->map);
    c->proved = ARENA_ARRAY(c->arena, bool, count_steps(&e->step) + 1);
    c->origin.count = c->depth = c->next_id = 0;
    for (int i = 0; i < p->slot.count; i++) {
        c->value[p->slot.at[i]->id] = (Value){0};
    }
    for (int i = 0; i < p->table.count; i++) {
        c->value[p->table.at[i]->id] = (Value){0};
    }
    collect_writers(c, &e->step);
    for (int i = 0; i < p->slot.count; i++) {
        const Buf *slot = p->slot.at[i];
        int64_t limit = slot->kind == BUF_PARAM ? p->params_bytes : p->state_bytes;
        if (!check_place(c, slot, limit)) {
            return false;
        }
        c->value[slot->id].token = new_token(c, slot, -1);
        span_set(c->arena, &c->map[region_of(slot)], slot->offset, slot->offset + slot->bytes,
                 c->value[slot->id].token);
    }
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        bool temp = buf->kind == BUF_TEMP || buf->kind == BUF_WORK;
        bool used = !temp || buf->first < buf->last;
        int64_t limit[REGIONS] = {p->params_bytes, p->state_bytes, e->io_bytes, e->arena_bytes};
        int region = region_of(buf);
        if (used && !check_place(c, buf, region >= 0 ? limit[region] : 0)) {
            return false;
        }
        if (buf->kind == BUF_INPUT && region == IO) {
            c->value[buf->id].token = new_token(c, buf, -1);
            span_set(c->arena, &c->map[IO], buf->offset, buf->offset + buf->bytes,
                     c->value[buf->id].token);
        }
    }
    return true;
}

/* A Buf of another entry holds nothing. */
static void forget_entry(Check *c) {
    for (int i = 0; i < c->e->buf.count; i++) {
        c->value[c->e->buf.at[i]->id] = (Value){0};
    }
}

static bool close_entry(Check *c) {
    for (int i = 0; i < c->p->slot.count; i++) {
        const Buf *slot = c->p->slot.at[i];
        int64_t token = c->value[slot->id].token;
        if (span_other(&c->map[region_of(slot)], slot->offset, slot->offset + slot->bytes, token) !=
            token) {
            return fail(c, "%s is overwritten", slot->name);
        }
    }
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i];
        if (buf->kind != BUF_RESULT) {
            continue;
        }
        int64_t token = c->value[buf->id].token;
        if (token == 0 ||
            span_other(&c->map[IO], buf->offset, buf->offset + buf->bytes, token) != token) {
            return fail(c, "the result %s is not there at the end", buf->name);
        }
        bool loss = c->e->entry->kind == ENTRY_TRAIN && elem_is_float(buf->type.elem) &&
                    buf->out >= 0 && c->e->entry->out.at[buf->out].role == OUT_LOSS;
        if (loss && !has_check(c->e, buf)) {
            return fail(c, "the loss is not checked");
        }
    }
    return true;
}

const char *check_program(Arena *scratch, const Program *p) {
    Check c = {.arena = scratch, .p = p};
    c.value = ARENA_ARRAY(scratch, Value, p->nbuf + 1);
    c.sites = ARENA_ARRAY(scratch, const KernelSites *, p->kernel.count + 1);
    int64_t sum = p->params_bytes + p->state_bytes + p->io_bytes + p->arena_bytes;
    if (p->total_bytes != sum || p->params_bytes % 64 != 0 || p->state_bytes % 64 != 0 ||
        p->io_bytes % 64 != 0 || p->arena_bytes % 64 != 0) {
        return "the totals do not add up";
    }
    for (int i = 0; i < p->entry.count; i++) {
        c.e = p->entry.at[i];
        if (!open_entry(&c) || !check_order(&c, &c.e->step, 0) || !run_list(&c, &c.e->step, NULL) ||
            !check_dests(&c, NULL) || !close_entry(&c)) {
            arena_free(&c.text);
            return c.fault;
        }
        forget_entry(&c);
    }
    arena_free(&c.text);
    return NULL;
}
