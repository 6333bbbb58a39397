/* random_program: see the header. */
#include "random_program.h"

#include "step_text.h"

#include <string.h>

uint64_t random_next(uint64_t *state) {
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- making --------------------------------------------------------------------------------- */

typedef struct {
    Arena *arena;
    Program *p;
    ProgramEntry *e;
    uint64_t random;
    int nstep;
    VEC(Buf *) seen;  /* readable now: written in this list or an enclosing one */
    VEC(Step *) loop; /* open ones */
} Gen;

static int64_t pick(Gen *g, int64_t n) {
    return (int64_t)(random_next(&g->random) % (uint64_t)n);
}

static Type words(int64_t lead, int64_t n) {
    int64_t dim[2] = {lead, n};
    return lead > 0 ? type_make(TY_I64, 2, dim) : type_make(TY_I64, 1, dim + 1);
}

static Buf *temp_new(Gen *g, Type type) {
    Buf *buf = buf_new(g->p, g->e, BUF_TEMP, type, "t");
    buf->loop = g->loop.count > 0 ? g->loop.at[g->loop.count - 1] : NULL;
    return buf;
}

static Step *step_add(Gen *g, StepList *list) {
    Step *step = step_new(g->p, STEP_KERNEL, LOC_NONE);
    step->name = str_printf(g->arena, "k%d", g->nstep++);
    VEC_PUSH(g->arena, list, step);
    if (pick(g, 4) == 0) {
        Buf *work = buf_new(g->p, g->e, BUF_WORK, words(0, 1 + pick(g, 20)), "w");
        work->loop = g->loop.count > 0 ? g->loop.at[g->loop.count - 1] : NULL;
        step_access(g->p, step, work, ACCESS_READ | ACCESS_WRITE);
    }
    return step;
}

/* A read of something; of a stack that fits the innermost loop mostly by its slice. */
static void read_any(Gen *g, Step *step) {
    if (g->seen.count == 0) {
        return;
    }
    int64_t recent = pick(g, 3) == 0 || g->seen.count < 6 ? g->seen.count : 6;
    Buf *buf = g->seen.at[g->seen.count - 1 - pick(g, recent)];
    if (step_find(step, buf) != NULL) {
        return;
    }
    const Step *loop = g->loop.count > 0 ? g->loop.at[g->loop.count - 1] : NULL;
    if (loop != NULL && buf->loop != loop && buf->type->rank == 2 &&
        buf->type->dim[0] == loop->trip && pick(g, 5) > 0) {
        step_access_slice(g->p, step, buf, ACCESS_READ, &loop, 1);
    } else {
        step_access(g->p, step, buf, ACCESS_READ);
    }
}

static Buf *make_value(Gen *g, StepList *list, int reads, Type type) {
    Step *step = step_add(g, list);
    for (int i = 0; i < reads; i++) {
        read_any(g, step);
    }
    Buf *out = temp_new(g, type);
    step_access(g->p, step, out, ACCESS_WRITE);
    for (int i = 0; i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if ((access->mode == ACCESS_READ) && access->slice[0] == NULL &&
            type_equal(*access->buf->type, type) && pick(g, 3) > 0) {
            VEC_PUSH(g->arena, &step->inplace, ((InplacePair){access->buf, out}));
        }
    }
    return out;
}

static void make_parts(Gen *g, StepList *list) {
    Buf *out = temp_new(g, words(0, 4));
    for (int part = 0; part < 2; part++) {
        Step *step = step_add(g, list);
        read_any(g, step);
        step_access(g->p, step, out, ACCESS_WRITE | ACCESS_PART);
        step->index = part;
    }
    VEC_PUSH(g->arena, &g->seen, out);
}

static bool is_dest(const Gen *g, const Buf *buf) {
    for (int i = 0; i < g->e->buf.count; i++) {
        if (g->e->buf.at[i]->final == buf) {
            return true;
        }
    }
    return false;
}

static void make_list(Gen *g, StepList *list, int size, int depth);

static void make_loop(Gen *g, StepList *list, int size, int depth) {
    int64_t trip = 1 + pick(g, 5), ncarry = pick(g, 3), nys = pick(g, 2);
    Buf *carry[2], *ys[1] = {NULL}, *xs = NULL;
    int64_t n = pick(g, 2) ? 4 : 1 + pick(g, 3);
    for (int i = 0; i < ncarry; i++) {
        carry[i] = make_value(g, list, 2, words(0, n));
        VEC_PUSH(g->arena, &g->seen, carry[i]);
        for (int k = 0; k < g->p->slot.count && depth == 0 && pick(g, 2); k++) {
            Buf *slot = g->p->slot.at[k]; /* its final value updates a state */
            if (carry[i]->final == NULL && type_equal(*slot->type, *carry[i]->type) &&
                !is_dest(g, slot)) {
                carry[i]->final = slot;
            }
        }
    }
    if (pick(g, 2)) { /* a stack to read, parameters among them */
        for (int i = 0; i < g->p->slot.count && xs == NULL; i++) {
            Buf *slot = g->p->slot.at[i];
            if (slot->type->rank == 2 && pick(g, 2)) {
                xs = slot;
                trip = slot->type->dim[0];
            }
        }
        if (xs == NULL) {
            xs = make_value(g, list, 1, words(trip, 2));
            VEC_PUSH(g->arena, &g->seen, xs);
        }
    }
    for (int i = 0; i < nys; i++) {
        ys[i] = temp_new(g, words(trip, 2));
    }
    Step *loop = step_new(g->p, STEP_LOOP, LOC_NONE);
    loop->trip = trip;
    loop->reverse = pick(g, 2);
    VEC_PUSH(g->arena, list, loop);
    VEC_PUSH(g->arena, &g->loop, loop);
    int outer = g->seen.count;
    make_list(g, &loop->body, size, depth + 1);
    for (int i = 0; i < nys; i++) {
        Step *step = step_add(g, &loop->body);
        read_any(g, step);
        const Step *by = loop;
        if (xs != NULL && step_find(step, xs) == NULL) {
            step_access_slice(g->p, step, xs, ACCESS_READ, &by, 1);
            VEC_PUSH(g->arena, &step->inplace, ((InplacePair){xs, ys[i]}));
        }
        step_access_slice(g->p, step, ys[i], ACCESS_WRITE | ACCESS_PART, &by, 1);
        if (pick(g, 3) == 0) { /* the slice is read again in the same iteration */
            Step *again = step_add(g, &loop->body);
            step_access_slice(g->p, again, ys[i], ACCESS_READ, &by, 1);
            Buf *out = temp_new(g, words(0, 2));
            step_access(g->p, again, out, ACCESS_WRITE);
            VEC_PUSH(g->arena, &g->seen, out);
        }
    }
    for (int i = 0; i < ncarry; i++) {
        Step *step = step_add(g, &loop->body);
        Buf *from = carry[pick(g, ncarry)]; /* itself, or the other one: a swap */
        step_access(g->p, step, from, ACCESS_READ);
        read_any(g, step);
        Buf *next = temp_new(g, words(0, n));
        next->final = carry[i];
        step_access(g->p, step, next, ACCESS_WRITE);
        if (pick(g, 2)) {
            VEC_PUSH(g->arena, &step->inplace, ((InplacePair){from, next}));
        }
    }
    g->loop.count--;
    g->seen.count = outer;
    step_access_body(g->p, loop);
    for (int i = 0; i < nys; i++) {
        VEC_PUSH(g->arena, &g->seen, ys[i]);
        for (int k = 0; k < g->p->slot.count && depth == 0; k++) { /* a whole stack updated */
            Buf *slot = g->p->slot.at[k];
            if (!is_dest(g, slot) && ys[i]->final == NULL &&
                type_equal(*slot->type, *ys[i]->type)) {
                ys[i]->final = slot;
            }
        }
    }
}

static void make_list(Gen *g, StepList *list, int size, int depth) {
    for (int i = 0; i < size; i++) {
        int64_t what = pick(g, 12);
        if (what == 0 && depth < 3) {
            make_loop(g, list, 1 + size / 3, depth);
        } else if (what == 1) {
            make_parts(g, list);
        } else {
            Type type = words(0, pick(g, 4) == 0 ? 1 + pick(g, 30) : 4);
            Buf *value = make_value(g, list, 1 + (int)pick(g, 3), type);
            VEC_PUSH(g->arena, &g->seen, value);
        }
    }
}

static void add_out(Gen *g, OutRole role, Buf *value, Slot *slot) {
    Entry *entry = g->e->entry;
    const char *name = slot == NULL ? str_printf(g->arena, "r%d", entry->out.count) : NULL;
    int index = entry->out.count;
    VEC_PUSH(g->arena, &entry->out, ((EntryOut){.name = name, .role = role, .slot = slot}));
    if (slot == NULL) {
        Buf *result = buf_new(g->p, g->e, BUF_RESULT, *value->type, name);
        result->out = index;
        value->final = result;
    }
}

Program *random_program(Arena *arena, uint64_t seed, int size) {
    Module *module = ARENA_NEW(arena, Module);
    module->arena = arena;
    module->name = "t";
    Gen g = {.arena = arena, .random = seed};
    g.p = program_new(arena, module);
    Entry *entry = ARENA_NEW(arena, Entry);
    entry->kind = ENTRY_TRAIN;
    entry->name = "fit";
    VEC_PUSH(arena, &module->entry, entry);
    g.e = ARENA_NEW(arena, ProgramEntry);
    g.e->entry = entry;
    VEC_PUSH(arena, &g.p->entry, g.e);
    int64_t nslot = 1 + pick(&g, 4);
    for (int i = 0; i < nslot; i++) {
        Slot *slot = ARENA_NEW(arena, Slot);
        slot->kind = pick(&g, 2) ? SLOT_PARAM : SLOT_STATE;
        slot->type = pick(&g, 2) ? words(0, 4) : words(2 + pick(&g, 4), 2);
        slot->name = slot->file_name = str_printf(arena, "p%d", i);
        VEC_PUSH(arena, &module->slot, slot);
        Buf *buf = buf_new(g.p, NULL, slot->kind == SLOT_PARAM ? BUF_PARAM : BUF_STATE, slot->type,
                           slot->name);
        buf->slot = slot;
        VEC_PUSH(arena, &g.seen, buf);
    }
    Slot *input = ARENA_NEW(arena, Slot);
    input->kind = SLOT_INPUT;
    input->type = words(0, 4);
    input->name = input->c_name = "x";
    VEC_PUSH(arena, &entry->input, input);
    Buf *in = buf_new(g.p, g.e, BUF_INPUT, input->type, "x");
    in->slot = input;
    VEC_PUSH(arena, &g.seen, in);
    make_list(&g, &g.e->step, size, 0);
    Buf *loss = make_value(&g, &g.e->step, 2, type_scalar(TY_F64));
    add_out(&g, OUT_LOSS, loss, NULL);
    VEC_PUSH(arena, &g.seen, loss);
    make_list(&g, &g.e->step, size / 2, 0);
    for (int i = 0; i < g.p->slot.count; i++) {
        Buf *slot = g.p->slot.at[i];
        if (is_dest(&g, slot) || pick(&g, 4) == 0) {
            continue;
        }
        Step *step = step_add(&g, &g.e->step);
        step_access(g.p, step, slot, ACCESS_READ);
        read_any(&g, step);
        Buf *next = temp_new(&g, *slot->type);
        step_access(g.p, step, next, ACCESS_WRITE);
        VEC_PUSH(arena, &step->inplace, ((InplacePair){slot, next}));
        next->final = slot;
        add_out(&g, OUT_WRITE, next, slot->slot);
        VEC_PUSH(arena, &g.seen, next);
    }
    make_list(&g, &g.e->step, 2, 0);
    Buf *last = make_value(&g, &g.e->step, 3, words(0, 3));
    add_out(&g, OUT_RESULT, last, NULL);
    entry_text(g.p, g.e);
    return g.p;
}

/* ---- running -------------------------------------------------------------------------------- */

typedef struct {
    const Program *p;
    const ProgramEntry *e;
    uint64_t **at; /* by Buf.id */
    const Step *loop[8];
    int64_t index[8];
    int depth;
    bool move; /* values to their destinations at the end of each list */
} Run;

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash ^= word;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t *block(const Run *r, const Access *access, int64_t *count) {
    const Buf *buf = access->buf;
    uint64_t *at = r->at[buf->id];
    *count = type_count(*buf->type);
    if (access->slice[0] != NULL) {
        for (int i = 0; i < r->depth; i++) {
            if (r->loop[i] == access->slice[0]) {
                *count = buf->stride[0];
                return at + r->index[i] * buf->stride[0];
            }
        }
    }
    return at;
}

/* Word i of a result: reads all of every operand again, word i alone of one that is named a pair;
 * so an operand that shares bytes without leave spoils what comes after the first word. */
static uint64_t make_word(const Run *r, const Step *step, const Buf *out, int64_t i) {
    uint64_t hash = mix(hash_str(HASH_START, step->name), (uint64_t)i);
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        if (!(access->mode & ACCESS_READ) || access->buf->kind == BUF_WORK) {
            continue;
        }
        int64_t n;
        const uint64_t *at = block(r, access, &n);
        if (step_pairs(step, access->buf, out)) {
            hash = mix(hash, at[i]);
        } else {
            for (int64_t w = 0; w < n; w++) {
                hash = mix(hash, at[w]);
            }
        }
    }
    return hash;
}

static void run_kernel(const Run *r, const Step *step) {
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        int64_t n;
        uint64_t *at = block(r, access, &n);
        for (int64_t i = 0; access->buf->kind == BUF_WORK && i < n; i++) {
            at[i] = mix((uint64_t)step->id, 77);
        }
    }
    for (int k = 0; k < step->access.count; k++) {
        const Access *access = &step->access.at[k];
        if (!(access->mode & ACCESS_WRITE) || access->buf->kind == BUF_WORK) {
            continue;
        }
        int64_t n, from, to;
        uint64_t *at = block(r, access, &n);
        step_written(step, access, n, &from, &to);
        for (int64_t i = from; i < to; i++) {
            at[i] = make_word(r, step, access->buf, i);
        }
    }
}

static void move_dests(const Run *r, const Step *loop) {
    for (int i = 0; i < r->e->buf.count; i++) {
        const Buf *buf = r->e->buf.at[i];
        if (buf->final != NULL && buf->loop == loop) {
            memcpy(r->at[buf->final->id], r->at[buf->id], (size_t)buf->bytes);
        }
    }
}

static void run_list(Run *r, const StepList *list, const Step *up) {
    for (int i = 0; i < list->count; i++) {
        const Step *step = list->at[i];
        if (step->kind == STEP_LOOP) {
            int d = r->depth++;
            r->loop[d] = step;
            for (int64_t k = 0; k < step->trip; k++) {
                r->index[d] = step->reverse ? step->trip - 1 - k : k;
                run_list(r, &step->body, step);
            }
            r->depth--;
        } else if (step->kind == STEP_COPY) {
            memmove(r->at[step->dst->id], r->at[step->src->id], (size_t)step->src->bytes);
        } else if (step->kind == STEP_KERNEL) {
            run_kernel(r, step);
        }
    }
    if (r->move) {
        move_dests(r, up);
    }
}

static uint64_t run_entry(Run *r) {
    for (int i = 0; i < r->p->slot.count; i++) {
        const Buf *buf = r->p->slot.at[i];
        for (int64_t w = 0; w < buf->bytes / 8; w++) {
            r->at[buf->id][w] = mix(hash_str(HASH_START, buf->name), (uint64_t)w);
        }
    }
    for (int i = 0; i < r->e->buf.count; i++) {
        const Buf *buf = r->e->buf.at[i];
        for (int64_t w = 0; buf->kind == BUF_INPUT && w < buf->bytes / 8; w++) {
            r->at[buf->id][w] = mix(5, (uint64_t)w);
        }
    }
    run_list(r, &r->e->step, NULL);
    uint64_t hash = HASH_START;
    for (int i = 0; i < r->p->slot.count; i++) {
        const Buf *buf = r->p->slot.at[i];
        hash = hash_bytes(hash, r->at[buf->id], (size_t)buf->bytes);
    }
    for (int i = 0; i < r->e->buf.count; i++) {
        const Buf *buf = r->e->buf.at[i];
        if (buf->kind == BUF_RESULT) {
            hash = hash_bytes(hash, r->at[buf->id], (size_t)buf->bytes);
        }
    }
    return hash;
}

uint64_t program_run_private(Arena *arena, const Program *p) {
    Run r = {.p = p, .e = p->entry.at[0], .move = true};
    r.at = ARENA_ARRAY(arena, uint64_t *, p->nbuf);
    for (int i = 0; i < p->slot.count; i++) {
        r.at[p->slot.at[i]->id] = arena_alloc(arena, (size_t)p->slot.at[i]->bytes);
    }
    for (int i = 0; i < r.e->buf.count; i++) {
        r.at[r.e->buf.at[i]->id] = arena_alloc(arena, (size_t)r.e->buf.at[i]->bytes + 8);
    }
    return run_entry(&r);
}

uint64_t program_run_planned(Arena *arena, const Program *p) {
    Run r = {.p = p, .e = p->entry.at[0]};
    r.at = ARENA_ARRAY(arena, uint64_t *, p->nbuf);
    char *params = arena_alloc(arena, (size_t)p->params_bytes + 1);
    char *state = arena_alloc(arena, (size_t)p->state_bytes + 1);
    char *io = arena_alloc(arena, (size_t)p->io_bytes + 1);
    char *temp = arena_alloc(arena, (size_t)p->arena_bytes + 1);
    memset(temp, 0xa5, (size_t)p->arena_bytes);
    for (int k = 0; k < p->slot.count + r.e->buf.count; k++) {
        const Buf *buf = k < p->slot.count ? p->slot.at[k] : r.e->buf.at[k - p->slot.count];
        char *region = temp;
        switch (buf_root(buf)->kind) {
        case BUF_PARAM: region = params; break;
        case BUF_STATE: region = state; break;
        case BUF_INPUT:
        case BUF_RESULT: region = io; break;
        case BUF_CONST:
        case BUF_TEMP:
        case BUF_WORK: break;
        }
        r.at[buf->id] = (uint64_t *)(void *)(region + buf->offset);
    }
    return run_entry(&r);
}
