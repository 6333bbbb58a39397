/* pipeline: every stage in order, a verifier behind each arrow; files.c reads and writes. */
#include "compiler/driver/pipeline.h"

#include "compiler/driver/files.h"
#include "compiler/driver/run.h"
#include "compiler/graph.h"
#include "compiler/keep.h"
#include "compiler/program.h"
#include "emit/module.h"
#include "lang/elab.h"
#include "passes/check.h"
#include "passes/chunk.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/hoist.h"
#include "passes/late.h"
#include "passes/layout.h"
#include "passes/lower/lower.h"
#include "passes/merge.h"
#include "passes/narrow.h"
#include "passes/orders.h"
#include "passes/precision.h"
#include "passes/plan/plan.h"
#include "passes/schedule/schedule.h"
#include "passes/simplify.h"
#include "passes/sums.h"

#include <string.h>

static bool dump_wanted(const Compile *c, const char *stage) {
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
ALONE(precision)
ALONE(operands)
ALONE(simplify)
ALONE(hoist)
ALONE(halo)
ALONE(layout)
ALONE(narrow)
ALONE(sums)
ALONE(fma)

static Region *chunk(Graph *g, const Region *region, const Entry *entry) {
    (void)entry;
    return pass_chunk(g, region, chunk_limits);
}

static Region *grad(Graph *g, const Region *region, const Entry *entry) {
    (void)entry;
    return pass_grad(g, region, GRAD_SAVE_CALLS);
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

/* The graph passes in order. A name may be given to --dump. */
static const struct {
    const char *name;
    GraphPass run;
    GraphStage stage;
    bool (*applies)(const Region *region); /* NULL: always; else it would change nothing */
    bool rounds;                           /* for entries that multiply in 16 bits */
    bool follows;                          /* up to the pass before it nothing is left to do */
    bool spells;                           /* for targets that lack a schedule for what it spells */
} graph_passes[] = {
    /* before differentiation: composites and contractions */
    {"match", run_simplify, STAGE_BUILT, NULL, false, false, false},
    {"orders", run_orders, STAGE_BUILT, orders_applies, false, false, true},
    {"chunk", chunk, STAGE_BUILT, chunk_applies, false, false, false},
    {"precision", run_precision, STAGE_BUILT, NULL, true, false, false},
    {"grad", grad, STAGE_GRAD, NULL, false, false, false},
    {"operands", run_operands, STAGE_GRAD, NULL, true, false, false},
    {"simplify", run_simplify, STAGE_OPTIMISED, NULL, false, false, false},
    {"hoist", run_hoist, STAGE_OPTIMISED, hoist_applies, false, false, false},
    {"clean", run_simplify, STAGE_OPTIMISED, NULL, false, true, false},
    {"merge", merge, STAGE_OPTIMISED, merge_applies, false, false, false},
    {"halo", run_halo, STAGE_OPTIMISED, halo_applies, false, false, false},
    {"layout", run_layout, STAGE_OPTIMISED, layout_applies, false, false, false},
    {"narrow", run_narrow, STAGE_OPTIMISED, narrow_applies, false, false, false},
    {"sums", run_sums, STAGE_OPTIMISED, sums_applies, false, false, false},
    {"fma", run_fma, STAGE_OPTIMISED, NULL, false, false, false},
};
static const char *const other_stages[] = {"ast", "build", "lower", "plan"};

/* In what the products of an entry multiply: its train says so, or the option for all; TY_ERROR: in
 * what they compute. A derivative is held against differences without roundings. */
static Elem multiplies_in(const Compile *c, const Entry *entry) {
    const Entry *says = entry->train ? entry->train : entry;
    Elem half = c->opt.half != TY_ERROR ? c->opt.half : says->half;
    return entry->kind == ENTRY_TEST ? TY_ERROR : half;
}

/* Has the target no schedule for an ORDER? */
static bool lacks_orders(const Compile *c) {
    return c->opt.target && !c->opt.target->orders;
}

static bool stage_exists(const char *name) {
    for (size_t i = 0; i < sizeof graph_passes / sizeof *graph_passes; i++) {
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

static void module_verify(const Module *module, GraphStage stage) {
    for (int i = 0; i < module->entry.count; i++) {
        region_verify(module->entry.at[i]->region, stage);
    }
}

/* Graph -> Graph; the first pass leaves nothing in the arena `built`. Returns false when a dump was
 * printed and the work ends here. */
static bool optimise(Compile *c, Module *module, Arena *built) {
    enum { NODES_CHUNK = 8192 };
    for (int i = 0; i < module->entry.count; i++) {
        module->entry.at[i]->half = multiplies_in(c, module->entry.at[i]);
    }
    int *runs = ARENA_ARRAY(&c->arena, int, module->entry.count);  /* passes that each has seen */
    bool *ran = ARENA_ARRAY(&c->arena, bool, module->entry.count); /* the last one has */
    for (size_t p = 0; p < sizeof graph_passes / sizeof *graph_passes; p++) {
        for (int i = 0; i < module->entry.count; i++) {
            Entry *entry = module->entry.at[i];
            bool (*applies)(const Region *) = graph_passes[p].applies;
            ran[i] = (!graph_passes[p].follows || ran[i]) &&
                     (!applies || applies(entry->region)) &&
                     (!graph_passes[p].rounds || entry->half != TY_ERROR) &&
                     (!graph_passes[p].spells || lacks_orders(c));
            if (ran[i]) {
                Arena *nodes = &entry->nodes[runs[i]++ % 2];
                module->graph->arena = nodes;
                module->graph->spent = p > 0                          ? &entry->nodes[runs[i] % 2]
                                       : i == module->entry.count - 1 ? built
                                                                      : NULL;
                nodes->chunk_bytes = NODES_CHUNK; /* there may be many small entries */
                entry->region = graph_passes[p].run(module->graph, entry->region, entry);
                nodes_forget(entry->region);
                module->graph->spent = NULL;
                arena_free(&entry->nodes[runs[i] % 2]);
            }
        }
        arena_free(built);
        module_verify(module, graph_passes[p].stage);
        if (dump_wanted(c, graph_passes[p].name)) {
            module_dump(module, c->out);
            return false;
        }
    }
    return true;
}

/* Is there anything that a program could do? */
static bool has_entry(Compile *c, const Module *module, uint32_t source) {
    for (int i = 0; i < module->entry.count; i++) {
        EntryKind kind = module->entry.at[i]->kind;
        if (kind == ENTRY_TRAIN || kind == ENTRY_CALL) {
            return true;
        }
    }
    diag_error(&c->diag, LOC_NONE, 603,
               "'%s' has no train and no entry, so there is nothing to compile",
               c->diag.sources.at[source].name);
    diag_hint(&c->diag, "'mdlc check' looks for errors, 'mdlc test' runs the tests of a file");
    return false;
}

/* The first loop with a condition; NULL: there is none. */
static const Node *find_while(const Region *region) {
    const Node *found = NULL;
    for (int i = 0; !found && i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        bool is = n->op == OP_LOOP && loop_ends_itself(n->attr);
        found = is ? n : n->body ? find_while(n->body) : NULL;
    }
    return found;
}

/* What the target cannot print yet is refused. */
static bool target_takes(Compile *c, const Module *module) {
    for (int i = 0; c->opt.target && c->opt.target->device && i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        const Node *loop = entry->kind != ENTRY_TEST ? find_while(entry->region) : NULL;
        if (loop) {
            diag_error(&c->diag, loop->loc, 613,
                       "--target=cuda has no loops that end by a condition yet");
            diag_hint(&c->diag, "'scan' runs a fixed number of iterations");
            return false;
        }
        if (entry->half != TY_ERROR) {
            diag_error(&c->diag, entry->loc, 614, "--target=cuda does not multiply in %s yet",
                       elem_name(entry->half));
            diag_hint(&c->diag, "--precision=f32 overrides what the source says");
            return false;
        }
    }
    return true;
}

/* The most bytes that --budget or the trains allow, -1: any number. */
static int64_t budget_of(const Compile *c, const Module *module) {
    int64_t least = c->opt.budget;
    for (int i = 0; c->opt.budget < 0 && i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        if (entry->kind == ENTRY_TRAIN && entry->budget >= 0 &&
            (least < 0 || entry->budget < least)) {
            least = entry->budget;
        }
    }
    return least;
}

/* Graph -> Program, planned and proved. */
static Program *make_program(Compile *c, Module *module) {
    if (!c->opt.no_main) {
        pass_late(module);
    }
    Program *p = pass_lower(c, &c->arena, module); /* the nodes are gone now */
    if (c->diag.errors) {
        return NULL;
    }
    if (dump_wanted(c, "lower")) {
        program_dump(p, c->out);
        return NULL;
    }
    p->band_bytes = c->opt.canary ? MD_ALIGN : 0;
    pass_plan(p, !c->opt.no_main, budget_of(c, module));
    program_names(p);
    if (dump_wanted(c, "plan")) {
        program_dump(p, c->out);
        return NULL;
    }
    Arena scratch = {0};
    const char *fault = check_program(&scratch, p);
    if (fault) {
        BUG("the memory plan is wrong: %s", fault);
    }
    arena_free(&scratch);
    return p;
}

static void module_close(Module *module) {
    for (int i = 0; module && i < module->entry.count; i++) {
        arena_free(&module->entry.at[i]->nodes[0]);
        arena_free(&module->entry.at[i]->nodes[1]);
    }
}

/* The module, its nodes in `built` -> what the command asks for. */
static int module_stages(Compile *c, Module *module, Arena *built, uint32_t source) {
    module_verify(module, STAGE_BUILT);
    if (dump_wanted(c, "build")) {
        module_dump(module, c->out);
        return EXIT_OK;
    }
    if (!optimise(c, module, built) || c->opt.command == COMMAND_CHECK) {
        return EXIT_OK;
    }
    if (c->opt.command == COMMAND_TEST) {
        return run_tests(c, module, c->out);
    }
    if (c->opt.command == COMMAND_RUN) {
        return run_entry(c, module, c->out);
    }
    if (!has_entry(c, module, source) || !target_takes(c, module)) {
        return EXIT_SOURCE;
    }
    Program *p = make_program(c, module);
    c->total_bytes = p ? p->total_bytes : 0;
    return p ? files_emit(c, p, source) : c->diag.errors ? EXIT_SOURCE : EXIT_OK;
}

/* Source text -> what the command asks for. */
static int stages(Compile *c, uint32_t source) {
    if (c->opt.command == COMMAND_FMT) {
        return files_format(c, source);
    }
    Ast *ast = parse_file(c, &c->arena, source);
    if (dump_wanted(c, "ast")) {
        ast_dump(ast, c->out);
        return c->diag.errors ? EXIT_SOURCE : EXIT_OK;
    }
    Arena built = {0};
    Module *module = c->diag.errors ? NULL : elaborate(c, &c->arena, &built, ast);
    int code = EXIT_SOURCE;
    if (module && !c->diag.errors) {
        module->name = emit_prefix(c);
        code = module->name ? module_stages(c, module, &built, source) : EXIT_USAGE;
    }
    module_close(module);
    arena_free(&built);
    return code;
}

int pipeline_text(Compile *c, const char *text, size_t length) {
    if (c->opt.dump && !stage_exists(c->opt.dump)) {
        fprintf(c->diag.out, "mdlc: there is no stage '%s'; stages: ast build", c->opt.dump);
        for (size_t i = 0; i < sizeof graph_passes / sizeof *graph_passes; i++) {
            fprintf(c->diag.out, " %s", graph_passes[i].name);
        }
        fprintf(c->diag.out, " lower plan\n");
        return EXIT_USAGE;
    }
    int code = stages(c, diag_add_source(&c->diag, c->opt.input, text, length));
    diag_close(&c->diag);
    return code;
}

int pipeline_run(Compile *c) {
    Text text = {.arena = &c->arena};
    int code = files_read(c, &text);
    return code == EXIT_OK ? pipeline_text(c, text.at, text.len) : code;
}
