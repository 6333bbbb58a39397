/* check_ends: loops whose number of turns the run decides, see check.h.
 *
 * Two turns stand for two and more, as of every loop. A run may also make one turn, or none. Of
 * what lives outside the loop its body writes slices, which are followed by the last index that
 * bounds them, and the next values of carries; so where no turn runs each carry must still hold
 * what it starts from, and nothing else outside is written by it. A slice is read by a loop alone
 * that has the same last index: the Buf of it was set by the loop that wrote the slices, or is the
 * one that bounds both.
 *
 * Needs a planned Program, changes nothing of it; faults go to Check. */
#include "passes/check_ends.h"

static int slice_count(const Access *access) {
    int n = 0;
    while (n < ACCESS_SLICES && access->slice[n] != NULL) {
        n++;
    }
    return n;
}

/* How a loop touches one of what ends it. */
static const Access *own_access(const Step *loop, const Buf *buf, int mode) {
    for (int i = 0; buf != NULL && i < loop->own.count; i++) {
        if (loop->own.at[i].buf == buf && loop->own.at[i].mode == mode) {
            return &loop->own.at[i];
        }
    }
    return NULL;
}

/* The Buf that holds its last index while its stacks are read. */
static const Access *last_of(const Step *loop) {
    return loop->go != NULL ? own_access(loop, loop->made, ACCESS_WRITE)
                            : own_access(loop, loop->last, ACCESS_READ);
}

/* Scalars, or slices of stacks of them, that the loop says it touches. */
static bool check_own(Check *c, const Step *loop, const Buf *buf, int mode, Elem elem) {
    const Access *own = own_access(loop, buf, mode);
    if (own == NULL || step_find(loop, buf) == NULL || buf->type->elem != elem ||
        slice_count(own) != buf->type->rank) {
        return check_fail(c, "loop %d does not touch %s as what ends it", loop->id, buf->name);
    }
    for (int k = 0; k < slice_count(own); k++) {
        if (own->slice[k] == loop || !check_is_around(own->slice[k], loop)) {
            return check_fail(c, "loop %d looks at a slice of %s that no loop around it picks",
                              loop->id, buf->name);
        }
    }
    return true;
}

static bool is_carry(const Check *c, const Buf *buf, const Step *loop) {
    const BufList *declared = check_declared(c, loop);
    for (int i = 0; i < declared->count; i++) {
        if (declared->at[i]->loop == loop && declared->at[i]->final == buf) {
            return true;
        }
    }
    return false;
}

/* What the body writes of what is declared around the loop are slices of it, or its carries. */
static bool check_body(Check *c, const Step *loop, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const AccessList *touch = step_touches(step);
        for (int k = 0; k < touch->count; k++) {
            const Access *access = &touch->at[k];
            const Buf *buf = access->buf;
            bool apart = check_declared_in(buf, loop) || check_picks(loop, access);
            if ((access->mode & ACCESS_WRITE) && !apart && !is_carry(c, buf, loop)) {
                return check_fail(c, "step %d writes %s in loop %d, which may have no turn",
                                  step->id, buf->name, loop->id);
            }
        }
        if (!check_body(c, loop, &step->body)) {
            return false;
        }
    }
    return true;
}

bool check_ends_open(Check *c, const Step *loop) {
    if ((loop->go != NULL) + (loop->last != NULL) > 1 || (loop->go != NULL && loop->reverse) ||
        (loop->made != NULL && loop->go == NULL)) {
        return check_fail(c, "loop %d ends in more than one way", loop->id);
    }
    if (!step_ends_itself(loop)) {
        return loop->own.count == 0 || loop->rest != NULL ||
               check_fail(c, "loop %d runs all turns and looks at %s", loop->id,
                          loop->own.at[0].buf->name);
    }
    if ((loop->go != NULL && !check_own(c, loop, loop->go, ACCESS_READ, TY_BOOL)) ||
        (loop->last != NULL && !check_own(c, loop, loop->last, ACCESS_READ, TY_I32)) ||
        (loop->made != NULL && !check_own(c, loop, loop->made, ACCESS_WRITE, TY_I32)) ||
        !check_body(c, loop, &loop->body)) {
        return false;
    }
    if (loop->go != NULL && !is_carry(c, loop->go, loop)) {
        return check_fail(c, "%s, which ends loop %d, is no carry of it", loop->go->name, loop->id);
    }
    const BufList *declared = check_declared(c, loop);
    for (int i = 0; i < declared->count; i++) { /* what a loop without turns leaves */
        const Buf *carry = declared->at[i]->final;
        Access whole = {.buf = (Buf *)carry, .mode = ACCESS_READ};
        if (carry != NULL && declared->at[i]->loop == loop && carry->bytes > 0 &&
            !check_read(c, loop, &whole)) {
            return false;
        }
    }
    const Access *last = own_access(loop, loop->last, ACCESS_READ);
    return last == NULL || (check_read(c, loop, last) && check_ends_read(c, loop, last));
}

bool check_ends_turn(Check *c, const Step *loop) {
    return loop->go == NULL || check_read(c, loop, own_access(loop, loop->go, ACCESS_READ));
}

/* Is `at` the place among the turns of loops around in which `writer` wrote what `access` reads? Up
 * to axis n both are picked by the same loops, the innermost last; what lacks the outer ones of
 * these lives in the turn at hand of them, which are around the writer. */
static bool same_turns(const Step *writer, const Access *at, const Access *access, int n) {
    const int m = slice_count(at), both = m < n ? m : n;
    bool same = true;
    for (int j = 1; j <= both; j++) {
        same = same && at->slice[m - j] == access->slice[n - j];
    }
    for (int j = 0; j < m - both; j++) {
        same = same && check_is_around(at->slice[j], writer);
    }
    for (int j = 0; j < n - both; j++) {
        same = same && check_is_around(access->slice[j], writer);
    }
    return same;
}

/* The slices behind the last index of the loop are not written. Where the loops that pick that
 * index are not the first ones that pick slices, no reader has the same end: the rest is cleared
 * first. */
static void mark_parts(Check *c, const Step *loop, const StepList *list) {
    const Access *last = last_of(loop);
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const AccessList *touch = step_touches(step);
        for (int k = 0; k < touch->count; k++) {
            const Access *access = &touch->at[k];
            for (int n = 0; (access->mode & ACCESS_WRITE) && n < slice_count(access); n++) {
                const bool alike = last == NULL || same_turns(loop, last, access, n);
                if (access->slice[n] == loop) {
                    c->value[access->buf->id].part[n] = loop;
                    c->value[access->buf->id].beside[n] = !alike;
                }
            }
        }
        mark_parts(c, loop, &step->body);
    }
}

bool check_ends_close(Check *c, const Step *loop) {
    Ends *ends = &c->ends[loop->id];
    if (!step_ends_itself(loop)) {
        return true;
    }
    *ends = (Ends){0};
    if (loop->made != NULL) {
        if (!check_write(c, loop, own_access(loop, loop->made, ACCESS_WRITE), 0)) {
            return false;
        }
        c->value[loop->made->id].counts = loop;
        ends->counts = loop;
    }
    if (loop->last != NULL) {
        ends->counts = c->value[loop->last->id].counts;
        ends->token = c->value[loop->last->id].token;
        ends->last = loop->last;
    }
    mark_parts(c, loop, &loop->body);
    return true;
}

/* Have both loops one last index? It is the same loop's, or the same Buf's with the same value. */
static bool same_end(const Check *c, const Step *a, const Step *b) {
    const Ends *x = &c->ends[a->id];
    const Value *v = b->last != NULL ? &c->value[b->last->id] : NULL;
    if (v == NULL) {
        return false;
    }
    return (x->counts != NULL && x->counts == v->counts) ||
           (x->last == b->last && x->last != NULL &&
            (x->token == v->token || check_region(b->last) < 0));
}

bool check_ends_read(Check *c, const Step *step, const Access *access) {
    const Value *v = &c->value[access->buf->id];
    int n = slice_count(access);
    for (int k = 0; k < ACCESS_SLICES; k++) {
        const Step *writer = v->part[k];
        if (writer == NULL) {
            continue;
        }
        const Step *reader = k < n ? access->slice[k] : NULL;
        if (reader == writer) {
            continue; /* the turn at hand has made it */
        }
        const Access *last = reader != NULL ? last_of(reader) : NULL;
        if (last == NULL || v->beside[k] || !same_end(c, writer, reader) ||
            !same_turns(writer, last, access, k)) {
            return check_fail(c, "step %d (%s) reads what loop %d has not written of %s", step->id,
                              step->name != NULL ? step->name : "-", writer->id,
                              access->buf->name);
        }
    }
    return true;
}

bool check_ends_whole(Check *c, const Buf *buf) {
    const Value *v = &c->value[buf->id];
    for (int k = 0; k < ACCESS_SLICES; k++) {
        if (v->part[k] != NULL) {
            return check_fail(c, "what loop %d has not written of %s is kept", v->part[k]->id,
                              buf->name);
        }
    }
    return true;
}

bool check_clear(Check *c, const Step *clear) {
    const Access *to = step_find(clear, clear->dst), *from = step_find(clear, clear->src);
    int n = to != NULL ? slice_count(to) : 0;
    if (to == NULL || from == NULL || clear->access.count != 2 || n >= ACCESS_SLICES ||
        n >= clear->dst->type->rank || !(to->mode & ACCESS_WRITE)) {
        return check_fail(c, "step %d clears no stack", clear->id);
    }
    Value *v = &c->value[clear->dst->id];
    const Step *writer = v->part[n];
    const Access *last = writer != NULL ? last_of(writer) : NULL;
    bool same = last != NULL && last->buf == clear->src && v->token != 0 &&
                slice_count(from) == slice_count(last);
    for (int j = 0; same && j < slice_count(last); j++) {
        same = from->slice[j] == last->slice[j];
    }
    if (!same || !check_read(c, clear, from)) {
        return c->fault != NULL ||
               check_fail(c, "step %d clears %s behind another last index", clear->id,
                          clear->dst->name);
    }
    if (!check_write(c, clear, to, v->token)) {
        return false;
    }
    v->part[n] = NULL;
    return true;
}
