/* recompute: see the header.
 *
 * A choice is tried by running it through the later stages up to the plan, which says bytes and
 * work as they will be. Choices are tried from what costs least: of what loops stack, that is made
 * again first which frees most bytes for its FLOPs, by pass_remat, which keeps the bits. Where sums
 * may be rounded otherwise, the pass that differentiates does the same; then all but carries are
 * made again; then the carries of every second turn, of every fourth, ... The one that fits with
 * the least work is taken, and what it makes again needlessly is kept after all. As the choices are
 * the same for every budget, a larger one never costs more. */
#include "compiler/driver/recompute.h"

#include "compiler/driver/stages.h"
#include "compiler/program.h"
#include "passes/chunk.h"
#include "passes/grad.h"
#include "passes/late.h"
#include "passes/lower/lower.h"
#include "passes/parts.h"
#include "passes/plan/offsets.h"
#include "passes/plan/phases.h"
#include "passes/plan/plan.h"

#include <string.h>

enum {
    MOST_AGAIN = 24,                   /* kinds of values that are looked at, the best ones */
    FLOPS_PER_BYTE = 8,                /* what a byte moved counts */
    MOST_ROWS = TUNED(64 << 20, 8192), /* bytes of a chunk of rows */
    WORTH_ROWS = 4,   /* chunks that a value must be to be taken apart without a budget */
    SAME_WORK = 1000, /* FLOPs in so many that do not count */
    BOTH = 6,         /* choices that are tried with steps that run again as well, */
    LEVELS = 32,      /* parts of the usual arena for which what is needless is kept, */
    NEAR = 2,         /* and for so many of which below the limit steps run again as well */
    LEAST_PART = 8,   /* rows: products of few rows add up in another order */
    BESIDE = 4,       /* parts of the usual arena by which they may miss a limit */
    LEAST_OF = 2,     /* and where none fits, until no fewer bytes are found */
    LEAST_ROWS = TUNED(128 << 10, 1024)
};

typedef struct {
    int64_t arena, flops;
    double work;   /* in FLOPs, with what moves */
    int64_t again; /* of the FLOPs those of steps that run again */
} Cost;

typedef struct {
    GradPlan plan;
    Cost cost;
} Tried;

typedef struct {
    Compile *c;
    const Module *module;
    Entry *entry;
    int stage;
    int64_t beside, limit; /* what its arena comes on top of, and may take */
    GradPlan best;
    int64_t aim; /* the limit for which it was planned */
    Cost cost, usual;
    bool fits;
    VEC(Tried) tried; /* loops alone: no step of the train's own list runs again */
} Search;

static const int64_t ANY = INT64_MAX;

/* Takes the entries of `module` through the later stages and gives them back as they were. `whole`:
 * they are all there are. */
static Program *try_lower(Compile *c, Module *module, int stage, Arena *scratch, bool whole) {
    Arena *home = module->graph->arena, built = {0};
    Entry **entries = module->entry.at;
    const int count = module->entry.count, capacity = module->entry.capacity;
    Entry *was = ARENA_ARRAY(scratch, Entry, module->entry.count);
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        was[i] = *entry;
        entry->nodes[0] = entry->nodes[1] = (Arena){0};
        entry->out.at = ARENA_ARRAY(scratch, EntryOut, entry->out.count + 1);
        memcpy(entry->out.at, was[i].out.at, sizeof(EntryOut) * (size_t)entry->out.count);
    }
    stages_run(c, module, &built, stage, STAGES_END, true);
    if (whole && !c->opt.no_main) {
        pass_late(scratch, module);
    }
    Program *p = pass_lower(c, scratch, module);
    p->band_bytes = c->opt.canary ? MD_ALIGN : 0;
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        arena_free(&entry->nodes[0]);
        arena_free(&entry->nodes[1]);
        *entry = i < count ? was[i] : *entry;
    }
    module->entry.at = entries;
    module->entry.count = count;
    module->entry.capacity = capacity;
    module->graph->arena = home;
    return p;
}

/* The plan of an entry alone, its loops keeping what `plan` says. */
static Cost try_plan(const Search *s, const GradPlan *plan, int64_t limit, bool least) {
    Arena scratch = {0};
    Entry *only = s->entry;
    Module module = *s->module;
    module.entry.at = &only;
    module.entry.count = 1;
    const GradPlan *before = s->entry->keep;
    s->entry->keep = plan;
    Program *p = try_lower(s->c, &module, s->stage, &scratch, false);
    pass_plan_arenas(p, limit, least);
    const ProgramEntry *e = p->entry.at[0];
    Cost cost = {e->arena_bytes, e->flops,
                 (double)e->flops + DEAR_FLOPS * (double)e->dear +
                     FLOPS_PER_BYTE * (double)e->bytes_moved,
                 e->flops_again};
    s->entry->keep = before;
    arena_free(&scratch);
    return cost;
}

static void note_tried(Search *s, const GradPlan *plan, Cost cost) {
    Tried tried = {*plan, cost};
    VEC_PUSH(&s->c->arena, &s->tried, tried);
}

static bool same_plan(const GradPlan *a, const GradPlan *b) {
    bool same = a->save == b->save && a->late == b->late && a->segment == b->segment &&
                a->rows == b->rows && a->parts == b->parts && a->nagain == b->nagain;
    for (int i = 0; i < a->nagain && same; i++) {
        same = a->again[i].op == b->again[i].op && loc_equal(a->again[i].loc, b->again[i].loc);
    }
    return same;
}

/* What the plan costs where no step runs again, found once. */
static Cost cost_of(Search *s, const GradPlan *plan) {
    for (int i = 0; i < s->tried.count; i++) {
        if (same_plan(&s->tried.at[i].plan, plan)) {
            return s->tried.at[i].cost;
        }
    }
    Cost cost = try_plan(s, plan, ANY, false);
    note_tried(s, plan, cost);
    return cost;
}

/* Takes the plan if it is the better one; gives what it costs. */
static Cost take_by(Search *s, const GradPlan *plan, int64_t limit, bool least) {
    Cost cost = limit == ANY ? cost_of(s, plan) : try_plan(s, plan, limit, least);
    bool fits = cost.arena <= s->limit;
    bool better = fits != s->fits ? fits
                  : fits          ? cost.work < s->cost.work
                                  : cost.arena < s->cost.arena;
    if (better) {
        s->best = *plan;
        s->aim = limit;
        s->cost = cost;
        s->fits = fits;
    }
    return cost;
}

static Cost take(Search *s, const GradPlan *plan, int64_t limit) {
    return take_by(s, plan, limit, false);
}

/* The plan with steps that run again, for the limit and for some below it that are the same
 * whatever the budget: the search for these steps draws by chance, and a smaller limit may give
 * less work. */
static void take_near(Search *s, const GradPlan *plan) {
    const int64_t part = s->usual.arena / LEVELS + 1;
    take(s, plan, s->limit);
    for (int k = 0; k < NEAR; k++) {
        const int64_t limit = (s->limit / part - k) * part;
        if (limit > 0 && limit < s->limit) {
            take(s, plan, limit);
        }
    }
}

/* What frees most for its work comes first. */
static void sort_kept(KeptList *list) {
    for (int i = 1; i < list->of.count; i++) {
        Kept one = list->of.at[i];
        int at = i;
        for (; at > 0 &&
               list->of.at[at - 1].bytes * one.flops < one.bytes * list->of.at[at - 1].flops;
             at--) {
            list->of.at[at] = list->of.at[at - 1];
        }
        list->of.at[at] = one;
    }
}

/* The most turns of a loop. */
static int64_t longest(const Region *region) {
    int64_t most = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        int64_t inside = n->body ? longest(n->body) : 0;
        int64_t own = n->op == OP_LOOP ? n->attr->trip : 0;
        own = inside > own ? inside : own;
        most = own > most ? own : most;
    }
    return most;
}

/* The smallest of those that were tried, with steps of the train's own list that run again as well.
 */
static void try_both(Search *s) {
    for (int k = 0; k < BOTH && k < s->tried.count; k++) {
        int least = k;
        for (int i = k + 1; i < s->tried.count; i++) {
            least = s->tried.at[i].cost.arena < s->tried.at[least].cost.arena ? i : least;
        }
        Tried one = s->tried.at[least];
        s->tried.at[least] = s->tried.at[k];
        s->tried.at[k] = one;
        take(s, &one.plan, s->limit);
    }
    for (int k = 0; k < LEAST_OF && k < s->tried.count && !s->fits; k++) {
        Tried one = s->tried.at[k];
        take_by(s, &one.plan, s->limit, true);
    }
}

/* Those that miss the limit by little and take the least work, with steps that run again. */
static void try_beside(Search *s) {
    const int64_t most = s->limit + s->usual.arena / BESIDE;
    double work = 0;
    for (int k = 0; k < BOTH; k++) {
        int next = -1;
        for (int i = 0; i < s->tried.count; i++) {
            const Cost *one = &s->tried.at[i].cost;
            bool beside = one->arena > s->limit && one->arena <= most && one->work > work;
            next = beside && (next < 0 || one->work < s->tried.at[next].cost.work) ? i : next;
        }
        if (next < 0) {
            return;
        }
        const GradPlan plan = s->tried.at[next].plan;
        work = s->tried.at[next].cost.work;
        take(s, &plan, s->limit);
    }
}

/* The plan without its k-th of what is made again. */
static GradPlan plan_without(const Search *s, const GradPlan *plan, int k) {
    Kept *again = ARENA_ARRAY(&s->c->arena, Kept, plan->nagain);
    GradPlan without = *plan;
    without.again = again;
    without.nagain = 0;
    for (int i = 0; i < plan->nagain; i++) {
        if (i != k) {
            again[without.nagain++] = plan->again[i];
        }
    }
    return without;
}

/* Without one of what the best plan makes again, the dearest first. */
static void drop_needless(Search *s) {
    for (int k = s->best.nagain - 1; k >= 0; k--) {
        const GradPlan without = plan_without(s, &s->best, k);
        take(s, &without, s->limit);
    }
}

/* Of the plans that were tried the one that fits with the least work; NULL: none does. */
static const Tried *best_tried(const Search *s, int64_t limit) {
    const Tried *best = NULL;
    for (int i = 0; i < s->tried.count; i++) {
        const Tried *one = &s->tried.at[i];
        bool less = best == NULL || one->cost.work < best->cost.work;
        best = one->cost.arena <= limit && less ? one : best;
    }
    return best;
}

/* Keeps what plans make again needlessly, for limits that are the same whatever the budget: else
 * a smaller one, for which other things are kept, could find what costs less work. */
static void drop_by_levels(Search *s) {
    for (int level = 1; level < LEVELS; level++) {
        const int64_t limit = s->usual.arena / LEVELS * level;
        const Tried *best = limit <= s->limit ? best_tried(s, limit) : NULL;
        Tried now = best != NULL ? *best : (Tried){.cost = s->usual};
        for (int k = now.plan.nagain - 1; k >= 0; k--) {
            const GradPlan without = plan_without(s, &now.plan, k);
            const Cost cost = take(s, &without, ANY);
            if (cost.arena <= limit && cost.work < now.cost.work) {
                now = (Tried){without, cost};
            }
        }
    }
}

/* With at least `least` kinds of values made again, from what costs least on, and each alone. */
static void try_kept(Search *s, const GradPlan *base, const KeptList *kept, int least) {
    GradPlan plan = *base;
    int many = kept->of.count < MOST_AGAIN ? kept->of.count : MOST_AGAIN;
    plan.again = kept->of.at;
    for (plan.nagain = least; plan.nagain <= many; plan.nagain++) {
        take(s, &plan, ANY);
    }
    plan.nagain = 1;
    for (int i = 1; i < many; i++) {
        plan.again = &kept->of.at[i];
        take(s, &plan, ANY);
    }
}

/* Everything that loops may keep, large products whole, or by rows. */
static void try_all(Search *s, const KeptList *kept, int64_t rows, int least) {
    const int64_t turns = longest(s->entry->region);
    try_kept(s, &(GradPlan){.save = GRAD_SAVE_CALLS, .rows = rows}, kept, least);
    for (int64_t segment = 1; segment < turns; segment *= 2) {
        for (int save = segment > 1 ? GRAD_SAVE_CALLS : GRAD_SAVE_CARRIES;
             save <= GRAD_SAVE_CARRIES; save++) {
            take(s, &(GradPlan){.save = (GradSave)save, .segment = segment, .rows = rows}, ANY);
        }
    }
}

/* The batch in parts of its rows, as long as more of them take less. */
static void try_parts(Search *s, const GradPlan *base) {
    const int64_t rows = s->entry->rows;
    int64_t least = s->usual.arena;
    if (!parts_applies(s->entry->region, rows)) {
        return;
    }
    for (int64_t parts = 2; rows / parts >= LEAST_PART; parts++) {
        if (rows % parts == 0) {
            GradPlan plan = *base;
            plan.parts = parts;
            int64_t arena = take(s, &plan, ANY).arena;
            if (arena >= least) {
                return;
            }
            least = arena;
        }
    }
}

/* What is taken where no budget asks for less: what is quickest, and a product of which parts are
 * enough (the logits of a large vocabulary) by rows where nothing is made twice for it. */
static GradPlan usual_plan(const Search *s) {
    GradPlan plan = {.save = GRAD_SAVE_CALLS}, by_rows = plan;
    by_rows.rows = MOST_ROWS;
    if (chunk_largest(s->entry->region) >= WORTH_ROWS * MOST_ROWS) {
        Cost whole = try_plan(s, &plan, ANY, false), rows = try_plan(s, &by_rows, ANY, false);
        int64_t more = (rows.flops - rows.again) - (whole.flops - whole.again);
        bool same = more <= whole.flops / SAME_WORK;
        plan = same && rows.arena < whole.arena ? by_rows : plan;
    }
    return plan;
}

/* What a plan notes that loops stack, as it does without a budget but for `late`. */
static KeptList find_kept(Search *s, const GradPlan *usual, bool late) {
    KeptList kept = {.of = {0}, .arena = &s->c->arena};
    GradPlan first = *usual;
    first.late = late;
    first.kept = &kept;
    try_plan(s, &first, ANY, false);
    sort_kept(&kept);
    return kept;
}

static void finish(Search *s) {
    drop_by_levels(s);
    try_both(s);
    try_beside(s);
    drop_needless(s);
}

/* Among what keeps the bits. */
static void search_exact(Search *s, const GradPlan *usual) {
    GradPlan late = *usual;
    late.late = true;
    KeptList kept = find_kept(s, usual, true);
    note_tried(s, usual, s->usual);
    try_kept(s, &late, &kept, 1);
    finish(s);
}

/* Among what may round sums otherwise. */
static void search_rounding(Search *s, const GradPlan *usual) {
    const int64_t largest = chunk_largest(s->entry->region);
    KeptList kept = find_kept(s, usual, false);
    try_all(s, &kept, usual->rows, 1);
    for (int64_t rows = MOST_ROWS; rows >= LEAST_ROWS; rows /= 8) {
        if (rows < largest && rows != usual->rows) {
            try_all(s, &kept, rows, 0);
        }
    }
    try_parts(s, usual);
    finish(s);
}

/* An evaluation: what it gives has the same bits in parts. */
static bool choose_eval(Search *s) {
    const GradPlan usual = {.save = GRAD_SAVE_CALLS};
    s->usual = s->cost = try_plan(s, &usual, ANY, false);
    s->best = usual;
    s->fits = s->cost.arena <= s->limit;
    if (!s->fits) {
        try_parts(s, &usual);
    }
    return s->best.parts > 1;
}

/* Finds the best plan for the limit; false: the usual one is good enough, or nothing else is there.
 * Where sums must be rounded as they are and nothing fits, says what would. */
static bool choose(Search *s, bool rounding, const GradPlan *usual) {
    s->usual = s->cost = try_plan(s, usual, ANY, false);
    s->best = *usual;
    s->fits = s->cost.arena <= s->limit;
    if (s->fits) {
        return false;
    }
    take_near(s, usual); /* steps of its own list run again */
    const bool loops = longest(s->entry->region) > 1;
    if (!loops && chunk_largest(s->entry->region) < LEAST_ROWS &&
        !parts_applies(s->entry->region, s->entry->rows)) {
        return false;
    }
    if (loops) {
        search_exact(s, usual);
    }
    Search other = *s;
    if (rounding || !s->fits) {
        search_rounding(&other, usual);
    }
    if (rounding) {
        *s = other;
    } else if (!s->fits && other.fits) {
        s->c->rounded_bytes = other.beside + other.cost.arena;
    }
    return loops || s->best.parts > 1 || s->best.rows != usual->rows;
}

/* What the arena of each entry comes on top of. */
static void find_beside(Compile *c, Module *module, int stage, Search *search) {
    Arena scratch = {0};
    Program *p = try_lower(c, module, stage, &scratch, true);
    plan_regions(p, !c->opt.no_main);
    for (int i = 0; i < p->entry.count; i++) {
        for (int k = 0; k < module->entry.count; k++) {
            if (p->entry.at[i]->entry == module->entry.at[k]) {
                search[k].beside = plan_phases_beside(p, p->entry.at[i]);
            }
        }
    }
    arena_free(&scratch);
}

static const GradPlan *kept_plan(Compile *c, const GradPlan *plan) {
    GradPlan *kept = ARENA_NEW(&c->arena, GradPlan);
    *kept = *plan;
    return kept;
}

void choose_kept(Compile *c, Module *module, int stage, int64_t budget) {
    int count = module->entry.count;
    Search *search = ARENA_ARRAY(&c->arena, Search, count);
    for (int i = 0; i < count; i++) {
        Entry *entry = module->entry.at[i];
        search[i] = (Search){.c = c, .module = module, .entry = entry, .stage = stage};
        if (entry->kind != ENTRY_TEST) { /* the evaluator runs these */
            GradPlan usual = usual_plan(&search[i]);
            entry->keep = usual.rows > 0 ? kept_plan(c, &usual) : NULL;
        }
    }
    if (budget >= 0) {
        find_beside(c, module, stage, search);
    }
    for (int i = 0; budget >= 0 && i < count; i++) {
        Search *s = &search[i];
        const GradPlan usual = {.save = GRAD_SAVE_CALLS};
        const GradPlan *before = s->entry->keep;
        bool rounding = s->entry->rounding || c->opt.rounding;
        s->limit = budget - s->beside;
        if ((s->entry->kind == ENTRY_EVAL && choose_eval(s)) ||
            (s->entry->kind == ENTRY_TRAIN && choose(s, rounding, before ? before : &usual))) {
            s->entry->keep = kept_plan(c, &s->best);
            s->entry->parts = s->best.parts;
            s->entry->flops_more = s->cost.flops - s->usual.flops;
        }
        s->entry->aim = s->fits && s->aim != ANY ? s->aim : 0;
    }
}
