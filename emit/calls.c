/* calls: see the header. Read off the steps of a checked Program; changes nothing. */
#include "emit/calls.h"

#include "compiler/kernel.h"
#include "compiler/times.h"
#include "emit/live_set.h"
#include "emit/uses.h"

static int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The least that so many FLOPs of products and bytes take, with all threads. */
static int64_t limit_of(const Emit *e, const ProgramEntry *entry, int64_t products, int64_t bytes) {
    const StepTimes *times = &e->p->times;
    const int threads = e->c->opt.threads;
    return at_least(count_add(0, products, times->tile) / threads,
                    bytes_time(times, entry->far_share, bytes, threads));
}

static void set_times(const Emit *e, const ProgramEntry *entry, CallCost *cost) {
    cost->predicted = step_time(&e->p->times, entry->far_share, cost->step);
    cost->limit = limit_of(e, entry, cost->products, cost->bytes);
}

static void add_calls(const Emit *e, const ProgramEntry *entry, CallCosts *all,
                      const StepList *list, int64_t times, StepPart part) {
    static const char *const word[] = {"", "forward", "loss", "backward", "update"};
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        StepPart own = step->part != PART_NONE ? step->part : part; /* that of the loop around it */
        if (step->kind == STEP_LOOP) {
            add_calls(e, entry, all, &step->body, count_add(0, times, step->trip), own);
            continue;
        }
        CallCost cost = {.step = step,
                         .name = step->kernel != NULL ? step->kernel->name : step_word(step),
                         .layer = step_layer(e, step),
                         .part = word[own],
                         .times = times,
                         .flops = step->flops - step->borders,
                         .products = step->products,
                         .bytes = step_bytes(step)};
        set_times(e, entry, &cost);
        VEC_PUSH(e->arena, &all->at, cost);
        all->flops = count_add(all->flops, step->again ? 0 : times, cost.flops);
        all->products = count_add(all->products, step->again ? 0 : times, cost.products);
        all->predicted = count_add(all->predicted, times, cost.predicted);
    }
}

/* What lies outside of the arena comes in once and goes out once, however often it is touched. */
static int64_t bytes_once(const Emit *e, const CallCosts *all) {
    Arena scratch = {0};
    int64_t *read = ARENA_ARRAY(&scratch, int64_t, e->p->nbuf + 1), bytes = 0;
    bool *written = ARENA_ARRAY(&scratch, bool, e->p->nbuf + 1);
    for (int i = 0; i < all->at.count; i++) {
        const Step *step = all->at.at[i].step;
        for (int k = 0; k < step->access.count; k++) {
            const Access *access = &step->access.at[k];
            const Buf *buf = access->buf, *to = buf->final != NULL ? buf->final : buf;
            bool comes = buf->kind == BUF_PARAM || buf->kind == BUF_STATE ||
                         buf->kind == BUF_INPUT || buf->kind == BUF_CONST;
            if (comes && (access->mode & ACCESS_READ) != 0) {
                int64_t some = count_add(0, all->at.at[i].times, access->most);
                bool all_of_it = access->most == 0;
                int64_t sum = all_of_it ? buf->bytes : count_add(read[buf->id], 1, some);
                read[buf->id] = sum < buf->bytes ? sum : buf->bytes;
            }
            bool leaves = to->kind == BUF_PARAM || to->kind == BUF_STATE || to->kind == BUF_RESULT;
            if (leaves && (access->mode & ACCESS_WRITE) != 0 && !written[to->id]) {
                written[to->id] = true;
                bytes = count_add(bytes, 1, step->kind == STEP_PUSH ? step->src->bytes : to->bytes);
            }
        }
    }
    for (int i = 0; i <= e->p->nbuf; i++) {
        bytes = count_add(bytes, 1, read[i]);
    }
    arena_free(&scratch);
    return bytes;
}

CallCosts calls_of(const Emit *e, const ProgramEntry *entry) {
    CallCosts all = {0};
    add_calls(e, entry, &all, &entry->step, 1, PART_NONE);
    all.bytes_once = bytes_once(e, &all);
    all.limit = limit_of(e, entry, all.products, all.bytes_once);
    return all;
}

int call_share(int64_t limit, int64_t time) {
    return time > 0 ? (int)(100.0 * (double)limit / (double)time + 0.5) : 0;
}
