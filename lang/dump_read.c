/* dump_read: the items of a dumped graph. Entries are made first, because slots and data sets name
 * them; then what they are, and last their regions. What elaboration would have promised about
 * slots and entries is checked here, so that later stages may rely on it.
 * Contract: needs the tree of a file with `use core;`; gives the module that was dumped, or one
 * message. */
#include "lang/dump_read.h"

#include "compiler/graph_text.h"
#include "lang/dump_read_check.h"
#include "lang/dump_read_region.h"

#include <string.h>

const Ast *dump_core(const Ast *file) {
    for (int i = 0; i < file->nkid; i++) {
        if (file->kid[i]->kind == AST_USE && str_eq(file->kid[i]->name, "core")) {
            return file->kid[i];
        }
    }
    return NULL;
}

/* The arguments of `@graph(...)` before an item; none if there is no such attribute. */
static bool attributes(DumpRead *r, const Ast *item, DumpArgs *args) {
    *args = dump_args(r, NULL, item->loc);
    for (int i = 0; i < item->nattr; i++) {
        const Ast *attr = item->attr[i];
        if (!str_eq(attr->name, "graph") || i > 0) {
            return dump_error(r, attr->loc, 860, "one '@graph(...)' may stand here");
        }
        *args = dump_args(r, attr->nkid > 0 ? attr->kid[0] : NULL, attr->loc);
    }
    return true;
}

/* --- items that are only noted ---------------------------------------------------------------- */

/* `phase = [["d", "g"], ["fit"]]` */
static bool phases(DumpRead *r, const Ast *list) {
    for (int i = 0; i < list->nkid; i++) {
        const Ast *turn = list->kid[i];
        if (turn->kind != AST_LIST) {
            return dump_error(r, turn->loc, 904, "a phase is a list of the trains that take turns");
        }
        for (int k = 0; k < turn->nkid; k++) {
            PhaseEntry train = {NULL, i};
            if (!dump_name(r, turn->kid[k], false, &train.name)) {
                return false;
            }
            VEC_PUSH(r->arena, &r->module->phase, train);
        }
    }
    return true;
}

static bool head(DumpRead *r, const Ast *item) {
    DumpArgs args;
    r->module->doc = item->doc;
    if (!attributes(r, item, &args)) {
        return false;
    }
    const Ast *elem = dump_named(&args, "float"), *phase = dump_named(&args, "phase");
    Elem written = TY_F32;
    if (elem && !dump_elem(r, elem->name, elem->loc, &written)) {
        return false;
    }
    bool real = written == TY_F32 || written == TY_F64;
    if (real && r->c->opt.float_type == TY_ERROR) {
        r->g->float_type = written;
    } else if (written != r->g->float_type) {
        dump_error(r, item->loc, 861, "this graph computes in %s, the build in %s",
                   elem_name(written), elem_name(r->g->float_type));
        diag_hint(&r->c->diag, real ? "compile with --precision=%s" : "'%s' is for values alone",
                  elem_name(written));
        return false;
    }
    return (!phase || phases(r, phase)) && dump_done(&args);
}

/* `const t0 = [1.0, 2.0];` */
static bool tables(DumpRead *r, const Ast *item) {
    for (int i = 0; i < item->nkid; i++) {
        const Ast *def = item->kid[i], *list = def->kid[1];
        if (def->kid[0] || list->kind != AST_LIST) {
            return dump_error(r, def->loc, 862, "a table is written: const t0 = [1.0, 2.0];");
        }
        double *data = ARENA_ARRAY(r->arena, double, list->nkid);
        for (int k = 0; k < list->nkid; k++) {
            if (!dump_number(r, list->kid[k], &data[k])) {
                return false;
            }
        }
        for (int k = 0; k < r->table.count; k++) {
            if (str_eq(r->table.at[k].name, def->name)) {
                return dump_error(r, def->loc, 863, "'%s' is declared twice", def->name);
            }
        }
        RawTable table = {def->name, data, list->nkid};
        VEC_PUSH(r->arena, &r->table, table);
    }
    return true;
}

static bool note_body(DumpRead *r, const Ast *item) {
    for (int i = 0; i < r->body.count; i++) {
        if (str_eq(r->body.at[i].ast->name, item->name)) {
            return dump_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    if (item->kid[1] || item->kid[3]) {
        return dump_error(r, item->loc, 864, "a body has parameters and lines alone");
    }
    RawBody body = {item, false};
    VEC_PUSH(r->arena, &r->body, body);
    return true;
}

static bool note_entry(DumpRead *r, const Ast *item) {
    for (int i = 0; i < r->entry.count; i++) {
        if (str_eq(r->entry.at[i]->name, item->name)) {
            return dump_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    for (int i = 1; i <= 3; i++) {
        if (item->kid[i]) {
            return dump_error(r, item->kid[i]->loc, 865, "this may not stand in a dumped graph");
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

static bool note_data(DumpRead *r, const Ast *item) {
    for (int i = 0; i < r->data.count; i++) {
        if (str_eq(r->data.at[i]->name, item->name)) {
            return dump_error(r, item->loc, 863, "'%s' is declared twice", item->name);
        }
    }
    DataSet set = {.name = item->name, .loc = item->loc};
    VEC_PUSH(r->arena, &r->module->dataset, set);
    VEC_PUSH(r->arena, &r->data, item);
    return true;
}

static bool note_items(DumpRead *r, const Ast *file) {
    const Ast *core = r->core;
    for (int i = 0; i < file->nkid; i++) {
        const Ast *item = file->kid[i];
        bool ok = true;
        switch (item->kind) {
        case AST_USE:
            ok = item == core ? head(r, item)
                              : dump_error(r, item->loc, 866, "a dumped graph uses 'core' alone");
            break;
        case AST_CONSTS: ok = tables(r, item); break;
        case AST_OP: ok = note_body(r, item); break;
        case AST_ENTRY: ok = note_entry(r, item); break;
        case AST_DATASET: ok = note_data(r, item); break;
        case AST_STATE: break;
        default: ok = dump_error(r, item->loc, 865, "this may not stand in a dumped graph"); break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- slots ------------------------------------------------------------------------------------ */

/* `name = e3`. */
static bool named_entry(DumpArgs *args, const char *name, Entry **out) {
    DumpRead *r = args->r;
    const Ast *expr = dump_named(args, name);
    for (int i = 0; expr && i < r->entry.count; i++) {
        if (expr->kind == AST_NAME && str_eq(r->entry.at[i]->name, expr->name)) {
            *out = r->module->entry.at[i];
            return true;
        }
    }
    return !expr || dump_error(r, expr->loc, 867, "the name of an entry is needed here");
}

/* `of = "net.w"` of a copy, `cursor = "ring.count"`: a slot of that type further up. */
static bool upper_slot(DumpArgs *args, const char *name, Type type, Slot **out) {
    const char *path = NULL;
    const Module *module = args->r->module;
    if (!dump_named_name(args, name, true, &path)) {
        return false;
    }
    for (int i = 0; path && i < module->slot.count; i++) {
        Slot *from = module->slot.at[i];
        Type value = slot_value_type(from); /* copies of what is kept in 16 bits are f32 */
        bool is = type_equal(from->type, type) || type_equal(value, type);
        *out = is && str_eq(from->name, path) ? from : *out;
    }
    return !path || *out ||
           dump_error(args->r, args->loc, 819, "there is no slot \"%s\" of this type above", path);
}

/* `{}` of the name, loops and axes go together. */
static bool layout(DumpArgs *args, const Slot *slot) {
    int holes = 0;
    for (const char *at = slot->file_name; (at = strchr(at, '{')) != NULL; at++) {
        holes += at[1 + strspn(at + 1, "0123456789")] == '}';
    }
    bool good = (slot->split == 0 || (slot->split == slot->stacked && slot->split == holes)) &&
                (!slot->transposed || slot->type.rank == slot->stacked + 2);
    return good || dump_error(args->r, args->loc, 818,
                              "'split' is the number of '{}' in \"file\" and of loops; what is "
                              "'transposed' has two other axes");
}

static bool slot_fields(DumpArgs *args, Slot *slot) {
    DumpRead *r = args->r;
    const Ast *name = dump_next(args), *initial;
    int64_t stacked = 0, split = 0;
    bool ok = name ? dump_name(r, name, true, &slot->name)
                   : dump_error(r, args->loc, 868, "a slot has a name");
    slot->file_name = slot->name;
    ok = ok && dump_named_text(args, "file", &slot->file_name) &&
         dump_named_int(args, "stacked", 0, slot->type.rank, &stacked) &&
         dump_named_int(args, "split", 0, stacked, &split) &&
         dump_named_flag(args, "transposed", &slot->transposed) &&
         dump_named_flag(args, "fixed", &slot->frozen) &&
         dump_named_flag(args, "trainable", &slot->trainable) &&
         upper_slot(args, "of", slot->type, &slot->copy_of) &&
         upper_slot(args, "cursor", type_scalar(TY_I64), &slot->cursor) &&
         dump_named_name(args, "label", false, &slot->label) &&
         named_entry(args, "entry", &slot->entry);
    slot->stacked = (int)stacked;
    slot->split = (int)split;
    initial = ok ? dump_named(args, "initial") : NULL;
    return ok && layout(args, slot) && (!initial || dump_number(r, initial, &slot->initial)) &&
           dump_done(args);
}

static bool slot_item(DumpRead *r, const Ast *item) {
    const char *word;
    DumpArgs args;
    int role;
    Slot *slot = ARENA_NEW(r->arena, Slot);
    slot->doc = item->doc;
    slot->loc = item->loc;
    slot->index = r->module->slot.count;
    if (!item->kid[0] || item->flags & AST_DRAW || item->nattr > 0) {
        return dump_error(r, item->loc, 869,
                          "a slot is written: state s0: f32[4] = core.parameter(\"net.w\");");
    }
    if (!dump_type(r, item->kid[0], &slot->type) ||
        !dump_range(r, item->kid[1], &slot->lo, &slot->hi) ||
        !dump_call(r, item->kid[2], &word, &args) ||
        !dump_one_of(r, item->kid[2]->loc, word, role_words, &role) || !slot_fields(&args, slot)) {
        return false;
    }
    slot->role = (StateRole)role;
    slot->kind = slot->role == STATE_NONE ? SLOT_PARAM : SLOT_STATE;
    VEC_PUSH(r->arena, &r->module->slot, slot);
    return dump_check_slot(r, slot);
}

/* --- data sets -------------------------------------------------------------------------------- */

static bool data_file(DumpRead *r, const Ast *line, DataSet *set) {
    const char *word;
    DumpArgs args;
    DataFile file = {.loc = line->loc};
    if (!dump_call(r, line->kid[0], &word, &args)) {
        return false;
    }
    const Ast *name = dump_next(&args), *path = dump_next(&args), *held = dump_next(&args);
    const Ast *test = dump_named(&args, "test");
    if (!dump_named_int(&args, "rows", 1, INT64_MAX, &file.rows) ||
        !dump_named_int(&args, "seed", 0, INT64_MAX, &file.seed)) {
        return false;
    }
    if (!str_eq(word, "file") || !name || !path == !file.rows) {
        return dump_error(r, line->loc, 870, "a file is written: core.file(\"f\", \"path\");");
    }
    if (!dump_name(r, name, false, &file.name) ||
        (path && !dump_string(r, path, &file.path[PART_TRAIN])) ||
        (held && !dump_string(r, held, &file.path[PART_HELD])) ||
        (test && !dump_string(r, test, &file.path[PART_TEST])) || !dump_done(&args)) {
        return false;
    }
    VEC_PUSH(r->arena, &set->file, file);
    return true;
}

static bool data_field(DumpRead *r, const Ast *line, DataSet *set) {
    const char *word;
    DumpArgs args;
    int source;
    int64_t file = -1;
    DataField f = {.name = line->name, .loc = line->loc};
    if (!dump_type(r, line->kid[0], &f.type) || !dump_range(r, line->kid[1], &f.lo, &f.hi) ||
        !dump_call(r, line->kid[2], &word, &args) ||
        !dump_one_of(r, line->kid[2]->loc, word, source_words, &source)) {
        return false;
    }
    const Ast *number = dump_next(&args), *raw;
    if (!number) {
        return dump_error(r, line->loc, 871, "a field names its file by number");
    }
    if (!dump_int(r, number, 0, set->file.count - 1, &file)) {
        return false;
    }
    f.source = (FieldSource)source;
    f.file = (int)file;
    for (int i = 0; i < ndata_numbers; i++) {
        int64_t x = 0;
        if (!dump_named_int(&args, data_numbers[i].name, 0, INT32_MAX, &x)) {
            return false;
        }
        memcpy((char *)&f + data_numbers[i].at, &x, sizeof x);
    }
    raw = dump_named(&args, "raw");
    if (!raw || !dump_elem(r, raw->name, raw->loc, &f.raw)) {
        return raw ? false : dump_error(r, line->loc, 872, "a field has 'raw', an element type");
    }
    if (!named_entry(&args, "load", &f.load) || !upper_slot(&args, "centre", f.type, &f.centre) ||
        !upper_slot(&args, "spread", f.type, &f.spread) ||
        !upper_slot(&args, "known", type_scalar(TY_I64), &f.known) || !dump_done(&args)) {
        return false;
    }
    VEC_PUSH(r->arena, &set->field, f);
    return true;
}

static bool data_item(DumpRead *r, const Ast *item, DataSet *set) {
    DumpArgs args;
    const Ast *block = item->kid[0];
    if (!attributes(r, item, &args) || !dump_named_flag(&args, "shuffle", &set->shuffle) ||
        !dump_named_int(&args, "holdout", 2, INT64_MAX, &set->every[PART_HELD]) ||
        !dump_named_int(&args, "test", 2, INT64_MAX, &set->every[PART_TEST]) ||
        !dump_named_flag(&args, "stream", &set->stream) ||
        !upper_slot(&args, "ring", type_scalar(TY_I64), &set->cursor) || !dump_done(&args)) {
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
            ok = dump_error(r, line->loc, 873, "a data set holds core.file(...) and fields");
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* --- entries ---------------------------------------------------------------------------------- */

static bool input(DumpRead *r, const Ast *param, Entry *entry) {
    Slot *slot = ARENA_NEW(r->arena, Slot);
    slot->kind = SLOT_INPUT;
    slot->name = slot->file_name = slot->c_name = param->name;
    slot->doc = param->doc;
    slot->entry = entry;
    slot->loc = param->loc;
    slot->index = entry->input.count;
    for (int i = 0; i < entry->input.count; i++) {
        if (str_eq(entry->input.at[i]->name, slot->name)) {
            return dump_error(r, param->loc, 863, "'%s' is declared twice", slot->name);
        }
    }
    VEC_PUSH(r->arena, &entry->input, slot);
    if (!dump_type(r, param->kid[0], &slot->type) ||
        !dump_range(r, param->kid[1], &slot->lo, &slot->hi)) {
        return false;
    }
    slot->optional = param->kid[2] != NULL;
    if (!slot->optional) {
        return true;
    }
    if (!dump_number(r, param->kid[2], &slot->initial)) {
        return false;
    }
    return (slot->type.rank == 0 && slot_takes(slot, slot->initial)) ||
           dump_error(r, param->kid[2]->loc, 874, "this input cannot have such a default value");
}

static bool entry_data(DumpArgs *args, Entry *entry) {
    DumpRead *r = args->r;
    const Ast *expr = dump_named(args, "data");
    for (int i = 0; expr && i < r->data.count; i++) {
        if (expr->kind == AST_NAME && str_eq(r->data.at[i]->name, expr->name)) {
            entry->dataset = i;
            return true;
        }
    }
    return !expr || dump_error(r, expr->loc, 875, "the name of a data set is needed here");
}

static bool entry_head(DumpRead *r, const Ast *item, Entry *entry) {
    DumpArgs args;
    int kind;
    int64_t bf16 = 0, f16 = 0, rounding = 0, always = 0;
    const Ast *params = item->kid[0];
    if (!attributes(r, item, &args)) {
        return false;
    }
    const Ast *word = dump_next(&args), *name = dump_next(&args), *in_use, *tolerance;
    if (!word || !name) {
        return dump_error(r, item->loc, 876,
                          "before an entry stands its kind and name: @graph(train, \"fit\")");
    }
    if (!dump_word(r, word, entry_words, &kind)) {
        return false;
    }
    entry->kind = (EntryKind)kind;
    bool ok = entry->kind == ENTRY_TEST ? dump_string(r, name, &entry->name)
                                        : dump_name(r, name, false, &entry->name);
    for (int i = 0; ok && params && i < params->nkid; i++) {
        ok = input(r, params->kid[i], entry);
    }
    ok = ok && entry_data(&args, entry) &&
         dump_named_int(&args, "rows", 1, INT32_MAX, &entry->rows) &&
         dump_named_int(&args, "accumulate", 2, INT32_MAX, &entry->accumulate) &&
         dump_named_int(&args, "steps", 1, INT64_MAX, &entry->steps) &&
         dump_named_int(&args, "epochs", 1, INT64_MAX, &entry->epochs) &&
         dump_named_int(&args, "budget", 1, INT64_MAX, &entry->budget) &&
         dump_named_int(&args, "rounding", 1, 1, &rounding) &&
         dump_named_int(&args, "bf16", 1, 1, &bf16) && dump_named_int(&args, "f16", 1, 1, &f16) &&
         dump_named_int(&args, "always", 1, 1, &always) &&
         dump_named_int(&args, "rounds", 1, ROUND_ALL, &entry->rounds) &&
         named_entry(&args, "train", &entry->train) &&
         named_entry(&args, "gradcheck", &entry->gradcheck);
    entry->half = bf16 ? TY_BF16 : f16 ? TY_F16 : TY_ERROR;
    entry->rounding = rounding != 0;
    entry->always = always != 0;
    in_use = ok ? dump_named(&args, "in_use") : NULL;
    tolerance = ok ? dump_named(&args, "tolerance") : NULL;
    r->at = entry;
    if (in_use) {
        entry->rows_slot = dump_slot(r, in_use);
        ok = entry->rows_slot != NULL;
    }
    return ok && (!tolerance || dump_number(r, tolerance, &entry->tolerance)) && dump_done(&args);
}

/* `core.loss(n40, name = "loss")`. */
static bool result(DumpRead *r, const DumpNames *names, const Ast *expr, Entry *entry) {
    const char *word;
    DumpArgs args;
    int role;
    EntryOut out = {.loc = expr->loc};
    if (!dump_call(r, expr, &word, &args) || !dump_one_of(r, expr->loc, word, out_words, &role)) {
        return false;
    }
    const Ast *value = dump_next(&args), *slot;
    Node *node = value ? dump_value(r, names, value) : NULL;
    if (!node) {
        return value ? false : dump_error(r, expr->loc, 877, "a result has a value");
    }
    out.role = (OutRole)role;
    if (!dump_named_name(&args, "name", entry->kind == ENTRY_TEST, &out.name)) {
        return false;
    }
    slot = dump_named(&args, "slot");
    out.slot = slot ? dump_slot(r, slot) : NULL;
    static const Elem halves[] = {TY_BF16, TY_F16};
    static const char *const half_words[] = {"bf16", "f16", NULL};
    const Ast *half = dump_named(&args, "half");
    int which = 0;
    if ((slot && !out.slot) || (half && !dump_word(r, half, half_words, &which)) ||
        !dump_done(&args)) {
        return false;
    }
    out.half = half ? halves[which] : TY_ERROR;
    region_result(entry->region, node);
    VEC_PUSH(r->arena, &entry->out, out);
    return true;
}

static bool entry_body(DumpRead *r, const Ast *item, Entry *entry) {
    DumpNames names;
    if (!dump_region(r, entry, item->kid[4], &names)) {
        return false;
    }
    for (int i = 0; names.result && i < names.result->nkid; i++) {
        if (!result(r, &names, names.result->kid[i], entry)) {
            return false;
        }
    }
    return true;
}

static bool read_items(DumpRead *r, const Ast *file) {
    Module *module = r->module;
    bool ok = note_items(r, file);
    if (ok && r->entry.count == 0) {
        ok = dump_error(r, r->core->loc, 899, "the first entry, and no other, is of kind init");
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
        ok = dump_check_entry(r, i);
    }
    for (int i = 0; ok && i < r->data.count; i++) {
        ok = dump_check_data(r, &module->dataset.at[i]);
    }
    ok = ok && dump_check_phases(r);
    for (int i = 0; ok && i < r->body.count; i++) {
        ok = r->body.at[i].used ||
             dump_error(r, r->body.at[i].ast->loc, 878, "no core.custom has this body");
    }
    return ok;
}

void dump_module(Compile *c, Module *module, const Ast *file, const Ast *core) {
    DumpRead r = {
        .c = c, .arena = module->arena, .module = module, .g = module->graph, .core = core};
    if (c->opt.noverride > 0) {
        dump_error(&r, core->loc, 879, "-D changes no dumped graph: its sizes are settled");
        return;
    }
    read_items(&r, file);
}
