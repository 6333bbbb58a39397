/* stagger: see the header.
 *
 * A register tile of a product asks for the lines that its update reads and writes, a few of each
 * row, of a weight and its moments at once, in the first-level cache. Rows whose pitch is a
 * multiple of 4,096 bytes lie in one set of it. Tensors of such rows have a multiple of that many
 * bytes too, so where they lie one behind another the lines of all of them meet in those sets, and
 * are gone before they are used. Needs the steps of all entries, changes no values. */
#include "passes/plan/stagger.h"

#include <stdlib.h>

enum {
    LARGE = TUNED(1 << 20, 256), /* bytes of what comes from memory in each step */
    PITCH = 4096,                /* bytes of a way of first-level caches */
    LINES = 256,                 /* bytes of a row that a tile asks for at a time, about */
    MOST = 8                     /* others of one tensor that are looked at */
};

typedef struct {
    const Buf *with[MOST]; /* params and state that some kernel touches together with it */
    int count;
    bool placed;
} Company;

struct Stagger {
    Company *of; /* by the index of a slot */
};

static bool has(const Buf *const *list, int count, const Buf *buf) {
    bool found = false;
    for (int i = 0; i < count; i++) {
        found = found || list[i] == buf;
    }
    return found;
}

static void add(Company *company, const Buf *other) {
    if (company->count < MOST && !has(company->with, company->count, other)) {
        company->with[company->count++] = other;
    }
}

static void note_step(void *ctx, Step *step, int depth) {
    const Stagger *a = ctx;
    const Buf *large[MOST];
    int count = 0;
    (void)depth;
    for (int i = 0; i < step->access.count && count < MOST; i++) {
        const Buf *buf = buf_root(step->access.at[i].buf);
        const bool slot = buf->kind == BUF_PARAM || buf->kind == BUF_STATE;
        if (slot && buf->bytes >= LARGE && !has(large, count, buf)) {
            large[count++] = buf;
        }
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < count; k++) {
            if (i != k) {
                add(&a->of[large[i]->slot->index], large[k]);
            }
        }
    }
}

Stagger *plan_stagger(const Program *p, Arena *scratch) {
    Stagger *a = ARENA_ARRAY(scratch, Stagger, 1);
    a->of = ARENA_ARRAY(scratch, Company, p->slot.count + 1);
    for (int i = 0; i < p->entry.count; i++) {
        steps_visit(&p->entry.at[i]->step, note_step, a);
    }
    return a;
}

int64_t plan_stagger_lead(const Stagger *a, const Buf *slot, int64_t at) {
    const Company *company = &a->of[slot->slot->index];
    for (int64_t lead = 0; lead < PITCH; lead += MD_ALIGN) {
        bool meets = false;
        for (int i = 0; i < company->count; i++) {
            const Buf *other = company->with[i];
            const int64_t far = llabs(at + lead - other->offset) % PITCH;
            meets =
                meets || (a->of[other->slot->index].placed && (far < LINES || far > PITCH - LINES));
        }
        if (!meets) {
            return lead;
        }
    }
    return 0;
}

void plan_stagger_placed(Stagger *a, const Buf *slot) {
    a->of[slot->slot->index].placed = true;
}
