/* repeat: see the header. While the peak is too high, of the values that live through it untouched
 * the one is let go and made again before its next reader that frees most for its cost, together
 * with such of its operands as are gone by then; in long lists several that are alike. At the end
 * calls that turned out to be needless are dropped, the dearest first. What fits is made cheaper
 * then: some of the calls that repeat are taken out, at random or all of a stretch, and the plan is
 * made to fit again by scores with noise; one that costs less is kept. Counts accesses, never time.
 *
 * A curve does so for a ladder of limits, the same whoever asks, and keeps of all plans that it
 * meets on the way those that no other beats. */
#include "passes/plan/repeat.h"

#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 24,
    SHORT = 1024, /* list of so many calls, and so many more for each value let go at once */
    AT_ONCE = 64,
    CHAIN = 12,
    DEPTH = 6,
    HALVINGS = 6,
    RUNG = 8,          /* a limit of a ladder is lower by one in so many */
    CHEAPER_RUNG = 24, /* and one for which cheaper plans are looked for */
    RUNGS = 64,
    LEAST_TURN = 4,        /* of so many tries for something cheaper one is for the least limit */
    NOISE = 16,            /* parts of a score that chance may take away or add, and of calls */
    CHECKED = TUNED(0, 1), /* are bounds held against what is evaluated? */
    LITTLE = 200,          /* one in so many of all that is done, */
    MORE_FIRST = 4,        /* and so many times that while some of it may turn out to be needless */
    LITTLE_WORTH = 50,     /* bytes: one in so many, */
    LITTLE_LEAST = TUNED(1 << 20, 256), /* and so many */
    LITTLE_TOUCHES = 4000000,
    AFRESH_TOUCHES = 40000000,
    DROP_TOUCHES = 8000000,
    REPEAT_TOUCHES = 400000000
};

/* A value that is let go: what runs again before `place`, in this order. */
typedef struct {
    int use, place, n;
    int item[CHAIN];
    int64_t size, cost; /* cost: of what runs again */
    double noise;       /* a factor of its score */
    double most;        /* its score at best; 0: it is known, or nothing is freed */
} Candidate;

typedef struct {
    PlanEval *eval;
    const Problem *s;
    Plan *plan, trial;
    int64_t limit, left; /* accesses that may still be looked at */
    int64_t dearest;     /* what costs more is given up */
    int64_t afresh;      /* of a sweep, from its order */
    int *before;         /* by use: the last place up to the peak that touches it, */
    int *next;           /* and the first behind it; -1: none, or it is made again there: */
    int *made;           /* at that place, else -1 */
    bool *gone;          /* by place: a call that is tried without */
    bool *taken;         /* by use: it is let go, or needed by one that is, in this turn */
    int64_t *over;       /* by call of the plan: bytes above the limit */
    int calls;           /* what over has room for */
    uint64_t random;     /* 0: scores have no noise */
    Front *front;        /* to which all that is evaluated is offered, or NULL */
} Repeat;

static Repeat repeat_open(PlanEval *e, Plan *plan, int64_t limit) {
    const Problem *s = e->s;
    Repeat r = {.eval = e, .s = s, .plan = plan, .limit = limit, .left = REPEAT_TOUCHES};
    r.dearest = INT64_MAX;
    r.before = ARENA_ARRAY(s->arena, int, s->use.count + 1);
    r.next = ARENA_ARRAY(s->arena, int, s->use.count + 1);
    r.made = ARENA_ARRAY(s->arena, int, s->use.count + 1);
    r.taken = ARENA_ARRAY(s->arena, bool, s->use.count + 1);
    return r;
}

/* Below `n`. */
static int draw(Repeat *r, int n) {
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (int)(r->random % (uint64_t)n);
}

static PlanCost try_plan(Repeat *r, const Plan *plan) {
    PlanCost cost = plan_eval(r->eval, plan, r->limit);
    r->left -= r->eval->seen.count;
    if (r->front != NULL) {
        front_offer(r->front, plan, &cost);
    }
    return cost;
}

/* Where each use is touched around place `peak`. What is made again behind it is gone by then. */
static void look_around(Repeat *r, int peak) {
    const Problem *s = r->s;
    for (int u = 0; u < s->use.count; u++) {
        r->next[u] = r->before[u] = r->made[u] = -1;
    }
    for (int p = r->plan->call.count - 1; p >= 0; p--) {
        const Item *item = &s->item[r->plan->call.at[p]];
        for (int k = 0; k < item->touch.count; k++) {
            int u = item->touch.at[k];
            if (p > peak) {
                r->next[u] = item->makes.at[k] ? -1 : p;
                r->made[u] = item->makes.at[k] ? p : -1;
            } else if (r->before[u] < 0) {
                r->before[u] = p;
            }
        }
    }
}

/* What makes the use at a place that its maker has run before; -1: it cannot run again. */
static int maker_of(const Repeat *r, int use, int place) {
    const Use *u = &r->s->use.at[use];
    return u->write.count == 1 && plan_repeatable(r->eval, u->write.at[0], place) ? u->write.at[0]
                                                                                  : -1;
}

/* Adds the item, behind what makes those of its operands that are gone by the peak. */
static bool add_chain(const Repeat *r, Candidate *c, int item, int depth) {
    for (int k = 0; k < c->n; k++) {
        if (c->item[k] == item) {
            return true;
        }
    }
    for (int k = 0; k < r->s->item[item].reads.count; k++) {
        int use = r->s->item[item].reads.at[k];
        bool here = !r->s->use.at[use].local || r->s->use.at[use].kept || r->next[use] >= 0;
        int maker = here || depth == DEPTH ? -1 : maker_of(r, use, c->place);
        if (maker >= 0 && !add_chain(r, c, maker, depth + 1)) {
            return false;
        }
    }
    if (c->n == CHAIN) {
        return false;
    }
    c->item[c->n++] = item;
    c->cost += r->s->item[item].cost;
    return true;
}

/* Larger ones first, of the same size the cheaper ones. */
static bool comes_before(const Candidate *a, const Candidate *b) {
    return a->size != b->size   ? a->size > b->size
           : a->cost != b->cost ? a->cost < b->cost
                                : a->use < b->use;
}

/* The largest values that the peak does not touch and a later call reads; behind `last` if that is
 * one of them. */
static int find_candidates(const Repeat *r, int peak, const Candidate *last, Candidate *found) {
    const Problem *s = r->s;
    int n = 0;
    for (int u = 0; u < s->use.count; u++) {
        Candidate c = {.use = u, .place = r->next[u], .size = s->use.at[u].size};
        bool lives = c.size > 0 && !s->use.at[u].kept && r->before[u] >= 0 && r->before[u] < peak &&
                     c.place >= 0 && (last == NULL || c.size <= last->size) &&
                     (n < CANDIDATES || found[n - 1].size <= c.size);
        int maker = lives ? maker_of(r, u, c.place) : -1;
        if (maker < 0 || !add_chain(r, &c, maker, 0) || (last != NULL && !comes_before(last, &c)) ||
            (n == CANDIDATES && !comes_before(&c, &found[n - 1]))) {
            continue;
        }
        int at = n < CANDIDATES ? n++ : n - 1;
        for (; at > 0 && comes_before(&c, &found[at - 1]); at--) {
            found[at] = found[at - 1];
        }
        found[at] = c;
    }
    return n;
}

/* The plan that lets go of one value, or of several by place. */
static void plan_with(Repeat *r, const Candidate *c, int n) {
    int next = 0;
    r->trial.call.count = 0;
    for (int p = 0; p < r->plan->call.count; p++) {
        for (; next < n && c[next].place == p; next++) {
            for (int k = 0; k < c[next].n; k++) {
                VEC_PUSH(r->s->arena, &r->trial.call, c[next].item[k]);
            }
        }
        VEC_PUSH(r->s->arena, &r->trial.call, r->plan->call.at[p]);
    }
}

/* Is neither the value taken nor anything that its chain reads? Then all of it is. */
static bool take_apart(Repeat *r, const Candidate *c) {
    bool apart = !r->taken[c->use];
    for (int k = 0; k < c->n && apart; k++) {
        const Ints *reads = &r->s->item[c->item[k]].reads;
        for (int i = 0; i < reads->count && apart; i++) {
            apart = !r->taken[reads->at[i]] || !r->s->use.at[reads->at[i]].local;
        }
    }
    for (int k = 0; k < c->n && apart; k++) {
        const Ints *reads = &r->s->item[c->item[k]].reads;
        for (int i = 0; i < reads->count; i++) {
            r->taken[reads->at[i]] = true;
        }
    }
    r->taken[c->use] = r->taken[c->use] || apart;
    return apart;
}

static int candidate_compare(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
                                : (x->use > y->use) - (x->use < y->use);
}

/* In a long list one value at a time would take as many turns as it has values, each as long as the
 * list: with the best one go those that are as large and made again by as few calls, as far as none
 * of them needs another, and as long as there are too many bytes. The plan with them is the trial;
 * false: it is no better than the one with the best alone. */
static bool let_more_go(Repeat *r, const PlanCost *cost, const Candidate *best, int64_t frees) {
    const Problem *s = r->s;
    int most = (r->plan->call.count - SHORT) / AT_ONCE, n = 0;
    if (most < 2) {
        return false;
    }
    Candidate *all = ARENA_ARRAY(s->arena, Candidate, most);
    int64_t room = cost->peak - r->limit - best->size;
    memset(r->taken, 0, sizeof *r->taken * (size_t)s->use.count);
    take_apart(r, best);
    all[n++] = *best;
    try_plan(r, r->plan); /* whose places are asked for */
    for (int u = 0; u < s->use.count && n < most && room > 0; u++) {
        Candidate c = {.use = u, .place = r->next[u], .size = s->use.at[u].size};
        bool alike = c.size == best->size && !s->use.at[u].kept && r->before[u] >= 0 &&
                     r->before[u] < cost->at && c.place >= 0;
        int maker = alike ? maker_of(r, u, c.place) : -1;
        if (maker >= 0 && add_chain(r, &c, maker, 0) && c.cost <= best->cost && take_apart(r, &c)) {
            all[n++] = c;
            room -= c.size;
        }
    }
    qsort(all, (size_t)n, sizeof *all, candidate_compare);
    plan_with(r, all, n);
    return n > 1 && cost->over - try_plan(r, &r->trial).over > frees;
}

/* Keeps what the evaluation of the plan says of each of its calls. */
static void note_over(Repeat *r) {
    const int calls = r->plan->call.count;
    if (calls > r->calls) {
        r->calls = 2 * calls;
        r->over = ARENA_ARRAY(r->s->arena, int64_t, r->calls);
    }
    for (int p = 0; p < calls; p++) {
        r->over[p] = r->eval->need[p] > r->limit ? r->eval->need[p] - r->limit : 0;
    }
}

/* Bytes above the limit, summed over calls, that letting go of it frees at most. A value that its
 * calls make anew, and that lives up to them, is gone from its last touch in front of them on, and
 * at that touch its bytes may be taken over; all else that changes lives longer than before. */
static int64_t frees_at_most(const Repeat *r, const Candidate *c) {
    int64_t frees = 0;
    for (int k = 0; k < c->n; k++) {
        const Item *item = &r->s->item[c->item[k]];
        for (int i = 0; i < item->touch.count; i++) {
            const int use = item->touch.at[i];
            const int from = r->next[use] >= 0 ? r->before[use] : r->made[use];
            const int64_t size = item->makes.at[i] ? r->s->use.at[use].size : 0;
            for (int p = from; size > 0 && p >= 0 && p < c->place; p++) {
                frees += r->over[p] < size ? r->over[p] : size;
            }
        }
    }
    return frees;
}

static double score_of(int64_t frees, int64_t cost, double noise) {
    return (double)frees / (double)cost * noise;
}

/* The one with the highest score, the first of equals; -1: none frees anything. Those alone are
 * evaluated whose score may be the highest. */
static int best_candidate(Repeat *r, const PlanCost *cost, Candidate *found, int n,
                          int64_t *frees) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < n; i++) {
        Candidate *c = &found[i];
        c->noise = r->random != 0 ? 1 + draw(r, NOISE) / (double)NOISE : 1;
        c->most = score_of(frees_at_most(r, c), c->cost, c->noise);
    }
    while (r->left > 0) {
        int next = -1;
        for (int i = 0; i < n; i++) {
            next = found[i].most > 0 && (next < 0 || found[i].most > found[next].most) ? i : next;
        }
        const bool beaten = next >= 0 && found[next].most < most;
        if (next < 0 || (beaten && !CHECKED)) {
            break;
        }
        plan_with(r, &found[next], 1);
        const int64_t freed = cost->over - try_plan(r, &r->trial).over;
        const double score = score_of(freed, found[next].cost, found[next].noise);
        if (CHECKED && score > (beaten ? most : found[next].most)) {
            BUG("letting go frees %lld bytes, more than was thought possible", (long long)freed);
        }
        if (freed > 0 && (score > most || (score == most && next < best))) {
            most = score;
            best = next;
            *frees = freed;
        }
        found[next].most = 0;
    }
    return best;
}

/* Lets go of the value that frees most for its cost, of the largest few that free anything; false:
 * none does. */
static bool let_go(Repeat *r, const PlanCost *cost) {
    Candidate found[CANDIDATES], last;
    note_over(r);
    look_around(r, cost->at);
    int n = find_candidates(r, cost->at, NULL, found), best = -1;
    int64_t freed = 0;
    while (n > 0) {
        best = best_candidate(r, cost, found, n, &freed);
        if (best >= 0 || n < CANDIDATES || r->left <= 0) {
            break;
        }
        last = found[n - 1];
        try_plan(r, r->plan); /* whose places are asked for */
        n = find_candidates(r, cost->at, &last, found);
    }
    if (best >= 0) {
        if (!let_more_go(r, cost, &found[best], freed)) {
            plan_with(r, &found[best], 1);
        }
        plan_copy(r->s->arena, r->plan, &r->trial);
    }
    return best >= 0;
}

static void plan_without(Repeat *r, int place) {
    r->trial.call.count = 0;
    for (int p = 0; p < r->plan->call.count; p++) {
        if (p != place && !r->gone[p]) {
            VEC_PUSH(r->s->arena, &r->trial.call, r->plan->call.at[p]);
        }
    }
}

/* Drops calls that the plan fits without, the dearest first. */
static void drop_needless(Repeat *r) {
    const Problem *s = r->s;
    int calls = r->plan->call.count, n = 0;
    int *place = ARENA_ARRAY(s->arena, int, calls + 1);
    r->gone = ARENA_ARRAY(s->arena, bool, calls + 1);
    for (int p = 0; p < calls; p++) {
        int64_t cost = s->item[r->plan->call.at[p]].cost;
        if (r->eval->place[r->plan->call.at[p]] == p) {
            continue;
        }
        int at = n++;
        for (; at > 0 && s->item[r->plan->call.at[place[at - 1]]].cost < cost; at--) {
            place[at] = place[at - 1];
        }
        place[at] = p;
    }
    const int64_t enough = r->left - DROP_TOUCHES;
    for (int i = 0; i < n && r->left > 0 && r->left > enough; i++) {
        plan_without(r, place[i]);
        r->gone[place[i]] = try_plan(r, &r->trial).peak <= r->limit;
    }
    plan_without(r, -1);
    plan_copy(s->arena, r->plan, &r->trial);
}

/* Calls again until the plan fits the limit; false: it does not. */
static bool fit(Repeat *r) {
    PlanCost cost = try_plan(r, r->plan);
    while (cost.peak > r->limit && cost.cost <= r->dearest && r->left > 0 && let_go(r, &cost)) {
        cost = try_plan(r, r->plan);
    }
    if (cost.peak <= r->limit) {
        drop_needless(r);
    }
    return cost.peak <= r->limit;
}

/* Takes out of the plan calls that repeat: each by chance, or such of a stretch of all calls. */
static void take_out(Repeat *r) {
    const int calls = r->plan->call.count;
    int part = 1 + draw(r, NOISE / 2), from = 0, to = calls;
    if (draw(r, 2) == 0) {
        int length = calls * (1 + draw(r, NOISE / 2)) / NOISE + 1;
        from = draw(r, calls);
        to = from + length;
        part = NOISE;
    }
    try_plan(r, r->plan);
    r->trial.call.count = 0;
    for (int p = 0; p < calls; p++) {
        int item = r->plan->call.at[p];
        bool out = r->eval->place[item] != p && p >= from && p < to && draw(r, NOISE) < part;
        if (!out) {
            VEC_PUSH(r->s->arena, &r->trial.call, item);
        }
    }
    plan_copy(r->s->arena, r->plan, &r->trial);
}

/* ---- curves --------------------------------------------------------------------------------- */

static int64_t next_rung(int64_t limit, int part) {
    return limit - limit / part - 1;
}

/* A plan that fits the limit, made of the one before it and, as long as accesses for that are left,
 * from scratch: both go to the front, and the cheapest there is the next one before. */
static bool fit_rung(Repeat *r, const Plan *order, Plan *before, int64_t limit) {
    const int64_t left = r->left;
    bool fits = false;
    r->limit = limit;
    if (r->afresh > 0) {
        plan_copy(r->s->arena, r->plan, order);
        r->left = r->afresh;
        fits = fit(r);
        r->afresh = r->left;
        r->left = left;
    }
    plan_copy(r->s->arena, r->plan, before);
    fits = fit(r) || fits;
    if (fits) {
        plan_copy(r->s->arena, before, &r->front->at.at[front_find(r->front, limit)].plan);
    }
    return fits;
}

/* Down the ladder until nothing fits, and between there and what did. */
static void sweep(Repeat *r, const Plan *order) {
    Plan before = {.call = {0}};
    int64_t peak = try_plan(r, order).peak, below = 0;
    plan_copy(r->s->arena, &before, order);
    r->left = REPEAT_TOUCHES;
    r->afresh = AFRESH_TOUCHES;
    while (below == 0 && peak > 0) {
        const int64_t limit = next_rung(peak, RUNG);
        if (fit_rung(r, order, &before, limit)) {
            peak = limit;
        } else {
            below = limit;
        }
    }
    for (int i = 0; i < HALVINGS && peak - below > 1; i++) {
        const int64_t limit = below + (peak - below) / 2;
        if (fit_rung(r, order, &before, limit)) {
            peak = limit;
        } else {
            below = limit;
        }
    }
}

/* Cheaper ones for each limit of the ladder and for the least, in turn. */
static void cheapen(Repeat *r) {
    Front *front = r->front;
    int64_t rung[RUNGS];
    int rungs = 0;
    int64_t limit = front->at.at[front->at.count - 1].peak;
    for (; rungs + 1 < RUNGS && limit > front->at.at[0].peak;
         limit = next_rung(limit, CHEAPER_RUNG)) {
        rung[rungs++] = limit;
    }
    rung[rungs++] = front->at.at[0].peak;
    r->random = 0x9e3779b97f4a7c15u;
    for (int turn = 0; front->at.count > 1 && r->left > 0; turn++, r->left--) {
        r->limit = rung[turn % LEAST_TURN == 0 ? rungs - 1 : turn % rungs];
        const FrontPlan *now = &front->at.at[front_find(front, r->limit)];
        front->order = now->order;
        plan_copy(r->s->arena, r->plan, &now->plan);
        take_out(r);
        fit(r);
    }
}

void plan_curve(PlanEval *e, const Plan *order, int orders, Front *front, int64_t touches) {
    Plan plan = {.call = {0}};
    Repeat r = repeat_open(e, &plan, 0);
    r.front = front;
    for (int i = 0; i < orders; i++) {
        front->order = i;
        sweep(&r, &order[i]);
    }
    r.left = touches;
    cheapen(&r);
}

/* Bytes of a plan: as placed, or those that live at its peak, which it hardly ever takes more than
 * and which are found in a hundredth of the time. */
static int64_t bytes_of(Repeat *r, const Plan *plan, bool placed) {
    return placed ? plan_height(r->eval, plan) : plan_eval(r->eval, plan, r->limit).peak;
}

/* Gives the bytes that are left, in `less` the plan. */
static int64_t fit_little(PlanEval *e, const Plan *plan, int64_t cost, bool placed, Plan *less) {
    const Problem *s = e->s;
    Plan trial = {.call = {0}};
    Repeat r = repeat_open(e, &trial, 0);
    int64_t bytes = bytes_of(&r, plan, placed);
    plan_copy(s->arena, &trial, plan);
    plan_copy(s->arena, less, plan);
    r.left = LITTLE_TOUCHES;
    r.dearest = cost / LITTLE * MORE_FIRST;
    for (bool more = true; more;) {
        const int64_t worth =
            bytes / LITTLE_WORTH > LITTLE_LEAST ? bytes / LITTLE_WORTH : LITTLE_LEAST;
        r.limit = bytes - worth;
        more = fit(&r) && try_plan(&r, &trial).cost <= cost / LITTLE &&
               bytes_of(&r, &trial, placed) <= r.limit;
        if (more) {
            plan_copy(s->arena, less, &trial);
            bytes = bytes_of(&r, less, placed);
        }
    }
    return bytes;
}

bool plan_repeat_little(PlanEval *e, const Plan *plan, int64_t cost, Plan *less) {
    const int64_t peak = plan_eval(e, plan, INT64_MAX).peak;
    int64_t bytes = fit_little(e, plan, cost, false, less);
    if (bytes < peak && plan_height(e, less) > bytes) { /* placing makes a difference */
        bytes = fit_little(e, plan, cost, true, less);
        return bytes < plan_height(e, plan);
    }
    return bytes < peak;
}
