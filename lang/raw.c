/* raw: the items of a dumped graph. Entries are made first, because slots and data sets name them;
 * then what they are, and last their regions. What elaboration would have promised about slots and
 * entries is checked here, so that later stages may rely on it.
 * Contract: needs the tree of a file with `use core;`; gives the module that was dumped, or one
 * message. */
#include "lang/raw.h"

#include "compiler/graph_text.h"
#include "lang/raw_check.h"
#include "lang/raw_region.h"

#include <string.h>

const Ast *raw_core(const Ast *file) {
    for (int i = 0; i < file->nkid; i++) {
        if (file->kid[i]->kind == AST_USE && str_eq(file->kid[i]->name, "core")) {
            return file->kid[i];
        }
    }
    return NULL;
}

/* The arguments of `@graph(...)` before an item; none if there is no such attribute. */
static bool attributes(Raw *r, const Ast *item, RawArgs *args) {
    *args = raw_args(r, NULL, item->loc);
    for (int i = 0; i < item->nattr; i++) {
        const Ast *attr = item->attr[i];
        if (!str_eq(attr->name, "graph") || i > 0) {
            return raw_error(r, attr->loc, 860, "one '@graph(...)' may stand here");
        }
        *args = raw_args(r, attr->nkid > 0 ? attr->kid[0] : NULL, attr->loc);
    }
    return true;
}

/* --- items that are only noted ---------------------------------------------------------------- */

/* `phase = [["d", "g"], ["fit"]]` */
static bool phases(Raw *r, const Ast *list) {
    for (int i = 0; i < list->nkid; i++) {
        const Ast *turn = list->kid[i];
        if (turn->kind != AST_LIST) {
            return raw_error(r, turn->loc, 904, "a phase is a list of the trains that take turns");
        }
        for (int k = 0; k < turn->nkid; k++) {
            PhaseTrain train = {NULL, i};
            if (!raw_name(r, turn->kid[k], false, &train.name)) {
                return false;
            }
            VEC_PUSH(r->arena, &r->module->phase, train);
        }
    }
    return true;
}

static bool head(Raw *r, const Ast *item) {
    RawArgs args;
    r->module->doc = item->doc;
    if (!attributes(r, item, &args)) {
        return false;
    }
    const Ast *elem = raw_named(&args, "float"), *phase = raw_named(&args, "phase");
    Elem written = TY_F32;
    if (elem && !raw_elem(r, elem->name, elem->loc, &written)) {
        return false;
    }
    bool real = written == TY_F32 || written == TY_F64;
    if (real && r->c->opt.float_type == TY_ERROR) {
        r->g->float_type = written;
    } else if (written != r->g->float_type) {
        raw_error(r, item->loc, 861, "this graph computes in %s, the build in %s",
                  elem_name(written), elem_name(r->g->float_type));
        diag_hint(&r->c->diag, real ? "compile with --precision=%s" : "'%s' is for values alone",
                  elem_name(written));
        return false;
    }
    return (!phase || phases(r, phase)) && raw_done(&args);
}

/* `const t0 = [1.0, 2.0];` */
static bool tables(Raw *r, const Ast *item) {
    for (int i = 0; i < item->nkid; i++) {
        const Ast *def = item->kid[i], *list = def->kid[1];
        if (def->kid[0] || list->kind != AST_LIST) {
            return raw_error(r, def->loc, 862, "a table is written: const t0 = [1.0, 2.0];");
        }
        double *data = ARENA_ARRAY(r->arena, double, list->nkid);
        for (int k = 0; k < list->nkid; k++) {
            if (!raw_number(r, list->kid[k], &data[k])) {
                return false;
            }
        }
        for (int k = 0; k < r->table.count; k++) {
            if (str_eq(r->table.at[k].name, def->name)) {
                return raw_error(r, def->loc, 863, "'%s' is declared twice", def->name);
            }
        }
        RawTable table = {def->name, data, list->nkid};
        VEC_PUSH(r->arena, &r->table, table);
    }
    return true;
}

static bool note_body(Raw *r, const Ast *item) {
    for (int i = 0; i < r->body.count; i++) {
        if (str_eq(r->body.at[i].ast->name, item->name)) {
            return raw_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    if (item->kid[1] || item->kid[3]) {
        return raw_error(r, item->loc, 864, "a body has parameters and lines alone");
    }
    RawBody body = {item, false};
    VEC_PUSH(r->arena, &r->body, body);
    return true;
}

static bool note_entry(Raw *r, const Ast *item) {
    for (int i = 0; i < r->entry.count; i++) {
        if (str_eq(r->entry.at[i]->name, item->name)) {
            return raw_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    for (int i = 1; i <= 3; i++) {
        if (item->kid[i]) {
            return raw_error(r, item->kid[i]->loc, 865, "this may not stand in a dumped graph");
        }
    }
    Entry *entry = ARENA_NEW(r->arena, Entry);
    entry->region = region_new(r->g, NULL);
    entry->dataset = -1;
    entry->steps = entry->epochs = entry->budget = -1;
    entry->loc = entry->budget_loc = item->loc;
    entry->doc = item->doc;
    VEC_PUSH(r->arena, &r->module->entry, entry);
    VEC_PUSH(r->arena, &r->entry, item);
    return true;
}

static bool note_data(Raw *r, const Ast *item) {
    for (int i = 0; i < r->data.count; i++) {
        if (str_eq(r->data.at[i]->name, item->name)) {
            return raw_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    DataSet set = {.name = item->name, .loc = item->loc};
    VEC_PUSH(r->arena, &r->module->dataset, set);
    VEC_PUSH(r->arena, &r->data, item);
    return true;
}

static bool note_items(Raw *r, const Ast *file) {
    const Ast *core = r->core;
    for (int i = 0; i < file->nkid; i++) {
        const Ast *item = file->kid[i];
        bool ok = true;
        switch (item->kind) {
        case AST_USE:
            ok = item == core ? head(r, item)
                              : raw_error(r, item->loc, 866, "a dumped graph uses 'core' alone");
            break;
        case AST_CONSTS: ok = tables(r, item); break;
        case AST_OP: ok = note_body(r, item); break;
        case AST_ENTRY: ok = note_entry(r, item); break;
        case AST_DATASET: ok = note_data(r, item); break;
        case AST_STATE: break;
        default: ok = raw_error(r, item->loc, 865, "this may not stand in a dumped graph"); break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- slots ------------------------------------------------------------------------------------ */

/* `name = e3`. */
static bool named_entry(RawArgs *args, const char *name, Entry **out) {
    Raw *r = args->r;
    const Ast *expr = raw_named(args, name);
    for (int i = 0; expr && i < r->entry.count; i++) {
        if (expr->kind == AST_NAME && str_eq(r->entry.at[i]->name, expr->name)) {
            *out = r->module->entry.at[i];
            return true;
        }
    }
    return !expr || raw_error(r, expr->loc, 867, "the name of an entry is needed here");
}

/* `of = "net.w"` of a copy, `cursor = "ring.count"`: a slot of that type further up. */
static bool upper_slot(RawArgs *args, const char *name, Type type, Slot **out) {
    const char *path = NULL;
    const Module *module = args->r->module;
    if (!raw_named_name(args, name, true, &path)) {
        return false;
    }
    for (int i = 0; path && i < module->slot.count; i++) {
        Slot *from = module->slot.at[i];
        *out = str_eq(from->name, path) && type_equal(from->type, type) ? from : *out;
    }
    return !path || *out ||
           raw_error(args->r, args->loc, 819, "there is no slot \"%s\" of this type above", path);
}

/* `{}` of the name, loops and axes go together. */
static bool layout(RawArgs *args, const Slot *slot) {
    int holes = 0;
    for (const char *at = slot->file_name; (at = strstr(at, "{}")) != NULL; at += 2) {
        holes++;
    }
    bool good = (slot->split == 0 || (slot->split == slot->stacked && slot->split == holes)) &&
                (!slot->transposed || slot->type.rank == slot->stacked + 2);
    return good || raw_error(args->r, args->loc, 818,
                             "'split' is the number of '{}' in \"file\" and of loops; what is "
                             "'transposed' has two other axes");
}

static bool slot_fields(RawArgs *args, Slot *slot) {
    Raw *r = args->r;
    const Ast *name = raw_next(args), *initial;
    int64_t stacked = 0, split = 0;
    bool ok = name ? raw_name(r, name, true, &slot->name)
                   : raw_error(r, args->loc, 868, "a slot has a name");
    slot->file_name = slot->name;
    ok = ok && raw_named_text(args, "file", &slot->file_name) &&
         raw_named_int(args, "stacked", 0, slot->type.rank, &stacked) &&
         raw_named_int(args, "split", 0, stacked, &split) &&
         raw_named_flag(args, "transposed", &slot->transposed) &&
         raw_named_flag(args, "fixed", &slot->frozen) &&
         raw_named_flag(args, "trainable", &slot->trainable) &&
         upper_slot(args, "of", slot->type, &slot->copy_of) &&
         upper_slot(args, "cursor", type_scalar(TY_I64), &slot->cursor) &&
         raw_named_name(args, "label", false, &slot->label) &&
         named_entry(args, "entry", &slot->entry);
    slot->stacked = (int)stacked;
    slot->split = (int)split;
    initial = ok ? raw_named(args, "initial") : NULL;
    return ok && layout(args, slot) && (!initial || raw_number(r, initial, &slot->initial)) &&
           raw_done(args);
}

static bool slot_item(Raw *r, const Ast *item) {
    const char *word;
    RawArgs args;
    int role;
    Slot *slot = ARENA_NEW(r->arena, Slot);
    slot->doc = item->doc;
    slot->loc = item->loc;
    slot->index = r->module->slot.count;
    if (!item->kid[0] || item->flags & AST_DRAW || item->nattr > 0) {
        return raw_error(r, item->loc, 869,
                         "a slot is written: state s0: f32[4] = core.parameter(\"net.w\");");
    }
    if (!raw_type(r, item->kid[0], &slot->type) ||
        !raw_range(r, item->kid[1], &slot->lo, &slot->hi) ||
        !raw_call(r, item->kid[2], &word, &args) ||
        !raw_one_of(r, item->kid[2]->loc, word, role_words, &role) || !slot_fields(&args, slot)) {
        return false;
    }
    slot->role = (StateRole)role;
    slot->kind = slot->role == STATE_NONE ? SLOT_PARAM : SLOT_STATE;
    VEC_PUSH(r->arena, &r->module->slot, slot);
    return raw_check_slot(r, slot);
}

/* --- data sets -------------------------------------------------------------------------------- */

static bool data_file(Raw *r, const Ast *line, DataSet *set) {
    const char *word;
    RawArgs args;
    DataFile file = {.loc = line->loc};
    if (!raw_call(r, line->kid[0], &word, &args)) {
        return false;
    }
    const Ast *name = raw_next(&args), *path = raw_next(&args), *held = raw_next(&args);
    const Ast *test = raw_named(&args, "test");
    if (!raw_named_int(&args, "rows", 1, INT64_MAX, &file.rows) ||
        !raw_named_int(&args, "seed", 0, INT64_MAX, &file.seed)) {
        return false;
    }
    if (!str_eq(word, "file") || !name || !path == !file.rows) {
        return raw_error(r, line->loc, 870, "a file is written: core.file(\"f\", \"path\");");
    }
    if (!raw_name(r, name, false, &file.name) ||
        (path && !raw_string(r, path, &file.path[PART_TRAIN])) ||
        (held && !raw_string(r, held, &file.path[PART_HELD])) ||
        (test && !raw_string(r, test, &file.path[PART_TEST])) || !raw_done(&args)) {
        return false;
    }
    VEC_PUSH(r->arena, &set->file, file);
    return true;
}

static bool data_field(Raw *r, const Ast *line, DataSet *set) {
    const char *word;
    RawArgs args;
    int source;
    int64_t file = -1;
    DataField f = {.name = line->name, .loc = line->loc};
    if (!raw_type(r, line->kid[0], &f.type) || !raw_range(r, line->kid[1], &f.lo, &f.hi) ||
        !raw_call(r, line->kid[2], &word, &args) ||
        !raw_one_of(r, line->kid[2]->loc, word, source_words, &source)) {
        return false;
    }
    const Ast *number = raw_next(&args), *raw;
    if (!number) {
        return raw_error(r, line->loc, 871, "a field names its file by number");
    }
    if (!raw_int(r, number, 0, set->file.count - 1, &file)) {
        return false;
    }
    f.source = (FieldSource)source;
    f.file = (int)file;
    for (int i = 0; i < ndata_numbers; i++) {
        int64_t x = 0;
        if (!raw_named_int(&args, data_numbers[i].name, 0, INT32_MAX, &x)) {
            return false;
        }
        memcpy((char *)&f + data_numbers[i].at, &x, sizeof x);
    }
    raw = raw_named(&args, "raw");
    if (!raw || !raw_elem(r, raw->name, raw->loc, &f.raw)) {
        return raw ? false : raw_error(r, line->loc, 872, "a field has 'raw', an element type");
    }
    if (!named_entry(&args, "load", &f.load) || !upper_slot(&args, "centre", f.type, &f.centre) ||
        !upper_slot(&args, "spread", f.type, &f.spread) ||
        !upper_slot(&args, "known", type_scalar(TY_I64), &f.known) || !raw_done(&args)) {
        return false;
    }
    VEC_PUSH(r->arena, &set->field, f);
    return true;
}

static bool data_item(Raw *r, const Ast *item, DataSet *set) {
    RawArgs args;
    const Ast *block = item->kid[0];
    if (!attributes(r, item, &args) || !raw_named_flag(&args, "shuffle", &set->shuffle) ||
        !raw_named_int(&args, "holdout", 2, INT64_MAX, &set->every[PART_HELD]) ||
        !raw_named_int(&args, "test", 2, INT64_MAX, &set->every[PART_TEST]) || !raw_done(&args)) {
        return false;
    }
    for (int i = 0; i < block->nkid; i++) {
        const Ast *line = block->kid[i];
        bool ok;
        if (line->kind == AST_EXPR_STMT && line->nkid == 1) {
            ok = data_file(r, line, set);
        } else if (line->kind == AST_DATA_FIELD) {
            ok = data_field(r, line, set);
        } else {
            ok = raw_error(r, line->loc, 873, "a data set holds core.file(...) and fields");
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

static bool input(Raw *r, const Ast *param, Entry *entry) {
    Slot *slot = ARENA_NEW(r->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = slot->file_name = slot->c_name = param->name;
    slot->doc = param->doc;
    slot->entry = entry;
    slot->loc = param->loc;
    slot->index = entry->input.count;
    for (int i = 0; i < entry->input.count; i++) {
        if (str_eq(entry->input.at[i]->name, slot->name)) {
            return raw_error(r, param->loc, 863, "'%s' is declared twice", slot->name);
        }
    }
    if (param->kid[2]) {
        return raw_error(r, param->kid[2]->loc, 874, "an input has no default value");
    }
    VEC_PUSH(r->arena, &entry->input, slot);
    return raw_type(r, param->kid[0], &slot->type) &&
           raw_range(r, param->kid[1], &slot->lo, &slot->hi);
}

static bool entry_data(RawArgs *args, Entry *entry) {
    Raw *r = args->r;
    const Ast *expr = raw_named(args, "data");
    for (int i = 0; expr && i < r->data.count; i++) {
        if (expr->kind == AST_NAME && str_eq(r->data.at[i]->name, expr->name)) {
            entry->dataset = i;
            return true;
        }
    }
    return !expr || raw_error(r, expr->loc, 875, "the name of a data set is needed here");
}

static bool entry_head(Raw *r, const Ast *item, Entry *entry) {
    RawArgs args;
    int kind;
    const Ast *params = item->kid[0];
    if (!attributes(r, item, &args)) {
        return false;
    }
    const Ast *word = raw_next(&args), *name = raw_next(&args), *in_use, *tolerance;
    if (!word || !name) {
        return raw_error(r, item->loc, 876,
                         "before an entry stands its kind and name: @graph(train, \"fit\")");
    }
    if (!raw_word(r, word, entry_words, &kind)) {
        return false;
    }
    entry->kind = (EntryKind)kind;
    bool ok = entry->kind == ENTRY_TEST ? raw_string(r, name, &entry->name)
                                        : raw_name(r, name, false, &entry->name);
    for (int i = 0; ok && params && i < params->nkid; i++) {
        ok = input(r, params->kid[i], entry);
    }
    ok = ok && entry_data(&args, entry) &&
         raw_named_int(&args, "rows", 1, INT32_MAX, &entry->rows) &&
         raw_named_int(&args, "accumulate", 2, INT32_MAX, &entry->accumulate) &&
         raw_named_int(&args, "steps", 1, INT64_MAX, &entry->steps) &&
         raw_named_int(&args, "epochs", 1, INT64_MAX, &entry->epochs) &&
         raw_named_int(&args, "budget", 1, INT64_MAX, &entry->budget) &&
         named_entry(&args, "train", &entry->train) &&
         named_entry(&args, "gradcheck", &entry->gradcheck);
    in_use = ok ? raw_named(&args, "in_use") : NULL;
    tolerance = ok ? raw_named(&args, "tolerance") : NULL;
    r->at = entry;
    if (in_use) {
        entry->rows_slot = raw_slot(r, in_use);
        ok = entry->rows_slot != NULL;
    }
    return ok && (!tolerance || raw_number(r, tolerance, &entry->tolerance)) && raw_done(&args);
}

/* `core.loss(n40, name = "loss")`. */
static bool result(Raw *r, const RawNames *names, const Ast *expr, Entry *entry) {
    const char *word;
    RawArgs args;
    int role;
    EntryOut out = {.loc = expr->loc};
    if (!raw_call(r, expr, &word, &args) || !raw_one_of(r, expr->loc, word, out_words, &role)) {
        return false;
    }
    const Ast *value = raw_next(&args), *slot;
    Node *node = value ? raw_value(r, names, value) : NULL;
    if (!node) {
        return value ? false : raw_error(r, expr->loc, 877, "a result has a value");
    }
    out.role = (OutRole)role;
    if (!raw_named_name(&args, "name", entry->kind == ENTRY_TEST, &out.name)) {
        return false;
    }
    slot = raw_named(&args, "slot");
    out.slot = slot ? raw_slot(r, slot) : NULL;
    if ((slot && !out.slot) || !raw_done(&args)) {
        return false;
    }
    region_result(entry->region, node);
    VEC_PUSH(r->arena, &entry->out, out);
    return true;
}

static bool entry_body(Raw *r, const Ast *item, Entry *entry) {
    RawNames names;
    if (!raw_region(r, entry, item->kid[4], &names)) {
        return false;
    }
    for (int i = 0; names.result && i < names.result->nkid; i++) {
        if (!result(r, &names, names.result->kid[i], entry)) {
            return false;
        }
    }
    return true;
}

static bool read_items(Raw *r, const Ast *file) {
    Module *module = r->module;
    bool ok = note_items(r, file);
    if (ok && r->entry.count == 0) {
        ok = raw_error(r, r->core->loc, 899, "the first entry, and no other, is of kind init");
    }
    for (int i = 0; ok && i < file->nkid; i++) {
        ok = file->kid[i]->kind != AST_STATE || slot_item(r, file->kid[i]);
    }
    for (int i = 0; ok && i < r->entry.count; i++) {
        ok = entry_head(r, r->entry.at[i], module->entry.at[i]);
    }
    for (int i = 0; ok && i < r->data.count; i++) {
        ok = data_item(r, r->data.at[i], &module->dataset.at[i]);
    }
    for (int i = 0; ok && i < r->entry.count; i++) {
        ok = entry_body(r, r->entry.at[i], module->entry.at[i]);
    }
    for (int i = 0; ok && i < r->entry.count; i++) {
        ok = raw_check_entry(r, i);
    }
    for (int i = 0; ok && i < r->data.count; i++) {
        ok = raw_check_data(r, &module->dataset.at[i]);
    }
    ok = ok && raw_check_phases(r);
    for (int i = 0; ok && i < r->body.count; i++) {
        ok = r->body.at[i].used ||
             raw_error(r, r->body.at[i].ast->loc, 878, "no core.custom has this body");
    }
    return ok;
}

void raw_module(Compile *c, Module *module, const Ast *file, const Ast *core) {
    Raw r = {.c = c, .arena = module->arena, .module = module, .g = module->graph, .core = core};
    if (c->opt.noverride > 0) {
        raw_error(&r, core->loc, 879, "-D changes no dumped graph: its sizes are settled");
        return;
    }
    read_items(&r, file);
}
