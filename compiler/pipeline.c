/* pipeline: every stage in order, one screen; a verifier behind each arrow. */
#include "compiler/pipeline.h"

#include "compiler/graph.h"
#include "compiler/program.h"
#include "compiler/run.h"
#include "emit/module.h"
#include "emit/report.h"
#include "lang/elab.h"
#include "lang/fmt.h"
#include "passes/check.h"
#include "passes/grad.h"
#include "passes/hoist.h"
#include "passes/inplace.h"
#include "passes/lower.h"
#include "passes/narrow.h"
#include "passes/order.h"
#include "passes/plan.h"
#include "passes/simplify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int file_error(Compile *c, const char *what, const char *path) {
    const char *quote = str_eq(path, "-") ? "" : "'", *name = *quote ? path : "standard output";
    fprintf(c->diag.out, "mdlc: cannot %s %s%s%s: %s\n", what, quote, name, quote, strerror(errno));
    return EXIT_FILE;
}

/* Reads the model file, or as much of it as shows that it is too large. */
static int read_text(Compile *c, Text *text) {
    FILE *in = fopen(c->opt.input, "rb");
    if (!in) {
        return file_error(c, "open", c->opt.input);
    }
    char block[65536];
    size_t n;
    text_add(text, "");
    while (text->len <= SOURCE_LARGEST && (n = fread(block, 1, sizeof block, in)) > 0) {
        text_addn(text, block, n);
    }
    bool bad = ferror(in) != 0;
    int code = bad ? file_error(c, "read", c->opt.input) : EXIT_OK;
    fclose(in);
    return code;
}

static int write_text(Compile *c, const char *path, const Text *text) {
    FILE *file = str_eq(path, "-") ? NULL : fopen(path, "wb"), *out = file ? file : c->out;
    if (!file && !str_eq(path, "-")) {
        return file_error(c, "write", path);
    }
    bool bad = fwrite(text->at, 1, text->len, out) != text->len;
    bad |= (file ? fclose(file) : fflush(out)) != 0;
    return bad ? file_error(c, "write", path) : EXIT_OK;
}

static bool dump_wanted(const Compile *c, const char *stage) {
    return c->opt.dump && str_eq(c->opt.dump, stage);
}

typedef Region *(*GraphPass)(Graph *g, const Region *region);

static Region *grad(Graph *g, const Region *region) {
    return pass_grad(g, region, GRAD_SAVE_CALLS);
}

/* The graph passes in order. A name may be given to --dump. */
static const struct {
    const char *name;
    GraphPass run;
    GraphStage stage;
} graph_passes[] = {
    {"match", pass_simplify, STAGE_BUILT}, /* before differentiation: composites and contractions */
    {"grad", grad, STAGE_GRAD},
    {"simplify", pass_simplify, STAGE_OPTIMISED},
    {"hoist", pass_hoist, STAGE_OPTIMISED},
    {"clean", pass_simplify, STAGE_OPTIMISED},
    {"narrow", pass_narrow, STAGE_OPTIMISED},
};
static const char *const other_stages[] = {"ast", "build", "lower", "plan"};

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
    for (size_t p = 0; p < sizeof graph_passes / sizeof *graph_passes; p++) {
        for (int i = 0; i < module->entry.count; i++) {
            Entry *entry = module->entry.at[i];
            module->graph->arena = &entry->nodes[p % 2];
            entry->nodes[p % 2].chunk_bytes = NODES_CHUNK; /* there may be many small entries */
            entry->region = graph_passes[p].run(module->graph, entry->region);
            arena_free(&entry->nodes[(p + 1) % 2]);
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

/* Graph -> Program, planned and proved. */
static Program *make_program(Compile *c, Module *module) {
    Program *p = pass_lower(c, &c->arena, module); /* the nodes are gone now */
    if (c->diag.errors) {
        return NULL;
    }
    if (dump_wanted(c, "lower")) {
        program_dump(p, c->out);
        return NULL;
    }
    p->band_bytes = c->opt.canary ? MD_ALIGN : 0;
    for (int i = 0; i < p->entry.count; i++) {
        pass_order(p, p->entry.at[i]);
        pass_inplace(p, p->entry.at[i]);
        pass_plan(p, p->entry.at[i]);
    }
    plan_regions(p, !c->opt.no_main);
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

/* Program -> text. */
static int emit(Compile *c, const Program *p, uint32_t source) {
    const Source *text = &c->diag.sources.at[source];
    if (c->opt.stats) {
        emit_stats(c->out, p);
    }
    if (c->opt.report != REPORT_NONE || c->opt.command == COMMAND_REPORT) {
        Text report = {.arena = &c->arena};
        emit_report(&report, c, p, text, c->opt.report == REPORT_JSON);
        int code = write_text(c, "-", &report);
        if (code != EXIT_OK) {
            return code;
        }
    }
    int code = budget_check(c, p);
    if (code != EXIT_OK || c->opt.command == COMMAND_REPORT) {
        return code;
    }
    if (c->opt.output) {
        Arena arena = {0};
        Text out = {.arena = &arena};
        emit_module(&out, c, p, text);
        code = write_text(c, c->opt.output, &out);
        arena_free(&arena);
    }
    if (code == EXIT_OK && c->opt.header) {
        Text out = {.arena = &c->arena};
        emit_header(&out, c, p, text);
        code = write_text(c, c->opt.header, &out);
    }
    if (code == EXIT_OK && c->opt.depend) {
        Text out = {.arena = &c->arena};
        emit_depend(&out, c, p);
        const char *path = c->opt.depfile  ? c->opt.depfile
                           : c->opt.output ? str_printf(&c->arena, "%s.d", c->opt.output)
                                           : "-";
        code = write_text(c, path, &out);
    }
    return code;
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
    if (!has_entry(c, module, source)) {
        return EXIT_SOURCE;
    }
    Program *p = make_program(c, module);
    return p ? emit(c, p, source) : c->diag.errors ? EXIT_SOURCE : EXIT_OK;
}

/* Source text -> what the command asks for. */
static int stages(Compile *c, uint32_t source) {
    if (c->opt.command == COMMAND_FMT) {
        Text out = {.arena = &c->arena};
        const char *text = fmt_source(c, &c->arena, source);
        if (text) {
            text_add(&out, text);
        }
        return c->diag.errors ? EXIT_SOURCE
                              : write_text(c, c->opt.output ? c->opt.output : "-", &out);
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
    int code = read_text(c, &text);
    return code == EXIT_OK ? pipeline_text(c, text.at, text.len) : code;
}
