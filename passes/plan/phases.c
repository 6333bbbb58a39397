/* phases: see the header.
 *
 * A program with a main goes through its phases in their order, and an `init` of each writes what
 * begins there. So a slot is there from the first phase on that touches it, up to the last one.
 * Numbers by which a run counts and is set are there all the time. Changes no values. */
#include "passes/plan/phases.h"

static int count_phases(const Module *module) {
    int n = 0;
    for (int i = 0; i < module->phase.count; i++) {
        n = module->phase.at[i].phase >= n ? module->phase.at[i].phase + 1 : n;
    }
    return n;
}

static void note_buf(Buf *buf, int phase) {
    if (buf->kind == BUF_PARAM || buf->kind == BUF_STATE) {
        buf->begins = buf->begins > buf->ends ? phase : buf->begins;
        buf->ends = buf->ends > phase ? buf->ends : phase;
    }
}

static void note_step(void *ctx, Step *step, int depth) {
    const int phase = *(const int *)ctx;
    (void)depth;
    for (int i = 0; i < step->access.count; i++) {
        Buf *buf = step->access.at[i].buf;
        note_buf(buf_root(buf), phase);
        if (buf->final) {
            note_buf(buf_root(buf->final), phase);
        }
    }
}

void plan_phases(Program *p, bool goes) {
    int n = goes ? count_phases(p->module) : 0;
    p->phase.count = 0;
    for (int i = 0; n > 1 && i < n; i++) {
        VEC_PUSH(p->arena, &p->phase, ((PhaseNeed){0}));
    }
    for (int i = 0; i < p->slot.count; i++) {
        Buf *slot = p->slot.at[i];
        bool number = slot->type->rank == 0;
        slot->begins = n > 1 && !number ? 1 : 0; /* what nobody touches is never there */
        slot->ends = n > 1 && number ? n - 1 : 0;
    }
    for (int k = 0; n > 1 && k < n; k++) {
        for (int i = 0; i < p->entry.count; i++) {
            if (entry_in_phase(p, p->entry.at[i], k)) {
                steps_visit(&p->entry.at[i]->step, note_step, &k);
            }
        }
    }
}

int plan_phases_order(const Buf *a, const Buf *b) {
    if (a->begins != b->begins) {
        return a->begins - b->begins;
    }
    return b->ends - a->ends;
}

void plan_phases_total(Program *p) {
    p->total_bytes = p->phase.count == 0 ? program_whole_bytes(p) : 0;
    for (int k = 0; k < p->phase.count; k++) {
        PhaseNeed *need = &p->phase.at[k];
        *need = (PhaseNeed){0};
        for (int i = 0; i < p->slot.count; i++) {
            const Buf *slot = p->slot.at[i];
            int64_t *sum = slot->kind == BUF_PARAM ? &need->params : &need->state;
            bool there = slot->begins <= k && k <= slot->ends;
            *sum += there ? align_up(slot->bytes, MD_ALIGN) : 0;
        }
        for (int i = 0; i < p->entry.count; i++) {
            const ProgramEntry *e = p->entry.at[i];
            bool more = entry_in_phase(p, e, k) && e->arena_bytes > need->arena;
            need->arena = more ? e->arena_bytes : need->arena;
        }
        need->total = need->params + need->state + p->io_bytes + need->arena;
        p->total_bytes = need->total > p->total_bytes ? need->total : p->total_bytes;
    }
}

int64_t plan_phases_beside(const Program *p, const ProgramEntry *e) {
    int64_t most = p->phase.count == 0 ? program_whole_bytes(p) - p->arena_bytes : 0;
    for (int k = 0; k < p->phase.count; k++) {
        const PhaseNeed *need = &p->phase.at[k];
        int64_t beside = need->total - need->arena;
        most = entry_in_phase(p, e, k) && beside > most ? beside : most;
    }
    return most;
}
