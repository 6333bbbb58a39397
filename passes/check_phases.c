/* check_phases: see the header.
 *
 * What `init` touches is there in the first phase, or in that which it is for, what an entry
 * touches in every phase that calls it, and the numbers that a run counts with and sets always. The
 * sums are made again from that. A slot that lies on another one is found where entries are
 * proved. */
#include "passes/check_phases.h"

typedef struct {
    Arena *arena;
    const Program *p;
    const ProgramEntry *e;
    int phase;
    const char *fault;
} Phases;

static void check_there(Phases *c, const Buf *buf) {
    bool slot = buf->kind == BUF_PARAM || buf->kind == BUF_STATE;
    if (slot && (c->phase < buf->begins || c->phase > buf->ends) && !c->fault) {
        c->fault = str_printf(c->arena, "%s touches %s in phase %d, which is there in %d to %d",
                              c->e->entry->name, buf->name, c->phase, buf->begins, buf->ends);
    }
}

static void check_step(void *ctx, Step *step, int depth) {
    Phases *c = ctx;
    (void)depth;
    for (int i = 0; i < step->access.count; i++) {
        check_there(c, buf_root(step->access.at[i].buf));
    }
}

static bool is_called(const Module *module, const Entry *entry, int phase) {
    bool named = entry->kind == ENTRY_INIT && phase == entry->begins;
    for (int i = 0; entry->kind != ENTRY_INIT && i < module->phase.count; i++) {
        const PhaseEntry *one = &module->phase.at[i];
        named = named || (one->phase == phase && str_eq(one->name, entry->name));
    }
    return named;
}

/* The bytes of one phase, from what is there. */
static PhaseNeed measure(Phases *c) {
    PhaseNeed need = {0};
    for (int i = 0; i < c->p->slot.count; i++) {
        const Buf *slot = c->p->slot.at[i];
        if (slot->begins <= c->phase && slot->ends >= c->phase) {
            *(slot->kind == BUF_PARAM ? &need.params : &need.state) += align_up(slot->bytes, 64);
        }
    }
    for (int i = 0; i < c->p->entry.count; i++) {
        c->e = c->p->entry.at[i];
        bool rows = c->e->entry->kind == ENTRY_LOAD; /* of data, whoever takes them */
        if (is_called(c->p->module, c->e->entry, c->phase) || rows) {
            need.arena = c->e->arena_bytes > need.arena ? c->e->arena_bytes : need.arena;
            steps_visit(&c->e->step, check_step, c);
        }
    }
    need.total = need.params + need.state + need.arena + c->p->io_bytes;
    return need;
}

const char *check_phases(Arena *scratch, const Program *p) {
    Phases c = {.arena = scratch, .p = p};
    int64_t most = 0;
    int last = p->phase.count - 1;
    for (int i = 0; i < p->slot.count && last >= 0; i++) {
        const Buf *slot = p->slot.at[i];
        if (slot->type->rank == 0 && (slot->begins > 0 || slot->ends < last)) {
            return str_printf(scratch, "%s is not there in all phases", slot->name);
        }
    }
    for (int i = 0; i < p->module->phase.count && last >= 0; i++) {
        if (p->module->phase.at[i].phase > last) {
            return "a phase is missing";
        }
    }
    for (; c.phase <= last && !c.fault; c.phase++) {
        PhaseNeed need = measure(&c), *said = &p->phase.at[c.phase];
        most = need.total > most ? need.total : most;
        if (need.params != said->params || need.state != said->state || need.arena != said->arena ||
            need.total != said->total) {
            return c.fault ? c.fault : "the totals of a phase do not add up";
        }
    }
    return c.fault ? c.fault
           : p->total_bytes != (last < 0 ? program_whole_bytes(p) : most)
               ? "the totals do not add up"
               : NULL;
}
