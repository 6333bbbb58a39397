/* elab: items in order: data sets, then trains and entries as they stand in the file (each
 * elaborated as a whole; behind them those that wait for a model to be called), then tests; last
 * the slots are put into their order. Contract: needs a parsed file; gives regions that hold at
 * STAGE_BUILT; after an error the module is not to be used. */
#include "lang/elab.h"

#include "lang/call.h"
#include "lang/constant.h"
#include "lang/context.h"
#include "lang/data.h"
#include "lang/dump_read.h"
#include "lang/entry.h"
#include "lang/evaluation.h"
#include "lang/feed.h"
#include "lang/model_copy.h"
#include "lang/modules.h"
#include "lang/naming.h"
#include "lang/params.h"
#include "lang/phase.h"
#include "lang/precision.h"
#include "lang/ring.h"
#include "lang/stmt.h"
#include "lang/test.h"
#include "lang/train.h"
#include "lang/unused.h"

#include <string.h>

/* -D NAME=VALUE: the value takes the place of the written one. */
static void overrides(Elab *e) {
    for (int i = 0; i < e->c->opt.noverride; i++) {
        const Override *o = &e->c->opt.override[i];
        const char *name = str_printf(e->arena, "<-D %s>", o->name);
        uint32_t source = diag_add_source(&e->c->diag, name, o->value, strlen(o->value));
        Loc all = {source, 0, (uint32_t)strlen(o->value), 0};
        int errors = e->c->diag.errors;
        Ast *value = parse_expr(e->c, e->arena, source);
        if (!value || e->c->diag.errors != errors) {
            continue;
        }
        Item *item = file_find_own(e->root, o->name);
        bool scalar =
            item && (item->kind == AST_DIMS || item->kind == AST_CONSTS) && !item->ast->kid[0];
        if (!scalar) {
            elab_error(e, all, 265,
                       item ? "-D sets a dim or a scalar const; '%s' is none"
                            : "there is no dim or const '%s' for -D",
                       o->name);
            Nearest n = nearest_start(o->name);
            Text names = {.arena = e->arena};
            int count = 0;
            for (int k = 0; !item && k < e->root->item.count; k++) {
                const Item *other = e->root->item.at[k];
                if (other->kind == AST_DIMS || other->kind == AST_CONSTS) {
                    nearest_add(&n, other->name);
                    text_printf(&names, count++ ? ", %s" : "%s", other->name);
                }
            }
            if (n.best || count == 0) {
                elab_hint_nearest(e, &n);
            } else {
                diag_hint(&e->c->diag, "the file has %s", names.at);
            }
            continue;
        }
        Ast *def = ARENA_NEW(e->arena, Ast);
        *def = *item->ast;
        def->kid = ARENA_ARRAY(e->arena, Ast *, 2);
        def->kid[1] = value;
        item->ast = def;
    }
}

/* Dims and constants that nothing uses are checked too. */
static void check_constants(Elab *e) {
    for (int i = 0; i < e->root->item.count; i++) {
        Item *item = e->root->item.at[i];
        if (item->kind == AST_DIMS || item->kind == AST_CONSTS) {
            constant_value(e, item, item->loc);
        }
    }
}

static bool has_call(const Ast *ast, const char *name) {
    bool has = ast && ast->kind == AST_CALL && ast->kid[0]->kind == AST_NAME &&
               str_eq(ast->kid[0]->name, name);
    for (int i = 0; ast && !has && i < ast->nkid; i++) {
        has = has_call(ast->kid[i], name);
    }
    return has;
}

/* Does an entry name a model that is known once it is called, parts or a second set of it, and call
 * it nowhere? Then it waits for those that do, wherever they stand. */
static bool waits(Elab *e, const Ast *entry, const Ast *ast) {
    bool does = false;
    if (ast && ast->kind == AST_NAME) {
        const Item *item = file_find(e->root, ast->name);
        const Item *model = item && item->kind == AST_MODEL ? item : model_copy_of(e, item);
        does = model && !model->used && !call_is_concrete(model) && !has_call(entry, model->name);
    }
    for (int i = 0; ast && !does && i < ast->nkid; i++) {
        does = waits(e, entry, ast->kid[i]);
    }
    return does;
}

/* An entry that waits, and where it will stand among those of the module. */
typedef struct {
    const Ast *ast;
    int place;
} Waiting;

/* Entries from `first` on, which were made late, go to their place. */
static void move_up(Module *module, int first, int place) {
    for (int i = first; i < module->entry.count; i++, place++) {
        Entry *entry = module->entry.at[i];
        memmove(&module->entry.at[place + 1], &module->entry.at[place],
                (size_t)(i - place) * sizeof entry);
        module->entry.at[place] = entry;
    }
}

static void elaborate_items(Elab *e) {
    Region *before = graph_enter(e->g, e->init->region); /* of values where numbers belong */
    for (int i = 0; i < e->root->ast->nkid; i++) {
        const Ast *ast = e->root->ast->kid[i];
        stmt_attributes(e, ast);
        naming_refuse(e, ast);
        Item *item = ast->name ? file_find_own(e->root, ast->name) : NULL;
        if (ast->kind == AST_DATASET && item && item->ast == ast) {
            data_set(e, item);
        } else if (ast->kind == AST_RING && item && item->ast == ast) {
            ring_item(e, item);
            feed_item(e, item);
        } else if (ast->kind == AST_STATE && !ast->kid[0] && !model_copy_is(e, item)) {
            params_untyped_state(e, ast);
        }
    }
    graph_leave(e->g, before);
    VEC(Waiting) later = {0};
    for (int i = 0; i < e->root->ast->nkid; i++) {
        const Ast *ast = e->root->ast->kid[i];
        const Item *item = ast->name ? file_find_own(e->root, ast->name) : NULL;
        if (!item || item->ast != ast) {
            continue;
        }
        if (ast->kind == AST_TRAIN) {
            train_entry(e, ast);
        } else if (ast->kind == AST_ENTRY && waits(e, ast, ast)) {
            Waiting waiting = {ast, e->module->entry.count};
            VEC_PUSH(e->scratch, &later, waiting);
        } else if (ast->kind == AST_ENTRY) {
            entry_item(e, ast);
        }
    }
    for (int i = later.count - 1; i >= 0; i--) {
        const int count = e->module->entry.count;
        entry_item(e, later.at[i].ast);
        move_up(e->module, count, later.at[i].place);
    }
    phase_check(e);
    for (int i = 0; i < e->root->ast->nkid && e->errors == 0; i++) {
        if (e->root->ast->kid[i]->kind == AST_TEST) {
            test_item(e, e->root->ast->kid[i]);
        }
    }
}

static const char *stem_of(Elab *e, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot > name ? str_ndup(e->arena, name, (size_t)(dot - name)) : name;
}

static Module *elaborate_file(Compile *c, Arena *arena, Arena *nodes, Arena *scratch,
                              const Ast *ast) {
    Elab *e = ARENA_NEW(arena, Elab);
    e->c = c;
    e->arena = arena;
    e->scratch = e->lasting = scratch;
    e->g = graph_new(arena, precision_of_build(c, ast));
    e->g->arena = nodes;
    e->module = ARENA_NEW(arena, Module);
    e->module->arena = arena;
    e->module->graph = e->g;
    e->module->doc = ast->doc;
    e->module->name = c->opt.prefix  ? c->opt.prefix
                      : c->opt.input ? stem_of(e, c->opt.input)
                                     : "net";
    const Ast *core = dump_core(ast);
    if (core) {
        dump_module(c, e->module, ast, core);
        return e->module;
    }
    e->stamp = 1;
    e->root = modules_root(e, ast, c->opt.input);
    for (int i = 0; i < e->root->item.count; i++) {
        e->nmodel += e->root->item.at[i]->kind == AST_MODEL;
    }
    overrides(e);
    precision_start(e);
    params_start(e);
    VEC_PUSH(arena, &e->module->entry, e->init);
    check_constants(e);
    if (e->errors > 0 || c->diag.errors > 0) {
        return e->module;
    }
    elaborate_items(e);
    unused_check(e);
    if (c->diag.errors == 0) {
        params_finish(e);
        naming_finish(e);
    }
    return e->module;
}

Module *elaborate(Compile *c, Arena *arena, Arena *nodes, const Ast *ast) {
    Arena scratch = {0};
    Module *module = elaborate_file(c, arena, nodes, &scratch, ast);
    arena_free(&scratch);
    c->opt.float_type = module->graph->float_type; /* what the source says is decided now */
    return module;
}
