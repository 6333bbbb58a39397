/* offsets: lifetimes to offsets.
 *
 * One arena an entry. A loop's list is one stretch of step numbers, so what its body declares
 * shares one set of offsets in all iterations, beside everything that lives through the loop. Where
 * turns run side by side it has one stretch of the arena, which further threads have again. Sizes
 * are rounded to MD_ALIGN, which aligns every offset; guard bands belong to the size. Params and
 * state lie in the order of their slots, or of a program that goes through phases by when these are
 * there, dense but for what keeps large state apart (stagger.h); io holds, for each entry, its
 * staged inputs, of a device then a status, and then its results, and entries overlay each other
 * there because results are valid until the next call only. Needs roots and lifetimes, gives
 * offsets and totals, changes no values. */
#include "passes/plan/offsets.h"

#include "compiler/kernel.h"
#include "passes/plan/alloc.h"
#include "passes/plan/live.h"
#include "passes/plan/phases.h"
#include "passes/plan/stagger.h"

#include <stdlib.h>
#include <string.h>

static int peak_step(const AllocItem *item, int n, int nstep, Arena *scratch) {
    int64_t *change = ARENA_ARRAY(scratch, int64_t, nstep + 2);
    for (int i = 0; i < n; i++) {
        change[item[i].lower] += item[i].size;
        change[item[i].upper] -= item[i].size;
    }
    int64_t live = 0, most = -1;
    int at = 0;
    for (int i = 0; i < nstep; i++) {
        live += change[i];
        if (live > most) {
            most = live;
            at = i;
        }
    }
    return at;
}

static void add_work(ProgramEntry *e, const StepList *list, int64_t times) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            add_work(e, &step->body, count_add(0, times, step->trip));
        } else {
            e->flops = count_add(e->flops, times, step->flops);
            e->dear = count_add(e->dear, times, step->dear);
            e->bytes_moved = count_add(e->bytes_moved, times, step->bytes_moved);
            e->flops_again = count_add(e->flops_again, times, step->again ? step->flops : 0);
            e->steps_again += step->again != NULL;
        }
    }
}

void plan_count(ProgramEntry *e) {
    e->flops = e->dear = e->bytes_moved = e->flops_again = e->steps_again = 0;
    add_work(e, &e->step, 1);
}

typedef struct {
    Program *p;
    ProgramEntry *e;
    AllocMemo *memo;
    Arena scratch;
    AllocItem *item; /* those of the arena, and which Bufs they are */
    Buf **owner;
    const Step **aside; /* the loop side by side that declares it, or NULL */
    int64_t *offset;
    int n;
} Offsets;

static void collect(Offsets *o) {
    ProgramEntry *e = o->e;
    o->item = ARENA_ARRAY(&o->scratch, AllocItem, e->buf.count + 1);
    o->owner = ARENA_ARRAY(&o->scratch, Buf *, e->buf.count + 1);
    o->aside = ARENA_ARRAY(&o->scratch, const Step *, e->buf.count + 1);
    o->offset = ARENA_ARRAY(&o->scratch, int64_t, e->buf.count + 1);
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf_owns_arena(buf)) {
            o->item[o->n] = (AllocItem){buf->first, buf->last, arena_room(e, buf->bytes)};
            o->aside[o->n] = step_aside(buf->loop);
            o->owner[o->n++] = buf;
        }
    }
}

/* Places those that `loop` declares, NULL: all others, with stretches of such loops behind them. */
static int64_t place(Offsets *o, const Step *loop, const AllocItem *stretch, int stretches,
                     int64_t *at) {
    AllocItem *some = ARENA_ARRAY(&o->scratch, AllocItem, o->n + stretches + 1);
    int64_t *offset = ARENA_ARRAY(&o->scratch, int64_t, o->n + stretches + 1);
    int count = 0;
    for (int i = 0; i < o->n; i++) {
        if (o->aside[i] == loop) {
            some[count++] = o->item[i];
        }
    }
    const int own = count;
    for (int i = 0; i < stretches; i++) {
        some[count++] = stretch[i];
    }
    int64_t bytes = alloc_place_any(o->memo, some, count, offset);
    for (int i = count = 0; i < o->n; i++) {
        if (o->aside[i] == loop) {
            o->offset[i] = offset[count++];
        }
    }
    for (int i = 0; i < stretches; i++) {
        at[i] = offset[own + i];
    }
    return bytes;
}

/* What such a loop declares, as one item of the arena, and of further threads the same again. */
static AllocItem place_inside(Offsets *o, Step *loop) {
    AllocItem stretch = {loop->id, step_end(loop), place(o, loop, NULL, 0, NULL)};
    step_set_rest(o->p, loop, stretch.size);
    for (int i = 0; i < o->n; i++) {
        if (o->owner[i] == loop->rest) {
            o->item[i].size = arena_room(o->e, loop->rest->bytes);
        }
    }
    return stretch;
}

static void place_all(Offsets *o) {
    ProgramEntry *e = o->e;
    AllocItem *stretch = ARENA_ARRAY(&o->scratch, AllocItem, e->step.count + 1);
    Step **loop = ARENA_ARRAY(&o->scratch, Step *, e->step.count + 1);
    int64_t *at = ARENA_ARRAY(&o->scratch, int64_t, e->step.count + 1);
    int count = 0;
    for (int i = 0; i < e->step.count; i++) {
        if (e->step.at[i]->rest != NULL) {
            loop[count] = e->step.at[i];
            stretch[count] = place_inside(o, loop[count]);
            count++;
        }
    }
    e->arena_bytes = place(o, NULL, stretch, count, at);
    for (int k = 0; k < count; k++) {
        loop[k]->base = at[k];
        for (int i = 0; i < o->n; i++) {
            o->offset[i] += o->aside[i] == loop[k] ? at[k] : 0;
        }
    }
}

void plan_offsets(Program *p, ProgramEntry *e, AllocMemo *memo) {
    Offsets o = {.p = p, .e = e, .memo = memo};
    live_ranges(e);
    collect(&o);
    place_all(&o);
    e->lower_bound_bytes = alloc_lower_bound(&o.scratch, o.item, o.n);
    e->peak_step = peak_step(o.item, o.n, e->nstep, &o.scratch);
    for (int i = 0; i < o.n; i++) {
        o.owner[i]->offset = o.offset[i] + e->band_bytes;
    }
    plan_count(e);
    arena_free(&o.scratch);
}

/* ---- regions -------------------------------------------------------------------------------- */

/* The input of the train that an input of its evaluation shares the staging with. */
static const Buf *staged_input(const Program *p, const Entry *train, const Buf *input) {
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        for (int k = 0; e->entry == train && k < e->buf.count; k++) {
            const Buf *buf = e->buf.at[k];
            if (buf->kind == BUF_INPUT && str_eq(buf->slot->c_name, input->slot->c_name)) {
                return buf;
            }
        }
    }
    return NULL;
}

static int64_t staged_bytes(const Program *p, const Entry *train) {
    int64_t end = 0;
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        for (int k = 0; e->entry == train && k < e->buf.count; k++) {
            const Buf *buf = e->buf.at[k];
            if (buf->kind == BUF_INPUT && buf->offset + buf->bytes > end) {
                end = align_up(buf->offset + buf->bytes, MD_ALIGN);
            }
        }
    }
    return end;
}

/* Callers hand over every declared input, also one that no step reads. */
static void add_unread_inputs(Program *p, ProgramEntry *e) {
    for (int i = 0; i < e->entry->input.count; i++) {
        Slot *slot = e->entry->input.at[i];
        bool found = false;
        for (int k = 0; k < e->buf.count; k++) {
            found = found || (e->buf.at[k]->kind == BUF_INPUT && e->buf.at[k]->slot == slot);
        }
        if (!found) {
            Buf *buf = buf_new(p, e, BUF_INPUT, slot->type, slot->c_name);
            buf->slot = slot;
            buf->loc = slot->loc;
        }
    }
}

static void plan_io(Program *p, ProgramEntry *e, bool staging) {
    EntryKind kind = e->entry->kind;
    int64_t at = 0;
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->kind != BUF_INPUT) {
            continue;
        }
        buf->offset = -1;
        if (p->device || (staging && (kind == ENTRY_TRAIN || kind == ENTRY_CALL))) {
            buf->offset = at;
            at += align_up(buf->bytes, MD_ALIGN);
        } else if (staging && kind == ENTRY_EVAL && buf->slot != e->entry->rows_slot) {
            const Buf *train = staged_input(p, e->entry->train, buf);
            if (train != NULL && train->bytes >= buf->bytes) {
                buf->offset = train->offset;
            }
        }
    }
    if (p->device) {
        e->status_offset = at;
        at += MD_ALIGN;
    } else if (staging && kind == ENTRY_EVAL) { /* leave all that is staged for the train */
        at = staged_bytes(p, e->entry->train);
    }
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf->kind == BUF_RESULT) {
            buf->offset = at;
            at += align_up(buf->bytes, MD_ALIGN);
        }
    }
    e->io_bytes = at;
    /* The functions that turn data rows and sums into values have no region: their callers pass
     * pointers; but a device computes in its own. */
    if (kind != ENTRY_LOAD && (kind != ENTRY_EVAL_END || p->device)) {
        p->io_bytes = at > p->io_bytes ? at : p->io_bytes;
    }
}

/* A bound for the frames of any call on one thread: services and kernels keep small arrays, those
 * that pack operands of 16 bits larger ones, an entry function one pointer for each Buf that it
 * names, and so has that of turns side by side, load one byte for each tensor. */
static int64_t stack_bound(const Program *p) {
    enum { FRAMES = 8448, HALVES = 16384, POINTER = 16 };
    int64_t most = 0;
    bool halves = false;
    for (int i = 0; i < p->kernel.count; i++) {
        const Tile *tile = kernel_tile(p->kernel.at[i]);
        halves =
            halves || (tile != NULL && (elem_is_half(tile->as[0]) || elem_is_half(tile->as[1])));
    }
    for (int i = 0; i < p->entry.count; i++) {
        const ProgramEntry *e = p->entry.at[i];
        int functions = 1;
        for (int k = 0; k < e->step.count; k++) {
            functions = e->step.at[k]->rest != NULL ? 2 : functions;
        }
        const int64_t named = (int64_t)functions * (e->buf.count + p->slot.count);
        most = named > most ? named : most;
    }
    int64_t slices = 0; /* load has a byte for each tensor of a file that is part of a slot */
    for (int i = 0; i < p->slot.count; i++) {
        const Slot *slot = p->slot.at[i]->slot;
        slices += slot->split > 0 ? slot_slices(slot) : 0;
    }
    return align_up(FRAMES + (halves ? HALVES : 0) + POINTER * most + slices, MD_ALIGN);
}

static int by_phases(const void *a, const void *b) {
    const Buf *x = *(Buf *const *)a, *y = *(Buf *const *)b;
    int order = plan_phases_order(x, y);
    return order != 0 ? order : x->slot->index - y->slot->index;
}

/* All of a kind one behind another, state apart from what `stagger` says, unless that is NULL.
 * Gives the bytes of their region. */
static int64_t place_kind(Buf **slot, int n, BufKind kind, Stagger *stagger) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        if (slot[i]->kind != kind) {
            continue;
        }
        at += stagger && kind == BUF_STATE ? plan_stagger_lead(stagger, slot[i], at) : 0;
        slot[i]->offset = at;
        at += align_up(slot[i]->bytes, MD_ALIGN);
        if (stagger) {
            plan_stagger_placed(stagger, slot[i]);
        }
    }
    return at;
}

static void place_slots(Program *p) {
    Arena scratch = {0};
    Buf **slot = ARENA_ARRAY(&scratch, Buf *, p->slot.count + 1);
    for (int i = 0; i < p->slot.count; i++) {
        slot[i] = p->slot.at[i];
    }
    if (p->phase.count > 0) {
        qsort(slot, (size_t)p->slot.count, sizeof *slot, by_phases);
    }
    Stagger *stagger = p->phase.count > 0 || p->device ? NULL : plan_stagger(p, &scratch);
    p->params_bytes = place_kind(slot, p->slot.count, BUF_PARAM, stagger);
    p->state_bytes = place_kind(slot, p->slot.count, BUF_STATE, stagger);
    arena_free(&scratch);
}

void plan_regions(Program *p, bool staging) {
    p->stack_bytes = stack_bound(p);
    p->io_bytes = p->arena_bytes = 0;
    plan_phases(p, staging && !p->device);
    place_slots(p);
    for (int i = 0; i < p->entry.count; i++) {
        add_unread_inputs(p, p->entry.at[i]);
    }
    for (int pass = 0; pass < 2; pass++) { /* trains before the evaluations that share with them */
        for (int i = 0; i < p->entry.count; i++) {
            if ((p->entry.at[i]->entry->kind == ENTRY_EVAL) == (pass == 1)) {
                plan_io(p, p->entry.at[i], staging);
            }
        }
    }
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        p->arena_bytes = e->arena_bytes > p->arena_bytes ? e->arena_bytes : p->arena_bytes;
        for (int k = 0; k < e->buf.count; k++) {
            Buf *root = buf_root(e->buf.at[k]);
            if (root != e->buf.at[k]) {
                e->buf.at[k]->offset = root->offset;
            }
        }
    }
    plan_phases_total(p);
}
