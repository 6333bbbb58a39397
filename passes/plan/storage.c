/* storage: resolves destinations, then lets results take over the bytes of operands that die.
 *
 * A destination (parameter, state, carry, result) is taken over by the temporary that makes its
 * next value when every read of the old value comes first; otherwise a copy at the end of the list
 * moves it. A result takes over an operand of the same layout when the step says that it may and
 * nothing reads the operand later. The test for both is the same: in the list that declares the new
 * Buf, all readers of the old bytes stand before its first writer, or are that writer and name the
 * pair; inside a loop that addresses both by slices of its index the test is made for one
 * iteration. The reads of the bytes of each root are kept in order of steps, so that a test looks
 * at the late ones alone. Needs an ordered, numbered entry; gives Buf.root and STEP_COPYs; changes
 * no values. */
#include "passes/plan/storage.h"

#include "passes/plan/live.h"

#include <string.h>

static bool same_layout(const Buf *a, const Buf *b) {
    return a->bytes == b->bytes && elem_bytes(a->type.elem) == elem_bytes(b->type.elem) &&
           type_count(a->type) == type_count(b->type) && buf_extent(a) == buf_extent(b) &&
           (type_same_shape(a->type, b->type)
                ? memcmp(a->stride, b->stride, sizeof a->stride) == 0
                : buf_extent(a) == type_bytes(a->type)); /* b has the same, and no gap either */
}

/* A read of bytes by a step, or inside it. */
typedef struct {
    const Step *step;
    const Access *access;
} Reading;

/* Who touches what, by Buf.id. */
typedef struct {
    Arena *scratch;
    ProgramEntry *e;
    VEC(Reading) * read;        /* of the bytes of a root, by Step.id */
    VEC(const Step *) * writer; /* of a Buf alone, by Step.id */
    const Step *check;          /* NULL: none */
} Uses;

static void uses_note(void *ctx, Step *step, int depth) {
    Uses *u = ctx;
    (void)depth;
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if (access->mode & ACCESS_READ) {
            VEC_PUSH(u->scratch, &u->read[buf_root(access->buf)->id], ((Reading){step, access}));
        }
        if (access->mode & ACCESS_WRITE) {
            VEC_PUSH(u->scratch, &u->writer[access->buf->id], step);
        }
    }
    u->check = step->kind == STEP_CHECK ? step : u->check;
}

/* Needs numbered steps. */
static Uses uses_of(Arena *scratch, const Program *p, ProgramEntry *e) {
    Uses u = {.scratch = scratch, .e = e};
    u.read = arena_alloc(scratch, sizeof *u.read * (size_t)(p->nbuf + 1));
    u.writer = arena_alloc(scratch, sizeof *u.writer * (size_t)(p->nbuf + 1));
    steps_visit(&e->step, uses_note, &u);
    return u;
}

/* From now on `buf` has the bytes of `root`. */
static void uses_join(Uses *u, Buf *buf, Buf *root) {
    Buf *old = buf_root(root);
    buf->root = root;
    for (int i = 0; i < u->read[buf->id].count; i++) {
        Reading reading = u->read[buf->id].at[i];
        VEC_PUSH(u->scratch, &u->read[old->id], reading);
        int at = u->read[old->id].count - 1;
        for (; at > 0 && u->read[old->id].at[at - 1].step->id > reading.step->id; at--) {
            u->read[old->id].at[at] = u->read[old->id].at[at - 1];
        }
        u->read[old->id].at[at] = reading;
    }
}

/* The first step of the list of `loop` that writes `buf`, or holds one that does. */
static const Step *first_writer(const Uses *u, const Buf *buf, const Step *loop) {
    for (int i = 0; i < u->writer[buf->id].count; i++) {
        if (u->writer[buf->id].at[i]->up == loop) {
            return u->writer[buf->id].at[i];
        }
    }
    return NULL;
}

/* Every access to the old or the new bytes inside `loop` is to the slice of its iteration. */
static bool sliced_by(const Step *top, const Step *loop, const Buf *old, const Buf *next,
                      int level) {
    for (int i = 0; i < loop->body.count; i++) {
        const Step *step = loop->body.at[i];
        if (step->kind == STEP_LOOP) {
            if (!sliced_by(top, step, old, next, level)) {
                return false;
            }
            continue;
        }
        for (int k = 0; k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            if ((access->buf == next || buf_root(access->buf) == old) &&
                access->slice[level] != top) {
                return false;
            }
        }
    }
    return true;
}

/* In the list of `loop`, where `old` is a root. */
static bool order_allows(const Uses *u, const Step *loop, const Buf *old, const Buf *next,
                         int level) {
    const Step *writer = first_writer(u, next, loop);
    for (int i = u->read[old->id].count - 1; writer && i >= 0; i--) {
        const Step *step = u->read[old->id].at[i].step;
        const Access *access = u->read[old->id].at[i].access;
        if (step->id < writer->id) {
            break;
        }
        if (step->up != loop || access->buf == next) {
            continue;
        }
        if (step != writer || step->kind == STEP_COPY) {
            return false;
        }
        if (step->kind == STEP_KERNEL) {
            if (!step_pairs(step, access->buf, next)) {
                return false;
            }
        } else if (level == ACCESS_SLICES || !sliced_by(step, step, old, next, level) ||
                   !order_allows(u, step, old, next, level + 1)) {
            return false;
        }
    }
    return true;
}

/* ---- destinations --------------------------------------------------------------------------- */

static bool after_check(const Uses *u, const Buf *buf) {
    const Step *writer = first_writer(u, buf, NULL);
    return !u->check || !writer || writer->id > u->check->id;
}

/* The list in which a Buf is declared, and the loop that holds that loop. */
static StepList *list_of(ProgramEntry *e, const Buf *buf) {
    return buf->loop != NULL ? &buf->loop->body : &e->step;
}

/* A destination may have a destination itself: the final value of a carry that goes to a
 * parameter. */
static bool dest_can_be_root(const Uses *u, const Buf *buf) {
    const Buf *dest = buf->dest, *old = buf_root(dest);
    if (buf->root != buf || !same_layout(buf, dest) || !same_layout(dest, old)) {
        return false;
    }
    if (dest->kind == BUF_RESULT) {
        return buf->loop == NULL;
    }
    if (dest->kind == BUF_TEMP) { /* a carry of the loop that declares buf */
        if (buf->loop == NULL || buf->loop->up != dest->loop) {
            return false;
        }
    } else if (buf->loop != NULL || !after_check(u, buf)) {
        return false;
    }
    return order_allows(u, buf->loop, old, buf, 0);
}

static void append_copy(Program *p, ProgramEntry *e, Buf *buf) {
    if (!type_same_shape(buf->type, buf->dest->type) || buf->bytes != buf->dest->bytes) {
        BUG("%s cannot become %s: their layouts differ", buf->name, buf->dest->name);
    }
    Step *copy = step_new(p, STEP_COPY, buf->loc);
    copy->src = buf;
    copy->dst = buf->dest;
    copy->lowered = INT32_MAX; /* ends its list */
    copy->bytes_moved = 2 * buf->bytes;
    copy->text = str_printf(p->arena, "%s = %s", buf->dest->name, buf->name);
    step_access(p, copy, buf, ACCESS_READ);
    step_access(p, copy, buf->dest, ACCESS_WRITE);
    VEC_PUSH(p->arena, list_of(e, buf), copy);
    for (Step *loop = buf->loop; loop != NULL; loop = loop->up) {
        step_access_body(p, loop);
    }
}

/* ---- operands that die ---------------------------------------------------------------------- */

/* The step of the list that declares `buf` in which `inner` lies. */
static const Step *step_holding(const Buf *buf, const Step *inner) {
    while (inner != NULL && inner->up != buf->loop) {
        inner = inner->up;
    }
    return inner;
}

/* Another result of the same step has these bytes already: possible when that one is never read. */
static bool taken_by_other(const Step *step, const Buf *out, const Buf *root) {
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        if ((access->mode & ACCESS_WRITE) && access->buf != out && buf_root(access->buf) == root) {
            return true;
        }
    }
    return false;
}

static void take_over(Uses *u, const Step *step, const InplacePair *pair) {
    Buf *in = pair->in, *out = pair->out, *root = buf_root(in);
    if (in->kind != BUF_TEMP || out->kind != BUF_TEMP || root->kind != BUF_TEMP ||
        out->root != out || out == root || root->loop != out->loop || !same_layout(in, out)) {
        return;
    }
    const Step *at = step_holding(out, step);
    if (at == NULL || root->last != step_end(at) || out->first != at->id ||
        taken_by_other(step, out, root) || !order_allows(u, out->loop, root, out, 0)) {
        return;
    }
    uses_join(u, out, root);
    root->last = out->last > root->last ? out->last : root->last;
}

static void visit_pairs(void *ctx, Step *step, int depth) {
    (void)depth;
    for (int i = 0; step->kind == STEP_KERNEL && i < step->inplace.count; i++) {
        take_over(ctx, step, &step->inplace.at[i]);
    }
}

void pass_inplace(Program *p, ProgramEntry *e) {
    int nbuf = e->buf.count;
    Arena scratch = {0};
    Uses uses = uses_of(&scratch, p, e);
    for (int i = 0; i < nbuf; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->dest != NULL && dest_can_be_root(&uses, buf)) {
            uses_join(&uses, buf, buf->dest);
        }
    }
    for (int i = 0; i < nbuf; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->dest != NULL && buf->root != buf->dest) {
            append_copy(p, e, buf);
        }
    }
    program_number(e);
    live_ranges(e);
    uses = uses_of(&scratch, p, e);
    steps_visit(&e->step, visit_pairs, &uses);
    live_ranges(e);
    arena_free(&scratch);
}
