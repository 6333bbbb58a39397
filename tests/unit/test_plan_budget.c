/* The plan checker against plans of tight budgets that were changed at random: values made again by
 * steps or in loops, stacks by segments, products and batches by parts, bytes of carries that serve
 * others.
 *
 * A small model is taken through the stages with a drawn choice of what its loops keep and planned
 * for a drawn share of its arena; then the plan gets one change after the other, as in
 * test_plan_random: what does harm on real bytes must be refused, and nothing else. SEED, COUNT
 * (plans) and CHANGES (of each) come from the environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/driver/stages.h"
#include "dumped.h"
#include "passes/check.h"
#include "passes/final.h"
#include "passes/grad.h"
#include "passes/late.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"
#include "passes/shared.h"
#include "passes/sink.h"
#include "plan_change.h"
#include "random_program.h"
#include "tests/support.h"

/* ---- models ----------------------------------------------------------------------------------*/

#define OPENING "use nn;\n"
#define TRAIN                                                                                      \
    "    optimizer adamw(lr = 1e-3);\n"                                                            \
    "    steps 3;\n"                                                                               \
    "}\n"

static const char *const texts[] = {
    /* steps of the list run again */
    OPENING "dim B = 12, W = 10;\n"
            "layer block(h: [B, W]) -> [B, W] { return h + linear(gelu(h), W); }\n"
            "model net(x: [B, W]) -> [B, W] {\n"
            "    return x |> b1: block |> b2: block |> b3: block |> b4: block |> b5: block;\n"
            "}\n"
            "train fit(x: [B, W]) of net {\n"
            "    loss mean((net(x) - 1) ^ 2);\n" TRAIN,
    /* carries and their stacks, looked up rows */
    OPENING "dim B = 3, T = 8, V = 12, H = 6;\n"
            "layer cell(x: [B, H], h: [B, H]) -> [B, H] {\n"
            "    z = sigmoid(g: linear(concat(x, h, axis = 1), H));\n"
            "    return z * h + (1 - z) * tanh(u: linear(concat(x, h, axis = 1), H));\n"
            "}\n"
            "model net(tok: u8[B, T] in 0..V) -> [B, H] {\n"
            "    wte = new embedding(V, H);\n"
            "    e = wte(tok);\n"
            "    scan t < T carry h = zeros([B, H]) {\n"
            "        x[b, i] = e[b, t, i];\n"
            "        h <- c: cell(x, h);\n"
            "    }\n"
            "    return h;\n"
            "}\n"
            "train fit(tok: u8[B, T] in 0..V, y: [B, H]) of net {\n"
            "    loss mean((net(tok) - y) ^ 2);\n" TRAIN,
    /* stacks of a repeat, scores by rows */
    OPENING "dim B = 2, T = 8, C = 8, L = 4;\n"
            "layer block(x: [B, T, C]) -> [B, T, C] {\n"
            "    q = a: linear(x, C);\n"
            "    s[b,i,j] = sum[c] q[b,i,c] * x[b,j,c];\n"
            "    p = softmax(s);\n"
            "    o[b,i,c] = sum[j] p[b,i,j] * x[b,j,c];\n"
            "    y = x + o;\n"
            "    return y + (y |> up: linear(2*C) |> gelu |> down: linear(C));\n"
            "}\n"
            "model net(x: [B, T, C]) -> [B, T, 40] {\n"
            "    repeat L carry h = x { h <- block(h); }\n"
            "    return head: linear(h, 40);\n"
            "}\n"
            "train fit(x: [B, T, C], y: u8[B, T] in 0..40) of net {\n"
            "    loss mean(cross_entropy(net(x), y));\n" TRAIN,
    /* bytes of a carry for what is there between its last reader and its next value */
    OPENING "dim B = 6, W = 8, L = 5;\n"
            "layer block(h: [B, W]) -> [B, W] {\n"
            "    return relu(h + (up: linear(h, W) |> relu |> down: linear(W)));\n"
            "}\n"
            "model net(x: [B, W]) -> [B, W] {\n"
            "    repeat L carry h = x { h <- block(h); }\n"
            "    return h;\n"
            "}\n"
            "train fit(x: [B, W]) of net {\n"
            "    loss mean((net(x) - 1) ^ 2);\n" TRAIN,
    /* a batch by parts of its rows */
    OPENING
    "dim B = 8;\n"
    "dataset d { file f = \"samples/data/digits.csv\";\n"
    "    x: f32[1, 8, 8] = f.columns(0..64) as [1, 8, 8]; y: u8 in 0..10 = f.column(64); }\n"
    "model net(x: [B, 1, 8, 8]) -> [B, 10] {\n"
    "    h = x |> c1: conv2d(2, k = 3, pad = 1) |> relu |> maxpool(2) as [B, 32];\n"
    "    return h |> f1: linear(6) |> gelu |> f2: linear(10);\n"
    "}\n"
    "train fit of net on d[B] {\n"
    "    loss mean(cross_entropy(net(x), y));\n" TRAIN};
enum { TEXTS = sizeof texts / sizeof *texts };

/* ---- choices ---------------------------------------------------------------------------------*/

typedef enum { USUAL, AGAIN_LATE, AGAIN, SEGMENTS, CARRIES, BY_ROWS, IN_PARTS, FORMS } Form;
static const char *const forms[FORMS] = {
    "as ever", "again, late", "again", "segments", "carries alone", "rows", "parts of the batch"};

typedef struct {
    uint64_t random;
    const char *text;
    Form form;
    GradPlan keep;
    KeptList kept;
} Choice;

static int64_t pick(Choice *c, int64_t n) {
    return (int64_t)(random_next(&c->random) % (uint64_t)n);
}

/* As the compiler does it, with small values looked up and read in stacks as large ones are. */
static Program *lowered(Dumped *m, const char *text, const GradPlan *keep) {
    enum { SMALL = 16 };
    Options options = {.input = "text.mdl", .float_type = TY_F32, .threads = 2, .budget = -1};
    dumped_make_with(m, options, text, strlen(text));
    if (m->module == NULL) {
        fail_msg("%s", m->messages);
        return NULL; /* not reached */
    }
    Module *module = m->module;
    Arena built = {0};
    module->name = "net";
    pass_shared(module);
    stages_run(&m->c, module, &built, 0, stages_behind("orders"), true);
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        entry->keep = entry->kind == ENTRY_TRAIN ? keep : NULL;
    }
    stages_run(&m->c, module, &built, stages_behind("orders"), stages_behind("remat"), true);
    module->graph->arena = &m->c.arena;
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        entry->region = pass_sink(module->graph, entry->region, SMALL);
    }
    stages_run(&m->c, module, &built, stages_behind("sink"), stages_behind("thin"), true);
    module->graph->arena = &m->c.arena;
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        entry->region = pass_final(module->graph, entry->region, SMALL);
    }
    pass_late(&m->c.arena, module);
    Program *p = pass_lower(&m->c, &m->c.arena, module);
    for (int i = 0; i < module->entry.count; i++) {
        arena_free(&module->entry.at[i]->nodes[0]);
        arena_free(&module->entry.at[i]->nodes[1]);
    }
    program_names(p);
    return p;
}

/* Draws what the loops keep; which values they could make again the stages tell. */
static void draw_choice(Choice *c, Arena *arena) {
    c->form = (Form)pick(c, FORMS);
    c->keep = (GradPlan){.save = GRAD_SAVE_CALLS};
    switch (c->form) {
    case AGAIN_LATE:
    case AGAIN: {
        Dumped m;
        GradPlan first = {.save = GRAD_SAVE_CALLS, .late = c->form == AGAIN_LATE, .kept = &c->kept};
        c->kept = (KeptList){.of = {0}, .arena = arena};
        lowered(&m, c->text, &first);
        dumped_done(&m);
        Kept *again = ARENA_ARRAY(arena, Kept, c->kept.of.count + 1);
        for (int i = 0; i < c->kept.of.count; i++) {
            if (pick(c, 2) == 0) {
                again[c->keep.nagain++] = c->kept.of.at[i];
            }
        }
        c->keep.late = first.late;
        c->keep.again = again;
        break;
    }
    case CARRIES: c->keep.save = GRAD_SAVE_CARRIES; break;
    case SEGMENTS:
        c->keep.segment = 2 + pick(c, 3);
        c->keep.save = pick(c, 2) ? GRAD_SAVE_CALLS : GRAD_SAVE_CARRIES;
        break;
    case BY_ROWS: c->keep.rows = 64 << pick(c, 3); break;
    case IN_PARTS: c->keep.parts = 2 << pick(c, 2); break;
    case USUAL:
    case FORMS: break;
    }
}

/* ---- plans -----------------------------------------------------------------------------------*/

static ProgramEntry *train_of(const Program *p) {
    for (int i = 0; i < p->entry.count; i++) {
        if (p->entry.at[i]->entry->kind == ENTRY_TRAIN) {
            return p->entry.at[i];
        }
    }
    return NULL;
}

/* Values of a turn that lie in the bytes of what the loop carries, without being what is next. */
static int count_in_gaps(const ProgramEntry *e) {
    int n = 0;
    for (int i = 0; i < e->buf.count; i++) {
        const Buf *carry = e->buf.at[i]->final, *loop_next = e->buf.at[i];
        for (int k = 0; carry != NULL && k < e->buf.count; k++) {
            const Buf *buf = e->buf.at[k];
            n += buf != loop_next && buf->loop == loop_next->loop && buf->first < buf->last &&
                 buf->kind == BUF_TEMP && buf_root(buf) == buf_root(carry);
        }
    }
    return n;
}

static int count_again(const StepList *list) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        n += (list->at[i]->again != NULL) + count_again(&list->at[i]->body);
    }
    return n;
}

typedef struct {
    ChangeCount changes;
    int plans[FORMS], again, gaps, smaller;
} Seen;

/* One plan, and what happens to it. */
static void change_plan(Seen *seen, uint64_t seed, int changes) {
    Arena arena = {0};
    Dumped m;
    Choice c = {.random = seed * 0x9e3779b97f4a7c15u + 1, .text = texts[seed % TEXTS]};
    draw_choice(&c, &arena);
    Program *p = lowered(&m, c.text, &c.keep);
    pass_plan(p, true, -1);
    const int64_t whole = p->total_bytes, arena_bytes = p->arena_bytes;
    dumped_done(&m);
    p = lowered(&m, c.text, &c.keep);
    pass_plan(p, true, whole - arena_bytes * (1 + pick(&c, 8)) / 10);
    ProgramEntry *e = train_of(p);
    char *what = str_printf(&arena, "plan %llu (%s)", (unsigned long long)seed, forms[c.form]);
    NotedPlan *plan = plan_note(&arena, p, e);
    const char *fault = check_program(&arena, p), *harm = poison_run(plan_poison(plan), seed);
    if (fault != NULL || harm != NULL) {
        fail_msg("%s: %s; the checker: %s", what, harm != NULL ? harm : "no harm",
                 fault != NULL ? fault : "passes");
    }
    seen->plans[c.form]++;
    seen->again += count_again(&e->step);
    seen->gaps += count_in_gaps(e);
    seen->smaller += p->total_bytes < whole;
    seen->changes.random = seed * 64 + 5;
    for (int made = 0, tries = 0; made < changes && tries < 40 * changes; tries++) {
        int kind = (int)(random_next(&seen->changes.random) % (PLAN_CHANGES - 1));
        kind += kind >= PLAN_CHANGE_STRIDE;
        made += plan_try_change(&seen->changes, plan, what, kind);
        plan_restore(plan);
    }
    dumped_done(&m);
    arena_free(&arena);
}

static uint64_t setting(const char *name, uint64_t other) {
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 0) : other;
}

static void test_budgets(void **state) {
    (void)state;
    const uint64_t seed = setting("SEED", 1), plans = setting("COUNT", 150);
    const int changes = (int)setting("CHANGES", 15);
    Seen seen = {.again = 0};
    for (uint64_t i = setting("FIRST", 0); i < plans; i++) {
        change_plan(&seen, seed * 1000003 + i, changes);
    }
    plan_print_counts(&seen.changes, "plans of budgets");
    for (int form = 0; form < FORMS; form++) {
        printf("# %s: %d plans\n", forms[form], seen.plans[form]);
    }
    printf("SEED=%llu: %d of %llu plans smaller by their budget; %d steps run again, %d values in "
           "bytes of carries; executions %lld, findings %lld\n",
           (unsigned long long)seed, seen.smaller, (unsigned long long)plans, seen.again, seen.gaps,
           (long long)seen.changes.executions, (long long)seen.changes.findings);
    assert_int_equal(seen.changes.findings, 0);
    if (plans < 150) {
        return;
    }
    assert_true(seen.smaller >= 20 && seen.again >= 50 && seen.gaps >= 5);
    for (int form = 0; form < FORMS; form++) {
        assert_true(seen.plans[form] >= 5);
    }
    for (int kind = 0; kind < PLAN_CHANGES; kind++) {
        assert_true(kind == PLAN_CHANGE_STRIDE || seen.changes.harmful[kind] > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
