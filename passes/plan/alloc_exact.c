/* alloc_exact: branch and bound over canonical placements.
 *
 * Blocks are placed one by one at the lowest offset that the placed blocks under them leave, and
 * offsets never decrease along a path: every placement that cannot be pushed down is reached so.
 * Time is cut into sections, the largest sets of blocks that live together. In each section the
 * lowest offset that an open block there can still have, plus all open bytes, must not pass the
 * capacity. A block is no candidate when another one would fit under it. Blocks that no open block
 * joins in time any more are parts that are solved by themselves.
 * Needs sizes > 0 and lower < upper; counts steps, never time. */
#include "passes/plan/alloc_exact.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t size;
    int first, last; /* sections [first, last) */
    int rank;        /* order in which candidates of one offset are tried */
} Block;

typedef struct {
    int64_t low;
    int rank, at;
} Candidate;

typedef struct {
    Arena *arena;
    Block *block;
    int n, nsection;
    int64_t capacity, steps;
    int64_t *total; /* open bytes, by section */
    int64_t *floor; /* scratch, by section */
    int64_t *found; /* offset, by block */
} Search;

/* ---- sections ------------------------------------------------------------------------------- */

typedef struct {
    int64_t at;
    bool start;
    int block;
} Event;

static int event_compare(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    if (x->start != y->start) {
        return x->start ? 1 : -1; /* ends first */
    }
    return (x->block > y->block) - (x->block < y->block);
}

static int cut_sections(Arena *arena, const AllocItem *item, int n, Block *block) {
    Event *event = ARENA_ARRAY(arena, Event, 2 * n + 1);
    for (int i = 0; i < n; i++) {
        block[i].size = item[i].size;
        event[2 * i] = (Event){item[i].lower, true, i};
        event[2 * i + 1] = (Event){item[i].upper, false, i};
    }
    qsort(event, 2 * (size_t)n, sizeof *event, event_compare);
    int section = 0;
    for (int i = 0; i < 2 * n; i++) {
        if (event[i].start) {
            block[event[i].block].first = section;
            continue;
        }
        section += i > 0 && event[i - 1].start; /* nothing starts before something ends */
        block[event[i].block].last = section;
    }
    return section;
}

/* ---- the order of candidates ---------------------------------------------------------------- */

typedef struct {
    int64_t key[3];
    int block;
} Ranked;

static int ranked_compare(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    for (int i = 0; i < 3; i++) {
        if (x->key[i] != y->key[i]) {
            return x->key[i] > y->key[i] ? -1 : 1;
        }
    }
    return (x->block > y->block) - (x->block < y->block);
}

/* The first rules are orders by width, area and the bytes that live beside a block; each further
 * one is one of them with some blocks exchanged. */
static void rank_blocks(Search *s, int rule) {
    enum { ORDERS = 4, NEAR = 12 };
    Block *block = s->block;
    Ranked *ranked = ARENA_ARRAY(s->arena, Ranked, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        int64_t width = block[i].last - block[i].first, most = 0;
        for (int k = block[i].first; k < block[i].last; k++) {
            most = s->total[k] > most ? s->total[k] : most;
        }
        int64_t area = block[i].size > INT64_MAX / width ? INT64_MAX : block[i].size * width;
        int64_t key[ORDERS][3] = {
            {most, width, area}, {most, area, width}, {width, area, most}, {area, most, width}};
        memcpy(ranked[i].key, key[rule % ORDERS], sizeof *key);
        ranked[i].block = i;
    }
    qsort(ranked, (size_t)s->n, sizeof *ranked, ranked_compare);
    uint64_t random = (uint64_t)rule * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; rule >= ORDERS && i < s->n; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int other = i + (int)(random >> 33) % NEAR;
        if ((random >> 60) < 6 && other < s->n) {
            Ranked t = ranked[i];
            ranked[i] = ranked[other];
            ranked[other] = t;
        }
    }
    for (int i = 0; i < s->n; i++) {
        block[ranked[i].block].rank = i;
    }
}

/* ---- search --------------------------------------------------------------------------------- */

/* Open blocks of one part, by first section, with the lowest offset that each can have. The rows
 * of the parts under it lie behind its own. */
typedef struct {
    int n;
    int *block;
    int64_t *low;
    Candidate *candidate;
    int64_t least; /* the block placed last: none comes under it, and beside it by rank alone */
    int least_rank;
} Part;

static Part part_under(const Part *p, int n) {
    return (Part){n, p->block + p->n, p->low + p->n, p->candidate + p->n, p->least, p->least_rank};
}

static int candidate_compare(const void *a, const void *b) {
    const Candidate *x = a, *y = b;
    if (x->low != y->low) {
        return x->low < y->low ? -1 : 1;
    }
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool fits(const Search *s, const Part *p) {
    int from = s->nsection, to = 0;
    for (int i = 0; i < p->n; i++) {
        const Block *b = &s->block[p->block[i]];
        if (p->low[i] + b->size > s->capacity) {
            return false;
        }
        from = b->first < from ? b->first : from;
        to = b->last > to ? b->last : to;
    }
    for (int k = from; k < to; k++) {
        s->floor[k] = INT64_MAX;
    }
    for (int i = 0; i < p->n; i++) {
        const Block *b = &s->block[p->block[i]];
        for (int k = b->first; k < b->last; k++) {
            s->floor[k] = p->low[i] < s->floor[k] ? p->low[i] : s->floor[k];
        }
    }
    for (int k = from; k < to; k++) {
        if (s->floor[k] != INT64_MAX && s->floor[k] + s->total[k] > s->capacity) {
            return false;
        }
    }
    return true;
}

static Fit search_part(Search *s, const Part *p);

/* One candidate placed, the rest is a part again. */
static Fit place(Search *s, const Part *p, int at) {
    const Block *b = &s->block[p->block[at]];
    int64_t low = p->low[at], top = low + b->size;
    Part rest = part_under(p, p->n - 1);
    rest.least = low;
    rest.least_rank = b->rank;
    for (int i = 0, k = 0; i < p->n; i++) {
        if (i == at) {
            continue;
        }
        const Block *other = &s->block[p->block[i]];
        bool meets = other->first < b->last && b->first < other->last;
        int64_t bound = meets && p->low[i] < top ? top : p->low[i];
        rest.block[k] = p->block[i];
        rest.low[k++] = bound < low ? low : bound;
    }
    for (int k = b->first; k < b->last; k++) {
        s->total[k] -= b->size;
    }
    s->found[p->block[at]] = low;
    Fit fit = fits(s, &rest) ? search_part(s, &rest) : FIT_NONE;
    for (int k = b->first; k < b->last; k++) {
        s->total[k] += b->size;
    }
    return fit;
}

/* Parts that share no section, each a stretch of the list, which is sorted by start. */
static bool search_stretches(Search *s, const Part *p, Fit *fit) {
    for (int from = 0, to; from < p->n; from = to) {
        int last = s->block[p->block[from]].last;
        for (to = from + 1; to < p->n && s->block[p->block[to]].first < last; to++) {
            int other = s->block[p->block[to]].last;
            last = other > last ? other : last;
        }
        if (from == 0 && to == p->n) {
            return false;
        }
        Part part = part_under(p, to - from);
        memcpy(part.block, p->block + from, sizeof *part.block * (size_t)part.n);
        memcpy(part.low, p->low + from, sizeof *part.low * (size_t)part.n);
        *fit = search_part(s, &part);
        if (*fit != FIT_FOUND) {
            return true;
        }
    }
    return true;
}

static bool is_alike(const Block *a, const Block *b) {
    return a->size == b->size && a->first == b->first && a->last == b->last;
}

static Fit search_part(Search *s, const Part *p) {
    Fit fit = FIT_FOUND;
    if (p->n == 0 || search_stretches(s, p, &fit)) {
        return fit;
    }
    int64_t roof = INT64_MAX;
    for (int i = 0; i < p->n; i++) {
        int64_t top = p->low[i] + s->block[p->block[i]].size;
        roof = top < roof ? top : roof;
    }
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        int rank = s->block[p->block[i]].rank;
        if (p->low[i] < roof && (p->low[i] > p->least || rank > p->least_rank)) {
            p->candidate[n++] = (Candidate){p->low[i], rank, i};
        }
    }
    qsort(p->candidate, (size_t)n, sizeof *p->candidate, candidate_compare);
    for (int i = 0; i < n; i++) {
        const Block *b = &s->block[p->block[p->candidate[i].at]];
        bool alike = false; /* to one that was tried at the same offset */
        for (int k = i - 1; k >= 0 && p->candidate[k].low == p->candidate[i].low; k--) {
            alike = alike || is_alike(&s->block[p->block[p->candidate[k].at]], b);
        }
        if (alike) {
            continue;
        }
        s->steps -= p->n;
        if (s->steps < 0) {
            return FIT_LIMIT;
        }
        fit = place(s, p, p->candidate[i].at);
        if (fit != FIT_NONE) {
            return fit;
        }
    }
    return FIT_NONE;
}

typedef struct {
    int first, block;
} Started;

static int started_compare(const void *a, const void *b) {
    const Started *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->block > y->block) - (x->block < y->block);
}

Fit alloc_fit(Arena *scratch, const AllocItem *item, int n, int64_t capacity, int rule,
              int64_t *steps, int64_t *offset) {
    Search s = {.arena = scratch, .n = n, .capacity = capacity, .steps = *steps, .found = offset};
    s.block = ARENA_ARRAY(scratch, Block, n + 1);
    s.nsection = cut_sections(scratch, item, n, s.block);
    s.total = ARENA_ARRAY(scratch, int64_t, s.nsection + 1);
    s.floor = ARENA_ARRAY(scratch, int64_t, s.nsection + 1);
    Started *started = ARENA_ARRAY(scratch, Started, n + 1);
    for (int i = 0; i < n; i++) {
        for (int k = s.block[i].first; k < s.block[i].last; k++) {
            s.total[k] += s.block[i].size;
        }
        started[i] = (Started){s.block[i].first, i};
    }
    rank_blocks(&s, rule);
    qsort(started, (size_t)n, sizeof *started, started_compare);
    /* Every level of the search places a block or cuts a part: two rows a block are enough. */
    size_t rows = (size_t)(n + 1) * (size_t)(n + 2);
    Part all = {.n = n, .least = -1, .least_rank = -1};
    all.block = ARENA_ARRAY(scratch, int, rows);
    all.low = ARENA_ARRAY(scratch, int64_t, rows);
    all.candidate = ARENA_ARRAY(scratch, Candidate, rows);
    for (int i = 0; i < n; i++) {
        all.block[i] = started[i].block;
    }
    Fit fit = fits(&s, &all) ? search_part(&s, &all) : FIT_NONE;
    *steps = s.steps > 0 ? s.steps : 0;
    return fit;
}
