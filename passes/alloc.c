/* alloc: a portfolio of greedy placements, then a squeaky wheel.
 *
 * Greedy: take the blocks in some order; put each into a gap between the blocks that are already
 * placed and live at the same time (the lowest gap, or the tightest). Four orders by two rules. The
 * squeaky wheel moves the blocks that stick out above the lower bound to the front of the order and
 * places all again; restarts take turns over the base orders. Everything counts rounds, never time,
 * so the result depends on the input alone.
 * Needs sizes >= 0 and lower < upper; gives offsets >= 0 that keep live blocks apart. */
#include "passes/alloc.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t at, change;
} Event;

static int event_compare(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return (x->change > y->change) - (x->change < y->change); /* ends first */
}

int64_t alloc_lower_bound(Arena *scratch, const AllocItem *item, int n) {
    Event *event = ARENA_ARRAY(scratch, Event, 2 * n + 1);
    for (int i = 0; i < n; i++) {
        event[2 * i] = (Event){item[i].lower, item[i].size};
        event[2 * i + 1] = (Event){item[i].upper, -item[i].size};
    }
    qsort(event, 2 * (size_t)n, sizeof *event, event_compare);
    int64_t live = 0, most = 0;
    for (int i = 0; i < 2 * n; i++) {
        live += event[i].change;
        most = live > most ? live : most;
    }
    return most;
}

/* ---- one greedy placement ------------------------------------------------------------------- */

typedef struct {
    const AllocItem *item;
    int n;
    int *placed; /* by offset, then in order of placement */
    int64_t *offset;
} Placer;

static int64_t place_all(Placer *p, const int *order, bool best_fit) {
    int64_t height = 0;
    for (int k = 0; k < p->n; k++) {
        const AllocItem *item = &p->item[order[k]];
        int64_t cursor = 0, gap_at = -1, gap_size = INT64_MAX;
        for (int i = 0; i < k; i++) {
            const AllocItem *other = &p->item[p->placed[i]];
            if (other->lower >= item->upper || other->upper <= item->lower) {
                continue;
            }
            int64_t start = p->offset[p->placed[i]];
            if (start - cursor >= item->size && start - cursor < gap_size) {
                gap_at = cursor;
                gap_size = start - cursor;
                if (!best_fit) {
                    break;
                }
            }
            cursor = start + other->size > cursor ? start + other->size : cursor;
        }
        int64_t at = gap_at >= 0 ? gap_at : cursor;
        p->offset[order[k]] = at;
        height = at + item->size > height ? at + item->size : height;
        int lo = 0, hi = k;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (p->offset[p->placed[mid]] <= at) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        memmove(&p->placed[lo + 1], &p->placed[lo], sizeof(int) * (size_t)(k - lo));
        p->placed[lo] = order[k];
    }
    return height;
}

/* ---- orders --------------------------------------------------------------------------------- */

typedef struct {
    int64_t key; /* larger first */
    int64_t tie;
    int index;
} Ranked;

static int ranked_compare(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    if (x->key != y->key) {
        return x->key > y->key ? -1 : 1;
    }
    if (x->tie != y->tie) {
        return x->tie > y->tie ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

enum { BASE_ORDERS = 4 };

static void order_base(const AllocItem *item, int n, int which, Ranked *ranked, int *order) {
    for (int i = 0; i < n; i++) {
        int64_t life = item[i].upper - item[i].lower;
        int64_t key = item[i].size, tie = life;
        if (which == 1) {
            key = life;
            tie = item[i].size;
        } else if (which == 2) { /* area; saturates where it does not fit */
            key = item[i].size > INT64_MAX / life ? INT64_MAX : item[i].size * life;
        } else if (which == 3) {
            key = -item[i].lower;
            tie = item[i].size;
        }
        ranked[i] = (Ranked){key, tie, i};
    }
    qsort(ranked, (size_t)n, sizeof *ranked, ranked_compare);
    for (int i = 0; i < n; i++) {
        order[i] = ranked[i].index;
    }
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Moves every block that ends above `target` towards the front: to a place between the front and
 * half of where it stood. */
static void order_squeak(const Placer *p, int *order, int64_t target, Ranked *ranked,
                         uint64_t *random) {
    for (int k = 0; k < p->n; k++) {
        int i = order[k];
        int64_t key = -(int64_t)k * 1024;
        if (p->offset[i] + p->item[i].size > target) {
            key = key / 2 + (int64_t)(random_next(random) % 1024) * (k + 1) / 2;
        }
        ranked[k] = (Ranked){key, 0, i};
    }
    qsort(ranked, (size_t)p->n, sizeof *ranked, ranked_compare);
    for (int k = 0; k < p->n; k++) {
        order[k] = ranked[k].index;
    }
}

int64_t alloc_place(Arena *scratch, const AllocItem *item, int n, int rounds, int64_t *offset) {
    int64_t bound = alloc_lower_bound(scratch, item, n);
    Placer p = {item, n, ARENA_ARRAY(scratch, int, n + 1), ARENA_ARRAY(scratch, int64_t, n + 1)};
    int *order[BASE_ORDERS], *current = ARENA_ARRAY(scratch, int, n + 1);
    Ranked *ranked = ARENA_ARRAY(scratch, Ranked, n + 1);
    int64_t best = INT64_MAX, first[2 * BASE_ORDERS];
    for (int k = 0; k < 2 * BASE_ORDERS; k++) {
        if (k % 2 == 0) {
            order[k / 2] = ARENA_ARRAY(scratch, int, n + 1);
            order_base(item, n, k / 2, ranked, order[k / 2]);
        }
        first[k] = place_all(&p, order[k / 2], k % 2 == 1);
        if (first[k] < best) {
            best = first[k];
            memcpy(offset, p.offset, sizeof *offset * (size_t)n);
        }
        if (best == bound) {
            return best;
        }
    }
    /* Restarts take the base orders in turn, the better ones with the same share: which of them
     * leads to the bound is not the one that starts nearest to it. */
    enum { RESTART = 64 };
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (int round = 0; round < rounds && best > bound; round++) {
        int which = round / RESTART % (2 * BASE_ORDERS);
        if (round % RESTART == 0) {
            memcpy(current, order[which / 2], sizeof *current * (size_t)n);
            (void)place_all(&p, current, which % 2 == 1);
        }
        order_squeak(&p, current, bound, ranked, &random);
        int64_t height = place_all(&p, current, which % 2 == 1);
        if (height < best) {
            best = height;
            memcpy(offset, p.offset, sizeof *offset * (size_t)n);
        }
    }
    return best;
}
