/* plan_change: see the header. */
#include "plan_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/check.h"
#include "passes/plan/alloc.h"
#include "passes/plan/live.h"
#include "random_program.h"
#include "step_text.h"
#include "tests/support.h"

/* ---- a plan that can be put back ------------------------------------------------------------ */

typedef struct {
    Step step;
    void *access, *call, *pair; /* what its arrays hold */
} StepCopy;

struct NotedPlan {
    Arena *arena;
    Program *p;
    ProgramEntry *e;
    Poison *poison;
    Program program;
    ProgramEntry entry;
    VEC(Buf) buf;
    VEC(StepList *) list;
    VEC(StepList) order;
    VEC(Step *) step;
    VEC(StepCopy) steps;
};
typedef NotedPlan Plan;

/* A copy of `n` elements of `bytes` each. */
static void *copied(Arena *arena, const void *at, int n, size_t bytes) {
    void *copy = arena_alloc(arena, (size_t)n * bytes + 1);
    if (n > 0) {
        memcpy(copy, at, (size_t)n * bytes);
    }
    return copy;
}

static void put_back(void *at, const void *copy, int n, size_t bytes) {
    if (n > 0) {
        memcpy(at, copy, (size_t)n * bytes);
    }
}

static void note_step(Plan *x, Step *step) {
    StepCopy copy = {.step = *step};
    copy.access = copied(x->arena, step->access.at, step->access.count, sizeof(Access));
    copy.call = copied(x->arena, step->call.buf.at, step->call.buf.count, sizeof(Buf *));
    copy.pair = copied(x->arena, step->inplace.at, step->inplace.count, sizeof(InplacePair));
    VEC_PUSH(x->arena, &x->step, step);
    VEC_PUSH(x->arena, &x->steps, copy);
}

static void restore_step(Step *step, const StepCopy *copy) {
    *step = copy->step;
    put_back(step->access.at, copy->access, step->access.count, sizeof(Access));
    put_back(step->call.buf.at, copy->call, step->call.buf.count, sizeof(Buf *));
    put_back(step->inplace.at, copy->pair, step->inplace.count, sizeof(InplacePair));
}

static void note_list(Plan *x, StepList *list) {
    StepList copy = {0};
    for (int i = 0; i < list->count; i++) {
        VEC_PUSH(x->arena, &copy, list->at[i]);
        note_step(x, list->at[i]);
    }
    VEC_PUSH(x->arena, &x->list, list);
    VEC_PUSH(x->arena, &x->order, copy);
    for (int i = 0; i < list->count; i++) {
        if (list->at[i]->kind == STEP_LOOP) {
            note_list(x, &list->at[i]->body);
        }
    }
}

NotedPlan *plan_note(Arena *arena, Program *p, ProgramEntry *e) {
    Plan *x = ARENA_NEW(arena, Plan);
    *x = (Plan){.arena = arena, .p = p, .e = e, .program = *p, .entry = *e};
    for (int i = 0; i < e->buf.count; i++) {
        VEC_PUSH(arena, &x->buf, *e->buf.at[i]);
    }
    note_list(x, &e->step);
    return x;
}

Poison *plan_poison(NotedPlan *x) {
    x->poison = x->poison != NULL ? x->poison : poison_open(x->arena, x->p, x->e);
    return x->poison;
}

void plan_restore(NotedPlan *x) {
    for (int i = 0; i < x->step.count; i++) {
        restore_step(x->step.at[i], &x->steps.at[i]);
    }
    for (int i = 0; i < x->list.count; i++) {
        StepList *list = x->list.at[i];
        list->count = x->order.at[i].count;
        put_back(list->at, x->order.at[i].at, list->count, sizeof(Step *));
    }
    for (int i = 0; i < x->buf.count; i++) {
        *x->e->buf.at[i] = x->buf.at[i];
    }
    *x->p = x->program;
    *x->e = x->entry;
}

/* ---- changes -------------------------------------------------------------------------------- */

typedef struct {
    Plan *plan;
    uint64_t *random;
} Change;

static int64_t pick(const Change *c, int64_t n) {
    return (int64_t)(random_next(c->random) % (uint64_t)n);
}

static bool planned(const Buf *buf) {
    return (buf->kind == BUF_TEMP || buf->kind == BUF_WORK) && buf->first < buf->last;
}

/* Any storage of the arena; NULL when the draw was none. */
static Buf *pick_root(const Change *c) {
    ProgramEntry *e = c->plan->e;
    Buf *buf = e->buf.at[pick(c, e->buf.count)];
    return planned(buf) && buf->storage == buf ? buf : NULL;
}

static void follow_roots(ProgramEntry *e) {
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i], *root = buf_root(buf);
        if (buf != root) {
            buf->offset = root->offset;
        }
    }
}

static void set_arena(const Change *c, int64_t bytes) {
    Program *p = c->plan->p;
    c->plan->e->arena_bytes = bytes;
    p->total_bytes -= p->arena_bytes;
    p->arena_bytes = bytes > p->arena_bytes ? bytes : p->arena_bytes;
    p->total_bytes += p->arena_bytes;
}

/* Gives every storage its place anew, with one thing wrong in what the allocator is told. */
static void place_again(const Change *c, const Buf *wrong, AllocItem told) {
    ProgramEntry *e = c->plan->e;
    AllocItem *item = ARENA_ARRAY(c->plan->arena, AllocItem, e->buf.count + 1);
    int64_t *offset = ARENA_ARRAY(c->plan->arena, int64_t, e->buf.count + 1);
    int n = 0;
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *buf = e->buf.at[i];
        if (planned(buf) && buf->storage == buf) {
            item[n++] = buf == wrong
                            ? told
                            : (AllocItem){buf->first, buf->last, align_up(buf->bytes, MD_ALIGN)};
        }
    }
    int64_t height = alloc_place(c->plan->arena, item, n, 20, offset);
    n = 0;
    for (int i = 0; i < e->buf.count; i++) {
        Buf *buf = e->buf.at[i];
        if (planned(buf) && buf->storage == buf) {
            buf->offset = offset[n++];
        }
    }
    follow_roots(e);
    /* A storage that was told too small may still stand at the top: it keeps its bytes. */
    int64_t top = wrong->offset + align_up(wrong->bytes, MD_ALIGN);
    set_arena(c, top > height ? top : height);
}

static AllocItem item_of(const Buf *buf) {
    return (AllocItem){buf->first, buf->last, align_up(buf->bytes, MD_ALIGN)};
}

static bool change_offset(const Change *c) {
    Buf *buf = pick_root(c);
    int64_t places = buf != NULL ? (c->plan->e->arena_bytes - buf->bytes) / MD_ALIGN + 1 : 0;
    int64_t offset = places > 0 ? pick(c, places) * MD_ALIGN : 0;
    if (buf == NULL || pick(c, 8) == 0) {
        offset = buf != NULL ? c->plan->e->arena_bytes - pick(c, 2) * MD_ALIGN : 0; /* outside */
    }
    if (buf == NULL || offset == buf->offset) {
        return false;
    }
    buf->offset = offset;
    follow_roots(c->plan->e);
    return true;
}

static bool change_exchange(const Change *c) {
    Buf *a = pick_root(c), *b = pick_root(c);
    if (a == NULL || b == NULL || a->offset == b->offset ||
        align_up(a->bytes, MD_ALIGN) != align_up(b->bytes, MD_ALIGN)) {
        return false;
    }
    int64_t offset = a->offset;
    a->offset = b->offset;
    b->offset = offset;
    follow_roots(c->plan->e);
    return true;
}

static bool change_lifetime(const Change *c) {
    Buf *buf = pick_root(c);
    if (buf == NULL || buf->last - buf->first < 2) {
        return false;
    }
    AllocItem told = item_of(buf);
    int64_t cut = 1 + pick(c, told.upper - told.lower - 1);
    told.lower += pick(c, 3) == 0 ? cut : 0;
    told.upper -= told.lower == buf->first ? cut : 0;
    place_again(c, buf, told);
    return true;
}

static bool change_size(const Change *c) {
    Buf *buf = pick_root(c);
    if (buf == NULL || buf->bytes <= MD_ALIGN) {
        return false;
    }
    AllocItem told = item_of(buf);
    told.size -= MD_ALIGN * (1 + pick(c, (told.size - 1) / MD_ALIGN));
    place_again(c, buf, told);
    return true;
}

static bool is_sliced(const Plan *x, const Buf *buf) {
    for (int i = 0; i < x->step.count; i++) {
        for (int k = 0; k < x->step.at[i]->access.count; k++) {
            const Access *access = &x->step.at[i]->access.at[k];
            if (access->slice[0] != NULL && buf_root(access->buf) == buf) {
                return true;
            }
        }
    }
    return false;
}

/* A stack is told to be one line shorter. */
static bool change_line(const Change *c) {
    Buf *buf = pick_root(c);
    if (buf == NULL || buf->type->rank == 0 || !is_sliced(c->plan, buf)) {
        return false;
    }
    AllocItem told = item_of(buf);
    told.size = align_up(buf->bytes - buf->bytes / buf->type->dim[0], MD_ALIGN);
    if (told.size == item_of(buf).size) {
        return false;
    }
    place_again(c, buf, told);
    return true;
}

static bool change_order(const Change *c) {
    StepList *list = c->plan->list.at[pick(c, c->plan->list.count)];
    if (list->count < 2) {
        return false;
    }
    int64_t from = pick(c, list->count), to = pick(c, 3) ? from + 1 : pick(c, list->count);
    if (to == from || to >= list->count) {
        return false;
    }
    Step *step = list->at[from];
    list->at[from] = list->at[to];
    list->at[to] = step;
    program_number(c->plan->e);
    live_ranges(c->plan->e);
    return true;
}

static bool change_alias(const Change *c) {
    Buf *buf = pick_root(c), *other = pick_root(c);
    if (buf == NULL || other == NULL || other == buf || buf->kind != BUF_TEMP ||
        other->kind != BUF_TEMP || other->bytes < buf->bytes || buf->loop != other->loop) {
        return false;
    }
    for (int i = 0; i < c->plan->e->buf.count; i++) { /* roots are one level deep */
        Buf *user = c->plan->e->buf.at[i];
        if (user->storage == buf && (user == buf || user->bytes <= other->bytes)) {
            user->storage = other;
        }
    }
    buf->storage = other;
    follow_roots(c->plan->e);
    live_ranges(c->plan->e);
    return true;
}

/* A pair that no kernel allows is named and used. */
static bool change_pair(const Change *c) {
    Step *step = c->plan->step.at[pick(c, c->plan->step.count)];
    for (int tries = 0; tries < 8 && step->kind == STEP_KERNEL; tries++) {
        Buf *in = step->access.at[pick(c, step->access.count)].buf;
        Buf *out = step->access.at[pick(c, step->access.count)].buf;
        if (in == out || in->kind != BUF_TEMP || out->kind != BUF_TEMP || out->storage != out ||
            !planned(out) || !planned(in) || in->loop != out->loop || in->bytes < out->bytes ||
            !(step_find(step, out)->mode & ACCESS_WRITE) || buf_root(in) == out ||
            step_find(step, in)->mode != ACCESS_READ ||
            poison_may_share(c->plan->poison, step, in, out)) {
            continue;
        }
        VEC_PUSH(c->plan->arena, &step->inplace, ((InplacePair){in, out}));
        out->storage = buf_root(in);
        follow_roots(c->plan->e);
        live_ranges(c->plan->e);
        return true;
    }
    return false;
}

/* What a loop carries, over another storage. */
static bool change_carry(const Change *c) {
    Buf *buf = c->plan->e->buf.at[pick(c, c->plan->e->buf.count)], *other = pick_root(c);
    if (buf->loop == NULL || buf->final == NULL || other == NULL) {
        return false;
    }
    Buf *root = buf_root(buf->final);
    if (root->kind != BUF_TEMP || root == other || root->offset == other->offset ||
        root->offset + other->bytes > c->plan->e->arena_bytes) {
        return false;
    }
    other->offset = root->offset;
    follow_roots(c->plan->e);
    return true;
}

/* A step that runs again; NULL: none does. */
static Step *pick_again(const Change *c, StepList **in, int *place) {
    const Plan *x = c->plan;
    const int64_t from = pick(c, x->list.count);
    for (int64_t i = 0; i < x->list.count; i++) {
        StepList *list = x->list.at[(from + i) % x->list.count];
        const int64_t first = list->count > 0 ? pick(c, list->count) : 0;
        for (int64_t k = 0; k < list->count; k++) {
            const int at = (int)((first + k) % list->count);
            if (list->at[at]->again != NULL) {
                *in = list;
                *place = at;
                return list->at[at];
            }
        }
    }
    return NULL;
}

/* What is made again is not: its readers find what is there. */
static bool change_left_out(const Change *c) {
    StepList *list;
    int place;
    if (pick_again(c, &list, &place) == NULL) {
        return false;
    }
    for (int k = place; k + 1 < list->count; k++) {
        list->at[k] = list->at[k + 1];
    }
    list->count--;
    program_number(c->plan->e);
    live_ranges(c->plan->e);
    return true;
}

/* What is made again is made elsewhere, may be too late, or of what is not there yet or no more. */
static bool change_when_again(const Change *c) {
    StepList *list;
    int place;
    Step *step = pick_again(c, &list, &place);
    const int to = step != NULL ? (int)pick(c, list->count) : 0;
    if (step == NULL || to == place) {
        return false;
    }
    for (int k = place; k != to; k += to > k ? 1 : -1) {
        list->at[k] = list->at[to > k ? k + 1 : k - 1];
    }
    list->at[to] = step;
    program_number(c->plan->e);
    live_ranges(c->plan->e);
    return true;
}

/* A kernel addresses a stack with the stride of another one. Only where kernels can be made. */
static bool change_stride(const Change *c) {
    Step *step = c->plan->step.at[pick(c, c->plan->step.count)];
    for (int i = 0; step->kind == STEP_KERNEL && i < step->access.count; i++) {
        const Access *access = &step->access.at[i];
        if (access->slice[0] == NULL || access->slice[0]->trip < 2) {
            continue;
        }
        Buf *buf = access->buf;
        int64_t right = buf->stride[0], wrong = right + (pick(c, 2) ? 1 : -1);
        buf->stride[0] = wrong;
        step_text(c->plan->p, step);
        buf->stride[0] = right;
        poison_stride(c->plan->poison, step, buf, wrong);
        return true;
    }
    return false;
}

typedef bool (*MakeChange)(const Change *c);
static const struct {
    const char *name;
    MakeChange make;
    const char *harm; /* by rule: what the run alone does not show */
} changes[] = {
    {"an offset moved", change_offset, NULL},
    {"two storages exchanged", change_exchange, NULL},
    {"a lifetime cut", change_lifetime, NULL},
    {"a storage shrunk", change_size, NULL},
    {"a line of a stack dropped", change_line, NULL},
    {"two steps exchanged", change_order, NULL},
    {"a storage laid over another", change_alias, NULL},
    {"a wrong pair used", change_pair, NULL},
    {"a carry's storage shared", change_carry, NULL},
    {"a wrong stride", change_stride,
     "a kernel leaves its slice, which nothing reads"}, /* only where kernels can be made */
    {"a step not run again", change_left_out, NULL},
    {"a step run again elsewhere", change_when_again, NULL},
};
enum { CHANGES = sizeof changes / sizeof *changes, SEEDS = 3 };
_Static_assert((int)CHANGES == PLAN_CHANGES, "a change more or less");

/* ---- verdicts ------------------------------------------------------------------------------- */

bool plan_try_change(ChangeCount *count, NotedPlan *plan, const char *what, int kind) {
    plan_poison(plan);
    Change c = {plan, &count->random};
    if (!changes[kind].make(&c)) {
        return false;
    }
    const char *harm = NULL;
    for (uint64_t seed = 1; seed <= SEEDS && harm == NULL; seed++) {
        harm = poison_run(plan->poison, seed);
    }
    if (harm == NULL && changes[kind].harm != NULL) {
        harm = changes[kind].harm;
    }
    const char *fault = check_program(plan->arena, plan->p);
    count->executions++;
    count->made[kind]++;
    count->harmful[kind] += harm != NULL;
    if ((harm != NULL) != (fault != NULL)) {
        count->findings++;
        printf("%s, %s: %s; the checker: %s\n", what, changes[kind].name,
               harm != NULL ? harm : "no harm", fault != NULL ? fault : "passes");
        if (getenv("DUMP")) {
            program_dump(plan->p, stdout);
        }
    }
    return true;
}

void plan_print_counts(const ChangeCount *count, const char *what) {
    int made = 0, harmful = 0;
    for (int i = 0; i < CHANGES; i++) {
        made += count->made[i];
        harmful += count->harmful[i];
        printf("# %s: %s: %d made, %d harmful\n", what, changes[i].name, count->made[i],
               count->harmful[i]);
    }
    printf("# %s: %d harmful, %d harmless\n", what, harmful, made - harmful);
}
