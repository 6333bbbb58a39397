/* order: a portfolio of step orders; the one with the lowest peak wins, and is then improved by
 * moving single steps. A loop is one item, with the peak of its body inside. */
#include "passes/plan/order.h"

#include "passes/plan/improve.h"
#include "passes/plan/problem.h"

#include <string.h>

/* ---- orders --------------------------------------------------------------------------------- */

typedef enum { RULE_LOWERED, RULE_UPDATE, RULE_PEAK, RULE_FREED, RULE_UPDATE_FREED, RULES } Rule;

/* Smaller is sooner; compared in turn, the lowered position last. */
typedef struct {
    int64_t a, b, c;
} Key;

static Key rule_key(const Problem *s, const Sim *sim, Rule rule, int i) {
    int64_t adds = 0, frees = 0;
    sim_effect(s, sim, i, &adds, &frees);
    int64_t late = !s->item[i].update;
    switch (rule) {
    case RULE_UPDATE: return (Key){late, i, 0};
    case RULE_PEAK: return (Key){adds, adds - frees, i};
    case RULE_FREED: return (Key){adds - frees, adds, i};
    case RULE_UPDATE_FREED: return (Key){late && adds > frees, late, i};
    case RULE_LOWERED:
    case RULES: break;
    }
    return (Key){i, 0, 0};
}

static bool key_less(Key x, Key y) {
    return x.a != y.a ? x.a < y.a : x.b != y.b ? x.b < y.b : x.c < y.c;
}

/* The items whose predecessors are done, as a heap by the rule. */
typedef struct {
    const Problem *s;
    Sim *sim;
    Rule rule;
    int *left; /* predecessors to come, by item */
    int *heap, count;
    int *place; /* in the heap, by item; -1: not there */
    Key *key;   /* by item */
} Ready;

static Ready ready_new(const Problem *s, Sim *sim) {
    return (Ready){.s = s,
                   .sim = sim,
                   .left = ARENA_ARRAY(s->arena, int, s->n + 1),
                   .heap = ARENA_ARRAY(s->arena, int, s->n + 1),
                   .place = ARENA_ARRAY(s->arena, int, s->n + 1),
                   .key = ARENA_ARRAY(s->arena, Key, s->n + 1)};
}

static void ready_put(Ready *r, int at, int item) {
    r->heap[at] = item;
    r->place[item] = at;
}

/* Moves the item to where it belongs, from the free place `at`. */
static void ready_settle(Ready *r, int at, int item) {
    for (; at > 0 && key_less(r->key[item], r->key[r->heap[(at - 1) / 2]]); at = (at - 1) / 2) {
        ready_put(r, at, r->heap[(at - 1) / 2]);
    }
    for (int k; (k = 2 * at + 1) < r->count; at = k) {
        k += k + 1 < r->count && key_less(r->key[r->heap[k + 1]], r->key[r->heap[k]]);
        if (!key_less(r->key[r->heap[k]], r->key[item])) {
            break;
        }
        ready_put(r, at, r->heap[k]);
    }
    ready_put(r, at, item);
}

static void ready_add(Ready *r, int item) {
    r->key[item] = rule_key(r->s, r->sim, r->rule, item);
    ready_settle(r, r->count++, item);
}

static int ready_take(Ready *r) {
    int first = r->heap[0], last = r->heap[--r->count];
    r->place[first] = -1;
    if (r->count > 0) {
        ready_settle(r, 0, last);
    }
    return first;
}

static void ready_renew(Ready *r, const Ints *items) {
    for (int i = 0; i < items->count; i++) {
        int item = items->at[i];
        if (r->place[item] >= 0) {
            r->key[item] = rule_key(r->s, r->sim, r->rule, item);
            ready_settle(r, r->place[item], item);
        }
    }
}

/* Takes, of the items whose predecessors are done, the best by the rule. What an item adds and
 * frees changes when something it touches comes to life or waits for one item alone. */
static void order_greedy(Ready *r, Rule rule, int *order) {
    const Problem *s = r->s;
    int done = 0;
    r->rule = rule;
    r->count = 0;
    sim_open(s, r->sim);
    for (int i = 0; i < s->n; i++) {
        r->left[i] = s->item[i].pred.count;
        r->place[i] = -1;
    }
    for (int i = 0; i < s->n; i++) {
        if (r->left[i] == 0) {
            ready_add(r, i);
        }
    }
    while (r->count > 0) {
        int i = ready_take(r);
        const Item *item = &s->item[i];
        sim_take(s, r->sim, i);
        order[done++] = i;
        for (int k = 0; k < item->touch.count; k++) {
            const Use *use = &s->use.at[item->touch.at[k]];
            int left = r->sim->left[item->touch.at[k]];
            if (left == 1 || left + 1 == use->touches + use->kept) {
                ready_renew(r, &use->read);
                ready_renew(r, &use->write);
            }
        }
        for (int k = 0; k < item->succ.count; k++) {
            if (--r->left[item->succ.at[k]] == 0) {
                ready_add(r, item->succ.at[k]);
            }
        }
    }
    if (done != s->n) {
        BUG("%s: the steps depend on each other in a circle", s->shared->e->entry->name);
    }
}

typedef struct {
    const Problem *s;
    int64_t *need; /* memory to make the subtree of an item */
    bool *done;
    int *order;
    int count;
    Ints stack;
} Post;

static void post_visit(Post *post, int i) {
    /* Depth is the longest chain of steps; an explicit stack keeps deep models off the C stack. */
    Arena *arena = post->s->arena;
    post->stack.count = 0;
    VEC_PUSH(arena, &post->stack, i);
    while (post->stack.count > 0) {
        int at = post->stack.at[post->stack.count - 1];
        int next = -1;
        for (int k = 0; !post->done[at] && k < post->s->item[at].pred.count; k++) {
            int pred = post->s->item[at].pred.at[k];
            if (!post->done[pred] && (next < 0 || post->need[pred] > post->need[next])) {
                next = pred;
            }
        }
        if (next >= 0) {
            VEC_PUSH(arena, &post->stack, next);
            continue;
        }
        post->stack.count--;
        if (!post->done[at]) {
            post->done[at] = true;
            post->order[post->count++] = at;
        }
    }
}

/* Post-order from the sinks, the operand with the largest subtree first. */
static void order_post(const Problem *s, const int *legal, bool last_sink_first, int *order) {
    Post post = {.s = s, .order = order};
    post.need = ARENA_ARRAY(s->arena, int64_t, s->n + 1);
    post.done = ARENA_ARRAY(s->arena, bool, s->n + 1);
    for (int k = 0; k < s->n; k++) {
        int i = legal[k];
        int64_t makes = s->item[i].inner;
        for (int t = 0; t < s->item[i].touch.count; t++) {
            const Use *use = &s->use.at[s->item[i].touch.at[t]];
            makes += use->write.count > 0 && use->write.at[0] == i ? use->size : 0;
        }
        int64_t most = 0;
        for (int t = 0; t < s->item[i].pred.count; t++) {
            int64_t need = post.need[s->item[i].pred.at[t]];
            most = need > most ? need : most;
        }
        post.need[i] = most + makes;
    }
    for (int k = 0; k < s->n; k++) {
        int i = last_sink_first ? s->n - 1 - k : k;
        if (s->item[i].succ.count == 0) {
            post_visit(&post, i);
        }
    }
}

/* ---- the portfolio --------------------------------------------------------------------------- */

static const char *const names[RULES + 2] = {
    "as lowered",
    "updates first",
    "least peak first",
    "most freed",
    "updates, most freed",
    "post-order, first sink first",
    "post-order, last sink first",
};

static Plan plan_of(const Problem *s, const int *order) {
    Plan plan = {.call = {0}};
    for (int i = 0; i < s->n; i++) {
        VEC_PUSH(s->arena, &plan.call, order[i]);
    }
    return plan;
}

static bool is_lower(const PlanCost *x, const PlanCost *y) {
    return x->over != y->over ? x->over < y->over : x->peak < y->peak;
}

Plan order_find(const Problem *s, PlanEval *eval, int64_t limit, Arena *arena, const char **name) {
    Sim sim = sim_new(s);
    Ready ready = ready_new(s, &sim);
    int *legal = ARENA_ARRAY(s->arena, int, s->n + 1);
    Plan plan = plan_of(s, legal), best = plan_of(s, legal);
    *name = names[RULE_LOWERED];
    if (s->n == 0) {
        return best;
    }
    PlanCost lowest = {.peak = INT64_MAX, .over = INT64_MAX};
    for (int k = 0; k < RULES + 2; k++) {
        if (k < RULES) {
            order_greedy(&ready, (Rule)k, plan.call.at);
        } else {
            order_post(s, legal, k == RULES + 1, plan.call.at);
        }
        PlanCost cost = plan_eval(eval, &plan, limit);
        if (is_lower(&cost, &lowest)) {
            lowest = cost;
            memcpy(best.call.at, plan.call.at, sizeof *legal * (size_t)s->n);
            *name = names[k];
        }
        if (k == RULE_LOWERED) {
            memcpy(legal, plan.call.at, sizeof *legal * (size_t)s->n);
        }
    }
    memcpy(plan.call.at, best.call.at, sizeof *legal * (size_t)s->n);
    order_improve(s, plan.call.at);
    PlanCost cost = plan_eval(eval, &plan, limit);
    if (is_lower(&cost, &lowest)) {
        *name = str_printf(arena, "%s, improved", *name);
        return plan;
    }
    return best;
}
