/* sweep: see the header. Counted from the steps of a train: a kernel that adds rows up first clears
 * the whole gradient, and each step that reads it goes through all of it and of the tensors of its
 * size: weights, slots, sums. Needs a checked Program. */
#include "emit/sweep.h"

typedef struct {
    const Buf *gradient; /* NULL: collects the kernels that make one */
    int64_t bytes;
    Arena *arena;
    VEC(const Buf *) made;
    VEC(int64_t) times; /* how often each is made in a step */
} Walk;

static const Buf *scattered(const Step *step) {
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if (step->sparse && (access->mode & ACCESS_WRITE) &&
            access->buf->kind == BUF_TEMP) {
            return access->buf;
        }
    }
    return NULL;
}

static int64_t pass_bytes(const Step *step, const Buf *gradient) {
    int64_t bytes = 0;
    bool reads = false;
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        int64_t ways = ((access->mode & ACCESS_READ) != 0) + ((access->mode & ACCESS_WRITE) != 0);
        reads = reads || (access->buf == gradient && (access->mode & ACCESS_READ));
        bytes += access->buf->bytes == gradient->bytes ? ways * access->buf->bytes : 0;
    }
    return reads ? bytes : 0;
}

static void walk_steps(Walk *w, const StepList *list, int64_t times) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        const Buf *made = w->gradient == NULL ? scattered(step) : NULL;
        if (step->kind == STEP_LOOP) {
            walk_steps(w, &step->body, count_add(0, times, step->trip));
        } else if (made != NULL) {
            VEC_PUSH(w->arena, &w->made, made);
            VEC_PUSH(w->arena, &w->times, times);
        } else if (w->gradient != NULL && step->kind == STEP_KERNEL &&
                   scattered(step) != w->gradient) {
            w->bytes = count_add(w->bytes, times, pass_bytes(step, w->gradient));
        }
    }
}

SweepList sweeps_of(const Emit *e, const ProgramEntry *entry) {
    SweepList list = {0};
    Walk all = {.arena = e->arena};
    if (entry->entry->kind == ENTRY_TRAIN) {
        walk_steps(&all, &entry->step, 1);
    }
    for (int i = 0; i < all.made.count; i++) {
        const Buf *buf = all.made.at[i];
        const Module *module = e->p->module;
        Walk one = {.gradient = buf, .arena = e->arena};
        walk_steps(&one, &entry->step, 1);
        int layer = module_layer(module, buf->loc);
        Sweep sweep = {.path = layer > 0 ? module->layer.at[layer - 1].path : buf->name,
                       .table_bytes = buf->bytes,
                       .bytes = count_add(one.bytes, all.times.at[i], buf->bytes)};
        VEC_PUSH(e->arena, &list, sweep);
    }
    return list;
}
