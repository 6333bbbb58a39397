/* dumped: see the header. */
#include "dumped.h"

#include "compiler/equal.h"
#include "lang/elab.h"
#include "passes/chunk.h"
#include "passes/factor.h"
#include "passes/fma.h"
#include "passes/grad.h"
#include "passes/halo.h"
#include "passes/hoist.h"
#include "passes/layout.h"
#include "passes/merge.h"
#include "passes/narrow.h"
#include "passes/simplify.h"
#include "passes/sums.h"
#include "passes/unroll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dumped_make_with(Dumped *m, Options options, const char *text, size_t length) {
    memset(m, 0, sizeof *m);
    Compile *c = &m->c;
    size_t n;
    FILE *out = open_memstream(&m->messages, &n);
    diag_open(&c->diag, &c->arena, out);
    c->opt = options;
    m->source = diag_add_source(&c->diag, options.input, str_ndup(&c->arena, text, length), length);
    const Ast *ast = parse_file(c, &c->arena, m->source);
    Module *module = c->diag.errors ? NULL : elaborate(c, &c->arena, &c->arena, ast);
    m->module = c->diag.errors ? NULL : module;
    diag_close(&c->diag);
    fclose(out);
}

void dumped_make(Dumped *m, const char *path, const char *text, size_t length, Elem float_type) {
    Options options = {.input = path, .float_type = float_type, .threads = 1, .budget = -1};
    dumped_make_with(m, options, text, length);
}

void dumped_done(Dumped *m) {
    free(m->messages);
    arena_free(&m->c.arena);
}

Entry *module_entry(const Module *module, EntryKind kind, const char *name) {
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        if (entry->kind == kind && (!name || str_eq(entry->name, name))) {
            return entry;
        }
    }
    return NULL;
}

int region_count(const Region *region, OpCode op) {
    int n = 0;
    for (int i = 0; i < region->node.count; i++) {
        const Node *node = region->node.at[i];
        n += (node->op == op) + (node->body ? region_count(node->body, op) : 0);
    }
    return n;
}

char *dumped_file(Arena *arena, const char *path, size_t *length) {
    FILE *in = fopen(path, "rb");
    Text text = {.arena = arena};
    char chunk[4096];
    text_add(&text, "");
    for (size_t n; in && (n = fread(chunk, 1, sizeof chunk, in)) > 0;) {
        text_addn(&text, chunk, n);
    }
    if (in) {
        fclose(in);
    }
    *length = text.len;
    return in ? text.at : NULL;
}

char *dumped_text(Arena *arena, const Module *module, size_t *length) {
    char *text;
    FILE *out = open_memstream(&text, length);
    module_dump(module, out);
    fclose(out);
    char *copy = str_ndup(arena, text, *length);
    free(text);
    return copy;
}

static void verify(const Module *module, GraphStage stage) {
    for (int i = 0; i < module->entry.count; i++) {
        region_verify(module->entry.at[i]->region, stage);
    }
}

const char *dumped_fault(Arena *arena, const Module *module, const char *stage) {
    size_t n, again;
    char *text = dumped_text(arena, module, &n);
    Dumped m;
    dumped_make(&m, "dump.mdl", text, n, module->graph->float_type);
    const char *fault = NULL;
    if (!m.module) {
        fault = str_printf(arena, "after %s: not read again:\n%s", stage, m.messages);
    } else {
        verify(m.module, STAGE_BUILT);
        const char *difference = module_difference(module, m.module);
        const char *second = dumped_text(arena, m.module, &again);
        if (difference) {
            fault = str_printf(arena, "after %s: '%s' is not the same", stage, difference);
        } else if (!str_eq(text, second)) {
            fault = str_printf(arena, "after %s: the second dump is another text", stage);
        }
    }
    dumped_done(&m);
    return fault;
}

/* --- stages ----------------------------------------------------------------------------------- */

static Region *grad(Graph *g, const Region *region) {
    return pass_grad(g, region, GRAD_SAVE_CALLS);
}

static Region *chunk(Graph *g, const Region *region) {
    return pass_chunk(g, region, chunk_limits);
}

static Region *merge(Graph *g, const Region *region) {
    return pass_merge(g, region, NULL);
}

static const struct {
    const char *name;
    Region *(*run)(Graph *g, const Region *region);
    GraphStage stage;
} passes[] = {{"match", pass_simplify, STAGE_BUILT},
              {"chunk", chunk, STAGE_BUILT},
              {"grad", grad, STAGE_GRAD},
              {"simplify", pass_simplify, STAGE_OPTIMISED},
              {"hoist", pass_hoist, STAGE_OPTIMISED},
              {"clean", pass_simplify, STAGE_OPTIMISED},
              {"factor", pass_factor, STAGE_OPTIMISED},
              {"unroll", pass_unroll, STAGE_OPTIMISED},
              {"merge", merge, STAGE_OPTIMISED},
              {"halo", pass_halo, STAGE_OPTIMISED},
              {"layout", pass_layout, STAGE_OPTIMISED},
              {"narrow", pass_narrow, STAGE_OPTIMISED},
              {"sums", pass_sums, STAGE_OPTIMISED},
              {"fma", pass_fma, STAGE_OPTIMISED}};
_Static_assert(sizeof passes / sizeof *passes == DUMPED_PASSES, "a pass more or less");

void dumped_pass(Module *module, int pass) {
    for (int i = 0; i < module->entry.count; i++) {
        Entry *entry = module->entry.at[i];
        entry->region = passes[pass].run(module->graph, entry->region);
    }
    verify(module, passes[pass].stage);
}

const char *dumped_stages_fault(Arena *arena, Module *module) {
    const char *fault = dumped_fault(arena, module, "build");
    for (int p = 0; p < DUMPED_PASSES && !fault; p++) {
        dumped_pass(module, p);
        fault = dumped_fault(arena, module, passes[p].name);
    }
    return fault;
}
