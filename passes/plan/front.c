/* front: see the header. What it holds depends on what was offered and in which order, never on who
 * chooses from it: so of two limits the larger one finds all that the smaller one does. */
#include "passes/plan/front.h"

#include <string.h>

enum { MOST = 1024 }; /* plans; then the one goes that has its neighbours closest */

int front_find(const Front *f, int64_t limit) {
    int lo = 0, hi = f->at.count; /* the first above the limit */
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (f->at.at[mid].peak <= limit) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo - 1;
}

static void drop(Front *f, int from, int to) {
    if (to == from) { /* of none there may be no list yet */
        return;
    }
    for (int i = from; i < to; i++) {
        VEC_PUSH(f->arena, &f->spare, f->at.at[i].plan);
    }
    memmove(&f->at.at[from], &f->at.at[to], sizeof *f->at.at * (size_t)(f->at.count - to));
    f->at.count -= to - from;
}

static void thin_out(Front *f) {
    int closest = 1;
    for (int i = 2; i + 1 < f->at.count; i++) {
        int64_t room = f->at.at[i + 1].peak - f->at.at[i - 1].peak;
        closest = room < f->at.at[closest + 1].peak - f->at.at[closest - 1].peak ? i : closest;
    }
    drop(f, closest, closest + 1);
}

void front_offer(Front *f, const Plan *plan, const PlanCost *cost) {
    int below = front_find(f, cost->peak);
    if (cost->cost < f->least || (below >= 0 && f->at.at[below].cost <= cost->cost)) {
        return;
    }
    /* Those of as many bytes or more that cost as much or more. */
    int from = below >= 0 && f->at.at[below].peak == cost->peak ? below : below + 1, to = from;
    while (to < f->at.count && f->at.at[to].cost >= cost->cost) {
        to++;
    }
    drop(f, from, to);
    FrontPlan one = {.peak = cost->peak, .cost = cost->cost, .order = f->order};
    if (f->spare.count > 0) {
        one.plan = f->spare.at[--f->spare.count];
    }
    plan_copy(f->arena, &one.plan, plan);
    VEC_PUSH(f->arena, &f->at, one);
    memmove(&f->at.at[from + 1], &f->at.at[from],
            sizeof *f->at.at * (size_t)(f->at.count - 1 - from));
    f->at.at[from] = one;
    if (f->at.count > MOST) {
        thin_out(f);
    }
}

static int64_t height_of(PlanEval *e, FrontPlan *one) {
    one->height = one->height > 0 ? one->height : plan_height(e, &one->plan);
    return one->height;
}

FrontPlan *front_choose(Front *f, PlanEval *e, int64_t limit) {
    for (int i = front_find(f, limit); i >= 0; i--) {
        if (height_of(e, &f->at.at[i]) <= limit) {
            return &f->at.at[i];
        }
    }
    FrontPlan *least = NULL;
    for (int i = 0; i < f->at.count; i++) {
        FrontPlan *one = &f->at.at[i];
        if (least != NULL && one->peak >= least->height) {
            break;
        }
        int64_t height = height_of(e, one);
        least = least == NULL || height < least->height ? one : least;
    }
    return least;
}
