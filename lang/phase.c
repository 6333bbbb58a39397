/* phase: `phase a, b then c;`. Names are trains and entries of the file, each once: how far one is,
 * its own counter says, so it has one place. Those of one phase take turns and so make as many
 * calls; what the clauses of trains say of that is compared here as far as it is known without the
 * data. Rows of a ring are there before something reads them: a phase that reads a ring stands
 * behind one that pushes to it.
 * Contract: needs the trains and entries elaborated; fills Module.phase, changes no entry. */
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

bool phase_names(const Elab *e, const char *entry) {
    const Ast *phase = find_phase(e);
    for (int i = 0; phase && i < phase->nkid; i++) {
        for (int k = 0; k < phase->kid[i]->nkid; k++) {
            if (str_eq(phase->kid[i]->kid[k]->name, entry)) {
                return true;
            }
        }
    }
    return false;
}

static const Entry *find_entry(const Elab *e, const char *name) {
    for (int i = 0; i < e->module->entry.count; i++) {
        const Entry *entry = e->module->entry.at[i];
        bool called = entry->kind == ENTRY_TRAIN || (entry->kind == ENTRY_CALL && !entry->train);
        if (called && str_eq(entry->name, name)) {
            return entry;
        }
    }
    return NULL;
}

/* One name: is it a train or an entry that has no place yet? */
static bool named(Elab *e, const Ast *path) {
    const Item *item = file_find_own(e->root, path->name);
    if (!item || (item->kind != AST_TRAIN && item->kind != AST_ENTRY)) {
        elab_error(e, path->loc, 263,
                   item ? "'%s' is no train and no entry" : "unknown train or entry '%s'",
                   path->name);
        Nearest n = nearest_start(path->name);
        for (int i = 0; i < e->root->item.count; i++) {
            AstKind kind = e->root->item.at[i]->kind;
            if (kind == AST_TRAIN || kind == AST_ENTRY) {
                nearest_add(&n, e->root->item.at[i]->name);
            }
        }
        elab_hint_nearest(e, &n);
        return false;
    }
    for (int i = 0; i < e->module->phase.count; i++) {
        if (str_eq(e->module->phase.at[i].name, path->name)) {
            elab_error(e, path->loc, 252, "'%s' has two places in the phases", path->name);
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
        const Entry *train = find_entry(e, step->kid[i]->name);
        if (train->kind != ENTRY_TRAIN) {
            continue;
        }
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

/* --- rings ------------------------------------------------------------------------------------ */

static bool pushes_to(const Entry *entry, const Slot *cursor) {
    for (int k = 0; k < entry->out.count; k++) {
        const EntryOut *out = &entry->out.at[k];
        if (out->role == OUT_PUSH && out->slot->cursor == cursor) {
            return true;
        }
    }
    return false;
}

/* Who fills a ring first, as the phases run: its place in them, or how many there are. Without one,
 * `outside` says whether something else of the file pushes to it. */
static int first_push(const Elab *e, const Slot *cursor, bool *outside) {
    const Module *m = e->module;
    int first = m->phase.count;
    *outside = false;
    for (int i = m->phase.count - 1; i >= 0; i--) {
        first = pushes_to(find_entry(e, m->phase.at[i].name), cursor) ? i : first;
    }
    for (int i = 0; i < m->entry.count; i++) {
        const Entry *entry = m->entry.at[i];
        bool called = entry->kind == ENTRY_TRAIN || entry->kind == ENTRY_CALL;
        *outside = *outside || (called && pushes_to(entry, cursor));
    }
    return first;
}

/* Entry number `at` of the phases reads the ring: was there something to fill it? One that it goes
 * `through` must be complete, so the pushes are those of an earlier phase. */
static bool check_ring(Elab *e, int at, const Slot *cursor, bool through, Loc loc) {
    const Module *m = e->module;
    bool outside, ok = true;
    int first = first_push(e, cursor, &outside);
    const char *ring = str_ndup(e->arena, cursor->name, strcspn(cursor->name, "."));
    const char *name = m->phase.at[at].name;
    if (first == m->phase.count && !outside) {
        elab_error(e, loc, 649, "'%s' takes rows of '%s', to which nothing pushes", name, ring);
        ok = false;
    } else if (first < m->phase.count &&
               (m->phase.at[first].phase > m->phase.at[at].phase ||
                (through && m->phase.at[first].phase == m->phase.at[at].phase))) {
        const PhaseEntry *maker = &m->phase.at[first];
        elab_error(e, loc, 650, "'%s' takes rows of '%s' before '%s' has pushed them", name, ring,
                   maker->name);
        diag_hint(&e->c->diag, "phase ... %s then %s;", maker->name, name);
        ok = false;
    }
    return ok;
}

static void check_rings(Elab *e) {
    const Module *m = e->module;
    for (int i = 0; i < m->phase.count; i++) {
        const Entry *entry = find_entry(e, m->phase.at[i].name);
        const Slot *fed = entry->dataset >= 0 ? m->dataset.at[entry->dataset].cursor : NULL;
        for (int k = 0; k < entry->out.count; k++) {
            const EntryOut *out = &entry->out.at[k];
            if (out->role == OUT_NEED && !check_ring(e, i, out->slot, out->slot == fed, out->loc)) {
                break;
            }
        }
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
                VEC_PUSH(e->arena, &e->module->phase, ((PhaseEntry){step->kid[k]->name, i}));
            }
        }
        if (e->errors == 0) {
            turns(e, step);
        }
    }
    if (e->errors == 0) {
        check_rings(e);
    }
}
