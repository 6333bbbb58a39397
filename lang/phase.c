/* phase: `phase a, b then c;`. Names are trains of the file, each once: how far a train is, its own
 * counter says, so it has one place. Trains of one phase take turns and so make as many updates;
 * what their clauses say of that is compared here as far as it is known without the data.
 * Contract: needs the trains elaborated; fills Module.phase, changes no entry. */
#include "lang/phase.h"

#include <string.h>

static const Ast *find_phase(const Elab *e) {
    for (int i = 0; i < e->root->ast->nkid; i++) {
        if (e->root->ast->kid[i]->kind == AST_PHASE) {
            return e->root->ast->kid[i];
        }
    }
    return NULL;
}

bool phase_names(const Elab *e, const char *train) {
    const Ast *phase = find_phase(e);
    for (int i = 0; phase && i < phase->nkid; i++) {
        for (int k = 0; k < phase->kid[i]->nkid; k++) {
            if (str_eq(phase->kid[i]->kid[k]->name, train)) {
                return true;
            }
        }
    }
    return false;
}

static const Entry *find_train(const Elab *e, const char *name) {
    for (int i = 0; i < e->module->entry.count; i++) {
        const Entry *entry = e->module->entry.at[i];
        if (entry->kind == ENTRY_TRAIN && str_eq(entry->name, name)) {
            return entry;
        }
    }
    return NULL;
}

/* One name: is it a train that has no place yet? */
static bool named(Elab *e, const Ast *path) {
    const Item *item = file_find_own(e->root, path->name);
    if (item && item->kind == AST_ENTRY) {
        elab_later(e, path->loc, 264, "an entry in a phase is not supported yet");
        return false;
    }
    if (!item || item->kind != AST_TRAIN) {
        elab_error(e, path->loc, 263, item ? "'%s' is no train" : "unknown train '%s'", path->name);
        Nearest n = nearest_start(path->name);
        for (int i = 0; i < e->root->item.count; i++) {
            if (e->root->item.at[i]->kind == AST_TRAIN) {
                nearest_add(&n, e->root->item.at[i]->name);
            }
        }
        elab_hint_nearest(e, &n);
        return false;
    }
    for (int i = 0; i < e->module->phase.count; i++) {
        if (str_eq(e->module->phase.at[i].name, path->name)) {
            elab_error(e, path->loc, 252, "train '%s' has two places in the phases", path->name);
            return false;
        }
    }
    return true;
}

/* Do two trains that take turns say different numbers of updates? */
static bool lengths_differ(const Entry *a, const Entry *b) {
    if (a->steps >= 0 && b->steps >= 0) {
        return a->steps != b->steps;
    }
    bool same_data = a->dataset == b->dataset && a->rows == b->rows;
    return a->epochs >= 0 && b->epochs >= 0 && same_data && a->epochs != b->epochs;
}

/* The trains that take turns. */
static void turns(Elab *e, const Ast *step) {
    const Entry *said = NULL, *fed = NULL;
    for (int i = 0; i < step->nkid; i++) {
        const Entry *train = find_train(e, step->kid[i]->name);
        if (said && lengths_differ(said, train)) {
            elab_error(e, step->kid[i]->loc, 249,
                       "'%s' and '%s' take turns, but their clauses say different numbers of "
                       "updates",
                       said->name, train->name);
            diag_hint(&e->c->diag, "say it in one of them");
        }
        said = train->steps >= 0 || train->epochs >= 0 ? train : said;
        fed = !fed && train->dataset >= 0 ? train : fed;
    }
    if (!said && fed && e->errors == 0 && !e->c->opt.no_main) {
        elab_warn(e, step->loc, 550,
                  "train '%s' has neither 'steps' nor 'epochs'; a run will need --steps or "
                  "--epochs",
                  fed->name);
    }
}

void phase_check(Elab *e) {
    const Ast *phase = find_phase(e);
    for (int i = 0; phase && i < e->root->ast->nkid; i++) {
        const Ast *other = e->root->ast->kid[i];
        if (other->kind == AST_PHASE && other != phase) {
            elab_error(e, other->loc, 233, "a file has one 'phase'");
            diag_note(&e->c->diag, phase->loc, "the first is here");
        }
    }
    for (int i = 0; phase && i < phase->nkid; i++) {
        const Ast *step = phase->kid[i];
        for (int k = 0; k < step->nkid; k++) {
            if (named(e, step->kid[k])) {
                VEC_PUSH(e->arena, &e->module->phase, ((PhaseTrain){step->kid[k]->name, i}));
            }
        }
        if (e->errors == 0) {
            turns(e, step);
        }
    }
}
