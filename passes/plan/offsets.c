/* offsets: lifetimes to offsets.
 *
 * One arena an entry. A loop's list is one stretch of step numbers, so what its body declares
 * shares one set of offsets in all iterations, beside everything that lives through the loop. Sizes
 * are rounded to MD_ALIGN, which aligns every offset; guard bands belong to the size. Params and
 * state are dense in the order of their slots, or of a program that goes through phases by when
 * these are there; io holds, for each entry, its staged inputs, of a device then a status, and then
 * its results, and entries overlay each other there because results are valid until the next call
 * only. Needs roots and lifetimes, gives offsets and totals, changes no values. */
#include "passes/plan/offsets.h"

#include "compiler/kernel.h"
#include "passes/plan/alloc.h"
#include "passes/plan/live.h"
#include "passes/plan/phases.h"

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

void plan_offsets(ProgramEntry *e, AllocMemo *memo) {
    Arena scratch = {0};
    live_ranges(e);
    AllocItem *item = ARENA_ARRAY(&scratch, AllocItem, e->buf.count + 1);
    Buf **owner = ARENA_ARRAY(&scratch, Buf *, e->buf.count + 1);
    int n = 0;
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (buf_owns_arena(buf)) {
            item[n] = (AllocItem){buf->first, buf->last, arena_room(e, buf->bytes)};
            owner[n++] = buf;
        }
    }
    int64_t *offset = ARENA_ARRAY(&scratch, int64_t, n + 1);
    e->arena_bytes = alloc_place_any(memo, item, n, offset);
    e->lower_bound_bytes = alloc_lower_bound(&scratch, item, n);
    e->peak_step = peak_step(item, n, e->nstep, &scratch);
    for (int i = 0; i < n; i++) {
        owner[i]->offset = offset[i] + e->band_bytes;
    }
    plan_count(e);
    arena_free(&scratch);
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
 * names, load one byte for each tensor. */
static int64_t stack_bound(const Program *p) {
    enum { FRAMES = 8448, HALVES = 16384, POINTER = 16 };
    int most = 0;
    bool halves = false;
    for (int i = 0; i < p->kernel.count; i++) {
        const Tile *tile = kernel_tile(p->kernel.at[i]);
        halves =
            halves || (tile != NULL && (elem_is_half(tile->as[0]) || elem_is_half(tile->as[1])));
    }
    for (int i = 0; i < p->entry.count; i++) {
        most = p->entry.at[i]->buf.count > most ? p->entry.at[i]->buf.count : most;
    }
    int64_t slices = 0; /* load has a byte for each tensor of a file that is part of a slot */
    for (int i = 0; i < p->slot.count; i++) {
        const Slot *slot = p->slot.at[i]->slot;
        slices += slot->split > 0 ? slot_slices(slot) : 0;
    }
    return align_up(FRAMES + (halves ? HALVES : 0) + POINTER * (most + p->slot.count) + slices,
                    MD_ALIGN);
}

static int by_phases(const void *a, const void *b) {
    const Buf *x = *(Buf *const *)a, *y = *(Buf *const *)b;
    int order = plan_phases_order(x, y);
    return order != 0 ? order : x->slot->index - y->slot->index;
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
    for (int i = 0; i < p->slot.count; i++) {
        int64_t *region = slot[i]->kind == BUF_PARAM ? &p->params_bytes : &p->state_bytes;
        slot[i]->offset = *region;
        *region += align_up(slot[i]->bytes, MD_ALIGN);
    }
    arena_free(&scratch);
}

void plan_regions(Program *p, bool staging) {
    p->stack_bytes = stack_bound(p);
    p->params_bytes = p->state_bytes = p->io_bytes = p->arena_bytes = 0;
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
