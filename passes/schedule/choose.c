/* choose: which schedule of the target each part of a Work gets: the one that fits and takes the
 * least time. Needs a Work; gives the statements of its kernel. */
#include "passes/schedule/schedule.h"

#include <string.h>

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
    b->operations = -1;
    nest_open(b, &part->roots);
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

/* --- rows of two kinds ------------------------------------------------------------------------ */

/* Marks the folds that `e` holds as those of `root`, which joins the roots that have them, too. */
static void fold_owners(const Expr *e, int root, int *owner, int *group, int n, bool *seen) {
    if (seen[e->id]) {
        return;
    }
    seen[e->id] = true;
    if (e->kind == EXPR_FOLD && owner[e->id] < 0) {
        owner[e->id] = root;
    }
    if (e->kind == EXPR_FOLD) {
        const int from = group[root], to = group[owner[e->id]];
        for (int i = 0; i < n; i++) {
            group[i] = group[i] == from ? to : group[i];
        }
    }
    for (int i = 0; i < e->nkid; i++) {
        fold_owners(e->kid[i], root, owner, group, n, seen);
    }
}

/* The time of the part by the schedule that it gets. */
static int64_t part_time(KernelBuild *b, const Target *target, const Part *part) {
    void *plan = NULL;
    const Schedule *s = choose(b, target, part, &plan);
    return s->cost ? cost_time(target, s->cost(b, part, plan)) : 0;
}

/* Rows whose folds have nothing in common but what they read, as a softmax of the rows of a matrix
 * and one of its columns: each kind may be cheaper by another schedule. Gives how many parts `to`
 * are of it; changes no values. */
static int parts_apart(KernelBuild *b, const Target *target, const Part *part, Part *to) {
    const int n = part->roots.count;
    to[0] = *part;
    if (part->kind != PART_ROWS || n < 2) {
        return 1;
    }
    int *group = ARENA_ARRAY(b->scratch, int, n), *owner = ARENA_ARRAY(b->scratch, int, b->nbound);
    memset(owner, -1, sizeof *owner * (size_t)b->nbound);
    for (int i = 0; i < n; i++) {
        group[i] = i;
    }
    for (int i = 0; i < n; i++) {
        bool *seen = ARENA_ARRAY(b->scratch, bool, b->nbound);
        fold_owners(part->roots.at[i].value, i, owner, group, n, seen);
    }
    Part kind[2] = {*part, *part};
    const Schedule *by[2] = {NULL, NULL};
    kind[0].roots = kind[1].roots = (RootList){0};
    for (int g = 0; g < n; g++) {
        Part one = *part;
        one.roots = (RootList){0};
        for (int i = 0; i < n; i++) {
            if (group[i] == g) {
                VEC_PUSH(b->scratch, &one.roots, part->roots.at[i]);
            }
        }
        if (one.roots.count == 0) {
            continue;
        }
        void *plan = NULL;
        const Schedule *s = choose(b, target, &one, &plan);
        const int k = by[0] == NULL || by[0] == s ? 0 : 1;
        by[k] = s;
        for (int i = 0; i < one.roots.count; i++) {
            VEC_PUSH(b->scratch, &kind[k].roots, one.roots.at[i]);
        }
    }
    if (by[1] == NULL || part_time(b, target, &kind[0]) + part_time(b, target, &kind[1]) >=
                             part_time(b, target, part)) {
        return 1;
    }
    to[0] = kind[0];
    to[1] = kind[1];
    return 2;
}

/* --- all of it -------------------------------------------------------------------------------- */

bool work_schedule(Work *w, const Target *target) {
    KernelBuild b = {.work = w, .k = w->k, .target = target, .scratch = w->scratch};
    for (int i = 0; i < w->part.count; i++) {
        nest_open(&b, &w->part.at[i].roots);
        Part part[2];
        const int n = parts_apart(&b, target, &w->part.at[i], part);
        for (int k = 0; k < n; k++) {
            void *plan = NULL;
            const Schedule *s = choose(&b, target, &part[k], &plan);
            if (!s->emit) {
                return false;
            }
            s->emit(&b, &part[k], plan);
        }
    }
    return true;
}
