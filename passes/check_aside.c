/* check_aside: loops whose turns run side by side (check.c). The abstract execution runs them one
 * behind the other, as one thread does; here is shown that others see the same.
 *
 * What a turn declares lies in a stretch of the arena, and each further thread has that stretch
 * again in `rest`, which nothing else touches while the loop runs. Of what lies outside a turn
 * writes slices alone that its own index picks, and reads of such Bufs the same ones. So no turn
 * reads or writes a byte that another one writes.
 *
 * Needs a planned Program, changes nothing of it; faults go to Check. */
#include "passes/check_aside.h"

#include "compiler/kernel.h"

/* The stretch that the plan names holds all that turns declare, and nothing is handed on. */
static bool check_stretch(Check *c, const Step *loop) {
    const int64_t pitch = loop->rest->type->dim[1];
    for (int i = 0; i < c->e->buf.count; i++) {
        const Buf *buf = c->e->buf.at[i], *root = check_root(buf);
        if (!check_declared_in(buf, loop) || buf->first == buf->last) {
            continue;
        }
        if (buf->loop == loop && buf->final != NULL) {
            return check_fail(c, "loop %d runs side by side and hands %s on", loop->id, buf->name);
        }
        if (!check_declared_in(root, loop) || check_region(buf) != ARENA ||
            buf->offset < loop->base || buf->offset + buf->bytes > loop->base + pitch) {
            return check_fail(c, "%s is not in the stretch that threads of loop %d have", buf->name,
                              loop->id);
        }
    }
    return true;
}

static bool check_turns(Check *c, const Step *loop, const StepList *list) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const AccessList *touch = step_touches(step);
        if (step->rest != NULL || (step->kernel != NULL && step->kernel->threads > 1)) {
            return check_fail(c, "step %d has threads of its own inside of loop %d", step->id,
                              loop->id);
        }
        if (step->kind != STEP_KERNEL && step->kind != STEP_LOOP && step->kind != STEP_COPY &&
            step->kind != STEP_CLEAR) {
            return check_fail(c, "step %d may end the entry inside of loop %d", step->id, loop->id);
        }
        for (int k = 0; k < touch->count; k++) {
            const Access *access = &touch->at[k];
            const Buf *buf = access->buf;
            bool shared = !check_declared_in(buf, loop) && !check_picks(loop, access);
            if (shared && ((access->mode & ACCESS_WRITE) || buf->kind == BUF_WORK ||
                           check_written_inside(c, buf, loop))) {
                return check_fail(c, "step %d touches %s, which other turns of loop %d write",
                                  step->id, buf->name, loop->id);
            }
        }
        if (!check_turns(c, loop, &step->body)) {
            return false;
        }
    }
    return true;
}

bool check_aside_open(Check *c, const Step *loop, int64_t *token) {
    const Buf *rest = loop->rest;
    if (rest == NULL) {
        return true;
    }
    if (loop->up != NULL || step_ends_itself(loop) || loop->team < 2 || loop->team > loop->trip) {
        return check_fail(c, "the turns of loop %d may not run side by side", loop->id);
    }
    if (loop->own.count != 1 || loop->own.at[0].buf != rest || rest->kind != BUF_WORK ||
        rest->loop != NULL || rest->storage != rest || rest->type->rank != 2 ||
        rest->type->elem != TY_U8 || rest->type->dim[0] != loop->team - 1 ||
        rest->type->dim[1] % 64 != 0 || loop->base % 64 != 0) {
        return check_fail(c, "loop %d has no memory for %d further threads", loop->id,
                          loop->team - 1);
    }
    if (rest->first > loop->id || rest->last < step_end(loop)) {
        return check_fail(c, "%s lives in %d..%d and not while loop %d runs", rest->name,
                          rest->first, rest->last, loop->id);
    }
    *token = check_token(c, rest, loop->id);
    check_mark(c->arena, &c->map[ARENA], rest->offset, rest->offset + rest->bytes, *token);
    return check_stretch(c, loop) && check_turns(c, loop, &loop->body);
}

bool check_aside_close(Check *c, const Step *loop, int64_t token) {
    const Buf *rest = loop->rest;
    if (rest == NULL ||
        check_other(&c->map[ARENA], rest->offset, rest->offset + rest->bytes, token) == token) {
        return true;
    }
    return check_fail(c, "what further threads of loop %d have is written by it", loop->id);
}
