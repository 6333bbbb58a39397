/* Derivatives of the standard library: every entry and train of tests/library/derivatives.mdl,
 * twice differentiated, alone and in the body of a loop; optimizers and schedules against their
 * formulas in double; that this file misses nothing that the library or the prelude declares; and
 * that the table of defaults is theirs. MDLC_SEED=n starts elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compiler/embed.h"
#include "directional.h"
#include "dumped.h"
#include "formulas.h"
#include "lang/ast.h"
#include "lang/init_presets.h"
#include "lang/prelude_names.h"
#include "passes/grad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char path[] = "tests/library/derivatives.mdl";
static const double TOLERANCE = 1e-7;
enum { SEEDS = 2 };

static uint64_t seed(void) {
    const char *text = getenv("MDLC_SEED");
    return text ? strtoull(text, NULL, 10) : 20240607;
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static void module_open(Dumped *m) {
    Arena arena = {0};
    size_t length;
    const char *text = dumped_file(&arena, path, &length);
    assert_non_null(text);
    dumped_make(m, path, text, length, TY_F64);
    if (!m->module) {
        fail_msg("%s", m->messages);
    }
    arena_free(&arena);
}

/* --- derivatives ------------------------------------------------------------------------------ */

/* Numbers for a slot: states are running or second moments and so positive, those named m are first
 * moments whose square is below, counters are in the midst of a run. */
static void fill(Sample *s, const Slot *slot, double *data) {
    bool real = elem_is_float(slot->type.elem), positive = starts(slot->name, "pos_");
    double lo = real ? -1.4 : (double)slot->lo, hi = real ? 1.4 : (double)slot->hi;
    if (positive || (real && slot->kind == SLOT_STATE)) {
        const char *end = strrchr(slot->name, '.');
        bool first = !positive && end && str_eq(end, ".m");
        lo = first ? -0.4 : 0.2;
        hi = first ? 0.4 : hi;
    }
    for (int64_t i = 0, n = type_count(slot->type); i < n; i++) {
        double x = sample_uniform(s, lo, hi);
        data[i] = real ? x : floor(x);
    }
    if (slot->role == STATE_COUNTER) {
        data[0] = str_eq(slot->label, "step") ? 4 : slot->initial;
    }
}

static void sample_of(Sample *s, Graph *g, const Region *region, uint64_t rng) {
    *s = (Sample){.g = g, .rng = rng, .elem = TY_F64};
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        if (n->op == OP_SLOT) {
            assert_true(s->nslot < SAMPLE_SLOTS);
            double *data = ARENA_ARRAY(g->arena, double, type_count(*n->type));
            s->slot[s->nslot] = n->attr->slot;
            s->data[s->nslot++] = data;
            fill(s, n->attr->slot, data);
        }
    }
}

typedef struct {
    double error[2];
    char name[2][64];
    int checks;
} Worst;

static void check_expanded(Sample *s, const char *name, const Region *expanded, Worst *worst) {
    Arena arena = {0};
    region_verify(expanded, STAGE_GRAD);
    Directional d = directional_check(&arena, s, expanded);
    bool flat = starts(name, "flat_");
    if (flat ? d.size[0] != 0 || d.size[1] != 0 : d.size[0] == 0) {
        fail_msg("%s: the derivative is %szero", name, flat ? "not " : "");
    }
    for (int order = 0; order < 2 && !flat; order++) {
        if (!(d.error[order] < TOLERANCE)) {
            fail_msg("%s, derivative %d: error %g (MDLC_SEED=%llu)", name, order + 1,
                     d.error[order], (unsigned long long)seed());
        }
        if (!(d.error[order] <= worst->error[order])) {
            worst->error[order] = d.error[order];
            snprintf(worst->name[order], sizeof worst->name[order], "%s", name);
        }
    }
    worst->checks++;
    arena_free(&arena);
}

/* In a loop: what is kept for the adjoint changes no bit of the first derivative. */
static void check_looped(Sample *s, const char *name, const Region *region, bool reverse,
                         Worst *worst) {
    static const struct {
        int64_t checkpoint;
        GradSave save;
    } ways[] = {{CHECKPOINT_NONE, GRAD_SAVE_ALL},
                {CHECKPOINT_NONE, GRAD_SAVE_CALLS},
                {CHECKPOINT_EACH, GRAD_SAVE_CALLS},
                {2, GRAD_SAVE_CALLS},
                {2, GRAD_SAVE_CARRIES}};
    Arena arena = {0};
    Value *first = NULL;
    uint64_t rng = s->rng;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        s->rng = rng;
        Region *looped = directional_looped(s, region, reverse, ways[k].checkpoint);
        Region *expanded = pass_grad(s->g, directional_region(s, looped), ways[k].save);
        Value *out = directional_values(&arena, s, expanded);
        int same = starts(name, "second_") ? 1 : expanded->out.count / 2;
        for (int r = 0; first && r < same; r++) {
            size_t bytes = sizeof *out[r].at * (size_t)type_count(out[r].type);
            if (memcmp(out[r].at, first[r].at, bytes) != 0) {
                fail_msg("%s in a loop: result %d depends on what is kept", name, r);
            }
        }
        first = first ? first : out;
        check_expanded(s, name, expanded, worst);
    }
    arena_free(&arena);
}

static void test_derivatives(void **state) {
    (void)state;
    Worst worst = {.error = {-1, -1}};
    for (uint64_t round = 0; round < SEEDS; round++) {
        Dumped m;
        module_open(&m);
        for (int i = 0; i < m.module->entry.count; i++) {
            const Entry *entry = m.module->entry.at[i];
            Sample s;
            if (entry->kind != ENTRY_CALL && entry->kind != ENTRY_TRAIN) {
                continue;
            }
            sample_of(&s, m.module->graph, entry->region, seed() + 1000 * (uint64_t)i + round);
            Region *region = directional_region(&s, entry->region);
            assert_non_null(region);
            check_expanded(&s, entry->name, pass_grad(s.g, region, GRAD_SAVE_ALL), &worst);
            check_looped(&s, entry->name, entry->region, round & 1, &worst);
        }
        dumped_done(&m);
    }
    printf("%d checks; worst first derivative %.2g (%s), second %.2g (%s)\n", worst.checks,
           worst.error[0], worst.name[0], worst.error[1], worst.name[1]);
}

static const Entry *entry_of(const Module *module, EntryKind kind, const char *name) {
    const Entry *entry = module_entry(module, kind, name);
    if (!entry) {
        fail_msg("%s has no '%s'", path, name ? name : "init");
    }
    return entry;
}

/* @checkpoint in the text: NAME and NAME_checkpoint have the same bits. */
static void test_checkpoint(void **state) {
    (void)state;
    Dumped m;
    int pairs = 0;
    module_open(&m);
    for (int i = 0; i < m.module->entry.count; i++) {
        const char *name = m.module->entry.at[i]->name,
                   *end = name ? strstr(name, "_checkpoint") : NULL;
        if (!end) {
            continue;
        }
        const Entry *pair[2] = {
            m.module->entry.at[i],
            entry_of(m.module, ENTRY_CALL, str_ndup(m.module->arena, name, (size_t)(end - name)))};
        Value *out[2];
        Region *region[2];
        for (int k = 0; k < 2; k++) {
            Sample s;
            sample_of(&s, m.module->graph, pair[k]->region, seed());
            region[k] = pass_grad(s.g, directional_region(&s, pair[k]->region), GRAD_SAVE_CALLS);
            out[k] = directional_values(m.module->arena, &s, region[k]);
        }
        assert_int_equal(region[0]->out.count, region[1]->out.count);
        for (int r = 0; r < region[0]->out.count / 2; r++) {
            assert_memory_equal(out[0][r].at, out[1][r].at,
                                sizeof *out[0][r].at * (size_t)type_count(out[0][r].type));
        }
        pairs++;
    }
    assert_true(pairs >= 2);
    dumped_done(&m);
}

/* --- updates against formulas ----------------------------------------------------------------- */

/* A train in the evaluator, from init on. */
typedef struct {
    Dumped m;
    Arena arena;
    const Entry *entry;
    Region *region;
    Eval *ev;
    Value *out;
} Run;

static void write_back(Run *r, const Entry *entry, const Region *region) {
    r->out = ARENA_ARRAY(&r->arena, Value, region->out.count);
    eval_region(r->ev, region, r->out);
    eval_store(r->ev, entry, r->out);
}

static void run_open(Run *r, const char *train) {
    *r = (Run){0};
    module_open(&r->m);
    const Module *module = r->m.module;
    r->ev = eval_open(&r->arena, (EvalOptions){0});
    for (int i = 0; i < module->slot.count; i++) {
        const Slot *slot = module->slot.at[i];
        if (slot->role == STATE_COUNTER) {
            eval_bind(r->ev, slot, &slot->initial);
        }
    }
    const Entry *init = entry_of(module, ENTRY_INIT, NULL);
    write_back(r, init, init->region);
    r->entry = entry_of(module, ENTRY_TRAIN, train);
    r->region = pass_grad(module->graph, r->entry->region, GRAD_SAVE_CALLS);
}

static void run_close(Run *r) {
    arena_free(&r->arena);
    dumped_done(&r->m);
}

static const Slot *slot_of(const Run *r, const char *end) {
    for (int i = 0; i < r->m.module->slot.count; i++) {
        const Slot *slot = r->m.module->slot.at[i];
        const char *at = strstr(slot->name, end);
        bool ours = slot->kind == SLOT_PARAM || starts(slot->name, r->entry->name);
        if (ours && at && strlen(at) == strlen(end)) {
            return slot;
        }
    }
    fail_msg("%s has no slot %s", r->entry->name, end);
    return NULL;
}

/* The rate changes in the third step: it must act at once, outside of every buffer. */
static void test_updates(void **state) {
    (void)state;
    for (int k = 0; k < nrules; k++) {
        Run r;
        Weights w = {0};
        Value p;
        double lr = 0.1;
        const Rule *rule = &rules[k];
        uint64_t rng = seed() + (uint64_t)k;
        run_open(&r, rule->train);
        Sample numbers = {.rng = rng};
        const Slot *parameter = slot_of(&r, rule->parameter ? rule->parameter : "held.p");
        assert_true(eval_bound(r.ev, parameter, &p));
        for (int i = 0; i < ELEMENTS; i++) {
            w.p[i] = value_get(p, i);
        }
        for (int t = 1; t <= 4; t++) {
            double g[ELEMENTS];
            for (int i = 0; i < ELEMENTS; i++) {
                g[i] = sample_uniform(&numbers, -1, 1);
            }
            if (t == 3) {
                lr = 0.02;
                eval_bind(r.ev, slot_of(&r, ".lr"), &lr);
            }
            eval_bind(r.ev, r.entry->input.at[0], g);
            write_back(&r, r.entry, r.region);
            formula_clip(rule, g);
            rule->update(rule, t, lr, g, &w);
            assert_true(eval_bound(r.ev, parameter, &p));
            for (int i = 0; i < ELEMENTS; i++) {
                if (!(fabs(value_get(p, i) - w.p[i]) <= 1e-13 * (1 + fabs(w.p[i])))) {
                    fail_msg("%s, step %d: %.17g, the formula gives %.17g", rule->train, t,
                             value_get(p, i), w.p[i]);
                }
            }
        }
        run_close(&r);
    }
}

static void test_schedules(void **state) {
    (void)state;
    for (int s = 0; s < nschedules; s++) {
        Run r;
        double g[ELEMENTS] = {0};
        run_open(&r, schedules[s].train);
        eval_bind(r.ev, r.entry->input.at[0], g);
        for (int k = 0; k < 14; k++) {
            write_back(&r, r.entry, r.region);
            int at = 0;
            while (!r.entry->out.at[at].name || !str_eq(r.entry->out.at[at].name, "lr")) {
                assert_true(++at < r.entry->out.count);
            }
            double rate = value_get(r.out[at], 0), want = 0.3 * schedules[s].rate(k);
            if (!(fabs(rate - want) <= 1e-13)) {
                fail_msg("%s, update %d: %.17g, the formula gives %.17g", schedules[s].train, k + 1,
                         rate, want);
            }
        }
        run_close(&r);
    }
}

/* --- nothing is missing ----------------------------------------------------------------------- */

typedef struct {
    Compile c;
    const Ast *library, *checks;
    char missing[64];
} Texts;

static const Ast *parse(Compile *c, const char *name, const char *text) {
    return parse_file(c, &c->arena, diag_add_source(&c->diag, name, text, strlen(text)));
}

static bool mentions(const Ast *ast, const char *name) {
    if (!ast) {
        return false;
    }
    bool is = ast->kind == AST_NAME || ast->kind == AST_FOLD;
    if (is && str_eq(ast->name, name)) {
        return true;
    }
    for (int i = 0; i < ast->nkid; i++) {
        if (mentions(ast->kid[i], name)) {
            return true;
        }
    }
    return false;
}

/* Whether an entry or train names it, or a model or op of the file that one of these names. */
static bool is_checked(const Ast *checks, const char *name, int depth) {
    for (int i = 0; i < checks->nkid; i++) {
        const Ast *item = checks->kid[i];
        bool root = item->kind == AST_ENTRY || item->kind == AST_TRAIN;
        bool shared = item->kind == AST_MODEL || item->kind == AST_LAYER || item->kind == AST_OP;
        bool deeper = shared && depth < 4 && !str_eq(item->name, name);
        if ((root || deeper) && mentions(item, name) &&
            (root || is_checked(checks, item->name, depth + 1))) {
            return true;
        }
    }
    return false;
}

/* Whether a train with a formula of its own above names it. */
static bool has_formula(const Ast *checks, const char *name) {
    for (int i = 0; i < checks->nkid; i++) {
        const Ast *item = checks->kid[i];
        bool listed = false;
        for (int k = 0; item->kind == AST_TRAIN && k < nrules; k++) {
            listed = listed || str_eq(item->name, rules[k].train);
        }
        for (int k = 0; item->kind == AST_TRAIN && k < nschedules; k++) {
            listed = listed || str_eq(item->name, schedules[k].train);
        }
        if (listed && mentions(item, name)) {
            return true;
        }
    }
    return false;
}

static void note_missing(void *ctx, const char *name) {
    Texts *t = ctx;
    static const char *const no_function[] = {"under", "gradcheck", "shape", "refuse"};
    for (size_t i = 0; i < sizeof no_function / sizeof *no_function; i++) {
        if (str_eq(no_function[i], name)) {
            return;
        }
    }
    if (!t->missing[0] && !is_checked(t->checks, name, 0)) {
        snprintf(t->missing, sizeof t->missing, "%s", name);
    }
}

static bool is_schedule(const Ast *item) {
    const Ast *params = item->kind == AST_OP ? item->kid[0] : NULL;
    return params && params->nkid > 0 && str_eq(params->kid[0]->name, "peak");
}

/* The first of the library or the prelude that no check names, or "". */
static const char *missing(Texts *t, const char *library, const char *checks) {
    memset(t, 0, sizeof *t);
    diag_open(&t->c.diag, &t->c.arena, stderr);
    t->library = parse(&t->c, "nn.mdl", library);
    t->checks = parse(&t->c, path, checks);
    assert_int_equal(t->c.diag.errors, 0);
    int items = 0;
    for (int i = 0; i < t->library->nkid; i++) {
        const Ast *item = t->library->kid[i];
        bool pure = item->kind == AST_OP || item->kind == AST_OPTIMIZER;
        if (pure || item->kind == AST_LAYER || item->kind == AST_MODEL) {
            bool formula = item->kind == AST_OPTIMIZER || is_schedule(item);
            items++;
            note_missing(t, item->name);
            if (!t->missing[0] && formula && !has_formula(t->checks, item->name)) {
                snprintf(t->missing, sizeof t->missing, "formula of %s", item->name);
            }
        }
    }
    assert_true(items >= 110);
    prelude_each(note_missing, t);
    return t->missing;
}

static char *library_text(Arena *arena) {
    Text text = {.arena = arena};
    for (size_t i = 0; i < nembeds; i++) {
        for (size_t k = 0; starts(embeds[i].name, "lang/nn/") && k < embeds[i].count; k++) {
            text_add(&text, embeds[i].lines[k]);
            text_add(&text, "\n");
        }
    }
    assert_true(text.len > 0);
    return text.at;
}

static void texts_close(Texts *t) {
    diag_close(&t->c.diag);
    arena_free(&t->c.arena);
}

/* What the search says of these texts. */
static void assert_missing(const char *library, const char *checks, const char *name) {
    Texts t;
    assert_string_equal(missing(&t, library, checks), name);
    texts_close(&t);
}

static char *without_line(Arena *arena, const char *text, const char *with) {
    const char *at = strstr(text, with);
    assert_non_null(at);
    const char *end = strchr(at, '\n');
    return str_printf(arena, "%.*s%s", (int)(at - text), text, end);
}

static void test_complete(void **state) {
    (void)state;
    Arena arena = {0};
    size_t length;
    char *library = library_text(&arena), *checks = dumped_file(&arena, path, &length);
    assert_missing(library, checks, "");
    /* and the search finds what is left out */
    char *more = str_printf(&arena, "%s\nop extra(x: [...]) -> [...] { return x; }\n", library);
    assert_missing(more, checks, "extra");
    assert_missing(library, without_line(&arena, checks, "entry d_gelu("), "gelu");
    assert_missing(library, without_line(&arena, checks, "train t_dropout("), "");
    char *less = without_line(&arena, checks, "train t_dropout(");
    assert_missing(library, without_line(&arena, less, "entry d_dropout("), "dropout");
    assert_missing(library, without_line(&arena, checks, "train s_constant("), "constant");
    assert_missing(library, without_line(&arena, checks, "entry d_exponents("), "abs");
    more = str_printf(&arena, "%s\noptimizer slow(p: [...], g: [...], lr: real) { p <- p; }\n",
                      library);
    char *named = str_printf(
        &arena, "%s\ntrain d_slow(g: [2, 3]) of held { loss held(g); optimizer slow(lr = 1); }\n",
        checks);
    assert_missing(more, checks, "slow");
    assert_missing(more, named, "formula of slow");
    arena_free(&arena);
}

/* --- defaults --------------------------------------------------------------------------------- */

static const char defaults_path[] = "tests/library/defaults.txt";

typedef struct {
    Arena arena;
    const char *table;
    int rows, items;
    char wrong[128];
} Defaults;

/* "ITEM PARAM VALUE" has one row of the table. */
static void compare_default(Defaults *d, const char *key) {
    d->items++;
    const char *row = str_printf(&d->arena, "\n%s |", key);
    const char *at = strstr(d->table, row);
    if (!d->wrong[0] && (!at || strstr(at + 1, row))) {
        snprintf(d->wrong, sizeof d->wrong, "%s", key);
    }
}

static void compare_preset(void *ctx, const char *name, const char *param, double preset) {
    Defaults *d = ctx;
    compare_default(d, str_printf(&d->arena, "%s %s %.17g", name, param, preset));
}

/* Compares the defaults of a library and of the distributions with a table: `wrong` is the first
 * that the table has not, or otherwise, or "". */
static void compare_defaults(Defaults *d, const char *library, const char *table) {
    Compile c = {0};
    *d = (Defaults){.table = table};
    for (const char *line = table; line; line = strchr(line + 1, '\n')) {
        line += *line == '\n';
        d->rows += *line != '#' && *line != 0;
    }
    diag_open(&c.diag, &c.arena, stderr);
    const Ast *file = parse(&c, "nn.mdl", library);
    assert_int_equal(c.diag.errors, 0);
    for (int i = 0; i < file->nkid; i++) {
        const Ast *item = file->kid[i], *params = item->nkid > 0 ? item->kid[0] : NULL;
        for (int k = 0; params && params->kind == AST_PARAMS && k < params->nkid; k++) {
            const Ast *param = params->kid[k], *value = param->kid[2];
            if (value) {
                compare_default(d, str_printf(&d->arena, "%s %s %.*s", item->name, param->name,
                                              (int)value->loc.len, library + value->loc.at));
            }
        }
    }
    init_each_preset(compare_preset, d);
    if (!d->wrong[0] && d->items != d->rows) {
        snprintf(d->wrong, sizeof d->wrong, "%d defaults, %d rows", d->items, d->rows);
    }
    diag_close(&c.diag);
    arena_free(&c.arena);
    arena_free(&d->arena);
}

static char *changed(Arena *arena, const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    return str_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static void assert_defaults(const char *library, const char *table, const char *wrong) {
    Defaults d;
    compare_defaults(&d, library, table);
    assert_string_equal(d.wrong, wrong);
}

/* The table of all defaults, which others compare with PyTorch, is the library's. */
static void test_defaults(void **state) {
    (void)state;
    Arena arena = {0};
    size_t length;
    char *library = library_text(&arena), *table = dumped_file(&arena, defaults_path, &length);
    assert_defaults(library, table, "");
    /* and a difference is found */
    assert_defaults(
        changed(&arena, library, "groups: int, eps: real = 1e-5", "groups: int, eps: real = 1e-4"),
        table, "group_norm eps 1e-4");
    assert_defaults(
        changed(&arena, library, "op relu(x: [...])", "op relu(x: [...], top: real = 6)"), table,
        "relu top 6");
    assert_defaults(library, without_line(&arena, table, "sgd momentum 0 |"), "sgd momentum 0");
    assert_defaults(library, changed(&arena, table, "trunc_normal b 2 |", "trunc_normal b 3 |"),
                    "trunc_normal b 2");
    char *more = str_printf(&arena, "%srelu top 6 | 7 | relu(x@) | - |\n", table);
    Defaults d;
    compare_defaults(&d, library, more);
    assert_non_null(strstr(d.wrong, " rows"));
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derivatives), cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_updates),     cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_complete),    cmocka_unit_test(test_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
