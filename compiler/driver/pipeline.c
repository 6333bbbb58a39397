/* pipeline: every stage in order, a verifier behind each arrow; files.c reads and writes. */
#include "compiler/driver/pipeline.h"

#include "compiler/driver/files.h"
#include "compiler/driver/recompute.h"
#include "compiler/driver/run.h"
#include "compiler/driver/stages.h"
#include "compiler/graph.h"
#include "compiler/program.h"
#include "emit/module.h"
#include "emit/prefix.h"
#include "lang/elab.h"
#include "passes/check.h"
#include "passes/late.h"
#include "passes/lower/lower.h"
#include "passes/plan/plan.h"
#include "passes/schedule/schedule.h"
#include "passes/shared.h"

#include <string.h>

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
    if (!c->opt.target || !c->opt.target->device) {
        return true;
    }
    for (int i = 0; i < module->entry.count; i++) {
        const Entry *entry = module->entry.at[i];
        const Node *loop = entry->kind != ENTRY_TEST ? find_while(entry->region) : NULL;
        if (loop && loop->attr->go == 0) {
            diag_error(&c->diag, loop->loc, 614,
                       "--target=cuda has no loops whose last segment is shorter than the others");
            diag_hint(&c->diag, "@checkpoint(n) with an n that divides the iterations");
            return false;
        }
        if (loop) {
            diag_error(&c->diag, loop->loc, 613,
                       "--target=cuda has no loops that end by a condition yet");
            diag_hint(&c->diag, "'scan' runs a fixed number of iterations");
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
        pass_late(&c->arena, module);
    }
    Program *p = pass_lower(c, &c->arena, module); /* the nodes are gone now */
    if (c->diag.errors) {
        return NULL;
    }
    if (dump_wanted(c, "lower")) {
        program_dump(p, c->out);
        return NULL;
    }
    if (!c->opt.nan) { /* which looks at all that is stored */
        kernels_unread(p);
    }
    kernels_many(p, c->opt.split > 0);
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
    pass_shared(module);
    const int middle = stages_behind("orders"); /* what follows is chosen for a budget */
    if (!stages_run(c, module, built, 0, middle, false)) {
        return EXIT_OK;
    }
    if (c->opt.command == COMMAND_COMPILE || c->opt.command == COMMAND_REPORT) {
        choose_kept(c, module, middle, budget_of(c, module));
    }
    if (!stages_run(c, module, built, middle, STAGES_END, false) ||
        c->opt.command == COMMAND_CHECK) {
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
        fprintf(c->diag.out, "mdlc: there is no stage '%s'; ", c->opt.dump);
        stages_print(c->diag.out);
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
