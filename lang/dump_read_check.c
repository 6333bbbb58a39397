/* dump_read_check: dumped graphs are text, so what they say may be wrong. The shape rules look
 * after nodes; here is what a module promises beyond them.
 * Contract: needs slots, data sets and entries as written; gives one message where one would
 * mislead a later stage; changes nothing. */
#include "lang/dump_read_check.h"

bool dump_check_slot(DumpRead *r, const Slot *slot) {
    for (int i = 0; i < slot->index; i++) {
        if (str_eq(r->module->slot.at[i]->name, slot->name)) {
            return dump_error(r, slot->loc, 880, "slot \"%s\" is declared twice", slot->name);
        }
    }
    if (slot->kind == SLOT_PARAM && !elem_is_float(slot->type.elem)) {
        return dump_error(r, slot->loc, 881, "a parameter has float elements");
    }
    if (slot->role == STATE_COUNTER && (slot->type.rank > 0 || !slot->label)) {
        return dump_error(r, slot->loc, 882, "a counter is a scalar with a label");
    }
    return true;
}

/* --- data ------------------------------------------------------------------------------------- */

static bool load_fits(const DataField *f) {
    const Entry *load = f->load;
    if (!load) {
        return f->raw_count == type_count(f->type);
    }
    Type made = *load->region->out.at[0]->type;
    made.elem = load->out.at[0].half != TY_ERROR ? load->out.at[0].half : made.elem;
    return load->kind == ENTRY_LOAD && load->input.at[0]->type.elem == f->raw &&
           type_count(load->input.at[0]->type) == f->raw_count &&
           type_equal(made, f->type);
}

bool dump_check_data(DumpRead *r, const DataSet *set) {
    if (set->file.count == 0 || set->field.count == 0) {
        return dump_error(r, set->loc, 883, "data set '%s' has no file or no field", set->name);
    }
    if (set->cursor && (set->cursor->role != STATE_RING || set->cursor->cursor ||
                        set->file.count != 1 || set->file.at[0].rows == 0)) {
        return dump_error(r, set->loc, 907,
                          "data set '%s' has rows of a ring: the count of one, and one file",
                          set->name);
    }
    for (int i = 0; i < set->field.count; i++) {
        const DataField *f = &set->field.at[i];
        const DataFile *file = &set->file.at[f->file];
        bool sized = file->rows > 0               ? f->source == FIELD_MADE && f->load
                     : f->source == FIELD_MADE    ? false
                     : f->source == FIELD_COLUMNS ? f->count == f->raw_count
                     : f->source == FIELD_WINDOW  ? f->length == f->raw_count && f->stride > 0
                                                  : true;
        bool constants = f->norm == NORM_NONE ? !f->centre && !f->spread && !f->known
                                              : f->norm <= NORM_MINMAX && f->centre && f->spread &&
                                                    f->known && elem_is_float(f->type.elem);
        if (f->raw_count < 1 || !sized || !load_fits(f) || !constants) {
            return dump_error(r, f->loc, 884, "the sizes of field '%s' do not agree", f->name);
        }
    }
    return true;
}

bool dump_check_phases(DumpRead *r) {
    const Module *m = r->module;
    for (int i = 0; i < m->phase.count; i++) {
        int named = 0, before = 0;
        for (int k = 0; k < m->entry.count; k++) {
            const Entry *entry = m->entry.at[k];
            bool called =
                entry->kind == ENTRY_TRAIN || (entry->kind == ENTRY_CALL && !entry->train);
            named += called && str_eq(entry->name, m->phase.at[i].name);
        }
        for (int k = 0; k < i; k++) {
            before += str_eq(m->phase.at[k].name, m->phase.at[i].name);
        }
        if (named != 1 || before > 0) {
            return dump_error(r, r->core->loc, 905,
                              "a phase names trains and entries, each once; found \"%s\"",
                              m->phase.at[i].name);
        }
    }
    return true;
}

/* `t` with an axis of n in front. */
static Type in_front(int64_t n, Type t) {
    Type r = {.elem = t.elem, .rank = t.rank + 1, .dim = {n}};
    for (int i = 0; i < t.rank && i + 1 < MD_RANK; i++) {
        r.dim[i + 1] = t.dim[i];
    }
    return r;
}

/* The inputs that the data set fills have its types, with the rows in front, in parts if the train
 * accumulates. */
static bool check_rows(DumpRead *r, const Entry *entry) {
    const DataSet *set = &r->module->dataset.at[entry->dataset];
    for (int i = 0; i < entry->input.count; i++) {
        const Slot *slot = entry->input.at[i];
        for (int k = 0; k < set->field.count; k++) {
            if (!str_eq(set->field.at[k].name, slot->name)) {
                continue;
            }
            int64_t parts = entry->accumulate;
            Type rows = in_front(parts ? entry->rows / parts : entry->rows, set->field.at[k].type);
            rows = parts ? in_front(parts, rows) : rows;
            if (!type_equal(rows, slot->type)) {
                return dump_error(r, slot->loc, 885, "input '%s' does not fit its data set",
                                  slot->name);
            }
        }
    }
    return true;
}

/* --- results ---------------------------------------------------------------------------------- */

/* What a kind of entry may give: a bit for each role. */
static const unsigned roles[] = {
    [ENTRY_INIT] = 1u << OUT_WRITE,
    [ENTRY_TRAIN] = 1u << OUT_LOSS | 1u << OUT_METRIC | 1u << OUT_GRAD_NORM | 1u << OUT_RESULT |
                    1u << OUT_WRITE | 1u << OUT_PUSH | 1u << OUT_NEED | 1u << OUT_LIMIT |
                    1u << OUT_SCALED_NORM,
    [ENTRY_EVAL] = 1u << OUT_SUM | 1u << OUT_LIMIT,
    [ENTRY_EVAL_END] = 1u << OUT_LOSS | 1u << OUT_METRIC,
    [ENTRY_CALL] =
        1u << OUT_RESULT | 1u << OUT_WRITE | 1u << OUT_PUSH | 1u << OUT_NEED | 1u << OUT_LIMIT,
    [ENTRY_LOAD] = 1u << OUT_RESULT,
    [ENTRY_TEST] = 1u << OUT_LOSS | 1u << OUT_RESULT | 1u << OUT_EXPECT | 1u << OUT_LIMIT,
};

static bool check_out(DumpRead *r, const Entry *entry, int k) {
    const EntryOut *out = &entry->out.at[k];
    Type type = *entry->region->out.at[k]->type;
    bool number = type.rank == 0 && elem_is_float(type.elem);
    if (!(roles[entry->kind] >> out->role & 1)) {
        return dump_error(r, out->loc, 886, "this kind of entry has no such result");
    }
    bool stored = !out_is_result(out->role), limit = out->role == OUT_LIMIT;
    if (!out->name != stored || (stored && !out->slot != limit)) {
        return dump_error(r, out->loc, 887, "a result has a name, a write has a slot");
    }
    Type want = out->slot ? slot_value_type(out->slot) : type;
    if (out->role == OUT_PUSH && out->slot->cursor && type.rank > 0 && want.dim[0] >= type.dim[0]) {
        want.dim[0] = type.dim[0];
    }
    bool need = out->role == OUT_NEED && entry->region->out.at[k]->op != OP_CONST;
    if (out->slot && (out->slot->kind == SLOT_INPUT || !type_equal(want, type) || need ||
                      (out->role == OUT_PUSH && !out->slot->cursor))) {
        return dump_error(r, out->loc, 888, "slot \"%s\" cannot take this value", out->slot->name);
    }
    number = number || (out->role == OUT_SUM && elem_is_float(type.elem));
    if (type.elem == TY_TUPLE ||
        (!number && (out->role == OUT_LOSS || out->role == OUT_METRIC ||
                     out->role == OUT_GRAD_NORM || out->role == OUT_SCALED_NORM ||
                     out->role == OUT_SUM))) {
        return dump_error(r, out->loc, 889, "this result is a float scalar");
    }
    if ((out->role == OUT_EXPECT || limit) && (type.rank > 0 || type.elem != TY_BOOL)) {
        return dump_error(r, out->loc, 890, "an expectation is a bool scalar");
    }
    bool may = out->role == OUT_RESULT && type.elem == TY_F32 &&
               (entry->kind == ENTRY_CALL || entry->kind == ENTRY_LOAD);
    if (out->half != TY_ERROR && !may) {
        return dump_error(r, out->loc, 910, "results of calls that are f32 are stored in 16 bits");
    }
    for (int i = 0; i < k; i++) {
        const EntryOut *other = &entry->out.at[i];
        if (limit ? false : stored ? other->role == out->role && other->slot == out->slot
                   : other->name && out->role != OUT_EXPECT && str_eq(other->name, out->name)) {
            return dump_error(r, out->loc, 891, "an entry gives each result once");
        }
    }
    return true;
}

/* --- kinds of entries ------------------------------------------------------------------------- */

/* Every slot starts with a value; the seed is the caller's. */
static bool check_init(DumpRead *r, const Entry *entry) {
    for (int i = 0; i < r->module->slot.count; i++) {
        const Slot *slot = r->module->slot.at[i];
        bool written = slot->role == STATE_COUNTER && str_eq(slot->label, "seed");
        for (int k = 0; !written && k < entry->out.count; k++) {
            written = entry->out.at[k].slot == slot;
        }
        if (!written) {
            return dump_error(r, slot->loc, 892, "the init entry does not write \"%s\"",
                              slot->name);
        }
    }
    return entry->input.count == 0 || dump_error(r, entry->loc, 893, "init takes no inputs");
}

/* The input of a train that is `slot` in its evaluation, which takes no parts. */
static const Slot *input_like(const Entry *entry, const Slot *slot) {
    for (int i = 0; i < entry->input.count; i++) {
        const Slot *other = entry->input.at[i];
        bool same = type_equal(other->type, slot->type);
        bool parts = entry->accumulate && slot->type.rank < MD_RANK &&
                     type_equal(other->type, in_front(entry->accumulate, slot->type));
        if (str_eq(other->name, slot->name) && (same || parts)) {
            return other;
        }
    }
    return NULL;
}

/* It takes the rows of its train, and the entry behind it what it sums. */
static bool check_eval(DumpRead *r, const Entry *entry, const Entry *end) {
    if (!entry->train || entry->train->kind != ENTRY_TRAIN || !entry->rows_slot ||
        entry->rows_slot->type.rank > 0 || entry->rows_slot->type.elem != TY_I32) {
        return dump_error(r, entry->loc, 894,
                          "an eval entry has 'train' and 'in_use', an i32 input");
    }
    for (int i = 0; i < entry->input.count; i++) {
        const Slot *slot = entry->input.at[i];
        if (slot != entry->rows_slot && !input_like(entry->train, slot)) {
            return dump_error(r, slot->loc, 895, "'%s' has no input '%s' of this type",
                              entry->train->name, slot->name);
        }
    }
    int sums = 0; /* they stand in front of what loops say of their maxima */
    while (sums < entry->out.count && entry->out.at[sums].role == OUT_SUM) {
        sums++;
    }
    for (int i = sums; i < entry->out.count; i++) {
        end = entry->out.at[i].role == OUT_SUM ? NULL : end;
    }
    bool pair = end && end->kind == ENTRY_EVAL_END && end->train == entry->train &&
                end->input.count == sums;
    for (int i = 0; pair && i < sums; i++) {
        Type sum = *entry->region->out.at[i]->type;
        sum.elem = sum.rank > 0 ? TY_F64 : sum.elem; /* as a host keeps it */
        pair = str_eq(end->input.at[i]->name, entry->out.at[i].name) &&
               type_equal(end->input.at[i]->type, sum);
    }
    return pair || dump_error(r, entry->loc, 896,
                              "behind an eval entry stands its eval_end, which takes its sums");
}

/* The rows in use of an entry that goes through a data set. */
static bool check_call(DumpRead *r, const Entry *entry) {
    const Slot *rows = entry->rows_slot;
    bool fits = !rows || (rows->kind == SLOT_INPUT && rows->entry == entry && entry->dataset >= 0 &&
                          rows->type.rank == 0 && rows->type.elem == TY_I32 && rows->lo >= 1 &&
                          rows->hi == entry->rows + 1);
    return fits || dump_error(r, entry->loc, 906,
                              "'in_use' of an entry is an i32 input in 1..n+1 beside n rows");
}

static bool check_gradcheck(DumpRead *r, const Entry *entry) {
    bool ok = entry->gradcheck->kind == ENTRY_TRAIN && entry->out.count > 0 &&
              entry->out.at[0].role == OUT_LOSS;
    for (int k = 1; ok && k < entry->out.count; k++) {
        ok = entry->out.at[k].slot && entry->out.at[k].slot->kind == SLOT_PARAM;
    }
    return ok ||
           dump_error(r, entry->loc, 897,
                      "a gradient check gives the loss of a train, then gradients with slots");
}

static bool check_test(DumpRead *r, const Entry *entry) {
    for (int k = 0; !entry->gradcheck && k < entry->out.count; k++) {
        if (entry->out.at[k].role != OUT_EXPECT && entry->out.at[k].role != OUT_LIMIT) {
            return dump_error(r, entry->out.at[k].loc, 898, "a test gives expectations");
        }
    }
    return !entry->gradcheck || check_gradcheck(r, entry);
}

bool dump_check_entry(DumpRead *r, int number) {
    const Module *module = r->module;
    const Entry *entry = module->entry.at[number];
    const Entry *behind = number + 1 < module->entry.count ? module->entry.at[number + 1] : NULL;
    const Entry *before = number > 0 ? module->entry.at[number - 1] : NULL;
    if ((entry->kind == ENTRY_INIT) != (number == 0)) {
        return dump_error(r, entry->loc, 899, "the first entry, and no other, is of kind init");
    }
    for (int k = 0; k < entry->out.count; k++) {
        if (!check_out(r, entry, k)) {
            return false;
        }
    }
    if (entry->accumulate && (entry->kind != ENTRY_TRAIN || entry->rows % entry->accumulate != 0)) {
        return dump_error(r, entry->loc, 855,
                          "'accumulate' belongs to a train, and its rows are equal parts");
    }
    if (entry->dataset >= 0 && (entry->rows < 1 || !check_rows(r, entry))) {
        return entry->rows > 0 ? false : dump_error(r, entry->loc, 900, "'data' needs 'rows'");
    }
    switch (entry->kind) {
    case ENTRY_INIT: return check_init(r, entry);
    case ENTRY_TRAIN:
        return (entry->out.count > 0 && entry->out.at[0].role == OUT_LOSS) ||
               dump_error(r, entry->loc, 901, "the first result of a train is its loss");
    case ENTRY_EVAL: return check_eval(r, entry, behind);
    case ENTRY_EVAL_END:
        return (before && before->kind == ENTRY_EVAL) ||
               dump_error(r, entry->loc, 902, "before an eval_end stands its eval");
    case ENTRY_CALL: return check_call(r, entry);
    case ENTRY_LOAD:
        return (entry->input.count == 1 && entry->out.count == 1) ||
               dump_error(r, entry->loc, 903, "a load entry makes one value of one input");
    case ENTRY_TEST: return check_test(r, entry);
    }
    return true;
}
