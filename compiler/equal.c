/* equal: structural comparison of modules that share nothing.
 * Contract: needs two modules or regions; gives an answer; changes nothing. */
#include "compiler/equal.h"

#include <math.h>
#include <string.h>

static bool text_equal(const char *a, const char *b) {
    return a && b ? str_eq(a, b) : a == b;
}

/* The same bits; a NaN is like any other of its sign. */
static bool number_equal(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) && !signbit(a) == !signbit(b)
                                : memcmp(&a, &b, sizeof a) == 0;
}

static bool slot_same(const Slot *a, const Slot *b) {
    return a && b ? a->kind == b->kind && text_equal(a->name, b->name) : a == b;
}

static bool table_equal(const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!number_equal(a[i], b[i])) {
            return false;
        }
    }
    return true;
}

static bool attr_equal(const Node *a, const Node *b) {
    Attr x = attr_copy(a->attr), y = attr_copy(b->attr);
    if (!slot_same(x.slot, y.slot) || !number_equal(x.value, y.value) || !x.data != !y.data ||
        (x.data && !table_equal(x.data, y.data, type_count(*a->type)))) {
        return false;
    }
    x.slot = y.slot = NULL;
    x.data = y.data = NULL;
    x.value = y.value = 0;
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool node_equal(const Node *a, const Node *b) {
    if (a->op != b->op || a->id != b->id || a->nin != b->nin || !type_equal(*a->type, *b->type) ||
        !attr_equal(a, b) || !text_equal(a->name, b->name) || !a->body != !b->body) {
        return false;
    }
    for (int k = 0; k < a->nin; k++) {
        if (a->in[k]->id != b->in[k]->id) {
            return false;
        }
    }
    return !a->body || region_equal(a->body, b->body);
}

bool region_equal(const Region *a, const Region *b) {
    if (a->node.count != b->node.count || a->param.count != b->param.count ||
        a->out.count != b->out.count) {
        return false;
    }
    for (int i = 0; i < a->node.count; i++) {
        if (!node_equal(a->node.at[i], b->node.at[i])) {
            return false;
        }
    }
    for (int i = 0; i < a->param.count; i++) {
        if (a->param.at[i]->id != b->param.at[i]->id) {
            return false;
        }
    }
    for (int i = 0; i < a->out.count; i++) {
        if (a->out.at[i]->id != b->out.at[i]->id) {
            return false;
        }
    }
    return true;
}

/* --- modules ---------------------------------------------------------------------------------- */

static bool entry_same(const Entry *a, const Entry *b) {
    return a && b ? a->kind == b->kind && text_equal(a->name, b->name) : a == b;
}

static bool slot_equal(const Slot *a, const Slot *b) {
    return slot_same(a, b) && a->role == b->role && text_equal(a->file_name, b->file_name) &&
           text_equal(a->c_name, b->c_name) && text_equal(a->doc, b->doc) &&
           type_equal(a->type, b->type) && a->stacked == b->stacked && a->split == b->split &&
           a->transposed == b->transposed && a->frozen == b->frozen &&
           a->trainable == b->trainable && a->lo == b->lo && a->hi == b->hi &&
           a->optional == b->optional && number_equal(a->initial, b->initial) &&
           text_equal(a->label, b->label) && !a->cursor == !b->cursor &&
           (!a->cursor || slot_same(a->cursor, b->cursor)) && !a->copy_of == !b->copy_of &&
           (!a->copy_of || slot_same(a->copy_of, b->copy_of)) && entry_same(a->entry, b->entry) &&
           a->index == b->index;
}

static bool field_equal(const DataField *a, const DataField *b) {
    return text_equal(a->name, b->name) && a->file == b->file && a->source == b->source &&
           a->first == b->first && a->count == b->count && a->length == b->length &&
           a->offset == b->offset && a->stride == b->stride && type_equal(a->type, b->type) &&
           a->lo == b->lo && a->hi == b->hi && a->raw == b->raw && a->raw_count == b->raw_count &&
           entry_same(a->load, b->load) && a->norm == b->norm && !a->centre == !b->centre &&
           (!a->centre || (slot_same(a->centre, b->centre) && slot_same(a->spread, b->spread) &&
                           slot_same(a->known, b->known)));
}

static bool data_equal(const DataSet *a, const DataSet *b) {
    bool same = text_equal(a->name, b->name) && a->every[PART_HELD] == b->every[PART_HELD] &&
                a->every[PART_TEST] == b->every[PART_TEST] && a->shuffle == b->shuffle &&
                a->stream == b->stream && !a->cursor == !b->cursor &&
                (!a->cursor || slot_same(a->cursor, b->cursor)) && a->file.count == b->file.count &&
                a->field.count == b->field.count;
    for (int i = 0; same && i < a->file.count; i++) {
        const DataFile *x = &a->file.at[i], *y = &b->file.at[i];
        same = text_equal(x->name, y->name) && x->rows == y->rows && x->seed == y->seed;
        for (int part = 0; same && part < PARTS; part++) {
            same = text_equal(x->path[part], y->path[part]);
        }
    }
    for (int i = 0; same && i < a->field.count; i++) {
        same = field_equal(&a->field.at[i], &b->field.at[i]);
    }
    return same;
}

static bool entry_equal(const Entry *a, const Entry *b) {
    bool same = entry_same(a, b) && text_equal(a->doc, b->doc) &&
                a->input.count == b->input.count && a->out.count == b->out.count &&
                a->dataset == b->dataset && a->rows == b->rows && entry_same(a->train, b->train) &&
                slot_same(a->rows_slot, b->rows_slot) && a->steps == b->steps &&
                a->epochs == b->epochs && a->budget == b->budget && a->half == b->half &&
                a->always == b->always && a->rounds == b->rounds &&
                entry_same(a->gradcheck, b->gradcheck) && number_equal(a->tolerance, b->tolerance);
    for (int i = 0; same && i < a->input.count; i++) {
        same = slot_equal(a->input.at[i], b->input.at[i]);
    }
    for (int i = 0; same && i < a->out.count; i++) {
        const EntryOut *x = &a->out.at[i], *y = &b->out.at[i];
        same = text_equal(x->name, y->name) && x->role == y->role && slot_same(x->slot, y->slot);
    }
    return same;
}

const char *module_difference(const Module *a, const Module *b) {
    if (a->slot.count != b->slot.count || a->entry.count != b->entry.count ||
        a->dataset.count != b->dataset.count || a->phase.count != b->phase.count) {
        return "the number of slots, entries, data sets or phases";
    }
    if (a->graph->float_type != b->graph->float_type || !text_equal(a->doc, b->doc)) {
        return "the float type or the comment of the file";
    }
    for (int i = 0; i < a->slot.count; i++) {
        if (!slot_equal(a->slot.at[i], b->slot.at[i])) {
            return a->slot.at[i]->name;
        }
    }
    for (int i = 0; i < a->dataset.count; i++) {
        if (!data_equal(&a->dataset.at[i], &b->dataset.at[i])) {
            return a->dataset.at[i].name;
        }
    }
    for (int i = 0; i < a->phase.count; i++) {
        if (!text_equal(a->phase.at[i].name, b->phase.at[i].name) ||
            a->phase.at[i].phase != b->phase.at[i].phase) {
            return "phases";
        }
    }
    for (int i = 0; i < a->entry.count; i++) {
        const Entry *x = a->entry.at[i], *y = b->entry.at[i];
        if (!entry_equal(x, y) || !region_equal(x->region, y->region)) {
            return x->name;
        }
    }
    return NULL;
}
