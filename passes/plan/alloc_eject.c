/* alloc_eject: see the header.
 *
 * Technique (guided ejection): below a capacity between the bound and the height so far, blocks
 * that stick out are taken out. One after another, the largest first, goes where the blocks that
 * live with it leave room, the tightest gap; where there is none, it goes to the place where what
 * is in its way weighs least, its bytes times its life, and that is taken out in turn. Whoever had
 * to do so weighs more from then on, so the same few blocks do not throw each other out for ever.
 * Only neighbours in time are looked at, so a round costs as much as blocks live at once, however
 * many there are.
 * Needs sizes above 0; steps are counted, never time, so the result depends on the input alone. */
#include "passes/plan/alloc_eject.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAIRS_MOST = 16 << 20, /* of blocks that live at once: beyond it the lists are too long */
    AREAS = 1 << 30        /* that are told from one another, from none to the largest */
};
/* Of one block: those of all neighbours together are an int64_t. */
static const int64_t COST_MOST = INT64_C(1) << 37;

typedef struct {
    int64_t start, end, cost;
    int block;
} Lying;

typedef struct {
    const AllocItem *item;
    int n;
    int *first, *near;  /* block i lives with near[first[i]] .. near[first[i + 1] - 1] */
    int64_t *at;        /* its place, -1: none */
    int64_t *weight;    /* 1, and once more for each time that it threw others out */
    int *heap, count;   /* of blocks without a place, by what they take */
    Lying *lying;       /* neighbours that have one, by where they begin, */
    int64_t *from, *to; /* and what those weigh that begin, or end, in front of one */
    int64_t *end;       /* where they end, sorted */
    int64_t capacity, steps, unit;
} Ejector;

/* ---- neighbours ------------------------------------------------------------------------------ */

typedef struct {
    int64_t lower;
    int block;
} Beginning;

static int beginning_compare(const void *a, const void *b) {
    const Beginning *x = a, *y = b;
    return x->lower != y->lower ? (x->lower > y->lower) - (x->lower < y->lower)
                                : (x->block > y->block) - (x->block < y->block);
}

/* Calls for each pair that lives at once; `count` counts them by block, or files them. */
static int64_t each_pair(Ejector *e, const Beginning *order, int *active, bool file, int *fill) {
    int64_t pairs = 0;
    int live = 0;
    for (int k = 0; k < e->n && pairs <= PAIRS_MOST; k++) {
        const int i = order[k].block;
        int left = 0;
        for (int a = 0; a < live; a++) {
            const int j = active[a];
            if (e->item[j].upper <= e->item[i].lower) {
                continue;
            }
            active[left++] = j;
            if (file) {
                e->near[fill[i]++] = j;
                e->near[fill[j]++] = i;
            } else {
                fill[i]++;
                fill[j]++;
            }
            pairs++;
        }
        active[left] = i;
        live = left + 1;
    }
    return pairs;
}

/* False: there are too many. */
static bool find_neighbours(Arena *scratch, Ejector *e) {
    Beginning *order = ARENA_ARRAY(scratch, Beginning, e->n);
    int *active = ARENA_ARRAY(scratch, int, e->n + 1), *fill = ARENA_ARRAY(scratch, int, e->n + 1);
    for (int i = 0; i < e->n; i++) {
        order[i] = (Beginning){e->item[i].lower, i};
    }
    qsort(order, (size_t)e->n, sizeof *order, beginning_compare);
    int64_t pairs = each_pair(e, order, active, false, fill);
    if (pairs > PAIRS_MOST) {
        return false;
    }
    e->first = ARENA_ARRAY(scratch, int, e->n + 1);
    e->near = ARENA_ARRAY(scratch, int, 2 * pairs + 1);
    int most = 0;
    for (int i = 0; i < e->n; i++) {
        most = fill[i] > most ? fill[i] : most;
        e->first[i + 1] = e->first[i] + fill[i];
        fill[i] = e->first[i];
    }
    each_pair(e, order, active, true, fill);
    e->lying = ARENA_ARRAY(scratch, Lying, most + 1);
    e->from = ARENA_ARRAY(scratch, int64_t, most + 1);
    e->to = ARENA_ARRAY(scratch, int64_t, most + 1);
    e->end = ARENA_ARRAY(scratch, int64_t, most + 1);
    return true;
}

/* ---- the heap -------------------------------------------------------------------------------- */

/* The one that is harder to place comes first: its bytes, then its life. */
static bool comes_first(const Ejector *e, int a, int b) {
    const AllocItem *x = &e->item[a], *y = &e->item[b];
    const int64_t life = x->upper - x->lower, other = y->upper - y->lower;
    if (x->size != y->size) {
        return x->size > y->size;
    }
    return life != other ? life > other : a < b;
}

static void heap_push(Ejector *e, int block) {
    int k = e->count++;
    for (; k > 0 && comes_first(e, block, e->heap[(k - 1) / 2]); k = (k - 1) / 2) {
        e->heap[k] = e->heap[(k - 1) / 2];
    }
    e->heap[k] = block;
}

static int heap_pop(Ejector *e) {
    const int top = e->heap[0], last = e->heap[--e->count];
    int k = 0;
    for (int kid = 1; kid < e->count; kid = 2 * k + 1) {
        kid += kid + 1 < e->count && comes_first(e, e->heap[kid + 1], e->heap[kid]);
        if (!comes_first(e, e->heap[kid], last)) {
            break;
        }
        e->heap[k] = e->heap[kid];
        k = kid;
    }
    e->heap[k] = last;
    return top;
}

/* ---- one block ------------------------------------------------------------------------------- */

static int lying_compare(const void *a, const void *b) {
    const Lying *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                : (x->block > y->block) - (x->block < y->block);
}

static int lying_by_end(const void *a, const void *b) {
    const Lying *x = a, *y = b;
    return x->end != y->end ? (x->end > y->end) - (x->end < y->end)
                            : (x->block > y->block) - (x->block < y->block);
}

/* What a block takes of memory and time, and how often it threw others out. */
static int64_t cost_of(const Ejector *e, int block) {
    const int64_t area = 1 + alloc_area(&e->item[block]) / e->unit;
    return area > COST_MOST / e->weight[block] ? COST_MOST : area * e->weight[block];
}

static int gather(Ejector *e, int block) {
    int m = 0;
    for (int k = e->first[block]; k < e->first[block + 1]; k++) {
        const int j = e->near[k];
        if (e->at[j] >= 0) {
            e->lying[m++] = (Lying){e->at[j], e->at[j] + e->item[j].size, cost_of(e, j), j};
        }
    }
    e->steps -= e->first[block + 1] - e->first[block] + 8 * (int64_t)m;
    return m;
}

/* The tightest gap below the capacity; -1: none is large enough. */
static int64_t find_gap(const Ejector *e, int m, int64_t size) {
    int64_t cursor = 0, at = -1, tightest = INT64_MAX;
    for (int k = 0; k <= m; k++) {
        const int64_t start = k < m ? e->lying[k].start : e->capacity;
        if (start - cursor >= size && start - cursor < tightest) {
            tightest = start - cursor;
            at = cursor;
        }
        cursor = k < m && e->lying[k].end > cursor ? e->lying[k].end : cursor;
    }
    return at;
}

/* How many of `m` sorted numbers are below x, or at most x. */
static int count_below(const int64_t *sorted, int m, int64_t x) {
    int lo = 0, hi = m;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (sorted[mid] < x) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

typedef struct {
    int64_t at, cost;
} Spot;

/* What lies in [at, at + size): all that begin in front of its end but those that end before it. */
static void try_spot(const Ejector *e, const int64_t *start, int m, int64_t at, int64_t size,
                     Spot *best) {
    if (at < 0 || at + size > e->capacity) {
        return;
    }
    const int64_t cost =
        e->from[count_below(start, m, at + size)] - e->to[count_below(e->end, m, at + 1)];
    if (cost < best->cost || (cost == best->cost && at < best->at)) {
        *best = (Spot){at, cost};
    }
}

/* Where what has to go weighs least; the neighbours lie in e->lying, by their starts. */
static int64_t find_lightest(Ejector *e, int64_t *start, int m, int64_t size) {
    Spot best = {-1, INT64_MAX};
    e->from[0] = e->to[0] = 0;
    for (int k = 0; k < m; k++) {
        start[k] = e->lying[k].start;
        e->from[k + 1] = e->from[k] + e->lying[k].cost;
    }
    qsort(e->lying, (size_t)m, sizeof *e->lying, lying_by_end);
    for (int k = 0; k < m; k++) {
        e->end[k] = e->lying[k].end;
        e->to[k + 1] = e->to[k] + e->lying[k].cost;
    }
    try_spot(e, start, m, 0, size, &best);
    try_spot(e, start, m, e->capacity - size, size, &best);
    for (int k = 0; k < m; k++) {
        try_spot(e, start, m, e->lying[k].end, size, &best);
        try_spot(e, start, m, e->lying[k].start - size, size, &best);
    }
    e->steps -= 32 * (int64_t)m;
    return best.at;
}

static void place(Ejector *e, int64_t *start, int block) {
    const int64_t size = e->item[block].size;
    const int m = gather(e, block);
    qsort(e->lying, (size_t)m, sizeof *e->lying, lying_compare);
    int64_t at = find_gap(e, m, size);
    if (at < 0) {
        at = find_lightest(e, start, m, size);
        e->weight[block]++;
        for (int k = 0; k < m; k++) {
            const Lying *other = &e->lying[k];
            if (other->start < at + size && other->end > at) {
                e->at[other->block] = -1;
                heap_push(e, other->block);
            }
        }
    }
    e->at[block] = at;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* A placement below `capacity`, from the one in `offset`, which it replaces; false: not in `steps`.
 */
static bool fit_below(Ejector *e, int64_t *start, int64_t capacity, int64_t steps,
                      int64_t *offset) {
    e->capacity = capacity;
    e->steps = steps;
    e->count = 0;
    for (int i = 0; i < e->n; i++) {
        e->weight[i] = 1;
        e->at[i] = offset[i];
        if (offset[i] + e->item[i].size > capacity) {
            e->at[i] = -1;
            heap_push(e, i);
        }
    }
    while (e->count > 0 && e->steps > 0) {
        place(e, start, heap_pop(e));
    }
    if (e->count == 0) {
        memcpy(offset, e->at, sizeof *offset * (size_t)e->n);
    }
    return e->count == 0;
}

int64_t alloc_eject(Arena *scratch, const AllocItem *item, int n, int64_t bound, int64_t height,
                    int64_t steps, int64_t *offset) {
    enum { TRIES = 8, FINE = 512 };
    Ejector e = {.item = item, .n = n};
    if (!find_neighbours(scratch, &e)) {
        return height;
    }
    e.at = ARENA_ARRAY(scratch, int64_t, n);
    e.weight = ARENA_ARRAY(scratch, int64_t, n);
    e.heap = ARENA_ARRAY(scratch, int, n);
    int64_t *start = ARENA_ARRAY(scratch, int64_t, n + 1), failed = bound - 1, largest = 0;
    for (int i = 0; i < n; i++) {
        largest = alloc_area(&item[i]) > largest ? alloc_area(&item[i]) : largest;
    }
    e.unit = 1 + largest / AREAS;
    for (int k = 0; k < TRIES && height - failed > bound / FINE + 1; k++) {
        const int64_t capacity = failed + 1 + (height - failed - 1) / 2;
        if (fit_below(&e, start, capacity, steps / TRIES, offset)) {
            height = alloc_height(item, n, offset);
        } else {
            failed = capacity;
        }
    }
    return height;
}
