/* check_again: see the header. Values are compared by tokens: each value that a step makes again
 * has the number of the one that it equals (Origin.same), so a step may run again on operands that
 * were made again.
 *
 * Needs a planned Program, changes nothing of it; faults go to Check. */
#include "passes/check_again.h"

static int64_t value_of(const Check *c, const Buf *buf) {
    int64_t token = c->value[buf->id].token;
    return token > 0 ? c->origin.at[token - 1].same : 0;
}

static bool note_repeats(Check *c, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i], *first = step->again;
        if (!note_repeats(c, &step->body)) {
            return false;
        }
        if (first == NULL) {
            continue;
        }
        if (first->again != NULL || first->up != step->up || first->id >= step->id ||
            first->kind != STEP_KERNEL || step->kind != STEP_KERNEL) {
            return check_fail(c, "step %d is no step of its list again", step->id);
        }
        if (c->first[first->id] == NULL) {
            c->first[first->id] = ARENA_ARRAY(c->arena, int64_t, first->access.count + 1);
        }
    }
    return true;
}

bool check_again_open(Check *c) {
    c->first = ARENA_ARRAY(c->arena, int64_t *, c->e->nstep + 1);
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i], *of = buf->again;
        const Value *v = &c->value[buf->id];
        for (int k = 0; k < v->writer.count; k++) {
            const Step *step = v->writer.at[k].step;
            if ((of == NULL) != (step->again == NULL) && buf->kind != BUF_WORK) {
                return check_fail(c, "step %d writes %s, which is %s", step->id, buf->name,
                                  of == NULL ? "not made again" : "made again");
            }
        }
        if (of == NULL || buf->kind == BUF_WORK) {
            continue;
        }
        if (of->again != NULL || of->kind != BUF_TEMP || buf->kind != BUF_TEMP ||
            of->loop != buf->loop || buf->final != NULL || !type_equal(*of->type, *buf->type) ||
            c->value[of->id].writer.count != 1 || c->value[of->id].writer.at[0].part) {
            return check_fail(c, "%s cannot be %s made again", buf->name, of->name);
        }
    }
    return note_repeats(c, &c->e->step);
}

/* The access of the first call that stands where this one does. */
static int first_access(const Step *step, const Access *access) {
    const Step *first = step->again;
    int at = 0;
    while (at < first->access.count &&
           buf_first(first->access.at[at].buf) != buf_first(access->buf)) {
        at++;
    }
    return at;
}

static bool same_call(Check *c, const Step *step) {
    const Step *first = step->again;
    bool same = first->kernel == step->kernel && first->lowered_call == step->lowered_call &&
                first->access.count == step->access.count;
    for (int i = 0; same && i < step->access.count; i++) {
        int at = first_access(step, &step->access.at[i]);
        same = at < first->access.count && first->access.at[at].mode == step->access.at[i].mode;
    }
    return same || check_fail(c, "step %d is another call than step %d, which it runs again",
                              step->id, first->id);
}

bool check_again_reads(Check *c, const Step *step) {
    if (step->kind == STEP_KERNEL && step->lowered_call != call_hash(&step->call)) {
        return check_fail(c, "step %d (%s) is not called with what it was lowered with", step->id,
                          step->name != NULL ? step->name : "-");
    }
    int64_t *first = c->first[step->id];
    for (int i = 0; first != NULL && i < step->access.count; i++) {
        if (step->access.at[i].mode & ACCESS_READ) {
            first[i] = value_of(c, step->access.at[i].buf);
        }
    }
    if (step->again == NULL) {
        return true;
    }
    if (!same_call(c, step)) {
        return false;
    }
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        int at = first_access(step, access);
        bool work = access->buf->kind == BUF_WORK;
        if ((access->mode & ACCESS_READ) && !work &&
            c->first[step->again->id][at] != value_of(c, access->buf)) {
            return check_fail(c, "step %d reads another value of %s than step %d did", step->id,
                              access->buf->name, step->again->id);
        }
    }
    return true;
}

void check_again_writes(Check *c, const Step *step) {
    int64_t *first = c->first[step->id];
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if (!(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) {
            continue;
        }
        if (first != NULL) {
            first[i] = value_of(c, access->buf);
        }
        if (step->again != NULL) {
            c->origin.at[c->value[access->buf->id].token - 1].same =
                c->first[step->again->id][first_access(step, access)];
        }
    }
}

bool check_again_equal(Check *c, const Step *step, const Buf *buf) {
    if (buf->again == NULL || buf->kind == BUF_WORK ||
        value_of(c, buf) == value_of(c, buf->again)) {
        return true;
    }
    return check_fail(c, "step %d reads %s, which is not the present value of %s", step->id,
                      buf->name, buf->again->name);
}
