/* The plan checker against plans that were changed at random.
 *
 * A plan of a random Program or of a sample gets one change; the run on real bytes (poison) says
 * whether it does harm. What does harm the checker must refuse, and what does none it must accept.
 * Changes keep to what a planner with a fault could give: what it records beside the offsets
 * (lifetimes, totals) agrees with them, so that nothing is refused for its records alone.
 *
 * SEED, COUNT (changes of random Programs), FIRST (the first of them), SAMPLES (changes of each
 * entry of a sample), DUMP (findings with their Programs) and SECONDS (goes on for so long, with
 * random Programs alone) come from the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiled.h"
#include "passes/check.h"
#include "passes/plan/alloc.h"
#include "passes/plan/live.h"
#include "poison.h"
#include "random_program.h"
#include "step_text.h"
#include "tests/support.h"

/* ---- a plan that can be put back ------------------------------------------------------------ */

typedef struct {
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
    VEC(Step) steps;
} Plan;

static void note_list(Plan *x, StepList *list) {
    StepList copy = {0};
    for (int i = 0; i < list->count; i++) {
        VEC_PUSH(x->arena, &copy, list->at[i]);
        VEC_PUSH(x->arena, &x->step, list->at[i]);
        VEC_PUSH(x->arena, &x->steps, *list->at[i]);
    }
    VEC_PUSH(x->arena, &x->list, list);
    VEC_PUSH(x->arena, &x->order, copy);
    for (int i = 0; i < list->count; i++) {
        if (list->at[i]->kind == STEP_LOOP) {
            note_list(x, &list->at[i]->body);
        }
    }
}

static Plan plan_note(Arena *arena, Program *p, ProgramEntry *e) {
    Plan x = {.arena = arena, .p = p, .e = e, .program = *p, .entry = *e};
    x.poison = poison_open(arena, p, e);
    for (int i = 0; i < e->buf.count; i++) {
        VEC_PUSH(arena, &x.buf, *e->buf.at[i]);
    }
    note_list(&x, &e->step);
    return x;
}

static void plan_restore(Plan *x) {
    for (int i = 0; i < x->step.count; i++) {
        *x->step.at[i] = x->steps.at[i];
    }
    for (int i = 0; i < x->list.count; i++) {
        memcpy(x->list.at[i]->at, x->order.at[i].at, sizeof(Step *) * (size_t)x->order.at[i].count);
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
     "a kernel leaves its slice, which nothing reads"}, /* the last: not for samples */
};
enum { CHANGES = sizeof changes / sizeof *changes, SEEDS = 3 };

static uint64_t setting(const char *name, uint64_t other) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : other;
}

/* ---- verdicts ------------------------------------------------------------------------------- */

typedef struct {
    int made[CHANGES], harmful[CHANGES];
    int64_t executions, findings;
    uint64_t random;
} Count;

/* Makes the change and compares; false when there was no place for it. */
static bool try_change(Count *count, Plan *plan, const char *what, int kind) {
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

static void random_changes(Count *count, uint64_t seed) {
    Arena arena = {0};
    count->random = seed;
    Program *p = random_program(&arena, seed, 3 + (int)(seed % 16));
    compiled_plan(p);
    Plan plan = plan_note(&arena, p, p->entry.at[0]);
    const char *harm = poison_run(plan.poison, seed), *fault = check_program(&arena, p);
    if (harm != NULL || fault != NULL) {
        count->findings++;
        printf("program %llu: %s; the checker: %s\n", (unsigned long long)seed,
               harm != NULL ? harm : "-", fault != NULL ? fault : "-");
    }
    char *what = str_printf(&arena, "program %llu", (unsigned long long)seed);
    for (int tries = 0; tries < 40; tries++) {
        if (try_change(count, &plan, what, (int)((seed + (uint64_t)tries) % CHANGES))) {
            break;
        }
        plan_restore(&plan);
    }
    arena_free(&arena);
}

/* Programs of which a changed plan lets a result lie over an operand of another root: right for the
 * pairs of its kernel and for no others; and one that lays a carry over a stack. */
static const uint64_t found[] = {
    1818395730180419, 1816395724177652, 1816395724178009, 1816395724196569, 1816395724200080,
    1816395724213394, 1839395793182485, 1839395793187112, 1839395793303470, 1839395793303765,
};

static void sample_changes(Count *count, const char *path, int most) {
    Dumped m;
    Program *p = compiled_program(&m, path, 2, false);
    assert_non_null(p);
    compiled_plan(p);
    for (int i = 0; i < p->entry.count; i++) {
        ProgramEntry *e = p->entry.at[i];
        if (e->entry->kind != ENTRY_TRAIN && e->entry->kind != ENTRY_EVAL &&
            e->entry->kind != ENTRY_CALL) {
            continue;
        }
        Arena arena = {0};
        count->random = setting("SEED", 1) * 64 + (uint64_t)i;
        Plan plan = plan_note(&arena, p, e);
        const char *harm = poison_run(plan.poison, 1);
        if (harm != NULL) {
            fail_msg("%s, %s: %s", path, e->entry->name, harm);
        }
        char *what = str_printf(&arena, "%s, %s", path, e->entry->name);
        for (int made = 0, tries = 0; made < most && tries < 40 * most; tries++) {
            made +=
                try_change(count, &plan, what, (int)(random_next(&count->random) % (CHANGES - 1)));
            plan_restore(&plan);
        }
        arena_free(&arena);
    }
    dumped_done(&m);
}

static void print_counts(const Count *count, const char *what) {
    int made = 0, harmful = 0;
    for (int i = 0; i < CHANGES; i++) {
        made += count->made[i];
        harmful += count->harmful[i];
        printf("# %s: %s: %d made, %d harmful\n", what, changes[i].name, count->made[i],
               count->harmful[i]);
    }
    printf("# %s: %d harmful, %d harmless\n", what, harmful, made - harmful);
}

static void test_random_programs(void **state) {
    (void)state;
    uint64_t seed = setting("SEED", 1), most = setting("COUNT", 2000);
    int64_t seconds = (int64_t)setting("SECONDS", 0);
    time_t start = time(NULL);
    Count count = {0};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        random_changes(&count, found[i]);
    }
    assert_int_equal(count.findings, 0);
    for (uint64_t i = setting("FIRST", 0); seconds > 0 ? time(NULL) - start < seconds : i < most;
         i++) {
        random_changes(&count, seed * 1000003 + i);
    }
    print_counts(&count, "random programs");
    printf("SEED=%llu: executions %lld, findings %lld\n", (unsigned long long)seed,
           (long long)count.executions, (long long)count.findings);
    int harmful = 0, made = 0;
    for (int i = 0; i < CHANGES; i++) {
        harmful += count.harmful[i];
        made += count.made[i];
    }
    assert_int_equal(count.findings, 0);
    if (seconds == 0 && most >= 2000) {
        assert_true(harmful >= 500 && made - harmful >= 500);
        for (int i = 0; i < CHANGES; i++) {
            assert_true(count.harmful[i] > 0);
        }
    }
}

static void test_samples(void **state) {
    (void)state;
    if (setting("SECONDS", 0) > 0) {
        skip_because("SECONDS are for random programs");
    }
    static const char *const paths[] = {"samples/chars.mdl", "samples/diabetes.mdl",
                                        "samples/digits.mdl", "samples/residual.mdl"};
    Count count = {0};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        sample_changes(&count, paths[i], (int)setting("SAMPLES", 10));
    }
    print_counts(&count, "samples");
    assert_int_equal(count.findings, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
