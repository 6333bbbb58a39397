/* unused: a model, op or layer with a concrete signature is elaborated alone, in both modes, and
 * what it made is dropped. Bodies that can be inlined only at a call, with the shapes of its
 * arguments, and optimizers have their names looked up: a name that is bound nowhere in the item,
 * in no file and not in the prelude is wrong whatever the call. Contract: needs all entries done;
 * adds errors and warnings only. */
#include "lang/unused.h"

#include "lang/call.h"
#include "lang/dims.h"
#include "lang/expr.h"
#include "lang/prelude.h"

/* --- names ----------------------------------------------------------------------------------- */

static void bind(Elab *e, const Ast *ast) {
    if (ast->name && !scope_find_here(e->scope, ast->name)) {
        scope_add(e->scratch, e->scope, ast->name, ast->loc, BIND_VALUE, &value_poison);
    }
}

/* `i` or `i < n` on a left side, in the brackets of a fold, or as the count of a loop. */
static void bind_index(Elab *e, const Ast *ast) {
    const Ast *name = ast->kind == AST_BINARY ? ast->kid[0] : ast;
    if (name->kind == AST_NAME) {
        bind(e, name);
    }
}

static void bind_left(Elab *e, const Ast *ast) {
    if (ast->kind == AST_NAME) {
        bind(e, ast);
    } else if (ast->kind == AST_INDEXED) {
        bind_left(e, ast->kid[0]);
        for (int i = 0; i < ast->kid[1]->nkid; i++) {
            bind_index(e, ast->kid[1]->kid[i]);
        }
    } else { /* a mistake with a message of its own once the body is called */
        for (int i = 0; i < ast->nkid; i++) {
            bind_index(e, ast->kid[i]);
        }
    }
}

/* All names that the tree binds anywhere, whatever their scope: none of them is called unknown. */
static void bind_names(Elab *e, const Ast *ast) {
    if (!ast) {
        return;
    }
    switch (ast->kind) {
    case AST_PARAM_DECL:
        bind(e, ast);
        for (int i = 0; i < ast->kid[0]->nkid; i++) {
            const Ast *axis = ast->kid[0]->kid[i];
            if (axis->kind == AST_NAME && !(axis->name[0] >= 'A' && axis->name[0] <= 'Z')) {
                bind(e, axis);
            }
        }
        break;
    case AST_PARAM:
    case AST_STATE:
    case AST_DEF:
    case AST_ODE:
    case AST_CARRY_VAR: bind(e, ast); break;
    case AST_LHS:
        for (int i = 0; i < ast->nkid; i++) {
            bind_left(e, ast->kid[i]);
        }
        break;
    case AST_EMIT: bind_left(e, ast->kid[0]); break;
    case AST_FOLD:
        for (int i = 0; i < ast->kid[0]->nkid; i++) {
            bind_index(e, ast->kid[0]->kid[i]);
        }
        break;
    case AST_REPEAT:
    case AST_SCAN: bind_index(e, ast->kid[0]); break;
    default: break;
    }
    if (ast->kind == AST_DEF && ast->kid[0]) {
        for (int i = 0; i < ast->kid[0]->nkid; i++) {
            bind_index(e, ast->kid[0]->kid[i]);
        }
    }
    for (int i = 0; i < ast->nkid; i++) {
        bind_names(e, ast->kid[i]);
    }
}

static bool known(const Elab *e, const char *name) {
    return scope_find_here(e->scope, name) || file_find(e->scope->file, name);
}

static void look_up(Elab *e, const Ast *ast) {
    if (!ast) {
        return;
    }
    int first = 0, end = ast->nkid;
    switch (ast->kind) {
    case AST_NAME:
        if (!known(e, ast->name) && !prelude_has(ast->name) && !prelude_has_constant(ast->name)) {
            elab_unknown_name(e, ast->name, ast->loc);
        }
        return;
    case AST_CALL:
        if (ast->kid[0]->kind == AST_NAME) {
            if (!known(e, ast->kid[0]->name) && !prelude_has(ast->kid[0]->name)) {
                call_unknown(e, ast->kid[0]);
            }
            first = 1;
        }
        break;
    case AST_PARAM:
        if ((ast->flags & AST_DRAW) && ast->kid[1]->kind == AST_CALL) {
            look_up(e, ast->kid[1]->kid[1]); /* the distribution is no op */
        }
        end = ast->flags & AST_DRAW ? 1 : ast->nkid;
        break;
    case AST_INDEXED: end = 2; break; /* the border has words of its own */
    case AST_WHEN: end = 1; break;    /* a branch that is not taken may say anything */
    default: break;
    }
    for (int i = first; i < end; i++) {
        look_up(e, ast->kid[i]);
    }
}

static void check_names(Elab *e, Item *item) {
    Frame frame = {.item = item, .call = item->loc};
    e->frame = &frame;
    e->scope = scope_new(e->scratch, NULL, item->file);
    bind_names(e, item->ast);
    for (int i = 0; i < item->ast->nkid; i++) {
        look_up(e, item->ast->kid[i]);
    }
    e->scope = NULL;
    e->frame = NULL;
}

/* --- whole bodies ----------------------------------------------------------------------------- */

static void check_body(Elab *e, Item *item) {
    int nparam = e->param.count, nstate = e->state.count, ninitial = e->initial.count;
    int nlayer = e->module->layer.count, nowner = e->module->owner.count;
    Entry *init = e->init;
    Entry scratch = *init;
    scratch.region = region_new(e->g, NULL);
    e->init = &scratch;
    bool fine = true;
    for (int train = 0; train < 2 && fine; train++) {
        fine = call_alone(e, item, item->loc, train, true);
    }
    e->init = init;
    e->param.count = nparam;
    e->state.count = nstate;
    names_cut(&e->params, nparam);
    names_cut(&e->states, nstate);
    e->initial.count = ninitial;
    e->module->layer.count = nlayer;
    e->module->owner.count = nowner;
    names_cut(&e->owners, nowner);
}

static bool is_read(const Elab *e, const Item *dataset) {
    for (int i = 0; i < e->module->entry.count; i++) {
        int number = e->module->entry.at[i]->dataset;
        if (number >= 0 && str_eq(e->module->dataset.at[number].name, dataset->name)) {
            return true;
        }
    }
    return false;
}

void unused_check(Elab *e) {
    VEC(Item *) model = {0}; /* listed first: one may call another */
    for (int i = 0; i < e->root->item.count; i++) {
        Item *item = e->root->item.at[i];
        if (item->kind == AST_MODEL && !item->used && !item->called) {
            VEC_PUSH(e->arena, &model, item);
        }
    }
    for (int i = 0; i < model.count; i++) {
        Item *item = model.at[i];
        if (call_is_concrete(item)) {
            check_body(e, item);
        } else {
            check_names(e, item);
        }
        if (e->errors == 0) {
            elab_warn(e, item->loc, 262,
                      "model '%s' is used by no train or entry, so it has no parameters",
                      item->name);
        }
    }
    for (int i = 0; i < e->root->item.count; i++) {
        Item *item = e->root->item.at[i];
        bool body = item->kind == AST_OP || item->kind == AST_LAYER || item->kind == AST_OPTIMIZER;
        if (item->kind == AST_DATASET && !is_read(e, item) && e->errors == 0) {
            elab_warn(e, item->loc, 595, "data set '%s' is read by no train or entry", item->name);
        }
        if (body && !item->called && item->kind != AST_OPTIMIZER && call_is_concrete(item)) {
            check_body(e, item);
        } else if (body && !item->called) {
            check_names(e, item);
        }
    }
}
