/* alloc: a portfolio of greedy placements, then searches for a lower one.
 *
 * Greedy: take the blocks in some order; put each into a gap between the blocks that are already
 * placed and live at the same time (the lowest gap, or the tightest). Four orders by two rules.
 * When none of them reaches the lower bound, branch and bound (alloc_exact) tries to fit the blocks
 * into the bound and then into capacities between it and the best height, by many orders for few
 * steps before few for many; a first round for few steps tells what more of them can win. Of
 * thousands of blocks a few at a time are placed anew instead (alloc_eject). What is left of the
 * steps goes to a squeaky wheel: a block that sticks out above the bound moves forward to a random
 * place of the order, and an order that is worse is taken back. It matters where hundreds of blocks
 * leave few rounds. Everything counts steps, never time, so the result depends on the input alone.
 * Needs sizes >= 0 and lower < upper; gives offsets >= 0 that keep live blocks apart. */
#include "passes/plan/alloc.h"

#include "passes/plan/alloc_eject.h"
#include "passes/plan/alloc_exact.h"
#include "passes/plan/alloc_time.h"

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

int64_t alloc_area(const AllocItem *item) {
    const int64_t life = item->upper - item->lower;
    return item->size > INT64_MAX / life ? INT64_MAX : item->size * life;
}

int64_t alloc_height(const AllocItem *item, int n, const int64_t *offset) {
    int64_t height = 0;
    for (int i = 0; i < n; i++) {
        const int64_t top = offset[i] + item[i].size;
        height = top > height ? top : height;
    }
    return height;
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
    int64_t work; /* blocks that were looked at */
} Placer;

/* Gives up, and says INT64_MAX, where the height comes to `enough`. */
static int64_t place_all(Placer *p, const int *order, bool best_fit, int64_t enough) {
    int64_t height = 0;
    int count = 0; /* of those that are placed and may still matter */
    for (int k = 0; k < p->n; k++, count++) {
        const AllocItem *item = &p->item[order[k]];
        int64_t cursor = 0, gap_at = -1, gap_size = INT64_MAX;
        p->work += count;
        for (int i = 0; i < count; i++) {
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
        if (height >= enough) {
            return INT64_MAX;
        }
        int lo = 0, hi = count;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (p->offset[p->placed[mid]] <= at) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        memmove(&p->placed[lo + 1], &p->placed[lo], sizeof(int) * (size_t)(count - lo));
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

/* Of more than so many blocks the order by time, which costs the least, comes first, and no other
 * one behind PLACE_WORK. */
enum { BASE_ORDERS = 4, ORDER_TIME = 3, MANY_BLOCKS = 12000, PLACE_WORK = 500000000 };

static void order_base(const AllocItem *item, int n, int which, Ranked *ranked, int *order) {
    for (int i = 0; i < n; i++) {
        int64_t life = item[i].upper - item[i].lower;
        int64_t key = item[i].size, tie = life;
        if (which == 1) {
            key = life;
            tie = item[i].size;
        } else if (which == 2) {
            key = alloc_area(&item[i]);
        } else if (which == ORDER_TIME) {
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

/* What the search makes small: the height, and how much sticks out above the bound. */
static int64_t excess(const Placer *p, int64_t height, int64_t bound) {
    int64_t sum = 0;
    for (int i = 0; i < p->n; i++) {
        int64_t top = p->offset[i] + p->item[i].size;
        sum += top > bound ? top - bound : 0;
    }
    return height - bound + sum / 16;
}

static void order_move(int *order, int from, int to) {
    int block = order[from];
    memmove(&order[to + 1], &order[to], sizeof *order * (size_t)(from - to));
    order[to] = block;
}

/* A neighbour of `order`, whose placement is in p. */
static void order_change(const Placer *p, int *order, int64_t bound, uint64_t *random) {
    uint64_t n = (uint64_t)p->n;
    int at = (int)(random_next(random) % n);
    for (int tries = 0; tries < 20; tries++) {
        int i = order[at];
        if (p->offset[i] + p->item[i].size > bound) {
            break;
        }
        at = (int)(random_next(random) % n);
    }
    order_move(order, at, (int)(random_next(random) % (uint64_t)(at + 1)));
}

/* Improves on `best` from `order` on; fills offset when it does. */
static int64_t search_orders(Placer *p, int *order, bool best_fit, int64_t bound, int64_t best,
                             int rounds, int *next, int64_t *offset) {
    uint64_t random = 0x9e3779b97f4a7c15u;
    int64_t now = excess(p, place_all(p, order, best_fit, INT64_MAX), bound);
    for (int round = 0; round < rounds && best > bound; round++) {
        memcpy(next, order, sizeof *next * (size_t)p->n);
        order_change(p, next, bound, &random);
        int64_t height = place_all(p, next, best_fit, INT64_MAX);
        int64_t cost = excess(p, height, bound);
        if (height < best) {
            best = height;
            memcpy(offset, p->offset, sizeof *offset * (size_t)p->n);
        }
        if (cost <= now) {
            memcpy(order, next, sizeof *order * (size_t)p->n);
            now = cost;
        }
    }
    return best;
}

/* ---- the search for what fits --------------------------------------------------------------- */

enum { FIT_TURN = 10, FIT_FIRST = 96, FIT_TURNS = 16 /* wrong ones */, FIT_ROWS = 4000000 };
enum { NEAR_BOUND = 64 }; /* of more blocks than that: so near is near enough */
enum {
    FIRST_PART = 64, /* of the steps, to see how much is left to win */
    LEAST_PART = 64  /* for the least difference */
};

typedef struct {
    Arena *scratch;
    const AllocItem *item;
    int n;
    int64_t steps;        /* left */
    int64_t best;         /* height of the best placement so far */
    int64_t *offset, *at; /* its offsets; room for another */
} Fitting;

/* Steps that go straight to the end: about n * n / 2. */
static int64_t fit_straight(int n) {
    return (int64_t)n * (n / 2 + FIT_TURNS);
}

/* FOUND makes a better placement. Short searches in every order before longer ones; the shortest
 * can go straight to the end. */
static Fit fit_below(Fitting *f, int64_t capacity, int64_t steps) {
    Arena arena = {0};
    Fit fit = FIT_LIMIT;
    const int64_t straight = fit_straight(f->n);
    int64_t turn = (int64_t)f->n * FIT_FIRST;
    for (int k = 0; fit == FIT_LIMIT && steps > 0; k++) {
        int rule = k % FIT_TURN < ALLOC_RULES ? k % FIT_TURN : k; /* the plain orders every time */
        int64_t given = turn > straight ? turn : straight, left;
        left = given = given < steps ? given : steps;
        fit = alloc_fit(&arena, f->item, f->n, capacity, rule, &left, f->at);
        steps -= given - left + 1;
        f->steps -= given - left + 1;
        turn *= k % FIT_TURN == FIT_TURN - 1 ? 3 : 1;
        arena_free(&arena);
    }
    if (fit == FIT_FOUND) {
        f->best = alloc_height(f->item, f->n, f->at);
        memcpy(f->offset, f->at, sizeof *f->offset * (size_t)f->n);
    }
    return fit;
}

static int64_t common_divisor(const AllocItem *item, int n) {
    int64_t all = 0;
    for (int i = 0; i < n; i++) {
        int64_t a = all, b = item[i].size;
        while (b != 0) {
            int64_t r = a % b;
            a = b;
            b = r;
        }
        all = a;
    }
    return all > 0 ? all : 1;
}

/* Steps that a height so far above the bound is worth: all from a hundredth of it on, a quarter at
 * half of that. To search for the last 64 bytes of 100,000 takes as long as for a tenth of them. */
static int64_t worth(int64_t steps, int64_t gap, int64_t bound) {
    const double part = 100 * (double)gap / (double)bound, least = 1.0 / LEAST_PART;
    const double square = part * part > least ? part * part : least;
    return part < 1 ? (int64_t)((double)steps * square) : steps;
}

/* The bound itself, then capacities between what failed and what was found. */
static void fit_search(Fitting *f, int64_t bound, int64_t unit, int64_t steps) {
    const int64_t rest = f->steps - steps;
    int64_t failed = bound;
    if (fit_below(f, bound, steps / 2) == FIT_FOUND) {
        return;
    }
    while (f->steps - rest > f->n && f->best - failed > unit) {
        int64_t middle = failed + (f->best - failed) / unit / 2 * unit;
        if (fit_below(f, middle, (f->steps - rest) / 3) != FIT_FOUND) {
            failed = middle;
        }
    }
}

/* ---- all together --------------------------------------------------------------------------- */

static int64_t place_blocks(Arena *scratch, const AllocItem *item, int n, int64_t steps,
                            int64_t *offset) {
    int64_t bound = alloc_lower_bound(scratch, item, n);
    Placer p = {item, n, ARENA_ARRAY(scratch, int, n + 1), ARENA_ARRAY(scratch, int64_t, n + 1), 0};
    int *order = ARENA_ARRAY(scratch, int, n + 1), *start = ARENA_ARRAY(scratch, int, n + 1);
    Ranked *ranked = ARENA_ARRAY(scratch, Ranked, n + 1);
    int64_t best = INT64_MAX;
    bool best_fit = false;
    int first = n > MANY_BLOCKS ? 2 * ORDER_TIME : 0;
    for (int k = 0; k < 2 * BASE_ORDERS && best > bound && p.work < PLACE_WORK; k++) {
        int turn = (k + first) % (2 * BASE_ORDERS);
        order_base(item, n, turn / 2, ranked, order);
        bool tight = turn % 2 == 1;
        int64_t height = turn / 2 == ORDER_TIME
                             ? alloc_by_time(scratch, item, n, order, tight, p.offset, &p.work)
                             : place_all(&p, order, tight, best);
        if (height < best) {
            best = height;
            best_fit = turn % 2 == 1;
            memcpy(start, order, sizeof *start * (size_t)n);
            memcpy(offset, p.offset, sizeof *offset * (size_t)n);
        }
    }
    if (best == bound || n < 2) {
        return n > 0 ? best : 0;
    }
    Fitting f = {scratch, item, n, steps - steps / 4, best, offset, NULL};
    f.at = ARENA_ARRAY(scratch, int64_t, n + 1);
    if ((int64_t)n * n <= FIT_ROWS) {
        const int64_t unit = common_divisor(item, n), few = f.steps / FIRST_PART;
        if (few > fit_straight(n)) {
            fit_search(&f, bound, unit, few);
        }
        if (f.best > bound) {
            fit_search(&f, bound, unit, worth(f.steps, f.best - bound, bound));
        }
    } else {
        f.best = alloc_eject(scratch, item, n, bound, best, f.steps, offset);
        if (f.best - bound <= bound / NEAR_BOUND) {
            return f.best;
        }
    }
    int64_t pairs = (int64_t)n * n / 2 + 1;
    int64_t rounds = worth(steps / 4, f.best - bound, bound) / pairs;
    if (rounds == 0) {
        return f.best;
    }
    return search_orders(&p, start, best_fit, bound, f.best,
                         rounds < INT32_MAX ? (int)rounds : INT32_MAX, order, offset);
}

int64_t alloc_place(Arena *scratch, const AllocItem *item, int n, int64_t steps, int64_t *offset) {
    AllocItem *kept = ARENA_ARRAY(scratch, AllocItem, n + 1);
    int *of = ARENA_ARRAY(scratch, int, n + 1), count = 0;
    int64_t *at = ARENA_ARRAY(scratch, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        offset[i] = 0;
        if (item[i].size > 0) {
            of[count] = i;
            kept[count++] = item[i];
        }
    }
    int64_t height = place_blocks(scratch, kept, count, steps, at);
    for (int i = 0; i < count; i++) {
        offset[of[i]] = at[i];
    }
    return height;
}

typedef struct {
    AllocItem block;
    int index;
} Standing;

static int standing_compare(const void *a, const void *b) {
    const Standing *x = a, *y = b;
    const AllocItem *s = &x->block, *t = &y->block;
    if (s->lower != t->lower || s->upper != t->upper) {
        return s->lower != t->lower ? (s->lower > t->lower) - (s->lower < t->lower)
                                    : (s->upper > t->upper) - (s->upper < t->upper);
    }
    return s->size != t->size ? (s->size > t->size) - (s->size < t->size) : x->index - y->index;
}

/* What was made of these blocks; -1: nothing that is remembered. */
static int find_memo(const AllocMemo *memo, const AllocItem *sorted, int n) {
    int found = -1;
    for (int i = 0; i < ALLOC_MEMOS && found < 0; i++) {
        bool same = memo->made[i].item != NULL && memo->made[i].n == n &&
                    memcmp(memo->made[i].item, sorted, sizeof *sorted * (size_t)n) == 0;
        found = same ? i : -1;
    }
    return found;
}

int64_t alloc_place_any(AllocMemo *memo, const AllocItem *item, int n, int64_t *offset) {
    Arena scratch = {0};
    Standing *standing = ARENA_ARRAY(&scratch, Standing, n + 1);
    AllocItem *sorted = ARENA_ARRAY(&scratch, AllocItem, n + 1);
    for (int i = 0; i < n; i++) {
        standing[i] = (Standing){item[i], i};
    }
    qsort(standing, (size_t)n, sizeof *standing, standing_compare);
    for (int i = 0; i < n; i++) {
        sorted[i] = standing[i].block;
    }
    int found = find_memo(memo, sorted, n);
    if (found < 0) {
        found = memo->next;
        memo->next = (memo->next + 1) % ALLOC_MEMOS;
        memo->made[found].item = ARENA_ARRAY(memo->arena, AllocItem, n + 1);
        memcpy(memo->made[found].item, sorted, sizeof *sorted * (size_t)n);
        memo->made[found].n = n;
        memo->made[found].at = ARENA_ARRAY(memo->arena, int64_t, n + 1);
        memo->made[found].height =
            alloc_place(&scratch, sorted, n, ALLOC_STEPS, memo->made[found].at);
    }
    for (int i = 0; i < n; i++) {
        offset[standing[i].index] = memo->made[found].at[i];
    }
    arena_free(&scratch);
    return memo->made[found].height;
}
