/* check_loop: two turns of a loop stand for all (check.c). What slices add is looked at here for
 * all positions at once; and the order of the steps of each list.
 *
 * Needs a planned Program, changes nothing of it; faults go to Check. */
#include "passes/check_loop.h"

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
        int64_t pitch = buf->stride[k] * (int64_t)elem_bytes(buf->type->elem);
        const Turn *turn = check_turn(c, access->slice[k]);
        if (access->slice[k] == loop) {
            t.pitch = t.bytes = pitch;
            t.moves = true;
        } else if (turn != NULL) {
            t.at += check_position(turn, turn->turn) * pitch;
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
        const AccessList *own = step_touches(step);
        for (int k = 0; k < own->count; k++) {
            if (check_region(own->at[k].buf) >= 0) {
                VEC_PUSH(c->arena, touch, ((Touch){step, &own->at[k]}));
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
bool check_tracks(Check *c, const Step *loop) {
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
            if (buf == stack || check_region(buf) != check_region(stack)) {
                continue;
            }
            if (check_root(buf) != check_root(stack)) {
                if (whole_tracks_meet(loop, &write, &other)) {
                    return check_fail(
                        c, "step %d touches %s, which shares bytes with %s, a stack of loop %d",
                        t->step->id, buf->name, stack->name, loop->id);
                }
                continue;
            }
            /* In one step they share bytes as the first turn has shown, or not at all. */
            bool same =
                write.at == other.at && write.pitch == other.pitch && write.bytes == other.bytes;
            bool before = w->step->id < t->step->id || (w->step == t->step && !same);
            bool inside = check_written_inside(c, buf, loop);
            if (inside && !same && whole_tracks_meet(loop, &write, &other)) {
                return check_fail(c,
                                  "step %d writes %s in some turn over %s, which each turn makes",
                                  w->step->id, stack->name, buf->name);
            }
            if (!inside && (t->access->mode & ACCESS_READ) &&
                reaches_later(loop, &write, &other, before)) {
                return check_fail(c,
                                  "step %d writes %s over %s, which step %d reads in a later turn",
                                  w->step->id, stack->name, buf->name, t->step->id);
            }
        }
    }
    return true;
}

void check_fill(Check *c, const Step *loop, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const AccessList *touch = step_touches(step);
        check_fill(c, loop, &step->body);
        for (int k = 0; k < touch->count; k++) {
            const Access *access = &touch->at[k];
            const Buf *buf = access->buf;
            int64_t base = buf->offset;
            int level = 0;
            while (level < ACCESS_SLICES && access->slice[level] != NULL &&
                   access->slice[level] != loop) {
                const Turn *turn = check_turn(c, access->slice[level]);
                int64_t pitch = buf->stride[level] * (int64_t)elem_bytes(buf->type->elem);
                base += turn != NULL ? check_position(turn, turn->turn) * pitch : 0;
                level++;
            }
            if (!(access->mode & ACCESS_WRITE) || level == ACCESS_SLICES ||
                access->slice[level] != loop) {
                continue;
            }
            int64_t pitch = buf->stride[level] * (int64_t)elem_bytes(buf->type->elem);
            int64_t lo = base + (loop->reverse ? 0 : 2) * pitch;
            int64_t hi = base + (loop->reverse ? loop->trip - 2 : loop->trip) * pitch;
            int64_t token = c->value[buf->id].token;
            check_mark(c->arena, &c->map[check_region(buf)], lo, hi, token);
        }
    }
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
    const AccessList *touch = step_touches(step);
    for (int i = 0; i < touch->count; i++) {
        const Access *access = &touch->at[i];
        Progress *at = &progress[access->buf->id];
        bool write = (access->mode & ACCESS_WRITE) != 0;
        bool whole = write && !(access->mode & ACCESS_PART);
        if (((access->mode & ACCESS_READ) && at->last_write > item->lowered) ||
            (write && at->last_read > item->lowered) ||
            (write && (whole || at->whole) && at->last_write > item->lowered)) {
            return check_fail(c, "step %d (%s) touches %s later than it may", step->id,
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

static const BufList *declared_by(const Check *c, const Step *step) {
    static const BufList none = {NULL, 0, 0};
    return step->kind == STEP_LOOP ? check_declared(c, step) : &none;
}

/* Steps that touch the same Buf, one of them writing, stand in the order in which they were
 * lowered; of a carry, the loop that makes its next values writes it. */
bool check_order(Check *c, const StepList *list, int depth) {
    if (depth > MAX_TURNS) {
        return check_fail(c, "loops are nested deeper than %d", MAX_TURNS);
    }
    if (c->progress[depth] == NULL) {
        c->progress[depth] = ARENA_ARRAY(c->arena, Progress, c->p->nbuf + 1);
    }
    Progress *progress = c->progress[depth];
    open_progress(list, progress);
    for (int i = 0; i < list->count; i++) { /* destinations of loops may be touched by none */
        const BufList *declared = declared_by(c, list->at[i]);
        for (int k = 0; k < declared->count; k++) {
            if (declared->at[k]->final != NULL) {
                progress[declared->at[k]->final->id] = (Progress){-1, -1, false};
            }
        }
    }
    for (int i = 0; i < list->count; i++) {
        const Step *item = list->at[i];
        const BufList *declared = declared_by(c, item);
        if (!check_access_order(c, item, item, progress)) {
            return false;
        }
        for (int k = 0; k < declared->count; k++) {
            const Buf *buf = declared->at[k];
            if (buf->loop != item || buf->final == NULL) {
                continue;
            }
            Progress *at = &progress[buf->final->id];
            if (at->last_write > item->lowered || at->last_read > item->lowered) {
                return check_fail(c, "step %d moves %s on later than it may", item->id,
                                  buf->final->name);
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
