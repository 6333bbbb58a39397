/* choose: which schedule of the target each part of a Work gets: the one that fits and takes the
 * least time. Needs a Work; gives the statements of its kernel. */
#include "passes/schedule/schedule.h"

MachineTimes target_times(const Target *target) {
    return (MachineTimes){target->loop_time, target->tile_time, target->byte_time, false};
}

int64_t cost_time(const Target *target, Cost cost) {
    int64_t time = count_add(0, cost.loop, target->loop_time);
    time = count_add(time, cost.tile, target->tile_time);
    time = count_add(time, cost.bytes, target->byte_time);
    return count_add(time, cost.launches, target->launch_time);
}

/* The cheapest and its plan; a lone one is not weighed. */
static const Schedule *choose(KernelBuild *b, const Target *target, const Part *part, void **plan) {
    const Schedule *best = NULL;
    int64_t least = -1; /* -1: `best` is not weighed yet */
    for (int i = 0; target->schedule[i]; i++) {
        const Schedule *s = target->schedule[i];
        void *other = NULL;
        bool fits = s->parts >> part->kind & 1 && (!s->fits || s->fits(b, part, &other));
        if (!fits) {
            continue;
        }
        if (best) {
            least = least < 0 ? cost_time(target, best->cost(b, part, *plan)) : least;
            int64_t time = cost_time(target, s->cost(b, part, other));
            if (time >= least) {
                continue;
            }
            least = time;
        }
        best = s;
        *plan = other;
    }
    if (!best) {
        BUG("a part of kind %d fits no schedule of '%s'", part->kind, target->name);
    }
    return best;
}

bool work_schedule(Work *w, const Target *target) {
    KernelBuild b = {.work = w, .k = w->k, .target = target, .scratch = w->scratch};
    for (int i = 0; i < w->part.count; i++) {
        void *plan = NULL;
        const Part *part = &w->part.at[i];
        b.operations = -1;
        nest_open(&b, &part->roots);
        const Schedule *s = choose(&b, target, part, &plan);
        if (!s->emit) {
            return false;
        }
        s->emit(&b, part, plan);
    }
    return true;
}
