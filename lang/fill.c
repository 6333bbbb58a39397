/* fill: the rows that a train needs before its first update.
 *
 * A train that samples a ring to which it pushes itself could never begin. So it gets an entry of
 * its own, NAME_fill, which is called in its place while rows are missing: it has the inputs and
 * the body of the train, and makes of it what does not depend on sampled rows: pushes, and states
 * that move. Updates, losses, averages and second sets are not part of it. Where pushes depend on
 * what is sampled there is no such entry. Needs the scope of the train, in which its body was
 * elaborated; gives the entry. */
#include "lang/fill.h"

#include "lang/elab.h"
#include "lang/entry.h"
#include "lang/params.h"
#include "lang/scope.h"
#include "lang/stmt.h"
#include "lang/training.h"

/* Is the slot a field of one of the rings whose rows are missing? */
static bool is_missing(const EntryScope *train, const Slot *slot) {
    for (int i = 0; i < train->need.count; i++) {
        if (slot->role == STATE_RING && slot->cursor == train->need.at[i].cursor) {
            return true;
        }
    }
    return false;
}

/* Marks by id the nodes of a region that read missing rows; gives whether any does. */
static bool mark_missing(Elab *e, const EntryScope *train, const Region *region, bool **mark) {
    bool any = false;
    *mark = ARENA_ARRAY(e->scratch, bool, region->node.count);
    for (int i = 0; i < region->node.count; i++) {
        const Node *n = region->node.at[i];
        bool *inner;
        bool missing = (n->op == OP_SLOT && is_missing(train, n->attr->slot)) ||
                       (n->body && mark_missing(e, train, n->body, &inner));
        for (int k = 0; k < n->nin; k++) {
            missing = missing || (*mark)[n->in[k]->id];
        }
        (*mark)[i] = missing;
        any = any || missing;
    }
    return any;
}

bool fill_wanted(Elab *e) {
    const EntryScope *train = e->entry;
    bool *missing, wanted = false;
    mark_missing(e, train, train->entry->region, &missing);
    for (int i = 0; i < train->push.count; i++) {
        if (missing[train->push.at[i].node->id]) {
            return false;
        }
        wanted = wanted || is_missing(train, train->push.at[i].slot);
    }
    return wanted;
}

static bool is_count(const EntryScope *scope, const Slot *slot) {
    for (int i = 0; i < scope->push.count; i++) {
        if (scope->push.at[i].slot->cursor == slot) {
            return true;
        }
    }
    return false;
}

/* Leaves what an entry in front of the updates may write. */
static void keep_writes(Elab *e, const EntryScope *train) {
    EntryScope *scope = e->entry;
    bool *missing;
    mark_missing(e, train, scope->entry->region, &missing);
    int n = 0;
    for (int i = 0; i < scope->write.count; i++) {
        if (is_count(scope, scope->write.at[i].slot)) {
            scope->write.at[n++] = scope->write.at[i];
        }
    }
    scope->write.count = n;
    for (int i = 0; i < scope->state.count; i++) {
        StateValue *s = &scope->state.at[i];
        s->written = s->written && !missing[s->value->id];
    }
    scope->need.count = 0;
}

/* A name that no item has. */
static const char *fill_name(Elab *e, const char *train) {
    const char *name = str_printf(e->arena, "%s_fill", train);
    while (file_find(e->root, name)) {
        name = str_printf(e->arena, "%s_", name);
    }
    return name;
}

void fill_entry(Elab *e, const Ast *ast, Entry *entry, const EntryScope *train) {
    Training t = {.ast = ast};
    EntryScope *scope = entry_open(e, ENTRY_CALL, fill_name(e, ast->name), ast);
    scope->train = true;
    scope->entry->train = entry;
    scope->entry->doc =
        str_printf(e->arena,
                   "What a call of %s pushes and moves, and no update: to be called "
                   "while a ring has too few rows for it.",
                   ast->name);
    train_counters(e, &t, entry);
    scope->in_update = true;
    if (train_read_of(e, &t, ast->kid[1], ast) && entry_rebind(e, ast->kid[3]) &&
        (!ast->kid[2] || entry_data(e, ast->kid[2])) && entry_inputs(e, ast->kid[0])) {
        stmt_block(e, ast->kid[4]);
        scope->entry->steps = scope->entry->epochs = scope->entry->budget = -1;
        keep_writes(e, train);
        entry_writes(e);
    }
    entry_close(e);
}
