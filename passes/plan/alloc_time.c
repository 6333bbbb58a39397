/* alloc_time: a heap of memory as programs have one at run time, but known beforehand.
 *
 * Technique: in the order of time all that is placed and has not ended is in the way, and nothing
 * else is, so what lies between is a list of gaps. A block takes the beginning of one; what ends
 * gives its place back, joined with the gaps beside it.
 * Needs blocks of sizes above 0 by the time at which they begin; gives offsets that keep live
 * blocks apart. */
#include "passes/plan/alloc_time.h"

#include <string.h>

typedef struct {
    int64_t at, size;
} Gap;

typedef struct {
    const AllocItem *item;
    int64_t *offset;
    int *live; /* a heap by `upper`, the earliest first */
    int nlive;
    Gap *gap; /* by place, none beside another */
    int ngap;
    int64_t top; /* behind all that is live */
} Heap;

static bool ends_before(const Heap *h, int a, int b) {
    return h->item[h->live[a]].upper < h->item[h->live[b]].upper;
}

static void live_swap(Heap *h, int a, int b) {
    int t = h->live[a];
    h->live[a] = h->live[b];
    h->live[b] = t;
}

static void live_push(Heap *h, int id) {
    int i = h->nlive++;
    h->live[i] = id;
    for (; i > 0 && ends_before(h, i, (i - 1) / 2); i = (i - 1) / 2) {
        live_swap(h, i, (i - 1) / 2);
    }
}

static int live_pop(Heap *h) {
    int first = h->live[0];
    h->live[0] = h->live[--h->nlive];
    for (int i = 0, k; (k = 2 * i + 1) < h->nlive; i = k) {
        k += k + 1 < h->nlive && ends_before(h, k + 1, k);
        if (!ends_before(h, k, i)) {
            break;
        }
        live_swap(h, i, k);
    }
    return first;
}

static void gap_remove(Heap *h, int i) {
    memmove(&h->gap[i], &h->gap[i + 1], sizeof *h->gap * (size_t)(h->ngap - i - 1));
    h->ngap--;
}

static void give_back(Heap *h, int64_t at, int64_t size) {
    int lo = 0, hi = h->ngap; /* the first gap behind it */
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (h->gap[mid].at < at) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo < h->ngap && h->gap[lo].at == at + size) {
        size += h->gap[lo].size;
        gap_remove(h, lo);
    }
    if (lo > 0 && h->gap[lo - 1].at + h->gap[lo - 1].size == at) {
        at = h->gap[lo - 1].at;
        size += h->gap[lo - 1].size;
        gap_remove(h, --lo);
    }
    if (at + size == h->top) {
        h->top = at;
        return;
    }
    memmove(&h->gap[lo + 1], &h->gap[lo], sizeof *h->gap * (size_t)(h->ngap - lo));
    h->gap[lo] = (Gap){at, size};
    h->ngap++;
}

static int64_t take(Heap *h, int64_t size, bool best_fit) {
    int found = -1;
    for (int i = 0; i < h->ngap && (found < 0 || best_fit); i++) {
        if (h->gap[i].size >= size && (found < 0 || h->gap[i].size < h->gap[found].size)) {
            found = i;
        }
    }
    if (found < 0) {
        h->top += size;
        return h->top - size;
    }
    Gap *gap = &h->gap[found];
    int64_t at = gap->at;
    *gap = (Gap){at + size, gap->size - size};
    if (gap->size == 0) {
        gap_remove(h, found);
    }
    return at;
}

int64_t alloc_by_time(Arena *scratch, const AllocItem *item, int n, const int *order, bool best_fit,
                      int64_t *offset, int64_t *work) {
    Heap h = {.item = item, .offset = offset};
    h.live = ARENA_ARRAY(scratch, int, n + 1);
    h.gap = ARENA_ARRAY(scratch, Gap, n + 2);
    int64_t height = 0;
    for (int k = 0; k < n; k++) {
        const AllocItem *next = &item[order[k]];
        while (h.nlive > 0 && item[h.live[0]].upper <= next->lower) {
            int ended = live_pop(&h);
            give_back(&h, offset[ended], item[ended].size);
        }
        *work += h.nlive;
        offset[order[k]] = take(&h, next->size, best_fit);
        live_push(&h, order[k]);
        height = h.top > height ? h.top : height;
    }
    return height;
}
