/* stages: the graph passes in order. See the header. */
#include "compiler/driver/stages.h"

#include "compiler/flags.h"
#include "compiler/keep.h"
#include "passes/again.h"
#include "passes/chunk.h"
#include "passes/factor.h"
#include "passes/final.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/hoist.h"
#include "passes/layout.h"
#include "passes/merge.h"
#include "passes/narrow.h"
#include "passes/orders.h"
#include "passes/parts.h"
#include "passes/precision.h"
#include "passes/remat.h"
#include "passes/repeats.h"
#include "passes/schedule/schedule.h"
#include "passes/simplify.h"
#include "passes/sink.h"
#include "passes/sums.h"
#include "passes/thin.h"
#include "passes/unroll.h"

#include <string.h>

bool dump_wanted(const Compile *c, const char *stage) {
    return c->opt.dump && str_eq(c->opt.dump, stage);
}

typedef Region *(*GraphPass)(Graph *g, const Region *region, const Entry *entry);

/* Most passes look at the region alone. */
#define ALONE(pass)                                                                                \
    static Region *run_##pass(Graph *g, const Region *region, const Entry *entry) {                \
        (void)entry;                                                                               \
        return pass_##pass(g, region);                                                             \
    }
ALONE(orders)
ALONE(simplify)
ALONE(hoist)
ALONE(factor)
ALONE(unroll)
ALONE(halo)
ALONE(layout)
ALONE(narrow)
ALONE(sums)
ALONE(fma)

#define APPLIES(pass)                                                                              \
    static bool applies_##pass(const Region *region, const Entry *entry) {                         \
        (void)entry;                                                                               \
        return pass##_applies(region);                                                             \
    }
APPLIES(precision)
APPLIES(repeats)
APPLIES(orders)
APPLIES(hoist)
APPLIES(factor)
APPLIES(unroll)
APPLIES(merge)
APPLIES(halo)
APPLIES(layout)
APPLIES(narrow)
APPLIES(sums)
APPLIES(thin)

static bool by_rows(const Entry *entry) {
    return entry->keep && entry->keep->rows > 0;
}

static bool applies_chunk(const Region *region, const Entry *entry) {
    return by_rows(entry) || chunk_applies(region);
}

static Region *chunk(Graph *g, const Region *region, const Entry *entry) {
    bool rows = by_rows(entry);
    ChunkLimits limits = chunk_limits;
    limits.large = entry->chunk;
    Region *chunks = pass_chunk(g, region, limits);
    return rows ? pass_chunk(g, chunks, chunk_by_rows(entry->keep->rows)) : chunks;
}

static bool in_parts(const Entry *entry, EntryKind kind) {
    return entry->kind == kind && entry->keep && entry->keep->parts > 1;
}

/* A train's, so that gradients are added up over parts. */
static bool applies_parts(const Region *region, const Entry *entry) {
    (void)region;
    return in_parts(entry, ENTRY_TRAIN);
}

/* An evaluation's, behind all that decides how values are computed: to the bit. */
static bool applies_eval_parts(const Region *region, const Entry *entry) {
    (void)region;
    return in_parts(entry, ENTRY_EVAL);
}

static Region *parts(Graph *g, const Region *region, const Entry *entry) {
    return pass_parts(g, region, (PartsPlan){entry->rows, entry->keep->parts, entry->keep->light});
}

static const GradPlan usual_plan = {.save = GRAD_SAVE_CALLS};

static const GradPlan *plan_of(const Entry *entry) {
    return entry->keep ? entry->keep : &usual_plan;
}

static bool applies_turns(const Region *region, const Entry *entry) {
    return entry->kind == ENTRY_TRAIN && turns_applies(region, plan_of(entry));
}

static Region *turns(Graph *g, const Region *region, const Entry *entry) {
    return pass_turns(g, region, plan_of(entry));
}

static bool applies_lookups(const Region *region, const Entry *entry) {
    return applies_turns(region, entry) && sink_turns_applies(region, sink_least, plan_of(entry));
}

static Region *lookups(Graph *g, const Region *region, const Entry *entry) {
    return pass_sink_turns(g, region, sink_least, plan_of(entry));
}

static Region *grad(Graph *g, const Region *region, const Entry *entry) {
    return pass_grad_planned(g, region, plan_of(entry));
}

static Region *precision(Graph *g, const Region *region, const Entry *entry) {
    return pass_precision(g, region, entry->half, entry->rounds);
}

static Region *operands(Graph *g, const Region *region, const Entry *entry) {
    return pass_operands(g, region, entry->half, entry->rounds);
}

static Region *repeats(Graph *g, const Region *region, const Entry *entry) {
    (void)entry;
    return pass_repeats(g, region, repeats_least);
}

/* An entry writes nothing before it knows that what it awaits is finite. */
static Region *merge(Graph *g, const Region *region, const Entry *entry) {
    Arena scratch = {0};
    bool *awaited = ARENA_ARRAY(&scratch, bool, entry->out.count + 1);
    for (int k = 0; k < entry->out.count; k++) {
        awaited[k] = out_is_awaited(entry->out.at[k].role);
    }
    Region *fresh = pass_merge(g, region, awaited);
    arena_free(&scratch);
    return fresh;
}

static bool applies_remat(const Region *region, const Entry *entry) {
    (void)region;
    return entry->keep && entry->keep->late;
}

static Region *remat(Graph *g, const Region *region, const Entry *entry) {
    return pass_remat(g, region, entry->keep);
}

static bool applies_sink(const Region *region, const Entry *entry) {
    (void)entry;
    return sink_applies(region, sink_least);
}

static Region *sink(Graph *g, const Region *region, const Entry *entry) {
    (void)entry;
    return pass_sink(g, region, sink_least);
}

static Region *thin(Graph *g, const Region *region, const Entry *entry) {
    return pass_thin(g, region, entry->half);
}

static bool applies_final(const Region *region, const Entry *entry) {
    (void)entry;
    return final_applies(region, final_least);
}

static Region *final(Graph *g, const Region *region, const Entry *entry) {
    (void)entry;
    return pass_final(g, region, final_least);
}

static AgainLimits again_limits(const Entry *entry) {
    return (AgainLimits){again_least, again_part, entry->total_count, entry->copies,
                         entry->sums};
}

/* Not where every value has a place of its own, see Options.nan: then `copies` is -1. */
static bool applies_again(const Region *region, const Entry *entry) {
    return entry->kind == ENTRY_TRAIN && entry->copies >= 0 &&
           again_applies(region, entry->out.at, again_limits(entry));
}

static Region *again(Graph *g, const Region *region, const Entry *entry) {
    return pass_again(g, region, entry->out.at, again_limits(entry));
}

/* The graph passes in order. A name may be given to --dump. */
static const struct {
    const char *name;
    GraphPass run;
    GraphStage stage;
    bool (*applies)(const Region *region, const Entry *entry); /* NULL: always; else it would change
                                                                * nothing */
    bool rounds;  /* for entries that multiply in 16 bits */
    bool follows; /* up to the pass before it nothing is left to do */
    bool spells;  /* for targets that lack a schedule for what it spells */
} graph_passes[] = {
    /* before differentiation: composites and contractions */
    {"match", run_simplify, STAGE_BUILT, NULL, false, false, false},
    {"repeats", repeats, STAGE_BUILT, applies_repeats, false, false, false},
    {"orders", run_orders, STAGE_BUILT, applies_orders, false, false, true},
    {"turns", turns, STAGE_BUILT, applies_turns, false, false, false},
    {"lookups", lookups, STAGE_BUILT, applies_lookups, false, false, false},
    {"parts", parts, STAGE_BUILT, applies_parts, false, false, false},
    {"chunk", chunk, STAGE_BUILT, applies_chunk, false, false, false},
    {"precision", precision, STAGE_BUILT, applies_precision, true, false, false},
    {"grad", grad, STAGE_GRAD, NULL, false, false, false},
    {"operands", operands, STAGE_GRAD, NULL, true, false, false},
    {"simplify", run_simplify, STAGE_OPTIMISED, NULL, false, false, false},
    {"hoist", run_hoist, STAGE_OPTIMISED, applies_hoist, false, false, false},
    {"clean", run_simplify, STAGE_OPTIMISED, NULL, false, true, false},
    {"factor", run_factor, STAGE_OPTIMISED, applies_factor, false, false, false},
    {"unroll", run_unroll, STAGE_OPTIMISED, applies_unroll, false, false, false},
    {"merge", merge, STAGE_OPTIMISED, applies_merge, false, false, false},
    {"halo", run_halo, STAGE_OPTIMISED, applies_halo, false, false, false},
    {"layout", run_layout, STAGE_OPTIMISED, applies_layout, false, false, false},
    {"narrow", run_narrow, STAGE_OPTIMISED, applies_narrow, false, false, false},
    {"sums", run_sums, STAGE_OPTIMISED, applies_sums, false, false, false},
    {"fma", run_fma, STAGE_OPTIMISED, NULL, false, false, false},
    {"eval_parts", parts, STAGE_OPTIMISED, applies_eval_parts, false, false, false},
    {"remat", remat, STAGE_OPTIMISED, applies_remat, false, false, false},
    {"sink", sink, STAGE_OPTIMISED, applies_sink, false, false, false},
    {"thin", thin, STAGE_OPTIMISED, applies_thin, false, false, false},
    {"final", final, STAGE_OPTIMISED, applies_final, false, false, false},
    {"again", again, STAGE_OPTIMISED, applies_again, false, false, false},
};
enum { STAGES = sizeof graph_passes / sizeof *graph_passes };
static const char *const other_stages[] = {"ast", "build", "lower", "plan"};

/* In what the products of an entry multiply: its train says so, or the option for all; TY_ERROR: in
 * what they compute. A derivative is held against differences without roundings. */
static Elem multiplies_in(const Compile *c, const Entry *entry) {
    const Entry *says = entry->train ? entry->train : entry;
    Elem half = c->opt.half != TY_ERROR ? c->opt.half : says->half;
    return entry->kind == ENTRY_TEST ? TY_ERROR : half;
}

/* Which of its products do: an evaluation's as its train's, so that both see the same values. */
static void settle_rounds(const Compile *c, Module *module) {
    const Target *target = target_asked(c->opt.target);
    MachineTimes machine = target_times(target);
    machine.pairs = !target->device && flags_pairs(c->opt.machine);
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        const Entry *says = entry->train ? entry->train : entry;
        bool always = c->opt.half != TY_ERROR ? c->opt.always : says->always;
        entry->rounds = entry->half == TY_ERROR ? 0
                        : always || target->device ? ROUND_ALL
                                 : precision_pays(says->region, entry->half, &machine);
    }
}

/* How lowering will fuse. */
static void settle_fusion(const Compile *c, Module *module) {
    const Target *target = target_asked(c->opt.target);
    for (int i = 0; i < module->entry.count; i++) {
        module->entry.at[i]->total_count = target->total_count;
        module->entry.at[i]->sums = target->sums;
        module->entry.at[i]->copies = c->opt.nan ? -1 : target_copies(target, c->opt.threads);
    }
}

/* Has the target no schedule for an ORDER? */
static bool lacks_orders(const Compile *c) {
    return c->opt.target && !c->opt.target->orders;
}

int stages_behind(const char *name) {
    int i = 0;
    while (i < STAGES && (i == 0 || !str_eq(graph_passes[i - 1].name, name))) {
        i++;
    }
    return i;
}

int stages_before(const char *name) {
    return stages_behind(name) - 1;
}

bool stage_exists(const char *name) {
    for (int i = 0; i < STAGES; i++) {
        if (str_eq(name, graph_passes[i].name)) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof other_stages / sizeof *other_stages; i++) {
        if (str_eq(name, other_stages[i])) {
            return true;
        }
    }
    return false;
}

void stages_print(FILE *out) {
    fprintf(out, "stages: ast build");
    for (int i = 0; i < STAGES; i++) {
        fprintf(out, " %s", graph_passes[i].name);
    }
    fprintf(out, " lower plan\n");
}

void module_verify(const Module *module, GraphStage stage) {
    for (int i = 0; i < module->entry.count; i++) {
        region_verify(module->entry.at[i]->region, stage);
    }
}

bool stages_run(Compile *c, Module *module, Arena *built, int from, int to, bool silent) {
    enum { NODES_CHUNK = 8192 };
    bool *ran = ARENA_ARRAY(&c->arena, bool, module->entry.count); /* the last one has */
    for (int i = 0; from == 0 && i < module->entry.count; i++) {
        module->entry.at[i]->half = multiplies_in(c, module->entry.at[i]);
        module->entry.at[i]->chunk = target_asked(c->opt.target)->chunk;
    }
    for (int p = from; p < to && p < STAGES; p++) {
        if (graph_passes[p].run == precision) {
            settle_rounds(c, module);
        } else if (graph_passes[p].run == again) {
            settle_fusion(c, module);
        }
        for (int i = 0; i < module->entry.count; i++) {
            Entry *entry = module->entry.at[i];
            bool (*applies)(const Region *, const Entry *) = graph_passes[p].applies;
            ran[i] = (!graph_passes[p].follows || ran[i]) &&
                     (!applies || applies(entry->region, entry)) &&
                     (!graph_passes[p].rounds || entry->rounds != 0) &&
                     (!graph_passes[p].spells || lacks_orders(c));
            if (ran[i]) {
                Arena *nodes = &entry->nodes[entry->passes++ % 2];
                Arena *old = &entry->nodes[entry->passes % 2];
                module->graph->arena = nodes;
                module->graph->spent = p > 0 ? old : i == module->entry.count - 1 ? built : NULL;
                nodes->chunk_bytes = NODES_CHUNK; /* there may be many small entries */
                entry->region = graph_passes[p].run(module->graph, entry->region, entry);
                nodes_forget(entry->region);
                module->graph->spent = NULL;
                arena_free(old);
            }
        }
        arena_free(built);
        module_verify(module, graph_passes[p].stage);
        if (!silent && dump_wanted(c, graph_passes[p].name)) {
            module_dump(module, c->out);
            return false;
        }
    }
    return true;
}
