/* live_set: see the header. */
#include "emit/live_set.h"

#include "emit/uses.h"

#include <stdlib.h>

typedef struct {
    int id;
    Step *found;
} IdSearch;

static void search_id(void *ctx, Step *step, int depth) {
    IdSearch *search = ctx;
    (void)depth;
    search->found = step->id == search->id ? step : search->found;
}

const Step *step_at(const ProgramEntry *entry, int id) {
    IdSearch search = {id, NULL};
    steps_visit(&entry->step, search_id, &search);
    return search.found;
}

const char *step_word(const Step *step) {
    switch (step->kind) {
    case STEP_COPY: return "copy";
    case STEP_CHECK: return "check of the call";
    case STEP_CLEAR: return "rest of a stack";
    case STEP_PUSH: return "push";
    case STEP_SEED: return "seed";
    case STEP_RANGE: return "range of an input";
    case STEP_NEED: return "rows of a ring";
    case STEP_LOOP: return "loop";
    case STEP_KERNEL: break;
    }
    return step->name != NULL ? step->name : op_info[step->op].name;
}

static const char *place(const Emit *e, Loc loc) {
    int line = loc_line_of(e, loc);
    return line > 0 ? str_printf(e->arena, ", line %d", line) : "";
}

/* Why it is there, and what comes next of it, seen from the peak. */
static const char *reason(const Uses *uses, const Buf *buf) {
    const Use *use = &uses->at[buf->id];
    Arena *arena = uses->e->arena;
    const char *why = use_why(uses, buf);
    if (buf->kind == BUF_WORK) {
        return why;
    }
    const char *first = *why ? str_printf(arena, "%s; ", why) : "";
    if (use->next == NULL) {
        return str_printf(arena, "%s%s", first,
                          use->here ? "used here for the last time"
                                    : "used in the next iteration of its loop");
    }
    return str_printf(arena, "%s%sread later by %s%s", first, use->here ? "used here, then " : "",
                      step_word(use->next), place(uses->e, use->next->loc));
}

static int compare(const void *a, const void *b) {
    const LiveItem *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->buf->id < y->buf->id ? -1 : 1;
}

LiveSet live_set(const Emit *e, const ProgramEntry *entry) {
    LiveSet set = {0};
    const Uses uses = uses_of(e, entry);
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (buf_owns_arena(buf) && buf->first <= entry->peak_step && entry->peak_step < buf->last) {
            const char *name = buf->label != NULL ? buf->label : buf->name;
            LiveItem item = {buf,
                             name,
                             use_layer(&uses, buf),
                             use_role(&uses, buf),
                             reason(&uses, buf),
                             arena_room(entry, buf->bytes)};
            VEC_PUSH(e->arena, &set, item);
        }
    }
    if (set.count > 0) {
        qsort(set.at, (size_t)set.count, sizeof *set.at, compare);
    }
    return set;
}

/* The most bytes live at one step when per-thread workspaces are made for `threads`. */
static int64_t peak_with(const Emit *e, const ProgramEntry *entry, int threads) {
    int64_t *change = ARENA_ARRAY(e->arena, int64_t, entry->nstep + 2);
    for (int i = 0; i < entry->buf.count; i++) {
        const Buf *buf = entry->buf.at[i];
        if (!buf_owns_arena(buf)) {
            continue;
        }
        int64_t bytes = buf->bytes;
        if (buf->kind == BUF_WORK && buf->per_thread > 0) {
            bytes = bytes / buf->per_thread * threads;
        }
        change[buf->first] += arena_room(entry, bytes);
        change[buf->last] -= arena_room(entry, bytes);
    }
    int64_t live = 0, most = 0;
    for (int i = 0; i < entry->nstep; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    return most;
}

int64_t thread_adds(const Emit *e, const ProgramEntry *entry, int threads) {
    return peak_with(e, entry, threads + 1) - peak_with(e, entry, threads);
}
