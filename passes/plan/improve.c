/* improve: moves single items inside the window that their dependencies leave, as long as the peak
 * falls, or what stands near it.
 *
 * A move changes what is live only between its two places, so only the steps there are simulated
 * again; what was born before and dies behind is read off first and last places. Counts steps,
 * never time. Contract in improve.h. */
#include "passes/plan/improve.h"

enum { IMPROVE_PASSES = 4, IMPROVE_PLACES = 12, IMPROVE_STEPS = 20000000 };

typedef struct {
    const Problem *s;
    int *order, *at;          /* items by place, places by item */
    int *first, *last;        /* places that touch a use; behind the end: it is kept */
    int64_t *live;            /* in front of a place */
    int64_t *before, *behind; /* highest peak of the places before it; of it and those behind */
    int64_t *above;           /* how far the places before it stand above the line */
    int64_t line;
    Sim sim;    /* of the stretch that is tried */
    int *stamp; /* by use: the last trial that met it */
    int trial;
} Improve;

static void place_move(int *order, int from, int to) {
    int item = order[from];
    for (; from < to; from++) {
        order[from] = order[from + 1];
    }
    for (; from > to; from--) {
        order[from] = order[from - 1];
    }
    order[to] = item;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Everything that is known of the order as it stands. */
static void survey(Improve *m) {
    const Problem *s = m->s;
    for (int u = 0; u < s->use.count; u++) {
        m->first[u] = s->n;
        m->last[u] = s->use.at[u].kept ? s->n : -1;
    }
    for (int k = 0; k < s->n; k++) {
        const Item *item = &s->item[m->order[k]];
        m->at[m->order[k]] = k;
        for (int t = 0; t < item->touch.count; t++) {
            int u = item->touch.at[t];
            m->first[u] = k < m->first[u] ? k : m->first[u];
            m->last[u] = k > m->last[u] ? k : m->last[u];
        }
    }
    m->before[0] = m->above[0] = 0;
    sim_open(s, &m->sim);
    for (int k = 0; k < s->n; k++) {
        m->live[k] = m->sim.live;
        m->sim.peak = 0;
        sim_take(s, &m->sim, m->order[k]);
        m->behind[k] = m->sim.peak;
        m->before[k + 1] = larger(m->before[k], m->sim.peak);
        m->above[k + 1] = m->above[k] + larger(m->sim.peak - m->line, 0);
    }
    m->behind[s->n] = 0;
    for (int k = s->n - 1; k >= 0; k--) {
        m->behind[k] = larger(m->behind[k], m->behind[k + 1]);
    }
}

/* The peak with the order changed in places lo..hi alone, and how far it stands above the line. */
static int64_t stretch_peak(Improve *m, int lo, int hi, int64_t *above) {
    const Problem *s = m->s;
    m->trial++;
    for (int k = lo; k <= hi; k++) {
        const Item *item = &s->item[m->order[k]];
        for (int t = 0; t < item->touch.count; t++) {
            int u = item->touch.at[t];
            if (m->stamp[u] != m->trial) {
                m->stamp[u] = m->trial;
                m->sim.born[u] = m->first[u] < lo;
                m->sim.left[u] = m->last[u] > hi ? s->n : 0; /* never down to one here */
            }
            m->sim.left[u]++;
        }
    }
    int64_t peak = larger(m->before[lo], m->behind[hi + 1]);
    *above = m->above[s->n] - m->above[hi + 1] + m->above[lo];
    m->sim.live = m->live[lo];
    for (int k = lo; k <= hi; k++) {
        m->sim.peak = 0;
        sim_take(s, &m->sim, m->order[k]);
        peak = larger(peak, m->sim.peak);
        *above += larger(m->sim.peak - m->line, 0);
    }
    return peak;
}

static void window_of(const Improve *m, int item, int *lo, int *hi) {
    const Item *i = &m->s->item[item];
    *lo = 0;
    *hi = m->s->n - 1;
    for (int k = 0; k < i->succ.count; k++) {
        int other = m->at[i->succ.at[k]];
        *hi = other - 1 < *hi ? other - 1 : *hi;
    }
    for (int k = 0; k < i->pred.count; k++) {
        int other = m->at[i->pred.at[k]];
        *lo = other + 1 > *lo ? other + 1 : *lo;
    }
}

static Improve improve_open(const Problem *s, int *order) {
    Improve m = {.s = s, .order = order, .sim = sim_new(s)};
    int n = s->n + 1, uses = s->use.count + 1;
    m.at = ARENA_ARRAY(s->arena, int, n);
    m.first = ARENA_ARRAY(s->arena, int, uses);
    m.last = ARENA_ARRAY(s->arena, int, uses);
    m.stamp = ARENA_ARRAY(s->arena, int, uses);
    m.live = ARENA_ARRAY(s->arena, int64_t, n);
    m.before = ARENA_ARRAY(s->arena, int64_t, n);
    m.behind = ARENA_ARRAY(s->arena, int64_t, n);
    m.above = ARENA_ARRAY(s->arena, int64_t, n);
    survey(&m);
    m.line = m.behind[0] - m.behind[0] / 10;
    survey(&m);
    return m;
}

void order_improve(const Problem *s, int *order) {
    Improve m = improve_open(s, order);
    int64_t peak = m.behind[0], above = m.above[s->n], budget = IMPROVE_STEPS;
    bool changed = true;
    for (int pass = 0; pass < IMPROVE_PASSES && changed; pass++) {
        changed = false;
        for (int item = 0; item < s->n && budget > 0; item++) {
            int lo, hi, here = m.at[item], best = here;
            window_of(&m, item, &lo, &hi);
            int stride = (hi - lo) / IMPROVE_PLACES + 1;
            for (int to = lo; to <= hi; to += stride) {
                if (to == here) {
                    continue;
                }
                int64_t other_above;
                place_move(order, here, to);
                int64_t other =
                    stretch_peak(&m, to < here ? to : here, to < here ? here : to, &other_above);
                place_move(order, to, here);
                budget -= s->n;
                if (other < peak || (other == peak && other_above < above)) {
                    peak = other;
                    above = other_above;
                    best = to;
                }
            }
            if (best != here) {
                place_move(order, here, best);
                survey(&m);
                changed = true;
            }
        }
    }
}
