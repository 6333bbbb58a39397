/* feed: rows of a ring as a data set. What is staged of a row is its number in the ring: the train
 * looks its fields up itself, in its own state, so they are neither copied nor given from outside,
 * and have the ranges of the ring. The data set is one of rows that are made, one field, the
 * number; how many there are the cursor of the ring says when they are wanted.
 * Contract: needs the ring declared, adds a data set and its load entry to the module. */
#include "lang/feed.h"

#include "lang/entry.h"
#include "lang/ring.h"

static bool feeds(const Elab *e, const Item *ring) {
    for (int i = 0; i < e->root->ast->nkid; i++) {
        const Ast *ast = e->root->ast->kid[i];
        bool called = ast->kind == AST_TRAIN || ast->kind == AST_ENTRY;
        if (called && ast->kid[2] && file_find(e->root, ast->kid[2]->name) == ring) {
            return true;
        }
    }
    return false;
}

void feed_item(Elab *e, Item *item) {
    enum { NUMBERS = 2 }; /* of a made row: the seed of its file, and which row it is */
    const int64_t numbers = NUMBERS;
    if (!feeds(e, item) || !ring_declared(e, item)) {
        return;
    }
    int64_t capacity = ring_capacity(item);
    DataField f = {.name = item->name,
                   .source = FIELD_MADE,
                   .type = type_scalar(TY_I32),
                   .hi = capacity,
                   .raw = TY_I64,
                   .raw_count = NUMBERS,
                   .loc = item->loc};
    f.load = entry_open(e, ENTRY_LOAD, item->name, item->ast)->entry;
    Slot *slot = entry_input_slot(e, "row", type_make(TY_I64, 1, &numbers), item->loc);
    Node *row = node_index_axis(e->g, node_slot(e->g, slot), 0, NUMBERS - 1);
    entry_out(e, OUT_RESULT, item->name, NULL, node_cast(e->g, row, TY_I32), item->loc);
    entry_close(e);
    DataSet set = {.name = item->name,
                   .shuffle = true,
                   .cursor = ring_cursor(item),
                   .loc = item->loc};
    VEC_PUSH(e->arena, &set.file,
             ((DataFile){.name = item->name, .rows = capacity, .loc = item->loc}));
    VEC_PUSH(e->arena, &set.field, f);
    VEC_PUSH(e->arena, &e->module->dataset, set);
}

int feed_set(const Elab *e, const Item *item) {
    for (int i = 0; i < e->module->dataset.count; i++) {
        if (str_eq(e->module->dataset.at[i].name, item->name)) {
            return i;
        }
    }
    return -1;
}
