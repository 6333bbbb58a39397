/* recompute: see the header.
 *
 * A choice is tried by running it through the later stages up to the plan, which says bytes and
 * time as they will be. Choices are tried from what costs least: of what loops stack, that is made
 * again first which frees most bytes for its FLOPs, by pass_remat, which keeps the bits. Where sums
 * may be rounded otherwise, the pass that differentiates does the same; then all but carries are
 * made again; then the carries of every second turn, of every fourth, ... Of each of these what it
 * makes again needlessly is kept after all, for limits that are parts of the usual arena. Of those
 * that no other one beats the train's own list makes steps run again as well.
 *
 * So what is tried is the same for every budget, and of what fits that is taken which takes the
 * least time: a larger budget has all that a smaller one has to choose from, and never takes more.
 */
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
    MOST_ROWS = TUNED(64 << 20, 8192), /* bytes of a chunk of rows */
    WORTH_ROWS = 4,   /* chunks that a value must be to be taken apart without a budget */
    SAME_WORK = 1000, /* FLOPs in so many that do not count */
    LEVELS = 32,      /* parts of the usual arena for which what is needless is kept, */
    APART = 64,       /* and by which those must differ of which steps run again as well, */
    SMALLEST = 3,     /* but for so many */
    LEAST_PART = 8,   /* rows: products of few rows add up in another order */
    MOST_HELD = TUNED(64 << 20, 64 << 10), /* bytes of choices that may be asked for less */
    LEAST_ROWS = TUNED(128 << 10, 1024)
};

typedef PlanTold Cost;

/* What a choice was lowered to, for who asks for less. */
typedef struct {
    Arena *program;
    EntryPlan *entry; /* NULL: it is gone */
} Lowered;

typedef struct {
    GradPlan plan;
    Cost cost;
    Cost less; /* within the limit, where steps of the train's own list run again */
    bool asked;
    Lowered lowered;
} Tried;

typedef struct {
    Compile *c;
    const Module *module;
    Entry *entry;
    int stage;
    int64_t beside, limit; /* what its arena comes on top of, and may take */
    GradPlan best;
    Cost cost, usual;
    bool fits;
    VEC(Tried) tried; /* without a limit: no step of the train's own list runs again for it */
    Entry *shared;    /* the entry behind the stages that choices of pass_remat share, or NULL */
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
        if (entry->out.count > 0) { /* a list of none is null */
            memcpy(entry->out.at, was[i].out.at, sizeof(EntryOut) * (size_t)entry->out.count);
        }
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

/* Takes a copy of an entry, whose nodes stay, from one stage to another. */
static void run_stages(const Search *s, Entry *copy, const GradPlan *plan, int from, int to) {
    Arena built = {0};
    Module module = *s->module;
    copy->nodes[0] = copy->nodes[1] = (Arena){0};
    copy->keep = plan;
    module.entry.at = &copy;
    module.entry.count = 1;
    Arena *home = module.graph->arena;
    stages_run(s->c, &module, &built, from, to, true);
    module.graph->arena = home;
}

/* The entry with its choice, up to the stages behind which choices of pass_remat differ. */
static void share_stages(Search *s, const GradPlan *plan) {
    s->shared = ARENA_NEW(&s->c->arena, Entry);
    *s->shared = *s->entry;
    run_stages(s, s->shared, plan, s->stage, stages_before("remat"));
}

static void forget_shared(Search *s) {
    if (s->shared != NULL) {
        arena_free(&s->shared->nodes[0]);
        arena_free(&s->shared->nodes[1]);
        s->shared = NULL;
    }
}

/* An entry alone, its loops keeping what `plan` says. */
static Lowered lower_alone(const Search *s, const GradPlan *plan) {
    Lowered lowered = {.program = ARENA_NEW(&s->c->arena, Arena)};
    const bool shared = plan->late && s->shared != NULL;
    Entry *only = shared ? s->shared : s->entry;
    Module module = *s->module;
    module.entry.at = &only;
    module.entry.count = 1;
    const GradPlan *before = only->keep;
    only->keep = plan;
    Program *p = try_lower(s->c, &module, shared ? stages_before("remat") : s->stage,
                           lowered.program, false);
    lowered.entry = entry_plan_open(p);
    only->keep = before;
    return lowered;
}

static void forget_lowered(Lowered *lowered) {
    if (lowered->entry != NULL) {
        entry_plan_close(lowered->entry);
        arena_free(lowered->program);
        lowered->entry = NULL;
    }
}

static int64_t lowered_bytes(const Lowered *lowered) {
    return lowered->entry == NULL
               ? 0
               : (int64_t)lowered->program->used_bytes + entry_plan_bytes(lowered->entry);
}

static Cost try_plan(const Search *s, const GradPlan *plan, int64_t limit) {
    Lowered lowered = lower_alone(s, plan);
    const Cost cost = entry_plan_within(lowered.entry, limit);
    forget_lowered(&lowered);
    return cost;
}

/* Takes as much time or more, and as many bytes or more. */
static bool is_beaten(const Cost *a, const Cost *by) {
    return by->arena <= a->arena && by->time <= a->time;
}

/* Notes what a choice costs. What it was lowered to stays as long as no other choice beats it, up
 * to so many bytes for all; else who wants it lowers it again. */
static void note_tried(Search *s, const GradPlan *plan, Cost cost, Lowered lowered) {
    int64_t held = 0;
    bool beaten = false;
    for (int i = 0; i < s->tried.count; i++) {
        Tried *other = &s->tried.at[i];
        beaten = beaten || is_beaten(&cost, &other->cost);
        if (is_beaten(&other->cost, &cost)) {
            forget_lowered(&other->lowered);
        }
        held += lowered_bytes(&other->lowered);
    }
    if (beaten || held + lowered_bytes(&lowered) > MOST_HELD) {
        forget_lowered(&lowered);
    }
    Tried tried = {.plan = *plan, .cost = cost, .lowered = lowered};
    VEC_PUSH(&s->c->arena, &s->tried, tried);
}

static void forget_tried(Search *s) {
    for (int i = 0; i < s->tried.count; i++) {
        forget_lowered(&s->tried.at[i].lowered);
    }
}

static bool same_plan(const GradPlan *a, const GradPlan *b) {
    bool same = a->save == b->save && a->late == b->late && a->segment == b->segment &&
                a->rows == b->rows && a->parts == b->parts && a->light == b->light &&
                a->nagain == b->nagain;
    for (int i = 0; i < a->nagain && same; i++) {
        same = a->again[i].op == b->again[i].op && loc_equal(a->again[i].loc, b->again[i].loc);
    }
    return same;
}

/* What the plan costs without a limit, found once. */
static Cost cost_of(Search *s, const GradPlan *plan) {
    for (int i = 0; i < s->tried.count; i++) {
        if (same_plan(&s->tried.at[i].plan, plan)) {
            return s->tried.at[i].cost;
        }
    }
    Lowered lowered = lower_alone(s, plan);
    const Cost cost = entry_plan_within(lowered.entry, ANY);
    note_tried(s, plan, cost, lowered);
    return cost;
}

/* Takes the plan if it is the better one. */
static void take(Search *s, const GradPlan *plan, const Cost *cost) {
    const bool fits = cost->arena <= s->limit, quicker = cost->time < s->cost.time;
    const bool smaller = cost->arena < s->cost.arena, as_quick = cost->time == s->cost.time;
    if (fits != s->fits ? fits : fits ? quicker || (as_quick && smaller) : smaller) {
        s->best = *plan;
        s->cost = *cost;
        s->fits = fits;
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

/* Of the plans that were tried the one that fits in the least time; NULL: none does. */
static const Tried *best_tried(const Search *s, int64_t limit) {
    const Tried *best = NULL;
    for (int i = 0; i < s->tried.count; i++) {
        const Tried *one = &s->tried.at[i];
        bool less = best == NULL || one->cost.time < best->cost.time;
        best = one->cost.arena <= limit && less ? one : best;
    }
    return best;
}

/* Keeps what plans make again needlessly. */
static void drop_by_levels(Search *s) {
    for (int level = 1; level < LEVELS; level++) {
        const int64_t limit = s->usual.arena / LEVELS * level;
        const Tried *best = best_tried(s, limit);
        Tried now = best != NULL ? *best : (Tried){.cost = s->usual};
        for (int k = now.plan.nagain - 1; k >= 0; k--) {
            const GradPlan without = plan_without(s, &now.plan, k);
            const Cost cost = cost_of(s, &without);
            if (cost.arena <= limit && cost.time < now.cost.time) {
                now = (Tried){.plan = without, .cost = cost};
            }
        }
    }
}

static void sort_tried(Search *s) {
    for (int i = 1; i < s->tried.count; i++) {
        const Tried one = s->tried.at[i];
        int at = i;
        for (; at > 0 && (s->tried.at[at - 1].cost.time > one.cost.time ||
                          (s->tried.at[at - 1].cost.time == one.cost.time &&
                           s->tried.at[at - 1].cost.arena > one.cost.arena));
             at--) {
            s->tried.at[at] = s->tried.at[at - 1];
        }
        s->tried.at[at] = one;
    }
}

/* The arena of the smallest few. */
static int64_t smallest(const Search *s) {
    int64_t arena = 0;
    for (int k = 0; k < SMALLEST; k++) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < s->tried.count; i++) {
            const int64_t other = s->tried.at[i].cost.arena;
            next = other > arena && other < next ? other : next;
        }
        arena = next < INT64_MAX ? next : arena;
    }
    return arena;
}

/* What the choice costs within the limit, found once. */
static void ask_less(const Search *s, Tried *one) {
    if (one->asked) {
        return;
    }
    if (one->lowered.entry == NULL) {
        one->lowered = lower_alone(s, &one->plan);
    }
    one->less = entry_plan_within(one->lowered.entry, s->limit);
    one->asked = true;
    forget_lowered(&one->lowered);
}

/* Of all that was tried what fits in the least time: as it is, or, of those that no other one
 * beats, with steps of the train's own list that run again. These only add time, so what takes more
 * without them than the best one need not be looked at. */
static void take_best(Search *s) {
    const int64_t few = smallest(s);
    int64_t below = INT64_MAX;
    sort_tried(s);
    for (int i = 0; i < s->tried.count; i++) {
        take(s, &s->tried.at[i].plan, &s->tried.at[i].cost);
    }
    for (int i = 0; i < s->tried.count; i++) {
        Tried *one = &s->tried.at[i];
        if (one->cost.arena >= below && one->cost.arena > few) {
            continue;
        }
        below = one->cost.arena - s->usual.arena / APART;
        if (one->cost.arena > s->limit && !(s->fits && one->cost.time >= s->cost.time)) {
            ask_less(s, one);
            take(s, &one->plan, &one->less);
        }
    }
}

/* With at least `least` kinds of values made again, from what costs least on, and each alone. */
static void try_kept(Search *s, const GradPlan *base, const KeptList *kept, int least) {
    GradPlan plan = *base;
    int many = kept->of.count < MOST_AGAIN ? kept->of.count : MOST_AGAIN;
    plan.again = kept->of.at;
    for (plan.nagain = least; plan.nagain <= many; plan.nagain++) {
        cost_of(s, &plan);
    }
    plan.nagain = 1;
    for (int i = 1; i < many; i++) {
        plan.again = &kept->of.at[i];
        cost_of(s, &plan);
    }
}

/* Everything that loops may keep, large products whole, or by rows. */
static void try_all(Search *s, const KeptList *kept, int64_t rows, int least) {
    const int64_t turns = longest(s->entry->region);
    try_kept(s, &(GradPlan){.save = GRAD_SAVE_CALLS, .rows = rows}, kept, least);
    for (int64_t segment = 1; segment < turns; segment *= 2) {
        for (int save = segment > 1 ? GRAD_SAVE_CALLS : GRAD_SAVE_CARRIES;
             save <= GRAD_SAVE_CARRIES; save++) {
            cost_of(s, &(GradPlan){.save = (GradSave)save, .segment = segment, .rows = rows});
        }
    }
}

/* The batch in parts of its rows, as long as more of them take less. */
static void try_parts(Search *s, const GradPlan *base, bool light) {
    const int64_t rows = s->entry->rows;
    int64_t least = s->usual.arena;
    if (!parts_applies(s->entry->region, (PartsPlan){.rows = rows, .light = light})) {
        return;
    }
    for (int64_t parts = 2; rows / parts >= LEAST_PART; parts++) {
        if (rows % parts == 0) {
            GradPlan plan = *base;
            plan.parts = parts;
            plan.light = light;
            int64_t arena = cost_of(s, &plan).arena;
            if (arena >= least) {
                return;
            }
            least = arena;
        }
    }
}

/* What is taken where no budget asks for less: what is quickest, and a product of which parts are
 * enough (the logits of a large vocabulary) by rows where nothing is made twice for it. With many
 * rows other products are as large as such parts, and would be made twice: parts are larger then.
 */
static GradPlan usual_plan(const Search *s) {
    const GradPlan plan = {.save = GRAD_SAVE_CALLS};
    const int64_t largest = chunk_largest(s->entry->region);
    if (largest / WORTH_ROWS < MOST_ROWS) {
        return plan;
    }
    const Cost whole = try_plan(s, &plan, ANY);
    for (int64_t rows = MOST_ROWS; rows <= largest / WORTH_ROWS; rows *= 2) {
        GradPlan by_rows = plan;
        by_rows.rows = rows;
        const Cost cost = try_plan(s, &by_rows, ANY);
        const int64_t more = (cost.flops - cost.again) - (whole.flops - whole.again);
        if (more <= whole.flops / SAME_WORK && cost.arena < whole.arena) {
            return by_rows;
        }
    }
    return plan;
}

/* What a plan notes that loops stack, as it does without a budget but for `late`: in the last of
 * the stages that choose. */
static KeptList find_kept(Search *s, const GradPlan *usual, bool late) {
    KeptList kept = {.of = {0}, .arena = &s->c->arena};
    GradPlan first = *usual;
    first.late = late;
    first.kept = &kept;
    Entry noted = late ? *s->shared : *s->entry;
    run_stages(s, &noted, &first, late ? stages_before("remat") : s->stage,
               late ? stages_behind("remat") : stages_behind("grad"));
    arena_free(&noted.nodes[0]);
    arena_free(&noted.nodes[1]);
    sort_kept(&kept);
    return kept;
}

/* Tries what keeps the bits. */
static void search_exact(Search *s, const GradPlan *usual) {
    GradPlan late = *usual;
    late.late = true;
    share_stages(s, usual);
    KeptList kept = find_kept(s, usual, true);
    try_kept(s, &late, &kept, 1);
    drop_by_levels(s);
    take_best(s);
    forget_shared(s);
}

/* And what may round sums otherwise. */
static void search_rounding(Search *s, const GradPlan *usual) {
    const int64_t largest = chunk_largest(s->entry->region);
    KeptList kept = find_kept(s, usual, false);
    try_all(s, &kept, usual->rows, 1);
    for (int64_t rows = MOST_ROWS; rows >= LEAST_ROWS; rows /= 8) {
        if (rows < largest && rows != usual->rows) {
            try_all(s, &kept, rows, 0);
        }
    }
    try_parts(s, usual, false);
    try_parts(s, usual, true);
    drop_by_levels(s);
    take_best(s);
}

/* Begins with the usual plan. What it touches says for all others too how many of their bytes come
 * from memory: so none of them is told to be quicker than it is. */
static void begin(Search *s, const GradPlan *usual) {
    s->usual = s->cost = cost_of(s, usual);
    s->best = *usual;
    s->fits = s->cost.arena <= s->limit;
    s->entry->touched = s->usual.touched;
}

/* An evaluation: what it gives has the same bits in parts. */
static bool choose_eval(Search *s) {
    const GradPlan usual = {.save = GRAD_SAVE_CALLS};
    begin(s, &usual);
    if (!s->fits) {
        try_parts(s, &usual, false);
        for (int i = 0; i < s->tried.count; i++) {
            take(s, &s->tried.at[i].plan, &s->tried.at[i].cost);
        }
    }
    return s->best.parts > 1;
}

/* Finds the best plan for the limit; false: the usual one is good enough, or nothing else is there.
 * Where sums must be rounded as they are and nothing fits, says what would. */
static bool choose(Search *s, bool rounding, const GradPlan *usual) {
    begin(s, usual);
    if (s->fits) {
        return false;
    }
    const bool loops = longest(s->entry->region) > 1;
    if (!loops && chunk_largest(s->entry->region) < LEAST_ROWS &&
        !parts_applies(s->entry->region, (PartsPlan){.rows = s->entry->rows})) {
        return false; /* steps of its own list run again */
    }
    if (loops) {
        search_exact(s, usual);
    } else {
        take_best(s);
    }
    forget_tried(s);
    Search other = *s; /* which has the list of what was tried from here on, and may move it */
    s->tried.at = NULL;
    s->tried.count = s->tried.capacity = 0;
    if (rounding || !s->fits) {
        search_rounding(&other, usual);
        forget_tried(&other);
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
        forget_tried(s);
    }
}
