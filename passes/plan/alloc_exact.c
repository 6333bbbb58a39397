/* alloc_exact: branch and bound over canonical placements.
 *
 * Blocks are placed one by one at the lowest offset that the placed blocks under them leave, and
 * offsets never decrease along a path: every placement that cannot be pushed down is reached so. A
 * block that could have been placed before waits until one is placed under it. Time is cut into
 * sections, the largest sets of blocks that live together. In each section the lowest offset that
 * an open block there can still have, plus all open bytes, must not pass the capacity. A block is
 * no candidate when another one would fit under it. Blocks that no open block joins in time any
 * more are parts that are solved by themselves.
 *
 * A step costs what it changes: the blocks that live beside the placed one are pushed up, and each
 * section remembers one open block that is low enough, so that another one is looked for only where
 * that is placed or pushed too high. A trail takes all of it back.
 * Needs sizes > 0 and lower < upper; counts steps, never time. */
#include "passes/plan/alloc_exact.h"

#include <stdlib.h>
#include <string.h>

enum { LOOKS = 4 /* at a neighbour count as a step */ };

typedef struct {
    int64_t size, life; /* time from its start to its end */
    int64_t low;        /* the lowest offset that the placed blocks leave */
    int first, last;    /* sections [first, last) */
    int rank;           /* order in which candidates of one offset are tried */
    bool open;          /* not placed */
} Block;

typedef struct {
    int64_t low;
    int rank, block;
} Candidate;

/* What was before: an offset, who is low enough for a section, or a block that was open. */
typedef enum { WAS_LOW, WAS_WITNESS, WAS_OPEN } WasKind;

typedef struct {
    int64_t old;
    WasKind kind;
    int index;
} Was;

/* Numbers by block or section, one list behind the other. */
typedef struct {
    int *start, *at;
} Lists;

typedef struct {
    Arena *arena;
    Block *block;
    int n, nsection;
    int64_t capacity, steps;
    int64_t *total; /* open bytes, by section */
    int *witness;   /* by section: an open block that is low enough */
    Lists meet;     /* by block: those that live beside it */
    Lists member;   /* by section */
    VEC(Was) trail;
    VEC(Candidate) tried; /* by parts, one behind the other */
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
        block[i].life = item[i].upper - item[i].lower;
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

/* The first ALLOC_RULES rules are orders by how long a block lives (in time, then in sections), its
 * area and the bytes that live beside it; each further one is one of them with some blocks
 * exchanged. */
static void rank_blocks(Search *s, int rule) {
    enum { KEYS = 4, NEAR = 12 };
    const bool by_time = rule % ALLOC_RULES < KEYS;
    Block *block = s->block;
    Ranked *ranked = ARENA_ARRAY(s->arena, Ranked, s->n + 1);
    for (int i = 0; i < s->n; i++) {
        int64_t width = by_time ? block[i].life : block[i].last - block[i].first, most = 0;
        for (int k = block[i].first; k < block[i].last; k++) {
            most = s->total[k] > most ? s->total[k] : most;
        }
        int64_t area = block[i].size > INT64_MAX / width ? INT64_MAX : block[i].size * width;
        int64_t key[KEYS][3] = {
            {most, width, area}, {most, area, width}, {width, area, most}, {area, most, width}};
        memcpy(ranked[i].key, key[rule % KEYS], sizeof *key);
        ranked[i].block = i;
    }
    qsort(ranked, (size_t)s->n, sizeof *ranked, ranked_compare);
    uint64_t random = (uint64_t)rule * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; rule >= ALLOC_RULES && i < s->n; i++) {
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

/* Open blocks of one part, by first section. Behind them is room for the parts under it. */
typedef struct {
    int n;
    const int *block;
    int *rest;
    int tried; /* in the list of all: where its own begin */
    int64_t least; /* the block placed last: none comes under it, and beside it by rank alone */
    int least_rank;
} Part;

static void note(Search *s, WasKind kind, int index, int64_t old) {
    VEC_PUSH(s->arena, &s->trail, ((Was){old, kind, index}));
}

static void take_back(Search *s, int mark) {
    while (s->trail.count > mark) {
        const Was *was = &s->trail.at[--s->trail.count];
        Block *b = &s->block[was->index];
        if (was->kind == WAS_LOW) {
            b->low = was->old;
        } else if (was->kind == WAS_WITNESS) {
            s->witness[was->index] = (int)was->old;
        } else {
            b->open = true;
            for (int k = b->first; k < b->last; k++) {
                s->total[k] += b->size;
            }
        }
    }
}

/* Can the open block still come at or under `most`? Where it could have been placed before the last
 * one, it must rest on one that is open. */
static bool can_lie(Search *s, int which, int64_t most, int64_t least) {
    const Block *b = &s->block[which];
    if (!b->open || b->low > most || b->low >= least) {
        return b->open && b->low <= most;
    }
    bool can = false;
    int i = s->meet.start[which];
    for (; !can && i < s->meet.start[which + 1]; i++) {
        const Block *under = &s->block[s->meet.at[i]];
        int64_t low = under->low > least ? under->low : least;
        can = under->open && low + under->size <= most;
    }
    s->steps -= (i - s->meet.start[which]) / LOOKS;
    return can;
}

/* An open block of the section that is low enough for all of its open bytes; -1: none is. */
static int find_witness(Search *s, int section, int64_t least) {
    int64_t most = s->capacity - s->total[section];
    for (int i = s->member.start[section]; i < s->member.start[section + 1]; i++) {
        if (can_lie(s, s->member.at[i], most, least)) {
            return s->member.at[i];
        }
    }
    return -1;
}

/* Can all open bytes of sections from..to still lie under the capacity? */
static bool fits(Search *s, int from, int to, int64_t least) {
    for (int k = from; k < to; k++) {
        int64_t most = s->capacity - s->total[k];
        if (s->total[k] == 0) {
            continue;
        }
        if (least > most) {
            return false;
        }
        if (!can_lie(s, s->witness[k], most, least)) {
            int other = find_witness(s, k, least);
            if (other < 0) {
                return false;
            }
            note(s, WAS_WITNESS, k, s->witness[k]);
            s->witness[k] = other;
        }
    }
    return true;
}

/* Places a block and pushes up what lives beside it; false: that cannot fit any more. */
static bool place_block(Search *s, int which, int64_t low) {
    Block *b = &s->block[which];
    const int64_t top = low + b->size, most = s->capacity - top;
    note(s, WAS_OPEN, which, 0);
    b->open = false;
    s->found[which] = low;
    for (int k = b->first; k < b->last; k++) {
        s->total[k] -= b->size;
    }
    for (int i = s->meet.start[which]; i < s->meet.start[which + 1]; i++) {
        Block *other = &s->block[s->meet.at[i]];
        if (other->open && other->low < top) {
            if (other->size > most) {
                return false;
            }
            note(s, WAS_LOW, s->meet.at[i], other->low);
            other->low = top;
        }
    }
    return true;
}

static Fit search_part(Search *s, const Part *p);

/* One candidate placed, the rest is a part again. */
static Fit place(Search *s, const Part *p, const Candidate *c, int ncandidate) {
    const int mark = s->trail.count;
    int n = 0, from = s->nsection, to = 0;
    for (int i = 0; i < p->n; i++) {
        const Block *b = &s->block[p->block[i]];
        from = b->first < from ? b->first : from;
        to = b->last > to ? b->last : to;
        p->rest[n] = p->block[i];
        n += p->block[i] != c->block;
    }
    Part rest = {n, p->rest, p->rest + n, p->tried + ncandidate, c->low, c->rank};
    Fit fit = FIT_NONE;
    if (place_block(s, c->block, c->low) && fits(s, from, to, c->low)) {
        fit = search_part(s, &rest);
    }
    if (fit != FIT_FOUND) {
        take_back(s, mark);
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
        Part part = *p;
        part.block = p->block + from;
        part.n = to - from;
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

/* No block that begins at the roof or above is a candidate: another one fits under it. */
static int64_t find_roof(const Search *s, const Part *p) {
    int64_t roof = INT64_MAX;
    for (int i = 0; i < p->n; i++) {
        const Block *b = &s->block[p->block[i]];
        int64_t top = b->low + b->size;
        roof = top < roof ? top : roof;
    }
    return roof;
}

/* The candidate behind `last` by offset and rank; false: there is none. Most searches go straight
 * to the end, so no list of all is made. */
static bool next_candidate(const Search *s, const Part *p, int64_t roof, const Candidate *last,
                           Candidate *next) {
    *next = (Candidate){roof, -1, -1};
    for (int i = 0; i < p->n; i++) {
        const Block *b = &s->block[p->block[i]];
        bool behind = b->low > last->low || (b->low == last->low && b->rank > last->rank);
        if (behind && (b->low < next->low || (b->low == next->low && b->rank < next->rank))) {
            *next = (Candidate){b->low, b->rank, p->block[i]};
        }
    }
    return next->block >= 0;
}

static Fit search_part(Search *s, const Part *p) {
    Fit fit = FIT_FOUND;
    if (p->n == 0 || search_stretches(s, p, &fit)) {
        return fit;
    }
    const int64_t roof = find_roof(s, p);
    Candidate last = {p->least, p->least_rank, -1};
    int n = 0; /* tried at this offset, from p->tried on */
    for (Candidate c; next_candidate(s, p, roof, &last, &c); last = c) {
        n = c.low == last.low ? n : 0;
        bool alike = false;
        for (int k = 0; k < n && !alike; k++) {
            alike = is_alike(&s->block[s->tried.at[p->tried + k].block], &s->block[c.block]);
        }
        s->tried.count = p->tried + n++; /* what parts under it have tried is forgotten */
        VEC_PUSH(s->arena, &s->tried, c);
        if (alike) {
            continue;
        }
        s->steps -= p->n;
        if (s->steps < 0) {
            return FIT_LIMIT;
        }
        fit = place(s, p, &c, n);
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

static Lists lists_new(Arena *arena, int n, int entries) {
    return (Lists){ARENA_ARRAY(arena, int, n + 1), ARENA_ARRAY(arena, int, entries + 1)};
}

/* Who lives beside whom, and in which sections. `by_start`: blocks by first section. */
static void find_neighbours(Search *s, const int *by_start) {
    int beside = 0, width = 0;
    for (int i = 0; i < s->n; i++) {
        const Block *b = &s->block[by_start[i]];
        width += b->last - b->first;
        for (int k = i + 1; k < s->n && s->block[by_start[k]].first < b->last; k++) {
            beside += 2;
        }
    }
    s->meet = lists_new(s->arena, s->n, beside);
    s->member = lists_new(s->arena, s->nsection, width);
    for (int i = 0, at = 0; i < s->n; i++) {
        for (int k = 0; k < s->n; k++) {
            const Block *a = &s->block[i], *b = &s->block[k];
            if (i != k && a->first < b->last && b->first < a->last) {
                s->meet.at[at++] = k;
            }
        }
        s->meet.start[i + 1] = at;
    }
    for (int i = 0; i < s->n; i++) {
        for (int k = s->block[i].first; k < s->block[i].last; k++) {
            s->member.start[k + 1]++;
        }
    }
    for (int k = 0; k < s->nsection; k++) {
        s->member.start[k + 1] += s->member.start[k];
    }
    int *next = ARENA_ARRAY(s->arena, int, s->nsection + 1);
    memcpy(next, s->member.start, sizeof *next * (size_t)s->nsection);
    for (int i = 0; i < s->n; i++) {
        for (int k = s->block[i].first; k < s->block[i].last; k++) {
            s->member.at[next[k]++] = i;
        }
    }
}

Fit alloc_fit(Arena *scratch, const AllocItem *item, int n, int64_t capacity, int rule,
              int64_t *steps, int64_t *offset) {
    Search s = {.arena = scratch, .n = n, .capacity = capacity, .steps = *steps, .found = offset};
    s.block = ARENA_ARRAY(scratch, Block, n + 1);
    s.nsection = cut_sections(scratch, item, n, s.block);
    s.total = ARENA_ARRAY(scratch, int64_t, s.nsection + 1);
    s.witness = ARENA_ARRAY(scratch, int, s.nsection + 1);
    Started *started = ARENA_ARRAY(scratch, Started, n + 1);
    bool each = true;
    for (int i = 0; i < n; i++) {
        each = each && s.block[i].size <= capacity;
        s.block[i].open = true;
        for (int k = s.block[i].first; k < s.block[i].last; k++) {
            s.total[k] += s.block[i].size;
            s.witness[k] = i;
        }
        started[i] = (Started){s.block[i].first, i};
    }
    rank_blocks(&s, rule);
    qsort(started, (size_t)n, sizeof *started, started_compare);
    /* Every level of the search places a block: its part has one block less. */
    size_t rows = (size_t)(n + 1) * (size_t)(n + 2) / 2;
    int *all = ARENA_ARRAY(scratch, int, rows);
    Part part = {n, all, all + n, 0, -1, -1};
    for (int i = 0; i < n; i++) {
        all[i] = started[i].block;
    }
    find_neighbours(&s, all);
    Fit fit = each && fits(&s, 0, s.nsection, 0) ? search_part(&s, &part) : FIT_NONE;
    *steps = s.steps > 0 ? s.steps : 0;
    return fit;
}
